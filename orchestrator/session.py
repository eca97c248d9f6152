"""The live side of one episode: where the world stands, what was seen, what is being recorded.

A session is the only mutable object of a run. Phases read and advance it; drivers never look
inside. LangGraph sees it through its Runtime context, so graph state stays small and plain.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.positions import STEPS_KEPT
from orchestrator.room import Room
from orchestrator.spec import Observer
from orchestrator.stopwatch import Stopwatch
from orchestrator.trace.events import Chain, Event
from orchestrator.trace.writer import TraceWriter
from policies.records import (
    Ask,
    Context,
    Decision,
    Deliberation,
    Position,
    Reply,
    Request,
    Stakes,
    Usage,
)
from policies.table import Table
from world.actions import Action, joint_id
from world.graders.scorecard import GradedStep
from world.model import Delta, History, Observation, significant
from world.store.base import Lease, WorldStore


class StopFlag:
    """Asks a running episode to stop after the current step, leaving it resumable."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        """Stop after the step in progress."""
        self.requested = True


@dataclass
class Session:
    """One episode in progress.

    Attributes:
        room: Who and what.
        run: Run id; also the episode id in the store.
        store: Where commits go.
        lease: The right to write.
        state: The true world state. Only `phases.observe` and `phases.commit` touch it.
        history: What the room observed and decided.
        chain: Hash chain of the trace.
        writer: Trace file, or None in sweeps.
        stopwatch: Timings file, or None in sweeps.
        observer: Somebody who watches, or None.
        stop: Set from outside to stop after a step.
        step: Steps committed.
        state_digest: Rolling digest of the world: SHA-256(previous + what the step changed).
        after: What the room observes after the last commit; the next step starts from it.
        graded: One entry per committed step.
        paid: Seat → influence credits paid for the committed decisions.
        usage: Seat → what it has spent so far.
        fallbacks: Seat → how often something stood in for it, and the first reason.
        positions: What seats stood for in the last steps, one entry a step.
        stop_reason: Why the episode is over; "" while it is not.
        retouch: Changes ballots before they are counted, given the step: for what-if studies.
    """

    room: Room
    run: str
    store: WorldStore
    lease: Lease
    state: Any
    history: History
    chain: Chain
    writer: TraceWriter | None = None
    stopwatch: Stopwatch | None = None
    observer: Observer | None = None
    stop: StopFlag = field(default_factory=StopFlag)
    step: int = 0
    state_digest: str = ""
    after: Observation | None = None
    graded: list[GradedStep] = field(default_factory=list)
    paid: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    positions: deque[tuple[Position, ...]] = field(default_factory=lambda: deque(maxlen=STEPS_KEPT))
    fallbacks: dict[str, tuple[int, str]] = field(default_factory=dict)
    stop_reason: str = ""
    retouch: Callable[[int, Context], Context] | None = None
    # The last requests, for a server that lost its tail (WR_BEHIND); bounded.
    sent: deque[tuple[int, str, Delta, bytes]] = field(default_factory=lambda: deque(maxlen=256))
    renewed_at_s: float = 0.0
    # What belongs to the step in progress; cleared by `begin_step`.
    seen: dict[str, Observation] = field(default_factory=dict)
    seat_histories: dict[str, History] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    proposed: dict[str, Reply] = field(default_factory=dict)
    stakes: dict[str, Stakes] = field(default_factory=dict)
    inbox: dict[tuple[int, str], Reply] = field(default_factory=dict)
    journalled: Mapping[str, bytes] = field(default_factory=dict)
    table: Table | None = None
    deliberation: Deliberation | None = None
    asks: tuple[Ask, ...] = ()
    waiting: dict[str, Request] = field(default_factory=dict)
    round: int = 0
    decision: Decision | None = None
    # The human gate: id of the candidate that was approved, and what was refused so far.
    approved: str = ""
    refused: tuple[tuple[Action, ...], ...] = ()
    # Interrupts: what people are asked, and what they answered, by seat.
    questions: tuple[Mapping[str, Any], ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)

    def begin_step(self) -> None:
        """Forget the step before."""
        self.seen = {}
        self.events = []
        self.proposed = {}
        self.stakes = {}
        self.inbox = {}
        self.journalled = {}
        self.table = None
        self.deliberation = None
        self.asks = ()
        self.round = 0
        self.decision = None
        self.approved = ""
        self.refused = ()

    def record(self, kind: str, data: Mapping[str, Any], agent: str = "", round_: int = 0) -> None:
        """Add an event to the step in progress."""
        self.events.append(Event(kind, self.step + 1, round_, data, agent))

    def charge(self, payments: Mapping[str, float]) -> None:
        """Book what seats pay for a committed decision, in influence credits."""
        for seat, credits_paid in payments.items():
            self.paid[seat] = significant(self.paid.get(seat, 0.0) + credits_paid)

    @property
    def finished(self) -> bool:
        """Whether the world said that the episode is over."""
        return bool(self.stop_reason)


def roll_digest(previous: str, delta: Delta) -> str:
    """Digest of the world after a step, from the digest before and what changed.

    Costs what changed, not what exists: an inventory of 100,000 rows is never hashed again.
    """
    digest = hashlib.sha256(previous.encode())
    for name in sorted(delta.metrics):
        digest.update(f"{name}={significant(delta.metrics[name])!r};".encode())
    digest.update(delta.hidden)
    for cells in delta.cells:
        digest.update(f"{cells.column}@{cells.offset}:".encode())
        digest.update(cells.data)
    return digest.hexdigest()


def joint_of(decision: Decision) -> str:
    """The id of what a decision does now: what ``[STEP] action=`` prints."""
    return joint_id(decision.chosen.now)
