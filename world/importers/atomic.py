"""Whole files or none: what is being written is never seen half-written under its name."""

from __future__ import annotations

import os
from pathlib import Path

from world.errors import ConfigError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its final name, then rename it there.

    Missing folders are made. A reader sees the old file or the new one, nothing in between.

    Raises:
        ConfigError: The path is a folder, or the folder cannot be written.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder", "the output is one file", "Name the file")
    partial = path.with_name(f".{path.name[:200]}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written", error.strerror or str(error), "Choose another place"
        ) from error
