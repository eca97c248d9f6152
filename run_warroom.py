"""The one entry of the war room. ``python run_warroom.py --help`` says what it can do."""

from __future__ import annotations

import sys

from orchestrator.stopping import end_on_signals

_OLDEST_PYTHON = (3, 11)
_OURS = frozenset({"orchestrator", "agents", "policies", "world"})


def _start(arguments: list[str]) -> int:
    """Run one command line; an interpreter that cannot is told so in one line."""
    end_on_signals()
    if sys.version_info < _OLDEST_PYTHON:
        return _cannot(f"Python {sys.version.split()[0]}", "is too old (3.11 or newer is needed)")
    try:
        from orchestrator.cli.app import main
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in _OURS:
            raise
        return _cannot(package, "is not installed here")
    status = main(arguments)
    # What a seat's thread still prints while the process ends is no part of the answer.
    sys.stdout = sys.stderr
    return status


def _cannot(what: str, why: str) -> int:
    fix = "run: make setup; then start it as .venv/bin/python run_warroom.py"
    print(f"error: {what} {why} ({sys.executable}). {fix}", file=sys.stderr)  # noqa: T201
    return 3


if __name__ == "__main__":
    sys.exit(_start(sys.argv[1:]))
