"""Which episodes a server holds, and how long it keeps them.

The index is two sorted sets beside the episodes, in another slot, so no function can change both
at once. An episode is announced before it is created and unlisted after it is gone: the index may
name one that is not there, which a listing notices, but never misses one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from world.store.base import EpisodeMeta, Stored
from world.store.branching import read_branches
from world.store.checks import MAIN_BRANCH, OPEN
from world.store.keys import INDEX_ALL, INDEX_OPEN, BranchKeys, EpisodeKeys
from world.store.link import Link
from world.store.refusals import missing, still_open

_EPISODES_PER_CALL = 250
_KEYS_PER_CALL = 500
_GRACE_US = 60_000_000
"""An announced episode that is not there after a minute was never created."""


def announce(link: Link, episode: str) -> int:
    """List an episode that is about to be created.

    Returns:
        The server's time, in microseconds.
    """
    seconds, microseconds = link.run("TIME")
    now_us = int(seconds) * 1_000_000 + int(microseconds)
    link.run("ZADD", INDEX_ALL, "NX", now_us, episode)
    return now_us


def opened(link: Link, episode: str, created_us: int) -> None:
    """List a created episode as open; and again as there, had a listing just unlisted it."""
    link.run_all(
        [
            ("ZADD", INDEX_ALL, "NX", created_us, episode),
            ("ZADD", INDEX_OPEN, created_us, episode),
        ]
    )


def closed(link: Link, episode: str) -> None:
    """List an episode as open no more."""
    link.run("ZREM", INDEX_OPEN, episode)


def header_commands(keys: BranchKeys) -> list[tuple[str, ...]]:
    """The two reads that make a `Stored`."""
    return [
        ("HGETALL", keys.shared.meta),
        ("HMGET", keys.world, "step", "status", "fence", "req"),
    ]


def stored_of(
    branch: str, meta: Mapping[bytes, bytes], header: Sequence[bytes | None]
) -> Stored | None:
    """A `Stored` from what `header_commands` read, or None where there is no such branch."""
    step, status, fence, request = header
    if not meta or step is None or status is None or status == b"forking":
        return None
    text = {name.decode(): value.decode() for name, value in meta.items()}
    about = EpisodeMeta(
        episode=text["episode"],
        scenario=text["scenario"],
        scenario_digest=text["scenario_digest"],
        seed=int(text["seed"]),
        config=text["config"],
        schema=int(text["schema"]),
    )
    return Stored(
        about, branch, int(step), status.decode(), int(fence or 0), (request or b"").decode()
    )


def episodes(link: Link, status: str | None) -> tuple[Stored, ...]:
    """See `WorldStore.episodes`."""
    index = INDEX_OPEN if status == OPEN else INDEX_ALL
    flat, (seconds, _) = link.run_all([("ZRANGE", index, 0, -1, "WITHSCORES"), ("TIME",)])
    scores = _scores(flat)
    names = tuple(scores)
    found: list[Stored] = []
    gone: list[str] = []
    for first in range(0, len(names), _EPISODES_PER_CALL):
        page = names[first : first + _EPISODES_PER_CALL]
        replies = link.run_all(
            [command for name in page for command in header_commands(BranchKeys(name, MAIN_BRANCH))]
        )
        for name, meta, header in zip(page, replies[::2], replies[1::2], strict=True):
            stored = stored_of(MAIN_BRANCH, meta, header)
            if stored is None:
                gone.append(name)
            elif status is None or stored.status == status:
                found.append(stored)
    stale_us = int(seconds) * 1_000_000 - _GRACE_US
    lapsed = [name for name in gone if scores[name] < stale_us]
    if lapsed:
        _unlist(link, lapsed)
    return tuple(found)


def retain(link: Link, episode: str, ttl_s: float) -> None:
    """See `WorldStore.retain`."""
    shared = EpisodeKeys(episode)
    branches = [BranchKeys(episode, name) for name in read_branches(link, episode)]
    main = BranchKeys(episode, MAIN_BRANCH)
    status, known, *leases = link.run_all(
        [
            ("HGET", main.world, "status"),
            ("SMEMBERS", shared.known),
            *(("EXISTS", keys.lease) for keys in branches),
        ]
    )
    if status is None:
        raise missing(episode, MAIN_BRANCH)
    if status == OPEN.encode() or any(leases):
        raise still_open(episode)
    # What leads to the rest goes last, so that an interrupted removal can be taken up again.
    last = [shared.known, shared.branches, main.world]
    keys = [key for key in sorted(known) if key.decode() not in last]
    ttl_ms = round(ttl_s * 1000)
    for first in range(0, len(keys), _KEYS_PER_CALL):
        _end(link, keys[first : first + _KEYS_PER_CALL], ttl_ms)
    _end(link, last, ttl_ms)
    if ttl_ms <= 0:
        _unlist(link, [episode])


def _end(link: Link, keys: Sequence[Any], ttl_ms: int) -> None:
    if not keys:
        return
    if ttl_ms <= 0:
        link.run("UNLINK", *keys)
    else:
        link.run_all([("PEXPIRE", key, ttl_ms) for key in keys])


def _unlist(link: Link, names: Sequence[str]) -> None:
    link.run_all([("ZREM", INDEX_ALL, *names), ("ZREM", INDEX_OPEN, *names)])


def _scores(flat: Sequence[Any]) -> dict[str, float]:
    """Member → score, however the client library paired them."""
    if flat and isinstance(flat[0], tuple | list):
        pairs = [(pair[0], pair[1]) for pair in flat]
    else:
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
    return {name.decode(): float(score) for name, score in pairs}
