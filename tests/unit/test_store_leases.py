"""Holders: alive as long as their process, known dead at once on the same host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.stores import Backend, created, meta_of, start_snapshot
from world.errors import WorldError
from world.store.base import WorldStore
from world.store.leases import Holder, is_dead, runtime_folder, take_lease


def _dead_token() -> str:
    """The token of a holder that was killed."""
    code = "import sys; from world.store.leases import Holder; h = Holder(); print(h.token); "
    code += "sys.stdout.flush(); import time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    token = process.stdout.readline().strip()
    assert not is_dead(token)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return token


def test_a_holder_is_alive_until_its_process_is_killed() -> None:
    assert is_dead(_dead_token())


def test_a_holder_that_closed_properly_is_not_called_dead() -> None:
    with Holder() as holder:
        assert not is_dead(holder.token)
    assert not is_dead(holder.token)


def test_holders_differ() -> None:
    with Holder() as one, Holder() as two:
        assert one.token != two.token


@pytest.mark.parametrize(
    "token",
    ["", "room-", "room-../../etc/passwd", "holder", "room-" + "0" * 32, "room-" + "g" * 32 + "\n"],
)
def test_a_token_that_is_not_ours_is_never_dead_and_never_a_path(token: str) -> None:
    assert not is_dead(token)


def test_a_lock_that_is_a_link_or_a_pipe_is_not_followed(tmp_path: Path) -> None:
    folder = runtime_folder()
    assert folder is not None
    target = tmp_path / "target"
    target.write_text("")
    (folder / f"{'1' * 32}.lock").symlink_to(target)
    os.mkfifo(folder / f"{'2' * 32}.lock")
    assert not is_dead("room-" + "1" * 32)
    started_s = time.monotonic()
    is_dead("room-" + "2" * 32)
    assert time.monotonic() - started_s < 5


def test_a_dead_holder_on_this_host_is_succeeded_at_once(backend: Backend, episode: str) -> None:
    store = backend.store
    if backend.name == "inprocess":
        pytest.skip("an in-process store has no holders in other processes")
    assert store.create(meta_of(episode), start_snapshot(), b"")
    old = store.lease(episode, "0", _dead_token(), ttl_s=600.0)
    assert old is not None
    new = store.lease(episode, "0", "successor")
    assert new is not None
    assert new.fence > old.fence


def test_a_living_holder_is_not_succeeded(store: WorldStore, episode: str) -> None:
    with Holder() as holder:
        created(store, episode, holder.token)
        assert store.lease(episode, "0", "successor") is None


def test_taking_a_lease_waits_for_a_lapsing_one_and_says_so(
    store: WorldStore, episode: str
) -> None:
    assert store.create(meta_of(episode), start_snapshot(), b"")
    assert store.lease(episode, "0", "gone", ttl_s=1.0) is not None
    said: list[str] = []
    lease = take_lease(store, episode, "0", "next", ttl_s=1.0, say=said.append)
    assert lease.holder == "next"
    assert len(said) == 1
    assert "waiting up to 1 s" in said[0]


def test_taking_a_lease_that_is_renewed_is_refused(store: WorldStore, episode: str) -> None:
    created(store, episode, "busy")
    assert store.lease(episode, "0", "busy", ttl_s=60.0) is not None
    with pytest.raises(WorldError, match="another orchestrator"):
        take_lease(store, episode, "0", "next", ttl_s=0.2)


def test_a_free_lease_is_taken_without_a_word(store: WorldStore, episode: str) -> None:
    assert store.create(meta_of(episode), start_snapshot(), b"")
    said: list[str] = []
    take_lease(store, episode, "0", "next", say=said.append)
    assert said == []
