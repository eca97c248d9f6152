"""Run one episode from a spec: claim a run id, open the store, drive the phases, close.

The world's truth is (scenario, seed, decisions); the store's step log is the record; the trace
file is written after each acknowledged commit. A run that is stopped anywhere is finished by
`orchestrator.resume` with the same trace hash as an undisturbed one.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.faults import SeatEndsRun
from orchestrator import phases
from orchestrator.attendance import attended
from orchestrator.lease import folder_lock, lease
from orchestrator.room import Room, build_room
from orchestrator.runs import (
    SCORECARD_FILE,
    TIMINGS_FILE,
    TRACE_FILE,
    claim,
    run_stem,
    write_record,
)
from orchestrator.session import Session, StopFlag
from orchestrator.spec import EpisodeResult, EpisodeSpec, Observer, Spent
from orchestrator.stopwatch import Stopwatch
from orchestrator.trace.events import Chain, Event, Head
from orchestrator.trace.writer import TraceWriter
from policies.records import Usage
from world.errors import WarRoomError
from world.graders.registry import grade
from world.graders.scorecard import Scorecard
from world.model import History, Snapshot, significant
from world.store.base import EpisodeMeta, Lease, StoreSettings, WorldStore
from world.store.open import open_store

INTERRUPTED = "interrupted"
WAITING = "waiting"
"""`EpisodeResult.stop_reason` of a run that waits for people to answer its `questions`."""


def run_episode(
    spec: EpisodeSpec,
    observer: Observer | None = None,
    stop: StopFlag | None = None,
    settings: StoreSettings | None = None,
    store: WorldStore | None = None,
) -> EpisodeResult:
    """Run one episode to its end, or until `stop` is requested.

    Args:
        spec: What to run.
        observer: Somebody who watches.
        stop: Ask it to stop after a step; the run stays resumable.
        settings: Where an embedded store lives.
        store: An open store to use and leave open; None opens the one that the spec names.

    Raises:
        UserError: The spec cannot work.
        StoreUnavailableError: The store does not answer or refuses.
    """
    room = build_room(spec)
    settings = settings or StoreSettings()
    opened = store if store is not None else open_store(spec.store, settings)
    try:
        opening = claim_run(room, opened)
        with ExitStack() as driving:
            if spec.out:
                folder = Path(spec.out) / opening.run
                driving.enter_context(folder_lock(folder, required=False))
            held = driving.enter_context(lease(opened, opening.run))
            session = begin(room, opened, held, opening)
            session.observer, session.stop = observer, stop or StopFlag()
            return drive_to_end(session, settings)
    finally:
        if store is None:
            opened.disconnect()


def drive_to_end(
    session: Session,
    settings: StoreSettings,
    resumed_at: int = 0,
    drive: Callable[[Session], None] | None = None,
) -> EpisodeResult:
    """Drive a session that stands at some step until it ends; close it; report.

    Args:
        session: The session.
        settings: How long a closed episode is kept.
        resumed_at: Steps that were committed before.
        drive: Who drives it; None is the driver that the spec names.
    """
    if session.observer:
        session.observer.started(session.run, _announced(session, resumed_at))
    try:
        with attended(session):
            _driven(session, drive or _driver(session.room.spec))
        scorecard = _close(session) if session.finished else None
        if scorecard:
            _retain(session, settings)
        result = result_of(session, scorecard)
    finally:
        if session.writer:
            session.writer.close()
        if session.stopwatch:
            session.stopwatch.close()
    if session.observer:
        session.observer.ended(result)
    return result


def _driver(spec: EpisodeSpec) -> Callable[[Session], None]:
    if spec.driver == "graph":
        from orchestrator.graph import drive
    else:
        from orchestrator.loop import drive
    return drive


def _driven(session: Session, drive: Callable[[Session], None]) -> None:
    """Drive, and let a seat that may not be replaced end the run between two steps.

    Raises:
        WarRoomError: What such a seat reports; where a person merely left there is nothing to.
    """
    try:
        drive(session)
    except SeatEndsRun as ending:
        session.stop.request()
        if ending.error is not None:
            raise ending.error from None


def run_record(room: Room, store: WorldStore) -> dict[str, Any]:
    """What run.json says: how it was run. Nothing in it is hashed."""
    return {
        "spec": public_spec(room.spec),
        "digests": room.header(),
        "driver": room.spec.driver,
        "store": store.name,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions that the trace hash is promised on."""
    found = np.show_config(mode="dicts")
    simd = found.get("SIMD Extensions", {}) if isinstance(found, Mapping) else {}
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "simd": " ".join(simd.get("found", [])) if isinstance(simd, Mapping) else "",
    }


class Opening(NamedTuple):
    """What was claimed: run id, the world at step 0, the first trace line, and the chain after."""

    run: str
    state: Any
    snapshot: Snapshot
    line: bytes
    head: Head


def open_world(room: Room, run: str = "") -> Opening:
    """How an episode of this room begins; a pure function of the room."""
    state = room.world.reset(room.scenario, [room.spec.seed])
    chain = Chain()
    line = chain.add(phases.start_event(room.header()))
    return Opening(run, state, room.world.columns(state), line, chain.head)


def claim_run(room: Room, store: WorldStore) -> Opening:
    """Claim a run id in the folder and in the store, and write run_started to both."""
    opening = open_world(room)
    record = run_record(room, store) if room.spec.out else {}
    stem = run_stem(room.scenario.name, room.spec.seed, room.protocol.name, room.config_digest)
    counter = 1
    while True:
        if room.spec.out:
            run, counter = claim(Path(room.spec.out), stem, record, opening.line, counter)
        else:
            run = f"{stem}.{counter}"
        try:
            created = store.create(episode_meta(room, run), opening.snapshot, opening.line)
        except WarRoomError:
            if room.spec.out:
                _discard(Path(room.spec.out) / run)
            raise
        if created:
            return opening._replace(run=run)
        # Another folder of runs uses the same store: leave its episode alone and count on.
        if room.spec.out:
            _discard(Path(room.spec.out) / run)
        counter += 1


def begin(room: Room, store: WorldStore, held: Lease, opening: Opening) -> Session:
    """The session of a run that was claimed a moment ago."""
    session = Session(
        room=room,
        run=opening.run,
        store=store,
        lease=held,
        state=opening.state,
        history=History(room.scenario),
        chain=Chain(opening.head),
        state_digest=opening.snapshot.digest,
    )
    if room.spec.out:
        folder = Path(room.spec.out) / opening.run
        session.writer = TraceWriter.resume(folder / TRACE_FILE)
        session.stopwatch = Stopwatch(folder / TIMINGS_FILE)
    return session


def _discard(folder: Path) -> None:
    """Remove a run folder that was claimed a moment ago and never ran."""
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def episode_meta(room: Room, run: str) -> EpisodeMeta:
    """What the store keeps about an episode."""
    return EpisodeMeta(
        episode=run,
        scenario=room.scenario.name,
        scenario_digest=room.scenario.digest,
        seed=room.spec.seed,
        config=json.dumps(public_spec(room.spec), sort_keys=True),
    )


def public_spec(spec: EpisodeSpec) -> dict[str, Any]:
    """A spec as JSON without where its store is: a URL may hold a password."""
    data = spec.model_dump(mode="json")
    if not _plain_address(spec.base_url):
        data["base_url"] = ""
    if "://" in spec.store:
        data["store"] = "server"
    return data


def _plain_address(url: str) -> bool:
    """Whether an address can hold no password or token."""
    return "@" not in url and "?" not in url


def _close(session: Session) -> Scorecard:
    """Grade the episode and write its last event."""
    scorecard = grade(session.room.scenario, session.graded)
    rewards = [significant(step.reward) for step in session.graded]
    event = Event(
        "run_ended",
        session.step,
        0,
        {
            "stop_reason": session.stop_reason,
            "steps": session.step,
            "reward_total": significant(sum(rewards)),
            "rewards": rewards,
            "scorecard": scorecard.as_json(),
        },
    )
    line = session.chain.add(event)
    request_id = f"{session.run}/{session.lease.branch}/close"
    session.store.close(session.lease, session.step, request_id, session.stop_reason, line)
    if session.writer:
        session.writer.append([line])
        folder = Path(session.room.spec.out) / session.run
        write_record(folder, SCORECARD_FILE, scorecard.as_json())
    return scorecard


def _retain(session: Session, settings: StoreSettings) -> None:
    # A branch that was forked off does not say when its episode may go.
    own = session.lease.episode == session.run
    if settings.retention_s > 0 and session.store.durable and own:
        session.store.retain(session.run, settings.retention_s)


def _announced(session: Session, resumed_at: int) -> dict[str, Any]:
    spec = session.room.spec
    trace = str(Path(spec.out) / session.run / TRACE_FILE) if spec.out else ""
    return {
        **session.room.header(),
        "run": session.run,
        "driver": spec.driver,
        "store": session.store.description,
        "trace": trace,
        "resumed_at": resumed_at,
    }


def total_spent(usage: Mapping[str, Usage]) -> Spent:
    """What all seats spent together; dollars are unknown as soon as one seat's are."""
    used = tuple(usage.values())
    dollars = [each.usd for each in used if each.usd is not None]
    return Spent(
        calls=sum(each.calls for each in used),
        tokens_in=sum(each.tokens_in for each in used),
        tokens_out=sum(each.tokens_out for each in used),
        usd=significant(sum(dollars)) if len(dollars) == len(used) else None,
    )


def told_fallbacks(counted: Mapping[str, tuple[int, str]]) -> tuple[dict[str, Any], ...]:
    """``{seat, count, first}`` of the seats for which something stood in."""
    return tuple(
        {"seat": seat, "count": count, "first": first} for seat, (count, first) in counted.items()
    )


def result_of(session: Session, scorecard: Scorecard | None) -> EpisodeResult:
    """The document of ``run --json``."""
    spec = session.room.spec
    rewards = tuple(significant(step.reward) for step in session.graded)
    last = session.after.metrics if session.after else {}
    return EpisodeResult(
        run=session.run,
        scenario=session.room.scenario.name,
        seed=spec.seed,
        protocol=session.room.protocol.name,
        personas={seat: session.room.specs[seat].id for seat in session.room.specs},
        driver=spec.driver,
        store=session.store.name,
        steps=session.step,
        stop_reason=session.stop_reason or (WAITING if session.questions else INTERRUPTED),
        questions=tuple(dict(question) for question in session.questions),
        success=bool(scorecard and scorecard.success),
        success_any=any(step.success for step in session.graded),
        score=significant(scorecard.total) if scorecard else 0.0,
        reward_total=significant(sum(rewards)),
        rewards=rewards,
        metrics_end={name: significant(value) for name, value in last.items() if value is not None},
        violations=scorecard.violations if scorecard else (),
        fallbacks=told_fallbacks(session.fallbacks),
        usage=total_spent(session.usage),
        trace=str(Path(spec.out) / session.run / TRACE_FILE) if spec.out else "",
        trace_sha=session.chain.head.sha,
        scorecard=scorecard.as_json() if scorecard else {},
    )
