"""The original AI-Ops environment as a `World`: exact draws, exact rewards, flaws included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.actions import Action
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
    significant,
)
from world.worlds.aiops.adaptive import by_memory, by_table
from world.worlds.aiops.batching import checked_seeds, codes_of, encode_codes, episode_over
from world.worlds.aiops.events import EVENTS
from world.worlds.aiops.menu import (
    CODE,
    KINDS,
    METRICS,
    PHASES,
    STABILIZE,
    effect_text,
    refusal,
    seed_templates,
)
from world.worlds.aiops.seed_draws import MEAN, Draws, ImaginedDraws, Slot, TwisterDraws
from world.worlds.aiops.seed_rules import STABLE_BELOW, Vitals, advance, event_start, reset
from world.worlds.aiops.seed_state import (
    SeedRow,
    SeedState,
    delta_of,
    restore,
    snapshot,
)
from world.worlds.aiops.settings import SeedSettings, seed_settings

_SYSTEM = frozenset({"system"})
_CATALOGUE = Catalogue.of([Action(kind) for kind in KINDS])
_IMAGINED = noise.channel("aiops.seed.imagined")
_UNKNOWN_EVENT = ("MEDIUM", "unknown service")


def symptoms_first(situation: Situation) -> NDArray[np.int32]:
    """A continuation: treat errors, then memory, then CPU, then stabilise; int32 [N].

    Args:
        situation: Imagined worlds of the original's rules.
    """
    _, error, cpu, memory = situation.metrics.T[: len(METRICS)]
    choice = np.select(
        [
            error >= STABLE_BELOW["error_fraction"],
            memory >= STABLE_BELOW["memory_percent"],
            cpu >= STABLE_BELOW["cpu_percent"],
        ],
        [CODE["restart_service"], CODE["free_memory_resources"], CODE["scale_resources"]],
        STABILIZE,
    )
    return choice.astype(np.int32)


class SeedWorld(World[SeedState]):
    """One system, four symptoms, thirty actions, seven steps: as the original had it.

    Args:
        scenario: With ``params.rules = "seed"``.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """

    name = "aiops"
    title = "AI-Ops incidents as they were"
    limits = Limits(1, has_nop=False, plan_depth=1, noise="sequential")
    metrics = (
        MetricSpec("latency_ms", "ms", "latency", "Latency"),
        MetricSpec("error_fraction", "fraction", "errors", "Failed requests"),
        MetricSpec("cpu_percent", "%", "latency", "CPU"),
        MetricSpec("memory_percent", "%", "latency", "Memory"),
        MetricSpec("repeat_fraction", "fraction", "churn", "Repeated action"),
    )
    templates = seed_templates()
    playbook = staticmethod(symptoms_first)

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.settings = seed_settings(scenario)

    def _settings(self, scenario: Scenario) -> SeedSettings:
        return self.settings if scenario is self.scenario else seed_settings(scenario)

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> SeedState:
        """State at step 0, one world per seed.

        Raises:
            ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
        """
        settings = self._settings(scenario)
        memory = dict(settings.memory) if settings.adaptive == "memory" else None
        rows = []
        for seed in checked_seeds(seeds).tolist():
            draws = TwisterDraws(seed)
            if settings.event:
                vitals = event_start(settings.event)
            else:
                vitals, _ = reset(draws, settings.situation)
            rows.append(SeedRow(seed, draws.word, 0, vitals, memory=memory))
        return SeedState(scenario, tuple(rows))

    def observe(self, state: SeedState, seat: str = "room", row: int = 0) -> Observation:
        """Everything: the original hides nothing but its generator."""
        now = state.rows[row]
        settings = self._settings(state.scenario)
        seen = Observation(
            now.step,
            settings.horizon,
            {
                **_values(now.vitals),
                "repeat_fraction": float(now.repeated),
            },
            dict(state.scenario.targets),
            {
                "rules": "seed",
                "event": settings.event,
                "status": now.vitals.status,
                # The original labels phases by step number, whatever is done; it names five.
                "phase": PHASES[now.step - 1] if 1 <= now.step <= len(PHASES) else "",
                "last_action": KINDS[now.last] if now.last >= 0 else "",
                "disturbance": now.disturbance,
                "done": self._done(now, settings),
            },
            incidents=_incidents(now, settings.event),
            outcomes=(_outcome(now),) if now.last >= 0 else (),
        )
        masked = state.scenario.masks.get(seat)
        return seen.masked(masked) if masked else seen

    def _done(self, row: SeedRow, settings: SeedSettings) -> bool:
        return row.step >= settings.horizon or bool(settings.ends_when_done and row.ended)

    def catalogue(self, observation: Observation) -> Catalogue:
        """The thirty actions."""
        del observation
        return _CATALOGUE

    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None."""
        if observation.facts.get("done") or observation.step >= observation.horizon:
            return f"the episode is over (step {observation.step} of {observation.horizon})"
        return refusal(KINDS, action)

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """Every action touches the one system, so any two clash."""
        del observation, action
        return _SYSTEM

    def encode(self, state: SeedState, joints: Sequence[Joint]) -> Encoded:
        """Joint actions as arrays.

        Raises:
            InadmissibleActionError: An action is not one of the thirty, or there is not one for
                every world.
        """
        return encode_codes([_code(joint) for joint in joints], state.size)

    def step(self, state: SeedState, actions: Joint) -> tuple[SeedState, Outcomes, Delta]:
        """Advance one world.

        Raises:
            InadmissibleActionError: The episode is over, or the action is not one of the thirty.
        """
        before, settings = state.rows[0], self._settings(state.scenario)
        if self._done(before, settings):
            raise episode_over(before.step)
        after, reward = self._advance(before, _code(actions), settings)
        new = SeedState(state.scenario, (after,))
        return new, self._outcomes(before, after, reward, settings), delta_of(after)

    def _advance(self, before: SeedRow, code: int, settings: SeedSettings) -> tuple[SeedRow, float]:
        """One step of one world, its reward after any adaptive rule."""
        draws = TwisterDraws(before.seed, before.word)
        for _ in range(settings.extra_draws_per_step):
            draws.real(Slot.UNUSED)
        after, reward = _advanced(before, code, draws)
        if settings.adaptive == "table":
            reward = by_table(reward, settings.success_fraction)
        elif settings.adaptive == "memory":
            reward, memory = by_memory(reward, KINDS[code], after.memory or {})
            after = replace(after, memory=memory)
        return replace(after, word=draws.word), reward

    def _outcomes(
        self, before: SeedRow, after: SeedRow, reward: float, settings: SeedSettings
    ) -> Outcomes:
        done = self._done(after, settings)
        events = [after.disturbance] if after.disturbance else []
        if after.shaken:
            events.append("a failed action made it worse: errors +0.02, CPU +2 %")
        moves = ", ".join(
            f"{name} {old:.4g} -> {new:.4g}"
            for name, old, new in zip(
                METRICS, before.vitals.values, after.vitals.values, strict=True
            )
        )
        outcome = replace(_outcome(after), effect=moves)
        reason = (after.ended or "horizon") if done else ""
        return Outcomes(
            reward=reward,
            terms={"environment": reward},
            actions=(outcome,),
            events=tuple(events),
            success=after.vitals.stabilised,
            done=done,
            stop_reason=reason,
        )

    def step_batch(self, state: SeedState, actions: Encoded) -> tuple[SeedState, BatchOutcomes]:
        """Advance every world by one step; worlds that are over stay as they are and earn 0.

        Raises:
            InadmissibleActionError: Every episode is over, or a code is not one of the thirty.
        """
        settings = self._settings(state.scenario)
        codes = codes_of(actions, state.size, len(KINDS))
        over = [self._done(row, settings) for row in state.rows]
        if all(over):
            raise episode_over(state.rows[0].step)
        rows, rewards = [], []
        for before, code, stopped in zip(state.rows, codes.tolist(), over, strict=True):
            after, reward = (before, 0.0) if stopped else self._advance(before, code, settings)
            rows.append(after)
            rewards.append(reward)
        return SeedState(state.scenario, tuple(rows)), BatchOutcomes(
            np.array(rewards),
            np.array([row.vitals.stabilised for row in rows]),
            np.array([self._done(row, settings) for row in rows]),
        )

    def believe(self, history: History, samples: int, key: Key) -> Belief[SeedState]:
        """The observed state, K times: only the generator is hidden, and imagined noise is ours."""
        if samples < 0:
            raise InadmissibleActionError(
                f"{samples} belief samples were asked for", "there is no such number", "Ask for ≥ 0"
            )
        seen = history.now
        kind = str(seen.facts.get("last_action") or "")
        latency, error, cpu, memory = (_known(history, name) for name in METRICS)
        status = str(seen.facts.get("status") or "CRITICAL")
        vitals = Vitals(latency, error, cpu, memory, status)
        row = SeedRow(key.seed, 0, seen.step, vitals, CODE.get(kind, -1))
        count = max(samples, 1)
        return Belief(SeedState(history.scenario, (row,) * count), 1, count, samples == 0)

    def project(
        self,
        belief: Belief[SeedState],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of each plan on common imagined noise.

        Raises:
            InadmissibleActionError: A plan is longer than the horizon, or shorter without a
                continuation (there is no action that does nothing), or of other actions.
        """
        codes = _plan_codes(plans, horizon, continuation)
        draws = _imagined(belief, horizon, key)
        samples, count = belief.samples, belief.batch * len(plans) * belief.samples
        places = [divmod(place, samples) for place in range(count)]  # (world and plan, sample)
        rows = [
            belief.states.rows[both // len(plans) * samples + sample] for both, sample in places
        ]
        out = np.empty((count, horizon, len(self.metrics)))
        for ahead in range(horizon):
            follow = _continued(rows, continuation) if ahead else []
            for place, (both, sample) in enumerate(places):
                plan = codes[both % len(plans)]
                code = plan[ahead] if ahead < len(plan) else follow[place]
                row, _ = _advanced(rows[place], code, draws[sample][ahead])
                rows[place] = row
                out[place, ahead] = (*row.vitals.values, float(row.repeated))
        return out.reshape(belief.batch, len(plans), samples, horizon, len(self.metrics))

    def columns(self, state: SeedState, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""
        return snapshot(state.rows[row])

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> SeedState:
        """The state that `snapshot` was taken from.

        Raises:
            WorldError: The snapshot is of another world, or of another seed's generator.
        """
        return SeedState(scenario, (restore(seed, snapshot),))


def _advanced(before: SeedRow, code: int, draws: Draws) -> tuple[SeedRow, float]:
    step = before.step + 1
    taken = advance(before.vitals, KINDS[code], step, draws)
    after = replace(
        before,
        step=step,
        vitals=taken.vitals,
        last=code,
        applied=taken.applied,
        shaken=taken.shaken,
        repeated=before.last == code,
        disturbance=taken.disturbance,
        ended=taken.stop_reason,
    )
    return after, taken.reward


def _values(vitals: Vitals) -> dict[str, float]:
    return {name: significant(value) for name, value in zip(METRICS, vitals.values, strict=True)}


def _code(joint: Joint) -> int:
    if len(joint) != 1:
        raise InadmissibleActionError(
            f"{len(joint)} actions were given", "one action is taken a step", "Pick one"
        )
    reason = refusal(KINDS, joint[0])
    if reason is not None:
        raise InadmissibleActionError(
            f"{joint[0].id[:80]!r} cannot be taken", reason, "Take one of the catalogue"
        )
    return CODE[joint[0].kind]


def _outcome(row: SeedRow) -> ActionOutcome:
    kind = KINDS[row.last]
    if row.applied:
        return ActionOutcome(Action(kind), "applied", effect_text(kind))
    return ActionOutcome(Action(kind), "failed", "", "it had no effect this time; try again")


def _incidents(row: SeedRow, event: str) -> tuple[str, ...]:
    lines = []
    if event:
        known = {one.name.upper(): (one.severity, one.service) for one in EVENTS}
        severity, service = known.get(event, _UNKNOWN_EVENT)
        lines.append(f"{event} on {service}, severity {severity}")
    if row.disturbance:
        lines.append(f"disturbance: {row.disturbance}")
    return tuple(lines)


def _known(history: History, name: str) -> float:
    """The latest value that was observed of a metric; the event state's where none was."""
    for seen in reversed(history.observations):
        value = seen.metrics.get(name)
        if value is not None:
            return float(value)
    return float(getattr(event_start(""), name))


def _plan_codes(
    plans: Sequence[Plan], horizon: int, continuation: Continuation | None
) -> list[list[int]]:
    for plan in plans:
        short = len(plan) < horizon and continuation is None
        if not 1 <= len(plan) <= horizon or short:
            raise InadmissibleActionError(
                f"a plan has {len(plan)} steps and the projection {horizon}",
                "there is no action that does nothing, so something must follow a plan"
                if short
                else "a plan has at least one step, and the horizon must cover it",
                "Pass a continuation, for example World.playbook",
            )
    return [[_code(joint) for joint in plan] for plan in plans]


def _continued(rows: Sequence[SeedRow], continuation: Continuation | None) -> list[int]:
    """What follows the plans in every imagined world; nothing where every plan is long enough."""
    if continuation is None:
        return []
    situation = Situation(
        np.array([(*row.vitals.values, float(row.repeated)) for row in rows]),
        np.array([row.last for row in rows], dtype=np.int32),
        np.array([bool(row.disturbance) for row in rows]),
        rows[0].step,
    )
    codes: list[int] = continuation(situation).tolist()
    wrong = [code for code in codes if not 0 <= code < len(KINDS)]
    if wrong:
        raise InadmissibleActionError(
            f"the continuation chose code {wrong[0]}",
            f"codes are 0 to {len(KINDS) - 1}",
            "Correct it",
        )
    return codes


def _imagined(belief: Belief[SeedState], horizon: int, key: Key) -> list[list[Draws]]:
    """Draws per sample and step ahead, the same for every plan."""
    if belief.mean_noise:
        return [[MEAN] * horizon]
    ahead = np.arange(horizon)
    replicas = np.arange(1, belief.samples + 1)[:, None]
    found: list[list[Draws]] = []
    blocks = [
        noise.uniforms(key.seed, 2 * ahead + half, _IMAGINED, key.step, replicas) for half in (0, 1)
    ]
    table = np.concatenate(blocks)  # [8, K, H]
    for sample in range(belief.samples):
        columns: list[Draws] = [
            ImaginedDraws(tuple(table[:, sample, step].tolist())) for step in range(horizon)
        ]
        found.append(columns)
    return found
