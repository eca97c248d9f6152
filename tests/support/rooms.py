"""Rooms for tests: any world, any personas, without files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from agents.persona import load_persona, seat_rules
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, make_persona
from orchestrator.room import Room, build_room
from orchestrator.spec import EpisodeSpec
from policies.protocols import protocol as find_protocol
from policies.records import NegotiationProtocol
from policies.table import RoomRules
from tests.support.stub_world import StubWorld, stub_scenario
from world.model import Scenario, World


def stub_room(
    specs: Mapping[str, PersonaSpec] | None = None,
    protocol: str | NegotiationProtocol = "weighted_score",
    horizon: int = 6,
    scenario: Scenario | None = None,
    world: World[Any] | None = None,
    **spec: Any,
) -> Room:
    """A room on the stub world (or another), four silent seats unless others are given."""
    fields: dict[str, Any] = {"store": "inprocess", "driver": "loop", "out": "", **spec}
    seated = specs or {
        seat: load_persona("silent") for seat in ("resource", "cost", "sustainability", "janitor")
    }
    chosen = find_protocol(protocol) if isinstance(protocol, str) else protocol
    personas: dict[str, Persona] = {
        seat: make_persona(persona, seat) for seat, persona in seated.items()
    }
    return Room(
        spec=EpisodeSpec(**fields),
        scenario=scenario or stub_scenario(horizon),
        world=world or StubWorld(),
        specs=dict(seated),
        personas=personas,
        seats=tuple(seat_rules(persona, seat) for seat, persona in seated.items()),
        protocol=chosen,
        rules=RoomRules(),
    )


def room(**spec: Any) -> Room:
    """A real room, in process and without files unless told."""
    fields = {"scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": ""}
    return build_room(EpisodeSpec(**{**fields, **spec}))


def with_personas(base: Room, personas: Mapping[str, Persona]) -> Room:
    """The same room with some seats voiced by other objects."""
    return dataclasses.replace(base, personas={**base.personas, **personas})
