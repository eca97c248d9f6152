"""Groups the lines of a trace by commit: run_started, each step, run_ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.trace.links import Link, Torn, scan
from world.errors import TraceError

Commit = tuple[Link, ...]
"""Lines that were written at once: all of one step, or run_started or run_ended alone."""


def commits(path: Path) -> Iterator[Commit]:
    """The commits of a trace in order, each line checked against the chain; one in memory.

    Raises:
        SchemaVersionError: The trace is of another schema.
        DigestMismatchError: A line was changed.
        TraceError: It is no trace, cannot be read, or ends within a line.
    """
    lines: list[Link] = []
    for link in scan(path):
        if isinstance(link, Torn):
            raise TraceError(
                f"{path} ends within line {link.line}",
                "its writer was killed, or the file was cut off",
                "Resume the run to repair it: run_warroom.py run --resume RUN",
            )
        if lines and (link.step != lines[-1].step or link.type == "run_ended"):
            yield tuple(lines)
            lines = []
        lines.append(link)
    if lines:
        yield tuple(lines)
