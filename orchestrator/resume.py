"""Finish a run that was stopped anywhere: between two bytes, two writes or two steps.

The decisions that were committed are replayed through the pure world, which gives back state and
history; every replayed step is checked against the digest that the record holds. The store wins
over the file: what the file lacks is taken from the store's log; a store that lost its tail, or
the whole episode, is sent the steps that the file still has. No step is ever decided twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.episode import (
    Opening,
    drive_to_end,
    episode_meta,
    open_world,
    told_fallbacks,
    total_spent,
)
from orchestrator.lease import BRANCH, folder_lock, lease
from orchestrator.positions import add_fallbacks
from orchestrator.retrace import Committed, retrace
from orchestrator.room import Room, build_room
from orchestrator.runs import SCORECARD_FILE, TIMINGS_FILE, TRACE_FILE, read_record, write_record
from orchestrator.session import Session, StopFlag
from orchestrator.spec import EpisodeResult, EpisodeSpec, Observer
from orchestrator.stopwatch import Stopwatch, spent_before
from orchestrator.trace.events import Chain
from orchestrator.trace.reader import find_run, has_ended
from orchestrator.trace.writer import TraceWriter
from world.errors import (
    ConfigError,
    EpisodeClosedError,
    EpisodeMissingError,
    UnknownNameError,
)
from world.model import Delta, History
from world.store.base import Lease, StoreSettings, WorldStore
from world.store.open import open_store

_RUN_ENDED = "run_ended"


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One committed step, as file or log hold it."""

    lines: tuple[bytes, ...]
    action: str
    state: str
    payments: Mapping[str, float]


def resume_episode(
    run: str,
    out: str = "runs",
    store: str | None = None,
    observer: Observer | None = None,
    stop: StopFlag | None = None,
    settings: StoreSettings | None = None,
    say: Callable[[str], None] | None = None,
    base_url: str = "",
    answers: Mapping[str, str] | None = None,
) -> EpisodeResult:
    """Finish a run. A finished one is reported again and nothing is changed.

    Args:
        run: Run id, ``last``, or the path of a run folder.
        out: Parent folder of the runs.
        store: Overrides the store that the run was started on.
        observer: Somebody who watches.
        stop: Ask it to stop after a step.
        settings: Where an embedded store lives.
        say: Told in one line when there is another process to wait for.
        base_url: Overrides the model endpoint that the run was started with.
        answers: Seat (or ``approve``) → what the person answers to the question that it waits for.

    Raises:
        UnknownNameError: There is no such run.
        ConfigError: Its scenario, a persona or the protocol has changed since; or it has ended and
            answers are given.
        LeaseLostError: Another process is driving it.
        DigestMismatchError: File or store do not hold what replaying the decisions gives.
    """
    folder = find_run(run, Path(out)).parent
    record = read_record(folder)
    ended = has_ended(folder / TRACE_FILE)
    spec = _spec_of(record, folder, store)
    if base_url:
        spec = spec.model_copy(update={"base_url": base_url})
    if not ended:
        _check_own(record, folder)
    room = build_room(spec, speaks=not ended)
    _check_unchanged(room, record)
    if ended:
        if answers:
            raise ConfigError(
                f"--answer {next(iter(answers))}=…: this run waits for no answer",
                "it has ended",
                "Resume it without --answer to see what it came to",
            )
        return _finished(room, folder)
    settings = settings or StoreSettings()
    opened = open_store(room.spec.store, settings)
    try:
        opening = open_world(room, folder.name)
        opened.create(episode_meta(room, folder.name), opening.snapshot, opening.line)
        try:
            # The lease first: whoever holds it may be writing the file at this moment.
            with (
                folder_lock(folder, required=_moved(record, room.spec.store)),
                lease(opened, folder.name, say) as held,
            ):
                session = _attach(room, opened, held, opening, folder / TRACE_FILE)
                session.observer, session.stop = observer, stop or StopFlag()
                session.answers = dict(answers or {})
                return drive_to_end(session, settings, resumed_at=session.step)
        except EpisodeClosedError:
            _fill_file(opened, folder.name, folder / TRACE_FILE)
            return _finished(room, folder)
    finally:
        opened.disconnect()


def recorded_spec(run: str, out: str, store: str | None) -> EpisodeSpec:
    """What a run was started with, on the store that it will be resumed on.

    Raises:
        UnknownNameError: There is no such run, or its record cannot be read.
        ConfigError: It needs the address of a server that is not kept.
    """
    folder = find_run(run, Path(out)).parent
    return _spec_of(read_record(folder), folder, store)


def _spec_of(record: Mapping[str, Any], folder: Path, store: str | None) -> EpisodeSpec:
    try:
        spec = EpisodeSpec.model_validate(record.get("spec"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UnknownNameError(
            f"{folder} holds no run that this version can resume",
            f"run.json: spec.{'.'.join(map(str, first['loc']))}: {first['msg']}",
            "Start a new run",
        ) from error
    chosen = store or spec.store
    if chosen == "server":
        raise ConfigError(
            f"run {folder.name} was started on a server whose address is not kept",
            "an address may hold a password",
            "Name it: --store URL, or WARROOM_REDIS_URL",
        )
    return spec.model_copy(update={"out": str(folder.parent), "store": chosen})


def _check_own(record: Mapping[str, Any], folder: Path) -> None:
    """A fork lives on a branch of its parent's episode; it is made anew, never resumed."""
    if "counterfactual" in record:
        raise ConfigError(
            f"{folder.name} is a counterfactual that was stopped",
            "its branch goes on from another run",
            "Type the counterfactual again: it gives the same",
        )


def _moved(record: Mapping[str, Any], store: str) -> bool:
    """Whether a run is resumed where the lease of whoever began it cannot be seen."""
    began_on = record["spec"].get("store")
    return began_on != ("server" if "://" in store else store) or store in {":memory:", "inprocess"}


def _check_unchanged(room: Room, record: Mapping[str, Any]) -> None:
    """A run can only be finished by the room that began it."""
    then = record.get("digests")
    now = json.loads(json.dumps(room.header()))
    if not isinstance(then, dict):
        raise UnknownNameError("run.json holds no digests", "it was edited", "Start a new run")
    for part in ("scenario", "seats", "protocol", "room", "horizon", "seed"):
        if then.get(part) != now[part]:
            raise ConfigError(
                f"the {part} of this run has changed since it was started",
                "a run can only be finished by the room that began it",
                "Put the changed file back, or start a new run",
            )


def _attach(room: Room, store: WorldStore, held: Lease, opening: Opening, path: Path) -> Session:
    """Bring world, file and store to the same step, and return the session that stands there.

    Raises:
        EpisodeClosedError: The episode ended in the meantime.
    """
    if (status := store.attach(held.episode, BRANCH).status) != "open":
        raise EpisodeClosedError(f"run {held.episode} has ended: {status}")
    _fill_file(store, held.episode, path)
    writer = TraceWriter.resume(path)
    session = Session(
        room=room,
        run=held.episode,
        store=store,
        lease=held,
        state=opening.state,
        history=History(room.scenario),
        chain=Chain(writer.head),
        writer=writer,
        stopwatch=Stopwatch(path.with_name(TIMINGS_FILE)),
        state_digest=opening.snapshot.digest,
    )
    _replay(session, _recorded(path))
    session.usage = spent_before(path.with_name(TIMINGS_FILE), session.step)
    if room.desk is not None:
        room.desk.meter.restore(session.usage)
    return session


def _fill_file(store: WorldStore, run: str, path: Path) -> None:
    """Append what the store acknowledged and the file does not have."""
    with TraceWriter.resume(path) as writer:
        for entry in store.log(run, BRANCH, since=max(writer.last_step, 0)):
            if entry.kind == "start" and writer.last_step >= 0:
                continue
            if entry.kind == "step" and entry.step <= writer.last_step:
                continue
            if not writer.ended:
                writer.append(entry.payload.split(b"\n"))


def _recorded(path: Path) -> list[_Recorded]:
    """The committed steps of a trace file, in order."""
    steps: list[_Recorded] = []
    lines: list[bytes] = []
    action = state = ""
    payments: Mapping[str, float] = {}
    with path.open("rb") as file:
        for raw in file:
            line = raw.rstrip(b"\n")
            event = json.loads(line)
            if event["type"] in {"run_started", _RUN_ENDED}:
                continue
            lines.append(line)
            if event["type"] == "decision":
                action = event["data"]["action"]
                payments = event["data"].get("payments", {})
            elif event["type"] == "applied":
                state = event["data"]["state"]
            elif event["type"] == "grade":
                steps.append(_Recorded(tuple(lines), action, state, payments))
                lines = []
    return steps


def _replay(session: Session, recorded: list[_Recorded]) -> None:
    """Take the committed decisions through the world again; resend what the store lost."""
    in_store = session.store.attach(session.run, BRANCH).step
    for step, entry in enumerate(recorded, start=1):
        spoken = [(e["type"], e.get("agent", ""), e["data"]) for e in map(json.loads, entry.lines)]
        delta = retrace(session, Committed(entry.action, entry.state, entry.payments, spoken))
        if step > in_store:
            payload = b"\n".join(entry.lines)
            request = hashlib.sha256(payload).hexdigest()[:16]
            request_id = f"{session.run}/{BRANCH}/{step}/{request}"
            _resend(session.store, session.lease, step - 1, request_id, delta, payload)


def _resend(
    store: WorldStore, lease: Lease, expected: int, request_id: str, delta: Delta, payload: bytes
) -> None:
    try:
        store.apply(lease, expected, request_id, delta, payload)
    except (EpisodeClosedError, EpisodeMissingError) as error:
        raise type(error)(
            error.what, error.why, "Start a new run; the trace file of this one is whole"
        ) from error


def _finished(room: Room, folder: Path) -> EpisodeResult:
    """The result of a run that has ended already, read back from its trace."""
    rewards: list[float] = []
    metrics: dict[str, Any] = {}
    success_any = False
    ended: dict[str, Any] = {}
    fallbacks: dict[str, tuple[int, str]] = {}
    sha = ""
    with (folder / TRACE_FILE).open("rb") as file:
        for line in file:
            event = json.loads(line)
            sha = event["sha"]
            add_fallbacks(fallbacks, [(event["type"], event.get("agent", ""), event["data"])])
            if event["type"] == "grade":
                rewards.append(float(event["data"]["reward"]))
                success_any = success_any or event["data"]["success"]
            elif event["type"] == "applied":
                metrics = event["data"]["metrics"]
            elif event["type"] == _RUN_ENDED:
                ended = event["data"]
    card = ended["scorecard"]
    if not (folder / SCORECARD_FILE).exists():
        write_record(folder, SCORECARD_FILE, card)
    names = {spec.name for spec in room.world.metrics}
    return EpisodeResult(
        run=folder.name,
        scenario=room.scenario.name,
        seed=room.spec.seed,
        protocol=room.protocol.name,
        personas={seat: spec.id for seat, spec in room.specs.items()},
        driver=room.spec.driver,
        store=room.spec.store if "://" not in room.spec.store else "server",
        steps=int(ended["steps"]),
        stop_reason=str(ended["stop_reason"]),
        success=bool(card["success"]),
        success_any=success_any,
        score=float(card["total"]),
        reward_total=float(ended["reward_total"]),
        rewards=tuple(rewards),
        metrics_end={key: value for key, value in metrics.items() if key in names},
        violations=tuple(card["violations"]),
        fallbacks=told_fallbacks(fallbacks),
        usage=total_spent(spent_before(folder / TIMINGS_FILE, int(ended["steps"]))),
        trace=str(folder / TRACE_FILE),
        trace_sha=sha,
        scorecard=dict(card),
    )
