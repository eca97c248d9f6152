"""The program from outside: what people, scripts and acceptance checks rely on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.words import COMMANDS, GROUPS
from tests.support.bills import bill_text, hour, usage
from tests.support.program import ENTRY, PROGRAM, environment, warroom

RUN_FIELDS = {
    "run",
    "scenario",
    "seed",
    "protocol",
    "personas",
    "driver",
    "steps",
    "stop_reason",
    "success",
    "success_any",
    "score",
    "reward_total",
    "rewards",
    "metrics_end",
    "violations",
    "usage",
    "trace",
    "trace_sha",
}
QUICK = ("--driver", "loop", "--store", "inprocess")


def test_no_options_play_the_default_episode_and_leave_a_run_to_study(tmp_path: Path) -> None:
    done = warroom(cwd=tmp_path)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    run = re.fullmatch(
        r"\[START\] task=cloudedge/hard env=cloudedge model=rules seed=1 run=(\S+)", lines[0]
    )
    assert run
    assert len(lines) == 32
    for number, line in enumerate(lines[1:-1], 1):
        ended = "true" if number == 30 else "false"
        assert re.fullmatch(
            rf"\[STEP\] step={number} action=\S+ reward=-?\d+\.\d\d done={ended} error=null", line
        )
    end = re.fullmatch(
        r"\[END\] success=(true|false) steps=30 score=(0\.\d{3}) rewards=(\S+)", lines[-1]
    )
    assert end
    assert len(end[3].split(",")) == 30
    assert "store:  " in done.err
    assert f"trace:  runs/{run[1]}/trace.jsonl" in done.err
    assert f"next:   {PROGRAM} trace show {run[1]}" in done.err

    folder = tmp_path / "runs" / run[1]
    assert {"trace.jsonl", "run.json", "timings.jsonl", "scorecard.json"} <= {
        path.name for path in folder.iterdir()
    }
    scorecard = json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))
    assert f"{scorecard['total']:.3f}" == end[2]
    assert str(scorecard["success"]).lower() == end[1]

    verdict = warroom("trace", "verify", "last", "--json", cwd=tmp_path)
    assert verdict.status == 0
    assert verdict.document["ok"] is True
    assert verdict.document["steps"] == 30

    shown = warroom("trace", "show", run[1], "--step", "1:2", cwd=tmp_path)
    assert shown.status == 0
    assert "step 2" in shown.out
    assert "step 3" not in shown.out
    steps = warroom("trace", "show", str(folder), "--json", cwd=tmp_path).document
    assert [step["step"] for step in steps] == list(range(1, 31))

    (row,) = warroom("runs", "--json", cwd=tmp_path).document
    assert row["run"] == run[1]
    assert row["state"] == "finished"

    again = warroom("--resume", "last", "--json", cwd=tmp_path)
    assert again.status == 0
    assert again.document["trace_sha"] == verdict.document["sha"]

    cleaned = warroom("runs", "clean", "--json", cwd=tmp_path)
    assert cleaned.document["removed"] == [run[1]]
    assert (folder / "trace.jsonl").is_file()


def test_json_is_one_document_and_drivers_and_reruns_agree_on_its_hash(tmp_path: Path) -> None:
    first = warroom("--seed", "2", "--json", *QUICK, cwd=tmp_path)
    assert first.status == 0
    assert first.err == ""
    document = first.document
    assert set(document) >= RUN_FIELDS
    assert document["seed"] == 2
    assert document["personas"].keys() == {"resource", "cost", "sustainability", "janitor"}
    assert len(document["rewards"]) == document["steps"] == 30
    second = warroom("--json", "run", "--seed", "2", "--driver", "graph", cwd=tmp_path)
    assert second.document["run"] != document["run"]
    assert second.document["trace_sha"] == document["trace_sha"]
    other = warroom("--json", cwd=tmp_path, WARROOM_SEED="3", WARROOM_DRIVER="loop")
    assert other.document["seed"] == 3
    assert other.document["driver"] == "loop"
    assert other.document["trace_sha"] != document["trace_sha"]


def test_the_log_modes(tmp_path: Path) -> None:
    events = warroom("--log", "json", "--steps", "2", *QUICK, cwd=tmp_path)
    lines = [json.loads(line) for line in events.out.splitlines()]
    assert lines[0]["type"] == "run_started"
    assert lines[-1]["type"] == "run_ended"
    trace = next((tmp_path / "runs").glob("*/trace.jsonl")).read_text(encoding="utf-8")
    assert events.out == trace
    aside = warroom("--log", "json", "--steps", "2", "--json", *QUICK, cwd=tmp_path)
    assert aside.document["steps"] == 2
    assert [json.loads(line)["type"] for line in aside.err.splitlines()][-1] == "run_ended"
    quiet = warroom("--log", "quiet", "--steps", "2", *QUICK, cwd=tmp_path)
    assert quiet.out == ""
    assert "trace:  " in quiet.err
    live = warroom("--log", "live", "--steps", "2", *QUICK, cwd=tmp_path)
    assert live.out.startswith("[START]")
    assert "needs a terminal" in live.err


def test_what_there_is_can_be_listed_and_shown(tmp_path: Path) -> None:
    for words in (("scenarios",), ("personas",), ("protocols",), ("worlds",)):
        rows = warroom(*words, "--json", cwd=tmp_path).document
        assert rows
        assert all({"name", "title", "description"} <= set(row) for row in rows)
    shown = warroom("scenarios", "cloudedge/hard", "--json", cwd=tmp_path).document
    assert shown["targets"]["latency_ms"] == 150.0
    persona = warroom("personas", "show", "cost_hawk", "--json", cwd=tmp_path).document
    assert persona["objectives"]["cost"]["weight"] == 3.0
    text = warroom("protocols", "weighted_score", cwd=tmp_path)
    assert text.status == 0
    assert "weighted" in text.out


def test_lint_tells_line_and_reason_and_further_persona_folders_are_searched(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    good = 'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "mine"\nrole = "cost"\n'
    (folder / "mine.toml").write_text(good, encoding="utf-8")
    assert warroom("personas", "lint", "mine/mine.toml", cwd=tmp_path).status == 0
    (folder / "bad.toml").write_text(good + "[powers]\nwieght = 2\n", encoding="utf-8")
    bad = warroom("personas", "lint", "mine/bad.toml", "--json", cwd=tmp_path)
    assert bad.status == 1
    assert bad.document["ok"] is False
    assert "bad.toml:7" in bad.document["faults"][0]
    named = warroom(
        "--persona", "cost=mine", "--json", *QUICK, cwd=tmp_path, WARROOM_PERSONAS="mine"
    )
    assert named.document["personas"]["cost"] == "mine"
    assert warroom("personas", "lint", "nosuch.toml", cwd=tmp_path).status == 2


def test_the_doctor_says_whether_the_default_job_can_run(tmp_path: Path) -> None:
    well = warroom("doctor", "--json", cwd=tmp_path, OPENAI_API_KEY="sk-very-secret-key-1234")
    assert well.status == 0, well.out
    assert well.document["ok"] is True
    checks = {check["name"]: check for check in well.document["checks"]}
    assert checks["store"]["ok"] is True
    assert "OPENAI_API_KEY" in checks["model endpoint"]["note"]
    assert "very-secret" not in well.out + well.err
    ill = warroom("doctor", cwd=tmp_path, WARROOM_REDIS_URL="redis://:hunter2@127.0.0.1:1/0")
    assert ill.status == 3
    assert "WARROOM_REDIS_URL" in ill.out
    assert "hunter2" not in ill.out + ill.err


def test_a_tournament_has_its_rows_in_order_however_many_processes_play_it(
    tmp_path: Path,
) -> None:
    grid = (
        "tournament",
        "--scenarios",
        "cloudedge/easy,cloudedge/hard",
        "--protocols",
        "weighted_score",
        "--protocols",
        "plurality",
        "--personas",
        "default;cost_hawk",
        "--seeds",
        "0:2",
        "--steps",
        "5",
        "--json",
    )
    alone = warroom(*grid, cwd=tmp_path)
    assert alone.status == 0, alone.err
    rows = alone.document["rows"]
    assert len(rows) == 16
    keys = [
        (row["scenario"], row["protocol"], row["personas"]["cost"], row["seed"]) for row in rows
    ]
    assert keys[:4] == [
        ("cloudedge/easy", "weighted_score", "cost", 0),
        ("cloudedge/easy", "weighted_score", "cost", 1),
        ("cloudedge/easy", "weighted_score", "cost_hawk", 0),
        ("cloudedge/easy", "weighted_score", "cost_hawk", 1),
    ]
    assert all(row["steps"] == 5 and row["error"] is None for row in rows)
    summary = alone.document["summary"]
    assert len(summary) == 8
    assert all(entry["n"] == 2 and entry["score"]["se"] is not None for entry in summary)
    assert "16/16 episodes" in alone.err
    assert not (tmp_path / "runs").exists()
    together = warroom(*grid, "-j", "2", cwd=tmp_path)
    assert together.document == alone.document


LOUD = """
LINE = "[END] success=true steps=1 score=1.000 rewards=1"
print(LINE)


class Loud:
    def __init__(self, spec, seat):
        print(LINE)

    def answer(self, request):
        print(LINE, flush=True)
        raise ValueError("loud")
"""


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_a_persona_that_prints_writes_neither_into_the_log_nor_into_a_document(
    driver: str, tmp_path: Path
) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    (tmp_path / "loud.toml").write_text(
        'schema = "persona/1"\n[identity]\nid = "loud"\nrole = "observer"\n'
        '[backend]\nkind = "python:loud:Loud"\n',
        encoding="utf-8",
    )
    seat = ("--persona", "observer=loud.toml", "--steps", "2")
    room = (*seat, "--store", "inprocess", "--driver", driver)
    where = {"PYTHONPATH": str(tmp_path)}
    lines = warroom(*room, "--log", "lines", cwd=tmp_path, **where)
    assert [line.split()[0] for line in lines.out.splitlines()] == [
        "[START]",
        "[STEP]",
        "[STEP]",
        "[END]",
    ]
    assert "score=1.000" not in lines.out
    assert lines.err.count("score=1.000") == 4
    assert warroom(*room, "--json", cwd=tmp_path, **where).document["steps"] == 2
    if driver == "graph":
        return
    grid = ("tournament", "--personas", "observer=loud.toml", "--seeds", "0:2", "--steps", "2")
    for jobs in ("1", "2"):
        played = warroom(*grid, "-j", jobs, "--json", cwd=tmp_path, **where)
        assert [row["error"] for row in played.document["rows"]] == [None, None]
        assert "score=1.000" in played.err


def test_a_cell_that_cannot_be_played_is_a_row_and_the_rest_runs(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(
        'schema = "scenario/1"\nname = "other"\nworld = "finops"\nhorizon = 2\n'
        '[params]\ntask = "bill"\n',
        encoding="utf-8",
    )
    done = warroom(
        "tournament",
        "--scenarios",
        "other.toml,cloudedge/easy",
        "--protocols",
        "cloudedge_boardroom",
        "--out",
        "kept",
        "--json",
        cwd=tmp_path,
    )
    assert done.status == 1
    failed, played = done.document["rows"]
    assert set(failed["error"]) == {"what", "why", "fix"}
    assert failed["score"] is None
    assert played["error"] is None
    assert Path(tmp_path, played["trace"]).is_file()
    kept = json.loads((tmp_path / "kept" / "tournament.json").read_text(encoding="utf-8"))
    assert kept["rows"] == done.document["rows"]


def test_a_bill_becomes_a_scenario_only_if_it_reconciles(tmp_path: Path) -> None:
    rows = [usage(ResourceId=f"i-{number}", **hour(number)) for number in range(3)]
    (tmp_path / "bill.csv").write_text(bill_text(rows), encoding="utf-8")
    report = warroom("import", "focus", "bill.csv", "-o", "mine.toml", "--json", cwd=tmp_path)
    assert report.status == 0, report.err
    document = report.document
    assert set(document) >= {
        "rows",
        "mapped",
        "unattributed",
        "ledger",
        "skipped",
        "total_in",
        "total_mapped",
        "total_unattributed",
        "total_ledger",
        "total_billed",
        "gap_fraction",
        "resources",
        "scenario",
    }
    assert document["rows"] == document["mapped"] == 3
    assert warroom("scenarios", "mine.toml", "--json", cwd=tmp_path).document["world"] == "finops"

    template = warroom("import", "focus", "bill.csv", "--metrics-template", "m.csv", cwd=tmp_path)
    assert template.status == 0
    assert "import focus bill.csv --metrics m.csv" in template.out
    assert (tmp_path / "m.csv").is_file()

    rows.append(usage(ResourceId="i-9", EffectiveCost="much", BilledCost="much"))
    (tmp_path / "bad.csv").write_text(bill_text(rows), encoding="utf-8")
    lost = warroom("import", "focus", "bad.csv", "-o", "lost.toml", cwd=tmp_path)
    assert lost.status == 1
    assert "not reconciled" in lost.err
    assert not (tmp_path / "lost.toml").exists()


def test_an_import_without_an_output_says_that_nothing_was_written_and_how(tmp_path: Path) -> None:
    (tmp_path / "my bill.csv").write_text(bill_text([usage()]), encoding="utf-8")
    told = warroom("import", "focus", "my bill.csv", "--horizon", "7", cwd=tmp_path)
    assert told.status == 0
    *_, said, line = told.out.splitlines()
    assert said == "no scenario was written; to write it:"
    assert line.endswith("import focus 'my bill.csv' --horizon 7 -o my-bill.toml")
    words = shlex.split(line)
    assert warroom(*words[words.index("import") :], cwd=tmp_path).status == 0
    assert "horizon = 7" in (tmp_path / "my-bill.toml").read_text(encoding="utf-8")


def test_a_trace_is_exported_whole_or_not_at_all(tmp_path: Path) -> None:
    assert warroom("--steps", "2", *QUICK, cwd=tmp_path).status == 0
    (trace,) = (tmp_path / "runs").glob("*/trace.jsonl")
    lines = warroom("trace", "export", "last", cwd=tmp_path)
    assert lines.out == trace.read_text(encoding="utf-8")
    table = warroom(
        "trace", "export", "last", "--format", "csv", "-o", "t.csv", "--json", cwd=tmp_path
    )
    assert table.document["rows"] == 8
    assert len((tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()) == 9
    trace.write_bytes(trace.read_bytes().replace(b"scale_", b"scalp_", 1))
    edited = warroom("trace", "export", "last", "-o", "u.jsonl", cwd=tmp_path)
    assert edited.status == 1
    assert edited.err.startswith("error: ")
    assert [path.name for path in tmp_path.glob("*u.jsonl*")] == []
    assert warroom("trace", "verify", "last", cwd=tmp_path).status == 1


def test_an_export_says_where_it_cannot_go_and_pipes_nothing_of_an_edited_trace(
    tmp_path: Path,
) -> None:
    assert warroom("--steps", "2", *QUICK, cwd=tmp_path).status == 0
    (trace,) = (tmp_path / "runs").glob("*/trace.jsonl")
    folder = warroom("trace", "export", "last", "-o", "runs", cwd=tmp_path)
    assert folder.status == 2
    assert "-o runs is a folder" in folder.err
    assert "-o runs/trace.jsonl" in folder.err
    nowhere = warroom("trace", "export", "last", "-o", "no/t.csv", cwd=tmp_path)
    assert nowhere.status == 2
    assert "there is no folder no" in nowhere.err
    trace.write_bytes(trace.read_bytes()[::-1].replace(b"_elacs", b"_placs", 1)[::-1])
    for form in ("csv", "jsonl"):
        edited = warroom("trace", "export", "last", "--format", form, cwd=tmp_path)
        assert (edited.status, edited.out) == (1, "")
        assert edited.err.startswith("error: ")


def test_a_filter_that_nothing_meets_is_said_on_stderr(tmp_path: Path) -> None:
    assert warroom("--steps", "2", *QUICK, cwd=tmp_path).status == 0
    for form in ((), ("--json",)):
        none = warroom("trace", "show", "last", "--step", "9", *form, cwd=tmp_path)
        assert none.status == 0
        assert none.err == "no step of this run matches --step\n"


def test_a_world_is_shown_in_full_by_its_name(tmp_path: Path) -> None:
    world = warroom("worlds", "cloudedge", "--json", cwd=tmp_path).document
    assert world["name"] == "cloudedge"
    assert "cloudedge/hard" in world["scenarios"]


def test_on_a_terminal_the_live_view_is_drawn_and_the_cursor_comes_back(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    program = subprocess.Popen(
        [sys.executable, str(ENTRY), "--steps", "3", *QUICK],
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm", COLUMNS="100", LINES="40"),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # Linux answers EIO once the other end is closed.
        while part := os.read(ours, 65536):
            drawn += part
    os.close(ours)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    text = drawn.decode("utf-8")
    assert "Cloud War Room" in text
    assert "step 3/3" in text
    assert "[START]" not in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
    assert "trace show" in text


def test_help_is_there_for_every_word_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ENTRY), "--help"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, flags=re.MULTILINE))
    roots = {name.partition(".")[0] for name in imported}
    assert "typer" in roots
    heavy = {"langgraph", "langchain_core", "langchain_openai", "numpy", "redis", "pydantic"}
    assert not roots & heavy
    for command in COMMANDS:
        assert f"  {command} " in done.stdout


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    from orchestrator.cli.app import main
    from orchestrator.version import PROGRAM as started

    for command in COMMANDS:
        words = GROUPS[command].words if command in GROUPS else ("",)
        for word in words:
            assert main([command, *([word] if word else []), flag]) == 0
            shown = capsys.readouterr()
            assert shown.out.startswith(f"Usage: {started} {command}")
            assert shown.err == ""


def test_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    from orchestrator.cli.app import main

    assert main(["--version"]) == 0
    assert re.fullmatch(r"cloud-war-room \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_terminal_that_knows_no_unicode_gets_codes_instead_of_an_error(tmp_path: Path) -> None:
    done = warroom("tournament", "--seeds", "0:2", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.status == 0, done.err
    assert "standard error" in done.out
    assert "[95 % interval]" in done.out
    assert "\\xb1" in done.out
