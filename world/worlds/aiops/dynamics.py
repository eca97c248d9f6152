"""How an incident moves: one step of B native worlds.

Every symptom relaxes towards a level: the healthy one, or, while the cause is at work, the level
that this cause pushes it to. Only the right remedy ends that; a workaround holds it off for two
steps. Any remedy quiets the symptoms that it acts on, at half strength against a cause that is not
gone; a harmful one makes things worse at once. In order: act (or fail), quiet, harm, relax, noise,
disturbance, clamp, learn, judge.

Learning is part of the step and public: the same expected move is worked out for every event, and
the observed one weighs them (Bayes' rule). The truth only picks its own row.

Noise is 24-bit counter uniforms: entity = metric on ``aiops.metric`` (the sum of the address's
four, centred and scaled to unit variance), entity = action on ``aiops.action`` (failure, reading,
which wrong reading), entities 0 and 1 on ``aiops.disturbance`` (whether, which; amounts).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.model import Scenario
from world.worlds.aiops.events import (
    ALERT_LIKELIHOOD,
    ALERT_NAMES_ROOT,
    CLASS,
    HARMFUL,
    HARMLESS,
    PRESSURE,
    REMEDY_WORTH,
    RIGHT,
    RIGHT_REMEDY,
    VICTIMS,
    WORKAROUND,
)
from world.worlds.aiops.evidence import ACCURACY, LOG_RIGHT, LOG_WRONG, N_LABELS, TRUE_LABEL
from world.worlds.aiops.menu import (
    CODE,
    ERROR,
    FIRST_REMEDY,
    HEAVY,
    METRICS,
    NATIVE_KINDS,
    NOP_CODE,
    REMEDIES,
    STABILIZE,
    VERIFY,
    delta_table,
)
from world.worlds.aiops.settings import (
    PRIORITIES,
    PRIORITY_SHARE,
    REMEDY_SHARE,
    SPEED_SHARE,
    NativeSettings,
)
from world.worlds.aiops.state import FAILED, OPEN, STABILISED, Flags, Floats, Ints, State

HEALTHY: Final = np.array([60.0, 0.03, 45.0, 45.0])
"""Where symptoms settle without a cause: latency (ms), errors (0–1), CPU (%), memory (%)."""
START_SHARE: Final = 0.60
"""How far from healthy to full pressure an incident is when the alert comes."""
START_SPREAD: Final = np.array([40.0, 0.07, 10.0, 10.0])
"""Standard deviation of the symptoms at the start."""
PUSH_FRACTION: Final = 0.30
"""Share of the distance to its level that a pushed symptom goes in a step."""
RECOVERY_FRACTION: Final = 0.60
"""Share of the distance to healthy that a symptom goes in a step once the cause is gone."""
SPREAD: Final = np.array([10.0, 0.02, 3.5, 3.5])
"""Standard deviation of a step's noise."""
RELIEF_FRACTION: Final = 0.20
"""The same while a workaround holds the cause off."""
RELIEF_STEPS: Final = 2
"""Steps that a workaround holds, its own included."""
AGAINST_CAUSE: Final = 0.5
"""Strength of an action on symptoms whose cause is not gone."""
HARM: Final = np.array([60.0, 0.15, 8.0, 4.0])
"""What a harmful remedy adds at once."""

FLOOR: Final = np.array([20.0, 0.01, 0.0, 0.0])
CEILING: Final = np.array([1000.0, 1.0, 100.0, 100.0])
FAILURE_ABOVE: Final = 0.70
"""An error fraction above this ends an episode as a failure; only harm leads there."""

FAIL_FRACTION, HEAVY_FAIL_FRACTION = 0.10, 0.15

BASE_USD_PER_HOUR: Final = 12.0
_ADDED_USD_PER_HOUR: Final = {
    "scale_resources": 6.0,
    "recover_corrupted_data": 2.0,
    "isolate_affected_systems": 2.0,
    "redistribute_traffic": 1.5,
    "apply_mitigation": 1.0,
    "restart_service": 0.5,
    "stabilize_system": 0.5,
    "free_memory_resources": 0.2,
}
"""What an action that takes effect adds to the running cost; ours."""
QUESTION_USD_PER_HOUR: Final = 0.1
"""What a question adds: probes and people cost something too."""

_IMPOSSIBLE: Final = -50.0
_ROOT3: Final = math.sqrt(3.0)

_METRIC: Final = noise.channel("aiops.metric")
_ACTION: Final = noise.channel("aiops.action")
_DISTURBANCE: Final = noise.channel("aiops.disturbance")
_INCIDENT: Final = noise.channel("aiops.incident")
_START: Final = noise.channel("aiops.start")
_STREAMS: Final = np.array([_METRIC] * 4 + [_ACTION] + [_DISTURBANCE] * 2, dtype=np.uint64)

_N_METRICS: Final = len(METRICS)


def _quieting() -> tuple[Floats, Floats]:
    """Deltas and floors, float64 [31, 4]: here only remedies and stabilising act on symptoms."""
    deltas, floors = delta_table()
    acts = np.zeros(len(NATIVE_KINDS), dtype=np.bool_)
    acts[[CODE[kind] for kind in REMEDIES]] = True
    acts[STABILIZE] = True
    deltas[~acts] = 0.0
    return deltas, floors


_DELTAS, _FLOORS = _quieting()


def _by_kind(values: dict[str, float], default: float) -> Floats:
    table = np.full(len(NATIVE_KINDS), default)
    for kind, value in values.items():
        table[CODE[kind]] = value
    return table


_FAIL: Final = _by_kind(dict.fromkeys(HEAVY, HEAVY_FAIL_FRACTION), FAIL_FRACTION)
_FAIL[NOP_CODE] = 0.0
_ADDED: Final = _by_kind(_ADDED_USD_PER_HOUR, QUESTION_USD_PER_HOUR)
_ADDED[NOP_CODE] = 0.0


def added_usd_per_hour(kind: str) -> float:
    """What an action that takes effect adds to the running cost, $/h.

    >>> added_usd_per_hour("scale_resources"), added_usd_per_hour("detect_high_cpu")
    (6.0, 0.1)
    """
    return float(_ADDED[NATIVE_KINDS.index(kind)])


_DISTURBED: Final = np.array(
    [  # low, high and cap per metric: latency, errors, CPU, memory
        [[40, 80, 300], [0.05, 0.15, 0.40], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0.08, 0.18, 0.35], [15, 30, 98], [10, 25, 95]],
        [[0, 0, 0], [0, 0, 0], [8, 18, 95], [20, 35, 98]],
        [[30, 70, 280], [0, 0, 0], [10, 20, 92], [0, 0, 0]],
        [[25, 55, 250], [0.10, 0.20, 0.45], [0, 0, 0], [0, 0, 0]],
    ]
)
"""float64 [5, 4, 3], the original's amounts; a cap never lowers a value here."""
_DISTURBS: Final[Flags] = _DISTURBED[:, :, 1] > 0


class Draws(NamedTuple):
    """The numbers of one step.

    Attributes:
        metric: float64 [B, 4], zero mean, unit variance.
        action: float64 [3, B], uniform: failure, reading, which wrong reading.
        disturbance: float64 [2, B], uniform: whether, which.
        amounts: float64 [B, 4], uniform.
    """

    metric: Floats
    action: Floats
    disturbance: Floats
    amounts: Floats


def draw(state: State, codes: NDArray[np.int32]) -> Draws:
    """The noise of the next step; one call draws all of it."""
    batch = state.size
    entity = np.zeros((batch, len(_STREAMS)), dtype=np.uint64)
    entity[:, :_N_METRICS] = np.arange(_N_METRICS)
    entity[:, _N_METRICS] = codes
    entity[:, -1] = 1
    drawn = noise.uniforms(
        state.seeds[:, None],
        entity,
        _STREAMS,
        (state.steps + 1)[:, None],
        state.replicas[:, None],
    )
    return Draws(
        _bell(drawn[:, :, :_N_METRICS]),
        drawn[:3, :, _N_METRICS],
        drawn[:2, :, _N_METRICS + 1],
        np.ascontiguousarray(drawn[:, :, _N_METRICS + 2].T),
    )


def mean_draws(batch: int) -> Draws:
    """Mean noise: every uniform is ½, so nothing fails and nothing disturbs."""
    half = np.full((3, batch), 0.5)
    zero = np.zeros((batch, _N_METRICS))
    return Draws(zero, half, half[:2], zero + 0.5)


def _bell(uniforms: Floats) -> Floats:
    """Four uniforms [4, …] as one number of zero mean and unit variance (Irwin–Hall)."""
    first, second, third, fourth = uniforms
    centred: Floats = (((first + second) + third) + fourth - 2.0) * _ROOT3
    return centred


def begin(scenario: Scenario, settings: NativeSettings, seeds: NDArray[np.uint64]) -> State:
    """Step 0 of one world per seed: draw the event, its alert and its first symptoms."""
    batch = len(seeds)
    picks = noise.uniforms(seeds, 0, _INCIDENT, 0)
    bounds = np.array(_cumulated(settings.weights))
    cause = (picks[0][:, None] * bounds[-1] >= bounds).sum(axis=1)
    victim = VICTIMS[cause, (picks[2] * VICTIMS.shape[1]).astype(np.int64)]
    alert = np.where(picks[1] < ALERT_NAMES_ROOT, cause, victim).astype(np.int64)
    spread = _bell(noise.uniforms(seeds[:, None], np.arange(_N_METRICS), _START, 0))
    expected = HEALTHY + START_SHARE * (PRESSURE - HEALTHY)  # [12, 4]
    metrics = np.clip(expected[cause] + START_SPREAD * spread, FLOOR, CEILING)
    with np.errstate(divide="ignore"):
        prior = np.maximum(np.log(ALERT_LIKELIHOOD), _IMPOSSIBLE)
    weights = prior.T[alert] + _fit(metrics, expected[None], START_SPREAD, _NOT_TOUCHED[alert * 0])
    none = np.full(batch, -1, dtype=np.int64)
    zero = np.zeros(batch, dtype=np.int64)
    no = np.zeros(batch, dtype=np.bool_)
    return State(
        scenario,
        settings,
        seeds,
        zero,
        zero,
        metrics,
        np.full(batch, BASE_USD_PER_HOUR),
        cause.astype(np.int64),
        alert,
        np.zeros((batch, len(REMEDIES)), dtype=np.int64),
        zero,
        none,
        no,
        no,
        no,
        none,
        none,
        zero,
        weights,
    )


def _cumulated(weights: tuple[float, ...]) -> list[float]:
    total, bounds = 0.0, []
    for weight in weights:
        total += weight
        bounds.append(total)
    return bounds


_NOT_TOUCHED: Final = np.zeros((1, _N_METRICS), dtype=np.bool_)


def _fit(metrics: Floats, expected: Floats, spread: Floats, touched: Flags) -> Floats:
    """Log-likelihood of symptoms under each event, up to a constant: [B, 12].

    Args:
        metrics: float64 [B, 4], observed.
        expected: float64 [B or 1, 12, 4].
        spread: float64 [4], standard deviations.
        touched: bool [B, 4], symptoms that a disturbance has moved and that say nothing.
    """
    gap = (metrics[:, None, :] - expected) / spread
    square = np.where(touched[:, None, :], 0.0, gap * gap)
    total: Floats = (square[..., 0] + square[..., 1]) + (square[..., 2] + square[..., 3])
    return -0.5 * total


class Expected(NamedTuple):
    """What a step would do under each event, before noise and disturbance.

    Attributes:
        metrics: float64 [B, 12, 4].
        present: bool [B, 12], whether that cause is still there after the action.
        harmed: bool [B, 12], whether the action did harm under that event.
    """

    metrics: Floats
    present: Flags
    harmed: Flags


def expect(state: State, codes: NDArray[np.int32], worked: Flags, applied_at: Ints) -> Expected:
    """Work one action out under every event.

    Args:
        state: Before the step.
        codes: int32 [B], actions.
        worked: bool [B], whether they take effect.
        applied_at: int64 [B, 7], when each remedy last took effect, this action included.
    """
    present = applied_at[:, RIGHT_REMEDY] == 0
    held_at = applied_at[:, WORKAROUND]
    held = (held_at > 0) & (state.steps[:, None] + 1 - held_at < RELIEF_STEPS)
    remedy = codes - FIRST_REMEDY
    is_remedy = (remedy >= 0) & (remedy < len(REMEDIES))
    classes = CLASS.T[np.where(is_remedy, remedy, 0)]  # [B, 12]
    harmed = (classes == HARMFUL) & (is_remedy & worked)[:, None]
    strength = np.where(present, AGAINST_CAUSE, 1.0) * worked[:, None]
    before = state.metrics[:, None, :]
    floors = _FLOORS[codes][:, None, :]
    lowered = before - strength[:, :, None] * _DELTAS[codes][:, None, :]
    # A floor bounds what an action can do; it never raises what is below it already.
    quieted = np.minimum(before, np.maximum(floors, lowered))
    hurt = quieted + harmed[:, :, None] * HARM
    level = np.where((present & ~held)[:, :, None], PRESSURE, HEALTHY)
    rest = np.where(held, RELIEF_FRACTION, PUSH_FRACTION)
    share = np.where(present, rest, RECOVERY_FRACTION)[:, :, None]
    moved = hurt + share * (level - hurt)
    return Expected(np.clip(moved, FLOOR, CEILING), present, harmed)


def advance(state: State, codes: NDArray[np.int32], draws: Draws) -> tuple[State, Floats]:
    """One step of every world that is not over; the others stay as they are.

    Args:
        state: B worlds.
        codes: int32 [B], actions.
        draws: Noise of this step.

    Returns:
        The new state, and the reward of the step, float64 [B] (0 where an episode was over).
    """
    rows = np.arange(state.size)
    worked = (draws.action[0] >= _FAIL[codes]) & (codes != NOP_CODE)
    remedy = codes - FIRST_REMEDY
    used = worked & (remedy >= 0) & (remedy < len(REMEDIES))
    taken = used[:, None] & (np.arange(len(REMEDIES)) == remedy[:, None])
    applied_at = np.where(taken, state.steps[:, None] + 1, state.applied_at)
    expected = expect(state, codes, worked, applied_at)
    cause = state.cause
    harmed = expected.harmed[rows, cause]
    moved = np.clip(expected.metrics[rows, cause] + SPREAD * draws.metric, FLOOR, CEILING)
    disturbance = _which(state.settings, draws)
    metrics = _disturbed(moved, disturbance, draws)
    reading = _read(state, codes, worked, expected.present[rows, cause], draws)
    weights = state.log_weights + _learned(codes, reading, harmed, metrics, disturbance, expected)
    after = replace(
        state,
        steps=state.steps + 1,
        metrics=metrics,
        cost_usd_per_hour=state.cost_usd_per_hour + np.where(worked, _ADDED[codes], 0.0),
        applied_at=applied_at,
        harms=state.harms + harmed,
        last=codes.astype(np.int64),
        worked=worked,
        harmed=harmed,
        repeated=state.last == codes,
        reading=reading,
        disturbance=disturbance,
        verdict=_judge(state.settings, metrics),
        log_weights=weights - weights.max(axis=1, keepdims=True),
    )
    over = state.over
    if over.any():
        after = _kept(state, after, over)
    return after, np.where(over, 0.0, _reward(after))


def _which(settings: NativeSettings, draws: Draws) -> Ints:
    """Code of what disturbs each world, −1 where nothing does."""
    struck = draws.disturbance[0] < settings.disturbance_fraction
    kind = (draws.disturbance[1] * len(_DISTURBED)).astype(np.int64)
    return np.where(struck, kind, -1)


def _disturbed(metrics: Floats, disturbance: Ints, draws: Draws) -> Floats:
    table = _DISTURBED[np.maximum(disturbance, 0)]
    low, high, cap = table[:, :, 0], table[:, :, 1], table[:, :, 2]
    raised = np.maximum(metrics, np.minimum(cap, metrics + low + (high - low) * draws.amounts))
    return np.where((disturbance >= 0)[:, None], raised, metrics)


def _read(
    state: State, codes: NDArray[np.int32], worked: Flags, present: Flags, draws: Draws
) -> Ints:
    """Label codes of the answers, −1 where there is none."""
    count = N_LABELS[codes]
    truth = np.where(codes == VERIFY, present.astype(np.int64), TRUE_LABEL[codes, state.cause])
    others = np.maximum(count - 1, 1)
    wrong = (draws.action[2] * others).astype(np.int64)
    wrong = wrong + (wrong >= truth)
    label = np.where(draws.action[1] < ACCURACY[codes], truth, wrong)
    return np.where(worked & (count > 0), label, -1)


def _learned(
    codes: NDArray[np.int32],
    reading: Ints,
    harmed: Flags,
    metrics: Floats,
    disturbance: Ints,
    expected: Expected,
) -> Floats:
    """Log-likelihood of everything that was seen in the step, under each event: [B, 12]."""
    truth = np.where((codes == VERIFY)[:, None], expected.present, TRUE_LABEL[codes])
    agree = truth == reading[:, None]
    answered = (reading >= 0)[:, None]
    says = np.where(agree, LOG_RIGHT[codes][:, None], LOG_WRONG[codes][:, None])
    harm = np.where(expected.harmed == harmed[:, None], 0.0, _IMPOSSIBLE)
    touched = _DISTURBS[np.maximum(disturbance, 0)] & (disturbance >= 0)[:, None]
    fit = _fit(metrics, expected.metrics, SPREAD, touched)
    learned: Floats = np.where(answered, says, 0.0) + harm + fit
    return learned


def _judge(settings: NativeSettings, metrics: Floats) -> Ints:
    held = np.ones(len(metrics), dtype=np.bool_)
    for metric, bound in settings.targets:
        held &= metrics[:, metric] < bound
    failed = metrics[:, ERROR] > FAILURE_ABOVE
    return np.where(held, STABILISED, np.where(failed, FAILED, OPEN))


def _kept(before: State, after: State, over: Flags) -> State:
    """The new state, except for the worlds that were over."""
    fields = {}
    for name in (
        "steps", "metrics", "cost_usd_per_hour", "applied_at", "harms", "last", "worked", "harmed",
        "repeated", "reading", "disturbance", "verdict", "log_weights",
    ):  # fmt: skip
        old, new = getattr(before, name), getattr(after, name)
        mask = over.reshape(-1, *[1] * (new.ndim - 1))
        fields[name] = np.where(mask, old, new)
    return replace(after, **fields)


def remedy_worth(state: State) -> Floats:
    """What the remedies taken so far are worth, float64 [B]: 1 right, 0.3 harmless, 0 harmful."""
    cured = state.applied_at[np.arange(state.size), RIGHT_REMEDY[state.cause]] > 0
    return np.where(
        state.harms > 0,
        REMEDY_WORTH[HARMFUL],
        np.where(cured, REMEDY_WORTH[RIGHT], REMEDY_WORTH[HARMLESS]),
    )


def _reward(after: State) -> Floats:
    """Reward of a step; over a resolved episode the rewards sum to its score."""
    settings = after.settings
    solved = after.verdict == STABILISED
    worth = REMEDY_SHARE * remedy_worth(after)
    paid = SPEED_SHARE + PRIORITY_SHARE * PRIORITIES[settings.priority] + worth
    reward: Floats = np.where(solved, paid, 0.0) - SPEED_SHARE / settings.horizon
    return reward
