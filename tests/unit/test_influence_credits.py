"""Influence credits across an episode: what was paid stays paid, also after a resume."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.episode import run_episode
from orchestrator.resume import resume_episode
from orchestrator.session import StopFlag
from orchestrator.spec import EpisodeResult, EpisodeSpec
from policies.protocols.auction import VCG
from tests.support.rooms import room
from tests.support.runs import play

HORIZON = 30


class Poor(VCG):
    """VCG with so few credits that seats run out of them."""

    name = "poor_vcg"
    credits_per_step = 0.002


REFERENCE = "tests.unit.test_influence_credits:Poor"
SCENARIO = "cloudedge/hard"


class StopAfter:
    """Watches an episode and stops it after a step."""

    def __init__(self, step: int) -> None:
        self.step, self.stop = step, StopFlag()

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        del run, header

    def live(self, step: int, kind: str, data: Mapping[str, Any]) -> None:
        del step, kind, data

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        del record
        if step == self.step:
            self.stop.request()

    def ended(self, result: EpisodeResult) -> None:
        del result


def paid_in(events: list[dict[str, Any]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for event in events:
        if event["type"] == "decision":
            total.update(event["data"].get("payments", {}))
    return total


def test_payments_stand_in_the_trace_and_add_up_in_the_session() -> None:
    played = play(room(scenario=SCENARIO, protocol="vcg", seed=3))
    total = paid_in(played.events)
    assert total
    assert played.session.paid == pytest.approx(dict(total))
    assert played.session.table is not None
    last = played.of("decision")[-1]["data"].get("payments", {})
    assert dict(played.session.table.context.paid) == pytest.approx(
        {
            seat: total[seat] - last.get(seat, 0.0)
            for seat in total
            if total[seat] > last.get(seat, 0)
        }
    )


def test_no_seat_ever_pays_more_than_its_budget_and_running_out_is_said() -> None:
    played = play(room(scenario=SCENARIO, protocol=REFERENCE, seed=3))
    budget = Poor.credits_per_step * HORIZON
    total = paid_in(played.events)
    assert max(total.values()) <= budget + 1e-7
    assert any(paid > 0.9 * budget for paid in total.values())
    said = ["not truthful" in event["data"]["reason"] for event in played.of("decision")]
    assert any(said)
    assert not all(said)


def test_a_protocol_without_credits_records_no_payments() -> None:
    played = play(room(scenario=SCENARIO, seed=3, steps=3))
    assert all("payments" not in event["data"] for event in played.of("decision"))


def test_a_resumed_run_remembers_who_has_paid(tmp_path: Path) -> None:
    spec = EpisodeSpec(
        scenario=SCENARIO, protocol=REFERENCE, seed=3, store=":memory:", driver="loop"
    )
    whole = run_episode(spec.model_copy(update={"out": str(tmp_path / "whole")}))
    watcher = StopAfter(20)
    out = str(tmp_path / "halves")
    half = run_episode(spec.model_copy(update={"out": out}), watcher, watcher.stop)
    assert half.steps == 20
    first = [
        json.loads(line)
        for line in (Path(out) / half.run / "trace.jsonl").read_bytes().splitlines()
    ]
    assert paid_in(first)  # something is there to be forgotten
    rest = resume_episode("last", out)
    assert rest.trace_sha == whole.trace_sha
