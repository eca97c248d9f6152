"""Incidents: drawn at reset, hidden, with one right remedy and a tempting wrong one.

Onset, cause, place, severity and whether the alert names a victim instead of the root are functions
of the seed and the inventory at the start. An incident whose target is gone when it would begin is
moot; it is never aimed anew. What an incident does stands in hidden factors of services, regions
and rows; whatever brings a factor back to normal has cured it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.worlds.cloud import disk
from world.worlds.cloud import schema as names
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats, Measured, State

_CHANNEL = noise.channel("cloud.incident")
_CHANNEL_2 = noise.channel("cloud.incident.place")

NEVER = 1_000_000
ALERT_ON_VICTIM = 0.5
"""Odds that the alert is raised on a caller of the root. Source: alerts fire where users are."""
MINER_EGRESS_USD = 6.0
"""What a crypto-miner sends out, $/h; assumed."""
UNSATURATED_BELOW = 0.9
"""Utilisation below which a database is no longer saturated."""
FIGHT_EVERY_STEPS = 2
FIGHT_FRACTION = 0.1
"""A second controller takes this share of a pool every so many steps; assumed."""

_USER = (
    names.SPIKE, names.LEAK, names.BAD_DEPLOY, names.DB_SATURATION, names.FAILURE,
    names.CORRUPTION, names.DISK_FULL, names.FIGHT, names.RECLAIM,
)  # fmt: skip
_REGIONAL = (names.NETWORK, names.OUTAGE, names.PRICE_HIKE, names.CI_SPIKE)
_TIMED = {
    names.SPIKE: 12, names.NETWORK: 12, names.OUTAGE: 4, names.PRICE_HIKE: 18, names.CI_SPIKE: 12,
    names.BLIND: 4,
}  # fmt: skip
_WEIGHTS = np.array([1.6, 1.2, 1.2, 1.0, 0.6, 1.0, 0.5, 0.6, 0.8, 0.6, 0.25, 0.4, 0.4, 0.4, 0.5])
"""How often each cause occurs, in the order of `schema.CAUSES`; assumed."""

PERFORMANCE = (names.SPIKE, names.NETWORK, names.RECLAIM, names.OUTAGE)
"""Causes that count as cured when the service holds its objectives in spite of them."""


def draw(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """Write the incidents of an episode into freshly generated columns."""
    n = settings.params.incidents
    if not n:
        columns["h.i.status"][...] = names.MOOT
        return
    which = np.arange(n, dtype=np.uint32)
    u = noise.uniforms(seeds[:, None], which[None, :], _CHANNEL, 0)
    v = noise.uniforms(seeds[:, None], which[None, :], _CHANNEL_2, 0)
    cause = np.searchsorted(np.cumsum(_WEIGHTS) / _WEIGHTS.sum(), u[0]).astype(np.int8)
    cause = np.minimum(cause, len(names.CAUSES) - 1)
    horizon = settings.scenario.horizon
    if settings.params.overlapping:
        onset = 2 + np.floor(u[1] * max(1.0, 0.8 * horizon))
        window = np.full_like(onset, horizon)
    else:
        window = np.full_like(u[1], horizon / n)
        onset = 2 + np.floor(window * (which + 0.5 * u[1]))
    length = np.full(len(names.CAUSES), NEVER)
    for code, steps in _TIMED.items():
        length[code] = steps
    end = onset + length[cause]
    if not settings.params.overlapping:
        end = np.where(length[cause] < NEVER, np.minimum(end, onset + np.floor(window * 0.5)), end)
    user = np.isin(cause, _USER)
    people = np.flatnonzero(~settings.batch)
    service = people[np.minimum(v[0] * len(people), len(people) - 1).astype(np.int64)]
    columns["h.i.cause"][...] = cause
    columns["h.i.onset"][...] = onset
    columns["h.i.end"][...] = np.minimum(end, NEVER)
    columns["h.i.service"][...] = np.where(user, service, -1)
    columns["h.i.slot"][...] = np.where(np.isin(cause, _REGIONAL), 0, -1)
    columns["h.i.severity"][...] = u[2]
    columns["h.i.victim"][...] = np.where(user, _victims(settings, service, v[1]), -1)
    columns["h.i.row"][...] = np.where(cause == names.BREACH, _boxes(settings, columns, v[2]), -1)


def _victims(settings: Settings, service: Array, coin: Floats) -> Array:
    """Where the alert is raised: at a caller with probability one half, where there is one."""
    caller = np.full(settings.s, -1)
    for one, callee, _ in settings.calls:
        caller[callee] = one
    has = caller[service]
    victim: Array = np.where((coin < ALERT_ON_VICTIM) & (has >= 0), has, service)
    return victim


def _boxes(settings: Settings, columns: dict[str, Array], u: Floats) -> Array:
    """A running machine outside the tiers for each incident; -1 where there is none."""
    block = slice(settings.tiers, settings.rows)
    fit = (
        (columns["kind"][:, block] == names.COMPUTE)
        & (columns["state"][:, block] == names.RUNNING)
        & (columns["protected"][:, block] == 0)
    )
    number = np.add.reduce(fit, axis=-1)[:, None]
    nth = np.minimum(np.floor(u * number), number - 1)
    rank = np.cumsum(fit, axis=-1) - 1
    chosen = fit[:, None, :] & (rank[:, None, :] == nth[:, :, None])
    row: Array = np.where(number > 0, settings.tiers + np.argmax(chosen, axis=-1), -1)
    return row


def progress(after: State) -> None:
    """Begin what is due and end what is over, in a new state, before the step's demand."""
    columns = after.columns
    status = columns["h.i.status"]
    due = (status == names.AHEAD) & (columns["h.i.onset"] <= after.step)
    # A cured incident of limited time still ends: the spike that was absorbed goes away.
    lasting = (status == names.ACTIVE) | (status == names.CURED)
    over = lasting & (columns["h.i.end"] == after.step)
    if due.any():
        world, at = np.nonzero(due)
        gone = _target_gone(after, world, at)
        after.own("h.i.status")[world, at] = np.where(gone, names.MOOT, names.ACTIVE)
        _switch(after, world[~gone], at[~gone], True)
        _alert(after, world[~gone], at[~gone])
    if over.any():
        world, at = np.nonzero(over)
        now = after.own("h.i.status")
        now[world, at] = np.where(now[world, at] == names.ACTIVE, names.OVER, now[world, at])
        _switch(after, world, at, False)
    fight = columns["h.s.fight"] > 0
    if fight.any() and after.step % FIGHT_EVERY_STEPS == 0:
        _fight(after, fight)


def _target_gone(after: State, world: Array, at: Array) -> Array:
    columns, settings = after.columns, after.settings
    service, row = columns["h.i.service"][world, at], columns["h.i.row"][world, at]
    pools = columns["count"][:, : settings.pools].reshape(-1, settings.s, settings.regions)
    empty = np.add.reduce(pools, axis=-1)[world, np.maximum(service, 0)] <= 0
    dead = columns["state"][world, np.maximum(row, 0)] != names.RUNNING
    breach = columns["h.i.cause"][world, at] == names.BREACH
    gone: Array = ((service >= 0) & empty) | (breach & ((row < 0) | dead))
    return gone


def _alert(after: State, world: Array, at: Array) -> None:
    victim = after.columns["h.i.victim"][world, at]
    known = victim >= 0
    after.own("s.alert_step")[world[known], victim[known]] = after.step


def _switch(after: State, world: Array, at: Array, on: bool) -> None:
    """Set the hidden factors of incidents, or set them back."""
    columns = after.columns
    cause, severity = columns["h.i.cause"][world, at], columns["h.i.severity"][world, at]
    service = columns["h.i.service"][world, at].astype(np.intp)
    slot = columns["h.i.slot"][world, at].astype(np.intp)
    row = columns["h.i.row"][world, at].astype(np.intp)

    def put(code: int, name: str, place: Array, value: Floats, normal: float) -> None:
        hit = cause == code
        if hit.any():
            after.own(name)[world[hit], place[hit]] = value[hit] if on else normal

    put(names.SPIKE, "h.s.spike", service, 1.2 + 0.5 * severity, 1.0)
    put(names.LEAK, "h.s.leak_per_h", service, 0.15 + 0.35 * severity, 0.0)
    if on:
        # The release that leaks starts fresh processes: memory fills from its base.
        put(names.LEAK, "h.s.memory_age_h", service, np.zeros_like(severity), 0.0)
    put(names.BAD_DEPLOY, "h.s.slow", service, 1.3 + 0.5 * severity, 1.0)
    put(names.DB_SATURATION, "h.s.db_slow", service, 1.7 + 0.8 * severity, 1.0)
    put(names.NETWORK, "h.g.rtt_ms", slot, 40.0 + 80.0 * severity, 0.0)
    put(names.FAILURE, "h.s.fault", service, 0.2 + 0.6 * severity, 0.0)
    put(names.CORRUPTION, "h.s.corrupt", service, 0.05 + 0.25 * severity, 0.0)
    put(names.CORRUPTION, "h.s.corrupt_step", service, np.full_like(severity, after.step), -1.0)
    put(names.DISK_FULL, "h.s.write_fail", service, 0.05 + 0.25 * severity, 0.0)
    junk = disk.junk_that_fills(columns, severity, world, np.maximum(service, 0))
    put(names.DISK_FULL, "h.s.disk_junk", service, junk, 0.0)
    put(names.OUTAGE, "h.g.up", slot, np.zeros_like(severity), 1.0)
    put(names.PRICE_HIKE, "h.g.price", slot, 1.1 + 0.2 * severity, 1.0)
    put(names.CI_SPIKE, "h.g.ci", slot, 1.2 + 0.5 * severity, 1.0)
    put(names.FIGHT, "h.s.fight", service, np.ones_like(severity), 0.0)
    put(names.BREACH, "h.compromised", row, np.ones_like(severity), 0.0)
    if on:
        _begin_once(after, world, at, cause, severity, service)
    breach = cause == names.BREACH
    if breach.any():
        after.own("h.w.breach_usd")[world[breach], 0] = (
            MINER_EGRESS_USD * (1 + severity[breach]) if on else 0.0
        )
        cpu, shown = after.own("h.cpu_percent"), after.own("cpu_percent")
        if on:
            cpu[world[breach], row[breach]] = shown[world[breach], row[breach]] = 96.0
        after.extras = object()


def _begin_once(
    after: State, world: Array, at: Array, cause: Array, severity: Floats, service: Array
) -> None:
    """What happens once: reclaimed machines and measurements that go dark."""
    reclaim = cause == names.RECLAIM
    if reclaim.any():
        count = after.own("count")
        row = service[reclaim] * after.settings.regions
        held = count[world[reclaim], row]
        lost = np.floor(held * (0.1 + 0.15 * severity[reclaim]))
        count[world[reclaim], row] = np.maximum(held - lost, np.minimum(held, 1.0))
    blind = cause == names.BLIND
    if blind.any():
        end = after.columns["h.i.end"][world[blind], at[blind]]
        after.own("h.w.blind_until")[world[blind], 0] = end


def _fight(after: State, fight: Array) -> None:
    """Another controller takes instances away."""
    world, service = np.nonzero(fight)
    row = service * after.settings.regions
    count, draining = after.own("count"), after.own("draining")
    held = count[world, row]
    lost = np.where(held >= 4, np.floor(held * FIGHT_FRACTION), 0.0)
    count[world, row] -= lost
    draining[world, row] += lost


def settle(after: State, measured: Floats) -> None:
    """Mark as cured what no longer harms, after the step was measured."""
    columns, settings = after.columns, after.settings
    active = columns["h.i.status"] == names.ACTIVE
    if not active.any():
        return
    world, at = np.nonzero(active & (columns["h.i.onset"] < after.step))
    if not world.size:
        return
    cause = columns["h.i.cause"][world, at]
    service = np.maximum(columns["h.i.service"][world, at], 0).astype(np.intp)
    row = np.maximum(columns["h.i.row"][world, at], 0).astype(np.intp)
    normal = np.zeros(len(world), dtype=np.bool_)
    for code, name, value in (
        (names.LEAK, "h.s.leak_per_h", 0.0), (names.BAD_DEPLOY, "h.s.slow", 1.0),
        (names.FAILURE, "h.s.fault", 0.0), (names.CORRUPTION, "h.s.corrupt", 0.0),
        (names.FIGHT, "h.s.fight", 0.0),
    ):  # fmt: skip
        normal |= (cause == code) & (columns[name][world, service] == value)
    normal |= (cause == names.DISK_FULL) & (disk.used(columns)[world, service] < 1.0)
    stopped = columns["state"][world, row] != names.RUNNING
    normal |= (cause == names.BREACH) & stopped
    where = Measured(settings)
    p95 = measured[:, where.service("p95_ms")]
    error = measured[:, where.service("error_fraction")]
    fine = (p95 < settings.params.slo_p95_ms) & (error < settings.params.slo_error_fraction)
    all_fine: Array = np.all(fine | settings.batch, axis=-1)
    held = np.where(columns["h.i.service"][world, at] >= 0, fine[world, service], all_fine[world])
    normal |= np.isin(cause, PERFORMANCE) & held
    database = measured[:, where.service("db_cpu_fraction")][world, service]
    normal |= (cause == names.DB_SATURATION) & (database < UNSATURATED_BELOW)
    if not normal.any():
        return
    world, at = world[normal], at[normal]
    after.own("h.i.status")[world, at] = names.CURED
    after.own("h.i.cured_step")[world, at] = after.step
    breach = columns["h.i.cause"][world, at] == names.BREACH
    if breach.any():
        after.own("h.w.breach_usd")[world[breach], 0] = 0.0
