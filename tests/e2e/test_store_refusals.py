"""Servers that refuse: each is told in one line that says what to do, and never with a secret."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.stores import created, delta_of, server
from world.errors import StoreUnavailableError
from world.store.base import StoreSettings
from world.store.binaries import find_binary
from world.store.connect import connect_url

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(find_binary() is None, reason="no server binary runs here"),
]
SECRET = "correct-horse"


def _refused(url: str, settings: StoreSettings | None = None) -> str:
    with pytest.raises(StoreUnavailableError) as caught:
        connect_url(url, settings or StoreSettings())
    error = caught.value
    assert error.exit_code == 3
    assert error.fix
    assert SECRET not in error.line()
    assert "wrong-guess" not in error.line()
    return error.line()


def test_a_password_that_is_missing_or_wrong_is_told_without_repeating_it() -> None:
    with server("--requirepass", SECRET) as (socket, _):
        assert "asks for a password" in _refused(f"unix://{socket}")
        assert "refused the user or the password" in _refused(f"unix://:wrong-guess@{socket}")
        assert "refused the user" in _refused(f"unix://nobody:wrong-guess@{socket}")
        store = connect_url(f"unix://:{SECRET}@{socket}", StoreSettings())
        created(store, "e")
        assert SECRET not in store.description
        store.disconnect()


def test_a_server_that_evicts_is_refused_before_anything_is_written() -> None:
    with server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as (socket, client):
        line = _refused(f"unix://{socket}")
        assert "allkeys-lru" in line
        assert "CONFIG SET maxmemory-policy noeviction" in line
        assert client.dbsize() == 0
        client.config_set("maxmemory", 0)
        connect_url(f"unix://{socket}", StoreSettings()).disconnect()


def test_a_replica_is_refused_for_writing() -> None:
    with server("--replicaof", "127.0.0.1 1") as (socket, client):
        store = connect_url(f"unix://{socket}", StoreSettings())
        with pytest.raises(StoreUnavailableError, match="read-only"):
            created(store, "e")
        with pytest.raises(StoreUnavailableError, match="primary"):
            store.lease("e", "0", "h")
        client.config_set("replica-serve-stale-data", "no")
        with pytest.raises(StoreUnavailableError, match="lost its primary"):
            connect_url(f"unix://{socket}", StoreSettings(timeout_s=1.0)).attach("e")
        store.disconnect()


def test_a_server_that_hangs_is_told_after_the_time_that_was_set() -> None:
    with server() as (socket, client):
        store = connect_url(f"unix://{socket}", StoreSettings(timeout_s=1.0))
        lease = created(store, "e")
        pid = client.info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailableError, match="does not answer in time"):
                store.apply(lease, 0, "r1", delta_of(1), b"")
            store.live("e", "0", lease.fence, [b"lost, and nobody minds"])
        finally:
            os.kill(pid, signal.SIGCONT)
        assert store.apply(lease, 0, "r1", delta_of(1), b"").step == 1
        store.disconnect()


def test_a_server_that_goes_away_is_told_and_the_same_request_goes_through_later() -> None:
    with server() as (socket, client):
        store = connect_url(f"unix://{socket}", StoreSettings(timeout_s=1.0))
        lease = created(store, "e")
        client.shutdown(nosave=True)
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            store.apply(lease, 0, "r1", delta_of(1), b"")
        store.disconnect()


def test_a_user_who_may_do_nothing_is_told_so() -> None:
    with server() as (socket, client):
        client.acl_setuser(
            "weak", enabled=True, passwords=[f"+{SECRET}"], commands=["+ping", "+client"]
        )
        store = connect_url(f"unix://weak:{SECRET}@{socket}", StoreSettings())
        assert "unknown version" in store.description
        with pytest.raises(StoreUnavailableError, match="does not let this user"):
            store.lease("e", "0", "h")
        store.disconnect()


def test_a_database_that_does_not_exist_is_told() -> None:
    with server("--databases", "2") as (socket, _):
        assert "out of range" in _refused(f"unix://{socket}?db=7")


def test_a_step_is_one_round_trip() -> None:
    with server() as (socket, client):
        store = connect_url(f"unix://{socket}", StoreSettings())
        lease = created(store, "e")
        before = client.info("stats")["total_reads_processed"]
        for step in range(1, 251):
            store.apply(lease, step - 1, f"r{step}", delta_of(step), b"x")
        # The server counts each time that it reads from a client; two steps keep an image.
        assert client.info("stats")["total_reads_processed"] - before == 250 + 1
        assert client.info("commandstats")["cmdstat_fcall"]["calls"] >= 250
        store.disconnect()


def test_functions_and_scripts_that_somebody_flushed_are_loaded_again() -> None:
    with server() as (socket, client):
        client.acl_setuser(
            "plain", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-fcall"]
        )
        for episode, user in (("functions", ""), ("scripts", "plain:any@")):
            store = connect_url(f"unix://{user}{socket}", StoreSettings())
            lease = created(store, episode)
            store.apply(lease, 0, "r1", delta_of(1), b"")
            client.function_flush()
            client.script_flush()
            store.apply(lease, 1, "r2", delta_of(2), b"")
            assert store.attach(episode).step == 2
            store.disconnect()
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] > 3
