"""Which rows a kind of action could be aimed at: a quick look before the validator.

A large inventory offers each kind to few of its rows. The quick look reads two or three columns and
is never stricter than the validator: what it leaves out, the validator would refuse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import menu, rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array
from world.worlds.cloud.tables import machines
from world.worlds.cloud.view import CloudInventory

Mask = NDArray[np.bool_]
Column = Callable[[str], Array]


def rows_for(kind: int, inventory: CloudInventory) -> NDArray[np.intp]:
    """Rows that a kind with a resource as its target could be aimed at, ascending."""
    settings, public = inventory.settings, inventory.public

    def column(name: str) -> Array:
        value: Array = public[name][0]
        return value

    first, last = _range(kind, settings)
    state = column("state")[first:last]
    live = (state < names.EMPTY) & (state != names.TERMINATED)
    live[: max(settings.pools - first, 0)] = True
    quick = _QUICK.get(kind)
    if quick is not None:
        live &= quick(settings, lambda name: column(name)[first:last])
    rows: NDArray[np.intp] = first + np.flatnonzero(live)
    return rows


def _range(kind: int, settings: Settings) -> tuple[int, int]:
    if kind in (menu.SCALE_UP, menu.SCALE_DOWN, menu.RESERVE):
        return 0, settings.queues
    if kind == menu.REBALANCE:
        return 0, settings.pools
    if kind in (menu.RESTORE, menu.FAILOVER, menu.FREE_DISK):
        return settings.pools, settings.queues
    if kind in (menu.TERMINATE, menu.STOP, menu.MARK, menu.DETACH, menu.REQUEST_METRICS, menu.FLAG):
        return settings.tiers, settings.rows
    return 0, settings.rows


def _free(_: Settings, column: Column) -> Mask:
    """In nobody else's hands."""
    mask: Mask = (column("protected") == 0) & (column("managed_by") == 0)
    return mask


def _unused(settings: Settings, column: Column) -> Mask:
    with np.errstate(invalid="ignore"):
        idle = column("idle_hours") >= IDLE_WINDOW_HOURS
    idle |= column("suspicion") > rules.ISOLATE_ABOVE
    return _free(settings, column) & idle


def _due(settings: Settings, column: Column) -> Mask:
    mask = _unused(settings, column)
    if settings.params.grace_steps:
        suspect = column("suspicion") > rules.ISOLATE_ABOVE
        mask &= (column("marked_at_step") >= 0) | suspect
    return mask


def _sized(settings: Settings, column: Column) -> Mask:
    ladder = machines(settings.params.power_model).ladder[column("size")]
    return (column("size") > 0) & (ladder >= 0) & _free(settings, column)


_QUICK: dict[int, Callable[[Settings, Column], Mask]] = {
    menu.RESIZE: _sized,
    menu.TERMINATE: _due,
    menu.STOP: _unused,
    menu.DETACH: lambda _, column: column("attached_to") >= 0,
    menu.UNMARK: lambda _, column: column("marked_at_step") >= 0,
    menu.START: lambda _, column: np.isin(column("state"), (names.STOPPED, names.ISOLATED)),
    menu.ATTACH: lambda _, column: column("state") == names.DETACHED,
    menu.ISOLATE: lambda _, column: column("suspicion") > rules.ISOLATE_ABOVE,
    menu.REQUEST_METRICS: lambda _, column: np.isnan(column("idle_hours")),
    menu.FLAG: lambda _, column: (
        (column("essential") == names.UNKNOWN) | (column("tag_status") > 0)
    ),
}
