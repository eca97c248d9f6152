"""Runs that are killed anywhere are finished with the hash of an undisturbed run."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import ENTRY, environment, warroom

pytestmark = [pytest.mark.crash, pytest.mark.redis, pytest.mark.timeout(240)]

STEPS = "400"
# Many steps that are decided quickly: what is tested is where they stop, not how far they look.
RUN = (
    *("run", "--scenario", "cloudedge/medium", "--seed", "5", "--steps", STEPS, "--log", "quiet"),
    *("--lookahead-steps", "1", "--samples", "0", "--plan-steps", "1"),
)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(ENTRY), *RUN, *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for_run(folder: Path, limit_s: float = 30.0) -> Path:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        found = list((folder / "runs").glob("[!.]*/trace.jsonl"))
        if found:
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no run appeared")


def resume(folder: Path, *arguments: str) -> dict[str, Any]:
    done = warroom("run", "--resume", "last", "--json", *arguments, cwd=folder)
    assert done.status == 0, done.err
    document: dict[str, Any] = done.document
    return document


def undisturbed(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    done = warroom(*RUN, "--json", "--driver", "loop", cwd=folder)
    assert done.status == 0, done.err
    document: dict[str, Any] = done.document
    return document


def steps_in(trace: Path) -> list[int]:
    events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    return [event["step"] for event in events if event["type"] == "grade"]


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(4))
def test_a_run_killed_at_random_moments_is_finished_with_the_same_hash(
    tmp_path: Path, lot: int
) -> None:
    whole = undisturbed(tmp_path / "whole")
    moments = random.Random(lot)
    for number in range(10):
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        process = start(folder, "--driver", "loop" if number % 2 else "graph")
        trace = wait_for_run(folder)
        time.sleep(moments.random() * 0.5)
        process.kill()
        process.wait()
        result = resume(folder)
        assert result["trace_sha"] == whole["trace_sha"]
        assert result["reward_total"] == whole["reward_total"]
        assert steps_in(trace) == list(range(1, int(STEPS) + 1))
        if number == 0:
            assert resume(folder)["trace_sha"] == whole["trace_sha"]


def test_a_run_killed_again_and_again_still_ends_with_the_same_hash(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    for _ in range(4):
        size = trace.stat().st_size
        until = time.monotonic() + 10
        while trace.stat().st_size < size + 40_000 and time.monotonic() < until:
            time.sleep(0.002)
        process.kill()
        process.wait()
        process = subprocess.Popen(
            [sys.executable, str(ENTRY), "run", "--resume", "last", "--log", "quiet"],
            cwd=folder, env=environment(folder),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    process.wait()
    assert resume(folder)["trace_sha"] == whole["trace_sha"]


def test_a_run_whose_store_server_is_killed_can_be_finished(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    killed = kill_server(folder)
    process.wait(timeout=60)
    assert killed
    assert resume(folder)["trace_sha"] == whole["trace_sha"]
    assert steps_in(trace) == list(range(1, int(STEPS) + 1))


def kill_server(folder: Path) -> bool:
    """Kill -9 every server whose working folder is this test's state."""
    state = str((folder / "state").resolve())
    found = False
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            title = (entry / "comm").read_text().strip()
            at = str((entry / "cwd").resolve())
        except OSError:
            continue
        if title.startswith(("valkey-server", "redis-server")) and at.startswith(state):
            os.kill(int(entry.name), signal.SIGKILL)
            found = True
    return found


def test_a_run_whose_store_is_gone_is_finished_from_its_trace(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    process.kill()
    process.wait()
    result = resume(folder, "--store", ":memory:")
    assert result["trace_sha"] == whole["trace_sha"]


def test_a_torn_last_line_is_dropped_and_the_store_fills_the_gap(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    process.kill()
    process.wait()
    content = trace.read_bytes()
    trace.write_bytes(content[: len(content) // 2 + 7])
    assert resume(folder)["trace_sha"] == whole["trace_sha"]


def test_two_orchestrators_on_one_run_lose_and_repeat_no_step(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "two"
    folder.mkdir()
    first = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    second = warroom("run", "--resume", "last", "--json", cwd=folder)
    first.wait(timeout=60)
    assert second.status in {0, 1}
    assert "Traceback" not in second.err
    assert resume(folder)["trace_sha"] == whole["trace_sha"]
    assert steps_in(trace) == list(range(1, int(STEPS) + 1))


def test_a_changed_byte_in_the_trace_is_refused_on_resume(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    process.kill()
    process.wait()
    content = bytearray(trace.read_bytes())
    place = content.find(b'"reward":') + len(b'"reward":') + 1
    content[place] = ord("9") if content[place] != ord("9") else ord("8")
    trace.write_bytes(bytes(content))
    before = trace.read_bytes()
    done = warroom("run", "--resume", "last", cwd=folder)
    assert done.status == 1
    assert "was changed" in done.err
    assert "Traceback" not in done.err
    assert trace.read_bytes() == before


def test_an_unknown_run_is_named_and_exits_2(tmp_path: Path) -> None:
    done = warroom("run", "--resume", "no-such-run", cwd=tmp_path)
    assert done.status == 2
    assert "no-such-run" in done.err


def test_an_orchestrator_that_slept_past_its_lease_is_fenced_out(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path / "whole")
    folder = tmp_path / "slept"
    folder.mkdir()
    first = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    first.send_signal(signal.SIGSTOP)
    try:
        assert resume(folder)["trace_sha"] == whole["trace_sha"]
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=60) == 1
    assert steps_in(trace) == list(range(1, int(STEPS) + 1))
    assert warroom("trace", "verify", "last", cwd=folder).status == 0


def test_a_run_cannot_be_taken_over_on_another_store_while_it_is_driven(tmp_path: Path) -> None:
    folder = tmp_path / "driven"
    folder.mkdir()
    first = start(folder, "--driver", "loop")
    trace = wait_for_run(folder)
    while trace.stat().st_size < 60_000:
        time.sleep(0.002)
    first.send_signal(signal.SIGSTOP)
    try:
        for store in ("inprocess", ":memory:"):
            done = warroom("run", "--resume", "last", "--store", store, cwd=folder)
            assert done.status == 1
            assert "being driven by another process" in done.err
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=60) == 0
