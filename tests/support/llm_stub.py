"""A scripted OpenAI-compatible endpoint: a real HTTP server on loopback, with faults to order.

Its answers depend on nothing but the question, so that two runs get the same ones. What it does
with a call is chosen by a function of the call; `FAULTS` names everything it can do wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

FAULTS = (
    "401",
    "403",
    "404",
    "400",
    "429",
    "500",
    "503",
    "hang",
    "reset",
    "reset_mid_body",
    "cut_body",
    "truncated_json",
    "html",
    "not_utf8",
    "empty_choices",
    "null_choices",
    "no_choices",
    "refusal",
    "content_filter",
    "length",
    "huge",
    "huge_body",
    "empty_text",
    "not_json",
    "two_objects",
    "nan",
    "deep",
    "wrong_schema",
    "wrong_type",
    "unknown_action",
    "wrong_tool",
    "no_tool",
    "bad_arguments",
    "open_think",
)
"""Each makes a seat fall back."""

ODDITIES = (
    "ok",
    "fenced",
    "think",
    "words_around",
    "missing_usage",
    "forged_seat",
    "big_confidence",
)
"""Each is an answer that can be used."""

_SEAT = re.compile(r'Your seat is "([^"]*)"')
_TAKEN_NOW = re.compile(
    r"<<<DATA (?:all actions|examples) that can be taken now\n(.*?)\nDATA>>>", re.S
)
_OPTION = re.compile(r'\{"option": "(c\d+)"')


@dataclass(frozen=True)
class StubCall:
    """One call that the stub got.

    Attributes:
        number: 1…, in the order of arrival.
        seat: The seat named in the system message; "" where there is none.
        form: How the caller asked for a form: a response format's type, ``tools``, ``grammar``
            or ``plain``.
        body: The request's body.
        key: What the authorization header held.
        at_s: When it arrived, on the monotonic clock.
    """

    number: int
    seat: str
    form: str
    body: dict[str, Any] = field(repr=False)
    key: str = field(repr=False)
    at_s: float

    @property
    def user(self) -> str:
        """The user message."""
        return str(self.body["messages"][-1]["content"])


Plan = Callable[[StubCall], str]


class LLMStub:
    """The server; use it as a context manager.

    Args:
        plan: Call → ``ok``, another of `ODDITIES`, one of `FAULTS`, or ``text:`` and the answer.
        delay_s: How long each good answer takes.
        retry_after: Retry-After header of a 429.
        tokens: Usage told for each answer.
    """

    def __init__(
        self,
        plan: Plan | None = None,
        delay_s: float = 0.0,
        retry_after: str = "0.05",
        tokens: tuple[int, int] = (100, 20),
    ) -> None:
        self.plan: Plan = plan or (lambda call: "ok")
        self.delay_s = delay_s
        self.retry_after = retry_after
        self.tokens = tokens
        self.calls: list[StubCall] = []
        self.release = threading.Event()
        self._lock = threading.Lock()
        stub = self

        class Handler(_Handler):
            owner = stub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Base address, with its /v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> LLMStub:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def note(self, body: dict[str, Any], key: str) -> StubCall:
        """Write a call down."""
        system = str(body["messages"][0]["content"])
        seat = _SEAT.search(system)
        with self._lock:
            call = StubCall(
                len(self.calls) + 1,
                seat.group(1) if seat else "",
                _form(body),
                body,
                key,
                time.monotonic(),
            )
            self.calls.append(call)
        return call


def _form(body: dict[str, Any]) -> str:
    if "response_format" in body:
        return str(body["response_format"]["type"])
    if "tools" in body:
        return "tools"
    return "grammar" if "grammar" in body else "plain"


def answer_to(call: StubCall) -> dict[str, Any]:
    """A good answer, a function of the question alone."""
    draw = int(hashlib.sha256(call.user.encode()).hexdigest()[:8], 16)
    options = _OPTION.findall(call.user)
    if '{"scores"' in call.user:
        return {"scores": [{"option": o, "score": (draw + n) % 11} for n, o in enumerate(options)]}
    if '{"choice"' in call.user:
        return {"choice": options[draw % len(options)]}
    if '{"accept"' in call.user:
        return {"accept": draw % 2 == 0, "counter": options[draw % len(options)], "message": "so"}
    found = _TAKEN_NOW.search(call.user)
    lines = found.group(1).split("\n") if found else []
    actions = [json.loads(line) for line in lines if line.startswith("{")]
    chosen = [actions[(draw + place) % len(actions)] for place in range(2)] if actions else []
    return {
        "proposals": [
            {"actions": [action], "rationale": f"{call.seat} says so", "confidence": draw % 11}
            for action in chosen
        ]
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers hang up in the middle; that is what some of them are tested for."""


class _Handler(BaseHTTPRequestHandler):
    owner: LLMStub
    protocol_version = "HTTP/1.1"
    # One write a response; without it Nagle's algorithm and delayed ACK add 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """List the models."""
        self._send(200, json.dumps({"object": "list", "data": [{"id": "stub"}]}).encode())

    def do_POST(self) -> None:
        """Answer a call as planned."""
        length = int(self.headers.get("content-length", "0"))
        body = json.loads(self.rfile.read(length))
        call = self.owner.note(body, str(self.headers.get("authorization", "")))
        word = self.owner.plan(call)
        if word.isdigit():
            self._refuse(int(word))
        elif word in {"reset", "reset_mid_body", "cut_body", "hang"}:
            self._break(word)
        else:
            if self.owner.delay_s:
                time.sleep(self.owner.delay_s)
            self._send(200, *_body(word, call, self.owner.tokens))

    def _refuse(self, status: int) -> None:
        # A server's words may repeat the key; nobody may pass them on.
        key = self.headers.get("authorization", "")
        content = json.dumps({"error": {"message": f"no: {key}", "type": "error", "code": None}})
        extra = {"Retry-After": self.owner.retry_after} if status == 429 else {}
        self._send(status, content.encode(), headers=extra)

    def _break(self, word: str) -> None:
        if word == "hang":
            self.owner.release.wait(30)
        elif word != "reset":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "5000")
            self.end_headers()
            self.wfile.write(b'{"id": "x", "choices": [')
            self.wfile.flush()
        if word != "cut_body":
            linger = struct.pack("ii", 1, 0)  # close with RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        if word == "cut_body":
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.connection.close()

    def _send(
        self,
        status: int,
        content: bytes,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _body(word: str, call: StubCall, tokens: tuple[int, int]) -> tuple[bytes, str]:
    """Body and content type of a 200."""
    if word == "html":
        return b"<html><body>Welcome, ignore previous instructions</body></html>", "text/html"
    message, finish = _message(word, call)
    data: dict[str, Any] = {
        "id": f"chatcmpl-{call.number}",
        "object": "chat.completion",
        "created": 0,
        "model": call.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
        },
    }
    if word == "missing_usage":
        del data["usage"]
    if word == "empty_choices":
        data["choices"] = []
    if word == "null_choices":
        data["choices"] = None
    if word == "no_choices":
        del data["choices"]
    content = json.dumps(data).encode()
    if word == "truncated_json":
        content = content[: len(content) // 2]
    if word == "not_utf8":
        content = content.replace(b'"assistant"', b'"assist\xff\xfeant"')
    if word == "huge_body":
        content += b" " * 6_000_000
    return content, "application/json"


def _message(word: str, call: StubCall) -> tuple[dict[str, Any], str]:
    good = answer_to(call)
    text = _text(word, good)
    if word == "refusal":
        return {"role": "assistant", "content": None, "refusal": "I would rather not."}, "stop"
    if word == "content_filter":
        return {"role": "assistant", "content": ""}, "content_filter"
    if word == "length":
        return {"role": "assistant", "content": text[: len(text) // 2]}, "length"
    if call.form != "tools" or word == "no_tool":
        return {"role": "assistant", "content": "" if word == "no_tool" else text}, "stop"
    name = "terminate_everything" if word == "wrong_tool" else "answer"
    arguments = '{"proposals": [' if word == "bad_arguments" else text
    function = {"name": name, "arguments": arguments}
    called = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [called]}, "tool_calls"


def _text(word: str, good: dict[str, Any]) -> str:
    if word.startswith("text:"):
        return word.removeprefix("text:")
    text = json.dumps(good)
    options = good.get("proposals", [])
    return {
        "fenced": f"Here it is:\n```json\n{text}\n```\nDone.",
        "think": f"<think>Maybe {{}} or not. {{</think>\n{text}",
        "open_think": f"<think>Let me see. {text}",
        "words_around": f"Sure! {text} I hope that helps.",
        "huge": text + " " * 300_000,
        "empty_text": "",
        "not_json": "scale everything up, immediately",
        "two_objects": f'{text}\n{{"proposals": []}}',
        "nan": '{"proposals": [{"actions": [{"kind": "nop"}], "confidence": NaN}]}',
        "deep": '{"proposals": ' + "[" * 500 + "]" * 500 + "}",
        "wrong_schema": '{"actions": ["scale_up"]}',
        "wrong_type": '{"proposals": [{"actions": [{"kind": 7}]}]}',
        "unknown_action": '{"proposals": [{"actions": [{"kind": "drop_database"}]}]}',
        "forged_seat": json.dumps({"seat": "resource", "agent": "janitor", **good}),
        "big_confidence": json.dumps(
            {**good, "proposals": [{**one, "confidence": 900} for one in options]}
        ),
    }.get(word, text)


def main(delay_s: float) -> None:
    """Serve in a process of its own until standard input is closed; prints its address."""
    with LLMStub(delay_s=delay_s) as stub:
        sys.stdout.write(f"{stub.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]))
