"""The two forms of a state: how a world begins, and how one form becomes the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from world.errors import InadmissibleActionError
from world.model import Scenario
from world.worlds.cloudedge.rules import CRISIS_RESPONSE, EFFECTS, Settings, response
from world.worlds.cloudedge.state import NO_ANSWERS, Answers, Episode, Many, RowTape, Single, Tape
from world.worlds.cloudedge.tapes import (
    CounterRows,
    CounterTape,
    MeanRows,
    MeanTape,
    first_offsets,
)
from world.worlds.cloudedge.twister import TwisterRows, TwisterTape


def tape_of(settings: Settings, seed: int) -> Tape:
    """The true noise of one world."""
    if settings.sequential:
        return TwisterTape(seed, settings.jitter_steps)
    return CounterTape(seed, settings.jitter_steps)


def first_state(scenario: Scenario, settings: Settings, seed: int) -> Single:
    """One world at step 0."""
    tape = tape_of(settings, seed)
    if isinstance(tape, TwisterTape):
        offset, word = tape.first()
    else:
        seeds = np.array([seed], dtype=np.uint64)
        offset, word = int(first_offsets(seeds, settings.jitter_steps)[0]), 0
    following = settings.base_steps + offset
    episode = Episode(scenario, settings, seed, tape)
    return Single(episode, 0, *settings.start, 0, False, None, 0, following, word)


def first_states(scenario: Scenario, settings: Settings, seeds: NDArray[np.uint64]) -> Many:
    """A batch at step 0, one world per seed."""
    batch = len(seeds)
    tape: RowTape
    if settings.sequential:
        tape = TwisterRows(seeds, settings.jitter_steps)
        offsets, word = tape.first()
    else:
        tape = CounterRows(seeds, settings.base_steps, settings.jitter_steps)
        offsets = first_offsets(seeds, settings.jitter_steps)
        word = np.zeros(batch, dtype=np.int64)
    return Many(
        scenario,
        settings,
        seeds,
        tape,
        0,
        np.repeat(np.array(settings.start)[:, None], batch, axis=1),
        np.zeros(batch, dtype=np.int32),
        np.zeros(batch, dtype=np.bool_),
        np.full(batch, -1, dtype=np.int32),
        NO_ANSWERS,
        np.zeros(batch, dtype=np.uint8),
        settings.base_steps + offsets,
        word,
    )


def as_single(state: Many, row: int, only: bool = False) -> Single:
    """One row of a batch as a world of its own.

    Args:
        state: The batch.
        row: Row.
        only: Refuse a batch of more than one.

    Raises:
        InadmissibleActionError: `only`, and the batch holds several worlds.
    """
    if only and state.size != 1:
        raise InadmissibleActionError(
            f"step was given a batch of {state.size} worlds", "it advances one", "Use step_batch"
        )
    seed, code = int(state.seeds[row]), int(state.last[row])
    jitter = state.settings.jitter_steps
    tape: Tape
    if isinstance(state.tape, TwisterRows):
        tape = TwisterTape(seed, jitter)
    elif isinstance(state.tape, CounterRows):
        replicas = state.tape.replicas
        replica = replicas if isinstance(replicas, int) else int(replicas[row])
        tape = CounterTape(seed, jitter, replica)
    else:
        tape = MeanTape()
    effect = None
    if code == CRISIS_RESPONSE:
        servers, hydro = state.answers.of(np.array([row]))
        effect = response(float(servers[0]), bool(hydro[0]))
    elif code >= 0:
        effect = EFFECTS[code]
    latency, cost, carbon = state.metrics[:, row].tolist()
    return Single(
        Episode(state.scenario, state.settings, seed, tape),
        state.step,
        latency,
        cost,
        carbon,
        int(state.stable_steps[row]),
        bool(state.crisis[row]),
        effect,
        int(state.verdict[row]),
        int(state.next_crisis_step[row]),
        int(state.word[row]),
    )


def as_many(state: Single) -> Many:
    """One world as a batch of one."""
    episode, effect = state.episode, state.effect
    settings = episode.settings
    seeds = np.array([episode.seed], dtype=np.uint64)
    tape: RowTape = MeanRows()
    if isinstance(episode.tape, TwisterTape):
        tape = TwisterRows(seeds, settings.jitter_steps)
    elif isinstance(episode.tape, CounterTape):
        base, jitter = settings.base_steps, settings.jitter_steps
        tape = CounterRows(seeds, base, jitter, episode.tape.replica)
    values = (state.latency_ms, state.cost_usd_per_hour, state.carbon_index)
    answers = NO_ANSWERS
    if effect is not None and effect.code == CRISIS_RESPONSE:
        servers, hydro = np.array([effect.servers]), np.array([effect.hydro])
        answers = Answers(np.zeros(1, dtype=np.intp), servers, hydro, full=False)
    return Many(
        episode.scenario,
        settings,
        seeds,
        tape,
        state.step,
        np.array(values)[:, None],
        np.array([state.stable_steps], dtype=np.int32),
        np.array([state.crisis]),
        np.array([-1 if effect is None else effect.code], dtype=np.int32),
        answers,
        np.array([state.verdict], dtype=np.uint8),
        np.array([state.next_crisis_step], dtype=np.int64),
        np.array([state.word], dtype=np.int64),
    )
