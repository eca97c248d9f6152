"""The physics of one observed step with everything hidden left out: what a request would load.

From the public columns of a step follow the instances that were ready, how traffic was shared and
how busy one request per second keeps every queue. Dividing measured utilisations by that gives
readings of demand; running the queues at measured utilisations gives the round trips and errors
that overload alone explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from world.worlds.cloud import energy, solve
from world.worlds.cloud import schema as names
from world.worlds.cloud.cost import queue_cost, static_cost
from world.worlds.cloud.needs import Needs
from world.worlds.cloud.overlay import Rest
from world.worlds.cloud.queueing import percentiles_ms, serve
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.view import CloudInventory

_STATIC = (
    "kind", "size", "region", "slot", "count", "state", "size_gb", "pricing", "idle_hours",
    "essential", "needed_by",
)  # fmt: skip
MINER_ABOVE_PERCENT = 90.0
"""Mean CPU that no machine outside the tiers has unless a miner runs on it."""


@dataclass(slots=True)
class Frame:
    """One observed step.

    Attributes:
        view: The observed inventory.
        state: One world (B = 1) of the public columns, nothing wrong in it.
        needs: Beliefs about the rows beyond the tiers.
        count: Instances that take requests, float64 [Q].
        share: Share of its service's traffic that each pool gets, float64 [S, G].
        capacity: Requests per second that every queue serves, nothing wrong, float64 [Q].
        gain: Utilisation per request per second of the service, nothing wrong, float64 [Q].
        rest: Cost, waste and watts of all rows that are no queue.
        miners: Rows on which a miner runs.
    """

    view: CloudInventory
    state: State
    needs: Needs
    count: Floats
    share: Floats
    capacity: Floats
    gain: Floats
    rest: Rest
    miners: Array


def frame(view: CloudInventory, needs: Needs, before: Frame | None) -> Frame:
    """Work out one observed step.

    Args:
        view: What was seen.
        needs: Beliefs about the rows.
        before: The step before, from which what did not change is taken.
    """
    settings = view.settings
    state = _plain(view, needs)
    count = solve.ready(state)
    share = solve.shares(state, count)
    sizes = solve.queue_sizes(state)
    factor = 1.0 / (1.0 - solve.ECO_SLOWDOWN * state.columns["s.eco_level"][0])
    factor = np.where(state.columns["s.cold_steps"][0] > 0, factor * solve.COLD_SLOWDOWN, factor)
    pools, g = settings.pools, settings.regions
    tau = np.empty(settings.queues)
    tau[:pools] = np.repeat(settings.per_service("tau_ms") * 1e-3 * factor, g)
    tau[pools:] = settings.per_service("tau_db_ms") * 1e-3
    capacity = count[0] * sizes.vcpu[0] * sizes.speed[0] / tau
    load = np.concatenate([share[0].ravel(), solve.database_calls(state)[0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(capacity > 0, load / capacity, 0.0)
    rest = _rest(state, before)
    return Frame(view, state, needs, count[0], share[0], capacity, gain, rest, _miners(view))


def _plain(view: CloudInventory, needs: Needs) -> State:
    """One world of the public columns with factors at their normal values."""
    settings = view.settings
    g = settings.regions
    columns: dict[str, Array] = dict(view.public)
    columns["h.g.up"] = np.ones((1, g), dtype=np.uint8)
    columns["h.g.price"] = columns["h.g.ci"] = np.ones((1, g))
    columns["h.cpu_percent"] = needs.use["cpu_percent"][None, :]
    columns["h.compromised"] = np.zeros((1, settings.rows), dtype=np.uint8)
    one = np.zeros(1, dtype=np.uint64)
    return State(settings, one, one, view.step, columns, mean_noise=True, ids=tuple(view.ids))


def _rest(state: State, before: Frame | None) -> Rest:
    """Cost, waste and watts beyond the queues; those of the step before where no row changed."""
    if before is not None:
        old, new = before.state.columns, state.columns
        rows = slice(state.settings.queues, state.settings.rows)
        same = all(
            np.array_equal(
                old[name][:, rows], new[name][:, rows], equal_nan=new[name].dtype.kind == "f"
            )
            for name in (*_STATIC, "h.cpu_percent")
        ) and np.array_equal(old["g.spot"], new["g.spot"])
        if same:
            return before.rest
    return Rest(*static_cost(state), energy.static_kilowatts(state))


def _miners(view: CloudInventory) -> Array:
    tiers = view.settings.tiers
    public = view.public
    with np.errstate(invalid="ignore"):
        hot = public["cpu_percent"][0, tiers:] > MINER_ABOVE_PERCENT
    hot &= public["kind"][0, tiers:] == names.COMPUTE
    hot &= public["state"][0, tiers:] == names.RUNNING
    return tiers + np.flatnonzero(hot)


class Echo(NamedTuple):
    """What measured utilisations alone explain, at five points of their distribution.

    Attributes:
        p95_ms: float64 [5, S].
        own_error: Errors of a service by itself, float64 [5, S].
    """

    p95_ms: Floats
    own_error: Floats


POINTS: Floats = np.array(
    [-2.856970013872806, -1.355626179974266, 0.0, 1.355626179974266, 2.856970013872806]
)
"""Places of a normal distribution in standard deviations that stand for all of it.

Source: Gauss-Hermite quadrature with five points, Abramowitz and Stegun, table 25.10.
"""


def echo(at: Frame, busy: Floats, spread: Floats, slow: Floats, crowded: Array) -> Echo:
    """Run the queues at measured utilisations.

    Args:
        at: The step.
        busy: Utilisation of every queue, float64 [Q].
        spread: Standard deviation of its logarithm, float64 [Q].
        slow: Factor on the service time that is believed, float64 [Q].
        crowded: Which queues were over their capacity in the step before, bool [Q].
    """
    settings = at.view.settings
    params, pools = settings.params, settings.pools
    sizes = solve.queue_sizes(at.state)
    cv2 = solve._cv2(settings)
    capacity = at.capacity / slow
    seconds = np.where(at.capacity > 0, at.count * sizes.vcpu[0] / np.maximum(capacity, 1e-12), 0.0)
    wide = (len(POINTS), settings.queues)
    load = busy * capacity * np.exp(POINTS[:, None] * spread)
    unit = seconds / sizes.vcpu[0] * 0.5 * (params.arrival_cv2 + cv2)
    backlog = np.where(crowded, params.timeout_s * capacity, 0.0)
    wait = serve(
        load, np.broadcast_to(capacity, wide), np.broadcast_to(backlog, wide),
        np.broadcast_to(unit, wide), np.broadcast_to(sizes.root[0], wide), settings.dt_s,
        params.timeout_s,
    )  # fmt: skip
    mean = wait.mean_s + seconds
    var = wait.variance_s2 + cv2 * seconds * seconds
    calls = solve.database_calls(at.state)[0]
    shape = (len(POINTS), settings.s, settings.regions)
    total = mean[:, :pools].reshape(shape) + (calls * mean[:, pools:])[:, :, None]
    variance = var[:, :pools].reshape(shape) + (calls * var[:, pools:])[:, :, None]
    route = solve.trips(at.state)
    fixed = route.user_ms + calls[:, None] * route.database_ms
    db_drop = np.minimum(calls * wait.dropped_fraction[:, pools:], 1.0)
    drop = 1.0 - (1.0 - wait.dropped_fraction[:, :pools].reshape(shape)) * (
        1.0 - db_drop[:, :, None]
    )
    p95, _ = percentiles_ms(total, variance, fixed, drop, 2.0 * params.timeout_s)
    own = np.add.reduce(at.share * drop, axis=-1)
    failing = at.state.columns["s.failover_steps"][0] > 0
    own = np.where(failing, 1.0 - (1.0 - own) * (1.0 - solve.FAILOVER_ERRORS), own)
    return Echo(np.add.reduce(at.share * p95, axis=-1), own)


def queue_dollars(at: Frame) -> tuple[float, float]:
    """Cost of pools and databases: all of them, and those of the home region, $/h."""
    settings, state = at.view.settings, at.state
    every = float(queue_cost(state, np.ones((1, 1)))[0])
    home = (state.columns["slot"][:, : settings.queues] == 0).astype(np.float64)
    return every, float(queue_cost(state, home)[0])


def kilograms(at: Frame, busy: Floats) -> tuple[float, float]:
    """Carbon at measured utilisations: all of it, and that of the home region, kg/day."""
    settings, state = at.view.settings, at.state
    probe = state.follow()
    probe.memory = {"static_kilowatts": ((probe.extras,), at.rest.kilowatts)}
    kw = energy.queue_kilowatts(probe, busy[None, :])
    every = float(energy.carbon(probe, kw)[0])
    away = np.ones((1, settings.regions))
    away[0, 0] = 0.0
    probe.columns["h.g.ci"] = away
    return every, every - float(energy.carbon(probe, kw)[0])
