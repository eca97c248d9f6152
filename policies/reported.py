"""Ballots that seats state themselves: whole numbers 0–10, put on the scale that counts.

A score is a place on the seat's own range of projected utilities: 10 is worth what its best
admissible candidate is worth, 0 what its worst is. So a seat that reports keeps the size of its
voice, whatever it says; it can only say where on its range a candidate stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policies.records import Ask, Context
from policies.rules import SeatRules
from policies.stakes import shuffled, standing
from policies.table import Table
from policies.utility import round_significant

STREAM = "reported"
TOP_SCORE = 10
"""Scores are whole numbers from 0 to this."""


def stated(context: Context, row: int, scores: Mapping[str, int]) -> NDArray[np.float64]:
    """What a seat's scores are worth, on the scale of its projected utilities.

    An admissible candidate without a score takes the place of its projected rank: the share of
    the other admissible candidates that it beats, ties counted half. A seat that scored nothing
    stated nothing: its projected utilities stand.

    Args:
        context: What lies on the table.
        row: The seat's row.
        scores: Candidate id → whole number 0–10.

    Returns:
        float64 [n_candidates], 9 significant digits; projected where not admissible.
    """
    values: NDArray[np.float64] = context.utilities[row]
    places = np.flatnonzero(context.admissible)
    known = {context.candidates[place].id for place in places.tolist()}
    if not known & set(scores):
        return values
    among = values[places]
    low, high = float(among.min()), float(among.max())
    result = values.copy()
    others = max(len(places) - 1, 1)
    for place in places.tolist():
        score = scores.get(context.candidates[place].id)
        if score is None:
            beaten = float((among < values[place]).sum()) + 0.5 * float(
                (among == values[place]).sum() - 1
            )
            share = beaten / others if len(places) > 1 else 1.0
        else:
            share = score / TOP_SCORE
        result[place] = low + share * (high - low)
    return round_significant(result)


def blended(
    context: Context, row: int, scores: Mapping[str, int], share: float
) -> NDArray[np.float64]:
    """``(1 − λ)·projected + λ·stated``, float64 [n_candidates], 9 significant digits.

    Args:
        context: What lies on the table.
        row: The seat's row.
        scores: Candidate id → whole number 0–10.
        share: λ, 0–1.
    """
    said = stated(context, row, scores)
    if share >= 1.0:
        return said
    return round_significant((1.0 - share) * context.utilities[row] + share * said)


def ballot_asks(table: Table, seats: Sequence[SeatRules]) -> tuple[Ask, ...]:
    """One batch that asks for ballots, before the protocol speaks; empty where none is needed.

    Seats whose file says so are asked for whole numbers 0–10 over all admissible candidates, in
    an order that depends on seed, step and seat. Where the world leaves no choice nobody is
    asked.

    Args:
        table: The table, laid.
        seats: The rules of the seats, in room order.
    """
    context = table.context
    places = standing(context)
    if table.mandatory or not places:
        return ()
    names = [context.candidates[place].id for place in places]
    return tuple(
        Ask(rules.seat, "ballot", {"candidates": shuffled(context, names, STREAM, rules.seat)})
        for rules, ballot in zip(seats, context.ballots, strict=True)
        if rules.reported > 0 and not ballot.abstains
    )


def with_reported(
    context: Context, seats: Sequence[SeatRules], scores: Mapping[str, Mapping[str, int]]
) -> Context:
    """The table with the ballots that count: projected, reported, or a blend of both.

    Args:
        context: The table as it was projected.
        seats: The rules of the seats, in room order.
        scores: Seat → what it stated; seats that are missing keep their projected utilities.
    """
    values = context.utilities.copy()
    ballots = list(context.ballots)
    for row, rules in enumerate(seats):
        if rules.seat not in scores:
            continue
        said = scores[rules.seat]
        values[row] = blended(context, row, said, rules.reported)
        raw = [float(said.get(candidate.id, np.nan)) for candidate in context.candidates]
        ballots[row] = replace(ballots[row], utilities=values[row], reported=np.array(raw))
    return replace(context, utilities=values, ballots=tuple(ballots))
