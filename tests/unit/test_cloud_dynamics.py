"""The single dynamics, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import clouds
from world.actions import Action
from world.model import History, Key
from world.worlds.cloud import batch_work, errors, memory
from world.worlds.cloud.advance import advance
from world.worlds.cloud.cost import row_costs
from world.worlds.cloud.reward import nothing
from world.worlds.cloud.schema import VOLUME
from world.worlds.cloud.solve import database_calls, ready, shares


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
    waited = 0.5 * (1 + batch_work.REWORK_PER_HOUR * 0.1)
    assert done.backlog_hours[0] == pytest.approx(waited + (100 - done.rate[0]) * 0.1 / 90)
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


def test_spot_prices_move_by_the_full_hour_only_and_alike_whatever_is_done():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    prices, costs = [], []
    for _ in range(25):
        state, _ = clouds.steps(world, state, clouds.DO_NOTHING)
        prices.append(float(state.columns["g.spot"][0, 0]))
        costs.append(float(row_costs(state.settings, state.columns).sum()))
    assert len(set(prices)) == 3  # the start and two full hours
    assert set(np.flatnonzero(np.diff(prices)).tolist()) == {10, 22}
    rows = (state.columns["pricing"][0] == 2).sum()
    assert (len(set(costs)) == 3) is bool(rows)
    _, other = clouds.opened(clouds.calm("medium"), 1)
    for _ in range(25):
        other, _ = clouds.steps(world, other, (Action.of("analyse", "api"),))
    assert other.columns["g.spot"].tobytes() == state.columns["g.spot"].tobytes()


def test_what_spot_machines_cost_is_the_price_that_is_published():
    _, state = clouds.opened(clouds.calm("war"), 1)
    settings, columns = state.settings, state.columns
    spot = np.flatnonzero((columns["pricing"][0] == 2) & (columns["state"][0] == 0))
    assert spot.size
    cost = row_costs(settings, columns)[0]
    dear = row_costs(settings, {**columns, "g.spot": columns["g.spot"] * 2.0})[0]
    for row in spot.tolist():
        assert dear[row - settings.queues] == pytest.approx(2.0 * cost[row - settings.queues])
    others = np.setdiff1d(np.arange(settings.queues, settings.rows), spot)
    assert (dear[others - settings.queues] == cost[others - settings.queues]).all()


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


def _roomy_databases():
    """A world whose database of api is far from full."""
    world, state = clouds.opened(clouds.calm("medium"), 1)
    at = state.settings.pools + 1
    state = clouds.changed(state, "count", at, 3.0 * state.columns["count"][0, at])
    return world, clouds.steps(world, state, clouds.DO_NOTHING)[0]  # measured as it is


def _api(state) -> int:
    return state.settings.params.services.index("api")


def test_a_restart_costs_one_instance_in_n_in_the_step_that_is_measured():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    plain, _ = clouds.steps(world, state, clouds.DO_NOTHING)
    after, _ = clouds.steps(world, state, (Action.of("restart", "api"),))
    n = state.columns["count"][0, state.settings.regions]
    busy, usual = (clouds.service_value(one, "cpu_fraction", "api") for one in (after, plain))
    assert busy == pytest.approx(min(usual * n / (n - 1), 1.0), rel=1e-3)
    back, _ = clouds.steps(world, after, clouds.DO_NOTHING)
    assert ready(back)[0, state.settings.regions] == n


def test_a_restart_takes_a_service_with_one_instance_out_for_one_step():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = state.settings.regions
    each = state.columns["h.s.base_rps"][0, 1] / state.columns["count"][0, row]
    single = clouds.changed(state, "count", row, 1.0)
    single = clouds.changed(single, "h.s.base_rps", 1, each)
    single, _ = clouds.steps(world, single, clouds.DO_NOTHING)
    restart = Action.of("restart", "api")
    assert any("only instance" in line for line in world.hazards(world.observe(single), restart))
    out, outcomes = clouds.steps(world, single, (restart,))
    assert outcomes[0].actions[0].status == "applied"
    assert clouds.service_value(out, "error_fraction", "api") == pytest.approx(1.0)
    back, _ = clouds.steps(world, out, clouds.DO_NOTHING)
    assert clouds.service_value(back, "error_fraction", "api") < 0.5


def test_resizing_a_database_is_felt_for_two_steps_and_fails_over_in_the_first():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    state = clouds.changed(state, "count", state.settings.pools + 1, 20.0)
    state, _ = clouds.steps(world, state, clouds.DO_NOTHING)
    usual = clouds.service_value(state, "db_cpu_fraction", "api")
    change = (Action.of("resize", "api-db", new_size="db.r5.8xlarge"),)
    first, _ = clouds.steps(world, state, change)
    assert clouds.service_value(first, "error_fraction", "api") > 0.04
    assert clouds.service_value(first, "db_cpu_fraction", "api") == pytest.approx(
        usual / 0.95 / 0.5, rel=0.02
    )
    second, _ = clouds.steps(world, first, clouds.DO_NOTHING)
    assert clouds.service_value(second, "error_fraction", "api") < 0.01
    assert clouds.service_value(second, "db_cpu_fraction", "api") == pytest.approx(
        usual / 0.95, rel=0.02
    )
    third, _ = clouds.steps(world, second, clouds.DO_NOTHING)
    assert clouds.service_value(third, "db_cpu_fraction", "api") == pytest.approx(
        usual / 2.0, rel=0.02
    )


def test_a_failover_of_ours_halves_the_database_for_exactly_one_step():
    world, state = _roomy_databases()
    usual, _ = clouds.steps(world, state, clouds.DO_NOTHING)
    hurt, _ = clouds.steps(world, state, (Action.of("failover_db", "api-db"),))
    assert clouds.service_value(hurt, "error_fraction", "api") > 0.04
    assert clouds.service_value(hurt, "db_cpu_fraction", "api") > 1.5 * (
        clouds.service_value(usual, "db_cpu_fraction", "api")
    )
    healed, _ = clouds.steps(world, hurt, clouds.DO_NOTHING)
    assert clouds.service_value(healed, "error_fraction", "api") < 0.01


def test_a_projection_shows_the_same_outage_as_the_truth():
    world, state = _roomy_databases()
    history = History(state.settings.scenario)
    history.observations.append(world.observe(state))
    for _ in range(3):
        state, _, _ = world.step(state, clouds.DO_NOTHING)
        history.decisions.append(clouds.DO_NOTHING)
        history.observations.append(world.observe(state))
    change = (Action.of("failover_db", "api-db"),)
    belief = world.believe(history, 0, Key(1, 3))
    shown = world.project(belief, [(change,)], 2, None, Key(1, 3))[0, 0, 0]
    truth, _ = clouds.steps(world, state, change)
    assert shown[0, 7] == pytest.approx(truth.columns["h.m.now"][0, 7], rel=0.1)
    assert shown[0, 7] > 0.04
    assert shown[1, 7] < 0.01


def test_a_smaller_cache_misses_more_and_loads_its_database():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    assert database_calls(state)[0].tolist() == pytest.approx([0.6, 1.4, 4.0])
    cache = state.settings.queues + state.settings.s + _api(state)
    roomy = clouds.changed(state, "memory_percent", cache, 20.0)
    plain, _ = clouds.steps(world, roomy, *[clouds.DO_NOTHING] * 3)
    small, _ = clouds.steps(
        world, roomy, (Action.of("resize", "api-cache", new_size="r5.large"),),
        *[clouds.DO_NOTHING] * 2,
    )  # fmt: skip
    calls = 2 * (1 - 0.3 * 0.25**0.3)
    assert database_calls(small)[0, 1] == pytest.approx(calls)
    assert clouds.service_value(small, "db_cpu_fraction", "api") == pytest.approx(
        clouds.service_value(plain, "db_cpu_fraction", "api") * calls / 1.4, rel=0.01
    )


def test_batch_work_goes_no_faster_than_its_database():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    at = state.settings.pools + 2
    thin = clouds.changed(state, "count", at, 1.0)
    thin, _ = clouds.steps(world, thin, *[clouds.DO_NOTHING] * 6)
    plain, _ = clouds.steps(world, state, *[clouds.DO_NOTHING] * 6)
    assert plain.columns["s.backlog_hours"][0, 2] == 0.0
    assert thin.columns["s.backlog_hours"][0, 2] > 0.1
    assert thin.columns["s.due_hours"][0, 2] > thin.columns["s.backlog_hours"][0, 2]
    assert clouds.service_value(thin, "db_cpu_fraction", "batch") == pytest.approx(0.98)


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
