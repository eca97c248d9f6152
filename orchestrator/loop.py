"""The plain driver: the four phases in a loop. For sweeps, replay and training.

It needs no LangGraph and writes the same trace bytes as the graph.
"""

from __future__ import annotations

import asyncio

from orchestrator.answering import ask_all, ask_all_now
from orchestrator.phases import commit, negotiate, observe, pending, receive
from orchestrator.session import Session


def drive(session: Session) -> None:
    """Run steps until the world says that the episode is over, or somebody asks to stop."""
    if session.room.asynchronous:
        asyncio.run(_drive_async(session))
        return
    personas = session.room.personas
    while not session.finished and not session.stop.requested:
        observe(session)
        decided = False
        while not decided:
            waiting = pending(session)
            replies = ask_all_now(personas, waiting)
            for asked in waiting:
                receive(session, asked, replies[asked.ask.seat])
            decided = negotiate(session)
        commit(session)


async def _drive_async(session: Session) -> None:
    personas = session.room.personas
    while not session.finished and not session.stop.requested:
        observe(session)
        decided = False
        while not decided:
            waiting = pending(session)
            replies = await ask_all(personas, waiting)
            for asked in waiting:
                receive(session, asked, replies[asked.ask.seat])
            decided = negotiate(session)
        commit(session)
