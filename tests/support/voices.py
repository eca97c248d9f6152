"""Personas with manners of their own, for tests of how the room asks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agents.persona import load_persona
from agents.persona_schema import PersonaSpec
from policies.records import Proposal, Reply, Request
from world.actions import Action


class Voice:
    """A seat that answers with what a function makes of the request.

    Args:
        answer: Makes the answer; may raise, sleep or return anything at all.
        deadline_s: The seat's deadline.
        blocking: Run in a thread of the engine's.
        asynchronous: Answer with an awaitable, after `delay_s`.
        journalled: Keep replies in the store's journal.
        delay_s: How long an asynchronous answer takes.
    """

    def __init__(
        self,
        seat: str,
        answer: Callable[[Request], Any],
        *,
        deadline_s: float = 5.0,
        blocking: bool = False,
        asynchronous: bool = False,
        journalled: bool = False,
        delay_s: float = 0.0,
    ) -> None:
        spec = load_persona("silent")
        self.spec: PersonaSpec = spec.model_copy(
            update={"backend": spec.backend.model_copy(update={"timeout_s": deadline_s})}
        )
        self.seat = seat
        self.blocking = blocking
        self.asynchronous = asynchronous
        self.journalled = journalled
        self.delay_s = delay_s
        self.asked: list[tuple[int, str, int]] = []
        self._answer = answer

    def answer(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer, and note that we were asked."""
        self.asked.append((request.step, request.ask.kind, request.ask.round))
        if self.asynchronous:
            return self._later(request)
        result: Reply = self._answer(request)
        return result

    async def _later(self, request: Request) -> Reply:
        await asyncio.sleep(self.delay_s)
        result: Reply = self._answer(request)
        return result


def proposing(*kinds: str, rationale: str = "because") -> Callable[[Request], Reply]:
    """An answer that proposes single actions in order of preference."""

    def answer(request: Request) -> Reply:
        del request
        return Reply(tuple(Proposal((Action(kind),), rationale) for kind in kinds))

    return answer


def hanging(release: threading.Event, limit_s: float = 20.0) -> Callable[[Request], Reply]:
    """An answer that does not come until `release` is set."""

    def answer(request: Request) -> Reply:
        del request
        release.wait(limit_s)
        return Reply()

    return answer


def jittering(seat_delay_s: Callable[[int], float], *kinds: str) -> Callable[[Request], Reply]:
    """An answer that takes a different time at every step."""
    plain = proposing(*kinds)

    def answer(request: Request) -> Reply:
        time.sleep(seat_delay_s(request.step))
        return plain(request)

    return answer
