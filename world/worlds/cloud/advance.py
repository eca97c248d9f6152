"""One step of B worlds: the order in which everything happens.

Actions are checked on the state in which they were decided, then: outages of the step before end;
outcomes drawn and applied; autoscalers; capacity that was under way arrives; incidents begin and
end; demand; queues, errors, memory; cost, power and carbon; harm, cures and what the step earned.
`advance` is pure: the state that was given stays valid, and truth and imagination run through the
same code (replica 0 is the truth).
"""

from __future__ import annotations

from typing import NamedTuple

from world.model import Encoded
from world.worlds.cloud import capacity, demand, effects, evidence, harm, incidents, spot
from world.worlds.cloud.effects import Taken
from world.worlds.cloud.reward import judge
from world.worlds.cloud.solve import measure
from world.worlds.cloud.state import BEFORE, EARLIER, NOW, Floats, State


class Stepped(NamedTuple):
    """A step of B worlds.

    Attributes:
        state: The new state; what the step earned is in its `flags`.
        taken: What became of the actions.
    """

    state: State
    taken: Taken


def advance(before: State, actions: Encoded) -> Stepped:
    """Advance every world by one step.

    Args:
        before: B worlds.
        actions: Joint actions, one per world.

    Raises:
        InadmissibleActionError: A code that does not exist.
    """
    after = before.follow()
    taken, measured = _pass(before, after, actions)
    harm.count(before, after, measured)
    incidents.settle(after, measured)
    after.flags.update(judge(before, after))
    return Stepped(after, taken)


def imagine(before: State, actions: Encoded) -> State:
    """Advance imagined worlds by one step: the same, without counting harm and points.

    Args:
        before: B worlds.
        actions: Joint actions, one per world.

    Raises:
        InadmissibleActionError: A code that does not exist.
    """
    after = before.follow()
    measured = _pass(before, after, actions)[1]
    incidents.settle(after, measured)
    return after


def _pass(before: State, after: State, actions: Encoded) -> tuple[Taken, Floats]:
    """Everything up to the measurement."""
    capacity.wear_off(after)
    taken = effects.take(before, after, actions)
    after.step = before.step + 1
    # Like everybody else, autoscalers act on what was measured before.
    capacity.autoscale(after, before.columns[NOW])
    capacity.pass_time(before, after)
    spot.move(after)
    incidents.progress(after)
    evidence.fade(after)
    rate = demand.arrivals(after)
    measured = measure(after, rate, taken.repeat)
    columns = after.columns
    columns[EARLIER], columns[BEFORE], columns[NOW] = columns[BEFORE], columns[NOW], measured
    kinds = actions.kinds[:, :1]
    columns["w.last_kinds"] = kinds.astype(columns["w.last_kinds"].dtype)
    return taken, measured
