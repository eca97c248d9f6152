"""Who watches an episode from a terminal: the base of every log mode, and the pipe it writes to.

A watcher only listens. It never raises into the episode: a reader that has gone away (a closed
pipe) or a full disk is remembered, the log falls silent, and whoever started the run is asked to
stop it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TextIO

from orchestrator.spec import EpisodeResult

INTERRUPTED = "interrupted"
"""`EpisodeResult.stop_reason` of a run that was stopped before its end."""
WAITING = "waiting"
"""`EpisodeResult.stop_reason` of a run that waits for people's answers."""


class Pipe:
    """A text stream that may lose its reader, or the room that it writes to.

    Args:
        stream: Where lines go.
        on_broken: Called once, when nothing can be written any more, with the reason; "" where
            the reader simply went away.
    """

    def __init__(self, stream: TextIO, on_broken: Callable[[str], None] | None = None) -> None:
        self.stream = stream
        self.broken = False
        self._on_broken = on_broken

    def line(self, text: str) -> None:
        """Write one line and flush it, unless the reader has gone."""
        if self.broken:
            return
        try:
            self.stream.write(text + "\n")
            self.stream.flush()
        except OSError as error:
            self.broken = True
            silence(self.stream)
            if self._on_broken:
                gone = isinstance(error, BrokenPipeError)
                self._on_broken("" if gone else error.strerror or str(error))


def silence(stream: TextIO) -> None:
    """Point a stream that cannot be written at nothing, so that its last flush cannot fail."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class Watcher:
    """Listens to an episode and keeps what a closing line needs. Shows nothing itself.

    Used as a context manager: leaving it closes whatever was opened, also after an error.

    Attributes:
        run: Run id; "" before the run was claimed.
        trace: Path of the trace file; "" where none is written.
        header: What `started` was told.
        targets: Metric → strict upper bound; a world may set them when it starts.
        begun: Whether a step of this process has begun.
        steps: Steps committed so far.
        rewards: Rewards seen so far.
        result: What the episode came to, once it did.
    """

    def __init__(self) -> None:
        self.run = ""
        self.trace = ""
        self.header: Mapping[str, Any] = {}
        self.targets: dict[str, float] = {}
        self.begun = False
        self.steps = 0
        self.rewards: list[float] = []
        self.result: EpisodeResult | None = None

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """Keep the run's name and where it stands."""
        self.run = run
        self.trace = str(header.get("trace", ""))
        self.header = header
        self.targets.update(header.get("scenario", {}).get("targets", {}))
        self.steps = int(header.get("resumed_at", 0))

    def live(self, step: int, kind: str, data: Mapping[str, Any]) -> None:
        """Keep that a step has begun, and the targets that a world set when it started."""
        self.begun = True
        if kind == "observation":
            self.targets.update(data.get("targets", {}))

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """Count the step."""
        self.begun = True
        self.targets.update(record.get("targets", {}))
        self.steps = step
        self.rewards.append(float(record["reward"]))

    def ended(self, result: EpisodeResult) -> None:
        """Keep the result."""
        self.result = result

    def close(self) -> None:
        """Close what was opened. Called once, whatever happened."""

    def last_words(self) -> str:
        """What must still be printed if the process is to die now; "" for nothing."""
        return ""

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def model_of(header: Mapping[str, Any]) -> str:
    """What voices the seats, for ``model=``: the backends in use, for example ``rules``."""
    backends = {str(seat.get("backend", "")) for seat in header.get("seats", ())} - {""}
    return "+".join(sorted(backends)) or "none"
