"""The axioms of the Shapley value, and power indices against brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from orchestrator.study.influence.values import (
    coalitions_of,
    leave_one_out,
    orders,
    players_of,
    shapley,
    shapley_sampled,
    swings,
)
from world.errors import ConfigError

AMOUNTS = st.floats(-1000, 1000, allow_nan=False)


def games(least: int = 1, most: int = 7) -> st.SearchStrategy[NDArray[np.float64]]:
    """Games of some players with any values."""
    return st.integers(least, most).flatmap(
        lambda n: st.lists(AMOUNTS, min_size=1 << n, max_size=1 << n).map(np.array)
    )


def by_orders(game: NDArray[np.float64]) -> list[float]:
    """The Shapley value as it is told: the mean over all n! orders, in exact fractions."""
    n = players_of(game)
    values = [Fraction(value) for value in game.tolist()]
    total = [Fraction(0)] * n
    for order in itertools.permutations(range(n)):
        mask = 0
        for player in order:
            total[player] += values[mask | 1 << player] - values[mask]
            mask |= 1 << player
    return [float(part / math.factorial(n)) for part in total]


@given(games())
def test_shapley_values_share_out_exactly_what_the_full_room_is_worth_over_the_empty(
    game: NDArray[np.float64],
) -> None:
    assert math.isclose(math.fsum(shapley(game)), game[-1] - game[0], rel_tol=1e-9, abs_tol=1e-9)


@given(games(most=5))
def test_shapley_values_are_the_mean_over_all_orders_of_arrival(
    game: NDArray[np.float64],
) -> None:
    assert shapley(game) == pytest.approx(by_orders(game), abs=1e-9)


@given(games(least=2), st.data())
def test_players_that_add_the_same_to_every_coalition_get_the_same(
    game: NDArray[np.float64], data: st.DataObject
) -> None:
    n = players_of(game)
    a, b = data.draw(st.permutations(range(n)))[:2]
    swapped = [mask ^ (1 << a | 1 << b) if (mask >> a ^ mask >> b) & 1 else mask
               for mask in range(len(game))]  # fmt: skip
    symmetric = (game + game[swapped]) / 2
    values = shapley(symmetric)
    assert values[a] == pytest.approx(values[b], abs=1e-9)
    # Renaming two players renames their values.
    assert shapley(game[swapped])[a] == pytest.approx(shapley(game)[b], abs=1e-9)


@given(games(most=6), st.floats(-50, 50), st.data())
def test_a_player_that_adds_the_same_amount_to_every_coalition_gets_that_amount(
    game: NDArray[np.float64], amount: float, data: st.DataObject
) -> None:
    n = players_of(game)
    player = data.draw(st.integers(0, n - 1))
    bit = 1 << player
    dummy = np.array(
        [game[mask & ~bit] + (amount if mask & bit else 0.0) for mask in range(1 << n)]
    )
    assert shapley(dummy)[player] == pytest.approx(amount, abs=1e-9)
    assert leave_one_out(dummy)[player] == pytest.approx(amount, abs=1e-9)


@given(games(least=3, most=3), games(least=3, most=3), st.floats(-3, 3))
def test_the_values_of_a_sum_of_games_are_the_sums_of_their_values(
    one: NDArray[np.float64], other: NDArray[np.float64], times: float
) -> None:
    both = shapley(one + times * other)
    assert both == pytest.approx(shapley(one) + times * shapley(other), abs=1e-8)


@given(st.integers(1, 6).flatmap(
    lambda n: st.lists(st.sampled_from("abc"), min_size=1 << n, max_size=1 << n)
))  # fmt: skip
def test_swings_count_the_coalitions_whose_outcome_a_player_changes(outcomes: list[str]) -> None:
    n = players_of(outcomes)
    for player, index in enumerate(swings(outcomes).tolist()):
        others = [other for other in range(n) if other != player]
        changed = 0
        for size in range(n):
            for chosen in itertools.combinations(others, size):
                mask = sum(1 << member for member in chosen)
                changed += outcomes[mask] != outcomes[mask + (1 << player)]
        assert index == changed / 2 ** (n - 1)


def test_a_weighted_vote_of_four_has_its_textbook_banzhaf_indices() -> None:
    # [6; 4, 3, 2, 1]: the absolute index is critical coalitions over 2^3 = 5, 3, 3, 1 eighths.
    weights = (4, 3, 2, 1)
    passed = [sum(w for row, w in enumerate(weights) if mask >> row & 1) >= 6 for mask in range(16)]
    assert swings(passed).tolist() == [5 / 8, 3 / 8, 3 / 8, 1 / 8]


def test_the_glove_game_gives_the_scarce_glove_two_thirds() -> None:
    # One left glove (player 0), two right ones; a pair is worth 1.
    game = np.array([float(bool(mask & 1) and bool(mask & 6)) for mask in range(8)])
    assert shapley(game) == pytest.approx([2 / 3, 1 / 6, 1 / 6])
    assert leave_one_out(game).tolist() == [1.0, 0.0, 0.0]


@given(games(least=2, most=6), st.integers(0, 50))
def test_sampled_values_share_out_the_same_total_from_any_orders(
    game: NDArray[np.float64], seed: int
) -> None:
    n = players_of(game)
    found = shapley_sampled(lambda mask: float(game[mask]), n, orders(n, 6, seed))
    assert math.isclose(math.fsum(found.values), game[-1] - game[0], rel_tol=1e-9, abs_tol=1e-9)


def test_sampling_every_order_is_exact_and_an_additive_game_has_no_error() -> None:
    game = np.array([0.0, 3.0, 1.0, 9.0, 2.0, 4.0, 7.0, 20.0])
    everything = list(itertools.permutations(range(3)))
    found = shapley_sampled(lambda mask: float(game[mask]), 3, everything)
    assert found.values == pytest.approx(shapley(game), abs=1e-12)
    weights = [1.0, 2.0, 4.0, 8.0]
    additive = shapley_sampled(
        lambda mask: sum(w for row, w in enumerate(weights) if mask >> row & 1), 4, orders(4, 8, 3)
    )
    assert additive.values.tolist() == weights
    assert additive.errors.tolist() == [0.0] * 4


def test_sampled_values_close_in_on_the_exact_ones_within_their_errors() -> None:
    game = np.array([float(mask.bit_count() ** 2 + 3 * (mask & 5 == 5)) for mask in range(256)])
    found = shapley_sampled(lambda mask: float(game[mask]), 8, orders(8, 400, 1))
    assert np.all(np.abs(found.values - shapley(game)) < 5 * found.errors + 1e-9)
    assert found.errors.max() < 0.2


def test_orders_come_with_their_reverses_and_depend_on_the_seed_alone() -> None:
    chosen = orders(9, 10, 7)
    assert chosen == orders(9, 10, 7)
    assert chosen != orders(9, 10, 8)
    assert all(sorted(order) == list(range(9)) for order in chosen)
    assert all(a == tuple(reversed(b)) for a, b in zip(chosen[0::2], chosen[1::2], strict=True))
    assert {0, 511} <= coalitions_of(chosen)


def test_a_game_that_lacks_coalitions_is_refused() -> None:
    with pytest.raises(ConfigError, match="2\\^n"):
        shapley(np.zeros(6))
