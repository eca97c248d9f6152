"""Kalai-Smorodinsky and leximin on tables that can be checked by hand, pitfalls included."""

from __future__ import annotations

import numpy as np

from policies.protocols import protocol
from policies.protocols.common import leximin
from policies.records import Decision
from tests.support.tables import context, settle


def decide(name: str, *arguments: object, **options: object) -> Decision:
    return settle(protocol(name).decide(context(*arguments, **options)))  # type: ignore[arg-type]


def test_kalai_smorodinsky_gives_everybody_a_like_share_of_its_ideal() -> None:
    rows = [[10.0, 6.0, 1.0], [1.0, 3.0, 4.0]]
    decision = decide("kalai_smorodinsky", rows)
    assert decision.chosen.id == "b"  # shares .6 and .75; a .25; c .1
    assert decision.scores == {"a": 0.25, "b": 0.6, "c": 0.1}
    assert decision.reason == "every seat gets at least 0.6 of its ideal gain (s0 least)"


def test_what_is_irrational_to_somebody_does_not_move_the_ideals() -> None:
    rows = [[10.0, 6.0, 1.0, 1000.0], [1.0, 3.0, 4.0, -1.0]]
    decision = decide("kalai_smorodinsky", rows)
    assert decision.chosen.id == "b"
    assert decision.scores["b"] == 0.6
    assert decision.eliminated == {"d": "below the disagreement of s1"}


def test_a_seat_that_can_gain_nothing_has_all_of_it() -> None:
    decision = decide("kalai_smorodinsky", [[1.0, 2.0], [0.0, 0.0]])
    assert decision.chosen.id == "b"
    assert decision.scores == {"a": 0.5, "b": 1.0}


def test_equal_smallest_shares_are_settled_by_the_next() -> None:
    rows = [[5.0, 5.0, 10.0], [10.0, 6.0, 5.0], [0.0, 0.0, 0.0]]
    decision = decide("kalai_smorodinsky", rows)
    assert decision.tie == ("a", "c")  # shares ½ and 1 both
    assert decision.chosen.id == "a"
    assert decide("kalai_smorodinsky", [rows[0], [10.0, 6.0, 4.0]]).chosen.id == "a"


def test_a_bargain_without_room_is_no_deal_and_names_who_would_lose() -> None:
    decision = decide("kalai_smorodinsky", [[5.0, -1.0], [-1.0, 2.0]])
    assert not decision.agreement
    assert decision.protocol == "weighted_score"
    assert "s0 would be worse off in 1 of 2; s1 would be worse off in 1 of 2" in decision.reason
    assert not decide("kalai_smorodinsky", [[0.0, 0.0]]).agreement


def test_leximin_looks_at_the_worst_off_first_on_each_seats_own_range() -> None:
    rows = [[0.0, 60.0, 100.0], [1.0, 0.5, 0.0]]
    decision = decide("leximin", rows)
    assert decision.chosen.id == "b"
    assert decision.scores == {"a": 0.0, "b": 0.5, "c": 0.0}
    assert decision.reason == "the worst off, s1, gains 0.5 of its range"


def test_leximin_measures_gains_from_the_disagreement() -> None:
    rows = [[0.0, 60.0, 100.0], [1.0, 0.5, 0.0]]
    decision = decide("leximin", rows, disagreement=[90.0, 0.0])
    assert decision.chosen.id == "c"  # s0 gains .1 there and loses everywhere else
    assert decision.scores == {"a": -0.9, "b": -0.3, "c": 0.0}


def test_leximin_decides_where_every_bargain_fails() -> None:
    decision = decide("leximin", [[5.0, -1.0], [-1.0, 2.0]], disagreement=[9.0, 9.0])
    assert decision.agreement


def test_one_seat_that_nothing_can_please_decides_alone_under_leximin() -> None:
    rows = [[0.0, 0.1], [9.0, 0.0], [9.0, 0.0], [9.0, 0.0]]
    decision = decide("leximin", rows, disagreement=[5.0, 0.0, 0.0, 0.0])
    assert decision.chosen.id == "b"
    assert decide("weighted_score", rows).chosen.id == "a"


def test_an_indifferent_seat_has_no_part_in_leximin() -> None:
    decision = decide("leximin", [[5.0, 5.0], [0.0, 1.0]], disagreement=[100.0, 0.0])
    assert decision.chosen.id == "b"


def test_leximin_does_not_listen_to_seats_that_abstain_or_weigh_nothing() -> None:
    rows = [[1.0, 2.0], [9.0, 0.0], [9.0, 0.0]]
    decision = decide("leximin", rows, weights=[1.0, 0.0, 1.0], abstaining=[2])
    assert decision.chosen.id == "b"


def test_a_level_decides_only_among_equals_on_the_levels_before() -> None:
    values = np.array([[1.0, 0.0, 1.0], [2.0, 9.0, 3.0]])
    everybody = np.ones(3, dtype=np.bool_)
    assert leximin(values, everybody).tolist() == [False, False, True]
    assert leximin(values, np.array([True, True, False])).tolist() == [True, False, False]
    nearly = np.array([[1.0, 1.0 + 9e-10, 1.0], [2.0, 2.0, 2.0]])
    assert leximin(nearly, everybody).all()
