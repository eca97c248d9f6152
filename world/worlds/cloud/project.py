"""Consequences of plans: every plan on every sample of a belief, in one batch, on common noise.

All plans meet the same imagined futures: a draw is addressed by sample, step and entity, never by
the place of a plan in the list, so neither their order nor their company changes what one of them
is shown to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from world.errors import InadmissibleActionError
from world.model import Belief, Continuation, Encoded, Joint, Plan, Situation
from world.worlds.cloud import menu, reading
from world.worlds.cloud.advance import imagine
from world.worlds.cloud.overlay import Believed, overlay, rows_in_question
from world.worlds.cloud.playbook import begun, finish_what_was_begun, follow_up, unjudged
from world.worlds.cloud.settings import MAX_ACTIONS, METRICS
from world.worlds.cloud.state import NOW, State
from world.worlds.cloud.view import CloudInventory

_AIMED = np.array([kind.target != "none" for kind in menu.KINDS])
_BY_ROW = np.array([kind.target == "row" for kind in menu.KINDS])

MOST_WORLDS = 512
"""Imagined worlds that are advanced together."""

Encode = Callable[[State, Sequence[Joint]], Encoded]


def project(
    belief: Belief[State],
    plans: Sequence[Plan],
    horizon: int,
    continuation: Continuation | None,
    encode: Encode,
) -> NDArray[np.float64]:
    """See `World.project`; nop follows a plan, or what the continuation says.

    Args:
        belief: Where to start.
        plans: Candidate plans.
        horizon: Steps to look ahead.
        continuation: What happens after a plan; None is nop. The world's own playbook finishes
            in every imagined world what has been begun there.
        encode: Makes codes of actions for a belief that was not made by `believe`.

    Returns:
        float64 [B, n_plans, K, H, n_metrics].

    Raises:
        InadmissibleActionError: A horizon shorter than a plan, an action that is not of this
            world, or a continuation that takes an action that needs a target.
    """
    if horizon < 1 or any(len(plan) > horizon for plan in plans):
        raise InadmissibleActionError(
            f"the horizon is {horizon} steps", "it must cover every plan", "Look further ahead"
        )
    n, worlds = len(plans), belief.states.batch
    most = max(1, MOST_WORLDS // worlds)
    if n > most:
        # Few plans at a time touch few rows, and what they touch stays in a core's cache.
        parts = [plans[at : at + most] for at in range(0, n, most)]
        found = [project(belief, part, horizon, continuation, encode) for part in parts]
        return np.concatenate(found, axis=1)
    shape = (n, belief.batch, belief.samples, horizon, len(METRICS))
    result = np.zeros((n, worlds, horizon, len(METRICS)))
    if n:
        depth = max(map(len, plans))
        codes = [_codes(belief.states, plans, ahead, encode) for ahead in range(depth)]
        finishing = continuation is finish_what_was_begun
        marked = begun(belief.states) if finishing else np.zeros(0, dtype=np.intp)
        thin, place = overlay(belief.states, _touched(belief.states, codes, marked), n)
        state: State = thin
        codes = [_placed(one, place) for one in codes]
        ends = np.array([len(plan) for plan in plans])
        asked = unjudged(state)
        for ahead in range(horizon):
            acting = _tiled(codes[ahead] if ahead < depth else _nothing(n), worlds)
            if finishing:
                follow_up(state, acting, np.repeat(ends <= ahead, worlds), asked)
            elif continuation is not None and (ends <= ahead).any():
                _continue(state, acting, continuation, np.repeat(ends <= ahead, worlds))
            state = imagine(state, acting)
            result[:, :, ahead] = state.columns[NOW][:, : len(METRICS)].reshape(n, worlds, -1)
    return np.ascontiguousarray(np.moveaxis(result.reshape(shape), 0, 1))


def _codes(states: State, plans: Sequence[Plan], ahead: int, encode: Encode) -> Encoded:
    """What every plan does in one step, one row each; targets are rows of the whole inventory."""
    encoded = _nothing(len(plans))
    view = states.view if isinstance(states, Believed) else None
    one = None if view is not None else states.rows(np.array([0]))
    known: dict[Joint, int] = {}
    for at, plan in enumerate(plans):
        joint = plan[ahead] if ahead < len(plan) else ()
        if not joint:
            continue
        first = known.setdefault(joint, at)
        if first != at:
            _copy(encoded, at, encoded, first)
        elif view is not None:
            _read(joint, view, encoded, at)
        elif one is not None:
            _copy(encoded, at, encode(one, [joint]), 0)
    return encoded


def _copy(to: Encoded, at: int, source: Encoded, row: int) -> None:
    to.kinds[at], to.targets[at] = source.kinds[row], source.targets[row]
    to.params[at] = source.params[row]


def _read(joint: Joint, view: CloudInventory, encoded: Encoded, at: int) -> None:
    if len(joint) > MAX_ACTIONS:
        raise InadmissibleActionError(
            f"{len(joint)} actions in one step",
            f"this world takes at most {MAX_ACTIONS}",
            "Leave some for the next step",
        )
    ordered = joint
    if len(joint) > 1:
        ordered = tuple(sorted(joint, key=lambda action: (action.target, action.id)))
    for slot, action in enumerate(ordered):
        found = reading.read(action, view)
        if found.fault:
            raise InadmissibleActionError(f"{action.id} cannot be projected", found.fault)
        encoded.kinds[at, slot] = found.kind
        encoded.targets[at, slot] = found.target
        encoded.params[at, slot] = found.params


def _touched(states: State, codes: Sequence[Encoded], marked: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows that the plans aim at or that are marked already, with what belongs to them."""
    aims = [
        one.targets[(one.kinds >= 0) & _BY_ROW[np.maximum(one.kinds, 0)]].astype(np.intp)
        for one in codes
    ]
    return rows_in_question(states, np.concatenate([*aims, marked]))


def _placed(one: Encoded, place: NDArray[np.intp]) -> Encoded:
    """The same actions, aimed at the rows' places in the thin worlds."""
    by_row = (one.kinds >= 0) & _BY_ROW[np.maximum(one.kinds, 0)] & (one.targets >= 0)
    moved = place[np.where(by_row, one.targets, 0)]
    return one._replace(targets=np.where(by_row, moved, one.targets).astype(np.int32))


def _nothing(n: int) -> Encoded:
    return Encoded(
        np.full((n, MAX_ACTIONS), -1, dtype=np.int32),
        np.full((n, MAX_ACTIONS), -1, dtype=np.int32),
        np.zeros((n, MAX_ACTIONS, menu.PARAMS)),
    )


def _tiled(encoded: Encoded, worlds: int) -> Encoded:
    """One row of codes per plan, repeated for every world."""
    return Encoded(
        np.repeat(encoded.kinds, worlds, axis=0),
        np.repeat(encoded.targets, worlds, axis=0),
        np.repeat(encoded.params, worlds, axis=0),
    )


def _continue(
    state: State, encoded: Encoded, continuation: Continuation, ended: NDArray[np.bool_]
) -> None:
    """Let the continuation act where plans have ended."""
    situation = Situation(
        metrics=state.columns[NOW][:, : len(METRICS)],
        last=state.columns["w.last_kinds"][:, 0].astype(np.int32),
        crisis=np.zeros(state.batch, dtype=np.bool_),
        step=state.step,
    )
    kinds = continuation(situation)
    aimed = _AIMED[kinds[ended]]
    if aimed.any():
        code = int(kinds[ended][aimed][0])
        raise InadmissibleActionError(
            f"the continuation takes {menu.KINDS[code].name}",
            "that needs a target, and a continuation names kinds only",
            "Continue with nop",
        )
    encoded.kinds[ended, 0] = kinds[ended]
