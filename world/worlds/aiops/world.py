"""The native AI-Ops world: an incident with a hidden cause, evidence, one right remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import NOP, Action, ActionTemplate
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
    Snapshot,
    World,
    significant,
)
from world.worlds.aiops import project as projection
from world.worlds.aiops.batching import checked_seeds, codes_of, encode_codes, episode_over
from world.worlds.aiops.diagnosis import (
    HARM_LIMIT,
    harm_probabilities,
    posterior_of,
    remedy_probabilities,
)
from world.worlds.aiops.dynamics import (
    advance,
    begin,
    draw,
    remedy_worth,
)
from world.worlds.aiops.events import EVENTS, NAMES
from world.worlds.aiops.menu import (
    CPU,
    ERROR,
    MEMORY,
    METRICS,
    NATIVE_KINDS,
    REMEDIES,
    phase_of,
    refusal,
)
from world.worlds.aiops.seed_rules import DISTURBANCES
from world.worlds.aiops.settings import (
    PRIORITIES,
    PRIORITY_SHARE,
    REMEDY_SHARE,
    SPEED_SHARE,
    NativeSettings,
    native_settings,
)
from world.worlds.aiops.state import (
    STABILISED,
    STOP_REASONS,
    State,
    delta_of,
    doubt_of,
    restore,
    snapshot,
)
from world.worlds.aiops.wording import describe, templates

_SYSTEM = frozenset({"system"})
_CATALOGUE = Catalogue.of([Action(kind) for kind in NATIVE_KINDS])


class AiopsWorld(World[State]):
    """One incident: four symptoms, a hidden cause, thirty actions and doing nothing.

    Args:
        scenario: A scenario of the world ``aiops`` without ``params.rules``.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """

    name = "aiops"
    title = "Incidents with a hidden cause, noisy evidence and one right remedy"
    limits = Limits(1, has_nop=True, plan_depth=1, noise="counter")
    metrics = (
        MetricSpec("latency_ms", "ms", "latency", "Latency"),
        MetricSpec("error_fraction", "fraction", "errors", "Failed requests"),
        MetricSpec("cpu_percent", "%", "latency", "CPU"),
        MetricSpec("memory_percent", "%", "latency", "Memory"),
        MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
        MetricSpec("repeat_fraction", "fraction", "churn", "Repeated action"),
        MetricSpec("doubt_percent", "%", "waste", "Doubt about the remedy"),
    )
    templates: tuple[ActionTemplate, ...] = templates()

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.settings = native_settings(scenario)

    def _settings(self, scenario: Scenario) -> NativeSettings:
        return self.settings if scenario is self.scenario else native_settings(scenario)

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> State:
        """State at step 0, one world per seed.

        Raises:
            ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
        """
        return begin(scenario, self._settings(scenario), checked_seeds(seeds))

    def observe(self, state: State, seat: str = "room", row: int = 0) -> Observation:
        """What a seat may know: symptoms, alert, answers and what follows from them."""
        posterior = posterior_of(state.log_weights[row])
        seen = Observation(
            int(state.steps[row]),
            state.settings.horizon,
            {
                **{
                    name: significant(float(state.metrics[row, code]))
                    for code, name in enumerate(METRICS)
                },
                "cost_usd_per_hour": significant(float(state.cost_usd_per_hour[row])),
                "repeat_fraction": float(state.repeated[row]),
                "doubt_percent": doubt_of(state, row),
            },
            dict(state.scenario.targets),
            self._facts(state, row, posterior),
            incidents=_incidents(state, row),
            outcomes=_outcomes(state, row),
            unknown=("root_cause",),
        )
        masked = state.scenario.masks.get(seat)
        return seen.masked(masked) if masked else seen

    def _facts(self, state: State, row: int, posterior: NDArray[np.float64]) -> dict[str, Any]:
        last = int(state.last[row])
        disturbance = int(state.disturbance[row])
        kind = NATIVE_KINDS[last] if last >= 0 else ""
        alert = EVENTS[int(state.alert[row])]
        remedies = remedy_probabilities(posterior).tolist()
        risks = harm_probabilities(posterior).tolist()
        facts: dict[str, Any] = {
            "rules": "native",
            "task": str(state.scenario.params.get("task", "")),
            "alert": alert.name.upper(),
            "service": alert.service,
            "severity": alert.severity,
            "priority": state.settings.priority,
            "status": _status(state, row),
            "phase": (phase_of(kind) or "") if kind else "",
            "last_action": kind,
            "disturbance": DISTURBANCES[disturbance] if disturbance >= 0 else "",
            "posterior": _rounded(NAMES, posterior.tolist()),
            "remedy_probabilities": _rounded(REMEDIES, remedies),
            "harm_probabilities": _rounded(REMEDIES, risks),
            "applied_at": {
                name: step
                for name, step in zip(REMEDIES, state.applied_at[row].tolist(), strict=True)
                if step
            },
            "harms": int(state.harms[row]),
            "done": bool(state.over[row]),
        }
        if facts["done"]:  # nothing is left to decide, so the truth may be shown
            cause = EVENTS[int(state.cause[row])]
            facts["root_cause"] = cause.name
            facts["right_remedy"] = cause.remedy
            facts["remedy_worth"] = float(remedy_worth(state)[row])
            facts["resolved"] = int(state.verdict[row]) == STABILISED
        return facts

    def catalogue(self, observation: Observation) -> Catalogue:
        """The thirty actions, and doing nothing."""
        del observation
        return _CATALOGUE

    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None."""
        if observation.facts.get("done") or observation.step >= observation.horizon:
            return f"the episode is over (step {observation.step} of {observation.horizon})"
        return refusal(NATIVE_KINDS, action)

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """Every action touches the one system, so any two clash; doing nothing touches nothing."""
        del observation
        return frozenset() if action.kind == NOP else _SYSTEM

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """A remedy that, by the evidence so far, does harm with 1 % probability or more."""
        if action.kind not in REMEDIES or refusal(NATIVE_KINDS, action) is not None:
            return ()
        posterior = projection.posterior_seen(observation)
        risk = float(harm_probabilities(posterior)[REMEDIES.index(action.kind)])
        if risk < HARM_LIMIT:
            return ()
        suspects = [
            (probability, event)
            for probability, event in zip(posterior.tolist(), EVENTS, strict=True)
            if action.kind in event.harmful
        ]
        worst = max(suspects, key=lambda pair: pair[0])[1]
        why = worst.harm if action.kind == worst.tempting else "it hits what is healthy"
        return (
            f"{action.kind} does harm with probability {risk:.2f} (limit {HARM_LIMIT:.2f}), "
            f"above all if this is {worst.name}: {why}",
        )

    def encode(self, state: State, joints: Sequence[Joint]) -> Encoded:
        """Joint actions as arrays.

        Raises:
            InadmissibleActionError: An action is not of this world, or there is not one for
                every world.
        """
        return encode_codes([projection.code_of(joint) for joint in joints], state.size)

    def step(self, state: State, actions: Joint) -> tuple[State, Outcomes, Delta]:
        """Advance one world.

        Raises:
            InadmissibleActionError: The episode is over, the action is not of this world, or the
                state holds more than one world.
        """
        if state.size != 1:
            raise InadmissibleActionError(
                f"the state holds {state.size} worlds", "step advances one", "Use step_batch"
            )
        if bool(state.over[0]):
            raise episode_over(int(state.steps[0]))
        codes = np.array([projection.code_of(actions)], dtype=np.int32)
        after, reward = advance(state, codes, draw(state, codes))
        return after, self._outcome(state, after, float(reward[0])), delta_of(after)

    def _outcome(self, before: State, after: State, reward: float) -> Outcomes:
        settings = after.settings
        verdict = int(after.verdict[0])
        done = bool(after.over[0])
        disturbance = int(after.disturbance[0])
        solved = verdict == STABILISED
        terms = {"time": -SPEED_SHARE / settings.horizon}
        if solved:
            terms["speed"] = SPEED_SHARE
            terms["priority"] = PRIORITY_SHARE * PRIORITIES[settings.priority]
            terms["remedy"] = REMEDY_SHARE * float(remedy_worth(after)[0])
        events = [f"disturbance: {DISTURBANCES[disturbance]}"] if disturbance >= 0 else []
        harm = _harm(after)
        return Outcomes(
            reward=reward,
            terms=terms,
            actions=(describe(after, 0, before.metrics[0]),),
            events=tuple(events),
            success=solved,
            done=done,
            stop_reason=(STOP_REASONS[verdict] or "horizon") if done else "",
            violations=(harm,) if harm else (),
        )

    def step_batch(self, state: State, actions: Encoded) -> tuple[State, BatchOutcomes]:
        """Advance every world by one step; worlds that are over stay as they are and earn 0.

        Raises:
            InadmissibleActionError: Every episode is over, or a code is not of this world.
        """
        codes = codes_of(actions, state.size, len(NATIVE_KINDS))
        if state.over.all():
            raise episode_over(int(state.steps.max()))
        after, reward = advance(state, codes, draw(state, codes))
        return after, BatchOutcomes(reward, after.verdict == STABILISED, after.over)

    def believe(self, history: History, samples: int, key: Key) -> Belief[State]:
        """Sample full states from what was observed; see `project.believe`."""
        return projection.believe(history, self._settings(history.scenario), samples, key)

    def project(
        self,
        belief: Belief[State],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of each plan; see `project.project`."""
        return projection.project(belief, plans, horizon, continuation, key)

    def columns(self, state: State, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""
        return snapshot(state, row)

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> State:
        """The state that `snapshot` was taken from.

        Raises:
            WorldError: The snapshot is of another world.
        """
        return restore(scenario, self._settings(scenario), seed, snapshot)


def _rounded(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Probabilities by name, to 9 decimals."""
    return {name: round(value, 9) for name, value in zip(names, values, strict=True)}


def _status(state: State, row: int) -> str:
    """STABLE where every target holds, CRITICAL by the original's bounds, else DEGRADED."""
    if int(state.verdict[row]) == STABILISED:
        return "STABLE"
    metrics = state.metrics[row]
    if metrics[CPU] > 85 or metrics[MEMORY] > 85 or metrics[ERROR] > 0.25:
        return "CRITICAL"
    return "DEGRADED"


def _incidents(state: State, row: int) -> tuple[str, ...]:
    alert = EVENTS[int(state.alert[row])]
    lines = [
        f"alert {alert.name.upper()} on {alert.service}, severity {alert.severity} "
        "(an alert may name a victim of the cause)"
    ]
    disturbance = int(state.disturbance[row])
    if disturbance >= 0:
        lines.append(f"disturbance: {DISTURBANCES[disturbance]}")
    return tuple(lines)


def _outcomes(state: State, row: int) -> tuple[ActionOutcome, ...]:
    return (describe(state, row),) if int(state.last[row]) >= 0 else ()


def _harm(state: State) -> str:
    """What a harmful remedy did in the last step, or ""."""
    if not bool(state.harmed[0]):
        return ""
    kind = NATIVE_KINDS[int(state.last[0])]
    cause = EVENTS[int(state.cause[0])]
    why = cause.harm if kind == cause.tempting else "it hit what was healthy"
    return f"step {int(state.steps[0])}: {kind} did harm: {why}"
