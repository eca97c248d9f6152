"""The runs folder: listing runs in order, and finding the trace that a RUN argument means.

Order is by claim, never by clock. Each claim (`orchestrator.runs.claim`) appends the run id to
``.order`` in the runs folder; ``last`` is the last id in it whose trace is still there. Folders
that the list does not know (copied in from elsewhere, or ``.order`` was deleted) count as older
than all it knows, among themselves by the modification time of their trace in nanoseconds, then
by name. Folders whose name starts with a dot are drafts.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from orchestrator.runs import ORDER_FILE, TRACE_FILE
from world.errors import UnknownNameError

LAST = "last"


def list_runs(out: Path) -> list[str]:
    """Ids of the runs in a folder that have a trace, newest last; empty where there is none."""
    try:
        names = {
            entry.name
            for entry in out.iterdir()
            if not entry.name.startswith(".") and (entry / TRACE_FILE).is_file()
        }
    except OSError:
        return []
    listed = [name for name in dict.fromkeys(reversed(_noted(out))) if name in names]
    others = names.difference(listed)
    by_time = sorted(others, key=lambda name: ((out / name / TRACE_FILE).stat().st_mtime_ns, name))
    return by_time + listed[::-1]


def find_run(name: str, out: Path) -> Path:
    """The trace file that a RUN argument means.

    Args:
        name: A run id in `out`, ``last``, or the path of a trace file or of a run's folder.
        out: Parent folder of the runs.

    Raises:
        UnknownNameError: There is none; the message names the nearest ids.
    """
    runs = list_runs(out)
    if name == LAST:
        if not runs:
            raise UnknownNameError(
                f"there is no last run in {out}", "no run has been started there",
                "Start one: run_warroom.py run",
            )  # fmt: skip
        return out / runs[-1] / TRACE_FILE
    if name in runs:
        return out / name / TRACE_FILE
    found = _by_path(name)
    if found is not None:
        return found
    raise _unknown(name, out, runs)


def _by_path(name: str) -> Path | None:
    try:
        path = Path(name)
        if name and path.is_dir():
            path = path / TRACE_FILE
        return path if name and path.exists() else None
    except (OSError, ValueError):  # too long, or with a NUL: no path at all
        return None


def _unknown(name: str, out: Path, runs: list[str]) -> UnknownNameError:
    near = get_close_matches(name, runs, n=3, cutoff=0.5)
    if near:
        fix = f"Did you mean {' or '.join(near)}?"
    elif runs:
        fix = f"The newest is {runs[-1]}; list all: run_warroom.py runs"
    else:
        fix = "Start one: run_warroom.py run"
    return UnknownNameError(
        f"there is no run {name[:200]!r}",
        f"it is no run id in {out}, and no path of a trace or run folder",
        fix,
    )


def _noted(out: Path) -> list[str]:
    try:
        return (out / ORDER_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
