"""The default room on a cloud: what a gap is worth, what is asked, and where work may move."""

from __future__ import annotations

import numpy as np
import pytest

from agents.backends.rules.cloud_estate import Estate
from agents.backends.rules.cloud_moves import NEAR, homeward, moves
from orchestrator.spec import DEFAULT_SCENARIO
from policies.utility import ObjectiveSpec, UtilitySpec, seat_utilities
from tests.support.asks import request_of
from tests.support.clouds import calm, changed, opened, scenario
from tests.support.rooms import room
from world.model import MetricSpec
from world.scenarios.loader import load_scenario
from world.worlds.cloud import menu
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld

WEB, API, BATCH = range(3)


def estate_of(world: CloudWorld, state: State) -> Estate:
    found = Estate.of(request_of(world, world.scenario, [world.observe(state)], []))
    assert found is not None
    return found


def test_a_plain_run_plays_a_cloud_with_mean_noise_ten_steps_ahead() -> None:
    assert load_scenario(DEFAULT_SCENARIO).world == "cloud"
    rules = room(scenario="cloud/medium").rules
    assert (rules.lookahead_steps, rules.samples) == (10, 0)
    assert rules.continuation is CloudWorld.playbook


def test_one_unit_of_gap_is_a_quarter_of_a_target_unless_the_scenario_says_more() -> None:
    world, state = opened(scenario("medium"), 200)
    shown = world.observe(state).facts["tolerances"]
    assert shown["cost_usd_per_hour"] == [15.0, 100.0]
    assert shown["carbon_kg_per_day"] == [15.0, 55.0]
    assert shown["worst_p95_ms"] == [7.5, 37.5]
    assert shown["error_fraction"] == [0.002, 0.005]
    assert shown["waste_usd_per_hour"] == [0.0, 100.0]


def test_a_metric_without_a_target_counts_in_the_unit_that_a_tolerance_names() -> None:
    metrics = (MetricSpec("waste", "$/h", "waste", "Waste"),)
    spec = UtilitySpec("log", 0.0, (ObjectiveSpec("waste", 1.0),))
    projected = np.array([100.0]).reshape(1, 1, 1, 1)
    plain = seat_utilities(spec, projected, metrics, {}, {})
    scaled = seat_utilities(spec, projected, metrics, {}, {"waste": (30.0, 100.0)})
    assert plain is not None
    assert scaled is not None
    assert plain[0] == pytest.approx(-np.log1p(100.0))
    assert scaled[0] == pytest.approx(-np.log(2.0))  # no margin: there is nothing to stay below


def test_every_errand_is_an_action_of_this_world_that_moves_no_target_by_itself() -> None:
    assert set(menu.ERRANDS) <= set(menu.CODES)
    assert all(worth > 0 for worth in menu.ERRANDS.values())
    changing = {"scale_up", "resize", "terminate", "stop", "isolate", "migrate_region"}
    assert not changing & set(menu.ERRANDS)


def test_work_that_users_wait_for_moves_no_farther_than_its_objective_allows() -> None:
    world, state = opened(calm("medium"), 200)
    estate = estate_of(world, state)
    slo = estate.settings.params.slo_p95_ms
    offered = [option.action for option in moves(estate)]
    assert any(action.target == "batch" for action in offered)
    for action in offered:
        if action.target != "batch":
            here = estate.word("region", estate.pools(("web", "api").index(action.target))[0])
            p95 = estate.services[action.target]["p95_ms"]
            assert p95 + estate.farther_ms(str(action.param("region")), here) < NEAR * slo


def test_nothing_comes_home_that_is_there_or_that_only_lacks_capacity() -> None:
    world, state = opened(scenario("medium"), 200)
    assert homeward(estate_of(world, state)) == []


def test_late_batch_work_asks_for_room_where_it_queues() -> None:
    world, state = opened(calm("medium"), 200)
    late = changed(changed(state, "s.due_hours", BATCH, 1.4), "s.backlog_hours", BATCH, 1.2)
    from agents.backends.rules.cloud import _catch_up

    estate = estate_of(world, late)
    row = estate.pools(BATCH)[0]
    found = [option.action for option in _catch_up(estate, BATCH, row)]
    where = estate.name(row) if estate.busy(row) > 0.93 else "batch-db"
    assert [action.target for action in found] == [where, where]
    assert all("1.4 of 1.5 h" in option.reason for option in _catch_up(estate, BATCH, row))
