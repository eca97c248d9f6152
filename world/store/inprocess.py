"""A store in plain Python objects: no server, no encoding, gone with the process.

For sweeps and training, where nothing is shared, watched or resumed. It promises what every
`WorldStore` promises, and the same contract suite checks it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from world.errors import WorldError
from world.model import Delta, Snapshot
from world.store.base import (
    Applied,
    EpisodeMeta,
    Lease,
    LiveEvent,
    LogEntry,
    Stored,
)
from world.store.checks import (
    MAIN_BRANCH,
    OPEN,
    START_REQUEST,
    check_branch,
    check_cells,
    check_journal,
    check_lease,
    check_metric_names,
    check_new_episode,
    check_reason,
    check_request,
    check_runs,
    check_status,
    snapshot_due,
)
from world.store.codec import (
    Frame,
    apply_delta,
    column_from_bytes,
    column_to_bytes,
    frame_of,
)
from world.store.refusals import (
    behind,
    branch_exists,
    closed,
    fenced,
    malformed,
    missing,
    not_reached,
    stale,
    still_open,
)

_LIVE_KEPT = 2_000
_WATCHED_S = 10.0
_MAX_WAIT_S = 2.0


class _Image(NamedTuple):
    """A world at one step, never changed."""

    metrics: dict[str, float]
    hidden: bytes
    columns: dict[str, bytes]


class _Branch:
    """One line of steps. Only `InProcessStore` touches it, under its lock."""

    __slots__ = (
        "closing",
        "columns",
        "episode",
        "fence",
        "fork_step",
        "hidden",
        "holder",
        "holder_until_s",
        "images",
        "journal",
        "live",
        "live_count",
        "log",
        "metrics",
        "parent",
        "reason",
        "request_id",
        "status",
        "step",
        "watched_until_s",
    )

    def __init__(
        self, episode: str, image: _Image, step: int, parent: str = "", reason: str = ""
    ) -> None:
        self.episode = episode
        self.step = step
        self.fork_step = step
        self.parent = parent
        self.reason = reason
        self.status = OPEN
        self.request_id = ""
        self.fence = 0
        self.holder = ""
        self.holder_until_s = 0.0
        self.metrics = dict(image.metrics)
        self.hidden = image.hidden
        self.columns = {name: bytearray(data) for name, data in image.columns.items()}
        self.images = {step: image}
        self.log: list[tuple[str, bytes, Delta]] = []
        self.closing: tuple[str, bytes] | None = None
        self.journal: dict[int, dict[str, bytes]] = {}
        self.live: deque[LiveEvent] = deque(maxlen=_LIVE_KEPT)
        self.live_count = 0
        self.watched_until_s = 0.0

    def image(self) -> _Image:
        """A copy of the world as it is now."""
        columns = {name: bytes(data) for name, data in self.columns.items()}
        return _Image(dict(self.metrics), self.hidden, columns)


class _Episode:
    """What all branches of an episode share."""

    __slots__ = ("branches", "expires_at_s", "frame", "meta", "start")

    def __init__(self, meta: EpisodeMeta, frame: Frame, start: bytes) -> None:
        self.meta = meta
        self.frame = frame
        self.start = start
        self.branches: dict[str, _Branch] = {}
        self.expires_at_s: float | None = None


class InProcessStore:
    """Episodes of this process, as plain objects.

    Args:
        keep_log: Keep the committed steps. Without, memory does not grow with the steps, and
            `log` and forks of earlier steps are refused: for training.
        clock: Seconds that never go back; leases and expiry are measured by it.
    """

    name = "inprocess"
    description = "inprocess: plain Python objects, one process, not durable"
    durable = False

    def __init__(
        self, *, keep_log: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keep_log = keep_log
        self._clock = clock
        self._lock = threading.Condition(threading.RLock())
        self._episodes: dict[str, _Episode] = {}
        self._branches: dict[tuple[str, str], _Branch] = {}

    def create(self, meta: EpisodeMeta, snapshot: Snapshot, payload: bytes) -> bool:
        """See `WorldStore.create`."""
        check_new_episode(meta, snapshot)
        check_request(0, START_REQUEST, payload)
        frame = frame_of(snapshot)
        columns = {name: column_to_bytes(column) for name, column in snapshot.columns.items()}
        metrics = {name: float(value) for name, value in snapshot.metrics.items()}
        with self._lock:
            if self._find(meta.episode) is not None:
                return False
            episode = _Episode(meta, frame, payload)
            image = _Image(metrics, snapshot.hidden, columns)
            branch = _Branch(meta.episode, image, 0)
            branch.request_id = START_REQUEST
            self._add(episode, MAIN_BRANCH, branch)
            self._episodes[meta.episode] = episode
            return True

    def attach(self, episode: str, branch: str = MAIN_BRANCH) -> Stored:
        """See `WorldStore.attach`."""
        with self._lock:
            return self._stored(*self._get(episode, branch), branch)

    def lease(self, episode: str, branch: str, holder: str, ttl_s: float = 3.0) -> Lease | None:
        """See `WorldStore.lease`."""
        check_lease(holder, ttl_s)
        with self._lock:
            held = self._get(episode, branch)[1]
            now_s = self._clock()
            if held.holder != holder:
                if held.holder_until_s > now_s:
                    return None
                held.holder = holder
                held.fence += 1
            if held.status == OPEN:  # a closed branch has nothing to drive
                held.holder_until_s = now_s + ttl_s
            return Lease(episode, branch, holder, held.fence, ttl_s)

    def release(self, lease: Lease) -> None:
        """See `WorldStore.release`."""
        with self._lock:
            held = self._branches.get((lease.episode, lease.branch))
            if held is not None and held.holder == lease.holder and held.fence == lease.fence:
                held.holder_until_s = 0.0

    def apply(
        self, lease: Lease, expected_step: int, request_id: str, delta: Delta, payload: bytes
    ) -> Applied:
        """See `WorldStore.apply`."""
        check_request(expected_step, request_id, payload)
        if delta.cells:
            check_runs(delta.cells)
        with self._lock:
            branch = self._branches.get((lease.episode, lease.branch))
            if branch is None or not delta.metrics.keys() <= branch.metrics.keys():
                check_metric_names(delta.metrics)
            if branch is None:
                raise missing(lease.episode, lease.branch)
            if not self._may_write(branch, lease, expected_step, request_id):
                return Applied("DUP", branch.step)
            if delta.cells:
                check_cells(delta.cells, branch.columns)
            branch.hidden = apply_delta(delta, branch.metrics, branch.hidden, branch.columns)
            branch.request_id = request_id
            branch.step = step = expected_step + 1
            now_s = self._clock()
            if branch.holder_until_s > now_s:
                branch.holder_until_s = now_s + lease.ttl_s
            if self._keep_log:
                branch.log.append((request_id, payload, delta))
                if snapshot_due(step):
                    branch.images[step] = branch.image()
            return Applied("OK", step)

    def close(
        self, lease: Lease, expected_step: int, request_id: str, status: str, payload: bytes
    ) -> Applied:
        """See `WorldStore.close`."""
        check_request(expected_step, request_id, payload)
        check_status(status)
        with self._lock:
            branch = self._get(lease.episode, lease.branch)[1]
            if not self._may_write(branch, lease, expected_step, request_id):
                return Applied("DUP", branch.step)
            branch.status = status
            branch.request_id = request_id
            branch.closing = (request_id, payload)
            branch.holder_until_s = 0.0
            return Applied("OK", branch.step)

    def log(self, episode: str, branch: str = MAIN_BRANCH, since: int = 0) -> Iterator[LogEntry]:
        """See `WorldStore.log`.

        Raises:
            WorldError: This store was made without a log.
        """
        with self._lock:
            known, held = self._get(episode, branch)
            if not self._keep_log:
                raise WorldError(
                    f"the steps of episode {episode!r} were not kept",
                    "this store was made with keep_log=False, for training",
                    "Make it with keep_log=True",
                )
        return self._entries(known, held, since)

    def world(self, episode: str, branch: str = MAIN_BRANCH) -> Snapshot:
        """See `WorldStore.world`."""
        with self._lock:
            known, held = self._get(episode, branch)
            image, step = held.image(), held.step
        frame = known.frame
        columns = {
            name: column_from_bytes(image.columns[name], dtype)
            for name, dtype in frame.dtypes.items()
        }
        return Snapshot(step, image.metrics, image.hidden, columns, frame.ids, frame.vocabulary)

    def snapshot(self, episode: str, branch: str = MAIN_BRANCH) -> int:
        """See `WorldStore.snapshot`."""
        with self._lock:
            held = self._get(episode, branch)[1]
            held.images[held.step] = held.image()
            return held.step

    def fork(self, episode: str, branch: str, step: int, new_branch: str, reason: str) -> None:
        """See `WorldStore.fork`."""
        check_branch(new_branch)
        check_reason(reason)
        with self._lock:
            known, held = self._get(episode, branch)
            if new_branch in known.branches:
                raise branch_exists(episode, new_branch)
            if not 0 <= step <= held.step:
                raise not_reached(episode, branch, step, held.step)
            image = self._image_at(known, held, step)
            self._add(known, new_branch, _Branch(episode, image, step, branch, reason))
            known.expires_at_s = None

    def branches(self, episode: str) -> Mapping[str, tuple[str, int, str]]:
        """See `WorldStore.branches`."""
        with self._lock:
            known = self._get(episode, MAIN_BRANCH)[0]
            return {
                name: (held.parent, held.fork_step, held.reason)
                for name, held in known.branches.items()
            }

    def journal(self, episode: str, branch: str, step: int, field: str, value: bytes) -> bytes:
        """See `WorldStore.journal`."""
        check_journal(step, field, value)
        with self._lock:
            held = self._get(episode, branch)[1]
            first = held.journal.get(step, {}).get(field)
            if first is not None:
                return first
            if held.status != OPEN:
                raise closed(episode, held.status)
            held.journal.setdefault(step, {})[field] = value
            return value

    def journalled(self, episode: str, branch: str, step: int) -> Mapping[str, bytes]:
        """See `WorldStore.journalled`."""
        with self._lock:
            return dict(self._get(episode, branch)[1].journal.get(step, {}))

    def live(self, episode: str, branch: str, fence: int, events: Sequence[bytes]) -> None:
        """See `WorldStore.live`."""
        with self._lock:
            held = self._branches.get((episode, branch))
            if held is None or held.status != OPEN or held.fence != fence:
                return
            if held.watched_until_s <= self._clock():
                return
            for event in events:
                held.live_count += 1
                held.live.append(LiveEvent(str(held.live_count), fence, event))
            self._lock.notify_all()

    def watch(
        self, episode: str, branch: str, cursor: str = "", wait_s: float = 0.0
    ) -> Sequence[LiveEvent]:
        """See `WorldStore.watch`."""
        after = int(cursor) if cursor.isdecimal() else 0
        with self._lock:
            held = self._get(episode, branch)[1]
            held.watched_until_s = self._clock() + _WATCHED_S
            self._lock.wait_for(
                lambda: held.live_count > after, timeout=min(max(wait_s, 0.0), _MAX_WAIT_S)
            )
            return tuple(event for event in held.live if int(event.cursor) > after)

    def episodes(self, status: str | None = None) -> Sequence[Stored]:
        """See `WorldStore.episodes`."""
        with self._lock:
            known = [found for name in tuple(self._episodes) if (found := self._find(name))]
            rows = [
                self._stored(episode, episode.branches[MAIN_BRANCH], MAIN_BRANCH)
                for episode in known
            ]
        return tuple(row for row in rows if status is None or row.status == status)

    def retain(self, episode: str, ttl_s: float) -> None:
        """See `WorldStore.retain`."""
        with self._lock:
            known = self._get(episode, MAIN_BRANCH)[0]
            now_s = self._clock()
            leased = any(held.holder_until_s > now_s for held in known.branches.values())
            if leased or known.branches[MAIN_BRANCH].status == OPEN:
                raise still_open(episode)
            known.expires_at_s = now_s + ttl_s
            self._find(episode)

    def disconnect(self) -> None:
        """See `WorldStore.disconnect`; the episodes stay for as long as this object does."""

    def _add(self, episode: _Episode, name: str, branch: _Branch) -> None:
        episode.branches[name] = branch
        self._branches[episode.meta.episode, name] = branch

    def _find(self, episode: str) -> _Episode | None:
        """An episode that has not expired."""
        known = self._episodes.get(episode)
        if known is None or known.expires_at_s is None or known.expires_at_s > self._clock():
            return known
        del self._episodes[episode]
        for name in known.branches:
            del self._branches[episode, name]
        return None

    def _get(self, episode: str, branch: str) -> tuple[_Episode, _Branch]:
        known = self._find(episode)
        held = known.branches.get(branch) if known is not None else None
        if known is None or held is None:
            raise missing(episode, branch)
        return known, held

    def _stored(self, episode: _Episode, held: _Branch, branch: str) -> Stored:
        return Stored(episode.meta, branch, held.step, held.status, held.fence, held.request_id)

    def _may_write(
        self, branch: _Branch, lease: Lease, expected_step: int, request_id: str
    ) -> bool:
        """Whether a write goes through; False when it had been applied before."""
        if request_id == branch.request_id:
            return False
        if expected_step < branch.step and self._was_applied(branch, expected_step, request_id):
            return False
        if branch.status != OPEN:
            raise closed(lease.episode, branch.status)
        if lease.fence != branch.fence or lease.holder != branch.holder:
            raise fenced(lease.episode, lease.branch, branch.fence)
        if expected_step < branch.step:
            raise stale(lease.episode, branch.step, expected_step)
        if expected_step > branch.step:
            raise behind(lease.episode, branch.step, expected_step)
        return True

    def _was_applied(self, branch: _Branch, expected_step: int, request_id: str) -> bool:
        position = expected_step - branch.fork_step
        if not 0 <= position < len(branch.log):
            return False
        return branch.log[position][0] == request_id

    def _entries(self, episode: _Episode, held: _Branch, since: int) -> Iterator[LogEntry]:
        """The log of a branch: its ancestors' up to where it left them, then its own."""
        for line, last in self._lineage(episode, held):
            if line.parent == "" and since <= 0:
                yield LogEntry(0, "start", START_REQUEST, episode.start)
            first = max(since - line.fork_step - 1, 0)
            done = islice(line.log, first, max(last - line.fork_step, 0))
            for step, (request_id, payload, delta) in enumerate(done, line.fork_step + first + 1):
                yield LogEntry(step, "step", request_id, payload, delta)
        if held.closing is not None and held.step >= since:
            yield LogEntry(held.step, "close", *held.closing)

    def _lineage(self, episode: _Episode, held: _Branch) -> list[tuple[_Branch, int]]:
        """The branch and its ancestors, oldest first, each with the last step taken from it."""
        line = [(held, held.step)]
        while held.parent:
            last = held.fork_step
            held = episode.branches[held.parent]
            line.append((held, min(last, line[-1][1])))
        return line[::-1]

    def _image_at(self, episode: _Episode, held: _Branch, step: int) -> _Image:
        while step < held.fork_step:
            held = episode.branches[held.parent]
        if step == held.step:
            return held.image()
        if not self._keep_log:
            raise malformed(f"step {step} was not kept (keep_log=False)")
        base = max(kept for kept in held.images if kept <= step)
        image = held.images[base]
        metrics, hidden = dict(image.metrics), image.hidden
        columns = {name: bytearray(data) for name, data in image.columns.items()}
        for _, _, delta in held.log[base - held.fork_step : step - held.fork_step]:
            hidden = apply_delta(delta, metrics, hidden, columns)
        return _Image(metrics, hidden, {name: bytes(data) for name, data in columns.items()})
