"""What is particular to the in-process store: leanness without a log, and a clock of one's own."""

from __future__ import annotations

import gc
import sys

import pytest

from tests.support.stores import advance, as_stored, created, replayed
from world.errors import WorldError
from world.model import Delta
from world.store.inprocess import InProcessStore


def test_without_a_log_the_world_moves_on_and_history_is_refused() -> None:
    store = InProcessStore(keep_log=False)
    lease = created(store, "e")
    advance(store, lease, 1, 120)
    assert as_stored(store.world("e")) == replayed(120)
    with pytest.raises(WorldError, match="keep_log"):
        store.log("e")
    with pytest.raises(WorldError, match="keep_log"):
        store.fork("e", "0", 50, "f", "")
    store.fork("e", "0", 120, "now", "")
    assert as_stored(store.world("e", "now")) == replayed(120)


def test_without_a_log_memory_does_not_grow_with_the_steps() -> None:
    store = InProcessStore(keep_log=False)
    lease = created(store, "e")
    payload = b"x" * 1_000

    def held_bytes() -> int:
        gc.collect()
        return sys.getrefcount(payload)

    before = held_bytes()
    for step in range(200):
        store.apply(lease, step, f"r{step}", Delta({"latency_ms": 1.0}), payload)
    assert held_bytes() == before


def test_leases_lapse_by_the_clock_that_is_given() -> None:
    now_s = 100.0
    store = InProcessStore(clock=lambda: now_s)
    created(store, "e", "a")
    assert store.lease("e", "0", "b") is None
    now_s = 103.1
    assert store.lease("e", "0", "b") is not None


def test_closing_the_store_keeps_its_episodes() -> None:
    store = InProcessStore()
    created(store, "e")
    store.disconnect()
    assert store.attach("e").step == 0
