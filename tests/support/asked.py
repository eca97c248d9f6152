"""Requests as a seat gets them, from a real world at its first step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.room import Room
from policies.records import Ask, AskKind, Request
from tests.support.rooms import room
from world.model import History


def request(
    kind: AskKind = "propose",
    scenario: str = "cloudedge/hard",
    seat: str = "cost",
    payload: Mapping[str, Any] | None = None,
    round_: int = 0,
    seed: int = 1,
    base: Room | None = None,
) -> Request:
    """A question to one seat before the first decision."""
    base = base or room(scenario=scenario)
    seen = base.world.observe(base.world.reset(base.scenario, [seed]))
    history = History(base.scenario)
    history.observations.append(seen)
    return Request(Ask(seat, kind, payload or {}, round_), 0, seen, history, base.world)
