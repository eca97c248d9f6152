"""A seat in another process: what it is asked, what it may answer, and every way it can fail."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents.backends.remote import RemotePersona
from agents.backends.remote_messages import ReplyMessage, question_id
from agents.faults import SeatFault
from agents.persona import load_persona
from agents.persona_schema import PersonaSpec, RemoteTable
from agents.seat import make_persona
from orchestrator.answering import ask_now
from policies.records import Request
from tests.support.asked import request
from tests.support.rooms import room, with_personas
from tests.support.runs import play
from world.errors import ConfigError

FAULTS = ("refused", "timeout", "status", "redirect", "garbage", "huge", "wrong_seat", "died")
EXAMPLE = Path(__file__).parents[2] / "examples" / "remote_agent.py"


def spec(deadline_s: float = 5.0, fallback: str = "none", **remote: Any) -> PersonaSpec:
    """The file of a remote cost seat."""
    document = load_persona("cost").document()
    document["backend"] = {"kind": "remote", "timeout_s": deadline_s, "fallback": fallback}
    document["remote"] = remote
    return PersonaSpec.model_validate(document)


def voice(**remote: Any) -> RemotePersona:
    """The persona of `spec`."""
    made = make_persona(spec(**remote), "cost")
    assert isinstance(made, RemotePersona)
    return made


def answer(asked: Request, **more: Any) -> dict[str, Any]:
    """A good answer."""
    return {
        "id": question_id(asked),
        "proposals": [{"action": "scale_down", "rationale": "cheap", "confidence": 0.5}],
        **more,
    }


# -- HTTP ------------------------------------------------------------------------------------


class Desk:
    """What the test's server answers, and what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b"{}"
        self.headers: dict[str, str] = {}
        self.declare: int | None = None
        self.wait_s = 0.0
        self.asked: list[tuple[dict[str, str], bytes]] = []


@contextmanager
def serving(desk: Desk) -> Iterator[str]:
    """A server on this machine; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            desk.asked.append((dict(self.headers), self.rfile.read(length)))
            time.sleep(desk.wait_s)
            self.send_response(desk.status)
            for name, value in desk.headers.items():
                self.send_header(name, value)
            declared = len(desk.body) if desk.declare is None else desk.declare
            if declared >= 0:
                self.send_header("Content-Length", str(declared))
            self.end_headers()
            try:
                self.wfile.write(desk.body)
            except OSError:
                return

        def log_message(self, *args: Any) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/seat"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_question_holds_what_a_seat_sees_and_the_answer_is_its_proposal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEAT_TOKEN", "s3cret")
    asked, desk = request(), Desk()
    desk.body = json.dumps(answer(asked, usage={"calls": 1, "tokens_in": 7})).encode()
    with serving(desk) as url:
        reply = ask_now(voice(url=url, token_env="SEAT_TOKEN"), asked)
    assert [p.actions[0].id for p in reply.proposals] == ["scale_down"]
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.usd) == (1, 7, None)
    headers, body = desk.asked[0]
    assert headers["Authorization"] == "Bearer s3cret"
    assert b"s3cret" not in body
    question = json.loads(body)
    assert question["schema"] == "remote/1"
    assert (question["seat"], question["kind"], question["step"]) == ("cost", "propose", 1)
    assert question["observation"]["metrics"]["latency_ms"] == 280.0
    assert sorted(question["legal"]) == sorted(a["kind"] for a in question["world"]["actions"])[1:]
    assert "reward" not in body.decode()


def test_a_large_inventory_is_cut_to_what_can_be_acted_on_first() -> None:
    asked, desk = request(scenario="cloud/medium"), Desk()
    with serving(desk) as url:
        ask_now(voice(url=url, max_rows=5), asked)
    inventory = json.loads(desk.asked[0][1])["observation"]["inventory"]
    assert inventory["rows"] == 66
    assert len(inventory["listed"]) == 5


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"body": b"<html>no</html>"}, "garbage: the answer is not JSON"),
        ({"body": b'{"confidence": NaN}'}, "garbage: the answer is not JSON: NaN"),
        ({"body": b"[" * 4000}, "garbage: the answer is not JSON: it is nested"),
        ({"body": b"\xff\xfe"}, "garbage: the answer is not UTF-8"),
        ({"body": b"[]"}, "garbage: the answer"),
        ({"body": b'{"proposals": [{"action": "rm -rf /"}]}'}, "garbage: 'rm -rf /'"),
        (
            {"body": b'{"proposals": [{"action": "scale_up", "say": 1}]}'},
            "garbage: proposals.0.say",
        ),
        ({"body": b'{"scores": {"scale_up": 11}}'}, "garbage: scores.scale_up"),
        ({"body": b'{"seat": "resource"}'}, "wrong_seat: the answer is for the seat 'resource'"),
        ({"body": b'{"id": "9.0.propose.cost"}'}, "wrong_seat: the answer is for the question"),
        ({"body": b"x" * 5000}, "huge: 5000 bytes, at most 4096"),
        ({"body": b"x" * 5000, "declare": -1}, "huge: more than 4096 bytes"),
        ({"body": b'{"accept"', "declare": 400}, "died: the answer broke off"),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "redirect: status 302"),
        ({"status": 500}, "status: status 500"),
        ({"wait_s": 4.0}, "timeout: no answer within 2.94 s"),
    ],
)
def test_every_fault_of_an_answer_is_a_typed_recorded_fallback(
    change: dict[str, Any], kind: str
) -> None:
    desk = Desk()
    for name, value in change.items():
        setattr(desk, name, value)
    with serving(desk) as url:
        reply = ask_now(voice(url=url, max_bytes=4096, deadline_s=3.0), request())
    assert reply.fallback.startswith(kind)
    assert reply.proposals == ()
    assert len(desk.asked) == 1  # nothing is retried, nothing is followed


def test_nobody_listening_is_refused_and_the_rule_speaks() -> None:
    with serving(Desk()) as url:
        pass
    reply = ask_now(voice(url=url, fallback="rules"), request())
    assert reply.fallback == "refused: nobody listens there; its rule spoke"
    assert reply.proposals


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ({"url": "http://me:pw@127.0.0.1/"}, "holds a user or password"),
        ({"url": "http://127.0.0.1:99999/"}, "cannot be read"),
        ({"url": "http://127.0.0.1/", "token_env": "NO_SUCH_TOKEN"}, "holds no token"),
        ({"url": "http://agents.example/", "token_env": "SEAT_TOKEN"}, "in clear text"),
    ],
)
def test_an_address_that_cannot_work_is_refused_before_the_run(
    remote: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAT_TOKEN", "hunter2-secret")
    with pytest.raises(ConfigError, match=said) as refused:
        make_persona(spec(**remote), "cost")
    assert "hunter2" not in refused.value.line()


# -- standard input and output ---------------------------------------------------------------


def program(folder: Path, body: str) -> list[str]:
    """A program that runs `body` for each question `q`."""
    path = folder / "agent.py"
    path.write_text(
        "import json, os, sys, time\n"
        "def say(x): sys.stdout.write(x + chr(10)); sys.stdout.flush()\n"
        "n = 0\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line); n += 1\n" + textwrap.indent(textwrap.dedent(body), "    ")
    )
    return [sys.executable, str(path)]


def good(extra: str = "") -> str:
    """Code that answers well."""
    return f"say(json.dumps({{'id': q['id'], 'proposals': [{{'action': 'scale_down'}}]{extra}}}))"


def test_one_process_answers_every_question_and_ends_with_the_run(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    seat = voice(
        command=program(tmp_path, f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n" + good())
    )
    played = play(with_personas(room(steps=4), {"cost": seat}))
    assert played.of("fallback") == []
    assert [
        b["data"]["proposals"][0]["id"] for b in played.of("ballot") if b["agent"] == "cost"
    ] == ["scale_down"] * 4
    started = set(pids.read_text().split())
    assert len(started) == 1
    assert not Path(f"/proc/{started.pop()}").exists()


def test_the_shipped_example_agent_answers_by_both_ways(tmp_path: Path) -> None:
    seat = voice(command=[sys.executable, str(EXAMPLE)])
    try:
        assert seat.answer(request()).proposals
        offered = request("pick", payload={"candidates": ["scale_up"]}, round_=1)
        assert seat.answer(offered).choice == "scale_up"
    finally:
        seat.end_run()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("sys.stderr.write('no\\x1b[31m key\\n'); sys.exit(3)", "died: it ended with status 3: no"),
        ("sys.stdout.write('{'); sys.stdout.flush(); os._exit(0)", "died: it ended with status 0"),
        ("os.close(1); time.sleep(30)", "died: it closed its output"),
        ("time.sleep(30)", "timeout: no answer within 2.94 s"),
        ("say('x' * 5000)", "huge: 5000 bytes"),
        ("sys.stdout.write('x' * 50000); sys.stdout.flush(); time.sleep(30)", "huge: more than"),
        ("say('hello')", "garbage: the answer is not JSON"),
        ("say('')", "garbage: the answer is not JSON"),
    ],
)  # fmt: skip
def test_every_fault_of_a_process_is_a_typed_recorded_fallback(
    tmp_path: Path, body: str, kind: str
) -> None:
    seat = voice(command=program(tmp_path, body), max_bytes=4096, deadline_s=3.0)
    try:
        reply = ask_now(seat, request())
        assert reply.fallback.startswith(kind)
        assert "\x1b" not in reply.fallback
    finally:
        begun = time.monotonic()
        seat.end_run()
    assert time.monotonic() - begun < 20


def test_an_answer_that_comes_too_late_is_never_taken_for_the_next_question(
    tmp_path: Path,
) -> None:
    body = """
        time.sleep(4 if n == 1 else 0)
        action = "scale_up" if n == 1 else "scale_down"
        say(json.dumps({"proposals": [{"action": action}]}))
    """
    seat = voice(command=program(tmp_path, body), deadline_s=2.0)
    asked = request()
    try:
        assert ask_now(seat, asked).fallback.startswith("timeout")
        late = time.monotonic() + 20
        reply = ask_now(seat, asked)
        while reply.fallback and time.monotonic() < late:
            reply = ask_now(seat, asked)
        assert [p.actions[0].id for p in reply.proposals] == ["scale_down"]
    finally:
        seat.end_run()


def test_a_program_that_does_not_exist_is_a_fault_and_no_shell_reads_its_name(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"
    reply = ask_now(voice(command=[f"touch {mark}; true"]), request())
    assert reply.fallback.startswith("refused: it cannot be started")
    assert not mark.exists()


def test_a_process_that_ignores_its_end_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = (
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"{good()}\ntime.sleep(60)"
    )
    seat = voice(command=program(tmp_path, body))
    assert seat.answer(request()).proposals
    seat.end_run()
    until = time.monotonic() + 10
    alive = pids.read_text().split()
    while alive and time.monotonic() < until:
        alive = [pid for pid in alive if _runs(int(pid))]
        time.sleep(0.05)
    assert alive == []


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return status != "Z"


def test_replies_are_journalled_so_that_nothing_is_paid_for_twice() -> None:
    assert voice(url="http://127.0.0.1:1/").journalled


def test_a_fault_is_one_of_ours() -> None:
    with pytest.raises(SeatFault, match="refused"):
        voice(url="http://127.0.0.1:1/").answer(request())


def test_the_published_schema_is_the_one_that_answers_are_checked_against() -> None:
    published = json.loads((EXAMPLE.parents[1] / "docs" / "remote.schema.json").read_text())
    assert published == ReplyMessage.model_json_schema(by_alias=True)


def test_the_page_on_remote_seats_names_every_fault_and_field() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "remote.md").read_text()
    for name in (*RemoteTable.model_fields, *ReplyMessage.model_fields, *FAULTS):
        assert re.search(rf"`{name.rstrip('_')}\b|\b{name} = ", page), name
