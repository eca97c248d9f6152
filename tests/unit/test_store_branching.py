"""A fork that was interrupted: seen by nobody, in nobody's way, and gone with its episode."""

from __future__ import annotations

import fakeredis
import pytest

from tests.support.stores import advance, as_stored, created, replayed, start_snapshot
from world.errors import EpisodeMissingError, WorldError
from world.store import branching
from world.store.keys import BranchKeys, in_pairs
from world.store.link import Link
from world.store.redis_store import RedisStore

COLUMNS = tuple(start_snapshot().columns)


@pytest.fixture
def link() -> Link:
    return Link(fakeredis.FakeRedis(protocol=2), "fakeredis", 1.0)


@pytest.fixture
def store(link: Link) -> RedisStore:
    """An episode of 120 steps, and a fork at step 60 that stopped half way."""
    made = RedisStore(link, "fakeredis", "fakeredis: not durable", durable=False)
    lease = created(made, "e")
    advance(made, lease, 1, 120)
    made.release(lease)
    _begin(link, "half", "somebody", 0)
    return made


def _begin(link: Link, branch: str, token: str, base: int) -> None:
    source, target = BranchKeys("e", "0").image(base), BranchKeys("e", branch)
    pairs = in_pairs(source.columns(COLUMNS), target.columns(COLUMNS))
    keys = [target.shared.branches, target.shared.known, source.world, target.world, *pairs]
    assert link.call("wr_fork", keys, [branch, token, base]) == 1


def _replay(link: Link, branch: str, token: str, last: int) -> int:
    target = BranchKeys("e", branch)
    keys = [BranchKeys("e", "0").log, target.world, *target.columns(COLUMNS)]
    return int(link.call("wr_replay", keys, [token, 50, last, *COLUMNS]))


def test_a_half_made_branch_is_there_for_nobody(store: RedisStore) -> None:
    assert set(store.branches("e")) == {"0"}
    for look in (store.attach, store.world, lambda *at: list(store.log(*at)), store.snapshot):
        with pytest.raises(EpisodeMissingError):
            look("e", "half")
    with pytest.raises(EpisodeMissingError):
        store.lease("e", "half", "h")
    with pytest.raises(EpisodeMissingError):
        store.journal("e", "half", 1, "a", b"x")


def test_a_half_made_branch_can_be_made_anew(store: RedisStore, link: Link) -> None:
    assert _replay(link, "half", "somebody", 60) == 50
    store.fork("e", "0", 60, "half", "again")
    assert as_stored(store.world("e", "half")) == replayed(60)


def test_who_lost_the_race_for_a_name_cannot_go_on(store: RedisStore, link: Link) -> None:
    _begin(link, "half", "somebody else", 100)
    with pytest.raises(Exception, match="WR_EXISTS"):
        _replay(link, "half", "somebody", 60)
    assert _replay(link, "half", "somebody else", 110) == 110
    store.fork("e", "0", 3, "half", "a third")
    with pytest.raises(Exception, match="WR_EXISTS"):
        _begin(link, "half", "somebody", 0)


def test_replaying_takes_bounded_calls_and_stops_at_its_step(store: RedisStore, link: Link) -> None:
    assert [_replay(link, "half", "somebody", 60) for _ in range(3)] == [50, 60, 60]


def test_a_log_with_a_hole_is_not_replayed(store: RedisStore, link: Link) -> None:
    link.run("XDEL", BranchKeys("e", "0").log, "30-0")
    with pytest.raises(WorldError, match="hole"):
        store.fork("e", "0", 60, "f", "")
    assert set(store.branches("e")) == {"0"}


def test_a_half_made_branch_goes_with_its_episode(store: RedisStore, link: Link) -> None:
    lease = store.lease("e", "0", "h")
    assert lease is not None
    store.close(lease, 120, "close", "horizon", b"")
    store.retain("e", 0)
    assert link.run("KEYS", "wr:{e}:*") == []


def test_the_lineage_names_each_stretch_once() -> None:
    link = Link(fakeredis.FakeRedis(protocol=2), "fakeredis", 1.0)
    key = BranchKeys("e", "0").shared.branches
    for branch, entry in {"0": ("", 0), "a": ("0", 5), "b": ("a", 3), "c": ("b", 9)}.items():
        link.run("HSET", key, branch, branching.entry_to_json(*entry, ""))
    assert branching.lineage(link, "e", "c") == [("0", 3), ("a", 3), ("b", 9), ("c", None)]
