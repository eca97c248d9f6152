"""Reads the lines of a trace file one after the other and checks that each continues the chain.

The check needs no JSON: a line has one fixed form, so the bytes that were hashed are the line
with two members cut out. Everything that reads a trace file (reader, verify, resume, export)
goes through `scan`. Memory is bounded by the longest line, never by the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from orchestrator.trace.events import EVENT_TYPES, SCHEMA, START, Event, Head, link_sha
from world.errors import DigestMismatchError, SchemaVersionError, TraceError

MAX_LINE_BYTES = 64 * 2**20
"""A line that is longer is not ours: the longest, run_ended of a million steps, is under 16 MiB."""

# Greedy data and a tail anchored at the end: text in data that looks like a tail cannot match.
_LINE = re.compile(
    rb'\{(?:"agent":("(?:[^"\\]|\\.)+"),)?"data":(\{.*\})'
    rb',"prev":"(SHA)","round":(INT),"seq":(INT),"sha":"(SHA)","step":(INT),"type":"([a-z_]+)"\}'
    .replace(b"SHA", b"[0-9a-f]{64}")
    .replace(b"INT", b"0|[1-9][0-9]{0,18}"),
    re.DOTALL,
)  # fmt: skip
_TYPES = frozenset(name.encode() for name in EVENT_TYPES)


class Link(NamedTuple):
    """One line of a trace whose hash was found right.

    Attributes:
        line: Line number in the file, from 1.
        end: Byte offset just after the line's end.
        raw: The line as stored, without its line end.
        head: Where the chain stands after it.
        type: Event type.
        step: Step of the event.
        round: Round of the event.
        agent_json: The seat as JSON text; b"" where the event has none.
        data_json: The event's data as JSON text.
    """

    line: int
    end: int
    raw: bytes
    head: Head
    type: str
    step: int
    round: int
    agent_json: bytes
    data_json: bytes

    def event(self) -> Event:
        """The event itself.

        Raises:
            TraceError: The data is no JSON (somebody hashed nonsense).
        """
        agent = _decode(self.agent_json, self.line) if self.agent_json else ""
        data = _decode(self.data_json, self.line)
        return Event(self.type, self.step, self.round, data, agent, self.head.seq - 1)


class Torn(NamedTuple):
    """What a killed writer leaves: bytes after the last line end.

    Attributes:
        line: Line number that the rest would have had.
        start: Byte offset where it starts.
    """

    line: int
    start: int


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_JSON = json.JSONDecoder(parse_constant=_no_constant)


def _decode(text: bytes, line: int) -> Any:
    try:
        return _JSON.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise TraceError(
            f"line {line} of the trace is not JSON", _one_line(error), _FIX_EDITED
        ) from None


_FIX_EDITED = "Restore the file from a copy, or run the episode again: the same seed gives the same"


def _one_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).split())[:120]


def open_trace(path: Path) -> BinaryIO:
    """Open a trace file for reading.

    Raises:
        TraceError: It is missing, not a regular file, or not readable.
    """
    try:
        if path.exists() and not path.is_file():
            raise TraceError(
                f"{path} is not a file", "a trace is a regular file", "Name a trace.jsonl"
            )
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(
            f"{path} cannot be read", reason, "List the runs there are: run_warroom.py runs"
        ) from None


_FIRST_BYTES = b'{"data":{'  # run_started has no agent


def scan(path: Path, *, resuming: bool = False) -> Iterator[Link | Torn]:
    """Every line of a trace in order, each checked against the one before.

    Args:
        path: The trace file.
        resuming: Take an empty file, or one that ends within its first line, for what a killed
            writer left. A file that does not begin like a trace is refused all the same.

    Yields:
        Links; and as the last item a `Torn`, where the file ends within a line.

    Raises:
        SchemaVersionError: The trace is of another schema.
        DigestMismatchError: A line is not what was hashed.
        TraceError: This is no trace, or it cannot be read.
    """
    with open_trace(path) as stream:
        head, line, end = START, 0, 0
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            line += 1
            if not raw.endswith(b"\n"):
                if len(raw) > MAX_LINE_BYTES:
                    raise TraceError(
                        f"line {line} of {path} is longer than {MAX_LINE_BYTES >> 20} MiB",
                        "no event is that long", "Check that this is a trace.jsonl",
                    )  # fmt: skip
                if line == 1 and not (resuming and raw.startswith(_FIRST_BYTES[: len(raw)])):
                    raise not_a_trace(path, raw)
                yield Torn(line, end)
                return
            end += len(raw)
            link = check_line(path, raw[:-1], line, end, head)
            head = link.head
            yield link
        if line == 0 and not resuming:
            raise TraceError(f"{path} is empty", "a trace starts with run_started", _FIX_NO_TRACE)


_FIX_NO_TRACE = "List the runs there are: run_warroom.py runs"


def check_line(path: Path, raw: bytes, line: int, end: int, head: Head) -> Link:
    """One line, without its line end, against the head of the chain before it.

    Args:
        path: For messages.
        raw: The line.
        line: Its number, from 1.
        end: Byte offset after its line end.
        head: Where the chain stood before it.

    Raises:
        SchemaVersionError: It is the run_started of another schema.
        DigestMismatchError: It does not continue the chain.
        TraceError: It is the first line, and not one of a trace at all.
    """
    match = _LINE.fullmatch(raw)
    if match is None:
        if line == 1:
            raise not_a_trace(path, raw)
        raise _edited(path, line, "it has not the form of an event")
    agent, data, prev, round_, seq, sha, step, kind = match.groups(b"")
    if line == 1:
        _check_first(path, kind, data, raw)
    if prev.decode() != head.sha:
        raise _edited(path, line, "it does not name the hash of the line before")
    if int(seq) != head.seq:
        raise _edited(path, line, f"its number is {int(seq)}, due is {head.seq}")
    cut, tail = match.span(3), match.span(6)
    body = (
        raw[: cut[0] - len(b',"prev":"')]
        + raw[cut[1] + 1 : tail[0] - len(b',"sha":"')]
        + raw[tail[1] + 1 :]
    )
    if link_sha(head.sha, body) != sha.decode():
        raise _edited(path, line, "its content does not give its hash")
    if kind not in _TYPES:
        raise TraceError(
            f"line {line} of {path} holds an event of type {kind.decode()[:40]!r}",
            f"{SCHEMA} has no such type", "Read it with the version that wrote it",
        )  # fmt: skip
    return Link(
        line, end, raw, Head(head.seq + 1, sha.decode()), kind.decode(), int(step), int(round_),
        agent, data,
    )  # fmt: skip


def _edited(path: Path, line: int, why: str) -> DigestMismatchError:
    return DigestMismatchError(f"line {line} of {path} was changed", why, _FIX_EDITED)


def _check_first(path: Path, kind: bytes, data: bytes, raw: bytes) -> None:
    """The first line must be run_started, and of the schema that is read here."""
    if kind != b"run_started":
        raise not_a_trace(path, raw)
    try:
        found = json.loads(data).get("schema")
    except (ValueError, RecursionError):
        raise not_a_trace(path, raw) from None
    if found != SCHEMA:
        raise _other_schema(path, found)


def _other_schema(path: Path, found: object) -> SchemaVersionError:
    return SchemaVersionError(
        f"{path} is of schema {str(found)[:40]!r}",
        f"this version reads {SCHEMA}",
        "Read it with the version that wrote it",
    )


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def not_a_trace(path: Path, raw: bytes) -> TraceError:
    """Say what the first bytes of a file are instead of a trace."""
    what = f"{path} is not a trace"
    if b"\x00" in raw or not _is_text(raw):
        return TraceError(what, "it is binary, not UTF-8 text", _FIX_NO_TRACE)
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        if raw.startswith(_FIRST_BYTES) and not raw.endswith(b"}"):
            return TraceError(f"{path} ends within its first line", "it is cut off", _FIX_NO_TRACE)
        return TraceError(what, "its first line is not JSON", _FIX_NO_TRACE)
    data = value.get("data") if isinstance(value, dict) else None
    found = data.get("schema") if isinstance(data, dict) else None
    if isinstance(found, str) and found != SCHEMA and found.startswith("trace/"):
        return _other_schema(path, found)
    return TraceError(what, "its first line is not a run_started event", _FIX_NO_TRACE)
