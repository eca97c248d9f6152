"""The contract suite, second half: forks, journals, live events, listing and retention."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.stores import (
    Backend,
    advance,
    as_stored,
    created,
    delta_of,
    replayed,
    request_of,
    store_state,
)
from world.errors import ConfigError, EpisodeClosedError, EpisodeMissingError, WorldError
from world.store.base import Applied, WorldStore

# --- forks ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def long_episode(store: WorldStore) -> str:
    """230 steps: two kept images and steps between them."""
    episode = f"test.long.{time.monotonic_ns()}"
    lease = created(store, episode)
    advance(store, lease, 1, 230)
    return episode


@pytest.mark.parametrize("step", [0, 1, 99, 100, 101, 199, 200, 229, 230])
def test_a_fork_is_the_world_as_it_was_after_that_step(
    store: WorldStore, long_episode: str, step: int
) -> None:
    branch = f"at-{step}"
    store.fork(long_episode, "0", step, branch, "what if")
    assert as_stored(store.world(long_episode, branch)) == replayed(step)
    assert store.branches(long_episode)[branch] == ("0", step, "what if")
    stored = store.attach(long_episode, branch)
    assert (stored.step, stored.status, stored.fence) == (step, "open", 0)


def test_a_fork_goes_on_by_itself_and_its_log_begins_with_its_parents(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 6)
    store.fork(episode, "0", 4, "f", "")
    forked = store.lease(episode, "f", "other")
    assert forked is not None
    advance(store, forked, 5, 7)
    store.close(forked, 7, "close f", "horizon", b"f ended")
    assert as_stored(store.world(episode)) == replayed(6)
    assert as_stored(store.world(episode, "f")) == replayed(7)
    log = list(store.log(episode, "f"))
    assert [(entry.step, entry.kind) for entry in log] == [
        (0, "start"),
        *((step, "step") for step in range(1, 8)),
        (7, "close"),
    ]
    assert [entry.request_id for entry in log[4:6]] == [
        request_of(lease, 4),
        request_of(forked, 5),
    ]
    assert [entry.step for entry in store.log(episode, "f", since=5)] == [5, 6, 7, 7]
    assert store.attach(episode).status == "open"


def test_a_fork_of_a_closed_branch_is_open_and_without_its_close(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 3)
    store.close(lease, 3, "close", "horizon", b"ended")
    store.fork(episode, "0", 3, "f", "go on")
    assert [entry.kind for entry in store.log(episode, "f")] == ["start", "step", "step", "step"]
    forked = store.lease(episode, "f", "h")
    assert forked is not None
    advance(store, forked, 4, 4)


def test_forks_of_forks_reach_back_through_their_ancestors(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 5)
    store.fork(episode, "0", 3, "child", "")
    child = store.lease(episode, "child", "h")
    assert child is not None
    advance(store, child, 4, 8)
    store.fork(episode, "child", 6, "late", "")
    store.fork(episode, "child", 2, "early", "")
    store.fork(episode, "child", 0, "first", "")
    assert as_stored(store.world(episode, "late")) == replayed(6)
    assert as_stored(store.world(episode, "early")) == replayed(2)
    assert as_stored(store.world(episode, "first")) == replayed(0)
    for branch, last in (("late", 6), ("early", 2), ("first", 0)):
        steps = [entry.step for entry in store.log(episode, branch)]
        assert steps == list(range(last + 1))
    assert dict(store.branches(episode)) == {
        "0": ("", 0, ""),
        "child": ("0", 3, ""),
        "late": ("child", 6, ""),
        "early": ("child", 2, ""),
        "first": ("child", 0, ""),
    }


def test_a_fork_from_an_explicit_snapshot(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 7)
    assert store.snapshot(episode) == 7
    assert store.snapshot(episode) == 7
    advance(store, lease, 8, 12)
    store.fork(episode, "0", 9, "f", "")
    assert as_stored(store.world(episode, "f")) == replayed(9)


def test_a_fork_that_cannot_be_is_refused_and_leaves_nothing(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 2)
    store.fork(episode, "0", 1, "f", "")
    for branch, step, new, error in (
        ("0", 3, "g", WorldError),
        ("0", -1, "g", WorldError),
        ("0", 1, "f", WorldError),
        ("0", 1, "0", WorldError),
        ("nowhere", 1, "g", EpisodeMissingError),
        ("0", 1, "a b", ConfigError),
        ("0", 1, "", ConfigError),
        ("0", 1, "../x", ConfigError),
    ):
        with pytest.raises(error):
            store.fork(episode, branch, step, new, "")
    assert set(store.branches(episode)) == {"0", "f"}


def test_the_reason_of_a_fork_is_any_text(store: WorldStore, episode: str) -> None:
    created(store, episode)
    reason = 'what if "Cost" yields?\n\x00]} é 漢'
    store.fork(episode, "0", 0, "f", reason)
    assert store.branches(episode)["f"] == ("0", 0, reason)


# --- journal, live events ---------------------------------------------------------------------


def test_the_first_journalled_value_stands(store: WorldStore, episode: str) -> None:
    created(store, episode)
    assert store.journal(episode, "0", 1, "0:cost:abc", b"first") == b"first"
    assert store.journal(episode, "0", 1, "0:cost:abc", b"second") == b"first"
    assert store.journal(episode, "0", 1, "0:resource:abc", b"\x00\xff") == b"\x00\xff"
    assert store.journal(episode, "0", 2, "0:cost:abc", b"") == b""
    assert store.journalled(episode, "0", 1) == {
        "0:cost:abc": b"first",
        "0:resource:abc": b"\x00\xff",
    }
    assert store.journalled(episode, "0", 2) == {"0:cost:abc": b""}
    assert store.journalled(episode, "0", 3) == {}


def test_of_many_threads_that_journal_a_field_one_is_first_for_all(
    store: WorldStore, episode: str
) -> None:
    created(store, episode)
    stands: list[bytes] = []

    def write(number: int) -> None:
        stands.extend(
            store.journal(episode, "0", 1, f"f{field}", b"%d/%d" % (field, number))
            for field in range(20)
        )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = store.journalled(episode, "0", 1)
    assert len(stands) == 120
    assert set(stands) == set(kept.values())


def test_journals_of_branches_are_apart(store: WorldStore, episode: str) -> None:
    created(store, episode)
    store.journal(episode, "0", 1, "a", b"main")
    store.fork(episode, "0", 0, "f", "")
    assert store.journal(episode, "f", 1, "a", b"fork") == b"fork"


def test_a_closed_episode_keeps_its_journal_and_takes_no_more(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    store.journal(episode, "0", 1, "a", b"kept")
    store.close(lease, 0, "close", "horizon", b"")
    assert store.journal(episode, "0", 1, "a", b"late") == b"kept"
    with pytest.raises(EpisodeClosedError):
        store.journal(episode, "0", 1, "b", b"late")
    assert store.journalled(episode, "0", 1) == {"a": b"kept"}


def test_live_events_reach_who_watches_in_order_with_their_fence(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    assert list(store.watch(episode, "0")) == []
    store.live(episode, "0", lease.fence, [b"one", b"two"])
    seen = list(store.watch(episode, "0"))
    assert [event.data for event in seen] == [b"one", b"two"]
    assert {event.fence for event in seen} == {lease.fence}
    store.live(episode, "0", lease.fence, [b"three"])
    assert [event.data for event in store.watch(episode, "0", seen[-1].cursor)] == [b"three"]
    assert [event.data for event in store.watch(episode, "0", "nonsense")] == [
        b"one",
        b"two",
        b"three",
    ]


def test_nothing_is_published_while_nobody_watches_or_by_a_fenced_writer(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    store.live(episode, "0", lease.fence, [b"unseen"])
    assert list(store.watch(episode, "0")) == []
    store.live(episode, "0", lease.fence - 1, [b"from the past"])
    assert list(store.watch(episode, "0")) == []


def test_live_events_are_no_part_of_the_record(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    store.watch(episode, "0")
    before = store_state(store, episode)
    store.live(episode, "0", lease.fence, [b"x"] * 10)
    assert store_state(store, episode) == before


def test_watching_without_events_returns_after_the_wait(store: WorldStore, episode: str) -> None:
    created(store, episode)
    assert list(store.watch(episode, "0", "", 0.05)) == []


# --- listing and retention --------------------------------------------------------------------


def test_episodes_are_listed_oldest_first_and_by_status(store: WorldStore, episode: str) -> None:
    names = [f"{episode}.{number}" for number in range(3)]
    leases = [created(store, name) for name in names]
    store.close(leases[1], 0, "close", "horizon", b"")
    listed = [stored.meta.episode for stored in store.episodes()]
    assert [name for name in listed if name.startswith(episode)] == names
    still_open = {stored.meta.episode for stored in store.episodes("open")}
    assert {names[0], names[2]} <= still_open
    assert names[1] not in still_open
    closed = [stored for stored in store.episodes("horizon") if stored.meta.episode == names[1]]
    assert [stored.status for stored in closed] == ["horizon"]
    assert closed[0] == store.attach(names[1])


def test_an_open_or_leased_episode_is_never_given_an_end(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    with pytest.raises(WorldError, match="open"):
        store.retain(episode, 0)
    store.close(lease, 0, "close", "horizon", b"")
    store.fork(episode, "0", 0, "f", "")
    forked = store.lease(episode, "f", "h")
    assert forked is not None
    with pytest.raises(WorldError, match="open"):
        store.retain(episode, 0)
    store.release(forked)
    store.retain(episode, 0)
    with pytest.raises(EpisodeMissingError):
        store.attach(episode)


def test_a_renewal_that_comes_after_the_close_holds_nothing(
    store: WorldStore, episode: str
) -> None:
    lease = created(store, episode)
    store.close(lease, 0, "close", "horizon", b"")
    assert store.lease(episode, "0", lease.holder) is not None
    store.retain(episode, 0)
    with pytest.raises(EpisodeMissingError):
        store.attach(episode)


def test_a_removed_episode_leaves_no_key_and_its_id_is_free(backend: Backend, episode: str) -> None:
    store = backend.store
    lease = created(store, episode)
    advance(store, lease, 1, 101)
    store.watch(episode, "0")
    store.live(episode, "0", lease.fence, [b"x"])
    store.journal(episode, "0", 102, "a", b"x")
    store.fork(episode, "0", 50, "f", "")
    store.snapshot(episode, "f")
    forked = store.lease(episode, "f", "h")
    assert forked is not None
    advance(store, forked, 51, 52)
    store.release(forked)
    store.close(lease, 101, "close", "horizon", b"")
    if backend.raw is not None:
        assert len(list(backend.raw.scan_iter(f"wr:{{{episode}}}:*", count=10_000))) > 20
    store.retain(episode, 0)
    assert episode not in {stored.meta.episode for stored in store.episodes()}
    if backend.raw is not None:
        left = set(backend.raw.scan_iter(f"wr:{{{episode}}}:*", count=10_000))
        # Whether somebody watches goes by itself, seconds later.
        assert left <= {f"wr:{{{episode}}}:0:watched".encode()}
    created(store, episode)


def test_a_retained_episode_expires_by_itself(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    store.close(lease, 0, "close", "horizon", b"")
    store.retain(episode, 0.8)
    assert store.attach(episode).status == "horizon"
    time.sleep(0.9)
    with pytest.raises(EpisodeMissingError):
        store.attach(episode)
    assert episode not in {stored.meta.episode for stored in store.episodes()}


def test_a_fork_of_an_expiring_episode_keeps_all_of_it(store: WorldStore, episode: str) -> None:
    lease = created(store, episode)
    advance(store, lease, 1, 4)
    store.close(lease, 4, "close", "horizon", b"")
    store.retain(episode, 1.0)
    store.fork(episode, "0", 2, "f", "what if")
    time.sleep(1.2)
    assert as_stored(store.world(episode)) == replayed(4)
    assert as_stored(store.world(episode, "f")) == replayed(2)
    assert len(list(store.log(episode, "f"))) == 3


# --- the store itself -------------------------------------------------------------------------


def test_a_store_says_in_one_line_what_it_is_and_no_secret(store: WorldStore) -> None:
    assert store.name in {"embedded", ":memory:", "inprocess", "fakeredis", "server"}
    assert "\n" not in store.description
    assert store.name in store.description
    assert ("not durable" in store.description) is not store.durable
    assert "no-functions-for-me" not in store.description
    assert "restricted" not in store.description


def test_what_one_client_writes_another_reads(backend: Backend, episode: str) -> None:
    assert backend.again is not None
    lease = created(backend.store, episode)
    advance(backend.store, lease, 1, 3)
    other = backend.again()
    assert as_stored(other.world(episode)) == replayed(3)
    assert other.apply(lease, 3, request_of(lease, 4), delta_of(4), b"") == Applied("OK", 4)
    assert backend.store.attach(episode).step == 4
    if other is not backend.store:
        other.disconnect()
