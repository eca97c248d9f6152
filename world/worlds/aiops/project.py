"""What the room may imagine of an incident: states sampled from what is seen, and consequences.

Only the latest observation is read: everything that was learned stands in its posterior. Without
samples, every uniform is at its mean and the unknown cause at its expectation: a plan is worked
out under every event and the outcomes are averaged with their probabilities, and doubt is what is
to be expected once the questions of the plan are answered. With K samples the cause of sample k
stands at a quantile of the posterior, and its replica draws everything else, readings included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.errors import InadmissibleActionError
from world.model import (
    Belief,
    Continuation,
    History,
    Joint,
    Key,
    Observation,
    Plan,
    Situation,
)
from world.worlds.aiops.diagnosis import doubt_percent, expected_doubt_percent, posterior_of
from world.worlds.aiops.dynamics import (
    BASE_USD_PER_HOUR,
    HEALTHY,
    START_SHARE,
    advance,
    draw,
    mean_draws,
)
from world.worlds.aiops.events import ALERT_LIKELIHOOD, EVENT_CODE, N_EVENTS, NAMES, PRESSURE
from world.worlds.aiops.evidence import IS_QUESTION
from world.worlds.aiops.menu import METRICS, NATIVE_KINDS, NOP_CODE, REMEDIES, refusal
from world.worlds.aiops.settings import NativeSettings
from world.worlds.aiops.state import OPEN, Floats, State

N_METRICS: Final = len(METRICS) + 3
"""The four symptoms, cost, repeated action, doubt."""
_COST, _REPEAT, _DOUBT = len(METRICS), len(METRICS) + 1, len(METRICS) + 2
MOST_QUESTIONS: Final = 2
"""Questions of one plan whose answers are anticipated on mean noise; later ones add nothing."""
_BELIEF: Final = noise.channel("aiops.belief")
_LEAST: Final = 1e-300
_CODE: Final = {kind: code for code, kind in enumerate(NATIVE_KINDS)}


def posterior_seen(seen: Observation) -> Floats:
    """The public posterior of an observation, float64 [12].

    Where an observation carries none, what its alert says; without an alert, all are equal.
    """
    given = seen.facts.get("posterior")
    if isinstance(given, Mapping):
        found = np.array([max(0.0, _number(given.get(name))) for name in NAMES])
    else:
        alert = EVENT_CODE.get(str(seen.facts.get("alert", "")).lower(), -1)
        found = ALERT_LIKELIHOOD[:, alert].copy() if alert >= 0 else np.ones(N_EVENTS)
    total = float(sum(found.tolist()))
    return found / total if total > 0.0 else np.full(N_EVENTS, 1.0 / N_EVENTS)


def _number(value: Any) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and math.isfinite(value) else 0.0


def applied_at_seen(seen: Observation) -> NDArray[np.int64]:
    """When each remedy last took effect, int64 [7]; 0 is never."""
    given = seen.facts.get("applied_at")
    steps = given if isinstance(given, Mapping) else {}
    return np.array([int(_number(steps.get(name))) for name in REMEDIES], dtype=np.int64)


def believe(history: History, settings: NativeSettings, samples: int, key: Key) -> Belief[State]:
    """See `World.believe`.

    Raises:
        InadmissibleActionError: Fewer than 0 samples were asked for.
    """
    if samples < 0:
        raise InadmissibleActionError(
            f"{samples} belief samples were asked for", "there is no such number", "Ask for ≥ 0"
        )
    count = max(samples, 1)
    seen = history.now
    posterior = posterior_seen(seen)
    cause = np.zeros(1, dtype=np.int64)
    if samples:
        turn = float(noise.uniforms(key.seed, 0, _BELIEF, key.step, 1)[0])
        at = (_van_der_corput(samples) + turn) % 1.0
        bounds = np.cumsum(posterior)
        cause = np.minimum((at[:, None] * bounds[-1] >= bounds).sum(axis=1), N_EVENTS - 1)
    last = _CODE.get(str(seen.facts.get("last_action") or ""), -1)
    state = State(
        scenario=history.scenario,
        settings=settings,
        seeds=np.full(count, key.seed, dtype=np.uint64),
        replicas=np.arange(1, count + 1),
        steps=np.full(count, seen.step),
        metrics=np.repeat(_symptoms(history, posterior)[None], count, axis=0),
        cost_usd_per_hour=np.full(count, _known(history, "cost_usd_per_hour", BASE_USD_PER_HOUR)),
        cause=cause.astype(np.int64),
        alert=np.full(count, EVENT_CODE.get(str(seen.facts.get("alert", "")).lower(), 0)),
        applied_at=np.repeat(applied_at_seen(seen)[None], count, axis=0),
        harms=np.full(count, int(_number(seen.facts.get("harms")))),
        last=np.full(count, last),
        worked=np.zeros(count, dtype=np.bool_),
        harmed=np.zeros(count, dtype=np.bool_),
        repeated=np.zeros(count, dtype=np.bool_),
        reading=np.full(count, -1),
        disturbance=np.full(count, -1),
        verdict=np.full(count, OPEN),
        log_weights=np.repeat(np.log(np.maximum(posterior, _LEAST))[None], count, axis=0),
    )
    return Belief(state, 1, count, mean_noise=samples == 0)


def _van_der_corput(count: int) -> Floats:
    """The first points of the base-2 sequence, 0, ½, ¼, ¾ and so on."""
    points = np.zeros(count)
    index, digit = np.arange(count), 0.5
    while index.any():
        points += (index & 1) * digit
        index >>= 1
        digit /= 2
    return points


def _known(history: History, name: str, default: float) -> float:
    """The latest value that was observed of a metric."""
    for seen in reversed(history.observations):
        value = seen.metrics.get(name)
        if value is not None:
            return float(value)
    return default


def _symptoms(history: History, posterior: Floats) -> Floats:
    """The four symptoms as last seen; what was never seen is what the suspects would show."""
    usual = HEALTHY + START_SHARE * (PRESSURE - HEALTHY)
    expected = np.einsum("e,em->m", posterior, usual).tolist()
    return np.array(
        [_known(history, name, value) for name, value in zip(METRICS, expected, strict=True)]
    )


def project(
    belief: Belief[State],
    plans: Sequence[Plan],
    horizon: int,
    continuation: Continuation | None,
    key: Key,
) -> Floats:
    """See `World.project`. Without a continuation, nothing is done after a plan.

    Raises:
        InadmissibleActionError: A plan does not fit into the horizon, or holds another action.
    """
    del key  # a sample's noise stands at its own replica of the episode's addresses
    codes = _planned(plans, horizon)
    if belief.mean_noise:
        return _mean(belief, codes, horizon, continuation)
    samples = belief.samples
    state = _spread(belief, len(plans), np.arange(belief.batch * samples).reshape(-1, samples))
    out = np.empty((horizon, state.size, N_METRICS))
    for ahead in range(horizon):
        kinds = _kinds(codes, ahead, belief.batch, samples)
        if ahead:
            _continue(state, out[ahead - 1], kinds, continuation)
        kinds[kinds < 0] = NOP_CODE
        state, _ = advance(state, kinds, draw(state, kinds))
        _record(state, out[ahead])
        out[ahead, :, _DOUBT] = doubt_percent(posterior_of(state.log_weights))
    shaped = out.reshape(horizon, belief.batch, len(plans), samples, N_METRICS)
    return np.ascontiguousarray(np.moveaxis(shaped, 0, 3))


def _mean(
    belief: Belief[State],
    codes: NDArray[np.int32],
    horizon: int,
    continuation: Continuation | None,
) -> Floats:
    """Mean noise, the unknown cause at its expectation: float64 [B, P, 1, H, M]."""
    batch, plans = belief.batch, len(codes)
    posterior = posterior_of(belief.states.log_weights)  # [B, 12]
    grid = np.repeat(np.arange(batch), N_EVENTS).reshape(batch, N_EVENTS)
    state = _spread(belief, plans, grid)
    causes = np.tile(np.arange(N_EVENTS), batch * plans)
    state = replace(state, cause=causes)
    noise_free = mean_draws(state.size)
    out = np.empty((horizon, state.size, N_METRICS))
    doubt = _doubts(posterior, codes, horizon)  # [H, B, P]
    for ahead in range(horizon):
        kinds = _kinds(codes, ahead, batch, N_EVENTS)
        if ahead:
            _continue(state, out[ahead - 1], kinds, continuation)
        kinds[kinds < 0] = NOP_CODE
        state, _ = advance(state, kinds, noise_free)
        _record(state, out[ahead])
        out[ahead, :, _DOUBT] = np.repeat(doubt[ahead].reshape(-1), N_EVENTS)
    shaped = out.reshape(horizon, batch, plans, N_EVENTS, N_METRICS)
    averaged: Floats = np.einsum("hbpem,be->bphm", shaped, posterior)
    return np.ascontiguousarray(averaged[:, :, None])


def _doubts(posterior: Floats, codes: NDArray[np.int32], horizon: int) -> Floats:
    """Expected doubt after each step of each plan: float64 [H, B, P]."""
    doubt = np.empty((horizon, len(posterior), len(codes)))
    known: dict[tuple[int, tuple[int, ...]], float] = {}
    for ahead in range(horizon):
        for plan, row in enumerate(codes.tolist()):
            asked = tuple(code for code in row[: ahead + 1] if code >= 0 and IS_QUESTION[code])
            asked = asked[:MOST_QUESTIONS]
            for world in range(len(posterior)):
                if (world, asked) not in known:
                    known[world, asked] = expected_doubt_percent(posterior[world], asked)
                doubt[ahead, world, plan] = known[world, asked]
    return doubt


def _record(state: State, out: Floats) -> None:
    out[:, :_COST] = state.metrics
    out[:, _COST] = state.cost_usd_per_hour
    out[:, _REPEAT] = state.repeated


def _spread(belief: Belief[State], plans: int, grid: NDArray[np.intp]) -> State:
    """The rows of a projection, ordered world, plan, column of `grid` ([B, columns])."""
    index = np.broadcast_to(grid[:, None, :], (belief.batch, plans, grid.shape[1]))
    return belief.states.rows(index.reshape(-1))


def _planned(plans: Sequence[Plan], horizon: int) -> NDArray[np.int32]:
    """Codes of all plans, int32 [P, longest]; −1 past a plan's end."""
    longest = max((len(plan) for plan in plans), default=1)
    codes = np.full((len(plans), max(longest, 1)), -1, dtype=np.int32)
    for row, plan in enumerate(plans):
        if not 1 <= len(plan) <= horizon:
            raise InadmissibleActionError(
                f"a plan has {len(plan)} steps and the projection {horizon}",
                "a plan has at least one step, and the horizon must cover it",
                "Pass a horizon that fits",
            )
        codes[row, : len(plan)] = [code_of(joint) for joint in plan]
    return codes


def code_of(joint: Joint) -> int:
    """Code of a joint action of this world.

    Raises:
        InadmissibleActionError: It is not exactly one action of the catalogue.
    """
    if len(joint) != 1:
        raise InadmissibleActionError(
            f"{len(joint)} actions were given", "one action is taken a step", "Pick one"
        )
    reason = refusal(NATIVE_KINDS, joint[0])
    if reason is not None:
        raise InadmissibleActionError(
            f"{joint[0].id[:80]!r} cannot be taken", reason, "Take one of the catalogue"
        )
    return _CODE[joint[0].kind]


def _kinds(codes: NDArray[np.int32], ahead: int, batch: int, columns: int) -> NDArray[np.int32]:
    """Codes of one step of all rows; −1 past a plan's end."""
    now = codes[:, ahead] if ahead < codes.shape[1] else np.full(len(codes), -1, dtype=np.int32)
    return np.tile(np.repeat(now, columns), batch)


def _continue(
    state: State, metrics: Floats, kinds: NDArray[np.int32], continuation: Continuation | None
) -> None:
    """Fill in, in place, what follows the plans."""
    vacant = kinds < 0
    if continuation is None or not vacant.any():
        return
    situation = Situation(
        metrics, state.last.astype(np.int32), state.disturbance >= 0, int(state.steps.max())
    )
    chosen = continuation(situation)
    wrong = vacant & ((chosen < 0) | (chosen >= len(NATIVE_KINDS)))
    if wrong.any():
        code = int(chosen[np.flatnonzero(wrong)[0]])
        raise InadmissibleActionError(
            f"the continuation chose code {code} in an imagined world",
            f"codes are 0 to {len(NATIVE_KINDS) - 1}",
            "Correct the continuation policy",
        )
    kinds[vacant] = chosen[vacant]
