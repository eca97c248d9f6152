"""A test kit for worlds, ours and yours: does a world keep what every room relies on?

`world_faults` plays a few steps of a scenario and lists what the world broke. It needs no store,
no room and no persona.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from world.actions import Action, joint_id
from world.errors import InadmissibleActionError
from world.model import Cells, Delta, History, Joint, Key, Observation, Scenario, Snapshot, World
from world.noise import channel, uniforms

_S = TypeVar("_S")
_MOST_CHECKED = 200
_MOST_PLANS = 6
_SUM_TOLERANCE = 1e-6


def world_faults(
    world: World[Any], scenario: Scenario, seeds: Sequence[int] = (0, 1), steps: int = 4
) -> list[str]:
    """What a world breaks; empty when it conforms.

    The same seed must give the same world and the same step the same result; the state that a
    step starts from stays valid; columns hold all of a state; a delta says all that changed; what
    the validator lets pass is not refused; projections have their shape, are the same twice and
    do not depend on which other plans are projected; a batch is its single worlds.

    Args:
        world: What to check.
        scenario: What it plays.
        seeds: Which episodes.
        steps: How many steps of each, at most the scenario's horizon.
    """
    faults: dict[str, None] = {}
    try:
        for fault in _faces(world):
            faults[fault] = None
        for seed in seeds:
            for fault in _played(world, scenario, seed, min(steps, scenario.horizon)):
                faults[f"seed {seed}: {fault}"] = None
        for fault in _batched(world, scenario, tuple(seeds)):
            faults[fault] = None
    except Exception as error:  # a report names what somebody's world did, whatever it was
        faults[f"raised {type(error).__name__}: {error}"] = None
    return list(faults)


def _faces(world: World[Any]) -> Iterator[str]:
    """What a world says of itself before anything is played."""
    for what, names in (
        ("metric", [metric.name for metric in world.metrics]),
        ("kind of action", [template.kind for template in world.templates]),
    ):
        if not names:
            yield f"has no {what}"
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"names the {what} {name!r} twice"
    if not world.name or not world.title:
        yield "has no name or no title"
    if world.limits.max_actions_per_step < 1:
        yield f"limits.max_actions_per_step is {world.limits.max_actions_per_step}, below 1"
    if world.limits.has_nop and "nop" not in {template.kind for template in world.templates}:
        yield "limits.has_nop is true, but no template is called nop"


def _played(world: World[_S], scenario: Scenario, seed: int, steps: int) -> Iterator[str]:
    state, again = world.reset(scenario, [seed]), world.reset(scenario, [seed])
    if world.columns(state).digest != world.columns(again).digest:
        yield "reset twice with one seed gives two worlds"
    history = History(scenario)
    for step in range(steps):
        seen = world.observe(state)
        history.observations.append(seen)
        where = f"step {step + 1}"
        yield from (f"{where}: {fault}" for fault in _observed(world, seen, step))
        legal = yield from _catalogued(world, seen, where)
        if not legal:
            yield f"{where}: no action of the catalogue can be taken"
            return
        if step == 0:
            yield from _projected(world, history, legal, Key(seed, step))
        joint = (legal[int(uniforms(seed, 0, channel("conformance.world"), step)[0] * len(legal))],)
        before = world.columns(state)
        after, outcomes, delta = world.step(state, joint)
        yield from (
            f"{where}: {fault}" for fault in _stepped(world, state, joint, before, after, delta)
        )
        yield from (f"{where}: {fault}" for fault in _kept(world, scenario, seed, state, joint))
        if not math.isfinite(outcomes.reward):
            yield f"{where}: the reward is {outcomes.reward}"
        elif abs(sum(outcomes.terms.values()) - outcomes.reward) > _SUM_TOLERANCE:
            yield f"{where}: reward terms sum to {sum(outcomes.terms.values()):.9g}, not the reward"
        for outcome in outcomes.actions:
            if outcome.status == "refused":
                yield (
                    f"{where}: {outcome.action.id} passed the validator and was refused: "
                    f"{outcome.reason}"
                )
        history.decisions.append(joint)
        state = after
        if outcomes.done:
            return


def _observed(world: World[Any], seen: Observation, step: int) -> Iterator[str]:
    if seen.step != step:
        yield f"the observation says step {seen.step} after {step} steps"
    names = {metric.name for metric in world.metrics}
    for name in sorted(set(seen.targets) - names):
        yield f"the target {name!r} is no metric of this world"
    for name, value in seen.metrics.items():
        if value is not None and not math.isfinite(value):
            yield f"{name} is observed as {value}; what is not known is None"


def _catalogued(
    world: World[Any], seen: Observation, where: str
) -> Generator[str, None, list[Action]]:
    """Faults of the catalogue; returns the legal actions among the first few hundred."""
    kinds = {template.kind for template in world.templates}
    legal: list[Action] = []
    catalogue = world.catalogue(seen)
    stride = max(1, len(catalogue) // _MOST_CHECKED)
    for action in catalogue[::stride]:
        if action.kind not in kinds:
            yield f"{where}: the catalogue holds {action.id}, whose kind has no template"
        said = world.check(seen, action)
        if said != world.check(seen, action):
            yield f"{where}: the validator answers twice differently about {action.id}"
        if said is None:
            legal.append(action)
        elif not said:
            yield f"{where}: the validator refuses {action.id} without a reason"
    return legal


def _stepped(
    world: World[_S], state: _S, joint: Joint, before: Snapshot, after: _S, delta: Delta
) -> Iterator[str]:
    name = joint_id(joint)
    if world.columns(state).digest != before.digest:
        yield f"{name} changed the state that it started from"
    repeated, _, _ = world.step(state, joint)
    now = world.columns(after)
    if world.columns(repeated).digest != now.digest:
        yield f"{name} taken twice from one state gives two worlds"
    told = _with_delta(before, delta)
    for column, values in now.columns.items():
        if column not in told or told[column] != np.ascontiguousarray(values).tobytes():
            yield f"the delta of {name} does not say what changed in the column {column!r}"
    for metric, value in now.metrics.items():
        said = delta.metrics.get(metric, before.metrics.get(metric, math.nan))
        if not (said == value or (math.isnan(said) and math.isnan(value))):
            yield f"the delta of {name} says {metric} is {said:.9g}, the world {value:.9g}"


def _with_delta(before: Snapshot, delta: Delta) -> dict[str, bytes]:
    held = {
        name: bytearray(np.ascontiguousarray(column).tobytes())
        for name, column in before.columns.items()
    }
    cells: tuple[Cells, ...] = delta.cells
    for cell in cells:
        if cell.column in held:
            held[cell.column][cell.offset : cell.offset + len(cell.data)] = cell.data
    return {name: bytes(data) for name, data in held.items()}


def _kept(
    world: World[_S], scenario: Scenario, seed: int, state: _S, joint: Joint
) -> Iterator[str]:
    """Columns are all there is of a state: what is read back goes on in the same way."""
    kept = world.columns(state)
    back = world.from_columns(scenario, seed, kept)
    if world.columns(back).digest != kept.digest:
        yield "a state read back from its columns is another state"
        return
    one, _, _ = world.step(state, joint)
    other, _, _ = world.step(back, joint)
    if world.columns(one).digest != world.columns(other).digest:
        yield f"{joint_id(joint)} ends elsewhere from a state read back from its columns"


def _projected(
    world: World[Any], history: History, legal: Sequence[Action], key: Key
) -> Iterator[str]:
    plans = tuple(((action,),) for action in legal[:_MOST_PLANS])
    for samples in (0, 2):
        belief = world.believe(history, samples, key)
        if belief.samples != max(samples, 1):
            yield f"asked for {samples} samples, a belief holds {belief.samples}"
            continue
        ahead = world.project(belief, plans, 2, world.playbook, key)
        shape = (1, len(plans), belief.samples, 2, len(world.metrics))
        if ahead.shape != shape:
            yield f"a projection has the shape {ahead.shape}, not {shape}"
            continue
        again = world.project(belief, plans, 2, world.playbook, key)
        if ahead.tobytes() != again.tobytes():
            yield "the same plans projected twice differ"
        alone = world.project(belief, plans[-1:], 2, world.playbook, key)
        if alone[:, 0].tobytes() != np.ascontiguousarray(ahead[:, -1]).tobytes():
            yield "what a plan is projected to do depends on which others are projected"


def _batched(world: World[Any], scenario: Scenario, seeds: Sequence[int]) -> Iterator[str]:
    """A step of a batch is a step of each of its worlds."""
    together = world.reset(scenario, seeds)
    joints: list[Joint] = []
    for row in range(len(seeds)):
        seen = world.observe(together, row=row)
        legal = [a for a in world.catalogue(seen)[:_MOST_CHECKED] if world.check(seen, a) is None]
        if not legal:
            return
        joints.append((legal[-1],))
    try:
        after, outcomes = world.step_batch(together, world.encode(together, joints))
    except InadmissibleActionError:  # a world may say that it cannot be batched
        return
    for row, seed in enumerate(seeds):
        alone, single, _ = world.step(world.reset(scenario, [seed]), joints[row])
        # Hidden scalars are not compared: a batch never reaches a store.
        if _shown(world.columns(after, row)) != _shown(world.columns(alone)):
            yield f"row {row} of a batch ends elsewhere than the same world alone"
        if float(outcomes.reward[row]) != single.reward:
            yield (
                f"row {row} of a batch is rewarded {float(outcomes.reward[row]):.9g}, "
                f"alone {single.reward:.9g}"
            )


def _shown(kept: Snapshot) -> str:
    return dataclasses.replace(kept, hidden=b"").digest
