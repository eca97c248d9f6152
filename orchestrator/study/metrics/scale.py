"""The scale on which seats are compared: each one's own range, 0 its worst option, 1 its best.

A ballot holds raw utilities, and the sizes of two seats' numbers say nothing to each other. Every
measure that mixes seats therefore uses V = (U − min) / (max − min), with both ends taken over the
candidates that could have been chosen (feasible and not vetoed).

Source: range normalisation of von Neumann–Morgenstern utilities, as in relative utilitarianism:
Dhillon & Mertens, "Relative utilitarianism", Econometrica 67 (1999).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.utility import round_significant

TIE = 1e-9
"""Values closer than this are equal, as in the room's own tie rule."""


def normalised(
    utilities: NDArray[np.float64], admissible: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """V of every candidate, to 9 significant digits.

    A seat to which all admissible candidates are worth the same has 1 throughout. A candidate
    that is not admissible may lie outside 0–1.

    Args:
        utilities: float64 [n_seats, n_candidates], finite.
        admissible: bool [n_candidates]; where none is, all of them make the range.

    Returns:
        float64 [n_seats, n_candidates].

    >>> normalised(np.array([[2.0, 4.0, 6.0], [5.0, 5.0, 5.0]]), np.ones(3, np.bool_)).tolist()
    [[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]
    """
    low, extent = _range(utilities, admissible)
    return _on_range(utilities, low, extent)


def normalised_values(
    values: NDArray[np.float64],
    utilities: NDArray[np.float64],
    admissible: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """V of one number per seat (a disagreement value) on the seats' ranges.

    Args:
        values: float64 [n_seats].
        utilities: float64 [n_seats, n_candidates], what the ranges are taken from.
        admissible: bool [n_candidates].

    Returns:
        float64 [n_seats]; below 0 for what is worse than the worst candidate.
    """
    low, extent = _range(utilities, admissible)
    return _on_range(values[:, None], low, extent)[:, 0]


def _range(
    utilities: NDArray[np.float64], admissible: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    among = utilities[:, admissible] if admissible.any() else utilities
    low = among.min(axis=1)[:, None]
    return low, among.max(axis=1)[:, None] - low


def _on_range(
    values: NDArray[np.float64], low: NDArray[np.float64], extent: NDArray[np.float64]
) -> NDArray[np.float64]:
    flat = extent <= 0
    spread = (values - low) / np.where(flat, 1.0, extent)
    return round_significant(np.where(flat, 1.0, spread))


def distance(values: NDArray[np.float64], here: int, there: int) -> float:
    """Root mean square difference of two candidates over the seats, ‖V_a − V_b‖₂ / √n.

    Args:
        values: float64 [n_seats, n_candidates], V.
        here: Place of one candidate.
        there: Place of the other.
    """
    apart = values[:, here] - values[:, there]
    return float(np.sqrt((apart * apart).mean()))
