"""The way of holding a model to a form is found once, kept, and named in the trace."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.llm_rooms import llm_room, outcomes, with_every
from tests.support.llm_stub import LLMStub, StubCall
from tests.support.runs import play

FORMS = ("json_schema", "tools", "json_object", "grammar", "plain")
MODES = ("json_schema", "function_calling", "json_mode", "grammar", "prompt")


def refusing(*forms: str) -> Callable[[StubCall], str]:
    return lambda call: "400" if call.form in forms else "ok"


@pytest.mark.parametrize("refused", range(5))
def test_an_endpoint_that_refuses_forms_is_probed_once_and_the_mode_that_works_is_recorded(
    refused: int,
) -> None:
    with LLMStub(refusing(*FORMS[:refused])) as stub:
        played = play(llm_room(stub, steps=3))
        forms = Counter(call.form for call in stub.calls)
    assert forms == Counter(dict.fromkeys(FORMS[:refused], 1) | {FORMS[refused]: 12})
    assert outcomes(played.events) == {"ok": 12}
    assert {event["data"]["mode"] for event in played.of("llm_call")} == {MODES[refused]}


def test_an_endpoint_that_accepts_tools_and_ignores_them_is_asked_in_another_way() -> None:
    def plan(call: StubCall) -> str:
        if call.form == "json_schema":
            return "400"
        return "no_tool" if call.form == "tools" else "ok"

    with LLMStub(plan) as stub:
        played = play(llm_room(stub, steps=2))
        forms = Counter(call.form for call in stub.calls)
    assert forms == {"json_schema": 1, "tools": 1, "json_object": 8}
    assert outcomes(played.events) == {"ok": 8}


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_that_the_persona_fixes_is_the_only_one_used(mode: str) -> None:
    with LLMStub() as stub:
        played = play(llm_room(stub, steps=1, overrides=with_every(f"model.structured={mode}")))
        forms = {call.form for call in stub.calls}
    assert forms == {FORMS[MODES.index(mode)]}
    assert outcomes(played.events) == {"ok": 4}


def test_a_model_that_never_answers_in_form_is_not_probed_again() -> None:
    with LLMStub(lambda call: "not_json") as stub:
        played = play(llm_room(stub, steps=3))
        asked = len(stub.calls)
    assert asked <= 4 + 12
    assert outcomes(played.events) == {"not_json": 12}


def test_model_settings_of_the_persona_reach_the_endpoint() -> None:
    changes = (
        *with_every("model.temperature=0.25"),
        *with_every("model.seed=7"),
        *with_every("model.max_tokens=99"),
    )
    with LLMStub() as stub:
        play(llm_room(stub, steps=1, overrides=changes))
    for call in stub.calls:
        assert call.body["temperature"] == 0.25
        assert call.body["seed"] == 7
        assert call.body["max_tokens"] == 99
        assert call.body["model"] == "stub"
        assert not call.body.get("stream")
