"""Episodes on a Redis-compatible server: one server-side function per change, one trip per step.

Redis 7.0 or later, any Valkey, and fakeredis. Nothing here decides; functions.lua does, in one
place and all or nothing. This class packs, calls and unpacks.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, Literal

import redis

from world.errors import WorldError
from world.model import Delta, Snapshot
from world.store import branching, codec, index
from world.store.base import Applied, EpisodeMeta, Lease, LiveEvent, LogEntry, Stored
from world.store.checks import (
    MAIN_BRANCH,
    START_REQUEST,
    check_branch,
    check_journal,
    check_lease,
    check_new_episode,
    check_reason,
    check_request,
    check_status,
    possible_episode,
    snapshot_due,
)
from world.store.keys import BranchKeys, in_pairs
from world.store.leases import is_dead
from world.store.link import Link
from world.store.refusals import behind, closed, fenced, malformed, missing, stale

_PAGE = 100
_WATCHED_MS = 10_000
_MAX_WAIT_S = 2.0
_UNWATCHED_S = 0.5
_CURSOR = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\Z")


@lru_cache(maxsize=4096)
def _keys(episode: str, branch: str) -> BranchKeys:
    return BranchKeys(episode, branch)


class RedisStore:
    """A `WorldStore` on a server. Safe to use from several threads, never across a fork.

    Args:
        link: The line to the server.
        name: Name of the store, as `WorldStore.name`.
        description: One line for people.
        durable: Whether an acknowledged step survives a killed process.
        on_disconnect: Called once when the store is closed.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        link: Link,
        name: str,
        description: str,
        durable: bool,
        on_disconnect: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.description = description
        self.durable = durable
        self._link = link
        self._on_disconnect = on_disconnect
        self._clock = clock
        self._columns: dict[str, tuple[str, ...]] = {}
        self._unwatched_until_s: dict[tuple[str, str], float] = {}

    def create(self, meta: EpisodeMeta, snapshot: Snapshot, payload: bytes) -> bool:
        """See `WorldStore.create`."""
        check_new_episode(meta, snapshot)
        check_request(0, START_REQUEST, payload)
        frame = codec.frame_of(snapshot)
        names = tuple(frame.dtypes)
        keys = _keys(meta.episode, MAIN_BRANCH)
        shared, image = keys.shared, keys.image(0)
        created_us = index.announce(self._link, meta.episode)
        about = {each.name: str(getattr(meta, each.name)) for each in fields(EpisodeMeta)}
        about["created_us"] = str(created_us)
        created = self._call(
            meta.episode,
            MAIN_BRANCH,
            "wr_create",
            [
                *(shared.meta, shared.ids, keys.world, keys.log, shared.known, shared.branches),
                *(keys.images, image.world, *keys.columns(names), *image.columns(names)),
            ],
            [
                secrets.token_hex(16),
                codec.frame_to_json(frame),
                payload,
                codec.pack_metrics(snapshot.metrics),
                snapshot.hidden,
                branching.entry_to_json("", 0, ""),
                " ".join(names),
                len(about),
                *(text for pair in about.items() for text in pair),
                *(codec.column_to_bytes(column) for column in snapshot.columns.values()),
            ],
        )
        if created:
            index.opened(self._link, meta.episode, created_us)
        return bool(created)

    def attach(self, episode: str, branch: str = MAIN_BRANCH) -> Stored:
        """See `WorldStore.attach`."""
        keys = self._possible(episode, branch)
        meta, header = self._link.run_all(index.header_commands(keys))
        found = index.stored_of(branch, meta, header)
        if found is None:
            raise missing(episode, branch)
        return found

    def lease(self, episode: str, branch: str, holder: str, ttl_s: float = 3.0) -> Lease | None:
        """See `WorldStore.lease`. A holder of this host that has died is succeeded at once."""
        check_lease(holder, ttl_s)
        keys = self._possible(episode, branch)
        ttl_ms = max(1, round(ttl_s * 1000))
        dead = ""
        while True:
            taken, fence, rest = self._call(
                episode, branch, "wr_lease", [keys.world, keys.lease], [holder, ttl_ms, dead]
            )
            if taken:
                self._remember_columns(episode, rest)
                return Lease(episode, branch, holder, int(fence), ttl_s)
            current = rest.decode(errors="replace")
            if current == dead or not is_dead(current):
                return None
            dead = current

    def release(self, lease: Lease) -> None:
        """See `WorldStore.release`."""
        keys = _keys(lease.episode, lease.branch)
        self._call(
            lease.episode,
            lease.branch,
            "wr_release",
            [keys.world, keys.lease],
            [lease.holder, lease.fence],
        )

    def apply(
        self, lease: Lease, expected_step: int, request_id: str, delta: Delta, payload: bytes
    ) -> Applied:
        """See `WorldStore.apply`."""
        check_request(expected_step, request_id, payload)
        keys = _keys(lease.episode, lease.branch)
        names = [keys.world, keys.log, keys.lease]
        touched: tuple[str, ...] = ()
        cells = b""
        if delta.cells:
            touched, cells = codec.pack_cells(delta.cells)
            names += keys.columns(touched)
        if snapshot_due(expected_step + 1):
            names += self._image_keys(keys, lease.episode, expected_step + 1)
        word, step = self._call(
            lease.episode,
            lease.branch,
            "wr_apply",
            names,
            (
                lease.fence,
                lease.holder,
                expected_step,
                request_id,
                payload,
                codec.pack_metrics(delta.metrics),
                delta.hidden,
                " ".join(touched),
                cells,
                len(touched),
                max(1, round(lease.ttl_s * 1000)),
            ),
            expected_step,
        )
        return _applied(word, step)

    def close(
        self, lease: Lease, expected_step: int, request_id: str, status: str, payload: bytes
    ) -> Applied:
        """See `WorldStore.close`."""
        check_request(expected_step, request_id, payload)
        check_status(status)
        keys = _keys(lease.episode, lease.branch)
        word, step = self._call(
            lease.episode,
            lease.branch,
            "wr_close",
            [keys.world, keys.log, keys.lease],
            [lease.fence, lease.holder, expected_step, request_id, payload, status],
            expected_step,
        )
        if lease.branch == MAIN_BRANCH:
            index.closed(self._link, lease.episode)
        return _applied(word, step)

    def log(self, episode: str, branch: str = MAIN_BRANCH, since: int = 0) -> Iterator[LogEntry]:
        """See `WorldStore.log`."""
        self._possible(episode, branch)
        return self._entries(branching.lineage(self._link, episode, branch), episode, since)

    def world(self, episode: str, branch: str = MAIN_BRANCH) -> Snapshot:
        """See `WorldStore.world`."""
        keys = self._possible(episode, branch)
        names = self._column_names(keys, episode)
        flat, frame_json, *columns = self._call(
            episode,
            branch,
            "wr_world",
            [keys.world, keys.shared.ids, *keys.columns(names)],
            [],
        )
        held = dict(zip(flat[::2], flat[1::2], strict=True))
        if frame_json is None or None in columns or held[b"status"] == b"forking":
            raise missing(episode, branch)
        frame = codec.frame_from_json(frame_json)
        metrics = {
            name[2:].decode(): codec.unpack_float(value)
            for name, value in held.items()
            if name.startswith(b"m:")
        }
        arrays = {
            name: codec.column_from_bytes(data, frame.dtypes[name])
            for name, data in zip(names, columns, strict=True)
        }
        return Snapshot(
            int(held[b"step"]), metrics, held[b"hidden"], arrays, frame.ids, frame.vocabulary
        )

    def snapshot(self, episode: str, branch: str = MAIN_BRANCH) -> int:
        """See `WorldStore.snapshot`."""
        keys = self._possible(episode, branch)
        step = self.attach(episode, branch).step
        while True:
            names = [keys.world, *self._image_keys(keys, episode, step)]
            reached = int(self._call(episode, branch, "wr_snapshot", names, [step]))
            if reached == step:
                return step
            step = reached

    def fork(self, episode: str, branch: str, step: int, new_branch: str, reason: str) -> None:
        """See `WorldStore.fork`."""
        check_branch(new_branch)
        check_reason(reason)
        keys = self._possible(episode, branch)
        names = self._column_names(keys, episode)
        branching.fork(self._link, episode, branch, step, new_branch, reason, names)

    def branches(self, episode: str) -> Mapping[str, tuple[str, int, str]]:
        """See `WorldStore.branches`."""
        self._possible(episode, MAIN_BRANCH)
        return branching.read_branches(self._link, episode)

    def journal(self, episode: str, branch: str, step: int, field: str, value: bytes) -> bytes:
        """See `WorldStore.journal`."""
        check_journal(step, field, value)
        keys = self._possible(episode, branch)
        stands = self._call(
            episode,
            branch,
            "wr_journal",
            [keys.world, keys.journal(step), keys.shared.known],
            [field, value],
        )
        return bytes(stands)

    def journalled(self, episode: str, branch: str, step: int) -> Mapping[str, bytes]:
        """See `WorldStore.journalled`."""
        keys = self._possible(episode, branch)
        exists, replies = self._link.run_all(
            [("EXISTS", keys.world), ("HGETALL", keys.journal(step))]
        )
        if not exists:
            raise missing(episode, branch)
        return {name.decode(): value for name, value in replies.items()}

    def live(self, episode: str, branch: str, fence: int, events: Sequence[bytes]) -> None:
        """See `WorldStore.live`."""
        if not events or self._unwatched_until_s.get((episode, branch), 0.0) > self._clock():
            return
        keys = _keys(episode, branch)
        watched = self._link.call_once(
            "wr_live",
            [keys.world, keys.watched, keys.live, keys.shared.known],
            [fence, *events],
        )
        if not watched:
            self._unwatched_until_s[episode, branch] = self._clock() + _UNWATCHED_S

    def watch(
        self, episode: str, branch: str, cursor: str = "", wait_s: float = 0.0
    ) -> Sequence[LiveEvent]:
        """See `WorldStore.watch`."""
        keys = self._possible(episode, branch)
        exists, _ = self._link.run_all(
            [("EXISTS", keys.world), ("SET", keys.watched, 1, "PX", _WATCHED_MS)]
        )
        if not exists:
            raise missing(episode, branch)
        after = cursor if _CURSOR.match(cursor) else "0-0"
        # The wait stays well below the time after which the socket counts as dead.
        wait_ms = int(1000 * min(wait_s, _MAX_WAIT_S, self._link.timeout_s / 2))
        block = ("BLOCK", wait_ms) if wait_ms > 0 else ()
        reply = self._link.run("XREAD", "COUNT", 1000, *block, "STREAMS", keys.live, after)
        return tuple(
            LiveEvent(cursor_.decode(), int(found[b"f"]), found[b"e"])
            for _, entries in reply or ()
            for cursor_, found in entries
        )

    def episodes(self, status: str | None = None) -> Sequence[Stored]:
        """See `WorldStore.episodes`."""
        return index.episodes(self._link, status)

    def retain(self, episode: str, ttl_s: float) -> None:
        """See `WorldStore.retain`."""
        self._possible(episode, MAIN_BRANCH)
        index.retain(self._link, episode, ttl_s)
        if ttl_s <= 0:
            self._columns.pop(episode, None)

    def disconnect(self) -> None:
        """See `WorldStore.disconnect`."""
        self._link.close()
        on_disconnect, self._on_disconnect = self._on_disconnect, None
        if on_disconnect is not None:
            on_disconnect()

    def _call(
        self,
        episode: str,
        branch: str,
        name: str,
        keys: Sequence[str],
        args: Sequence[Any],
        expected_step: int = 0,
    ) -> Any:
        try:
            return self._link.call(name, keys, args)
        except redis.ResponseError as error:
            raise _refusal(str(error), episode, branch, expected_step) from None

    def _possible(self, episode: str, branch: str) -> BranchKeys:
        if not possible_episode(episode, branch):
            raise missing(episode, branch)
        return _keys(episode, branch)

    def _remember_columns(self, episode: str, names: bytes) -> tuple[str, ...]:
        if len(self._columns) > 4096:
            self._columns.clear()
        found = self._columns[episode] = tuple(names.decode().split())
        return found

    def _column_names(self, keys: BranchKeys, episode: str) -> tuple[str, ...]:
        """Columns of an episode; they never change."""
        known = self._columns.get(episode)
        if known is None:
            names = self._link.run("HGET", keys.world, "cols")
            if names is None:
                return ()
            known = self._remember_columns(episode, names)
        return known

    def _image_keys(self, keys: BranchKeys, episode: str, step: int) -> list[str]:
        names = self._column_names(keys, episode)
        image = keys.image(step)
        pairs = in_pairs(keys.columns(names), image.columns(names))
        return [keys.images, keys.shared.known, image.world, *pairs]

    def _entries(
        self, lines: Sequence[branching.Line], episode: str, since: int
    ) -> Iterator[LogEntry]:
        for line in lines:
            keys = _keys(episode, line.branch)
            # k-0 is step k and 0-1 the start, so k-1 ends before the close, which is k-2.
            stop = "+" if line.last is None else f"{line.last}-1"
            first = f"{max(since, 0)}-0"
            while True:
                page = self._link.run("XRANGE", keys.log, first, stop, "COUNT", _PAGE)
                for entry_id, found in page:
                    yield _log_entry(entry_id, found)
                if len(page) < _PAGE:
                    break
                first = f"({page[-1][0].decode()}"


def _applied(word: bytes, step: int) -> Applied:
    return Applied("DUP" if word == b"DUP" else "OK", int(step))


def _log_entry(entry_id: bytes, found: Mapping[bytes, bytes]) -> LogEntry:
    step, _, place = entry_id.partition(b"-")
    kinds: dict[bytes, Literal["start", "step", "close"]] = {b"0": "step", b"1": "start"}
    kind = kinds.get(place, "close")
    delta = None
    if kind == "step":
        columns = found[b"n"].decode().split()
        delta = Delta(
            codec.unpack_metrics(found[b"m"]),
            found[b"h"],
            codec.unpack_cells(columns, found[b"c"]),
        )
    return LogEntry(int(step), kind, found[b"r"].decode(), found[b"d"], delta)


def _refusal(text: str, episode: str, branch: str, expected_step: int) -> WorldError:
    """A ``WR_…`` reply as the error it stands for."""
    code, _, rest = text.partition(" ")
    if code == "WR_NOEPISODE":
        return missing(episode, branch)
    if code == "WR_STALE":
        return stale(episode, int(rest), expected_step)
    if code == "WR_BEHIND":
        return behind(episode, int(rest), expected_step)
    if code == "WR_FENCED":
        return fenced(episode, branch, int(rest))
    if code == "WR_CLOSED":
        return closed(episode, rest)
    return malformed(rest or text)
