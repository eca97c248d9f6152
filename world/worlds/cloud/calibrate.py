"""Start values: every seed begins where its preset says, within 5 %.

The numbers of a generated world are solved for, all seeds of a batch together and with a fixed
number of iterations, so that a seed's world does not depend on its batch: the load by bisection on
the traffic-weighted p95, the fleet on carbon, storage on cost, and the size of what is wasted, of
which idle machines may be given a share.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud import demand
from world.worlds.cloud.archetypes import ARCHETYPES
from world.worlds.cloud.cost import row_costs
from world.worlds.cloud.generate import fleets
from world.worlds.cloud.schema import RUNNING
from world.worlds.cloud.solve import measure
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.tables import machines

ROUNDS = 6
"""Rounds of fleet and storage between two bisections of the load; there are two such halves."""
BISECTIONS = 22
MOST_OF_STORAGE = 0.85
"""Share of the storage that may be waste."""
LEAST_STORED = 0.005
"""Share of the cost that is left for storage, for which idle machines make place."""
_LEAST_STORAGE, _MOST_STORAGE = 0.005, 400.0
_OVERSIZED = np.array([a.oversized for a in ARCHETYPES])
_WASTE = np.array([a.role == "waste" and not a.oversized for a in ARCHETYPES])


def calibrate(state: State) -> None:
    """Solve load, fleet and storage of freshly generated worlds, in place."""
    settings, columns = state.settings, state.columns
    start = settings.params.start
    b = state.batch
    gigabytes = columns["size_gb"].copy()
    waste = np.zeros_like(gigabytes, dtype=bool)
    extra = slice(settings.tiers, settings.rows)
    waste[:, extra] = _WASTE[columns["h.archetype"][:, extra]]
    _idle_machines(state, waste)
    fleet = np.full(b, start.cost_usd_per_hour * 0.17)
    kept, wasted = np.ones(b), np.ones(b)

    def place() -> None:
        columns["size_gb"] = gigabytes * np.where(waste, wasted[:, None], kept[:, None])
        state.extras = object()

    fleets(settings, columns, fleet)
    for _ in range(2):
        load = _load(state)
        for _ in range(ROUNDS):
            _set_load(state, load)
            now = _now(state)
            # Carbon answers to the fleet; what does not move with it is measured without one.
            other = _carbon_without_fleet(state)
            dynamic = np.maximum(now[:, 2] - other, 1e-6)
            fleet = fleet * np.clip((start.carbon_kg_per_day - other) / dynamic, 0.4, 2.5)
            fleets(settings, columns, fleet)
            _set_load(state, load)
            now = _now(state)
            kept, wasted = _storage(state, gigabytes, waste, kept, wasted, now)
            _fewer_machines(state, waste, now)
            place()
    _set_load(state, _load(state))
    kept, wasted = _storage(state, gigabytes, waste, kept, wasted, _now(state))
    place()


def _idle_machines(state: State, waste: Array) -> None:
    """Scale the idle machines to their share of the waste, whole machines and one at least."""
    settings, columns = state.settings, state.columns
    params = settings.params
    if not params.waste_machine_fraction:
        return
    per_row = row_costs(settings, columns)
    idle = _idle(state, waste)
    cost = np.add.reduce(np.where(idle, per_row, 0.0), axis=-1)
    wasted = params.start.cost_usd_per_hour * params.waste_fraction
    # Half of an oversized machine is waste as well.
    extra = slice(settings.tiers - settings.queues, None)
    large = _OVERSIZED[columns["h.archetype"][:, settings.tiers :]]
    wasted = wasted - 0.5 * np.add.reduce(np.where(large, per_row[:, extra], 0.0), axis=-1)
    scale = wasted * params.waste_machine_fraction / np.maximum(cost, 1e-9)
    _scale(state, idle, scale)


def _idle(state: State, waste: Array) -> Array:
    """Rows that are no queue and hold idle machines, bool [B, R − Q]."""
    settings, columns = state.settings, state.columns
    rows = slice(settings.queues, settings.rows)
    machine = (columns["size"][:, rows] > 0) & (columns["state"][:, rows] == RUNNING)
    found: Array = waste[:, rows] & machine
    return found


def _scale(state: State, idle: Array, scale: Floats) -> None:
    rows = slice(state.settings.queues, state.settings.rows)
    count = state.columns["count"][:, rows]
    scaled = np.maximum(np.floor(count * scale[:, None] + 0.5), 1.0)
    state.columns["count"][:, rows] = np.where(idle, scaled, count)


def _fewer_machines(state: State, waste: Array, now: Floats) -> None:
    """Take idle machines away where the cost is above the preset's and storage has no more."""
    params = state.settings.params
    if not params.waste_machine_fraction:
        return
    idle, per_row = _idle(state, waste), row_costs(state.settings, state.columns)
    cost = np.add.reduce(np.where(idle, per_row, 0.0), axis=-1)
    rows = slice(state.settings.queues, state.settings.rows)
    stored = state.columns["size_gb"][:, rows] > 0
    storage = np.add.reduce(np.where(stored, per_row, 0.0), axis=-1)
    over = now[:, 1] - storage - (1.0 - LEAST_STORED) * params.start.cost_usd_per_hour
    over = np.clip(over / np.maximum(cost, 1e-9), 0.0, 0.3)
    _scale(state, idle, 1.0 - over)


def _now(state: State) -> Floats:
    """Measurements at the start, float64 [B, M], leaving no trace in the state."""
    trial = state.follow()
    rate = demand.regular(trial.settings, trial.columns, trial.hour)
    return measure(trial, rate, np.zeros(trial.batch))


def _set_load(state: State, load: Floats) -> None:
    """Mean demand that makes the start's demand `load` times the capacity, float64 [B]."""
    settings, columns = state.settings, state.columns
    table = machines(settings.params.power_model)
    home = np.arange(settings.s) * settings.regions
    size = columns["size"][:, home]
    capacity = columns["count"][:, home] * table.vcpu[size] * table.speed[size]
    capacity = capacity / (settings.per_service("tau_ms") * 1e-3)
    rate: Floats = (
        capacity
        * settings.per_service("load")
        * np.where(settings.batch, np.minimum(load, 1.0)[:, None], load[:, None])
    )
    hour = state.hour
    factor = demand.daily(settings, columns, hour) * demand.weekday(columns, hour)
    factor = np.where(settings.batch, 1.0 + 0.0 * factor, factor)
    if settings.trace is not None:
        factor = np.where(settings.traced, settings.trace[0], factor)
    columns["h.s.base_rps"] = rate / factor


def _load(state: State) -> Floats:
    """Load at which the traffic-weighted p95 is the preset's, by bisection, float64 [B]."""
    low, high = np.full(state.batch, 0.3), np.full(state.batch, 1.2)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        _set_load(state, middle)
        slow = _now(state)[:, 0] > state.settings.params.start.latency_ms
        high = np.where(slow, middle, high)
        low = np.where(slow, low, middle)
    found: Floats = 0.5 * (low + high)
    return found


def _carbon_without_fleet(state: State) -> Floats:
    """Carbon of everything that does not scale with the fleet, kg/day, float64 [B]."""
    trial = state.follow()
    count = trial.own("count")
    count[:, : state.settings.queues] = 0.0
    trial.columns["h.s.base_rps"] = np.zeros_like(trial.columns["h.s.base_rps"])
    carbon: Floats = measure(trial, trial.columns["h.s.base_rps"], np.zeros(trial.batch))[:, 2]
    return carbon


def _storage(
    state: State, gigabytes: Array, waste: Array, kept: Floats, wasted: Floats, now: Floats
) -> tuple[Floats, Floats]:
    """Scales of needed and of wasted storage that bring the cost to the preset's."""
    settings, columns = state.settings, state.columns
    cost = np.zeros((2, state.batch))
    rows = slice(settings.queues, settings.rows)
    per_row = row_costs(settings, columns)
    stored = gigabytes[:, rows] > 0
    idle = waste[:, rows]
    cost[0] = np.add.reduce(np.where(stored & ~idle, per_row, 0.0), axis=-1)
    cost[1] = np.add.reduce(np.where(stored & idle, per_row, 0.0), axis=-1)
    idle_machines = np.add.reduce(np.where(~stored & idle, per_row, 0.0), axis=-1)
    target = settings.params.start.cost_usd_per_hour
    aim = np.maximum(target * settings.params.waste_fraction - idle_machines, target * 0.02)
    other = now[:, 1] - cost[0] - cost[1]
    # Where machines alone cost nearly as much as the preset, both kinds of storage shrink.
    room = np.maximum(target - other, target * 0.01)
    aim = np.minimum(aim, MOST_OF_STORAGE * room)
    new_wasted = wasted * aim / np.maximum(cost[1], 1e-9)
    new_kept = kept * (room - aim) / np.maximum(cost[0], 1e-9)
    return (
        np.clip(new_kept, _LEAST_STORAGE, _MOST_STORAGE),
        np.clip(new_wasted, _LEAST_STORAGE, _MOST_STORAGE),
    )


def first_measurement(state: State) -> None:
    """Measure step 0 and fill the history with it, in place."""
    trial = state.follow()
    rate = demand.regular(trial.settings, trial.columns, trial.hour)
    out = measure(trial, rate, np.zeros(trial.batch))
    state.columns["h.backlog"] = trial.columns["h.backlog"]
    state.columns["h.s.error"] = trial.columns["h.s.error"]
    for name in ("h.m.now", "h.m.before", "h.m.earlier"):
        state.columns[name] = out.copy()
