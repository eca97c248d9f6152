"""Inventories for the field reports: plain waste, enough rows of a kind, ways of removing."""

from __future__ import annotations

from tests.support.clouds import changed
from world.model import Observation
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import State
from world.worlds.cloud.view import CloudInventory


def view_of(seen: Observation) -> CloudInventory:
    assert isinstance(seen.inventory, CloudInventory)
    return seen.inventory


def extras(state: State, *kinds: int, live: bool = True) -> list[int]:
    """Rows outside the tiers, of some kinds or of any."""
    kind, condition = state.columns["kind"][0], state.columns["state"][0]
    return [
        row
        for row in range(state.settings.tiers, state.settings.rows)
        if (not kinds or kind[row] in kinds) and (not live or condition[row] != names.TERMINATED)
    ]


def idle(state: State, row: int) -> State:
    """The row as plain waste: old, unused, known, needed by nobody, in nobody's hands."""
    for name, value in (
        ("age_hours", 5000.0), ("idle_hours", 2000.0), ("essential", names.NO), ("protected", 0),
        ("managed_by", 0), ("needed_by", -1), ("tag_status", 0), ("h.essential", 0),
        ("h.objects", 0), ("suspicion", 0.0), ("h.archetype", 0), ("marked_at_step", -1),
    ):  # fmt: skip
        state = changed(state, name, row, value)
    return state


def having(state: State, kind: int, count: int) -> State:
    """The state with at least so many live rows of a kind; others become of it where it lacks."""
    there = len(extras(state, kind))
    spare = [row for row in extras(state) if state.columns["kind"][0, row] != kind]
    for row in spare[: max(count - there, 0)]:
        state = changed(idle(state, row), "kind", row, kind)
        state = changed(changed(state, "attached_to", row, -1), "state", row, names.RUNNING)
    assert len(extras(state, kind)) >= count
    return state


def removal_of(state: State, row: int) -> str:
    """A way of removing that the kind of the row knows."""
    kind = int(state.columns["kind"][0, row])
    machine = kind in (names.COMPUTE, names.DB, names.GPU)
    running = state.columns["state"][0, row] == names.RUNNING
    return "stop" if machine and running else "terminate"
