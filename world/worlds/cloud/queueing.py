"""One waiting time for every load: queues of many servers that are stable, saturated or over.

The mean wait is one formula for every utilisation, continuous and non-decreasing in load and in
backlog and non-increasing in capacity; there is no switch at ρ = 1 that could be gamed. For ρ < 1
and long steps it is Sakasegawa's approximation of M/M/c with the Allen–Cunneen factor for
variability; for ρ > 1 it is half of what piles up within the step.

All functions are elementwise over arrays of one shape, in seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Z95 = 1.6448536269514722
"""95th percentile of the standard normal distribution."""
Z99 = 2.3263478740408408
"""99th percentile of the standard normal distribution."""

DROPS_AT_P95 = 0.05
"""From this fraction of dropped requests on, the 95th percentile is a dropped request."""
DROPS_AT_P99 = 0.01

_TINY = 1e-12
_STEEPEST = 500.0  # e^500 is infinite for every purpose here


class Wait(NamedTuple):
    """What a queue does in one step; arrays of the queues' shape.

    Attributes:
        mean_s: Mean wait of a request, between 0 and the client's time-out.
        variance_s2: Variance of the wait.
        busy: Utilisation ρ, above 1 in overload.
        dropped_fraction: Requests that time out before they are served.
        backlog: Requests waiting at the end of the step.
    """

    mean_s: Floats
    variance_s2: Floats
    busy: Floats
    dropped_fraction: Floats
    backlog: Floats


def waiting_probability(busy: Floats, root: Floats) -> Floats:
    """Probability that a request waits: ρ^(√(2(c+1)) − 1), 1 from ρ = 1 on.

    Args:
        busy: ρ.
        root: √(2(c+1)) − 1 for c servers.

    Source: Sakasegawa, "An approximation formula L_q ≃ α·ρ^β/(1−ρ)", Annals of the Institute of
    Statistical Mathematics 29 (1977).
    """
    chance: Floats = np.power(np.minimum(busy, 1.0), root)
    return chance


def mean_wait_s(busy: Floats, unit_s: Floats, chance: Floats, dt_s: float) -> Floats:
    """Time-dependent mean wait over a step that starts empty, s.

    W = dt/4·[(ρ−1) + √((ρ−1)² + 8·c/dt)] with c = P_w·unit; for ρ < 1 the same is written as
    2c/((1−ρ) + √…), which does not cancel.

    Args:
        busy: ρ.
        unit_s: τ/c·(ca² + cs²)/2: wait per unit of 1/(1−ρ), s.
        chance: P_w.
        dt_s: Length of the step, s.

    Source: Akçelik, "Travel time functions for transport planning purposes", Australian Road
    Research 21 (1991); the coordinate transformation is Kimber and Hollis (TRRL LR 909, 1979).
    """
    spare = 1.0 - busy
    load = chance * unit_s
    root = np.sqrt(spare * spare + load * (8.0 / dt_s))
    stable = 2.0 * load / np.maximum(np.maximum(spare, 0.0) + root, _TINY)
    over = (root - spare) * (0.25 * dt_s)
    wait: Floats = np.where(spare > 0.0, stable, over)
    return wait


def carried_wait_s(busy: Floats, backlog_s: Floats, dt_s: float) -> Floats:
    """Extra mean wait through an initial backlog that drains at rate 1 − ρ, s.

    The time average of max(0, b − (1−ρ)t) over the step: b²/(2(1−ρ)dt) where it drains within the
    step, else b − (1−ρ)dt/2; for ρ ≥ 1 it stays b. Taking the mean of start and end would be wrong
    by a factor of 2–4.
    """
    drained = np.maximum(1.0 - busy, 0.0) * dt_s
    clears = backlog_s < drained
    short = backlog_s * backlog_s / (2.0 * np.maximum(drained, _TINY))
    extra: Floats = np.where(clears, short, backlog_s - 0.5 * drained)
    return extra


def dropped(busy: Floats, unit_s: Floats, chance: Floats, timeout_s: float) -> Floats:
    """Fraction of requests whose wait reaches the client's time-out.

    Loss of a Brownian queue reflected at 0 and at T: with drift μ = ρ − 1, variance 2·unit and
    θ = μ/unit, μ/(1 − e^(−θT)) of the capacity, weighted by P_w. Far below saturation it is the
    tail of an exponential wait; far above it is 1 − 1/ρ.

    Source: Harrison, "Brownian Motion and Stochastic Flow Systems" (1985), section 5.6; reflected
    wait as in Ward and Glynn, Queueing Systems 43 (2003).
    """
    steep = np.maximum((busy - 1.0) * timeout_s / np.maximum(unit_s, _TINY), -_STEEPEST)
    gentle = np.abs(steep) < 1e-6
    safe = np.where(gentle, 1.0, steep)
    shape = np.where(gentle, 1.0 + 0.5 * steep, safe / -np.expm1(-safe))
    loss = chance * shape * unit_s / (timeout_s * np.maximum(busy, _TINY))
    fraction: Floats = np.clip(loss, 0.0, 1.0)
    return fraction


def serve(
    arrivals_per_s: Floats,
    capacity_per_s: Floats,
    backlog: Floats,
    unit_s: Floats,
    root: Floats,
    dt_s: float,
    timeout_s: float,
) -> Wait:
    """One step of independent queues.

    Args:
        arrivals_per_s: Requests a second.
        capacity_per_s: Requests a second that can be served; 0 serves nothing: every request
            waits until its time-out and is dropped.
        backlog: Requests waiting at the start.
        unit_s: τ/c·(ca² + cs²)/2, s.
        root: √(2(c+1)) − 1.
        dt_s: Length of the step, s.
        timeout_s: Clients leave when they would wait longer, s.
    """
    works = capacity_per_s > 0.0
    capacity = np.where(works, capacity_per_s, 1.0)
    idle = arrivals_per_s <= 0.0
    busy = arrivals_per_s / capacity
    chance = waiting_probability(busy, root)
    mean = mean_wait_s(busy, unit_s, chance, dt_s)
    mean = np.minimum(mean + carried_wait_s(busy, backlog / capacity, dt_s), timeout_s)
    lost = dropped(busy, unit_s, chance, timeout_s)
    left = np.clip(
        backlog + (arrivals_per_s - capacity_per_s) * dt_s, 0.0, timeout_s * capacity_per_s
    )
    # Given that a request waits, its wait is exponential with mean m = W/P_w; hence
    # Var = (2·P_w − P_w²)·m². A backlog makes everybody wait.
    weight = np.maximum(chance, np.minimum(mean / timeout_s, 1.0))
    variance = mean * mean * (2.0 / np.maximum(weight, _TINY) - 1.0)
    dead = ~works & ~idle
    return Wait(
        mean_s=np.where(works, mean, np.where(dead, timeout_s, 0.0)),
        variance_s2=np.where(works, variance, 0.0),
        busy=np.where(works, busy, np.where(dead, 2.0, 0.0)),
        dropped_fraction=np.where(works, np.where(idle, 0.0, lost), np.where(dead, 1.0, 0.0)),
        backlog=left,
    )


def percentiles_ms(
    mean_s: Floats, variance_s2: Floats, constant_ms: Floats, dropped_fraction: Floats, cap_s: float
) -> tuple[Floats, Floats]:
    """95th and 99th percentile of the response time, ms, by matching a log-normal distribution.

    s² = ln(1 + Var/μ²); p = constant + μ·exp(z·s − s²/2), capped. A dropped request counts as one
    that took the cap: shedding load never lowers a percentile.

    Source: moment matching of a log-normal, the usual approximation of response-time tails. It was
    not checked against a simulation of these queues.
    """
    spread2 = np.log1p(variance_s2 / np.maximum(mean_s * mean_s, _TINY))
    spread = np.sqrt(spread2)
    scale = np.log(np.maximum(mean_s, _TINY)) - 0.5 * spread2
    cap_ms = cap_s * 1000.0
    found = []
    for quantile, at in ((Z95, DROPS_AT_P95), (Z99, DROPS_AT_P99)):
        value = np.minimum(constant_ms + np.exp(scale + quantile * spread) * 1000.0, cap_ms)
        share = np.minimum(dropped_fraction / at, 1.0)
        found.append(value + (cap_ms - value) * (share * share))
    return found[0], found[1]
