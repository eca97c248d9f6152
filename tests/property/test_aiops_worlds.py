"""Invariants of both AI-Ops worlds over generated plays."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.aiops import history_of, native, original
from world.actions import Action
from world.model import Key
from world.worlds.aiops.menu import KINDS, NATIVE_KINDS
from world.worlds.aiops.state import State

SEEDS = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5)
NATIVE = native("incident_response_automation")
ORIGINAL = original("reset")

FIELDS = (
    "steps", "metrics", "cost_usd_per_hour", "cause", "alert", "applied_at", "harms", "last",
    "worked", "harmed", "repeated", "reading", "disturbance", "verdict", "log_weights",
)  # fmt: skip


def plays(kinds: tuple[str, ...]) -> st.SearchStrategy[list[list[str]]]:
    step = st.lists(st.sampled_from(kinds), min_size=5, max_size=5)
    return st.lists(step, min_size=1, max_size=7)


def same(left: State, row: int, right: State) -> bool:
    return all(
        getattr(left, name)[row].tobytes() == getattr(right, name)[0].tobytes() for name in FIELDS
    )


@settings(max_examples=40, deadline=None)
@given(SEEDS, plays(NATIVE_KINDS))
def test_a_native_batch_equals_single_worlds_to_the_last_bit(
    seeds: list[int], play: list[list[str]]
) -> None:
    batch = NATIVE.reset(NATIVE.scenario, seeds)
    singles = [NATIVE.reset(NATIVE.scenario, [seed]) for seed in seeds]
    for kinds in play:
        if batch.over.all():
            break
        codes = NATIVE.encode(batch, [(Action(kind),) for kind in kinds[: len(seeds)]])
        before = batch.over
        batch, outcomes = NATIVE.step_batch(batch, codes)
        for row in range(len(seeds)):
            if before[row]:
                assert outcomes.reward[row] == 0.0
                assert outcomes.done[row]
                continue
            singles[row], outcome, _ = NATIVE.step(singles[row], (Action(kinds[row]),))
            assert outcome.reward == outcomes.reward[row]
            assert outcome.success == outcomes.success[row]
            assert outcome.done == outcomes.done[row]
        for row, single in enumerate(singles):
            assert same(batch, row, single)
            assert NATIVE.columns(batch, row).digest == NATIVE.columns(single).digest


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**63 - 1), plays(NATIVE_KINDS))
def test_a_native_world_comes_back_from_the_store_as_it_was(
    seed: int, play: list[list[str]]
) -> None:
    state = NATIVE.reset(NATIVE.scenario, [seed])
    for kinds in play:
        again = NATIVE.from_columns(NATIVE.scenario, seed, NATIVE.columns(state))
        assert same(again, 0, state)
        assert NATIVE.observe(again) == NATIVE.observe(state)
        if state.over[0]:
            break
        left, _, delta = NATIVE.step(state, (Action(kinds[0]),))
        right, _, _ = NATIVE.step(again, (Action(kinds[0]),))
        assert same(left, 0, right)
        stored = NATIVE.columns(left)
        assert (stored.metrics, stored.hidden) == (delta.metrics, delta.hidden)
        state = left


@settings(max_examples=40, deadline=None)
@given(SEEDS, plays(NATIVE_KINDS))
def test_native_states_stay_in_range_and_the_posterior_sums_to_one(
    seeds: list[int], play: list[list[str]]
) -> None:
    state = NATIVE.reset(NATIVE.scenario, seeds)
    for kinds in play:
        if state.over.all():
            break
        codes = NATIVE.encode(state, [(Action(kind),) for kind in kinds[: len(seeds)]])
        state, outcomes = NATIVE.step_batch(state, codes)
        assert np.isfinite(state.log_weights).all()
        assert (state.metrics >= 0).all()
        assert (state.metrics[:, 1:] <= (1, 100, 100)).all()
        assert (outcomes.success <= outcomes.done).all()
        for row in range(state.size):
            facts = NATIVE.observe(state, row=row).facts
            assert abs(sum(facts["posterior"].values()) - 1.0) < 1e-6
            assert abs(sum(facts["remedy_probabilities"].values()) - 1.0) < 1e-6


@settings(max_examples=25, deadline=None)
@given(SEEDS, plays(KINDS))
def test_a_batch_of_the_original_equals_single_worlds(
    seeds: list[int], play: list[list[str]]
) -> None:
    batch = ORIGINAL.reset(ORIGINAL.scenario, seeds)
    singles = [ORIGINAL.reset(ORIGINAL.scenario, [seed]) for seed in seeds]
    done = [False] * len(seeds)
    for kinds in play:
        if all(done):
            break
        codes = ORIGINAL.encode(batch, [(Action(kind),) for kind in kinds[: len(seeds)]])
        batch, outcomes = ORIGINAL.step_batch(batch, codes)
        for row in range(len(seeds)):
            if not done[row]:
                singles[row], outcome, _ = ORIGINAL.step(singles[row], (Action(kinds[row]),))
                assert outcome.reward == outcomes.reward[row]
                done[row] = outcome.done
            assert batch.rows[row] == singles[row].rows[0]
            again = ORIGINAL.from_columns(
                ORIGINAL.scenario, seeds[row], ORIGINAL.columns(batch, row)
            )
            assert again.rows[0] == batch.rows[row]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(NATIVE_KINDS), min_size=1, max_size=3),
    st.integers(0, 8),
    st.integers(1, 4),
)
def test_projections_are_finite_and_a_function_of_what_was_seen(
    seed: int, kinds: list[str], samples: int, horizon: int
) -> None:
    state: Any = NATIVE.reset(NATIVE.scenario, [seed])
    history = history_of(NATIVE, [NATIVE.observe(state)])
    plans = [((Action(kind),),) for kind in kinds]
    found = [
        NATIVE.project(
            NATIVE.believe(history, samples, Key(seed, 0)), plans, horizon, None, Key(seed, 0)
        )
        for _ in range(2)
    ]
    assert found[0].shape == (1, len(kinds), max(samples, 1), horizon, 7)
    assert np.isfinite(found[0]).all()
    assert found[0].tobytes() == found[1].tobytes()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=10))
def test_any_text_as_an_action_is_a_refusal_and_never_a_crash(kind: str, target: str) -> None:
    for world in (NATIVE, ORIGINAL):
        state: Any = world.reset(world.scenario, [1])
        seen = world.observe(state)
        reason = world.check(seen, Action(kind, target))
        assert (reason is None) == (
            kind in NATIVE_KINDS and not target and (kind != "nop" or world is NATIVE)
        )
        world.hazards(seen, Action(kind, target))
