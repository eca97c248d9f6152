"""The two seed versions, exactly as they were: fixed inventories, and flaws that we keep.

Known flaws, kept on purpose: every resize halves the cost whatever ``new_size`` says, and doubles
the CPU; an essential resource that is terminated stays; ``nop`` earns 0 instead of its penalty when
it names a live resource; the graders look at the last inventory only. Version 2 accepts steps after
it is done (a room ends its episode there). Versions: finops_gym at commits 2d503b3 (v1) and d34f2fd
(v2). The native worlds are where all this is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import Action
from world.catalogue import Catalogue
from world.errors import InadmissibleActionError, ScenarioError
from world.graders.finops import SEED_SUCCESS, grade_seed, seed_score
from world.graders.scorecard import GradedStep, Scorecard
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
from world.worlds.finops.seed_rows import (
    BOTTLENECK,
    CRITICAL_FAILURE,
    NEW_SIZE,
    NO_OPERATION,
    NOP,
    OVERLOAD_FRACTION,
    RESIZE,
    SEED_TEMPLATES,
    TERMINATE,
    V1_INVENTORY,
    V2_INVENTORIES,
    V2_OTHER,
    Rows,
    cells_between,
    has_new_size,
    kind_of,
    live_ids,
    metric_values,
    only_nop,
    position_of,
    put,
    rows_of,
    single,
    stored_metrics,
    view_of,
)
from world.worlds.finops.storage import outcomes_as_json, outcomes_from_json

VERSIONS = ("v1", "v2")


@dataclass(frozen=True, slots=True)
class SeedState:
    """A batch of seed inventories.

    Attributes:
        scenario: The scenario.
        rows: One inventory per world; terminated rows stay with ``live`` False.
        step: Steps done.
        last: Kind of the last action per world; -1 before the first step.
        repeated: Whether the last action repeated the one before, per world.
        outcomes: What became of the last action (B = 1).
    """

    scenario: Scenario
    rows: tuple[Rows, ...]
    step: int
    last: tuple[int, ...]
    repeated: tuple[bool, ...]
    outcomes: tuple[ActionOutcome, ...] = ()


class SeedWorld(World[SeedState]):
    """One seed version and task. Deterministic; the seed number changes nothing.

    Args:
        scenario: ``params.version`` is v1 or v2, ``params.task`` any task id.

    Raises:
        ScenarioError: Another version, a task that is not text, or rows of its own.
    """

    name = "finops"
    title = "FinOps-Gym as it was"
    limits = Limits(1, has_nop=True, plan_depth=1, noise="none")
    metrics = (
        MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
        MetricSpec("waste_usd_per_hour", "$/h", "waste", "Idle and not essential"),
        MetricSpec("saturation_percent", "%", "latency", "Hottest CPU"),
        MetricSpec("repeat_fraction", "fraction", "churn", "Repeated kind of action"),
    )
    templates = SEED_TEMPLATES

    def __init__(self, scenario: Scenario) -> None:
        version, task = scenario.params.get("version"), scenario.params.get("task")
        if version not in VERSIONS:
            raise ScenarioError(
                f"scenario {scenario.name!r}: params.version is {version!r}",
                "the seed has the versions v1 and v2",
                "Leave version out for the native world",
            )
        if not isinstance(task, str):
            raise ScenarioError(
                f"scenario {scenario.name!r}: params.task is {task!r}",
                "it must be a task id",
                'For example: task = "zombie_cleanup"',
            )
        if scenario.resources:
            raise ScenarioError(
                f"scenario {scenario.name!r} gives resources and a seed version",
                "the seed's inventories are fixed",
                "Leave one of them out",
            )
        self.version: str = version
        self.task: str = task

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> SeedState:
        """The same inventory for every seed."""
        rows = V1_INVENTORY if self.version == "v1" else V2_INVENTORIES.get(self.task, V2_OTHER)
        count = len(seeds)
        return SeedState(scenario, (rows,) * count, 0, (-1,) * count, (False,) * count)

    def observe(self, state: SeedState, seat: str = "room", row: int = 0) -> Observation:
        """Everything: the seed hides nothing."""
        rows = state.rows[row]
        done = self._done(state.step, rows, state.scenario.horizon)
        facts: dict[str, Any] = {
            "task": self.task,
            "version": self.version,
            "budget_limit_usd_per_hour": 1.0,
            "done": done,
        }
        if done:  # nothing is left to decide, so the grader's verdict may be shown
            facts["seed_score"] = significant(self._score(rows))
        values = metric_values(rows, state.repeated[row])
        seen = Observation(
            step=state.step,
            horizon=state.scenario.horizon,
            metrics={
                spec.name: significant(value)
                for spec, value in zip(self.metrics, values, strict=True)
            },
            targets=dict(state.scenario.targets),
            facts=facts,
            inventory=view_of(rows),
            outcomes=state.outcomes,
        )
        masked = state.scenario.masks.get(seat)
        return seen.masked(masked) if masked else seen

    def grade(self, scenario: Scenario, state: SeedState, steps: Sequence[GradedStep]) -> Scorecard:
        """The seed's own score of the last inventory."""
        return grade_seed(scenario, steps, self._score(state.rows[0]))

    def _score(self, rows: Rows) -> float:
        live = [(row.id, row.essential, row.cost) for row in rows if row.live]
        return seed_score(self.version, self.task, live)

    def _done(self, step: int, rows: Rows, horizon: int) -> bool:
        left = sum(row.live for row in rows)
        if step >= horizon:
            return True
        if self.version == "v1":
            return left <= 2
        return self.task == "zombie_cleanup" and left <= 1

    def catalogue(self, observation: Observation) -> Catalogue:
        """Doing nothing, and both actions on every live resource."""
        inventory = observation.inventory
        live = [] if inventory is None else live_ids(inventory)
        return Catalogue.of(
            [
                Action.of("nop", "none"),
                *(Action.of("terminate", name) for name in live),
                *(Action.of("resize", name, new_size=NEW_SIZE) for name in live),
            ]
        )

    def check(self, observation: Observation, action: Action) -> str | None:
        """Only what the seed itself could not take: another kind, a resize without a size."""
        if observation.facts.get("done"):
            return "the episode is over"
        try:
            kind = kind_of(action)
        except InadmissibleActionError as error:
            return error.line()
        if kind == NOP:
            return None
        if observation.inventory is not None and action.target not in observation.inventory.index:
            return f"there is no resource {action.target[:80]!r}"
        if observation.inventory is not None and action.target not in live_ids(
            observation.inventory
        ):
            return f"{action.target} is terminated already"
        if kind == RESIZE and not has_new_size(action):
            return "resize takes new_size, any text but 'none'"
        return None

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """Terminating what is essential, and a resize that overloads."""
        inventory = observation.inventory
        if action.kind == "nop" or inventory is None or self.check(observation, action):
            return ()
        row = inventory.row(action.target)
        if action.kind == "terminate" and row.get("essential") == "yes":
            return (f"{action.target} is essential",)
        cpu = row.get("cpu_percent")
        if action.kind == "resize" and isinstance(cpu, float) and cpu * 2 > OVERLOAD_FRACTION * 100:
            return (f"{action.target} would run at {cpu * 2:.3g} % CPU",)
        return ()

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """The target."""
        del observation
        return frozenset({action.target}) if action.target not in ("", "none") else frozenset()

    def encode(self, state: SeedState, joints: Sequence[Joint]) -> Encoded:
        """One slot; target -1 is no live resource; parameter 1 says that a size was given."""
        kinds = np.full((len(joints), 1), NOP, dtype=np.int32)
        targets = np.full((len(joints), 1), -1, dtype=np.int32)
        params = np.zeros((len(joints), 1, 1))
        for row, joint in enumerate(joints):
            action = single(joint)
            kinds[row, 0] = kind_of(action)
            targets[row, 0] = position_of(state.rows[row], action.target)
            params[row, 0, 0] = float(has_new_size(action))
        return Encoded(kinds, targets, params)

    def step(self, state: SeedState, actions: Joint) -> tuple[SeedState, Outcomes, Delta]:
        """Advance one world, as the seed did."""
        action, rows = single(actions), state.rows[0]
        if self.version == "v1" and self._done(state.step, rows, state.scenario.horizon):
            raise InadmissibleActionError("the episode is over", "", "Start a new one")
        kind, position = kind_of(action), position_of(rows, action.target)
        made, reward, effect = self._apply(rows, kind, position, has_new_size(action))
        hurt = effect in (CRITICAL_FAILURE, BOTTLENECK)
        outcome = ActionOutcome(
            action,
            "refused" if position < 0 and kind != NOP else "applied",
            effect=effect,
            reason="" if position >= 0 or kind == NOP else "no live resource has this id",
        )
        after = SeedState(
            state.scenario,
            (made,),
            state.step + 1,
            (kind,),
            (kind == state.last[0],),
            (outcome,),
        )
        done = self._done(after.step, made, state.scenario.horizon)
        over = "horizon" if after.step >= state.scenario.horizon else "few_resources_left"
        result = Outcomes(
            reward=reward,
            terms={"seed": reward},
            actions=(outcome,),
            events=(effect,),
            success=self._score(made) >= SEED_SUCCESS,
            done=done,
            stop_reason=over if done else "",
            violations=(f"{action.target}: {effect}",) if hurt else (),
        )
        delta = Delta(
            metrics=self._stored(made, kind, after.repeated[0]),
            hidden=outcomes_as_json(after.outcomes),
            cells=cells_between(rows, made),
        )
        return after, result, delta

    def _stored(self, rows: Rows, last: int, repeated: bool) -> dict[str, float]:
        return stored_metrics([spec.name for spec in self.metrics], rows, last, repeated)

    def step_batch(self, state: SeedState, actions: Encoded) -> tuple[SeedState, BatchOutcomes]:
        """Advance every world in turn; a world that is done in version 1 is refused."""
        made: list[Rows] = []
        rewards, successes, ends = [], [], []
        for row, rows in enumerate(state.rows):
            if self.version == "v1" and self._done(state.step, rows, state.scenario.horizon):
                raise InadmissibleActionError(
                    f"world {row} of the batch is over", "", "Take it out of the batch"
                )
            after, reward, _ = self._apply(
                rows,
                int(actions.kinds[row, 0]),
                int(actions.targets[row, 0]),
                bool(actions.params[row, 0, 0]),
            )
            made.append(after)
            rewards.append(reward)
            successes.append(self._score(after) >= SEED_SUCCESS)
            ends.append(self._done(state.step + 1, after, state.scenario.horizon))
        kinds = tuple(actions.kinds[:, 0].tolist())
        again = tuple(kind == last for kind, last in zip(kinds, state.last, strict=True))
        stepped = SeedState(state.scenario, tuple(made), state.step + 1, kinds, again)
        return stepped, BatchOutcomes(np.array(rewards), np.array(successes), np.array(ends))

    def _apply(self, rows: Rows, kind: int, position: int, sized: bool) -> tuple[Rows, float, str]:
        """Inventory, reward and what happened. The formulas are the seed's, term by term."""
        first = self.version == "v1"
        if kind == NOP:
            penalty = -0.1 if first else -0.15
            return rows, (penalty if position < 0 else 0.0), NO_OPERATION
        if position < 0:
            return rows, 0.0, "no such resource"
        target = rows[position]
        if kind == TERMINATE:
            if target.essential:
                return rows, (-5.0 if first else -0.3 * 50), CRITICAL_FAILURE
            gone = replace(target, live=False)
            reward = 10 * target.cost if first else 0.7 * 10 * target.cost
            return put(rows, position, gone), reward, "terminated"
        if not sized:
            return rows, 0.0, "no size was given"
        cpu = target.cpu * 2 if first else min(1.0, target.cpu * 2)
        saving = target.cost - target.cost * 0.5
        made = put(rows, position, replace(target, cost=target.cost * 0.5, cpu=cpu))
        if cpu <= OVERLOAD_FRACTION:
            return made, (5 * saving if first else 0.7 * 10 * saving), "resized"
        if first:
            return made, -1.0, BOTTLENECK
        penalty = 20 if target.sla == "99.99%" else 10
        return made, 0.7 * 10 * saving - 0.3 * penalty, BOTTLENECK

    def believe(self, history: History, samples: int, key: Key) -> Belief[SeedState]:
        """The observed inventory; nothing is hidden, so every sample is the same."""
        del key
        now, count = history.now, max(samples, 1)
        if now.inventory is None:
            raise InadmissibleActionError("the observation has no inventory", "", "")
        last = kind_of(history.decisions[-1][0]) if history.decisions else -1
        state = SeedState(
            history.scenario,
            (rows_of(now.inventory),) * count,
            now.step,
            (last,) * count,
            (False,) * count,
        )
        return Belief(state, 1, count, samples == 0)

    def project(
        self,
        belief: Belief[SeedState],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of plans, then of nop. Deterministic: one sample stands for all."""
        del key
        result = np.empty((1, len(plans), belief.samples, horizon, len(self.metrics)))
        for number, plan in enumerate(plans):
            rows, last = belief.states.rows[0], belief.states.last[0]
            values = metric_values(rows, repeated=False)
            for step in range(horizon):
                action = single(plan[step]) if step < len(plan) else Action("nop", "none")
                if step >= len(plan) and continuation is not None:
                    only_nop(continuation, values, last, belief.states.step + step)
                kind = kind_of(action)
                rows, _, _ = self._apply(
                    rows, kind, position_of(rows, action.target), has_new_size(action)
                )
                values = metric_values(rows, kind == last)
                last = kind
                result[0, number, :, step, :] = values
        return result

    def columns(self, state: SeedState, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""
        rows = state.rows[row]
        inventory = view_of(rows)
        return Snapshot(
            step=state.step,
            metrics=self._stored(rows, state.last[row], state.repeated[row]),
            hidden=outcomes_as_json(state.outcomes),
            columns=dict(inventory.columns),
            ids=tuple(inventory.ids),
            vocabulary=inventory.vocabulary,
        )

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> SeedState:
        """The state that a snapshot was taken from."""
        start = self.reset(scenario, [seed]).rows[0]
        columns = snapshot.columns
        rows = tuple(
            replace(
                row,
                cpu=float(columns["cpu_fraction"][at]),
                cost=float(columns["cost_usd_per_hour"][at]),
                live=bool(columns["state"][at] == 0),
            )
            for at, row in enumerate(start)
        )
        # A terminated row shows no cost; its own stays in the seed's table.
        rows = tuple(
            made if made.live else replace(made, cost=old.cost)
            for made, old in zip(rows, start, strict=True)
        )
        return SeedState(
            scenario,
            (rows,),
            snapshot.step,
            (int(snapshot.metrics["last_kind"]),),
            (bool(snapshot.metrics["repeat_fraction"]),),
            outcomes_from_json(snapshot.hidden),
        )
