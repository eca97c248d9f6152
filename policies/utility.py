"""How a seat values consequences: a few published shapes over gaps to targets.

A utility is a finite real number, higher is better, and it is never rescaled per ballot. Each
objective looks at the metrics of the world that serve it; the gap of a metric ``x`` is
``d = max(0, x − (target − margin))``, measured in units of ``scale``. All seats of a room are
evaluated in one pass. Nothing here knows a persona's words: only numbers reach this module.

Source: satisficing gaps and the shapes' names follow Simon, "A behavioral model of rational
choice", Quarterly Journal of Economics 69 (1955); the concave shapes are ordinary diminishing
returns. Which shapes work was measured, see `lint`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from world.errors import ConfigError
from world.model import MetricSpec, Objective

Shape = Literal["log", "satisficing", "sqrt", "linear", "threshold", "sigmoid"]
SHAPES: tuple[str, ...] = get_args(Shape)
OBJECTIVES: tuple[str, ...] = get_args(Objective)

MARGIN_FRACTION = 0.05
"""Margin below a target, as a fraction of it, where neither seat nor scenario names one."""
SCALE_FRACTION = 0.1
"""One unit of gap, as a fraction of the target, where neither seat nor scenario names one."""

Tolerances = Mapping[str, tuple[float, float]]
_HELD = "held"  # the shape of `ObjectiveSpec.held`: its weight below the target, else 0
_FEW = 48  # below this many numbers the text route is quicker than a dozen array operations
_LARGEST = 1e200  # keeps a gap finite when divided by any scale and multiplied by any weight
_MOST_WEIGHT = 1e9
_LEAST_SCALE = 1e-9


def _require(condition: bool, what: str, why: str, fix: str) -> None:
    if not condition:
        raise ConfigError(what, why, fix)


@dataclass(frozen=True, slots=True)
class ObjectiveSpec:
    """What one seat wants of one objective.

    Attributes:
        objective: ``latency``, ``cost``, ``carbon``, ``waste``, ``errors`` or ``churn``.
        weight: How much it counts, 0 or more.
        target: Own upper bound in the metric's unit; None takes the scenario's.
        margin: How far below the target this seat wants the metric, in its unit; None takes the
            scenario's tolerance, else 5 % of the target.
        scale: How large a gap counts as one unit, at least 1e-9; None takes the scenario's
            tolerance, which may name one for a metric without a target too, else 10 % of the
            target, else 1.
        shape: Shape for this objective only; "" takes the utility's (``churn``: ``linear``).
        held: What a step is worth in which the metric lies below its target, whatever the gap
            says: 0 is nothing. Only where there is a target.

    Raises:
        ConfigError: An unknown name, or a number that is not finite or out of range.
    """

    objective: str
    weight: float
    target: float | None = None
    margin: float | None = None
    scale: float | None = None
    shape: str = ""
    held: float = 0.0

    def __post_init__(self) -> None:
        _require(
            self.objective in OBJECTIVES,
            f"there is no objective {self.objective!r}",
            "an objective names what a metric serves",
            f"Objectives: {', '.join(OBJECTIVES)}",
        )
        _require(
            self.shape == "" or self.shape in SHAPES,
            f"objective {self.objective}: there is no utility shape {self.shape!r}",
            "a shape turns a gap into a value",
            f"Shapes: {', '.join(SHAPES)}",
        )
        _require(
            math.isfinite(self.weight) and 0 <= self.weight <= _MOST_WEIGHT,
            f"objective {self.objective}: weight is {self.weight}",
            "a weight is a number from 0 to 1e9",
            "Write 0 to ignore an objective",
        )
        _require(
            math.isfinite(self.held) and 0 <= self.held <= _MOST_WEIGHT,
            f"objective {self.objective}: held is {self.held}",
            "it is a number from 0 to 1e9",
            "Write 0 to count the gap alone",
        )
        for name, value, low in (
            ("target", self.target, -math.inf),
            ("margin", self.margin, 0.0),
            ("scale", self.scale, _LEAST_SCALE),
        ):
            _require(
                value is None or (math.isfinite(value) and value >= low),
                f"objective {self.objective}: {name} is {value}",
                f"targets are finite, margins at least 0, scales at least {_LEAST_SCALE:g}",
                "Correct it, or leave it out to take the scenario's",
            )


@dataclass(frozen=True, slots=True)
class UtilitySpec:
    """A seat's whole utility.

    Attributes:
        kind: Shape of every objective that names none: ``log``, ``satisficing``, ``sqrt``,
            ``linear``, ``threshold`` or ``sigmoid``.
        team: Weight of the shared goal, 0 or more: the fraction of projected steps in which
            every target of the scenario holds.
        objectives: What the seat wants. Objectives that the world does not measure add 0.
        discount: γ, what a step counts against the step before it: above 0, at most 1. Steps are
            averaged with these weights.
        risk_aversion: λ from 0 to 1: the value of a plan is 1 − λ times its mean over the belief
            samples plus λ times the mean of its worst ones.
        risk_tail_fraction: Share of the samples that counts as the worst, above 0 and at most 1;
            at least one sample. Source: conditional value at risk, Rockafellar & Uryasev,
            Journal of Risk 2 (2000).

    Raises:
        ConfigError: An unknown shape, or a number out of its range.
    """

    kind: str
    team: float
    objectives: tuple[ObjectiveSpec, ...]
    discount: float = 1.0
    risk_aversion: float = 0.0
    risk_tail_fraction: float = 0.25

    def __post_init__(self) -> None:
        _require(
            self.kind in SHAPES,
            f"there is no utility shape {self.kind!r}",
            "a shape turns a gap into a value",
            f"Shapes: {', '.join(SHAPES)}",
        )
        _require(
            math.isfinite(self.team) and 0 <= self.team <= _MOST_WEIGHT,
            f"the team weight is {self.team}",
            "it is a number from 0 to 1e9",
            "Write 0 for a selfish seat",
        )
        for name, value, low_is_out in (
            ("discount", self.discount, True),
            ("risk_aversion", self.risk_aversion, False),
            ("risk_tail_fraction", self.risk_tail_fraction, True),
        ):
            _require(
                0.0 <= value <= 1.0 and not (low_is_out and value == 0.0),
                f"{name} is {value}",
                f"it lies {'above' if low_is_out else 'at or above'} 0 and is at most 1",
                "Leave it out to take the default",
            )

    @property
    def plain(self) -> bool:
        """Whether steps and samples all count the same, so that one mean says everything."""
        return self.discount == 1.0 and self.risk_aversion == 0.0


class _Terms(NamedTuple):
    """Every (seat, metric) term of one shape, as arrays of length T."""

    shape: str  # one of SHAPES, or _HELD
    seats: tuple[int, ...]
    columns: NDArray[np.intp]
    references: NDArray[np.float64]  # [T, 1]
    scales: NDArray[np.float64]  # [T, 1]
    weights: NDArray[np.float64]  # [T, 1], already divided by how many metrics share them


class _Plan(NamedTuple):
    """What does not change between two steps: resolved targets and tolerances."""

    terms: tuple[_Terms, ...]
    teams: tuple[float, ...]
    goal_columns: NDArray[np.intp]
    goal_targets: NDArray[np.float64]
    abstains: tuple[bool, ...]
    careful: tuple[tuple[int, UtilitySpec], ...]  # seats to whom steps or samples differ


class RoomUtilities(NamedTuple):
    """The utilities of a whole room.

    Attributes:
        values: float64 [n_seats, P], rounded to 9 significant digits; 0 for a seat that
            abstains.
        abstains: Per seat, whether the world measures none of its objectives.
    """

    values: NDArray[np.float64]
    abstains: tuple[bool, ...]


def seat_utilities(
    spec: UtilitySpec,
    projected: NDArray[np.float64],
    metrics: tuple[MetricSpec, ...],
    targets: Mapping[str, float],
    tolerances: Tolerances,
) -> NDArray[np.float64] | None:
    """One seat's value of every candidate, averaged over samples and steps.

    Args:
        spec: The seat's utility.
        projected: float64 [P, K, H, M]: metrics of P candidates, K samples, H steps.
        metrics: What the last axis holds.
        targets: Metric name → strict upper bound.
        tolerances: Metric name → (margin, scale) in the metric's unit.

    Returns:
        float64 [P], rounded to 9 significant digits; None when no objective of the seat has a
        metric here: it abstains. A metric that is unknown (NaN) adds 0.
    """
    room = room_utilities((spec,), projected, metrics, targets, tolerances)
    return None if room.abstains[0] else room.values[0]


def room_utilities(
    specs: Sequence[UtilitySpec],
    projected: NDArray[np.float64],
    metrics: tuple[MetricSpec, ...],
    targets: Mapping[str, float],
    tolerances: Tolerances,
    hidden: Sequence[frozenset[str]] = (),
) -> RoomUtilities:
    """The value of every candidate to every seat; equals `seat_utilities` seat by seat.

    Args:
        specs: One utility per seat.
        projected: float64 [P, K, H, M].
        metrics: What the last axis holds.
        targets: Metric name → strict upper bound.
        tolerances: Metric name → (margin, scale) in the metric's unit.
        hidden: Per seat, names of metrics that it may not see; they add 0 to its own
            objectives. Empty hides nothing.
    """
    plan = _plan(
        tuple(specs),
        metrics,
        tuple(targets.items()),
        tuple((name, float(margin), float(scale)) for name, (margin, scale) in tolerances.items()),
        tuple(hidden),
    )
    candidates, samples, steps, width = projected.shape
    worlds = samples * steps
    # [M, P, K·H]: every reduction below runs over a contiguous last axis of the same length,
    # so that a seat's value does not depend on who else sits in the room.
    by_metric = np.ascontiguousarray(projected.reshape(-1, width).T)
    values = np.zeros((len(plan.teams), candidates))
    careful = {
        seat: np.zeros((candidates, samples, steps)) for seat, _ in plan.careful
    }  # utilities that are not averaged yet
    for terms in plan.terms:
        shaped = _shaped(terms, by_metric)
        if np.isnan(shaped).any():
            shaped = np.where(np.isnan(shaped), 0.0, shaped)
        shaped = shaped.reshape(-1, candidates, worlds)
        means = shaped.mean(axis=2) if worlds > 1 else shaped[:, :, 0]
        for row, seat in enumerate(terms.seats):
            values[seat] += means[row]
            if seat in careful:
                careful[seat] += shaped[row].reshape(candidates, samples, steps)
    if plan.goal_columns.size and any(plan.teams):
        met = (by_metric[plan.goal_columns] < plan.goal_targets).all(axis=0)
        share = met.reshape(candidates, worlds).mean(axis=1)
        for seat, team in enumerate(plan.teams):
            if team and not plan.abstains[seat]:
                values[seat] += team * share
                if seat in careful:
                    careful[seat] += team * met.reshape(candidates, samples, steps)
    for seat, spec in plan.careful:
        values[seat] = _weighted(spec, careful[seat])
    return RoomUtilities(round_significant(values), plan.abstains)


def _weighted(spec: UtilitySpec, utilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """One seat's utilities, float64 [P, K, H], as one number a plan: float64 [P]."""
    samples, steps = utilities.shape[1:]
    weights = spec.discount ** np.arange(steps)
    outcomes = (utilities * weights).sum(axis=2) / weights.sum()  # [P, K]
    mean: NDArray[np.float64] = outcomes.mean(axis=1)
    if spec.risk_aversion == 0.0:
        return mean
    worst = max(1, math.ceil(spec.risk_tail_fraction * samples - 1e-9))
    tail = np.sort(outcomes, axis=1)[:, :worst].mean(axis=1)
    mixed: NDArray[np.float64] = (1.0 - spec.risk_aversion) * mean + spec.risk_aversion * tail
    return mixed


def _shaped(terms: _Terms, by_metric: NDArray[np.float64]) -> NDArray[np.float64]:
    excess = by_metric[terms.columns]
    excess -= terms.references
    if terms.shape in {"threshold", _HELD}:
        return np.where(np.isnan(excess), 0.0, terms.weights * (excess < 0.0))
    np.clip(excess, -_LARGEST, _LARGEST, out=excess)
    excess /= terms.scales
    if terms.shape == "linear":
        return -terms.weights * excess
    if terms.shape == "sigmoid":
        return terms.weights / (1.0 + np.exp(np.minimum(excess, 700.0)))
    np.maximum(excess, 0.0, out=excess)
    if terms.shape == "log":
        np.log1p(excess, out=excess)
    elif terms.shape == "sqrt":
        np.sqrt(excess, out=excess)
    excess *= -terms.weights
    return excess


@lru_cache(maxsize=256)
def _plan(
    specs: tuple[UtilitySpec, ...],
    metrics: tuple[MetricSpec, ...],
    targets: tuple[tuple[str, float], ...],
    tolerances: tuple[tuple[str, float, float], ...],
    hidden: tuple[frozenset[str], ...],
) -> _Plan:
    bounds = dict(targets)
    limits = {name: (margin, scale) for name, margin, scale in tolerances}
    rows: dict[str, list[tuple[int, int, float, float, float]]] = {}
    abstains = []
    for seat, spec in enumerate(specs):
        unseen = hidden[seat] if hidden else frozenset()
        present = False
        for objective in spec.objectives:
            columns = _columns_of(objective, metrics, bounds, unseen)
            if not columns or objective.weight == objective.held == 0:
                continue
            present = True
            shape = objective.shape or ("linear" if objective.objective == "churn" else spec.kind)
            for column in columns:
                reference, scale = _reference(
                    objective, metrics[column].name, shape, bounds, limits
                )
                weight = objective.weight / len(columns)
                rows.setdefault(shape, []).append((seat, column, reference, scale, weight))
                bound = _bound(objective, metrics[column].name, bounds)
                if objective.held and bound is not None:
                    held = objective.held / len(columns)
                    rows.setdefault(_HELD, []).append((seat, column, bound, 1.0, held))
        abstains.append(not present)
    names = [metric.name for metric in metrics]
    goals = [(names.index(name), bound) for name, bound in targets if name in names]
    return _Plan(
        terms=tuple(_terms(shape, rows[shape]) for shape in (*SHAPES, _HELD) if shape in rows),
        teams=tuple(spec.team for spec in specs),
        goal_columns=np.array([column for column, _ in goals], dtype=np.intp),
        goal_targets=np.array([bound for _, bound in goals], dtype=np.float64).reshape(-1, 1),
        abstains=tuple(abstains),
        careful=tuple(
            (seat, spec) for seat, spec in enumerate(specs) if not spec.plain and not abstains[seat]
        ),
    )


def _terms(shape: str, rows: list[tuple[int, int, float, float, float]]) -> _Terms:
    seats, columns, references, scales, weights = zip(*rows, strict=True)
    return _Terms(
        shape,
        seats,
        np.array(columns, dtype=np.intp),
        np.array(references).reshape(-1, 1),
        np.array(scales).reshape(-1, 1),
        np.array(weights).reshape(-1, 1),
    )


def _columns_of(
    objective: ObjectiveSpec,
    metrics: tuple[MetricSpec, ...],
    targets: Mapping[str, float],
    unseen: frozenset[str],
) -> list[int]:
    """Columns that serve an objective; those with a target, where some have one."""
    serving = [
        column
        for column, metric in enumerate(metrics)
        if metric.objective == objective.objective and metric.name not in unseen
    ]
    if objective.target is None:
        bounded = [column for column in serving if metrics[column].name in targets]
        return bounded or serving
    return serving


def _bound(objective: ObjectiveSpec, metric: str, targets: Mapping[str, float]) -> float | None:
    """The upper bound that a seat holds a metric to; None where it has none."""
    if objective.target is None and objective.objective != "churn":
        return targets.get(metric)
    return objective.target


def _reference(
    objective: ObjectiveSpec,
    metric: str,
    shape: str,
    targets: Mapping[str, float],
    tolerances: Mapping[str, tuple[float, float]],
) -> tuple[float, float]:
    """Where gaps start, and how large a gap is one unit."""
    target = _bound(objective, metric, targets)
    margin, scale = objective.margin, objective.scale
    if target is None:
        tolerance = (0.0, tolerances.get(metric, (0.0, 1.0))[1])
        target = 0.0
    else:
        tolerance = tolerances.get(
            metric, (MARGIN_FRACTION * abs(target), SCALE_FRACTION * abs(target))
        )
    margin = tolerance[0] if margin is None else margin
    scale = tolerance[1] if scale is None else scale
    if scale < _LEAST_SCALE:  # a target of 0 has no tenth
        scale = 1.0
    if shape == "threshold":  # a quarter of the margin: the bare bound leaves no room for noise
        margin /= 4.0
    return target - margin, scale


def round_significant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 9 significant digits, equal to ``float(f"{x:.9g}")`` for every number.

    Args:
        values: float64, any shape.

    Returns:
        A new array of the same shape, never a negative zero.
    """
    if values.size <= _FEW:
        return np.array([float(f"{x:.9g}") for x in values.ravel().tolist()]).reshape(
            values.shape
        ) + np.float64(0.0)
    magnitude = np.abs(values)
    plain = (magnitude >= 1e-13) & (magnitude < 1e15)
    safe = np.where(plain, magnitude, 1.0)
    power = 8.0 - np.floor(np.log10(safe))
    tens = _TENS[np.abs(power).astype(np.intp)]
    scaled = np.where(power >= 0, safe * tens, safe / tens)
    whole = np.rint(scaled)
    # Whole numbers below 2**53 and powers of ten up to 10**22 are exact, so one division (or
    # product) is correctly rounded. A product near a half, or a power of ten misjudged by
    # log10, goes the long way round.
    doubtful = (np.abs(np.abs(scaled - whole) - 0.5) < 1e-5) | (whole < 1e8) | (whole >= 1e9)
    rounded = np.copysign(np.where(power >= 0, whole / tens, whole * tens), values)
    slow = (doubtful | ~plain) & (magnitude > 0)
    if slow.any():
        rounded[slow] = [float(f"{x:.9g}") for x in values[slow].tolist()]
    rounded[magnitude == 0] = 0.0
    rounded[np.isnan(values)] = np.nan
    return rounded


_TENS = 10.0 ** np.arange(23.0)


def lint(spec: UtilitySpec) -> tuple[str, ...]:
    """Warnings for shapes that are known to fail, with the measurement behind each.

    Source: the default room with that shape at every seat, CloudEdge hard on the seed's draws,
    seeds 200–259; see docs/room.md.
    """
    shapes = {
        one.shape or spec.kind for one in spec.objectives if one.objective != "churn" and one.weight
    }
    warnings = []
    if "linear" in shapes:
        warnings.append(
            "a bare linear gap never stops pushing the metric that is cheapest to push: a room "
            'of it earned 330 points on CloudEdge hard (log: 667); prefer kind = "log"'
        )
    if "threshold" in shapes or "sigmoid" in shapes:
        name = "threshold" if "threshold" in shapes else "sigmoid"
        warnings.append(
            f"a bare {name} is flat far from its target, so it cannot tell bad from worse: with "
            "one step of look-ahead a room of thresholds earned -176 points on CloudEdge hard "
            '(log: 555), and only long sight makes up for it; prefer kind = "log"'
        )
    return tuple(warnings)
