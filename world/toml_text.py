"""Reading TOML that somebody else wrote, without letting it cost more than its size.

The standard parser's time and memory grow with the square of the parts of a dotted key, so that
40 kB of ``a.a.a… = 1`` take gigabytes. No file of ours nests deeper than a handful.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

MAX_KEY_PARTS = 32
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_LONG_KEY = re.compile(rf"(?:{_PART}\.[ \t]*){{{MAX_KEY_PARTS}}}")

TomlError = tomllib.TOMLDecodeError


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        TomlError: It is not TOML, or a key has more than 32 dotted parts.
        RecursionError: It is nested too deeply.
        ValueError: It holds a whole number of thousands of digits.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") >= MAX_KEY_PARTS and _LONG_KEY.search(line):
            raise TomlError(
                f"a key of more than {MAX_KEY_PARTS} parts (at line {number}, column 1)"
            )
    return tomllib.loads(text)


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: It is not there, not readable, or not a regular file: a pipe would wait for ever.
        ValueError: It is larger than `max_bytes`.
    """
    if path.exists() and not path.is_file():
        raise OSError(22, "it is not a regular file")
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes >> 20} MiB")
    return content
