"""Harm by effect: what was lost, whichever action took it away.

Something essential counts as lost when it is terminated, stopped, isolated, detached from what
needs it or resized below its work; a service, when it was starved by an action of ours; evidence,
when a compromised machine is terminated before its disk was copied. Each loss counts once.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud import schema as names
from world.worlds.cloud.state import Array, Floats, Measured, State

STARVED_ABOVE = 1.25
"""Utilisation from which a service counts as starved."""
BLAME_STEPS = 4
"""Steps after a cut in which an overload is laid to it: a rolling change takes two."""
OVERLOADED_PERCENT = 100.0


def lost_rows(after: State) -> Array:
    """Essential rows that do not do their work, bool [B, R]."""
    columns, settings = after.columns, after.settings
    state = columns["state"]
    gone = state == names.TERMINATED
    away = (state == names.STOPPED) | (state == names.ISOLATED)
    away &= columns["h.compromised"] == 0  # a compromised machine is rightly taken away
    hanging = (state == names.DETACHED) & (columns["attached_to"] >= 0)
    copied = (columns["h.compromised"] > 0) & (columns["snapshot_taken"] > 0)
    squeezed = (columns["h.peak_cpu_percent"] > OVERLOADED_PERCENT) | (
        columns["h.memory_percent"] > OVERLOADED_PERCENT
    )
    squeezed &= state == names.RUNNING
    lost: Array = (columns["h.essential"] > 0) & ((gone & ~copied) | away | hanging | squeezed)
    lost[:, : settings.queues] = False
    return lost


def starved(after: State, measured: Floats) -> Array:
    """Services with users that our own cuts left without capacity, bool [B, S]."""
    columns, settings = after.columns, after.settings
    cut = columns["h.s.cut_at_step"]
    recent = after.step - cut <= BLAME_STEPS
    if not recent.any():
        return np.zeros(cut.shape, dtype=np.bool_)
    where = Measured(settings)
    busy = measured[:, where.busy]
    pools = busy[:, : settings.pools].reshape(-1, settings.s, settings.regions)
    weight = columns["weight"][:, : settings.pools].reshape(pools.shape)
    hottest = np.where(weight > 0, pools, 0.0).max(axis=-1)
    hottest = np.maximum(hottest, busy[:, settings.pools :])
    trouble = (columns["h.s.spike"] != 1) | (columns["h.s.slow"] != 1)
    trouble |= (columns["h.s.leak_per_h"] > 0) | (columns["h.s.fight"] > 0)
    trouble |= (columns["h.s.db_slow"] != 1) | (columns["h.g.up"] == 0).any(axis=-1)[:, None]
    found: Array = recent & (hottest > STARVED_ABOVE) & ~trouble & ~settings.batch
    return found


def count(before: State, after: State, measured: Floats) -> None:
    """Add the step's harm to the counts of a new state."""
    columns = after.columns
    services = starved(after, measured)
    total = np.add.reduce(services.astype(np.int32), axis=-1)
    if services.any():
        columns["h.s.cut_at_step"] = np.where(services, -1000, columns["h.s.cut_at_step"]).astype(
            np.int32
        )
    rows = None
    if after.extras is not before.extras:
        rows = lost_rows(after)
        evidence = (columns["h.compromised"] > 0) & (columns["state"] == names.TERMINATED)
        evidence &= columns["snapshot_taken"] == 0
        lost = (rows | evidence) & (columns["h.harmed"] == 0)
        if lost.any():
            columns["h.harmed"] = np.where(lost, 1, columns["h.harmed"]).astype(np.uint8)
            total = total + np.add.reduce(lost.astype(np.int32), axis=-1)
            after.flags["harmed_rows"] = lost
        columns["h.w.unavailable"] = np.add.reduce(rows, axis=-1)[:, None].astype(np.int32)
    if services.any():
        after.flags["starved"] = services
    if total.any():
        columns["w.harms"] = (columns["w.harms"] + total[:, None]).astype(np.int32)
