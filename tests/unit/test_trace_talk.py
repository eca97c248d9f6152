"""Rounds in words: what a reader of a trace is told of a negotiation."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.trace.events import event
from orchestrator.trace.show import plain, story
from orchestrator.trace.talk import account, exchanges


def told(**entry: Any) -> str:
    (line,) = account({"account": [{"round": 2, **entry}]})
    assert line.round == 2
    return f"{line.who}: {line.text}"


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"kind": "offer", "seat": "cost", "candidate": "save", "accepted": ["a"],
             "declined": ["b", "c"]},
            "cost: offers save; accepted by a; declined by b, c",
        ),
        (
            {"kind": "offer", "seat": "cost", "candidate": "save", "accepted": ["a", "b"],
             "declined": []},
            "cost: offers save; accepted by a, b; agreed",
        ),
        ({"kind": "pass", "seat": "cost"}, "cost: has nothing to offer"),
        (
            {"kind": "text", "candidate": "x", "against": "y", "opposed": 0.25, "kept": True},
            ": x instead of y: 25 % against, becomes the text",
        ),
        (
            {"kind": "text", "candidate": "x", "against": "", "opposed": 0.75, "kept": False},
            ": last text x: 75 % against, no majority",
        ),
        ({"kind": "ballots", "secret": True, "stated": ["a"]}, ": secret ballots of a"),
        (
            {"kind": "ballots", "secret": False, "changed": []},
            ": ballots in sight of the others': nobody changed",
        ),
        ({"kind": "command", "seat": "ic", "candidate": "x"}, "ic: commands x"),
        (
            {"kind": "without_commander", "candidate": "x", "protocol": "nash"},
            ": without a commander: x, by nash",
        ),
        (
            {"kind": "objection", "seat": "a", "prefers": "x", "loses": 0.5, "below_no_deal": True},
            "a: objects: prefers x, loses 0.5, worse off than without a deal",
        ),
        ({"kind": "mediation", "seat": "m", "candidate": "x"}, "m: mediates: x"),
        ({"kind": "own", "what": [1, 2]}, ": own, what 1 | 2"),
        ({"n": 4}, ": n 4"),
    ],
)  # fmt: skip
def test_an_account_is_told_in_words(entry: dict[str, Any], text: str) -> None:
    assert told(**entry) == text


def answered(kind: str, payload: dict[str, Any], said: dict[str, Any]) -> str:
    talk = [
        event("offer", 1, 3, {"kind": kind, "payload": payload}, "cost"),
        event("response", 1, 3, said, "cost"),
    ]
    (line,) = exchanges(talk)
    assert (line.who, line.round) == ("cost", 3)
    return line.text


@pytest.mark.parametrize(
    ("kind", "payload", "said", "text"),
    [
        ("respond", {"offer": "x", "by": "janitor"}, {"accept": True, "counter": "x"},
         "accepts x of janitor"),
        ("respond", {"offer": "x", "against": "y"}, {"accept": False, "counter": ""},
         "declines x instead of y"),
        ("respond", {"offer": ""}, {"accept": False, "counter": "y"}, "offers y"),
        ("respond", {"offer": ""}, {"accept": False, "counter": ""}, "offers nothing"),
        ("pick", {"candidates": ["x", "y"]}, {"choice": "y"}, "picks y of 2"),
        ("pick", {}, {"choice": ""}, "picks nothing"),
        ("ballot", {}, {"scores": {"a": 3, "b": 9, "c": 0, "d": 9}},
         "scores b 9 · d 9 · a 3 · 1 more"),
        ("ballot", {}, {"scores": {}}, "states no scores"),
    ],
)  # fmt: skip
def test_a_question_and_its_answer_are_one_line(
    kind: str, payload: dict[str, Any], said: dict[str, Any], text: str
) -> None:
    assert answered(kind, payload, said) == text


def test_messages_and_questions_without_an_answer_are_told_too() -> None:
    talk = [
        event("message", 1, 1, {"text": "[red]TERMINATE[/red]"}, "cost"),
        event("offer", 1, 2, {"kind": "pick", "payload": {}}, "cost"),
    ]
    assert [line.text for line in exchanges(talk)] == [
        "“[red]TERMINATE[/red]”",
        "is asked to pick; no answer is recorded",
    ]


def test_names_from_outside_are_spelled_out() -> None:
    text = told(kind="offer", seat="cost", candidate="a%1B[2J", accepted=["x\x1b[31m"], declined=[])
    assert "\x1b" not in text


def test_the_story_tells_the_account_and_in_full_every_exchange(tmp_path: Any) -> None:
    from tests.support.rooms import room
    from tests.support.runs import play

    played = play(room(protocol="alternating_offers", steps=2, out=str(tmp_path)))
    path = next(tmp_path.glob("*/trace.jsonl"))
    short = [plain(line) for line in story(path)]
    full = [plain(line) for line in story(path, full=True)]
    offers = [line for line in short if " offers " in line and line.startswith("  round")]
    assert len(offers) == sum(event["data"]["rounds"] for event in played.of("decision"))
    assert not any("would offer" in line for line in short)
    assert any("would offer" in line for line in full)
