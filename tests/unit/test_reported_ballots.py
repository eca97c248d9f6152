"""Ballots that seats state themselves: asked for once, put on the scale that counts, recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from agents.persona import apply_overrides, load_persona
from policies.records import Context, Reply, Request
from policies.reported import ballot_asks, blended, stated, with_reported
from policies.rules import SeatRules
from policies.table import Table
from policies.utility import UtilitySpec
from tests.support.rooms import room, with_personas
from tests.support.runs import Played, play
from tests.support.tables import context
from tests.support.voices import Voice
from world.errors import ConfigError

DRIVERS = pytest.mark.parametrize("driver", ["loop", "graph"])


def values(table: Context, scores: Mapping[str, int], share: float = 1.0) -> list[float]:
    return [float(value) for value in blended(table, 0, scores, share)]


def test_a_score_is_a_place_on_the_seats_own_range() -> None:
    table = context([[-4.0, -2.0, 0.0]])
    assert values(table, {"a": 10, "b": 0, "c": 5}) == [0.0, -4.0, -2.0]
    assert values(table, {"a": 10, "b": 0, "c": 5}, 0.5) == [-2.0, -3.0, -1.0]
    assert values(table, {"a": 10, "b": 0, "c": 5}, 0.0) == [-4.0, -2.0, 0.0]


def test_what_was_not_scored_takes_the_place_of_its_projected_rank() -> None:
    table = context([[-4.0, -3.9, 0.0]])
    assert values(table, {"c": 10}) == [-4.0, -2.0, 0.0]
    ties = context([[1.0, 1.0, 3.0]])
    assert values(ties, {"c": 0}) == [1.5, 1.5, 1.0]


def test_who_states_nothing_or_speaks_of_strangers_is_counted_as_projected() -> None:
    table = context([[-4.0, -2.0, 0.0]])
    for scores in ({}, {"zzz": 10}):
        assert stated(table, 0, scores).tolist() == [-4.0, -2.0, 0.0]


def test_what_is_vetoed_or_infeasible_moves_nothing() -> None:
    rows = [[-4.0, 9.0, 0.0, np.nan]]
    table = context(rows, vetoes={0: {"b": "no"}}, infeasible=["d"])
    counted = values(table, {"a": 10, "b": 0, "c": 0, "d": 10})
    assert counted[:3] == [0.0, 9.0, -4.0]
    assert np.isnan(counted[3])


def test_an_indifferent_seat_stays_indifferent_whatever_it_says() -> None:
    assert values(context([[2.0, 2.0]]), {"a": 10, "b": 0}) == [2.0, 2.0]


def seat(name: str, share: float) -> SeatRules:
    return SeatRules(name, name, UtilitySpec("log", 1.0, ()), reported=share)


def test_only_seats_whose_file_says_so_are_asked_each_in_an_order_of_its_own() -> None:
    table = context([[float(c) for c in range(12)]] * 3, abstaining=[2])
    seats = (seat("s0", 1.0), seat("s1", 0.5), seat("s2", 1.0))
    laid = Table(table, (), np.zeros((12, 0)))
    asks = ballot_asks(laid, seats)
    assert [(ask.seat, ask.kind, ask.round) for ask in asks] == [
        ("s0", "ballot", 0), ("s1", "ballot", 0),
    ]  # fmt: skip
    orders = [tuple(ask.payload["candidates"]) for ask in asks]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(c.id for c in table.candidates)
    assert ballot_asks(laid, seats) == asks
    assert ballot_asks(dataclasses.replace(laid, mandatory=True), seats) == ()
    assert ballot_asks(laid, (seat("s0", 0), seat("s1", 0), seat("s2", 0))) == ()


def test_the_table_carries_what_counts_and_what_was_said() -> None:
    table = context([[-4.0, 0.0], [-1.0, 0.0]])
    counted = with_reported(table, (seat("s0", 1.0), seat("s1", 0.0)), {"s0": {"a": 10, "b": 0}})
    assert counted.utilities.tolist() == [[0.0, -4.0], [-1.0, 0.0]]
    assert counted.ballots[0].utilities.tolist() == [0.0, -4.0]
    reported = counted.ballots[0].reported
    assert reported is not None
    assert reported.tolist() == [10.0, 0.0]
    assert counted.ballots[1].reported is None
    assert table.utilities.tolist() == [[-4.0, 0.0], [-1.0, 0.0]]


@pytest.mark.parametrize("source", ["blend(1.5)", "blend()", "blend(0.5) ", "guessed", "blend(-1)"])
def test_a_source_that_means_nothing_is_refused(source: str) -> None:
    with pytest.raises(ConfigError, match="blend"):
        apply_overrides(load_persona("cost"), [f'ballot.source="{source}"'])


def reporting(source: str, protocol: str = "weighted_score", **spec: Any) -> Played:
    roles = ("resource", "cost", "sustainability", "janitor")
    overrides = tuple(f'{role}.ballot.source="{source}"' for role in roles)
    return play(room(protocol=protocol, steps=4, overrides=overrides, **spec))


def test_rule_seats_report_what_is_projected_and_both_drivers_write_the_same() -> None:
    runs = [reporting("blend(0.5)", driver=driver) for driver in ("loop", "graph")]
    assert runs[0].result.trace_sha == runs[1].result.trace_sha
    for event in runs[0].of("ballot"):
        data = event["data"]
        projected, counted = data["projected"], data["utilities"]
        low, high = min(projected.values()), max(projected.values())
        for name, score in data["reported"].items():
            place = (projected[name] - low) / (high - low)
            assert abs(score / 10 - place) <= 0.05 + 1e-9
            worth = 0.5 * projected[name] + 0.5 * (low + score / 10 * (high - low))
            assert counted[name] == pytest.approx(worth, rel=1e-6)


@DRIVERS
def test_what_a_seat_reports_decides_and_it_is_asked_once_a_step(driver: str) -> None:
    """A seat with all the weight that wants the smallest id, whatever is projected."""

    def answer(request: Request) -> Reply:
        if request.ask.kind != "ballot":
            return Reply()
        names = request.ask.payload["candidates"]
        return Reply(scores={name: 10 if name == min(names) else 0 for name in names})

    overrides = ('cost.ballot.source="reported"', "cost.powers.weight=1000")
    base = room(steps=3, driver=driver, overrides=overrides)
    voice = Voice("cost", answer)
    played = play(with_personas(base, {"cost": voice}))
    for candidates, decision in zip(played.of("candidates"), played.of("decision"), strict=True):
        fine = [item["id"] for item in candidates["data"]["items"] if item["feasible"]]
        assert decision["data"]["chosen"] == min(fine)
    assert [entry[1:] for entry in voice.asked] == [("propose", 0), ("ballot", 0)] * 3


@DRIVERS
def test_a_seat_that_fails_to_report_is_counted_as_projected_and_it_is_recorded(
    driver: str,
) -> None:
    def answer(request: Request) -> Reply:
        if request.ask.kind == "ballot":
            raise RuntimeError("no idea")
        return Reply()

    base = room(steps=2, driver=driver, overrides=('cost.ballot.source="reported"',))
    played = play(with_personas(base, {"cost": Voice("cost", answer)}))
    faults = [event["data"] for event in played.of("fallback")]
    assert faults == [{"kind": "ballot", "what": "RuntimeError: no idea"}] * 2
    for event in played.of("ballot"):
        if event["agent"] == "cost":
            assert event["data"]["reported"] == {}
            assert event["data"]["projected"] == event["data"]["utilities"]


@pytest.mark.parametrize("protocol", ["alternating_offers", "debate", "nash"])
def test_reported_ballots_go_with_every_protocol(protocol: str) -> None:
    loop, graph = (reporting("reported", protocol, driver=d) for d in ("loop", "graph"))
    assert loop.result.trace_sha == graph.result.trace_sha
    assert len(loop.of("decision")) == 4
