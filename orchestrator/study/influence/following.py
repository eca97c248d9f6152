"""Looks at the decisions of a recorded run: plays it again from its record, and watches."""

from __future__ import annotations

from orchestrator.episode import claim_run, drive_to_end
from orchestrator.lease import lease
from orchestrator.session import Session
from orchestrator.study.influence.watching import Decisions, Watch
from orchestrator.study.recorded import Recorded
from orchestrator.study.replay import held_seats, room_of_record
from orchestrator.study.retouch import retouch_of
from orchestrator.study.voices import Script, play_step
from orchestrator.trace.commits import commits
from orchestrator.trace.events import Chain
from world.model import History
from world.store.base import StoreSettings
from world.store.inprocess import InProcessStore


def follow(run: Recorded, lies: bool = True) -> Decisions:
    """What is counted over the decisions of a run. Nobody is asked who is no function.

    Args:
        run: A complete run.
        lies: Whether to look for lies that gain.

    Raises:
        Drift: The run is not what this version makes of it.
        ConfigError: Something has changed since it was recorded.
        TraceError: The trace was changed.
    """
    room = room_of_record(run)
    held = held_seats(room)
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
        watch = Watch(session, lies)

        def drive(session: Session) -> None:
            for lines in record:
                if lines[-1].type == "grade":
                    script = Script([link.event() for link in lines])
                    play_step(session, script, held, strict=True)

        drive_to_end(session, StoreSettings(), drive=drive)
    return watch.found
