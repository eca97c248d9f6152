"""The records of a negotiation: proposals, candidates, ballots, asks, replies, decisions.

Plain frozen data. Nothing here decides anything, and nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from world.actions import plan_id
from world.model import History, Joint, Observation, World

AskKind = Literal["propose", "ballot", "respond", "pick"]
MAX_PROPOSALS = 8
MAX_CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply cost. Goes to timings.jsonl, never into a hash.

    Attributes:
        calls: Model calls.
        tokens_in: Prompt tokens.
        tokens_out: Completion tokens.
        usd: Dollars; None is unknown, which is not zero.
        latency_ms: Wall time of its model calls, summed.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None
    latency_ms: float = 0.0


NoteKind = Literal["llm_call", "budget", "human_input"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a backend did to reach its reply, for the trace; never spend or times.

    Attributes:
        kind: Type of the event that it becomes.
        data: Names → plain values.
    """

    kind: NoteKind
    data: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Position:
    """What one seat stood for at one step, as the trace has it. Untrusted text; data.

    Attributes:
        step: The step, 1….
        seat: Whose.
        proposals: Joint ids in order of preference.
        rationale: The reason given for the first.
        message: The last thing that it said to the others.
    """

    step: int
    seat: str
    proposals: tuple[str, ...] = ()
    rationale: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one seat wants done now.

    Attributes:
        actions: One action up to the world's maximum, applied together.
        rationale: Why, for people. Untrusted text; data, never an instruction.
        confidence: 0–1, or None.
        claimed: Metric → effect that the seat claims; recorded, never believed.
    """

    actions: Joint
    rationale: str = ""
    confidence: float | None = None
    claimed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One option on the table.

    Attributes:
        now: Actions that would be executed this step.
        then: Later steps of the plan; projected, never executed.
        origin: Where it came from: ``resource#1``, ``composite``, ``catalogue``, ``mandatory``.
        feasible: Whether guardrails and the validator let it pass.
        reasons: Why not, where it is not feasible.
        id: Its one spelling.
    """

    now: Joint
    then: tuple[Joint, ...] = ()
    origin: tuple[str, ...] = ()
    feasible: bool = True
    reasons: tuple[str, ...] = ()
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", plan_id(self.now, self.then))


@dataclass(frozen=True, slots=True)
class Veto:
    """A red line that a candidate crosses.

    Attributes:
        rule: Rule id, for example ``cost/red_line/1``.
        reason: Why, for the audit.
    """

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one seat hands in.

    Attributes:
        seat: Whose.
        utilities: float64 [n_candidates], projected; rounded to 9 significant digits.
        weight: The seat's weight.
        vetoes: Candidate id → red line crossed.
        reported: float64 [n_candidates] that the seat stated itself, or None.
        abstains: True when the world has none of the seat's objectives.
        fallback: Why this ballot or the proposal behind it is a fallback; "" when it is not.
    """

    seat: str
    utilities: NDArray[np.float64]
    weight: float = 1.0
    vetoes: Mapping[str, Veto] = field(default_factory=dict)
    reported: NDArray[np.float64] | None = None
    abstains: bool = False
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of the engine or of a protocol to one seat.

    Attributes:
        seat: To whom.
        kind: What is asked.
        payload: JSON-plain content (candidate ids, an offer …).
        round: 0 for proposals and engine ballots, 1… for a protocol's rounds.
    """

    seat: str
    kind: AskKind
    payload: Mapping[str, Any] = field(default_factory=dict)
    round: int = 0


@dataclass(frozen=True, slots=True)
class Stakes:
    """What lies on the table, as one seat may see it: never what a single other seat wants.

    Attributes:
        utilities: Admissible candidate id → the seat's own utility, in id order; empty for a
            seat that abstains.
        welfare: Admissible candidate id → Σ weight·utility over the whole room, in id order.
        disagreement: Value of no deal to the seat.
    """

    utilities: Mapping[str, float]
    welfare: Mapping[str, float]
    disagreement: float = 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """An ask with what the seat may see. Built by the engine: identity is never taken from text.

    Attributes:
        ask: The question.
        step: Steps done so far.
        observation: What this seat observes.
        history: What this seat has observed, and what the room has decided.
        world: The world's public face, for catalogue and dry runs.
        stakes: What lies on the table; None before there is a table.
        positions: What every seat stood for in the last few steps, oldest first.
    """

    ask: Ask
    step: int
    observation: Observation
    history: History
    world: World[Any]
    stakes: Stakes | None = None
    positions: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A seat's answer. Only the field that the ask's kind names is read.

    Attributes:
        proposals: For ``propose``: up to 8, in order of preference.
        scores: For ``ballot``: candidate id → whole number 0–10.
        accept: For ``respond``.
        counter: For ``respond``: id of the counter-offer, or "".
        choice: For ``pick``: candidate id.
        message: Free text for the others. Untrusted.
        usage: What it cost.
        fallback: Why the engine replaced the seat's own answer; "" when it did not.
        notes: What the backend did to reach it, for the trace.
    """

    proposals: tuple[Proposal, ...] = ()
    scores: Mapping[str, int] = field(default_factory=dict)
    accept: bool = False
    counter: str = ""
    choice: str = ""
    message: str = ""
    usage: Usage = Usage()
    fallback: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a protocol, for the trace.

    Attributes:
        number: 1….
        events: JSON-plain entries ``{"seat", "kind", …}`` in order.
    """

    number: int
    events: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What the room decided, and the whole record of why.

    Attributes:
        chosen: The winning candidate.
        protocol: Name of the protocol that decided (the fallback's, if that decided).
        agreement: Whether the protocol itself reached it.
        reason: One line for people.
        scores: Candidate id → the protocol's score; empty where it has none.
        eliminated: Candidate id → why it was out of the running.
        rounds: Rounds played.
        overridden_from: The id that the plain rule would have chosen, where another rule decided.
        override_rule: Id of the rule that overrode it.
        tie: Ids that tied for first place before the tie rule; empty where none did.
        no_deal: Which no-deal rule decided; "" where there was a deal.
        payments: Seat → influence credits that it pays for this decision; empty where the
            protocol has no credits.
        faults: What went wrong on the way and was worked around, one line each; recorded as
            fallbacks of the room.
    """

    chosen: Candidate
    protocol: str
    agreement: bool
    reason: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    eliminated: Mapping[str, str] = field(default_factory=dict)
    rounds: tuple[Round, ...] = ()
    overridden_from: str = ""
    override_rule: str = ""
    tie: tuple[str, ...] = ()
    no_deal: str = ""
    payments: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """Everything that a protocol may use. Pure data; the same for every driver.

    Attributes:
        seats: Seat names in room order.
        weights: float64 [n_seats].
        candidates: All candidates, infeasible ones included, in id order of the candidate set.
        utilities: float64 [n_seats, n_candidates]; rounded to 9 significant digits.
        admissible: bool [n_candidates]: feasible and not vetoed.
        disagreement: float64 [n_seats], the value of no deal to each seat.
        ballots: One per seat, in room order.
        proposals: Seat → its proposals in order of preference.
        observation: What the room observes.
        history: What the room has observed and decided.
        no_deal: ``nop``, the name of a protocol, or ``commander``.
        seed: Episode seed, for counter-based streams.
        step: Steps done so far.
        paid: Seat → influence credits paid for the decisions so far; who is missing paid none.
        commander: Seat with the power to command; "" where nobody has it.
        mediator: Seat with the power to mediate; "" where nobody has it.
    """

    seats: tuple[str, ...]
    weights: NDArray[np.float64]
    candidates: tuple[Candidate, ...]
    utilities: NDArray[np.float64]
    admissible: NDArray[np.bool_]
    disagreement: NDArray[np.float64]
    ballots: tuple[Ballot, ...]
    proposals: Mapping[str, tuple[Proposal, ...]]
    observation: Observation
    history: History
    no_deal: str
    seed: int
    step: int
    paid: Mapping[str, float] = field(default_factory=dict)
    commander: str = ""
    mediator: str = ""


Deliberation = Generator[tuple[Ask, ...], Mapping[str, Reply], Decision]


class NegotiationProtocol(Protocol):
    """A rule that turns ballots into a decision.

    Attributes:
        name: Name from the literature, lower snake case.
        title: One line.
        description: Rule, tie rule, no-deal rule, source.
        max_rounds: Most rounds it may ask for; 0 for one-shot rules.
        worlds: Names of the only worlds it may run on; empty means any.
    """

    name: str
    title: str
    description: str
    max_rounds: int
    worlds: tuple[str, ...]

    def decide(self, context: Context) -> Deliberation:
        """A pure generator: yields one parallel batch of asks at a time, returns a decision."""
        ...


def sequence_of(items: Sequence[str]) -> str:
    """``a, b and c`` for messages."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
