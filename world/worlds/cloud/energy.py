"""Watts and carbon: piecewise linear machines, storage, cooling, and the grid's hour.

W = count·interpolate(0, 50, 100 % CPU)·(1 − 0.12·level) + storage; kg/day = kW·PUE·g/kWh·24/1000.
The intensity of a grid is its yearly mean times the profile of the hour, interpolated between
hours; a scenario may bring hours of its own. Embodied carbon, where a scenario counts it, spreads
the making of a machine over four years.

Source: Cloud Carbon Footprint methodology (storage 1.2 W/TB solid state, 0.65 W/TB disk, replicas
2 for block volumes and 3 for the rest; PUE 1.135); hourly profiles: EIA-930 by way of dc-rl.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud import schema as names
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.tables import PUE, machines

ECO_WATTS = 0.12
"""Watts saved per energy level; assumed (frequency limits and idle states)."""

WATTS_PER_TB = {names.VOLUME: 1.2 * 2, names.SNAPSHOT: 0.65 * 3, names.BUCKET: 0.65 * 3}
"""Storage with its replicas."""

EMBODIED_KG_PER_VCPU = 14.0
"""Making of a server's share, kgCO2e per vCPU; mean of the CCF instance table, assumed."""
LIFE_DAYS = 4 * 365.0


def interpolated_watts(points: Floats, busy: Floats) -> Floats:
    """Power of one machine, W.

    Args:
        points: float64 [..., 3], watts at 0, 50 and 100 % CPU.
        busy: float64 [...], CPU as a fraction, 0–1.
    """
    low = points[..., 0] + (points[..., 1] - points[..., 0]) * np.minimum(busy, 0.5) * 2.0
    watts: Floats = low + (points[..., 2] - points[..., 1]) * np.maximum(busy - 0.5, 0.0) * 2.0
    return watts


def static_kilowatts(after: State) -> Floats:
    """Power of the rows that are no queue, per region slot, kW, float64 [B, G]."""

    def make() -> Floats:
        settings, columns = after.settings, after.columns
        rows = slice(settings.queues, settings.rows)
        table = machines(settings.params.power_model)
        kind, state = columns["kind"][:, rows], columns["state"][:, rows]
        busy = np.nan_to_num(columns["h.cpu_percent"][:, rows]) / 100.0
        busy = np.where(kind == names.CACHE, 0.3, busy)
        busy = np.where(columns["h.compromised"][:, rows] > 0, 0.95, busy)
        watts = interpolated_watts(table.watts[columns["size"][:, rows]], busy)
        running = (state == names.RUNNING) | (state == names.ISOLATED)
        per_tb = np.zeros(len(names.KINDS))
        for code, value in WATTS_PER_TB.items():
            per_tb[code] = value
        watts = watts * columns["count"][:, rows] * running
        watts = watts + per_tb[kind] * columns["size_gb"][:, rows] / 1000.0
        watts = np.where(state == names.TERMINATED, 0.0, watts)
        slot = columns["slot"][:, rows]
        return np.stack(
            [
                np.add.reduce(np.where(slot == g, watts, 0.0), axis=-1) / 1000.0
                for g in range(settings.regions)
            ],
            axis=-1,
        )

    return after.recall("static_kilowatts", (after.extras,), make)


def queue_kilowatts(after: State, busy: Floats) -> Floats:
    """Power of pools and databases, kW, float64 [B, Q].

    Args:
        after: The state.
        busy: Utilisation, float64 [B, Q].
    """
    settings, columns = after.settings, after.columns
    size = columns["size"]
    idle, half, full = after.recall(
        "queue_watts",
        (size,),
        lambda: tuple(
            np.ascontiguousarray(
                machines(settings.params.power_model).watts[size[:, : settings.queues], point]
            )
            for point in range(3)
        ),
    )
    cpu = np.minimum(busy, 1.0)
    watts = idle + (half - idle) * np.minimum(cpu, 0.5) * 2.0
    watts = watts + (full - half) * np.maximum(cpu - 0.5, 0.0) * 2.0
    level = columns["s.eco_level"]
    if level.any():
        saved = 1.0 - ECO_WATTS * level[:, settings.queue_service]
        saved[:, settings.pools :] = 1.0
        watts = watts * saved
    on = columns["count"][:, : settings.queues] + columns["draining"][:, : settings.queues]
    kilowatts: Floats = watts * on / 1000.0
    return kilowatts


def grid_g_per_kwh(after: State) -> Floats:
    """Intensity of every slot's grid now, without dirty spells, g/kWh, float64 [B, G]."""
    mean, profile = after.settings.grid
    code, hours = after.columns["g.region"], profile.shape[1]
    hour = after.hour % float(hours)
    first = np.floor(hour)
    at = first.astype(np.int64)[:, None]
    part = (hour - first)[:, None]
    factor = profile[code, at] * (1.0 - part) + profile[code, (at + 1) % hours] * part
    value: Floats = mean[code] * factor
    return value


def cleaner_than_mean(after: State) -> Array:
    """Whether each slot's grid is no dirtier than its daily mean now, bool [B, G]."""
    mean, _ = after.settings.grid
    clean: Array = grid_g_per_kwh(after) <= mean[after.columns["g.region"]] * 1.000001
    return clean


def carbon(after: State, queue_kw: Floats) -> Floats:
    """Run-rate of carbon, kgCO2e a day, float64 [B].

    Args:
        after: The state.
        queue_kw: Power of pools and databases, kW, float64 [B, Q].
    """
    settings, columns = after.settings, after.columns
    b, s, g = after.batch, settings.s, settings.regions
    per_slot = static_kilowatts(after).copy()
    pools = queue_kw[:, : settings.pools].reshape(b, s, g)
    for service in range(s):
        per_slot += pools[:, service]
    slot = columns["slot"][:, settings.pools : settings.queues]
    database = queue_kw[:, settings.pools :]
    for place in range(g):
        per_slot[:, place] += np.add.reduce(np.where(slot == place, database, 0.0), axis=-1)
    grams = grid_g_per_kwh(after) * columns["h.g.ci"]
    total: Floats = np.add.reduce(per_slot * grams, axis=-1) * (PUE * 24.0 / 1000.0)
    if settings.params.embodied:
        total = total + embodied(settings, columns)
    return total


def embodied(settings: Settings, columns: dict[str, Array]) -> Floats:
    """Carbon of making the machines of pools and databases, kgCO2e a day, float64 [B]."""
    rows = slice(0, settings.queues)
    vcpu = machines(settings.params.power_model).vcpu[columns["size"][:, rows]]
    per_day = EMBODIED_KG_PER_VCPU / LIFE_DAYS
    total: Floats = np.add.reduce(columns["count"][:, rows] * vcpu, axis=-1) * per_day
    return total
