"""Model-predictive look-ahead: project many plans from a belief, do the first step of the best.

The planner sees what a room sees and is bound by the same validator and guardrails. It takes
single actions of the catalogue, plans that prepare a removal, and combinations of the most
promising, and projects them all on common noise. A free place goes to an errand. It is a
yardstick: a room that negotiates should not do worse than one mind with the same eyes.

Source: model-predictive (receding-horizon) control, Mayne et al., Automatica 36 (2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.candidates import sampled_actions
from policies.guardrails import Bounds, Gate
from policies.planners.errands import careless, errands, remedies, removals
from policies.planners.value import own_targets, worth
from world.actions import NOP, Action, joint_id, plan_id
from world.model import Belief, History, Joint, Key, Observation, Plan, World

LEAST_PLANS = 64
"""Plans that are projected at least, where the world offers so many."""


@dataclass(frozen=True, slots=True)
class Sight:
    """How far and how wide a planner looks.

    Attributes:
        steps: Steps that plans are projected.
        samples: Belief samples; 0 is one with mean noise.
        singles: Most single actions; a larger catalogue is sampled, stratified by kind.
        partners: Most promising plans that are combined.
        composites: Most combinations that are projected.
        objectives: Objectives that count; empty is all. With one, the planner is selfish.
    """

    steps: int = 10
    samples: int = 0
    singles: int = 640
    partners: int = 16
    composites: int = 128
    objectives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a look ahead found.

    Attributes:
        gate: Guardrails of this moment.
        belief: Where the projections start.
        plans: Single actions and prepared plans, without the idle one.
        gains: float64 [n_plans], worth over that of the idle plan, or over the worst where the
            world cannot stand still.
        idle: The joint action that does nothing; empty where the world has none.
        mandatory: The joint action that the world demands; empty where it leaves a choice.
    """

    gate: Gate
    belief: Belief[Any] | None
    plans: tuple[Plan, ...]
    gains: NDArray[np.float64]
    idle: Joint
    mandatory: Joint = ()

    def together(self, one: Joint, other: Joint) -> bool:
        """Whether two joint actions may be taken in one step."""
        return not self.gate.refusals((*one, *other))


def look(world: World[Any], history: History, key: Key, sight: Sight) -> Outlook:
    """Project every single action, and every plan that prepares a removal."""
    seen = history.now
    gate = Gate(world, seen, Bounds(world.limits.max_actions_per_step))
    idle = (Action(NOP),) if world.limits.has_nop else ()
    demanded = world.mandatory(seen)
    if demanded is not None:
        return Outlook(gate, None, (), np.zeros(0), idle, (demanded,))
    offered = sampled_actions(world.catalogue(seen), key.seed, key.step, sight.singles)
    singles = [(action,) for action in offered if action.kind != NOP]
    plans: list[Plan] = [
        (joint,) for joint in singles if not careless(seen, joint[0]) and not gate.refusals(joint)
    ]
    steps = _steps(seen, sight)
    if world.limits.max_actions_per_step > 1:
        prepared = (*removals(seen), *remedies(seen))
        plans += [plan for plan in prepared if len(plan) <= steps and not gate.refusals(plan[0])]
    plans.sort(key=lambda plan: plan_id(plan[0], plan[1:]))
    if not plans:
        return Outlook(gate, None, (), np.zeros(0), idle, idle)
    belief = world.believe(history, sight.samples, key)
    tried = [(idle,), *plans] if idle else plans
    values = _values(world, history, belief, tried, key, sight)
    floor = values[0] if idle else float(values.min()) - 1.0
    return Outlook(gate, belief, tuple(plans), values[1 if idle else 0 :] - floor, idle)


def lookahead(world: World[Any], history: History, key: Key, sight: Sight | None = None) -> Joint:
    """A joint action for the step that comes.

    Args:
        world: The world; its truth is never read.
        history: What was observed and decided so far.
        key: Address of the projection noise.
        sight: How far and how wide to look.
    """
    sight = sight or Sight()
    outlook = look(world, history, key, sight)
    if outlook.mandatory or outlook.belief is None:
        return outlook.mandatory
    chosen = _best(world, history, key, sight, outlook)
    return _with_errands(history, outlook, chosen)


def _best(world: World[Any], history: History, key: Key, sight: Sight, outlook: Outlook) -> Joint:
    """First step of the best plan, combinations included."""
    order = np.argsort(-outlook.gains, kind="stable")
    best = int(order[0])
    found: Joint = outlook.plans[best][0]
    gain = float(outlook.gains[best])
    if gain <= 0.0 and outlook.idle:
        return outlook.idle
    combined = _combined(outlook, order, sight)
    if combined and outlook.belief is not None:
        first = (outlook.idle,) if outlook.idle else outlook.plans[best]
        values = _values(world, history, outlook.belief, [first, *combined], key, sight)
        gains = values[1:] - values[0] + (0.0 if outlook.idle else gain)
        top = int(np.argmax(gains))
        if float(gains[top]) > gain:
            found = combined[top][0]
    return found


def _combined(outlook: Outlook, order: NDArray[np.intp], sight: Sight) -> list[Plan]:
    """Pairs and triples of promising plans that may stand together, most promising first."""
    most = outlook.gate.bounds.max_actions
    if most < 2:
        return []
    partners = _varied(outlook, order, sight.partners)
    ranked: list[tuple[float, str, tuple[int, ...]]] = []
    apart: set[tuple[int, ...]] = set()
    for size in range(2, most + 1):
        for members in combinations(partners, size):
            # Who may not stand together may not with a third either: no need to ask again.
            if size > 2 and not apart.isdisjoint(combinations(members, 2)):
                continue
            now = tuple(action for place in members for action in outlook.plans[place][0])
            if len(now) > most or outlook.gate.refusals(now):
                if size == 2:
                    apart.add(members)
                continue
            promise = sum(float(outlook.gains[place]) for place in members)
            ranked.append((-promise, joint_id(now), members))
    ranked.sort(key=lambda entry: entry[:2])
    return [
        _merged([outlook.plans[place] for place in members])
        for _, _, members in ranked[: sight.composites]
    ]


def _varied(outlook: Outlook, order: NDArray[np.intp], count: int) -> list[int]:
    """The most promising plans, two of one target and kind at most."""
    seen: dict[tuple[str, str], int] = {}
    chosen: list[int] = []
    for place in order.tolist():
        if outlook.gains[place] <= 0.0 or len(chosen) >= count:
            break
        first = outlook.plans[place][0][0]
        name = (first.kind, first.target)
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= 2:
            chosen.append(place)
    return chosen


def _merged(plans: Sequence[Plan]) -> Plan:
    """Plans side by side: step k does what each of them does in step k."""
    length = max(map(len, plans))
    return tuple(
        tuple(action for plan in plans if step < len(plan) for action in plan[step])
        for step in range(length)
    )


def _with_errands(history: History, outlook: Outlook, chosen: Joint) -> Joint:
    """Fill what places are left."""
    most = outlook.gate.bounds.max_actions
    if most < 2:
        return chosen
    doing = tuple(action for action in chosen if action.kind != NOP)
    for action in errands(history.now, history.decisions):
        if len(doing) >= most:
            break
        if not outlook.gate.refusals((*doing, action)):
            doing = (*doing, action)
    return doing or chosen


def _values(
    world: World[Any],
    history: History,
    belief: Belief[Any],
    plans: Sequence[Plan],
    key: Key,
    sight: Sight,
) -> NDArray[np.float64]:
    seen = history.now
    projected = world.project(belief, plans, _steps(seen, sight), world.playbook, key)
    return worth(projected[0], world.metrics, own_targets(seen), sight.objectives)


def _steps(seen: Observation, sight: Sight) -> int:
    """Steps to look ahead: not past the end of the episode."""
    return max(1, min(sight.steps, seen.horizon - seen.step))
