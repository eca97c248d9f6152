"""How seats gave way over the rounds of one negotiation: curves, exponents, kinds of move.

Sources: Faratin, Sierra & Jennings, "Negotiation decision functions for autonomous agents",
Robotics and Autonomous Systems 24 (1998), for the curves; Hindriks, Jonker & Tykhonov,
"Analysis of negotiation dynamics", CIA 2007, LNCS 4676, for the moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.metrics.scale import TIE

Move = Literal["silent", "nice", "fortunate", "unfortunate", "concession", "selfish"]
MOVES: tuple[Move, ...] = (
    "silent",
    "nice",
    "fortunate",
    "unfortunate",
    "concession",
    "selfish",
)
LEAST_BETA, MOST_BETA = 0.01, 100.0
"""Ends of the range in which an exponent is looked for."""
_GRID = 161
_ROUNDS = 60
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Bid(NamedTuple):
    """What a seat asked for in a round.

    Attributes:
        round: The round that it was meant for, 1….
        own: V to the seat itself.
        others: Mean V to the other seats.
    """

    round: int
    own: float
    others: float


class Fit(NamedTuple):
    """An exponent fitted to a curve.

    Attributes:
        beta: β; below 1 gives way late (Boulware), above 1 early (conceder).
        rmse: Root mean square error of the fit, in V.
        bids: Bids that it rests on.
    """

    beta: float
    rmse: float
    bids: int


def concessions(bids: Sequence[Bid]) -> tuple[float, ...]:
    """c(t) = V(first bid) − V(bid at t), one per bid; above 0 is given way."""
    return tuple(bids[0].own - bid.own for bid in bids)


def move(own_change: float, others_change: float) -> Move:
    """The kind of move between two bids of one seat, by what changed for it and for the others.

    ============  ===========  =============
    move          for itself   for the others
    ============  ===========  =============
    silent        same         same
    nice          same         better
    fortunate     better       better
    selfish       better       same or worse
    concession    worse        same or better
    unfortunate   same, worse  worse
    ============  ===========  =============

    Args:
        own_change: Change of the seat's own V; within 1e-9 of 0 is the same.
        others_change: Change of the mean V of the others.
    """
    own = 0 if abs(own_change) <= TIE else (1 if own_change > 0 else -1)
    others = 0 if abs(others_change) <= TIE else (1 if others_change > 0 else -1)
    if own > 0:
        return "fortunate" if others > 0 else "selfish"
    if others < 0:
        return "unfortunate"
    if own < 0:
        return "concession"
    return "nice" if others > 0 else "silent"


def moves(bids: Sequence[Bid]) -> dict[Move, int]:
    """How often each kind of move was made; kinds that were not are left out."""
    found: dict[Move, int] = {}
    for before, after in pairwise(bids):
        kind = move(after.own - before.own, after.others - before.others)
        found[kind] = found.get(kind, 0) + 1
    return {kind: found[kind] for kind in MOVES if kind in found}


def fit_beta(bids: Sequence[Bid], reservation: float, deadline_rounds: int) -> Fit | None:
    """Fit β of u(t) = r + (1 − r)·(1 − (t/T)^(1/β)) to a seat's bids by least squares.

    Bids are candidates, so a bid lies at or above what the seat asked for, and a coarse table
    makes β look smaller than it is. At the deadline the curve is the same for every β, so at
    least two bids before it are needed. β is looked for from 0.01 to 100.

    Args:
        bids: A seat's bids in order of rounds.
        reservation: r, V of no deal to the seat; below 0 counts as 0.
        deadline_rounds: T, the round in which time is up.

    Returns:
        None where there are fewer than two bids before the deadline, or nothing to give way.
    """
    floor = max(reservation, 0.0)
    early = [bid for bid in bids if 0 < bid.round < deadline_rounds]
    if len(early) < 2 or floor >= 1.0 - TIE:
        return None
    times = np.array([bid.round / deadline_rounds for bid in early])
    asked = np.array([bid.own for bid in early])
    grid = np.linspace(np.log(LEAST_BETA), np.log(MOST_BETA), _GRID)
    errors = [_error(float(place), times, asked, floor) for place in grid]
    nearest = int(np.argmin(errors))
    low, high = grid[max(nearest - 1, 0)], grid[min(nearest + 1, _GRID - 1)]
    found = _least(float(low), float(high), times, asked, floor)
    error = _error(found, times, asked, floor)
    if errors[nearest] < error:  # at an end of the range
        found, error = float(grid[nearest]), errors[nearest]
    return Fit(float(np.exp(found)), float(np.sqrt(error)), len(early))


def _error(
    log_beta: float, times: NDArray[np.float64], asked: NDArray[np.float64], floor: float
) -> float:
    """Mean squared error of the curve with an exponent."""
    curve = floor + (1.0 - floor) * (1.0 - times ** np.exp(-log_beta))
    apart = curve - asked
    return float((apart * apart).mean())


def _least(
    low: float,
    high: float,
    times: NDArray[np.float64],
    asked: NDArray[np.float64],
    floor: float,
) -> float:
    """Golden-section search for the smallest error between two ends."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = _error(left, times, asked, floor), _error(right, times, asked, floor)
    for _ in range(_ROUNDS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = _error(left, times, asked, floor)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = _error(right, times, asked, floor)
    return (low + high) / 2.0
