"""Build a room from a spec: the world, who sits in it, and the rules they agreed to.

Everything that can be wrong with a spec is found here, before a run id is claimed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.persona import apply_overrides, load_persona, overrides_by_seat, seat_rules
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, is_asynchronous, is_journalled, make_persona
from orchestrator.spec import ROLES, EpisodeSpec
from orchestrator.trace.events import SCHEMA
from policies.protocols import protocol as find_protocol
from policies.records import NegotiationProtocol
from policies.table import RoomRules, SeatRules
from world.errors import ConfigError
from world.model import Scenario, World
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world


@dataclass(frozen=True)
class Room:
    """A room that is ready to run.

    Attributes:
        spec: What was asked for.
        scenario: The scenario, with its horizon already replaced where ``--steps`` said so.
        world: The world that plays it.
        specs: Seat → resolved persona file, in room order.
        personas: Seat → the persona that sits there.
        seats: The rules of each seat, in room order.
        protocol: How proposals become a decision.
        rules: Rules of the room.
    """

    spec: EpisodeSpec
    scenario: Scenario
    world: World[Any]
    specs: Mapping[str, PersonaSpec]
    personas: Mapping[str, Persona]
    seats: tuple[SeatRules, ...]
    protocol: NegotiationProtocol
    rules: RoomRules

    @cached_property
    def journalled(self) -> bool:
        """Whether the replies of a seat are kept in the store's journal."""
        return any(is_journalled(persona) for persona in self.personas.values())

    @cached_property
    def asynchronous(self) -> bool:
        """Whether a seat must be awaited, so that the driver needs an event loop."""
        return any(is_asynchronous(persona) for persona in self.personas.values())

    @property
    def config_digest(self) -> str:
        """Eight hex digits of scenario, personas, protocol and rules: part of a run id."""
        header = self.header()
        content = [header["scenario"], header["seats"], header["protocol"], header["room"]]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def header(self) -> dict[str, Any]:
        """The data of the run_started event: all that may change an outcome, nothing else."""
        return {
            "schema": SCHEMA,
            "scenario": {
                "name": self.scenario.name,
                "digest": self.scenario.digest,
                "world": self.scenario.world,
                "title": self.scenario.title,
                "targets": dict(self.scenario.targets),
            },
            "seed": self.spec.seed,
            "horizon": self.scenario.horizon,
            "seats": [
                {
                    "seat": seat.seat,
                    "persona": self.specs[seat.seat].id,
                    "digest": self.specs[seat.seat].digest,
                    "backend": self.specs[seat.seat].backend.kind,
                    "weight": seat.weight,
                }
                for seat in self.seats
            ],
            "protocol": {"name": self.protocol.name, "digest": protocol_digest(self.protocol)},
            "room": {
                "no_deal": self.rules.no_deal,
                "disagreement": self.rules.disagreement,
                "lookahead_steps": self.rules.lookahead_steps,
                "samples": self.rules.samples,
                "max_candidates": self.rules.max_candidates,
            },
        }


def protocol_digest(protocol: NegotiationProtocol) -> str:
    """SHA-256 over what a protocol declares about itself."""
    content = [protocol.name, protocol.description, protocol.max_rounds, list(protocol.worlds)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def build_room(spec: EpisodeSpec) -> Room:
    """Resolve every name in a spec.

    Raises:
        UserError: A scenario, persona, protocol or override that cannot work; says which.
    """
    scenario = load_scenario(spec.scenario)
    if spec.steps is not None:
        scenario = dataclasses.replace(scenario, horizon=spec.steps)
    world = make_world(scenario)
    protocol = find_protocol(spec.protocol)
    if protocol.worlds and scenario.world not in protocol.worlds:
        raise ConfigError(
            f"protocol {protocol.name!r} does not run on the world {scenario.world!r}",
            f"it is defined for {', '.join(protocol.worlds)} only",
            "Choose another: python run_warroom.py protocols",
        )
    if spec.no_deal not in {"nop", protocol.name}:
        find_protocol(spec.no_deal)
    _check_rules(spec, world)
    specs = seated_personas(spec)
    _check_voters(protocol, specs)
    personas = {seat: make_persona(persona, seat) for seat, persona in specs.items()}
    return Room(
        spec=spec,
        scenario=scenario,
        world=world,
        specs=specs,
        personas=personas,
        seats=tuple(seat_rules(persona, seat) for seat, persona in specs.items()),
        protocol=protocol,
        rules=RoomRules(
            no_deal=spec.no_deal,
            disagreement=spec.disagreement,
            lookahead_steps=spec.lookahead_steps,
            samples=spec.samples,
            continuation=world.playbook,
        ),
    )


def seated_personas(spec: EpisodeSpec) -> dict[str, PersonaSpec]:
    """Seat → resolved persona, default roles first, then further seats in the order given."""
    names = {role: spec.personas.get(role, role) for role in ROLES}
    names.update(spec.personas)
    changes = overrides_by_seat(spec.overrides, tuple(names))
    folders = tuple(spec.persona_path)
    return {
        role: apply_overrides(load_persona(name, folders), tuple(changes.get(role, ())))
        for role, name in names.items()
    }


def _check_rules(spec: EpisodeSpec, world: World[Any]) -> None:
    """What could only fail in the middle of a run is refused before one is claimed."""
    if not world.limits.has_nop and "nop" in (spec.no_deal, spec.disagreement.split("_")[-1]):
        raise ConfigError(
            f"in the world {world.name!r} doing nothing is not an action",
            "--no-deal nop and --disagreement projected_nop need one",
            "Take --no-deal weighted_score, --disagreement mean_legal",
        )
    if spec.checkpointer == "none":
        return
    if spec.driver != "graph":
        raise ConfigError(
            f"--checkpointer {spec.checkpointer} does not go with --driver {spec.driver}",
            "checkpoints are the graph's",
            "Drop one of them",
        )
    if spec.checkpointer == "sqlite" and not spec.out:
        raise ConfigError(
            "--checkpointer sqlite needs a run folder", "this run writes no files", "Give --out"
        )
    if spec.checkpointer == "redis" and "://" not in spec.store:
        raise ConfigError(
            f"--checkpointer redis does not go with --store {spec.store}",
            "it keeps its checkpoints on the server that --store names by URL",
            "Use --checkpointer sqlite, or --store redis://…",
        )


def _check_voters(protocol: NegotiationProtocol, specs: Mapping[str, PersonaSpec]) -> None:
    missing = [seat for seat in getattr(protocol, "voters", ()) if seat not in specs]
    if missing:
        raise ConfigError(
            f"protocol {protocol.name!r} needs the seat {missing[0]!r}",
            "it counts that seat's vote",
            f"Seat it: --persona {missing[0]}={missing[0]}",
        )
