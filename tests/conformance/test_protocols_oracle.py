"""Our protocols against pref_voting, a library that shares no code with them.

Skipped where it is not installed: ``pip install .[dev-oracle]`` in an environment of its own (it
brings numba, which holds NumPy back).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from policies.protocols import protocol
from policies.records import Context, Decision
from policies.utility import round_significant
from tests.support.tables import context, settle
from world.noise import channel, uniforms

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pref_voting")
    from pref_voting.c1_methods import copeland
    from pref_voting.margin_based_methods import beat_path, ranked_pairs, ranked_pairs_zt
    from pref_voting.profiles import Profile
    from pref_voting.scoring_methods import borda, plurality
    from pref_voting.utility_methods import lexicographic_maximin, nash, sum_utilitarian
    from pref_voting.utility_profiles import UtilityProfile

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
PROFILES = 60


def decide(name: str, table: Context) -> Decision:
    return settle(protocol(name).decide(table))


def rankings(
    number: int, candidates: int, voters: int, heaviest: int = 9
) -> tuple[list[list[int]], list[int]]:
    """Linear orders over candidates, best first, and how many voters hold each."""
    draws = uniforms(7, np.arange(voters * candidates), channel("oracle.rankings"), number)
    orders = np.argsort(draws[0].reshape(voters, candidates), axis=1)
    return orders.tolist(), (1 + (draws[1][:voters] * heaviest).astype(int)).tolist()


def table_of(orders: list[list[int]], counts: list[int]) -> Context:
    """A room whose seats hold these rankings with these weights; ids sort like the numbers."""
    width = len(orders[0])
    rows = [[float(-order.index(place)) for place in range(width)] for order in orders]
    return context(rows, ids=[f"c{place}" for place in range(width)], weights=counts)


def winners(decision: Decision) -> set[int]:
    return {int(name[1:]) for name in decision.tie or (decision.chosen.id,)}


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("borda", borda), ("copeland", copeland), ("plurality", plurality), ("schulze", beat_path)],
)
@pytest.mark.parametrize("candidates", [3, 5, 8])
def test_the_winners_are_pref_votings(name: str, oracle: Any, candidates: int) -> None:
    tied = 0
    for number in range(PROFILES):
        orders, counts = rankings(number, candidates, 4)
        decision = decide(name, table_of(orders, counts))
        assert winners(decision) == set(oracle(Profile(orders, rcounts=counts)))
        tied += bool(decision.tie)
    assert tied < PROFILES


def test_ranked_pairs_are_zavist_and_tidemans_where_no_margins_tie() -> None:
    compared = 0
    for number in range(2 * PROFILES):
        orders, counts = rankings(number, 5, 9, heaviest=999)
        profile = Profile(orders, rcounts=counts)
        margins = [abs(profile.margin(a, b)) for a in range(5) for b in range(a)]
        if len(set(margins)) < len(margins) or 0 in margins:
            continue
        compared += 1
        decision = decide("ranked_pairs", table_of(orders, counts))
        assert winners(decision) == set(ranked_pairs_zt(profile))
    assert compared >= 20


def test_ranked_pairs_that_tie_elect_one_that_some_order_of_the_ties_elects() -> None:
    for number in range(PROFILES):
        orders, _ = rankings(number, 4, 4)
        decision = decide("ranked_pairs", table_of(orders, [1] * 4))
        assert int(decision.chosen.id[1:]) in ranked_pairs(Profile(orders))


def utilities(number: int, seats: int, candidates: int) -> list[list[float]]:
    draws = uniforms(9, np.arange(seats * candidates), channel("oracle.utilities"), number)
    rows: list[list[float]] = round_significant(draws[0].reshape(seats, candidates)).tolist()
    return rows


def profile_of(rows: list[list[float]]) -> Any:
    return UtilityProfile([dict(enumerate(row)) for row in rows])


def test_welfare_rules_are_pref_votings() -> None:
    for number in range(PROFILES):
        rows = utilities(number, 4, 8)
        # Every seat's range is 1, so that gains on its own range are plain utilities.
        whole = [[0.0, 1.0, *row] for row in rows]
        table = context(whole, ids=[f"c{place}" for place in range(10)])
        oracle = profile_of(whole)
        assert winners(decide("weighted_score", table)) == set(sum_utilitarian(oracle))
        assert winners(decide("leximin", table)) == set(lexicographic_maximin(oracle))


def test_the_nash_product_is_pref_votings_from_the_same_status_quo() -> None:
    deals = 0
    for number in range(PROFILES):
        rows = utilities(number, 3, 8)
        # Without sq= the library takes the first candidate for the status quo, silently.
        expected = set(nash(profile_of(rows), sq=7))
        table = context(
            rows, ids=[f"c{place}" for place in range(8)], disagreement=[row[7] for row in rows]
        )
        decision = decide("nash", table)
        if expected == {7}:  # nothing is better for everybody than the status quo
            assert not decision.agreement or 7 not in winners(decision)
        else:
            deals += 1
            assert winners(decision) == expected
    assert deals >= 20
