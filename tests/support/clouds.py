"""Cloud worlds for tests: shipped scenarios, calmer variants, and random legal actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from world import noise
from world.actions import NOP, Action
from world.model import Encoded, Joint, Outcomes, Scenario
from world.scenarios.loader import load_scenario
from world.worlds.cloud import menu, reading
from world.worlds.cloud.state import NOW, Measured, State
from world.worlds.cloud.view import CloudInventory, observe
from world.worlds.cloud.world import CloudWorld

DO_NOTHING: Joint = (Action(NOP),)


@cache
def scenario(name: str = "medium") -> Scenario:
    """A shipped scenario."""
    return load_scenario(f"cloud/{name}")


def variant(name: str = "medium", horizon: int | None = None, **params: Any) -> Scenario:
    """A shipped scenario with other numbers."""
    base = scenario(name)
    return dataclasses.replace(
        base, params={**base.params, **params}, horizon=horizon or base.horizon
    )


def calm(name: str = "medium", **params: Any) -> Scenario:
    """A scenario without noise, gaps, bursts, failures and incidents."""
    quiet: dict[str, Any] = {
        "noise_fraction": 0.0, "missing_fraction": 0.0, "lag_steps": 0, "fail_scale": 0.0,
        "bursts_per_day": 0.0, "demand_noise": 0.0, "demand_amplitude": 0.0, "incidents": 0,
        "unknown_essential_fraction": 0.0, "unknown_tag_fraction": 0.0, "grace_steps": 0,
    }  # fmt: skip
    return variant(name, **{**quiet, **params})


def opened(scenario: Scenario, *seeds: int) -> tuple[CloudWorld, State]:
    """A world and its state at step 0."""
    world = CloudWorld(scenario)
    return world, world.reset(scenario, list(seeds) or [1])


def with_incident(state: State, cause: int, **cells: float) -> State:
    """The state with one incident that begins in the next step (slot 0 of the incidents)."""
    columns = dict(state.columns)
    defaults: dict[str, float] = {
        "cause": cause, "onset": state.step + 1, "end": 1_000_000, "service": -1, "victim": -1,
        "row": -1, "slot": -1, "severity": 0.6, "status": 0, "known_step": -1, "cured_step": -1,
    }  # fmt: skip
    for name, value in {**defaults, **cells}.items():
        column = columns[f"h.i.{name}"].copy()
        column[:, 0] = value
        columns[f"h.i.{name}"] = column
    result = state.follow()
    result.columns = columns
    return result


def changed(state: State, name: str, place: Any, value: float) -> State:
    """The state with one cell of world 0 changed."""
    result = state.follow()
    result.own(name)[0, place] = value
    result.extras = object()
    return result


def steps(world: CloudWorld, state: State, *joints: Joint) -> tuple[State, list[Outcomes]]:
    """Several steps."""
    outcomes = []
    for joint in joints:
        state, outcome, _ = world.step(state, joint)
        outcomes.append(outcome)
    return state, outcomes


def service_value(state: State, name: str, service: str, row: int = 0) -> float:
    """One true measurement of a service."""
    settings = state.settings
    at = settings.params.services.index(service)
    return float(state.columns[NOW][row, Measured(settings).service(name)][at])


def truth(state: State, row: int = 0) -> np.ndarray[Any, Any]:
    """True latency (ms), cost ($/h), carbon (kg/day), errors, waste, churn."""
    found: np.ndarray[Any, Any] = state.columns[NOW][row, :6]
    return found


def random_legal(state: State, key: int, rows: Sequence[int] | None = None) -> Encoded:
    """Up to three random actions of its catalogue for every world, by counter noise."""
    b = state.batch
    kinds = np.full((b, 3), -1, dtype=np.int32)
    targets = np.full((b, 3), -1, dtype=np.int32)
    params = np.zeros((b, 3, menu.PARAMS))
    for row in range(b) if rows is None else rows:
        view = observe(state, row).inventory
        assert isinstance(view, CloudInventory)
        found = reading.catalogue(view)
        picks = noise.uniforms(key, row, noise.channel("test.pick"), state.step)
        for slot in range(3):
            action = found[int(picks[slot] * len(found))]
            read = reading.read(action, view)
            kinds[row, slot], targets[row, slot] = read.kind, read.target
            params[row, slot] = read.params
    return Encoded(kinds, targets, params)
