"""Appends acknowledged commits to a trace file, and takes one up again after a crash.

A commit is what the store acknowledged at once: run_started alone, all events of one step (the
last is always ``grade``), or run_ended alone. It is written in one call and flushed to the
operating system. Nothing is ever rewritten; a tail that no acknowledged commit stands behind is
cut off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from orchestrator.trace.events import START, Head
from orchestrator.trace.links import Torn, check_line, scan
from world.errors import LeaseLostError, TraceError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class _Mark(NamedTuple):
    """A place where the file may end.

    Attributes:
        step: Step of the last whole commit; -1 before run_started.
        end: File size in bytes.
        head: Where the chain stands.
        ended: Whether run_ended is written.
    """

    step: int = -1
    end: int = 0
    head: Head = START
    ended: bool = False


class TraceWriter:
    """One open trace file.

    Args:
        path: File to create; its folder must exist.

    Raises:
        TraceError: The file exists already, or its folder is not writable.
    """

    __slots__ = ("_descriptor", "_mark", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark = _Mark()
        self._descriptor = _open(path, os.O_CREAT | os.O_EXCL)

    @classmethod
    def resume(cls, path: Path) -> TraceWriter:
        """Take up an existing file: check its chain, cut off what is not a whole commit.

        What a crash can leave behind is a torn last line, or the first lines of a step; both
        are cut off. The store says what was acknowledged: compare `last_step` with it, then
        `truncate_after_step` when the file is ahead and `append` the store's log when it is
        behind.

        Raises:
            DigestMismatchError: A line was changed; the message names it.
            SchemaVersionError: The trace is of another schema.
            TraceError: The file is missing, no trace, or not writable.
        """
        mark = _last_commit(path)
        self = object.__new__(cls)
        self.path = path
        self._mark = mark
        self._descriptor = _open(path, 0)
        self._cut()
        return self

    @property
    def head(self) -> Head:
        """Where the chain stands; start the `Chain` that makes further lines here."""
        return self._mark.head

    @property
    def last_step(self) -> int:
        """Step of the last whole commit: 0 after run_started, -1 in an empty file."""
        return self._mark.step

    @property
    def ended(self) -> bool:
        """Whether the last commit is run_ended."""
        return self._mark.ended

    def append(self, lines: Sequence[bytes], *, durable: bool = False) -> None:
        """Write one commit, or several in order, and flush.

        Args:
            lines: Lines as `Chain.add` made them or the store gave them back, without line ends.
            durable: Wait until the disk has them (fsync), so that they survive a power cut and
                not only a killed process.

        Raises:
            DigestMismatchError: A line does not continue the chain; nothing is written.
            LeaseLostError: Another process has written to the file.
        TraceError: The disk refuses. What was written of this commit is cut off again.
        """
        mark = self._mark
        for number, line in enumerate(lines, start=mark.head.seq + 1):
            if mark.ended:
                raise TraceError(f"{self.path} has ended", "no event follows run_ended")
            link = check_line(self.path, line, number, mark.end + len(line) + 1, mark.head)
            mark = _Mark(link.step, link.end, link.head, link.type == "run_ended")
        with _locked(self._descriptor):
            self._check_alone()
            try:
                _write_all(self._descriptor, b"".join([line + b"\n" for line in lines]))
                if durable:
                    os.fsync(self._descriptor)
            except OSError as error:
                self._cut()
                raise _refused(self.path, error) from None
        self._mark = mark

    def _check_alone(self) -> None:
        """A room that slept past its lease may wake up when another has taken the run over."""
        size = os.fstat(self._descriptor).st_size
        if size != self._mark.end:
            raise LeaseLostError(
                f"{self.path} was written by another process",
                f"it has {size} bytes, this room left it at {self._mark.end}",
                "Let that process finish, then resume the run if it is not over",
            )

    def truncate_after_step(self, step: int) -> None:
        """Cut off everything after `step`, and run_ended in any case.

        Args:
            step: Last step to keep; 0 keeps run_started only, -1 nothing.

        Raises:
            TraceError: The file does not reach that step, or can no longer be read.
        """
        if step > self.last_step:
            raise TraceError(
                f"{self.path} ends after step {self.last_step}",
                f"it cannot be cut after step {step}",
                "Append the missing steps from the store",
            )
        if step < self.last_step or self.ended:
            self._mark = _last_commit(self.path, step) if step >= 0 else _Mark()
            self._cut()

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._mark.end)
        except OSError as error:
            raise _refused(self.path, error) from None


def _last_commit(path: Path, last_step: int | None = None) -> _Mark:
    """Where the last whole commit ends; with `last_step`, the last one up to that step."""
    mark = _Mark()
    for link in scan(path, resuming=True):
        if isinstance(link, Torn) or (last_step is not None and link.step > last_step):
            break
        if link.type == "run_ended" and last_step is not None:
            break
        if link.type in {"run_started", "grade", "run_ended"}:
            mark = _Mark(link.step, link.end, link.head, link.type == "run_ended")
    return mark


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | flags, 0o644)
    except FileExistsError:
        raise TraceError(
            f"{path} exists already", "a trace is never overwritten",
            "Resume that run, or start a new one",
        ) from None  # fmt: skip
    except OSError as error:
        raise _refused(path, error) from None


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Nobody else writes in between. The lock is held for one commit, never for a run."""
    if fcntl is None:
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _refused(path: Path, error: OSError) -> TraceError:
    return TraceError(
        f"{path} could not be written", error.strerror or str(error),
        "Free space or choose another folder with --out, then resume the run",
    )  # fmt: skip
