from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.utility import (
    SHAPES,
    ObjectiveSpec,
    UtilitySpec,
    room_utilities,
    round_significant,
    seat_utilities,
)
from world.model import MetricSpec

METRICS = (
    MetricSpec("latency_ms", "ms", "latency", "Latency"),
    MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
    MetricSpec("carbon_index", "index", "carbon", "Carbon"),
    MetricSpec("repeat_fraction", "", "churn", "Repeats"),
)
TARGETS = {"latency_ms": 150.0, "cost_usd_per_hour": 400.0, "carbon_index": 220.0}
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
OBJECTIVES = st.sampled_from(["latency", "cost", "carbon", "churn", "waste"])
SPECS = st.builds(
    UtilitySpec,
    st.sampled_from(SHAPES),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.lists(
        st.builds(
            ObjectiveSpec,
            OBJECTIVES,
            st.sampled_from([0.0, 0.3, 1.0]),
            st.one_of(st.none(), st.floats(-500, 500)),
            st.one_of(st.none(), st.floats(0, 50)),
            st.one_of(st.none(), st.floats(0.1, 50)),
            held=st.sampled_from([0.0, 0.0, 0.5]),
        ),
        max_size=4,
    ).map(tuple),
    discount=st.sampled_from([1.0, 1.0, 0.9, 1e-3]),
    risk_aversion=st.sampled_from([0.0, 0.0, 0.4, 1.0]),
    risk_tail_fraction=st.sampled_from([1e-3, 0.25, 0.5, 1.0]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=120))
def test_rounding_equals_the_text_route_for_any_number(numbers: list[float]) -> None:
    values = np.array(numbers * (1 if len(numbers) > 60 else 60))
    rounded = round_significant(values).tolist()
    for value, got in zip(values.tolist(), rounded, strict=True):
        want = float(f"{value:.9g}")
        assert got == want or (math.isnan(got) and math.isnan(want))


@given(st.integers(0, 2**63 - 1), st.integers(-6, 12), st.integers(0, 1))
def test_rounding_is_right_at_half_way_points(digits: int, exponent: int, nudge: int) -> None:
    head = 10**8 + digits % (9 * 10**8)
    value = float(f"{head}5e{exponent - 9}")
    value = math.nextafter(value, math.inf) if nudge else value
    values = np.full(64, value)
    assert round_significant(values)[0] == float(f"{value:.9g}")


@given(
    st.lists(SPECS, min_size=1, max_size=5),
    st.lists(st.lists(st.floats(0, 900), min_size=4, max_size=4), min_size=1, max_size=24),
    st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2)]),
)
@settings(max_examples=150, deadline=None)
def test_a_seats_value_does_not_depend_on_who_else_sits_in_the_room(
    specs: list[UtilitySpec], rows: list[list[float]], shape: tuple[int, int]
) -> None:
    samples, steps = shape
    whole = np.array(rows * samples * steps).reshape(len(rows), samples, steps, 4)
    room = room_utilities(specs, whole, METRICS, TARGETS, {})
    for row, spec in enumerate(specs):
        alone = seat_utilities(spec, whole, METRICS, TARGETS, {})
        assert room.abstains[row] == (alone is None)
        if alone is not None:
            assert room.values[row].tobytes() == alone.tobytes()
        one = seat_utilities(spec, whole[:1], METRICS, TARGETS, {})
        if one is not None:
            assert one[0] == room.values[row, 0]


@given(SPECS, st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_utility_is_finite_and_of_nine_digits_whatever_is_projected(
    spec: UtilitySpec, rows: list[list[float]]
) -> None:
    values = seat_utilities(spec, np.array(rows).reshape(-1, 1, 1, 4), METRICS, TARGETS, {})
    if values is not None:
        assert np.isfinite(values).all()
        assert values.tolist() == [float(f"{x:.9g}") for x in values.tolist()]


@given(st.sampled_from(SHAPES), st.floats(0, 900), st.floats(0, 900))
def test_more_of_a_bad_metric_is_never_worth_more(kind: str, one: float, other: float) -> None:
    spec = UtilitySpec(kind, 1.0, (ObjectiveSpec("latency", 1.0),))
    low, high = sorted((one, other))
    rows = np.array([[low, 0, 0, 0], [high, 0, 0, 0]]).reshape(2, 1, 1, 4)
    values = seat_utilities(spec, rows, METRICS, TARGETS, {})
    assert values is not None
    assert values[0] >= values[1]
