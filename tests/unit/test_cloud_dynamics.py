"""The single dynamics, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import clouds
from world.actions import Action
from world.worlds.cloud import batch_work, errors, memory
from world.worlds.cloud.advance import advance
from world.worlds.cloud.cost import row_costs
from world.worlds.cloud.reward import nothing
from world.worlds.cloud.schema import VOLUME
from world.worlds.cloud.solve import ready, shares


def test_errors_reach_every_caller_in_the_same_step():
    own = np.array([[0.0, 0.0, 0.5]])
    found = errors.propagate(own, ((1, 2, 0.5), (0, 1, 1.0)))
    assert found[0].tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_calls_are_kept_callees_first_in_every_shipped_scenario():
    for name in ("easy", "medium", "hard", "war"):
        _, state = clouds.opened(clouds.scenario(name), 1)
        calls = state.settings.calls
        callers = [caller for caller, _, _ in calls]
        assert callers == sorted(callers, reverse=True)
        assert all(callee > caller for caller, callee, _ in calls)


def test_batch_work_is_conserved_and_never_exceeds_capacity():
    ones = np.ones(1)
    done = batch_work.work(100 * ones, 90 * ones, 80 * ones, 0.5 * ones, 0 * ones, 0.1)
    assert done.rate[0] == pytest.approx(80 * batch_work.MOST_BUSY)
    assert done.backlog_hours[0] == pytest.approx(0.5 + (100 - done.rate[0]) * 0.1 / 90)
    drained = batch_work.work(10 * ones, 90 * ones, 800 * ones, 0.1 * ones, 0 * ones, 0.1)
    assert drained.backlog_hours[0] == pytest.approx(0.0)
    waiting = batch_work.work(100 * ones, 90 * ones, 800 * ones, 0 * ones, 0.35 * ones, 0.1)
    assert waiting.rate[0] == pytest.approx(65.0)


def test_memory_grows_with_age_slows_above_85_percent_and_kills_at_full():
    columns = {
        "h.s.memory_base": np.array([[0.5]]), "h.s.leak_per_h": np.array([[0.2]]),
        "h.s.memory_age_h": np.array([[1.0]]),
    }  # fmt: skip
    young = memory.memory_fraction(columns, np.array([[0.5]]))
    columns["h.s.memory_age_h"] = np.array([[3.0]])
    old = memory.memory_fraction(columns, np.array([[0.5]]))
    assert young[0, 0] == pytest.approx(0.75)
    assert old[0, 0] == 1.0
    assert memory.slowdown(young)[0, 0] == 1.0
    assert memory.slowdown(old)[0, 0] == pytest.approx(1.6)
    assert memory.alive(old)[0, 0] == pytest.approx(0.8)


def test_rows_cost_what_the_price_list_says():
    _, state = clouds.opened(clouds.calm("medium"), 1)
    settings, columns = state.settings, state.columns
    cost = row_costs(settings, columns)[0]
    rows = np.flatnonzero((columns["kind"][0] == VOLUME) & (columns["slot"][0] == 0))
    for row in rows.tolist():
        expected = columns["size_gb"][0, row] * 0.08 / 730
        assert cost[row - settings.queues] == pytest.approx(expected)
    assert (cost >= 0).all()


def test_shares_sum_to_one_and_leave_out_pools_without_instances():
    _, state = clouds.opened(clouds.scenario("hard"), *range(4))
    split = shares(state, ready(state))
    assert split.sum(axis=-1) == pytest.approx(1.0)
    assert (split[:, :, 1:] == 0).all()


def test_a_rolling_resize_takes_one_instance_away_and_then_changes_the_size():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = state.settings.regions
    state, _ = clouds.steps(
        world, state, (Action.of("resize", "api.us-east-1", new_size="m6i.4xlarge"),)
    )
    before = state.columns["size"][0, row]
    assert ready(state)[0, row] == state.columns["count"][0, row] - 1
    state, _ = clouds.steps(world, state, clouds.DO_NOTHING, clouds.DO_NOTHING)
    assert state.columns["size"][0, row] != before
    assert ready(state)[0, row] == state.columns["count"][0, row]


def test_an_energy_level_saves_carbon_and_costs_latency():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = state.settings.regions
    state = clouds.changed(state, "count", row, 1.5 * state.columns["count"][0, row])
    plain, _ = clouds.steps(world, state, clouds.DO_NOTHING)
    saving, _ = clouds.steps(world, state, (Action.of("optimize_energy", "api", level=2),))
    assert clouds.truth(saving)[2] < clouds.truth(plain)[2]
    assert clouds.service_value(saving, "p95_ms", "api") > clouds.service_value(
        plain, "p95_ms", "api"
    )


def test_callers_slow_down_while_a_callee_fails_only_where_failures_cascade():
    for cascading in (False, True):
        scenario = clouds.calm("medium", cascading=cascading, retry_fraction=0.0)
        world, state = clouds.opened(scenario, 1)
        del world
        failing = clouds.changed(state, "h.s.fault", 1, 0.9)
        for _ in range(2):
            state, failing = (advance(one, nothing(one)).state for one in (state, failing))
        slower = clouds.service_value(failing, "cpu_fraction", "web") > 1.05 * (
            clouds.service_value(state, "cpu_fraction", "web")
        )
        assert slower is cascading


def test_failed_requests_come_again():
    scenario = clouds.calm("medium", retry_fraction=0.5)
    _, state = clouds.opened(scenario, 1)
    failing = clouds.changed(state, "h.s.fault", 1, 0.8)
    for _ in range(2):
        failing = advance(failing, nothing(failing)).state
    assert clouds.service_value(failing, "rps", "api") == pytest.approx(
        1.4 * clouds.service_value(state, "rps", "api"), rel=0.02
    )


def test_embodied_carbon_is_added_only_where_the_scenario_counts_it():
    _, plain = clouds.opened(clouds.calm("medium"), 1)
    _, counted = clouds.opened(clouds.calm("medium", embodied=True), 1)
    fleet = counted.columns["count"][0, 0] < plain.columns["count"][0, 0]
    assert fleet  # the same start needs a smaller fleet
