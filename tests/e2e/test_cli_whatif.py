"""The program replays a run, varies it, and says where two traces part."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.program import Done, warroom

pytestmark = pytest.mark.timeout(240)
SHORT = ("--scenario", "cloudedge/hard", "--steps", "5", "--driver", "loop", "--store", "inprocess")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run, ``cloudedge-hard.s1.weighted_score.….1``."""
    folder = tmp_path_factory.mktemp("whatif")
    assert warroom("run", *SHORT, "--json", cwd=folder).status == 0
    return folder


def first_run(place: Path) -> str:
    return (place / "runs" / ".order").read_text().splitlines()[0]


def one_line(done: Done) -> str:
    """The one line that an error is; nothing on standard output."""
    assert done.out == ""
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done.err
    return lines[0]


def test_a_replay_says_ok_with_the_hash_of_the_run(place: Path) -> None:
    run = first_run(place)
    verified = warroom("trace", "verify", run, "--json", cwd=place).document
    done = warroom("replay", run, "--json", cwd=place)
    assert done.status == 0, done.err
    told = done.document
    assert (told["ok"], told["sha"], told["steps"]) == (True, verified["sha"], 5)
    plain = warroom("replay", run, "--from", "3", cwd=place)
    assert plain.status == 0
    assert plain.out.startswith(f"ok: 5 steps, sha {verified['sha']}\n")


def test_a_counterfactual_prints_both_paths_and_what_they_came_to(place: Path) -> None:
    done = warroom("counterfactual", first_run(place), "--protocol", "borda", cwd=place)
    assert done.status == 0, done.err
    for word in ("parent", "child", "protocol borda", "noise", "reward", "score", "success"):
        assert word in done.out
    assert re.search(r"^1–\d+ +alike$|^\d+ +\S+", done.out, re.M)
    child = re.search(r"^child +(\S+)$", done.out, re.M)
    assert child
    assert warroom("trace", "verify", child[1], cwd=place).status == 0
    assert warroom("replay", child[1], cwd=place).status == 0
    record = json.loads((place / "runs" / child[1] / "run.json").read_text())
    assert record["counterfactual"]["parent"] == first_run(place)


def test_the_document_of_a_counterfactual_has_every_difference(place: Path) -> None:
    done = warroom(
        "counterfactual", first_run(place), "--drop", "resource", "--from", "2", "--json", cwd=place
    )
    assert done.status == 0, done.err
    told = done.document
    assert told["change"] == {"kind": "drop", "seat": "resource", "from_step": 2}
    for side in (told["reward_total"], told["score"]):
        assert side["difference"] == pytest.approx(side["child"] - side["parent"])
    assert set(told["metrics"]) == {"latency_ms", "cost_usd_per_hour", "carbon_index"}
    assert all(fork["step"] >= 2 for fork in told["steps_differ"])


def test_a_live_seat_writes_a_new_run_and_says_whether_it_parted(place: Path) -> None:
    done = warroom("replay", first_run(place), "--live", "cost", cwd=place)
    assert done.status == 0, done.err
    assert "nothing is different" in done.out
    assert "all 5 steps came out the same" in done.out


def test_a_diff_of_a_run_and_its_counterfactual_names_the_protocol(place: Path) -> None:
    run = first_run(place)
    other = warroom("counterfactual", run, "--protocol", "plurality", "--json", cwd=place).document[
        "run"
    ]
    done = warroom("trace", "diff", run, other, cwd=place)
    assert done.status == 1
    assert "input  protocol.name: weighted_score | plurality" in done.out
    assert re.search(r"^why +protocol differs", done.out, re.M)
    same = warroom("trace", "diff", run, run, "--json", cwd=place)
    assert (same.status, same.document["same"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--drop", "nobody"), 2, "seat 'nobody' was not in the room"),
        (("--ballot", "2:cost=no_such_thing"), 2, "no_such_thing is no candidate of step 2"),
        (("--ballot", "cost=nop"), 2, "it reads STEP:ROLE=ACTION"),
        (("--ballot", "2:cost=scale_up", "--from", "2"), 2, "--from does not go with --ballot"),
        (("--swap", "cost"), 2, "it reads ROLE=PERSONA"),
        (("--swap", "cost=no_such_persona"), 2, "no_such_persona"),
        (("--protocol", "no_such_protocol"), 2, "no_such_protocol"),
        (("--protocol", "borda", "--from", "6"), 2, "step 6 was never decided"),
        (("--protocol", "borda", "--from", "x"), 2, "it is a step, 1 or more"),
        (("--protocol", "borda", "--drop", "cost"), 2, "changes one thing"),
        (("--drop", "cost", "--drop", "janitor"), 2, "--drop and --drop are given"),
        ((), 2, "nothing is changed"),
    ],
)
def test_a_change_that_cannot_be_made_is_one_line(
    place: Path, words: tuple[str, ...], status: int, told: str
) -> None:
    done = warroom("counterfactual", first_run(place), *words, cwd=place)
    assert done.status == status
    assert told in one_line(done)


def test_drift_is_exit_1_with_the_first_value_that_differs(place: Path, tmp_path: Path) -> None:
    from tests.unit.test_replay import data_of, rewritten

    trace = tmp_path / "trace.jsonl"
    trace.write_bytes((place / "runs" / first_run(place) / "trace.jsonl").read_bytes())
    seq, data = data_of(trace, "grade", 3)
    rewritten(trace, {seq: {**data, "reward": 99.5}})
    done = warroom("replay", str(trace), cwd=place)
    assert done.status == 1
    assert done.out.startswith("drift: step 3, grade, reward: recorded 99.5, now ")


def test_a_truncated_trace_and_a_newer_one_are_one_line_each(place: Path, tmp_path: Path) -> None:
    data = (place / "runs" / first_run(place) / "trace.jsonl").read_bytes()
    cut, newer = tmp_path / "cut.jsonl", tmp_path / "newer.jsonl"
    cut.write_bytes(data[:-25])
    newer.write_bytes(data.replace(b"trace/1", b"trace/7", 1))
    for path, told in ((cut, "ends within line"), (newer, "schema 'trace/7'")):
        for command in (("replay", str(path)), ("counterfactual", str(path), "--drop", "cost")):
            done = warroom(*command, cwd=place)
            assert done.status == 1
            assert told in one_line(done)


def test_a_counterfactual_that_was_stopped_is_not_resumed(place: Path) -> None:
    run = warroom(
        "counterfactual", first_run(place), "--protocol", "approval", "--json", cwd=place
    ).document["run"]
    trace = place / "runs" / run / "trace.jsonl"
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:-1]))
    done = warroom("run", "--resume", run, cwd=place)
    assert done.status == 2
    assert "is a counterfactual that was stopped" in done.err


def test_the_next_command_can_be_typed_where_a_folder_has_a_space(tmp_path: Path) -> None:
    words = ("--scenario", "cloudedge/easy", "--steps", "2", "--store", "inprocess")
    where = ("--out", "two words")
    assert warroom("run", *words, *where, "--log", "quiet", cwd=tmp_path).status == 0
    done = warroom(
        "counterfactual", "last", "--drop", "cost", "--store", "inprocess", *where, cwd=tmp_path
    )
    (told,) = (line for line in done.err.splitlines() if line.startswith("next:"))
    assert all((tmp_path / path).is_file() for path in shlex.split(told)[-2:])
