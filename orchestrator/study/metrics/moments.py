"""The moments of a recorded run: the world as it truly was when each step was decided.

The decisions of the record are taken through the pure world again. Every step is checked against
the digest that the record holds, so that no "what if" starts from a world that never was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from orchestrator.room import Room
from orchestrator.session import roll_digest
from orchestrator.study.recorded import Recorded
from orchestrator.trace.steps import StepRecord
from world.actions import parse_joint
from world.errors import DigestMismatchError
from world.model import History


class Moment(NamedTuple):
    """One moment before a decision.

    Attributes:
        record: What was recorded of the step.
        state: The true world (B = 1).
        history: What the room had observed and decided; grows as the next moments come.
    """

    record: StepRecord
    state: Any
    history: History


def moments(run: Recorded, room: Room) -> Iterator[Moment]:
    """Each step of a run with the world that it was decided in, one at a time.

    Args:
        run: The run.
        room: Its room, as `Recorded.room` builds it.

    Raises:
        DigestMismatchError: The world does not come out as it was recorded.
        TraceError: The trace cannot be read.
    """
    world = room.world
    state = world.reset(room.scenario, [room.spec.seed])
    digest = world.columns(state).digest
    history = History(room.scenario)
    for record in run.stream():
        history.observations.append(world.observe(state))
        yield Moment(record, state, history)
        joint = parse_joint(record.action)
        state, _, delta = world.step(state, joint)
        digest = roll_digest(digest, delta)
        if digest != record.applied.get("state"):
            raise DigestMismatchError(
                f"step {record.step} of run {run.run} does not replay to the recorded world",
                "the world's rules, NumPy or the record have changed since",
                "Read its other measures without --regret",
            )
        history.decisions.append(joint)
