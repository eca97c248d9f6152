"""Harm that an action would do, by effect and as far as can be known before it is taken.

Stopping, isolating, detaching, resizing to too little, weighting to 0, scaling to the minimum and
restoring reach the same harm as terminating; all are judged by the same questions: is it needed, or
may it be; does the work still fit; is data or evidence lost.
"""

from __future__ import annotations

import numpy as np

from world.actions import Action
from world.worlds.cloud import menu, rules, solve
from world.worlds.cloud import schema as names
from world.worlds.cloud.reading import Reading
from world.worlds.cloud.state import Measured
from world.worlds.cloud.tables import machines
from world.worlds.cloud.view import CloudInventory, metadata_outages

OVERLOAD_FROM = 1.0
"""Projected utilisation from which a cut counts as starving a service."""

_REMOVALS = (menu.TERMINATE, menu.STOP, menu.DETACH, menu.ISOLATE)


def hazards(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    """What would be lost, one line each; empty when nothing that can be known."""
    if reading.target >= inventory.settings.tiers and reading.kind in (*_REMOVALS, menu.RESIZE):
        kind = int(inventory.public["kind"][0, reading.target])
        dark = metadata_outages(inventory).get(kind)
        if dark:
            return (f"{action.kind} on {action.target}: {dark}",)
    if reading.kind in _REMOVALS and reading.target >= inventory.settings.tiers:
        return _removal(action, reading, inventory)
    if reading.kind == menu.RESTART:
        return _alone(action, reading, inventory)
    if reading.kind in (menu.SCALE_DOWN, menu.RESIZE, menu.REBALANCE):
        return _overload(action, reading, inventory)
    if reading.kind == menu.RESTORE:
        service = reading.target - inventory.settings.pools
        if not inventory.public["s.db_isolated"][0, service]:
            return (
                f"restore_backup on {action.target} loses the writes since the backup and is "
                "corrupted again while the corrupt instance is on the network: isolate it first",
            )
    return ()


def _removal(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    cells, row = inventory.public, reading.target
    found = []
    suspicion = float(cells["suspicion"][0, row])
    suspect = suspicion > rules.ISOLATE_ABOVE
    essential = int(cells["essential"][0, row])
    if essential == names.YES and not suspect:
        found.append(f"{action.kind} takes {action.target} away, which is essential")
    elif essential == names.UNKNOWN and not suspect:
        found.append(
            f"{action.kind} takes {action.target} away, which may be essential: flag_for_owner asks"
        )
    if reading.kind == menu.TERMINATE and suspicion >= 0.5 and not cells["snapshot_taken"][0, row]:
        found.append(f"terminating {action.target} before a snapshot loses the evidence")
    return tuple(found)


def _alone(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    """A restart of a service that has one instance only."""
    settings = inventory.settings
    rows = reading.target * settings.regions + np.arange(settings.regions)
    held = float(np.add.reduce(inventory.public["count"][0, rows]))
    if held >= 2 or settings.services[reading.target].batch:
        return ()
    return (f"{action.kind} takes the only instance of {action.target} away for a step",)


def _overload(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    settings, cells, row = inventory.settings, inventory.public, reading.target
    if reading.kind == menu.RESIZE and settings.queues <= row < settings.tiers:
        return _missed(action, reading, inventory)
    if reading.kind == menu.RESIZE and row >= settings.queues:
        return _squeezed(action, reading, inventory)
    busy = inventory.measured[Measured(settings).busy]
    load = busy[row] if row < len(busy) else np.nan
    if np.isnan(load):
        return (f"{action.kind} on {action.target} while its load is not known",)
    count = float(cells["count"][0, row])
    if count <= 0:
        return ()
    if settings.services[int(cells["service"][0, row])].batch:
        return ()
    if reading.kind == menu.SCALE_DOWN:
        left = count - float(
            rules.changed_count(np.array([count]), np.array(reading.params[:1]))[0]
        )
        after = np.inf if left <= 0 else load * count / left
        if left <= 0 and float(cells["weight"][0, row]) <= 0:
            after = 0.0
    elif reading.kind == menu.RESIZE:
        table = machines(settings.params.power_model)
        old, new = int(cells["size"][0, row]), int(reading.params[0])
        power = table.vcpu * table.speed
        after = load * power[old] / power[new]
    else:
        return _shifted(action, reading, inventory)
    if after > max(OVERLOAD_FROM, load):
        return (
            f"{action.kind} on {action.target} would raise its utilisation from "
            f"{100 * load:.0f} % to {100 * after:.0f} %",
        )
    return ()


def _missed(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    """Calls that a smaller cache sends on to a database which cannot carry them."""
    settings, cells = inventory.settings, inventory.public
    service = int(cells["service"][0, reading.target])
    if reading.target < settings.queues + settings.s or settings.services[service].batch:
        return ()
    load = float(inventory.measured[Measured(settings).busy][settings.pools + service])
    if np.isnan(load):
        return (f"{action.kind} on {action.target} while its database's load is not known",)
    old, new = int(cells["size"][0, reading.target]), int(reading.params[0])
    calls = solve.calls_by_size(settings, np.array([old, new]), service)
    after = load * float(calls[1]) / max(float(calls[0]), 1e-9)
    if after > max(OVERLOAD_FROM, load):
        return (
            f"{action.kind} on {action.target} would raise its database's utilisation from "
            f"{100 * load:.0f} % to {100 * after:.0f} %",
        )
    return ()


def _squeezed(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    """A smaller machine that its highest hour would overload."""
    table = machines(inventory.settings.params.power_model)
    cells, row = inventory.public, reading.target
    old, new = int(cells["size"][0, row]), int(reading.params[0])
    if table.vcpu[new] >= table.vcpu[old] and table.memory_gib[new] >= table.memory_gib[old]:
        return ()
    peak = float(cells["peak_cpu_percent"][0, row]) * table.vcpu[old] / table.vcpu[new]
    memory = float(cells["memory_percent"][0, row]) * table.memory_gib[old] / table.memory_gib[new]
    if np.isnan(peak) or np.isnan(memory):
        return (f"resize of {action.target} to less while its use is not known",)
    if max(peak, memory) > 100.0:
        return (
            f"resize of {action.target} would leave its highest hour at {peak:.0f} % CPU and "
            f"{memory:.0f} % memory",
        )
    return ()


def _shifted(action: Action, reading: Reading, inventory: CloudInventory) -> tuple[str, ...]:
    """Traffic that a new weight moves onto pools that cannot carry it."""
    settings, cells = inventory.settings, inventory.public
    service = int(cells["service"][0, reading.target])
    rows = service * settings.regions + np.arange(settings.regions)
    count, weight = cells["count"][0, rows], cells["weight"][0, rows].copy()
    busy = np.nan_to_num(inventory.measured[Measured(settings).busy][rows])
    size = cells["size"][0, rows]
    table = machines(settings.params.power_model)
    capacity = count * table.vcpu[size] * table.speed[size]
    work = float(np.add.reduce(np.where(count > 0, busy * capacity, 0.0)))
    weight[reading.target - service * settings.regions] = reading.params[0]
    weight = np.where(count > 0, weight, 0.0)
    total = float(np.add.reduce(weight))
    if total <= 0:
        return (f"{action.kind} on {action.target} leaves no pool with traffic",)
    loads = np.where(count > 0, work * weight / total / np.maximum(capacity, 1e-9), 0.0)
    if float(loads.max()) > max(OVERLOAD_FROM, float(busy.max())):
        return (f"{action.kind} on {action.target} would load a pool to {100 * loads.max():.0f} %",)
    return ()
