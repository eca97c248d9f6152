"""What a trace is made of: events, their one spelling, and the hash chain that joins them.

A trace is a file of lines. A line is the canonical JSON of one event with two members more:
``prev``, the hash of the line before, and ``sha``, the hash of this one. Everything here is
pure: no file, no clock. Files are written in `orchestrator.trace.writer` and read in
`orchestrator.trace.reader`.

Canonical form: UTF-8 JSON with members sorted by key, no spaces, no escapes but the ones that
JSON demands, floats with at most nine significant digits. An integral float below 10⁹ is spelled
like the integer (3.0 is ``3``), so that it does not matter which of the two a producer used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, NamedTuple

SCHEMA = "trace/1"
"""Name and version of the format; stands in the data of run_started."""

GENESIS = "0" * 64
"""What the first line names as the hash before it."""

EVENT_TYPES = (
    "run_started",
    "observation",
    "candidates",
    "ballot",
    "veto",
    "offer",
    "response",
    "message",
    "decision",
    "applied",
    "grade",
    "fallback",
    "budget",
    "llm_call",
    "human_input",
    "run_ended",
)
"""The closed set of event types. ``grade`` is the last event of every step."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_encode_text: Callable[[str], str] = encode_basestring


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in an episode.

    Attributes:
        type: One of `EVENT_TYPES`.
        step: The step being decided, 1…; 0 for run_started, the last step for run_ended.
        round: Round of the negotiation; 0 outside one.
        data: JSON-plain content; the members of each type are listed in docs/trace.md.
        agent: Seat that it comes from; "" where it comes from the room.
        seq: Position in the trace, from 0; -1 until the event is in a chain.
    """

    type: str
    step: int
    round: int
    data: Mapping[str, Any]
    agent: str = ""
    seq: int = field(default=-1, compare=False)


def event(
    type: str,
    step: int,
    round: int,
    data: Mapping[str, Any],
    agent: str = "",
) -> Event:
    """Build an event.

    Raises:
        ValueError: The type is not one of `EVENT_TYPES`, or a number is negative.
    """
    if type not in EVENT_TYPES:
        raise ValueError(f"{type!r} is not an event type; there are {', '.join(EVENT_TYPES)}")
    if step < 0 or round < 0:
        raise ValueError(f"step {step} and round {round} of a {type} event must be 0 or more")
    return Event(type, step, round, data, agent)


def canonical(value: Any) -> bytes:
    r"""The one spelling of a JSON-plain value.

    Tuples count as lists; NumPy scalars and arrays as what they hold; a lone surrogate, which
    UTF-8 cannot carry, becomes U+FFFD.

    >>> canonical({"b": (1, 2.0), "a": 0.1 + 0.2})
    b'{"a":0.3,"b":[1,2]}'

    Raises:
        ValueError: NaN, an infinity, a key that is not text, a type that JSON has no form for, or
            hundreds of levels. The producer of the value is wrong, not the user.
    """
    try:
        text = _spell(value)
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _spell(_without_surrogates(value)).encode()
    except RecursionError:
        raise ValueError("the value cannot be recorded: it is nested too deeply") from None


def _spell(value: Any) -> str:
    return _SPELLINGS.get(type(value), _spell_other)(value)


def _spell_float(value: float) -> str:
    if value - value != 0.0:
        raise ValueError(f"{value} cannot be recorded: JSON has no NaN and no infinity")
    # Adding 0.0 turns -0.0 into 0.0: a reader of "-0" would not give the sign back.
    return "%.9g" % (value + 0.0)


def _spell_list(value: Sequence[Any]) -> str:
    spelling = _SPELLINGS.get
    return "[" + ",".join([spelling(type(v), _spell_other)(v) for v in value]) + "]"


def _spell_dict(value: dict[str, Any]) -> str:
    spelling = _SPELLINGS.get
    parts = []
    try:
        for key in sorted(value):
            item = value[key]
            kind = type(item)
            # Texts and numbers are most items, so they are spelt without a further call.
            if kind is str:
                parts.append(f"{_encode_text(key)}:{_encode_text(item)}")
            elif kind is float and item - item == 0.0:
                parts.append(f"{_encode_text(key)}:{item + 0.0:.9g}")
            else:
                parts.append(f"{_encode_text(key)}:{spelling(kind, _spell_other)(item)}")
    except TypeError:
        wrong = sorted(repr(key) for key in value if not isinstance(key, str))
        if not wrong:
            raise
        raise ValueError(f"keys must be text, these are not: {', '.join(wrong)}") from None
    return "{" + ",".join(parts) + "}"


def _spell_other(value: Any) -> str:
    """Subclasses of the plain types, other mappings, and whatever NumPy makes."""
    if isinstance(value, str):
        return _spell("".join((value,)))
    if isinstance(value, float):
        return _spell_float(float(value))
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, Mapping):
        return _spell_dict(dict(value))
    if isinstance(value, list | tuple):
        return _spell(list(value))
    as_plain = getattr(value, "tolist", None)
    if callable(as_plain):
        return _spell(as_plain())
    raise ValueError(f"a {type(value).__name__} cannot be recorded: {value!r:.80} is not JSON")


# By exact type, because that is nearly all there is and a lookup costs less than a chain of tests.
_SPELLINGS: dict[type, Callable[[Any], str]] = {
    str: _encode_text,
    float: _spell_float,
    dict: _spell_dict,
    list: _spell_list,
    tuple: _spell_list,
    int: int.__repr__,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
}


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        clean: dict[str, Any] = {}
        for key in sorted(value):
            name = _SURROGATE.sub("\ufffd", key)
            while name in clean or (name != key and name in value):
                name += "\ufffd"  # two keys that only differed there must both survive
            clean[name] = _without_surrogates(value[key])
        return clean
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    as_plain = getattr(value, "tolist", None)
    return _without_surrogates(as_plain()) if callable(as_plain) else value


class Head(NamedTuple):
    """Where a chain stands.

    Attributes:
        seq: Number of the next event.
        sha: Hash of the last line, 64 hexadecimal digits; `GENESIS` before the first.
    """

    seq: int = 0
    sha: str = GENESIS


START = Head()
"""The head of an empty chain."""


def link_sha(prev: str, body: bytes) -> str:
    """``SHA-256(prev in hexadecimal + canonical line without prev and sha)``, in hexadecimal."""
    return hashlib.sha256(prev.encode() + body).hexdigest()


class Chain:
    """Turns events into hash-chained lines.

    Attributes:
        head: Where the chain stands. Keep it before a commit and put it back if the commit is
            refused: the lines made in between then never happened.
    """

    __slots__ = ("head",)

    def __init__(self, head: Head = START) -> None:
        self.head = head

    def add(self, entry: Event) -> bytes:
        """Append an event.

        Returns:
            Its line, without a line end.

        Raises:
            ValueError: The event's data has no canonical form.
        """
        try:
            return self._link(entry, entry.agent, entry.data)
        except UnicodeEncodeError:
            clean = _without_surrogates(entry.data)
            return self._link(entry, _without_surrogates(entry.agent), clean)

    def _link(self, entry: Event, agent: str, content: Mapping[str, Any]) -> bytes:
        # One f-string each, because nine events a step make this the hot path of a commit.
        seq, prev = self.head
        data = _spell(content)
        agent = f'"agent":{_encode_text(agent)},' if agent else ""
        start = f'{{{agent}"data":{data},'
        count = f'"round":{entry.round},"seq":{seq},'
        end = f'"step":{entry.step},"type":"{entry.type}"}}'
        sha = hashlib.sha256(f"{prev}{start}{count}{end}".encode()).hexdigest()
        line = f'{start}"prev":"{prev}",{count}"sha":"{sha}",{end}'.encode()
        self.head = Head(seq + 1, sha)
        return line
