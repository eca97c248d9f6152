"""Full states drawn from a filter: hidden columns from their posteriors, public ones as seen.

Draws are addressed by (seed, entity, stream, step, sample) and stratified over the samples, so that
K states cover what is believed evenly, and the same K serve every candidate. Zero samples ask for
one state at the mean of all factors, in which nothing happens by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from world import noise
from world.model import Key
from world.worlds.cloud import demand, disk, incidents
from world.worlds.cloud import schema as names
from world.worlds.cloud.filter import Alert, Filter, posterior_of, weights
from world.worlds.cloud.overlay import Believed, Rest
from world.worlds.cloud.posterior import (
    GRID,
    HIDDEN,
    SEVERITIES,
    SHARE,
    begins,
    lasts_steps,
    variants,
)
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.solve import measure
from world.worlds.cloud.state import BEFORE, EARLIER, NOW, Array, Floats, Measured
from world.worlds.cloud.tracks import PHASES, Factors, ages_h, daily_log, effects

_CAUSE = noise.channel("cloud.belief.cause")
_DEMAND = noise.channel("cloud.belief.demand")
_PHASE = noise.channel("cloud.belief.phase")
_NEED = noise.channel("cloud.belief.essential")
_SPELL = noise.channel("cloud.belief.spell")
_WORLD = noise.channel("cloud.belief.world")
_AHEAD = noise.channel("cloud.belief.ahead")

_NEIGHBOURS = (-1, 0, 1)
_NEAR: Floats = np.array([0.25, 0.5, 0.25])  # a service's phase is within an hour of the world's
FEWEST_FOR_SURPRISES = 8
"""Samples from which incidents are imagined that have not begun: fewer cannot hold their odds."""
AHEAD_STEPS = 12
"""How far ahead they are imagined."""


@dataclass(slots=True)
class _Draw:
    """One drawing of K states.

    Attributes:
        now: The filter.
        count: K.
        mean: Whether everything stands at its mean.
        key: Address of the noise.
        columns: Columns being written.
        entries: Incidents being written: cause, onset, end, service, row, slot, chosen [K].
    """

    now: Filter
    count: int
    mean: bool
    key: Key
    columns: dict[str, Array]
    entries: list[tuple[int, Array, Array, Array, Array, int, Array]]

    @property
    def settings(self) -> Settings:
        return self.now.at.view.settings

    def uniforms(self, entity: int, stream: int) -> Floats:
        """Four uniforms for every sample, float64 [4, K]."""
        replicas = np.arange(1, self.count + 1, dtype=np.uint64)
        return noise.uniforms(self.key.seed, entity, stream, self.key.step, replicas)

    def even(self, entity: int, stream: int) -> Floats:
        """One uniform for every sample, one in each K-th of the unit interval, float64 [K]."""
        u = self.uniforms(entity, stream)
        place = np.argsort(np.argsort(u[0], kind="stable"), kind="stable")
        value: Floats = (place + u[1]) / self.count
        return value


def draw(now: Filter, samples: int, key: Key) -> Believed:
    """K states, or one at the mean for 0 samples.

    Args:
        now: What is believed.
        samples: K.
        key: Where the noise is drawn; sample k uses replica k + 1.
    """
    count = max(samples, 1)
    one = _Draw(now, count, samples == 0, key, _blank(now, count), [])
    chosen = _chosen(one)
    _services(one, chosen)
    _spells(one)
    _miners(one)
    _needed(one)
    one.columns["h.objects"] = one.columns["h.essential"]  # owners object to what they need
    if samples >= FEWEST_FOR_SURPRISES:
        _ahead(one)
    _written(one)
    return _state(one)


def _blank(now: Filter, count: int) -> dict[str, Array]:
    """Public columns as they were seen, hidden ones at their normal values."""
    view, settings = now.at.view, now.at.view.settings
    columns: dict[str, Array] = {
        name: np.broadcast_to(column, (count, column.shape[1]))
        for name, column in view.public.items()
    }
    for name, dtype, _ in names.HIDDEN_ROW_COLUMNS:
        columns[name] = np.broadcast_to(np.zeros((1, 1), dtype=dtype), (count, settings.rows))
    for name, value in now.at.needs.use.items():
        columns[f"h.{name}"] = np.broadcast_to(value[None, :], (count, settings.rows))
    widths = (
        (names.HIDDEN_SERVICE_COLUMNS, settings.s), (names.HIDDEN_REGION_COLUMNS, settings.regions),
        (names.HIDDEN_WORLD_COLUMNS, 1),
    )  # fmt: skip
    normal = {"h.s.cut_at_step": -1000, "h.g.price": 1, "h.g.ci": 1, "h.g.up": 1}
    for group, width in widths:
        for name, dtype, _ in group:
            columns[name] = np.full((count, width), normal.get(name, 0), dtype=dtype)
    return columns


def _chosen(one: _Draw) -> Array:
    """Hypothesis of every service in every sample, int [K, S]; 0 where nothing is wrong."""
    found = np.zeros((one.count, one.settings.s), dtype=np.int64)
    table, step = variants(), one.now.step
    for alert in one.now.alerts:
        logs = weights(one.now, alert)
        services = list(logs)
        share = np.concatenate([logs[service][1:] for service in services])
        width = len(table.cause) - 1
        if one.mean:
            pick = np.full(1, int(np.argmax(share)))
        else:
            u = one.even(alert.onset, _CAUSE)
            pick = np.minimum(np.searchsorted(np.cumsum(share), u), len(share) - 1)
        service = np.array(services)[pick // width]
        variant = pick % width + 1
        found[np.arange(one.count), service] = variant
        _enter(one, alert, service, variant, step)
    return found


def _enter(one: _Draw, alert: Alert, service: Array, variant: Array, step: int) -> None:
    """Note the incident that each sample takes an alert for, while it lasts."""
    table = variants()
    for code in np.unique(table.cause[variant]).tolist():
        length = lasts_steps(one.settings, code)
        lasts = np.array([
            one.now.tracks[s].on[v] for s, v in zip(service.tolist(), variant.tolist(), strict=True)
        ])  # fmt: skip
        chosen = (table.cause[variant] == code) & lasts
        onset = np.full(one.count, alert.onset)
        end = np.full(one.count, min(alert.onset + length, incidents.NEVER))
        one.entries.append(
            (code, onset, end, service, table.severity[variant], -1, chosen & (end > step))
        )


def _services(one: _Draw, chosen: Array) -> None:
    """Demand, factors and memory of every service."""
    settings, columns, now = one.settings, one.columns, one.now
    phase = _phases(one, chosen)
    day = np.full(one.count, 1)
    if not one.mean:
        day = np.floor(one.even(0, _WORLD) * 7.0).astype(np.int64)
    columns["h.w.day"][:, 0] = day
    start = float(now.at.view.public["w.start_hour_utc"][0, 0])
    hour = start + now.step * settings.dt_h
    weekday = np.ones(one.count)
    if settings.trace is None:
        weekday = demand.weekday(columns, np.full(one.count, hour))[:, 0]
    for service, track in enumerate(now.tracks):
        variant = chosen[:, service]
        level = _levels(one, service, variant, phase[:, service])
        columns["h.s.base_rps"][:, service] = np.exp(level.base) / weekday
        columns["h.s.phase_h"][:, service] = start - level.phase
        columns["h.s.burst"][:, service] = np.exp(np.maximum(level.burst, 0.0)) - 1.0
        # A burst is never negative: what the filter has below 0 is noise.
        rest = np.exp(level.noise + np.minimum(level.burst, 0.0))
        if settings.params.demand_noise > 0:
            columns["h.s.ar1"][:, service] = (rest - 1.0) / settings.params.demand_noise
        else:
            columns["h.s.base_rps"][:, service] *= rest
        _factors(one, service, variant)
        columns["h.s.memory_age_h"][:, service] = ages_h(track, settings, now.step)[variant]
        columns["h.s.memory_base"][:, service] = track.base[variant]
        columns["h.s.error"][:, service] = track.error


def _factors(one: _Draw, service: int, variant: Array) -> None:
    columns, now = one.columns, one.now
    found = effects(now.tracks[service])
    share = posterior_of(now, service)

    def value(every: Floats) -> Floats:
        if one.mean:
            return np.full(1, float(np.add.reduce(share * every)))
        chosen: Floats = every[variant]
        return chosen

    for name in Factors._fields:
        drawn = value(getattr(found, name))
        columns[f"h.s.{name}"][:, service] = np.rint(drawn) if name == "fight" else drawn
    track = now.tracks[service]
    room = columns["s.disk_room"][:, service]
    columns["h.s.disk_base"][:, service] = track.disk
    full = columns["h.s.write_fail"][:, service] > 0
    over = room * (disk.FULL_FROM + 0.5 * disk.FULL_SPAN) - track.disk
    columns["h.s.disk_junk"][:, service] = np.where(full, over, 0.0)
    corrupt = columns["h.s.corrupt"][:, service] > 0
    columns["h.s.corrupt_step"][:, service] = np.where(corrupt, track.onset, -1)


@dataclass(slots=True)
class _Level:
    """Parts of log demand and the phase of one service, float64 [K] each."""

    base: Floats
    noise: Floats
    burst: Floats
    phase: Floats


def _levels(one: _Draw, service: int, variant: Array, phase: Array) -> _Level:
    """Draw the demand of one service under the hypothesis and phase of each sample."""
    settings, now = one.settings, one.now
    track = now.tracks[service]
    mean = track.mean[variant, phase]  # [K, 3]
    start = float(now.at.view.public["w.start_hour_utc"][0, 0])
    daily = daily_log(settings, start, now.step, service)[phase]
    width = 24.0 / PHASES
    shift = 12.0 if settings.batch[service] else 0.0
    hours = (phase + 0.5) * width - shift
    if one.mean:
        return _Level(mean[:, 0], mean[:, 1], mean[:, 2], hours)
    u = one.uniforms(service, _DEMAND)
    radius = np.sqrt(-2.0 * np.log(u[0]))
    normal = np.stack([
        radius * np.cos(2.0 * np.pi * u[1]), radius * np.sin(2.0 * np.pi * u[1]),
        np.sqrt(-2.0 * np.log(u[2])) * np.cos(2.0 * np.pi * u[3]),
    ])  # fmt: skip
    root = _cholesky(track.cov)
    base = mean[:, 0] + root[0][0] * normal[0]
    wave = mean[:, 1] + root[1][0] * normal[0] + root[1][1] * normal[1]
    burst = mean[:, 2] + root[2][0] * normal[0] + root[2][1] * normal[1] + root[2][2] * normal[2]
    if settings.trace is None:
        # Anywhere within the hour of the grid, at the demand of now.
        exact = hours + width * (one.uniforms(service, _PHASE)[2] - 0.5)
        angle = (now.step * settings.dt_h + exact) * (2.0 * np.pi / 24.0)
        there = np.log(1.0 + settings.params.demand_amplitude * np.sin(angle))
        base, hours = base + daily - there, exact
    return _Level(base, wave, burst, hours)


def _cholesky(cov: Floats) -> tuple[tuple[float, ...], ...]:
    """Lower root of a positive semidefinite 3×3 matrix."""

    def root(value: float) -> float:
        return float(np.sqrt(max(value, 0.0)))

    a = root(float(cov[0, 0]))
    b = float(cov[1, 0]) / a if a > 0 else 0.0
    d = float(cov[2, 0]) / a if a > 0 else 0.0
    c = root(float(cov[1, 1]) - b * b)
    e = (float(cov[2, 1]) - b * d) / c if c > 0 else 0.0
    f = root(float(cov[2, 2]) - d * d - e * e)
    return ((a,), (b, c), (d, e, f))


def _phases(one: _Draw, chosen: Array) -> Array:
    """Place of the daily sine on the grid for every service and sample, int [K, S]."""
    settings, now = one.settings, one.now
    found = np.zeros((one.count, settings.s), dtype=np.int64)
    if settings.trace is not None:
        return found
    own = np.array([
        track.phases(int(np.bincount(chosen[:, s]).argmax()))
        for s, track in enumerate(now.tracks)
    ])  # fmt: skip
    near = np.stack([np.roll(own, -shift, axis=1) for shift in _NEIGHBOURS])  # [3, S, P]
    fit = np.maximum(np.add.reduce(_NEAR[:, None, None] * near, axis=0), 1e-300)
    log = np.add.reduce(np.log(fit), axis=0)
    share = np.exp(log - log.max())
    share = share / np.add.reduce(share)
    if one.mean:
        for service in range(settings.s):
            found[:, service] = _steady(now, service, share)
        return found
    world = np.minimum(np.searchsorted(np.cumsum(share), one.even(1, _WORLD)), PHASES - 1)
    for service in range(settings.s):
        odds = _NEAR[:, None] * near[:, service, world] + 1e-300
        odds = np.cumsum(odds / np.add.reduce(odds, axis=0), axis=0)
        pick = np.add.reduce(one.uniforms(service, _PHASE)[0] > odds, axis=0)
        found[:, service] = (world + np.minimum(pick, 2) - 1) % PHASES
    return found


def _steady(now: Filter, service: int, share: Floats) -> int:
    """The phase whose slope is nearest to the mean slope of demand in the coming hour."""
    settings = now.at.view.settings
    ahead = now.step + settings.hour_steps
    slope = daily_log(settings, 0.0, ahead, service) - daily_log(settings, 0.0, now.step, service)
    mean = float(np.add.reduce(share * slope))
    # Of the two hours with that slope, the likelier.
    return int(np.argmin(np.abs(slope - mean) - 1e-6 * share))


def _spells(one: _Draw) -> None:
    """Incidents of the home region."""
    columns, settings, step = one.columns, one.settings, one.now.step
    effect = {
        names.NETWORK: ("h.g.rtt_ms", 40.0 + 80.0 * SEVERITIES, 0.0),
        names.PRICE_HIKE: ("h.g.price", 1.1 + 0.2 * SEVERITIES, 1.0),
        names.CI_SPIKE: ("h.g.ci", 1.2 + 0.5 * SEVERITIES, 1.0),
        names.OUTAGE: ("h.g.up", np.zeros(GRID), 1.0),
    }
    for code in HIDDEN:
        spell = one.now.spells[code]
        name, strong, normal = effect[code]
        if spell.probability < 1e-6:
            continue
        if one.mean:
            value = normal + float(np.add.reduce(spell.strength * (strong - normal)))
            columns[name][0, 0] = np.rint(value) if code == names.OUTAGE else value
        flat = spell.running.ravel()
        u = np.full(1, 0.5) if one.mean else one.even(code, _SPELL)
        runs = u >= spell.none
        place = np.searchsorted(spell.none + np.cumsum(flat), u)
        place = np.minimum(place, len(flat) - 1)
        age, strength = place // GRID, place % GRID
        if not one.mean:
            columns[name][:, 0] = np.where(runs, strong[strength], normal)
        onset = step - age
        end = onset + lasts_steps(settings, code)
        nowhere = np.full(one.count, -1)
        one.entries.append((code, onset, end, nowhere, SEVERITIES[strength], 0, runs))


def _miners(one: _Draw) -> None:
    """Machines on which a miner runs; what it sends out is only known as a range."""
    for row, onset in one.now.miners.items():
        column = one.columns["h.compromised"].copy()
        column[:, row] = 1
        one.columns["h.compromised"] = column
        strength = np.full(1, 0.5) if one.mean else one.even(row, _SPELL)
        sent = incidents.MINER_EGRESS_USD * (1.0 + strength)
        one.columns["h.w.breach_usd"][:, 0] += sent
        start = np.full(one.count, onset)
        end = np.full(one.count, incidents.NEVER)
        nowhere = np.full(one.count, -1)
        always = np.ones(one.count, dtype=np.bool_)
        one.entries.append((names.BREACH, start, end, nowhere, strength, -2 - row, always))


def _needed(one: _Draw) -> None:
    """Whether each row is needed: known, or a coin with its odds."""
    settings, needed = one.settings, one.now.at.needs.needed
    known = (needed >= 0.5).astype(np.uint8)
    known[: settings.tiers] = one.now.at.view.public["essential"][0, : settings.tiers] == names.YES
    open_ = np.flatnonzero((needed > 0.001) & (needed < 0.999))
    if one.mean or not open_.size:
        one.columns["h.essential"] = np.broadcast_to(known[None], (one.count, settings.rows))
        return
    column = np.repeat(known[None], one.count, axis=0)
    replicas = np.arange(1, one.count + 1, dtype=np.uint64)[:, None]
    entity = open_.astype(np.uint32)[None, :]
    u = noise.uniforms(one.key.seed, entity, _NEED, one.key.step, replicas)[0]
    column[:, open_] = u < needed[open_]
    one.columns["h.essential"] = column


def _ahead(one: _Draw) -> None:
    """Incidents that have not begun, one at most in each sample, within `AHEAD_STEPS`."""
    settings, step = one.settings, one.now.step
    people = np.flatnonzero(~settings.batch)
    odds = np.array([
        begins(settings, step + 1 + ahead, step + 1, one.now.announced)
        for ahead in range(AHEAD_STEPS)
    ])  # fmt: skip
    edges = np.cumsum(odds)
    u = one.even(2, _AHEAD)
    struck = u < min(float(edges[-1]), 1.0)
    if not struck.any():
        return
    onset = step + 1 + np.minimum(np.searchsorted(edges, u, side="right"), AHEAD_STEPS - 1)
    v = one.uniforms(3, _AHEAD)
    code = np.minimum(np.searchsorted(np.cumsum(SHARE), v[0]), len(SHARE) - 1)
    service = people[np.minimum(v[1] * len(people), len(people) - 1).astype(np.int64)]
    for cause in np.unique(code[struck]).tolist():
        if cause in (names.BREACH, names.BLIND):
            continue  # neither moves a metric of the room by more than a few dollars
        chosen = struck & (code == cause)
        length = lasts_steps(settings, cause)
        regional = cause in HIDDEN
        at = np.full(one.count, -1) if regional else service
        one.entries.append((cause, onset, onset + length, at, v[2], 0 if regional else -1, chosen))


def _written(one: _Draw) -> None:
    """The incident columns, one place for every entry."""
    width = max(len(one.entries), 1)
    columns, step = one.columns, one.now.step
    for name, dtype, _ in names.INCIDENT_COLUMNS:
        columns[name] = np.full((one.count, width), -1, dtype=dtype)
    columns["h.i.status"][...] = names.MOOT
    for at, (code, onset, end, service, severity, slot, chosen) in enumerate(one.entries):
        columns["h.i.cause"][:, at] = code
        columns["h.i.onset"][:, at] = onset
        columns["h.i.end"][:, at] = np.minimum(end, incidents.NEVER)
        columns["h.i.service"][:, at] = service
        columns["h.i.victim"][:, at] = service
        columns["h.i.severity"][:, at] = severity
        columns["h.i.slot"][:, at] = slot if slot >= 0 else -1
        columns["h.i.row"][:, at] = -2 - slot if slot <= -2 else -1
        status = np.where(onset > step, names.AHEAD, names.ACTIVE)
        columns["h.i.status"][:, at] = np.where(chosen, status, names.MOOT)


def _state(one: _Draw) -> Believed:
    """The states, measured now: what the next step starts from."""
    now, settings, columns = one.now, one.settings, one.columns
    where, count = Measured(settings), one.count
    scale = 0.06 * settings.params.fail_scale
    for slot in range(settings.regions):
        u = np.full(1, 3.0**-0.5) if one.mean else one.even(10 + slot, _WORLD)
        columns["h.g.stockout"][:, slot] = scale * u * u
    if now.dark_since >= 0:
        until = now.dark_since + lasts_steps(settings, names.BLIND)
        columns["h.w.blind_until"][:, 0] = max(until, now.step + 1)
    crowded = np.nan_to_num(now.busy, nan=0.0) > 1.0
    full = settings.params.timeout_s * now.at.capacity * crowded
    columns["h.backlog"] = np.repeat(full[None], count, axis=0)
    before = np.zeros((count, where.width))
    before[:, where.service("cpu_fraction")] = [min(track.cpu, 1.0) for track in now.tracks]
    columns[NOW] = before
    state = Believed(
        settings, np.full(count, one.key.seed, dtype=np.uint64),
        np.arange(1, count + 1, dtype=np.uint64), now.step, columns, mean_noise=one.mean,
        ids=tuple(now.at.view.ids), view=now.at.view,
    )  # fmt: skip
    _remember(state, now.at.rest)
    trial = state.follow()
    repeat = np.full(count, float(now.at.view.measured[5]))
    seen = measure(trial, _rate(state), np.nan_to_num(repeat))
    columns["h.backlog"], columns["h.s.error"] = (
        trial.columns["h.backlog"],
        trial.columns["h.s.error"],
    )
    for name in (NOW, BEFORE, EARLIER):
        columns[name] = seen
    return state


def _remember(state: Believed, rest: Rest) -> None:
    """Hand the state what its rows contribute, so that no inventory is added up again."""
    token, idle = state.extras, state.columns["idle_hours"]
    state.memory["whole"] = ((token,), rest)
    state.memory["static_cost"] = ((token, idle), (rest.cost, rest.waste))
    state.memory["static_kilowatts"] = (
        (token,), np.repeat(rest.kilowatts, state.batch, axis=0),
    )  # fmt: skip


def _rate(state: Believed) -> Floats:
    """Requests per second of the step that was just seen, float64 [K, S]."""
    settings, columns = state.settings, state.columns
    params = settings.params
    factor = 1.0 + params.demand_noise * columns["h.s.ar1"]
    rate = demand.regular(settings, columns, state.hour) * np.maximum(factor, 0.0)
    rate = rate * (1.0 + columns["h.s.burst"]) * columns["h.s.spike"]
    value: Floats = rate * (1.0 + params.retry_fraction * columns["h.s.error"])
    return value
