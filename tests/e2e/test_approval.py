"""``--approve``: nothing that it guards is done before somebody said yes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import warroom
from tests.support.terminals import TypedProgram

FINOPS = ("run", "--scenario", "finops/zombie_cleanup", "--steps", "1", "--approve", "destructive")


def events(folder: Path, kind: str, out: str = "runs") -> list[dict[str, Any]]:
    """Events of one type in the only trace below a folder."""
    (trace,) = (folder / out).glob("*/trace.jsonl")
    return [e for e in map(json.loads, trace.read_text().splitlines()) if e["type"] == kind]


def test_without_a_terminal_what_destroys_is_refused_and_said_once(tmp_path: Path) -> None:
    traces = []
    for driver in ("graph", "loop"):
        done = warroom(
            *FINOPS, "--steps", "3", "--driver", driver, "--out", driver, "--json", cwd=tmp_path
        )
        assert done.status == 0
        assert done.err.count("there is no terminal to approve at") == 1
        asked = events(tmp_path, "human_input", driver)
        assert asked
        assert not any(e["data"]["approved"] for e in asked)
        assert {e["data"]["by"] for e in asked} == {"no terminal"}
        for decision in events(tmp_path, "decision", driver):
            assert "terminate" not in decision["data"]["action"]
        traces.append(done.document["trace_sha"])
    first = next(
        d["data"] for d in events(tmp_path, "decision", "loop") if d["data"]["override_rule"]
    )
    assert first["override_rule"] == "control/approve"
    assert "terminate" in first["overridden_from"]
    assert "not approved (no terminal)" in first["eliminated"][first["overridden_from"]]
    assert traces[0] == traces[1]


def test_a_person_sees_the_way_back_and_approves_before_it_is_done(tmp_path: Path) -> None:
    with TypedProgram(*FINOPS, cwd=tmp_path) as gate:
        screen = gate.wait_for("approve (300 s left)> ")
        assert "terminate:" in screen
        assert "undo: cannot be undone" in screen
        gate.enter("perhaps")
        gate.wait_for("approve (300 s left)> ", times=2)
        gate.enter("y")
        assert gate.finish()[0] == 0
    (entered,) = events(tmp_path, "human_input")
    assert (entered["data"]["approved"], entered["data"]["by"]) == (True, "person")
    (decision,) = events(tmp_path, "decision")
    assert decision["data"]["action"] == entered["data"]["candidate"]
    assert decision["data"]["override_rule"] == ""


def test_ctrl_c_at_the_gate_does_nothing_and_asks_again_on_resume(tmp_path: Path) -> None:
    with TypedProgram(*FINOPS, cwd=tmp_path) as gate:
        gate.wait_for("s left)> ")
        gate.press(b"\x03")
        status, screen = gate.finish()
    assert status == 1
    assert "stopped after step 0" in screen
    with TypedProgram("run", "--resume", "last", cwd=tmp_path) as gate:
        gate.wait_for("s left)> ")
        gate.enter("y")
        assert gate.finish()[0] == 0
    assert [e["data"]["approved"] for e in events(tmp_path, "human_input")] == [True]


def test_a_refused_option_makes_way_for_the_next_best(tmp_path: Path) -> None:
    with TypedProgram(*FINOPS, cwd=tmp_path) as gate:
        gate.wait_for("s left)> ")
        gate.enter("n")
        assert gate.finish()[0] == 0
    refused = events(tmp_path, "human_input")[0]["data"]
    (decision,) = events(tmp_path, "decision")
    assert not set(refused["actions"]) & set(decision["data"]["action"].split("+"))
    assert decision["data"]["overridden_from"] == refused["candidate"]


def test_the_gate_asks_by_interrupt_and_is_answered_by_another_process(tmp_path: Path) -> None:
    begun = warroom(*FINOPS, "--checkpointer", "sqlite", "--json", cwd=tmp_path)
    (question,) = begun.document["questions"]
    assert (question["seat"], question["step"]) == ("approve", 1)
    assert begun.document["steps"] == 0
    wrong = warroom("run", "--resume", "last", "--answer", "approve=maybe", cwd=tmp_path)
    assert wrong.status == 2
    done = warroom("run", "--resume", "last", "--answer", "approve=y", "--json", cwd=tmp_path)
    assert done.document["steps"] == 1
    assert events(tmp_path, "decision")[0]["data"]["action"] == question["candidate"]


@pytest.mark.parametrize("scenario", ["cloudedge/hard"])
def test_where_nothing_may_be_done_and_the_world_cannot_stand_still_the_run_stops(
    tmp_path: Path, scenario: str
) -> None:
    done = warroom(
        "run", "--scenario", scenario, "--approve", "all", "--steps", "1", "--json", cwd=tmp_path
    )
    assert done.status == 1
    assert "nothing was approved" in done.document["error"]["what"]


def test_controls_are_settings_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "warroom.toml").write_text('approve = "all"\nfreeze = ["1:2"]\n')
    done = warroom("run", "--print-config", "--json", "--blast-share", "0.25", cwd=tmp_path,
                   WARROOM_FREEZE="3:4 22-06", WARROOM_HUMAN="cost")  # fmt: skip
    settings = done.document["settings"]
    assert (settings["approve"], settings["blast_share"]) == ("all", 0.25)
    assert (settings["freeze"], settings["human"]) == (["1:2", "3:4", "22-06"], ["cost"])
    for words, said in (
        (("--approve", "some"), "--approve"),
        (("--freeze", "soon", "--scenario", "cloud/easy"), "a change freeze is 'soon'"),
        (("--blast-share", "2"), "--blast-share"),
        (("--human", "Not A Seat"), "--human"),
    ):
        refused = warroom("run", *words, "--steps", "1", cwd=tmp_path / "..")
        assert refused.status == 2
        assert said in refused.err
