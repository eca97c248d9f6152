"""What the measurements of a step tell: readings of demand, errors, round trips, dollars, carbon.

Each kind of measurement is compared with what the physics of the step explain and moves the odds of
what it can tell of, and of nothing else. A measurement that is missing moves nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from world.worlds.cloud import errors, incidents, memory, solve
from world.worlds.cloud import schema as names
from world.worlds.cloud.cost import egress_cost
from world.worlds.cloud.filter import Filter, posterior_of
from world.worlds.cloud.frame import POINTS, echo, kilograms, queue_dollars
from world.worlds.cloud.posterior import GRID, SEVERITIES
from world.worlds.cloud.state import Floats, Measured
from world.worlds.cloud.tracks import (
    MODEL_SD,
    Readings,
    Track,
    daily_log,
    effects,
    filled,
    memory_of,
    remembered,
    weighed,
)

_LEAST_ERROR = 1e-5  # smaller fractions of errors are all alike
_HALF_STEP = 0.0105  # half of the step between two strengths of a failure, fraction of requests
_OUT = 2.0  # utilisation that is reported of a queue that serves nothing
_SURE = 60.0
_MAX_SURPRISE = 30.0
_ODD = 6.0  # a response time has many causes
_STEEP = 0.35  # change of a log response time per deviation up to which it tells of the network


def measured(now: Filter, values: Floats) -> Filter:
    """After the measurements of the step that the belief is about; NaN is missing.

    Args:
        now: The belief before.
        values: float64 [M], see `Measured`.
    """
    settings = now.at.view.settings
    where = Measured(settings)
    arrived = ~np.isnan(values[where.service("p95_ms")]).all() or ~np.isnan(values[:4]).all()
    if not arrived:
        return replace(now, dark_since=now.step if now.dark_since < 0 else now.dark_since)
    now = replace(now, dark_since=-1)
    busy = values[where.busy]
    now = _outage(now, busy)
    if now.spells[names.OUTAGE].probability > 0.5:
        return now
    sd = float(np.hypot(settings.params.noise_fraction, MODEL_SD))
    crowded = np.nan_to_num(now.busy, nan=0.0) > 1.0
    tracks = [_service(now, service, values, where, sd) for service in range(settings.s)]
    now = replace(now, tracks=tuple(tracks))
    filled, spread = _utilisation(now, busy, sd)
    slow = _slowness(now)
    heard = echo(now.at, filled, spread, slow, crowded)
    now = replace(now, busy=filled)
    now = _failing(now, values[where.service("error_fraction")], heard.own_error, sd)
    now = _distant(now, values[where.service("p95_ms")], heard.p95_ms, sd)
    now = _priced(now, float(values[1]), values[where.service("rps")], sd)
    now = _dirty(now, float(values[2]), filled, sd)
    seen_error, seen_cpu = (
        values[where.service("error_fraction")],
        values[where.service("cpu_fraction")],
    )
    return replace(now, tracks=_latest(now, seen_error, seen_cpu))


def _utilisation(now: Filter, busy: Floats, sd: float) -> tuple[Floats, Floats]:
    """Best estimate of every queue's utilisation, and its logarithm's deviation.

    Where one hypothesis stands, all readings of a service so far tell of all its queues.
    """
    settings = now.at.view.settings
    expected = expected_busy(now)
    missing = np.isnan(busy)
    value, spread = np.where(missing, expected, busy), np.where(missing, 0.1, sd)
    for service, track in enumerate(now.tracks):
        if track.open or settings.services[service].batch:
            continue
        rows = [settings.pools + service]
        rows += range(service * settings.regions, (service + 1) * settings.regions)
        value[rows] = expected[rows]
        spread[rows] = np.sqrt(float(np.add.reduce(track.cov.ravel())) + MODEL_SD**2)
    return value, spread


def _fit(
    target: Floats,
    points: Floats,
    sd: float,
    slack: Floats | float = 0.0,
    most: float = _MAX_SURPRISE,
) -> Floats:
    """Log-likelihood of a measurement whose cause is only known as a normal distribution.

    Args:
        target: Logarithm of what was measured.
        points: What five points of the distribution predict, ascending, float64 [5, …].
        sd: Standard deviation of the measurement's logarithm.
        slack: Residuals up to it tell nothing.
        most: A measurement tells no more than this: something else may have happened.

    Returns:
        float64 of the broadcast shape. Between two points the prediction is taken to be linear.
    """
    rising = np.maximum.accumulate(points, axis=0)
    target = np.broadcast_to(target, rising.shape[1:])
    at = np.clip(np.add.reduce(rising <= target, axis=0) - 1, 0, len(POINTS) - 2)
    low = np.take_along_axis(rising, at[None], axis=0)[0]
    high = np.take_along_axis(rising, at[None] + 1, axis=0)[0]
    # A rise by `step` for each standard deviation of the cause.
    step = np.maximum(high - low, 1e-9) / (POINTS[at + 1] - POINTS[at])
    off = np.maximum(np.abs(POINTS[at] * step + target - low) - slack, 0.0)
    var = step * step + sd * sd
    value: Floats = np.maximum(-0.5 * off * off / var, -most) - 0.5 * np.log(var)
    return value


def _latest(now: Filter, error: Floats, cpu: Floats) -> tuple[Track, ...]:
    """Errors and utilisation that the next step starts from."""
    return tuple(
        replace(
            track,
            error=track.error if np.isnan(error[at]) else float(error[at]),
            cpu=track.cpu if np.isnan(cpu[at]) else float(cpu[at]),
        )
        for at, track in enumerate(now.tracks)
    )


def _service(now: Filter, service: int, values: Floats, where: Measured, sd: float) -> Track:
    """One service after its own readings."""
    settings, track = now.at.view.settings, now.tracks[service]
    step, start = now.step, float(now.at.view.public["w.start_hour_utc"][0, 0])
    held = memory_of(track, settings, step)
    seen = float(values[where.service("memory_fraction")][service])
    if not np.isnan(seen) and track.open:
        track = remembered(track, seen, held, sd)
    elif not np.isnan(seen):
        track = replace(remembered(track, seen, held, sd), other_log=np.zeros(1))
    used = float(values[where.service("disk_fraction")][service])
    if not np.isnan(used):
        room = float(now.at.view.public["s.disk_room"][0, service])
        track = filled(track, used, room, sd)
    found = _readings(now, service, values, where, sd)
    daily = daily_log(settings, start, step, service)
    track = weighed(track, settings, found, held, daily, sd)
    return track if track.open else replace(track, other_log=np.zeros(1))


def _readings(now: Filter, service: int, values: Floats, where: Measured, sd: float) -> Readings:
    """Readings of log demand, had nothing been wrong; what is missing is left out."""
    at, track = now.at, now.tracks[service]
    settings = at.view.settings
    retry = np.log1p(settings.params.retry_fraction * track.error)
    # The mean of the logarithm of 1 + sd·n is −sd²/2.
    lift = 0.5 * sd * sd
    rate = values[where.service("rps")][service]
    demand = _logs(np.array([rate]), np.ones(1)) + lift - retry
    if settings.services[service].batch:
        return Readings(demand, np.zeros(0), np.zeros(0))
    g, busy = settings.regions, values[where.busy]
    rows = slice(service * g, (service + 1) * g)
    gain = at.gain[rows] * cascade(now, service)
    used = at.share[service] > 0.02
    pools = _logs(np.where(used, busy[rows], np.nan), gain)
    base = settings.pools + service
    database = _logs(busy[base : base + 1], at.gain[base : base + 1])
    calm = np.nan_to_num(busy[rows][used], nan=2.0) < 0.9
    if calm.all():
        mean = np.array([float(np.add.reduce(at.share[service] * gain))])
        whole = values[where.service("cpu_fraction")][service : service + 1]
        pools = np.concatenate([pools, _logs(whole, mean)])
    if np.nan_to_num(busy[base], nan=2.0) < 0.9:
        whole = values[where.service("db_cpu_fraction")][service : service + 1]
        database = np.concatenate([database, _logs(whole, at.gain[base : base + 1])])
    return Readings(demand, pools + lift - retry, database + lift - retry)


def _logs(seen: Floats, gain: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        good = (seen > 1e-9) & (gain > 0)
    value: Floats = np.log(seen[good] / gain[good])
    return value


def cascade(now: Filter, service: int) -> float:
    """Slowdown through failing callees."""
    factor = 1.0
    settings = now.at.view.settings
    if settings.params.cascading:
        for caller, callee, share in settings.calls:
            if caller == service:
                error = now.tracks[callee].error
                factor *= 1.0 + solve.CASCADE_SLOWDOWN * share * error
    return factor


def _slowness(now: Filter) -> Floats:
    """Factor on the service time of every queue that is believed, float64 [Q]."""
    settings = now.at.view.settings
    slow = np.ones(settings.queues)
    for service, track in enumerate(now.tracks):
        share, found = posterior_of(now, service), effects(track)
        held = memory.slowdown(memory_of(track, settings, now.step))
        rows = slice(service * settings.regions, (service + 1) * settings.regions)
        slow[rows] = float(np.add.reduce(share * found.slow * held))
        slow[rows] *= cascade(now, service)
        slow[settings.pools + service] = float(np.add.reduce(share * found.db_slow))
    return slow


def log_demand(now: Filter, service: int) -> Floats:
    """Mean log demand of a service under every hypothesis, spikes included, float64 [V]."""
    track, settings = now.tracks[service], now.at.view.settings
    start = float(now.at.view.public["w.start_hour_utc"][0, 0])
    daily = daily_log(settings, start, now.step, service)
    phases = np.array([track.phases(v) for v in range(len(track.other_log))])
    level = np.add.reduce(track.mean, axis=-1) + daily[None, :]
    mean: Floats = np.add.reduce(phases * level, axis=-1)
    return mean + np.log(effects(track).spike)


def expected_busy(now: Filter) -> Floats:
    """Utilisation of every queue that the belief expects, float64 [Q]."""
    settings = now.at.view.settings
    slow = _slowness(now)
    busy = np.zeros(settings.queues)
    for service in range(settings.s):
        share = posterior_of(now, service)
        retry = 1.0 + settings.params.retry_fraction * now.tracks[service].error
        rate = float(np.add.reduce(share * np.exp(log_demand(now, service)))) * retry
        rows = slice(service * settings.regions, (service + 1) * settings.regions)
        base = settings.pools + service
        busy[rows] = rate * now.at.gain[rows] * slow[rows]
        busy[base] = rate * now.at.gain[base] * slow[base]
        if settings.services[service].batch:
            busy[rows] = np.minimum(busy[rows], 0.98)
            busy[base] = min(busy[base], 0.98)
    return busy


def _outage(now: Filter, busy: Floats) -> Filter:
    """Whether the home region serves nothing: its queues report twice their capacity."""
    settings, spell = now.at.view.settings, now.spells[names.OUTAGE]
    home = now.at.view.public["slot"][0, : settings.queues] == 0
    home &= (now.at.count > 0) & ~settings.batch[settings.queue_service] & ~np.isnan(busy)
    home[settings.pools :] = False
    if not home.any():
        return now
    sd = float(np.hypot(settings.params.noise_fraction, 0.01))
    out = bool(np.all(np.abs(np.log(np.maximum(busy[home], 1e-6) / _OUT)) < 4.0 * sd))
    ratio = np.full(GRID, _SURE if out else -_SURE)
    return replace(now, spells={**now.spells, names.OUTAGE: spell.weighed(ratio)})


def _failing(now: Filter, seen: Floats, own: Floats, sd: float) -> Filter:
    """What errors tell: whose root failure explains those of all services."""
    settings = now.at.view.settings
    people = ~settings.batch & ~np.isnan(seen)
    if not now.alerts or not people.any():
        return now
    sound = np.array([
        (1.0 - track.lasting.fault)
        * (1.0 - track.lasting.corrupt)
        * (1.0 - track.lasting.write_fail)
        for track in now.tracks
    ])  # fmt: skip
    tracks = list(now.tracks)
    target = np.log(np.maximum(seen, _LEAST_ERROR))
    for alert in now.alerts:
        for service, _ in alert.roots:
            track = tracks[service]
            if not track.open:
                continue
            found = effects(track)
            fault = 1.0 - (1.0 - found.fault) * (1.0 - found.corrupt) * (1.0 - found.write_fail)
            good = np.repeat(((1.0 - own) * sound)[:, None], len(fault), axis=1)  # [5, V, S]
            good[:, :, service] = (1.0 - own[:, None, service]) * (1.0 - fault)
            total = 1.0 - good
            shown = errors.propagate(total.reshape(-1, settings.s), settings.calls)
            shown = np.log(np.maximum(shown.reshape(total.shape), _LEAST_ERROR))
            # Strengths between two of the grid explain just as well as either.
            step = np.where(fault > 0, _HALF_STEP / np.maximum(fault, _HALF_STEP), 0.0)
            log = _fit(target, shown, float(np.hypot(sd, 0.05)), step[:, None])
            gained = np.add.reduce(np.where(people, log, 0.0), axis=-1)
            tracks[service] = replace(track, other_log=track.other_log + gained)
    return replace(now, tracks=tuple(tracks))


def _distant(now: Filter, seen: Floats, heard: Floats, sd: float) -> Filter:
    """What response times tell: extra round trips in the home region."""
    settings = now.at.view.settings
    # Judged by what is expected, not by what was read: queues near saturation tell too little.
    rise = np.log(np.maximum(heard[3], 1e-9) / np.maximum(heard[1], 1e-9))
    calm = rise < _STEEP * (POINTS[3] - POINTS[1])
    good = ~settings.batch & ~np.isnan(seen) & (seen > 0) & (heard[2] > 0) & calm
    if not good.any():
        return now
    calls = solve.database_calls(now.at.state)[0]
    part = now.at.share[:, 0] * (1.0 + calls)  # one extra trip to the user, one per call
    extra = 40.0 + 80.0 * SEVERITIES
    top = 2000.0 * settings.params.timeout_s
    logs = []
    for more in (0.0, *extra.tolist()):
        shown = np.log(np.minimum(heard + part * more, top))
        log = _fit(np.log(np.maximum(seen, 1.0)), shown, float(np.hypot(sd, 0.03)), most=_ODD)
        logs.append(float(np.add.reduce(np.where(good, log, 0.0))))
    ratio = np.array(logs[1:]) - logs[0]
    spell = now.spells[names.NETWORK].weighed(ratio)
    return replace(now, spells={**now.spells, names.NETWORK: spell})


def _priced(now: Filter, seen: float, rate: Floats, sd: float) -> Filter:
    """What the bill tells: a price hike in the home region, beside miners that are seen."""
    if np.isnan(seen):
        return now
    settings, at = now.at.view.settings, now.at
    every, home = queue_dollars(at)
    rate = np.where(np.isnan(rate), 0.0, rate)
    known = float(at.rest.cost[0]) + every + float(egress_cost(settings, rate[None, :])[0])
    miners = len(now.miners) * incidents.MINER_EGRESS_USD
    known += 1.5 * miners
    width = np.hypot(sd * known, 0.3 * miners + 1e-3 * known)
    off = seen - known - home * (0.1 + 0.2 * SEVERITIES)
    ratio = 0.5 * ((seen - known) ** 2 - off * off) / (width * width)
    spell = now.spells[names.PRICE_HIKE].weighed(np.clip(ratio, -_SURE, _SURE))
    return replace(now, spells={**now.spells, names.PRICE_HIKE: spell})


def _dirty(now: Filter, seen: float, busy: Floats, sd: float) -> Filter:
    """What carbon tells: a dirty spell of the home region's grid."""
    if np.isnan(seen):
        return now
    known, home = kilograms(now.at, busy)
    width = np.hypot(sd * known, 0.01 * known)
    off = seen - known - home * (0.2 + 0.5 * SEVERITIES)
    ratio = 0.5 * ((seen - known) ** 2 - off * off) / (width * width)
    spell = now.spells[names.CI_SPIKE].weighed(np.clip(ratio, -_SURE, _SURE))
    return replace(now, spells={**now.spells, names.CI_SPIKE: spell})
