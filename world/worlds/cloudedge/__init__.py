"""CloudEdge: three targets, five actions, crises. See `rules` for what it does."""

from __future__ import annotations

from world.model import Scenario
from world.worlds.cloudedge.playbook import close_gaps, cost_carbon_first
from world.worlds.cloudedge.world import CloudEdge

__all__ = ["CloudEdge", "close_gaps", "cost_carbon_first", "make"]


def make(scenario: Scenario) -> CloudEdge:
    """The world that plays a CloudEdge scenario.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """
    return CloudEdge(scenario)
