"""How many requests come: the day, the week, noise with memory, bursts, retries, or a trace.

λ(t) = base·(1 + a·sin(2π(h − h0)/24))·weekday·(1 + x)·(1 + burst)·spike, where x is a stationary
AR(1) process; failed requests come again with a fraction r of the last step's errors, which is
what makes overload last (a metastable failure).

Source: daily and weekly seasonality and AR(1) residuals are the usual decomposition of web
traffic (Gill et al., IMC 2007); retries after Bronson et al., "Metastable failures in distributed
systems", HotOS 2021.
"""

from __future__ import annotations

import numpy as np

from world import noise
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats, State

_CHANNEL = noise.channel("cloud.demand")
_BURST_HEIGHT = noise.channel("cloud.burst")

AR1_HOURS = 2.0
"""Time in which the demand noise loses 63 % of its memory, h; assumed."""

WEEKEND_FACTOR = 0.85
"""Demand on Saturday and Sunday over weekdays; assumed."""

BURST_DECAY_HOURS = 0.25
"""Time in which a burst falls to 37 %, h; assumed."""

BURST_MEDIAN = 0.12
BURST_SIGMA = 0.5
"""Log-normal height of a burst, as a fraction of demand; assumed."""


def daily(settings: Settings, columns: dict[str, Array], hour: Floats) -> Floats:
    """Factor of the hour, float64 [B, S].

    Args:
        settings: The amplitude.
        columns: Phases and start.
        hour: UTC hours since midnight of day 0, float64 [B].
    """
    angle = (hour[:, None] - columns["h.s.phase_h"]) * (2.0 * np.pi / 24.0)
    factor: Floats = 1.0 + settings.params.demand_amplitude * np.sin(angle)
    return factor


def weekday(columns: dict[str, Array], hour: Floats) -> Floats:
    """Factor of the day, float64 [B, 1]."""
    day = (columns["h.w.day"][:, 0] + np.floor(hour / 24.0)) % 7.0
    factor: Floats = np.where(day >= 5.0, WEEKEND_FACTOR, 1.0)[:, None]
    return factor


def regular(settings: Settings, columns: dict[str, Array], hour: Floats) -> Floats:
    """Demand without noise, bursts, spikes and retries, requests/s, float64 [B, S]."""
    value: Floats = columns["h.s.base_rps"] * daily(settings, columns, hour)
    value = value * weekday(columns, hour)
    trace = settings.trace
    if trace is None:
        return value
    at = np.minimum(np.floor(hour - columns["w.start_hour_utc"][:, 0]), len(trace) - 1)
    traced = trace[at.astype(np.int64)] * columns["h.s.base_rps"]
    return np.where(settings.traced, traced, value)


def arrivals(after: State) -> Floats:
    """Requests per second of the step under way, float64 [B, S]; moves noise and bursts on."""
    settings, columns = after.settings, after.columns
    params = settings.params
    base = regular(settings, columns, after.hour)
    _move_noise(after)
    factor = (1.0 + params.demand_noise * columns["h.s.ar1"]) * (1.0 + columns["h.s.burst"])
    rate = base * np.maximum(factor, 0.0) * columns["h.s.spike"]
    if params.retry_fraction:
        rate = rate * (1.0 + params.retry_fraction * columns["h.s.error"])
    return rate


def _move_noise(after: State) -> None:
    settings, columns = after.settings, after.columns
    keep = np.exp(-settings.dt_h / AR1_HOURS)
    decay = np.exp(-settings.dt_h / BURST_DECAY_HOURS)
    burst = columns["h.s.burst"] * decay
    ar1 = columns["h.s.ar1"] * keep
    if not after.mean_noise:
        services = np.arange(settings.s, dtype=np.uint32)[None, :]
        # Worlds that differ in what was done there only meet the same demand.
        apart = after.apart
        seeds, replica = after.seeds[:apart], after.replica[:apart]
        u = noise.uniforms(seeds[:, None], services, _CHANNEL, after.step, replica[:, None])
        # Box and Muller: two uniforms make one normal number.
        normal = np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])
        together = (-1, apart, settings.s)
        ar1 = (ar1.reshape(together) + np.sqrt(1.0 - keep * keep) * normal).reshape(ar1.shape)
        starts = u[2] < settings.params.bursts_per_day * settings.dt_h / 24.0
        if starts.any():
            # The height needs a normal number of its own only where a burst starts.
            at = np.nonzero(starts)
            v = noise.uniforms(
                seeds[at[0]], services[0, at[1]], _BURST_HEIGHT, after.step, replica[at[0]]
            )
            height = np.exp(BURST_SIGMA * np.sqrt(-2.0 * np.log(v[0])) * np.cos(2 * np.pi * v[1]))
            burst.reshape(together)[:, at[0], at[1]] += BURST_MEDIAN * height
    columns["h.s.ar1"] = ar1
    columns["h.s.burst"] = burst
