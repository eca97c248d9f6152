"""The version of this checkout, read from its one source."""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Root of the checkout."""
ENTRY = "run_warroom.py"


def started_as(interpreter: str, script: str, folder: str) -> str:
    """The words that start this program again, as short as they still work.

    Args:
        interpreter: The Python that runs, as it was named (a link stays a link: that is what
            makes a virtual environment).
        script: The file that was started.
        folder: Where the person stands.
    """
    script = script if Path(script).name == ENTRY else str(ROOT / ENTRY)
    names = ("python", "python3")
    name = next((name for name in names if shutil.which(name) == interpreter), "")
    words = (name or _shortest(interpreter, folder), _shortest(script, folder))
    return " ".join(map(shlex.quote, words))


def _shortest(path: str, folder: str) -> str:
    """A path below `folder` from there; any other as it was. Links are not followed."""
    full = Path(folder, path)
    return str(full.relative_to(folder)) if full.is_relative_to(folder) else path


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # It was removed.
        return "/"


PROGRAM = started_as(sys.executable or "python3", sys.argv[0] if sys.argv else ENTRY, _folder())
"""How a person starts the program again; every hint begins with it."""


@cache
def version() -> str:
    """Version in ``pyproject.toml``; ``unknown`` where that file was left out."""
    import tomllib

    try:
        content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return str(content["project"]["version"])
    except (OSError, ValueError, KeyError):
        return "unknown"
