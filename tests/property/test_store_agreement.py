"""The in-process store and the server-side functions are one store: same calls, same answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stores import ROWS, as_stored, meta_of, start_snapshot
from world.errors import WarRoomError
from world.model import Cells, Delta
from world.store.base import Lease, WorldStore
from world.store.connect import connect_fake
from world.store.inprocess import InProcessStore

BRANCHES = ("0", "a", "b")
STEPS = st.integers(-1, 6)
HOLDERS = st.sampled_from(["one", "two"])
cells = st.builds(
    Cells,
    st.sampled_from(["cpu_percent", "size", "h.true_load", "nowhere"]),
    st.integers(-1, 8 * ROWS),
    st.binary(max_size=9),
)
deltas = st.builds(
    Delta,
    st.dictionaries(
        st.sampled_from(["latency_ms", "new", "é", "", "x" * 300]), st.floats(width=64), max_size=3
    ),
    st.binary(max_size=4),
    st.lists(cells, max_size=3).map(tuple),
)
branches = st.sampled_from(BRANCHES)
calls = st.one_of(
    st.tuples(st.just("apply"), branches, STEPS, st.sampled_from("pqrs"), deltas),
    st.tuples(st.just("next"), branches, st.sampled_from("pqrs"), deltas),
    st.tuples(st.just("close"), branches, STEPS, st.sampled_from(["c", "d"])),
    st.tuples(st.just("lease"), branches, HOLDERS),
    st.tuples(st.just("release"), branches),
    st.tuples(st.just("fork"), branches, STEPS, branches),
    st.tuples(st.just("snapshot"), branches),
    st.tuples(st.just("journal"), branches, st.integers(0, 2), st.sampled_from("xy"), st.binary()),
)


class _Room:
    """One store and what a caller remembers of its leases."""

    def __init__(self, store: WorldStore, episode: str) -> None:
        self.store = store
        self.episode = episode
        self.leases: dict[str, Lease] = {}
        assert store.create(meta_of(episode), start_snapshot(), b"started")

    def do(self, call: tuple[Any, ...]) -> object:
        """Carry out one call. An answer and a refusal compare alike for both stores."""
        kind, branch, *rest = call
        acts: dict[str, Callable[..., object]] = {
            "apply": self._apply,
            "next": self._next,
            "close": self._close,
            "lease": self._lease,
            "release": self._release,
            "fork": self._fork,
            "snapshot": lambda name: self.store.snapshot(self.episode, name),
            "journal": self._journal,
        }
        try:
            return acts[kind](branch, *rest)
        except WarRoomError as error:
            return type(error), getattr(error, "step", None)

    def _held(self, branch: str) -> Lease:
        return self.leases.get(branch, Lease(self.episode, branch, "nobody", 1, 60.0))

    def _apply(self, branch: str, step: int, request: str, delta: Delta) -> object:
        return self.store.apply(self._held(branch), step, f"{request}{step}", delta, b"events")

    def _next(self, branch: str, request: str, delta: Delta) -> object:
        return self._apply(branch, self.store.attach(self.episode, branch).step, request, delta)

    def _close(self, branch: str, step: int, request: str) -> object:
        return self.store.close(self._held(branch), step, request, "horizon", b"ended")

    def _lease(self, branch: str, holder: str) -> object:
        lease = self.store.lease(self.episode, branch, holder, 60.0)
        if lease is not None:
            self.leases[branch] = lease
        return lease and (lease.branch, lease.holder, lease.fence)

    def _release(self, branch: str) -> object:
        self.store.release(self._held(branch))
        return None

    def _fork(self, branch: str, step: int, new: str) -> object:
        self.store.fork(self.episode, branch, step, new, "what if")
        return None

    def _journal(self, branch: str, step: int, field: str, value: bytes) -> object:
        return self.store.journal(self.episode, branch, step, field, value)

    def state(self) -> object:
        """Everything that can be read."""
        known = dict(self.store.branches(self.episode))
        found: list[object] = [known]
        for branch in sorted(known):
            stored = self.store.attach(self.episode, branch)
            found.append((stored.step, stored.status, stored.fence, stored.request_id))
            found.append(as_stored(self.store.world(self.episode, branch)))
            found.append([_plain(entry) for entry in self.store.log(self.episode, branch)])
            found += [dict(self.store.journalled(self.episode, branch, step)) for step in range(3)]
        return found


def _plain(entry: Any) -> object:
    """A log entry with its floats as bytes: NaN is not equal to itself."""
    delta = entry.delta and (
        {name: np.float64(value).tobytes() for name, value in entry.delta.metrics.items()},
        entry.delta.hidden,
        entry.delta.cells,
    )
    return entry.step, entry.kind, entry.request_id, entry.payload, delta


@settings(max_examples=100, deadline=None)
@given(st.lists(calls, min_size=5, max_size=40))
def test_any_sequence_of_calls_gets_the_same_answers_and_ends_in_the_same_state(
    sequence: list[tuple[Any, ...]],
) -> None:
    episode = f"e{os.urandom(8).hex()}"
    rooms = [_Room(InProcessStore(), episode), _Room(connect_fake("agreement"), episode)]
    for call in [("lease", "0", "one"), *sequence]:
        plain, served = (room.do(call) for room in rooms)
        assert plain == served, call
    assert rooms[0].state() == rooms[1].state()
