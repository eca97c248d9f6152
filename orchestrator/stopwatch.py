"""How long each phase took and what each seat cost: timings.jsonl, never hashed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from policies.records import Usage

_PHASES = ("propose", "negotiate", "commit")


class Stopwatch:
    """Appends one line a step to a run's timings file.

    Args:
        path: The file; a resumed run appends to it.
    """

    __slots__ = ("_file", "_marks")

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._marks: dict[str, float] = {}

    def start(self) -> None:
        """A step begins."""
        self._marks = {"observe": time.perf_counter()}

    def mark(self, phase: str) -> None:
        """A phase begins; only its first mark in a step counts."""
        self._marks.setdefault(phase, time.perf_counter())

    def finish(self, step: int, usage: Mapping[str, Usage]) -> None:
        """A step is committed: write its line.

        Args:
            step: Step committed.
            usage: What each seat has cost so far, seats that cost nothing left out.
        """
        names = ["observe", *(phase for phase in _PHASES if phase in self._marks)]
        times = [*(self._marks[name] for name in names), time.perf_counter()]
        line: dict[str, object] = {
            "step": step,
            "ms": {
                name: round((end - begin) * 1000.0, 3)
                for name, begin, end in zip(names, times, times[1:], strict=False)
            },
        }
        if usage:
            line["usage"] = {
                seat: {
                    "calls": used.calls,
                    "tokens_in": used.tokens_in,
                    "tokens_out": used.tokens_out,
                    "usd": used.usd,
                }
                for seat, used in usage.items()
            }
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        self._file.close()
