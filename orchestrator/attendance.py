"""Who must be told that a run begins and ends: people, and processes that answer for a seat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestrator.session import Session


@contextmanager
def attended(session: Session) -> Iterator[None]:
    """Tell the personas of a room that it is being driven, and at the end that it is not.

    A persona that needs to know has ``begin_run(stopped, interactive)`` and ``end_run()``.
    Without a run folder (a sweep) nobody is asked at a terminal.
    """
    personas = list(session.room.personas.values())
    for persona in personas:
        begin = getattr(persona, "begin_run", None)
        if callable(begin):
            begin(lambda: session.stop.requested, bool(session.room.spec.out))
    try:
        yield
    finally:
        for persona in personas:
            end = getattr(persona, "end_run", None)
            if callable(end):
                with suppress(Exception):
                    end()
