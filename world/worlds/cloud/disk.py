"""Disks of databases: what is on them, and the writes that fail when nothing more fits.

used = (data + junk)/room, all over the disk of the start. Junk are logs and temporary files; room
grows with the machine size of the database and never shrinks. A full disk fails writes only, so the
CPU stays normal, nothing is corrupt, and cleaning or more room ends it.

Source: storage of a managed database can be enlarged and not be reduced, and the instance refuses
writes in the state "storage-full" (Amazon RDS User Guide). That the disk comes with the machine
size is a simplification of ours.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from world.worlds.cloud.services import CATALOGUE
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats
from world.worlds.cloud.tables import PowerModel, machines
from world.worlds.finops.tables import size_codes

WRITE_FRACTION = 0.15
"""Share of the requests that write; assumed."""
USD_PER_MILLION_WRITES = 1.0
"""Worth of a million writes that a restored backup loses, $; assumed."""
FULL_FROM, FULL_SPAN = 1.02, 0.13
"""What an incident wants to store, over the room, at severity 0 and added at 1; assumed."""


def used(columns: dict[str, Array]) -> Floats:
    """Disk in use over the room there is, above 1 where more was wanted, float64 [B, S]."""
    value: Floats = (columns["h.s.disk_base"] + columns["h.s.disk_junk"]) / columns["s.disk_room"]
    return value


def failing_writes(columns: dict[str, Array]) -> Floats:
    """Fraction of all requests that fail because the disk is full, float64 [B, S]."""
    value: Floats = np.where(used(columns) >= 1.0, columns["h.s.write_fail"], 0.0)
    return value


def junk_that_fills(columns: dict[str, Array], severity: Floats, world: Array, at: Array) -> Floats:
    """Junk with which the disk of some services is over full, float64 [N]."""
    room, data = columns["s.disk_room"][world, at], columns["h.s.disk_base"][world, at]
    junk: Floats = room * (FULL_FROM + FULL_SPAN * severity) - data
    return junk


@cache
def _start_memory(names: tuple[str, ...], model: PowerModel) -> Floats:
    codes = [size_codes()[CATALOGUE[name].db_size] for name in names]
    return machines(model).memory_gib[codes]


def room_of(settings: Settings, size: Array) -> Floats:
    """Disk that comes with the machine sizes of the databases, over the start's, [B, S].

    Args:
        settings: Which services, and their sizes at the start.
        size: Size codes of the databases, int [B, S].
    """
    model = settings.params.power_model
    start = _start_memory(settings.params.services, model)
    ratio: Floats = machines(model).memory_gib[size] / start
    return ratio
