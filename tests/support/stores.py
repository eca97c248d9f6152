"""Stores to run tests on: every implementation there is, started for real."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from world.errors import StoreUnavailableError
from world.model import Cells, Delta, Snapshot
from world.store.base import Applied, EpisodeMeta, Lease, StoreSettings, WorldStore
from world.store.binaries import find_binary
from world.store.connect import connect_embedded, connect_fake, connect_url
from world.store.embedded import attach
from world.store.inprocess import InProcessStore

ROWS = 40
RESTRICTED = ("restricted", "no-functions-for-me")
"""A user that may run scripts but not load functions, as some hosted servers have it."""


@dataclass
class Backend:
    """One kind of store.

    Attributes:
        name: For test ids.
        again: Opens a further store over the same episodes, as another process would.
        raw: A bare client of the server, where there is one.
    """

    name: str
    open: Callable[[Backend], str]
    stores: list[WorldStore] = field(default_factory=list)
    again: Callable[[], WorldStore] | None = None
    raw: redis.Redis | None = None
    cleanup: list[Callable[[], Any]] = field(default_factory=list)

    @property
    def store(self) -> WorldStore:
        """The store."""
        return self.stores[0]

    def start(self) -> str:
        """Open it; says why where that cannot be."""
        return self.open(self)

    def stop(self) -> None:
        """Close everything."""
        for each in self.stores:
            each.disconnect()
        for step in reversed(self.cleanup):
            step()


def backends() -> list[Backend]:
    """Every store that can be tested here."""
    found = [
        Backend("inprocess", _open_inprocess),
        Backend("fakeredis", _open_fake),
        Backend("embedded", _open_embedded),
        Backend("scripts", _open_scripts),
    ]
    if shutil.which("redis-server"):
        found.append(Backend("path-server", _open_path_server))
    if os.environ.get("WARROOM_TEST_REDIS"):
        found.append(Backend("given-server", _open_given))
    return found


def _open_inprocess(backend: Backend) -> str:
    store = InProcessStore()
    backend.stores.append(store)
    backend.again = lambda: store
    return ""


def _open_fake(backend: Backend) -> str:
    backend.stores.append(connect_fake("tests"))
    backend.again = lambda: connect_fake("tests")
    return ""


def _open_embedded(backend: Backend) -> str:
    if find_binary() is None:
        return "no server binary runs here"
    settings = StoreSettings()
    backend.stores.append(connect_embedded(settings))
    backend.again = lambda: connect_embedded(settings)
    attachment = attach(Path(os.environ["XDG_STATE_HOME"]) / "warroom" / "store")
    assert attachment is not None
    backend.raw = bare_client(attachment.socket)
    backend.cleanup += [attachment.detach, backend.raw.close]
    return ""


def _open_scripts(backend: Backend) -> str:
    """The same server for a user without functions: everything goes through EVALSHA."""
    if find_binary() is None:
        return "no server binary runs here"
    attachment = attach(Path(tempfile.mkdtemp(prefix="wr-")))
    assert attachment is not None
    raw = bare_client(attachment.socket)
    user, password = RESTRICTED
    raw.acl_setuser(
        user,
        enabled=True,
        passwords=[f"+{password}"],
        keys=["*"],
        commands=["+@all", "-function", "-fcall"],
    )
    url = f"unix://{user}:{password}@{attachment.socket}"
    backend.stores.append(connect_url(url, StoreSettings()))
    backend.again = lambda: connect_url(url, StoreSettings())
    backend.raw = raw
    folder = attachment.folder
    backend.cleanup += [lambda: _remove_store(folder), attachment.detach, raw.close]
    return ""


def _open_path_server(backend: Backend) -> str:
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    process = start_server("redis-server", folder)
    url = f"unix://{folder / 's.sock'}"
    backend.cleanup += [lambda: shutil.rmtree(folder, ignore_errors=True), process.wait]
    backend.cleanup.append(process.terminate)
    return _open_url(backend, url)


def _open_given(backend: Backend) -> str:
    return _open_url(backend, os.environ["WARROOM_TEST_REDIS"])


def _open_url(backend: Backend, url: str) -> str:
    try:
        backend.stores.append(connect_url(url, StoreSettings()))
    except StoreUnavailableError as error:
        return error.line()
    backend.again = lambda: connect_url(url, StoreSettings())
    backend.raw = redis.Redis.from_url(url)
    backend.cleanup.append(backend.raw.close)
    return ""


def _remove_store(folder: Path) -> None:
    wait_until_stopped(folder)
    shutil.rmtree(folder, ignore_errors=True)


def bare_client(socket: Path) -> redis.Redis:
    """A client that does exactly what it is told, once."""
    return redis.Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0), protocol=2)


def start_server(binary: str, folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A server of the tests' own, on the socket ``s.sock`` of a folder, ready to answer."""
    socket = folder / "s.sock"
    command = [binary, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    process = subprocess.Popen(
        [*command, "--save", "", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with bare_client(socket) as client:
        for _ in range(1_000):
            try:
                client.ping()
            except redis.AuthenticationError:
                return process
            except redis.ConnectionError:
                time.sleep(0.01)
            else:
                return process
    process.kill()
    process.wait()
    raise RuntimeError(f"{binary} does not answer")


@contextmanager
def server(*options: str) -> Iterator[tuple[Path, redis.Redis]]:
    """A real server with options of its own: its socket and a bare client."""
    binary = find_binary()
    assert binary is not None
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    process = start_server(str(binary.path), folder, *options)
    client = bare_client(folder / "s.sock")
    try:
        yield folder / "s.sock", client
    finally:
        client.close()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def is_locked(path: Path) -> bool:
    """Whether some process holds this lock."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def wait_until_stopped(folder: Path, most_s: float = 10.0) -> bool:
    """Wait until neither a server nor a keeper lives in a folder."""
    until_s = time.monotonic() + most_s
    while time.monotonic() < until_s:
        if not is_locked(folder / "server.lock") and not is_locked(folder / "keeper.lock"):
            return True
        time.sleep(0.02)
    return False


def meta_of(episode: str, seed: int = 1) -> EpisodeMeta:
    """A meta."""
    return EpisodeMeta(episode, "cloudedge/hard", "0" * 64, seed, '{"protocol":"nash"}')


def start_snapshot(rows: int = ROWS) -> Snapshot:
    """A small world with shown and hidden columns."""
    return Snapshot(
        0,
        {"latency_ms": 120.0, "cost_usd_per_hour": float("nan"), "carbon_kg_per_day": -0.0},
        b"\x00hidden\xff",
        {
            "cpu_percent": np.arange(rows, dtype=np.float64),
            "size": np.arange(rows, dtype=np.int32)[::-1],
            "essential": np.zeros(rows, dtype=bool),
            "h.true_load": np.linspace(0, 1, rows),
        },
        tuple(f"vm-{row}\u00e9" for row in range(rows)),
        {"size": ("small", "large")},
    )


def delta_of(step: int, rows: int = ROWS) -> Delta:
    """What step `step` changes: a function of the step alone."""
    row = step % rows
    return Delta(
        {"latency_ms": 100.0 + step, "cost_usd_per_hour": 1.0 / (step + 1)},
        b"h%d" % step,
        (
            Cells("cpu_percent", 8 * row, np.float64(step).tobytes()),
            Cells("h.true_load", 8 * ((row * 7) % rows), np.float64(-step).tobytes()),
            Cells("cpu_percent", 8 * ((row + 1) % rows), np.float64(step + 0.5).tobytes()),
        ),
    )


def replayed(steps: int) -> dict[str, Any]:
    """The world after `steps` steps, computed without any store."""
    start = start_snapshot()
    metrics = dict(start.metrics)
    columns = {name: bytearray(column.tobytes()) for name, column in start.columns.items()}
    hidden = start.hidden
    for step in range(1, steps + 1):
        delta = delta_of(step)
        metrics.update(delta.metrics)
        hidden = delta.hidden
        for column, offset, data in delta.cells:
            columns[column][offset : offset + len(data)] = data
    held = {name: bytes(data) for name, data in columns.items()}
    return {"step": steps, "metrics": _packed(metrics), "hidden": hidden, "columns": held}


def as_stored(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot in the form of `replayed`, bit by bit."""
    return {
        "step": snapshot.step,
        "metrics": _packed(snapshot.metrics),
        "hidden": snapshot.hidden,
        "columns": {name: column.tobytes() for name, column in snapshot.columns.items()},
    }


def _packed(metrics: Mapping[str, float]) -> dict[str, bytes]:
    """NaN is not equal to itself; its bytes are."""
    return {name: np.float64(value).tobytes() for name, value in metrics.items()}


def created(store: WorldStore, episode: str, holder: str = "holder-a") -> Lease:
    """Create an episode and take its lease."""
    assert store.create(meta_of(episode), start_snapshot(), b"started")
    lease = store.lease(episode, "0", holder)
    assert lease is not None
    return lease


def advance(store: WorldStore, lease: Lease, first: int, last: int) -> None:
    """Apply steps `first` to `last`."""
    for step in range(first, last + 1):
        done = store.apply(
            lease, step - 1, request_of(lease, step), delta_of(step), b"events %d" % step
        )
        assert done == Applied("OK", step)


def request_of(lease: Lease, step: int) -> str:
    """The request id of a step."""
    return f"{lease.episode}/{lease.branch}/{step}"


def store_state(store: WorldStore, episode: str) -> object:
    """Everything that a refused write must leave as it was."""
    return (
        store.attach(episode),
        as_stored(store.world(episode)),
        [(entry.step, entry.kind, entry.request_id) for entry in store.log(episode)],
    )
