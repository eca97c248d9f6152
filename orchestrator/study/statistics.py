"""Paired statistics: intervals, tests and their correction for many pairs.

Methods are SciPy's where it has them; Holm's correction is ours, for SciPy has none. Every draw
comes from a counter-based stream that is named after what is compared, so that a figure neither
changes from one call to the next nor with what else is in the table.

SciPy is in the extra ``study`` and imported when a figure is first asked for.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.intervals import LEVEL, student_quantile
from world.errors import MissingExtraError
from world.model import significant
from world.noise import generator

EXTRA = "study"
RESAMPLES = 9_999
"""Bootstrap samples, and random sign flips; 2¹³ flips, the most that are tried one by one, are
fewer than that."""
EXACT_TO = 13
"""Largest number of pairs whose sign flips are all tried."""
_BATCH_CELLS = 4_000_000
_STREAM = "orchestrator.study.statistics"


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval of a mean.

    Attributes:
        low: Lower end.
        high: Upper end.
        method: ``BCa``; ``percentile`` where BCa is degenerate; ``constant`` where all values
            are one.
    """

    low: float
    high: float
    method: str

    def as_json(self) -> list[float]:
        """``[low, high]``."""
        return [self.low, self.high]


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A two-sided sign-flip test of a mean difference of 0.

    Attributes:
        p: p-value.
        method: ``exact`` (all 2ⁿ flips) or ``sampled`` ((b + 1)/(m + 1)).
        flips: Flips tried.
    """

    p: float
    method: str
    flips: int


@dataclass(frozen=True, slots=True)
class Pairing:
    """What pairing by seed bought.

    Attributes:
        correlation: Pearson's, between the two sides over the seeds; None where a side is
            constant.
        paired_half_width: Half width of the paired 95 % Student interval of the difference.
        unpaired_half_width: The same of Welch's, as if the seeds had been others.
        ratio: Unpaired over paired; None where all differences are alike.
    """

    correlation: float | None
    paired_half_width: float
    unpaired_half_width: float
    ratio: float | None


def scipy_stats() -> Any:
    """SciPy's statistics.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    try:
        return importlib.import_module("scipy.stats")
    except ImportError as error:
        raise MissingExtraError(
            "statistics need scipy, which is not installed",
            f"it is in the extra '{EXTRA}'",
            f"Install it: pip install '.[{EXTRA}]'",
        ) from error


def bootstrap_interval(values: Sequence[float], name: str) -> Interval | None:
    """95 % bootstrap interval of the mean: bias-corrected and accelerated.

    Args:
        values: One value per seed.
        name: What is measured; names the stream of the resamples.

    Returns:
        None for fewer than two values, which have no spread.

    Source: Efron, "Better bootstrap confidence intervals", JASA 82 (1987); `scipy.stats.bootstrap`.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2:
        return None
    if np.all(sample == sample[0]):
        return Interval(significant(sample[0]), significant(sample[0]), "constant")
    found = _bootstrap(sample, "BCa", name)
    if not all(map(math.isfinite, found)):
        return Interval(*_bootstrap(sample, "percentile", name), "percentile")
    return Interval(*found, "BCa")


def _bootstrap(sample: NDArray[np.float64], method: str, name: str) -> tuple[float, float]:
    stats = scipy_stats()
    with warnings.catch_warnings():
        # Degenerate samples come back as NaN and take the percentile interval.
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (sample,),
            np.mean,
            axis=-1,
            n_resamples=RESAMPLES,
            batch=max(1, _BATCH_CELLS // sample.size),
            confidence_level=LEVEL,
            method=method,
            rng=generator(0, f"{_STREAM}.bootstrap.{name}"),
        ).confidence_interval
    return significant(float(found.low)), significant(float(found.high))


def sign_flip(differences: Sequence[float], name: str) -> SignFlip | None:
    """Two-sided sign-flip test: how rare is a mean so far from 0 if no sign meant anything?

    All 2ⁿ flips up to n = 13; beyond, 9,999 random ones, and (b + 1)/(m + 1) where b of m are at
    least as far from 0.

    Args:
        differences: One per seed.
        name: What is compared; names the stream of the flips.

    Returns:
        None where there is no difference to flip.

    Source: Fisher, The Design of Experiments (1935), section 21; Phipson & Smyth, "Permutation
    p-values should never be zero", Stat. Appl. Genet. Mol. Biol. 9 (2010);
    `scipy.stats.permutation_test`.
    """
    sample = np.asarray(differences, dtype=np.float64)
    if sample.size == 0:
        return None
    exact = sample.size <= EXACT_TO
    flips = 2**sample.size if exact else RESAMPLES
    if not sample.any():
        return SignFlip(1.0, "exact" if exact else "sampled", flips)
    if sample.size == 1:  # SciPy wants two; both flips of one difference are as far from 0.
        return SignFlip(1.0, "exact", flips)
    found = scipy_stats().permutation_test(
        (sample,),
        _distance_from_0,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, _BATCH_CELLS // sample.size),
        alternative="greater",
        rng=generator(0, f"{_STREAM}.flips.{name}"),
    )
    return SignFlip(significant(float(found.pvalue)), "exact" if exact else "sampled", flips)


def _distance_from_0(sample: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """|mean|; with `alternative="greater"` that is the two-sided test, +1 counted once."""
    return np.asarray(np.abs(np.mean(sample, axis=axis)))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being many, in the order given: Holm's step-down.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6
    (1979).
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = significant(highest)
    return corrected


def pairing(a: Sequence[float], b: Sequence[float]) -> Pairing | None:
    """How much narrower the interval of a difference is because both sides met the same storms.

    With equal spread on both sides and many seeds the ratio tends to 1/√(1 − ρ).

    Args:
        a: One value per seed.
        b: The same seeds' values on the other side.

    Returns:
        None for fewer than two seeds.

    Source: Welch, "The generalization of 'Student's' problem", Biometrika 34 (1947), with
    Satterthwaite's degrees of freedom, rounded down; common random numbers: Law, Simulation
    Modeling and Analysis (2015), section 11.2.
    """
    n = len(a)
    if n < 2:
        return None
    spread_a, spread_b, together = _moments(a, b)
    # Σ(a − b)² about its mean, from the very differences: exact zero where they are alike.
    spread_d = _moments([x - y for x, y in zip(a, b, strict=True)], b)[0]
    paired = student_quantile(n - 1) * math.sqrt(spread_d / n)
    unpaired = 0.0
    if spread_a + spread_b > 0:
        # Scaled before they are squared: spreads of tiny values would underflow.
        share = spread_a / (spread_a + spread_b)
        freedom = (n - 1) / (share**2 + (1 - share) ** 2)
        unpaired = student_quantile(max(1, int(freedom))) * math.sqrt((spread_a + spread_b) / n)
    known = spread_a > 0 and spread_b > 0
    return Pairing(
        correlation=_correlation(together, spread_a, spread_b) if known else None,
        paired_half_width=significant(paired),
        unpaired_half_width=significant(unpaired),
        ratio=significant(unpaired / paired) if paired > 0 else None,
    )


def _correlation(together: float, spread_a: float, spread_b: float) -> float:
    value = together / (math.sqrt(spread_a) * math.sqrt(spread_b))
    return significant(max(-1.0, min(1.0, value)))


def _moments(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Variance of a, variance of b (n − 1), covariance; a constant side has variance 0 exactly."""
    n = len(a)
    off_a, off_b = _deviations(a), _deviations(b)
    return (
        math.fsum(x * x for x in off_a) / (n - 1),
        math.fsum(y * y for y in off_b) / (n - 1),
        math.fsum(x * y for x, y in zip(off_a, off_b, strict=True)) / (n - 1),
    )


def _deviations(values: Sequence[float]) -> list[float]:
    if max(values) == min(values):
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def standard_deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n − 1); None for fewer than two values."""
    return math.sqrt(_moments(values, values)[0]) if len(values) > 1 else None
