"""Processes and servers that are really killed, and lines that really lose replies.

What must hold after each: every acknowledged step is there, once, in order, and the world is what
those steps compute.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store_processes import lossy_line, start, write_until_killed
from tests.support.stores import (
    advance,
    as_stored,
    created,
    delta_of,
    is_locked,
    meta_of,
    replayed,
    request_of,
    server,
    start_snapshot,
    wait_until_stopped,
)
from world.errors import BehindWorldError, StoreUnavailableError
from world.store.base import StoreSettings, WorldStore
from world.store.binaries import find_binary
from world.store.connect import connect_embedded, connect_url

pytestmark = [
    pytest.mark.crash,
    pytest.mark.redis,
    pytest.mark.skipif(find_binary() is None, reason="no server binary runs here"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state folder with a short path."""
    made = Path(tempfile.mkdtemp(prefix="wr-"))
    yield made
    assert wait_until_stopped(made), "a server or keeper outlived its clients"
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def durable(folder: Path) -> Iterator[WorldStore]:
    """An embedded store in that folder."""
    store = connect_embedded(StoreSettings(state_dir=str(folder)))
    yield store
    store.disconnect()


def _kill_server(folder: Path) -> int | None:
    """Kill it, unless it is just being started again."""
    with contextlib.suppress(ValueError, ProcessLookupError):
        pid = int((folder / "server.lock").read_text())
        os.kill(pid, signal.SIGKILL)
        return pid
    return None


def _assert_whole(store: WorldStore, episode: str, least: int) -> int:
    """The log has no hole and no repeat, and the world is what it computes."""
    steps = [entry.step for entry in store.log(episode, since=1) if entry.kind == "step"]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= least
    assert store.attach(episode).step == len(steps)
    assert as_stored(store.world(episode)) == replayed(len(steps))
    return len(steps)


def _wait_for(notes: Path, word: str, limit_s: float = 5.0) -> None:
    """Until a writer has written: a busy machine takes its time to start a process."""
    until_s = time.monotonic() + limit_s
    while word not in notes.read_text() and time.monotonic() < until_s:
        time.sleep(0.01)


def test_killed_competing_writers_leave_a_whole_log_with_all_they_were_told(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "acknowledged"
    notes.touch()
    with server() as (socket, _):
        url = f"unix://{socket}"
        store = connect_url(url, StoreSettings())
        assert store.create(meta_of("e"), start_snapshot(), b"started")
        running = []
        for number in range(10):
            args = (url, "e", f"writer-{number}", str(notes))
            running.append(start(write_until_killed, *args))
            if len(running) == 2:
                _wait_for(notes, f"writer-{number - 1}/")
                time.sleep(0.05)
                victim = running.pop(0)
                victim.kill()
                victim.join()
        for process in running:
            process.kill()
            process.join()
        count = _assert_whole(store, "e", least=200)
        log = {entry.step: entry.request_id for entry in store.log("e", since=1)}
        for line in notes.read_text().splitlines():
            step, request = line.split()
            assert log[int(step)] == request
        assert len({request.split("/")[0] for request in log.values()}) > 3
        assert store.attach("e").fence > 3
        assert count == len(log)
        store.disconnect()


def test_a_server_that_is_killed_while_writing_is_started_again_and_loses_nothing(
    folder: Path, durable: WorldStore
) -> None:
    store = durable
    lease = created(store, "e")
    done = threading.Event()
    killed: set[int | None] = set()

    def kill_again_and_again() -> None:
        while not done.wait(0.3) and len(killed - {None}) < 5:
            killed.add(_kill_server(folder))

    killer = threading.Thread(target=kill_again_and_again)
    killer.start()
    words = []
    step = 0
    while killer.is_alive() or step < 500:
        step += 1
        words.append(
            store.apply(lease, step - 1, request_of(lease, step), delta_of(step), b"x").status
        )
    done.set()
    killer.join()
    assert len(killed - {None}) == 5
    assert set(words) <= {"OK", "DUP"}
    assert _assert_whole(store, "e", least=500) == step


def test_steps_lost_with_the_tail_of_the_file_are_told_and_can_be_sent_again(
    folder: Path, durable: WorldStore
) -> None:
    store = durable
    lease = created(store, "e")
    advance(store, lease, 1, 150)
    _kill_server(folder)
    while is_locked(folder / "server.lock"):
        time.sleep(0.01)
    (tail,) = (folder / "appendonlydir").glob("*.incr.aof")
    os.truncate(tail, tail.stat().st_size - 9_000)
    with pytest.raises(BehindWorldError) as caught:
        store.apply(lease, 150, request_of(lease, 151), delta_of(151), b"events 151")
    lost_from = caught.value.step
    assert 0 < lost_from < 150
    assert _assert_whole(store, "e", least=1) == lost_from
    advance(store, lease, lost_from + 1, 151)
    assert _assert_whole(store, "e", least=151) == 151


def test_lost_replies_end_as_dup_and_no_step_is_there_twice() -> None:
    with server() as (socket, _), lossy_line(socket, every=5) as line:
        direct = connect_url(f"unix://{socket}", StoreSettings())
        lease = created(direct, "e")
        store = connect_url(f"unix://{line.path}", StoreSettings())
        words = [
            store.apply(lease, step - 1, request_of(lease, step), delta_of(step), b"x").status
            for step in range(1, 301)
        ]
        store.close(lease, 300, "close", "horizon", b"ended")
        assert line.dropped > 40
        assert words.count("DUP") > 20
        assert _assert_whole(direct, "e", least=300) == 300
        store.disconnect()
        direct.disconnect()


def test_creating_and_forking_over_a_lossy_line_happens_once_and_says_so() -> None:
    with server() as (socket, _), lossy_line(socket, every=7) as line:
        store = connect_url(f"unix://{line.path}", StoreSettings())
        for number in range(12):
            lease = created(store, f"e{number}")
            store.apply(lease, 0, request_of(lease, 1), delta_of(1), b"x")
            store.fork(f"e{number}", "0", 0, "f", "what if")
            assert set(store.branches(f"e{number}")) == {"0", "f"}
        assert len(store.episodes()) == 12
        assert line.dropped > 10
        store.disconnect()


def test_a_temporary_store_begins_empty_each_time() -> None:
    store = connect_embedded(StoreSettings(), memory=True)
    created(store, "e")
    store.disconnect()
    again = connect_embedded(StoreSettings(), memory=True)
    assert list(again.episodes()) == []
    again.disconnect()


def test_a_durable_store_is_as_it_was_left(folder: Path) -> None:
    settings = StoreSettings(state_dir=str(folder))
    store = connect_embedded(settings)
    lease = created(store, "e")
    advance(store, lease, 1, 5)
    store.disconnect()
    assert wait_until_stopped(folder)
    again = connect_embedded(settings)
    assert _assert_whole(again, "e", least=5) == 5
    advance(again, lease, 6, 6)
    again.disconnect()


def test_memory_that_runs_out_is_told_and_nothing_is_half_written() -> None:
    with server("--maxmemory-policy", "noeviction") as (socket, client):
        store = connect_url(f"unix://{socket}", StoreSettings())
        lease = created(store, "e")
        advance(store, lease, 1, 2)
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
        with pytest.raises(StoreUnavailableError, match="out of memory"):
            store.apply(lease, 2, request_of(lease, 3), delta_of(3), b"x")
        assert _assert_whole(store, "e", least=2) == 2
        client.config_set("maxmemory", 0)
        assert store.apply(lease, 2, request_of(lease, 3), delta_of(3), b"x").status == "OK"
        assert _assert_whole(store, "e", least=3) == 3
        store.disconnect()
