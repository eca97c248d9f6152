"""What a record says that its seats said, put where a session looks for replies.

Rules, scripts and learned policies are functions: they are asked again and must agree. A model, a
person or another process is none: what it said then is fed from the record, as long as it is
asked the same thing in the same situation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.faults import SeatEndsRun
from agents.persona_schema import PersonaSpec
from agents.seat import Persona, make_persona
from orchestrator.answering import ask_all, ask_all_now
from orchestrator.approval import APPROVE, Verdict, ask_person, gate, rule
from orchestrator.phases import commit, negotiate, observe, pending, receive, request
from orchestrator.session import Session
from orchestrator.study.divergence import Divergence, Drift, first_divergence
from orchestrator.trace.diff import ABSENT, first_part
from orchestrator.trace.events import Event, canonical
from orchestrator.trace.steps import mapping, sequence
from policies.records import Ask, Note, Proposal, Reply, Request
from world.actions import parse_joint
from world.errors import TraceError, WarRoomError

if TYPE_CHECKING:
    from agents.backends.llm.desk import ModelDesk

RECOMPUTED = frozenset({"rules", "scripted", "learned"})
"""Backends that are functions of what they are asked."""

_NOTES = frozenset({"llm_call", "budget"})


@dataclass(frozen=True)
class RecordedVoice:
    """Stands at a seat whose replies come from a record; it has no words of its own.

    Attributes:
        spec: The seat's file.
        seat: The seat.
        content_digest: What the record's header says of what the persona read.
    """

    spec: PersonaSpec
    seat: str
    content_digest: str = ""

    @property
    def blocking(self) -> bool:
        """Nothing is waited for."""
        return False

    def answer(self, request: Request) -> Reply:
        """Never asked in a replay that follows its record.

        Raises:
            SeatEndsRun: The record holds no answer to this.
        """
        raise SeatEndsRun(
            TraceError(
                f"step {request.step + 1}: the record holds no answer of seat {self.seat}",
                f"it was not asked to {request.ask.kind} in round {request.ask.round} then",
                "Let it answer anew: replay RUN --live ROLE",
            )
        )


def recorded_voice(contents: dict[str, str]) -> Any:
    """A room's `Voice` that asks functions again and keeps everybody else to the record.

    Args:
        contents: Seat → the content digest that the record's header names.
    """

    def voice(spec: PersonaSpec, seat: str, desk: ModelDesk | None) -> Persona:
        if spec.backend.kind in RECOMPUTED:
            return make_persona(spec, seat, desk)
        return RecordedVoice(spec, seat, contents.get(seat, ""))

    return voice


class Script:
    """What was said in one recorded step.

    Args:
        events: The step's events, in order.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)

    def parted(self, session: Session) -> Divergence | None:
        """What of the step in progress is not as it was recorded, if anything is."""
        return first_divergence(self.events, session.events)

    def reply(self, ask: Ask) -> Reply | None:
        """What a seat answered then; None where it was not asked this."""
        if ask.round and not self._asked(ask):
            return None
        data = self._answer(ask)
        if data is None:
            return None
        fields = {**self._common(ask), **data}
        return Reply(**fields)

    def _asked(self, ask: Ask) -> bool:
        offer = self._one("offer", ask)
        if offer is None or offer.get("kind") != ask.kind:
            return False
        then, now = dict(mapping(offer.get("payload"))), _plain(ask.payload)
        if then.get("candidates") == "all":  # the whole table is not listed again
            then["candidates"] = now.get("candidates")
        return first_part(then, now) is None

    def _answer(self, ask: Ask) -> dict[str, Any] | None:
        if ask.round:
            data = self._one("response", ask)
            return None if data is None else _response(ask.kind, data)
        ballot = mapping(self._one("ballot", ask))
        if ask.kind == "ballot":
            return {"scores": dict(ballot["reported"])} if "reported" in ballot else None
        entries = map(mapping, sequence(ballot.get("proposals")))
        return {"proposals": tuple(map(_proposal, entries))}

    def _common(self, ask: Ask) -> dict[str, Any]:
        """What may stand beside any answer: a message, a fallback, what a backend noted."""
        message = mapping(self._one("message", ask)).get("text", "")
        fallback = self._one("fallback", ask, kind=ask.kind)
        return {
            "message": str(message) if ask.kind != "propose" or ask.round else "",
            "fallback": str(mapping(fallback).get("what", "")),
            "notes": tuple(
                Note(event.type, dict(event.data))  # type: ignore[arg-type]
                for event in self._all(ask)
                if event.type in _NOTES and event.data.get("ask") == ask.kind
            ),
        }

    def prompt_sha(self, ask: Ask) -> str:
        """Digest of what a model was asked then; "" where none was called."""
        for event in self._all(ask):
            if event.type == "llm_call" and event.data.get("ask") == ask.kind:
                return str(event.data.get("prompt_sha", ""))
        return ""

    def verdict(self, candidate: str) -> Verdict | None:
        """What was said at the gate about a candidate."""
        for event in self.events:
            data = event.data
            at_gate = event.type == "human_input" and data.get("kind") == APPROVE
            if at_gate and data.get("candidate") == candidate:
                return Verdict(bool(data.get("approved")), str(data.get("by", "")))
        return None

    def _all(self, ask: Ask) -> list[Event]:
        return [e for e in self.events if e.agent == ask.seat and e.round == ask.round]

    def _one(self, type_: str, ask: Ask, **having: str) -> Any:
        for event in self._all(ask):
            if event.type == type_ and all(event.data.get(k) == v for k, v in having.items()):
                return event.data
        return None


def _plain(value: Any) -> Any:
    """A payload as the trace gives it back: lists for tuples, numbers to nine digits."""
    return json.loads(canonical(value))


def _proposal(entry: Any) -> Proposal:
    return Proposal(
        parse_joint(str(entry["id"])),
        str(entry.get("rationale", "")),
        entry.get("confidence"),
        dict(mapping(entry.get("claimed"))),
    )


def _response(kind: str, data: Any) -> dict[str, Any]:
    if kind == "respond":
        return {
            "accept": bool(data.get("accept", False)),
            "counter": str(data.get("counter", "")),
        }
    if kind == "pick":
        return {"choice": str(data.get("choice", ""))}
    if kind == "ballot":
        return {"scores": dict(mapping(data.get("scores")))}
    ids = map(str, sequence(data.get("proposals")))
    return {"proposals": tuple(Proposal(parse_joint(name)) for name in ids)}


def play_step(
    session: Session, script: Script | None, held: Collection[str], strict: bool
) -> Divergence | None:
    """Play one step, with the replies of some seats taken from a record.

    Args:
        session: Where the episode stands.
        script: What was said in this step then; None plays without a record.
        held: Seats that are kept to it.
        strict: Fail at the first thing that is not as recorded; else go on without the record.

    Returns:
        The first thing that is not as recorded.

    Raises:
        Drift: Strict, and something is not as recorded.
    """
    observe(session)
    found: Divergence | None = None
    decided = False
    while not decided:
        if script is not None and found is None:
            found = _parted(script, session, strict)
        if script is not None and found is None:
            _feed(session, script, held, strict)
        _ask(session)
        decided = negotiate(session)
    _settle(session, script if found is None else None)
    commit(session)
    if script is not None and found is None:
        found = _parted(script, session, strict)
        if found is None and len(session.events) < len(script.events):
            found = _lacking(script.events[len(session.events)])
            if strict:
                raise Drift(found)
    return found


def _parted(script: Script, session: Session, strict: bool) -> Divergence | None:
    found = script.parted(session)
    if found is not None and strict:
        raise Drift(found)
    return found


def _lacking(event: Event) -> Divergence:
    return Divergence(
        event.step, event.round, event.agent, event.type, "", event.type, ABSENT, event.seq
    )


def _feed(session: Session, script: Script, held: Collection[str], strict: bool) -> None:
    """Put the recorded replies of this round where `pending` finds them."""
    for ask in session.asks:
        if ask.seat not in held or (ask.round, ask.seat) in session.inbox:
            continue
        if strict:
            _check_prompt(session, script, ask)
        reply = script.reply(ask)
        if reply is not None:
            session.inbox[ask.round, ask.seat] = reply
        elif strict:
            what = f"{ask.kind}, with this payload" if ask.round else ask.kind
            raise Drift(Divergence(session.step + 1, ask.round, ask.seat, "ask", "", ABSENT, what))


def _check_prompt(session: Session, script: Script, ask: Ask) -> None:
    """Hold what a model would be asked now against what it was asked then.

    Raises:
        Drift: It differs. Where the run kept its answers, the line that differs is named.
    """
    then = script.prompt_sha(ask)
    spec = session.room.specs[ask.seat]
    if not then or spec.backend.kind != "llm":
        return
    from agents.backends.llm.prompt import render

    asked = request(session, ask)
    rendered = render(spec, asked)
    if rendered.digest == then:
        return
    now: str = rendered.digest
    folder = session.room.spec.record or session.room.spec.playback
    if folder:
        now = _prompt_line(Path(folder), asked, rendered) or now
    raise Drift(Divergence(session.step + 1, ask.round, ask.seat, "prompt", "", then, now))


def _prompt_line(folder: Path, asked: Request, rendered: Any) -> str:
    """The first line of a prompt that differs from the one kept in a recording, in words."""
    from agents.backends.llm.recording import Place, Playback

    ask = asked.ask
    try:
        Playback(folder).answer("", rendered, Place(asked.step, ask.round, ask.seat, ask.kind))
    except WarRoomError as told:
        return told.why
    return ""


def _ask(session: Session) -> None:
    waiting = pending(session)
    if not waiting:
        return
    personas = session.room.personas
    if session.room.asynchronous:
        replies = asyncio.run(ask_all(personas, waiting))
    else:
        replies = ask_all_now(personas, waiting)
    for asked in waiting:
        receive(session, asked, replies[asked.ask.seat])


def _settle(session: Session, script: Script | None) -> None:
    """The human gate; what was said there then is said again."""
    while (question := gate(session)) is not None:
        said = script.verdict(question.candidate) if script is not None else None
        rule(session, question, said or ask_person(session, question))
