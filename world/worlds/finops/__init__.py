"""FinOps worlds: native inventories, bills, and the two seed versions."""

from __future__ import annotations

from typing import Any

from world.model import Scenario, World

__all__ = ["make"]


def make(scenario: Scenario) -> World[Any]:
    """The world that plays a finops scenario.

    Args:
        scenario: With ``params.version`` ``v1`` or ``v2`` for a seed version, without it for the
            native world.

    Raises:
        ScenarioError: The scenario contradicts itself.
    """
    if "version" in scenario.params:
        from world.worlds.finops.seed import SeedWorld

        return SeedWorld(scenario)
    from world.worlds.finops.world import FinopsWorld

    return FinopsWorld(scenario)
