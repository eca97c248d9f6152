"""A process of its own that answers lines of JSON with lines of JSON.

Started once, without a shell, when it is asked first; ended with the run. What it writes to
standard error is kept (the last lines), for the reason why it failed. It is in a process group of
its own, so that Ctrl-C at the terminal is ours to handle and nothing of it is left behind.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque

from agents.faults import SeatFault
from agents.validate import cleaned_text

_CHUNK = 65_536
_GRACE_S = 2.0
_KEPT_ERRORS = 20
_LAST_WORDS_S = 2.0


class StdioLink:
    """A program that answers on its standard output.

    Args:
        command: Program and arguments; never read by a shell.
        max_bytes: Longest answer that is read.

    Attributes:
        owed: Questions that were asked and not answered yet.
    """

    def __init__(self, command: tuple[str, ...], max_bytes: int) -> None:
        self._command = command
        self._max_bytes = max_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._errors: deque[bytes] = deque(maxlen=_KEPT_ERRORS)
        self._listener: threading.Thread | None = None
        self._turn = threading.Lock()
        self._closed = False
        self.owed = 0

    def ask(self, question: bytes, deadline_s: float) -> bytes:
        """Write one line and read one line.

        Raises:
            SeatFault: ``refused`` (it cannot be started), ``died``, ``timeout`` or ``huge``.
        """
        until = time.monotonic() + deadline_s
        if not self._turn.acquire(timeout=deadline_s):
            raise SeatFault("timeout", "it is still busy with an earlier question")
        try:
            process = self._started()
            self._write(process, question + b"\n", until, deadline_s)
            self.owed += 1
            return self._line(process, until, deadline_s)
        finally:
            self._turn.release()

    def next_line(self, deadline_s: float) -> bytes:
        """The next line, after one that answered an earlier question.

        Raises:
            SeatFault: As `ask`.
        """
        until = time.monotonic() + deadline_s
        with self._turn:
            return self._line(self._started(), until, deadline_s)

    def close(self, grace_s: float = _GRACE_S) -> None:
        """End the process: its input ends, then it is told to, then it is killed.

        Args:
            grace_s: How long it may take to end by itself; half as long again once it was told.
        """
        self._closed = True
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, number)
            try:
                process.wait(grace_s if number is None else max(grace_s / 2, 0.05))
                break
            except subprocess.TimeoutExpired:
                continue
        with contextlib.suppress(OSError):  # whatever it started itself
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise SeatFault("died", "it was ended earlier")
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    list(self._command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                detail = getattr(error, "strerror", None) or str(error)
                raise SeatFault("refused", f"it cannot be started: {detail}") from error
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
            self._listener = threading.Thread(
                target=self._listen, args=(self._process,), daemon=True, name="remote-stderr"
            )
            self._listener.start()
        return self._process

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        if process.stderr is None:
            return
        with contextlib.suppress(OSError, ValueError):
            while line := process.stderr.readline(1024):
                self._errors.append(line)

    def _write(
        self, process: subprocess.Popen[bytes], content: bytes, until: float, deadline_s: float
    ) -> None:
        if process.stdin is None:
            raise SeatFault("died", "it has no standard input")
        descriptor = process.stdin.fileno()
        view = memoryview(content)
        while view:
            left = until - time.monotonic()
            if left <= 0:
                raise SeatFault("timeout", f"it did not read the question within {deadline_s:g} s")
            _, ready, _ = select.select([], [descriptor], [], left)
            if not ready:
                continue
            try:
                view = view[os.write(descriptor, view[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._died(process) from error

    def _line(self, process: subprocess.Popen[bytes], until: float, deadline_s: float) -> bytes:
        if process.stdout is None:
            raise SeatFault("died", "it has no standard output")
        descriptor = process.stdout.fileno()
        while b"\n" not in self._pending:
            if len(self._pending) > self._max_bytes:
                self._pending = b""
                self.close(0.0)  # its next line would begin in the middle of this one
                raise SeatFault("huge", f"more than {self._max_bytes} bytes; it was ended")
            left = until - time.monotonic()
            if left <= 0:
                raise SeatFault("timeout", f"no answer within {deadline_s:g} s")
            ready, _, _ = select.select([descriptor], [], [], left)
            if not ready:
                continue
            try:
                part = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                continue
            if not part:
                raise self._died(process)
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        self.owed = max(0, self.owed - 1)
        if len(line) > self._max_bytes:
            raise SeatFault("huge", f"{len(line)} bytes, at most {self._max_bytes} are read")
        return line

    def _died(self, process: subprocess.Popen[bytes]) -> SeatFault:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        status = process.poll()
        if status is not None and self._listener is not None:
            self._listener.join(_LAST_WORDS_S)  # a child of it may hold the pipe open for longer
        ended = "it closed its output" if status is None else f"it ended with status {status}"
        last = next((line for line in reversed(self._errors) if line.strip()), b"")
        said = " ".join(cleaned_text(last.decode("utf-8", "replace"), 120).split())
        return SeatFault("died", f"{ended}{': ' if said else ''}{said}")
