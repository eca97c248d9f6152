"""How a seat is asked, whatever voices it: inline, in a thread of ours, or awaited.

A persona that raises, hangs past its deadline or answers nonsense becomes a recorded fallback;
the room goes on. Blocking backends run in daemon threads of ours, so that a hung one can hold
neither the step (its deadline passes) nor the process (daemon threads end with it).
"""

from __future__ import annotations

import asyncio
import inspect
import re
import signal
import threading
from collections.abc import Awaitable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from types import FrameType
from typing import Any

from agents.faults import SeatEndsRun, SeatFault, SpentFault
from agents.seat import Persona, deadline_s
from agents.validate import fallback_reply, validated_reply
from policies.records import Reply, Request

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MAX_REASON = 200
_MAY_END_RUN = frozenset({"human", "llm", "replay"})


def ask_now(persona: Persona, request: Request) -> Reply:
    """One seat's validated answer, or its recorded fallback. Never raises for a persona's fault."""
    if persona.blocking:
        return _settle(_in_thread(persona, request), persona, request)
    try:
        answer = _spoken(persona, request)
        if type(answer) is not Reply and inspect.isawaitable(answer):
            answer = asyncio.run(asyncio.wait_for(_as_coroutine(answer), _deadline(persona)))
        return _accepted(request, answer)
    except Exception as error:
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
            answer = _spoken(persona, request)
        if inspect.isawaitable(answer):
            answer = await asyncio.wait_for(_as_coroutine(answer), _deadline(persona))
        return _accepted(request, answer)
    except Exception as error:
        return _fallback(persona, request, error)


async def ask_all(
    personas: Mapping[str, Persona], requests: tuple[Request, ...]
) -> dict[str, Reply]:
    """One parallel batch of asks in an event loop: a round waits for its slowest seat."""
    answers = await asyncio.gather(
        *(ask(personas[request.ask.seat], request) for request in requests)
    )
    return {request.ask.seat: answer for request, answer in zip(requests, answers, strict=True)}


class _Quit(Exception):
    """A persona raised what would end the process: SystemExit, KeyboardInterrupt and the like.

    No persona may end the room; only a signal may.
    """


def _spoken(persona: Persona, request: Request) -> Any:
    """What a persona says on the spot; Ctrl-C while it speaks still interrupts."""
    with _Interrupts() as interrupts:
        try:
            return persona.answer(request)
        except Exception:
            raise
        except BaseException as error:
            if interrupts.came or _may_end_run(persona, error):
                raise
            raise _Quit(_named(error)) from error


async def _as_coroutine(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the deadline, or the whole room
            raise
        raise _Quit(_named(error)) from error
    except (SystemExit, KeyboardInterrupt) as error:
        # Inside a task either would stop the event loop, not the persona. Ctrl-C comes as a
        # cancellation here.
        raise _Quit(_named(error)) from error


class _Interrupts:
    """Tells a KeyboardInterrupt of Ctrl-C from one that code raised, in the main thread.

    A program that handles SIGINT itself never sees one of Ctrl-C, nor does another thread.

    Attributes:
        came: Whether a signal came.
    """

    __slots__ = ("_ours", "came")

    def __init__(self) -> None:
        self.came = False
        self._ours = False

    def __enter__(self) -> _Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
            self._ours = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)


def _may_end_run(persona: Persona, error: BaseException) -> bool:
    """Whether an error ends the run: a person left, or a recording no longer fits.

    Only our own backends have that power; a persona of somebody else's that raises it is at fault.
    """
    return isinstance(error, SeatEndsRun) and persona.spec.backend.kind in _MAY_END_RUN


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
            kept = isinstance(error, Exception) or _may_end_run(persona, error)
            fault = error if kept else _Quit(_named(error))
            if not future.cancelled():
                future.set_exception(fault)
        else:
            if not future.cancelled():
                future.set_result(result)

    threading.Thread(target=work, daemon=True, name=f"seat-{request.ask.seat}").start()
    return future


def _settle(future: Future[object], persona: Persona, request: Request) -> Reply:
    try:
        return _accepted(request, future.result(_deadline(persona)))
    except Exception as error:
        return _fallback(persona, request, error)


def _fallback(persona: Persona, request: Request, error: BaseException) -> Reply:
    if isinstance(error, TimeoutError | FutureTimeout):
        reason = f"no answer within {_deadline(persona):g} s"
    else:
        reason = str(error) if isinstance(error, _Quit) else _named(error)
        if isinstance(error, SeatFault):  # its own words are the record
            reason = _ADDRESS.sub("0x…", error.line())
    spec = persona.spec
    if not isinstance(error, SpentFault):
        return fallback_reply(request.world, request, reason[:_MAX_REASON], spec)
    if error.by_rules:
        spec = spec.model_copy(
            update={"backend": spec.backend.model_copy(update={"fallback": "rules"})}
        )
    reply = fallback_reply(request.world, request, reason[:_MAX_REASON], spec)
    return replace(reply, usage=error.usage, notes=error.notes)


def _named(error: BaseException) -> str:
    """``Kind: text`` of an error, without what differs from run to run."""
    text = _ADDRESS.sub("0x…", " ".join(str(error).split()))
    name = type(error).__name__
    return f"{name}: {text}" if text else name
