"""Whatever is typed, the answer to a fault is one line, the right status and, asked for, JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import Done, warroom


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
        (("--set", "cost.powers.wieght=2"), 2, "weight"),
        (("--no-deal", "commander"), 2, "later version"),
        (("--human", "cost"), 2, "later version"),
        (("--model=x", "--base-url", "y"), 2, "later version"),
        (("personas", "show", "cost", "--rendered"), 2, "later version"),
        (("scenarios", "certify", "x", "--seeds", "0:2"), 2, "later version"),
        (("counterfactual", "last", "--swap", "cost=x"), 2, "later version"),
        (("serve", "--port", "1"), 2, "later version"),
        (("trace", "verify"), 2, "RUN"),
        (("trace", "show", "nosuch"), 2, "nosuch"),
        (("trace", "show", "last"), 2, "last"),
        (("trace", "export", "last", "--format", "parquet"), 2, "later version"),
        (("--resume", "last", "--seed", "2"), 2, "--seed cannot be given with --resume"),
        (("--resume", "nosuch"), 2, "nosuch"),
        (("--store", "mysql"), 2, "mysql"),
        (("--store", "redis://:hunter2@127.0.0.1:1/0"), 3, "127.0.0.1:1"),
        (("import", "focus", "nosuch.csv"), 2, "nosuch.csv"),
        (("tournament", "--seeds", "3:1"), 2, "--seeds"),
        (("tournament", "--protocols", "nosuch"), 2, "nosuch"),
        (("tournament", "--engine", "ray"), 2, "later version"),
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
    check_one_line(warroom(cwd=tmp_path, WARROOM_HUMAN="cost"), 2, "later version")


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
