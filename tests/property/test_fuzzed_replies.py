"""Ten thousand absurd answers through the real gate and a real room: all of them are survived."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from agents.persona import load_persona
from orchestrator.answering import ask_now
from policies.records import Reply, Request
from tests.support.absurd import Absurd
from tests.support.asks import stub_request
from tests.support.hostile import FORBIDDEN, PAYLOADS, acting, estate, write_scenario
from tests.support.rooms import room, stub_room, with_personas
from tests.support.runs import Played, play
from tests.support.stub_world import StubWorld
from tests.support.voices import Voice
from world.actions import parse_joint
from world.model import World

SEATS = ("resource", "cost", "sustainability", "janitor")
KINDS = ("propose", "ballot", "respond", "pick")
GATE_ANSWERS = 8_000
ROOM_STEPS = 150
PROTOCOLS = ("weighted_score", "schulze", "alternating_offers", "mediator")


def known_kinds(world: World[Any]) -> set[str]:
    return {template.kind for template in world.templates}


def test_eight_thousand_answers_pass_the_gate_as_plain_data_or_become_a_recorded_fallback() -> None:
    absurd = Absurd(1)
    voice = Voice("cost", absurd)
    taken = stood_in = 0
    for number in range(GATE_ANSWERS):
        kind: Any = KINDS[number % len(KINDS)]
        payload = {} if kind == "propose" else {"candidates": ["nop", "save"], "offer": "save"}
        request: Request = stub_request(kind=kind, payload=payload)
        reply = ask_now(voice, request)
        assert type(reply) is Reply
        if reply.fallback:
            stood_in += 1
            assert not reply.proposals
            assert len(reply.fallback) <= 2000
            assert acting(reply.fallback.replace("\t", " ")) == ""
            continue
        taken += 1
        for proposal in reply.proposals:
            for action in proposal.actions:
                assert action.kind in known_kinds(request.world)
        assert reply.choice in {"", "nop", "save"}
        assert reply.counter in {"", "nop", "save"}
        assert all(0 <= score <= 10 for score in reply.scores.values())
        json.dumps(dataclasses.asdict(reply)).encode("ascii")
    assert absurd.count == GATE_ANSWERS
    assert taken > 500
    assert stood_in > 500


def _every_answer_is_on_record(played: Played, seats: tuple[str, ...]) -> None:
    """Each seat's answer of each step is in a ballot; each stand-in is an event with its reason."""
    voting = [seat for seat in seats if seat != "mediator"]
    for seat in voting:
        steps = [event["step"] for event in played.of("ballot") if event["agent"] == seat]
        assert steps == list(range(1, ROOM_STEPS + 1))
    told = played.of("fallback")
    assert 0 < sum(entry["count"] for entry in played.result.fallbacks) <= len(told)
    assert all(event["data"]["what"] for event in told)
    proposing = [event for event in told if event["data"]["kind"] == "propose"]
    assert 0 < len(proposing) < ROOM_STEPS * len(seats)  # some were taken, some were not
    for event in played.events:
        json.dumps(event).encode("ascii")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_room_of_absurd_seats_plays_to_its_end_and_records_every_answer(protocol: str) -> None:
    seats = (*SEATS[:3], "mediator") if protocol == "mediator" else SEATS
    specs = {seat: load_persona(seat) for seat in seats}
    base = stub_room(specs, protocol=protocol, horizon=ROOM_STEPS)
    voices = {seat: Absurd(number, ("",)) for number, seat in enumerate(seats, start=2)}
    made = with_personas(base, {seat: Voice(seat, each) for seat, each in voices.items()})
    played = play(made)
    assert played.result.stop_reason == "horizon"
    assert played.result.steps == ROOM_STEPS
    _every_answer_is_on_record(played, seats)
    assert sum(each.count for each in voices.values()) >= ROOM_STEPS * len(seats)
    for event in played.of("decision"):
        for action in parse_joint(event["data"]["action"]):
            assert action.kind in known_kinds(StubWorld())


def test_absurd_seats_over_an_estate_never_touch_what_is_protected(tmp_path: Path) -> None:
    text = PAYLOADS["order"]
    rows = estate(text)
    protected = FORBIDDEN | {name for name in rows if name.endswith(" e")}
    base = room(
        scenario=str(write_scenario(tmp_path, text, horizon=40)), samples=1, lookahead_steps=1
    )
    voices = {
        seat: Voice(seat, Absurd(number, tuple(rows))) for number, seat in enumerate(SEATS, 20)
    }
    played = play(with_personas(base, voices))
    assert played.result.steps == 40
    destructive = {template.kind for template in base.world.templates if template.destructive}
    for event in played.of("decision"):
        for action in parse_joint(event["data"]["action"]):
            assert action.kind not in destructive or action.target not in protected
    seen = base.world.observe(played.session.state).inventory
    assert seen is not None
    assert {seen.row(name)["state"] for name in protected} == {"live"}
    assert played.result.violations == ()
    # They did order it: forbidden proposals are on record as infeasible, with the reason.
    items = [item for event in played.of("candidates") for item in event["data"]["items"]]
    refused = [item for item in items if not item["feasible"]]
    assert any("terminate:prod-db" in item["id"] for item in refused)
    assert all(item["reasons"] for item in refused)
