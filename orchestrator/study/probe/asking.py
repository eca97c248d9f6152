"""Asks one persona many questions, and keeps count of answers, faults and money."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from agents.faults import SeatEndsRun
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, is_asynchronous, make_persona
from orchestrator.answering import ask, ask_now
from orchestrator.episode import total_spent
from orchestrator.models import make_desk
from orchestrator.room import seated_personas
from orchestrator.spec import EpisodeSpec, Spent
from orchestrator.study.probe.questions import Question, Scores
from orchestrator.study.probe.wording import reworded
from policies.records import Reply, Usage
from world.errors import ConfigError
from world.model import World

if TYPE_CHECKING:
    from agents.backends.llm.desk import ModelDesk

_AT_ONCE = 8
"""Questions to a model that are under way together."""


class Interviewer:
    """Puts questions to one persona.

    Args:
        spec: The room it is probed in, with how its models are reached.
        seat: Its seat.
        wordings: Most other wordings of its prompt.

    Attributes:
        persona: Its file, as it speaks.
        wordings: How many other wordings there are.
        asked: Questions that it was asked.
        unanswered: Questions that it had no answer to.
        unasked: Questions that the budget did not reach.
        faults: Why there was no answer → how often.

    Raises:
        ConfigError: A person or a record sits there, or its model cannot be reached.
    """

    def __init__(self, spec: EpisodeSpec, seat: str, wordings: int) -> None:
        self.seat = seat
        self.persona = seated_personas(spec)[seat]
        kind = self.persona.backend.kind
        if kind in {"human", "replay"}:
            what = "is a person's" if kind == "human" else "repeats a record"
            raise ConfigError(
                f"persona {self.persona.id!r} {what}",
                "a probe puts the same table to it again and again",
                "Probe a rule, model, scripted, learned, remote or python persona",
            )
        self._desk: ModelDesk | None = make_desk(spec, {seat: self.persona})
        others = reworded(self.persona, wordings)
        self._voices = [make_persona(one, seat, self._desk) for one in (self.persona, *others)]
        self.specs: tuple[PersonaSpec, ...] = (self.persona, *others)
        # Only a model reads the words of its prompt.
        self.wordings = len(others) if kind == "llm" else wordings
        self.asked = self.unanswered = self.unasked = 0
        self.faults: dict[str, int] = {}
        self._usage: Usage | None = None
        self._spent = False

    def __enter__(self) -> Interviewer:
        """Tell a persona that needs to know that it will be asked; nobody sits at a terminal."""
        for voice in self._voices:
            begin = getattr(voice, "begin_run", None)
            if callable(begin):
                begin(lambda: False, False)
        return self

    def __exit__(self, *error: object) -> None:
        for voice in self._voices:
            end = getattr(voice, "end_run", None)
            if callable(end):
                with suppress(Exception):
                    end()

    def fits(self, world: World[object]) -> None:
        """Refuse a persona that cannot speak in a world."""
        for voice in self._voices:
            check = getattr(voice, "fits", None)
            if callable(check):
                check(world)

    def ballots(self, questions: Sequence[Question | None]) -> list[Scores | None]:
        """What it states; None where it was not asked, or stated nothing."""
        replies = self.replies([one for one in questions if one is not None])
        said = iter(replies)
        stated = [None if one is None else next(said) for one in questions]
        return [reply.scores or None if reply is not None else None for reply in stated]

    def replies(self, questions: Sequence[Question]) -> list[Reply | None]:
        """Its answers, in order; None for those that it did not give.

        Raises:
            WarRoomError: What is played back does not hold a question.
        """
        found: list[Reply | None] = []
        for first in range(0, len(questions), _AT_ONCE):
            batch = questions[first : first + _AT_ONCE]
            if self._spent:
                self.unasked += len(batch)
                found += [None] * len(batch)
            else:
                found += [self._counted(one, reply) for one, reply in zip(
                    batch, self._answers(batch), strict=True
                )]  # fmt: skip
        return found

    @property
    def spent(self) -> Spent:
        """Calls, tokens and dollars so far."""
        return Spent() if self._usage is None else total_spent({self.seat: self._usage})

    def _answers(self, questions: Sequence[Question]) -> list[Reply]:
        voices = [self._voice(one) for one in questions]
        try:
            if is_asynchronous(voices[0]):
                return asyncio.run(_together(voices, questions))
            return [ask_now(voice, one.request) for voice, one in zip(
                voices, questions, strict=True
            )]  # fmt: skip
        except SeatEndsRun as ending:
            if ending.error is not None:
                raise ending.error from None
            raise KeyboardInterrupt from None

    def _voice(self, question: Question) -> Persona:
        return self._voices[question.wording if question.wording < len(self._voices) else 0]

    def _counted(self, question: Question, reply: Reply) -> Reply | None:
        from agents.backends.llm.meter import added

        if reply.usage.calls:
            self._usage = reply.usage if self._usage is None else added(self._usage, reply.usage)
        if any(note.kind == "budget" for note in reply.notes):
            self._spent = True
            self.unasked += 1
            return None
        self.asked += 1
        said = reply.proposals if question.request.ask.kind == "propose" else reply.scores
        if reply.fallback or not said:
            why = reply.fallback or "it stated nothing"
            self.unanswered += 1
            self.faults[why] = self.faults.get(why, 0) + 1
            return None
        return reply


async def _together(voices: Sequence[Persona], questions: Sequence[Question]) -> list[Reply]:
    return list(
        await asyncio.gather(
            *(ask(voice, one.request) for voice, one in zip(voices, questions, strict=True))
        )
    )
