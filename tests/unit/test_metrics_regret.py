"""Regret against planners that look one and several steps ahead."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.cli.app import main
from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from orchestrator.study.metrics.moments import moments
from orchestrator.study.metrics.regret import (
    Ahead,
    Effort,
    Regrets,
    plan_values,
    rows_with_regret,
    split_regret,
)
from orchestrator.study.recorded import Recorded, recorded
from orchestrator.trace.events import Chain, Event
from world.actions import Action, parse_joint
from world.errors import ConfigError, DigestMismatchError, InadmissibleActionError
from world.model import Joint
from world.noise import channel, uniforms


def played(folder: Path, **more: Any) -> Recorded:
    settings: dict[str, Any] = {
        "scenario": "cloudedge/hard", "seed": 5, "steps": 8, "driver": "loop",
        "store": "inprocess", "out": str(folder), "samples": 4, "lookahead_steps": 3, **more,
    }  # fmt: skip
    return recorded(run_episode(EpisodeSpec(**settings)).run, folder)


def test_a_plan_is_selected_on_some_samples_and_scored_on_the_others() -> None:
    values = np.array([[1.0, 1.0, 1.0, 1.0], [9.0, 0.0, 9.0, 0.0]])
    assert split_regret(values, 0) == -1.0
    assert split_regret(values[:, :1], 0) == 8.0
    assert split_regret(values, 1) == 0.0


def test_a_planner_is_not_praised_for_luck() -> None:
    draws = uniforms(1, np.arange(400 * 16 * 20), channel("test.regret"), 0)[0]
    tables = draws.reshape(400, 20, 16)
    split = float(np.mean([split_regret(table, 0) for table in tables]))
    lucky = float(np.mean([table.mean(axis=1).max() - table[0].mean() for table in tables]))
    assert abs(split) < 0.02
    assert lucky > 0.1


def test_an_equal_choice_is_no_regret() -> None:
    assert split_regret(np.array([[3.0, 1.0], [3.0, 9.0]]), 0) == 0.0


WORTH = {"a": 1.0, "b": 3.0, "c": 2.0}
OPTIONS: list[Joint] = [(Action(name),) for name in WORTH]


def puzzle(ahead: Ahead, joint: Joint) -> Ahead | None:
    """Each option earns its worth once; ``c`` right after ``a`` earns ten more."""
    done: tuple[str, ...] = ahead.state
    kind = joint[0].kind
    if kind in done:
        return None
    bonus = 10.0 if done[-1:] == ("a",) and kind == "c" else 0.0
    return Ahead((*done, kind), ahead.reward + WORTH[kind] + bonus, len(done) == 2)


def test_looking_further_finds_what_one_step_does_not_show() -> None:
    values = plan_values(puzzle, Ahead((), np.zeros(1), False), OPTIONS, 1, Effort(steps=3))
    assert values[1][:, 0].tolist() == [1.0, 3.0, 2.0]
    assert values[3][:, 0].tolist() == [16.0, 16.0, 6.0]  # a c b; b a c; c b a
    assert split_regret(values[1], 1) == 0.0
    assert split_regret(values[3], 2) == 10.0


def test_a_narrow_search_looks_at_the_choice_too() -> None:
    effort = Effort(steps=2, firsts=1, followers=3, width=1, small=0)
    values = plan_values(puzzle, Ahead((), np.zeros(1), False), OPTIONS, 0, effort)
    assert values[2][:, 0].tolist() == [13.0, 5.0, -np.inf]
    assert split_regret(values[2], 0) == 0.0


def test_a_plan_that_ends_the_episode_early_is_not_forgotten() -> None:
    def roll(ahead: Ahead, joint: Joint) -> Ahead:
        ends = joint[0].kind == "b"
        return Ahead((), ahead.reward + (5.0 if ends else -1.0), ends)

    options: list[Joint] = [(Action("a"),), (Action("b"),)]
    values = plan_values(roll, Ahead((), np.zeros(1), False), options, 0, Effort(steps=3))
    assert values[3][:, 0].tolist() == [4.0, 5.0]  # a then b, over; b, over


def test_an_option_that_cannot_be_taken_is_never_the_best() -> None:
    start = Ahead(("b",), np.zeros(1), False)
    values = plan_values(puzzle, start, OPTIONS, 0, Effort(steps=1))
    assert values[1][:, 0].tolist() == [1.0, -np.inf, 2.0]


def test_clairvoyant_regret_is_what_playing_every_sequence_finds(tmp_path: Path) -> None:
    run = played(tmp_path)
    room = run.room()
    rows = list(rows_with_regret(run, Regrets("clairvoyant")))
    assert len(rows) == 8
    for row, moment in zip(rows, moments(run, room), strict=True):
        names = sorted({i["id"].split(">")[0] for i in moment.record.candidates["items"]})
        for planner, steps in (("one_step", 1), ("multi_step", min(3, 8 - row.step + 1))):
            best: dict[str, float] = {}
            for plan in itertools.product(names, repeat=steps):
                state, total = moment.state, 0.0
                try:
                    for name in plan:
                        state, outcomes, _ = room.world.step(state, parse_joint(name))
                        total += outcomes.reward
                except InadmissibleActionError:
                    continue
                best[plan[0]] = max(best.get(plan[0], -np.inf), total)
            expected = max(best.values()) - best[moment.record.action]
            assert row.regret[planner] == pytest.approx(expected), (row.step, planner)
    assert max(row.regret["one_step"] for row in rows) > 0  # the room is not a greedy planner


@pytest.mark.parametrize(
    ("scenario", "noise"),
    [
        ("cloudedge/hard", "sampled"),
        ("cloudedge/hard", "mean"),
        ("cloudedge/seed/hard", "sampled"),
        ("finops/zombie_cleanup", "sampled"),
        ("aiops/incident_response_automation", "sampled"),
        ("aiops/incident_response_automation", "clairvoyant"),
        ("cloud/easy", "sampled"),
        ("cloud/easy", "clairvoyant"),
    ],
)
def test_every_world_can_be_played_on_from_the_moment_of_a_decision(
    tmp_path: Path, scenario: str, noise: str
) -> None:
    run = played(tmp_path, scenario=scenario, steps=2)
    samples = 4 if noise == "sampled" else 0
    rows = list(rows_with_regret(run, Regrets(noise, samples)))
    assert rows
    for row in rows:
        assert set(row.regret) == {"one_step", "multi_step"}
        if noise != "sampled":
            assert min(row.regret.values()) >= 0.0
    again = list(rows_with_regret(run, Regrets(noise, samples)))
    assert [row.regret for row in again] == [row.regret for row in rows]


def test_a_world_that_leaves_no_choice_leaves_no_regret(tmp_path: Path) -> None:
    run = played(tmp_path, scenario="cloudedge/seed/hard", seed=3, steps=20)
    forced = [s.step for s in run.steps if s.candidates.get("mandatory")]
    assert forced
    rows = {row.step: row for row in rows_with_regret(run, Regrets("mean"))}
    assert all(rows[step].regret == {} for step in forced)


def test_a_world_that_comes_out_otherwise_is_refused(tmp_path: Path) -> None:
    run = played(tmp_path, steps=3)
    chain, lines = Chain(), []
    for raw in run.path.read_bytes().splitlines():
        entry = json.loads(raw)
        if entry["type"] == "applied" and entry["step"] == 2:
            entry["data"]["state"] = "0" * 64
        data, seat = entry["data"], entry.get("agent", "")
        lines.append(chain.add(Event(entry["type"], entry["step"], entry["round"], data, seat)))
    run.path.write_bytes(b"\n".join(lines) + b"\n")
    forged = recorded(run.run, tmp_path)
    with pytest.raises(DigestMismatchError, match="step 2 of run"):
        list(rows_with_regret(forged, Regrets()))


def test_a_noise_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match="clairvoyant, sampled, mean"):
        Regrets("loud")
    with pytest.raises(ConfigError, match="--samples is 1"):
        Regrets("sampled", 1)


def test_the_command_prints_a_summary_a_table_and_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = played(tmp_path, steps=4, protocol="alternating_offers")
    assert main(["metrics", str(run.path), "--regret", "sampled", "--samples", "4"]) == 0
    said = capsys.readouterr().out
    assert "pareto_efficient" in said
    assert "regret multi_step" in said
    assert "4 belief samples, half to select and half to score" in said
    assert main(["metrics", str(run.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["run"], len(document["rows"])) == (run.run, 4)
    assert document["regret_noise"] is None
    assert document["summary"]["measures"]["seats_below_no_deal"]["n"] == 4
    assert document["rows"][0]["concessions"]["cost"]["bids"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--csv", "--json"], "--csv and --json"),
        (["--samples", "8"], "without --regret sampled"),
        (["--regret", "loud"], "clairvoyant, sampled, mean"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    run = played(tmp_path, steps=1)
    assert main(["metrics", str(run.path), *words]) == 2
    assert said in capsys.readouterr().err
    assert main(["metrics", "nowhere", "--out", str(tmp_path)]) == 2
