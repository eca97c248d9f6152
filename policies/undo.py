"""How an action would be taken back: its inverse, or that there is none.

A pure function of the observation before the step. The inverse is an action id that can be typed;
whether it is allowed at that time is the validator's question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from policies.controls import is_question
from world.actions import NOP, Action
from world.model import Observation, significant

CANNOT = "cannot be undone"
NOTHING = "nothing to undo"
_PAIRS = {
    "mark": "unmark",
    "unmark": "mark",
    "stop": "start",
    "start": "stop",
    "detach": "attach",
    "attach": "detach",
}
_MACHINES = frozenset({"compute", "gpu"})


def undo_line(before: Observation, action: Action) -> str:
    """The id of the action that takes this one back, or `CANNOT` (with what remains), or `NOTHING`.

    Args:
        before: What was observed before the action.
        action: What was done.
    """
    kind, target = action.kind, action.target
    if kind in _PAIRS:
        return Action(_PAIRS[kind], target).id
    if kind in {NOP, "snapshot"} or is_question(action):
        return NOTHING
    row = _row(before, target)
    service = _service(before, target)
    if kind == "terminate":
        return f"{CANNOT}; its data are in a snapshot" if row.get("snapshot_taken") else CANNOT
    if kind in {"scale_up", "scale_down"}:
        return _scale(action, row)
    if kind == "resize" and isinstance(row.get("size"), str) and row["size"]:
        return Action.of("resize", target, new_size=row["size"]).id
    if kind == "rebalance" and isinstance(row.get("weight"), float):
        return Action.of("rebalance", target, weight=significant(row["weight"])).id
    if kind == "isolate" and row.get("kind") in _MACHINES:
        return Action("start", target).id
    if kind == "optimize_energy" and isinstance(service.get("eco_level"), int):
        return Action.of("optimize_energy", target, level=service["eco_level"]).id
    if kind == "set_autoscaler" and isinstance(service.get("autoscaler"), bool):
        return Action.of("set_autoscaler", target, enabled=service["autoscaler"]).id
    return CANNOT


def undo_lines(before: Observation, actions: tuple[Action, ...]) -> tuple[str, ...]:
    """`undo_line` of each action."""
    return tuple(undo_line(before, action) for action in actions)


def _scale(action: Action, row: Mapping[str, Any]) -> str:
    """The opposite change by the same number of instances, where that number is known."""
    other = "scale_down" if action.kind == "scale_up" else "scale_up"
    if not action.target:
        return f"{other}, which takes back about as much"
    count, fraction = row.get("count"), action.param("fraction", 0.25)
    if not isinstance(count, float) or not isinstance(fraction, int | float):
        return Action(other, action.target).id
    moved = max(math.floor(count * fraction + 1e-9), 1.0)
    after = count + moved if action.kind == "scale_up" else count - moved
    if after <= 0:
        return CANNOT
    # Rounded up in the sixth digit: the world rounds the number of instances down.
    share = math.ceil(moved / after * 1e6) / 1e6
    return Action.of(other, action.target, fraction=share).id


def _row(before: Observation, target: str) -> Mapping[str, Any]:
    inventory = before.inventory
    if inventory is None or target not in inventory.index:
        return {}
    return inventory.row(target)


def _service(before: Observation, target: str) -> Mapping[str, Any]:
    services = before.facts.get("services")
    found = services.get(target) if isinstance(services, Mapping) else None
    return found if isinstance(found, Mapping) else {}
