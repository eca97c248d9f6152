"""Consequences of plans: every plan on every sample of a belief, in one batch, on common noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from world.errors import InadmissibleActionError
from world.model import Belief, Continuation, Encoded, Joint, Plan, Situation
from world.worlds.cloud import menu
from world.worlds.cloud.advance import advance
from world.worlds.cloud.settings import METRICS
from world.worlds.cloud.state import NOW, State


def project(
    belief: Belief[State],
    plans: Sequence[Plan],
    horizon: int,
    continuation: Continuation | None,
    encode: Callable[[State, Sequence[Joint]], Encoded],
) -> NDArray[np.float64]:
    """See `World.project`; nop follows a plan, or what the continuation says.

    Raises:
        InadmissibleActionError: A horizon shorter than a plan, or a continuation that takes an
            action that needs a target.
    """
    if horizon < 1 or any(len(plan) > horizon for plan in plans):
        raise InadmissibleActionError(
            f"the horizon is {horizon} steps", "it must cover every plan", "Look further ahead"
        )
    start, worlds = belief.states, belief.states.batch
    n = len(plans)
    result = np.zeros((n, worlds, horizon, len(METRICS)))
    if not n:
        return result.reshape(belief.batch, 0, belief.samples, horizon, len(METRICS))
    state = start.rows(np.tile(np.arange(worlds), n))
    one = start.rows(np.array([0]))
    for ahead in range(horizon):
        joints = [plan[ahead] if ahead < len(plan) else () for plan in plans]
        encoded = _tiled([encode(one, [joint]) for joint in joints], worlds)
        if continuation is not None and any(ahead >= len(plan) for plan in plans):
            _continue(state, encoded, continuation, plans, ahead, worlds)
        state = advance(state, encoded).state
        result[:, :, ahead] = state.columns[NOW][:, : len(METRICS)].reshape(n, worlds, -1)
    shaped = result.reshape(n, belief.batch, belief.samples, horizon, len(METRICS))
    return np.ascontiguousarray(np.moveaxis(shaped, 0, 1))


def _tiled(encoded: Sequence[Encoded], worlds: int) -> Encoded:
    """One row of codes per plan, repeated for every world."""
    return Encoded(
        np.repeat(np.concatenate([e.kinds for e in encoded]), worlds, axis=0),
        np.repeat(np.concatenate([e.targets for e in encoded]), worlds, axis=0),
        np.repeat(np.concatenate([e.params for e in encoded]), worlds, axis=0),
    )


def _continue(
    state: State, encoded: Encoded, continuation: Continuation, plans: Sequence[Plan], ahead: int,
    worlds: int,
) -> None:  # fmt: skip
    """Let the continuation act where plans have ended."""
    ended = np.repeat(np.array([ahead >= len(plan) for plan in plans]), worlds)
    situation = Situation(
        metrics=state.columns[NOW][:, : len(METRICS)],
        last=state.columns["w.last_kinds"][:, 0].astype(np.int32),
        crisis=np.zeros(state.batch, dtype=np.bool_),
        step=state.step,
    )
    kinds = continuation(situation)
    aimed = np.array([kind.target != "none" for kind in menu.KINDS])
    if aimed[kinds[ended]].any():
        code = int(kinds[ended][aimed[kinds[ended]]][0])
        raise InadmissibleActionError(
            f"the continuation takes {menu.KINDS[code].name}",
            "that needs a target, and a continuation names kinds only",
            "Continue with nop",
        )
    encoded.kinds[ended, 0] = kinds[ended]
