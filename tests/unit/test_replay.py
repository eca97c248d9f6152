"""A recorded run again, from its record alone: the same hash, or the first thing that differs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from orchestrator.study.recorded import Recorded, recorded
from orchestrator.study.replay import replay
from orchestrator.trace.events import Chain, Event
from orchestrator.trace.links import Link, scan
from tests.support.llm_stub import LLMStub
from tests.support.program import ROOT
from world.errors import ConfigError, DigestMismatchError, SchemaVersionError, TraceError


def ran(folder: Path, **fields: Any) -> Recorded:
    """A short episode with files, read back."""
    base: dict[str, Any] = {
        "scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": str(folder),
        "steps": 6,
    }  # fmt: skip
    result = run_episode(EpisodeSpec(**{**base, **fields}))
    return recorded(result.run, folder)


def rewritten(path: Path, changed: dict[int, dict[str, Any]]) -> None:
    """Replace the data of some events (by number) and hash the whole file anew."""
    chain = Chain()
    links = [link for link in scan(path) if isinstance(link, Link)]
    lines = []
    for number, link in enumerate(links):
        entry = link.event()
        data = changed.get(number, entry.data)
        lines.append(chain.add(Event(entry.type, entry.step, entry.round, data, entry.agent)))
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def data_of(path: Path, kind: str, step: int) -> tuple[int, dict[str, Any]]:
    """Number and data of the first event of a type in a step."""
    for link in scan(path):
        if isinstance(link, Link) and (link.type, link.step) == (kind, step):
            return link.head.seq - 1, dict(link.event().data)
    raise LookupError(kind)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"protocol": "borda", "seed": 3},
        {"protocol": "alternating_offers"},
        {"protocol": "debate"},
        {"scenario": "cloudedge/seed/hard", "protocol": "cloudedge_boardroom"},
        {"scenario": "finops/right_sizing", "steps": 3},
        {"scenario": "aiops/incident_response_automation", "steps": 4},
        {"absent": ("cost",)},
        {"approve": "all", "scenario": "finops/right_sizing", "steps": 2},
    ],
    ids=lambda fields: "-".join(map(str, fields.values())) or "plain",
)
def test_a_run_comes_out_with_the_same_hash_from_its_record_alone(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    run = ran(tmp_path, **fields)
    again = replay(run)
    assert again.divergence is None
    assert (again.ok, again.sha, again.steps) == (True, run.sha, len(run.steps))


@pytest.mark.parametrize("first", [2, 6])
def test_a_replay_that_begins_later_comes_out_with_the_same_hash(
    tmp_path: Path, first: int
) -> None:
    run = ran(tmp_path)
    again = replay(run, first)
    assert (again.ok, again.first, again.steps) == (True, first, 6)


@pytest.mark.parametrize("first", [0, 7])
def test_a_step_that_was_never_decided_is_refused(tmp_path: Path, first: int) -> None:
    run = ran(tmp_path)
    with pytest.raises(ConfigError, match=f"--from {first} .*steps 1 to 6"):
        replay(run, first)


def test_a_lone_trace_file_replays_where_its_room_can_be_built_from_its_header(
    tmp_path: Path,
) -> None:
    run = ran(tmp_path / "runs")
    alone = Path(shutil.copy(run.path, tmp_path / "alone.jsonl"))
    assert replay(recorded(alone)).ok


def test_replies_of_models_are_taken_from_the_record_and_nobody_is_called(tmp_path: Path) -> None:
    with LLMStub() as stub:
        run = ran(tmp_path, model="stub", base_url=stub.url, steps=3, samples=2, lookahead_steps=2)
        assert len(stub.calls) == 12
    again = replay(run)
    assert again.divergence is None
    assert (again.ok, again.asked) == (True, ())
    assert again.held == ("resource", "cost", "sustainability", "janitor")


@pytest.mark.parametrize("protocol", ["alternating_offers", "debate", "vcg"])
def test_answers_in_rounds_of_talk_are_taken_from_the_record_too(
    tmp_path: Path, protocol: str
) -> None:
    with LLMStub() as stub:
        run = ran(
            tmp_path,
            model="stub",
            base_url=stub.url,
            steps=2,
            samples=2,
            lookahead_steps=2,
            protocol=protocol,
        )
    again = replay(run)
    assert again.divergence is None
    assert again.ok


def test_faults_of_models_and_their_fallbacks_replay(tmp_path: Path) -> None:
    with LLMStub(lambda call: "not_json") as stub:
        run = ran(tmp_path, model="stub", base_url=stub.url, steps=2, samples=2, lookahead_steps=2)
    assert run.steps[0].fallbacks
    again = replay(run)
    assert again.divergence is None
    assert again.ok


def test_another_process_is_not_started_again(tmp_path: Path) -> None:
    persona = tmp_path / "far.toml"
    agent = tmp_path / "agent.py"
    agent.write_bytes((ROOT / "examples" / "remote_agent.py").read_bytes())
    persona.write_text(
        'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "far"\n'
        f'[backend]\nkind = "remote"\n[remote]\ncommand = ["{sys.executable}", "{agent}"]\n'
    )
    run = ran(tmp_path / "runs", personas={"cost": str(persona)}, steps=2)
    assert not any(step.fallbacks for step in run.steps)
    agent.unlink()
    again = replay(run)
    assert again.divergence is None
    assert (again.ok, again.held) == (True, ("cost",))


def test_a_prompt_that_is_no_longer_the_same_is_named(tmp_path: Path) -> None:
    with LLMStub() as stub:
        run = ran(tmp_path, model="stub", base_url=stub.url, steps=2, samples=2, lookahead_steps=2)
    seq, data = data_of(run.path, "llm_call", 1)
    rewritten(run.path, {seq: {**data, "prompt_sha": "0" * 64}})
    found = replay(recorded(run.path)).divergence
    assert found is not None
    assert (found.kind, found.step, found.seat) == ("prompt", 1, "resource")
    assert found.recorded == "0" * 64


def test_where_the_answers_were_kept_the_line_of_a_prompt_that_differs_is_named(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept"
    short: dict[str, Any] = {"steps": 1, "samples": 2, "lookahead_steps": 2}
    with LLMStub() as stub:
        run = ran(tmp_path / "runs", model="stub", base_url=stub.url, record=str(kept), **short)
    for file in kept.glob("*.json"):
        data = json.loads(file.read_text())
        if any(entry["seat"] == "resource" for entry in data.get("answers", ())):
            data["messages"]["user"] = "Once upon a time\n" + data["messages"]["user"]
            file.write_text(json.dumps(data))
    seq, data = data_of(run.path, "llm_call", 1)
    rewritten(run.path, {seq: {**data, "prompt_sha": "0" * 64}})
    found = replay(recorded(run.path)).divergence
    assert found is not None
    assert found.kind == "prompt"
    assert 'line 1 of the user message was "Once upon a time"' in str(found.replayed)


def test_a_value_that_does_not_come_out_is_named_with_both_values(tmp_path: Path) -> None:
    run = ran(tmp_path)
    seq, data = data_of(run.path, "decision", 4)
    rewritten(run.path, {seq: {**data, "reason": "because"}})
    again = replay(recorded(run.path))
    found = again.divergence
    assert found is not None
    assert (found.kind, found.path, found.step, found.recorded) == (
        "decision", "reason", 4, "because",
    )  # fmt: skip
    assert (again.ok, again.steps) == (False, 3)
    assert "because" in found.line()


def test_a_scorecard_that_does_not_come_out_is_named(tmp_path: Path) -> None:
    run = ran(tmp_path)
    last = sum(1 for _ in scan(run.path)) - 1
    ending = json.loads(json.dumps(dict(run.ending.data)))
    ending["scorecard"]["total"] = 0.5
    rewritten(run.path, {last: ending})
    found = replay(recorded(run.path)).divergence
    assert found is not None
    assert (found.kind, found.path, found.recorded) == ("run_ended", "scorecard.total", 0.5)


def test_a_run_that_was_stopped_replays_as_far_as_it_goes_and_is_not_ok(tmp_path: Path) -> None:
    whole = ran(tmp_path)
    cut = [link for link in scan(whole.path) if isinstance(link, Link) and link.step <= 3]
    whole.path.write_bytes(b"".join(link.raw + b"\n" for link in cut))
    again = replay(recorded(whole.path))
    assert (again.ok, again.complete, again.steps, again.divergence) == (False, False, 3, None)


def test_a_persona_file_that_was_changed_since_is_named(tmp_path: Path) -> None:
    persona = tmp_path / "hawk.toml"
    persona.write_text('schema = "persona/1"\nextends = "cost"\n[identity]\nid = "hawk"\n')
    run = ran(tmp_path / "runs", personas={"cost": str(persona)})
    persona.write_text(persona.read_text() + "[powers]\nweight = 3.0\n")
    with pytest.raises(ConfigError, match=r"the persona of seat cost of run .* has changed"):
        replay(run)


def test_an_edited_line_is_named_before_anything_is_played(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.path.write_bytes(run.path.read_bytes().replace(b'"step":3', b'"step":2', 1))
    with pytest.raises(DigestMismatchError, match=r"line .* was changed"):
        replay(recorded(run.path))


def test_a_trace_that_is_cut_off_within_a_line_says_so(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.path.write_bytes(run.path.read_bytes()[:-40])
    with pytest.raises(TraceError, match="ends within line"):
        replay(recorded(run.path))


def test_a_trace_of_a_newer_schema_is_refused_by_its_name(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.path.write_bytes(run.path.read_bytes().replace(b"trace/1", b"trace/2", 1))
    with pytest.raises(SchemaVersionError, match="'trace/2'"):
        recorded(run.path)
