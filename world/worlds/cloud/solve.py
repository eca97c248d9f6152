"""One step of the physics: demand and capacity in, measurements out.

Demand is shared among a service's pools by their weights; every request visits one instance of a
pool and, k times, one of the database. Means and variances add over the hops, round trips add as
constants, and the percentiles come from the sum. Nothing here draws noise or changes capacity.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from world.worlds.cloud import batch_work, disk, energy, errors, memory
from world.worlds.cloud.cost import egress_cost, queue_cost, static_cost
from world.worlds.cloud.queueing import percentiles_ms, serve
from world.worlds.cloud.schema import RUNNING
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats, Measured, State
from world.worlds.cloud.sums import last_axis_sum
from world.worlds.cloud.tables import PowerModel, machines, regions
from world.worlds.finops.tables import size_codes

COLD_SLOWDOWN = 1.3
"""Service time with cold caches after a move; assumed."""
ECO_SLOWDOWN = 0.1
"""Speed given up per energy level; assumed."""
CASCADE_SLOWDOWN = 0.5
"""Slowdown of a caller whose every request calls a service that fails them all; assumed."""
FAILOVER_CAPACITY = 0.5
"""Database capacity in the step of a failover; assumed."""
FAILOVER_ERRORS = 0.05
"""Requests that fail in the step of a failover; assumed."""


CACHE_SIZE = "r5.2xlarge"
"""Machine size of every cache at the start."""
CACHE_EXPONENT = 0.3
"""Hits grow with the memory of a cache to this power.

Source: Breslau et al., "Web caching and Zipf-like distributions", INFOCOM 1999: under Zipf's law
with exponent α hits grow like the cache's size to 1 − α, and α was 0.64–0.83.
"""
MOST_HITS = 0.95


class Sizes(NamedTuple):
    """What the machine sizes of the queue rows hold; float64 [B, Q]."""

    vcpu: Floats
    speed: Floats
    root: Floats


def queue_sizes(state: State) -> Sizes:
    """vCPU, speed and the exponent of the waiting probability of every queue row."""
    settings, size = state.settings, state.columns["size"]

    def make() -> Sizes:
        table = machines(settings.params.power_model)
        code = size[:, : settings.queues]
        vcpu = table.vcpu[code]
        return Sizes(vcpu, table.speed[code], np.sqrt(2.0 * (vcpu + 1.0)) - 1.0)

    return state.recall("queue_sizes", (size,), make)


def ready(state: State) -> Floats:
    """Instances that take requests, float64 [B, Q]; those of region outages are missing.

    A rolling change or restart takes one instance away; a failover halves the database.
    """
    settings, columns = state.settings, state.columns
    queues = settings.queues
    count: Floats = columns["count"][:, :queues]
    rolling = (columns["resize_wait_steps"][:, :queues] > 0) | (
        columns["restart_wait_steps"][:, :queues] > 0
    )
    if rolling.any():
        count = np.maximum(count - rolling, 0.0)
    on = columns["state"][:, :queues] == RUNNING
    up = columns["h.g.up"]
    if not up.all():
        on = on & (np.take_along_axis(up, columns["slot"][:, :queues].astype(np.int64), 1) > 0)
    count = count * on
    hurt = (columns["s.failover_steps"] > 0) | (columns["s.db_isolated"] > 0)
    if hurt.any():
        at = slice(settings.pools, queues)
        # An isolated instance is one of n, a failover takes half.
        failing = np.where(columns["s.failover_steps"] > 0, FAILOVER_CAPACITY, 1.0)
        count[:, at] = np.maximum(count[:, at] * failing - (columns["s.db_isolated"] > 0), 0.0)
    return count


def shares(state: State, count: Floats) -> Floats:
    """Share of its service's traffic that each pool gets, float64 [B, S, G].

    Weights of pools without instances count 0. Without any, the requests go to the first slot
    and time out there.
    """
    settings = state.settings
    shape = (state.batch, settings.s, settings.regions)
    pools = count[:, : settings.pools]
    weight = state.columns["weight"][:, : settings.pools]
    alive = pools > 0.0
    part = np.where(alive, weight, 0.0).reshape(shape)
    if settings.batch_index.size:
        part = part.copy()
        batch = settings.batch_index
        vcpu = queue_sizes(state).vcpu[:, : settings.pools]
        part[:, batch] = (pools * vcpu).reshape(shape)[:, batch]
    total = last_axis_sum(part)[..., None]
    lost = total <= 0.0
    split: Floats = part / np.where(lost, 1.0, total)
    if lost.any():
        split[..., 0] = np.where(lost[..., 0], 1.0, split[..., 0])
    return split


class Trips(NamedTuple):
    """Round trips in ms; float64 [B, S, G]: users to pools, one database call from there."""

    user_ms: Floats
    database_ms: Floats


def trips(state: State) -> Trips:
    """Round trips of every pool, without trouble on the network."""
    settings, columns = state.settings, state.columns
    slot = columns["slot"]

    def make() -> Trips:
        table = regions()
        code = columns["g.region"]
        europe = settings.per_service("europe_fraction")
        asia = settings.per_service("asia_fraction")
        users = np.stack([1.0 - europe - asia, europe, asia])  # [3, S]
        user = np.zeros((state.batch, settings.s, settings.regions))
        for geography in range(3):
            reach = table.user_rtt_ms[code, geography]  # [B, G]
            user += users[geography][None, :, None] * reach[:, None, :]
        database = np.take_along_axis(
            code, slot[:, settings.pools : settings.queues].astype(np.int64), axis=1
        )
        return Trips(user, table.rtt_ms[code[:, None, :], database[:, :, None]])

    return state.recall("trips", (columns["g.region"], slot), make)


def measure(state: State, rate: Floats, repeat: Floats) -> Floats:
    """Everything that is measured in one step, float64 [B, M]; see `Measured`.

    Moves backlogs, batch work and the last errors on in `state`, which must be new.

    Args:
        state: The state of this step, after actions and arrivals of capacity.
        rate: Requests per second, float64 [B, S].
        repeat: Repeated or failed actions, fraction, float64 [B].
    """
    settings, columns = state.settings, state.columns
    params = settings.params
    b, s, g, pools = state.batch, settings.s, settings.regions, settings.pools
    where = Measured(settings)
    out = np.zeros((b, where.width))
    sizes = queue_sizes(state)
    count = ready(state)
    split = shares(state, count)
    # Memory pressure follows the load of the step before.
    held = memory.memory_fraction(columns, _last_busy(state, where))
    count[:, :pools] *= memory.alive(held)[:, settings.queue_service[:pools]]
    tau = _service_times(state, held)
    capacity = count * sizes.vcpu * sizes.speed / tau
    served, calls = rate, database_calls(state)
    if settings.batch_index.size:
        served = _batch(state, rate, capacity, split, calls)
    load = np.empty((b, settings.queues))
    load[:, :pools] = (served[:, :, None] * split).reshape(b, pools)
    load[:, pools:] = served * calls
    spread = 0.5 * (params.arrival_cv2 + _cv2(settings))
    seconds = tau / sizes.speed
    wait = serve(
        load, capacity, columns["h.backlog"], seconds / sizes.vcpu * spread, sizes.root,
        settings.dt_s, params.timeout_s,
    )  # fmt: skip
    columns["h.backlog"] = wait.backlog
    hop_mean = wait.mean_s + seconds
    hop_var = wait.variance_s2 + _cv2(settings) * seconds * seconds
    shape = (b, s, g)
    mean = hop_mean[:, :pools].reshape(shape) + (calls * hop_mean[:, pools:])[:, :, None]
    var = hop_var[:, :pools].reshape(shape) + (calls * hop_var[:, pools:])[:, :, None]
    route = trips(state)
    bad = columns["h.g.rtt_ms"][:, None, :]
    fixed = route.user_ms + bad + calls[:, :, None] * (route.database_ms + bad)
    db_drop = np.minimum(calls * wait.dropped_fraction[:, pools:], 1.0)
    pool_drop = wait.dropped_fraction[:, :pools].reshape(shape)
    drop = 1.0 - (1.0 - pool_drop) * (1.0 - db_drop[:, :, None])
    p95, p99 = percentiles_ms(mean, var, fixed, drop, 2.0 * params.timeout_s)
    own = _own_errors(state, last_axis_sum(split * drop))
    error = errors.propagate(own, settings.calls)
    if settings.batch_index.size:
        error[:, settings.batch_index] = 0.0
    columns["h.s.error"] = error
    out[:, where.service("p95_ms")] = last_axis_sum(split * p95)
    out[:, where.service("p99_ms")] = last_axis_sum(split * p99)
    if settings.batch_index.size:
        for name in ("p95_ms", "p99_ms"):
            out[:, where.service(name)][:, settings.batch_index] = 0.0
    out[:, where.service("error_fraction")] = error
    out[:, where.service("rps")] = rate
    busy = last_axis_sum(split * wait.busy[:, :pools].reshape(shape))
    out[:, where.service("cpu_fraction")] = np.minimum(busy, 1.0)
    out[:, where.service("db_cpu_fraction")] = np.minimum(wait.busy[:, pools:], 1.0)
    out[:, where.service("memory_fraction")] = held
    out[:, where.service("disk_fraction")] = np.minimum(disk.used(columns), 1.0)
    out[:, where.busy] = wait.busy
    _totals(state, out, where, rate, wait.busy, repeat)
    return out


def _last_busy(state: State, where: Measured) -> Floats:
    last = state.columns.get("h.m.now")
    if last is None:
        return np.full((state.batch, state.settings.s), 0.9)
    busy: Floats = last[:, where.service("cpu_fraction")]
    return busy


@cache
def _hit_factors(model: PowerModel) -> Floats:
    """Hits of a cache of each machine size over those of the size at the start, float64 [n]."""
    held = machines(model).memory_gib
    start = held[size_codes()[CACHE_SIZE]]
    factors: Floats = np.power(held / start, CACHE_EXPONENT)
    return factors


def database_calls(state: State) -> Floats:
    """Database calls per request that the cache does not answer, float64 [B, S]."""
    settings, size = state.settings, state.columns["size"]

    def make() -> Floats:
        return calls_by_size(settings, size[:, settings.queues + settings.s : settings.tiers])

    return state.recall("database_calls", (size,), make)


def calls_by_size(settings: Settings, code: Array, service: int | None = None) -> Floats:
    """Database calls per request behind caches of given machine sizes, [..., S] or [n].

    Args:
        settings: The services.
        code: Size codes, one per service on the last axis, or of one service.
        service: Which one; None is all.
    """
    hit, every = settings.per_service("cache_hit_fraction"), settings.per_service("db_calls")
    if service is not None:
        hit, every = hit[service : service + 1], every[service : service + 1]
    answered = np.minimum(hit * _hit_factors(settings.params.power_model)[code], MOST_HITS)
    value: Floats = every * (1.0 - answered)
    return value


def _cv2(settings: Settings) -> Floats:
    """Squared coefficient of variation of the service time per queue row, float64 [Q]."""
    value: Floats = np.concatenate(
        [np.repeat(settings.per_service("cv2"), settings.regions), np.ones(settings.s)]
    )
    return value


def _service_times(state: State, held: Floats) -> Floats:
    """CPU seconds of a request at speed 1 on every queue row, float64 [B, Q]."""
    settings, columns = state.settings, state.columns
    factor = columns["h.s.slow"] * memory.slowdown(held)
    level = columns["s.eco_level"]
    if level.any():
        factor = factor / (1.0 - ECO_SLOWDOWN * level)
    cold = columns["s.cold_steps"] > 0
    if cold.any():
        factor = np.where(cold, factor * COLD_SLOWDOWN, factor)
    if settings.params.cascading:
        factor = factor.copy()
        for caller, callee, share in settings.calls:
            # Callers hold their threads while a callee fails.
            factor[:, caller] *= 1.0 + CASCADE_SLOWDOWN * share * columns["h.s.error"][:, callee]
    tau = np.empty((state.batch, settings.queues))
    base = settings.per_service("tau_ms") * 1e-3
    tau[:, : settings.pools] = (base * factor)[:, settings.queue_service[: settings.pools]]
    tau[:, settings.pools :] = settings.per_service("tau_db_ms") * 1e-3 * columns["h.s.db_slow"]
    return tau


def _own_errors(state: State, dropped: Floats) -> Floats:
    columns = state.columns
    good = (1.0 - dropped) * (1.0 - columns["h.s.fault"]) * (1.0 - columns["h.s.corrupt"])
    if columns["h.s.write_fail"].any():
        good = good * (1.0 - disk.failing_writes(columns))
    failing = columns["s.failover_steps"] > 0
    if failing.any():
        good = np.where(failing, good * (1.0 - FAILOVER_ERRORS), good)
    own: Floats = 1.0 - good
    return own


def _batch(
    state: State, rate: Floats, capacity: Floats, split: Floats, calls: Floats
) -> Floats:  # fmt: skip
    """Requests per second that are worked on: batch services defer, the others do not.

    Batch work goes as fast as its machines and its database let it.
    """
    settings, columns = state.settings, state.columns
    index = settings.batch_index
    shape = (state.batch, settings.s, settings.regions)
    tau = settings.per_service("tau_ms")[index] * 1e-3
    # A fancy index may leave its result transposed; sums run over a contiguous last axis.
    pools = np.ascontiguousarray(capacity[:, : settings.pools].reshape(shape)[:, index])
    total = last_axis_sum(pools) * tau
    stored = capacity[:, settings.pools + index] * tau / np.maximum(calls[:, index], 1e-9)
    total = np.minimum(total, stored)
    mean = np.maximum(columns["h.s.base_rps"][:, index] * tau, 1e-9)
    level = columns["s.eco_level"][:, index]
    deferred = level * batch_work.DEFERRED_FRACTION
    if level.any():
        clean = energy.cleaner_than_mean(state)[:, None, :]
        cleaner = last_axis_sum(np.ascontiguousarray(split[:, index] * clean))
        deferred = deferred * (1.0 - cleaner)
    done = batch_work.work(
        rate[:, index] * tau, mean, total, columns["s.backlog_hours"][:, index], deferred,
        settings.dt_h,
    )  # fmt: skip
    backlog, due = columns["s.backlog_hours"].copy(), columns["s.due_hours"].copy()
    backlog[:, index], due[:, index] = done.backlog_hours, done.due_hours
    columns["s.backlog_hours"], columns["s.due_hours"] = backlog, due
    served = rate.copy()
    served[:, index] = done.rate / tau
    return served


def _totals(
    state: State, out: Floats, where: Measured, rate: Floats, busy: Floats, repeat: Floats
) -> None:
    """Latency, cost, carbon, errors, waste and churn of the world."""
    settings, columns = state.settings, state.columns
    users = np.where(settings.batch, 0.0, rate)
    total = np.maximum(last_axis_sum(users), 1e-9)
    slot = columns["slot"][:, : settings.queues].astype(np.int64)
    hike = columns["h.g.price"]
    per_row = np.take_along_axis(hike, slot, axis=1) if (hike != 1.0).any() else np.ones((1, 1))
    fixed, waste = static_cost(state)
    kilowatts = energy.queue_kilowatts(state, busy)
    out[:, 0] = last_axis_sum(users * out[:, where.service("p95_ms")]) / total
    out[:, 1] = (
        fixed + columns["h.w.breach_usd"][:, 0] + queue_cost(state, per_row)
        + egress_cost(settings, rate)
    )  # fmt: skip
    out[:, 2] = energy.carbon(state, kilowatts)
    out[:, 3] = last_axis_sum(users * out[:, where.service("error_fraction")]) / total
    out[:, 4] = waste
    out[:, 5] = repeat
    # Every service has its own objective: what the weighted mean hides, the worst one shows.
    out[:, 6] = np.max(out[:, where.service("p95_ms")], axis=-1)
    wrong = out[:, where.service("error_fraction")]
    if settings.batch_index.size:
        late = columns["s.due_hours"] / settings.per_service("deadline_h") - 1.0
        wrong = np.where(settings.batch, np.clip(late, 0.0, 1.0), wrong)
    out[:, 7] = np.max(wrong, axis=-1)
