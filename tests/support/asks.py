"""Requests as the engine would build them, from an observation and a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policies.records import Ask, AskKind, Request
from tests.support.stub_world import StubWorld, stub_scenario
from world.model import History, Joint, Observation, Scenario, World


def request_of(
    world: World[Any],
    scenario: Scenario,
    observations: Sequence[Observation],
    decisions: Sequence[Joint] = (),
    seat: str = "cost",
    kind: AskKind = "propose",
    payload: Mapping[str, Any] | None = None,
) -> Request:
    """What a seat is asked after `observations`, the last of which is now."""
    history = History(scenario)
    history.observations.extend(observations)
    history.decisions.extend(decisions)
    now = observations[-1]
    return Request(Ask(seat, kind, payload or {}), now.step, now, history, world)


def stub_request(
    step: int = 0, kind: AskKind = "propose", payload: Mapping[str, Any] | None = None
) -> Request:
    """A request in the stub world at one step."""
    world, scenario = StubWorld(), stub_scenario()
    seen = world.observe(world.reset(scenario, [1]))
    now = Observation(step, seen.horizon, seen.metrics, seen.targets)
    return request_of(world, scenario, [now], kind=kind, payload=payload)
