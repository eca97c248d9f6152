"""What seats stood for lately, taken from the trace's own events.

Live and on resume the same events are read, so that a seat that is reminded of them is asked the
same question either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policies.records import Position

STEPS_KEPT = 8
"""Steps whose positions a session remembers."""


def positions_of(
    step: int, events: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> tuple[Position, ...]:
    """The positions of one step, in the order in which seats spoke.

    Args:
        step: The step, 1….
        events: ``(type, seat, data)`` of the step's events.
    """
    proposals: dict[str, list[Mapping[str, Any]]] = {}
    messages: dict[str, str] = {}
    for kind, seat, data in events:
        if kind == "ballot" and seat:
            proposals[seat] = list(data.get("proposals", ()))
        elif kind == "message" and seat:
            messages[seat] = str(data.get("text", ""))
    return tuple(
        Position(
            step,
            seat,
            tuple(str(entry["id"]) for entry in proposals.get(seat, ())),
            str(proposals[seat][0].get("rationale", "")) if proposals.get(seat) else "",
            messages.get(seat, ""),
        )
        for seat in dict.fromkeys((*proposals, *messages))
        if proposals.get(seat) or messages.get(seat)
    )


def add_fallbacks(
    counted: dict[str, tuple[int, str]], events: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> None:
    """Count the fallbacks of seats: how often, and what the first of them said.

    Args:
        counted: Seat → count and first words; added to.
        events: ``(type, seat, data)`` of the events.
    """
    for kind, seat, data in events:
        if kind == "fallback" and seat:
            count, first = counted.get(seat, (0, str(data.get("what", ""))))
            counted[seat] = (count + 1, first)
