"""Each rule on tables that can be checked by hand."""

from __future__ import annotations

import math

from policies.protocols import protocol
from policies.records import Decision
from tests.support.tables import context, settle


def decide(name: str, *arguments: object, **options: object) -> Decision:
    return settle(protocol(name).decide(context(*arguments, **options)))  # type: ignore[arg-type]


def test_weighted_score_is_a_weighted_sum_of_raw_utilities() -> None:
    rows = [[1.0, 0.0], [0.0, 3.0]]
    assert decide("weighted_score", rows).chosen.id == "b"
    decision = decide("weighted_score", rows, weights=[4.0, 1.0])
    assert decision.chosen.id == "a"
    assert decision.scores == {"a": 4.0, "b": 3.0}


def test_plurality_counts_favourites_not_amounts() -> None:
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 99.0]]
    decision = decide("plurality", rows)
    assert decision.chosen.id == "a"
    assert decision.scores == {"a": 2.0, "b": 1.0}


def test_a_vote_counts_the_seats_weight() -> None:
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert decide("plurality", rows, weights=[1.0, 0.5, 2.0]).chosen.id == "b"


def test_plurality_can_elect_what_most_seats_like_least_when_votes_split() -> None:
    rows = [[3.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 1.0, 3.0], [0.0, 1.0, 3.0]]
    assert decide("plurality", rows).chosen.id == "c"


def test_an_abstaining_seat_does_not_vote() -> None:
    rows = [[0.0, 0.0], [0.0, 1.0]]
    assert decide("plurality", rows, abstaining=[0]).scores == {"a": 0.0, "b": 1.0}


def test_nash_takes_the_highest_product_of_gains() -> None:
    rows = [[1.0, 4.0, 3.0], [9.0, 2.0, 4.0]]
    decision = decide("nash", rows)
    assert decision.chosen.id == "c"  # products 9, 8, 12
    assert decision.scores["c"] == float(f"{math.log(12):.9g}")


def test_nash_measures_gains_from_the_disagreement() -> None:
    rows = [[1.0, 4.0, 3.0], [9.0, 2.0, 4.0]]
    decision = decide("nash", rows, disagreement=[0.9, 1.0])
    assert decision.chosen.id == "c"  # products .8, 3.1, 6.3
    decision = decide("nash", rows, disagreement=[0.0, 3.5])
    assert decision.chosen.id == "a"  # b is below the second seat's; 5.5 against 1.5
    assert decision.eliminated == {"b": "below the disagreement of s1"}


def test_nash_weighs_the_logarithms() -> None:
    rows = [[1.0, 4.0], [9.0, 2.0]]
    assert decide("nash", rows).chosen.id == "a"
    assert decide("nash", rows, weights=[2.0, 1.0]).chosen.id == "b"  # 9 against 32


def test_nash_first_wants_the_most_seats_to_gain() -> None:
    rows = [[100.0, 0.1], [0.0, 0.1]]
    decision = decide("nash", rows)
    assert decision.chosen.id == "b"
    assert decision.eliminated["a"] == "1 of 2 seats gain, not 2"


def test_nash_takes_a_gain_for_some_where_all_cannot_gain() -> None:
    decision = decide("nash", [[0.0, 2.0], [0.0, 0.0]])
    assert decision.chosen.id == "b"
    assert decision.agreement
    assert decision.eliminated["a"] == "nobody gains"


def test_a_gain_below_a_billionth_is_none() -> None:
    decision = decide("nash", [[1e-10, -1e-10]])
    assert not decision.agreement
    assert decide("nash", [[2e-9, -1e-10]]).agreement


def test_nash_does_not_listen_to_seats_that_abstain_or_weigh_nothing() -> None:
    rows = [[1.0, 2.0], [0.0, 0.0], [0.0, -5.0]]
    decision = decide("nash", rows, abstaining=[1], weights=[1.0, 1.0, 0.0])
    assert decision.chosen.id == "b"
    assert decision.agreement


def test_nash_does_not_depend_on_a_seats_scale() -> None:
    rows = [[1.0, 4.0, 3.0], [9.0, 2.0, 4.0]]
    scaled = [[1000.0 * value + 5.0 for value in rows[0]], rows[1]]
    assert (
        decide("nash", rows).chosen.id == decide("nash", scaled, disagreement=[5.0, 0.0]).chosen.id
    )
