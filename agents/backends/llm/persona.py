"""The llm persona: asks a model, checks what comes back, and says what it cost."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from agents.backends.llm import wire
from agents.backends.llm.desk import ModelDesk
from agents.backends.llm.exchange import Exchange
from agents.backends.llm.faults import KINDS, FaultKind, ModelFault
from agents.backends.llm.meter import added
from agents.backends.llm.parsing import object_in
from agents.backends.llm.prompt import Rendered, render
from agents.backends.llm.recording import Attempt
from agents.backends.llm.schema import read_answer
from agents.faults import SeatEndsRun
from agents.persona_schema import PersonaSpec
from agents.validate import cleaned_text, validated_reply
from policies.records import Note, Reply, Request, Usage
from world.errors import DigestMismatchError, InvalidProposalError

_MAX_DETAIL = 160


@dataclass(frozen=True, slots=True)
class LLMPersona:
    """A persona voiced by a language model.

    Attributes:
        spec: Its file.
        seat: Its seat.
        desk: What it shares with the other models of the room.
    """

    spec: PersonaSpec
    seat: str
    desk: ModelDesk

    @property
    def blocking(self) -> bool:
        """It never blocks its caller: calls run in the wire's thread."""
        return False

    @property
    def asynchronous(self) -> bool:
        """It is awaited with the others, in seat order: the first drift is the one that is told."""
        return True

    @property
    def journalled(self) -> bool:
        """Its replies are paid for: a step that is executed again asks it nothing twice."""
        return True

    def answer(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer one question.

        Raises:
            ModelFault: The model, the endpoint or its answer is at fault; never ends a run.
            SeatEndsRun: The recording that is played back does not hold this question.
        """
        rendered = render(self.spec, request)
        if self.desk.playback is not None:
            try:
                attempts = self.desk.played_back(self.spec, request, rendered)
            except DigestMismatchError as drift:
                raise SeatEndsRun(drift) from None
            return self._concluded(request, rendered, attempts, 0.0)
        exchange = self.desk.begin(self.spec, request, rendered)
        return self._later(request, rendered, exchange, wire.send(exchange.run()))

    async def _later(
        self,
        request: Request,
        rendered: Rendered,
        exchange: Exchange,
        future: Future[tuple[Attempt, ...]],
    ) -> Reply:
        attempts = await asyncio.wrap_future(future)
        return self._concluded(request, rendered, attempts, exchange.latency_ms)

    def _concluded(
        self, request: Request, rendered: Rendered, attempts: Sequence[Attempt], latency_ms: float
    ) -> Reply:
        """From what was attempted to a checked reply."""
        usage = Usage()
        for each in attempts:
            usage = added(usage, Usage(each.calls, each.tokens_in, each.tokens_out, each.usd))
        usage = replace(usage, latency_ms=round(latency_ms, 3)) if usage.calls else Usage()
        last = attempts[-1]
        try:
            if last.fault:
                raise ModelFault(_kind(last.fault), cleaned_text(last.detail, _MAX_DETAIL))
            reply = _reply(request, last.text)
        except ModelFault as fault:
            notes = self._notes(request, rendered, attempts, fault.fault_kind)
            raise fault.with_record(usage, notes) from None
        return replace(reply, usage=usage, notes=self._notes(request, rendered, attempts, "ok"))

    def _notes(
        self, request: Request, rendered: Rendered, attempts: Sequence[Attempt], outcome: str
    ) -> tuple[Note, ...]:
        """What the trace holds: hashes and the way, never spend, times or addresses."""
        last = attempts[-1]
        notes: list[Note] = []
        if any(each.calls for each in attempts):
            text = last.text.encode("utf-8", "surrogatepass")
            notes.append(
                Note(
                    "llm_call",
                    {
                        "ask": request.ask.kind,
                        "attempts": len(attempts),
                        "mode": last.mode,
                        "model": self.spec.model.name,
                        "outcome": outcome,
                        "prompt_sha": rendered.digest,
                        "response_sha": hashlib.sha256(text).hexdigest() if text else "",
                    },
                )
            )
        if last.fault == "budget":
            notes.append(Note("budget", {"ask": request.ask.kind, "state": "used up"}))
        return tuple(notes)


def _kind(word: str) -> FaultKind:
    return word if word in KINDS else "unexpected"  # type: ignore[return-value]


def _reply(request: Request, text: str) -> Reply:
    reply = read_answer(request, object_in(text))
    try:
        return validated_reply(request, reply)
    except InvalidProposalError as error:
        raise ModelFault("invalid_reply", cleaned_text(error.line(), _MAX_DETAIL)) from None
