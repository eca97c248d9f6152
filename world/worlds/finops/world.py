"""The native FinOps world: clean up, right-size and keep alive an inventory.

Everything is deterministic once the inventory stands; noise is used at reset only. What a seat
does not know (use, whether anything needs a resource) it can ask for, which takes an action and
steps. The world lets a careless room do harm, and grades it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import Action
from world.catalogue import Catalogue
from world.errors import InadmissibleActionError
from world.graders.finops import grade_native
from world.graders.scorecard import GradedStep, Scorecard
from world.model import (
    ActionOutcome,
    BatchOutcomes,
    Belief,
    Continuation,
    Delta,
    Encoded,
    History,
    Inventory,
    Joint,
    Key,
    Limits,
    MetricSpec,
    Observation,
    Outcomes,
    Plan,
    Scenario,
    Snapshot,
    Status,
    World,
    significant,
)
from world.worlds.finops import rules
from world.worlds.finops.belief import imagine
from world.worlds.finops.catalogue import catalogue_of
from world.worlds.finops.estate import (
    EstateInventory,
    State,
    Stepped,
    advance,
    open_state,
)
from world.worlds.finops.opening import (
    CARBON,
    COST,
    REPEAT,
    SATURATION,
    UNACCOUNTED,
    check_scenario,
    open_world,
    targets_of,
    tolerances_of,
)
from world.worlds.finops.optimum import BestPossible, best_possible
from world.worlds.finops.project import MG_PER_KG, project
from world.worlds.finops.rules import Refusal
from world.worlds.finops.sizes import OVERLOAD_PERCENT
from world.worlds.finops.storage import changed_cells, outcomes_as_json, outcomes_from_json
from world.worlds.finops.tables import UNKNOWN_CPU_PERCENT
from world.worlds.finops.wording import (
    TEMPLATES,
    Reading,
    as_cells,
    effect_text,
    encode_reading,
    hazard_texts,
    read_action,
    refusal_text,
    row_cells,
    size_codes_of,
)

MAX_ACTIONS = 3
SAVING_POINTS = 100.0
"""Points for saving the whole starting cost: 1 point is 1 % of it."""
VIOLATION_POINTS = -10.0
HARM_POINTS = -100.0

_Read = tuple[int, Action, Reading]
"""Place in the joint action, action, reading."""


class FinopsWorld(World[State]):
    """Generated inventories and bills.

    The reward of a step is the change of the verified net saving, in percent of the starting
    cost (credits left out), minus 10 per violation and 100 per harm to something essential.

    Args:
        scenario: The scenario; checked in full here.

    Raises:
        ScenarioError: It contradicts itself.
    """

    name = "finops"
    title = "An inventory to clean up, right-size and keep alive"
    limits = Limits(MAX_ACTIONS, has_nop=True, plan_depth=1, noise="counter")
    metrics = (
        MetricSpec(COST, "$/h", "cost", "Cost"),
        MetricSpec(UNACCOUNTED, "$/h", "waste", "Spend nobody has accounted for"),
        MetricSpec(SATURATION, "%", "latency", "Hottest CPU or memory"),
        MetricSpec(CARBON, "kgCO2e/day", "carbon", "Carbon"),
        MetricSpec(REPEAT, "fraction", "churn", "Actions that repeat or fail"),
    )
    templates = TEMPLATES

    def __init__(self, scenario: Scenario) -> None:
        check_scenario(scenario)

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> State:
        """Inventories at step 0, one per seed."""
        return open_world(scenario, seeds)

    def observe(self, state: State, seat: str = "room", row: int = 0) -> Observation:
        """What a seat may know: everything but the hidden columns."""
        frame = state.frame
        visible = {name: column[row] for name, column in state.columns.items() if name[:2] != "h."}
        seen = Observation(
            step=state.step,
            horizon=frame.scenario.horizon,
            metrics=_metrics(state, row),
            targets=targets_of(frame, row),
            facts=self._facts(state, row),
            inventory=EstateInventory(frame, visible, row, state.totals(row)),
            incidents=_incidents(state, row, visible),
            outcomes=state.outcomes,
            unknown=_unknown(visible),
        )
        masked = frame.scenario.masks.get(seat)
        return seen.masked(masked) if masked else seen

    def _facts(self, state: State, row: int) -> dict[str, Any]:
        frame = state.frame
        params = frame.scenario.params
        facts: dict[str, Any] = {
            "task": str(params.get("task", "")),
            "currency": str(params.get("currency", "USD")),
            "start_cost_usd_per_hour": significant(frame.start_nano[row] / rules.NANO),
            "verified_saving_usd_per_hour": significant(state.verified_nano()[row] / rules.NANO),
            "violations": int(state.violations[row]),
            "harms": int(state.harms[row]),
            "tolerances": tolerances_of(frame, row),
        }
        if state.done:
            # Nothing is left to decide, so the hidden yardstick may be shown.
            best = self.best_possible(state, row)
            facts["best_possible_saving_usd_per_hour"] = significant(best.saving_nano / rules.NANO)
            facts["best_possible_exact"] = best.exact
        return facts

    def best_possible(self, state: State, row: int = 0) -> BestPossible:
        """The best possible saving of one world. For graders and planners' certificates only."""
        return best_possible(state.origin, state.frame, row, MAX_ACTIONS)

    def grade(self, scenario: Scenario, state: State, steps: Sequence[GradedStep]) -> Scorecard:
        """Score an episode against the best possible saving."""
        best = self.best_possible(state)
        return grade_native(scenario, steps, best.saving_nano / rules.NANO, best.exact)

    def catalogue(self, observation: Observation) -> Catalogue:
        """nop, and every targeted action that makes sense for a live row, sizes enumerated."""
        return catalogue_of(_inventory(observation))

    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None."""
        inventory = _inventory(observation)
        reading = read_action(action, inventory)
        if reading.fault:
            return reading.fault
        if observation.step >= observation.horizon:
            return "the episode is over"
        code = _refusal(reading, inventory)
        return refusal_text(action, reading, code, inventory) if code else None

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """Harm by effect: an outage, an interruption, an overload."""
        inventory = _inventory(observation)
        reading = read_action(action, inventory)
        harmless = reading.kind not in (rules.TERMINATE, rules.RESIZE)
        if harmless or reading.fault or _refusal(reading, inventory):
            return ()
        return hazard_texts(action, reading, row_cells(inventory, reading.row))

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """The target. A row with live dependants cannot be terminated, so nothing else is."""
        del observation
        return frozenset({action.target}) if action.target not in ("", "none") else frozenset()

    def encode(self, state: State, joints: Sequence[Joint]) -> Encoded:
        """Joint actions as arrays; the parameter is the index of the size in the choices.

        Raises:
            InadmissibleActionError: An action is not of this world or has an unknown target, a
                joint action holds more than three, or there is not one for every world.
        """
        if len(joints) != state.batch:
            raise InadmissibleActionError(
                f"{len(joints)} joint actions for {state.batch} worlds",
                "a batch takes one for every world",
                "Give one per world",
            )
        kinds = np.full((len(joints), MAX_ACTIONS), rules.NO_ACTION, dtype=np.int32)
        targets = np.full((len(joints), MAX_ACTIONS), -1, dtype=np.int32)
        params = np.full((len(joints), MAX_ACTIONS, 1), -1.0)
        for row, joint in enumerate(joints):
            readings = self._read(state, row, joint)
            for slot, (_, action, reading) in enumerate(readings):
                if reading.fault:
                    raise InadmissibleActionError(f"{action.id} cannot be encoded", reading.fault)
                kind, target, param = encode_reading(reading)
                kinds[row, slot], targets[row, slot], params[row, slot, 0] = kind, target, param
        return Encoded(kinds, targets, params)

    def _read(self, state: State, row: int, joint: Joint) -> list[_Read]:
        """Actions with place and reading, in canonical order: by target, then by id."""
        if len(joint) > MAX_ACTIONS:
            raise InadmissibleActionError(
                f"{len(joint)} actions in one step",
                f"this world takes at most {MAX_ACTIONS}",
                "Leave some for the next step",
            )
        frame = state.frame
        view = EstateInventory(frame, {}, row, state.totals(row))
        readings = [
            (place, action, read_action(action, view)) for place, action in enumerate(joint)
        ]
        for _, action, reading in readings:
            if reading.kind < 0:
                raise InadmissibleActionError(
                    f"{action.kind!r} is not an action of this world", reading.fault
                )
        readings.sort(key=lambda read: (read[1].target, read[1].id, read[0]))
        return readings

    def step(self, state: State, actions: Joint) -> tuple[State, Outcomes, Delta]:
        """Advance one world."""
        if state.done:
            raise InadmissibleActionError(
                f"step {state.step + 1} of {state.frame.scenario.horizon}",
                "the episode is over",
                "Start a new one",
            )
        readings = self._read(state, 0, actions)
        kinds = np.full((1, MAX_ACTIONS), rules.NO_ACTION, dtype=np.int32)
        targets = np.full((1, MAX_ACTIONS), -1, dtype=np.int32)
        sizes = np.full((1, MAX_ACTIONS), -1, dtype=np.int32)
        for slot, (_, _, reading) in enumerate(readings):
            if not reading.fault:
                kinds[0, slot], targets[0, slot] = reading.kind, reading.row
                sizes[0, slot] = reading.size
        done = advance(state, kinds, targets, sizes)
        after = done.state
        outcomes, violations = self._outcomes(state, done, readings)
        after.outcomes = outcomes
        terms = {name: float(value[0]) for name, value in _terms(state, after).items()}
        result = Outcomes(
            reward=float(_reward(state, after)[0]),
            terms=terms,
            actions=after.outcomes,
            success=bool(_success(after)[0]),
            done=after.done,
            stop_reason="horizon" if after.done else "",
            violations=violations,
        )
        return after, result, self._delta(state, done)

    def _outcomes(
        self, before: State, done: Stepped, readings: Sequence[_Read]
    ) -> tuple[tuple[ActionOutcome, ...], tuple[str, ...]]:
        """One outcome per action in the order given, and the harm that was done.

        Everything is worded from what could be seen before the step.
        """
        visible = {name: column[0] for name, column in before.columns.items()}
        view = EstateInventory(before.frame, visible, 0, before.totals(0))
        outcomes: dict[int, ActionOutcome] = {}
        violations: list[str] = []
        for slot, (place, action, reading) in enumerate(readings):
            code = int(done.refusals[0, slot])
            if reading.fault:
                outcomes[place] = ActionOutcome(action, "refused", reason=reading.fault)
            elif code:
                status: Status = "already_gone" if code == Refusal.GONE else "refused"
                text = refusal_text(action, reading, code, view)
                outcomes[place] = ActionOutcome(action, status, reason=text)
            else:
                if done.violation[0, slot] or done.harm[0, slot]:
                    violations += hazard_texts(action, reading, row_cells(view, reading.row))
                outcomes[place] = self._applied(before, done.state, action, reading)
        return tuple(outcomes[place] for place in sorted(outcomes)), tuple(violations)

    def _applied(
        self, before: State, after: State, action: Action, reading: Reading
    ) -> ActionOutcome:
        answers = before.frame.answers
        row = max(reading.row, 0)
        effect = effect_text(
            action,
            reading.kind,
            as_cells(before.columns, row),
            as_cells(after.columns, row),
            answers,
        )
        delay = TEMPLATES[reading.kind].delay_steps if answers else 0
        return ActionOutcome(action, "applied", effect=effect, delay_steps=delay)

    def _delta(self, before: State, done: Stepped) -> Delta:
        after = done.state
        return Delta(
            metrics=_stored(after, 0),
            hidden=outcomes_as_json(after.outcomes),
            cells=changed_cells(before.columns, after.columns, done.changed, done.rows),
        )

    def step_batch(self, state: State, actions: Encoded) -> tuple[State, BatchOutcomes]:
        """Advance every world by one step.

        Raises:
            InadmissibleActionError: The episodes are over.
        """
        if state.done:
            raise InadmissibleActionError("the episodes are over", "", "Start new ones")
        after = advance(state, actions.kinds, actions.targets, size_codes_of(actions.params)).state
        return after, BatchOutcomes(
            reward=_reward(state, after),
            success=_success(after),
            done=np.full(state.batch, after.done),
        )

    def believe(self, history: History, samples: int, key: Key) -> Belief[State]:
        """Sample what is unknown from the prior of `belief`; a bill has nothing to sample."""
        state = imagine(history, samples, key)
        return Belief(state, batch=1, samples=max(samples, 1), mean_noise=samples == 0)

    def project(
        self,
        belief: Belief[State],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of plans, then of doing nothing. The dynamics draw no noise."""
        del key
        state = belief.states
        readings = [
            [[reading for _, _, reading in self._read(state, 0, joint)] for joint in plan]
            for plan in plans
        ]
        return project(state, belief.samples, plans, readings, horizon, continuation)

    def columns(self, state: State, row: int = 0) -> Snapshot:
        """One world in the store's encoding; the arrays are shared, not copied."""
        return Snapshot(
            step=state.step,
            metrics=_stored(state, row),
            hidden=outcomes_as_json(state.outcomes),
            columns={name: column[row] for name, column in state.columns.items()},
            ids=state.frame.ids(row),
            vocabulary=state.frame.vocabulary,
        )

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> State:
        """The state that a snapshot was taken from."""
        start = open_world(scenario, [seed])
        columns = {
            name: np.asarray(snapshot.columns[name])[None, :]
            for name in start.columns
            if name in snapshot.columns
        }
        state = open_state(start.frame, {**start.columns, **columns})
        state.origin = start.columns
        state.step = snapshot.step
        stored = snapshot.metrics
        state.violations = np.array([int(stored["violations"])])
        state.harms = np.array([int(stored["harms"])])
        state.repeat_fraction = np.array([stored[REPEAT]])
        state.last = np.array([int(stored["last_kind"])], dtype=np.int32)
        state.outcomes = outcomes_from_json(snapshot.hidden)
        return state


def _inventory(observation: Observation) -> Inventory:
    if observation.inventory is None:
        raise InadmissibleActionError("the observation has no inventory", "", "Observe this world")
    return observation.inventory


def _refusal(reading: Reading, inventory: Inventory) -> int:
    """`Refusal` of an action that could be read."""
    if reading.kind == rules.NOP:
        return Refusal.NONE
    size = np.array([reading.size], dtype=np.int32)
    return int(rules.refusals_of(reading.kind, row_cells(inventory, reading.row), size)[0])


def _metrics(state: State, row: int) -> dict[str, float | None]:
    hottest = state.hottest_percent(row)
    return {
        COST: significant(state.cost_nano[row] / rules.NANO),
        UNACCOUNTED: significant(state.unaccounted_nano[row] / rules.NANO),
        # Nothing known is not 0 %: a bill without metrics says so.
        SATURATION: significant(hottest) if hottest > 0.0 or _knows_use(state, row) else None,
        CARBON: significant(state.carbon_mg[row] / MG_PER_KG) if state.knows_carbon(row) else None,
        REPEAT: significant(state.repeat_fraction[row]),
    }


def _knows_use(state: State, row: int) -> bool:
    cpu, memory = state.columns["cpu_percent"][row], state.columns["memory_percent"][row]
    return not bool(np.isnan(cpu).all() and np.isnan(memory).all())


def _stored(state: State, row: int) -> dict[str, float]:
    """Metrics and public scalars as the store keeps them."""
    metrics = {name: value for name, value in _metrics(state, row).items() if value is not None}
    return {
        **metrics,
        REPEAT: float(state.repeat_fraction[row]),
        "verified_saving_usd_per_hour": significant(state.verified_nano()[row] / rules.NANO),
        "violations": float(state.violations[row]),
        "harms": float(state.harms[row]),
        "last_kind": float(state.last[row]),
    }


def _incidents(state: State, row: int, visible: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    if state.hottest_percent(row) < OVERLOAD_PERCENT:
        return ()
    hot = np.fmax(visible["cpu_percent"], visible["memory_percent"])
    rows = np.flatnonzero(hot >= OVERLOAD_PERCENT)[:10].tolist()
    ids = state.frame.ids(row)
    return tuple(f"{ids[at]} is overloaded: {hot[at]:.3g} % of its capacity" for at in rows)


def _unknown(visible: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    live = visible["state"] == 0
    cells = dict(visible)
    use = int(np.count_nonzero(live & ~rules.use_complete(cells)))
    need = int(np.count_nonzero(live & (visible["essential"] == 0)))
    lines = []
    if use:
        lines.append(f"use of {use} resources")
    if need:
        lines.append(f"whether anything needs {need} resources")
    return (*lines, *_carbon_unknown(cells, live))


def _carbon_unknown(cells: rules.Cells, live: NDArray[np.bool_]) -> list[str]:
    """What the carbon figure leaves out or assumes."""
    total, sized = int(np.count_nonzero(live)), live & rules.carbon_known(cells)
    covered, lines = int(np.count_nonzero(sized)), []
    if covered == 0 < total:
        lines.append(f"carbon of {total} resources (none has a known size)")
    elif covered < total:
        lines.append(
            f"carbon covers {covered} of {total} resources (the others have no known size)"
        )
    assumed = int(np.count_nonzero(sized & np.isnan(cells["cpu_percent"])))
    if assumed:
        lines.append(
            f"carbon of {assumed} resources assumes {UNKNOWN_CPU_PERCENT:g} % CPU (not known)"
        )
    return lines


def _terms(before: State, after: State) -> dict[str, NDArray[np.float64]]:
    """Reward terms, [B] each."""
    gross = np.maximum(before.frame.gross_nano, 1).astype(np.float64)
    saved = (after.verified_nano() - before.verified_nano()).astype(np.float64)
    return {
        "saving": saved / gross * SAVING_POINTS,
        "violation": (after.violations - before.violations).astype(np.float64) * VIOLATION_POINTS,
        "harm": (after.harms - before.harms).astype(np.float64) * HARM_POINTS,
    }


def _reward(before: State, after: State) -> NDArray[np.float64]:
    terms = _terms(before, after)
    total: NDArray[np.float64] = terms["saving"] + terms["violation"] + terms["harm"]
    return total


def _success(state: State) -> NDArray[np.bool_]:
    """Cost below its target, nothing broken and nothing harmed."""
    met: NDArray[np.bool_] = (
        (state.cost_nano < state.frame.target_nano) & (state.violations == 0) & (state.harms == 0)
    )
    return met
