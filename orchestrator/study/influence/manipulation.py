"""Whether one liar could have gained: a crude lie, everybody else honest, the same table.

The liar puts an option at the top of its own range, the room's choice at the bottom and all else
just above that, and proposes the option. A search over such lies finds a lower bound: a subtler
lie may gain where no crude one does. By Gibbard (1973) and Satterthwaite (1975) some lie gains
under any rule of this kind that is no dictatorship, so the question is how often.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.influence.pivotality import Voices, decided, is_mandatory
from policies.records import Context, Decision, NegotiationProtocol, Proposal
from policies.utility import round_significant

HAIR = 1e-6
"""How far all else stands above what is buried, as a share of the liar's range."""

MOST_TARGETS_ASKED = 8
"""Lies that are tried per seat where a protocol asks seats, evenly from best to worst."""

_GAIN = 1e-9


def with_lie(context: Context, seat: str, target: int, buried: int) -> Context:
    """The same table with one lying ballot.

    Args:
        context: The honest table.
        seat: The liar.
        target: Place of the option that it pretends to want most.
        buried: Place of the option that it pretends to want least.
    """
    row = context.seats.index(seat)
    values = context.utilities[row]
    known = np.isfinite(values) & context.admissible
    low, high = float(values[known].min()), float(values[known].max())
    told = np.where(np.isfinite(values), low + HAIR * (high - low), values)
    told[buried], told[target] = low, high
    utilities = context.utilities.copy()
    utilities[row] = round_significant(told)
    ballots = tuple(
        replace(ballot, utilities=utilities[row].copy()) if ballot.seat == seat else ballot
        for ballot in context.ballots
    )
    made = context.proposals.get(seat, ())
    proposals = {**context.proposals, seat: (Proposal(context.candidates[target].now), *made)}
    return replace(context, utilities=utilities, ballots=ballots, proposals=proposals)


def liar_gains(
    protocol: NegotiationProtocol,
    context: Context,
    honest: Decision,
    seat: str,
    voices: Voices,
) -> float:
    """The first gain that a crude lie brings a seat, in its own utility; 0 where none is found.

    A gain is true utility of what is then decided, less what the seat then pays, above the same
    of the honest decision. Lies aim at what the seat likes better than the honest decision.

    Args:
        protocol: The protocol of the room.
        context: The honest table.
        honest: What is decided on it.
        seat: The liar.
        voices: Answers what the protocol asks.
    """
    row = context.seats.index(seat)
    ballot = context.ballots[row]
    if ballot.abstains or context.weights[row] <= 0 or is_mandatory(context):
        return 0.0
    places = {candidate.id: place for place, candidate in enumerate(context.candidates)}
    winner = places.get(honest.chosen.id)
    values = context.utilities[row]
    if winner is None or not np.isfinite(values[winner]):
        return 0.0
    before = float(values[winner]) - honest.payments.get(seat, 0.0)
    for target in _targets(values, context.admissible, winner, protocol.max_rounds > 0):
        told = with_lie(context, seat, target, winner)
        then = decided(protocol, told, voices)
        place = places.get(then.chosen.id)
        if place is None or not np.isfinite(values[place]):
            continue
        gain = float(values[place]) - then.payments.get(seat, 0.0) - before
        if gain > _GAIN * max(1.0, abs(before)):
            return gain
    return 0.0


def _targets(
    values: NDArray[np.float64], admissible: NDArray[np.bool_], winner: int, asks: bool
) -> list[int]:
    """Places that a seat likes better than the winner, best first."""
    better = np.flatnonzero(admissible & (values > values[winner])).tolist()
    better.sort(key=lambda place: (-values[place], place))
    if asks and len(better) > MOST_TARGETS_ASKED:
        picks = np.linspace(0, len(better) - 1, MOST_TARGETS_ASKED).round().astype(int)
        better = [better[pick] for pick in picks.tolist()]
    return better
