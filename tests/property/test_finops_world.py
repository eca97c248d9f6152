"""The native FinOps world under random play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.finops import TASKS, WORKER, ZOMBIE, billed, opened, random_joint
from world.actions import Action
from world.model import History, Key, Snapshot
from world.worlds.finops import rules
from world.worlds.finops.estate import State, open_state
from world.worlds.finops.world import FinopsWorld

NOP_ACTION = Action.of("nop")
seeds = st.integers(min_value=0, max_value=2**63)
tasks = st.sampled_from(TASKS)


def visible(state: State, row: int = 0) -> dict[str, bytes]:
    return {name: column[row].tobytes() for name, column in state.columns.items()}


@settings(max_examples=25, deadline=None)
@given(task=tasks, seed=seeds, legal_only=st.booleans())
def test_random_play_keeps_every_promise_of_the_numbers(
    task: str, seed: int, legal_only: bool
) -> None:
    world, state, scenario = opened(task, seed)
    rows = state.frame.rows
    while not state.done:
        seen = world.observe(state)
        joint = random_joint(world, seen, seed, legal_only)
        before = state
        untouched = visible(before)
        state, outcomes, _ = world.step(state, joint)
        assert visible(before) == untouched, "the old state must stay valid"
        after = world.observe(state)
        for name, value in after.metrics.items():
            assert value is not None, name
            assert np.isfinite(value), name
            assert value >= 0.0, name
        assert len(after.inventory or ()) == rows
        assert outcomes.reward == pytest.approx(sum(outcomes.terms.values()))
        assert len(outcomes.actions) == len(joint)
        if legal_only:
            assert {one.status for one in outcomes.actions} == {"applied"}
    # Running totals equal a fresh sum, exactly.
    fresh = open_state(state.frame, state.columns)
    assert fresh.totals(0) == state.totals(0)
    live = state.columns["state"][0] == 0
    assert np.all(state.columns["cost_usd_per_hour"][0][~live] == 0.0)
    assert len(live) == rows
    assert scenario.horizon == state.step


@settings(max_examples=25, deadline=None)
@given(task=tasks, seed=seeds)
def test_what_the_dry_run_passes_is_never_refused_and_the_other_way_round(
    task: str, seed: int
) -> None:
    world, state, _ = opened(task, seed)
    for step in range(3):
        seen = world.observe(state)
        catalogue = world.catalogue(seen)
        rng = np.random.Generator(np.random.Philox(key=[seed, step]))
        for at in rng.integers(len(catalogue), size=12):
            action = catalogue[int(at)]
            _, outcomes, _ = world.step(state, (action,))
            reason = world.check(seen, action)
            assert (outcomes.actions[0].status == "applied") is (reason is None)
            assert outcomes.actions[0].reason == (reason or "")
            assert bool(outcomes.violations) is bool(world.hazards(seen, action))
        state, _, _ = world.step(state, random_joint(world, seen, seed))


@settings(max_examples=10, deadline=None)
@given(task=tasks, seed=st.integers(0, 2**31), legal_only=st.booleans())
def test_a_batch_equals_its_worlds_one_by_one_to_the_last_bit(
    task: str, seed: int, legal_only: bool
) -> None:
    world, _, scenario = opened(task, seed)
    numbers = range(seed, seed + 6)
    batch = world.reset(scenario, numbers)
    alone = [world.reset(scenario, [number]) for number in numbers]
    for _ in range(scenario.horizon):
        joints = [
            random_joint(world, world.observe(batch, row=row), seed + row, legal_only)
            for row in range(6)
        ]
        batch, results = world.step_batch(batch, world.encode(batch, joints))
        for row, joint in enumerate(joints):
            alone[row], outcomes, _ = world.step(alone[row], joint)
            assert results.reward[row] == outcomes.reward
            assert bool(results.success[row]) is outcomes.success
            assert bool(results.done[row]) is outcomes.done
            assert visible(batch, row) == visible(alone[row])
            assert batch.totals(row) == alone[row].totals(0)
            assert world.columns(batch, row).digest != ""
            assert world.observe(batch, row=row).metrics == world.observe(alone[row]).metrics


@settings(max_examples=15, deadline=None)
@given(task=tasks, seed=seeds)
def test_deltas_rebuild_the_columns_and_snapshots_bring_the_same_world_back(
    task: str, seed: int
) -> None:
    world, state, scenario = opened(task, seed)
    stored = {
        name: bytearray(column.tobytes()) for name, column in world.columns(state).columns.items()
    }
    for _ in range(6):
        joint = random_joint(world, world.observe(state), seed)
        state, _, delta = world.step(state, joint)
        for cells in delta.cells:
            stored[cells.column][cells.offset : cells.offset + len(cells.data)] = cells.data
        snapshot = world.columns(state)
        for name, column in snapshot.columns.items():
            assert bytes(stored[name]) == column.tobytes(), name
        assert delta.hidden == snapshot.hidden
        assert dict(delta.metrics) == dict(snapshot.metrics)
    copied = Snapshot(
        snapshot.step,
        dict(snapshot.metrics),
        snapshot.hidden,
        {
            name: np.frombuffer(bytes(stored[name]), dtype=column.dtype)
            for name, column in snapshot.columns.items()
        },
        snapshot.ids,
        snapshot.vocabulary,
    )
    again = world.from_columns(scenario, seed, copied)
    assert world.columns(again).digest == snapshot.digest
    left, right = world.observe(again), world.observe(state)
    assert (left.metrics, left.facts, left.outcomes) == (right.metrics, right.facts, right.outcomes)
    assert world.best_possible(again) == world.best_possible(state)
    while not state.done:
        joint = random_joint(world, world.observe(state), seed)
        state, one, _ = world.step(state, joint)
        again, two, _ = world.step(again, joint)
        assert one == two
    assert world.columns(again).digest == world.columns(state).digest


def measured(world: FinopsWorld, metrics: Mapping[str, float | None]) -> list[float]:
    """Metrics in the world's order; what is not known is NaN, as in a projection."""
    values = [metrics[spec.name] for spec in world.metrics]
    return [float("nan") if value is None else value for value in values]


def projected_equals_truth(world: FinopsWorld, state: State, history: History, seed: int) -> None:
    plans = [(random_joint(world, history.now, seed + at, at % 2 == 0),) for at in range(8)]
    belief = world.believe(history, 4, Key(seed, state.step))
    table = world.project(belief, plans, 3, None, Key(seed, state.step))
    assert table.shape == (1, 8, 4, 3, 5)
    for number, plan in enumerate(plans):
        after = state
        for step in range(3):
            after, _, _ = world.step(after, plan[0] if step == 0 else (NOP_ACTION,))
            metrics = world.observe(after).metrics
            expected = measured(world, metrics)
            for sample in range(4):
                got = table[0, number, sample, step].tolist()
                assert got == pytest.approx(expected, rel=1e-8, abs=1e-9, nan_ok=True)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_bill_has_nothing_hidden_so_its_projection_is_what_then_happens(seed: int) -> None:
    table = {
        "zombie": ZOMBIE,
        "worker": WORKER,
        "volume": {"kind": "storage", "cost_usd_per_hour": 0.05, "dependants": "zombie"}
        | {"idle_hours": 500.0, "essential": "no"},
        "unknown": {"kind": "database", "size": "db.m5.large", "cost_usd_per_hour": 0.19},
        "credit": {"cost_usd_per_hour": -0.3},
        "hot": {**WORKER, "cpu_percent": 96.0},
    }
    world, state, scenario = billed(table)
    history = History(scenario)
    for _ in range(3):
        history.observations.append(world.observe(state))
        projected_equals_truth(world, state, history, seed)
        joint = random_joint(world, history.now, seed)
        history.decisions.append(joint)
        state, _, _ = world.step(state, joint)


@settings(max_examples=10, deadline=None)
@given(task=tasks, seed=st.integers(0, 2**31))
def test_one_step_ahead_a_generated_world_projects_what_then_happens_unless_answers_come(
    task: str, seed: int
) -> None:
    world, state, scenario = opened(task, seed)
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 3, Key(seed, 0))
    catalogue = world.catalogue(history.now)
    plans = [((action,),) for action in catalogue if action.kind in ("nop", "terminate", "resize")]
    plans += [((action,),) for action in catalogue if action.kind == "flag_for_owner"]
    table = world.project(belief, plans, 1, None, Key(seed, 0))
    for number, plan in enumerate(plans):
        after, _, _ = world.step(state, plan[0])
        metrics = world.observe(after).metrics
        expected = measured(world, metrics)
        assert table[0, number, 0, 0].tolist() == pytest.approx(
            expected, rel=1e-8, abs=1e-9, nan_ok=True
        )


@settings(max_examples=20, deadline=None)
@given(task=tasks, seed=seeds, samples=st.integers(0, 5), horizon=st.integers(1, 4))
def test_worlds_that_look_the_same_project_the_same_bytes_whatever_is_hidden(
    task: str, seed: int, samples: int, horizon: int
) -> None:
    world, state, scenario = opened(task, seed)
    twisted = dict(state.columns)
    unknown = state.columns["essential"] == 0
    twisted["h.essential"] = np.where(unknown, 3 - state.columns["h.essential"], 0).astype(np.int8)
    for name in ("cpu_percent", "memory_percent", "idle_hours"):
        twisted[f"h.{name}"] = state.columns[f"h.{name}"] * 0.5 + 1.0
    other = replace(state, columns=twisted, origin=twisted)
    tables = []
    for truth in (state, other):
        history = History(scenario)
        history.observations.append(world.observe(truth))
        joint = tuple(a for a in world.catalogue(history.now) if a.kind == "request_metrics")[:3]
        history.decisions.append(joint or (NOP_ACTION,))
        belief = world.believe(history, samples, Key(seed, 0))
        plans = [*(((action,),) for action in world.catalogue(history.now)[:60]), (joint,)]
        tables.append(world.project(belief, plans, horizon, None, Key(seed, 0)).tobytes())
    assert tables[0] == tables[1]


@settings(max_examples=15, deadline=None)
@given(task=tasks, seed=seeds, samples=st.integers(0, 4), moves=st.integers(0, 4))
def test_asking_never_raises_unaccounted_spend_whatever_the_answer_may_be(
    task: str, seed: int, samples: int, moves: int
) -> None:
    world, state, scenario = opened(task, seed)
    history = History(scenario)
    for _ in range(moves):
        joint = random_joint(world, world.observe(state), seed)
        state, _, _ = world.step(state, joint)
    history.observations.append(world.observe(state))
    asks = [
        action
        for action in world.catalogue(history.now)
        if action.kind in ("request_metrics", "flag_for_owner")
    ]
    belief = world.believe(history, samples, Key(seed, state.step))
    plans = [((NOP_ACTION,),), *(((action,),) for action in asks)]
    unaccounted = world.project(belief, plans, 4, None, Key(seed, state.step))[0, :, :, :, 1]
    assert (unaccounted[1:] <= unaccounted[:1] + 1e-12).all()


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_the_batched_rules_agree_with_themselves_row_by_row(seed: int) -> None:
    _, state, _ = opened("zombie_cleanup", seed)
    cells = {name: column[0] for name, column in state.columns.items()}
    count = len(cells["state"])
    rng = np.random.Generator(np.random.Philox(key=[seed % 2**32, 1]))
    act = rng.integers(-1, 5, size=count).astype(np.int32)
    size = rng.integers(-1, 130, size=count).astype(np.int32)
    together = rules.refusals(cells, act, size)
    for row in range(count):
        one = {name: column[row : row + 1] for name, column in cells.items()}
        assert rules.refusals(one, act[row : row + 1], size[row : row + 1])[0] == together[row]
