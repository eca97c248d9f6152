"""A real terminal for the real program: a pseudo-terminal that a test types into and reads."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.support.program import ENTRY, environment

_PATIENCE_S = 60.0


class TypedProgram:
    """The program on a pseudo-terminal of its own.

    Standard input and error are the terminal. Standard output is the terminal too, or a pipe.

    Args:
        arguments: Its command line.
        cwd: Where it is started.
        piped: Whether standard output is a pipe.
        variables: Environment variables.
    """

    def __init__(self, *arguments: str, cwd: Path, piped: bool = False, **variables: str) -> None:
        self._mine, theirs = pty.openpty()
        self.screen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(ENTRY), *arguments],
            cwd=cwd,
            env={**environment(cwd, **variables), "TERM": "xterm"},
            stdin=theirs,
            stdout=subprocess.PIPE if piped else theirs,
            stderr=theirs,
            preexec_fn=_take_terminal,  # noqa: PLW1509
        )
        os.close(theirs)

    def wait_for(self, text: str, times: int = 1) -> str:
        """Read the screen until `text` stands on it `times` times; answers all of it so far."""
        until = time.monotonic() + _PATIENCE_S
        while self.screen.count(text) < times:
            if time.monotonic() > until or not self._read(0.5):
                raise AssertionError(f"{text!r} did not come; the screen is:\n{self.screen}")
        return self.screen

    def enter(self, line: str | bytes) -> None:
        """Type a line and Enter."""
        raw = line.encode() if isinstance(line, str) else line
        os.write(self._mine, raw + b"\n")

    def press(self, key: bytes) -> None:
        """Type something without Enter: Ctrl-C is b"\\x03", Ctrl-D b"\\x04"."""
        os.write(self._mine, key)

    def finish(self) -> tuple[int, str]:
        """Read to the end; answers exit status and standard output (the screen where no pipe)."""
        until = time.monotonic() + _PATIENCE_S
        while self._read(0.5) and time.monotonic() < until:
            pass
        out = self.process.stdout.read().decode() if self.process.stdout else self.screen
        return self.process.wait(_PATIENCE_S), out

    def _read(self, seconds: float) -> bool:
        """Take what is on the screen; False when the program has left it."""
        ready, _, _ = select.select([self._mine], [], [], seconds)
        if not ready:
            return self.process.poll() is None
        try:
            part = os.read(self._mine, 65_536)
        except OSError:  # Linux's end of a pseudo-terminal
            return False
        self.screen += part.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(part)

    def __enter__(self) -> TypedProgram:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(_PATIENCE_S)
        if self.process.stdout:
            self.process.stdout.close()
        with contextlib.suppress(OSError):
            os.close(self._mine)


def _take_terminal() -> None:
    """In the child: make the terminal that is standard input the controlling one."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
