"""The CloudEdge world: `world.model.World` over the rules, the noise and the projection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from world.actions import Action
from world.catalogue import Catalogue
from world.errors import ConfigError, InadmissibleActionError
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
)
from world.worlds.cloudedge.batch import advance_rows, decode, encode, points, succeeded
from world.worlds.cloudedge.forms import (
    as_many,
    as_single,
    first_state,
    first_states,
    tape_of,
)
from world.worlds.cloudedge.menu import CATALOGUES, FULL_RESPONSE, effect_of, not_now, templates
from world.worlds.cloudedge.outcome import (
    StepDelta,
    StepOutcomes,
    crisis_line,
    last_action,
    restore,
    snapshot,
)
from world.worlds.cloudedge.playbook import CONTINUATIONS, close_gaps
from world.worlds.cloudedge.project import believe, project
from world.worlds.cloudedge.rules import (
    EFFECTS,
    KINDS,
    Effect,
    Settings,
    advance,
    load_word,
)
from world.worlds.cloudedge.state import Episode, Many, Single, State

_FLEET = frozenset({"fleet"})
_BY_KIND = dict(zip(KINDS, EFFECTS, strict=False))
_MOST_SEED = 2**63
_PLANNABLE = tuple(map(Action, _BY_KIND))


class CloudEdge(World[State]):
    """One fleet, three targets, five actions and crises at irregular intervals.

    The scenario's ``params`` choose the variant: ``noise`` (``counter`` or ``mt19937``) and
    ``crisis_response`` (``announced`` or ``open``).

    Args:
        scenario: A scenario of the world ``cloudedge``.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """

    name = "cloudedge"
    title = "Latency, cost and carbon of one fleet through crises"
    metrics = (
        MetricSpec("latency_ms", "ms", "latency", "Latency"),
        MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
        MetricSpec("carbon_index", "index", "carbon", "Carbon"),
        MetricSpec("repeat_fraction", "fraction", "churn", "Repeated action"),
    )
    playbook = staticmethod(close_gaps)
    continuations = CONTINUATIONS

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.settings = Settings.of(scenario)
        self.variant = self.settings.variant
        self.templates = templates(self.variant)
        self.limits = Limits(
            max_actions_per_step=1,
            has_nop=False,
            plan_depth=2,
            noise="sequential" if self.settings.sequential else "counter",
            lookahead_steps=10,
            samples=32,
        )

    def _settings(self, scenario: Scenario) -> Settings:
        """Settings of a scenario that this world plays; a longer horizon is no other world."""
        if scenario is self.scenario:
            return self.settings
        settings = Settings.of(scenario)
        if settings.variant != self.variant or settings.sequential != self.settings.sequential:
            raise ConfigError(
                f"scenario {scenario.name!r} is another variant than {self.scenario.name!r}",
                "a world plays one variant of the rules",
                "Make a world for that scenario",
            )
        return settings

    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> State:
        """State at step 0, one world per seed.

        Raises:
            ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
        """
        settings = self._settings(scenario)
        numbers = _checked(seeds)
        if len(numbers) == 1:
            return first_state(scenario, settings, int(numbers[0]))
        return first_states(scenario, settings, numbers)

    def observe(self, state: State, seat: str = "room", row: int = 0) -> Observation:
        """What a seat may know of one world."""
        single = state if isinstance(state, Single) else as_single(state, row)
        episode = single.episode
        settings, scenario = episode.settings, episode.scenario
        done = last_action(single)
        masked = scenario.masks.get(seat, ())
        seen = Observation(
            single.step,
            episode.horizon,
            {
                "latency_ms": single.latency_ms,
                "cost_usd_per_hour": single.cost_usd_per_hour,
                "carbon_index": single.carbon_index,
            },
            scenario.targets,
            {
                "crisis": single.crisis,
                # The load word is latency in four grades.
                "load": "" if "latency_ms" in masked else load_word(single.latency_ms),
                "stable_steps": single.stable_steps,
                "last_action": "" if done is None else done.kind,
                "crisis_base_steps": settings.base_steps,
                "crisis_jitter_steps": settings.jitter_steps,
            },
            incidents=(crisis_line(single.step),) if single.crisis else (),
            outcomes=() if done is None else (self._done(done),),
            unknown=("next_crisis_step",),
        )
        return seen.masked(masked) if masked else seen

    def _done(self, action: Action) -> ActionOutcome:
        effect = self.templates[KINDS.index(action.kind)].effect
        return ActionOutcome(action, "applied", effect)

    def catalogue(self, observation: Observation) -> Catalogue:
        """The four plain kinds, and the crisis responses that may be given now."""
        return CATALOGUES[self.variant, bool(observation.facts.get("crisis"))]

    def plannable(self, observation: Observation) -> tuple[Action, ...]:
        """The four plain kinds: whether a crisis will be announced cannot be planned."""
        return _PLANNABLE

    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None."""
        if observation.step >= observation.horizon:
            return f"the episode is over (step {observation.step} of {observation.horizon})"
        effect = effect_of(self.variant, action)
        if isinstance(effect, str):
            return effect
        return not_now(self.variant, effect, bool(observation.facts.get("crisis")))

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """Every action touches the one fleet, so any two clash."""
        return _FLEET

    def mandatory(self, observation: Observation) -> Action | None:
        """In the seed variant, the full response to an announced crisis."""
        if self.variant == "seed" and observation.facts.get("crisis"):
            return FULL_RESPONSE
        return None

    def encode(self, state: State, joints: Sequence[Joint]) -> Encoded:
        """Joint actions as arrays; see `batch.encode` for the parameters.

        Raises:
            InadmissibleActionError: An action is not of this world, or there is not one for
                every world of the batch.
        """
        size = 1 if isinstance(state, Single) else state.size
        if len(joints) != size:
            raise InadmissibleActionError(
                f"{len(joints)} joint actions for {size} worlds", "", "Pass one for every world"
            )
        return encode([self._effect(joint) for joint in joints])

    def _effect(self, joint: Joint) -> Effect:
        if len(joint) != 1:
            raise InadmissibleActionError(
                f"{len(joint)} actions were given", "one action is taken a step", "Pick one"
            )
        effect = effect_of(self.variant, joint[0])
        if isinstance(effect, str):
            raise InadmissibleActionError(
                f"{joint[0].kind!r} cannot be taken", effect, "Take one of the catalogue"
            )
        return effect

    def step(self, state: State, actions: Joint) -> tuple[State, Outcomes, Delta]:
        """Advance one world.

        There is no action that does nothing, so a refused action could not let time pass: it is
        an error here, and the state that was given stays valid.

        Raises:
            InadmissibleActionError: The episode is over, the action is not of this world, or it
                cannot be taken now.
        """
        before = state if isinstance(state, Single) else as_single(state, 0, only=True)
        if before.step >= before.episode.horizon:
            raise _over(before.step, before.episode.horizon)
        effect = None
        if len(actions) == 1:
            action = actions[0]
            if not action.params and not action.target:
                effect = _BY_KIND.get(action.kind)
        if effect is None:
            effect = self._effect(actions)
            reason = not_now(self.variant, effect, before.crisis)
            if reason is not None:
                raise InadmissibleActionError(
                    f"{actions[0].id!r} cannot be taken at step {before.step}",
                    reason,
                    "Take one of the catalogue",
                )
        after = advance(before, effect)
        return after, StepOutcomes(before, after, actions), StepDelta(after)

    def step_batch(self, state: State, actions: Encoded) -> tuple[State, BatchOutcomes]:
        """Advance every world of the batch by one step.

        Raises:
            InadmissibleActionError: The episodes are over, or a world cannot take its action.
        """
        before = state if isinstance(state, Many) else as_many(state)
        horizon = before.settings.horizon
        if before.step >= horizon:
            raise _over(before.step, horizon)
        after = advance_rows(before, *decode(before, actions, self.variant))
        # Zeroed memory costs a third of filling it.
        done = (np.ones if after.step >= horizon else np.zeros)(after.size, dtype=np.bool_)
        return after, BatchOutcomes(points(after), succeeded(after), done)

    def believe(self, history: History, samples: int, key: Key) -> Belief[State]:
        """Sample full states from what was observed; see `project.believe`."""
        return believe(history, self._settings(history.scenario), samples, key)

    def project(
        self,
        belief: Belief[State],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of each plan; see `project.project`."""
        return project(belief, plans, horizon, continuation, key, self.variant)

    def columns(self, state: State, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""
        return snapshot(state if isinstance(state, Single) else as_single(state, row))

    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> State:
        """The state that `snapshot` was taken from.

        Raises:
            WorldError: The snapshot is of another world, or of another seed's generator.
        """
        settings = self._settings(scenario)
        return restore(Episode(scenario, settings, seed, tape_of(settings, seed)), snapshot)


def _checked(seeds: Sequence[int]) -> NDArray[np.uint64]:
    """Seeds as an array, uint64 [B]."""
    try:
        if isinstance(seeds, range):
            numbers = np.arange(seeds.start, seeds.stop, seeds.step)
        else:
            numbers = np.asarray(seeds)
    except OverflowError:
        numbers = np.array([-1])
    whole = numbers.ndim == 1 and numbers.size > 0 and numbers.dtype.kind in "iu"
    if not whole or numbers.min() < 0 or numbers.max() >= _MOST_SEED:
        raise ConfigError(
            f"seeds {str(list(seeds)[:3])[1:-1] or '(none)'} cannot be used",
            "a batch holds at least one world, and a seed is a whole number from 0 to 2**63-1",
            "Pass such numbers",
        )
    return numbers.astype(np.uint64)


def _over(step: int, horizon: int) -> InadmissibleActionError:
    return InadmissibleActionError(
        f"the episode is over (step {step} of {horizon})", "no step follows", "Reset the world"
    )
