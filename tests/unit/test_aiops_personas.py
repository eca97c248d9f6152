"""The four seats around an incident, and what the default room makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents.persona import load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from policies.records import Proposal, Reply
from tests.support.aiops import SEATS, native, original, persona_plays, room_plays, stepped
from tests.support.asks import request_of
from world.actions import Action
from world.model import Observation, World
from world.worlds.aiops.events import EVENT_CODE, EVENTS
from world.worlds.aiops.menu import REMEDIES, phase_of

EVENT_NAMES = [event.name for event in EVENTS]


def ask(world: World[Any], scenario: Any, seen: Observation, seat: str) -> tuple[Proposal, ...]:
    request = request_of(world, scenario, [seen], seat=seat)
    reply = make_persona(load_persona(seat), seat).answer(request)
    assert isinstance(reply, Reply)
    assert reply == make_persona(load_persona(seat), seat).answer(request)
    return validated_reply(request, reply).proposals


def first(proposals: tuple[Proposal, ...]) -> str:
    return proposals[0].actions[0].kind


def leading(seen: Observation) -> tuple[str, float]:
    known: dict[str, float] = seen.facts["remedy_probabilities"]
    return max(known.items(), key=lambda pair: pair[1])


@pytest.mark.parametrize("seat", SEATS)
def test_no_seat_ever_proposes_what_the_world_calls_a_hazard(seat: str) -> None:
    world = native("anomaly_detection_monitoring")
    for seed in range(40):
        state = world.reset(world.scenario, [seed])
        for kind in ("analyze_system_state", "nop"):
            seen = world.observe(state)
            for proposal in ask(world, world.scenario, seen, seat):
                assert world.hazards(seen, proposal.actions[0]) == ()
                assert world.check(seen, proposal.actions[0]) is None
            if state.over[0]:
                break
            state = stepped(world, state, kind)


def test_the_janitor_asks_while_there_is_doubt_and_then_names_the_remedy() -> None:
    world = native("anomaly_detection_monitoring")
    asked = named = 0
    for seed in range(60):
        seen = world.observe(world.reset(world.scenario, [seed]))
        kind, sure = leading(seen)
        found = first(ask(world, world.scenario, seen, "janitor"))
        if sure < 0.95 or world.hazards(seen, Action(kind)):
            assert phase_of(found) in ("detection", "classification", "decision")
            asked += 1
        else:
            assert found == kind
            named += 1
    assert asked > 10
    assert named > 3


def test_resource_acts_on_less_certainty_than_the_others() -> None:
    world = native("anomaly_detection_monitoring")
    acted = dict.fromkeys(SEATS, 0)
    for seed in range(120):
        seen = world.observe(world.reset(world.scenario, [seed]))
        for seat in SEATS:
            acted[seat] += first(ask(world, world.scenario, seen, seat)) in REMEDIES
    assert acted["resource"] > acted["cost"] > acted["janitor"] > 0


def test_after_the_cure_resource_stabilises_and_cost_pays_for_nothing() -> None:
    world = native("event/database_connection_failed", disturbance_fraction=0.0)
    seen_once = 0
    for seed in range(30):
        state = stepped(world, world.reset(world.scenario, [seed]), "restart_service")
        seen = world.observe(state)
        sure = seen.facts["remedy_probabilities"]["restart_service"]
        if state.over[0] or not state.worked[0] or sure < 0.8:
            continue
        seen_once += 1
        assert first(ask(world, world.scenario, seen, "resource")) == "stabilize_system"
        assert first(ask(world, world.scenario, seen, "cost")) == "nop"
    assert seen_once > 5


@pytest.mark.parametrize("seat", SEATS)
def test_rationales_name_numbers_and_the_posterior(seat: str) -> None:
    world = native("event/memory_leak")
    seen = world.observe(world.reset(world.scenario, [5]))
    best = ask(world, world.scenario, seen, seat)[0]
    assert "posterior" in best.rationale
    assert any(name in best.rationale for name in EVENT_NAMES)
    assert any(letter.isdigit() for letter in best.rationale)
    assert best.confidence is not None
    assert 0 <= best.confidence <= 1


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_that_may_not_see_the_symptoms_still_answers(seat: str) -> None:
    world = native("event/memory_leak")
    seen = world.observe(world.reset(world.scenario, [5]))
    blind = seen.masked(tuple(seen.metrics))
    assert ask(world, world.scenario, blind, seat)


def test_in_the_original_all_seats_treat_the_worst_symptom() -> None:
    world = original("event/HIGH_CPU")
    seen = world.observe(world.reset(world.scenario, [1]))
    for seat in SEATS:
        found = ask(world, world.scenario, seen, seat)
        assert [proposal.actions[0].kind for proposal in found] == [
            "restart_service",
            "free_memory_resources",
            "scale_resources",
            "stabilize_system",
        ]
        assert "error_fraction 0.2" in found[0].rationale


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_the_default_room_finds_the_right_remedy_and_does_no_harm(name: str) -> None:
    world = native(f"event/{name}")
    plays = [room_plays(world, seed) for seed in range(200, 220)]
    right = [
        played.outcomes[-1].success and played.observations[-1].facts["remedy_worth"] == 1.0
        for played in plays
    ]
    assert np.mean(right) >= 0.95
    assert not any(outcome.violations for played in plays for outcome in played.outcomes)
    assert EVENTS[EVENT_CODE[name]].remedy in {kind for played in plays for kind in played.kinds}


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_that_is_alone_and_follows_its_own_rule_solves_most_incidents(seat: str) -> None:
    solved = harmed = 0
    for event in EVENTS:
        world = native(f"event/{event.name}")
        for seed in range(200, 210):
            played = persona_plays(world, seed, seat)
            solved += played.outcomes[-1].success
            harmed += any(outcome.violations for outcome in played.outcomes)
    assert solved / 120 > 0.85
    assert harmed / 120 < 0.03
