"""How a seat is asked, whatever voices it: inline, in a thread of ours, or awaited.

A persona that raises, hangs past its deadline or answers nonsense becomes a recorded fallback;
the room goes on. Blocking backends run in daemon threads of ours, so that a hung one can hold
neither the step (its deadline passes) nor the process (daemon threads end with it).
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Awaitable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from typing import Any

from agents.seat import Persona, deadline_s
from agents.validate import fallback_reply, validated_reply
from policies.records import Reply, Request

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MAX_REASON = 200


def ask_now(persona: Persona, request: Request) -> Reply:
    """One seat's validated answer, or its recorded fallback. Never raises for a persona's fault."""
    if persona.blocking:
        return _settle(_in_thread(persona, request), persona, request)
    try:
        answer = persona.answer(request)
        if type(answer) is not Reply and inspect.isawaitable(answer):
            answer = asyncio.run(asyncio.wait_for(_as_coroutine(answer), _deadline(persona)))
        return _accepted(request, answer)
    except _PERSONA_FAULTS as error:
        return _fallback(persona, request, error)


def ask_all_now(personas: Mapping[str, Persona], requests: tuple[Request, ...]) -> dict[str, Reply]:
    """One parallel batch of asks; blocking seats overlap, quick ones run inline."""
    waiting = {
        request.ask.seat: _in_thread(personas[request.ask.seat], request)
        for request in requests
        if personas[request.ask.seat].blocking
    }
    replies: dict[str, Reply] = {}
    for request in requests:
        seat = request.ask.seat
        if seat not in waiting:
            replies[seat] = ask_now(personas[seat], request)
    for request in requests:
        seat = request.ask.seat
        if seat in waiting:
            replies[seat] = _settle(waiting[seat], personas[seat], request)
    return {request.ask.seat: replies[request.ask.seat] for request in requests}


async def ask(persona: Persona, request: Request) -> Reply:
    """Like `ask_now`, inside an event loop; awaits asynchronous and blocking seats."""
    try:
        if persona.blocking:
            answer: Any = asyncio.wrap_future(_in_thread(persona, request))
        else:
            answer = persona.answer(request)
        if inspect.isawaitable(answer):
            answer = await asyncio.wait_for(_as_coroutine(answer), _deadline(persona))
        return _accepted(request, answer)
    except _PERSONA_FAULTS as error:
        return _fallback(persona, request, error)


async def ask_all(
    personas: Mapping[str, Persona], requests: tuple[Request, ...]
) -> dict[str, Reply]:
    """One parallel batch of asks in an event loop: a round waits for its slowest seat."""
    answers = await asyncio.gather(
        *(ask(personas[request.ask.seat], request) for request in requests)
    )
    return {request.ask.seat: answer for request, answer in zip(requests, answers, strict=True)}


# SystemExit is a persona's fault too: no persona may end the room. KeyboardInterrupt is not.
_PERSONA_FAULTS = (Exception, SystemExit)


async def _as_coroutine(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except SystemExit as error:  # inside a task it would stop the event loop, not the persona
        raise RuntimeError(f"SystemExit: {error}") from error


def _deadline(persona: Persona) -> float:
    return deadline_s(persona.spec)


def _accepted(request: Request, answer: object) -> Reply:
    """Validate; the engine's own fields are never taken from a persona."""
    reply = validated_reply(request, answer)
    return replace(reply, fallback="") if reply.fallback else reply


def _in_thread(persona: Persona, request: Request) -> Future[object]:
    future: Future[object] = Future()

    def work() -> None:
        try:
            result: object = persona.answer(request)
            if inspect.isawaitable(result):
                result = asyncio.run(_as_coroutine(result))
        except BaseException as error:
            if not future.cancelled():
                future.set_exception(error)
        else:
            if not future.cancelled():
                future.set_result(result)

    threading.Thread(target=work, daemon=True, name=f"seat-{request.ask.seat}").start()
    return future


def _settle(future: Future[object], persona: Persona, request: Request) -> Reply:
    try:
        return _accepted(request, future.result(_deadline(persona)))
    except _PERSONA_FAULTS as error:
        return _fallback(persona, request, error)


def _fallback(persona: Persona, request: Request, error: BaseException) -> Reply:
    if isinstance(error, TimeoutError | FutureTimeout):
        reason = f"no answer within {_deadline(persona):g} s"
    else:
        text = _ADDRESS.sub("0x…", " ".join(str(error).split()))
        name = type(error).__name__
        reason = f"{name}: {text}" if text else name
    return fallback_reply(request.world, request, reason[:_MAX_REASON], persona.spec)
