"""What is believed of one service: its demand by a Kalman filter, its trouble by hypotheses.

The logarithm of demand is base + noise with memory + burst; its daily phase is on a grid. Every
utilisation is a reading of demand once the instances are known, so all of a step's readings count,
and how they disagree tells which factor is not normal. Hypotheses on what is wrong (`posterior`)
run side by side from the step of an alert.

Source: Kalman, "A new approach to linear filtering and prediction problems", Journal of Basic
Engineering 82 (1960); the mixture over hypotheses is a multiple-model filter without switching
(Magill, IEEE Transactions on Automatic Control 10, 1965).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import demand, memory
from world.worlds.cloud import schema as names
from world.worlds.cloud.posterior import variants
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Floats

PHASES = 24
"""Hours at which the daily sine may rise; the grid of phases."""
MODEL_SD = 0.004
"""What the model itself gets wrong in a reading, as a fraction; assumed."""
_MEMORY_LOW, _MEMORY_HIGH = 0.45, 0.60
"""Range of a fresh process's memory, as services are generated."""
_OLD_HOURS = 144.0
"""Mean age of processes at the start, h."""
USUAL_DISK = 0.55
"""Share of a disk in use where it was never measured: the middle of the generated range."""
_DISK_SD = 0.02
_NEVER = -1_000
_SURPRISE = 40.0  # a reading further off than this (in log-likelihood) tells nothing more


class Factors(NamedTuple):
    """What is wrong and stays wrong after its incident was closed.

    Attributes:
        spike: Factor on demand.
        slow: Factor on service time.
        db_slow: Factor on database time.
        fault: Requests that fail at the root.
        corrupt: Requests that hit corrupt data.
        write_fail: Requests that fail because the disk is full.
        leak_per_h: Memory leak.
        fight: 1 where another controller takes instances away.
    """

    spike: float = 1.0
    slow: float = 1.0
    db_slow: float = 1.0
    fault: float = 0.0
    corrupt: float = 0.0
    write_fail: float = 0.0
    leak_per_h: float = 0.0
    fight: float = 0.0


NOTHING_WRONG = Factors()


class Effects(NamedTuple):
    """The same factors under every hypothesis, float64 [V] each."""

    spike: Floats
    slow: Floats
    db_slow: Floats
    fault: Floats
    corrupt: Floats
    write_fail: Floats
    leak_per_h: Floats
    fight: Floats


class Process(NamedTuple):
    """How demand moves in a step.

    Attributes:
        keep: float64 [3], what is left of base, noise and burst.
        variance: float64 [3], what is added to them.
        burst: Mean that is added to the burst.
    """

    keep: Floats
    variance: Floats
    burst: float


def process(settings: Settings) -> Process:
    """Moments of the demand model of `demand`."""
    params = settings.params
    keep = float(np.exp(-settings.dt_h / demand.AR1_HOURS))
    decay = float(np.exp(-settings.dt_h / demand.BURST_DECAY_HOURS))
    rate = params.bursts_per_day * settings.dt_h / 24.0
    mean = demand.BURST_MEDIAN * float(np.exp(0.5 * demand.BURST_SIGMA**2))
    square = demand.BURST_MEDIAN**2 * float(np.exp(2.0 * demand.BURST_SIGMA**2))
    added = rate * mean
    return Process(
        np.array([1.0, keep, decay]),
        np.array([
            1e-8, (1.0 - keep * keep) * params.demand_noise**2, rate * square - added * added,
        ]),
        added,
    )  # fmt: skip


@dataclass(slots=True)
class Track:
    """Belief in one service; V hypotheses, P phases. Arrays are replaced, never written to.

    Attributes:
        mean: float64 [V, P, 3], log base demand, noise, burst.
        cov: float64 [3, 3], the same for all.
        phase_log: float64 [V, P], log-likelihood of the demand readings.
        other_log: float64 [V], log-likelihood of everything else since the alert.
        base: float64 [V], memory of fresh processes.
        base_var: Its variance.
        on: bool [V], whether the hypothesis' effect lasts.
        onset: Step of the alert; −1 is none.
        restarted: Step of the last restart of its processes.
        error: Errors of the last step that was measured, with those of its callees.
        cpu: Utilisation of the last step.
        disk: Data on the disk of its database, over the disk of the start.
        lasting: Trouble of closed incidents that was not cured.
    """

    mean: Floats
    cov: Floats
    phase_log: Floats
    other_log: Floats
    base: Floats
    base_var: float
    on: NDArray[np.bool_]
    onset: int = -1
    restarted: int = _NEVER
    error: float = 0.0
    cpu: float = 0.9
    disk: float = USUAL_DISK
    lasting: Factors = NOTHING_WRONG

    @property
    def open(self) -> bool:
        """Whether hypotheses run side by side."""
        return len(self.other_log) > 1

    @property
    def evidence(self) -> Floats:
        """Log-likelihood of every hypothesis, float64 [V]."""
        top = self.phase_log.max(axis=-1)
        total: Floats = top + np.log(np.add.reduce(np.exp(self.phase_log - top[:, None]), axis=-1))
        return total + self.other_log

    def phases(self, variant: int) -> Floats:
        """Probability of every phase under one hypothesis, float64 [P]."""
        log = self.phase_log[variant]
        weight = np.exp(log - log.max())
        share: Floats = weight / np.add.reduce(weight)
        return share


def new_track(settings: Settings) -> Track:
    """Nothing known but what the scenario publishes."""
    phases = 1 if settings.trace is not None else PHASES
    mean = np.zeros((1, phases, 3))
    mean[..., 0] = 7.0
    span = _MEMORY_HIGH - _MEMORY_LOW
    return Track(
        mean=mean,
        cov=np.diag([25.0, 0.0, 0.0]),
        phase_log=np.zeros((1, phases)),
        other_log=np.zeros(1),
        base=np.full(1, 0.5 * (_MEMORY_LOW + _MEMORY_HIGH)),
        base_var=span * span / 12.0,
        on=np.ones(1, dtype=np.bool_),
    )


def opened(track: Track, onset: int) -> Track:
    """All hypotheses side by side from an alert on."""
    v = len(variants().cause)
    return replace(
        track,
        mean=np.repeat(track.mean[:1], v, axis=0),
        phase_log=np.repeat(track.phase_log[:1], v, axis=0),
        other_log=np.zeros(v),
        base=np.repeat(track.base[:1], v),
        on=np.ones(v, dtype=np.bool_),
        onset=onset,
    )


def closed(track: Track, weight: Floats) -> Track:
    """One hypothesis again: the mixture of all, and what lasts of the likeliest.

    Args:
        track: With V hypotheses.
        weight: Their probabilities, float64 [V].
    """
    share = weight[:, None] * np.array([track.phases(v) for v in range(len(weight))])
    phase = np.maximum(np.add.reduce(np.ascontiguousarray(share.T), axis=-1), 1e-300)
    part = np.ascontiguousarray((share / phase)[:, :, None].transpose(1, 2, 0))
    mean = np.add.reduce(part * track.mean.transpose(1, 2, 0), axis=-1)
    middle = np.add.reduce(weight * track.mean[:, 0, 0])
    spread = float(np.add.reduce(weight * (track.mean[:, 0, 0] - middle) ** 2))
    best = int(np.argmax(weight))
    lasting = Factors(*(float(part[best]) for part in effects(track)))
    lasting = lasting._replace(spike=track.lasting.spike)  # a spike ends by itself
    cov = track.cov.copy()
    cov[0, 0] += spread
    leaks = int(variants().cause[best]) == names.LEAK
    return replace(
        track, mean=mean[None], cov=cov, phase_log=np.log(phase)[None], other_log=np.zeros(1),
        restarted=max(track.restarted, track.onset) if leaks else track.restarted,
        base=np.array([float(np.add.reduce(weight * track.base))]),
        on=np.ones(1, dtype=np.bool_), onset=-1, lasting=lasting,
    )  # fmt: skip


def moved(track: Track, how: Process, midnight: bool) -> Track:
    """One step later, before anything is measured.

    At midnight a weekday may become a weekend or the other way round, two times in seven.
    """
    cov = track.cov * how.keep[:, None] * how.keep[None, :]
    cov[np.arange(3), np.arange(3)] += how.variance
    if midnight:
        cov[0, 0] += 2.0 / 7.0 * float(np.log(demand.WEEKEND_FACTOR)) ** 2
    mean = track.mean * how.keep
    mean[..., 2] += how.burst
    return replace(track, mean=mean, cov=cov)


def daily_log(settings: Settings, start_hour: float, step: int, service: int) -> Floats:
    """Logarithm of the hour's factor under every phase, float64 [P]."""
    trace = settings.trace
    hours = step * settings.dt_h
    if trace is not None:
        at = min(int(np.floor(hours)), len(trace) - 1)
        return np.log(np.maximum(trace[at, service : service + 1], 1e-9))
    # The sine rises through its mean at start − phase (for batch work half a day later).
    phase = (np.arange(PHASES) + 0.5) * (24.0 / PHASES) - (12.0 if settings.batch[service] else 0.0)
    angle = (hours + phase) * (2.0 * np.pi / 24.0)
    value: Floats = np.log(1.0 + settings.params.demand_amplitude * np.sin(angle))
    return value


def effects(track: Track) -> Effects:
    """Factors under every hypothesis."""
    lasting = track.lasting
    if not track.open:
        return Effects(*(np.full(1, value) for value in lasting))
    table, on = variants(), track.on

    def now(causes: tuple[int, ...], value: Floats, before: float) -> Floats:
        # A new incident sets its factor; it does not add to an old one.
        factor: Floats = np.where(on & np.isin(table.cause, causes), value, before)
        return factor

    return Effects(
        now((names.SPIKE,), table.spike, lasting.spike),
        now((names.BAD_DEPLOY,), table.slow, lasting.slow),
        now((names.DB_SATURATION,), table.db_slow, lasting.db_slow),
        now((names.FAILURE,), table.fault, lasting.fault),
        now((names.CORRUPTION,), table.corrupt, lasting.corrupt),
        now((names.DISK_FULL,), table.write_fail, lasting.write_fail),
        now((names.LEAK,), table.leak_per_h, lasting.leak_per_h),
        now((names.FIGHT,), np.ones(len(on)), lasting.fight),
    )


def ages_h(track: Track, settings: Settings, step: int) -> Floats:
    """Age of the processes under every hypothesis, h, float64 [V]; a leak starts fresh ones."""
    old = _OLD_HOURS + step * settings.dt_h
    if track.restarted > _NEVER:
        old = (step - track.restarted) * settings.dt_h
    if not track.open:
        return np.full(1, old)
    young = min((step - track.onset) * settings.dt_h, old)
    ages: Floats = np.where(variants().cause == names.LEAK, young, old)
    return ages


def memory_of(track: Track, settings: Settings, step: int) -> Floats:
    """Memory under every hypothesis, fraction, float64 [V]."""
    leak = effects(track).leak_per_h
    held = track.base + leak * ages_h(track, settings, step)
    value: Floats = np.minimum(held + memory.LOAD_SHARE * min(track.cpu, 1.0), 1.0)
    return value


class Readings(NamedTuple):
    """Readings of one service's log demand, had nothing been wrong.

    Attributes:
        demand: Through counted requests, float64 [n].
        pools: Through the utilisation of its pools, float64 [n].
        database: Through that of its database, float64 [n].
    """

    demand: Floats
    pools: Floats
    database: Floats


def weighed(
    track: Track, settings: Settings, readings: Readings, held: Floats, daily: Floats, sd: float
) -> Track:
    """After the readings of a step.

    Args:
        track: Moved to that step.
        settings: The scenario.
        readings: What was measured.
        held: Memory under every hypothesis, float64 [V].
        daily: Log factor of the hour, float64 [P].
        sd: Standard deviation of a reading.
    """
    found = effects(track)
    spike = np.log(found.spike)
    pools = np.log(found.slow * memory.slowdown(held) / memory.alive(held))
    shifts = ((readings.demand, spike), (readings.pools, spike + pools),
              (readings.database, spike + np.log(found.db_slow)))  # fmt: skip
    parts = [values[None, :] - shift[:, None] for values, shift in shifts if len(values)]
    if not parts:
        return track
    found_all = np.concatenate(parts, axis=1)  # [V, n]
    n = found_all.shape[1]
    middle = np.add.reduce(found_all, axis=-1) / n
    off = found_all - middle[:, None]
    var = sd * sd
    other = track.other_log - np.minimum(
        0.5 * np.add.reduce(off * off, axis=-1) / var, _SURPRISE * n
    )
    gain = np.add.reduce(track.cov, axis=-1)
    total = float(np.add.reduce(gain)) + var / n
    # Every reading of the state is the sum of its three parts.
    error = middle[:, None] - daily[None, :] - np.add.reduce(track.mean, axis=-1)
    gain = gain / total
    cov = track.cov - total * gain[:, None] * gain[None, :]
    return replace(
        track,
        mean=track.mean + error[:, :, None] * gain,
        cov=0.5 * (cov + cov.T),
        phase_log=track.phase_log - np.minimum(0.5 * error * error / total, _SURPRISE),
        other_log=other,
    )


def remembered(track: Track, seen: float, held: Floats, sd: float) -> Track:
    """After a measurement of memory, against the memory under every hypothesis."""
    var = (sd * held) ** 2 + MODEL_SD**2
    inside = held < 1.0
    total = var + np.where(inside, track.base_var, 0.0)
    error = seen - held
    log = -np.minimum(0.5 * error * error / total, _SURPRISE) - 0.5 * np.log(total)
    gain = np.where(inside, track.base_var / total, 0.0)
    base = np.clip(track.base + gain * error, 0.3, 0.8)
    left = track.base_var * (1.0 - float(gain[0])) if inside[0] else track.base_var
    return replace(track, other_log=track.other_log + log, base=base, base_var=left)


def filled(track: Track, seen: float, room: float, sd: float) -> Track:
    """After a measurement of the disk: full, or as full as it was."""
    var = (sd * seen) ** 2 + _DISK_SD**2
    if not track.open:
        if track.lasting.write_fail > 0:
            return track
        return replace(track, disk=seen * room)
    full = track.on & (variants().cause == names.DISK_FULL)
    expected = np.where(full, 1.0, min(track.disk / room, 1.0))
    log = -np.minimum(0.5 * (seen - expected) ** 2 / var, _SURPRISE)
    return replace(track, other_log=track.other_log + log)


def cured(track: Track, causes: tuple[int, ...], restarted: int | None = None) -> Track:
    """After something that ends the effect of some causes."""
    lasting = track.lasting
    if names.BAD_DEPLOY in causes:
        lasting = lasting._replace(slow=1.0)
    if names.LEAK in causes:
        lasting = lasting._replace(leak_per_h=0.0)
    if names.FAILURE in causes:
        lasting = lasting._replace(fault=0.0)
    if names.CORRUPTION in causes:
        lasting = lasting._replace(corrupt=0.0)
    if names.DISK_FULL in causes:
        lasting = lasting._replace(write_fail=0.0)
    if names.FIGHT in causes:
        lasting = lasting._replace(fight=0.0)
    on = track.on
    if track.open:
        on = on & ~np.isin(variants().cause, causes)
    return replace(
        track, on=on, lasting=lasting,
        restarted=track.restarted if restarted is None else restarted,
    )  # fmt: skip
