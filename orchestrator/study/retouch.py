"""One ballot changed: an option becomes what a seat wants most, and nothing else is touched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.records import Context
from policies.utility import round_significant
from world.errors import ConfigError

Retouch = Callable[[int, Context], Context]

LEAD = 1e-6
"""By how much of the seat's range the option comes to stand above the seat's best one: enough to
be ranked first and to pass the tie rule, too little to weigh more than the best did."""


def retouch_of(origin: Mapping[str, Any]) -> Retouch | None:
    """The change of ballots that a header's ``counterfactual`` names; None where it names none."""
    change = origin.get("change")
    if not isinstance(change, Mapping) or change.get("kind") != "ballot":
        return None
    step, seat, option = int(change["step"]), str(change["seat"]), str(change["candidate"])

    def retouch(now: int, context: Context) -> Context:
        return with_best(context, seat, option) if now == step else context

    return retouch


def with_best(context: Context, seat: str, option: str) -> Context:
    """The same table with one option as the best of one seat.

    Its utility becomes the seat's highest, plus `LEAD` of the seat's range. Vetoes stand.

    Args:
        context: The table.
        seat: Whose ballot.
        option: Candidate id.

    Raises:
        ConfigError: The option is not on the table, or was not valued.
    """
    row = context.seats.index(seat)
    ids = [candidate.id for candidate in context.candidates]
    values = context.utilities[row]
    if option not in ids or not np.isfinite(values[ids.index(option)]):
        raise ConfigError(
            f"{option} is no candidate of step {context.step + 1} that can be chosen",
            "only what is on the table can be voted for",
            f"List them: run_warroom.py trace show RUN --step {context.step + 1} --full",
        )
    utilities = context.utilities.copy()
    utilities[row] = _led(values, ids.index(option))
    ballots = tuple(
        dataclasses.replace(ballot, utilities=utilities[row].copy())
        if ballot.seat == seat
        else ballot
        for ballot in context.ballots
    )
    return dataclasses.replace(context, utilities=utilities, ballots=ballots)


def _led(values: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    known = values[np.isfinite(values)]
    best, span = float(known.max()), float(known.max() - known.min())
    changed = values.copy()
    changed[place] = best + LEAD * (span or max(abs(best), 1.0))
    return round_significant(changed)
