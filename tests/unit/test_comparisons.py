"""Arms compared seed by seed: which pairs, over which seeds, with what beside them."""

from __future__ import annotations

import pytest

from orchestrator.study.comparisons import comparisons, factors_of, summaries
from orchestrator.study.statistics import holm
from tests.support.sweeps import arm, failed, row
from world.errors import ConfigError

BOTH = ("scenario", "protocol", "persona")


@pytest.fixture(autouse=True)
def scipy() -> None:
    pytest.importorskip("scipy", reason="needs the extra study")


def test_factors_come_in_one_order_and_unknown_ones_are_refused() -> None:
    assert factors_of("persona, protocol") == ("protocol", "persona")
    for text in ("", "role", "protocol,seed"):
        with pytest.raises(ConfigError, match=r"^--by is"):
            factors_of(text)


def test_two_protocols_are_compared_by_the_mean_of_the_differences_of_their_seeds() -> None:
    rows = arm(lambda seed: 0.1 * seed, range(5), protocol="a")
    rows += arm(lambda seed: 0.1 * seed + 0.02 * (seed + 1), range(5), protocol="b")
    (found,) = comparisons(rows, ("protocol",))
    assert (found.a, found.b, found.factor, found.pairs, found.dropped) == (
        "a", "b", "protocol", 5, 0,
    )  # fmt: skip
    assert found.difference == pytest.approx(0.06)
    assert found.mean_a == pytest.approx(0.2)
    assert found.mean_b == pytest.approx(0.26)
    assert found.test is not None
    assert found.test.p == found.p_holm == 2 / 32
    assert found.interval is not None
    assert 0.02 <= found.interval.low < 0.06 < found.interval.high <= 0.1
    assert found.pairing is not None
    assert found.pairing.ratio is not None
    assert found.pairing.ratio > 3
    assert found.detectable is not None
    assert found.seeds_needed is not None


def test_arms_that_differ_in_one_factor_are_compared_and_scenarios_only_when_alone() -> None:
    rows = [
        each
        for scenario in ("s", "t")
        for protocol in ("a", "b")
        for name in ("default", "cost=hawk")
        for each in arm(lambda seed: seed / 9, range(3), scenario=scenario, protocol=protocol,
                        set=name)
    ]  # fmt: skip
    found = comparisons(rows, BOTH)
    assert [each.factor for each in found] == ["protocol"] * 4 + ["persona"] * 4
    assert {each.held["scenario"] for each in found} == {"s", "t"}
    (alone,) = comparisons(rows, ("scenario",))
    assert (alone.a, alone.b, alone.pairs) == ("s", "t", 3)


def test_seeds_are_the_unit_where_an_arm_was_played_in_several_scenarios() -> None:
    rows = arm(lambda seed: 0.1, range(4), protocol="a", scenario="s")
    rows += arm(lambda seed: 0.3, range(4), protocol="a", scenario="t")
    rows += arm(lambda seed: 0.2 + seed / 100, range(4), protocol="b", scenario="s")
    rows += arm(lambda seed: 0.4 + seed / 100, range(4), protocol="b", scenario="t")
    (found,) = comparisons(rows, ("protocol",))
    assert found.pairs == 4
    assert found.difference == pytest.approx(0.115)
    one, other = summaries(rows, ("protocol",))
    assert (one.seeds, one.episodes, one.mean) == (4, 8, 0.2)
    assert other.mean == pytest.approx(0.315)
    assert one.success_rate["interval"] is None


def test_a_seed_with_a_hole_on_one_side_is_dropped_and_counted() -> None:
    rows = arm(lambda seed: 0.2, range(4), protocol="a", scenario="s")
    rows += arm(lambda seed: 0.2, range(4), protocol="a", scenario="t")
    rows += arm(lambda seed: 0.4, range(4), protocol="b", scenario="s")
    rows += arm(lambda seed: 0.9, range(1, 4), protocol="b", scenario="t")
    rows.append(failed(0, protocol="b", scenario="t"))
    (found,) = comparisons(rows, ("protocol",))
    assert (found.pairs, found.dropped) == (3, 1)
    assert found.difference == pytest.approx(0.45)


def test_a_scenario_that_only_one_side_played_takes_no_part() -> None:
    rows = arm(lambda seed: 0.2, range(3), protocol="a", scenario="s")
    rows += arm(lambda seed: 0.9, range(3), protocol="a", scenario="t")
    rows += arm(lambda seed: 0.3, range(3), protocol="b", scenario="s")
    rows += [failed(seed, protocol="b", scenario="t") for seed in range(3)]
    (found,) = comparisons(rows, ("protocol",))
    assert (found.pairs, found.difference) == (3, 0.1)


def test_the_order_of_the_rows_moves_no_figure_but_the_sign_of_the_side() -> None:
    rows = arm(lambda seed: (seed * 7 % 5) / 10, range(20), protocol="a")
    rows += arm(lambda seed: (seed * 3 % 7) / 10, range(20), protocol="b")
    (found,) = comparisons(rows, ("protocol",))
    (again,) = comparisons(
        sorted(rows, key=lambda each: (each.protocol, -each.seed)), ("protocol",)
    )
    assert again == found
    more = [*rows, *arm(lambda seed: 0.5, range(20), protocol="c")]
    of_three = next(each for each in comparisons(more, ("protocol",)) if each.b == "b")
    assert (of_three.interval, of_three.test) == (found.interval, found.test)


def test_p_values_are_corrected_over_all_pairs_of_the_table() -> None:
    rows = [
        each
        for number, name in enumerate("abc")
        for each in arm(lambda seed, n=number: 0.1 + n * 0.01 * (seed % 4), range(8), protocol=name)  # type: ignore[misc]
    ]
    found = comparisons(rows, ("protocol",))
    assert len(found) == 3
    p_values = [each.test.p for each in found if each.test]
    assert [each.p_holm for each in found] == holm(p_values)


def test_arms_without_a_common_seed_have_no_figures_and_enter_no_correction() -> None:
    rows = arm(lambda seed: 0.2, range(3), protocol="a")
    rows += arm(lambda seed: 0.2, range(3, 6), protocol="b")
    (found,) = comparisons(rows, ("protocol",))
    assert (found.pairs, found.dropped, found.difference, found.test) == (0, 6, None, None)
    assert found.as_json()["p_holm"] is None


def test_a_summary_counts_failures_and_draws_successes_without_replacement() -> None:
    rows = [row(seed, 0.4 + 0.1 * seed) for seed in range(4)] + [failed(4)]
    (found,) = summaries(rows, ("protocol",), ks=(1, 2, 4, 5))
    assert (found.seeds, found.episodes, found.failed) == (4, 4, 1)
    assert found.pass_k == {1: 0.75, 2: 0.5, 4: 0.0, 5: None}
    assert found.success_rate["mean"] == 0.75
    assert found.as_json()["n"] == 4


def test_any_measure_is_compared_and_yes_counts_as_one() -> None:
    rows = arm(lambda seed: 0.4, range(4), protocol="a")
    rows += arm(lambda seed: 0.6, range(4), protocol="b")
    (found,) = comparisons(rows, ("protocol",), "success")
    assert found.difference == 1.0
    (same,) = comparisons(rows, ("protocol",), "end_latency_ms")
    assert same.difference == 0.0
