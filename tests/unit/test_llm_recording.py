"""Answers are kept by what was asked, and played back without network, key or client."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.backends.llm.prompt import Rendered
from agents.backends.llm.recording import Attempt, Place, Playback, Recorder, recorded_model
from orchestrator.room import build_room
from orchestrator.spec import EpisodeSpec
from tests.support.llm_rooms import llm_room, llm_spec, outcomes, with_every
from tests.support.llm_stub import LLMStub, StubCall
from tests.support.runs import Played, play
from world.errors import ConfigError, DigestMismatchError


def recorded(folder: Path, **fields: Any) -> Played:
    with LLMStub() as stub:
        return play(llm_room(stub, record=str(folder), usd_per_mtok="1/2", **fields))


def back(folder: Path, **fields: Any) -> Played:
    return play(llm_room(playback=str(folder), usd_per_mtok="1/2", model="", **fields))


def test_playback_gives_the_trace_and_the_usage_of_the_live_run(tmp_path: Path) -> None:
    live = recorded(tmp_path / "r")
    again = back(tmp_path / "r")
    assert again.result.trace_sha == live.result.trace_sha
    assert again.result.usage == live.result.usage
    assert again.events == live.events


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_playback_is_the_same_with_either_driver(tmp_path: Path, driver: str) -> None:
    live = recorded(tmp_path / "r", driver="graph")
    assert back(tmp_path / "r", driver=driver).result.trace_sha == live.result.trace_sha


def test_faults_retries_and_a_used_up_budget_are_played_back_too(tmp_path: Path) -> None:
    def plan(call: StubCall) -> str:
        if call.seat == "cost":
            return "429" if call.number % 2 else "ok"
        return {"resource": "not_json", "janitor": "refusal"}.get(call.seat, "ok")

    with LLMStub(plan, tokens=(2000, 100)) as stub:
        fields: dict[str, Any] = {"steps": 5, "overrides": with_every("backend.timeout_s=5")}
        live = play(
            llm_room(
                stub,
                record=str(tmp_path / "r"),
                usd_per_mtok="1/10",
                budget_usd=0.06,
                **fields,
            )
        )
    again = play(llm_room(playback=str(tmp_path / "r"), usd_per_mtok="1/10", model="", **fields))
    assert again.result.trace_sha == live.result.trace_sha
    assert live.of("budget")
    assert set(outcomes(live.events)) >= {"ok", "not_json", "refusal"}


def test_a_recording_holds_neither_key_nor_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-secret-0123456789")
    recorded(tmp_path / "r", steps=1)
    for path in (tmp_path / "r").iterdir():
        text = path.read_text()
        assert "sk-proj" not in text
        assert "127.0.0.1" not in text


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"scenario": "cloudedge/easy"},
        {"overrides": ("cost.objectives.cost.weight=3",)},
        {"overrides": ("cost.model.temperature=1",)},
        {"overrides": ('cost.prompt.user="now $step"',)},
    ],
)
def test_drift_ends_the_run_and_names_the_first_message_that_differs(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    recorded(tmp_path / "r")
    with pytest.raises(DigestMismatchError) as caught:
        back(tmp_path / "r", **changed)
    assert caught.value.exit_code == 1
    assert caught.value.what.startswith("playback drifts at step ")
    assert ("line " in caught.value.why) or ("model settings" in caught.value.why)


def test_a_step_past_the_recording_is_drift_that_says_so(tmp_path: Path) -> None:
    recorded(tmp_path / "r", steps=2)
    with pytest.raises(DigestMismatchError, match="user message was"):
        back(tmp_path / "r", steps=3)


def test_the_recorded_model_stands_in_for_the_option(tmp_path: Path) -> None:
    recorded(tmp_path / "r", steps=1)
    assert recorded_model(tmp_path / "r") == "stub"
    room = llm_room(playback=str(tmp_path / "r"), model="", steps=1)
    assert {spec.model.name for spec in room.specs.values()} == {"stub"}


def test_answers_to_the_same_words_are_kept_in_order_of_step_round_seat_and_attempt(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "r")
    words = Rendered("s", "u")
    for step, seat in ((2, "b"), (1, "b"), (1, "a")):
        place = Place(step, 0, seat, "propose")
        recorder.keep("k", words, place, [Attempt(1, "prompt", fault="timeout"), Attempt(2, "m")])
    recorder.keep("k", words, Place(1, 0, "a", "propose"), [Attempt(1, "m", text="new")])
    answers = json.loads((tmp_path / "r" / "k.json").read_text())["answers"]
    order = [(entry["step"], entry["seat"], entry["attempt"]) for entry in answers]
    assert order == [(1, "a", 1), (1, "b", 1), (1, "b", 2), (2, "b", 1), (2, "b", 2)]
    playback = Playback(tmp_path / "r")
    assert playback.answer("k", words, Place(1, 0, "a", "propose"))[-1].text == "new"
    assert len(playback.answer("k", words, Place(9, 0, "z", "propose"))) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"playback": "nowhere"}, "it is no recording"),
        ({"record": "r", "model": ""}, "no seat of this room speaks through a model"),
        ({"record": "r", "playback": "r"}, "--record does not go with --playback"),
    ],
)
def test_recordings_that_cannot_be_are_refused_before_the_run(
    tmp_path: Path, fields: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "playback" in fields and fields["playback"] == "r":
        Recorder(tmp_path / "r")
    with pytest.raises(ConfigError, match=said):
        build_room(llm_spec(base_url="http://127.0.0.1:9/v1", **fields))


def test_a_folder_with_something_else_in_it_is_not_recorded_into(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="holds something that is no recording"):
        Recorder(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": "other/9"}', "[" * 100_000])
def test_a_broken_recording_is_refused_in_words(tmp_path: Path, content: str) -> None:
    (tmp_path / "recording.json").write_text(content)
    with pytest.raises(ConfigError):
        Playback(tmp_path)


def test_a_model_seat_needs_a_name_an_endpoint_or_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "API_KEY", "HF_TOKEN", "OPENAI_BASE_URL", "API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    seat = ("cost.backend.kind=llm",)
    with pytest.raises(ConfigError, match="names no model"):
        build_room(EpisodeSpec(overrides=seat))
    with pytest.raises(ConfigError, match="would call OpenAI without a key"):
        build_room(EpisodeSpec(model="m"))
    monkeypatch.setenv("HF_TOKEN", "hf_token_of_another_service")
    with pytest.raises(ConfigError, match="would call OpenAI without a key"):
        build_room(EpisodeSpec(model="m"))
    with pytest.raises(ConfigError, match="must start with http"):
        build_room(EpisodeSpec(model="m", base_url="file:///etc/passwd"))
