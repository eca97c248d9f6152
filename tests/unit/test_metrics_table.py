"""From a recorded step to a row, from rows to a summary."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.episode import run_episode
from orchestrator.study.metrics.concession import Bid, Fit
from orchestrator.study.metrics.forms import (
    columns,
    measure_table,
    row_document,
    seat_table,
    write_csv,
)
from orchestrator.study.metrics.spending import spending
from orchestrator.study.metrics.summary import Summary
from orchestrator.study.metrics.table import MEASURES, Concessions, laid_of, row_of, rows
from orchestrator.study.recorded import recorded
from orchestrator.trace.events import Event
from orchestrator.trace.steps import StepRecord, episode
from policies.records import Usage
from tests.support.llm_rooms import llm_spec
from tests.support.llm_stub import LLMStub
from tests.support.traces import SEATS, commits


def ballot(utilities: dict[str, float], **more: Any) -> dict[str, Any]:
    return {"utilities": utilities, "weight": 1.0, "abstains": False, **more}


def record(chosen: str = "d", **more: Any) -> StepRecord:
    """Two seats, four candidates: a, b and c are efficient, d is dominated by b."""
    names = dict.fromkeys("abcd")
    fields: dict[str, Any] = {
        "candidates": {"items": [{"id": name, "feasible": True} for name in names]},
        "ballots": {
            "one": ballot({"a": 10.0, "b": 6.0, "c": 1.0, "d": 5.0}, disagreement=0.0),
            "two": ballot({"a": 1.0, "b": 3.0, "c": 4.0, "d": 2.0}, disagreement=0.0),
        },
        "decision": {"chosen": chosen, "agreement": True, "no_deal": "", "rounds": 0},
    }
    return StepRecord(1, **{**fields, **more})


def test_a_row_holds_what_can_be_worked_out_by_hand() -> None:
    row = row_of(record("d"))
    assert row.values == pytest.approx({"one": 4 / 9, "two": 1 / 3}, abs=1e-8)
    assert (row.candidates, row.admissible, row.chosen_vetoed) == (4, 4, False)
    found = row.measures
    apart = (((1 / 9) ** 2 + (1 / 3) ** 2) / 2) ** 0.5  # d to b, which is all three points
    assert found["pareto_efficient"] == 0.0
    assert found["pareto_graded"] == pytest.approx(1 - apart, abs=1e-8)
    for point in ("nash", "kalai_smorodinsky", "welfare"):
        assert found[f"{point}_distance"] == pytest.approx(apart, abs=1e-8)
    assert found["welfare_ratio"] == pytest.approx((7 / 9) / (11 / 9), abs=1e-8)
    assert found["utility_gap"] == pytest.approx(11.0 - 7.0)  # a is worth 11 in raw utilities
    assert found["jain"] == pytest.approx((7 / 9) ** 2 / (2 * ((4 / 9) ** 2 + (1 / 3) ** 2)))
    assert found["gini"] == pytest.approx((1 / 9) / (2 * (7 / 9)), abs=1e-8)
    assert found["max_individual_shortfall"] == pytest.approx(2 / 3, abs=1e-8)
    assert found["individually_rational_fraction"] == 1.0
    assert found["seats_below_no_deal"] == 0.0
    assert set(found) == set(MEASURES)


def test_vetoed_and_infeasible_candidates_could_not_have_been_chosen() -> None:
    items = [{"id": name, "feasible": name != "a"} for name in "abcd"]
    vetoes = [{"seat": "one", "candidate": "b", "rule": "r", "reason": ""}]
    row = row_of(record("d", candidates={"items": items}, vetoes=vetoes))
    assert (row.candidates, row.admissible) == (4, 2)
    assert row.values == {"one": 1.0, "two": 0.0}  # only c and d are left
    assert row.measures["pareto_efficient"] == 1.0
    chosen = row_of(record("b", candidates={"items": items}, vetoes=vetoes))
    assert chosen.chosen_vetoed is True
    assert chosen.values == {"one": 1.25, "two": 0.5}


def test_where_all_is_vetoed_everything_that_was_weighed_counts() -> None:
    vetoes = [{"seat": "one", "candidate": name} for name in "abcd"]
    row = row_of(record("b", vetoes=vetoes))
    assert (row.admissible, row.chosen_vetoed) == (4, False)


def test_seats_without_a_say_are_no_parties() -> None:
    ballots = {
        **record().ballots,
        "silent": {"abstains": True, "weight": 1.0},
        "mute": ballot({"a": 0.0, "b": 0.0, "c": 0.0, "d": 9.0}, weight=0.0),
    }
    laid = laid_of(record(ballots=ballots))
    assert laid is not None
    assert laid.seats == ("one", "two")


def test_a_choice_that_nobody_weighed_has_no_measures_and_is_counted() -> None:
    row = row_of(record("nop"))
    assert (row.measures, row.values, row.chosen_vetoed) == ({}, {}, None)
    summary = Summary(("one", "two"))
    summary.add(row)
    summary.add(row_of(record("b")))
    found = summary.document()
    assert (found["decisions"], found["not_on_the_table"]) == (2, 1)
    assert found["measures"]["jain"]["n"] == 1


def test_without_a_disagreement_in_the_trace_the_bargaining_points_are_left_open() -> None:
    ballots = {seat: {**part} for seat, part in record().ballots.items()}
    del ballots["two"]["disagreement"]
    found = row_of(record(ballots=ballots)).measures
    assert found["nash_distance"] is None
    assert found["kalai_smorodinsky_distance"] is None
    assert found["seats_below_no_deal"] is None
    assert found["welfare_distance"] is not None


def test_a_stated_ballot_is_held_against_the_projection_and_measured_by_it() -> None:
    ballots = {**record().ballots}
    truth = dict(ballots["one"]["utilities"])
    ballots["one"] = ballot(
        {"a": 1.0, "b": 1.0, "c": 10.0, "d": 1.0},
        disagreement=0.0,
        projected=truth,
        reported={"a": 0, "b": 0, "c": 10, "d": 0},
    )
    row = row_of(record("a", ballots=ballots))
    assert row.values["one"] == 1.0
    assert row.honesty["one"].gap == pytest.approx((1 + 5 / 9 + 1 + 4 / 9) / 4, abs=1e-8)
    # c lies lowest and is scored highest; the other three tie at 0: −3/√(3·6).
    assert row.honesty["one"].kendall_tau == pytest.approx(-3 / (3 * 6) ** 0.5)
    assert "two" not in row.honesty


def talked() -> StepRecord:
    """Three rounds of offers: what is said in an answer counts for the round after."""

    def asked(seat: str, round_: int, number: int) -> Event:
        payload = {"offer": "a", "round": number, "deadline": 4}
        return Event("offer", 1, round_, {"kind": "respond", "payload": payload}, seat)

    def said(seat: str, round_: int, counter: str) -> Event:
        return Event("response", 1, round_, {"accept": False, "counter": counter}, seat)

    answers = (("one", 1, "a"), ("two", 2, "c"), ("one", 3, "b"), ("two", 4, "b"))
    talk = [
        event
        for seat, at, counter in answers
        for event in (asked(seat, at, at - 1), said(seat, at, counter))
    ]
    account = [
        {"round": 1, "kind": "offer", "seat": "one", "candidate": "a"},
        {"round": 2, "kind": "offer", "seat": "two", "candidate": "c"},
        {"round": 3, "kind": "offer", "seat": "one", "candidate": "b"},
    ]
    decision = {"chosen": "b", "agreement": True, "rounds": 3, "account": account}
    return record("b", talk=talk, decision=decision)


def test_offers_and_answers_become_one_curve_a_seat() -> None:
    row = row_of(talked())
    one, two = row.concessions["one"], row.concessions["two"]
    assert [(bid.round, name) for bid, name in zip(one.bids, one.names, strict=True)] == [
        (1, "a"),
        (3, "b"),
    ]
    assert [(bid.round, name) for bid, name in zip(two.bids, two.names, strict=True)] == [
        (2, "c"),
        (4, "b"),
    ]
    curve = row.document()["concessions"]["one"]["bids"]
    assert [entry["concession"] for entry in curve] == [0.0, 0.444444444]
    assert one.fit is not None
    assert two.fit is None  # one bid before the deadline


def test_the_summary_counts_moves_rounds_agreements_and_no_deals() -> None:
    summary = Summary(("one", "two"))
    summary.add(row_of(talked()))
    decided = {"chosen": "b", "agreement": False, "no_deal": "weighted_score", "rounds": 1}
    summary.add(row_of(record("b", decision=decided)))
    found = summary.document()
    assert (found["agreement_rate"], found["no_deal_share"]) == (0.5, 0.5)
    assert found["no_deal_rules"] == {"weighted_score": 1}
    assert found["rounds"] == {"mean": 2.0, "min": 1.0, "max": 3.0, "n": 2}
    assert found["seats"]["one"]["moves"] == {"concession": 1}
    assert found["seats"]["one"]["concession"]["mean"] == pytest.approx(4 / 9, abs=1e-8)


def test_exponents_are_averaged_as_ratios() -> None:
    summary = Summary(("one",))
    for beta in (0.5, 2.0):
        curve = Concessions(("a",), (Bid(1, 1.0, 0.0),), Fit(beta, 0.0, 2))
        summary.add(replace(row_of(record("b")), concessions={"one": curve}))
    assert summary.document()["seats"]["one"]["beta"] == {"geometric_mean": 1.0, "n": 2}


@pytest.mark.parametrize(
    "part",
    [
        {"decision": {"chosen": "b", "rounds": "many", "account": [{"kind": "offer"}, 3]}},
        {"ballots": {"one": {"utilities": "none", "weight": "heavy"}}},
        {"ballots": {}},
        {"candidates": {"items": [{}, 7, {"id": None}]}},
        {"talk": [Event("response", 1, 1, {"counter": "a"}, "one")]},
    ],
)
def test_a_trace_that_lacks_parts_still_has_rows(part: dict[str, Any]) -> None:
    assert json.dumps(row_of(record("b", **part)).document(), allow_nan=False)


def test_one_row_a_step_and_a_table_that_spreadsheets_can_be_trusted_with() -> None:
    events = [event for batch in commits(3, chosen="scale_up") for event in batch]
    steps = [part for part in episode(events) if isinstance(part, StepRecord)]
    out = io.StringIO()
    count = write_csv(rows(steps), out, SEATS, {}, with_regret=False)
    table = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert count == len(table) == 3
    assert list(table[0]) == columns(SEATS, with_regret=False)
    assert [row["step"] for row in table] == ["1", "2", "3"]
    hostile = row_of(record("=HYPERLINK(1)"))
    out = io.StringIO()
    write_csv([hostile], out, ("one",), {}, with_regret=True)
    assert "'=HYPERLINK" in out.getvalue()


def test_tables_for_people_leave_out_what_nobody_has() -> None:
    summary = Summary(("one", "two"))
    summary.add(row_of(record("b")))
    assert [row[0] for row in measure_table(summary)] == ["measure", *MEASURES]
    assert next(iter(seat_table(summary))) == ("seat", "V of choice")


def timings(path: Path, *entries: dict[str, Any], torn: str = "") -> Path:
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    path.write_text(text + torn, encoding="utf-8")
    return path


def used(calls: int, usd: float | None, **more: float) -> dict[str, Any]:
    return {"calls": calls, "tokens_in": 100 * calls, "tokens_out": 10 * calls, "usd": usd,
            "latency_ms": 5.0 * calls, **more}  # fmt: skip


def test_running_totals_become_the_cost_of_each_step(tmp_path: Path) -> None:
    path = timings(
        tmp_path / "timings.jsonl",
        {"step": 1, "ms": {"observe": 1.5}, "usage": {"cost": used(1, 0.25)}},
        {"step": 2, "ms": {"observe": 1.0}, "usage": {"cost": used(1, 0.25)}},
        {"step": 3, "ms": {}, "usage": {"cost": used(4, 1.0), "janitor": used(2, None)}},
        torn='{"step": 4, "us',
    )
    first, second, third = spending(path)
    assert first.seats == {"cost": Usage(1, 100, 10, 0.25, 5.0)}
    assert first.phases_ms == {"observe": 1.5}
    assert second.seats == {}
    assert third.seats["cost"] == Usage(3, 300, 30, 0.75, 15.0)
    assert third.seats["janitor"].usd is None


def test_a_step_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    path = timings(
        tmp_path / "timings.jsonl",
        {"step": 1, "ms": {}, "usage": {"cost": used(1, 0.1)}},
        {"step": 1, "ms": {}, "usage": {"cost": used(2, 0.2)}},
        {"step": 2, "ms": {}, "usage": {"cost": used(3, 0.3)}},
    )
    costs = list(spending(path))
    assert [cost.step for cost in costs] == [1, 2]
    assert [cost.seats["cost"].calls for cost in costs] == [2, 1]
    assert list(spending(tmp_path / "none.jsonl")) == []


def test_the_summary_adds_up_what_seats_spent(tmp_path: Path) -> None:
    path = timings(
        tmp_path / "timings.jsonl",
        {"step": 1, "ms": {}, "usage": {"one": used(1, 0.25), "stranger": used(9, 9.0)}},
        {"step": 2, "ms": {}, "usage": {"one": used(5, 0.75), "stranger": used(9, 9.0)}},
    )
    summary = Summary(("one", "two"))
    summary.add(row_of(record("b")))
    summary.add(row_of(record("b")))
    summary.spend(spending(path))
    found = summary.document(score=0.55)
    spent = found["seats"]["one"]["spending"]
    assert (spent["calls"], spent["tokens_in"], spent["usd"]) == (5, 500, 0.75)
    assert spent["per_decision"]["latency_ms"] == 12.5
    assert "spending" not in found["seats"]["two"]
    assert found["score_per_1000_tokens"] == 1.0


def test_what_models_were_paid_is_told_per_seat_and_decision(tmp_path: Path) -> None:
    with LLMStub() as stub:
        spec = llm_spec(stub, out=str(tmp_path), usd_per_mtok="1/2")
        run = recorded(run_episode(spec).run, tmp_path)
    costs = {cost.step: cost for cost in spending(run.path.with_name("timings.jsonl"))}
    assert list(costs) == [1, 2, 3]
    summary = Summary(run.seats)
    for row in rows(run.stream()):
        summary.add(row)
        # One call a seat and decision, 100 tokens in at $1 and 20 out at $2 per million.
        for used in row_document(row, costs)["spending"].values():
            assert (used["calls"], used["tokens_in"], used["tokens_out"]) == (1, 100, 20)
            assert used["usd"] == pytest.approx(0.00014)
            assert used["latency_ms"] > 0
    summary.spend(costs.values())
    assert summary.tokens == len(stub.calls) * 120 == 12 * 120
    total = sum(part.cost.usd or 0.0 for part in summary.seats.values())
    assert total == pytest.approx(12 * 0.00014)
