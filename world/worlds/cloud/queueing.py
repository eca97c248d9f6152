"""One waiting time for every load: queues of many servers that are stable, saturated or over.

The mean wait is one formula for every utilisation, continuous and non-decreasing in load and in
backlog and non-increasing in capacity; there is no switch at ρ = 1 that could be gamed. It is a
Brownian queue between empty and the clients' time-out, told in three closed forms: where it
settles (for ρ < 1 Sakasegawa's approximation of M/M/c with the Allen–Cunneen factor for
variability), how far it gets within a step that starts empty, and what a backlog adds.
`benchmarks/queueing_des.py` puts all of it beside a discrete event simulation.

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
_BEND = 1.8
_WIDEST = (1.0 + _BEND / 4.0) / 16.0  # variance of a wait with mean T/2, in T²
_GENTLE = 1e-4  # a smaller drift is taken for this one: 0/0 at none, and 5 digits are plenty


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


class Limited(NamedTuple):
    """The stationary wait of a busy queue whose clients leave at a time-out.

    Attributes:
        mean_fraction: Mean wait as a fraction of the time-out, 0–1.
        loss: Lost fraction of the capacity in units of unit/time-out: y/(1 − e^(−y)).
    """

    mean_fraction: Floats
    loss: Floats


def limited(busy: Floats, unit_s: Floats, timeout_s: float) -> Limited:
    """A Brownian queue between 0 and T: drift ρ − 1, variance 2·unit, so y = (ρ − 1)·T/unit.

    Its density is a truncated exponential, e^(yx/T) on [0, T], with mean
    T·(1/(1 − e^(−y)) − 1/y): unit/(1 − ρ) far below saturation, T/2 at ρ = 1, T far above.

    Args:
        busy: ρ.
        unit_s: τ/c·(ca² + cs²)/2: wait per unit of 1/(1−ρ), s.
        timeout_s: T.

    Source: Harrison, "Brownian Motion and Stochastic Flow Systems" (1985), chapter 5; reflected
    wait as in Ward and Glynn, Queueing Systems 43 (2003).
    """
    steep = (busy - 1.0) * (timeout_s / np.maximum(unit_s, _TINY))
    steep = np.where(np.abs(steep) < _GENTLE, _GENTLE, steep)
    least = np.maximum(steep, -_STEEPEST)
    loss = least / -np.expm1(-least)
    return Limited((loss - 1.0) / steep, loss)


def reach_s(busy: Floats, unit_s: Floats, dt_s: float) -> Floats:
    """Mean wait over a step that starts empty, were there neither spare capacity nor time-out, s.

    dt/4·[μ + √(μ² + 8·unit/dt)] with μ = max(ρ − 1, 0): √(unit·dt/2) from chance alone, μ·dt/2
    from what piles up.

    Source: the time-dependent term of Akçelik, "Travel time functions for transport planning
    purposes", Australian Road Research 21 (1991), from ρ = 1 on.
    """
    over = np.maximum(busy - 1.0, 0.0)
    reach: Floats = (over + np.sqrt(over * over + unit_s * (8.0 / dt_s))) * (0.25 * dt_s)
    return reach


def relaxed(still_s: Floats, reach: Floats) -> Floats:
    """How far a queue that starts empty settles within the step: 1/(1 + (S/R)²), 0–1.

    Its mean wait over the step is S·√of that. For ρ < 1 and long steps this is
    S·(1 − unit/((1−ρ)²·dt)), the exact deficit of a Brownian queue that starts empty:
    ∫(S − E W(t))dt = unit²/(1−ρ)³.

    Args:
        still_s: S, the stationary mean wait, s.
        reach: R, what the step's length lets a queue reach, s.
    """
    ratio = still_s / np.maximum(reach, _TINY)
    settled: Floats = 1.0 / (1.0 + ratio * ratio)
    return settled


class Carried(NamedTuple):
    """What a backlog adds over a step: mean, s, and variance, s²."""

    mean_s: Floats
    variance_s2: Floats


def carried(
    busy: Floats, backlog_s: Floats, unit_s: Floats, dt_s: float, timeout_s: float
) -> Carried:
    """Extra wait through an initial backlog that drains at rate d = max(1 − ρ, 0) + 3·unit/T.

    The time average of max(0, b − d·t) over the step is b²/(2·d·dt) where it drains within the
    step, else b − d·dt/2. Taking the mean of start and end would be wrong by a factor of 2–4.
    Chance alone drains, too: the second term of d makes the formula exact for a Brownian queue
    at ρ = 1 that starts at the time-out.

    The variance over time is b²·φ/3·(1 − 3φ/4) with φ = b/(d·dt), the part of the step that the
    drain takes. It is held at b²/12, where it would begin to fall while load rises, and counted
    by (20·φ)² where the drain takes less than a twentieth of the step: what fewer than 5 % of
    the requests meet does not move a 95th percentile.
    """
    drained = (np.maximum(1.0 - busy, 0.0) + unit_s * (3.0 / timeout_s)) * dt_s
    drained = np.maximum(drained, _TINY)
    gone = np.minimum(backlog_s, drained)
    mean = gone * gone / (2.0 * drained) + (backlog_s - gone)
    part = np.minimum(backlog_s / drained, 1.0 / 3.0)
    seen = np.minimum(part * (1.0 / DROPS_AT_P95), 1.0) * backlog_s
    return Carried(mean, seen * seen * part * (1.0 / 3.0 - 0.25 * part))


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
    waiting = backlog > 0.0
    dead = ~works & (arrivals_per_s > 0.0)
    mean_s = np.where(dead, timeout_s, 0.0)
    dropped = np.where(dead, 1.0, 0.0)
    busy = np.where(dead, 2.0, 0.0)
    variance_s2 = np.zeros(works.shape)
    # Many rows are empty; the others are worked on side by side.
    live = np.flatnonzero(works & ((arrivals_per_s > 0.0) | waiting))
    capacity = np.take(capacity_per_s, live)
    load = np.take(arrivals_per_s, live) / capacity
    before_s = np.take(backlog, live) / capacity if waiting.any() else None
    wait = _work(load, before_s, np.take(unit_s, live), np.take(root, live), dt_s, timeout_s)
    np.put(busy, live, load)
    np.put(mean_s, live, wait[0])
    np.put(variance_s2, live, wait[1])
    np.put(dropped, live, wait[2])
    left = np.clip(
        backlog + (arrivals_per_s - capacity_per_s) * dt_s, 0.0, timeout_s * capacity_per_s
    )
    return Wait(mean_s, variance_s2, busy, dropped, left)


def _work(
    busy: Floats,
    backlog_s: Floats | None,
    unit_s: Floats,
    root: Floats,
    dt_s: float,
    timeout_s: float,
) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of the wait and the dropped fraction of queues that have capacity."""
    chance = waiting_probability(busy, root)
    # Beyond T/4 the diffusion means nothing and the lost fraction would fall with load.
    unit = np.minimum(unit_s, 0.25 * timeout_s)
    queue = limited(busy, unit, timeout_s)
    still = queue.mean_fraction * timeout_s
    full = relaxed(still, reach_s(busy, unit, dt_s))
    given = still * np.sqrt(full)
    mean = chance * given
    variance = _variance(given, chance, timeout_s)
    if backlog_s is not None:
        before = carried(busy, np.minimum(backlog_s, timeout_s), unit, dt_s, timeout_s)
        # What waits already leaves less room below the time-out.
        mean = mean + before.mean_s * (1.0 - mean / timeout_s)
        spare = 1.0 - variance * (1.0 / (_WIDEST * timeout_s * timeout_s))
        variance = variance + before.variance_s2 * np.maximum(spare, 0.0)
        full = np.maximum(full, before.mean_s / timeout_s)
    # Nobody leaves before the queue has grown to the time-out.
    lost = full * chance * queue.loss * unit / (timeout_s * np.maximum(busy, _TINY))
    return mean, variance, np.minimum(lost, 1.0)


def _variance(given: Floats, chance: Floats, timeout_s: float) -> Floats:
    """Variance of a wait that is 0 with odds 1 − P_w and else a truncated exponential on [0, T].

    With f = given/T the latter has variance T²·f²(1−f)²(1 + 1.8·f(1−f)) within 9 %. It is held
    at its top beyond 1/2, where it would fall: a log-normal matched to a shrinking variance would
    let the percentiles fall while load rises.
    """
    part = np.minimum(given * (1.0 / timeout_s), 0.5)
    room = part * (1.0 - part)
    inner = (timeout_s * timeout_s) * room * room * (1.0 + _BEND * room)
    variance: Floats = chance * (inner + given * given * (1.0 - chance))
    return variance


def percentiles_ms(
    mean_s: Floats, variance_s2: Floats, constant_ms: Floats, dropped_fraction: Floats, cap_s: float
) -> tuple[Floats, Floats]:
    """95th and 99th percentile of the response time, ms, by matching a log-normal distribution.

    s² = ln(1 + Var/μ²); p = constant + μ·exp(z·s − s²/2), capped. A dropped request counts as one
    that took the cap: shedding load never lowers a percentile.

    Source: moment matching of a log-normal, the usual approximation of response-time tails. Of an
    exponential response it gives a p95 that is 7 % too small and a p99 that is 7 % too large.
    """
    spread = np.sqrt(np.log1p(variance_s2 / np.maximum(mean_s * mean_s, _TINY)))
    level = np.log(np.maximum(mean_s, _TINY))
    cap_ms = cap_s * 1000.0
    found = []
    for quantile, at in ((Z95, DROPS_AT_P95), (Z99, DROPS_AT_P99)):
        s = np.minimum(spread, quantile)
        value = np.minimum(constant_ms + np.exp(level + s * (quantile - 0.5 * s)) * 1000.0, cap_ms)
        share = np.minimum(dropped_fraction / at, 1.0)
        found.append(value + (cap_ms - value) * (share * share))
    return found[0], found[1]
