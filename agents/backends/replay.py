"""A recorded seat that speaks again: its replies are read from the trace of an earlier run.

Strict by default: at the first observation that differs from the recorded one the run ends and
names what differs, because what somebody said there was said about something else. Lenient
(``replay.strict = false``), such a step is a recorded fault and the seat's fallback speaks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.faults import SeatEndsRun, SeatFault
from agents.persona_schema import PersonaSpec, ReplayTable
from policies.records import Proposal, Reply, Request
from world.actions import parse_joint
from world.errors import ConfigError, InadmissibleActionError, TraceError, UnknownNameError
from world.model import significant

TRACE_FILE = "trace.jsonl"
SCHEMA = "trace/1"
_GENESIS = "0" * 64
_COMPARED = ("targets", "facts", "incidents")


@dataclass
class Recording:
    """What one seat of a run saw and said.

    Attributes:
        path: The trace file.
        seat: The seat in it.
        observations: Step (1…) → data of its observation event.
        proposals: Step → the proposals of its ballot event.
        responses: (step, round) → data of its response event.
        messages: (step, round) → what it told the others.
        sha: Hash of the last line.
    """

    path: Path
    seat: str
    observations: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    proposals: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)
    responses: dict[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    messages: dict[tuple[int, int], str] = field(default_factory=dict)
    sha: str = _GENESIS


def read_recording(path: Path, seat: str) -> Recording:
    """What a seat said in a run.

    Args:
        path: A trace file, or the folder of a run.
        seat: Seat in that run.

    Raises:
        UnknownNameError: There is no such trace, or no such seat in it.
        ConfigError: The file is no trace, or a line of it was changed.
    """
    file = path / TRACE_FILE if path.is_dir() else path
    recording = Recording(file, seat)
    for event in _events(file, recording):
        kind, data, step = event["type"], event["data"], event["step"]
        if kind == "run_started":
            seats = [str(entry.get("seat")) for entry in data.get("seats", ())]
            if seat not in seats:
                raise UnknownNameError(
                    f"{file}: there is no seat {seat!r} in this run",
                    f"its seats are {', '.join(seats)}",
                    "Name one of them: replay.seat",
                )
        elif kind == "observation":
            recording.observations[step] = data
        elif event.get("agent") != seat:
            continue
        elif kind == "ballot":
            recording.proposals[step] = list(data.get("proposals", ()))
        elif kind == "response":
            recording.responses[step, event["round"]] = data
        elif kind == "message":
            recording.messages[step, event["round"]] = str(data.get("text", ""))
    return recording


def _events(path: Path, recording: Recording) -> Iterator[dict[str, Any]]:
    """The events of a trace, each checked against the hash chain."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    event = json.loads(line)
                    prev, sha = event["prev"], event["sha"]
                    text = line.rstrip(b"\n")
                    for name, value in (("prev", prev), ("sha", sha)):
                        text = text.replace(f',"{name}":"{value}"'.encode(), b"", 1)
                    right = hashlib.sha256(recording.sha.encode() + text).hexdigest()
                    known = {"type", "data", "step", "round"} <= event.keys()
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise ConfigError(f"{path}:{number}: this is no trace", "", "") from error
                if (prev, sha) != (recording.sha, right) or not known:
                    raise ConfigError(
                        f"{path}:{number}: this line was changed",
                        "its hash does not match",
                        f"Check it: run_warroom.py trace verify {path}",
                    )
                recording.sha = sha
                yield event
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownNameError(
            f"there is no trace {path}", "backend.ref names a run's folder or its trace", ""
        ) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read", error.strerror or "", "") from error
    if recording.sha == _GENESIS:
        raise ConfigError(f"{path} is empty", "it is no trace", "")


@dataclass(frozen=True)
class ReplayPersona:
    """A recorded seat.

    Attributes:
        spec: The seat's file.
        seat: The seat that it takes now.
        recording: What was seen and said then.
    """

    spec: PersonaSpec
    seat: str
    recording: Recording

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> ReplayPersona:
        """The persona of a file; reads the record.

        Raises:
            UnknownNameError: No such trace or seat.
            ConfigError: No trace, or a changed one.
        """
        table = spec.replay or ReplayTable()
        return ReplayPersona(spec, seat, read_recording(Path(spec.backend.ref), table.seat or seat))

    @property
    def blocking(self) -> bool:
        """Nothing is waited for."""
        return False

    @property
    def content_digest(self) -> str:
        """Hash of the record's last line."""
        return self.recording.sha

    def answer(self, request: Request) -> Reply:
        """What was said then.

        Raises:
            SeatEndsRun: The situation differs, and the record is strict.
            SeatFault: It differs, and the record is lenient.
        """
        step = request.step + 1
        recorded = self.recording.observations.get(step)
        if recorded is None:
            self._differs(f"step {step}: the record ends after step {self._last}")
        elif difference := first_difference(recorded, request):
            self._differs(f"step {step}: the situation differs from the record: {difference}")
        try:
            return self._recorded(request, step)
        except (InadmissibleActionError, KeyError, TypeError) as error:
            raise SeatFault(
                "garbage", f"step {step} of the record cannot be read: {error}"
            ) from None

    @property
    def _last(self) -> int:
        return max(self.recording.observations, default=0)

    def _recorded(self, request: Request, step: int) -> Reply:
        ask = request.ask
        if ask.kind == "propose":
            entries = self.recording.proposals.get(step, [])
            return Reply(
                proposals=tuple(
                    Proposal(
                        parse_joint(entry["id"]),
                        str(entry.get("rationale", "")),
                        entry.get("confidence"),
                        dict(entry.get("claimed", {})),
                    )
                    for entry in entries
                )
            )
        data = self.recording.responses.get((step, ask.round))
        if data is None:
            self._differs(
                f"step {step}: the record has no answer to {ask.kind} in round {ask.round}"
            )
            return Reply()
        return Reply(
            scores=dict(data.get("scores", {})),
            accept=bool(data.get("accept", False)),
            counter=str(data.get("counter", "")),
            choice=str(data.get("choice", "")),
            message=self.recording.messages.get((step, ask.round), ""),
        )

    def _differs(self, what: str) -> None:
        if (self.spec.replay or ReplayTable()).strict:
            raise SeatEndsRun(
                TraceError(
                    f"seat {self.seat}: {what}",
                    f"it replays {self.recording.path} strictly",
                    f"Play the run that was recorded, or let its fallback speak there: "
                    f"--set {self.seat}.replay.strict=false",
                )
            )
        raise SeatFault("record_differs", what)


def first_difference(recorded: Mapping[str, Any], request: Request) -> str:
    """What first differs between a recorded observation and what a seat sees; "" for nothing.

    Numbers count as equal when their nine significant digits are, as the trace spells them.
    Metrics that are hidden from the seat are not compared.
    """
    seen = request.observation
    then = recorded.get("metrics", {})
    for name in seen.metrics:
        if _spelt(then.get(name)) != _spelt(seen.metrics[name]):
            return f"metrics.{name} is {_spelt(seen.metrics[name])}, was {_spelt(then.get(name))}"
    now: Mapping[str, Any] = {
        "targets": dict(seen.targets),
        "facts": dict(seen.facts),
        "incidents": list(seen.incidents),
    }
    for part in _COMPARED:
        before = recorded.get(part, [] if part == "incidents" else {})
        found = _first(part, before, now[part])
        if found:
            return found
    return ""


def _first(where: str, then: Any, now: Any) -> str:
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for name in sorted({*then, *now}):
            found = _first(f"{where}.{name}", then.get(name), now.get(name))
            if found:
                return found
        return ""
    return "" if _spelt(then) == _spelt(now) else f"{where} is {_spelt(now)}, was {_spelt(then)}"


def _spelt(value: Any) -> str:
    """A value as the trace spells it, short enough for a message."""
    text = json.dumps(_rounded(value), sort_keys=True, default=str)
    return (
        text
        if len(text) <= 120
        else f"{text[:119]}…{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    as_plain = getattr(value, "tolist", None)
    if callable(as_plain):
        return _rounded(as_plain())
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return significant(float(value))
    return value
