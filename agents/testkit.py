"""The public test kits: one call each, for what you wrote yourself.

    from agents.testkit import check_persona, check_protocol, check_store, check_world

Each plays the thing it is given for real and returns when it conforms; otherwise it raises one
`ConformanceError` whose line names the first fault and whose `faults` hold all of them. They need
no test framework: call them from a test of any kind, or from a shell. What each of them tries is
said by the function that lists faults: `agents.conformance.persona_faults`,
`policies.protocols.conformance.check_protocol`, `world.worlds.conformance.world_faults` and
`world.store.conformance.store_faults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.conformance import SCENARIOS, persona_faults
from agents.persona import load_persona
from agents.seat import Persona, make_persona
from policies.protocols import conformance as protocols
from policies.protocols import protocol as find_protocol
from policies.records import NegotiationProtocol
from world.errors import WarRoomError
from world.model import Scenario, World
from world.scenarios.loader import load_scenario
from world.store.base import WorldStore
from world.store.conformance import store_faults
from world.worlds.conformance import world_faults
from world.worlds.registry import make_world

__all__ = [
    "ConformanceError",
    "check_persona",
    "check_protocol",
    "check_store",
    "check_world",
]


class ConformanceError(WarRoomError, AssertionError):
    """Something does not keep what every room relies on.

    An `AssertionError` too, so that a test runner counts it as a failed test, not as a broken one.

    Attributes:
        subject: What was checked.
        faults: Every fault, in the order in which they were found.
    """

    def __init__(self, subject: str, faults: Sequence[str]) -> None:
        self.subject = subject
        self.faults = tuple(faults)
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        first = " ".join(self.faults[0].split())
        super().__init__(f"{subject} does not conform: {first}{more}", "", "All are in .faults")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.subject, self.faults))


def check_persona(
    persona: Persona | str | Path,
    scenarios: Sequence[str] = SCENARIOS,
    steps: int = 3,
    seed: int = 0,
    deterministic: bool = True,
) -> None:
    """Ask a persona everything that a room may ask; returns when it conforms.

    Args:
        persona: A persona, or the name or path of its file.
        scenarios: Scenarios whose worlds it is asked in.
        steps: How many steps of each.
        seed: Which episode.
        deterministic: False for a voice that may answer differently each time.

    Raises:
        ConformanceError: It breaks something.
        ConfigError: Its file cannot be used.
        UnknownNameError: There is no such persona or scenario.
    """
    if isinstance(persona, str | Path):
        spec = load_persona(str(persona))
        persona = make_persona(spec, spec.identity.role)
    name = getattr(getattr(persona, "spec", None), "id", type(persona).__name__)
    _settle(f"persona {name}", persona_faults(persona, scenarios, steps, seed, deterministic))


def check_protocol(protocol: NegotiationProtocol | str, tables: int = 60, seed: int = 0) -> None:
    """Play a protocol on random tables and corner cases; returns when it conforms.

    Args:
        protocol: A protocol, its name, or ``package.module:name``.
        tables: How many random tables.
        seed: Which ones.

    Raises:
        ConformanceError: It breaks something.
        UnknownNameError: There is no such protocol.
    """
    found = find_protocol(protocol) if isinstance(protocol, str) else protocol
    name = getattr(found, "name", type(found).__name__)
    _settle(f"protocol {name}", protocols.check_protocol(found, tables, seed))


def check_world(
    scenario: Scenario | str,
    world: World[Any] | None = None,
    seeds: Sequence[int] = (0, 1),
    steps: int = 4,
) -> None:
    """Play a few steps of a scenario; returns when its world conforms.

    Args:
        scenario: A scenario, or its name or path.
        world: The world that plays it; None takes the one that the scenario names.
        seeds: Which episodes.
        steps: How many steps of each.

    Raises:
        ConformanceError: It breaks something.
        ScenarioError: The scenario cannot be used.
        UnknownNameError: There is no such scenario or world.
    """
    played = load_scenario(scenario) if isinstance(scenario, str) else scenario
    found = make_world(played) if world is None else world
    _settle(
        f"world {found.name} on {played.name}", world_faults(found, played, tuple(seeds), steps)
    )


def check_store(store: WorldStore, episode: str = "conformance-kit") -> None:
    """Write one short episode to a store and take it out again; returns when it conforms.

    Args:
        store: What to check; other episodes in it are left alone.
        episode: An id that is free in it.

    Raises:
        ConformanceError: It breaks something.
    """
    name = getattr(store, "name", type(store).__name__)
    _settle(f"store {name}", store_faults(store, episode))


def _settle(subject: str, faults: Sequence[str]) -> None:
    if faults:
        raise ConformanceError(subject, faults)
