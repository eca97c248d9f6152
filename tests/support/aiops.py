"""Playing AI-Ops worlds in tests: scenarios by name, episodes by rule, rooms without files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.persona import load_persona, seat_rules
from agents.seat import make_persona
from policies.protocols import protocol as find_protocol
from policies.records import Reply
from policies.table import RoomRules, lay_table
from tests.support.asks import request_of
from tests.support.tables import settle
from world.actions import Action
from world.graders.scorecard import GradedStep
from world.model import History, Joint, Observation, Outcomes, Scenario
from world.scenarios.loader import load_scenario
from world.worlds.aiops.seed_state import SeedRow, SeedState
from world.worlds.aiops.seed_world import SeedWorld
from world.worlds.aiops.state import State
from world.worlds.aiops.world import AiopsWorld

SEATS = ("resource", "cost", "sustainability", "janitor")
Rule = Callable[[Observation], str]
"""What is seen → kind of the next action."""


class Played(NamedTuple):
    """One episode that was played to its end."""

    observations: tuple[Observation, ...]
    outcomes: tuple[Outcomes, ...]
    steps: tuple[GradedStep, ...]

    @property
    def reward(self) -> float:
        """Sum of the rewards."""
        return sum(outcome.reward for outcome in self.outcomes)

    @property
    def kinds(self) -> list[str]:
        """What was done."""
        return [step.actions[0] for step in self.steps]


def scenario(name: str, **changes: Any) -> Scenario:
    """A shipped scenario, with some of its params changed; ``horizon`` changes the horizon."""
    found = load_scenario(f"aiops/{name}")
    horizon = changes.pop("horizon", found.horizon)
    return dataclasses.replace(found, horizon=horizon, params={**found.params, **changes})


def native(name: str, **changes: Any) -> AiopsWorld:
    """The native world of a shipped scenario."""
    return AiopsWorld(scenario(name, **changes))


def original(name: str, **changes: Any) -> SeedWorld:
    """The original's world of a shipped scenario."""
    return SeedWorld(scenario(f"seed/{name}", **changes))


def joint(kind: str) -> Joint:
    """One action by kind."""
    return (Action(kind),)


def stepped(world: AiopsWorld, state: State, kind: str) -> State:
    """The state after one action."""
    return world.step(state, joint(kind))[0]


def row(state: SeedState) -> SeedRow:
    """The one world of a state of the original's rules."""
    (only,) = state.rows
    return only


def history_of(world: AiopsWorld | SeedWorld, observations: Sequence[Observation]) -> History:
    """A history that holds these observations."""
    history = History(world.scenario)
    history.observations.extend(observations)
    return history


def play(world: AiopsWorld | SeedWorld, seed: int, rule: Rule) -> Played:
    """Play a whole episode by a rule."""
    state: Any = world.reset(world.scenario, [seed])
    observations = [world.observe(state)]
    outcomes: list[Outcomes] = []
    steps: list[GradedStep] = []
    while not (outcomes and outcomes[-1].done):
        chosen = joint(rule(observations[-1]))
        state, outcome, _ = world.step(state, chosen)
        outcomes.append(outcome)
        observations.append(world.observe(state))
        steps.append(GradedStep.of(observations[-1], chosen, outcome))
    return Played(tuple(observations), tuple(outcomes), tuple(steps))


def script(kinds: Sequence[str]) -> Rule:
    """A fixed sequence, its last action repeated when it ends."""
    return lambda seen: kinds[min(seen.step, len(kinds) - 1)]


def room_plays(
    world: AiopsWorld, seed: int, protocol: str = "weighted_score", **rules: Any
) -> Played:
    """The default room around a world: no proposals, the whole catalogue on the table."""
    seats = tuple(seat_rules(load_persona(name), name) for name in SEATS)
    history = History(world.scenario)
    options = {"lookahead_steps": 8, **rules}

    def decide(seen: Observation) -> str:
        history.observations.append(seen)
        table = lay_table(
            world, history, seed, seats, dict.fromkeys(SEATS, ()), RoomRules(**options)
        )
        decision = settle(find_protocol(protocol).decide(table.context))
        history.decisions.append(decision.chosen.now)
        return decision.chosen.now[0].kind

    return play(world, seed, decide)


def with_hidden(state: State, event: int) -> State:
    """The same observable state with another hidden cause."""
    return dataclasses.replace(state, cause=np.full(state.size, event, dtype=np.int64))


def persona_plays(world: AiopsWorld, seed: int, seat: str) -> Played:
    """One rule persona that always gets its first proposal."""
    persona = make_persona(load_persona(seat), seat)
    history: list[Observation] = []

    def decide(seen: Observation) -> str:
        history.append(seen)
        request = request_of(world, world.scenario, history, seat=seat)
        reply = persona.answer(request)
        if not isinstance(reply, Reply):
            raise TypeError("a rule persona answers at once")
        return reply.proposals[0].actions[0].kind

    return play(world, seed, decide)
