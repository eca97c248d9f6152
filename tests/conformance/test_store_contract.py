"""One suite over every `WorldStore`: the promises of world/store/base.py, each tried for real."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.stores import (
    ROWS,
    Backend,
    advance,
    as_stored,
    created,
    delta_of,
    meta_of,
    replayed,
    request_of,
    start_snapshot,
    store_state,
)
from world.errors import (
    BehindWorldError,
    ConfigError,
    EpisodeClosedError,
    EpisodeMissingError,
    LeaseLostError,
    StaleWorldError,
    WorldError,
)
from world.model import Cells, Delta, Snapshot
from world.store.base import Applied, Lease, WorldStore
from world.store.checks import MAX_PAYLOAD_BYTES

# --- creating and reading ---------------------------------------------------------------------


def test_a_created_episode_is_read_back_to_the_last_bit(store: WorldStore, episode: str) -> None:
    assert store.create(meta_of(episode, seed=2**63 - 1), start_snapshot(), b"started") is True
    stored = store.attach(episode)
    assert stored.meta == meta_of(episode, seed=2**63 - 1)
    assert (stored.branch, stored.step, stored.status, stored.fence) == ("0", 0, "open", 0)
    world = store.world(episode)
    assert as_stored(world) == replayed(0)
    assert world.ids == start_snapshot().ids
    assert world.vocabulary == {"size": ("small", "large")}
    assert [column.dtype for column in world.columns.values()] == [
        column.dtype for column in start_snapshot().columns.values()
    ]


def test_what_is_read_cannot_be_written_to(store: WorldStore, episode: str) -> None:
    created(store, episode)
    with pytest.raises(ValueError, match="read-only"):
        store.world(episode).columns["cpu_percent"][0] = 1.0


def test_creating_twice_changes_nothing(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    before = store_state(store, episode)
    assert store.create(meta_of(episode, seed=9), start_snapshot(3), b"other") is False
    assert store_state(store, episode) == before


def test_the_creator_keeps_its_arrays_and_the_store_its_own(
    store: WorldStore, episode: str
) -> None:
    start = start_snapshot()
    assert store.create(meta_of(episode), start, b"started")
    start.columns["cpu_percent"][:] = -1.0
    assert as_stored(store.world(episode)) == replayed(0)


def test_a_world_without_columns_or_hidden_fields_is_a_world(
    store: WorldStore, episode: str
) -> None:
    assert store.create(meta_of(episode), Snapshot(0, {"a": 1.5}), b"started")
    lease = store.lease(episode, "0", "h")
    assert lease is not None
    assert store.apply(lease, 0, "r1", Delta({"a": 2.5}), b"") == Applied("OK", 1)
    world = store.world(episode)
    assert (world.metrics, world.hidden, dict(world.columns), world.ids) == (
        {"a": 2.5},
        b"",
        {},
        (),
    )


@pytest.mark.parametrize("name", ["", "a b", "a{b}", "x" * 201, "a\nb", "a\x00b", "\ud800"])
def test_an_episode_id_that_cannot_be_a_key_is_refused(store: WorldStore, name: str) -> None:
    with pytest.raises(ConfigError):
        store.create(meta_of(name), start_snapshot(), b"")
    with pytest.raises(EpisodeMissingError):
        store.attach(name)


def test_hostile_but_possible_names_stay_data(store: WorldStore, episode: str) -> None:
    name = f"{episode};DROP*?[a-z]$(id)`é:0:w"
    lease = created(store, name)
    advance(store, lease, 1, 1)
    assert store.attach(name).step == 1
    with pytest.raises(EpisodeMissingError):
        store.attach(episode)


def test_a_snapshot_that_is_not_of_step_0_or_not_of_numbers_is_refused(
    store: WorldStore, episode: str
) -> None:
    with pytest.raises(WorldError, match="step 0"):
        store.create(meta_of(episode), Snapshot(3, {}), b"")
    for column in (np.array(["a", "b"]), np.array([None, {}]), np.zeros((2, 2))):
        with pytest.raises(WorldError, match="column"):
            store.create(meta_of(episode), Snapshot(0, {}, b"", {"c": column}), b"")
    with pytest.raises(WorldError, match="column name"):
        store.create(meta_of(episode), Snapshot(0, {}, b"", {"a b": np.zeros(2)}), b"")
    with pytest.raises(EpisodeMissingError):
        store.attach(episode)


def test_an_episode_that_is_not_there_is_missing_in_every_call(
    store: WorldStore, episode: str
) -> None:
    lease = Lease(episode, "0", "h", 1, 3.0)
    calls: list[Callable[[], object]] = [
        lambda: store.attach(episode),
        lambda: store.lease(episode, "0", "h"),
        lambda: store.apply(lease, 0, "r", delta_of(1), b""),
        lambda: store.close(lease, 0, "r", "horizon", b""),
        lambda: list(store.log(episode)),
        lambda: store.world(episode),
        lambda: store.snapshot(episode),
        lambda: store.fork(episode, "0", 0, "f", ""),
        lambda: store.branches(episode),
        lambda: store.journal(episode, "0", 1, "a", b""),
        lambda: store.journalled(episode, "0", 1),
        lambda: store.watch(episode, "0"),
        lambda: store.retain(episode, 0),
    ]
    for call in calls:
        with pytest.raises(EpisodeMissingError):
            call()
    store.release(lease)
    store.live(episode, "0", 1, [b"x"])


def test_a_branch_that_is_not_there_is_missing(store: WorldStore, episode: str) -> None:
    created(store, episode)
    for branch in ("1", "no such branch", "*", ""):
        with pytest.raises(EpisodeMissingError):
            store.attach(episode, branch)
        with pytest.raises(EpisodeMissingError):
            store.lease(episode, branch, "h")
        with pytest.raises(EpisodeMissingError):
            list(store.log(episode, branch))


# --- committing -------------------------------------------------------------------------------


def test_committed_steps_are_the_world_that_they_compute(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2 * ROWS + 3)
    assert as_stored(store.world(episode)) == replayed(2 * ROWS + 3)


def test_a_repeated_request_is_dup_and_changes_nothing(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 3)
    before = store_state(store, episode)
    again = store.apply(lease, 2, request_of(lease, 3), delta_of(3), b"events 3")
    assert again == Applied("DUP", 3)
    assert store_state(store, episode) == before


def test_an_older_request_is_dup_too(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 5)
    assert store.apply(lease, 1, request_of(lease, 2), delta_of(2), b"") == Applied("DUP", 5)


def test_another_decision_for_a_taken_step_is_stale_never_dup(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 3)
    before = store_state(store, episode)
    for expected in (0, 1, 2):
        with pytest.raises(StaleWorldError):
            store.apply(lease, expected, "another decision", delta_of(9), b"")
    assert store_state(store, episode) == before


def test_a_step_ahead_of_the_store_is_behind_and_says_where_it_is(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    before = store_state(store, episode)
    with pytest.raises(BehindWorldError) as caught:
        store.apply(lease, 7, "r8", delta_of(8), b"")
    assert caught.value.step == 2
    assert store_state(store, episode) == before


def test_a_metric_that_a_step_does_not_name_keeps_its_value(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    store.apply(lease, 0, "r1", Delta({"latency_ms": 1.0}, b"secret"), b"")
    store.apply(lease, 1, "r2", Delta({"new_metric": 2.0}), b"")
    world = store.world(episode)
    assert world.metrics["latency_ms"] == 1.0
    assert world.metrics["new_metric"] == 2.0
    assert world.hidden == b"secret"


@pytest.mark.parametrize(
    "cells",
    [
        Cells("cpu_percent", 8 * ROWS, b"x"),
        Cells("cpu_percent", 8 * ROWS - 1, b"xy"),
        Cells("essential", ROWS - 3, b"abcd"),
        Cells("cpu_percent", -1, b"x"),
        Cells("cpu_percent", 2**40, b"x"),
        Cells("nowhere", 0, b"x"),
        Cells("true_load", 0, b"x"),
        Cells("", 0, b"x"),
    ],
)
def test_cells_outside_their_column_are_refused_before_anything_is_written(
    store: WorldStore, episode: str, cells: Cells
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 1)
    before = store_state(store, episode)
    good = Cells("cpu_percent", 0, b"\x01" * 8)
    with pytest.raises(WorldError):
        store.apply(lease, 1, "r2", Delta({"latency_ms": 9.0}, b"h", (good, cells)), b"x")
    assert store_state(store, episode) == before
    advance(store, lease, 2, 2)


def test_a_whole_column_and_an_empty_run_are_ordinary_cells(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    column = np.arange(ROWS, dtype=np.float64) * -3.0
    cells = (Cells("cpu_percent", 0, column.tobytes()), Cells("size", 4 * ROWS, b""))
    store.apply(lease, 0, "r1", Delta({}, b"", cells), b"")
    np.testing.assert_array_equal(store.world(episode).columns["cpu_percent"], column)


@pytest.mark.parametrize("order", ["ascending", "descending", "overlapping"])
def test_many_changed_cells_in_one_column_end_as_if_written_one_by_one(
    store: WorldStore, episode: str, order: str
) -> None:
    rows = 1_000
    column = np.arange(rows, dtype=np.float64)
    assert store.create(meta_of(episode), Snapshot(0, {}, b"", {"c": column}), b"")
    lease = store.lease(episode, "0", "h")
    assert lease is not None
    picked = list(range(0, rows - 1, 3))
    if order == "descending":
        picked.reverse()
    width = 16 if order == "overlapping" else 8
    if order == "overlapping":
        picked = list(range(rows - 1))
    expected = bytearray(column.tobytes())
    cells = []
    for row in picked:
        data = np.array([-row, row / 7.0]).tobytes()[:width]
        cells.append(Cells("c", 8 * row, data))
        expected[8 * row : 8 * row + width] = data
    store.apply(lease, 0, "r1", Delta({}, b"", tuple(cells)), b"")
    assert store.world(episode).columns["c"].tobytes() == bytes(expected)


def test_metrics_keep_every_bit_whatever_the_float(store: WorldStore, episode: str) -> None:
    values = {
        "nan": float("nan"),
        "inf": float("inf"),
        "negative_zero": -0.0,
        "tiny": 5e-324,
        "third": 1 / 3,
        "größe": 1.7976931348623157e308,
    }
    lease = created(store, episode)
    store.apply(lease, 0, "r1", Delta(values), b"")
    read = store.world(episode).metrics
    for name, value in values.items():
        assert np.float64(read[name]).tobytes() == np.float64(value).tobytes()


def test_more_metrics_than_lua_can_unpack_at_once(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    many = {f"metric_{number}": float(number) for number in range(9_000)}
    store.apply(lease, 0, "r1", Delta(many), b"")
    assert store.world(episode).metrics["metric_8999"] == 8999.0


def test_payloads_are_bytes_and_bounded(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    payload = bytes(range(256)) * 64
    store.apply(lease, 0, "r1", Delta({}), payload)
    assert [entry.payload for entry in store.log(episode, since=1)] == [payload]
    with pytest.raises(WorldError, match="bytes"):
        store.apply(lease, 1, "r2", Delta({}), b"x" * (MAX_PAYLOAD_BYTES + 1))
    assert store.attach(episode).step == 1


@pytest.mark.parametrize(("step", "request_id"), [(-1, "r"), (2**53, "r"), (0, ""), (0, "r" * 401)])
def test_a_malformed_request_is_refused(
    store: WorldStore, episode: str, step: int, request_id: str
) -> None:
    lease = created(store, episode)
    with pytest.raises(WorldError, match="malformed"):
        store.apply(lease, step, request_id, Delta({}), b"")


# --- leases -----------------------------------------------------------------------------------


def test_the_same_holder_keeps_its_fence_and_a_new_one_gets_a_higher(
    store: WorldStore, episode: str
) -> None:
    first = created(store, episode, "a")
    assert store.lease(episode, "0", "a") == first
    assert store.lease(episode, "0", "b") is None
    store.release(first)
    second = store.lease(episode, "0", "b")
    assert second is not None
    assert second.fence > first.fence
    assert store.lease(episode, "0", "a") is None


def test_a_lapsed_lease_may_be_taken_and_its_holder_is_fenced(
    store: WorldStore, episode: str
) -> None:
    assert store.create(meta_of(episode), start_snapshot(), b"")
    old = store.lease(episode, "0", "a", ttl_s=0.1)
    assert old is not None
    time.sleep(0.15)
    new = store.lease(episode, "0", "b")
    assert new is not None
    before = store_state(store, episode)
    with pytest.raises(LeaseLostError):
        store.apply(old, 0, "r1", delta_of(1), b"")
    with pytest.raises(LeaseLostError):
        store.close(old, 0, "c", "horizon", b"")
    assert store_state(store, episode) == before
    advance(store, new, 1, 1)


def test_a_lapsed_lease_that_nobody_took_still_writes(store: WorldStore, episode: str) -> None:
    assert store.create(meta_of(episode), start_snapshot(), b"")
    lease = store.lease(episode, "0", "a", ttl_s=0.05)
    assert lease is not None
    time.sleep(0.1)
    advance(store, lease, 1, 1)
    assert store.lease(episode, "0", "a") == replace(lease, ttl_s=3.0)


def test_every_step_renews_the_lease(store: WorldStore, episode: str) -> None:
    assert store.create(meta_of(episode), start_snapshot(), b"")
    lease = store.lease(episode, "0", "a", ttl_s=1.5)
    assert lease is not None
    for step in (1, 2, 3):
        time.sleep(0.55)
        advance(store, lease, step, step)
    assert store.lease(episode, "0", "b") is None


def test_a_fenced_writer_still_learns_that_its_last_write_landed(
    store: WorldStore, episode: str
) -> None:
    old = created(store, episode, "a")
    advance(store, old, 1, 1)
    store.release(old)
    new = store.lease(episode, "0", "b")
    assert new is not None
    assert store.apply(old, 0, request_of(old, 1), delta_of(1), b"") == Applied("DUP", 1)
    advance(store, new, 2, 2)
    assert store.apply(old, 0, request_of(old, 1), delta_of(1), b"") == Applied("DUP", 2)


def test_a_made_up_lease_is_fenced_off(store: WorldStore, episode: str) -> None:
    lease = created(store, episode, "a")
    for forged in (replace(lease, fence=99), replace(lease, holder="b"), replace(lease, fence=0)):
        with pytest.raises(LeaseLostError):
            store.apply(forged, 0, "r1", delta_of(1), b"")


def test_releasing_what_somebody_else_holds_does_nothing(store: WorldStore, episode: str) -> None:
    lease = created(store, episode, "a")
    store.release(replace(lease, holder="b"))
    store.release(replace(lease, fence=lease.fence + 1))
    assert store.lease(episode, "0", "b") is None
    store.release(lease)
    store.release(lease)
    assert store.lease(episode, "0", "b") is not None


def test_leases_of_branches_are_apart(store: WorldStore, episode: str) -> None:
    created(store, episode, "a")
    store.fork(episode, "0", 0, "f", "")
    assert store.lease(episode, "f", "b") is not None


def test_of_two_writers_one_gets_each_step(backend: Backend, episode: str) -> None:
    assert backend.again is not None
    stores = [backend.store, backend.again()]
    created(stores[0], episode, "w0")
    taken = []
    for turn in range(30):
        who = turn % 2
        store, other = stores[who], stores[1 - who]
        other.release(Lease(episode, "0", f"w{1 - who}", store.attach(episode).fence, 3.0))
        lease = store.lease(episode, "0", f"w{who}")
        assert lease is not None
        step = store.attach(episode).step
        store.apply(lease, step, f"{who}/{step + 1}", delta_of(step + 1), b"%d" % who)
        taken.append(f"{who}/{step + 1}")
    log = [entry.request_id for entry in stores[0].log(episode, since=1)]
    assert log == taken
    assert as_stored(stores[1].world(episode)) == replayed(30)
    if stores[1] is not stores[0]:
        stores[1].disconnect()


# --- the log and the close --------------------------------------------------------------------


def test_the_log_holds_start_steps_and_close_in_order(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 3)
    assert store.close(lease, 3, "close", "horizon", b"ended") == Applied("OK", 3)
    entries = list(store.log(episode))
    assert [(entry.step, entry.kind) for entry in entries] == [
        (0, "start"),
        (1, "step"),
        (2, "step"),
        (3, "step"),
        (3, "close"),
    ]
    assert entries[0].payload == b"started"
    assert entries[-1].payload == b"ended"
    assert entries[0].delta is None
    assert entries[-1].delta is None
    assert entries[2].delta == delta_of(2)
    assert entries[2].payload == b"events 2"
    assert entries[2].request_id == request_of(lease, 2)


@pytest.mark.parametrize(
    ("since", "expected"), [(-5, 13), (0, 13), (1, 12), (11, 2), (12, 0), (10**6, 0)]
)
def test_the_log_starts_where_it_is_asked_to(
    store: WorldStore, episode: str, since: int, expected: int
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 11)
    store.close(lease, 11, "close", "horizon", b"")
    assert len(list(store.log(episode, since=since))) == expected


def test_a_long_log_is_read_in_pages_without_gap_or_repeat(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 300)
    assert [entry.step for entry in store.log(episode)] == list(range(301))
    assert [entry.step for entry in store.log(episode, since=201)] == list(range(201, 301))


def test_a_log_that_is_being_read_does_not_lose_what_is_written(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 5)
    reading = iter(store.log(episode))
    first = [next(reading).step for _ in range(3)]
    advance(store, lease, 6, 8)
    steps = first + [entry.step for entry in reading]
    assert steps in (list(range(6)), list(range(9)))


def test_a_closed_episode_takes_nothing_more(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    store.close(lease, 2, "close", "all targets met", b"ended")
    before = store_state(store, episode)
    assert store.attach(episode).status == "all targets met"
    with pytest.raises(EpisodeClosedError, match="all targets met"):
        store.apply(lease, 2, "r3", delta_of(3), b"")
    with pytest.raises(EpisodeClosedError):
        store.close(lease, 2, "close again", "aborted", b"")
    assert store_state(store, episode) == before


def test_a_repeated_close_is_dup(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    store.close(lease, 0, "close", "horizon", b"ended")
    assert store.close(lease, 0, "close", "horizon", b"ended") == Applied("DUP", 0)
    assert [entry.kind for entry in store.log(episode)] == ["start", "close"]


def test_the_last_step_repeated_after_the_close_is_dup(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    store.close(lease, 2, "close", "horizon", b"")
    assert store.apply(lease, 1, request_of(lease, 2), delta_of(2), b"") == Applied("DUP", 2)


def test_a_close_at_the_wrong_step_is_refused_like_a_step(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    with pytest.raises(StaleWorldError):
        store.close(lease, 1, "close", "horizon", b"")
    with pytest.raises(BehindWorldError):
        store.close(lease, 5, "close", "horizon", b"")
    assert store.attach(episode).status == "open"


@pytest.mark.parametrize("status", ["", "open", "forking", "a\nb", "x" * 65])
def test_a_stop_reason_that_reads_as_a_state_is_refused(
    store: WorldStore, episode: str, status: str
) -> None:
    lease = created(store, episode)
    with pytest.raises(WorldError, match="stop reason"):
        store.close(lease, 0, "close", status, b"")
