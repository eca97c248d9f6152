"""The program with language models in its seats: live against a stub, killed, played back."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.llm_rooms import SEATS
from tests.support.llm_stub import LLMStub, StubCall
from tests.support.program import start, warroom

pytestmark = pytest.mark.timeout(240)
SHORT = ("run", "--steps", "3", "--samples", "2", "--lookahead-steps", "2")


def test_a_run_speaks_through_a_model_records_it_and_is_played_back(tmp_path: Path) -> None:
    key = "sk-proj-never-shown-0123456789abcdef"
    with LLMStub() as stub:
        live = warroom(
            *SHORT,
            "--model",
            "small",
            "--base-url",
            stub.url,
            "--persona",
            "cost=cost_hawk",
            "--usd-per-mtok",
            "0.5/1.5",
            "--record",
            "kept",
            "--json",
            cwd=tmp_path,
            OPENAI_API_KEY=key,
        )
        assert live.status == 0, live.err
        assert len(stub.calls) == 12
        assert {call.body["model"] for call in stub.calls} == {"small"}
        assert {call.key for call in stub.calls} == {f"Bearer {key}"}
    result = live.document
    assert result["usage"]["calls"] == 12
    assert result["usage"]["usd"] == pytest.approx(12 * (100 * 0.5 + 20 * 1.5) / 1e6)
    assert result["personas"]["cost"] == "cost_hawk"
    again = warroom(
        *SHORT,
        "--persona",
        "cost=cost_hawk",
        "--usd-per-mtok",
        "0.5/1.5",
        "--playback",
        "kept",
        "--json",
        cwd=tmp_path,
    )
    assert again.status == 0, again.err
    assert again.document["trace_sha"] == result["trace_sha"]
    assert again.document["usage"] == result["usage"]
    verified = warroom("trace", "verify", "last", "--json", cwd=tmp_path)
    assert verified.document["ok"] is True
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix in {".jsonl", ".json", ".log"}:
            assert key not in path.read_text(encoding="utf-8", errors="replace")
    assert key not in live.out + live.err


def test_a_tournament_of_models_is_recorded_and_played_back_in_two_processes(
    tmp_path: Path,
) -> None:
    cells = ("tournament", "--seeds", "0:2", "--steps", "2", "--samples", "2", "--json", "-j", "2")
    with LLMStub() as stub:
        live = warroom(
            *cells, "--model", "m", "--base-url", stub.url, "--record", "kept", cwd=tmp_path
        )
        assert live.status == 0, live.err
        assert len(stub.calls) == 16
    again = warroom(*cells, "--playback", "kept", cwd=tmp_path)
    assert again.status == 0, again.err
    scores = [row["reward_total"] for row in live.document["rows"]]
    assert [row["reward_total"] for row in again.document["rows"]] == scores


def test_playback_that_drifts_exits_1_and_names_the_place(tmp_path: Path) -> None:
    with LLMStub() as stub:
        live = warroom(
            *SHORT, "--model", "m", "--base-url", stub.url, "--record", "kept", cwd=tmp_path
        )
        assert live.status == 0, live.err
    drifted = warroom(*SHORT, "--seed", "2", "--playback", "kept", cwd=tmp_path)
    assert drifted.status == 1
    assert "playback drifts at step 2, round 0, seat resource, propose" in drifted.err
    assert "line 4 of the user message was" in drifted.err
    assert "Traceback" not in drifted.err
    assert "[END]" in drifted.out


def test_playback_imports_neither_the_client_nor_langchain(tmp_path: Path) -> None:
    with LLMStub() as stub:
        live = warroom(
            *SHORT, "--model", "m", "--base-url", stub.url, "--record", "kept", cwd=tmp_path
        )
        assert live.status == 0, live.err
    again = warroom(
        *SHORT,
        "--driver",
        "loop",
        "--store",
        "inprocess",
        "--playback",
        "kept",
        cwd=tmp_path,
        PYTHONPROFILEIMPORTTIME="1",
    )
    assert again.status == 0, again.err[-2000:]
    for name in ("langchain_openai", "langchain_core", "openai", "langgraph"):
        assert f" {name}\n" not in again.err


@pytest.mark.crash
@pytest.mark.redis
@pytest.mark.parametrize("driver", ["graph", "loop"])
def test_a_run_that_is_killed_within_a_step_asks_nobody_twice(tmp_path: Path, driver: str) -> None:
    """Three seats have answered step 2, the fourth hangs: kill -9, then resume."""
    held = True

    def plan(call: StubCall) -> str:
        return "hang" if held and call.seat == "janitor" and "Step 2 of 3" in call.user else "ok"

    with LLMStub(plan) as stub:
        arguments = (
            *SHORT,
            "--model",
            "m",
            "--base-url",
            stub.url,
            "--usd-per-mtok",
            "1/1",
            "--driver",
            driver,
        )
        process = start(*arguments, cwd=tmp_path)
        until = time.monotonic() + 60
        while time.monotonic() < until and len(stub.calls) < 8:
            time.sleep(0.02)
        time.sleep(1.0)  # the three that answered are in the journal by then
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        before = len(stub.calls)
        assert before == 8
        held = False
        stub.release.set()
        resumed = warroom("run", "--resume", "last", "--json", cwd=tmp_path)
        assert resumed.status == 0, resumed.err
        asked = [(call.seat, call.user.split("\n")[0]) for call in stub.calls[before:]]
        assert asked[0] == ("janitor", "Step 2 of 3.")
        assert sorted(asked[1:]) == sorted((seat, "Step 3 of 3.") for seat in SEATS)
        usage = resumed.document["usage"]
        assert usage["calls"] == 12
        assert usage["usd"] == pytest.approx(12 * 120 / 1e6)
        whole = warroom(*arguments, "--json", cwd=tmp_path)
        assert whole.document["trace_sha"] == resumed.document["trace_sha"]


def test_the_rendered_prompt_of_a_persona_is_shown_without_calling_anybody(tmp_path: Path) -> None:
    shown = warroom("personas", "show", "cost_hawk", "--rendered", cwd=tmp_path)
    assert shown.status == 0, shown.err
    assert 'Your seat is "cost"' in shown.out
    assert "# Actions that can be taken now" in shown.out
    document = warroom("personas", "show", "cost", "--rendered", "--json", cwd=tmp_path).document
    assert set(document) >= {"system", "user", "schema", "prompt_sha"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "m"), "OPENAI_API_KEY"),
        (("--model", "m", "--base-url", "nonsense"), "must start with http"),
        (("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--budget-usd", "1"), "price"),
        (("--budget-usd", "-1"), "--budget-usd"),
        (("--playback", "nowhere"), "it is no recording"),
        (("--set", "cost.backend.kind=llm"), "names no model"),
    ],
)
def test_what_cannot_work_is_refused_before_a_run_is_claimed(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = warroom("run", *arguments, "--json", cwd=tmp_path)
    assert done.status == 2
    assert said in json.dumps(done.document["error"])
    assert not (tmp_path / "runs").exists()
    assert "Traceback" not in done.err
