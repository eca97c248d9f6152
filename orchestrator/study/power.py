"""How small a difference a number of seeds can show, and how many seeds a difference needs.

Of the paired t test, two-sided at 5 %, found four times in five. The sign-flip test that is
reported beside it has about the same power.
"""

from __future__ import annotations

import math

from orchestrator.study.intervals import LEVEL, student_quantile
from orchestrator.study.statistics import scipy_stats
from world.model import significant

POWER = 0.8
MOST_SEEDS = 1_000_000
_TOLERANCE = 1e-12


def power_of(effect: float, deviation: float, pairs: int) -> float:
    """Chance that a true mean difference is found.

    Args:
        effect: True mean difference, in the measure's unit.
        deviation: Standard deviation of the differences, same unit, above 0.
        pairs: Seeds, 2 or more.

    Source: the noncentral t distribution, Cohen, Statistical Power Analysis for the Behavioral
    Sciences (1988), section 2.3; `scipy.stats.nct`.
    """
    freedom = pairs - 1
    shift = abs(effect) / deviation * math.sqrt(pairs)
    edge = student_quantile(freedom)
    if not shift:
        return 1 - LEVEL
    nct = scipy_stats().nct
    return float(nct.sf(edge, freedom, shift) + nct.cdf(-edge, freedom, shift))


def minimum_detectable_effect(deviation: float | None, pairs: int) -> float | None:
    """Smallest true mean difference that this many seeds find with 80 % power.

    Args:
        deviation: Standard deviation of the differences; None where it is not known.
        pairs: Seeds.

    Returns:
        In the unit of the differences; 0 where all are alike; None for fewer than two.
    """
    if deviation is None or pairs < 2:
        return None
    if deviation == 0:
        return 0.0
    low, high = 0.0, 1.0
    while power_of(high, 1.0, pairs) < POWER:
        low, high = high, high * 2
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if power_of(middle, 1.0, pairs) < POWER:
            low = middle
        else:
            high = middle
    return significant(high * deviation)


def seeds_needed(effect: float, deviation: float | None) -> int | None:
    """Fewest seeds that find a true mean difference with 80 % power.

    Args:
        effect: The difference, in the unit of `deviation`.
        deviation: Standard deviation of the differences; None where it is not known.

    Returns:
        None where the difference is 0 or a million seeds do not do.
    """
    if deviation is None or effect == 0:
        return None
    if deviation == 0:
        return 2
    low, high = 1, 2
    while power_of(effect, deviation, high) < POWER:
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(effect, deviation, middle) < POWER:
            low = middle
        else:
            high = middle
    return high
