"""The incident commander on tables that can be checked by hand."""

from __future__ import annotations

import dataclasses

import pytest

from policies.protocols import protocol
from policies.protocols.command import commander_of
from policies.records import Context, Decision
from tests.support.tables import context, history_of, observation, settle

# s0 and s1 like a best, s2 likes b; sums: a 10, b 9, c 3.
ROWS = [[5.0, 3.0, 1.0], [5.0, 1.0, 1.0], [0.0, 5.0, 1.0]]
SPLIT = [[5.0, 3.0, 1.0], [1.0, 3.0, 6.0], [0.0, 5.0, 1.0]]


def decide(table: Context) -> Decision:
    return settle(protocol("incident_commander").decide(table))


def in_crisis(rows: list[list[float]], **options: object) -> Context:
    seen = observation(facts={"crisis": True})
    return context(rows, history=history_of(seen), **options)  # type: ignore[arg-type]


def test_in_calm_a_majority_decides() -> None:
    decision = decide(context(ROWS))
    assert decision.agreement
    assert decision.chosen.id == "a"
    assert decision.reason == "a majority's favourite: s0 and s1"
    assert decision.overridden_from == ""


def test_half_of_the_weight_is_no_majority() -> None:
    table = context(ROWS, weights=[1.0, 1.0, 2.0])
    decision = decide(table)
    assert not decision.agreement
    assert decision.chosen.id == "b"  # s2 weighs most and commands


@pytest.mark.parametrize("commander", ["s0", "s1", "s2"])
def test_in_a_crisis_the_seat_with_the_power_commands(commander: str) -> None:
    table = dataclasses.replace(in_crisis(SPLIT), commander=commander)
    decision = decide(table)
    wish = {"s0": "a", "s1": "c", "s2": "b"}[commander]
    assert decision.chosen.id == wish
    assert not decision.agreement
    assert decision.no_deal == ""
    assert f"crisis: {commander} commands, from a shortlist of 3" in decision.reason
    # What the weighted sum would have done without a commander is kept.
    assert decision.overridden_from == ("" if wish == "b" else "b")
    assert decision.override_rule == ("" if wish == "b" else "commander")


def test_the_losers_objections_are_named() -> None:
    table = dataclasses.replace(in_crisis(SPLIT), commander="s1")
    text = decide(table).reason
    assert "s0 would rather have a (4 more)" in text
    assert "s2 would rather have b (4 more)" in text
    assert "s1 would rather" not in text


def test_a_visible_incident_is_a_crisis_too() -> None:
    seen = dataclasses.replace(observation(), incidents=("disk full on db1",))
    table = context(ROWS, history=history_of(seen), weights=[1.0, 1.0, 1.5])
    decision = decide(table)
    assert decision.chosen.id == "b"
    assert decision.reason.startswith("crisis: s2 commands")


def test_the_commander_chooses_from_the_five_highest_weighted_sums() -> None:
    rows = [[0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0], [9.0, 8.0, 7.0, 6.0, 5.0, -9.0, 4.0]]
    table = dataclasses.replace(in_crisis(rows, weights=[0.1, 1.0]), commander="s0")
    decision = decide(table)
    assert decision.chosen.id == "a"  # f, its favourite, is not on the list
    assert decision.eliminated == {"f": "not on the shortlist", "g": "not on the shortlist"}
    assert set(decision.scores) == {"a", "b", "c", "d", "e"}


def test_without_a_named_commander_the_heaviest_seat_commands_and_then_the_smaller_name() -> None:
    assert commander_of(context(ROWS, weights=[1.0, 2.0, 2.0])) == 1
    assert commander_of(context(ROWS, seats=["zoe", "amy", "bob"])) == 1
    assert commander_of(context(ROWS, weights=[0.0, 2.0, 2.0], abstaining=[1])) == 2


def test_a_commander_without_weight_commands_and_one_that_abstains_does_not() -> None:
    table = dataclasses.replace(in_crisis(SPLIT, weights=[1.0, 0.0, 1.0]), commander="s1")
    assert decide(table).chosen.id == "c"
    away = dataclasses.replace(
        in_crisis(SPLIT, weights=[1.0, 0.0, 2.0], abstaining=[1]), commander="s1"
    )
    assert decide(away).chosen.id == "b"


def test_a_commander_cannot_override_a_veto() -> None:
    table = dataclasses.replace(in_crisis(SPLIT, vetoes={0: {"c": "no"}}), commander="s1")
    decision = decide(table)
    assert decision.chosen.id == "b"
    assert "c" in decision.eliminated
