"""Pivotal seats, found by asking a protocol again over a recorded table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.report.gather import gather
from orchestrator.report.influence import favourites, influence_shares, pivotality
from orchestrator.trace.events import Event, event
from tests.support.rooms import room
from tests.support.runs import play
from tests.support.traces import commits, run_started, write_trace

pytestmark = pytest.mark.unit

VALUES = {
    "resource": {"scale_up": 1.0, "scale_down": 0.0},
    "cost": {"scale_up": 0.0, "scale_down": 0.9},
    "sustainability": {"scale_up": 0.4, "scale_down": 0.4},
    "janitor": {"scale_up": 0.0, "scale_down": 0.0},
}
"""Sums: scale_up 1.4, scale_down 1.3: without resource the other wins, without anybody else not."""


def told(values: Mapping[str, Mapping[str, float]], chosen: str, **decision: Any) -> list[Event]:
    """The events of one step that a protocol of sums decided."""
    names = sorted(next(iter(values.values())))
    items = [{"id": name, "origin": ["catalogue"], "feasible": True} for name in names]
    made = [event("candidates", 1, 0, {"items": items})]
    for seat, utilities in values.items():
        top = max(utilities, key=lambda name: (utilities[name], name))
        made.append(
            event(
                "ballot",
                1,
                0,
                {
                    "proposals": [{"id": top, "rationale": ""}],
                    "utilities": dict(utilities),
                    "ranking": sorted(utilities, key=lambda n: (-utilities[n], n)),
                    "weight": 1.0,
                    "disagreement": 0.0,
                    "abstains": False,
                },
                seat,
            )
        )
    data = {"chosen": chosen, "action": chosen, "protocol": "weighted_score", "agreement": True}
    made.append(event("decision", 1, 0, {**data, **decision}))
    made.append(event("grade", 1, 0, {"reward": 1.0, "success": True}))
    return made


def one_step(path: Path, chosen: str = "scale_up", **header: Any) -> Path:
    def batches() -> Iterator[list[Event]]:
        yield [run_started(1, **header)]
        yield told(VALUES, chosen)

    return write_trace(path, batches())


def test_the_seat_without_whom_the_sum_tips_is_pivotal_and_no_other(tmp_path: Path) -> None:
    account = gather(one_step(tmp_path / "t.jsonl"))
    found = pivotality(account)
    assert found.decisions == 1
    assert dict(found.changed) == {"resource": 1, "cost": 0, "sustainability": 0, "janitor": 0}
    assert found.why_not == ""


def test_a_decision_that_asking_again_does_not_reproduce_is_not_counted(tmp_path: Path) -> None:
    found = pivotality(gather(one_step(tmp_path / "t.jsonl", chosen="scale_down")))
    assert found.decisions == 0
    assert "could be taken again" in found.why_not


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("alternating_offers", "round by round"),
        ("cloudedge_boardroom", "more than the ballots"),
        ("vcg", "more than the ballots"),
        ("my.package:Rule", "more than the ballots"),
        ("of_another_version", "has no protocol"),
    ],
)
def test_a_protocol_that_a_trace_cannot_answer_is_said_to_be_one(
    tmp_path: Path, name: str, word: str
) -> None:
    protocol = {"name": name, "digest": "b" * 64}
    account = gather(one_step(tmp_path / "t.jsonl", protocol=protocol))
    found = pivotality(account)
    assert (found.decisions, dict(found.changed)) == (0, {})
    assert word in found.why_not
    shares = dict(influence_shares(account, favourites(account), found))
    assert shares["pivotal: without it, another choice"] == [None] * 4


def test_favourites_and_proposals_that_were_chosen_are_counted(tmp_path: Path) -> None:
    account = gather(one_step(tmp_path / "t.jsonl"))
    assert favourites(account) == {
        "resource": (1, 1, 1),
        "cost": (0, 0, 1),
        "sustainability": (0, 1, 1),
        "janitor": (0, 1, 1),
    }


def test_abstaining_seats_are_not_asked_what_they_liked(tmp_path: Path) -> None:
    account = gather(write_trace(tmp_path / "t.jsonl", commits(2)))
    counts = favourites(account)
    assert all(of == 2 for _, _, of in counts.values())


@pytest.mark.parametrize("name", ["weighted_score", "borda", "nash", "leximin", "schulze"])
def test_real_decisions_of_one_round_are_all_reproduced_from_their_ballots(
    tmp_path: Path, name: str
) -> None:
    made = room(protocol=name, steps=4, samples=2, lookahead_steps=2, out=str(tmp_path))
    play(made)
    found = pivotality(gather(next(tmp_path.glob("*/trace.jsonl"))))
    assert found.decisions == 4, found.why_not
