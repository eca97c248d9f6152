"""Reading a recorded run: its spec, its steps, its end, and whether its room is still the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.room import build_room
from orchestrator.spec import EpisodeSpec
from orchestrator.study.counterfactual import counterfactual
from orchestrator.study.recorded import changed, check_same_room, recorded
from orchestrator.trace.verify import verify
from tests.support.traces import commits, write_trace
from tests.unit.test_counterfactual import CHANGES, ran
from world.errors import ConfigError, DigestMismatchError, TraceError, UnknownNameError
from world.store.base import StoreSettings


def test_a_run_is_read_by_id_by_last_by_folder_and_by_file(tmp_path: Path) -> None:
    run = ran(tmp_path)
    names = (run.run, "last", str(run.path.parent), str(run.path), run.path)
    found = [recorded(name, tmp_path) for name in names]
    assert {each.run for each in found} == {run.run}
    assert {each.sha for each in found} == {verify(run.path).sha}


def test_its_parts_are_those_of_the_trace(tmp_path: Path) -> None:
    run = ran(tmp_path, protocol="borda", seed=4)
    assert (run.spec.protocol, run.spec.seed) == ("borda", 4)
    assert run.seats == ("resource", "cost", "sustainability", "janitor")
    assert run.backends == dict.fromkeys(run.seats, "rules")
    assert run.weights["janitor"] == 0.5
    assert [step.step for step in run.steps] == [*range(1, 9)]
    assert list(run.stream()) == list(run.steps)
    assert run.rewards == tuple(run.ending.data["rewards"])
    assert run.scorecard["total"] == run.ending.data["scorecard"]["total"]


def test_a_spec_for_playing_again_writes_nothing_and_needs_no_server(tmp_path: Path) -> None:
    run = ran(tmp_path)
    spec = run.rerun_spec(seed=9)
    assert (spec.out, spec.store, spec.driver, spec.seed) == ("", "inprocess", "loop", 9)
    assert (spec.scenario, spec.protocol, spec.steps) == ("cloudedge/hard", "weighted_score", 8)


def test_a_field_that_cannot_have_a_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lookahead_steps"):
        ran(tmp_path).rerun_spec(lookahead_steps=0)
    with pytest.raises(ConfigError, match="no_such_field"):
        changed(EpisodeSpec(), no_such_field=1)


def test_a_trace_on_its_own_gives_the_spec_that_its_header_names(tmp_path: Path) -> None:
    run = ran(tmp_path / "runs", protocol="nash", no_deal="borda", personas={"cost": "cost_hawk"})
    alone = recorded(Path(shutil.copy(run.path, tmp_path / "alone.jsonl")))
    assert alone.run == "alone"
    assert alone.spec.personas["cost"] == "cost_hawk"
    assert (alone.spec.protocol, alone.spec.no_deal, alone.spec.steps) == ("nash", "borda", 8)
    assert alone.room().header() == run.room().header()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "the seed of run"),
        ({"protocol": "borda"}, "the protocol of run"),
        ({"personas": {"cost": "cost_hawk"}}, "the persona of seat cost of run"),
        ({"no_deal": "borda"}, "the room of run"),
        ({"absent": ["cost"]}, "the persona of seat cost of run"),
        ({"scenario": "cloudedge/easy"}, "the scenario of run"),
    ],
)
def test_another_room_is_refused_and_what_differs_is_named(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    run = ran(tmp_path)
    with pytest.raises(ConfigError, match=words):
        check_same_room(run, build_room(run.rerun_spec(**change)))


def test_a_trace_without_an_end_is_read_and_refused_where_an_end_is_needed(tmp_path: Path) -> None:
    run = recorded(write_trace(tmp_path / "t.jsonl", commits(3, ended=False)))
    assert len(run.steps) == 3
    assert not run.ending.complete
    with pytest.raises(TraceError, match="stops after step 3"):
        run.require_complete()


def test_an_edited_trace_gives_no_steps(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.path.write_bytes(run.path.read_bytes().replace(b'"reward":', b'"reward": ', 1))
    with pytest.raises(DigestMismatchError):
        list(recorded(run.path).stream())


def test_a_record_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    run = ran(tmp_path)
    file = run.path.parent / "run.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "spec": {**data["spec"], "of_tomorrow": 1}}))
    with pytest.raises(UnknownNameError, match=r"spec\.of_tomorrow"):
        recorded(run.path)


def test_a_seat_that_stays_empty_must_be_one_and_somebody_must_stay(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seat nobody cannot stay empty"):
        build_room(EpisodeSpec(absent=("nobody",)))
    everybody = ("resource", "cost", "sustainability", "janitor")
    with pytest.raises(ConfigError, match="every seat of the room is empty"):
        build_room(EpisodeSpec(absent=everybody))
    assert list(build_room(EpisodeSpec(absent=everybody[:3])).specs) == ["janitor"]


def test_an_episode_of_the_same_name_that_is_another_is_not_forked(tmp_path: Path) -> None:
    one = ran(tmp_path / "one", store="inprocess")
    other = ran(tmp_path / "other", seed=2)
    for run in (one, other):
        shutil.copy(run.path, run.path.parent.parent / "same.jsonl")
    settings = StoreSettings(state_dir=str(tmp_path / "state"))
    first = recorded(tmp_path / "one" / "same.jsonl")
    counterfactual(first, CHANGES["protocol"], str(tmp_path), "embedded", settings)
    second = recorded(tmp_path / "other" / "same.jsonl")
    with pytest.raises(ConfigError, match="the store holds another episode named same"):
        counterfactual(second, CHANGES["protocol"], str(tmp_path), "embedded", settings)
