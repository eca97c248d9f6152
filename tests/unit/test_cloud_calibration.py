"""Where every seed starts, and what of its cost nobody needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import clouds
from world.worlds.cloud.archetypes import ARCHETYPES
from world.worlds.cloud.cost import row_costs
from world.worlds.cloud.schema import RUNNING
from world.worlds.cloud.settings import COST
from world.worlds.cloud.state import NOW, Floats, State
from world.worlds.cloud.world import CloudWorld

SEEDS = (0, 3, 5, 6, 24, 33)
_WASTE = np.array([sort.role == "waste" and not sort.oversized for sort in ARCHETYPES])


def opened(preset: str, seeds: tuple[int, ...] = SEEDS, **params: Any) -> State:
    scenario = clouds.variant(preset, **params)
    return CloudWorld(scenario).reset(scenario, list(seeds))


def wasted(state: State, machines: bool = False) -> Floats:
    """Cost of every row that nobody needs, $/h, float64 [B, R − tiers]; of machines only."""
    settings, columns = state.settings, state.columns
    rows = slice(settings.tiers, settings.rows)
    cost = row_costs(settings, columns)[:, settings.tiers - settings.queues :]
    counts = _WASTE[columns["h.archetype"][:, rows]]
    if machines:
        counts &= (columns["size"][:, rows] > 0) & (columns["state"][:, rows] == RUNNING)
    return np.where(counts, cost, 0.0)


@pytest.mark.parametrize("preset", ["easy", "medium", "hard", "war"])
def test_every_seed_starts_within_five_percent_of_its_preset(preset: str) -> None:
    state = opened(preset)
    start = state.settings.params.start
    aims = (start.latency_ms, start.cost_usd_per_hour, start.carbon_kg_per_day)
    for at, aim in enumerate(aims):
        assert state.columns[NOW][:, at] == pytest.approx(aim, rel=0.05)


@pytest.mark.parametrize("preset", ["hard", "war"])
def test_what_nobody_needs_covers_the_way_to_the_target_but_for_the_services(preset: str) -> None:
    state = opened(preset)
    target = state.settings.scenario.targets[COST]
    way = state.settings.params.start.cost_usd_per_hour - target
    waste = np.add.reduce(wasted(state), axis=1)
    assert (waste > 0.6 * way).all()
    assert (waste < 1.2 * way).all()


def test_a_larger_skew_puts_more_of_the_waste_into_fewer_rows() -> None:
    shares = []
    for skew in (0.0, 2.0):
        cost = np.sort(wasted(opened("war", waste_skew=skew)), axis=1)[:, ::-1]
        shares.append(np.add.reduce(cost[:, :10], axis=1) / np.add.reduce(cost, axis=1))
    assert shares[1].mean() > 1.15 * shares[0].mean()


def test_idle_machines_take_their_share_of_the_waste_and_leave_a_smaller_fleet() -> None:
    few, many = opened("hard", waste_machine_fraction=0.1), opened("hard")
    idle = [np.add.reduce(wasted(state, machines=True), axis=1) for state in (few, many)]
    assert (idle[1] > 2.0 * idle[0]).all()
    pools = slice(0, many.settings.pools)
    fleet = [np.add.reduce(state.columns["count"][:, pools], axis=1) for state in (few, many)]
    assert (fleet[1] < fleet[0]).all()


def test_a_seed_is_the_same_world_alone_and_in_a_batch() -> None:
    together = opened("war")
    alone = opened("war", SEEDS[2:3])
    for name, column in alone.columns.items():
        np.testing.assert_array_equal(column[0], together.columns[name][2], err_msg=name)
