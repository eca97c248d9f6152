"""The smallest honest world: three actions, two metrics with targets, no noise, no hidden state.

For tests and benchmarks of what is around a world (rooms, drivers, stores). It needs nothing but
NumPy, and a step costs a few microseconds.

Rules: ``speed_up`` takes 30 ms off and adds 10 $/h; ``save`` takes 25 $/h off and adds 8 ms;
``nop`` does nothing; two actions fit into one step; every step then adds 4 ms. Latency stays in
[20, 500] ms, cost in [50, 900] $/h. An episode starts at 250 ms + seed mod 7 and 500 $/h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.actions import Action, ActionTemplate
from world.catalogue import Catalogue
from world.errors import InadmissibleActionError
from world.model import (
    ActionOutcome,
    BatchOutcomes,
    Belief,
    Continuation,
    Delta,
    Encoded,
    History,
    Joint,
    Key,
    Limits,
    MetricSpec,
    Observation,
    Outcomes,
    Plan,
    Scenario,
    Situation,
    Snapshot,
    World,
)

NOP, SPEED_UP, SAVE = Action("nop"), Action("speed_up"), Action("save")
_ACTIONS = (NOP, SPEED_UP, SAVE)
_CODES = {action.kind: code for code, action in enumerate(_ACTIONS)}
_LATENCY_MS = (0.0, -30.0, 8.0)
_COST_USD_PER_HOUR = (0.0, 10.0, -25.0)
_DRIFT_MS = 4.0
_LOW = (20.0, 50.0)
_HIGH = (500.0, 900.0)


def stub_scenario(horizon: int = 30, name: str = "stub/plain") -> Scenario:
    """The scenario: below 150 ms and below 400 $/h."""
    return Scenario(
        name=name,
        world="stub",
        title="Two targets, no noise",
        description="For tests and benchmarks.",
        horizon=horizon,
        targets={"latency_ms": 150.0, "cost_usd_per_hour": 400.0},
        tolerances={"latency_ms": (20.0, 20.0), "cost_usd_per_hour": (15.0, 20.0)},
    )


class StubState(NamedTuple):
    """B worlds: equal-length tuples of floats, and the step that all are at."""

    scenario: Scenario
    step: int
    latency_ms: tuple[float, ...]
    cost_usd_per_hour: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Effect:
    latency_ms: float
    cost_usd_per_hour: float


def _effect(joint: Joint) -> _Effect:
    codes = [_CODES[action.kind] for action in joint]
    return _Effect(
        sum(_LATENCY_MS[code] for code in codes), sum(_COST_USD_PER_HOUR[code] for code in codes)
    )


class StubWorld(World[StubState]):
    """See the module's text."""

    name = "stub"
    title = "Two targets, no noise"
    limits = Limits(max_actions_per_step=2, has_nop=True, plan_depth=1, noise="none")
    metrics = (
        MetricSpec("latency_ms", "ms", "latency", "Latency"),
        MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
    )
    templates = (
        ActionTemplate("nop", "Do nothing"),
        ActionTemplate("speed_up", "Faster and dearer", effect="-30 ms, +10 $/h"),
        ActionTemplate("save", "Cheaper and slower", effect="-25 $/h, +8 ms"),
    )

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> StubState:
        """Start one world per seed."""
        return StubState(
            scenario, 0, tuple(250.0 + seed % 7 for seed in seeds), (500.0,) * len(seeds)
        )

    def observe(self, state: StubState, seat: str = "room", row: int = 0) -> Observation:
        """Everything: this world hides nothing, except what the scenario masks."""
        observation = Observation(
            step=state.step,
            horizon=state.scenario.horizon,
            metrics={
                "latency_ms": state.latency_ms[row],
                "cost_usd_per_hour": state.cost_usd_per_hour[row],
            },
            targets=state.scenario.targets,
        )
        masked = state.scenario.masks.get(seat, ())
        return observation.masked(masked) if masked else observation

    def catalogue(self, observation: Observation) -> Catalogue:
        """The three actions."""
        del observation
        return Catalogue.of(_ACTIONS)

    def check(self, observation: Observation, action: Action) -> str | None:
        """Refuses unknown kinds, targets and parameters."""
        if observation.step >= observation.horizon:
            return "the episode is over"
        if action.kind not in _CODES:
            return f"there is no action {action.kind!r}; actions: nop, speed_up, save"
        if action.target or action.params:
            return f"{action.kind} takes no target and no parameters"
        return None

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """An action touches its own kind only."""
        del observation
        return frozenset() if action.kind == "nop" else frozenset((action.kind,))

    def encode(self, state: StubState, joints: Sequence[Joint]) -> Encoded:
        """Kinds as template indices."""
        del state
        kinds = np.full((len(joints), 2), -1, dtype=np.int32)
        for row, joint in enumerate(joints):
            for slot, action in enumerate(joint):
                if action.kind not in _CODES:
                    raise InadmissibleActionError(f"there is no action {action.kind!r}")
                kinds[row, slot] = _CODES[action.kind]
        return Encoded(
            kinds, np.full((len(joints), 2), -1, np.int32), np.zeros((len(joints), 2, 0))
        )

    def step(self, state: StubState, actions: Joint) -> tuple[StubState, Outcomes, Delta]:
        """Advance one world."""
        if state.step >= state.scenario.horizon:
            raise InadmissibleActionError("the episode is over", "", "Start another one")
        for action in actions:
            if action.kind not in _CODES:
                raise InadmissibleActionError(f"there is no action {action.kind!r}")
        effect = _effect(actions)
        latency = _clamp(state.latency_ms[0] + effect.latency_ms + _DRIFT_MS, 0)
        cost = _clamp(state.cost_usd_per_hour[0] + effect.cost_usd_per_hour, 1)
        after = StubState(state.scenario, state.step + 1, (latency,), (cost,))
        terms = {"latency": 1.0 if latency < 150.0 else 0.0, "cost": 1.0 if cost < 400.0 else 0.0}
        done = after.step >= state.scenario.horizon
        outcomes = Outcomes(
            reward=terms["latency"] + terms["cost"],
            terms=terms,
            actions=tuple(ActionOutcome(action, "applied") for action in actions),
            success=latency < 150.0 and cost < 400.0,
            done=done,
            stop_reason="horizon" if done else "",
        )
        delta = Delta(
            {"latency_ms": latency, "cost_usd_per_hour": cost}, struct.pack("<I", after.step)
        )
        return after, outcomes, delta

    def step_batch(self, state: StubState, actions: Encoded) -> tuple[StubState, BatchOutcomes]:
        """Advance every world."""
        latency_table = np.array([*_LATENCY_MS, 0.0])
        cost_table = np.array([*_COST_USD_PER_HOUR, 0.0])
        latency = np.clip(
            np.array(state.latency_ms) + latency_table[actions.kinds].sum(axis=1) + _DRIFT_MS,
            _LOW[0],
            _HIGH[0],
        )
        cost = np.clip(
            np.array(state.cost_usd_per_hour) + cost_table[actions.kinds].sum(axis=1),
            _LOW[1],
            _HIGH[1],
        )
        fast, cheap = latency < 150.0, cost < 400.0
        after = StubState(
            state.scenario, state.step + 1, tuple(latency.tolist()), tuple(cost.tolist())
        )
        done = np.full(len(latency), after.step >= state.scenario.horizon)
        return after, BatchOutcomes(
            fast.astype(np.float64) + cheap.astype(np.float64), fast & cheap, done
        )

    def believe(self, history: History, samples: int, key: Key) -> Belief[StubState]:
        """What was observed is all there is: K equal samples."""
        del key
        now = history.now
        count = max(samples, 1)
        state = StubState(
            history.scenario,
            now.step,
            (float(now.metrics["latency_ms"] or 0.0),) * count,
            (float(now.metrics["cost_usd_per_hour"] or 0.0),) * count,
        )
        return Belief(state, 1, count, samples == 0)

    def project(
        self,
        belief: Belief[StubState],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Exact consequences, then those of the continuation (nop without one)."""
        del key
        state = belief.states
        latency = np.array(state.latency_ms)[None, :]
        cost = np.array(state.cost_usd_per_hour)[None, :]
        projected = np.empty((len(plans), belief.samples, horizon, 2))
        last = np.zeros((len(plans), belief.samples), dtype=np.int32)
        for ahead in range(horizon):
            change = np.zeros((len(plans), belief.samples, 2))
            for row, plan in enumerate(plans):
                if ahead < len(plan):
                    effect = _effect(plan[ahead])
                    change[row] = (effect.latency_ms, effect.cost_usd_per_hour)
                    last[row] = _CODES[plan[ahead][-1].kind]
            if continuation is not None and ahead > 0:
                metrics = np.stack([latency, cost], axis=-1).reshape(-1, 2)
                crisis = np.zeros(len(metrics), dtype=np.bool_)
                codes = continuation(
                    Situation(metrics, last.reshape(-1), crisis, state.step + ahead)
                ).reshape(len(plans), -1)
                free = np.array([ahead >= len(plan) for plan in plans])
                change[free, :, 0] = np.array(_LATENCY_MS)[codes[free]]
                change[free, :, 1] = np.array(_COST_USD_PER_HOUR)[codes[free]]
                last = np.where(free[:, None], codes, last).astype(np.int32)
            latency = np.clip(latency + change[..., 0] + _DRIFT_MS, _LOW[0], _HIGH[0])
            cost = np.clip(cost + change[..., 1], _LOW[1], _HIGH[1])
            projected[:, :, ahead, 0] = latency
            projected[:, :, ahead, 1] = cost
        return projected[None]

    def columns(self, state: StubState, row: int = 0) -> Snapshot:
        """Two floats; the hidden bytes repeat the step, so that stores have some to keep."""
        return Snapshot(
            state.step,
            {
                "latency_ms": state.latency_ms[row],
                "cost_usd_per_hour": state.cost_usd_per_hour[row],
            },
            hidden=struct.pack("<I", state.step),
        )

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> StubState:
        """The state that a snapshot was taken from."""
        del seed
        return StubState(
            scenario,
            snapshot.step,
            (snapshot.metrics["latency_ms"],),
            (snapshot.metrics["cost_usd_per_hour"],),
        )


def _clamp(value: float, metric: int) -> float:
    return min(max(value, _LOW[metric]), _HIGH[metric])


def make(scenario: Scenario) -> StubWorld:
    """The world that plays a stub scenario."""
    del scenario
    return StubWorld()
