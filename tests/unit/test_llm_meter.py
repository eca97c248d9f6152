"""What models cost is counted per call and seat, and held to a budget before each call."""

import pytest

from agents.backends.llm.faults import ModelFault
from agents.backends.llm.meter import Meter, Price, added
from orchestrator.room import build_room
from policies.records import Usage
from tests.support.llm_rooms import SEATS, llm_room, llm_spec, outcomes, with_every
from tests.support.llm_stub import LLMStub, StubCall
from tests.support.runs import play
from world.errors import ConfigError


def test_four_seats_that_share_a_client_sum_to_the_calls_that_were_made() -> None:
    with LLMStub(tokens=(120, 30)) as stub:
        played = play(llm_room(stub, steps=3, usd_per_mtok="1.5/6"))
        calls = len(stub.calls)
    usage = played.result.usage
    assert usage.calls == calls == 12
    assert usage.tokens_in == 12 * 120
    assert usage.tokens_out == 12 * 30
    assert usage.usd == pytest.approx(12 * (120 * 1.5 + 30 * 6) / 1e6)
    seats = played.session.usage
    assert {seat: used.calls for seat, used in seats.items()} == dict.fromkeys(SEATS, 3)
    assert all(used.latency_ms > 0 for used in seats.values())
    desk = played.session.room.desk
    assert desk is not None
    assert {seat: used.calls for seat, used in desk.meter.seats.items()} == dict.fromkeys(SEATS, 3)


def test_an_unknown_price_is_not_zero() -> None:
    with LLMStub() as stub:
        assert play(llm_room(stub, steps=1)).result.usage.usd is None


def test_usage_that_an_endpoint_does_not_tell_makes_the_dollars_unknown() -> None:
    with LLMStub(lambda call: "missing_usage" if call.seat == "cost" else "ok") as stub:
        result = play(llm_room(stub, steps=1, usd_per_mtok="1/1")).result
    assert result.usage.usd is None
    assert result.usage.tokens_in == 300


def test_a_budget_is_checked_before_each_call_and_rules_finish_the_episode() -> None:
    with LLMStub(tokens=(1000, 100)) as stub:
        # 0.002 dollars a call, and at most about 0.006 before its length is known.
        played = play(llm_room(stub, steps=6, usd_per_mtok="1/10", budget_usd=0.05))
        calls = len(stub.calls)
    assert 0 < calls < 24
    assert played.result.stop_reason == "horizon"
    assert played.result.usage.calls == calls
    assert played.result.usage.usd is not None
    assert played.result.usage.usd <= 0.05
    budget = played.of("budget")
    assert len(budget) == 24 - calls
    told = [event["data"]["what"] for event in played.of("fallback")]
    assert set(told) == {"budget: the model budget is used up; its rule spoke"}
    assert len(told) == len(budget)
    spoken = [event for event in played.of("ballot") if event["data"].get("fallback")]
    assert all(event["data"]["proposals"] for event in spoken if event["agent"] != "janitor")


def test_no_budget_at_all_means_no_call_at_all() -> None:
    with LLMStub() as stub:
        played = play(llm_room(stub, steps=2, usd_per_mtok="1/1", budget_usd=0.0))
        assert stub.calls == []
    assert len(played.of("budget")) == 8
    assert played.result.usage.calls == 0
    assert outcomes(played.events) == {}


def test_a_free_model_of_ones_own_runs_on_any_budget() -> None:
    with LLMStub() as stub:
        play(llm_room(stub, steps=1, usd_per_mtok="0/0", budget_usd=0.01))
        assert len(stub.calls) == 4


def test_a_budget_without_a_price_is_refused_before_the_run() -> None:
    with LLMStub() as stub, pytest.raises(ConfigError, match="price of 'stub' is not known"):
        build_room(llm_spec(stub, budget_usd=1.0))


def test_calls_that_may_have_been_charged_count_against_the_budget_in_full() -> None:
    def plan(call: StubCall) -> str:
        return "hang"

    changes = with_every("backend.timeout_s=0.4")
    with LLMStub(plan) as stub:
        room = llm_room(stub, steps=4, usd_per_mtok="0/100", budget_usd=0.45, overrides=changes)
        played = play(room)
        calls = len(stub.calls)
    # Each time-out keeps its reservation of 1024 tokens at 100 dollars a million: 0.1 dollars.
    assert calls == 4
    assert len(played.of("budget")) == 12
    assert played.result.usage.usd is None


def test_a_refused_reservation_takes_nothing() -> None:
    meter = Meter(1.0)
    price = Price(0.0, 1.0)
    reserved = meter.reserve(price, 0, 900_000)
    with pytest.raises(ModelFault):
        meter.reserve(price, 0, 200_000)
    meter.settle("cost", reserved, Usage(1, 0, 100_000, 0.1), certain=True)
    assert meter.committed_usd == pytest.approx(0.1)
    assert meter.reserve(price, 0, 900_000) == pytest.approx(0.9)


def test_what_was_spent_before_a_resume_still_counts() -> None:
    meter = Meter(1.0)
    meter.restore({"cost": Usage(9, 0, 0, 0.95)})
    with pytest.raises(ModelFault):
        meter.reserve(Price(0.0, 1.0), 0, 100_000)


def test_unknown_dollars_stay_unknown_in_a_sum() -> None:
    assert added(Usage(1, 2, 3, None), Usage(1, 1, 1, 0.5)) == Usage(2, 3, 4, None)
    assert added(Usage(), Usage(1, 1, 1, 0.5)).usd == 0.5
