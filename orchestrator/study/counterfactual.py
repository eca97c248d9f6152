"""The same storm with one thing changed: a fork of a recorded run, played to its end.

The fork is a branch of the run's episode in the store. Up to the step of the change it is the
parent's own log; from there on the room is another, and the world's noise is the same, because it
is a function of seed, step and entity and of nothing that anybody did. The new run has a trace of
its own: its header names the last hash of its parent and what was changed, the steps before the
fork are the parent's, and it verifies and replays like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.episode import (
    Opening,
    drive_to_end,
    episode_meta,
    open_world,
    run_record,
)
from orchestrator.lease import BRANCH, folder_lock, lease
from orchestrator.retrace import retrace
from orchestrator.room import Room, build_room
from orchestrator.runs import TIMINGS_FILE, TRACE_FILE, claim, run_stem
from orchestrator.session import Session, StopFlag
from orchestrator.spec import EpisodeResult, Observer
from orchestrator.stopwatch import Stopwatch
from orchestrator.study.change import Change, origin_of
from orchestrator.study.divergence import Divergence, Fork, Shift, forks, shifts
from orchestrator.study.recorded import Recorded, recorded
from orchestrator.study.replay import committed, held_seats, room_of_record
from orchestrator.study.retouch import retouch_of
from orchestrator.study.voices import Script, play_step
from orchestrator.trace.commits import Commit, commits
from orchestrator.trace.events import Chain
from orchestrator.trace.writer import TraceWriter
from world.errors import ConfigError, WorldError
from world.model import History
from world.store.base import Lease, StoreSettings, WorldStore
from world.store.open import open_store

_MOST_BRANCHES = 100_000


@dataclass(frozen=True)
class Counterfactual:
    """What came of a change.

    Attributes:
        parent: The recorded run.
        child: The new run.
        change: What was changed.
        branch: The new run's branch in the parent's episode.
        result: What the new run came to.
        divergence: The first event that is not the parent's; None where all are.
        forks: Steps that are not alike.
        shifts: Every metric of both.
        streams_diverge_at: In a world with one sequential generator: the first step after which
            the two runs have drawn another number of words, so that their storms differ; 0 where
            they never have, or where noise cannot shift.
        sequential: Whether the world has one sequential generator.
    """

    parent: Recorded
    child: Recorded
    change: Change
    branch: str
    result: EpisodeResult
    divergence: Divergence | None
    forks: tuple[Fork, ...]
    shifts: tuple[Shift, ...]
    streams_diverge_at: int = 0
    sequential: bool = False

    def as_json(self) -> dict[str, Any]:
        """The document of ``counterfactual --json``."""
        found = self.divergence
        return {
            "parent": self.parent.run,
            "run": self.child.run,
            "trace": str(self.child.path),
            "trace_sha": self.result.trace_sha,
            "branch": self.branch,
            "change": {**self.change.as_json(), "from_step": self.change.step},
            "same_noise": not self.streams_diverge_at,
            "streams_diverge_at": self.streams_diverge_at or None,
            "first_divergence": None if found is None else found.as_json(),
            "steps_differ": [_fork_json(fork) for fork in self.forks],
            "metrics": {shift.metric: _shift_json(shift) for shift in self.shifts},
            "reward_total": _pair(self.rewards),
            "score": _pair(self.scores),
            "success": {"parent": self.successes[0], "child": self.successes[1]},
        }

    @property
    def rewards(self) -> tuple[float, float]:
        """Total reward of parent and child."""
        return tuple(  # type: ignore[return-value]
            float(run.ending.data.get("reward_total", 0.0)) for run in (self.parent, self.child)
        )

    @property
    def scores(self) -> tuple[float, float]:
        """Score of parent and child."""
        return tuple(  # type: ignore[return-value]
            float(run.scorecard.get("total", 0.0)) for run in (self.parent, self.child)
        )

    @property
    def successes(self) -> tuple[bool, bool]:
        """The grader's verdict on parent and child."""
        return tuple(  # type: ignore[return-value]
            bool(run.scorecard.get("success")) for run in (self.parent, self.child)
        )


def counterfactual(
    run: Recorded,
    change: Change,
    out: str = "runs",
    store: str | None = None,
    settings: StoreSettings | None = None,
    observer: Observer | None = None,
    stop: StopFlag | None = None,
) -> Counterfactual:
    """Play a recorded run again with one thing changed.

    Args:
        run: The run; it must have ended.
        change: The change.
        out: Parent folder of the new run.
        store: Where the fork is made; None is the store of the run.
        settings: Where an embedded store lives.
        observer: Somebody who watches.
        stop: Ask it to stop after a step.

    Raises:
        UserError: The change cannot be made; says why.
        TraceError: The record has no end, or was changed.
        StoreUnavailableError: The store does not answer.
    """
    run.require_complete()
    room_of_record(run)
    room = _room(run, change, out, store)
    settings = settings or StoreSettings()
    opened = open_store(room.spec.store, settings)
    try:
        return _forked(run, change, room, opened, settings, observer, stop)
    finally:
        opened.disconnect()


def _room(run: Recorded, change: Change, out: str, store: str | None) -> Room:
    spec = change.spec(run)
    chosen = store or run.spec.store
    if chosen == "server":
        raise ConfigError(
            f"run {run.run} was started on a server whose address is not kept",
            "an address may hold a password",
            "Name it, or another store: --store URL, --store inprocess",
        )
    room = build_room(spec.model_copy(update={"store": chosen, "out": out}))
    persona = room.specs[change.seat].id if change.kind == "swap" else ""
    return replace(room, origin=origin_of(run, change, persona))


def _forked(
    run: Recorded,
    change: Change,
    room: Room,
    store: WorldStore,
    settings: StoreSettings,
    observer: Observer | None,
    stop: StopFlag | None,
) -> Counterfactual:
    words = _Words(room)
    _restore(run, room, store, words)
    branch = _fork(store, run.run, change)
    opening = open_world(room)
    name = _claim(room, store, opening, run, branch)
    folder = Path(room.spec.out) / name
    parted: list[Divergence] = []
    with (
        folder_lock(folder, required=False),
        lease(store, run.run, branch=branch) as held,
        TraceWriter.resume(folder / TRACE_FILE) as writer,
    ):
        session = _session(room, name, store, held, opening, writer)
        session.observer, session.stop = observer, stop or StopFlag()
        session.stopwatch = Stopwatch(folder / TIMINGS_FILE)

        def drive(session: Session) -> None:
            _drive(session, run, change, parted, words)

        result = drive_to_end(session, settings, drive=drive)
    if settings.retention_s > 0 and store.durable:
        with suppress(WorldError):  # another fork of it may be under way
            store.retain(run.run, settings.retention_s)
    child = recorded(folder / TRACE_FILE)
    return Counterfactual(
        parent=run,
        child=child,
        change=change,
        branch=branch,
        result=result,
        divergence=parted[0] if parted else None,
        forks=tuple(forks(run.steps, child.steps)),
        shifts=tuple(shifts(run.steps, child.steps)),
        streams_diverge_at=words.diverge_at,
        sequential=words.sequential,
    )


def _session(
    room: Room, name: str, store: WorldStore, held: Lease, opening: Opening, writer: TraceWriter
) -> Session:
    return Session(
        room=room,
        run=name,
        store=store,
        lease=held,
        state=opening.state,
        history=History(room.scenario),
        chain=Chain(writer.head),
        writer=writer,
        state_digest=opening.snapshot.digest,
        retouch=retouch_of(room.origin),
    )


def _drive(
    session: Session, run: Recorded, change: Change, parted: list[Divergence], words: _Words
) -> None:
    """The parent's steps up to the change, then the changed room to the end."""
    held = {seat for seat in held_seats(session.room) if seat != change.seat}
    record = _steps(run.path)
    for lines in record:
        if session.finished or session.stop.requested:
            return
        if lines[0].step < change.step:
            _follow(session, lines)
            continue
        script = None if parted else Script([link.event() for link in lines])
        found = play_step(session, script, held, strict=False)
        if found is not None and not parted:
            parted.append(found)
        words.compare(session.step, session.state)
    while not (session.finished or session.stop.requested):
        play_step(session, None, held, strict=False)


def _follow(session: Session, lines: Commit) -> None:
    """One step of the parent, as it stands in the parent's log, put into the new trace."""
    retrace(session, committed(lines))
    copied = [session.chain.add(link.event()) for link in lines]
    if session.writer:
        session.writer.append(copied)


def _steps(path: Path) -> Iterator[Commit]:
    for lines in commits(path):
        if lines[-1].type == "grade":
            yield lines


class _Words:
    """How far a sequential generator has been read, in parent and child.

    Attributes:
        sequential: Whether the world has such a generator; without one nothing is kept.
        diverge_at: First step after which they differ; 0 while they do not.
    """

    def __init__(self, room: Room) -> None:
        self.sequential = room.world.limits.noise == "sequential"
        self._parent: dict[int, int] = {}
        self.diverge_at = 0

    def keep(self, step: int, state: Any) -> None:
        """Note where the parent's generator stands."""
        if self.sequential:
            self._parent[step] = words_drawn(state)

    def compare(self, step: int, state: Any) -> None:
        """Hold the child's against it."""
        if self.sequential and not self.diverge_at:
            then = self._parent.get(step)
            if then is not None and then != words_drawn(state):
                self.diverge_at = step


def words_drawn(state: Any) -> int:
    """Words that a sequential world has drawn of its generator."""
    row = state.rows[0] if hasattr(state, "rows") else state
    return int(row.word)


def _restore(run: Recorded, room: Room, store: WorldStore, words: _Words) -> None:
    """See to it that the store holds the parent's episode, whole and closed.

    What is missing is made from the record: the world is led along its decisions.
    """
    parent = room_of_record(run)
    opening = open_world(parent, run.run)
    record = commits(run.path)
    start = next(record)[0].raw
    if not store.create(episode_meta(parent, run.run), opening.snapshot, start):
        _check_own(store, run, start)
    stored = store.attach(run.run)
    if stored.status != "open" and not words_needed(room):
        return
    with _written(store, run.run, stored.status) as held:
        session = Session(
            room=parent,
            run=run.run,
            store=store,
            lease=held or Lease(run.run, BRANCH, "", 0, 0.0),
            state=opening.state,
            history=History(parent.scenario),
            chain=Chain(),
            state_digest=opening.snapshot.digest,
        )
        for lines in record:
            payload = b"\n".join(link.raw for link in lines)
            request = f"{run.run}/{BRANCH}/{session.step + 1}/{_short(payload)}"
            if lines[0].type == "run_ended":
                status = str(run.ending.data.get("stop_reason") or "ended")
                if held is not None:
                    close = f"{run.run}/{BRANCH}/close"
                    store.close(held, session.step, close, status, payload)
                return
            delta = retrace(session, committed(lines))
            words.keep(session.step, session.state)
            if held is not None and session.step > stored.step:
                store.apply(held, session.step - 1, request, delta, payload)


def _check_own(store: WorldStore, run: Recorded, start: bytes) -> None:
    """An episode of the same name must be this run: a trace that was moved may share a name.

    Raises:
        ConfigError: It is another.
    """
    first = next(iter(store.log(run.run, BRANCH)), None)
    if first is None or first.payload != start:
        raise ConfigError(
            f"the store holds another episode named {run.run}",
            "a fork would leave from that one",
            "Make it elsewhere: --store inprocess",
        )


def words_needed(room: Room) -> bool:
    """Whether it must be known where the parent's generator stood at each step."""
    return room.world.limits.noise == "sequential"


@contextmanager
def _written(store: WorldStore, run: str, status: str) -> Iterator[Lease | None]:
    """The right to complete an episode; None where it is complete."""
    if status != "open":
        yield None
        return
    with lease(store, run) as held:
        yield held


def _fork(store: WorldStore, run: str, change: Change) -> str:
    """A new branch that leaves the parent before the step of the change."""
    taken = store.branches(run)
    for number in range(1, _MOST_BRANCHES):
        branch = f"cf{number}"
        if branch in taken:
            continue
        try:
            store.fork(run, BRANCH, change.step - 1, branch, change.words()[:500])
        except WorldError:
            if branch in store.branches(run):  # somebody else forked at the same moment
                continue
            raise
        return branch
    raise ConfigError(f"run {run} has {_MOST_BRANCHES} branches", "", "Start a new run")


def _claim(room: Room, store: WorldStore, opening: Opening, run: Recorded, branch: str) -> str:
    """Claim a run folder for the fork; its run.json says of which run it is a branch."""
    stem = run_stem(room.scenario.name, room.spec.seed, room.protocol.name, room.config_digest)
    record = {
        **run_record(room, store),
        "counterfactual": {"parent": run.run, "branch": branch, **room.origin},
    }
    name, _ = claim(Path(room.spec.out), stem, record, opening.line)
    return name


def _short(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()[:16]


def _fork_json(fork: Fork) -> dict[str, Any]:
    return {
        "step": fork.step,
        "action": {"parent": fork.action_a, "child": fork.action_b},
        "reward": _pair((fork.reward_a, fork.reward_b)),
    }


def _shift_json(shift: Shift) -> dict[str, Any]:
    return {
        "end": _pair((shift.end_a, shift.end_b)),
        "mean": _pair((shift.mean_a, shift.mean_b)),
    }


def _pair(values: tuple[float | None, float | None]) -> dict[str, float | None]:
    a, b = values
    gap = None if a is None or b is None else float(f"{b - a:.9g}")
    return {"parent": a, "child": b, "difference": gap}
