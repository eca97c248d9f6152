"""The plain driver: the four phases in a loop. For sweeps, replay and training.

It needs no LangGraph and writes the same trace bytes as the graph.
"""

from __future__ import annotations

import asyncio

from orchestrator.answering import ask, ask_all_now
from orchestrator.approval import settle
from orchestrator.phases import commit, negotiate, observe, pending, receive
from orchestrator.session import Session
from policies.records import Request


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
        settle(session)
        commit(session)


async def _drive_async(session: Session) -> None:
    while not session.finished and not session.stop.requested:
        observe(session)
        decided = False
        while not decided:
            # Each reply is received (and kept) when it comes, whoever is slower.
            await asyncio.gather(*(_answered(session, asked) for asked in pending(session)))
            decided = negotiate(session)
        settle(session)
        commit(session)


async def _answered(session: Session, asked: Request) -> None:
    receive(session, asked, await ask(session.room.personas[asked.ask.seat], asked))
