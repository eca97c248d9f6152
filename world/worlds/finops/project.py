"""Consequences of many plans at once, as overlays on the few rows that each plan touches.

Nothing is copied per plan: a plan's rows are its targets, the rows that they hang on, and the rows
with an answer under way. They go through the same rules as a real step; every other row keeps what
it adds to the totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.errors import InadmissibleActionError
from world.model import Continuation, Plan, Situation
from world.worlds.finops import rules
from world.worlds.finops.estate import State, gather, unsettled
from world.worlds.finops.wording import Reading

MG_PER_KG = 1e6


class Overlay(NamedTuple):
    """Plans as arrays over the rows that they touch.

    Attributes:
        rows: int64 [P, R], row; padded with 0.
        valid: bool [P, R].
        act: int32 [steps, P, R], kind per row; -1 is none.
        size: int32 [steps, P, R].
        asked: int64 [steps, P], actions with a target.
        clashed: int64 [steps, P], of those, second ones on the same target.
        hangs: ``(plan, place of the dependant, place of what it hangs on)``.
        last: int32 [steps, P], highest kind of the step.
    """

    rows: NDArray[np.int64]
    valid: NDArray[np.bool_]
    act: NDArray[np.int32]
    size: NDArray[np.int32]
    asked: NDArray[np.int64]
    clashed: NDArray[np.int64]
    hangs: tuple[tuple[int, int, int], ...]
    last: NDArray[np.int32]


def overlay(state: State, plans: Sequence[Sequence[Sequence[Reading]]], steps: int) -> Overlay:
    """Lay out the rows of every plan.

    Args:
        state: Where the plans start.
        plans: Per plan and step: its actions in canonical order.
        steps: Steps to lay out.
    """
    waiting: list[int] = []
    if state.frame.answers:
        waiting = np.flatnonzero(unsettled(state.columns, 0)).tolist()
    places: list[dict[int, int]] = []
    hangs: set[tuple[int, int, int]] = set()
    for number, plan in enumerate(plans):
        place = {row: position for position, row in enumerate(waiting)}
        places.append(place)
        for reading in (reading for step in plan for reading in step if reading.row >= 0):
            at = place.setdefault(reading.row, len(place))
            if reading.kind == rules.TERMINATE:
                parents = state.frame.edges.parents(reading.row).tolist()
                hangs |= {(number, at, place.setdefault(row, len(place))) for row in parents}
    width = max(1, *(len(place) for place in places))
    made = Overlay(
        rows=np.zeros((len(plans), width), dtype=np.int64),
        valid=np.zeros((len(plans), width), dtype=bool),
        act=np.full((steps, len(plans), width), rules.NO_ACTION, dtype=np.int32),
        size=np.full((steps, len(plans), width), -1, dtype=np.int32),
        asked=np.zeros((steps, len(plans)), dtype=np.int64),
        clashed=np.zeros((steps, len(plans)), dtype=np.int64),
        hangs=tuple(sorted(hangs)),
        last=np.full((steps, len(plans)), rules.NOP, dtype=np.int32),
    )
    for number, (plan, place) in enumerate(zip(plans, places, strict=True)):
        made.rows[number, : len(place)] = list(place)
        made.valid[number, : len(place)] = True
        for at, step in enumerate(plan[:steps]):
            _lay_step(made, number, at, step, place)
    return made


def _lay_step(
    made: Overlay, number: int, at: int, step: Sequence[Reading], place: dict[int, int]
) -> None:
    for reading in step:
        if reading.row < 0 or reading.kind <= rules.NOP:
            continue
        made.asked[at, number] += 1
        made.last[at, number] = max(made.last[at, number], reading.kind)
        position = place[reading.row]
        if made.act[at, number, position] != rules.NO_ACTION:
            made.clashed[at, number] += 1
            continue
        made.act[at, number, position] = reading.kind
        made.size[at, number, position] = reading.size


def project(
    state: State,
    samples: int,
    plans: Sequence[Plan],
    readings: Sequence[Sequence[Sequence[Reading]]],
    horizon: int,
    continuation: Continuation | None,
) -> NDArray[np.float64]:
    """Metrics along every plan.

    Args:
        state: K sampled states of one world.
        samples: K.
        plans: The plans, for messages.
        readings: The same plans as numbers, in canonical order within a step.
        horizon: Steps to look ahead.
        continuation: What happens after a plan; only nop can be continued with.

    Returns:
        float64 [1, n_plans, K, horizon, 5]; NaN is saturation or carbon that is not known.

    Raises:
        InadmissibleActionError: The continuation wants an action that needs a target.
    """
    steps = max(horizon, 1)
    # A bill's samples are all the same: look at one of them.
    looked = samples if state.frame.answers else 1
    laid = overlay(state, readings, steps)
    cells = {
        name: column[:, laid.rows]
        for name, column in gather(state.columns, slice(0, looked), slice(None)).items()
    }
    base = _Base.of(state, looked, laid)
    sums = {name: total[:looked, None] for name, total in base.totals.items()}
    result = np.empty((looked, len(plans), steps, 5))
    knows_carbon = state.knows_carbon(0)
    for step in range(horizon):
        before, act, size = cells, laid.act[step], laid.size[step]
        _check_continuation(plans, step, continuation, result, laid, state.step)
        code = rules.refusals(before, np.broadcast_to(act, before["state"].shape), size)
        allowed = np.where(code == 0, act, rules.NO_ACTION)
        fewer = np.zeros(allowed.shape, dtype=np.int32)
        for number, dependant, needed in laid.hangs:
            fewer[:, number, needed] += allowed[:, number, dependant] == rules.TERMINATE
        cells = rules.advance(before, allowed, size, fewer, state.frame.answers)
        churn = ((code > 0) | ((act == rules.RESIZE) & (before["resized"] != 0))) & (act > 0)
        ceiling = state.frame.ceiling_percent
        changes = {
            "cost": rules.nano(cells["cost_usd_per_hour"])
            - rules.nano(before["cost_usd_per_hour"]),
            "unaccounted": rules.unaccounted_nano(cells, ceiling)
            - rules.unaccounted_nano(before, ceiling),
            "carbon": rules.carbon_mg(cells) - rules.carbon_mg(before),
        }
        for name, change in changes.items():
            sums[name] = sums[name] + np.where(laid.valid, change, 0).sum(axis=-1)
        hot = np.where(laid.valid, rules.hottest_percent(cells), np.nan)
        result[:, :, step, 0] = sums["cost"] / rules.NANO
        result[:, :, step, 1] = sums["unaccounted"] / rules.NANO
        result[:, :, step, 2] = np.fmax(base.hottest, np.fmax.reduce(hot, axis=-1, initial=np.nan))
        result[:, :, step, 3] = sums["carbon"] / MG_PER_KG if knows_carbon else np.nan
        result[:, :, step, 4] = (churn.sum(axis=-1) + laid.clashed[step]) / np.maximum(
            laid.asked[step], 1
        )
    ordered = np.moveaxis(result, 0, 1)
    full = np.broadcast_to(ordered, (len(plans), samples, steps, 5))[None, :, :, :horizon]
    return np.ascontiguousarray(full)


class _Base(NamedTuple):
    """What the rows outside an overlay contribute.

    Attributes:
        totals: Name → int64 [K].
        hottest: float64 [P], hottest known row that the plan does not touch; NaN for none.
    """

    totals: dict[str, NDArray[np.int64]]
    hottest: NDArray[np.float64]

    @staticmethod
    def of(state: State, looked: int, laid: Overlay) -> _Base:
        totals = {
            "cost": state.cost_nano[:looked],
            "unaccounted": state.unaccounted_nano[:looked],
            "carbon": state.carbon_mg[:looked],
        }
        hot = np.fmax(state.columns["cpu_percent"][0], state.columns["memory_percent"][0])
        hot = np.where(np.isnan(hot), -np.inf, hot)
        most = min(len(hot), laid.rows.shape[1] + 1)
        top = np.argpartition(hot, len(hot) - most)[len(hot) - most :]
        top = top[np.argsort(-hot[top], kind="stable")]
        touched = ((laid.rows[:, :, None] == top) & laid.valid[:, :, None]).any(axis=1)
        hottest = np.where(touched, -np.inf, hot[top]).max(axis=1)
        return _Base(totals, np.where(np.isneginf(hottest), np.nan, hottest))


def _check_continuation(
    plans: Sequence[Plan],
    step: int,
    continuation: Continuation | None,
    result: NDArray[np.float64],
    laid: Overlay,
    start: int,
) -> None:
    """Ask the continuation where a plan has ended; it may only answer nop."""
    ended = [number for number, plan in enumerate(plans) if len(plan) <= step]
    if continuation is None or not ended or step == 0:
        return
    metrics = result[:, ended, step - 1, :].reshape(-1, 5)
    last = np.broadcast_to(laid.last[step - 1, ended], (result.shape[0], len(ended))).reshape(-1)
    answer = continuation(
        Situation(metrics, last.astype(np.int32), np.zeros(len(last), dtype=bool), start + step)
    )
    wanted: Any = np.asarray(answer)
    if np.any(wanted != rules.NOP):
        raise InadmissibleActionError(
            f"the continuation policy answered template {int(wanted.max())}",
            "in this world every action but nop needs a target, which a continuation cannot name",
            "Use no continuation, or one that answers nop (0)",
        )
