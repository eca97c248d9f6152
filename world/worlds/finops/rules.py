"""What is allowed and what happens, row by row: the one place that knows it.

Every function works on *cells*: a dict of equally shaped arrays, one value per row looked at. One
row, the few rows that a plan touches, or every touched row of 4,096 worlds go through the same
lines, so that dry run, projection, single step and batched step cannot disagree, not even in the
last bit. Money is added up in whole nano-dollars per hour and carbon in whole milligrams per day:
such sums are exact whatever their order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.worlds.finops.schema import ESSENTIAL, KINDS, METERED_KINDS
from world.worlds.finops.sizes import OVERLOAD_PERCENT
from world.worlds.finops.tables import PUE, UNKNOWN_CPU_PERCENT, size_table

Cells = dict[str, NDArray[Any]]
"""Column name → values of the rows looked at; all of one shape."""

NOP, TERMINATE, RESIZE, REQUEST_METRICS, FLAG_FOR_OWNER = range(5)
"""Position of each kind of action in the world's templates."""
NO_ACTION = -1

NANO = 1e9

IN_USE_CPU_PERCENT = 5.0
"""From this mean CPU a machine is in use.

Source: AWS Compute Optimizer calls an instance idle whose CPU peaks below 5 % over 14 days
(docs.aws.amazon.com/compute-optimizer, idle resource recommendations, 2025).
"""

GRACE_HOURS = 24.0
"""What was used or created within this many hours is in use."""

METRICS_DELAY_STEPS = 1
OWNER_DELAY_STEPS = 2

_YES = ESSENTIAL.index("yes")
_UNKNOWN = ESSENTIAL.index("unknown")
_METERED = np.array([kind in METERED_KINDS for kind in KINDS])


class Refusal(IntEnum):
    """Why a row's action cannot be taken; 0 is that it can."""

    NONE = 0
    GONE = 1
    PROTECTED = 2
    MANAGED = 3
    NO_SIZE = 4
    NOT_ON_LADDER = 5
    SAME_SIZE = 6
    CPU_UNKNOWN = 7
    MEMORY_UNKNOWN = 8
    USE_UNKNOWN = 9
    ESSENTIAL_UNKNOWN = 10
    DEPENDANTS = 11
    USE_KNOWN = 12
    METRICS_ASKED = 13
    ESSENTIAL_KNOWN = 14
    OWNER_ASKED = 15
    CLASH = 16


class Damage(NamedTuple):
    """What one step broke, per row; bool arrays of the cells' shape.

    Attributes:
        harm: Something essential was terminated or overloaded.
        violation: Something that is in use was terminated, or something was overloaded.
    """

    harm: NDArray[np.bool_]
    violation: NDArray[np.bool_]


def size_row(cells: Cells) -> NDArray[Any]:
    """Row of the size table per cell; 0 where the size is none or free text."""
    size = cells["size"]
    rows: NDArray[Any] = np.where(size < size_table().count, size, 0)
    return rows


def use_known(cells: Cells) -> NDArray[Any]:
    """Whether the use is known: CPU of what is metered, idle time (or CPU) of anything else."""
    cpu = ~np.isnan(cells["cpu_percent"])
    known: NDArray[Any] = cpu | (~_METERED[cells["kind"]] & ~np.isnan(cells["idle_hours"]))
    return known


def use_complete(cells: Cells) -> NDArray[Any]:
    """Whether there is nothing left that `request_metrics` could tell."""
    memory_matters = (size_row(cells) > 0) & _METERED[cells["kind"]]
    known: NDArray[Any] = use_known(cells) & ~(memory_matters & np.isnan(cells["memory_percent"]))
    return known


def in_use(cells: Cells) -> NDArray[Any]:
    """Whether there is a sign of use: CPU, a recent use, or a recent creation."""
    busy: NDArray[Any] = (
        (cells["cpu_percent"] >= IN_USE_CPU_PERCENT)
        | (cells["idle_hours"] < GRACE_HOURS)
        | (cells["age_hours"] < GRACE_HOURS)
    )
    return busy


def nano(usd_per_hour: NDArray[Any]) -> NDArray[np.int64]:
    """$/h as whole nano-dollars per hour."""
    return np.rint(usd_per_hour * NANO).astype(np.int64)


def _resized(cells: Cells, new: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """CPU, memory and $/h after a resize to size rows `new`; NaN where either size is none.

    The price moves by the ratio of list prices, so that a discount stays; a credit stays as it is.
    """
    table, old = size_table(), size_row(cells)
    cost = cells["cost_usd_per_hour"]
    cpu = cells["cpu_percent"] * (table.vcpu[old] / table.vcpu[new])
    memory = cells["memory_percent"] * (table.memory_gib[old] / table.memory_gib[new])
    priced = np.rint(cost * (table.usd_per_hour[new] / table.usd_per_hour[old]) * NANO) / NANO
    return cpu, memory, np.where(cost > 0.0, priced, cost)


def _first(*reasons: tuple[NDArray[Any], Refusal]) -> NDArray[np.int8]:
    """The first reason that holds, per cell."""
    code = np.zeros(np.shape(reasons[0][0]), dtype=np.int8)
    for holds, reason in reversed(reasons):
        code[holds] = reason
    return code


def _terminate_refusals(cells: Cells) -> NDArray[np.int8]:
    return _first(
        (cells["state"] != 0, Refusal.GONE),
        (cells["protected"] != 0, Refusal.PROTECTED),
        (cells["managed_by"] != 0, Refusal.MANAGED),
        (cells["live_dependants"] > 0, Refusal.DEPENDANTS),
        (~use_known(cells), Refusal.USE_UNKNOWN),
        (cells["essential"] == _UNKNOWN, Refusal.ESSENTIAL_UNKNOWN),
    )


def _resize_refusals(cells: Cells, new_size: NDArray[Any]) -> NDArray[np.int8]:
    table, old = size_table(), size_row(cells)
    inside = (new_size > 0) & (new_size < table.count)
    new = np.where(inside, new_size, 0)
    less_cpu = (table.vcpu[new] < table.vcpu[old]) & np.isnan(cells["cpu_percent"])
    less_memory = (table.memory_gib[new] < table.memory_gib[old]) & np.isnan(
        cells["memory_percent"]
    )
    return _first(
        (cells["state"] != 0, Refusal.GONE),
        (cells["protected"] != 0, Refusal.PROTECTED),
        (cells["managed_by"] != 0, Refusal.MANAGED),
        (old == 0, Refusal.NO_SIZE),
        (~inside | (table.ladder[new] != table.ladder[old]), Refusal.NOT_ON_LADDER),
        (new == old, Refusal.SAME_SIZE),
        (less_cpu & less_memory, Refusal.USE_UNKNOWN),
        (less_cpu, Refusal.CPU_UNKNOWN),
        (less_memory, Refusal.MEMORY_UNKNOWN),
    )


def _request_refusals(cells: Cells) -> NDArray[np.int8]:
    return _first(
        (cells["state"] != 0, Refusal.GONE),
        (use_complete(cells), Refusal.USE_KNOWN),
        (cells["metrics_asked"] != 0, Refusal.METRICS_ASKED),
    )


def _flag_refusals(cells: Cells) -> NDArray[np.int8]:
    return _first(
        (cells["state"] != 0, Refusal.GONE),
        (cells["essential"] != _UNKNOWN, Refusal.ESSENTIAL_KNOWN),
        (cells["owner_asked"] != 0, Refusal.OWNER_ASKED),
    )


def refusals_of(kind: int, cells: Cells, new_size: NDArray[Any]) -> NDArray[np.int8]:
    """`Refusal` per cell of one kind of action.

    Args:
        kind: Position of the kind in the templates.
        cells: Rows looked at.
        new_size: Size code per cell; read for resizes only.
    """
    if kind == TERMINATE:
        return _terminate_refusals(cells)
    if kind == RESIZE:
        return _resize_refusals(cells, new_size)
    if kind == REQUEST_METRICS:
        return _request_refusals(cells)
    if kind == FLAG_FOR_OWNER:
        return _flag_refusals(cells)
    return np.zeros(cells["state"].shape, dtype=np.int8)


def refusals(cells: Cells, act: NDArray[Any], new_size: NDArray[Any]) -> NDArray[np.int8]:
    """`Refusal` per cell, where every cell may have another kind of action."""
    code = np.zeros(np.shape(act), dtype=np.int8)
    for kind in (TERMINATE, RESIZE, REQUEST_METRICS, FLAG_FOR_OWNER):
        mask = act == kind
        if mask.any():
            code = np.where(mask, refusals_of(kind, cells, new_size), code)
    return code


def damage(cells: Cells, act: NDArray[Any], new_size: NDArray[Any]) -> Damage:
    """What allowed actions break, by effect and from what is known before they are taken."""
    essential = cells["essential"] == _YES
    ended = act == TERMINATE
    new = np.where(act == RESIZE, new_size, 0)
    cpu, memory, _ = _resized(cells, new)
    over_cpu = (cpu >= OVERLOAD_PERCENT) & (cpu > cells["cpu_percent"])
    over_memory = (memory >= OVERLOAD_PERCENT) & (memory > cells["memory_percent"])
    overloaded = over_cpu | over_memory
    return Damage(
        harm=essential & (ended | overloaded), violation=(ended & in_use(cells)) | overloaded
    )


def advance(
    cells: Cells, act: NDArray[Any], new_size: NDArray[Any], fewer: NDArray[Any], answers: bool
) -> Cells:
    """The rows one step later.

    Args:
        cells: Rows before; not changed.
        act: Kind of action per row, already allowed; `NO_ACTION` where there is none.
        new_size: Size code per row, read for resizes only.
        fewer: How many of each row's dependants are terminated in this step.
        answers: Whether requests are ever answered (a real bill has no hidden truth).
    """
    after = dict(cells)
    after["live_dependants"] = cells["live_dependants"] - fewer.astype(np.int32)
    _ask(after, act, answers)
    _resize(after, act, new_size)
    _terminate(after, act)
    if answers:
        _answer(after)
    return after


def _ask(after: Cells, act: NDArray[Any], answers: bool) -> None:
    for kind, who, delay in (
        (REQUEST_METRICS, "metrics", METRICS_DELAY_STEPS),
        (FLAG_FOR_OWNER, "owner", OWNER_DELAY_STEPS),
    ):
        asks = act == kind
        if asks.any():
            after[f"{who}_asked"] = np.where(asks, np.uint8(1), after[f"{who}_asked"])
            wait = np.uint8(delay if answers else 0)
            after[f"{who}_wait_steps"] = np.where(asks, wait, after[f"{who}_wait_steps"])


def _resize(after: Cells, act: NDArray[Any], new_size: NDArray[Any]) -> None:
    mask = act == RESIZE
    if not mask.any():
        return
    table, old = size_table(), size_row(after)
    new = np.where(mask, new_size, 0)
    cpu, memory, cost = _resized(after, new)
    for name, ratio in (
        ("h.cpu_percent", table.vcpu[old] / table.vcpu[new]),
        ("h.memory_percent", table.memory_gib[old] / table.memory_gib[new]),
    ):
        if name in after:
            after[name] = np.where(mask, after[name] * ratio, after[name])
    after["cpu_percent"] = np.where(mask, cpu, after["cpu_percent"])
    after["memory_percent"] = np.where(mask, memory, after["memory_percent"])
    after["cost_usd_per_hour"] = np.where(mask, cost, after["cost_usd_per_hour"])
    after["size"] = np.where(mask, new_size, after["size"]).astype(np.int32)
    after["resized"] = np.where(mask, np.uint8(1), after["resized"])


def _terminate(after: Cells, act: NDArray[Any]) -> None:
    mask = act == TERMINATE
    if not mask.any():
        return
    broken = mask & ((after["essential"] == _YES) | in_use(after))
    after["damaged"] = np.where(broken, np.uint8(1), after["damaged"])
    after["state"] = np.where(mask, np.int8(1), after["state"])
    cost = after["cost_usd_per_hour"]
    after["cost_usd_per_hour"] = np.where(mask, np.minimum(cost, 0.0), cost)
    for name in ("cpu_percent", "memory_percent", "idle_hours"):
        after[name] = np.where(mask, np.nan, after[name])
    for name in ("metrics_wait_steps", "owner_wait_steps"):
        after[name] = np.where(mask, np.uint8(0), after[name])


def _answer(after: Cells) -> None:
    metrics, owner = after["metrics_wait_steps"] == 1, after["owner_wait_steps"] == 1
    for name in ("cpu_percent", "memory_percent", "idle_hours"):
        reveal = metrics & np.isnan(after[name])
        after[name] = np.where(reveal, after[f"h.{name}"], after[name])
    reveal = owner & (after["essential"] == _UNKNOWN)
    after["essential"] = np.where(reveal, after["h.essential"], after["essential"])
    after["news"] = (metrics | owner).astype(np.uint8)
    for name in ("metrics_wait_steps", "owner_wait_steps"):
        wait = after[name]
        after[name] = np.where(wait > 0, wait - 1, wait).astype(np.uint8)


def unaccounted_nano(cells: Cells, ceiling_percent: float) -> NDArray[np.int64]:
    """Spend per row that nobody has accounted for, in nano-dollars per hour.

    It is no measure of what could be saved: it also counts what nobody knows anything about, and
    it falls by asking, before anything is saved. What it says is how much of the spend somebody
    still has to look at or act on:

    * use not fully known and nobody has asked: all it costs;
    * known idle and not known essential: all it costs, unless its owner has been asked;
    * in use or essential, and use fully known: what the cheapest fitting smaller size would save;
    * anything else, and whatever is protected or managed by others: nothing.

    An answer that arrived in this very step does not count yet: nobody could act on it. So asking
    never raises it, and a room that looks one step ahead has a reason to ask.
    """
    cost = np.maximum(nano(cells["cost_usd_per_hour"]), 0)
    ours = (cells["state"] == 0) & (cells["protected"] == 0) & (cells["managed_by"] == 0)
    known, essential = use_known(cells), cells["essential"]
    idle = known & ~in_use(cells) & (essential != _YES)
    waiting = (essential == _UNKNOWN) & (cells["owner_asked"] != 0)
    complete = use_complete(cells)
    unasked = ~complete & (cells["metrics_asked"] == 0)
    rest = np.where(complete, oversize_nano(cells, ceiling_percent), np.where(unasked, cost, 0))
    spent = np.where(idle, np.where(waiting, 0, cost), rest)
    return np.where(ours & (cells["news"] == 0), spent, 0)


def oversize_nano(cells: Cells, ceiling_percent: float) -> NDArray[np.int64]:
    """What the cheapest smaller size that stays below the ceiling would save, nano-$/h."""
    table, old = size_table(), size_row(cells)
    hot = np.fmax(cells["cpu_percent"], cells["memory_percent"])
    result = np.zeros(old.shape, dtype=np.int64)
    cost = cells["cost_usd_per_hour"]
    look = (old > 0) & (hot < ceiling_percent) & (cost > 0.0)
    if not look.any():
        return result
    rows, options = old[look], table.smaller[old[look]]
    cpu = cells["cpu_percent"][look] * table.vcpu[rows]
    memory = cells["memory_percent"][look] * table.memory_gib[rows]
    fits = (cpu[:, None] / table.vcpu[options] < ceiling_percent) & (
        memory[:, None] / table.memory_gib[options] < ceiling_percent
    )
    best = options[np.arange(len(rows)), np.argmax(fits, axis=1)]
    ratio = table.usd_per_hour[best] / table.usd_per_hour[rows]
    saved = nano(cost[look]) - np.rint(cost[look] * np.where(fits.any(axis=1), ratio, 1.0) * NANO)
    result[look] = np.maximum(saved, 0.0).astype(np.int64)
    return result


def carbon_known(cells: Cells) -> NDArray[Any]:
    """Whether the carbon of a row can be estimated at all: it has a known machine size."""
    known: NDArray[Any] = size_row(cells) > 0
    return known


def carbon_mg(cells: Cells) -> NDArray[np.int64]:
    """Carbon per row in milligrams CO2e per day; 0 for what has no known machine size.

    A sum over rows says something only where `carbon_known` holds for one of them.

    W · 24 h · PUE · g/kWh, with W piecewise linear over 0, 50 and 100 % CPU.
    Source: Cloud Carbon Footprint methodology.
    """
    table, row = size_table(), size_row(cells)
    cpu = cells["cpu_percent"]
    level = np.clip(np.where(np.isnan(cpu), UNKNOWN_CPU_PERCENT, cpu), 0.0, 100.0)
    idle, half, full = (table.watts[row, point] for point in range(3))
    low = idle + (half - idle) * (level / 50.0)
    high = half + (full - half) * ((level - 50.0) / 50.0)
    watts = np.where(level <= 50.0, low, high)
    mg = np.rint(watts * (24.0 * PUE) * cells["grid_g_per_kwh"]).astype(np.int64)
    return np.where(cells["state"] == 0, mg, 0)


def unverified_nano(cells: Cells, ceiling_percent: float) -> NDArray[np.int64]:
    """Savings per row that do not count.

    A resized machine that runs too hot has not saved anything yet, and what was terminated while
    something needed it never will.
    """
    hot = np.fmax(cells["cpu_percent"], cells["memory_percent"]) >= ceiling_percent
    saved = nano(cells["start_usd_per_hour"]) - nano(cells["cost_usd_per_hour"])
    running_hot = (cells["resized"] != 0) & (cells["state"] == 0) & hot
    return np.where(running_hot | (cells["damaged"] != 0), np.maximum(saved, 0), 0)


def hottest_percent(cells: Cells) -> NDArray[Any]:
    """Known CPU or memory, whichever is higher, per row; NaN where neither is known."""
    hot: NDArray[Any] = np.fmax(cells["cpu_percent"], cells["memory_percent"])
    return hot
