"""What holds whatever is done: batches, replays, conservation, monotone queues."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.support import clouds
from world.model import Encoded
from world.worlds.cloud import queueing
from world.worlds.cloud.advance import advance
from world.worlds.cloud.reward import nothing
from world.worlds.cloud.schema import CAPACITY_COLUMNS
from world.worlds.cloud.settings import CARBON, COST, LATENCY
from world.worlds.cloud.state import NOW, State


def _wait(busy: np.ndarray, backlog_s: float = 0.0, vcpu: float = 16.0, dt_s: float = 300.0):
    tau, spread, timeout = 0.034, 1.25, 1.0
    capacity = np.full_like(busy, 1000.0)
    root = np.full_like(busy, math.sqrt(2 * (vcpu + 1)) - 1)
    unit = np.full_like(busy, tau / vcpu * spread)
    return queueing.serve(
        busy * capacity, capacity, backlog_s * capacity, unit, root, dt_s, timeout
    )


@pytest.mark.parametrize("vcpu", [2.0, 16.0, 96.0])
@pytest.mark.parametrize("backlog_s", [0.0, 0.2, 1.0])
def test_wait_and_percentiles_never_fall_when_load_rises_through_saturation(vcpu, backlog_s):
    busy = np.arange(0.9, 1.1, 1e-4)
    wait = _wait(busy, backlog_s, vcpu)
    assert (np.diff(wait.mean_s) >= -1e-12).all()
    assert (np.diff(wait.dropped_fraction) >= -1e-15).all()
    assert (np.diff(wait.backlog) >= -1e-9).all()
    mean = wait.mean_s + 0.034
    p95, p99 = queueing.percentiles_ms(
        mean, wait.variance_s2 + 0.034**2, np.zeros_like(mean), wait.dropped_fraction, 2.0
    )
    assert (np.diff(p95) >= -1e-9).all()
    assert (np.diff(p99) >= -1e-9).all()
    assert (np.diff(wait.mean_s) <= 300.0 * 1e-4 + 1e-9).all()  # no jump: slope at most dt


@given(
    busy=st.floats(0.01, 3.0), less=st.floats(0.0, 1.0), more=st.floats(0.0, 1.0),
    factor=st.floats(1.0, 4.0),
)  # fmt: skip
@limits(max_examples=200, deadline=None)
def test_wait_rises_with_backlog_and_falls_with_capacity(busy, less, more, factor):
    low, high = sorted((less, more))
    one, two = (_wait(np.array([busy]), backlog).mean_s[0] for backlog in (low, high))
    assert two >= one - 1e-12
    arrivals, root, unit = np.array([busy * 1000]), np.array([4.83]), np.array([0.0026])

    def served(capacity: float) -> queueing.Wait:
        return queueing.serve(
            arrivals, np.array([capacity]), np.array([high * 500]), unit, root, 300.0, 1.0
        )

    small, large = served(1000.0), served(1000.0 * factor)
    assert large.mean_s[0] <= small.mean_s[0] + 1e-12
    assert large.dropped_fraction[0] <= small.dropped_fraction[0] + 1e-15


def _same(one: State, other: State, row: int) -> list[str]:
    return [
        name for name, column in one.columns.items()
        if column[0].tobytes() != other.columns[name][row].tobytes()
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "batch"), [("medium", 1024), ("war", 48), ("war", 7)])
def test_one_world_equals_its_row_of_a_batch_to_the_last_bit(name, batch):
    scenario = clouds.variant(name, fail_scale=3.0, bursts_per_day=40.0)
    seeds = list(range(batch))
    picked = [0, batch // 2, batch - 1]
    world, many = clouds.opened(scenario, *seeds)
    singles = {row: world.reset(scenario, [seeds[row]]) for row in picked}
    for row in picked:
        assert _same(singles[row], many, row) == []
    for _ in range(14):
        actions = clouds.random_legal(many, 7, picked)
        for row in picked:
            alone = Encoded(*(part[row : row + 1] for part in actions))
            singles[row] = advance(singles[row], alone).state
        many = advance(many, actions).state
        for row in picked:
            assert _same(singles[row], many, row) == []


def test_random_legal_actions_keep_every_true_number_sane_and_every_instance_accounted_for():
    scenario = clouds.variant("hard", horizon=40)
    world, state = clouds.opened(scenario, *range(24))
    del world
    quiet = np.zeros(state.batch, dtype=bool)
    for _ in range(30):
        actions = clouds.random_legal(state, 3)
        before = state
        state = advance(state, actions).state
        measured = state.columns[NOW]
        assert np.isfinite(measured).all()
        assert (measured >= 0).all()
        queues = slice(0, state.settings.queues)
        for name in CAPACITY_COLUMNS:
            assert (state.columns[name][:, queues] >= 0).all(), name
        assert (state.columns["w.one_off_usd"] >= before.columns["w.one_off_usd"]).all()
        error = measured[:, 3]
        assert (error <= 1).all()
        quiet |= (actions.kinds <= 0).all(axis=1)
    assert not np.isnan(state.columns["count"]).any()


def test_without_actions_the_sum_of_instances_never_changes():
    _, state = clouds.opened(clouds.variant("medium", incidents=0), *range(16))
    order = clouds.random_legal(state, 5)
    state = advance(state, order).state
    queues = slice(0, state.settings.queues)

    def total(of: State) -> np.ndarray:
        return sum(of.columns[name][:, queues].sum(axis=1) for name in CAPACITY_COLUMNS)

    moving = (state.columns["s.move_to"] >= 0).any(axis=1)
    moving |= (state.columns["s.autoscale"] > 0).any(axis=1)
    drained = state.columns["draining"][:, queues].sum(axis=1)
    before = total(state)
    for _ in range(4):
        state = advance(state, nothing(state)).state
        gone = before - total(state)
        still = ~moving
        assert np.allclose(gone[still], drained[still])


@given(seed=st.integers(0, 4999), extra=st.sampled_from([0.1, 0.25, 0.5]))
@limits(max_examples=12, deadline=None)
def test_more_instances_of_the_same_pool_never_raise_latency_at_the_same_demand(seed, extra):
    scenario = clouds.calm("medium")
    _, state = clouds.opened(scenario, seed)
    settings = state.settings
    more = state.follow()
    row = settings.params.services.index("api") * settings.regions
    more.own("count")[0, row] *= 1.0 + extra
    plain, bigger = state, more
    for _ in range(3):
        plain, bigger = (advance(s, nothing(s)).state for s in (plain, bigger))
        assert clouds.truth(bigger)[0] <= clouds.truth(plain)[0] + 1e-9


@pytest.mark.parametrize("name", ["easy", "medium", "hard", "war"])
def test_every_seed_starts_where_its_preset_says(name):
    scenario = clouds.scenario(name)
    _, state = clouds.opened(scenario, *range(2000, 2060))
    start = state.settings.params.start
    measured = state.columns[NOW]
    for at, wanted in enumerate(
        (start.latency_ms, start.cost_usd_per_hour, start.carbon_kg_per_day)
    ):
        assert np.abs(measured[:, at] / wanted - 1).max() < 0.05, (LATENCY, COST, CARBON)[at]


def test_the_same_seed_gives_the_same_episode_and_another_gives_another():
    scenario = clouds.scenario("medium")
    world, one = clouds.opened(scenario, 11)
    two = world.reset(scenario, [11])
    other = world.reset(scenario, [12])
    for _ in range(5):
        one, two, other = (advance(s, nothing(s)).state for s in (one, two, other))
    assert _same(one, two, 0) == []
    assert _same(one, other, 0) != []


def test_what_is_done_never_shifts_the_noise():
    scenario = clouds.variant("medium", incidents=0)
    _, state = clouds.opened(scenario, 5)
    acting = state
    for _ in range(6):
        acting = advance(acting, clouds.random_legal(acting, 1)).state
        state = advance(state, nothing(state)).state
    for name in ("h.s.ar1", "h.s.burst"):
        assert acting.columns[name].tobytes() == state.columns[name].tobytes()


@given(cut=st.integers(1, 20))
@limits(max_examples=8, deadline=None)
def test_a_run_that_is_stored_and_restored_goes_on_bit_by_bit(cut):
    scenario = clouds.scenario("medium")
    world, state = clouds.opened(scenario, 3)
    for step in range(cut):
        found = world.catalogue(world.observe(state))
        state, _, _ = world.step(state, (found[(step * 37) % len(found)],))
    again = world.from_columns(scenario, 3, world.columns(state))
    assert world.observe(again).metrics == world.observe(state).metrics
    assert world.observe(again).outcomes == world.observe(state).outcomes
    for step in range(4):
        found = world.catalogue(world.observe(state))
        action = found[(step * 53) % len(found)]
        state, one, _ = world.step(state, (action,))
        again, two, _ = world.step(again, (action,))
        assert one == two
        assert _same(state, again, 0) == []
