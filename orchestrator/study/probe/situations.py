"""The situations that a persona is probed in: tables of real episodes, as its seat sees them.

An episode is walked with rules at every seat that could answer differently when it is asked
again, so that all voices of a persona meet the same situations and the walk costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from agents.backends.rules import RulePersona
from agents.backends.stances import SAME
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, make_persona
from orchestrator.episode import begin, claim_run
from orchestrator.lease import lease
from orchestrator.loop import drive
from orchestrator.phases import request
from orchestrator.room import Room, Voice, build_room
from orchestrator.session import Session
from orchestrator.spec import EpisodeSpec
from policies.records import Ask, Context, Request
from policies.stakes import standing
from policies.table import Table
from world.model import History
from world.store.base import StoreSettings
from world.store.open import open_store

_SPEAKS_ITSELF = frozenset({"rules", "scripted"})


@dataclass(frozen=True, slots=True)
class Situation:
    """One table, as it lay before one seat.

    Attributes:
        seed: Episode seed.
        step: The step, 1….
        room: The room that was walked.
        asked: What the seat may see, as the frame of every question.
        history: What the room had seen and decided.
        table: What lay on the table.
        names: Admissible candidate ids, in id order.
        own: Admissible candidate id → what it is projected to be worth to the seat (to the room,
            for a seat without objectives).
        welfare: The same → weighted sum over all other seats.
        crossing: Candidate ids on the table that cross a red line of the seat's own.
        possible: Ids of the feasible candidates.
    """

    seed: int
    step: int
    room: Room
    asked: Request
    history: History
    table: Table
    names: tuple[str, ...]
    own: Mapping[str, float]
    welfare: Mapping[str, float]
    crossing: frozenset[str]
    possible: frozenset[str]

    @property
    def seat(self) -> str:
        """The seat that is probed."""
        return self.asked.ask.seat


class Walk(NamedTuple):
    """The situations that were found.

    Attributes:
        situations: In order of seed and step.
        skipped: Tables on which there was nothing to choose: the world left no choice, or all
            options were worth the same to the seat.
        seats: How many seats the room has.
    """

    situations: tuple[Situation, ...]
    skipped: int
    seats: int


def walk(spec: EpisodeSpec, seat: str, seeds: Sequence[int], count: int, every_steps: int) -> Walk:
    """Collect the situations of a seat.

    Args:
        spec: The room; its seed is replaced.
        seat: The seat that is probed.
        seeds: Episode seeds.
        count: Situations per seed, at most; an episode may be over before.
        every_steps: They stand at every so many steps.
    """
    found: list[Situation] = []
    skipped = seats = 0
    for seed in seeds:
        room = build_room(_walked(spec, seat, seed), speaks=False, voice=_voice(seat))
        seats = len(room.seats)
        gap = min(every_steps, room.scenario.horizon)
        wanted = range(gap, min(gap * count, room.scenario.horizon) + 1, gap)
        for situation in _visit(room, seat, wanted):
            if situation is None:
                skipped += 1
            else:
                found.append(situation)
    return Walk(tuple(found), skipped, seats)


def own_lines(room: Room, seat: str) -> frozenset[str]:
    """Ids of those red lines of a seat whose metric this world has."""
    rules = next(rules for rules in room.seats if rules.seat == seat)
    known = {metric.name for metric in room.world.metrics}
    return frozenset(line.id for line in rules.red_lines if line.metric in known)


def crossed_in(table: Table, seat: str, lines: frozenset[str]) -> frozenset[str]:
    """Ids of the candidates that cross one of these red lines, whatever its severity."""
    ballot = table.context.ballots[table.context.seats.index(seat)]
    warned = {notice.candidate for notice in table.warnings if notice.rule in lines}
    return frozenset({*ballot.vetoes, *warned} - {""})


def _walked(spec: EpisodeSpec, seat: str, seed: int) -> EpisodeSpec:
    # The ballot that counts is the projected one: what the seat would state is the question.
    return spec.model_copy(
        update={
            "seed": seed,
            "overrides": (*spec.overrides, f"{seat}.ballot.source=projected"),
            "driver": "loop",
            "store": "inprocess",
            "checkpointer": "none",
            "out": "",
            "human": (),
            "approve": "none",
            "model": "",
            "record": "",
            "playback": "",
            "budget_usd": None,
        }
    )


def _voice(seat: str) -> Voice:
    """Rules at the probed seat, and wherever an answer would cost something or might vary."""

    def voice(spec: PersonaSpec, at: str, desk: object) -> Persona:
        del desk  # Nobody who would need it speaks here.
        if at != seat and spec.backend.kind in _SPEAKS_ITSELF:
            return make_persona(spec, at)
        return RulePersona.by_role(spec, at)

    return voice


def _visit(room: Room, seat: str, steps: range) -> list[Situation | None]:
    """Play an episode, and keep what lay before the seat at some steps."""
    store = open_store("inprocess", StoreSettings())
    found: list[Situation | None] = []
    try:
        opening = claim_run(room, store)
        with lease(store, opening.run) as held:
            session = begin(room, store, held, opening)

            def look(step: int, context: Context) -> Context:
                if step in steps:
                    found.append(_situation(session, seat))
                if step >= steps[-1]:
                    session.stop.request()
                return context

            session.retouch = look
            drive(session)
    finally:
        store.disconnect()
    return found


def _situation(session: Session, seat: str) -> Situation | None:
    table = session.table
    if table is None or table.mandatory:
        return None
    context = table.context
    asked = request(session, Ask(seat, "ballot"))
    names = tuple(context.candidates[place].id for place in standing(context))
    stakes = asked.stakes
    if stakes is None or len(names) < 2:
        return None
    own = stakes.utilities or stakes.welfare
    if max(own.values()) - min(own.values()) <= SAME:
        return None
    weight = next(rules.weight for rules in session.room.seats if rules.seat == seat)
    mine = {name: weight * value for name, value in stakes.utilities.items()}
    return Situation(
        seed=session.room.spec.seed,
        step=session.step + 1,
        room=session.room,
        asked=replace(asked, history=_copied(asked.history)),
        history=_copied(session.history),
        table=table,
        names=names,
        own=own,
        welfare={name: stakes.welfare[name] - mine.get(name, 0.0) for name in names},
        crossing=crossed_in(table, seat, own_lines(session.room, seat)),
        possible=frozenset(one.id for one in context.candidates if one.feasible),
    )


def _copied(history: History) -> History:
    """A history that the episode no longer adds to."""
    copied = History(history.scenario)
    copied.observations = list(history.observations)
    copied.decisions = list(history.decisions)
    return copied
