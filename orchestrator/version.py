"""The version of this checkout, read from its one source."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Root of the checkout."""
PROGRAM = "python run_warroom.py"
"""How a person starts the program; every hint begins with it."""


@cache
def version() -> str:
    """Version in ``pyproject.toml``; ``unknown`` where that file was left out."""
    import tomllib

    try:
        content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return str(content["project"]["version"])
    except (OSError, ValueError, KeyError):
        return "unknown"
