"""How far and how wide a room looks, and who says so: operator, scenario, or world.

What suits a small world is too slow for a large one, so the defaults are the world's; a scenario
may name others in its ``[room]`` table, and an option, variable or file overrides both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from world.model import Scenario, World

NAMES = ("lookahead_steps", "samples", "plan_steps")


class RoomNumber(NamedTuple):
    """One number of a room.

    Attributes:
        value: The number.
        origin: ``scenario NAME`` or ``world NAME``; "" where the operator gave it.
    """

    value: int
    origin: str


def room_numbers(
    asked: Mapping[str, int | None], scenario: Scenario, world: World[Any]
) -> dict[str, RoomNumber]:
    """Every number of `NAMES`, from the nearest place that names it.

    Args:
        asked: What the operator gave; None or missing is left to scenario and world.
        scenario: The scenario; its ``room`` table comes next.
        world: The world; its ``limits`` come last.
    """
    limits = world.limits
    defaults = {
        "lookahead_steps": limits.lookahead_steps,
        "samples": limits.samples,
        "plan_steps": limits.plan_depth,
    }
    numbers: dict[str, RoomNumber] = {}
    for name in NAMES:
        given = asked.get(name)
        if given is not None:
            numbers[name] = RoomNumber(given, "")
        elif name in scenario.room:
            numbers[name] = RoomNumber(scenario.room[name], f"scenario {scenario.name}")
        else:
            numbers[name] = RoomNumber(defaults[name], f"world {world.name}")
    return numbers
