"""Processes below one of ours, as the kernel lists them: for tests that really kill them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

AVAILABLE = Path("/proc/self/stat").is_file()
"""Whether this system lists processes as files (Linux)."""


def below(pid: int) -> list[int]:
    """Every living descendant of a process, nearest first."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name in parentheses may hold anything; fields are counted behind it.
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    found, edge = [], [pid]
    while edge:
        edge = [child for child, parent in sorted(parents.items()) if parent in edge]
        found += edge
    return found


def workers(pid: int) -> list[int]:
    """The workers of a sweep that runs in process `pid`: children of its fork server."""
    direct = [child for child in below(pid) if _parent(child) == pid]
    return [process for process in below(pid) if _parent(process) in direct]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def kill(pid: int) -> None:
    """SIGKILL; a process that is gone already is no fault."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
