"""Efficiency, the points of bargaining theory and fairness, by hand and against other ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.study.metrics.fairness import gini, jain, max_individual_shortfall
from orchestrator.study.metrics.pareto import dominators, efficient, graded_efficiency
from orchestrator.study.metrics.points import (
    kalai_smorodinsky_point,
    nash_point,
    rational,
    welfare_point,
    welfare_ratio,
)
from orchestrator.study.metrics.scale import distance, normalised, normalised_values
from policies.protocols import protocol
from tests.support.tables import context, settle
from world.noise import channel, uniforms

ALL = np.ones(64, np.bool_)
HAND = np.array([[10.0, 6.0, 1.0, 5.0], [1.0, 3.0, 4.0, 2.0]])
"""Two seats; a, b and c are efficient, d is dominated by b."""


def drawn(case: int, seats: int, candidates: int) -> NDArray[np.float64]:
    """Utilities on a coarse grid, so that ties and dominated candidates are frequent."""
    draws = uniforms(case, np.arange(seats * candidates), channel("test.metrics"), 0)[0]
    table: NDArray[np.float64] = np.round(draws.reshape(seats, candidates) * 8.0) - 2.0
    return table


def test_each_seat_is_put_on_its_own_range_of_what_could_be_chosen() -> None:
    fine = np.array([True, True, False])
    table = np.array([[2.0, 4.0, 6.0], [5.0, 5.0, 9.0]])
    assert normalised(table, fine).tolist() == [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]
    assert normalised_values(np.array([3.0, -7.0]), table, fine).tolist() == [0.5, 1.0]


def test_where_everything_was_vetoed_all_candidates_make_the_range() -> None:
    table = np.array([[2.0, 4.0]])
    assert normalised(table, np.zeros(2, np.bool_)).tolist() == [[0.0, 1.0]]


def test_a_dominated_choice_is_told_by_its_distance_to_what_dominates_it() -> None:
    values = normalised(HAND, ALL[:4])
    assert efficient(HAND, ALL[:4]).tolist() == [True, True, True, False]
    assert dominators(HAND, 3, ALL[:4]).tolist() == [False, True, False, False]
    # In V, b − d is 1/9 for the first seat and 1/3 for the second.
    expected = 1.0 - (((1 / 9) ** 2 + (1 / 3) ** 2) / 2) ** 0.5
    assert graded_efficiency(HAND, values, 3, ALL[:4]) == pytest.approx(expected, abs=1e-8)
    assert graded_efficiency(HAND, values, 0, ALL[:4]) == 1.0


def test_what_was_vetoed_dominates_nothing() -> None:
    fine = np.array([True, False, True, True])
    assert not dominators(HAND, 3, fine).any()
    assert efficient(HAND, fine).tolist() == [True, False, True, True]


def test_two_candidates_that_are_worth_the_same_to_all_are_both_efficient() -> None:
    assert efficient(np.array([[1.0, 1.0], [2.0, 2.0]]), ALL[:2]).tolist() == [True, True]


@pytest.mark.parametrize("case", range(60))
def test_the_efficient_set_is_what_comparing_every_pair_finds(case: int) -> None:
    table = drawn(case, 1 + case % 5, 2 + case % 12)
    rows = table.T.tolist()
    fine = np.array([case % 3 == 0 or place % 3 > 0 for place in range(len(rows))])
    if not fine.any():
        fine[:] = True

    def beats(one: list[float], other: list[float]) -> bool:
        return one != other and all(x >= y for x, y in zip(one, other, strict=True))

    places = range(len(rows))
    slow = [
        fine[a] and not any(fine[b] and beats(rows[b], rows[a]) for b in places) for a in places
    ]
    assert efficient(table, fine).tolist() == slow
    values = normalised(table, fine)
    for place in places:
        over = [b for b in places if fine[b] and slow[b] and beats(rows[b], rows[place])]
        near = min((distance(values, place, b) for b in over), default=0.0)
        assert graded_efficiency(table, values, place, fine) == pytest.approx(1.0 - near)


def test_the_points_of_a_table_that_can_be_worked_out_by_hand() -> None:
    d, even = np.zeros(2), np.ones(2)
    # Products: a 10, b 18, c 4, d 10. Shares of the ideals 10 and 4: b has .6 and .75.
    assert nash_point(HAND, d, even, ALL[:4]) == 1
    assert kalai_smorodinsky_point(HAND, d, even, ALL[:4]) == 1
    # Sums of V: a 1 + 0, b 5/9 + 2/3, c 0 + 1, d 4/9 + 1/3.
    values = normalised(HAND, ALL[:4])
    assert welfare_point(values, even, ALL[:4]) == 1
    assert welfare_ratio(values, even, 0, ALL[:4]) == pytest.approx(1.0 / (11 / 9), abs=1e-8)
    assert distance(values, 0, 1) == pytest.approx((((4 / 9) ** 2 + (2 / 3) ** 2) / 2) ** 0.5)


def test_more_seats_that_gain_come_before_a_larger_product_of_fewer() -> None:
    table = np.array([[100.0, 1.0], [0.0, 0.5]])
    assert nash_point(table, np.zeros(2), np.ones(2), ALL[:2]) == 1


def test_equal_products_are_settled_by_the_weighted_sum_and_then_by_the_id() -> None:
    d, even = np.zeros(2), np.ones(2)
    assert nash_point(np.array([[2.0, 1.0], [2.0, 4.0]]), d, even, ALL[:2]) == 1
    assert nash_point(np.array([[1.0, 4.0], [4.0, 1.0]]), d, even, ALL[:2]) == 0
    shares = np.array([[5.0, 5.0, 10.0], [10.0, 6.0, 5.0]])
    assert kalai_smorodinsky_point(shares, d, even, ALL[:3]) == 0
    assert kalai_smorodinsky_point(shares, d, np.array([2.0, 1.0]), ALL[:3]) == 2


def test_a_weight_moves_the_nash_point() -> None:
    assert nash_point(HAND, np.zeros(2), np.array([9.0, 1.0]), ALL[:4]) == 0


def test_where_each_candidate_is_a_loss_to_somebody_there_is_no_bargain() -> None:
    d = np.array([7.0, 2.0])
    assert not rational(HAND, d, ALL[:4]).running.any()
    assert nash_point(HAND, d, np.ones(2), ALL[:4]) is None
    assert kalai_smorodinsky_point(HAND, d, np.ones(2), ALL[:4]) is None


def test_a_seat_that_cannot_gain_does_not_spoil_the_bargain() -> None:
    table = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert nash_point(table, np.zeros(2), np.ones(2), ALL[:2]) == 1
    assert kalai_smorodinsky_point(table, np.zeros(2), np.ones(2), ALL[:2]) == 1


@pytest.mark.parametrize("case", range(80))
def test_the_points_are_what_the_rooms_own_protocols_choose(case: int) -> None:
    seats, candidates = 1 + case % 5, 1 + case % 9
    table, d = drawn(case, seats, candidates), drawn(case + 1000, seats, 1)[:, 0] - 1.5
    weights = np.array([1.0, 0.5, 2.0, 1.0, 3.0][:seats])
    laid = context(table.tolist(), disagreement=d.tolist(), weights=weights.tolist())
    for name, point in (
        ("nash", nash_point),
        ("kalai_smorodinsky", kalai_smorodinsky_point),
    ):
        decision = settle(protocol(name).decide(laid))
        place = point(table, d, weights, ALL[:candidates])
        assert (place is not None) == decision.agreement, name
        if place is not None:
            assert laid.candidates[place].id == decision.chosen.id, name


@pytest.mark.parametrize("case", range(40))
def test_the_nash_point_has_the_largest_product_where_all_can_gain(case: int) -> None:
    table, d = drawn(case, 3, 8), np.full(3, -2.5)  # everything is a gain to everybody
    place = nash_point(table, d, np.ones(3), ALL[:8])
    products = np.prod(table - d[:, None], axis=0)
    assert place is not None
    assert products[place] == pytest.approx(products.max())


def test_jain_and_gini_know_the_even_and_the_one_sided_share() -> None:
    even, alone = np.array([0.4, 0.4, 0.4, 0.4]), np.array([0.0, 0.0, 0.7, 0.0])
    assert [jain(even), gini(even)] == pytest.approx([1.0, 0.0])
    assert [jain(alone), gini(alone)] == pytest.approx([0.25, 0.75])
    # (1 + 2 + 3)² / (3 · 14); |differences| sum to 8 over 2 · 3 · 6.
    steps = np.array([1.0, 2.0, 3.0])
    assert [jain(steps), gini(steps)] == pytest.approx([36 / 42, 8 / 36])


def test_nothing_for_everybody_is_even_and_less_than_nothing_counts_as_nothing() -> None:
    assert (jain(np.zeros(3)), gini(np.zeros(3))) == (1.0, 0.0)
    assert jain(np.array([1.0, -4.0])) == 0.5


@pytest.mark.parametrize("case", range(30))
def test_gini_is_what_the_sorted_form_gives(case: int) -> None:
    x = np.sort(drawn(case, 1, 2 + case % 7)[0] + 2.0)
    n, total = len(x), float(x.sum())
    if total == 0:
        return
    ranks = np.arange(1, n + 1)
    other = 2.0 * float((ranks * x).sum()) / (n * total) - (n + 1) / n
    assert gini(x) == pytest.approx(other, abs=1e-12)
    pairs = sum(abs(a - b) for a, b in itertools.product(x.tolist(), repeat=2))
    assert gini(x) == pytest.approx(pairs / (2 * n * n * (total / n)))


def test_the_shortfall_is_that_of_the_seat_furthest_from_its_own_best() -> None:
    values = np.array([[1.0, 0.5, 0.0], [0.2, 1.0, 0.1]])
    assert max_individual_shortfall(values, 0, ALL[:3]) == pytest.approx(0.8)
    assert max_individual_shortfall(values, 1, ALL[:3]) == pytest.approx(0.5)
    assert max_individual_shortfall(values, 0, np.array([True, False, True])) == pytest.approx(0.0)
