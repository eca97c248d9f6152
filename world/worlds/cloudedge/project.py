"""What the room may imagine: states sampled from observations, and consequences of plans.

Nothing here sees a true state. All that is hidden from a seat is the step of the next crisis; it is
uniform over the steps that what was observed leaves possible. Projection noise stands on its own
channels at (entity = steps ahead, step = step of the decision, replica = sample), so that every
candidate meets the same imagined futures, and every decision new ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.errors import InadmissibleActionError
from world.model import Belief, Continuation, History, Joint, Key, Observation, Plan, Situation
from world.worlds.cloudedge.batch import advance_rows
from world.worlds.cloudedge.menu import Variant, effect_of, not_now
from world.worlds.cloudedge.playbook import close_gaps
from world.worlds.cloudedge.rules import (
    CRISIS_RESPONSE,
    EFFECTS,
    FULL_RESPONSE_SERVERS,
    KINDS,
    METRICS,
    REPEATED,
    STABLE,
    STABLE_AFTER_STEPS,
    Effect,
    Settings,
    advance,
    response,
    rises_of,
)
from world.worlds.cloudedge.state import (
    NO_ANSWERS,
    Answers,
    Episode,
    Floats,
    Many,
    Rows,
    Single,
    State,
)
from world.worlds.cloudedge.tapes import CounterRows, MeanTape, offsets_of

_BELIEF: Final = noise.channel("cloudedge.belief")
_ACTION: Final = noise.channel("cloudedge.imagined.action")
_CRISIS: Final = noise.channel("cloudedge.imagined.crisis")
_FULL: Final = response(FULL_RESPONSE_SERVERS, True)
_N_METRICS = len(METRICS) + 1


def crisis_window(history: History, settings: Settings) -> tuple[int, int]:
    """First and last step at which the next crisis can strike, given what was observed.

    A crisis at step s announces the next one for s + base ± jitter; the first one comes at base ±
    jitter. Steps that passed without a crisis are ruled out. Where the history does not reach back
    to a crisis or to step 0, every step that some earlier crisis allows stays possible.
    """
    now = history.now.step
    reach = settings.base_steps + settings.jitter_steps
    spread = 2 * settings.jitter_steps
    oldest = now
    latest = None
    for seen in reversed(history.observations):
        if now - seen.step > reach:
            break
        oldest = seen.step
        if seen.facts.get("crisis"):
            latest = reach + oldest
            break
    if latest is None and oldest == 0:
        latest = reach
    if latest is None:
        return now + 1, max(now + 1, oldest - 1 + reach)
    return max(now + 1, latest - spread), max(now + 1, latest)


def believe(history: History, settings: Settings, samples: int, key: Key) -> Belief[State]:
    """See `World.believe`.

    ``samples = 0``: every uniform at its mean, the next crisis at its conditional mean, rounded
    up. K samples: crisis steps at the quantiles of a van der Corput sequence, rotated by one
    uniform (Cranley & Patterson, SIAM J. Numer. Anal. 13, 1976): each is uniform over the window,
    together they cover it evenly, and so does either half.
    """
    low, high = crisis_window(history, settings)
    if samples == 0:
        tape = MeanTape()
        episode = Episode(history.scenario, settings, key.seed, tape)
        mean = _observed(history, episode, math.ceil((low + high) / 2))
        return Belief(mean, 1, 1, mean_noise=True)
    if samples < 0:
        raise InadmissibleActionError(
            f"{samples} belief samples were asked for",
            "there is no such number",
            "Ask for 0 or more",
        )
    rotation = float(noise.uniforms(key.seed, 0, _BELIEF, key.step, 1)[0])
    quantiles = (_van_der_corput(samples) + rotation) % 1.0
    steps = low + (quantiles * (high - low + 1)).astype(np.int64)
    episode = Episode(history.scenario, settings, key.seed, MeanTape())
    states = _repeat(_observed(history, episode, low), samples, steps)
    return Belief(states, 1, samples, mean_noise=False)


def _van_der_corput(count: int) -> Floats:
    """The first points of the base-2 sequence, 0, ½, ¼, ¾ and so on."""
    points = np.zeros(count)
    index, digit = np.arange(count), 0.5
    while index.any():
        points += (index & 1) * digit
        index >>= 1
        digit /= 2
    return points


def _observed(history: History, episode: Episode, next_crisis_step: int) -> Single:
    """The state that the latest observation shows, with a supposed next crisis."""
    now = history.now
    latency, cost, carbon = (
        _known(history, name, start)
        for name, start in zip(METRICS, episode.settings.start, strict=True)
    )
    facts = now.facts
    stable = int(facts.get("stable_steps", 0))
    return Single(
        episode,
        now.step,
        latency,
        cost,
        carbon,
        stable,
        bool(facts.get("crisis", False)),
        _last_effect(now),
        STABLE if stable >= STABLE_AFTER_STEPS else 0,
        next_crisis_step,
        0,
    )


def _known(history: History, name: str, start: float) -> float:
    """The latest value that was observed of a metric; the published start where none was."""
    for seen in reversed(history.observations):
        value = seen.metrics.get(name)
        if value is not None:
            return float(value)
    return start


def _last_effect(now: Observation) -> Effect | None:
    name = now.facts.get("last_action", "")
    if name == KINDS[CRISIS_RESPONSE]:
        return _FULL
    return EFFECTS[KINDS.index(name)] if name in KINDS else None


def _repeat(single: Single, samples: int, next_crisis_steps: NDArray[np.int64]) -> Many:
    """K copies of one observed state that differ in what is hidden."""
    settings, seed = single.episode.settings, single.episode.seed
    seeds = np.full(samples, seed, dtype=np.uint64)
    replicas = np.arange(1, samples + 1)
    effect = single.effect
    tape = CounterRows(seeds, settings.base_steps, settings.jitter_steps, replicas)
    values = (single.latency_ms, single.cost_usd_per_hour, single.carbon_index)
    return Many(
        single.episode.scenario,
        settings,
        seeds,
        tape,
        single.step,
        np.repeat(np.array(values)[:, None], samples, axis=1),
        np.full(samples, single.stable_steps, dtype=np.int32),
        np.full(samples, single.crisis),
        np.full(samples, -1 if effect is None else effect.code, dtype=np.int32),
        _answers(effect, samples),
        np.full(samples, single.verdict, dtype=np.uint8),
        next_crisis_steps,
        np.zeros(samples, dtype=np.int64),
    )


def _answers(effect: Effect | None, samples: int) -> Answers:
    """The last action of K copies as answers to a crisis: all of them, or none."""
    if effect is None or effect.code != CRISIS_RESPONSE:
        return NO_ANSWERS
    servers, hydro = np.full(samples, effect.servers), np.full(samples, effect.hydro)
    return Answers(np.arange(samples), servers, hydro, full=False)


class _ImaginedRows:
    """Projection noise: sample k of every plan meets the same draws.

    Args:
        first_step: The first step that is imagined.
        draws: float64 [H, 4, K] or, for mean noise, [H, 4, 1].
        shocks: float64 [H, 3, K] or [H, 3, 1].
        offsets: int64 [H, K] or [H, 1].
        repeats: Rows of the projection ÷ K.
    """

    __slots__ = ("_draws", "_first_step", "_offsets", "_repeats", "_shocks")

    def __init__(
        self,
        first_step: int,
        draws: Floats,
        shocks: Floats,
        offsets: NDArray[np.int64],
        repeats: int,
    ) -> None:
        self._first_step = first_step
        self._draws = draws
        self._shocks = shocks
        self._offsets = offsets
        self._repeats = repeats

    def action(
        self, state: Many, kinds: NDArray[np.int32], hydro: Rows
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """See `state.RowTape.action`."""
        drawn = self._draws[state.step + 1 - self._first_step]
        extra = drawn[3][hydro % drawn.shape[1]]
        return np.tile(drawn[:3], self._repeats), extra, state.word

    def shock(
        self, state: Many, step: int, struck: NDArray[np.bool_], word: NDArray[np.int64]
    ) -> tuple[Rows, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """See `state.RowTape.shock`."""
        rows = struck.nonzero()[0]
        ahead = step - self._first_step
        sample = rows % self._offsets.shape[1]
        rises = rises_of(self._shocks[ahead][:, sample])
        return rows, rises, self._offsets[ahead][sample], word


def _noise(
    states: State, samples: int, mean: bool, horizon: int, repeats: int, key: Key
) -> _ImaginedRows:
    """The noise of a projection; one call draws all of it."""
    first = states.step + 1
    if mean:
        half = np.full((horizon, 4, samples), 0.5)
        offsets = np.zeros((horizon, samples), dtype=np.int64)
        return _ImaginedRows(first, half, half[:, :3], offsets, repeats)
    settings = states.episode.settings if isinstance(states, Single) else states.settings
    ahead = np.arange(horizon)[:, None]
    streams = np.array([_ACTION, _CRISIS])[:, None, None]
    drawn = noise.uniforms(key.seed, ahead, streams, key.step, np.arange(1, samples + 1))
    drawn = _stratified(drawn)
    actions, crises = np.ascontiguousarray(np.moveaxis(drawn, 0, 2))
    offsets = offsets_of(crises[:, 3], settings.jitter_steps)
    return _ImaginedRows(first, actions, crises[:, :3], offsets, repeats)


def _stratified(drawn: Floats) -> Floats:
    """Spread every draw evenly over the samples, which stay as independent as they were.

    Each coordinate takes the middles of K equal slices in the order of its own draws: centred
    Latin hypercube sampling. What one coordinate alone adds to a mean is then nearly exact. A
    single sample stays as drawn.

    Source: McKay, Beckman & Conover, Technometrics 21 (1979).

    Args:
        drawn: Independent uniforms; the samples are the last axis.
    """
    if drawn.shape[-1] < 2:
        return drawn
    ranks = drawn.argsort(axis=-1).argsort(axis=-1)
    spread: Floats = (ranks + 0.5) / drawn.shape[-1]
    return spread


def project(
    belief: Belief[State],
    plans: Sequence[Plan],
    horizon: int,
    continuation: Continuation | None,
    key: Key,
    variant: Variant,
) -> Floats:
    """See `World.project`.

    In a later step of a plan an imagined world may be unable to take the planned action, because
    it imagines no crisis there: it then follows the continuation (the playbook where there is
    none). In the seed variant an imagined crisis is always answered with the full response, as the
    room would have to. Steps past the end of the episode are imagined like any other.
    """
    effects = _effects(belief.states, plans, horizon, continuation, variant)
    states = belief.states
    if isinstance(states, Single) and horizon == 1:
        return _project_plain(states, effects)
    return _project_rows(belief, effects, horizon, continuation, key, variant)


def _project_plain(state: Single, effects: list[list[Effect]]) -> Floats:
    """One step on mean noise, in plain floats: what a room without look-ahead asks for."""
    rows = []
    for (effect,) in effects:
        after = advance(state, effect)
        repeated = 1.0 if after.verdict & REPEATED else 0.0
        rows.append((after.latency_ms, after.cost_usd_per_hour, after.carbon_index, repeated))
    return np.array(rows).reshape(1, len(rows), 1, 1, _N_METRICS)


def _effects(
    states: State,
    plans: Sequence[Plan],
    horizon: int,
    continuation: Continuation | None,
    variant: Variant,
) -> list[list[Effect]]:
    """Check the plans and look their effects up."""
    crisis = states.crisis if isinstance(states, Single) else bool(states.crisis.all())
    effects: list[list[Effect]] = []
    for plan in plans:
        if not 1 <= len(plan) <= horizon:
            raise InadmissibleActionError(
                f"a plan has {len(plan)} steps and the projection {horizon}",
                "a plan has at least one step, and the horizon must cover it",
                "Pass a horizon that fits",
            )
        if len(plan) < horizon and continuation is None:
            raise InadmissibleActionError(
                f"a plan has {len(plan)} steps and the projection {horizon}",
                "there is no action that does nothing, so something must follow a plan",
                "Pass a continuation, for example World.playbook",
            )
        found = [_effect(joint, variant) for joint in plan]
        reason = not_now(variant, found[0], crisis)
        if reason is not None:
            raise InadmissibleActionError(
                f"{plan[0][0].id!r} cannot be projected", reason, "Plan from the catalogue"
            )
        effects.append(found)
    return effects


def _effect(joint: Joint, variant: Variant) -> Effect:
    if len(joint) != 1:
        raise InadmissibleActionError(
            f"a step of a plan has {len(joint)} actions",
            "one action is taken a step",
            "Project single actions",
        )
    effect = effect_of(variant, joint[0])
    if isinstance(effect, str):
        raise InadmissibleActionError(
            f"{joint[0].kind!r} cannot be projected", effect, "Plan from the catalogue"
        )
    return effect


def _project_rows(
    belief: Belief[State],
    effects: list[list[Effect]],
    horizon: int,
    continuation: Continuation | None,
    key: Key,
    variant: Variant,
) -> Floats:
    """Every plan × sample as one row of a batch."""
    states, samples, batch = belief.states, belief.samples, belief.batch
    repeats = batch * len(effects)
    tape = _noise(states, samples, belief.mean_noise, horizon, repeats, key)
    base = (
        states
        if isinstance(states, Many)
        else _repeat(states, 1, np.array([states.next_crisis_step]))
    )
    state = _rows(base, batch, len(effects), samples, tape)
    out = np.empty((horizon, state.size, _N_METRICS))
    for ahead in range(horizon):
        kinds, servers, hydro = _planned(effects, ahead, samples, batch)
        if ahead:
            _revise(state, out[ahead - 1], kinds, servers, hydro, continuation, variant)
        rows = np.flatnonzero(kinds == CRISIS_RESPONSE)
        state = advance_rows(state, kinds, Answers(rows, servers[rows], hydro[rows], False))
        out[ahead, :, :3] = state.metrics.T
        out[ahead, :, 3] = (state.verdict & REPEATED) > 0
    shaped = out.reshape(horizon, batch, len(effects), samples, _N_METRICS)
    return np.ascontiguousarray(np.moveaxis(shaped, 0, 3))


def _rows(base: Many, batch: int, plans: int, samples: int, tape: _ImaginedRows) -> Many:
    """The rows of a projection, ordered world, plan, sample."""
    grid = np.arange(batch * samples).reshape(batch, 1, samples)
    index = np.broadcast_to(grid, (batch, plans, samples)).reshape(-1)
    rows = np.flatnonzero(base.last[index] == CRISIS_RESPONSE)
    return Many(
        base.scenario,
        base.settings,
        base.seeds[index],
        tape,
        base.step,
        base.metrics[:, index],
        base.stable_steps[index],
        base.crisis[index],
        base.last[index],
        Answers(rows, *base.answers.of(index[rows]), full=False),
        base.verdict[index],
        base.next_crisis_step[index],
        base.word[index],
    )


def _planned(
    effects: list[list[Effect]], ahead: int, samples: int, batch: int
) -> tuple[NDArray[np.int32], Floats, NDArray[np.bool_]]:
    """Codes, server counts and regions of one step of all plans; code −1 past a plan's end."""
    if ahead >= max(map(len, effects)):
        rows = batch * len(effects) * samples
        return np.full(rows, -1, np.int32), np.zeros(rows), np.zeros(rows, np.bool_)
    now = [plan[ahead] if ahead < len(plan) else None for plan in effects]
    codes = np.array([-1 if effect is None else effect.code for effect in now], dtype=np.int32)
    servers = np.array([0.0 if effect is None else effect.servers for effect in now])
    hydro = np.array([effect is not None and effect.hydro for effect in now])
    return (
        np.tile(np.repeat(codes, samples), batch),
        np.tile(np.repeat(servers, samples), batch),
        np.tile(np.repeat(hydro, samples), batch),
    )


def _revise(
    state: Many,
    metrics: Floats,
    kinds: NDArray[np.int32],
    servers: Floats,
    hydro: NDArray[np.bool_],
    continuation: Continuation | None,
    variant: Variant,
) -> None:
    """Fill in, in place, what follows the plans and what the imagined worlds cannot take."""
    if variant == "seed":
        kinds[state.crisis] = CRISIS_RESPONSE
        servers[state.crisis] = FULL_RESPONSE_SERVERS
        hydro[state.crisis] = True
    vacant = kinds < 0
    if variant != "open":
        vacant |= (kinds == CRISIS_RESPONSE) & ~state.crisis
    if not vacant.any():
        return
    follow = continuation or close_gaps
    targets = np.array((*state.settings.targets, np.nan))
    chosen = follow(Situation(metrics, state.last, state.crisis, state.step, targets))
    _check_chosen(state, chosen, vacant, variant)
    kinds[vacant] = chosen[vacant]
    answering = vacant & (kinds == CRISIS_RESPONSE)
    servers[answering] = FULL_RESPONSE_SERVERS
    hydro[answering] = True


def _check_chosen(
    state: Many, chosen: NDArray[np.int32], vacant: NDArray[np.bool_], variant: Variant
) -> None:
    wrong = (chosen < 0) | (chosen >= len(KINDS))
    if variant != "open":
        wrong |= (chosen == CRISIS_RESPONSE) & ~state.crisis
    wrong &= vacant
    if wrong.any():
        code = int(chosen[np.flatnonzero(wrong)[0]])
        name = KINDS[code] if 0 <= code < len(KINDS) else f"code {code}"
        raise InadmissibleActionError(
            f"the continuation chose {name} in an imagined world",
            "that world cannot take it: codes are 0–4, and crisis_response needs a crisis",
            "Correct the continuation policy; Situation.crisis says where a crisis is announced",
        )
