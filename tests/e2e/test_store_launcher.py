"""The embedded server: one per folder however many come at once, and none when all are gone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store_processes import PROCESSES, count_once, start
from tests.support.stores import bare_client, is_locked, wait_until_stopped
from world.errors import StoreUnavailableError
from world.store import embedded
from world.store.binaries import find_binary
from world.store.embedded import Attachment, attach

pytestmark = [
    pytest.mark.crash,
    pytest.mark.redis,
    pytest.mark.skipif(find_binary() is None, reason="no server binary runs here"),
]
_CLIENT = """
import sys, time
from pathlib import Path
import redis
from world.store.embedded import attach
place = Path(sys.argv[1]) if sys.argv[1] else None
held = attach(place)
redis.Redis(unix_socket_path=str(held.socket)).incr("visits")
print(held.folder, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state folder with a short path, empty of processes in the end."""
    made = Path(tempfile.mkdtemp(prefix="wr-"))
    yield made
    assert wait_until_stopped(made), "a server or keeper outlived its clients"
    shutil.rmtree(made, ignore_errors=True)


def _attached(folder: Path) -> Attachment:
    found = attach(folder)
    assert found is not None
    return found


def _pid(folder: Path, name: str) -> int:
    return int((folder / f"{name}.lock").read_text())


def _wait_free(lock: Path) -> None:
    for _ in range(1_000):
        if not is_locked(lock):
            return
        time.sleep(0.01)
    pytest.fail(f"{lock.name} is still held")


def _client(folder: Path | None) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, str(folder or "")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    place = Path(process.stdout.readline().strip())
    process.stdout.close()
    return process, place


def test_eight_processes_at_once_share_one_server(folder: Path) -> None:
    gate, results = PROCESSES.Barrier(8), PROCESSES.Queue()
    processes = [start(count_once, str(folder), gate, results) for _ in range(8)]
    servers = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join(60)
    assert len(servers) == 1
    held = _attached(folder)
    with bare_client(held.socket) as client:
        assert client.get("counted") == b"8"
    held.detach()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_client_that_is_ended_leaves_no_server_and_no_keeper_behind(
    folder: Path, how: signal.Signals
) -> None:
    process, _ = _client(folder)
    assert is_locked(folder / "server.lock")
    assert is_locked(folder / "keeper.lock")
    process.send_signal(how)
    process.wait()
    assert wait_until_stopped(folder, most_s=10.0)
    assert not (folder / "store.sock").exists()
    held = _attached(folder)
    with bare_client(held.socket) as client:
        assert client.get("visits") == b"1"
    held.detach()


def test_the_server_stays_while_one_client_is_left(folder: Path) -> None:
    process, _ = _client(folder)
    held = _attached(folder)
    pid = _pid(folder, "server")
    process.kill()
    process.wait()
    time.sleep(0.6)
    assert _pid(folder, "server") == pid
    with bare_client(held.socket) as client:
        assert client.ping()
    held.detach()


def test_a_killed_keeper_is_replaced_by_the_next_client(folder: Path) -> None:
    first = _attached(folder)
    os.kill(_pid(folder, "keeper"), signal.SIGKILL)
    _wait_free(folder / "keeper.lock")
    second = _attached(folder)
    assert is_locked(folder / "keeper.lock")
    first.detach()
    second.detach()


def test_a_server_without_keeper_or_client_is_taken_over_with_its_data(folder: Path) -> None:
    process, _ = _client(folder)
    os.kill(_pid(folder, "keeper"), signal.SIGKILL)
    process.kill()
    process.wait()
    _wait_free(folder / "keeper.lock")
    pid = _pid(folder, "server")
    assert is_locked(folder / "server.lock")
    held = _attached(folder)
    assert _pid(folder, "server") == pid
    with bare_client(held.socket) as client:
        assert client.get("visits") == b"1"
    held.detach()


def test_keeper_and_client_shrug_off_interrupts_of_the_terminal(folder: Path) -> None:
    held = _attached(folder)
    keeper = Path(f"/proc/{_pid(folder, 'keeper')}/status")
    if not keeper.exists():
        pytest.skip("this system does not tell which signals a process ignores")
    ignored = re.compile(r"^SigIgn:\s*[0-9a-f]*[37bf]$", re.MULTILINE)
    for _ in range(1_000):
        if ignored.search(keeper.read_text()):
            break
        time.sleep(0.01)
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(_pid(folder, "keeper"), number)
    time.sleep(0.1)
    assert is_locked(folder / "keeper.lock")
    held.detach()


def test_a_folder_with_a_long_path_works_and_is_shared(folder: Path) -> None:
    deep = folder / ("a-rather-long-name" * 8)
    first = _attached(deep)
    assert len(os.fsencode(first.socket)) <= 100
    process, place = _client(deep)
    assert place == deep
    with bare_client(first.socket) as client:
        assert client.get("visits") == b"1"
    process.kill()
    process.wait()
    first.detach()
    assert wait_until_stopped(deep)
    assert not first.socket.exists()


def test_a_temporary_store_goes_with_its_last_client_even_if_killed() -> None:
    process, place = _client(None)
    assert place.exists()
    process.kill()
    process.wait()
    for _ in range(1_000):
        if not place.exists():
            return
        time.sleep(0.01)
    pytest.fail("the temporary folder is still there")


def test_a_server_whose_folder_was_removed_is_ended_all_the_same(folder: Path) -> None:
    held = _attached(folder / "store")
    pid = _pid(folder / "store", "server")
    shutil.rmtree(folder / "store")
    held.detach()
    for _ in range(1_000):
        embedded._reap()
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("the server lives on without a folder")


def test_a_second_server_is_never_started_beside_one_that_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_PING_S", 0.2)
    held = _attached(folder)
    pid = _pid(folder, "server")
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailableError, match=f"process {pid}"):
            attach(folder)
    finally:
        os.kill(pid, signal.SIGCONT)
    (folder / "store.sock").rename(folder / "moved.sock")
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        attach(folder)
    (folder / "moved.sock").rename(folder / "store.sock")
    again = _attached(folder)
    assert _pid(folder, "server") == pid
    again.detach()
    held.detach()


def test_a_child_that_was_forked_and_ends_does_not_stop_the_server(folder: Path) -> None:
    held = _attached(folder)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.5)
    with bare_client(held.socket) as client:
        assert client.ping()
    held.detach()
