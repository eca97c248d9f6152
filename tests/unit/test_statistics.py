"""Intervals, tests and power against brute force, hand-worked cases and published tables."""

from __future__ import annotations

import itertools
import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.study.passk import mean_pass_k, pass_k
from orchestrator.study.power import minimum_detectable_effect, power_of, seeds_needed
from orchestrator.study.statistics import (
    RESAMPLES,
    bootstrap_interval,
    holm,
    pairing,
    sign_flip,
    standard_deviation,
)
from world.errors import MissingExtraError

numbers = st.integers(-50, 50).map(float)


@pytest.fixture(autouse=True)
def scipy(request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.name:
        pytest.importorskip("scipy", reason="needs the extra study")


def test_without_scipy_a_figure_is_refused_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"extra 'study'.*pip install") as caught:
        bootstrap_interval([1.0, 2.0], "x")
    assert caught.value.exit_code == 3


def flips_by_hand(values: list[float]) -> float:
    """Share of all sign flips whose sum is at least as far from 0, in exact arithmetic."""
    whole = [int(value) for value in values]
    here = abs(sum(whole))
    sums = [
        abs(sum(s * v for s, v in zip(signs, whole, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(whole))
    ]
    return sum(each >= here for each in sums) / len(sums)


@settings(max_examples=40, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=9))
def test_a_sign_flip_test_of_few_seeds_is_the_exact_share_of_flips(values: list[float]) -> None:
    found = sign_flip(values, "x")
    assert found is not None
    assert found.method == "exact"
    assert found.flips == 2 ** len(values)
    assert found.p == pytest.approx(flips_by_hand(values), rel=1e-8)


def test_fishers_darwin_example_has_the_published_p_value() -> None:
    """Fisher (1935), section 21: 863 of 32,768 flips give a sum at least as large, one-sided;
    two-sided that is 1,726 of 32,768. Fifteen pairs are sampled here: 9,999 flips."""
    darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    found = sign_flip(list(map(float, darwin)), "darwin")
    assert found is not None
    assert (found.method, found.flips) == ("sampled", RESAMPLES)
    assert flips_by_hand(list(map(float, darwin))) == 1726 / 32768
    assert found.p == pytest.approx(1726 / 32768, abs=4 * math.sqrt(0.0527 * 0.9473 / RESAMPLES))
    whole = found.p * (RESAMPLES + 1)
    assert whole == pytest.approx(round(whole), abs=1e-4)  # (b + 1)/(m + 1)


def test_thirteen_seeds_are_exact_and_fourteen_are_sampled() -> None:
    thirteen, fourteen = (sign_flip([1.0] * n, "x") for n in (13, 14))
    assert thirteen is not None
    assert fourteen is not None
    assert (thirteen.method, thirteen.flips, thirteen.p) == ("exact", 8192, 2 / 8192)
    assert fourteen.method == "sampled"
    assert fourteen.p >= 1 / (RESAMPLES + 1)


@pytest.mark.parametrize("values", [[0.0], [0.0] * 40, [5.0]])
def test_no_difference_or_one_seed_is_no_evidence(values: list[float]) -> None:
    found = sign_flip(values, "x")
    assert found is not None
    assert found.p == 1.0
    assert sign_flip([], "x") is None


@settings(max_examples=15, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=30))
def test_a_bootstrap_interval_holds_the_mean_mirrors_and_repeats(values: list[float]) -> None:
    found, again = bootstrap_interval(values, "x"), bootstrap_interval(values, "x")
    assert found is not None
    assert found == again
    assert min(values) <= found.low <= found.high <= max(values)
    shifted = bootstrap_interval([value + 1000.0 for value in values], "x")
    assert shifted is not None
    assert shifted.low - 1000.0 == pytest.approx(found.low, abs=1e-5)


def test_a_bca_interval_is_efrons_formula_on_the_same_resamples() -> None:
    """Worked out from the definition (Efron 1987): z0, jackknife acceleration, two quantiles."""
    import numpy as np
    from scipy.stats import norm

    from world.noise import generator

    values = np.array([0.1, 0.2, 0.25, 0.3, 0.9, 1.4, 2.0, 4.1])
    n = len(values)
    found = bootstrap_interval(list(values), "x")
    assert found is not None
    assert found.method == "BCa"
    stream = generator(0, "orchestrator.study.statistics.bootstrap.x")
    means = values[stream.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    bias = norm.ppf(((means < values.mean()).mean() + (means <= values.mean()).mean()) / 2)
    left_out = np.array([np.delete(values, i).mean() for i in range(n)])
    off = left_out.mean() - left_out
    acceleration = (off**3).sum() / (6 * (off**2).sum() ** 1.5)
    ends = []
    for z in (norm.ppf(0.025), norm.ppf(0.975)):
        moved = bias + (bias + z) / (1 - acceleration * (bias + z))
        ends.append(np.quantile(means, norm.cdf(moved)))
    assert [found.low, found.high] == pytest.approx(ends, rel=2e-3)


def test_an_interval_names_how_it_was_made() -> None:
    assert bootstrap_interval([3.0], "x") is None
    constant = bootstrap_interval([3.0, 3.0], "x")
    assert constant is not None
    assert (constant.low, constant.high, constant.method) == (3.0, 3.0, "constant")


def test_figures_of_other_names_come_from_other_streams() -> None:
    values = [math.sqrt(n) for n in range(17)]
    assert bootstrap_interval(values, "a") != bootstrap_interval(values, "b")


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm_steps_down_and_never_below_a_smaller_p(
    p_values: list[float], corrected: list[float]
) -> None:
    assert holm(p_values) == pytest.approx(corrected)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_the_largest_of_what_each_smaller_p_says(p_values: list[float]) -> None:
    m = len(p_values)
    expected = []
    for p in p_values:
        smaller = sorted(q for q in p_values if q <= p)
        expected.append(max(min(1.0, (m - rank) * q) for rank, q in enumerate(smaller)))
    assert holm(p_values) == pytest.approx(expected)


def test_pairing_of_four_seeds_is_what_hand_computation_gives() -> None:
    """a = 1 2 3 4, b = 2 3 4 7: differences 1 1 1 3, s² 1; s²a 5/3, s²b 14/3, cov 8/3."""
    found = pairing([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 7.0])
    assert found is not None
    assert found.correlation == pytest.approx((8 / 3) / math.sqrt(5 / 3 * 14 / 3))
    assert found.paired_half_width == pytest.approx(3.182446 * math.sqrt(1 / 4), rel=1e-6)
    # Welch: (19/3)² · 3 / ((5/3)² + (14/3)²) = 4.90, so 4 degrees of freedom.
    assert found.unpaired_half_width == pytest.approx(2.776445 * math.sqrt(19 / 12), rel=1e-6)
    assert found.ratio == pytest.approx(found.unpaired_half_width / found.paired_half_width)


@settings(max_examples=30)
@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=20))
def test_the_ratio_follows_from_spreads_and_correlation(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = pairing(a, b)
    assert found is not None
    spread_a, spread_b = standard_deviation(a), standard_deviation(b)
    assert spread_a is not None
    assert spread_b is not None
    if found.correlation is None:
        assert spread_a == 0 or spread_b == 0
        return
    assert -1 <= found.correlation <= 1
    square = spread_a**2 + spread_b**2 - 2 * found.correlation * spread_a * spread_b
    n = len(pairs)
    spread_d = standard_deviation([x - y for x, y in pairs])
    assert spread_d is not None
    assert spread_d**2 == pytest.approx(square, abs=1e-5)
    if n > 2 and found.ratio is not None and found.correlation > 0.9:
        assert found.ratio > 1


def test_sides_that_are_alike_have_no_ratio_and_a_single_seed_no_pairing() -> None:
    found = pairing([1.0, 2.0], [3.0, 4.0])
    assert found is not None
    assert (found.ratio, found.correlation, found.paired_half_width) == (None, 1.0, 0.0)
    assert pairing([1.0], [2.0]) is None


@pytest.mark.parametrize(
    ("successes", "trials", "k", "value"),
    [(3, 4, 2, 0.5), (4, 4, 4, 1.0), (0, 9, 1, 0.0), (2, 8, 3, 0.0), (5, 8, 3, 10 / 56)],
)
def test_pass_k_counts_the_draws_that_all_succeed(
    successes: int, trials: int, k: int, value: float
) -> None:
    assert pass_k(successes, trials, k) == pytest.approx(value)
    outcomes = [True] * successes + [False] * (trials - successes)
    draws = list(itertools.combinations(outcomes, k))
    assert sum(map(all, draws)) / len(draws) == pytest.approx(value)


def test_pass_k_of_more_trials_than_there_are_is_not_known() -> None:
    assert pass_k(2, 2, 3) is None
    assert mean_pass_k([(2, 4), (4, 4)], 2) == pytest.approx((1 / 6 + 1) / 2)
    assert mean_pass_k([(2, 4), (1, 1)], 2) is None
    assert mean_pass_k([], 1) is None


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_seeds_needed_are_those_of_the_published_tables(effect: float, pairs: int) -> None:
    """Paired t, two-sided 5 %, power 80 %: the sample sizes that G*Power 3 gives for dz."""
    assert seeds_needed(effect, 1.0) == pairs
    assert seeds_needed(-10 * effect, 10.0) == pairs


def test_the_detectable_effect_is_the_one_that_is_found_four_times_in_five() -> None:
    effect = minimum_detectable_effect(2.0, 20)
    assert effect is not None
    assert effect / 2.0 == pytest.approx(0.6604, abs=1e-4)
    assert power_of(effect, 2.0, 20) == pytest.approx(0.8, abs=1e-6)
    many = minimum_detectable_effect(1.0, 4000)
    assert many == pytest.approx((1.959964 + 0.841621) / math.sqrt(4000), rel=1e-3)


def test_what_cannot_be_detected_is_told_as_unknown() -> None:
    assert minimum_detectable_effect(None, 9) is None
    assert minimum_detectable_effect(1.0, 1) is None
    assert minimum_detectable_effect(0.0, 9) == 0.0
    assert seeds_needed(0.0, 1.0) is None
    assert seeds_needed(1.0, None) is None
    assert seeds_needed(1.0, 0.0) == 2
    assert seeds_needed(1e-9, 1.0) is None
    assert power_of(0.0, 1.0, 10) == pytest.approx(0.05)
