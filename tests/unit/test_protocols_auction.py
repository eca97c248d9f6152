"""VCG on tables that can be checked by hand, and its credits across an episode."""

from __future__ import annotations

import dataclasses

import pytest

from policies.protocols import protocol
from policies.protocols.auction import CREDITS_PER_STEP, VCG
from policies.records import Context, Decision
from tests.support.tables import context, settle

BUDGET = CREDITS_PER_STEP * 30  # the stub scenario's horizon


def decide(table: Context) -> Decision:
    return settle(protocol("vcg").decide(table))


def scaled(factor: float, rows: list[list[float]]) -> list[list[float]]:
    return [[factor * value for value in row] for row in rows]


def test_who_changes_the_outcome_pays_what_the_others_lose() -> None:
    # Without s0: b (0.3 against 0.1). With it: a (0.6 against 0.4). The others lose 0.2.
    table = context([[0.5, 0.1], [0.1, 0.3]])
    decision = decide(table)
    assert decision.chosen.id == "a"
    assert decision.payments == {"s0": 0.2}
    assert decision.reason == "highest weighted score 0.6; s0 pays 0.2"


def test_a_seat_that_changes_nothing_pays_nothing() -> None:
    decision = decide(context([[0.5, 0.1], [0.5, 0.1], [0.1, 0.3]]))
    assert decision.payments == {}
    assert "nobody pays" in decision.reason
    alone = decide(context([[0.5, 0.1]]))
    assert (alone.chosen.id, alone.payments) == ("a", {})


def test_prices_are_in_the_units_of_the_seat_that_pays() -> None:
    # s0 weighs 2: the others' loss of 0.2 costs it half as much.
    table = context([[0.5, 0.1], [0.1, 0.3]], weights=[2.0, 1.0])
    assert decide(table).payments == {"s0": 0.1}


def test_credits_that_were_paid_are_gone() -> None:
    table = context([[0.5, 0.1], [0.1, 0.3]])
    assert VCG().credits_left(table, (0, 1)) == [BUDGET, BUDGET]
    later = dataclasses.replace(table, paid={"s0": 0.4})
    assert VCG().credits_left(later, (0, 1)) == [BUDGET - 0.4, BUDGET]
    overdrawn = dataclasses.replace(table, paid={"s0": 99.0})
    assert VCG().credits_left(overdrawn, (0, 1)) == [0.0, BUDGET]


def test_who_cannot_pay_has_its_range_scaled_to_what_is_left_and_the_decision_says_so() -> None:
    table = context([[0.5, 0.1], [0.1, 0.3]])
    poor = dataclasses.replace(table, paid={"s0": BUDGET - 0.1})
    decision = decide(poor)
    # Its range of 0.4 counts as 0.1, so that b wins: 0.1 + 0.3 against 0.2 + 0.1.
    assert decision.chosen.id == "b"
    assert decision.scores == {"a": 0.3, "b": 0.4}
    assert "not truthful: s0 has 0.1 credits left, its stated range of 0.4" in decision.reason
    assert (decision.overridden_from, decision.override_rule) == ("a", "influence_credits")
    assert decision.payments == {"s1": 0.1}  # now it is s1 that changes the outcome


def test_a_seat_wins_what_it_can_just_pay_for() -> None:
    table = context([[1.5, 0.0], [0.0, 1.0], [0.3, 0.0]])  # a costs s0 0.7
    enough = decide(dataclasses.replace(table, paid={"s0": BUDGET - 0.7}))
    assert enough.chosen.id == "a"
    assert enough.payments == {"s0": 0.7}
    short = decide(dataclasses.replace(table, paid={"s0": BUDGET - 0.69}))
    assert short.chosen.id == "b"  # 1.5 counts as 0.69; 0.99 is less than 1
    assert short.payments == {"s1": 0.99}


def test_when_two_cannot_pay_both_are_scaled() -> None:
    table = context([[3.0, 0.0], [0.0, 2.0], [0.6, 0.0]])
    decision = decide(dataclasses.replace(table, paid={"s0": BUDGET - 1.35, "s1": BUDGET - 1.5}))
    # s0 should pay 1.4 and has 1.35; then s1 should pay 1.95 and has 1.5. Sums: 1.95 and 1.5.
    assert decision.chosen.id == "a"
    assert decision.payments == {"s0": 0.9, "s2": 0.15}
    assert decision.reason.count("not truthful") == 2
    assert decision.overridden_from == ""


def test_without_credits_a_seat_is_heard_only_where_it_costs_nobody_anything() -> None:
    agreeing = context([[0.5, 0.1], [0.3, 0.1]])
    broke = dataclasses.replace(agreeing, paid={"s0": 99.0, "s1": 99.0})
    decision = decide(broke)
    assert decision.chosen.id == "a"
    assert "not truthful" not in decision.reason
    opposed = dataclasses.replace(context([[0.5, 0.1], [0.1, 0.3]]), paid={"s0": 99.0})
    assert decide(opposed).chosen.id == "b"


def test_seats_that_abstain_or_weigh_nothing_neither_count_nor_pay() -> None:
    rows = [[0.0, 0.2], [9.0, 0.0], [9.0, 0.0]]
    decision = decide(context(rows, weights=[1.0, 0.0, 1.0], abstaining=[2]))
    assert decision.payments == {}
    assert decision.reason.startswith("highest weighted score")


def test_two_that_collude_can_both_gain() -> None:
    # Honest: c wins. If both overstate a, a wins and neither alone changes it: nobody pays.
    honest = [[0.5, 0.0], [0.5, 0.0], [0.0, 1.2]]
    assert decide(context(honest)).chosen.id == "b"
    together = decide(context([[9.0, 0.0], [9.0, 0.0], honest[2]]))
    assert together.chosen.id == "a"
    assert together.payments == {}


def test_the_budget_is_that_of_the_episode() -> None:
    class Tight(VCG):
        credits_per_step = 0.001

    table = context([[0.5, 0.1], [0.1, 0.3]])
    decision = settle(Tight().decide(table))
    assert decision.chosen.id == "b"
    assert "not truthful" in decision.reason
    assert decide(table).payments["s0"] == pytest.approx(0.2)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_prices_scale_with_utilities(factor: float) -> None:
    table = context(scaled(factor, [[0.5, 0.1, 0.0], [0.1, 0.3, 0.2], [0.0, 0.1, 0.2]]))
    decision = decide(table)
    # Sums .6 .5 .4; others of s0: .1 .4 .4 → .3; of s1: .5 .2 .2 → 0; of s2: .6 .4 .2 → 0.
    assert decision.payments == {"s0": pytest.approx(0.3 * factor)}


def test_an_indifferent_seat_never_pays_however_large_the_numbers_of_others() -> None:
    rows = [[7.0, 7.0, 7.0], [1e12 + 400.0, 1e12, 5.0], [3.0, 4e11, 1e12]]
    table = context(rows, weights=[0.001, 1.0, 1.0])
    for paid in ({}, {"s0": 99.0, "s1": 99.0, "s2": 99.0}):
        decision = decide(dataclasses.replace(table, paid=paid))
        assert "s0" not in decision.payments
