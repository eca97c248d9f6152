"""SIGINT, SIGTERM and a reader that goes away: a run ends cleanly and can be finished later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.program import ENTRY, PROGRAM, start, warroom

SLOW = """schema = "persona/1"
[identity]
id = "slow"
role = "observer"
[backend]
kind = "scripted"
[script]
repeat = "last"
[[script.step]]
[[script.step]]
delay_s = {delay_s}
"""
_HANG_GUARD_S = 60


def slow_room(folder: Path, delay_s: float, steps: int = 8) -> tuple[str, ...]:
    (folder / "slow.toml").write_text(SLOW.format(delay_s=delay_s), encoding="utf-8")
    return ("--persona", "observer=slow.toml", "--steps", str(steps), "--log", "lines")


def read_until(program: subprocess.Popen[str], word: str) -> list[str]:
    assert program.stdout is not None
    lines = []
    for line in program.stdout:
        lines.append(line.rstrip("\n"))
        if word in line:
            return lines
    raise AssertionError(f"{word!r} never came: {lines}")


@pytest.mark.parametrize(
    ("number", "driver", "store"),
    [
        (signal.SIGINT, "loop", "inprocess"),
        (signal.SIGTERM, "graph", "embedded"),
    ],
)
def test_a_stopped_run_is_resumable_and_ends_as_if_it_had_never_been_stopped(
    number: signal.Signals, driver: str, store: str, tmp_path: Path
) -> None:
    room = (*slow_room(tmp_path, 0.1), "--driver", driver, "--store", store)
    program = start(*room, cwd=tmp_path)
    read_until(program, "[STEP] step=2")
    program.send_signal(number)
    out, err = program.communicate(timeout=_HANG_GUARD_S)
    assert program.returncode == 1, err
    last = out.splitlines()[-1]
    assert last.startswith("[END] success=false steps=")
    steps = int(last.partition("steps=")[2].split()[0])
    assert 2 <= steps < 8
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("resume: ")]
    command = line.removeprefix(f"resume: {PROGRAM} ").split()
    assert command[:2] == ["run", "--resume"]

    verdict = warroom("trace", "verify", "last", "--json", cwd=tmp_path)
    assert verdict.status == 1
    assert verdict.document["steps"] == steps

    finished = warroom(*command, "--json", cwd=tmp_path)
    assert finished.status == 0, finished.err
    assert finished.document["steps"] == 8
    undisturbed = warroom(*room, "--json", "--out", "others", cwd=tmp_path)
    assert finished.document["trace_sha"] == undisturbed.document["trace_sha"]
    assert warroom("trace", "verify", "last", cwd=tmp_path).status == 0


def test_a_second_signal_ends_at_once_with_the_last_line_and_the_way_back(
    tmp_path: Path,
) -> None:
    room = (*slow_room(tmp_path, 25.0), "--driver", "loop", "--store", "inprocess")
    program = start(*room, cwd=tmp_path)
    read_until(program, "[STEP] step=1")
    time.sleep(1.0)  # Step 2, which hangs, is under way.
    program.send_signal(signal.SIGINT)
    assert program.stderr is not None
    told = [program.stderr.readline() for _ in range(3)]
    assert told[0].startswith("note: observer is a further seat")
    assert "again to stop at once" in told[2]
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=20)
    assert program.returncode == 1
    assert out.splitlines() == ["[END] success=false steps=1 score=0.000 rewards=-18.00"]
    assert f"resume: {PROGRAM} run --resume " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("hangs_in", ["world.scenarios.loader", "world.store.open"])
def test_a_first_signal_before_the_first_step_ends_at_once(
    number: signal.Signals, hangs_in: str, tmp_path: Path
) -> None:
    """Loading, and opening a store, that take for ever: nothing has begun, nothing is finished."""
    name = "load_scenario" if hangs_in.endswith("loader") else "open_store"
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys, time\n"
        f"import {hangs_in} as place\n"
        f"def hang(*words, **more):\n"
        f"    print('hanging', file=sys.stderr, flush=True)\n"
        f"    time.sleep(600)\n"
        f"place.{name} = hang\n",
        encoding="utf-8",
    )
    path = f"{tmp_path}{os.pathsep}{ENTRY.parent}"
    program = start("--log", "lines", cwd=tmp_path, PYTHONPATH=path)
    assert program.stderr is not None
    assert program.stderr.readline() == "hanging\n"
    program.send_signal(number)
    out, err = program.communicate(timeout=20)
    assert program.returncode == 1
    assert out == ""
    assert err == "interrupted\n"


def test_a_signal_while_modules_are_loaded_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(600)\n",
        encoding="utf-8",
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        program = start("--seed", "1", cwd=tmp_path, PYTHONPATH=str(tmp_path))
        assert program.stderr is not None
        assert program.stderr.readline() == "loading\n"
        program.send_signal(number)
        _, err = program.communicate(timeout=20)
        assert (program.returncode, err) == (1, "interrupted\n")


def test_a_run_that_was_begun_and_took_no_step_owes_its_last_line_and_the_way_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\n"
        "import orchestrator.loop as place\n"
        "def hang(*words, **more):\n"
        "    print('hanging', file=sys.stderr, flush=True)\n"
        "    time.sleep(600)\n"
        "place.drive = hang\n",
        encoding="utf-8",
    )
    path = f"{tmp_path}{os.pathsep}{ENTRY.parent}"
    words = ("--log", "lines", "--driver", "loop", "--store", "inprocess")
    program = start(*words, cwd=tmp_path, PYTHONPATH=path)
    assert program.stderr is not None
    assert program.stderr.readline() == "hanging\n"
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=20)
    assert program.returncode == 1
    assert out.splitlines()[1:] == ["[END] success=false steps=0 score=0.000 rewards="]
    assert err.splitlines()[0] == "interrupted"
    assert err.splitlines()[1].startswith(f"resume: {PROGRAM} run --resume ")


def test_a_reader_that_goes_away_stops_the_run_quietly(tmp_path: Path) -> None:
    room = (*slow_room(tmp_path, 0.1), "--driver", "loop", "--store", "inprocess")
    program = start(*room, cwd=tmp_path)
    read_until(program, "[START]")
    assert program.stdout is not None
    program.stdout.close()
    assert program.stderr is not None
    err = program.stderr.read()
    assert program.wait(timeout=_HANG_GUARD_S) == 1
    program.stderr.close()
    assert "resume: " in err
    assert "Exception" not in err
    assert "Traceback" not in err


def test_a_list_cut_short_by_its_reader_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        program = subprocess.run(
            [*_command("scenarios", "--json")],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            timeout=_HANG_GUARD_S,
            check=False,
        )
    assert program.returncode == 1
    assert program.stderr == ""


def _command(*arguments: str) -> list[str]:
    return [sys.executable, str(ENTRY), *arguments]
