"""Build a room from a spec: the world, who sits in it, and the rules they agreed to.

Everything that can be wrong with a spec is found here, before a run id is claimed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agents.persona import apply_overrides, load_persona, overrides_by_seat, seat_rules
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, is_asynchronous, is_journalled, make_persona
from orchestrator.models import make_desk, voiced_by_model
from orchestrator.room_numbers import NAMES, room_numbers
from orchestrator.spec import ROLES, EpisodeSpec
from orchestrator.trace.events import SCHEMA
from policies.controls import Freeze, parse_freeze
from policies.protocols import no_deal_rule
from policies.protocols import protocol as find_protocol
from policies.protocols.guard import most_rounds
from policies.records import NegotiationProtocol
from policies.table import RoomRules, SeatRules
from world.errors import ConfigError
from world.model import Scenario, World
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

if TYPE_CHECKING:
    from agents.backends.llm.desk import ModelDesk


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
        desk: What its language models share; None where no seat speaks through one.
        origin: Of what recorded run this one is a variation, and how; {} where it is none.
    """

    spec: EpisodeSpec
    scenario: Scenario
    world: World[Any]
    specs: Mapping[str, PersonaSpec]
    personas: Mapping[str, Persona]
    seats: tuple[SeatRules, ...]
    protocol: NegotiationProtocol
    rules: RoomRules
    desk: ModelDesk | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def journalled(self) -> bool:
        """Whether the replies of a seat are kept in the store's journal."""
        if self.spec.approve != "none" or self.people:
            return True
        return any(is_journalled(persona) for persona in self.personas.values())

    @cached_property
    def people(self) -> frozenset[str]:
        """Seats at which a person sits."""
        return frozenset(seat for seat, spec in self.specs.items() if spec.backend.kind == "human")

    @property
    def pauses(self) -> bool:
        """Whether people are asked through interrupts, not at this process's terminal."""
        return self.spec.checkpointer != "none"

    @cached_property
    def destructive(self) -> frozenset[str]:
        """Kinds of action that can lose work or data."""
        return frozenset(t.kind for t in self.world.templates if t.destructive)

    @cached_property
    def asynchronous(self) -> bool:
        """Whether a seat must be awaited, so that the driver needs an event loop."""
        return any(is_asynchronous(persona) for persona in self.personas.values())

    def _controls(self) -> dict[str, Any]:
        """The controls that are in force; a room without any has none of these members."""
        rules = self.rules
        found: dict[str, Any] = {
            "approve": "" if self.spec.approve == "none" else self.spec.approve,
            "blast_radius": rules.blast_radius,
            "blast_share": rules.blast_share,
            "freeze": [freeze.text for freeze in rules.freezes],
        }
        return {name: value for name, value in found.items() if value}

    @cached_property
    def max_rounds(self) -> int:
        """Most rounds of asks of one negotiation, those of its no-deal rule included."""
        return most_rounds(self.protocol, self.rules.no_deal)

    @property
    def config_digest(self) -> str:
        """Eight hex digits of scenario, personas, protocol and rules: part of a run id."""
        header = self.header()
        content = [header["scenario"], header["seats"], header["protocol"], header["room"]]
        content += [self.origin] if self.origin else []
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
                    **_content_of(self.personas[seat.seat]),
                }
                for seat in self.seats
            ],
            "protocol": {"name": self.protocol.name, "digest": protocol_digest(self.protocol)},
            "room": {
                "no_deal": self.rules.no_deal,
                "disagreement": self.rules.disagreement,
                "lookahead_steps": self.rules.lookahead_steps,
                "samples": self.rules.samples,
                "plan_steps": self.rules.plan_steps,
                "max_candidates": self.rules.max_candidates,
                **self._controls(),
            },
            **({"counterfactual": dict(self.origin)} if self.origin else {}),
        }


def _content_of(persona: Persona) -> dict[str, str]:
    """Digest of what a persona reads beside its own file: a policy, a recorded run."""
    digest = getattr(persona, "content_digest", "")
    return {"content": digest} if isinstance(digest, str) and digest else {}


def protocol_digest(protocol: NegotiationProtocol) -> str:
    """SHA-256 over what a protocol declares about itself."""
    content = [protocol.name, protocol.description, protocol.max_rounds, list(protocol.worlds)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _freezes(spec: EpisodeSpec, scenario: Scenario, world: World[Any]) -> tuple[Freeze, ...]:
    """The scenario's change freezes and those that were asked for.

    Raises:
        ConfigError: A window that cannot be read, or a world that cannot stand still.
    """
    texts = (*scenario.controls.get("freeze", ()), *spec.freeze)
    if texts and not world.limits.has_nop:
        raise ConfigError(
            f"a change freeze does not go with the world {world.name!r}",
            "in this world doing nothing is not an action",
            "Leave out --freeze, or play a cloud, finops or aiops scenario",
        )
    return tuple(map(parse_freeze, texts))


Voice = Callable[[PersonaSpec, str, "ModelDesk | None"], Persona]
"""Who voices a persona's file at a seat."""


def build_room(spec: EpisodeSpec, speaks: bool = True, voice: Voice = make_persona) -> Room:
    """Resolve every name in a spec.

    Args:
        spec: What to build.
        speaks: False for a room that is only looked at: no model is made ready to be called.
        voice: Who voices its personas; other than by default, a record of what they said.

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
    no_deal_rule(spec.no_deal)
    _check_rules(spec, world)
    specs = seated_personas(spec)
    _check_voters(protocol, specs)
    _check_waiting(spec, specs)
    _check_continuations(world, specs)
    numbers = room_numbers(spec.model_dump(include={*NAMES}), scenario, world)
    _check_powers(protocol, spec.no_deal, specs)
    desk = make_desk(spec, specs, speaks)
    personas = {seat: voice(persona, seat, desk) for seat, persona in specs.items()}
    for persona in personas.values():
        fits = getattr(persona, "fits", None)
        if callable(fits):
            fits(world)
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
            lookahead_steps=numbers["lookahead_steps"].value,
            samples=numbers["samples"].value,
            plan_steps=numbers["plan_steps"].value,
            continuation=world.playbook,
            blast_radius=spec.blast_radius or int(scenario.controls.get("blast_radius", 0)),
            blast_share=spec.blast_share or float(scenario.controls.get("blast_share", 0.0)),
            freezes=_freezes(spec, scenario, world),
        ),
        desk=desk,
    )


def seated_personas(spec: EpisodeSpec) -> dict[str, PersonaSpec]:
    """Seat → resolved persona, default roles first, then further seats in the order given."""
    names = {role: spec.personas.get(role, role) for role in ROLES}
    names.update(spec.personas)
    for role in spec.human:
        if role not in names:
            raise ConfigError(
                f"--human {role}: there is no such seat",
                f"seats are {', '.join(names)}",
                f"Give it a persona too, which says what it wants: --persona {role}=cost",
            )
    people = [
        f"{role}.backend.{change}"
        for role in dict.fromkeys(spec.human)
        for change in ('kind="human"', 'fallback="rules"', 'ref=""')
    ]
    changes = overrides_by_seat((*people, *spec.overrides), tuple(names))
    folders = tuple(spec.persona_path)
    _leave_empty(spec, names)
    seated = {
        role: apply_overrides(load_persona(name, folders), tuple(changes.get(role, ())))
        for role, name in names.items()
    }
    return voiced_by_model(spec, seated)


def _leave_empty(spec: EpisodeSpec, names: dict[str, str]) -> None:
    """Take out the seats that stay empty.

    Raises:
        ConfigError: There is no such seat, or nobody would be left.
    """
    for role in dict.fromkeys(spec.absent):
        if role not in names:
            raise ConfigError(
                f"seat {role} cannot stay empty: there is no such seat",
                f"seats are {', '.join(names)}",
                "Name one of them",
            )
        del names[role]
    if not names:
        raise ConfigError(
            "every seat of the room is empty", "nobody would decide", "Leave at least one taken"
        )


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


def _check_continuations(world: World[Any], specs: Mapping[str, PersonaSpec]) -> None:
    known = [*(["nop"] if world.limits.has_nop else []), *world.continuations]
    for seat, persona in specs.items():
        name = persona.utility.continuation
        if name and name not in known:
            raise ConfigError(
                f"seat {seat}: utility.continuation is {name!r}",
                f"the world {world.name!r} knows {', '.join(known) or 'none by name'}",
                "Leave it out to take the world's own",
            )


def _check_waiting(spec: EpisodeSpec, specs: Mapping[str, PersonaSpec]) -> None:
    """A run that waits for people in no process needs a store that outlives this one."""
    waits = spec.approve != "none" or any(p.backend.kind == "human" for p in specs.values())
    if waits and spec.checkpointer != "none" and spec.store in {"inprocess", ":memory:"}:
        raise ConfigError(
            f"--checkpointer {spec.checkpointer} does not go with --store {spec.store} here",
            "the run waits for people, and this store ends with its process",
            "Use --store embedded or redis://…, or drop --checkpointer to be asked at the terminal",
        )


def _check_voters(protocol: NegotiationProtocol, specs: Mapping[str, PersonaSpec]) -> None:
    missing = [seat for seat in getattr(protocol, "voters", ()) if seat not in specs]
    if missing:
        raise ConfigError(
            f"protocol {protocol.name!r} needs the seat {missing[0]!r}",
            "it counts that seat's vote",
            f"Seat it: --persona {missing[0]}={missing[0]}",
        )


def _check_powers(
    protocol: NegotiationProtocol, no_deal: str, specs: Mapping[str, PersonaSpec]
) -> None:
    """A room has at most one commander and one mediator, and has whom its rules need."""
    wanted = {getattr(protocol, "needs", ""): f"protocol {protocol.name!r}"}
    if no_deal == "commander":
        wanted.setdefault("commander", "--no-deal commander")
    elif no_deal != "nop":
        wanted.setdefault(getattr(find_protocol(no_deal), "needs", ""), f"--no-deal {no_deal}")
    for power in ("commander", "mediator"):
        holders = [seat for seat, spec in specs.items() if getattr(spec.powers, power)]
        if len(holders) > 1:
            raise ConfigError(
                f"{holders[0]} and {holders[1]} both have powers.{power}",
                f"a room has one {power} at most",
                f"Take it from one: --set {holders[1]}.powers.{power}=false",
            )
        if power in wanted and not holders:
            raise ConfigError(
                f"{wanted[power]} needs a {power}'s seat",
                f"no persona of this room has powers.{power}",
                f"Seat one: --persona {power}={power}",
            )
