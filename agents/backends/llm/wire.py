"""The event loop that model calls run in: one daemon thread a process.

Connections belong to an event loop. Rooms start and end loops of their own, so calls are sent to
one that outlives them all: connections are reused from step to step, whoever asks from whatever
loop or thread. Nothing here holds a process up: at its end open calls are dropped.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_PATIENCE_S = 2.0
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_process = 0
_closers: list[Callable[[], Awaitable[None]]] = []


def send(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` in the wire's loop; a cancelled future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, _running())


def at_exit(close: Callable[[], Awaitable[None]]) -> None:
    """Have `close` awaited in the wire's loop before the process ends."""
    _closers.append(close)


def _running() -> asyncio.AbstractEventLoop:
    global _loop, _thread, _process
    with _lock:
        if _loop is None or _process != os.getpid():  # a forked child has no thread of it
            _process = os.getpid()
            _closers.clear()
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="model-calls", daemon=True)
            _thread.start()
            atexit.register(_stop)
        return _loop


async def _close_all() -> None:
    mine = asyncio.current_task()
    for task in asyncio.all_tasks():
        if task is not mine:
            task.cancel()
    for close in _closers:
        await close()


def _stop() -> None:
    global _loop
    with _lock:
        loop, _loop = _loop, None
    if loop is None or _process != os.getpid() or _thread is None:
        return
    with contextlib.suppress(Exception):  # the process ends; there is nobody to tell
        asyncio.run_coroutine_threadsafe(_close_all(), loop).result(_PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    _thread.join(_PATIENCE_S)
    if not _thread.is_alive():
        loop.close()
