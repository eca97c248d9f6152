"""What a backend notes for the trace passes the gate as plain, bounded data, and the journal."""

from typing import Any

import pytest

from agents.validate import validated_reply
from orchestrator.positions import add_fallbacks, positions_of
from orchestrator.replies import read_reply, write_reply
from policies.records import Note, Position, Reply, Usage
from tests.support.asks import stub_request
from world.errors import InvalidProposalError


def test_notes_and_usage_and_fallback_survive_the_journal() -> None:
    reply = Reply(
        usage=Usage(2, 30, 4, None, 51.5),
        fallback="not_json: …",
        notes=(Note("llm_call", {"model": "m", "attempts": 2, "ok": False}),),
    )
    assert read_reply(write_reply(reply)) == reply


def test_notes_are_made_anew_from_plain_values() -> None:
    note = Note("llm_call", {"a": "x\u202ey", "b": 1 / 3, "c": True, "d": None, "e": 3})
    kept = validated_reply(stub_request(), Reply(notes=(note,))).notes
    assert dict(kept[0].data) == {"a": "xy", "b": 0.333333333, "c": True, "d": None, "e": 3}


@pytest.mark.parametrize(
    "notes",
    [
        "llm_call",
        (Note("decision", {}),),  # type: ignore[arg-type]
        ({"kind": "llm_call"},),
        (Note("budget", {"x": float("nan")}),),
        (Note("budget", {"x": [1]}),),  # type: ignore[dict-item]
        (Note("budget", {f"k{n}": 1 for n in range(25)}),),
        tuple(Note("budget", {}) for _ in range(17)),
    ],
)
def test_notes_that_are_none_are_refused(notes: Any) -> None:
    with pytest.raises(InvalidProposalError):
        validated_reply(stub_request(), Reply(notes=notes))


def test_positions_and_fallbacks_are_read_from_events() -> None:
    events = [
        ("fallback", "janitor", {"kind": "propose", "what": "timeout: late"}),
        ("fallback", "", {"kind": "protocol", "what": "the room's own"}),
        ("ballot", "cost", {"proposals": [{"id": "a", "rationale": "why"}, {"id": "b"}]}),
        ("ballot", "janitor", {"proposals": []}),
        ("message", "cost", {"text": "first"}),
        ("message", "cost", {"text": "last"}),
    ]
    assert positions_of(3, events) == (Position(3, "cost", ("a", "b"), "why", "last"),)
    counted: dict[str, tuple[int, str]] = {}
    for _ in range(2):
        add_fallbacks(counted, events)
    assert counted == {"janitor": (2, "timeout: late")}
