"""A person at a seat, through the real program: at a terminal, without one, and by interrupt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import warroom
from tests.support.terminals import TypedProgram

ONE = ("run", "--human", "cost", "--steps", "1", "--store", "inprocess")


def events(folder: Path, kind: str, out: str = "runs") -> list[dict[str, Any]]:
    """Events of one type in the only trace below a folder."""
    (trace,) = (folder / out).glob("*/trace.jsonl")
    return [e for e in map(json.loads, trace.read_text().splitlines()) if e["type"] == kind]


def test_a_person_chooses_by_number_and_the_document_on_stdout_stays_clean(tmp_path: Path) -> None:
    with TypedProgram(*ONE, "--json", cwd=tmp_path, piped=True) as seat:
        screen = seat.wait_for("s left)> ")
        assert "latency_ms 280 (target below 150)  OUT" in screen
        assert "cost_usd_per_hour" in screen.split("   1  ")[1].splitlines()[0]
        seat.enter("2 1 -- the bill is too high")
        status, out = seat.finish()
    assert status == 0
    assert json.loads(out)["personas"]["cost"] == "cost"
    chosen = events(tmp_path, "human_input")
    assert [(e["agent"], e["data"]["kind"]) for e in chosen] == [("cost", "propose")]
    ballot = next(e for e in events(tmp_path, "ballot") if e["agent"] == "cost")
    assert [p["id"] for p in ballot["data"]["proposals"]] == chosen[0]["data"]["proposals"]
    assert ballot["data"]["proposals"][0]["rationale"] == "the bill is too high"
    assert len(chosen[0]["data"]["proposals"]) == 2


def test_what_means_nothing_is_explained_and_asked_again(tmp_path: Path) -> None:
    nonsense = [
        (b"", "type numbers or action ids"),
        (b"77", "there is no option 77; there are 4"),
        (b"terminate:everything", "cannot be taken now"),
        (b"\xff\xfe\x00\x01 \x1b]0;owned\x07", "is not an action id"),
        (b"9" * 3000, "there is no option"),
        (b"scale_up " * 9, "9 proposals, at most 8"),
        (b"?", "type numbers or action ids"),
    ]
    with TypedProgram(*ONE, cwd=tmp_path) as seat:
        seat.wait_for("s left)> ")
        for times, (typed, said) in enumerate(nonsense, start=2):
            before = len(seat.screen)
            seat.enter(typed)
            screen = seat.wait_for("s left)> ", times=times)
            assert said in screen[before:].replace("\n", " ")
            assert "\x1b]0;" not in screen
        seat.enter(b"\x1b[31mscale\x1b[0m_down\x07")
        assert seat.finish()[0] == 0
    assert events(tmp_path, "human_input")[0]["data"]["proposals"] == ["scale_down"]


def test_pass_proposes_nothing_and_is_an_answer(tmp_path: Path) -> None:
    with TypedProgram(*ONE, cwd=tmp_path) as seat:
        seat.wait_for("s left)> ")
        seat.enter("pass")
        assert seat.finish()[0] == 0
    assert events(tmp_path, "human_input")[0]["data"]["proposals"] == []
    assert not events(tmp_path, "fallback")


def test_the_deadline_takes_the_default_and_the_trace_says_so(tmp_path: Path) -> None:
    with TypedProgram(*ONE, "--set", "cost.backend.timeout_s=1", cwd=tmp_path) as seat:
        seat.wait_for("(1 s left)> ")
        assert seat.finish()[0] == 0
    (fallback,) = events(tmp_path, "fallback")
    assert fallback["data"]["what"] == "no_answer: no answer within 1 s; its rule spoke"
    assert not events(tmp_path, "human_input")


def test_the_end_of_input_takes_the_default(tmp_path: Path) -> None:
    with TypedProgram(*ONE, cwd=tmp_path) as seat:
        seat.wait_for("s left)> ")
        seat.press(b"\x04")
        assert seat.finish()[0] == 0
    assert "the input ended" in events(tmp_path, "fallback")[0]["data"]["what"]


def test_ctrl_c_decides_nothing_and_the_person_is_asked_again_on_resume(tmp_path: Path) -> None:
    with TypedProgram("run", "--human", "cost", "--steps", "1", cwd=tmp_path) as seat:
        seat.wait_for("s left)> ")
        seat.press(b"\x03")
        status, screen = seat.finish()
    assert status == 1
    assert "stopped after step 0" in screen
    with TypedProgram("run", "--resume", "last", cwd=tmp_path) as seat:
        seat.wait_for("s left)> ")
        seat.enter("scale_up")
        assert seat.finish()[0] == 0
    assert events(tmp_path, "human_input")[0]["data"]["proposals"] == ["scale_up"]


def test_what_was_typed_before_the_question_answers_nothing(tmp_path: Path) -> None:
    with TypedProgram(*ONE, "--set", "cost.backend.timeout_s=2", cwd=tmp_path) as seat:
        seat.enter("1")
        seat.wait_for("s left)> ")
        assert seat.finish()[0] == 0
    assert not events(tmp_path, "human_input")


def test_two_people_at_one_terminal_are_asked_one_after_the_other(tmp_path: Path) -> None:
    with TypedProgram(*ONE, "--human", "resource", cwd=tmp_path) as seats:
        seats.wait_for("s left)> ")
        seats.enter("scale_up")
        seats.wait_for("s left)> ", times=2)
        seats.enter("scale_up")
        assert seats.finish()[0] == 0
    assert {e["agent"] for e in events(tmp_path, "human_input")} == {"cost", "resource"}


@pytest.mark.parametrize("fed", ["", "scale_up\n" * 50])
def test_without_a_terminal_nobody_is_asked_and_nothing_hangs(tmp_path: Path, fed: str) -> None:
    import subprocess
    import sys

    from tests.support.program import ENTRY, environment

    done = subprocess.run(
        [sys.executable, str(ENTRY), "run", "--human", "cost", "--steps", "3", "--json"],
        cwd=tmp_path,
        env=environment(tmp_path),
        input=fed,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["steps"] == 3
    assert done.stderr.count("there is no terminal to ask at") == 1
    assert len(events(tmp_path, "fallback")) == 3


def test_a_seat_that_is_not_there_is_refused_with_the_seats(tmp_path: Path) -> None:
    done = warroom("run", "--human", "me", cwd=tmp_path)
    assert done.status == 2
    assert "resource, cost" in done.err
    assert "--persona me=" in done.err


# -- interrupts ------------------------------------------------------------------------------

COUNTING = """
from pathlib import Path
from policies.records import Proposal, Reply
from world.actions import Action


class Counting:
    def __init__(self, spec, seat):
        self.seat = seat

    def answer(self, request):
        with Path("asked.txt").open("a") as file:
            file.write(f"{request.step}\\n")
        return Reply((Proposal((Action("optimize_energy"),), "counted"),))
"""


def test_two_people_are_asked_by_interrupt_together_and_bots_only_once(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)
    path = str(tmp_path)
    begun = warroom(
        "run", "--human", "cost", "--human", "resource", "--steps", "2",
        "--checkpointer", "sqlite", "--json",
        "--set", "janitor.backend.kind=python:counting:Counting",
        cwd=tmp_path, PYTHONPATH=path,
    )  # fmt: skip
    assert begun.status == 0, begun.err
    document = begun.document
    assert (document["stop_reason"], document["steps"]) == ("waiting", 0)
    assert [q["seat"] for q in document["questions"]] == ["resource", "cost"]
    assert all(len(q["options"]) == 4 and q["deadline_s"] == 300 for q in document["questions"])

    def resume(*answers: str) -> Any:
        words = [word for each in answers for word in ("--answer", each)]
        done = warroom("run", "--resume", "last", "--json", *words, cwd=tmp_path, PYTHONPATH=path)
        assert done.status == 0, done.err
        return done.document

    listed = resume()  # another process may look as often as it likes
    assert listed["questions"] == document["questions"]
    half = resume("cost=1")
    assert [q["seat"] for q in half["questions"]] == ["resource"]
    second = resume("resource=default")
    assert (second["steps"], len(second["questions"])) == (1, 2)
    over = resume("resource=pass", "cost=scale_up -- because")
    assert (over["steps"], over["stop_reason"], over["questions"]) == (2, "horizon", [])
    stray = warroom("run", "--resume", "last", "--answer", "cost=1", cwd=tmp_path, PYTHONPATH=path)
    assert stray.status == 2
    assert "waits for no answer (it has ended)" in stray.err
    assert (tmp_path / "asked.txt").read_text().split() == ["0", "1"]
    said = [
        (e["step"], e["agent"], e["data"]["proposals"]) for e in events(tmp_path, "human_input")
    ]
    assert said == [
        (1, "cost", [document["questions"][1]["options"][0]["id"]]),
        (2, "resource", []),
        (2, "cost", ["scale_up"]),
    ]
    (fallback,) = events(tmp_path, "fallback")
    assert fallback["agent"] == "resource"
    assert warroom("trace", "verify", "last", cwd=tmp_path).status == 0


def test_a_run_that_waits_needs_a_store_that_outlives_its_process(tmp_path: Path) -> None:
    done = warroom(*ONE, "--checkpointer", "sqlite", cwd=tmp_path)
    assert done.status == 2
    assert "ends with its process" in done.err
    assert not (tmp_path / "runs").exists()


def test_an_answer_that_means_nothing_changes_nothing(tmp_path: Path) -> None:
    warroom("run", "--human", "cost", "--steps", "1", "--checkpointer", "sqlite", cwd=tmp_path)
    for text, said in (
        ("cost=77", "there is no option 77"),
        ("resource=1", "nobody is asked there"),
        ("cost", "it reads ROLE=TEXT"),
    ):
        done = warroom("run", "--resume", "last", "--answer", text, cwd=tmp_path)
        assert done.status == 2
        assert said in done.err
    assert warroom("run", "--answer", "cost=1", cwd=tmp_path).status == 2
    done = warroom("run", "--resume", "last", "--answer", "cost=2", "--json", cwd=tmp_path)
    assert done.document["steps"] == 1


def test_pending_questions_can_be_read_and_answered_from_python(tmp_path: Path) -> None:
    warroom("run", "--human", "cost", "--steps", "1", "--checkpointer", "sqlite", cwd=tmp_path)
    script = tmp_path / "front_end.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from orchestrator.interrupts import answer, pending\n"
        "waiting = pending('last')\n"
        "(question,) = waiting.questions\n"
        "print(waiting.step, question['seat'], len(question['options']))\n"
        "print(answer('last', {'cost': question['options'][0]['id']}).stop_reason)\n"
    )
    import subprocess
    import sys

    from tests.support.program import environment

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "cost", "4", "horizon"], done.stderr
