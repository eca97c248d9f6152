"""Reading TOML that somebody else wrote: bounded, located, and never more than one clear line.

A `Source` keeps the text beside the data, so that a fault can be told with its line. Knows
nothing about what a persona means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from world.errors import ConfigError, UnknownNameError
from world.toml_text import TomlError, parse_toml

MAX_BYTES = 256 * 1024
MAX_NESTING = 16

KeyPath = tuple[str | int, ...]
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED_KEY = re.compile(rf"{_KEY}(?:\s*\.\s*{_KEY})*")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One TOML file as read. Equal only to itself; the same bytes give the same one.

    Attributes:
        path: Where it lies.
        text: Its text.
        data: Its tables.
    """

    path: Path
    text: str
    data: Mapping[str, Any]

    def line_of(self, where: KeyPath) -> tuple[int, int]:
        """``(line, matched)``: where a field stands, and how much of its path was found there.

        The line is 1-based; ``(1, 0)`` when nothing of the path stands in this file.
        """
        best = (1, 0)
        for number, place in _places(self.text):
            shared = _shared(place, where)
            if shared > best[1] and shared in (len(place), len(where)):
                best = (number, shared)
        return best


def read_toml(path: Path) -> Source:
    """Read one file.

    Raises:
        UnknownNameError: There is no such file.
        ConfigError: It is too large, not a file, not UTF-8, not TOML, or nested too deeply.
    """
    return _parsed(path, _read(path))


@lru_cache(maxsize=128)
def _parsed(path: Path, raw: bytes) -> Source:
    """Kept, because a sweep reads the same few files once an episode."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{path}:{line}: not UTF-8 text", f"byte 0x{raw[error.start]:02X}", "Save it as UTF-8"
        ) from None
    try:
        data = parse_toml(text)
    except TomlError as error:
        raise _not_toml(path, text, str(error)) from None
    except RecursionError:
        raise ConfigError(f"{path}:1: nested too deeply", "", "Flatten it") from None
    except ValueError:  # Python refuses to read integers of more than 4,300 digits
        number = re.search(r"[0-9_]{4300,}", text)
        line = text[: number.start()].count("\n") + 1 if number else 1
        raise ConfigError(
            f"{path}:{line}: a number with thousands of digits", "", "Write a number"
        ) from None
    if _depth(data) > MAX_NESTING:
        raise ConfigError(
            f"{path}:1: nested more than {MAX_NESTING} tables deep", "", "Flatten it"
        ) from None
    return Source(path, text, data)


def _not_toml(path: Path, text: str, message: str) -> ConfigError:
    """The parser's message with its position in front, as compilers print it."""
    position = re.search(r" \(at (line (\d+), column (\d+)|end of document)\)$", message)
    if position is None:
        return ConfigError(f"{path}:1: not TOML: {message}", "", "Correct it")
    line = position.group(2) or str(text.count("\n") + 1)
    column = f" (column {position.group(3)})" if position.group(3) else " (end of the file)"
    reason = message[: position.start()]
    return ConfigError(f"{path}:{line}: not TOML: {reason}{column}", "", "Correct that line")


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path} is not a file", "a persona is one TOML file", "Name it")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UnknownNameError(
            f"there is no persona file {path}", "", "List the shipped ones: run_warroom.py personas"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{str(path)!r} cannot be read", why, "Name another file") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(
            f"{path}:1: larger than {MAX_BYTES >> 10} KiB", "a persona file is small", "Shorten it"
        )
    return raw


def _depth(value: Any) -> int:
    """Nesting of tables and arrays, counted without recursion."""
    deepest = 0
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > MAX_NESTING:
            return depth
        if isinstance(part, dict):
            waiting.extend((child, depth + 1) for child in part.values())
        elif isinstance(part, list):
            waiting.extend((child, depth + 1) for child in part)
    return deepest


def _shared(place: KeyPath, where: KeyPath) -> int:
    count = 0
    for mine, theirs in zip(place, where, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _places(text: str) -> list[tuple[int, KeyPath]]:
    """``(line, key path)`` of every header and key, arrays of tables with their 0-based index.

    A scan by line, for messages only: it skips the inside of multi-line strings and does not
    look into inline tables.
    """
    found: list[tuple[int, KeyPath]] = []
    counts: dict[KeyPath, int] = {}
    header: KeyPath = ()
    fence = ""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if fence:
            fence = "" if fence in line else fence
            continue
        fence = _opened_fence(line)
        if line.startswith("[["):
            name = _resolve(_keys(line[2:].partition("]]")[0]), counts)
            counts[name] = counts.get(name, -1) + 1
            header = (*name, counts[name])
            found.append((number, header))
        elif line.startswith("["):
            header = _resolve(_keys(line[1:].partition("]")[0]), counts)
            found.append((number, header))
        elif "=" in line and not line.startswith("#"):
            found.append((number, (*header, *_keys(_key_text(line)))))
    return found


def _opened_fence(line: str) -> str:
    for fence in ('"""', "'''"):
        if line.count(fence) % 2:
            return fence
    return ""


def _key_text(line: str) -> str:
    """What stands before the ``=``, which may itself stand in a quoted key."""
    key = _DOTTED_KEY.match(line)
    return key.group() if key else line.partition("=")[0]


def _keys(text: str) -> tuple[str, ...]:
    """The parts of a dotted key; the escapes of a quoted one as the parser reads them."""
    if "\\" in text or text.count('"') + text.count("'") > 0:
        try:
            place: Any = parse_toml(f"{text} = 0")
        except (TomlError, ValueError, RecursionError):
            pass
        else:
            names = []
            while isinstance(place, dict):
                ((name, place),) = place.items()
                names.append(name)
            return tuple(names)
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _resolve(names: tuple[str, ...], counts: Mapping[KeyPath, int]) -> KeyPath:
    """Header names with the index of the array element that they continue."""
    place: KeyPath = ()
    for position, name in enumerate(names):
        place = (*place, name)
        if position < len(names) - 1 and place in counts:
            place = (*place, counts[place])
    return place
