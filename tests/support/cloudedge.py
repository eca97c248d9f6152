"""Playing CloudEdge in tests: worlds by name, actions by kind, episodes by rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.support.seed_boardroom import Seen
from world.actions import Action
from world.model import History, Key, Observation, Outcomes, Scenario, Situation
from world.scenarios.loader import load_scenario
from world.worlds.cloudedge import CloudEdge, cost_carbon_first, make
from world.worlds.cloudedge.menu import FULL_RESPONSE
from world.worlds.cloudedge.rules import KINDS
from world.worlds.cloudedge.state import Single

LEVELS = ("easy", "medium", "hard")
Rule = Callable[[Seen, Seen | None, Sequence[str]], str]
"""Now, one step earlier, names of all actions so far → name of the next action."""


class Played(NamedTuple):
    """One episode that was played to its end."""

    total: float
    end: Single
    observations: tuple[Observation, ...]
    outcomes: tuple[Outcomes, ...]
    done: tuple[str, ...]


def scenario(name: str, **changes: Any) -> Scenario:
    """A shipped scenario, with some of its params changed; ``horizon`` changes the horizon."""
    found = load_scenario(f"cloudedge/{name}")
    horizon = changes.pop("horizon", found.horizon)
    return dataclasses.replace(found, horizon=horizon, params={**found.params, **changes})


def world_of(name: str, **changes: Any) -> CloudEdge:
    """The world of a shipped scenario, with some of its params changed."""
    return make(scenario(name, **changes))


def single(world: CloudEdge, seed: int = 1) -> Single:
    """One world at step 0."""
    state = world.reset(world.scenario, [seed])
    assert isinstance(state, Single)
    return state


def action(kind: str) -> Action:
    """An action by name; a crisis response is the seed's full one."""
    return FULL_RESPONSE if kind == "crisis_response" else Action(kind)


def stepped(world: CloudEdge, state: Single, kind: str) -> Single:
    """The state after one action by name."""
    after, _, _ = world.step(state, (action(kind),))
    assert isinstance(after, Single)
    return after


def seen(observation: Observation) -> Seen:
    """An observation as the boardroom sees it."""
    latency, cost, carbon = (float(value or 0.0) for value in observation.metrics.values())
    return Seen(latency, cost, carbon, bool(observation.facts["crisis"]))


def play(world: CloudEdge, seed: int, rule: Rule) -> Played:
    """Play a whole episode."""
    state = single(world, seed)
    before: Seen | None = None
    done: list[str] = []
    observations = [world.observe(state)]
    outcomes: list[Outcomes] = []
    while state.step < world.scenario.horizon:
        now = seen(observations[-1])
        kind = rule(now, before, done)
        after, outcome, _ = world.step(state, (action(kind),))
        assert isinstance(after, Single)
        state, before = after, now
        done.append(kind)
        outcomes.append(outcome)
        observations.append(world.observe(state))
    total = sum(outcome.reward for outcome in outcomes)
    return Played(total, state, tuple(observations), tuple(outcomes), tuple(done))


def planned(plan: str) -> Rule:
    """A fixed plan, one digit a step, repeated when it ends."""
    return lambda now, before, done: KINDS[int(plan[len(done) % len(plan)])]


def playbook(now: Seen, before: Seen | None, done: Sequence[str]) -> str:
    """The product's playbook, asked for one world."""
    del before
    situation = Situation(
        np.array([[now.latency, now.cost, now.carbon, 0.0]]),
        np.array([KINDS.index(done[-1]) if done else -1], dtype=np.int32),
        np.array([now.crisis]),
        len(done),
    )
    return KINDS[int(cost_carbon_first(situation)[0])]


def history_of(world: CloudEdge, observations: Sequence[Observation]) -> History:
    """A history that holds these observations."""
    history = History(world.scenario)
    history.observations.extend(observations)
    return history


def key_of(step: int, seed: int = 1) -> Key:
    """Where projection noise is drawn."""
    return Key(seed, step)
