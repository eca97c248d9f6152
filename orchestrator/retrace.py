"""Takes a committed step through the world again, from its decision alone.

The world is a function of scenario, seed and decisions, so a session that is led along the
decisions of a record stands where the recorded one stood; nobody is asked and nothing is weighed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.positions import add_fallbacks, positions_of
from orchestrator.session import Session, roll_digest
from world.actions import parse_joint
from world.errors import DigestMismatchError
from world.graders.scorecard import GradedStep
from world.model import Delta, History


class Committed(NamedTuple):
    """What a record says about one step.

    Attributes:
        action: Id of the joint action that was done.
        state: Rolling digest of the world after it.
        payments: Seat → influence credits paid for the decision.
        spoken: ``(type, seat, data)`` of its events.
    """

    action: str
    state: str
    payments: Mapping[str, float]
    spoken: Sequence[tuple[str, str, Mapping[str, Any]]]


def retrace(session: Session, done: Committed) -> Delta:
    """Lead a session one step along its record; nothing is written anywhere.

    Returns:
        What the step changed.

    Raises:
        DigestMismatchError: The world does not come out as it was recorded.
    """
    world, step = session.room.world, session.step + 1
    seen = session.after or world.observe(session.state)
    session.history.observations.append(seen)
    for seat, names in session.room.scenario.masks.items():
        if seat in session.room.personas:
            history = session.seat_histories.setdefault(seat, History(session.room.scenario))
            history.observations.append(seen.masked(names))
    joint = parse_joint(done.action)
    session.state, outcomes, delta = world.step(session.state, joint)
    session.state_digest = roll_digest(session.state_digest, delta)
    if session.state_digest != done.state:
        raise DigestMismatchError(
            f"step {step} of run {session.run} does not replay to the recorded world",
            "the world's rules, NumPy or the record have changed since",
            "Start a new run: the same seed decides the same storm",
        )
    session.history.decisions.append(joint)
    session.charge(done.payments)
    for history in session.seat_histories.values():
        history.decisions.append(joint)
    session.after = world.observe(session.state)
    session.graded.append(GradedStep.of(session.after, joint, outcomes, outcomes.violations))
    session.positions.append(positions_of(step, done.spoken))
    add_fallbacks(session.fallbacks, done.spoken)
    session.step = step
    session.stop_reason = outcomes.stop_reason if outcomes.done else ""
    return delta
