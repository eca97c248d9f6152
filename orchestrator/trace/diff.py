"""Where two traces part, and why.

An episode is a function of what its header names, so a difference has one of two causes: an input
differs (scenario, seed, a persona, the protocol, a rule of the room), or somebody who is no
function spoke (a model, a person, another process). The first event that differs is found without
decoding what is equal; both files are read once, checked, one step in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.trace.commits import Commit, commits
from orchestrator.trace.links import Link
from orchestrator.trace.steps import mapping, sequence
from orchestrator.trace.untrusted import printable
from policies.records import sequence_of

_INPUTS = ("scenario", "seed", "horizon", "seats", "protocol", "room", "counterfactual")
_NO_FUNCTION = frozenset({"llm", "human", "remote"})
_WORDS = {
    "observation": "what the room observed",
    "candidates": "what lay on the table",
    "ballot": "what a seat proposed or how it valued the options",
    "veto": "what a seat vetoed",
    "offer": "what a seat was asked",
    "response": "what a seat answered",
    "message": "what a seat told the others",
    "decision": "what was decided",
    "applied": "what came of it",
    "grade": "how the step was graded",
    "fallback": "what had to be replaced",
    "budget": "what a spending limit stopped",
    "llm_call": "what a model was asked or said",
    "human_input": "what a person entered",
    "run_ended": "how the run ended",
}


class Part(NamedTuple):
    """One value that differs.

    Attributes:
        path: Where it stands, for example ``metrics.latency_ms``; "" is the whole.
        a: Its value in the first; `ABSENT` where it is not there.
        b: Its value in the second.
    """

    path: str
    a: Any
    b: Any


_NOTHING: Commit = ()

ABSENT = "(not there)"
"""Stands for a value that one side does not have."""


@dataclass(frozen=True, slots=True)
class Point:
    """The first event that differs.

    Attributes:
        step: Its step.
        round: Its round.
        seat: The seat that it comes from; "" for the room.
        kind: Its type in the first trace; "" where the first has ended.
        other_kind: Its type in the second.
        seq_a: Its number in the first trace.
        seq_b: Its number in the second.
        part: The first value in it that differs; of an event that only one has, the event.
        context: What was last the same, one line.
    """

    step: int
    round: int
    seat: str
    kind: str
    other_kind: str
    seq_a: int
    seq_b: int
    part: Part
    context: str


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """How two traces differ.

    Attributes:
        inputs: What differs in the headers, in the order scenario, seed, seats, protocol, room.
        first: The first event that differs after the headers; None where none does.
        why: The cause, one line; "" where nothing differs.
        events: Events compared and found the same, headers not counted.
        steps: Steps that both have.
        decisions: Steps in which something else was done.
        reward_a: Total reward of the first over the steps that both have.
        reward_b: The same of the second.
    """

    inputs: tuple[Part, ...]
    first: Point | None
    why: str
    events: int
    steps: int
    decisions: int
    reward_a: float
    reward_b: float

    @property
    def same(self) -> bool:
        """Whether both say the same from the first line to the last."""
        return not self.inputs and self.first is None

    @property
    def other_scenario(self) -> bool:
        """Whether they are of different scenarios, so that little can be compared."""
        return any(part.path in {"scenario.name", "scenario.digest"} for part in self.inputs)

    def as_json(self) -> dict[str, Any]:
        """The document of ``trace diff --json``."""
        return {
            "same": self.same,
            "other_scenario": self.other_scenario,
            "inputs": [part._asdict() for part in self.inputs],
            "first": None if self.first is None else _point_json(self.first),
            "why": self.why,
            "events_same": self.events,
            "steps": self.steps,
            "decisions_differ": self.decisions,
            "reward_a": self.reward_a,
            "reward_b": self.reward_b,
        }


def _point_json(point: Point) -> dict[str, Any]:
    names = ("step", "round", "seat", "kind", "other_kind", "seq_a", "seq_b", "context")
    return {**{name: getattr(point, name) for name in names}, **point.part._asdict()}


def first_part(a: Any, b: Any, path: str = "") -> Part | None:
    """The first value that differs between two JSON-plain values, members in order of the key.

    >>> first_part({"x": [1, 2], "y": 3}, {"x": [1, 5], "y": 4})
    Part(path='x.1', a=2, b=5)
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in sorted({*a, *b}):
            found = first_part(a.get(name, ABSENT), b.get(name, ABSENT), _under(path, name))
            if found is not None:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list):
        for place, (one, other) in enumerate(zip_longest(a, b, fillvalue=ABSENT)):
            found = first_part(one, other, _under(path, str(place)))
            if found is not None:
                return found
        return None
    same = a == b and isinstance(a, bool) == isinstance(b, bool)
    return None if same else Part(path, a, b)


def all_parts(a: Any, b: Any, path: str = "") -> list[Part]:
    """Every value that differs, members in order of the key."""
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        found = first_part(a, b, path)
        return [] if found is None else [found]
    parts: list[Part] = []
    for name in sorted({*a, *b}):
        parts += all_parts(a.get(name, ABSENT), b.get(name, ABSENT), _under(path, name))
    return parts


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def diff(a: Path, b: Path) -> TraceDiff:
    """Compare two traces.

    Args:
        a: A trace file.
        b: Another.

    Raises:
        SchemaVersionError: One is of another schema.
        DigestMismatchError: A line was changed.
        TraceError: One is no trace, cannot be read, or ends within a line.
    """
    steps = zip_longest(commits(a), commits(b), fillvalue=_NOTHING)
    header_a, header_b = ({} if not pair else _data(pair[0]) for pair in next(steps))
    inputs = tuple(_inputs(header_a, header_b))
    first: Point | None = None
    last: Link | None = None
    tally = _Tally()
    for one, other in steps:
        same = _same(one, other)
        tally.add(one, other, same)
        if same or first is not None:
            tally.events += len(one) if first is None else 0
            last = one[-1] if first is None else last
            continue
        place = _first_place(one, other)
        tally.events += place
        last = one[place - 1] if place else last
        first = _point(_at(one, place), _at(other, place), last)
    why = _why(inputs, first, (header_a, header_b))
    return TraceDiff(
        inputs, first, why, tally.events, tally.steps, tally.decisions,
        _rounded(tally.reward_a), _rounded(tally.reward_b),
    )  # fmt: skip


class _Tally:
    """What is counted on the way."""

    def __init__(self) -> None:
        self.events = self.steps = self.decisions = 0
        self.reward_a = self.reward_b = 0.0

    def add(self, one: Commit, other: Commit, same: bool) -> None:
        """Count a step that both have."""
        graded_a, graded_b = _of(one, "grade"), _of(other, "grade")
        if graded_a is None or graded_b is None:
            return
        self.steps += 1
        reward = _reward(graded_a)
        self.reward_a += reward
        self.reward_b += reward if same else _reward(graded_b)
        if not same:
            done = [_data(link).get("action") if link else None for link in (
                _of(one, "decision"), _of(other, "decision"))]  # fmt: skip
            self.decisions += done[0] != done[1]


def _same(one: Commit, other: Commit) -> bool:
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: Link, other: Link) -> bool:
    return one.data_json == other.data_json and _place(one) == _place(other)


def _place(link: Link) -> tuple[str, int, int, bytes]:
    return link.type, link.step, link.round, link.agent_json


def _first_place(one: Commit, other: Commit) -> int:
    pairs = zip_longest(one, other)
    return next(n for n, (x, y) in enumerate(pairs) if x is None or y is None or not _equal(x, y))


def _at(links: Commit, place: int) -> Link | None:
    return links[place] if place < len(links) else None


def _of(links: Commit, kind: str) -> Link | None:
    return next((link for link in reversed(links) if link.type == kind), None)


def _data(link: Link) -> Mapping[str, Any]:
    return mapping(link.event().data)


def _reward(link: Link) -> float:
    value = _data(link).get("reward")
    return float(value) if isinstance(value, int | float) else 0.0


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _point(one: Link | None, other: Link | None, last: Link | None) -> Point:
    known = one or other
    if known is None:
        raise RuntimeError("two commits that differ have an event that differs")
    return Point(
        step=known.step,
        round=known.round,
        seat=known.event().agent,
        kind=one.type if one else "",
        other_kind=other.type if other else "",
        seq_a=one.head.seq - 1 if one else -1,
        seq_b=other.head.seq - 1 if other else -1,
        part=_part(one, other),
        context=f"the last event that is the same: {_named(last)}" if last else "",
    )


def _part(one: Link | None, other: Link | None) -> Part:
    if one is None or other is None or _place(one) != _place(other):
        return Part("", _named(one), _named(other))
    return first_part(_data(one), _data(other)) or Part("", _named(one), _named(other))


def _named(link: Link | None) -> str:
    """An event in one phrase."""
    if link is None:
        return ABSENT
    entry = link.event()
    words = f"step {entry.step}, {entry.type}"
    if entry.round:
        words += f", round {entry.round}"
    if entry.agent:
        words += f" of {printable(entry.agent, 60)}"
    if entry.type == "decision":
        words += f": {printable(str(mapping(entry.data).get('action', '')), 80)}"
    return words


def _inputs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Part]:
    """What differs between two headers; seats by name, not by place."""
    for name in (*_INPUTS, *sorted({*a, *b} - {*_INPUTS})):
        one, other = a.get(name, ABSENT), b.get(name, ABSENT)
        if name == "seats":
            seats_a, seats_b = _by_seat(one), _by_seat(other)
            yield from all_parts(seats_a, seats_b, "seats")
            if [*seats_a] != [*seats_b] and {*seats_a} == {*seats_b}:
                yield Part("seats", ", ".join(seats_a), ", ".join(seats_b))
        else:
            yield from all_parts(one, other, name)


def _by_seat(seats: object) -> dict[str, Any]:
    entries = map(mapping, sequence(seats))
    return {
        str(entry.get("seat", "")): {k: v for k, v in entry.items() if k != "seat"}
        for entry in entries
    }


def _why(
    inputs: tuple[Part, ...],
    first: Point | None,
    headers: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    """The likeliest cause of the first difference, in one line."""
    if first is None:
        return f"{_input_names(inputs)}, and nothing that happened does" if inputs else ""
    if inputs:
        return _from_inputs(inputs, first)
    if not first.kind or not first.other_kind:
        return "one of them goes on where the other ends: the same run, stopped earlier"
    voices = {
        seat: str(mapping(entry).get("backend", ""))
        for header in headers
        for seat, entry in _by_seat(header.get("seats")).items()
    }
    if voices.get(first.seat) in _NO_FUNCTION:
        return f"seat {first.seat} is voiced by {voices[first.seat]}, which may answer otherwise"
    outside = [seat for seat, kind in voices.items() if kind in _NO_FUNCTION]
    if outside:
        return f"the headers are the same; {', '.join(outside)} may have answered otherwise"
    return (
        "the headers are the same and every seat is a function: another program version, NumPy "
        "or processor (see run.json), or a seat that timed out"
    )


def _from_inputs(inputs: tuple[Part, ...], first: Point) -> str:
    own = f"seats.{first.seat}." if first.seat else ""
    told = next((part for part in inputs if own and part.path.startswith(own)), None)
    if told is not None:
        return f"the persona of seat {first.seat} differs ({told.path.removeprefix(own)})"
    word = _WORDS.get(first.kind or first.other_kind, "an event")
    return f"{_input_names(inputs)}, which shows first in {word}"


def _input_names(inputs: tuple[Part, ...]) -> str:
    """``seed and protocol differ``; that one is a counterfactual only where it is all there is."""
    groups = dict.fromkeys(
        f"the persona of {part.path.split('.')[1]}"
        if part.path.startswith("seats.")
        else part.path.partition(".")[0]
        for part in inputs
    )
    names = [name for name in groups if name != "counterfactual"]
    if not names:
        return "one is a counterfactual of the other's storm"
    return f"{printable(sequence_of(names), 200)} {'differ' if len(names) > 1 else 'differs'}"


def shown_value(value: Any, limit: int = 100) -> str:
    """A value for people: short, and safe to print."""
    if value is ABSENT or (isinstance(value, str) and value == ABSENT):
        return ABSENT
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text, limit)


def told(found: TraceDiff, names: tuple[str, str]) -> list[str]:
    """The difference for people, one line each.

    Args:
        found: What `diff` found.
        names: What to call the two traces.
    """
    if found.same:
        return [f"the same: {found.events} events, {found.steps} steps (after the header)"]
    lines = []
    if found.other_scenario:
        lines.append("different scenarios: what follows compares two different storms")
    lines += [
        f"input  {printable(part.path, 80)}: {shown_value(part.a)} | {shown_value(part.b)}"
        for part in found.inputs
    ]
    if found.first is None:
        lines.append(f"events the same: {found.events}, in {found.steps} steps")
    else:
        lines += _told_point(found.first, names)
    lines.append(f"why    {printable(found.why, 400)}")
    if found.decisions or found.first is not None:
        lines.append(
            f"after  {found.decisions} of {found.steps} steps that both have did something else; "
            f"reward {found.reward_a:.9g} | {found.reward_b:.9g}"
        )
    return lines


def _told_point(point: Point, names: tuple[str, str]) -> list[str]:
    seat = f", seat {printable(point.seat, 60)}" if point.seat else ""
    round_ = f", round {point.round}" if point.round else ""
    kind = point.kind or point.other_kind
    at = f" at {printable(point.part.path, 120)}" if point.part.path else ""
    return [
        f"first  step {point.step}{round_}{seat}: {kind} ({_WORDS.get(kind, kind)}){at}",
        f"       {printable(names[0], 80)}: {shown_value(point.part.a)}"
        + (f"  (seq {point.seq_a})" if point.seq_a >= 0 else ""),
        f"       {printable(names[1], 80)}: {shown_value(point.part.b)}"
        + (f"  (seq {point.seq_b})" if point.seq_b >= 0 else ""),
        *([f"       {point.context}"] if point.context else []),
    ]
