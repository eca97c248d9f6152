"""Episodes for tests: play a room to its end, in process and without files."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.episode import begin, claim_run, drive_to_end
from orchestrator.lease import lease
from orchestrator.room import Room
from orchestrator.session import Session, StopFlag
from orchestrator.spec import EpisodeResult, Observer
from world.store.base import StoreSettings, WorldStore
from world.store.inprocess import InProcessStore


class Played:
    """What came of a room: the result, and every event by type."""

    def __init__(self, result: EpisodeResult, session: Session, events: list[dict[str, Any]]):
        self.result = result
        self.session = session
        self.events = events

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Events of one type, in order."""
        return [event for event in self.events if event["type"] == kind]


def play(
    room: Room,
    store: WorldStore | None = None,
    observer: Observer | None = None,
    stop: StopFlag | None = None,
) -> Played:
    """Run a room to its end (or to where it is stopped), and read its log back."""
    store = store or InProcessStore()
    opening = claim_run(room, store)
    with lease(store, opening.run) as held:
        session = begin(room, store, held, opening)
        session.observer = observer
        session.stop = stop or StopFlag()
        result = drive_to_end(session, StoreSettings())
    lines = [line for entry in store.log(opening.run) for line in entry.payload.split(b"\n")]
    return Played(result, session, [json.loads(line) for line in lines])
