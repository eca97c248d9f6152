"""Compare the arms of a tournament, seed by seed.

An arm is a protocol, a persona set, a scenario, or a combination of them. Two arms are compared
where exactly one factor differs. The unit is the seed: where an arm was played in several other
cells (three scenarios, say), the differences of one seed are averaged first, because the cells of
one seed share its storm and are no independent observations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from orchestrator.study.intervals import rate_of
from orchestrator.study.ledger import Row
from orchestrator.study.passk import DEFAULT_K, mean_pass_k
from orchestrator.study.power import minimum_detectable_effect, seeds_needed
from orchestrator.study.statistics import (
    Interval,
    Pairing,
    SignFlip,
    bootstrap_interval,
    holm,
    pairing,
    sign_flip,
    standard_deviation,
)
from orchestrator.study.tables import measure_of
from world.errors import ConfigError
from world.model import significant

FACTORS = ("scenario", "protocol", "persona")
Arm = tuple[str, ...]
Cell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Summary:
    """What one arm came to.

    Attributes:
        arm: Factor → value, for the factors asked for.
        seeds: Seeds with a value.
        episodes: Episodes played.
        failed: Cells that could not be played.
        mean: Mean of the measure: over seeds, of the mean over the arm's cells.
        interval: 95 % bootstrap interval of it, over seeds.
        success_rate: Share of episodes that the grader calls a success, with Wilson's interval
            where every seed is one episode (else the episodes are not independent: none).
        pass_k: k → pass^k, mean over the arm's cells; k that no cell has trials for are None.
    """

    arm: Mapping[str, str]
    seeds: int
    episodes: int
    failed: int
    mean: float | None
    interval: Interval | None
    success_rate: Mapping[str, Any]
    pass_k: Mapping[int, float | None]

    def as_json(self) -> dict[str, Any]:
        """One entry of ``stats --json``, ``summary``."""
        return {
            **self.arm,
            "n": self.seeds,
            "episodes": self.episodes,
            "errors": self.failed,
            "mean": self.mean,
            "interval": self.interval.as_json() if self.interval else None,
            "interval_method": self.interval.method if self.interval else None,
            "success_rate": dict(self.success_rate),
            "pass_k": {str(k): value for k, value in self.pass_k.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms that differ in one factor: b minus a, over the seeds that both have.

    Attributes:
        factor: What differs.
        a: Its value on one side.
        b: Its value on the other.
        held: The other factors asked for, alike on both sides.
        pairs: Seeds compared.
        dropped: Seeds that only one side has whole.
        mean_a: Mean of a over the pairs.
        mean_b: Mean of b.
        difference: Mean of b − a.
        interval: 95 % bootstrap interval of it.
        test: Sign-flip test of no difference.
        p_holm: Its p-value, corrected over all comparisons of the table.
        detectable: Smallest true difference that so many seeds find with 80 % power.
        seeds_needed: Seeds that would find the measured difference with 80 % power.
        pairing: What pairing bought.
    """

    factor: str
    a: str
    b: str
    held: Mapping[str, str]
    pairs: int
    dropped: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    interval: Interval | None
    test: SignFlip | None
    p_holm: float | None
    detectable: float | None
    seeds_needed: int | None
    pairing: Pairing | None

    def as_json(self) -> dict[str, Any]:
        """One entry of ``stats --json``, ``comparisons``."""
        found, test = self.pairing, self.test
        return {
            "factor": self.factor,
            "a": self.a,
            "b": self.b,
            "held": dict(self.held),
            "n": self.pairs,
            "dropped": self.dropped,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "difference": self.difference,
            "interval": self.interval.as_json() if self.interval else None,
            "interval_method": self.interval.method if self.interval else None,
            "p": test.p if test else None,
            "p_method": test.method if test else None,
            "p_flips": test.flips if test else None,
            "p_holm": self.p_holm,
            "minimum_detectable_effect": self.detectable,
            "seeds_needed": self.seeds_needed,
            "correlation": found.correlation if found else None,
            "interval_ratio": found.ratio if found else None,
            "paired_half_width": found.paired_half_width if found else None,
            "unpaired_half_width": found.unpaired_half_width if found else None,
        }


def factors_of(text: str) -> tuple[str, ...]:
    """Read ``--by``: factors joined by commas, each once, in the order of `FACTORS`.

    Raises:
        ConfigError: One is no factor.
    """
    named = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(named - set(FACTORS))
    if unknown or not named:
        raise ConfigError(
            f"--by is {text[:80]!r}",
            f"{unknown[0][:40]!r} is no factor" if unknown else "it names no factor",
            f"Factors are {', '.join(FACTORS)}; for example --by protocol",
        )
    return tuple(factor for factor in FACTORS if factor in named)


def summaries(
    rows: Sequence[Row],
    by: Sequence[str],
    measure: str = "score",
    ks: Sequence[int] = DEFAULT_K,
) -> list[Summary]:
    """One line per arm, in the order in which arms first appear."""
    return [_summary(arm, members, by, measure, ks) for arm, members in _arms(rows, by).items()]


def comparisons(rows: Sequence[Row], by: Sequence[str], measure: str = "score") -> list[Comparison]:
    """Every pair of arms that differ in one factor, corrected for their number.

    Where other factors are asked for too, scenarios are not compared with one another: which of
    two worlds scores higher is no finding about a room.
    """
    arms = _arms(rows, by)
    found = []
    for (one, members), (other, others) in combinations(arms.items(), 2):
        differing = [place for place in range(len(by)) if one[place] != other[place]]
        if len(differing) != 1 or (by[differing[0]] == "scenario" and len(by) > 1):
            continue
        found.append(_compared(one, members, other, others, by, differing[0], measure))
    found.sort(key=lambda each: (FACTORS.index(each.factor), *each.held.values()))
    tested = [each for each in found if each.test is not None]
    corrected = iter(holm([each.test.p for each in tested if each.test is not None]))
    return [replace(each, p_holm=next(corrected)) if each.test else each for each in found]


def _arms(rows: Sequence[Row], by: Sequence[str]) -> dict[Arm, list[Row]]:
    arms: dict[Arm, list[Row]] = {}
    for row in rows:
        arms.setdefault(tuple(_value(row, factor) for factor in by), []).append(row)
    return arms


def _value(row: Row, factor: str) -> str:
    return {"scenario": row.scenario, "protocol": row.protocol, "persona": row.set}[factor]


def _other(row: Row, by: Sequence[str]) -> Cell:
    """The factors of a row that are not asked for: what both sides must have alike."""
    return tuple("" if name in by else _value(row, name) for name in FACTORS)  # type: ignore[return-value]


def _by_seed(rows: Sequence[Row], by: Sequence[str], measure: str) -> dict[int, dict[Cell, float]]:
    """Seed → other factors → value of the measure; what was not played is not there."""
    found: dict[int, dict[Cell, float]] = {}
    for row in rows:
        value = measure_of(row, measure)
        if value is not None:
            found.setdefault(row.seed, {})[_other(row, by)] = value
    return found


def _summary(
    arm: Arm, rows: Sequence[Row], by: Sequence[str], measure: str, ks: Sequence[int]
) -> Summary:
    seeds = _by_seed(rows, by, measure)
    means = [_mean(list(values.values())) for _, values in sorted(seeds.items())]
    played = [row for row in rows if row.error is None]
    tasks: dict[tuple[str, str, str], list[bool]] = {}
    for row in played:
        key = (row.scenario, row.protocol, row.set)
        tasks.setdefault(key, []).append(bool(row.success))
    counts = [(sum(outcomes), len(outcomes)) for outcomes in tasks.values()]
    rate = rate_of([bool(row.success) for row in played])
    if len(tasks) > 1:
        rate |= {"se": None, "interval": None}
    return Summary(
        arm=dict(zip(by, arm, strict=True)),
        seeds=len(seeds),
        episodes=len(played),
        failed=len(rows) - len(played),
        mean=significant(_mean(means)) if means else None,
        interval=bootstrap_interval(means, f"{measure}|{'|'.join(arm)}"),
        success_rate=rate,
        pass_k={k: mean_pass_k(counts, k) for k in ks},
    )


def _compared(
    arm_a: Arm,
    rows_a: Sequence[Row],
    arm_b: Arm,
    rows_b: Sequence[Row],
    by: Sequence[str],
    place: int,
    measure: str,
) -> Comparison:
    side_a, side_b = _by_seed(rows_a, by, measure), _by_seed(rows_b, by, measure)
    common = _cells(side_a) & _cells(side_b)
    # A seed with a hole on one side would compare other cells than its neighbours do.
    whole = [
        seed
        for seed in sorted(side_a.keys() & side_b.keys())
        if common and common <= side_a[seed].keys() and common <= side_b[seed].keys()
    ]
    a = [_mean([side_a[seed][cell] for cell in sorted(common)]) for seed in whole]
    b = [_mean([side_b[seed][cell] for cell in sorted(common)]) for seed in whole]
    # Values are recorded to 9 digits: what differs less than that does not differ.
    differences = [_difference(x, y) for x, y in zip(a, b, strict=True)]
    spread = standard_deviation(differences)
    mean = significant(_mean(differences)) if differences else None
    name = f"{measure}|{'|'.join(arm_a)}|{'|'.join(arm_b)}"
    return Comparison(
        factor=by[place],
        a=arm_a[place],
        b=arm_b[place],
        held={factor: arm_a[i] for i, factor in enumerate(by) if i != place},
        pairs=len(whole),
        dropped=len(side_a.keys() | side_b.keys()) - len(whole),
        mean_a=significant(_mean(a)) if a else None,
        mean_b=significant(_mean(b)) if b else None,
        difference=mean,
        interval=bootstrap_interval(differences, name),
        test=sign_flip(differences, name),
        p_holm=None,
        detectable=minimum_detectable_effect(spread, len(whole)),
        seeds_needed=seeds_needed(mean or 0.0, spread),
        pairing=pairing(a, b),
    )


def _difference(a: float, b: float) -> float:
    size = max(abs(a), abs(b))
    return 0.0 if abs(b - a) <= 1e-9 * size else b - a


def _cells(side: Mapping[int, Mapping[Cell, float]]) -> set[Cell]:
    return {cell for values in side.values() for cell in values}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
