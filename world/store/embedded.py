"""Start the embedded server of a folder, or attach to it where it runs.

Three locks in the folder, all freed by the kernel when a process dies, however it dies:

- ``elect.lock`` (exclusive, briefly): nobody else starts, attaches or stops meanwhile;
- ``clients.lock`` (shared, for life): somebody uses the server;
- ``server.lock`` and ``keeper.lock``: held by the server and by the keeper themselves, as a
  descriptor that they inherit, so that "is it alive" is never a guess from a pid or a socket.

The server outlives whoever started it and belongs to all clients. The keeper stops it when the
last one is gone; every client that comes makes sure that there is a keeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from world.errors import StoreUnavailableError
from world.store import keeper
from world.store.binaries import find_binary
from world.store.folder import prepare_folder, socket_path

_START_S = 20.0
_ELECT_S = 60.0
_PING_S = 5.0
_POLL_S = 0.003
_LOG_BYTES = 2**20
_KEPT_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
_children: set[int] = set()


@dataclass
class Attachment:
    """Our hold on an embedded server.

    Attributes:
        folder: Its folder.
        socket: Where it listens.
        temporary: Whether the folder goes with the last client.
    """

    folder: Path
    socket: Path
    temporary: bool
    _clients: int | None = None

    def revive(self) -> None:
        """Start the server again if it has died."""
        with _elected(self.folder):
            _ensure_server(self.folder, self.socket, self.temporary)
            _ensure_keeper(self.folder, self.socket, self.temporary)

    def detach(self) -> None:
        """Use the server no more. The last one to say so ends it."""
        clients, self._clients = self._clients, None
        if clients is not None:
            os.close(clients)
        _reap()


def attach(folder: Path | None) -> Attachment | None:
    """Attach to the server of a folder, starting it where it does not run.

    Args:
        folder: The folder; None makes a temporary one that goes with its last client.

    Returns:
        None where no server runs and no server binary does either.

    Raises:
        ConfigError: The folder cannot be used.
        StoreUnavailableError: The server does not start, or does not answer.
    """
    if folder is not None:
        return _attach(prepare_folder(folder), temporary=False)
    if find_binary() is None:
        return None
    made = Path(tempfile.mkdtemp(prefix="warroom-store-")).resolve()
    try:
        return _attach(made, temporary=True)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _attach(place: Path, temporary: bool) -> Attachment | None:
    address = socket_path(place)
    with _elected(place):
        clients = _open_lock(place / "clients.lock")
        try:
            # Only a keeper that looks around holds this one exclusively, for an instant.
            fcntl.flock(clients, fcntl.LOCK_SH)
            if not _ensure_server(place, address, temporary):
                os.close(clients)
                return None
            _ensure_keeper(place, address, temporary)
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(clients)
            raise
    return Attachment(place, address, temporary, clients)


def _ensure_server(folder: Path, address: Path, temporary: bool) -> bool:
    """Have a server that answers; False where no binary runs here. Needs elect.lock."""
    _reap()
    lock = _open_lock(folder / "server.lock")
    try:
        until_s = time.monotonic() + _PING_S
        while not _try_lock(lock):
            if _answers(address):
                return True
            # One that was just killed holds its lock for an instant longer.
            if time.monotonic() > until_s:
                raise _silent(folder)
            time.sleep(_POLL_S)
        binary = find_binary()
        if binary is None:
            return False
        _shorten_log(folder / "server.log")
        pid = _spawn(_server_command(binary.path, folder, address, temporary), [lock], folder)
    finally:
        os.close(lock)
    _await_answer(folder, address, pid)
    return True


def _ensure_keeper(folder: Path, address: Path, temporary: bool) -> None:
    """Have a keeper. Needs elect.lock."""
    with contextlib.ExitStack() as opened:
        locks = []
        for name in keeper.LOCKS:
            locks.append(_open_lock(folder / f"{name}.lock"))
            opened.callback(os.close, locks[-1])
        if not _try_lock(locks[0]):
            return
        mode = "temporary" if temporary else "durable"
        script = str(Path(keeper.__file__).resolve())
        python = sys.executable or "python3"
        _spawn([python, "-I", "-S", script, str(folder), str(address), mode], locks, folder)


def _server_command(binary: Path, folder: Path, address: Path, temporary: bool) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(address),
        "unixsocketperm": "700",
        "dir": str(folder),
        "logfile": str(folder / "server.log"),
        "appendonly": "no" if temporary else "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [
        str(binary),
        *(word for name, value in options.items() for word in (f"--{name}", value)),
    ]


def _spawn(command: Sequence[str], locks: Sequence[int], folder: Path) -> int:
    """Start a process of its own session that inherits locks as descriptors 3 and up.

    Returns:
        Its pid, which the first lock's file names from now on.
    """
    log = str(folder / "server.log")
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    # Out of the way of the numbers that they get in the new process.
    held = [fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, 16) for lock in locks]
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                *(
                    (os.POSIX_SPAWN_DUP2, each, keeper.FIRST_LOCK + place)
                    for place, each in enumerate(held)
                ),
            ],
            setsid=True,
        )
    except OSError as error:
        raise StoreUnavailableError(
            f"{command[0]} cannot be started",
            error.strerror or "",
            "Use --store redis://… or --store inprocess",
        ) from None
    finally:
        for each in held:
            os.close(each)
    _children.add(pid)
    os.ftruncate(locks[0], 0)
    os.pwrite(locks[0], b"%d\n" % pid, 0)
    return pid


def _await_answer(folder: Path, address: Path, pid: int) -> None:
    """Wait until the server that we have just started answers."""
    until_s = time.monotonic() + _START_S
    while not _answers(address):
        if _has_ended(pid):
            raise StoreUnavailableError(
                f"the built-in store in {folder} does not start",
                _last_log_line(folder),
                f"Look into {folder / 'server.log'}, or use --store :memory:",
            )
        if time.monotonic() > until_s:
            raise _silent(folder)
        time.sleep(_POLL_S)


def _silent(folder: Path) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the built-in store in {folder} does not answer",
        f"its server (process {_server_pid(folder)}) runs but says nothing on its socket",
        "Stop that process, and run the same command again",
    )


def _answers(address: Path) -> bool:
    """Whether a server answers, or is loading its data, which is as good."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1.0)
            line.connect(str(address))
            line.sendall(b"*1\r\n$4\r\nPING\r\n")
            return line.recv(64).startswith((b"+PONG", b"-LOADING", b"-BUSY"))
    except OSError:
        return False


@contextlib.contextmanager
def _elected(folder: Path) -> Iterator[None]:
    """Hold elect.lock."""
    lock = _open_lock(folder / "elect.lock")
    try:
        until_s = time.monotonic() + _ELECT_S
        while not _try_lock(lock):
            if time.monotonic() > until_s:
                raise StoreUnavailableError(
                    f"the built-in store in {folder} is locked",
                    f"another process has been starting or stopping it for {_ELECT_S:g} s",
                    "End that process, and run the same command again",
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_ended(pid: int) -> bool:
    _reap()
    return pid not in _children


def _reap() -> None:
    """Take note of children that have ended, so that they do not stay as zombies."""
    for pid in tuple(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def _server_pid(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(int((folder / "server.lock").read_text(encoding="ascii")))
    return "unknown"


def _shorten_log(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > _LOG_BYTES:
            os.truncate(path, 0)


def _last_log_line(folder: Path) -> str:
    with contextlib.suppress(OSError):
        with (folder / "server.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][-300:]
    return "it ended at once and left no word"
