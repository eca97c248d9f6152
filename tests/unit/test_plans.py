"""Plans of two steps: which stand, who brings them, and that only their first step is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies.plans import PLANS_A_SEAT, chosen_pairs, pairs
from policies.records import Candidate
from policies.table import Table, lay_table
from tests.support.rooms import room
from tests.support.runs import play
from world.actions import Action
from world.model import History

PLAIN = ("migrate_region", "optimize_energy", "scale_down", "scale_up")


def laid(scenario: str = "cloudedge/hard", until_crisis: bool = False, **spec: Any) -> Table:
    """The table of the first step, or of the first step after a crisis was announced."""
    made = room(scenario=scenario, samples=2, **spec)
    world, seed = made.world, made.spec.seed
    state, history = world.reset(made.scenario, [seed]), History(made.scenario)
    history.observations.append(world.observe(state))
    while until_crisis and not history.now.facts["crisis"]:
        joint = (Action(PLAIN[history.now.step % 4]),)
        state, _, _ = world.step(state, joint)
        history.decisions.append(joint)
        history.observations.append(world.observe(state))
    return lay_table(world, history, seed, made.seats, {}, made.rules)


def ids(table: Table) -> list[str]:
    return [candidate.id for candidate in table.context.candidates]


def test_a_small_world_puts_every_action_and_every_plan_of_two_on_the_table() -> None:
    want = [*PLAIN, *(f"{one}>{two}" for one in PLAIN for two in PLAIN)]
    assert sorted(ids(laid())) == sorted(want)


def test_every_candidate_is_projected_and_valued_by_every_seat() -> None:
    table = laid()
    assert np.isfinite(table.projected).all()
    assert np.isfinite(table.context.utilities).all()
    # A plan is not its first step: what follows it changes what it is worth.
    place = {name: column for column, name in enumerate(ids(table))}
    for first in PLAIN:
        values = {
            float(table.context.utilities[0, place[name]])
            for name in place
            if name.startswith(first)
        }
        assert len(values) >= 4


@pytest.mark.parametrize("spec", [{"plan_steps": 1}, {"lookahead_steps": 1}])
def test_plans_need_two_steps_of_sight_and_a_room_that_wants_them(spec: dict[str, Any]) -> None:
    assert ids(laid(**spec)) == list(PLAIN)


def test_a_world_without_plans_has_none_whatever_the_room_wants() -> None:
    assert not any(">" in name for name in ids(laid("finops/right_sizing", plan_steps=2)))


def test_what_the_world_demands_is_the_only_candidate_and_no_plan_follows_it() -> None:
    table = laid("cloudedge/seed/hard", until_crisis=True)
    assert table.mandatory
    assert len(table.context.candidates) == 1


def test_only_the_first_step_of_a_plan_is_done() -> None:
    played = play(room(scenario="cloudedge/hard", steps=6, samples=2))
    chosen = [event["data"]["chosen"] for event in played.of("decision")]
    actions = [event["data"]["action"] for event in played.of("decision")]
    assert any(">" in name for name in chosen)
    assert [name.split(">")[0] for name in chosen] == actions
    done = [event["data"]["actions"][0]["id"] for event in played.of("applied")]
    assert done == actions


def test_where_plans_outnumber_places_each_seat_brings_its_best_and_the_rest_is_counted() -> None:
    table = laid(until_crisis=True)
    candidates = table.context.candidates
    singles = [c for c in candidates if not c.then]
    plans = [c for c in candidates if c.then]
    assert len(singles) == 14  # four plain kinds, ten responses
    assert len(plans) == PLANS_A_SEAT * 4
    assert table.dropped_count == 14 * 4 - len(plans)
    assert len(table.dropped) == min(table.dropped_count, 64)
    assert set(table.dropped).isdisjoint(c.id for c in candidates)


def test_a_plan_holds_no_crisis_response_in_its_second_step() -> None:
    for candidate in laid(until_crisis=True).context.candidates:
        assert all(step[0].kind in PLAIN for step in candidate.then)


def test_seats_take_turns_over_plans() -> None:
    firsts = [Candidate((Action(name),)) for name in "abcdef"]
    seconds = [Action(name) for name in "abcdef"]
    values = np.array([[9.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 5.0, 6.0]])
    found = chosen_pairs(firsts, seconds, values, 4)
    # Each seat's two best in turn; of what is equal the earlier one.
    assert [c.id for c in found.candidates] == ["a>a", "f>f", "a>b", "e>f"]
    assert found.dropped_count == 36 - 4
    nothing = chosen_pairs(firsts, seconds, values, 0)
    assert nothing.candidates == ()
    assert nothing.dropped_count == 36


def test_a_second_step_that_is_no_candidate_now_promises_no_more_than_the_worst() -> None:
    firsts = [Candidate((Action("a"),)), Candidate((Action("b"),))]
    found = chosen_pairs(firsts, [Action("b"), Action("z")], np.array([[1.0, 3.0]]), 2)
    assert [c.id for c in found.candidates] == ["b>b", "a>b"]


def test_plans_are_not_made_of_plans() -> None:
    plan = Candidate((Action("a"),), ((Action("b"),),))
    assert pairs([plan], [Action("a")]) == []
