"""The LangGraph driver: observe → propose (one task per seat) → negotiate → commit.

Four supersteps a step; two more for each further round that asks seats. Fan-out is by ``Send``
to one generic node and there is no barrier join: a barrier's live set is mutated while a
checkpoint of it is being written, and it ends the graph silently when one branch never fires.
Graph state is small and JSON-plain; the session travels in the Runtime context, which no
checkpointer sees. Only this module imports langgraph.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from typing_extensions import TypedDict

# Read once, at the first langgraph import: a checkpoint must never name a type to be imported.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from orchestrator import approval, interrupts, phases
from orchestrator.answering import ask, ask_now
from orchestrator.session import Session
from world.errors import MissingExtraError

_SLACK = 16


def _gather(before: list[str], new: list[str] | None) -> list[str]:
    """Reducer of the answers of one round: None starts the next round."""
    return [] if new is None else [*before, *new]


class RunState(TypedDict):
    """What the graph carries: a few words, nothing that grows. The session holds the rest."""

    step: int
    answers: Annotated[list[str], _gather]
    decided: str


class RunUpdate(TypedDict, total=False):
    """What a node may write."""

    step: int
    answers: list[str] | None
    decided: str


class SeatTask(TypedDict):
    """What one ``answer`` task is sent."""

    seat: str


@dataclass(frozen=True)
class RunContext:
    """The Runtime context: one session, never checkpointed."""

    session: Session


def _observe(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    del state
    phases.observe(runtime.context.session)
    return {"answers": None}


def _fan_out(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Send one task per seat that is still to be asked; straight on when none is."""
    del state
    waiting = phases.pending(runtime.context.session)
    if not waiting:
        return "negotiate"
    return [Send("propose", {"seat": asked.ask.seat}) for asked in waiting]


def _propose(state: SeatTask, runtime: Runtime[RunContext]) -> RunUpdate:
    session, seat = runtime.context.session, state["seat"]
    asked = session.waiting[seat]
    if question := interrupts.question(session, asked):
        # This node is executed again with the answer; nothing before this line may act.
        reply = interrupts.reply(session, asked, interrupt(question))
    else:
        reply = ask_now(session.room.personas[seat], asked)
    phases.receive(session, asked, reply)
    return {"answers": [seat]}


async def _propose_async(state: SeatTask, runtime: Runtime[RunContext]) -> RunUpdate:
    session, seat = runtime.context.session, state["seat"]
    asked = session.waiting[seat]
    phases.receive(session, asked, await ask(session.room.personas[seat], asked))
    return {"answers": [seat]}


def _negotiate(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    del state
    session = runtime.context.session
    if phases.negotiate(session):
        decision = session.decision
        return {"decided": decision.chosen.id if decision else ""}
    return {"answers": None}


def _after_negotiation(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | str:
    if runtime.context.session.decision is not None:
        return _gated(state, runtime)
    return _fan_out(state, runtime)


def _gated(state: RunState, runtime: Runtime[RunContext]) -> str:
    del state
    return "approve" if approval.gate(runtime.context.session) else "commit"


def _approve(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    """One question of the human gate; a refusal may bring the next one."""
    del state
    session = runtime.context.session
    question = approval.gate(session)
    if question is not None:
        verdict = approval.remembered(session, question)
        if verdict is None and session.room.pauses:
            verdict = interrupts.verdict(interrupt(question.as_json()))
        approval.rule(session, question, verdict or approval.ask_person(session, question))
    return {}


def _commit(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    del state
    session = runtime.context.session
    phases.commit(session)
    return {"step": session.step}


def _after_commit(state: RunState, runtime: Runtime[RunContext]) -> str:
    del state
    session = runtime.context.session
    return END if session.finished or session.stop.requested else "observe"


async def _observe_async(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    return _observe(state, runtime)


async def _negotiate_async(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    return _negotiate(state, runtime)


async def _commit_async(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    return _commit(state, runtime)


async def _approve_async(state: RunState, runtime: Runtime[RunContext]) -> RunUpdate:
    return _approve(state, runtime)


def build(asynchronous: bool = False) -> StateGraph[RunState, RunContext, RunState, RunState]:
    """The uncompiled graph. Its nodes know no persona; they are the same for every room."""
    graph: StateGraph[RunState, RunContext, RunState, RunState] = StateGraph(
        RunState, context_schema=RunContext
    )
    graph.add_node("observe", _observe_async if asynchronous else _observe)
    graph.add_node("propose", _propose_async if asynchronous else _propose)
    graph.add_node("negotiate", _negotiate_async if asynchronous else _negotiate)
    graph.add_node("approve", _approve_async if asynchronous else _approve)
    graph.add_node("commit", _commit_async if asynchronous else _commit)
    graph.add_edge(START, "observe")
    graph.add_conditional_edges("observe", _fan_out, ["propose", "negotiate"])
    graph.add_edge("propose", "negotiate")
    graph.add_conditional_edges(
        "negotiate", _after_negotiation, ["propose", "negotiate", "approve", "commit"]
    )
    graph.add_conditional_edges("approve", _gated, ["approve", "commit"])
    graph.add_conditional_edges("commit", _after_commit, ["observe", END])
    return graph


@cache
def _compiled(asynchronous: bool) -> Any:
    """Built once a process.

    What the imports made lives as long as the process does. Without the freeze every full
    garbage collection walks half a million such objects, and a step pays a tenth of a
    millisecond for it.
    """
    graph = build(asynchronous).compile()
    gc.collect()
    gc.freeze()
    return graph


def supersteps(horizon: int, max_rounds: int) -> int:
    """An explicit recursion limit: what an episode of this length can need, and a little more.

    Args:
        horizon: Steps.
        max_rounds: Most batches of asks of one negotiation, the one for ballots included.
    """
    return (4 + approval.MOST_QUESTIONS + 2 * max_rounds) * horizon + _SLACK


def drive(session: Session) -> None:
    """Run the episode through LangGraph until it is over or somebody asks to stop."""
    if session.finished or session.stop.requested:
        return
    room = session.room
    start: RunState = {"step": session.step, "answers": [], "decided": ""}
    config = {"recursion_limit": supersteps(room.scenario.horizon, room.max_rounds + 1)}
    context = RunContext(session)
    if room.spec.checkpointer != "none":
        _drive_checkpointed(session, start, config, context)
    elif room.asynchronous:
        import asyncio

        asyncio.run(_compiled(True).ainvoke(start, config, context=context))
    else:
        _compiled(False).invoke(start, config, context=context)


def _drive_checkpointed(
    session: Session, start: RunState, config: Mapping[str, Any], context: RunContext
) -> None:
    """With a checkpointer, for seats that interrupt. The store stays the record on resume.

    The graph is the synchronous one: the checkpointers are, and an awaitable seat is waited for in
    the thread of its own task, so that a round still waits for the slowest seat only.
    """
    with _checkpointer(session) as saver:
        graph = build().compile(checkpointer=saver)
        thread = {"thread_id": f"{session.run}:{session.lease.branch}"}
        settings: Any = {**config, "configurable": thread}
        pending = _pending(graph, settings, session)
        given: Any = start
        if pending:
            interrupts.catch_up(session)
            session.questions = tuple(each.value for each in pending)
            texts = interrupts.accepted(session)
            if not texts:
                return
            given = Command(
                resume={e.id: texts[e.value["seat"]] for e in pending if e.value["seat"] in texts}
            )
        else:
            interrupts.refuse_stray(session)
        left = graph.invoke(given, settings, context=context, durability="exit")
        session.questions = tuple(each.value for each in left.get("__interrupt__", ()))


def _pending(graph: Any, settings: Any, session: Session) -> list[Any]:
    """What the graph was stopped for, if it stands where the store does; the store wins."""
    stands = graph.get_state(settings)
    if not stands.values or stands.values.get("step") != session.step:
        return []
    return [each for task in stands.tasks for each in task.interrupts]


@contextmanager
def _checkpointer(session: Session) -> Iterator[Any]:
    """The saver that ``--checkpointer`` names, open for one run."""
    spec = session.room.spec
    if spec.checkpointer == "sqlite":
        with _extra("sqlite"):
            from langgraph.checkpoint.sqlite import SqliteSaver
        path = Path(spec.out) / session.run / "checkpoints.sqlite"
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
        return
    with _extra("plainredis"):
        from langgraph.checkpoint.plainredis import (  # type: ignore[import-not-found]
            RedisSaver,
        )
    with RedisSaver.from_conn_string(spec.store) as saver:
        yield saver


@contextmanager
def _extra(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"--checkpointer needs the extra {name!r}",
            f"{error.name or error} is not installed",
            f"Install it: pip install 'langgraph-checkpoint-{name}'",
        ) from error


def stored_interrupts(path: Path, run: str) -> tuple[int, tuple[Mapping[str, Any], ...]]:
    """Steps committed and open questions, as a run's checkpoint file says; drives nothing."""
    with _extra("sqlite"):
        from langgraph.checkpoint.sqlite import SqliteSaver
    from orchestrator.lease import BRANCH

    with SqliteSaver.from_conn_string(str(path)) as saver:
        stands = (
            build()
            .compile(checkpointer=saver)
            .get_state({"configurable": {"thread_id": f"{run}:{BRANCH}"}})
        )
        found = [each.value for task in stands.tasks for each in task.interrupts]
    return int(stands.values.get("step", 0)) if stands.values else 0, tuple(found)
