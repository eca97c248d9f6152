"""SIGINT and SIGTERM: the first asks a run to stop after its step, the second ends the process.

A run that is asked to stop finishes its step, gives its lease back and stays resumable. While no
step has begun there is nothing to finish: the first signal ends the process. A signal that ends
it does not wait for anybody: what must still be said (the log's last line, how to resume) is
written straight to the descriptors. Committed steps are safe either way: the trace is flushed
after each of them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_INTERRUPTED = 1
_INTERRUPTED = "interrupted"


class Stoppable(Protocol):
    """Something that can be asked to stop after the step in progress."""

    def request(self) -> None:
        """Ask."""
        ...


def end_on_signals() -> None:
    """From now on either signal ends the process at once, with one line and exit status 1.

    For the time before a command has anything to finish: its modules are still being loaded.
    """
    for number in _SIGNALS:
        signal.signal(number, end_at_once)


def end_at_once(number: int, frame: FrameType | None) -> None:
    """A signal handler that says that the command was interrupted, and ends the process."""
    del number, frame
    _write(2, _INTERRUPTED)
    os._exit(EXIT_INTERRUPTED)


@contextmanager
def stop_on_signals(
    flag: Stoppable,
    begun: Callable[[], bool],
    on_first: Callable[[], str],
    on_last: Callable[[], dict[int, str]],
) -> Iterator[None]:
    """Handle both signals while the body runs; put the old handlers back afterwards.

    Args:
        flag: Is asked to stop at the first signal, once a step has begun.
        begun: Whether one has; until then the first signal ends the process.
        on_first: What to tell the person who has to wait for the step, for standard error.
        on_last: Descriptor → what must be written to it before the process ends.
    """
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        del number, frame
        seen += 1
        if seen == 1 and begun():
            flag.request()
            _write(2, on_first())
            return
        if not begun():
            _write(2, _INTERRUPTED)
        for descriptor, text in on_last().items():
            _write(descriptor, text)
        # No unwinding: a seat that hangs in a thread could hold it for ever.
        os._exit(EXIT_INTERRUPTED)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(descriptor: int, text: str) -> None:
    """Write without Python's buffers: a handler may have interrupted a write to the same one."""
    if not text:
        return
    try:
        os.write(descriptor, (text.rstrip("\n") + "\n").encode("utf-8", "backslashreplace"))
    except OSError:
        return
