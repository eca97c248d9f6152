"""``--log json``: the trace events themselves, one per line, as their steps are committed.

The lines are read back from the trace file, so that what is logged is what was recorded. A run
without a trace file logs its steps instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.console.watcher import Pipe, Watcher
from orchestrator.spec import EpisodeResult


class EventLog(Watcher):
    """Writes trace events as JSON lines.

    Args:
        pipe: Where lines go.
        ascii_only: Escape everything but ASCII, for a terminal: a control sequence that hides
            in a persona's words must not reach it.
    """

    def __init__(self, pipe: Pipe, ascii_only: bool = False) -> None:
        super().__init__()
        self._pipe = pipe
        self._ascii_only = ascii_only
        self._read_bytes = 0

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """Begin where the trace ends now; a new run shows its ``run_started``."""
        super().started(run, header)
        if header.get("resumed_at", 0) and self.trace:
            self._read_bytes = Path(self.trace).stat().st_size
        if not self.trace:
            self._pipe.line(_line("run_started", 0, dict(header)))
        self._follow()

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """Write the events of the step."""
        super().committed(step, record)
        if self.trace:
            self._follow()
        else:
            self._pipe.line(_line("step", step, dict(record)))

    def ended(self, result: EpisodeResult) -> None:
        """Write the last event."""
        super().ended(result)
        if self.trace:
            self._follow()
        else:
            data = {"stop_reason": result.stop_reason, "scorecard": result.scorecard}
            self._pipe.line(_line("run_ended", result.steps, data))

    def _follow(self) -> None:
        """Write the whole lines that were added to the trace since the last look."""
        if not self.trace or self._pipe.broken:
            return
        try:
            with Path(self.trace).open("rb") as file:
                file.seek(self._read_bytes)
                added = file.read()
        except FileNotFoundError:
            return
        whole = added[: added.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        # Not splitlines(): a text may hold U+0085 or U+2028, which are no ends of lines here.
        for line in whole.decode("utf-8", "replace").split("\n")[:-1]:
            self._pipe.line(json.dumps(json.loads(line)) if self._ascii_only else line)


def _line(kind: str, step: int, data: Mapping[str, Any]) -> str:
    return json.dumps({"type": kind, "step": step, "data": data}, default=str)
