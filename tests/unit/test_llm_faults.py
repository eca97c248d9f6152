"""Whatever an endpoint does becomes one typed, recorded fallback; the episode goes on."""

import json
from collections import Counter
from typing import Any

import pytest

from agents.backends.llm.faults import KINDS
from tests.support.llm_rooms import SEATS, llm_room, outcomes, with_every
from tests.support.llm_stub import FAULTS, ODDITIES, LLMStub, StubCall
from tests.support.runs import Played, play

KIND_OF = {
    "401": "unauthorized",
    "403": "forbidden",
    "404": "not_found",
    "400": "bad_request",
    "429": "rate_limited",
    "500": "server_error",
    "503": "server_error",
    "hang": "timeout",
    "reset": "broken_reply",
    "reset_mid_body": "broken_reply",
    "cut_body": "broken_reply",
    "truncated_json": "broken_reply",
    "html": "broken_reply",
    "not_utf8": "broken_reply",
    "empty_choices": "empty_choices",
    "null_choices": "broken_reply",
    "no_choices": "broken_reply",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "length": "cut_short",
    "huge": "huge_reply",
    "huge_body": "huge_reply",
    "empty_text": "not_json",
    "not_json": "not_json",
    "two_objects": "not_json",
    "nan": "not_json",
    "deep": "not_json",
    "wrong_schema": "wrong_schema",
    "wrong_type": "wrong_schema",
    "unknown_action": "invalid_reply",
    "wrong_tool": "wrong_tool",
    "no_tool": "wrong_tool",
    "bad_arguments": "not_json",
    "open_think": "cut_short",
}
SECRET = "sk-proj-do-not-show-0123456789abcdef"


def played_with(word: str, **fields: Any) -> tuple[Played, LLMStub]:
    form = "function_calling" if "tool" in word or word == "bad_arguments" else "json_schema"
    changes = (*with_every("backend.timeout_s=1.0"), *with_every(f"model.structured={form}"))
    with LLMStub(lambda call: word) as stub:
        return play(llm_room(stub, steps=1, overrides=changes, **fields)), stub


def test_every_fault_of_the_stub_has_its_kind() -> None:
    assert set(KIND_OF) == set(FAULTS)
    assert set(KIND_OF.values()) <= set(KINDS)


@pytest.mark.parametrize("word", FAULTS)
def test_a_fault_is_recorded_by_its_kind_and_never_ends_the_episode(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    played, stub = played_with(word)
    assert stub.calls[0].key == f"Bearer {SECRET}"
    assert played.result.stop_reason == "horizon"
    fallbacks = played.of("fallback")
    assert [event["agent"] for event in fallbacks] == list(SEATS)
    for event in fallbacks:
        assert event["data"]["what"].startswith(f"{KIND_OF[word]}: ")
        assert len(event["data"]["what"]) <= 200
    assert outcomes(played.events) == {KIND_OF[word]: 4}
    everything = json.dumps(played.events)
    for secret in (SECRET, "127.0.0.1", "ignore previous instructions", "no: Bearer"):
        assert secret not in everything
    assert played.result.usage.calls == len(stub.calls)


@pytest.mark.parametrize("word", ODDITIES)
def test_an_odd_answer_that_says_what_was_asked_is_used(word: str) -> None:
    played, _ = played_with(word)
    assert played.of("fallback") == []
    assert outcomes(played.events) == {"ok": 4}
    ballots = played.of("ballot")
    assert [event["agent"] for event in ballots] == list(SEATS)
    assert all(1 <= len(event["data"]["proposals"]) <= 3 for event in ballots)


def test_an_unreachable_endpoint_is_told_as_that() -> None:
    room = llm_room(
        steps=1,
        base_url="http://127.0.0.1:9/v1",
        overrides=with_every("backend.timeout_s=1.0"),
    )
    played = play(room)
    assert {event["data"]["what"].split(":")[0] for event in played.of("fallback")} == {
        "unreachable"
    }
    assert played.result.usage.usd == 0.0


def test_the_persona_says_whether_its_rule_speaks_for_a_model_that_fails() -> None:
    def faulty(call: StubCall) -> str:
        return "refusal" if call.seat in {"cost", "resource"} else "ok"

    with LLMStub(faulty) as stub:
        room = llm_room(stub, steps=1, overrides=("cost.backend.fallback=rules",))
        played = play(room)
    told = {event["agent"]: event["data"]["what"] for event in played.of("fallback")}
    assert told["cost"].endswith("; its rule spoke")
    assert told["resource"] == "refusal: the model refused"
    proposals = {event["agent"]: event["data"]["proposals"] for event in played.of("ballot")}
    assert proposals["cost"]
    assert proposals["resource"] == []


def test_one_seat_that_hangs_costs_its_deadline_and_nobody_elses_answer() -> None:
    with LLMStub(lambda call: "hang" if call.seat == "resource" else "ok") as stub:
        changes = with_every("backend.timeout_s=2.0")
        played = play(llm_room(stub, steps=2, overrides=changes))
    assert Counter(event["agent"] for event in played.of("fallback")) == {"resource": 2}
    assert outcomes(played.events) == {"timeout": 2, "ok": 6}


def test_a_call_that_is_asked_to_wait_is_made_again_within_its_deadline() -> None:
    with LLMStub(lambda call: "429" if call.number == 1 else "ok", retry_after="0.2") as stub:
        played = play(llm_room(stub, steps=1))
        first, second = (call for call in stub.calls if call.seat == stub.calls[0].seat)
    assert played.of("fallback") == []
    assert second.at_s - first.at_s >= 0.2
    assert played.result.usage.calls == 5


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    with LLMStub(lambda call: "429", retry_after="60") as stub:
        played = play(llm_room(stub, steps=1))
        assert len(stub.calls) == 4
    assert outcomes(played.events) == {"rate_limited": 4}


def test_model_seats_share_one_rate_limiter() -> None:
    with LLMStub() as stub:
        changes = ("cost.model.requests_per_minute=1200",)
        play(llm_room(stub, steps=2, overrides=changes))
        arrivals = sorted(call.at_s for call in stub.calls)
    assert len(arrivals) == 8
    # Eight calls at 20 a second take seven gaps; scheduling can only make them longer overall.
    assert arrivals[-1] - arrivals[0] >= 7 * 0.05 - 0.03


def test_both_drivers_write_the_same_trace_with_faults_in_it() -> None:
    def plan(call: StubCall) -> str:
        return {"cost": "fenced", "janitor": "not_json"}.get(call.seat, "ok")

    shas = []
    for driver in ("loop", "graph"):
        with LLMStub(plan) as stub:
            shas.append(play(llm_room(stub, driver=driver)).result.trace_sha)
    assert shas[0] == shas[1]


def test_seats_mix_a_model_with_rules_by_one_option_each() -> None:
    with LLMStub() as stub:
        room = llm_room(
            stub,
            steps=1,
            model="",
            overrides=("cost.backend.kind=llm", "cost.model.name=small"),
        )
        played = play(room)
    assert [call.seat for call in stub.calls] == ["cost"]
    assert stub.calls[0].body["model"] == "small"
    assert [event["agent"] for event in played.of("llm_call")] == ["cost"]


def test_a_seat_sees_what_the_others_stood_for_one_step_later() -> None:
    with LLMStub() as stub:
        played = play(llm_room(stub, steps=2))
        later = [call for call in stub.calls if call.seat == "cost"][1]
    said = next(event for event in played.of("ballot") if event["agent"] == "resource")
    assert said["data"]["proposals"][0]["rationale"] == "resource says so"
    assert '"reason": "resource says so"' in later.user
    assert '"reason": "cost says so"' in later.user
