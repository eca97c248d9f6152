"""JSON files from strangers: plain or gzip, bounded, every failure one clear line."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, Final

from world.errors import ImportFileError

MOST_BYTES: Final = 128 * 2**20
"""Largest content, unpacked."""


def read_json(path: Path, what: str) -> Any:
    """The value that a JSON file holds; ``NaN`` and ``Infinity`` become floats.

    Args:
        path: The file.
        what: What it should be, for messages.

    Raises:
        ImportFileError: It is missing, too large, damaged or no JSON.
    """
    content = _content(path, what)
    try:
        text = content.decode(
            "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        )
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise ImportFileError(
            f"{path} is not UTF-8 near byte {error.start}", error.reason, "Export it again"
        ) from error
    except json.JSONDecodeError as error:
        raise ImportFileError(
            f"{path} is not JSON in line {error.lineno}, column {error.colno}",
            error.msg,
            f"Give the {what} as JSON, whole and unchanged",
        ) from error
    except (RecursionError, ValueError) as error:
        raise ImportFileError(
            f"{path} cannot be read as JSON",
            "it is nested too deeply, or a number in it is too long",
            f"Give the {what} as it was exported",
        ) from error


def _content(path: Path, what: str) -> bytes:
    if path.is_dir():
        raise ImportFileError(
            f"{path} is a folder", f"a {what} is one file", f"Name the {what} inside it"
        )
    if path.exists() and not path.is_file():
        raise ImportFileError(f"{path} is not a regular file", "", "Save it to a file first")
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    content = unpacked.read(MOST_BYTES + 1)
            else:
                content = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise ImportFileError(f"there is no file {path}", "", "Check the path") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ImportFileError(
            f"{path} is a damaged gzip file", str(error), "Download or export it again"
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ImportFileError(
            f"{path} cannot be read", reason or "", "Check the path and its permissions"
        ) from error
    if len(content) > MOST_BYTES:
        raise ImportFileError(
            f"{path} holds more than {MOST_BYTES >> 20} MiB",
            f"a {what} is read as a whole",
            "Export a shorter period, or several files",
        )
    return content
