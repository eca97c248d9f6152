"""How evenly a choice serves the seats. All measures take one V per seat, 0 or more.

Sources: Jain, Chiu & Hawe, "A quantitative measure of fairness and discrimination", DEC TR-301
(1984); Gini, "Variabilità e mutabilità" (1912).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def jain(shares: NDArray[np.float64]) -> float:
    """Jain's index (Σx)² / (n·Σx²): 1 where all are equal, 1/n where one seat has all.

    Args:
        shares: float64 [n_seats]; below 0 counts as 0. All 0 is equal, hence 1.

    >>> jain(np.array([1.0, 0.0]))
    0.5
    """
    x = np.maximum(shares, 0.0)
    squares = float((x * x).sum())
    return float(x.sum()) ** 2 / (len(x) * squares) if squares > 0 else 1.0


def gini(shares: NDArray[np.float64]) -> float:
    """Gini's coefficient Σ_i Σ_j |x_i − x_j| / (2n²·mean x): 0 equal, (n − 1)/n one has all.

    Args:
        shares: float64 [n_seats]; below 0 counts as 0. All 0 is equal, hence 0.

    >>> gini(np.array([1.0, 0.0]))
    0.5
    """
    x = np.maximum(shares, 0.0)
    total = float(x.sum())
    apart = float(np.abs(x[:, None] - x[None, :]).sum())
    return apart / (2.0 * len(x) * total) if total > 0 else 0.0


def max_individual_shortfall(
    values: NDArray[np.float64], place: int, among: NDArray[np.bool_]
) -> float:
    """What the seat that is furthest from its own best lacks: max_i [max_b V_i(b) − V_i(a)].

    Some call this envy; it compares a seat with its own best, not with what others have.

    Args:
        values: float64 [n_seats, n_candidates], V.
        place: The choice.
        among: bool [n_candidates], which ones could have been chosen, not all False.
    """
    return float((values[:, among].max(axis=1) - values[:, place]).max())
