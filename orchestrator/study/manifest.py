"""What a tournament plays, by content: digests of scenarios, personas and protocols."""

from __future__ import annotations

from agents.persona import load_persona
from orchestrator.episode import versions
from orchestrator.room import protocol_digest
from orchestrator.spec import ROLES, EpisodeSpec
from orchestrator.study.ledger import Manifest, ScenarioEntry, settings_of
from orchestrator.study.seeds import ranges_of, split_counts
from orchestrator.study.tournament import Grid, set_name
from orchestrator.version import version
from policies.protocols import protocol
from world.errors import WarRoomError
from world.model import Scenario
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world


def manifest_of(grid: Grid, base: EpisodeSpec) -> Manifest:
    """The manifest of a grid whose names were all looked up before.

    Args:
        grid: What is played.
        base: What all its episodes share.

    Raises:
        UserError: A scenario, persona or protocol cannot be read.
    """
    sets = [{**base.personas, **personas} for personas in grid.persona_sets]
    names = dict.fromkeys((*ROLES, *(name for chosen in sets for name in chosen.values())))
    return Manifest(
        settings=settings_of(base),
        scenarios={name: _entry(load_scenario(name)) for name in grid.scenarios},
        personas={name: load_persona(name, base.persona_path).digest for name in names},
        protocols={name: protocol_digest(protocol(name)) for name in grid.protocols},
        sets=[set_name(chosen) for chosen in sets],
        seeds=ranges_of(grid.seeds),
        split=split_counts(grid.seeds),
        versions=[{"program": version(), **versions()}],
    )


def _entry(scenario: Scenario) -> ScenarioEntry:
    return ScenarioEntry(digest=scenario.digest, shared_noise=_shared_noise(scenario))


def _shared_noise(scenario: Scenario) -> bool:
    """Whether a seed's storm is the same whatever the room does.

    A world with one sequential generator shifts its storm by every word that is drawn; only
    where an announced crisis has one legal answer do all rooms draw the same number of words.
    """
    try:
        noise = make_world(scenario).limits.noise
    except WarRoomError:
        return True  # Nothing can be played in it: each of its cells will say so in its row.
    if noise != "sequential":
        return True
    return scenario.world == "cloudedge" and scenario.params.get("crisis_response") == "announced"
