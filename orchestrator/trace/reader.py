"""Reads traces: the events of a file, one after the other, and where the file of a run is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.trace.events import Event
from orchestrator.trace.links import Torn, scan
from orchestrator.trace.runs import find_run, list_runs
from world.errors import TraceError

__all__ = ["find_run", "has_ended", "list_runs", "read"]


def has_ended(path: Path) -> bool:
    """Whether a trace is whole: its last line is run_ended. Reads it, checked, to the end.

    Raises:
        SchemaVersionError: The trace is of another schema.
        DigestMismatchError: A line was changed.
        TraceError: This is no trace, or it cannot be read.
    """
    ended = False
    for link in scan(path):
        ended = not isinstance(link, Torn) and link.type == "run_ended"
    return ended


def read(path: Path) -> Iterator[Event]:
    """The events of a trace in order, each checked against the hash chain before it is given out.

    Streaming: a trace of any length takes the memory of its longest line. A trace that was
    interrupted (no run_ended) is read to where it ends; `verify` is who calls it incomplete.

    Raises:
        SchemaVersionError: The trace is of another schema.
        DigestMismatchError: A line was changed; the message names it.
        TraceError: The file is missing, empty, binary, no trace, or ends within a line.
    """
    for link in scan(path):
        if isinstance(link, Torn):
            raise TraceError(
                f"{path} ends within line {link.line}",
                "its writer was killed, or the file was cut off",
                "Resume the run to repair it: run_warroom.py run --resume RUN",
            )
        yield link.event()
