"""The mechanistic cloud world."""

from __future__ import annotations

from typing import Any

from world.model import Scenario, World

__all__ = ["make"]


def make(scenario: Scenario) -> World[Any]:
    """The world that plays a cloud scenario.

    Raises:
        ScenarioError: The scenario contradicts itself.
    """
    from world.worlds.cloud.world import CloudWorld

    return CloudWorld(scenario)
