"""What a decision would have been without some ballots: candidates and ballots as they were.

Removing a seat removes what it hands in: its utilities, vetoes and weight, its proposals where
the protocol reads them as votes, and its powers. What it put on the table stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.influence.values import MOST_EXACT, orders, swings
from policies.candidates import MANDATORY
from policies.protocols.common import no_deal
from policies.protocols.guard import guarded
from policies.records import (
    Ask,
    Ballot,
    Context,
    Decision,
    Deliberation,
    NegotiationProtocol,
    Reply,
)
from world.actions import joint_id

Voices = Callable[[tuple[Ask, ...], Context], Mapping[str, Reply]]
"""What seats answer when a protocol asks them about a table."""

SAMPLED_ORDERS = 32
"""Orders of arrival behind a sampled Banzhaf index."""


def muted(context: Context, seats: Collection[str]) -> Context:
    """The same table as if some seats had handed nothing in.

    Args:
        context: The table.
        seats: Whose ballots do not count; they keep their rows, with weight 0 and no say.
    """
    if not seats:
        return context
    out = frozenset(seats)
    ballots = tuple(
        replace(ballot, weight=0.0, vetoes={}, abstains=True) if ballot.seat in out else ballot
        for ballot in context.ballots
    )
    weights = context.weights.copy()
    weights[[row for row, seat in enumerate(context.seats) if seat in out]] = 0.0
    return replace(
        context,
        weights=weights,
        ballots=ballots,
        admissible=_admissible(context, ballots),
        proposals={s: made for s, made in context.proposals.items() if s not in out},
        commander="" if context.commander in out else context.commander,
        mediator="" if context.mediator in out else context.mediator,
    )


def _admissible(context: Context, ballots: tuple[Ballot, ...]) -> NDArray[np.bool_]:
    """Feasible and vetoed by nobody who is left; what the world demands cannot be vetoed."""
    if is_mandatory(context):
        return context.admissible
    vetoed: set[str] = set()
    for ballot in ballots:
        vetoed.update(ballot.vetoes)
    return np.array([c.feasible and c.id not in vetoed for c in context.candidates], np.bool_)


def is_mandatory(context: Context) -> bool:
    """Whether the world leaves no choice."""
    return len(context.candidates) == 1 and MANDATORY in context.candidates[0].origin


def decided(protocol: NegotiationProtocol, context: Context, voices: Voices) -> Decision:
    """Play a protocol over a table to its decision.

    Args:
        protocol: The protocol, under the same guard as in a run.
        context: The table.
        voices: Answers what the protocol asks.
    """
    return _played(guarded(protocol, context), context, voices)


def outcome(decision: Decision) -> str:
    """What a decision does now, as an id. Later steps of a plan are never executed."""
    return joint_id(decision.chosen.now)


def without(
    protocol: NegotiationProtocol, context: Context, seats: Collection[str], voices: Voices
) -> Decision:
    """What would have been decided without some seats; without all of them, the no-deal outcome."""
    table = muted(context, seats)
    if set(context.seats) <= set(seats) and not is_mandatory(context):
        return _played(no_deal(protocol.name, table, "nobody is left", {}), table, voices)
    return decided(protocol, table, voices)


def _played(deliberation: Deliberation, context: Context, voices: Voices) -> Decision:
    try:
        asks = next(deliberation)
        while True:
            asks = deliberation.send(voices(asks, context))
    except StopIteration as done:
        decision: Decision = done.value
        return decision


@dataclass(frozen=True, slots=True)
class Power:
    """The power of each seat in one decision.

    Attributes:
        decision: What was decided by all.
        pivotal: Seats without whom something else is done.
        banzhaf: Seat → share of coalitions of the others whose outcome it changes, 0–1.
    """

    decision: Decision
    pivotal: frozenset[str]
    banzhaf: Mapping[str, float]


def power(protocol: NegotiationProtocol, context: Context, voices: Voices) -> Power:
    """The power of each seat over one table.

    Every coalition up to `MOST_EXACT` seats; beyond, the coalitions that `SAMPLED_ORDERS` orders
    of arrival meet, drawn from (seed, step), each weighted so that every size counts as Banzhaf
    counts it.

    Args:
        protocol: The protocol of the room.
        context: The table, with every ballot that counted.
        voices: Answers what the protocol asks.
    """
    seats = context.seats
    n, full = len(seats), (1 << len(seats)) - 1
    kept: dict[int, str] = {}
    everybody = decided(protocol, context, voices)
    kept[full] = outcome(everybody)

    def found(mask: int) -> str:
        if mask not in kept:
            absent = [seat for row, seat in enumerate(seats) if not mask >> row & 1]
            kept[mask] = outcome(without(protocol, context, absent, voices))
        return kept[mask]

    pivotal = frozenset(s for row, s in enumerate(seats) if found(full & ~(1 << row)) != kept[full])
    if n <= MOST_EXACT:
        index = swings([found(mask) for mask in range(1 << n)]).tolist()
    else:
        index = _sampled(found, n, context)
    return Power(everybody, pivotal, dict(zip(seats, index, strict=True)))


def _sampled(found: Callable[[int], str], n: int, context: Context) -> list[float]:
    """Banzhaf's index by size of coalition: the share of swings at each size, times C(n−1, s)."""
    tried, swung = np.zeros((n, n)), np.zeros((n, n))
    for order in orders(n, SAMPLED_ORDERS, (context.seed << 20 ^ context.step) % 2**63):
        mask = 0
        for size, player in enumerate(order):
            now = mask | 1 << player
            tried[player, size] += 1
            swung[player, size] += found(now) != found(mask)
            mask = now
    shares = [comb(n - 1, size) / 2 ** (n - 1) for size in range(n)]
    index = []
    for player in range(n):
        met = [size for size in range(n) if tried[player, size]]
        weight = sum(shares[size] for size in met)
        part = sum(shares[s] * swung[player, s] / tried[player, s] for s in met)
        index.append(float(part / weight))
    return index
