"""AI-Ops worlds: incidents with a hidden cause, and the original environment as it was."""

from __future__ import annotations

from typing import Any

from world.errors import ScenarioError
from world.model import Scenario, World

__all__ = ["make"]


def make(scenario: Scenario) -> World[Any]:
    """The world that plays an aiops scenario.

    Args:
        scenario: With ``params.rules = "seed"`` for the original environment, without it for the
            native world.

    Raises:
        ScenarioError: The scenario contradicts itself.
    """
    if "rules" not in scenario.params:
        from world.worlds.aiops.world import AiopsWorld

        return AiopsWorld(scenario)
    if scenario.params["rules"] != "seed":
        raise ScenarioError(
            f"scenario {scenario.name!r}: params.rules is {scenario.params['rules']!r}",
            "the only other rules are the original's",
            'Write rules = "seed", or leave it out for the native world',
        )
    from world.worlds.aiops.seed_world import SeedWorld

    return SeedWorld(scenario)
