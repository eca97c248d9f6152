"""A terminal, read line by line with a deadline, whatever is typed there.

Prompts go to the terminal itself (standard error, or /dev/tty where that was redirected), so that
standard output stays clean. One question at a time: two people at one keyboard wait for each
other. Nothing here can hang: input is polled, and a process that may not read its terminal (in
the background, or without one) has none.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from agents.faults import SeatEndsRun, SeatFault
from agents.validate import cleaned_text

MAX_LINE = 4096
"""Longest line that is read, in bytes; what goes beyond is dropped, and said."""
_POLL_S = 0.1
_REMINDERS_S = (60.0, 30.0, 10.0)
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])?")
_KEYBOARD = threading.Lock()
_said: set[str] = set()


class Terminal:
    """A person's keyboard and screen.

    Args:
        keyboard: Descriptor of a terminal to read.
        screen: Where prompts go.
        stopped: Whether the run was asked to stop (Ctrl-C).
    """

    def __init__(
        self, keyboard: int, screen: TextIO, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._keyboard = keyboard
        self._screen = screen
        self._stopped = stopped

    @staticmethod
    def find(stopped: Callable[[], bool] = lambda: False) -> Terminal | None:
        """The terminal of this process, or None where nobody could answer."""
        try:
            keyboard = sys.stdin.fileno()
            if not os.isatty(keyboard) or os.tcgetpgrp(keyboard) != os.getpgrp():
                return None
            if sys.stderr.isatty():
                return Terminal(keyboard, sys.stderr, stopped)
            return Terminal(keyboard, open("/dev/tty", "w", encoding="utf-8"), stopped)  # noqa: PTH123
        except (OSError, ValueError, AttributeError):
            return None

    def converse(
        self, text: str, prompt: str, hear: Callable[[str], str], deadline_s: float
    ) -> None:
        """Show a question and read lines until one of them settles it.

        Args:
            text: What is shown first.
            prompt: What stands before the cursor; the seconds left are added.
            hear: Given each line; answers what to say back, or "" when the line settled it.
            deadline_s: Seconds for the whole conversation, from the moment it is shown.

        Raises:
            SeatFault: ``no_answer``: the deadline passed, or the input ended.
            SeatEndsRun: The run was asked to stop while it waited for the person.
        """
        with _KEYBOARD:
            until = time.monotonic() + deadline_s
            self._drain()
            self.show(text)
            while True:
                line = self._line(prompt, until, deadline_s)
                reply = hear(line)
                if not reply:
                    return
                self.show(reply)

    def show(self, text: str) -> None:
        """Write lines; everything in them that is not ours was cleaned before."""
        try:
            self._screen.write(text.rstrip("\n") + "\n")
            self._screen.flush()
        except (OSError, ValueError) as error:
            raise SeatFault("no_answer", "the terminal is gone") from error

    def _line(self, prompt: str, until: float, deadline_s: float) -> str:
        reminders = [mark for mark in _REMINDERS_S if mark < until - time.monotonic()]
        self._prompt(prompt, until)
        raw = b""
        too_long = False
        while True:
            if self._stopped():
                raise SeatEndsRun
            left = until - time.monotonic()
            if left <= 0:
                self.show("")
                raise SeatFault("no_answer", f"no answer within {deadline_s:g} s")
            if reminders and left <= reminders[0]:
                reminders.pop(0)
                self.show("")
                self._prompt(prompt, until)
            part = self._read(min(_POLL_S, left))
            if part is None:
                continue
            if not part:
                self.show("")
                raise SeatFault("no_answer", "the input ended")
            raw += part
            too_long = too_long or len(raw.partition(b"\n")[0]) > MAX_LINE
            if b"\n" in raw:
                break
            if too_long:
                raw = raw[:MAX_LINE]
        if too_long:
            self.show(f"  (that line was longer than {MAX_LINE} bytes; it was not read)")
            return ""
        return readable(raw.partition(b"\n")[0])

    def _prompt(self, prompt: str, until: float) -> None:
        left = max(0, round(until - time.monotonic()))
        try:
            self._screen.write(f"{prompt} ({left} s left)> ")
            self._screen.flush()
        except (OSError, ValueError) as error:
            raise SeatFault("no_answer", "the terminal is gone") from error

    def _read(self, seconds: float) -> bytes | None:
        """Bytes that were typed, b"" at the end of the input, None when nothing came."""
        try:
            ready, _, _ = select.select([self._keyboard], [], [], seconds)
            return os.read(self._keyboard, MAX_LINE) if ready else None
        except (OSError, ValueError):
            return b""

    def _drain(self) -> None:
        """Forget what was typed before the question was shown: it answers an earlier one."""
        try:
            import termios

            termios.tcflush(self._keyboard, termios.TCIFLUSH)
        except (ImportError, OSError, ValueError):
            return
        except Exception:  # termios.error is no OSError
            return


def readable(raw: bytes) -> str:
    r"""A typed line as text: escape sequences and control characters taken out.

    >>> readable(b"sc\x1b[31male_up\x07 ")
    'scale_up'
    """
    text = _SEQUENCE.sub("", raw.decode("utf-8", "replace"))
    return cleaned_text(text, MAX_LINE).replace("\n", " ").replace("\t", " ").strip()


def say_once(text: str) -> None:
    """One line to standard error, the same line once in a process."""
    if text in _said:
        return
    _said.add(text)
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return
