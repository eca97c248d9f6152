"""95 % intervals of what a sweep measured: Student's for means, Wilson's for rates.

Everything here is exact to the digits that are printed, and needs no statistics package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

LEVEL = 0.95
SCORE_RANGE = (0.01, 0.99)
"""Lowest and highest score that a grader gives."""
NORMAL_QUANTILE = 1.959963984540054
"""97.5 % quantile of the standard normal distribution."""
_MANY = 2000
_DIGITS = 9


def estimate(values: Sequence[float], within: tuple[float, float] | None = None) -> dict[str, Any]:
    """Mean, standard error and 95 % Student interval of a sample.

    The standard error is s/√n with the sample standard deviation (n − 1). One value has no
    spread, hence neither standard error nor interval.

    Args:
        values: The sample.
        within: Lowest and highest value possible; the interval is cut there.

    >>> estimate([1.0, 3.0])["interval"]
    [-10.7062047, 14.7062047]

    Source: Student, "The probable error of a mean", Biometrika 6 (1908).
    """
    n = len(values)
    if n < 2:
        mean = _rounded(values[0]) if n else None
        return {"mean": mean, "se": None, "interval": None, "n": n}
    mean = math.fsum(values) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = student_quantile(n - 1) * error
    low, high = within or (-math.inf, math.inf)
    ends = [max(mean - half, min(low, mean)), min(mean + half, max(high, mean))]
    return {"mean": _rounded(mean), "se": _rounded(error), "interval": _ends(ends), "n": n}


def rate_of(outcomes: Sequence[bool]) -> dict[str, Any]:
    """Share of successes, its standard error √(p(1 − p)/n), and the 95 % Wilson interval.

    The interval stays within 0–1 and has a width also where all outcomes are alike.

    >>> rate_of([True, True])["interval"]
    [0.342380228, 1.0]

    Source: Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927); recommended for small n by Brown, Cai & DasGupta, Statistical Science 16 (2001).
    """
    n = len(outcomes)
    if n < 2:
        mean = float(outcomes[0]) if n else None
        return {"mean": mean, "se": None, "interval": None, "n": n}
    rate = sum(outcomes) / n
    square = NORMAL_QUANTILE**2
    centre = (rate + square / (2 * n)) / (1 + square / n)
    spread = math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    half = NORMAL_QUANTILE * spread / (1 + square / n)
    error = math.sqrt(rate * (1 - rate) / n)
    ends = [max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))]
    return {"mean": _rounded(rate), "se": _rounded(error), "interval": _ends(ends), "n": n}


@lru_cache(maxsize=4096)
def student_quantile(freedom: int) -> float:
    """97.5 % quantile of Student's t distribution.

    Args:
        freedom: Degrees of freedom, 1 or more.

    >>> round(student_quantile(1), 3), round(student_quantile(9), 3), round(student_quantile(30), 3)
    (12.706, 2.262, 2.042)

    Source: Abramowitz & Stegun, Handbook of Mathematical Functions: the exact finite series
    26.7.3 and 26.7.4, inverted by bisection; above 2,000 degrees of freedom the expansion 26.7.5,
    whose error there is below 1e-9.
    """
    if freedom > _MANY:
        z = NORMAL_QUANTILE
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / freedom + second / freedom**2
    low, high = NORMAL_QUANTILE, 13.0  # The quantile falls from 12.71 towards the normal one.
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _within(middle, freedom) < LEVEL:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """Probability that a t variate lies between −t and t."""
    angle = math.atan2(t, math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1.0
    # Factors 2/3, 4/5 … for odd degrees of freedom, 1/2, 3/4 … for even ones.
    total = 0.0
    for numerator in range(2 if odd else 1, freedom, 2):
        total += term
        term *= square * numerator / (numerator + 1)
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def _ends(ends: Sequence[float]) -> list[float]:
    return [_rounded(end) for end in ends]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
