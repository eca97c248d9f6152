"""Power over single decisions: removal, Banzhaf, lies and conformance, against hand-made tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.study.influence.conformance import (
    CONVENTIONS,
    Convention,
    Tally,
    count,
    poisson_binomial_tail,
)
from orchestrator.study.influence.manipulation import liar_gains, with_lie
from orchestrator.study.influence.pivotality import (
    decided,
    is_mandatory,
    muted,
    outcome,
    power,
    without,
)
from policies.candidates import MANDATORY
from policies.protocols import protocol
from policies.protocols.guard import guarded
from policies.records import Ask, Candidate, Context, Proposal, Reply
from tests.support.tables import context, settle
from world.actions import Action

ONE_SHOT = (
    "approval",
    "borda",
    "copeland",
    "kalai_smorodinsky",
    "leximin",
    "nash",
    "plurality",
    "ranked_pairs",
    "schulze",
    "vcg",
    "weighted_score",
)


def nobody(asks: tuple[Ask, ...], table: Context) -> Mapping[str, Reply]:
    """One-shot rules ask nobody."""
    raise AssertionError(f"{asks} asked over {len(table.candidates)} candidates")


def removed(table: Context, out: Sequence[str]) -> Context:
    """The table with the rows of some seats cut out."""
    rows = [row for row, seat in enumerate(table.seats) if seat not in out]
    ballots = tuple(table.ballots[row] for row in rows)
    vetoed = {name for ballot in ballots for name in ballot.vetoes}
    return replace(
        table,
        seats=tuple(table.seats[row] for row in rows),
        weights=table.weights[rows],
        utilities=table.utilities[rows],
        disagreement=table.disagreement[rows],
        ballots=ballots,
        admissible=np.array([c.feasible and c.id not in vetoed for c in table.candidates]),
    )


TABLES = st.builds(
    lambda rows, weights, veto: context(
        rows,
        weights=weights,
        disagreement=[0.0, 0.1, -0.1],
        vetoes={0: {veto: "no"}},
        ids=("a", "b", "c", "nop"),
    ),
    st.lists(
        st.lists(st.integers(-4, 4).map(float), min_size=4, max_size=4), min_size=3, max_size=3
    ),
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=3, max_size=3),
    st.sampled_from(["a", "b"]),
)


@pytest.mark.parametrize("name", ONE_SHOT)
@given(table=TABLES, out=st.sets(st.sampled_from(["s0", "s1", "s2"]), max_size=2))
def test_a_seat_without_a_say_is_as_good_as_gone(name: str, table: Context, out: set[str]) -> None:
    rule = protocol(name)
    mute = decided(rule, muted(table, out), nobody)
    gone = settle(guarded(rule, removed(table, tuple(out))))
    assert outcome(mute) == outcome(gone)
    assert mute.agreement == gone.agreement


def test_removal_takes_vetoes_weights_votes_and_powers_but_leaves_the_options() -> None:
    table = replace(
        context(
            [[0, 1], [1, 0]],
            vetoes={0: {"a": "no"}},
            proposals={"s0": (Proposal((Action("b"),)),), "s1": (Proposal((Action("a"),)),)},
        ),
        commander="s0",
        mediator="s1",
    )
    mute = muted(table, ["s0"])
    assert mute.candidates == table.candidates
    assert table.admissible.tolist() == [False, True]
    assert mute.admissible.tolist() == [True, True]
    assert mute.weights.tolist() == [0.0, 1.0]
    assert list(mute.proposals) == ["s1"]
    assert (mute.commander, mute.mediator) == ("", "s1")
    assert table.weights.tolist() == [1.0, 1.0]


def test_without_anybody_the_no_deal_rule_decides() -> None:
    names = ("a", "nop")
    table = context([[5, 0], [4, 0]], ids=names, no_deal="nop")
    everybody = without(protocol("weighted_score"), table, (), nobody)
    nobody_left = without(protocol("weighted_score"), table, table.seats, nobody)
    assert (outcome(everybody), outcome(nobody_left)) == ("a", "nop")
    assert nobody_left.no_deal == "nop"


def test_what_the_world_demands_nobody_can_change() -> None:
    demanded = Candidate((Action("crisis"),), origin=(MANDATORY,))
    table = context([[1.0], [2.0]], candidates=[demanded])
    assert is_mandatory(table)
    found = power(protocol("weighted_score"), table, nobody)
    assert found.pivotal == frozenset()
    assert set(found.banzhaf.values()) == {0.0}
    honest = decided(protocol("weighted_score"), table, nobody)
    assert liar_gains(protocol("weighted_score"), table, honest, "s0", nobody) == 0


def test_a_plurality_of_three_has_the_pivots_that_can_be_counted_by_hand() -> None:
    # s0 and s1 want a, s2 wants b. a wins 2:1. Without s0 it is 1:1 and b has the higher sum.
    table = context([[1, 0], [1, 0], [0, 3]], ids=("a", "b"))
    found = power(protocol("plurality"), table, nobody)
    assert outcome(found.decision) == "a"
    assert found.pivotal == {"s0", "s1"}
    # Outcomes: {} a (smallest id), 0 a, 1 a, 01 a, 2 b, 02 b, 12 b, 012 a.
    assert found.banzhaf == {"s0": 1 / 4, "s1": 1 / 4, "s2": 3 / 4}


@given(table=TABLES)
def test_banzhaf_indices_agree_with_playing_every_coalition_on_a_cut_table(table: Context) -> None:
    rule = protocol("borda")
    found = power(rule, table, nobody)
    kept = {}
    for size in range(4):
        for chosen in itertools.combinations(table.seats, size):
            out = tuple(seat for seat in table.seats if seat not in chosen)
            kept[frozenset(chosen)] = (
                outcome(settle(guarded(rule, removed(table, out))))
                if chosen
                else outcome(without(rule, table, table.seats, nobody))
            )
    for seat in table.seats:
        groups = [group for group in kept if seat not in group]
        index = sum(kept[group | {seat}] != kept[group] for group in groups) / 4
        assert found.banzhaf[seat] == index
        assert (seat in found.pivotal) == (
            kept[frozenset(table.seats)] != kept[frozenset(table.seats) - {seat}]
        )


def test_a_room_of_nine_gets_sampled_indices_between_a_dictator_and_a_bystander() -> None:
    table = context([[3.0, 0.0], *[[0.0, 1.0]] * 8], weights=[100.0, *[0.01] * 7, 0.0])
    found = power(protocol("weighted_score"), table, nobody)
    assert found.banzhaf["s0"] > 0.9
    assert found.banzhaf["s8"] == 0.0
    assert all(0 <= index <= 1 for index in found.banzhaf.values())
    assert power(protocol("weighted_score"), table, nobody) == found


# --- lies ---------------------------------------------------------------------------------------


def gains(name: str, table: Context) -> dict[str, float]:
    """What the best crude lie of each seat is found to bring."""
    rule = protocol(name)
    honest = decided(rule, table, nobody)
    return {seat: liar_gains(rule, table, honest, seat, nobody) for seat in table.seats}


def test_a_voter_for_a_hopeless_option_gains_by_voting_for_the_lesser_evil() -> None:
    # Plurality: a 2, b 2 and c 1 with a ahead on the sum; the c voter likes b better than a.
    rows = [[9, 0, 0], [9, 0, 0], [0, 5, 0], [0, 5, 0], [0, 2, 3]]
    found = gains("plurality", context(rows))
    assert found == {"s0": 0, "s1": 0, "s2": 0, "s3": 0, "s4": 2.0}


def test_exaggeration_gains_under_the_weighted_score_and_not_for_who_already_wins() -> None:
    found = gains("weighted_score", context([[4, 3, 0], [0, 2, 1]]))
    # Sums 4, 5, 1: b wins. s0 would rather have a: it says 4, 0, 0; then 4, 2, 1.
    assert found == {"s0": 1.0, "s1": 0}


@given(table=TABLES)
def test_no_lie_gains_under_vcg_once_what_it_costs_is_counted(table: Context) -> None:
    # On this scale nobody runs out of credits.
    affordable = replace(
        table,
        utilities=table.utilities / 4,
        ballots=tuple(replace(b, utilities=b.utilities / 4) for b in table.ballots),
    )
    assert set(gains("vcg", affordable).values()) == {0}


@given(table=TABLES)
def test_a_dictator_never_gains_by_a_lie_nor_do_those_who_have_no_say(table: Context) -> None:
    alone = muted(table, ["s1", "s2"])
    assert set(gains("plurality", alone).values()) == {0}


def test_a_lie_stays_on_the_liars_own_scale_and_leaves_all_else_alone() -> None:
    table = context([[4.0, 3.0, 0.0, 9.0], [0.0, 2.0, 1.0, 5.0]], vetoes={1: {"d": "no"}})
    told = with_lie(table, "s0", 0, 1)
    # d is vetoed: the range is that of what can be chosen.
    assert told.utilities[0].tolist() == pytest.approx([4.0, 0.0, 4e-6, 4e-6])
    assert told.utilities[1].tolist() == table.utilities[1].tolist()
    assert told.proposals["s0"][0].actions == table.candidates[0].now
    assert table.utilities[0].tolist() == [4.0, 3.0, 0.0, 9.0]


# --- conformance --------------------------------------------------------------------------------


def tallies(decisions: Sequence[tuple[str, Mapping[str, str]]]) -> dict[tuple[str, Any], Tally]:
    """Count some decisions: what was done, and who proposed what."""
    seats = {seat for _, proposals in decisions for seat in proposals}
    kept: dict[tuple[str, Convention], Tally] = {
        (s, c): Tally() for s in seats for c in CONVENTIONS
    }
    for chosen, proposals in decisions:
        count(kept, chosen, proposals)
    return kept


def test_conformance_is_what_was_done_above_what_a_random_ballot_would_do() -> None:
    kept = tallies(
        [
            ("a", {"x": "a", "y": "b", "z": "b"}),
            ("a", {"x": "a", "y": "a", "z": "a"}),
            ("c", {"x": "a", "y": "b"}),
        ]
    )
    x, y = kept["x", "exact"], kept["y", "exact"]
    assert (x.proposed, x.conform, x.contested, x.alone) == (3, 2, 2, 1)
    assert x.chances == [1 / 3, 1.0, 1 / 2]
    assert x.share == 2 / 3
    assert x.excess == pytest.approx(2 / 3 - (1 / 3 + 1 + 1 / 2) / 3)
    assert y.conform == 1
    assert y.expected == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)


def test_a_composite_counts_for_those_whose_proposal_it_contains_and_alone_for_none_of_them() -> (
    None
):
    kept = tallies([("a+b", {"x": "a", "y": "b", "z": "c"})])
    assert [kept[s, "exact"].conform for s in "xyz"] == [0, 0, 0]
    assert [kept[s, "contained"].conform for s in "xyz"] == [1, 1, 0]
    assert [kept[s, "contained"].alone for s in "xyz"] == [0, 0, 0]


def test_the_tail_of_unequal_chances_is_that_of_enumeration() -> None:
    chances = [0.1, 0.5, 0.75, 1.0, 0.0]
    for least in range(7):
        exact = 0.0
        for hits in itertools.product([0, 1], repeat=5):
            if sum(hits) >= least:
                exact += float(
                    np.prod([p if hit else 1 - p for p, hit in zip(chances, hits, strict=True)])
                )
        assert poisson_binomial_tail(chances, least) == pytest.approx(exact, abs=1e-12)


def test_an_alarm_needs_most_contested_decisions_and_more_than_luck() -> None:
    split = {"x": "a", "y": "b", "z": "c"}
    often = tallies([("a", split)] * 12)
    assert often["x", "exact"].dictates(3)
    assert not often["y", "exact"].dictates(3)
    assert not tallies([("a", split)] * 2)["x", "exact"].dictates(3)
    assert not tallies([("a", split), ("b", split)] * 12)["x", "exact"].dictates(3)
    # Everybody agrees: nothing is contested, nobody dictates.
    assert not tallies([("a", {"x": "a", "y": "a"})] * 30)["x", "exact"].dictates(2)
    # Composites that hold everybody's wish dictate for nobody.
    everything = tallies([("a+b+c", split)] * 30)
    assert not any(tally.dictates(3) for tally in everything.values())
