"""The right to drive an episode: taking it, keeping it while a room lives, giving it back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from world.errors import LeaseLostError, WarRoomError
from world.store.base import Lease, WorldStore
from world.store.leases import Holder, take_lease

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

BRANCH = "0"
LOCK_FILE = ".driven"
TTL_S = 3.0
_RENEW_S = 1.0
_ALONE = "room-in-process"


@contextmanager
def lease(
    store: WorldStore,
    run: str,
    say: Callable[[str], None] | None = None,
    branch: str = BRANCH,
) -> Iterator[Lease]:
    """Hold the lease of an episode while a block runs, however long a seat takes to answer.

    Args:
        store: Where the episode lives.
        run: Episode id.
        say: Told once, in one line, when there is another holder to wait for.
        branch: Branch of the episode.

    Raises:
        LeaseLostError: Another process is driving it.
    """
    if store.name == "inprocess":  # nobody else can see it
        alone = store.lease(run, branch, _ALONE, TTL_S)
        if alone is None:
            raise LeaseLostError(f"run {run} is being driven already", "", "")
        yield alone
        return
    with Holder() as holder:
        held = take_lease(store, run, branch, holder.token, TTL_S, say)
        try:
            with _renewed(store, held):
                yield held
        finally:
            # On the way out of an error the first error is the one to report.
            with suppress(WarRoomError):
                store.release(held)


@contextmanager
def folder_lock(folder: Path, required: bool) -> Iterator[None]:
    """Mark a run folder as being driven, while a block runs.

    Who drives a run is decided by the lease in its store. Only a resume on *another* store cannot
    see that lease; it needs this lock (`required`), which its driver holds as long as it lives.

    Raises:
        LeaseLostError: The lock is required and somebody holds it.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if required:
                raise LeaseLostError(
                    f"run {folder.name} is being driven by another process",
                    "on the store that it was started on",
                    "Stop that process first",
                ) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _renewed(store: WorldStore, held: Lease) -> Iterator[None]:
    """Renew once a second. A renewal that fails is found out by the next commit's fence."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(_RENEW_S):
            with suppress(WarRoomError):
                store.lease(held.episode, held.branch, held.holder, held.ttl_s)

    thread = threading.Thread(target=renew, daemon=True, name="lease")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_RENEW_S)
