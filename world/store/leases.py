"""Who holds an episode, and how to know that a holder has died.

A lease lapses by itself after seconds. But a room that was killed and is resumed at once, on the
same host, should not wait for that. So a holder locks a file of its own for as long as it lives;
the kernel frees the lock even on kill -9. A token names that file. Where it is there and free,
its holder is dead; where it is not there (another host, another user, a container), nobody
knows, and the lease runs out.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from world.errors import LeaseLostError
from world.store.base import Lease, WorldStore

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; leases then run out
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
_TOKEN = re.compile(r"room-([0-9a-f]{32})\Z")
_OLD_S = 86_400.0
_POLL_S = 0.05


def runtime_folder() -> Path | None:
    """A folder of this user alone, gone with the session or the next boot; None where none is.

    A folder in a shared place is used only when it belongs to us and to nobody else.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(base) / "warroom" if base else Path(tempfile.gettempdir()) / f"warroom-{user}"
    try:
        folder.mkdir(mode=0o700, parents=False, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return folder if private else None


class Holder:
    """The identity under which one room holds its leases. Close it when the room is done.

    Attributes:
        token: What `WorldStore.lease` is given as holder. Unique; says nothing about the host.
    """

    def __init__(self) -> None:
        name = secrets.token_hex(16)
        self.token = f"room-{name}"
        self._file: int | None = None
        self._path: Path | None = None
        folder = runtime_folder()
        if fcntl is None or folder is None:
            return
        _sweep(folder)
        path = folder / f"{name}.lock"
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file, self._path = file, path

    def close(self) -> None:
        """Free the lock. Release the leases first."""
        file, self._file = self._file, None
        if file is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            os.close(file)

    def __enter__(self) -> Holder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_dead(token: str) -> bool:
    """Whether the holder with this token certainly lives no more.

    The token comes from a store that others may write: it is matched, never used as a path.
    """
    found = _TOKEN.match(token)
    folder = runtime_folder()
    if found is None or fcntl is None or folder is None:
        return False
    return _is_free(folder / f"{found.group(1)}.lock")


def take_lease(
    store: WorldStore,
    episode: str,
    branch: str,
    holder: str,
    ttl_s: float = 3.0,
    say: Callable[[str], None] | None = None,
) -> Lease:
    """Take the lease of a branch, waiting at most for the life of the one that is there.

    Args:
        store: Where the episode lives.
        episode: Episode id.
        branch: Branch id.
        holder: Token of the new holder.
        ttl_s: Seconds until the lease lapses unless renewed.
        say: Told once, in one line, when there is something to wait for.

    Raises:
        LeaseLostError: Another orchestrator is at work and renews its lease.
        EpisodeMissingError: There is no such episode.
    """
    until_s = None
    while True:
        lease = store.lease(episode, branch, holder, ttl_s)
        if lease is not None:
            return lease
        now_s = time.monotonic()
        if until_s is None:
            until_s = now_s + ttl_s + 0.5
            if say is not None:
                say(
                    f"episode {episode} is leased to another orchestrator; "
                    f"waiting up to {ttl_s:g} s for it to lapse"
                )
        if now_s >= until_s:
            raise LeaseLostError(
                f"episode {episode!r} is being written by another orchestrator",
                f"it renewed its lease during the last {ttl_s:g} s",
                "Stop that one first, or start a run of your own",
            )
        time.sleep(_POLL_S)


def _is_free(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _sweep(folder: Path) -> None:
    """Remove what killed holders left behind a day or more ago."""
    with contextlib.suppress(OSError):
        newest_s = max((each.stat().st_mtime for each in folder.iterdir()), default=0.0)
        for path in folder.glob("*.lock"):
            if path.stat().st_mtime < newest_s - _OLD_S and _is_free(path):
                path.unlink(missing_ok=True)
                _log.debug("removed the lock of a dead holder: %s", path.name)
