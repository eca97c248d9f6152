"""What a person at a seat is shown, and how what they type is read, for every kind of question."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.backends.human import HumanPersona
from agents.backends.human_menu import (
    BadAnswer,
    Question,
    found_text,
    question_text,
    read_answer,
)
from agents.backends.human_terminal import readable
from agents.persona import load_persona
from orchestrator import interrupts
from orchestrator.answering import ask_now
from policies.records import Reply, Request
from tests.support.asked import request
from tests.support.rooms import room, with_personas
from tests.support.runs import play

IDS = ["migrate_region", "optimize_energy", "scale_down", "scale_up"]


def person() -> HumanPersona:
    """A person at the cost seat."""
    spec = load_persona("cost")
    backend = spec.backend.model_copy(update={"kind": "human", "fallback": "rules"})
    return HumanPersona.of(spec.model_copy(update={"backend": backend}), "cost")


def answered(asked: Request, text: str) -> Reply:
    """What a typed line means there."""
    return person().read(asked, text)


def test_a_question_survives_json_so_that_any_front_end_can_show_it() -> None:
    question = person().question(request())
    again = Question.from_json(json.loads(json.dumps(question.as_json())))
    assert question_text(again) == question_text(question)


def test_options_come_with_what_they_are_expected_to_do() -> None:
    question = person().question(request())
    assert sorted(option.id for option in question.options) == IDS
    assert all("latency_ms" in option.note for option in question.options)
    assert sum("rule: " in option.note for option in question.options) >= 1


def test_a_large_inventory_offers_what_the_rule_found_and_takes_any_id() -> None:
    asked = request(scenario="cloud/medium", seat="janitor")
    persona = person()
    question = persona.question(asked)
    assert 0 < len(question.options) <= 60
    action = asked.world.catalogue(asked.observation)[40]
    (proposal,) = persona.read(asked, action.id).proposals
    assert proposal.actions == (action,)


def test_a_person_can_look_for_an_action() -> None:
    asked = request(scenario="cloud/medium", seat="janitor")
    lines = found_text(asked, "SCALE_UP:web").splitlines()
    assert lines
    assert all("scale_up:web" in line for line in lines)
    assert len(found_text(asked, "").splitlines()) == 21
    assert found_text(asked, "\x1b[31m") == "   nothing that can be done now holds '[31m'"


def test_an_offer_is_accepted_declined_or_countered_by_number() -> None:
    asked = request("respond", payload={"candidates": IDS, "offer": "scale_up"}, round_=2)
    assert answered(asked, "Y").accept
    assert answered(asked, "n -- too dear") == Reply(message="too dear")
    assert answered(asked, "3").counter == "scale_down"
    assert answered(asked, "scale_up").accept
    assert answered(asked, "pass") == Reply()
    with pytest.raises(BadAnswer, match="one word is enough"):
        answered(asked, "1 2")
    with pytest.raises(BadAnswer, match="not on the table"):
        answered(asked, "terminate:x")


def test_a_ballot_is_typed_as_numbers_and_scores() -> None:
    asked = request("ballot", payload={"candidates": IDS})
    assert answered(asked, "1=8 scale_up=0").scores == {"migrate_region": 8, "scale_up": 0}
    for wrong in ("1", "1=11", "1=-1", "9=1", "1=८"):
        with pytest.raises(BadAnswer):
            answered(asked, wrong)


def test_a_pick_is_one_of_the_candidates_or_nothing() -> None:
    asked = request("pick", payload={"candidates": IDS})
    assert answered(asked, "2").choice == "optimize_energy"
    assert answered(asked, "scale_up").choice == "scale_up"
    assert answered(asked, "none").choice == ""
    with pytest.raises(BadAnswer):
        answered(asked, "nop")


def test_numbers_in_an_id_become_what_the_action_declares() -> None:
    asked = request(scenario="cloud/medium")
    resize = next(
        action for action in asked.world.catalogue(asked.observation) if action.kind == "scale_up"
    )
    (proposal,) = answered(asked, resize.id).proposals
    assert proposal.actions == (resize,)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=200), kind=st.sampled_from(["propose", "ballot", "respond", "pick"]))
def test_whatever_is_typed_is_a_reply_or_a_reason(text: str, kind: str) -> None:
    asked = ASKED[kind]
    question = QUESTIONS[kind]
    try:
        reply = read_answer(question, asked, text)
    except BadAnswer as refused:
        reply = Reply(message=str(refused))
        if not reply.message:
            raise
    assert isinstance(reply, Reply)


ASKED = {
    "propose": request(),
    "ballot": request("ballot", payload={"candidates": IDS}),
    "respond": request("respond", payload={"candidates": IDS, "offer": "scale_up"}),
    "pick": request("pick", payload={"candidates": IDS}),
}
QUESTIONS = {kind: person().question(asked) for kind, asked in ASKED.items()}


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=300))
def test_a_typed_line_never_carries_control_characters(raw: bytes) -> None:
    assert not {unicodedata.category(c) for c in readable(raw)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_a_room_without_files_never_asks_at_a_terminal() -> None:
    played = play(with_personas(room(steps=2), {"cost": person()}))
    assert [f["data"]["what"] for f in played.of("fallback")] == [
        "no_answer: there is no terminal; its rule spoke"
    ] * 2


def test_without_a_fallback_the_default_is_no_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    persona = person()
    backend = persona.spec.backend.model_copy(update={"fallback": "none"})
    persona.spec = persona.spec.model_copy(update={"backend": backend})
    assert persona.default == "no proposal"
    reply = ask_now(persona, request())
    assert (reply.proposals, reply.fallback) == ((), "no_answer: there is no terminal")
    del capsys


def test_the_page_on_people_shows_what_works() -> None:
    page = (Path(__file__).parents[2] / "docs" / "human.md").read_text()
    for name in ("answer", "pending"):
        assert f"{name}(result.run" in page
        assert callable(getattr(interrupts, name))
