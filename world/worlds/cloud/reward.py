"""What a step earns, and when it is in target.

A step is in target iff every service with users holds its own p95 and error objective, cost and
carbon are below their targets, no batch work is older than its deadline and nothing essential is
unavailable. reward = [latency] + [cost] + [carbon] + 2·[all] − one-offs/100. In the last step,
what was put off is charged as if the world ran on for 12 steps in which nobody acts.
"""

from __future__ import annotations

import numpy as np

from world.model import Encoded
from world.worlds.cloud import menu
from world.worlds.cloud.batch_work import MOST_BUSY
from world.worlds.cloud.cost import unit_prices
from world.worlds.cloud.settings import CARBON, COST
from world.worlds.cloud.state import NOW, Array, Floats, Measured, State
from world.worlds.cloud.tables import RESERVED_FACTOR

USD_PER_POINT = 100.0
"""One-off dollars that cost one point."""
RUN_OUT_STEPS = 12
USD_PER_VCPU_HOUR = 0.048
"""On-demand price of a vCPU. Source: m5 at $0.768/h for 16 vCPU."""
HOURS_PER_YEAR = 8760.0


def judge(before: State, after: State) -> dict[str, Array]:
    """Flags of a step: ``latency``, ``cost``, ``carbon``, ``errors``, ``batch``, ``essential``,
    ``all`` (bool [B]), ``one_off_usd`` and ``reward`` (float64 [B]).
    """  # noqa: D205
    settings, columns = after.settings, after.columns
    params, targets = settings.params, settings.scenario.targets
    measured = columns[NOW]
    where = Measured(settings)
    quiet = settings.batch
    slow = measured[:, where.service("p95_ms")] >= params.slo_p95_ms
    failing = measured[:, where.service("error_fraction")] >= params.slo_error_fraction
    latency = ~(slow & ~quiet).any(axis=-1)
    errors = ~(failing & ~quiet).any(axis=-1)
    cost = measured[:, 1] < targets[COST]
    carbon = measured[:, 2] < targets[CARBON]
    on_time: Array = np.ones(after.batch, dtype=np.bool_)
    if settings.batch_index.size:
        late = columns["s.due_hours"] > settings.per_service("deadline_h")
        on_time = ~np.any(late & quiet, axis=-1)
    essential = columns["h.w.unavailable"][:, 0] == 0
    both = latency & errors & cost & carbon & on_time & essential
    spent = columns["w.one_off_usd"][:, 0] - before.columns["w.one_off_usd"][:, 0]
    points = (
        latency.astype(np.float64) + cost.astype(np.float64) + carbon.astype(np.float64)
        + 2.0 * both.astype(np.float64)
    )  # fmt: skip
    return {
        "latency": latency, "cost": cost, "carbon": carbon, "errors": errors, "batch": on_time,
        "essential": essential, "all": both, "one_off_usd": spent,
        "reward": points - spent / USD_PER_POINT,
    }  # fmt: skip


def unused_terms_usd(state: State) -> Floats:
    """Reservations without machines at the end, for the rest of their year, $, float64 [B]."""
    settings, columns = state.settings, state.columns
    rows = slice(0, settings.queues)
    reserved = columns["reserved"][:, rows] + columns["reserve_ordered"][:, rows]
    unused = np.maximum(reserved - columns["count"][:, rows], 0.0)
    price = unit_prices(settings, columns, rows) * RESERVED_FACTOR
    hours = HOURS_PER_YEAR - state.step * settings.dt_h
    total: Floats = np.add.reduce(unused * price, axis=-1) * hours
    return total


def unfinished_work_usd(state: State) -> Floats:
    """Price of doing the batch work that is left, at the home region's machines, $, [B]."""
    settings, columns = state.settings, state.columns
    index = settings.batch_index
    if not index.size:
        return np.zeros(state.batch)
    mean = columns["h.s.base_rps"][:, index] * settings.per_service("tau_ms")[index] * 1e-3
    total: Floats = np.add.reduce(columns["s.backlog_hours"][:, index] * mean, axis=-1)
    return total * (USD_PER_VCPU_HOUR / MOST_BUSY)


def nothing(state: State) -> Encoded:
    """Doing nothing in every world."""
    b = state.batch
    return Encoded(
        np.full((b, 1), menu.NOP, dtype=np.int32),
        np.full((b, 1), -1, dtype=np.int32),
        np.zeros((b, 1, menu.PARAMS)),
    )


def charge_at_end(final: State) -> Floats:
    """Points that what was put off costs in the last step, float64 [B], at most 0.

    The world runs on for 12 steps at nop. Every point by which those steps earn less than the last
    one did is charged, and with it the reservations that nobody uses and the work left undone.
    """
    from world.worlds.cloud.advance import advance

    state = final
    last = final.flags["reward"] + final.flags["one_off_usd"] / USD_PER_POINT
    short = np.zeros(final.batch)
    for _ in range(RUN_OUT_STEPS):
        state = advance(state, nothing(state)).state
        short = short + np.minimum(state.flags["reward"] - last, 0.0)
    put_off = unused_terms_usd(final) + unfinished_work_usd(final)
    charge: Floats = short - put_off / USD_PER_POINT
    return charge
