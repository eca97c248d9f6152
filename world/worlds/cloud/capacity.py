"""Capacity that comes and goes: orders, drains, moves, restarts, and an autoscaler.

An order is billed at once and serves after its delay; a drained instance takes no traffic for one
step, then is gone. The sum of ready, pending and draining instances changes by actions only.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud import disk
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import Array, Measured, State
from world.worlds.cloud.tables import machines

STABLE_STEPS = 6
"""Steps below its lower bound before an autoscaler takes capacity away.

Source: Kubernetes' horizontal autoscaler waits 5 minutes; half an hour suits machines.
"""
UPPER, LOWER = 1.1, 0.7
"""Utilisation over target at which an autoscaler adds, and below which it removes, capacity."""
AUTOSCALE_FRACTION = 0.1
"""Share of the fleet that an autoscaler adds or removes in a step; assumed."""


def wear_off(after: State) -> None:
    """Outages of the step before end, in a new state, before its actions begin others.

    A counter of n steps that an action sets is therefore measured in n steps: the one in which
    the action is taken and the n − 1 after it.
    """
    columns = after.columns
    for name in ("s.cold_steps", "s.failover_steps", "restart_wait_steps"):
        if columns[name].any():
            columns[name] = np.maximum(columns[name] - 1, 0).astype(np.int8)
    _resizes(after)


def pass_time(before: State, after: State) -> None:
    """Orders, drains, repairs and moves go on by one step, in a new state.

    A reservation begins at the full hour after its order and outlives the episode.
    """
    columns, settings = after.columns, after.settings
    drained = before.columns["draining"]
    if drained.any():
        columns["draining"] = columns["draining"] - drained
    pending = (columns["pending_1"], columns["pending_2"], columns["pending_3"])
    if any(part.any() for part in pending):
        first, second, third = pending
        columns["count"] = columns["count"] + first
        columns["pending_1"], columns["pending_2"] = second, third
        columns["pending_3"] = np.zeros_like(third)
        born = (columns["state"] == names.EMPTY) & (columns["count"] > 0)
        if born.any():
            columns["state"] = np.where(born, names.RUNNING, columns["state"]).astype(np.int8)
    _knowledge(after)
    _repairs(after)
    _moves(after)
    columns["h.s.memory_age_h"] = columns["h.s.memory_age_h"] + settings.dt_h
    ordered = columns["reserve_ordered"]
    if ordered.any() and after.step % settings.hour_steps == 0:
        columns["reserved"] = columns["reserved"] + ordered
        columns["reserve_ordered"] = np.zeros_like(ordered)


def _resizes(after: State) -> None:
    columns = after.columns
    wait = columns["resize_wait_steps"]
    if not wait.any():
        return
    ready = wait == 1
    if ready.any():
        columns["size"] = np.where(ready, columns["resize_to"], columns["size"])
        _grow_disks(after, ready)
        columns["resize_to"] = np.where(ready, 0, columns["resize_to"])
        after.extras = object()
    columns["resize_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)


def _grow_disks(after: State, ready: Array) -> None:
    """A larger database brings a larger disk; a smaller one keeps what it has."""
    columns, settings = after.columns, after.settings
    at = slice(settings.pools, settings.queues)
    if not ready[:, at].any():
        return
    room = disk.room_of(settings, columns["size"][:, at])
    old = columns["s.disk_room"]
    columns["s.disk_room"] = np.where(ready[:, at], np.maximum(old, room), old)


def _knowledge(after: State) -> None:
    """Metrics and answers that were asked for arrive."""
    columns = after.columns
    wait = columns["metrics_wait_steps"]
    if wait.any():
        ready = wait == 1
        for name in ("cpu_percent", "peak_cpu_percent", "memory_percent", "idle_hours"):
            columns[name] = np.where(ready, columns[f"h.{name}"], columns[name])
        columns["metrics_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)
    wait = columns["owner_wait_steps"]
    if wait.any():
        ready = wait == 1
        truth = np.where(columns["h.essential"] > 0, names.YES, names.NO)
        columns["essential"] = np.where(ready, truth, columns["essential"]).astype(np.int8)
        columns["tag_status"] = np.where(ready, 0, columns["tag_status"]).astype(np.int8)
        columns["owner_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)
        after.extras = object()


def _repairs(after: State) -> None:
    """Rollbacks, cleaned disks and restored backups become effective."""
    columns = after.columns
    wait = columns["s.clean_wait_steps"]
    if wait.any():
        columns["h.s.disk_junk"] = np.where(wait == 1, 0.0, columns["h.s.disk_junk"])
        columns["s.clean_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)
    wait = columns["s.rollback_wait_steps"]
    if wait.any():
        ready = wait == 1
        columns["h.s.slow"] = np.where(ready, 1.0, columns["h.s.slow"])
        columns["h.s.leak_per_h"] = np.where(ready, 0.0, columns["h.s.leak_per_h"])
        columns["h.s.memory_age_h"] = np.where(ready, 0.0, columns["h.s.memory_age_h"])
        columns["s.rollback_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)
    wait = columns["s.restore_wait_steps"]
    if wait.any():
        ready = wait == 1
        # Restored while the corrupt instance is still on the network, it corrupts again.
        clean = ready & (columns["s.db_isolated"] > 0)
        _lose_writes(after, ready)
        columns["h.s.corrupt"] = np.where(clean, 0.0, columns["h.s.corrupt"])
        columns["s.db_isolated"] = np.where(ready, 0, columns["s.db_isolated"]).astype(np.uint8)
        columns["s.restore_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)


def _lose_writes(after: State, ready: Array) -> None:
    """Writes since the backup are gone: the last full hour at which the data were still clean."""
    columns, settings = after.columns, after.settings
    corrupt = (columns["h.s.corrupt"] > 0) & (columns["h.s.corrupt_step"] >= 0)
    until = np.where(corrupt, columns["h.s.corrupt_step"], after.step)
    point = np.floor(until / settings.hour_steps) * settings.hour_steps
    hours = np.where(ready, (after.step - point) * settings.dt_h, 0.0)
    lost = hours * 3600.0 * columns["h.s.base_rps"] * disk.WRITE_FRACTION * 1e-6
    columns["s.lost_writes"] = columns["s.lost_writes"] + lost
    usd = np.add.reduce(lost, axis=-1)[:, None] * disk.USD_PER_MILLION_WRITES
    columns["w.one_off_usd"] = columns["w.one_off_usd"] + usd


def _moves(after: State) -> None:
    """Cut a migration over: traffic and, where it moves along, the database change region."""
    columns, settings = after.columns, after.settings
    wait = columns["s.move_wait_steps"]
    if not wait.any():
        return
    columns["s.move_wait_steps"] = np.maximum(wait - 1, 0).astype(np.int8)
    world, service = np.nonzero(wait == 1)
    if not world.size:
        return
    source = columns["s.move_from"][world, service].astype(np.int64)
    target = columns["s.move_to"][world, service].astype(np.int64)
    old, new = service * settings.regions + source, service * settings.regions + target
    count, weight, draining = after.own("count"), after.own("weight"), after.own("draining")
    moved = np.minimum(columns["s.move_count"][world, service], count[world, old])
    before = np.maximum(count[world, old], 1.0)
    share = weight[world, old] * moved / before
    count[world, old] -= moved
    draining[world, old] += moved
    # What is left of a share may fall a rounding error below zero; traffic may not.
    weight[world, old] = np.maximum(weight[world, old] - share, 0.0)
    weight[world, new] += share
    state = after.own("state")
    state[world, old] = np.where(count[world, old] <= 0, names.EMPTY, state[world, old])
    cold, to = after.own("s.cold_steps"), after.own("s.move_to")
    cold[world, service] = 2
    to[world, service] = -1
    along = columns["s.move_data"][world, service] > 0
    if along.any():
        world, service, target = world[along], service[along], target[along]
        row = settings.pools + service
        slot, region, fail = after.own("slot"), after.own("region"), after.own("s.failover_steps")
        slot[world, row] = target
        region[world, row] = columns["g.region"][world, target]
        fail[world, service] = np.maximum(fail[world, service], 1)


def autoscale(after: State, measured: Array) -> None:
    """Let the autoscalers of services act on what was measured before the step, in a new state.

    Called before time passes, so that what they order and drain is billed like any other.
    """
    columns, settings = after.columns, after.settings
    on = columns["s.autoscale"] > 0
    if not on.any():
        return
    where = Measured(settings)
    busy = measured[:, where.service("cpu_fraction")]
    target = columns["s.autoscale_target"]
    high = on & (busy > target * UPPER)
    low = on & (busy < target * LOWER)
    steps = np.where(low, columns["s.low_steps"] + 1, 0)
    shrink = steps >= STABLE_STEPS
    columns["s.low_steps"] = np.where(shrink, 0, np.minimum(steps, 100)).astype(np.int8)
    for chosen, grow in ((high, True), (shrink, False)):
        world, service = np.nonzero(chosen)
        for slot in range(settings.regions):
            row = service * settings.regions + slot
            count = columns["count"][world, row]
            ordered = sum(
                columns[name][world, row] for name in ("pending_1", "pending_2", "pending_3")
            )
            step = np.maximum(np.floor(count * AUTOSCALE_FRACTION), 1.0)
            if grow:
                vcpu = machines(settings.params.power_model).vcpu[columns["size"][world, row]]
                room = np.floor(columns["quota_vcpu"][world, row] / vcpu) - count - ordered
                add = np.where((ordered > 0) | (count <= 0), 0.0, np.clip(step, 0.0, room))
                after.own("pending_2")[world, row] += np.maximum(add, 0.0)
            else:
                take = np.where(count - step >= 1.0, step, 0.0)
                after.own("count")[world, row] -= take
                after.own("draining")[world, row] += take
