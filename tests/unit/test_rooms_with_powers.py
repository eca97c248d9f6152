"""Rooms with a commander or a mediator, as the command line builds them."""

from __future__ import annotations

import pytest

from policies.records import Reply, Request
from tests.support.rooms import room, with_personas
from tests.support.runs import play
from tests.support.voices import Voice
from world.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize("power", ["commander", "mediator"])
def test_a_protocol_without_the_seat_that_it_needs_is_refused_with_what_to_type(
    power: str,
) -> None:
    with pytest.raises(ConfigError) as refused:
        room(protocol=power)
    assert f"--persona {power}={power}" in refused.value.fix
    assert refused.value.exit_code == 2


def test_the_no_deal_rule_commander_needs_a_commander() -> None:
    with pytest.raises(ConfigError, match="--no-deal commander needs a commander's seat"):
        room(protocol="nash", no_deal="commander")
    with pytest.raises(ConfigError, match="--no-deal mediator needs a mediator's seat"):
        room(protocol="nash", no_deal="mediator")
    with pytest.raises(UnknownNameError):
        room(protocol="nash", no_deal="shrug")


def test_two_commanders_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"cost and commander both have powers\.commander"):
        room(personas={"commander": "commander"}, overrides=("cost.powers.commander=true",))


def test_a_seat_of_the_room_may_be_its_commander() -> None:
    overrides = ("cost.powers.commander=true",)
    played = play(room(protocol="nash", no_deal="commander", steps=8, overrides=overrides))
    commanded = [e["data"] for e in played.of("decision") if e["data"]["no_deal"] == "commander"]
    assert commanded
    for data in commanded:
        assert data["protocol"] == "commander"
        kinds = {entry["kind"] for entry in data["account"]}
        assert {"command", "without_commander"} <= kinds
    assert {event["agent"] for event in played.of("offer")} == {"cost"}


@pytest.mark.parametrize("power", ["commander", "mediator"])
@pytest.mark.parametrize(
    "scenario",
    ["cloudedge/hard", "aiops/anomaly_detection_monitoring", "finops/production_stability"],
)
def test_the_shipped_seat_decides_in_every_world(power: str, scenario: str) -> None:
    played = play(room(scenario=scenario, steps=5, protocol=power, personas={power: power}))
    assert not played.of("fallback")
    weights = {e["agent"]: e["data"]["weight"] for e in played.of("ballot")}
    assert weights.get(power, 0.0) == 0.0  # it decides, it does not vote
    if power == "mediator":
        assert all(event["data"]["agreement"] for event in played.of("decision"))
        assert len(played.of("response")) == len(played.of("decision"))


@pytest.mark.parametrize("driver", ["loop", "graph"])
@pytest.mark.parametrize("choice", ["no such candidate", "", 7, "terminate:*"])
def test_a_mediator_that_invents_a_candidate_is_recorded_and_replaced(
    driver: str, choice: object
) -> None:
    def answer(request: Request) -> Reply:
        return Reply(choice=choice) if request.ask.kind == "pick" else Reply()  # type: ignore[arg-type]

    base = room(steps=2, driver=driver, protocol="mediator", personas={"mediator": "mediator"})
    played = play(with_personas(base, {"mediator": Voice("mediator", answer)}))
    kinds = [(e.get("agent", ""), e["data"]["kind"]) for e in played.of("fallback")]
    assert kinds == [("mediator", "pick"), ("", "protocol")] * 2
    for event in played.of("decision"):
        assert event["data"]["no_deal"] == "weighted_score"
        assert not event["data"]["agreement"]
