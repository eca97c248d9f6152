"""A test kit for stores: does a store keep the promises of `world.store.base.WorldStore`?

`store_faults` writes one short episode, tries what must be refused, and takes the episode out
again. It covers what every room relies on; the suite in the tests tries far more, with killed
processes and competing writers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from world.errors import (
    BehindWorldError,
    EpisodeClosedError,
    EpisodeMissingError,
    LeaseLostError,
    StaleWorldError,
    WorldError,
)
from world.model import Cells, Delta, Snapshot
from world.store.base import Applied, EpisodeMeta, Lease, WorldStore

_ROWS = 5


def store_faults(store: WorldStore, episode: str = "conformance-kit") -> list[str]:
    """What a store breaks; empty when it conforms.

    Args:
        store: What to check; other episodes in it are left alone.
        episode: An id that is free in it; it is taken out at the end.
    """
    faults: list[str] = []
    try:
        faults.extend(_faults_of(store, episode))
        store.retain(episode, 0.0)
        if not _refuses(lambda: store.attach(episode), EpisodeMissingError):
            faults.append("an episode that was taken out can still be read")
    except Exception as error:  # a report names what somebody's store did, whatever it was
        faults.append(f"raised {type(error).__name__}: {error}")
    return faults


def _faults_of(store: WorldStore, episode: str) -> Iterator[str]:
    for name in ("name", "description"):
        if not getattr(store, name, ""):
            yield f"has no {name}"
    if not _refuses(lambda: store.attach(episode), EpisodeMissingError):
        yield "reads an episode that nobody created"
        return
    meta = EpisodeMeta(episode, "kit/plain", "0" * 64, 2**63 - 1, '{"kit":true}')
    if store.create(meta, _start(), b"started") is not True:
        yield "does not create a new episode"
        return
    if store.create(meta, _start(), b"other") is not False:
        yield "creates an episode twice"
    stored = store.attach(episode)
    if (stored.meta, stored.step, stored.status) != (meta, 0, "open"):
        yield "reads another header than was written"
    if not _same(store.world(episode), _start()):
        yield "reads another world than was written"
    lease = store.lease(episode, "0", "kit-a", 60.0)
    if lease is None:
        yield "gives nobody the lease of a new episode"
        return
    if store.lease(episode, "0", "kit-b", 60.0) is not None:
        yield "gives the same lease to two holders"
    yield from _applied(store, lease)
    yield from _refused(store, lease)
    yield from _journalled(store, episode)
    yield from _forked(store, episode)
    yield from _closed(store, lease)


def _applied(store: WorldStore, lease: Lease) -> Iterator[str]:
    for step in (1, 2):
        done = store.apply(lease, step - 1, f"kit/{step}", _delta(step), b"step %d" % step)
        if done != Applied("OK", step):
            yield f"answers {done} to step {step}"
    again = store.apply(lease, 1, "kit/2", _delta(2), b"step 2")
    if again.status != "DUP":
        yield f"answers {again.status} to a request that was applied before, not DUP"
    if not _same(store.world(lease.episode), _after(2)):
        yield "holds another world after two steps than the deltas say"
    entries = [(entry.step, entry.kind, entry.payload) for entry in store.log(lease.episode)]
    if entries != [(0, "start", b"started"), (1, "step", b"step 1"), (2, "step", b"step 2")]:
        yield f"keeps another log than was written: {entries!r:.200}"
    if [entry.step for entry in store.log(lease.episode, since=2)] != [2]:
        yield "reads a log from elsewhere than was asked"


def _refused(store: WorldStore, lease: Lease) -> Iterator[str]:
    """Writes that must be refused, and change nothing."""
    outside = Delta({}, b"", (Cells("load", 8 * _ROWS, bytes(8)),))
    older = Lease(lease.episode, lease.branch, "kit-z", lease.fence - 1, lease.ttl_s)
    attempts: tuple[tuple[str, type[WorldError], Callable[[], object]], ...] = (
        ("a step that was done already", StaleWorldError,
         lambda: store.apply(lease, 0, "kit/x", _delta(1), b"x")),
        ("a step from the future", BehindWorldError,
         lambda: store.apply(lease, 7, "kit/y", _delta(8), b"y")),
        ("a write with an older fence", LeaseLostError,
         lambda: store.apply(older, 2, "kit/z", _delta(3), b"z")),
        ("cells outside their column", WorldError,
         lambda: store.apply(lease, 2, "kit/w", outside, b"w")),
    )  # fmt: skip
    for what, error, attempt in attempts:
        if not _refuses(attempt, error):
            yield f"does not refuse {what} with {error.__name__}"
        if store.attach(lease.episode).step != 2 or not _same(
            store.world(lease.episode), _after(2)
        ):
            yield f"is changed by {what}"


def _journalled(store: WorldStore, episode: str) -> Iterator[str]:
    first = store.journal(episode, "0", 3, "0:cost", b"one")
    second = store.journal(episode, "0", 3, "0:cost", b"two")
    if (first, second) != (b"one", b"one"):
        yield "does not keep the first value that was journalled"
    if dict(store.journalled(episode, "0", 3)) != {"0:cost": b"one"}:
        yield "reads another journal than was written"


def _forked(store: WorldStore, episode: str) -> Iterator[str]:
    store.fork(episode, "0", 1, "kit-fork", "what if")
    if not _same(store.world(episode, "kit-fork"), _after(1)):
        yield "forks another world than the branch had"
    if store.branches(episode).get("kit-fork") != ("0", 1, "what if"):
        yield "forgets where a fork came from"
    if not _refuses(lambda: store.fork(episode, "0", 9, "kit-far", ""), WorldError):
        yield "forks at a step that has not been reached"
    lease = store.lease(episode, "kit-fork", "kit-a", 60.0)
    if lease is None:
        yield "gives nobody the lease of a fork"
        return
    store.close(lease, 1, "kit/fork/close", "done", b"ended")
    store.release(lease)


def _closed(store: WorldStore, lease: Lease) -> Iterator[str]:
    if store.close(lease, 2, "kit/close", "horizon", b"ended") != Applied("OK", 2):
        yield "does not close an episode at its last step"
    if store.attach(lease.episode).status != "horizon":
        yield "forgets why an episode ended"
    if [entry.payload for entry in store.log(lease.episode)][-1:] != [b"ended"]:
        yield "does not keep the close as the last entry"
    if not _refuses(
        lambda: store.apply(lease, 2, "kit/late", _delta(3), b"late"), EpisodeClosedError
    ):
        yield "writes to an episode that has ended"
    store.release(lease)


def _refuses(attempt: Callable[[], object], error: type[WorldError]) -> bool:
    try:
        attempt()
    except error:
        return True
    return False


def _start() -> Snapshot:
    return Snapshot(
        0,
        {"latency_ms": 120.0, "cost_usd_per_hour": math.nan, "carbon_index": -0.0},
        b"\x00hidden\xff",
        {
            "load": np.arange(_ROWS, dtype=np.float64),
            "size": np.arange(_ROWS, dtype=np.int32),
            "h.truth": np.zeros(_ROWS, dtype=bool),
        },
        tuple(f"vm-{row}\u00e9" for row in range(_ROWS)),
        {"size": tuple("abcde")},
    )


def _delta(step: int) -> Delta:
    row = step % _ROWS
    return Delta(
        {"latency_ms": 100.0 + step},
        b"h%d" % step,
        (
            Cells("load", 8 * row, np.float64(-step).tobytes()),
            Cells("h.truth", row, b"\x01"),
        ),
    )


def _after(steps: int) -> Snapshot:
    start = _start()
    columns = {name: column.copy() for name, column in start.columns.items()}
    for step in range(1, steps + 1):
        columns["load"][step % _ROWS] = -step
        columns["h.truth"][step % _ROWS] = True
    metrics = {**start.metrics, "latency_ms": 100.0 + steps}
    return Snapshot(steps, metrics, b"h%d" % steps, columns, start.ids, start.vocabulary)


def _same(one: Snapshot, other: Snapshot) -> bool:
    """Bit by bit: NaN is not equal to itself, and −0 is not 0."""

    def spelled(each: Snapshot) -> object:
        return (
            each.step,
            {name: np.float64(value).tobytes() for name, value in each.metrics.items()},
            each.hidden,
            {name: (c.dtype.str, c.tobytes()) for name, c in each.columns.items()},
            tuple(each.ids),
            {name: tuple(words) for name, words in each.vocabulary.items()},
        )

    return spelled(one) == spelled(other)
