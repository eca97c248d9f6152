"""Small bills and random play for the FinOps tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from world.actions import Action
from world.model import Joint, Observation, Scenario
from world.noise import generator
from world.scenarios.loader import load_scenario
from world.worlds.finops import make
from world.worlds.finops.estate import State
from world.worlds.finops.world import FinopsWorld

TASKS = ("zombie_cleanup", "right_sizing", "production_stability")

ZOMBIE: Mapping[str, Any] = {
    "kind": "compute",
    "size": "m5.xlarge",
    "cost_usd_per_hour": 0.192,
    "cpu_percent": 1.0,
    "memory_percent": 5.0,
    "idle_hours": 400.0,
    "age_hours": 4000.0,
    "essential": "no",
}
"""A row that may be terminated."""

WORKER: Mapping[str, Any] = {
    "kind": "compute",
    "size": "m5.4xlarge",
    "cost_usd_per_hour": 0.768,
    "cpu_percent": 30.0,
    "memory_percent": 40.0,
    "idle_hours": 0.0,
    "age_hours": 4000.0,
    "essential": "yes",
}
"""A row that is needed and in use."""


def bill(rows: Mapping[str, Mapping[str, Any]], horizon: int = 10, **params: Any) -> Scenario:
    """A bill scenario from id → cells; what a row lacks is unknown."""
    names = dict.fromkeys(name for row in rows.values() for name in row)
    columns: dict[str, tuple[Any, ...]] = {"id": tuple(rows)}
    for name in names:
        columns[name] = tuple(row.get(name) for row in rows.values())
    return Scenario(
        "test/bill",
        "finops",
        "",
        "",
        horizon,
        params={"task": "bill", **params},
        resources=columns,
    )


def native(scenario: Scenario) -> FinopsWorld:
    """The native world of a scenario."""
    world = make(scenario)
    assert isinstance(world, FinopsWorld)
    return world


def opened(task: str, seed: int = 1) -> tuple[FinopsWorld, State, Scenario]:
    """A generated task at step 0."""
    scenario = load_scenario(f"finops/{task}")
    world = native(scenario)
    return world, world.reset(scenario, [seed]), scenario


def billed(
    rows: Mapping[str, Mapping[str, Any]], horizon: int = 10, **params: Any
) -> tuple[FinopsWorld, State, Scenario]:
    """A bill at step 0."""
    scenario = bill(rows, horizon, **params)
    world = native(scenario)
    return world, world.reset(scenario, [0]), scenario


def random_joint(
    world: FinopsWorld, seen: Observation, seed: int, legal_only: bool = True
) -> Joint:
    """One to three catalogue actions; different targets and allowed ones unless told otherwise."""
    rng = generator(seed, "test.finops", seen.step)
    catalogue = world.catalogue(seen)
    chosen: list[Action] = []
    for _ in range(int(rng.integers(1, 4))):
        for _ in range(20):
            action = catalogue[int(rng.integers(len(catalogue)))]
            fresh = action.target not in {other.target for other in chosen}
            if not legal_only or (fresh and world.check(seen, action) is None):
                chosen.append(action)
                break
    return tuple(chosen) or (Action.of("nop"),)


def take(world: FinopsWorld, state: State, *steps: Sequence[Action] | Action) -> State:
    """Play steps of one action or several."""
    for step in steps:
        joint = (step,) if isinstance(step, Action) else tuple(step)
        state, _, _ = world.step(state, joint)
    return state
