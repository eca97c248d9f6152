"""The cloud world: `world.model.World` over the dynamics, the validator and the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from world.actions import Action
from world.catalogue import Catalogue
from world.errors import InadmissibleActionError
from world.model import (
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
)
from world.worlds.cloud import menu, reading
from world.worlds.cloud.advance import advance
from world.worlds.cloud.audit import audit
from world.worlds.cloud.believe import believe
from world.worlds.cloud.hazards import hazards
from world.worlds.cloud.ledger import book
from world.worlds.cloud.opening import open_worlds
from world.worlds.cloud.outcome import (
    events_of,
    outcomes_of,
    terms_of,
    violations_of,
    with_end_charge,
)
from world.worlds.cloud.playbook import finish_what_was_begun
from world.worlds.cloud.project import project
from world.worlds.cloud.reading import Reading
from world.worlds.cloud.settings import (
    CARBON,
    COST,
    ERRORS,
    LATENCY,
    MAX_ACTIONS,
    REPEAT,
    WASTE,
    WORST_ERRORS,
    WORST_P95,
    Settings,
)
from world.worlds.cloud.state import NOW, State
from world.worlds.cloud.storage import delta, restore, snapshot
from world.worlds.cloud.view import CloudInventory, ids_of, observe


class CloudWorld(World[State]):
    """Services in regions, with queues, prices, watts, waste and incidents.

    Args:
        scenario: A scenario of the world ``cloud``.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """

    name = "cloud"
    title = "A mechanistic cloud: queues, prices, watts, waste and incidents"
    limits = Limits(
        MAX_ACTIONS, has_nop=True, plan_depth=1, noise="counter", lookahead_steps=10, samples=0
    )
    metrics = (
        MetricSpec(LATENCY, "ms", "latency", "Latency (traffic-weighted p95)"),
        MetricSpec(COST, "$/h", "cost", "Cost"),
        MetricSpec(CARBON, "kgCO2e/day", "carbon", "Carbon"),
        MetricSpec(ERRORS, "fraction", "errors", "Errors"),
        MetricSpec(WASTE, "$/h", "waste", "Known or unexamined waste"),
        MetricSpec(REPEAT, "fraction", "churn", "Actions that fail or undo others"),
        MetricSpec(WORST_P95, "ms", "latency", "Latency of the worst service (p95)"),
        MetricSpec(
            WORST_ERRORS,
            "fraction",
            "errors",
            "Errors of the worst service, or batch work past its deadline",
        ),
    )
    templates = menu.TEMPLATES
    playbook = staticmethod(finish_what_was_begun)
    errands = menu.ERRANDS

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.settings = Settings.of(scenario)
        self._read_settings: dict[str, Settings] = {}

    def _settings(self, scenario: Scenario) -> Settings:
        """Settings of a scenario that this world plays; another horizon is no other world."""
        if scenario is self.scenario:
            return self.settings
        found = self._read_settings.get(scenario.digest)
        if found is None:
            found = self._read_settings[scenario.digest] = Settings.of(scenario)
        return found

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> State:
        """Calibrated worlds at step 0, one per seed.

        Raises:
            ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
        """
        return open_worlds(self._settings(scenario), seeds)

    def observe(self, state: State, seat: str = "room", row: int = 0) -> Observation:
        """What a seat may know of one world."""
        now = observe(state, row)
        if state.done and state.replica[row] == 0:
            verdict = state.recall(f"audit.{row}", (state.columns[NOW],), lambda: audit(state, row))
            now = replace(now, facts={**now.facts, "audit": verdict})
        masked = state.settings.scenario.masks.get(seat)
        return now.masked(masked) if masked else now

    def catalogue(self, observation: Observation) -> Catalogue:
        """nop, and every action that the validator lets pass now, parameters enumerated."""
        return reading.catalogue(_view(observation))

    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None."""
        view = _view(observation)
        if action in reading.passed(view) and observation.step < observation.horizon:
            return None
        found = reading.read(action, view)
        if found.fault:
            return found.fault
        if observation.step >= observation.horizon:
            return "the episode is over"
        code = reading.refusal(found, view)
        return reading.refusal_text(action, code, found, view) if code else None

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """Harm by effect, as far as it can be known."""
        view = _view(observation)
        found = reading.read(action, view)
        if found.fault:
            return ()
        if action not in reading.passed(view) and reading.refusal(found, view):
            return ()
        return hazards(action, found, view)

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """The target, what it hangs on and what needs it; for a service, all its tiers."""
        view = _view(observation)
        found = reading.read(action, view)
        return frozenset() if found.fault else reading.touched(found, view)

    def encode(self, state: State, joints: Sequence[Joint]) -> Encoded:
        """Joint actions as arrays, in canonical order (by target, then id).

        ``params`` holds three numbers: fraction, level, weight, the index of the size among all
        sizes or the region's slot first; for a migration the fraction second and 1 third where
        the data move along; 1 or 0 for a switch.

        Raises:
            InadmissibleActionError: An action is not of this world, or there are more than three.
        """
        if len(joints) != state.batch:
            raise InadmissibleActionError(
                f"{len(joints)} joint actions for {state.batch} worlds",
                "",
                "Pass one for every world",
            )
        encoded = _empty(len(joints))
        for row, joint in enumerate(joints):
            if not joint:
                continue
            for slot, (action, found) in enumerate(self._read(state, row, joint)):
                if found.fault:
                    raise InadmissibleActionError(f"{action.id} cannot be encoded", found.fault)
                _write(encoded, row, slot, found)
        return encoded

    def _read(self, state: State, row: int, joint: Joint) -> list[tuple[Action, Reading]]:
        if len(joint) > MAX_ACTIONS:
            raise InadmissibleActionError(
                f"{len(joint)} actions in one step",
                f"this world takes at most {MAX_ACTIONS}",
                "Leave some for the next step",
            )
        view = _names(state, row)
        pairs = [(action, reading.read(action, view)) for action in joint]
        for action, found in pairs:
            if found.kind < 0:
                raise InadmissibleActionError(
                    f"{action.kind!r} is not an action of this world", found.fault
                )
        pairs.sort(key=lambda pair: (pair[0].target, pair[0].id))
        return pairs

    def step(self, state: State, actions: Joint) -> tuple[State, Outcomes, Delta]:
        """Advance one world."""
        _refuse_after_end(state)
        pairs = self._read(state, 0, actions)
        encoded = _empty(1)
        for slot, (_, found) in enumerate(pairs):
            if not found.fault:
                _write(encoded, 0, slot, found)
        after, taken = advance(state, encoded)
        book(after)
        with_end_charge(after)
        by_action = outcomes_of(state, after, taken, pairs)
        after.outcomes = tuple(by_action[id(action)] for action in actions)
        result = Outcomes(
            reward=float(after.flags["reward"][0]),
            terms=terms_of(after),
            actions=after.outcomes,
            events=events_of(state, after),
            success=bool(after.flags["all"][0]),
            done=after.done,
            stop_reason="horizon" if after.done else "",
            violations=violations_of(after),
        )
        return after, result, delta(state, after)

    def step_batch(self, state: State, actions: Encoded) -> tuple[State, BatchOutcomes]:
        """Advance every world of the batch by one step.

        Raises:
            InadmissibleActionError: The episodes are over, or a code does not exist.
        """
        _refuse_after_end(state)
        if actions.kinds.shape[0] != state.batch:
            raise InadmissibleActionError(
                f"actions for {actions.kinds.shape[0]} worlds",
                f"the batch holds {state.batch}",
                "Pass one row per world",
            )
        after = advance(state, actions).state
        book(after)
        with_end_charge(after)
        return after, BatchOutcomes(
            reward=after.flags["reward"],
            success=after.flags["all"],
            done=np.full(state.batch, after.done),
        )

    def believe(self, history: History, samples: int, key: Key) -> Belief[State]:
        """Sample full states from what was observed; see `believe.believe`."""
        return believe(history, self._settings(history.scenario), samples, key)

    def project(
        self,
        belief: Belief[State],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of each plan; see `project.project`. The noise is the belief's."""
        del key
        return project(belief, plans, horizon, continuation, self.encode)

    def columns(self, state: State, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""
        return snapshot(state, row)

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> State:
        """The state that `snapshot` was taken from.

        Raises:
            WorldError: The snapshot is of another world.
        """
        return restore(self._settings(scenario), scenario, seed, snapshot)


def _view(observation: Observation) -> CloudInventory:
    if not isinstance(observation.inventory, CloudInventory):
        raise InadmissibleActionError(
            "the observation has no cloud inventory", "", "Observe this world"
        )
    return observation.inventory


def _names(state: State, row: int) -> CloudInventory:
    """A view that is good for reading actions only: ids, services, regions and counts."""
    from world.worlds.cloud.state import Measured
    from world.worlds.cloud.view import VISIBLE

    columns = state.columns
    sources = (columns["count"], columns["g.region"], columns["kind"])

    def make() -> CloudInventory:
        public = {name: columns[name][row : row + 1] for name in VISIBLE}
        blank = np.zeros(Measured(state.settings).width)
        return CloudInventory(state.settings, state.step, ids_of(state, row), public, blank)

    return state.recall(f"names.{row}", sources, make)


def _empty(batch: int) -> Encoded:
    return Encoded(
        np.full((batch, MAX_ACTIONS), -1, dtype=np.int32),
        np.full((batch, MAX_ACTIONS), -1, dtype=np.int32),
        np.zeros((batch, MAX_ACTIONS, menu.PARAMS)),
    )


def _write(encoded: Encoded, row: int, slot: int, found: Reading) -> None:
    encoded.kinds[row, slot] = found.kind
    encoded.targets[row, slot] = found.target
    encoded.params[row, slot] = found.params


def _refuse_after_end(state: State) -> None:
    if state.done:
        raise InadmissibleActionError(
            f"step {state.step + 1} of {state.settings.scenario.horizon}",
            "the episode is over",
            "Start a new one",
        )


__all__ = ["CloudWorld"]
