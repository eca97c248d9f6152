"""What each seat cost, decision by decision: tokens, dollars, milliseconds.

Read from the timings file beside a trace, which holds running totals. A trace that was copied
without it has no spending to tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from policies.records import Usage


class Spending(NamedTuple):
    """What one step cost.

    Attributes:
        step: The step, 1….
        phases_ms: Phase → wall time in milliseconds.
        seats: Seat → what the step cost it; seats that cost nothing are left out.
    """

    step: int
    phases_ms: dict[str, float]
    seats: dict[str, Usage]


def spending(path: Path) -> Iterator[Spending]:
    """The cost of each step of a run, in order of steps, one line in memory at a time.

    A step with two lines (its writer was killed in between) counts once, by the last of them.
    Dollars are unknown (None) for a step as soon as a price is not known.

    Args:
        path: A run's timings.jsonl; a file that is missing has no steps, a broken line is skipped.
    """
    if not path.is_file():
        return
    before: dict[str, Usage] = {}
    pending: tuple[int, dict[str, float], dict[str, Usage]] | None = None
    with path.open("rb") as file:
        for raw in file:
            line = _line(raw)
            if line is None:
                continue
            if pending is not None and line[0] > pending[0]:
                yield _since(before, pending)
                before = {**before, **pending[2]}
            if pending is None or line[0] >= pending[0]:
                pending = line
    if pending is not None:
        yield _since(before, pending)


def added(one: Usage, other: Usage) -> Usage:
    """Two costs together; dollars are unknown as soon as one of them is."""
    usd = None if one.usd is None or other.usd is None else one.usd + other.usd
    return Usage(
        one.calls + other.calls,
        one.tokens_in + other.tokens_in,
        one.tokens_out + other.tokens_out,
        usd,
        one.latency_ms + other.latency_ms,
    )


def _since(
    before: dict[str, Usage], line: tuple[int, dict[str, float], dict[str, Usage]]
) -> Spending:
    step, phases, totals = line
    spent = {seat: _difference(total, before.get(seat)) for seat, total in totals.items()}
    nothing = (Usage(), Usage(usd=0.0))
    return Spending(step, phases, {s: used for s, used in spent.items() if used not in nothing})


def _difference(total: Usage, before: Usage | None) -> Usage:
    if before is None:
        return total
    usd = None if total.usd is None or before.usd is None else max(total.usd - before.usd, 0.0)
    return Usage(
        max(total.calls - before.calls, 0),
        max(total.tokens_in - before.tokens_in, 0),
        max(total.tokens_out - before.tokens_out, 0),
        usd,
        max(total.latency_ms - before.latency_ms, 0.0),
    )


def _line(raw: bytes) -> tuple[int, dict[str, float], dict[str, Usage]] | None:
    """Step, phases and running totals; None for a line that was cut off."""
    try:
        data = json.loads(raw)
        phases = {str(name): float(ms) for name, ms in data.get("ms", {}).items()}
        usage = {str(seat): _usage(used) for seat, used in data.get("usage", {}).items()}
        return int(data["step"]), phases, usage
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _usage(used: dict[str, Any]) -> Usage:
    return Usage(
        int(used["calls"]),
        int(used["tokens_in"]),
        int(used["tokens_out"]),
        None if used["usd"] is None else float(used["usd"]),
        float(used.get("latency_ms", 0.0)),
    )
