"""How far what a seat says lies from what the world model says that it would get.

Sources: Kendall, "A new measure of rank correlation", Biometrika 30 (1938), in the form for ties
(τ-b, Kendall 1945).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP_SCORE = 10.0
"""A reported score of this much is the seat's best."""


def kendall_tau(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Kendall's τ-b of two orders, −1 to 1; None where one of them is constant.

    Args:
        one: float64 [n].
        other: float64 [n].

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.3333333333333333
    """
    rows, columns = np.triu_indices(len(one), k=1)
    first, second = np.sign(one[rows] - one[columns]), np.sign(other[rows] - other[columns])
    untied = float(np.abs(first).sum()) * float(np.abs(second).sum())
    return float((first * second).sum()) / untied**0.5 if untied > 0 else None


class Honesty(NamedTuple):
    """One ballot that a seat stated, held against the projection.

    Attributes:
        kendall_tau: Agreement of the two orders; None where one is constant.
        gap: Mean |ΔV| over the candidates that it scored, 0–1.
        scored: How many these are.
    """

    kendall_tau: float | None
    gap: float
    scored: int


def honesty(reported: Mapping[str, float], projected: Mapping[str, float]) -> Honesty | None:
    """Compare what a seat stated with what was projected for it.

    Args:
        reported: Candidate id → 0–10.
        projected: Candidate id → V, admissible candidates only.

    Returns:
        None where no candidate is in both.
    """
    names = sorted(set(reported) & set(projected))
    if not names:
        return None
    said = np.array([reported[name] / TOP_SCORE for name in names])
    meant = np.array([projected[name] for name in names])
    return Honesty(kendall_tau(said, meant), float(np.abs(said - meant).mean()), len(names))
