from __future__ import annotations

import math

import numpy as np
import pytest

from policies.utility import (
    ObjectiveSpec,
    UtilitySpec,
    lint,
    room_utilities,
    round_significant,
    seat_utilities,
)
from world.errors import ConfigError
from world.model import MetricSpec

LATENCY = MetricSpec("latency_ms", "ms", "latency", "Latency")
COST = MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost")
CHURN = MetricSpec("repeat_fraction", "", "churn", "Repeats")
METRICS = (LATENCY, COST, CHURN)
TARGETS = {"latency_ms": 150.0, "cost_usd_per_hour": 400.0}
TOLERANCES = {"latency_ms": (20.0, 20.0), "cost_usd_per_hour": (15.0, 20.0)}


def projected(*rows: tuple[float, float, float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64).reshape(len(rows), 1, 1, 3)


def of(spec: UtilitySpec, *rows: tuple[float, float, float]) -> list[float]:
    values = seat_utilities(spec, projected(*rows), METRICS, TARGETS, TOLERANCES)
    assert values is not None
    return [float(value) for value in values]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("log", -2 * math.log1p(50 / 20)),
        ("satisficing", -2 * 50 / 20),
        ("sqrt", -2 * math.sqrt(50 / 20)),
        ("linear", -2 * 50 / 20),
        ("threshold", 0.0),
        ("sigmoid", 2 / (1 + math.exp(50 / 20))),
    ],
)
def test_every_shape_values_a_gap_as_its_formula_says(kind: str, expected: float) -> None:
    spec = UtilitySpec(kind, 0.0, (ObjectiveSpec("latency", 2.0),))
    assert of(spec, (180.0, 500.0, 0.0)) == [float(f"{expected:.9g}")]


@pytest.mark.parametrize("kind", ["log", "satisficing", "sqrt"])
def test_a_satisficing_shape_is_flat_below_target_minus_margin(kind: str) -> None:
    spec = UtilitySpec(kind, 0.0, (ObjectiveSpec("latency", 1.0),))
    assert of(spec, (130.0, 0, 0), (60.0, 0, 0)) == [0.0, 0.0]
    assert of(spec, (131.0, 0, 0))[0] < 0.0


def test_a_linear_gap_keeps_rewarding_below_the_target() -> None:
    spec = UtilitySpec("linear", 0.0, (ObjectiveSpec("latency", 1.0),))
    assert of(spec, (90.0, 0, 0)) == [2.0]


def test_a_threshold_lies_a_quarter_of_the_margin_below_the_target() -> None:
    spec = UtilitySpec("threshold", 0.0, (ObjectiveSpec("latency", 1.0),))
    assert of(spec, (144.9, 0, 0), (145.0, 0, 0)) == [1.0, 0.0]


def test_the_team_term_counts_steps_in_which_every_target_holds_strictly() -> None:
    spec = UtilitySpec("log", 3.0, (ObjectiveSpec("latency", 0.5),))
    both = of(spec, (100.0, 399.0, 0.0), (100.0, 400.0, 0.0))
    assert both == [3.0, 0.0]


def test_values_are_means_over_samples_and_steps() -> None:
    spec = UtilitySpec("log", 1.0, (ObjectiveSpec("latency", 1.0),))
    world = np.array([[[[170.0, 1, 0], [130.0, 1, 0]], [[190.0, 1, 0], [130.0, 1, 0]]]])
    values = seat_utilities(spec, world, METRICS, TARGETS, TOLERANCES)
    expected = -(math.log1p(2) + math.log1p(3)) / 4 + 0.5
    assert values is not None
    assert values[0] == float(f"{expected:.9g}")


def test_repeating_is_charged_by_the_repeat_not_by_a_gap() -> None:
    janitor = UtilitySpec("log", 0.0, (ObjectiveSpec("cost", 0.3), ObjectiveSpec("churn", 0.3)))
    plain, repeated = of(janitor, (0, 385.0, 0.0), (0, 385.0, 1.0))
    assert (plain, repeated) == (0.0, -0.3)


def test_a_seat_whose_objectives_are_not_measured_here_abstains() -> None:
    carbon = UtilitySpec("log", 1.0, (ObjectiveSpec("carbon", 1.0),))
    weightless = UtilitySpec("log", 1.0, (ObjectiveSpec("latency", 0.0),))
    for spec in (carbon, weightless, UtilitySpec("log", 1.0, ())):
        assert seat_utilities(spec, projected((1, 1, 1)), METRICS, TARGETS, TOLERANCES) is None


def test_an_objective_that_is_not_measured_adds_nothing() -> None:
    alone = UtilitySpec("log", 1.0, (ObjectiveSpec("latency", 1.0),))
    more = UtilitySpec("log", 1.0, (ObjectiveSpec("latency", 1.0), ObjectiveSpec("waste", 5.0)))
    assert of(alone, (180, 1, 0)) == of(more, (180, 1, 0))


def test_an_unknown_metric_adds_nothing_and_is_not_in_target() -> None:
    spec = UtilitySpec("log", 1.0, (ObjectiveSpec("latency", 1.0), ObjectiveSpec("cost", 1.0)))
    unknown = of(spec, (math.nan, 405.0, 0.0))
    assert unknown == [float(f"{-math.log1p(1.0):.9g}")]
    for kind in ("satisficing", "sqrt", "linear", "threshold", "sigmoid"):
        only = UtilitySpec(kind, 0.0, (ObjectiveSpec("latency", 1.0),))
        assert of(only, (math.nan, 0, 0)) == [0.0]


def test_an_infinite_metric_still_gives_a_finite_utility() -> None:
    for kind in ("log", "satisficing", "sqrt", "linear", "threshold", "sigmoid"):
        spec = UtilitySpec(kind, 1.0, (ObjectiveSpec("latency", 1e9),))
        for value in (math.inf, -math.inf, 1e308, -1e308):
            assert math.isfinite(of(spec, (value, 0, 0))[0])


def test_a_seats_own_numbers_win_over_the_scenarios() -> None:
    own = ObjectiveSpec("latency", 1.0, target=200.0, margin=0.0, scale=10.0)
    assert of(UtilitySpec("satisficing", 0.0, (own,)), (230.0, 0, 0)) == [-3.0]


def test_without_tolerances_margin_and_scale_are_5_and_10_percent_of_the_target() -> None:
    spec = UtilitySpec("satisficing", 0.0, (ObjectiveSpec("latency", 1.0),))
    values = seat_utilities(spec, projected((157.5, 0, 0)), METRICS, TARGETS, {})
    assert values is not None
    assert values[0] == -1.0


def test_an_objective_without_any_target_is_measured_from_zero() -> None:
    waste = (MetricSpec("waste_usd_per_hour", "$/h", "waste", "Waste"),)
    spec = UtilitySpec("log", 0.0, (ObjectiveSpec("waste", 1.0),))
    world = np.array([0.0, math.e - 1]).reshape(2, 1, 1, 1)
    values = seat_utilities(spec, world, waste, {}, {})
    assert values is not None
    assert values.tolist() == [0.0, -1.0]


def test_an_objective_with_several_metrics_is_the_mean_of_those_with_a_target() -> None:
    metrics = tuple(MetricSpec(name, "ms", "latency", name) for name in ("a_ms", "b_ms", "c_ms"))
    spec = UtilitySpec("satisficing", 0.0, (ObjectiveSpec("latency", 1.0),))
    world = np.array([[[[120.0, 140.0, 9999.0]]]])
    targets = {"a_ms": 100.0, "b_ms": 100.0}
    tolerances = {"a_ms": (0.0, 10.0), "b_ms": (0.0, 10.0)}
    values = seat_utilities(spec, world, metrics, targets, tolerances)
    assert values is not None
    assert values[0] == -3.0


def test_a_masked_metric_adds_nothing_to_the_seat_that_may_not_see_it() -> None:
    spec = UtilitySpec("log", 0.0, (ObjectiveSpec("latency", 1.0), ObjectiveSpec("cost", 1.0)))
    rows = projected((180.0, 450.0, 0.0))
    seen = room_utilities(
        (spec, spec), rows, METRICS, TARGETS, TOLERANCES, (frozenset({"latency_ms"}), frozenset())
    )
    assert seen.values[0, 0] == float(f"{-math.log1p(65 / 20):.9g}")
    assert seen.values[1, 0] < seen.values[0, 0]
    blind = frozenset({"latency_ms", "cost_usd_per_hour"})
    assert room_utilities((spec,), rows, METRICS, TARGETS, TOLERANCES, (blind,)).abstains == (True,)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ObjectiveSpec("speed", 1.0),
        lambda: ObjectiveSpec("cost", math.nan),
        lambda: ObjectiveSpec("cost", -1.0),
        lambda: ObjectiveSpec("cost", 1e300),
        lambda: ObjectiveSpec("cost", 1.0, scale=0.0),
        lambda: ObjectiveSpec("cost", 1.0, margin=-1.0),
        lambda: ObjectiveSpec("cost", 1.0, target=math.inf),
        lambda: ObjectiveSpec("cost", 1.0, shape="cubic"),
        lambda: UtilitySpec("cubic", 1.0, ()),
        lambda: UtilitySpec("log", math.inf, ()),
        lambda: UtilitySpec("log", -0.5, ()),
    ],
)
def test_a_utility_that_cannot_work_is_refused_in_one_line(build: object) -> None:
    assert callable(build)
    with pytest.raises(ConfigError) as caught:
        build()
    assert "\n" not in caught.value.line()
    assert caught.value.fix


def test_shapes_that_are_known_to_fail_are_warned_about_with_the_measurement() -> None:
    good = UtilitySpec("log", 1.0, (ObjectiveSpec("cost", 1.0), ObjectiveSpec("churn", 1.0)))
    assert lint(good) == ()
    linear = lint(UtilitySpec("linear", 1.0, (ObjectiveSpec("cost", 1.0),)))
    assert len(linear) == 1
    assert "330" in linear[0]
    mixed = UtilitySpec("log", 1.0, (ObjectiveSpec("cost", 1.0, shape="threshold"),))
    assert "flat" in lint(mixed)[0]


def test_rounding_is_that_of_nine_significant_digits_at_every_size() -> None:
    edges = [
        0.0,
        -0.0,
        5e-324,
        1e-300,
        99999999.95,
        999999999.5,
        1e15,
        1e22,
        123456789.5,
        0.1 + 0.2,
    ]
    many = np.array(edges * 10)
    assert round_significant(many).tolist() == [float(f"{x:.9g}") + 0.0 for x in many.tolist()]
    assert math.isnan(round_significant(np.full(60, math.nan))[0])


def futures(*rows: list[list[float]]) -> np.ndarray:
    """Latencies of plans, each a list of samples, each a list of steps."""
    array = np.zeros((len(rows), len(rows[0]), len(rows[0][0]), 3))
    array[..., 0] = rows
    return array


def valued(spec: UtilitySpec, whole: np.ndarray) -> list[float]:
    values = seat_utilities(spec, whole, METRICS, TARGETS, TOLERANCES)
    assert values is not None
    return [float(value) for value in values]


LATE_GAP = ObjectiveSpec("latency", 1.0)


def test_a_discount_counts_each_step_less_than_the_one_before() -> None:
    whole = futures([[150.0, 130.0]], [[130.0, 150.0]])  # one unit of gap, early or late
    even = UtilitySpec("satisficing", 0.0, (LATE_GAP,))
    hasty = UtilitySpec("satisficing", 0.0, (LATE_GAP,), discount=0.25)
    assert valued(even, whole) == [-0.5, -0.5]
    assert valued(hasty, whole) == [-0.8, -0.2]


def test_risk_aversion_weighs_the_worst_futures() -> None:
    whole = futures([[130.0], [130.0], [130.0], [170.0]], [[140.0], [140.0], [140.0], [140.0]])
    calm = UtilitySpec("satisficing", 0.0, (LATE_GAP,))
    fearful = UtilitySpec("satisficing", 0.0, (LATE_GAP,), risk_aversion=1.0)
    half = UtilitySpec("satisficing", 0.0, (LATE_GAP,), risk_aversion=0.5, risk_tail_fraction=0.5)
    assert valued(calm, whole) == [-0.5, -0.5]
    assert valued(fearful, whole) == [-2.0, -0.5]  # the worst of four
    assert valued(half, whole) == [-0.75, -0.5]  # the worst two of four, by half


def test_the_worst_futures_are_those_of_the_whole_utility_not_of_each_objective() -> None:
    whole = np.zeros((1, 2, 1, 3))
    whole[0, :, 0, 0] = [170.0, 130.0]  # two units of latency in one future
    whole[0, :, 0, 1] = [385.0, 425.0]  # two units of cost in the other
    both = (ObjectiveSpec("latency", 1.0), ObjectiveSpec("cost", 1.0))
    fearful = UtilitySpec("satisficing", 0.0, both, risk_aversion=1.0, risk_tail_fraction=0.5)
    assert valued(fearful, whole) == [-2.0]


def test_the_team_goal_is_discounted_and_weighed_like_the_rest() -> None:
    whole = futures([[100.0, 200.0], [100.0, 100.0]])
    spec = UtilitySpec("threshold", 4.0, (ObjectiveSpec("latency", 0.0, held=1.0),))
    hasty = UtilitySpec("threshold", 4.0, (ObjectiveSpec("latency", 0.0, held=1.0),), 1 / 3)
    fearful = UtilitySpec(
        "threshold", 4.0, (ObjectiveSpec("latency", 0.0, held=1.0),), 1.0, 1.0, 0.5
    )
    assert valued(spec, whole) == [3.75]
    assert valued(hasty, whole) == [pytest.approx((3.75 + 5.0) / 2)]
    assert valued(fearful, whole) == [2.5]


def test_holding_a_target_is_worth_what_the_persona_says_strictly_below_it() -> None:
    spec = UtilitySpec("log", 0.0, (ObjectiveSpec("latency", 0.0, held=0.5),))
    assert of(spec, (149.9, 0, 0), (150.0, 0, 0), (100.0, 0, 0)) == [0.5, 0.0, 0.5]
    own = UtilitySpec("log", 0.0, (ObjectiveSpec("latency", 0.0, target=120.0, held=0.5),))
    assert of(own, (119.0, 0, 0), (130.0, 0, 0)) == [0.5, 0.0]


@pytest.mark.parametrize(
    "build",
    [
        lambda: UtilitySpec("log", 1.0, (), discount=0.0),
        lambda: UtilitySpec("log", 1.0, (), discount=1.01),
        lambda: UtilitySpec("log", 1.0, (), risk_aversion=-0.1),
        lambda: UtilitySpec("log", 1.0, (), risk_aversion=math.nan),
        lambda: UtilitySpec("log", 1.0, (), risk_tail_fraction=0.0),
        lambda: ObjectiveSpec("cost", 1.0, held=math.inf),
    ],
)
def test_a_weight_of_steps_or_futures_that_cannot_work_is_refused(build: object) -> None:
    test_a_utility_that_cannot_work_is_refused_in_one_line(build)
