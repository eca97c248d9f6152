"""A recorded seat that speaks again: the same words in the same situation, or loudly none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.backends.replay import ReplayPersona, read_recording
from agents.persona import load_persona
from agents.persona_schema import PersonaSpec
from agents.seat import make_persona
from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeResult, EpisodeSpec
from tests.support.asked import request
from tests.support.voices import Voice
from world.errors import ConfigError, TraceError, UnknownNameError

HAWK = ("cost.objectives.cost.weight=40",)


def played(folder: Path, **spec: Any) -> EpisodeResult:
    """A short episode with files."""
    fields: dict[str, Any] = {
        "scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": str(folder),
        "steps": 4, **spec,
    }  # fmt: skip
    return run_episode(EpisodeSpec(**fields))


def replaying(trace: str, *more: str) -> dict[str, Any]:
    """Overrides that put the record of a run at the cost seat."""
    return {"overrides": (*HAWK, "cost.backend.kind=replay", f'cost.backend.ref="{trace}"', *more)}


@pytest.mark.parametrize("place", [lambda path: path, lambda path: path.parent])
def test_a_recorded_seat_says_the_same_again_and_the_room_decides_the_same(
    tmp_path: Path, place: Callable[[Path], Path]
) -> None:
    first = played(tmp_path, overrides=HAWK)
    again = played(tmp_path, **replaying(str(place(Path(first.trace)))))
    assert again.rewards == first.rewards
    then, now = (read_recording(Path(run.trace), "cost") for run in (first, again))
    assert now.proposals == then.proposals
    assert set(then.proposals) == {1, 2, 3, 4}
    assert f'"content":"{then.sha}"' in Path(again.trace).read_text().splitlines()[0]


def test_another_storm_ends_the_run_at_the_first_difference_and_names_it(tmp_path: Path) -> None:
    first = played(tmp_path, overrides=HAWK)
    with pytest.raises(TraceError, match=r"step 2: .* metrics\.latency_ms is [\d.]+, was [\d.]+"):
        played(tmp_path, seed=2, **replaying(first.trace))


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_a_longer_run_ends_where_the_record_does(tmp_path: Path, driver: str) -> None:
    first = played(tmp_path, overrides=HAWK)
    with pytest.raises(TraceError, match="the record ends after step 4"):
        played(tmp_path, steps=6, driver=driver, **replaying(first.trace))


def test_lenient_replay_records_each_difference_and_goes_on(tmp_path: Path) -> None:
    first = played(tmp_path, overrides=HAWK)
    more = ("cost.replay.strict=false", "cost.backend.fallback=rules")
    again = played(tmp_path, seed=2, **replaying(first.trace, *more))
    assert again.steps == 4
    text = Path(again.trace).read_text()
    assert text.count('"what":"record_differs: step ') == 3


def test_what_is_no_whole_record_of_that_seat_is_refused_before_the_run(tmp_path: Path) -> None:
    trace = Path(played(tmp_path, overrides=HAWK).trace)
    with pytest.raises(UnknownNameError, match="there is no seat 'me'"):
        read_recording(trace, "me")
    with pytest.raises(UnknownNameError, match="there is no trace"):
        read_recording(tmp_path / "nothing", "cost")
    whole = trace.read_bytes()
    trace.write_bytes(whole.replace(b'"rationale":"', b'"rationale":"x', 1))
    with pytest.raises(ConfigError, match="this line was changed"):
        read_recording(trace, "cost")
    trace.write_bytes(b"\x00\x01 not json\n")
    with pytest.raises(ConfigError, match="this is no trace"):
        read_recording(trace, "cost")
    trace.write_bytes(b"")
    with pytest.raises(ConfigError, match="is empty"):
        read_recording(trace, "cost")


def test_answers_to_a_protocol_are_found_by_step_and_round(tmp_path: Path) -> None:
    trace = played(tmp_path, overrides=HAWK).trace
    document = load_persona("cost").document()
    document["backend"] = {"kind": "replay", "ref": trace}
    persona = make_persona(PersonaSpec.model_validate(document), "cost")
    assert isinstance(persona, ReplayPersona)
    persona.recording.responses[1, 2] = {"accept": True, "counter": "scale_up"}
    persona.recording.messages[1, 2] = "fine"
    reply = persona.answer(request("respond", round_=2))
    assert (reply.accept, reply.counter, reply.message) == (True, "scale_up", "fine")


def test_only_our_own_recordings_may_end_a_run() -> None:
    from agents.faults import SeatEndsRun
    from orchestrator.answering import ask_now

    def leave(_: object) -> Any:
        raise SeatEndsRun

    reply = ask_now(Voice("cost", leave, blocking=True), request())
    assert "SeatEndsRun" in reply.fallback
