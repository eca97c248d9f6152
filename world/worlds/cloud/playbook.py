"""What follows an imagined plan: the room finishes what it has begun, and begins nothing.

A mark is worth its grace period only because a removal follows it, a question about waste because
of what its answer allows, and isolating a corrupt database because its backup is restored. A
look-ahead in which nobody ever follows up shows none of it; so imagined rooms restore what is
isolated, mark what they asked about and what turned out needless, remove what is marked, and drain
what batch work no longer needs on faster machines, as soon as the validator lets them. Nothing else
is imagined to be done.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from world.model import Encoded, Situation
from world.worlds.cloud import menu, rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.rules import Sheet
from world.worlds.cloud.settings import MAX_ACTIONS
from world.worlds.cloud.state import NOW, Array, Floats, Measured, State


def finish_what_was_begun(situation: Situation) -> NDArray[np.int32]:
    """The cloud's playbook. Read as kinds alone it is nop: what it finishes has targets.

    `project` knows it and asks `follow_up` for what has been begun in each imagined world.
    """
    return np.zeros(len(situation.last), dtype=np.int32)


def begun(state: State) -> NDArray[np.intp]:
    """Rows that are marked for removal and still there, in any world of a batch."""
    columns = state.columns
    marked = (columns["marked_at_step"][:1] >= 0) & (columns["state"][:1] != names.TERMINATED)
    rows: NDArray[np.intp] = np.flatnonzero(marked[0])
    return rows


def unjudged(state: State) -> NDArray[np.bool_]:
    """Rows whose need or use is not known, bool [R]: known later means that somebody asked."""
    columns = state.columns
    open_: NDArray[np.bool_] = (columns["essential"][0] == names.UNKNOWN) | np.isnan(
        columns["idle_hours"][0]
    )
    return open_


def follow_up(
    state: State, acting: Encoded, free: NDArray[np.bool_], asked: NDArray[np.bool_]
) -> None:
    """Write what the room would finish now into the empty actions of some worlds.

    Args:
        state: N imagined worlds.
        acting: Their actions in the coming step; rows that are free are empty.
        free: Worlds whose plan has ended, bool [N].
        asked: `unjudged` of the worlds at the start, bool [R].
    """
    used = np.zeros(state.batch, dtype=np.intp)
    isolated = (state.columns["s.db_isolated"] > 0) & (state.columns["s.restore_wait_steps"] == 0)
    if isolated.any():
        _write(state, acting, used, isolated & free[:, None], menu.RESTORE, state.settings.pools)
    tiers = state.settings.tiers
    due = _due(state)[:, tiers:] & free[:, None]
    if due.any():
        _write(state, acting, used, due, menu.TERMINATE, tiers)
    answered = _answered(state, asked)[:, tiers:] & free[:, None]
    if answered.any():
        kind = menu.MARK if state.settings.params.grace_steps else menu.TERMINATE
        _write(state, acting, used, answered, kind, tiers)
    spare = _spare(state) * free[:, None]
    if spare.any():
        _write(state, acting, used, spare > 0, menu.SCALE_DOWN, 0, spare)


BUSY_AFTER = 0.93
"""Utilisation to which batch pools on newer machines are cut; nobody waits for their work."""
LEAST_SPARE = 0.05
"""Smallest share of a pool that is drained."""
RESIZED_STEPS = 6
"""Steps after a change of size in which its pool is cut to what it needs."""


def _spare(state: State) -> Floats:
    """Share of each pool of batch work that a change of size freed, float64 [N, pools]; 0: none."""
    settings, columns = state.settings, state.columns
    pools = slice(0, settings.pools)
    lately = state.step - columns["resized_at_step"][:, pools] < RESIZED_STEPS
    lately = lately & settings.batch[settings.queue_service[pools]]
    if not lately.any():
        return np.zeros((state.batch, settings.pools))
    done = lately & (columns["resize_wait_steps"][:, pools] == 0)
    done &= state.step - columns["resized_at_step"][:, pools] > 2  # measured on the new size
    busy = columns[NOW][:, Measured(settings).busy][:, pools]
    share = np.clip(np.floor(100.0 * (1.0 - busy / BUSY_AFTER)) / 100.0, 0.0, 0.5)
    found: Floats = np.where(done & (busy > 0) & (share >= LEAST_SPARE), share, 0.0)
    return found


def _answered(state: State, asked: NDArray[np.bool_]) -> Array:
    """Rows that turned out to be waste that nobody needs and that are not marked yet, [N, R]."""
    columns = state.columns
    if not asked.any():
        return np.zeros((state.batch, len(asked)), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        waste: Array = columns["idle_hours"] >= IDLE_WINDOW_HOURS
    waste = waste & asked & (columns["essential"] == names.NO) & (columns["needed_by"] < 0)
    waste &= (columns["marked_at_step"] < 0) & (columns["state"] != names.TERMINATED)
    waste &= (columns["managed_by"] == 0) & (columns["tag_status"] == 0)
    return waste


def _due(state: State) -> Array:
    """Marked rows that nobody is known to need and whose grace has passed, bool [N, R]."""
    columns = state.columns
    grace = state.settings.params.grace_steps
    marked = columns["marked_at_step"]
    due: Array = (marked >= 0) & (state.step - marked >= grace)
    due &= (columns["state"] != names.TERMINATED) & (columns["essential"] == names.NO)
    return due


def _write(
    state: State,
    acting: Encoded,
    used: NDArray[np.intp],
    wanted: Array,
    kind: int,
    first: int,
    values: Floats | None = None,
) -> None:
    """Fill free slots with one kind on wanted targets, in row order, as the validator allows."""
    world, place = np.nonzero(wanted)
    target = place + first
    params = np.zeros((len(world), menu.PARAMS))
    if values is not None:
        params[:, 0] = values[world, place]
    sheet = Sheet(state.settings, state.columns, state.step, world, target, params)
    fine = rules.refusals(kind, sheet) == 0
    world, target, params = world[fine], target[fine], params[fine]
    if not world.size:
        return
    # The nth target of a world goes into its nth free slot.
    starts = np.searchsorted(world, world)
    slot = used[world] + np.arange(len(world)) - starts
    fits = slot < MAX_ACTIONS
    world, target, slot, params = world[fits], target[fits], slot[fits], params[fits]
    acting.kinds[world, slot] = kind
    acting.targets[world, slot] = target
    acting.params[world, slot] = params
    np.add.at(used, world, 1)
