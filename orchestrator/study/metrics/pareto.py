"""Pareto efficiency of a choice: whether something was better for some seat and worse for none.

Source: Pareto, "Manuale di economia politica" (1906); graded by the distance to the efficient
set, as is usual in the analysis of negotiations (Hindriks, Jonker & Tykhonov, 2007).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.metrics.scale import distance


def dominators(
    utilities: NDArray[np.float64], place: int, among: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Candidates that are at least as good for every seat and better for one.

    Compared exactly: recorded utilities have 9 significant digits, and an exact order is
    transitive, so that every dominated candidate is dominated by an efficient one.

    Args:
        utilities: float64 [n_seats, n_candidates], raw or on any scale per seat.
        place: The candidate in question.
        among: bool [n_candidates], which ones may dominate it.

    Returns:
        bool [n_candidates].
    """
    mine = utilities[:, place : place + 1]
    found: NDArray[np.bool_] = (
        among & (utilities >= mine).all(axis=0) & (utilities > mine).any(axis=0)
    )
    return found


def efficient(utilities: NDArray[np.float64], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The Pareto set of some candidates.

    Args:
        utilities: float64 [n_seats, n_candidates].
        among: bool [n_candidates].

    Returns:
        bool [n_candidates]: in `among`, and dominated by none of them.
    """
    better = utilities[:, None, :] >= utilities[:, :, None]  # [seat, this, other]
    strictly = utilities[:, None, :] > utilities[:, :, None]
    beaten = better.all(axis=0) & strictly.any(axis=0) & among[None, :]
    found: NDArray[np.bool_] = among & ~beaten.any(axis=1)
    return found


def graded_efficiency(
    utilities: NDArray[np.float64],
    values: NDArray[np.float64],
    place: int,
    among: NDArray[np.bool_],
) -> float:
    """How near a choice is to the efficient candidates that dominate it; 1 where none does.

    1 − min ‖V_p − V_a‖₂ / √n over the efficient p that dominate a.

    Args:
        utilities: float64 [n_seats, n_candidates], for the order.
        values: float64 [n_seats, n_candidates], V, for the distance.
        place: The choice.
        among: bool [n_candidates], which ones could have been chosen.
    """
    over = dominators(utilities, place, among)
    if not over.any():
        return 1.0
    over &= efficient(utilities, among)
    return 1.0 - min(distance(values, place, other) for other in np.flatnonzero(over).tolist())
