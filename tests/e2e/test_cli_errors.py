"""Whatever is typed, the answer to a fault is one line, the right status and, asked for, JSON."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import ENTRY, PROGRAM, Done, environment, warroom


def check_one_line(done: Done, status: int, *words: str) -> None:
    assert done.status == status, done.err
    lines = [line for line in done.err.splitlines() if line]
    assert len(lines) == 1, done.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in done.err
    assert lines[0].isprintable()
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("--sed", "2"), 2, "--seed"),
        (("--seed", "two"), 2, "whole number"),
        (("--seed",), 2, "requires an argument"),
        (("rnu",), 2, "Did you mean run"),
        (("run", "extra"), 2, "extra"),
        (("--scenario", "cloudedge/hrad"), 2, "cloudedge/hard"),
        (("--protocol", "weighted_scor"), 2, "weighted_score"),
        (("--persona", "cost=cost_hwak"), 2, "cost_hawk"),
        (("--persona", "cots=cost"), 2, "cost=cost"),
        (("worlds", "nosuch"), 2, "no world 'nosuch'"),
        (("--set", "cost.powers.wieght=2"), 2, "weight"),
        (("--no-deal", "commander"), 2, "needs a commander's seat"),
        (("--protocol", "mediator"), 2, "Seat one: --persona mediator=mediator"),
        (("--human", "cots"), 2, "there is no such seat"),
        (("--model=x", "--base-url", "y"), 2, "must start with http"),
        (("personas", "show", "cots", "--rendered"), 2, "Did you mean cost"),
        (("scenarios", "certify", "x", "--seeds", "0:2"), 2, "no scenario 'x'"),
        (("counterfactual", "last", "--swap", "cost=x"), 2, "no last run"),
        (("counterfactual", "last"), 2, "nothing is changed"),
        (("replay", "nosuch"), 2, "nosuch"),
        (("trace", "diff", "last", "nosuch"), 2, "no last run"),
        (("serve", "--port", "1"), 2, "later version"),
        (("trace", "verify"), 2, "RUN"),
        (("trace", "show", "nosuch"), 2, "nosuch"),
        (("trace", "show", "last"), 2, "last"),
        (("trace", "export", "last", "--format", "parquett"), 2, "Did you mean parquet"),
        (("--resume", "last", "--seed", "2"), 2, "--seed cannot be given with --resume"),
        (("--resume", "nosuch"), 2, "nosuch"),
        (("--store", "mysql"), 2, "mysql"),
        (("--store", "redis://:hunter2@127.0.0.1:1/0"), 3, "127.0.0.1:1"),
        (("import", "focus", "nosuch.csv"), 2, "nosuch.csv"),
        (("tournament", "--seeds", "3:1"), 2, "--seeds"),
        (("tournament", "--protocols", "nosuch"), 2, "nosuch"),
        (("tournament", "--engine", "dask"), 2, "must be process or ray"),
        (("bench", "nosuch"), 2, "nosuch"),
        (("--scenario", "x\x1b[2J\ny"), 2, "x"),
    ],
    ids=lambda value: (
        " ".join(value).encode("unicode_escape").decode() if isinstance(value, tuple) else None
    ),
)
def test_a_fault_is_one_line_with_its_status_and_its_three_parts_as_json(
    arguments: tuple[str, ...], status: int, word: str, tmp_path: Path
) -> None:
    done = warroom("--json", *arguments, cwd=tmp_path)
    check_one_line(done, status, word)
    assert "hunter2" not in done.err + done.out
    error = done.document["error"]
    assert set(error) == {"what", "why", "fix"}
    assert error["what"]
    assert not (tmp_path / "runs").exists()


def test_without_json_nothing_is_on_stdout(tmp_path: Path) -> None:
    done = warroom("--seed", "two", cwd=tmp_path)
    check_one_line(done, 2, "--seed is 'two'")
    assert done.out == ""


def test_a_faulty_config_file_or_variable_is_named(tmp_path: Path) -> None:
    (tmp_path / "warroom.toml").write_text("sedd = 2\n", encoding="utf-8")
    check_one_line(warroom(cwd=tmp_path), 2, "'sedd'", "Did you mean seed")
    (tmp_path / "warroom.toml").write_text("", encoding="utf-8")
    done = warroom("--print-config", cwd=tmp_path, WARROOM_STORE="redis://:hunter2@h")
    assert done.status == 0
    assert 'store = "redis://:***@h"' in done.out
    check_one_line(
        warroom(cwd=tmp_path, WARROOM_DRIVER="raph"), 2, "WARROOM_DRIVER is 'raph'", "graph"
    )
    check_one_line(warroom(cwd=tmp_path, WARROOM_HUMAN="cots"), 2, "there is no such seat")


def test_the_variables_of_runs_own_options_mean_what_the_options_mean(tmp_path: Path) -> None:
    done = warroom("--seed", "two", cwd=tmp_path, WARROOM_JSON="true")
    check_one_line(done, 2, "--seed is 'two'")
    assert set(done.document["error"]) == {"what", "why", "fix"}
    check_one_line(warroom("worlds", cwd=tmp_path, WARROOM_JSON="ja"), 2, "WARROOM_JSON is 'ja'")
    printed = warroom(cwd=tmp_path, WARROOM_PRINT_CONFIG="1", WARROOM_JSON="1")
    assert printed.document["settings"]["seed"] == 1
    check_one_line(warroom(cwd=tmp_path, WARROOM_RESUME="nosuch"), 2, "no run 'nosuch'")
    both = warroom("--seed", "2", cwd=tmp_path, WARROOM_RESUME="last")
    check_one_line(both, 2, "--seed cannot be given with WARROOM_RESUME")
    assert not (tmp_path / "runs").exists()


def test_a_persona_fault_is_one_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('schema = "persona/1"\n[identity]\n', encoding="utf-8")
    done = warroom("--persona", "cost=bad.toml", cwd=tmp_path)
    check_one_line(done, 2, "bad.toml:2: identity.")
    assert done.err.count("error:") == 1


def test_a_command_that_an_error_names_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    done = warroom("--scenario", "nosuch", "--json", cwd=tmp_path)
    command = f"{PROGRAM} scenarios"
    assert command in done.err
    assert command in done.document["error"]["fix"]


def test_an_interpreter_without_the_packages_is_told_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(ENTRY), "--help"],  # -S leaves the packages out.
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: typer is not installed here (")
    assert "run: make setup" in line


@pytest.mark.parametrize(
    "arguments", ["scenarios --json", "--help", "--steps 2 --log quiet --json"]
)
@pytest.mark.parametrize("broken", [">&-", ">/dev/full"])
def test_standard_output_that_cannot_be_written_is_one_line(
    arguments: str, broken: str, tmp_path: Path
) -> None:
    store = "--store inprocess --driver loop" if "steps" in arguments else ""
    for silent in ("", "2>&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {PROGRAM} {arguments} {store} {broken} {silent}"],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        lines = done.stderr.splitlines()
        assert len(lines) == (0 if silent else 1), done.stderr
        assert "report" not in done.stderr


def test_the_log_of_a_run_on_a_full_disk_ends_it_in_words(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {PROGRAM} --log lines --driver loop --store inprocess >/dev/full"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == (
        "error: the log cannot be written (No space left on device); the run stops here"
    )
    assert lines[-1].startswith("resume: ")
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = warroom("--out", "file/runs", "--store", "inprocess", "--driver", "loop", cwd=tmp_path)
    check_one_line(done, 2, "file/runs")


def test_a_fault_of_the_program_is_one_line_and_a_traceback_only_on_demand(
    tmp_path: Path,
) -> None:
    broken = {"PYTHONPATH": str(tmp_path)}
    (tmp_path / "sitecustomize.py").write_text(
        "import orchestrator.settings as s\n"
        "def fail(*a, **k): raise ZeroDivisionError('division by zero')\n"
        "s.load_settings = fail\n",
        encoding="utf-8",
    )
    broken["PYTHONPATH"] += ":" + str(Path(__file__).resolve().parent.parent.parent)
    done = warroom("--json", cwd=tmp_path, **broken)
    check_one_line(done, 1, "internal error: ZeroDivisionError", "report")
    assert "internal error" in done.document["error"]["what"]
    loud = warroom("--json", cwd=tmp_path, **broken, WARROOM_DEBUG="1")
    assert loud.status == 1
    assert "Traceback" in loud.err
