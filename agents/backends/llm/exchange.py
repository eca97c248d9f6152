"""One question to one model: attempts within a deadline, each of them budgeted and metered."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from agents.backends.llm.client import Call, Client
from agents.backends.llm.faults import ModelFault
from agents.backends.llm.meter import Meter, Price
from agents.backends.llm.modes import Completion, Mode, ModeBoard, answer_in, parameters
from agents.backends.llm.prompt import Rendered
from agents.backends.llm.recording import Attempt, Place, Recorder
from agents.backends.llm.retry import Limiter, pause_before_retry_s
from policies.records import Request, Usage
from world.errors import WarRoomError

_MOST_ATTEMPTS = 10
_KEPT_CHARACTERS = 20_000
_MAY_BE_CHARGED = frozenset(
    {"timeout", "broken_reply", "huge_reply", "empty_choices", "unexpected"}
)
"""Faults after which nobody can say whether the endpoint charged the call."""


@dataclass(frozen=True, slots=True)
class Line:
    """The way to one endpoint.

    Attributes:
        client: Makes the calls.
        board: Which way of asking for a form works there.
        limiter: Spaces the calls.
        meter: The room's meter.
        price: Price of the persona's model.
    """

    client: Client
    board: ModeBoard
    limiter: Limiter
    meter: Meter
    price: Price


class Exchange:
    """One question, from the reserved budget to the recorded attempts.

    The budget of the first call is reserved when the exchange is made, in the order in which
    seats are asked, so that who speaks on the last cents does not depend on who is quicker.

    Args:
        line: The way to the endpoint.
        call: What is asked.
        request: The question behind it.
        rendered: Its messages.
        key: What the answer is recorded under.
        deadline_s: When it must be over, on the monotonic clock.
        recorder: Keeps the attempts, or None.
        schema: The asked form.
    """

    def __init__(
        self,
        line: Line,
        call: Call,
        request: Request,
        rendered: Rendered,
        key: str,
        deadline_s: float,
        recorder: Recorder | None,
        schema: dict[str, Any],
    ) -> None:
        self._line, self._call, self._rendered = line, call, rendered
        self._schema = schema
        self._key, self._deadline_s, self._recorder = key, deadline_s, recorder
        ask = request.ask
        self._place = Place(request.step, ask.round, ask.seat, ask.kind)
        self._characters = len(call.system) + len(call.user)
        self.latency_ms = 0.0
        self._reserved: float | None = None
        self._over: ModelFault | None = None
        try:
            self._reserved = self._reserve()
        except ModelFault as fault:
            self._over = fault

    async def run(self) -> tuple[Attempt, ...]:
        """Make the calls; the last attempt is the answer, or the fault that stands for it."""
        attempts: list[Attempt] = []
        try:
            if self._over is not None:
                attempts.append(Attempt(1, "", fault=self._over.fault_kind, calls=0))
            else:
                await self._converse(attempts)
        finally:
            if self._reserved is not None:
                self._line.meter.settle(self._place.seat, self._reserved, Usage(), certain=True)
                self._reserved = None
        if self._recorder is not None:
            self._recorder.keep(self._key, self._rendered, self._place, attempts)
        return tuple(attempts)

    def _reserve(self) -> float:
        return self._line.meter.reserve(self._line.price, self._characters, self._call.max_tokens)

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    async def _converse(self, attempts: list[Attempt]) -> None:
        board = self._line.board
        probing = await board.enter(self._left_s())
        try:
            mode, retries = board.mode, 0
            while len(attempts) < _MOST_ATTEMPTS:
                fault = await self._attempt(attempts, mode)
                if fault is None:
                    board.worked(mode)
                    return
                another = board.after(mode, fault, probing)
                if another is not None:
                    mode = another
                    continue
                pause = pause_before_retry_s(fault, retries + 1, self._left_s())
                if pause is None:
                    return
                retries += 1
                await asyncio.sleep(pause)
        finally:
            if probing:
                board.leave()

    async def _attempt(self, attempts: list[Attempt], mode: Mode) -> ModelFault | None:
        """One call; appends what came of it. Returns the fault, or None."""
        number = len(attempts) + 1
        completion: Completion | None = None
        fault: ModelFault | None = None
        text, called = "", 0
        began = time.monotonic()
        try:
            if self._reserved is None:
                self._reserved = self._reserve()
            await self._line.limiter.turn(self._left_s())
            if self._left_s() <= 0:
                raise ModelFault("timeout")
            called = 1
            completion = await self._line.client.complete(
                self._call, parameters(mode, self._schema), self._left_s()
            )
            text, _ = answer_in(mode, completion)
        except ModelFault as error:
            fault = error
        except WarRoomError:
            raise
        except Exception as error:
            fault = ModelFault("unexpected", type(error).__name__)
        if called:
            self.latency_ms += (time.monotonic() - began) * 1000.0
        usage, certain = self._usage(called, completion, fault)
        if called and self._reserved is not None:
            self._line.meter.settle(self._place.seat, self._reserved, usage, certain=certain)
            self._reserved = None
        if completion is not None and fault is not None:
            text = (completion.arguments or completion.text)[:_KEPT_CHARACTERS]
        attempts.append(
            Attempt(
                attempt=number,
                mode=mode,
                text=text.encode("utf-8", "replace").decode(),
                fault=fault.fault_kind if fault else "",
                detail=fault.detail if fault else "",
                tokens_in=usage.tokens_in,
                tokens_out=usage.tokens_out,
                usd=usage.usd,
                calls=usage.calls,
            )
        )
        return fault

    def _usage(
        self, called: int, completion: Completion | None, fault: ModelFault | None
    ) -> tuple[Usage, bool]:
        """What the call cost, and whether that is certain."""
        if not called:
            return Usage(usd=0.0), True
        if completion is None:
            charged = fault is not None and fault.fault_kind in _MAY_BE_CHARGED
            return Usage(calls=1, usd=None if charged else 0.0), not charged
        tokens_in, tokens_out = completion.tokens_in, completion.tokens_out
        if tokens_in is None or tokens_out is None:
            return Usage(1, tokens_in or 0, tokens_out or 0, None), False
        usd = self._line.price.usd(tokens_in, tokens_out)
        return Usage(1, tokens_in, tokens_out, usd), usd is not None
