"""Plays a recorded run again from its record alone, and holds every event against it.

The store of the run is not needed, nor a model, a person or another process: their replies are in
the trace. Everything that is a function (world, candidates, utilities, rules, protocol, grader)
is computed anew and must come out the same, byte for byte; the last hash then is the same too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.episode import claim_run, drive_to_end
from orchestrator.lease import lease
from orchestrator.retrace import Committed, retrace
from orchestrator.room import Room, build_room
from orchestrator.session import Session
from orchestrator.study.divergence import Divergence, Drift
from orchestrator.study.recorded import Recorded, check_same_room
from orchestrator.study.retouch import retouch_of
from orchestrator.study.voices import RECOMPUTED, Script, play_step, recorded_voice
from orchestrator.trace.commits import Commit, commits
from orchestrator.trace.diff import first_part
from orchestrator.trace.events import Chain
from orchestrator.trace.steps import mapping, sequence
from world.errors import ConfigError
from world.model import History
from world.store.base import StoreSettings
from world.store.inprocess import InProcessStore


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay came to.

    Attributes:
        run: The run.
        first: First step that was decided again; those before only went through the world.
        steps: Steps found the same.
        sha: Hash of the last line, as recorded.
        complete: Whether the record has an end.
        asked: Seats that were asked again.
        held: Seats whose replies came from the record.
        divergence: The first difference; None where there is none.
    """

    run: str
    first: int
    steps: int
    sha: str
    complete: bool
    asked: tuple[str, ...]
    held: tuple[str, ...]
    divergence: Divergence | None = None

    @property
    def ok(self) -> bool:
        """Whether the whole run came out the same, its end included."""
        return self.divergence is None and self.complete

    def as_json(self) -> dict[str, Any]:
        """The document of ``replay --json``."""
        found = self.divergence
        return {
            "ok": self.ok,
            "run": self.run,
            "from_step": self.first,
            "steps": self.steps,
            "sha": self.sha,
            "complete": self.complete,
            "asked": list(self.asked),
            "from_record": list(self.held),
            "divergence": None if found is None else found.as_json(),
        }


def replay(run: Recorded, first: int = 1) -> Replayed:
    """Play a run again.

    Args:
        run: The run.
        first: First step to decide again. Those before it are only led through the world.

    Raises:
        ConfigError: Scenario, a persona, the protocol or a rule has changed since, or there is
            no such step.
        TraceError: The trace was changed, or is cut off within a line.
    """
    last = run.ending.last_step
    if not 1 <= first <= max(last, 1):
        raise ConfigError(
            f"--from {first}", f"run {run.run} has steps 1 to {last}", "Name one of them"
        )
    changed_at = int(mapping(run.header.data.get("counterfactual")).get("from_step", 1))
    room = room_of_record(run)
    held = held_seats(room)
    asked = tuple(seat for seat in room.specs if seat not in held)
    chosen = max(first, changed_at)
    try:
        steps = _play(run, room, held, chosen)
        found = None
    except Drift as drift:
        steps, found = drift.found.step - 1, drift.found
    return Replayed(run.run, chosen, steps, run.sha, run.ending.complete, asked, tuple(held), found)


def room_of_record(run: Recorded) -> Room:
    """The room of a run in which only functions have a voice.

    Raises:
        ConfigError: It cannot be built as it was, because something has changed since.
    """
    entries = map(mapping, sequence(run.header.data.get("seats")))
    contents = {str(e.get("seat")): str(e.get("content", "")) for e in entries}
    room = build_room(run.rerun_spec(), speaks=False, voice=recorded_voice(contents))
    room = replace(room, origin=mapping(run.header.data.get("counterfactual")))
    check_same_room(run, room)
    return room


def held_seats(room: Room) -> tuple[str, ...]:
    """Seats that are voiced by no function."""
    return tuple(s for s, spec in room.specs.items() if spec.backend.kind not in RECOMPUTED)


def committed(lines: Iterable[Any]) -> Committed:
    """What the lines of one step say for `retrace`."""
    events = [link.event() for link in lines]
    by_type = {event.type: mapping(event.data) for event in events}
    decision = by_type.get("decision", {})
    return Committed(
        str(decision.get("action", "")),
        str(by_type.get("applied", {}).get("state", "")),
        dict(mapping(decision.get("payments"))),
        [(event.type, event.agent, mapping(event.data)) for event in events],
    )


def _play(run: Recorded, room: Room, held: tuple[str, ...], first: int) -> int:
    """Play the run; returns how many steps came out the same.

    Raises:
        Drift: At the first difference.
    """
    store = InProcessStore()
    opening = claim_run(room, store)
    record = commits(run.path)
    start = next(record)[0]
    with lease(store, opening.run) as right:
        session = Session(
            room=room,
            run=opening.run,
            store=store,
            lease=right,
            state=opening.state,
            history=History(room.scenario),
            chain=Chain(start.head),
            state_digest=opening.snapshot.digest,
            retouch=retouch_of(room.origin),
        )
        done = 0
        ending: list[Commit] = []

        def drive(session: Session) -> None:
            nonlocal done
            for lines in _steps(record, ending):
                if lines[0].step < first:
                    _lead(session, lines)
                else:
                    play_step(session, Script([k.event() for k in lines]), held, strict=True)
                done = session.step

        result = drive_to_end(session, StoreSettings(), drive=drive)
    if ending:
        _check_end(run, session, result.trace_sha)
    return done


def _steps(record: Iterator[Commit], ending: list[Commit]) -> Iterator[Commit]:
    """The whole steps of a record; what comes after them is put into `ending`."""
    for lines in record:
        if lines[0].type == "run_ended":
            ending.append(lines)
        elif lines[-1].type == "grade":
            yield lines


def _lead(session: Session, lines: Commit) -> None:
    """One step through the world only, committed as it was recorded."""
    step = session.step
    delta = retrace(session, committed(lines))
    payload = b"\n".join(link.raw for link in lines)
    session.store.apply(session.lease, step, f"lead/{step + 1}", delta, payload)
    session.chain = Chain(lines[-1].head)


def _check_end(run: Recorded, session: Session, sha: str) -> None:
    """The end of the record must be the end of the replay.

    Raises:
        Drift: It is not.
    """
    if sha == run.sha:
        return
    kept = mapping(run.ending.data)
    now = _ended(session)
    part = first_part(dict(kept), now)
    path, then, new = part or ("sha", run.sha, sha)
    raise Drift(Divergence(session.step, 0, "", "run_ended", path, then, new))


def _ended(session: Session) -> dict[str, Any]:
    """The data of the run_ended that the replay wrote."""
    entries = list(session.store.log(session.run, session.lease.branch, since=session.step))
    closing = next((entry for entry in entries if entry.kind == "close"), None)
    if closing is None:
        return {"stop_reason": session.stop_reason or "not over", "steps": session.step}
    data = json.loads(closing.payload)["data"]
    return dict(data)
