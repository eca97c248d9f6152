"""Plays episodes in which some seats are empty, on the same noise as the full room.

An empty seat neither proposes nor votes, or (``ballot``) proposes but has no vote. In the empty
room nothing is done, or, in a world that cannot stand still, one of the legal actions at random,
all equally likely, from a noise stream of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from orchestrator.episode import begin, claim_run, drive_to_end
from orchestrator.lease import lease
from orchestrator.room import Room, build_room
from orchestrator.spec import EpisodeResult, EpisodeSpec, Spent
from orchestrator.study.influence.pivotality import muted
from orchestrator.study.influence.watching import Decisions, Watch
from policies.records import Context
from world.actions import NOP, Action
from world.graders.registry import grade
from world.graders.scorecard import GradedStep
from world.model import History, Observation, World, significant
from world.noise import channel, uniforms53
from world.store.base import StoreSettings
from world.store.inprocess import InProcessStore

Absent = Literal["full", "ballot"]
ABSENT: tuple[Absent, ...] = ("full", "ballot")

EMPTY_ROOM = "empty_room"
"""Stream of the actions of an empty room."""


class WatchedResult(EpisodeResult):
    """An episode, with what was seen of its decisions.

    Attributes:
        decisions: What was counted.
    """

    decisions: Decisions


@dataclass(frozen=True)
class Player:
    """Plays one coalition: the spec's ``absent`` names who is not there. Crosses processes.

    Attributes:
        absent: What an absent seat loses.
        outside: Seats that are empty in the full room, too.
        watched: Whether the decisions of the full room are looked at.
        lies: Whether lies are looked for there.
    """

    absent: Absent = "full"
    outside: tuple[str, ...] = ()
    watched: bool = True
    lies: bool = True

    def __call__(self, spec: EpisodeSpec) -> EpisodeResult:
        """Play it.

        Args:
            spec: What to play; the plain driver, a store in this process and no files.

        Raises:
            UserError: The spec cannot work.
        """
        gone = tuple(seat for seat in dict.fromkeys(spec.absent) if seat not in self.outside)
        room = build_room(spec.model_copy(update={"absent": self.outside}))
        if not gone:
            return _played(room, (), self.watched, self.lies)
        if set(room.specs) <= set(gone):
            return empty_room(room)
        if self.absent == "ballot":
            return _played(room, gone, False, False)
        return _played(without_seats(room, gone), (), False, False)


def without_seats(room: Room, gone: Collection[str]) -> Room:
    """The same room with some seats empty.

    Unlike a room that is built without them, it may lack whom its rules want: a commander then
    commands nothing, and a vote that is not cast is not counted.

    Args:
        room: The room.
        gone: Seats that stay empty; one is left at least.
    """
    return replace(
        room,
        specs={seat: spec for seat, spec in room.specs.items() if seat not in gone},
        personas={seat: persona for seat, persona in room.personas.items() if seat not in gone},
        seats=tuple(rules for rules in room.seats if rules.seat not in gone),
    )


def _played(room: Room, silent: tuple[str, ...], watched: bool, lies: bool) -> EpisodeResult:
    store = InProcessStore()
    opening = claim_run(room, store)
    with lease(store, opening.run) as held:
        session = begin(room, store, held, opening)
        if silent:

            def retouch(step: int, context: Context) -> Context:
                del step
                return muted(context, silent)

            session.retouch = retouch
        watch = Watch(session, lies) if watched else None
        result = drive_to_end(session, StoreSettings())
    if watch is None:
        return result
    return WatchedResult(**dict(result), decisions=watch.found)


def empty_room(room: Room) -> EpisodeResult:
    """An episode that nobody decides.

    What the world demands is done; else nothing; else, where that is no action, one of the legal
    ones, drawn from (seed, step) on the stream ``empty_room``.

    Args:
        room: The full room.
    """
    world, scenario, seed = room.world, room.scenario, room.spec.seed
    state = world.reset(scenario, [seed])
    history, graded = History(scenario), []
    seen, stop = world.observe(state), ""
    while not stop:
        history.observations.append(seen)
        joint = (_nobodys(world, seen, seed),)
        state, outcomes, _ = world.step(state, joint)
        history.decisions.append(joint)
        seen = world.observe(state)
        graded.append(GradedStep.of(seen, joint, outcomes, outcomes.violations))
        stop = outcomes.stop_reason if outcomes.done else ""
    return _result(room, graded, seen, stop)


def _nobodys(world: World[Any], seen: Observation, seed: int) -> Action:
    demanded = world.mandatory(seen)
    if demanded is not None:
        return demanded
    if world.limits.has_nop:
        return Action(NOP)
    legal = [action for action in world.catalogue(seen) if world.check(seen, action) is None]
    draw = float(uniforms53(seed, 0, channel(EMPTY_ROOM), seen.step)[0])
    return legal[int(draw * len(legal))]


def _result(room: Room, graded: list[GradedStep], seen: Observation, stop: str) -> EpisodeResult:
    card = grade(room.scenario, graded)
    rewards = tuple(significant(step.reward) for step in graded)
    metrics: Mapping[str, float | None] = seen.metrics
    return EpisodeResult(
        run="",
        scenario=room.scenario.name,
        seed=room.spec.seed,
        protocol="",
        personas={},
        driver=room.spec.driver,
        store="",
        steps=len(graded),
        stop_reason=stop,
        success=card.success,
        success_any=any(step.success for step in graded),
        score=significant(card.total),
        reward_total=significant(sum(rewards)),
        rewards=rewards,
        metrics_end={k: significant(v) for k, v in metrics.items() if v is not None},
        violations=card.violations,
        usage=Spent(),
        trace="",
        trace_sha="",
        scorecard=card.as_json(),
    )
