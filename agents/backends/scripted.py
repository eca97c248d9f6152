"""Scripted personas: a fixed part, read from the persona's own file.

For examples, for tests, and for red teams: besides proposals an entry can wait past its deadline,
raise, or answer with text instead of a reply. It is shipped because whoever builds on the room
needs the same faults.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from agents.backends.stances import stance
from agents.persona_schema import PersonaSpec, Script, ScriptStep
from policies.records import AskKind, Proposal, Reply, Request
from world.actions import Action, parse_joint
from world.errors import ConfigError, InadmissibleActionError
from world.model import Joint


@dataclass(frozen=True, slots=True)
class ScriptedPersona:
    """A persona with a fixed part.

    Attributes:
        spec: Its file.
        seat: Its seat.
        entries: Step (1…) → what it does there.
        last: The last step of the script.
        asynchronous: Whether every answer is an awaitable.
        blocking: Whether some entry waits in the caller's thread.
    """

    spec: PersonaSpec
    seat: str
    entries: Mapping[int, ScriptStep]
    last: int
    asynchronous: bool
    blocking: bool

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> ScriptedPersona:
        """The persona of a file.

        Raises:
            ConfigError: Two entries stand at the same step.
        """
        entries: dict[int, ScriptStep] = {}
        at = 0
        for entry in _script(spec).step:
            at = entry.at or at + 1
            if at in entries:
                raise ConfigError(
                    f"persona {spec.id!r}: two [[script.step]] entries stand at step {at}",
                    "",
                    "Give one of them another 'at'",
                )
            entries[at] = entry
        asynchronous = _script(spec).asynchronous
        waits = any(entry.delay_s > 0 for entry in entries.values())
        last = max(entries, default=0)
        return ScriptedPersona(spec, seat, entries, last, asynchronous, waits and not asynchronous)

    def answer(self, request: Request) -> Reply | Awaitable[Reply]:
        """Play the entry of this step."""
        entry = self.entry(request.step + 1)
        if self.asynchronous:
            return self._play_later(entry, request)
        if entry.delay_s:
            time.sleep(entry.delay_s)
        return self._play(entry, request)

    def entry(self, step: int) -> ScriptStep:
        """What the script says for one step, 1…; an empty entry where it says nothing."""
        repeat = _script(self.spec).repeat
        if step > self.last and self.last:
            if repeat == "last":
                step = self.last
            elif repeat == "cycle":
                step = (step - 1) % self.last + 1
        return self.entries.get(step, ScriptStep())

    async def _play_later(self, entry: ScriptStep, request: Request) -> Reply:
        if entry.delay_s:
            await asyncio.sleep(entry.delay_s)
        return self._play(entry, request)

    def _play(self, entry: ScriptStep, request: Request) -> Reply:
        """What the entry says; a question that it leaves open is answered from the stakes."""
        said = _spoken(entry)
        kind = request.ask.kind
        if kind == "propose" or entry.garbage is not None:
            return said
        if entry.model_fields_set & _ANSWERS[kind]:
            return said
        thought = stance(request, self.spec)
        return said if thought is None else replace(thought, message=said.message)


_ANSWERS: Mapping[AskKind, frozenset[str]] = {
    "ballot": frozenset({"scores"}),
    "respond": frozenset({"accept", "choice"}),
    "pick": frozenset({"choice"}),
}
"""Fields of a script entry that answer each kind of question."""


def _script(spec: PersonaSpec) -> Script:
    return spec.script or Script()


def _spoken(entry: ScriptStep) -> Reply:
    if entry.raises is not False:
        text = "the script says so" if entry.raises is True else entry.raises
        raise RuntimeError(text)
    if entry.garbage is not None:
        return cast(Reply, entry.garbage)  # the point of this field is that it is no reply
    proposals = tuple(
        Proposal(_actions(text), entry.rationale, entry.confidence) for text in entry.propose
    )
    return Reply(
        proposals=proposals,
        scores=entry.scores,
        accept=entry.accept,
        choice=entry.choice,
        counter=entry.choice,
        message=entry.message,
    )


def _actions(text: str) -> Joint:
    """The actions of a joint id; text that is none becomes one action of that impossible kind."""
    try:
        return parse_joint(text)
    except InadmissibleActionError:
        return (Action(text),)
