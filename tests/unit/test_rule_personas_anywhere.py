"""Rule personas in a world without rules of its own: the greedy rule, and every kind of ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.persona import apply_overrides, load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from policies.records import Reply
from tests.support.asks import request_of, stub_request
from tests.support.stub_world import StubWorld, stub_scenario
from world.actions import Action
from world.catalogue import Catalogue
from world.model import Observation


def spoken(name: str, overrides: tuple[str, ...] = ()) -> list[str]:
    persona = make_persona(apply_overrides(load_persona(name), overrides), name)
    reply = persona.answer(stub_request())
    assert isinstance(reply, Reply)
    return [proposal.actions[0].id for proposal in validated_reply(stub_request(), reply).proposals]


def test_greedy_proposes_what_its_own_utility_likes_best() -> None:
    assert spoken("resource", ("utility.team=0",)) == ["speed_up", "nop", "save"]
    assert spoken("cost", ("utility.team=0",)) == ["save", "nop", "speed_up"]


def test_a_seat_without_a_measured_objective_proposes_nothing_and_says_why() -> None:
    persona = make_persona(load_persona("sustainability"), "sustainability")
    reply = persona.answer(stub_request())
    assert isinstance(reply, Reply)
    (proposal,) = reply.proposals
    assert proposal.actions == (Action("nop"),)
    assert "measures none of its objectives" in proposal.rationale


def test_a_seat_that_may_not_see_every_metric_does_not_guess() -> None:
    scenario = replace(stub_scenario(), masks={"cost": ("latency_ms",)})
    world = StubWorld()
    seen = world.observe(world.reset(scenario, [1]), "cost")
    assert "latency_ms" not in seen.metrics
    reply = make_persona(load_persona("cost"), "cost").answer(request_of(world, scenario, [seen]))
    assert isinstance(reply, Reply)
    assert "may not see" in reply.proposals[0].rationale


class WideWorld(StubWorld):
    """The stub world with a catalogue too large to weigh."""

    def catalogue(self, observation: Observation) -> Catalogue:
        """A thousand times the same."""
        del observation
        return Catalogue([("save", 1000, lambda _: Action("save"))])


def test_a_large_catalogue_is_not_weighed_one_by_one() -> None:
    request = replace(stub_request(), world=WideWorld())
    reply = make_persona(load_persona("cost"), "cost").answer(request)
    assert isinstance(reply, Reply)
    assert "1000 actions are too many" in reply.proposals[0].rationale


def test_a_rule_persona_answers_protocols_from_its_own_order_of_preference() -> None:
    persona = make_persona(apply_overrides(load_persona("cost"), ["utility.team=0"]), "cost")
    table = {"candidates": ["nop", "speed_up", "save"]}
    ballot = stub_request(kind="ballot", payload=table)
    assert validated_reply(ballot, persona.answer(ballot)).scores == {
        "save": 10,
        "nop": 9,
        "speed_up": 8,
    }
    pick = stub_request(kind="pick", payload={"candidates": ["speed_up", "nop"]})
    assert validated_reply(pick, persona.answer(pick)).choice == "nop"
    respond = stub_request(kind="respond", payload={**table, "offer": "save"})
    assert validated_reply(respond, persona.answer(respond)).accept
    other = stub_request(kind="respond", payload={**table, "offer": "save+speed_up"})
    declined = validated_reply(other, persona.answer(other))
    assert (declined.accept, declined.counter) == (False, "save")


@pytest.mark.parametrize("name", ["resource", "cost", "sustainability", "janitor"])
def test_a_rule_is_a_function_of_its_request(name: str) -> None:
    persona = make_persona(load_persona(name), name)
    assert not persona.blocking
    assert persona.answer(stub_request()) == persona.answer(stub_request())
