"""The points that bargaining theory singles out on a table, and how far a choice is from them.

Definitions are those of the room's own protocols, so that a room which bargains by a rule is at
distance 0 from the rule's point. Candidates are expected in id order: the last tie goes to the
smaller place.

Sources: Nash, "The bargaining problem", Econometrica 18 (1950), as maximum Nash welfare after
Caragiannis et al., ACM TEAC 7 (2019); Kalai & Smorodinsky, Econometrica 43 (1975), with leximin
after Imai, Econometrica 51 (1983); Harsanyi, Journal of Political Economy 63 (1955).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.metrics.scale import TIE
from policies.utility import round_significant


class Rational(NamedTuple):
    """Which candidates are a loss to no seat and a gain to some.

    Attributes:
        gains: float64 [n_seats, n_candidates], U − d, 9 significant digits; within 1e-9 of 0 is 0.
        running: bool [n_candidates].
    """

    gains: NDArray[np.float64]
    running: NDArray[np.bool_]


def rational(
    utilities: NDArray[np.float64],
    disagreement: NDArray[np.float64],
    among: NDArray[np.bool_],
) -> Rational:
    """The individually rational part of a table.

    Args:
        utilities: float64 [n_seats, n_candidates], raw.
        disagreement: float64 [n_seats], d, raw.
        among: bool [n_candidates], which ones could have been chosen.
    """
    gains = round_significant(utilities - disagreement[:, None])
    gains = np.where(np.abs(gains) <= TIE, 0.0, gains)
    return Rational(gains, among & (gains >= 0).all(axis=0) & (gains > 0).any(axis=0))


def nash_point(
    utilities: NDArray[np.float64],
    disagreement: NDArray[np.float64],
    weights: NDArray[np.float64],
    among: NDArray[np.bool_],
) -> int | None:
    """Most seats that gain, then the highest Σ w·ln(U − d) over them.

    Args:
        utilities: float64 [n_seats, n_candidates], raw.
        disagreement: float64 [n_seats], raw.
        weights: float64 [n_seats], above 0.
        among: bool [n_candidates].

    Returns:
        Its place, or None where no candidate is individually rational (no deal).
    """
    gains, running = rational(utilities, disagreement, among)
    if not running.any():
        return None
    gaining = (gains > 0).sum(axis=0)
    running = running & (gaining == gaining[running].max())
    logs = np.log(np.where(gains > 0, gains, 1.0))
    return _first(weighted_sum(logs, weights), running, weighted_sum(utilities, weights))


def kalai_smorodinsky_point(
    utilities: NDArray[np.float64],
    disagreement: NDArray[np.float64],
    weights: NDArray[np.float64],
    among: NDArray[np.bool_],
) -> int | None:
    """The leximin-best shares of what each seat could gain; a seat that cannot gain has share 1.

    Args:
        utilities: float64 [n_seats, n_candidates], raw.
        disagreement: float64 [n_seats], raw.
        weights: float64 [n_seats], for ties.
        among: bool [n_candidates].

    Returns:
        Its place, or None where no candidate is individually rational (no deal).
    """
    gains, running = rational(utilities, disagreement, among)
    if not running.any():
        return None
    ideal = gains[:, running].max(axis=1)[:, None]
    shares = round_significant(np.where(ideal > 0, gains / np.where(ideal > 0, ideal, 1.0), 1.0))
    for level in np.sort(shares, axis=0):
        running = running & (level >= level[running].max() - TIE)
    sums = weighted_sum(utilities, weights)
    return _first(sums, running, sums)


def welfare_point(
    values: NDArray[np.float64], weights: NDArray[np.float64], among: NDArray[np.bool_]
) -> int:
    """The highest Σ w·V.

    Args:
        values: float64 [n_seats, n_candidates], V.
        weights: float64 [n_seats].
        among: bool [n_candidates], not all False.
    """
    sums = weighted_sum(values, weights)
    return _first(sums, among, sums)


def weighted_sum(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ w·value per candidate, added up in seat order, float64 [n_candidates], 9 digits."""
    total = np.zeros(values.shape[1])
    for weight, row in zip(weights.tolist(), values, strict=True):
        total += weight * row
    return round_significant(total)


def welfare_ratio(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    place: int,
    among: NDArray[np.bool_],
) -> float:
    """Σ w·V of a choice as a share of the highest possible; 1 where nothing is worth anything.

    Args:
        values: float64 [n_seats, n_candidates], V.
        weights: float64 [n_seats].
        place: The choice.
        among: bool [n_candidates], not all False.
    """
    sums = weighted_sum(values, weights)
    most = float(sums[among].max())
    return float(sums[place]) / most if most > 0 else 1.0


def _first(
    scores: NDArray[np.float64], running: NDArray[np.bool_], sums: NDArray[np.float64]
) -> int:
    """The winner under the room's tie rule: within 1e-9, then the higher sum, then the id."""
    best = scores[running].max()
    tied = np.flatnonzero(running & (scores >= best - TIE)).tolist()
    return int(min(tied, key=lambda place: (-sums[place], place)))
