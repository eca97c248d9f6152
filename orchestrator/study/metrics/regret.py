"""Regret: what a planner with the same options would have earned more, in the reward's unit.

From the moment of each decision the world is played on, once per option of the table, and the
environment's own reward is summed over H steps. One step ahead nothing has to be planned. Further
ahead, every option is followed by the best of some follow-ups (exhaustively on small tables, by a
beam on large ones), the room's own choice too. The planner is a heuristic on large tables, so its
regret is a lower bound.

Three kinds of noise, and every figure says which:

- ``clairvoyant``: the true state and the true noise. Nobody could have known; 0 is perfect.
- ``sampled``: K samples of what the room could believe. Plans are selected on every other sample
  and scored on the rest, so that the planner is not praised for luck; it may come out below 0.
- ``mean``: one sample with mean noise, selected and scored on the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from orchestrator.room import Room
from orchestrator.study.metrics.moments import Moment, moments
from orchestrator.study.metrics.table import StepMetrics, row_of
from orchestrator.study.recorded import Recorded
from orchestrator.trace.steps import mapping, sequence
from world.actions import NOP, joint_id, parse_joint
from world.errors import ConfigError, InadmissibleActionError
from world.model import Encoded, Joint, Key, World

Noise = Literal["clairvoyant", "sampled", "mean"]
NOISES: tuple[str, ...] = get_args(Noise)
MOST_SAMPLES = 256


class Ahead(NamedTuple):
    """A world, or K imagined ones, some steps into a plan.

    Attributes:
        state: State, batch K.
        reward: float64 [K], summed so far.
        over: Whether the episode is over.
    """

    state: Any
    reward: NDArray[np.float64]
    over: bool


Roll = Callable[[Ahead, Joint], Ahead | None]
"""One step further with a joint action; None where it cannot be taken."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How widely the planner looks.

    Attributes:
        steps: H of the planner that looks further.
        firsts: Options, best first by their own reward, that are followed up.
        followers: Options that may follow.
        width: Plans per option that are kept from step to step.
        small: Largest table that is searched exhaustively.
    """

    steps: int = 3
    firsts: int = 4
    followers: int = 6
    width: int = 2
    small: int = 8

    def on(self, options: int) -> Effort:
        """The effort on a table of some options: exhaustive where that is cheap."""
        if options > self.small:
            return self
        return replace(self, firsts=options, followers=options, width=options**self.steps)


def halves(samples: int) -> tuple[slice, slice]:
    """Where to select and where to score; the same where there is one sample only.

    Every other sample: beliefs are stratified, and the first half of them would be one end.
    """
    if samples < 2:
        return slice(None), slice(None)
    return slice(0, None, 2), slice(1, None, 2)


def split_regret(values: NDArray[np.float64], chosen: int) -> float:
    """Regret of a choice against the plan that is best on half of the samples.

    Args:
        values: float64 [n_plans, K], reward of each plan on each sample; −inf where a plan was
            not looked at.
        chosen: Place of the choice.

    Returns:
        Mean over the other half of the samples: planner's plan minus choice.

    >>> split_regret(np.array([[1.0, 1.0], [2.0, 0.0]]), 0)
    -1.0
    """
    select, score = halves(values.shape[1])
    selected = values[:, select].mean(axis=1)
    # Of equals the choice itself, so that a tie is no regret.
    best = chosen if selected[chosen] >= selected.max() else int(np.argmax(selected))
    return float(values[best, score].mean() - values[chosen, score].mean())


def plan_values(
    roll: Roll, start: Ahead, options: Sequence[Joint], chosen: int, effort: Effort
) -> dict[int, NDArray[np.float64]]:
    """Rewards of each option, one step ahead and `effort.steps` ahead.

    Args:
        roll: One step further.
        start: The moment of the decision, nothing earned yet.
        options: What could have been chosen.
        chosen: Place of what was chosen; it is always looked at.
        effort: How widely.

    Returns:
        Steps ahead → float64 [n_options, K]; −inf for options that were not looked at.
    """
    select, _ = halves(len(start.reward))
    effort = effort.on(len(options))
    first = [roll(start, option) for option in options]
    one = np.stack([_reward(ahead, start) for ahead in first])
    if effort.steps < 2:
        return {1: one}
    order = np.argsort(-one[:, select].mean(axis=1), kind="stable").tolist()
    followers = [options[place] for place in order[: effort.followers]]
    followers += [o for o in options if joint_id(o) == NOP and o not in followers]
    many = np.full(one.shape, -np.inf)
    for place in {*order[: effort.firsts], chosen}:
        ahead = first[place]
        if ahead is not None:
            many[place] = _followed(roll, ahead, followers, effort, select).reward
    return {1: one, effort.steps: many}


def _followed(
    roll: Roll, ahead: Ahead, followers: Sequence[Joint], effort: Effort, select: slice
) -> Ahead:
    """The best of what may follow an option, by a beam search on the selecting samples."""
    beam = [ahead]
    for _ in range(effort.steps - 1):
        if all(each.over for each in beam):
            break
        grown = [each for each in beam if each.over]
        for each in beam:
            if not each.over:
                further = (roll(each, joint) for joint in followers)
                grown += [found for found in further if found is not None]
        if not grown:
            break
        grown.sort(key=lambda each: -float(each.reward[select].mean()))
        beam = grown[: effort.width]
    return beam[0]


def _reward(ahead: Ahead | None, start: Ahead) -> NDArray[np.float64]:
    return np.full(start.reward.shape, -np.inf) if ahead is None else ahead.reward


@dataclass(frozen=True, slots=True)
class Regrets:
    """How regret is measured.

    Attributes:
        noise: ``clairvoyant``, ``sampled`` or ``mean``.
        samples: K of ``sampled``; 0 takes twice the room's, at least 2.
        effort: How widely the planner looks.

    Raises:
        ConfigError: An unknown noise, or a number out of range.
    """

    noise: str = "clairvoyant"
    samples: int = 0
    effort: Effort = Effort()

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            raise ConfigError(
                f"--regret is {self.noise!r}",
                "it says on which noise the planner and the room are compared",
                f"Write one of: {', '.join(NOISES)}",
            )
        if not (self.samples == 0 or 2 <= self.samples <= MOST_SAMPLES):
            raise ConfigError(
                f"--samples is {self.samples}",
                f"plans are selected on half of them and scored on the other half: "
                f"2 to {MOST_SAMPLES}",
                "Leave it out to take twice the room's",
            )

    def count(self, room: Room) -> int:
        """Samples of a room; 1 where there is one future only."""
        if self.noise != "sampled":
            return 1
        return self.samples or min(max(2 * room.rules.samples, 2), MOST_SAMPLES)

    def said(self, room: Room) -> str:
        """How it was computed, one line for people."""
        where = {
            "clairvoyant": "true state and true noise",
            "sampled": f"{self.count(room)} belief samples, half to select and half to score",
            "mean": "belief with mean noise",
        }[self.noise]
        return (
            f"reward of the best plan found minus reward of the choice; {where};"
            f" multi_step is {self.effort.steps} steps, exhaustive on up to {self.effort.small}"
            " options, else a beam (a lower bound)"
        )


def rows_with_regret(run: Recorded, regrets: Regrets) -> Iterator[StepMetrics]:
    """The rows of a run, each with its regret.

    Args:
        run: A run whose room can still be built as it was.
        regrets: How it is measured.

    Raises:
        ConfigError: Scenario, a persona or a rule has changed since.
        DigestMismatchError: The world does not come out as it was recorded.
    """
    room = run.room()
    for moment in moments(run, room):
        if moment.record.decision:
            yield replace(row_of(moment.record), regret=regret_of(moment, room, regrets))


def regret_of(moment: Moment, room: Room, regrets: Regrets) -> dict[str, float]:
    """Regret of one decision against each planner, ``one_step`` and ``multi_step``.

    Empty where the world left no choice.
    """
    options, chosen = _options(moment)
    if len(options) < 2:
        return {}
    roll, start = _beginning(moment, room, regrets)
    values = plan_values(roll, start, options, chosen, regrets.effort)
    found = {}
    for steps, rewards in values.items():
        regret = split_regret(rewards, chosen)
        if math.isfinite(regret):
            found["one_step" if steps == 1 else "multi_step"] = regret
    return found


def _options(moment: Moment) -> tuple[list[Joint], int]:
    """What could have been done now, and which of it was: plans of two steps count once."""
    record = moment.record
    out = {str(veto.get("candidate")) for veto in record.vetoes}
    names = [
        str(item.get("id", "")).split(">")[0]
        for item in map(mapping, sequence(record.candidates.get("items")))
        if item.get("feasible") is not False and item.get("id") not in out
    ]
    unique = sorted({*filter(None, names), record.action})
    if record.candidates.get("mandatory") is True:
        unique = [record.action]
    return [parse_joint(name) for name in unique], unique.index(record.action)


def _beginning(moment: Moment, room: Room, regrets: Regrets) -> tuple[Roll, Ahead]:
    world, state = room.world, moment.state
    if regrets.noise == "clairvoyant":
        return _true_roll(world), Ahead(state, np.zeros(1), False)
    samples = 0 if regrets.noise == "mean" else regrets.count(room)
    step = moment.history.now.step
    belief = world.believe(moment.history, samples, Key(room.spec.seed, step))
    return (
        _imagined_roll(world, state, belief.samples),
        Ahead(belief.states, np.zeros(belief.samples), False),
    )


def _true_roll(world: World[Any]) -> Roll:
    def roll(ahead: Ahead, joint: Joint) -> Ahead | None:
        try:
            state, outcomes, _ = world.step(ahead.state, joint)
        except InadmissibleActionError:
            return None
        return Ahead(state, ahead.reward + outcomes.reward, outcomes.done)

    return roll


def _imagined_roll(world: World[Any], now: Any, samples: int) -> Roll:
    """One step further in K imagined worlds: names are read in the world of now."""

    def roll(ahead: Ahead, joint: Joint) -> Ahead | None:
        try:
            one = world.encode(now, [joint])
            state, outcomes = world.step_batch(ahead.state, _repeated(one, samples))
        except InadmissibleActionError:
            return None
        return Ahead(state, ahead.reward + outcomes.reward, bool(outcomes.done.all()))

    return roll


def _repeated(one: Encoded, count: int) -> Encoded:
    return Encoded(
        np.repeat(one.kinds, count, axis=0),
        np.repeat(one.targets, count, axis=0),
        np.repeat(one.params, count, axis=0),
    )
