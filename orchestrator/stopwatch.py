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
                    "latency_ms": round(used.latency_ms, 3),
                }
                for seat, used in usage.items()
            }
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        if usage:  # what was spent must outlive a kill: a resumed run keeps to its budget
            self._file.flush()

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        self._file.close()


def spent_before(path: Path, step: int) -> dict[str, Usage]:
    """What each seat had spent when a step was committed, from a run's timings file.

    Args:
        path: The file; one that is missing or cut off says what it can.
        step: The step, 1…; the last line up to it counts.
    """
    spent: dict[str, Usage] = {}
    if not path.is_file():
        return spent
    for raw in path.read_bytes().split(b"\n"):
        try:
            line = json.loads(raw)
            if int(line["step"]) > step:
                break
            spent = {
                str(seat): Usage(
                    int(used["calls"]),
                    int(used["tokens_in"]),
                    int(used["tokens_out"]),
                    None if used["usd"] is None else float(used["usd"]),
                    float(used.get("latency_ms", 0.0)),
                )
                for seat, used in line.get("usage", {}).items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # a line that was cut off by a kill
    return spent
