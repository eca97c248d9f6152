"""Groups the events of a trace by step: what the story, the export and the charts read.

One pass, one step in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.trace.events import Event

_TALK = frozenset({"offer", "response", "message", "human_input", "llm_call"})


@dataclass(frozen=True, slots=True)
class Header:
    """The data of run_started.

    Attributes:
        data: As written.
    """

    data: Mapping[str, Any]

    @property
    def scenario(self) -> Mapping[str, Any]:
        """Name, digest, world, horizon and targets."""
        return mapping(self.data.get("scenario"))

    @property
    def horizon(self) -> int:
        """Steps that the episode was to have."""
        value = self.data.get("horizon", self.scenario.get("horizon", 0))
        return value if isinstance(value, int) else 0

    @property
    def protocol(self) -> str:
        """Name of the protocol."""
        return str(mapping(self.data.get("protocol")).get("name", ""))

    @property
    def personas(self) -> dict[str, str]:
        """Seat → persona name, in room order."""
        seats = [mapping(seat) for seat in sequence(self.data.get("seats"))]
        return {str(seat.get("seat", "")): str(seat.get("persona", "")) for seat in seats}


@dataclass(slots=True)
class StepRecord:
    """Everything that a trace says about one step.

    Attributes:
        step: The step, 1….
        observation: Data of its observation.
        candidates: Data of its candidates.
        ballots: Seat → data of its ballot, in the order of the trace.
        vetoes: Data of each veto, with the seat under ``seat``.
        talk: Offers, responses, messages and inputs, in order.
        decision: Data of its decision.
        applied: Data of what was applied.
        grade: Data of its grade.
        fallbacks: Data of each fallback, with the seat under ``seat``.
        complete: Whether its grade, the last event of a step, was reached.
    """

    step: int
    observation: Mapping[str, Any] = field(default_factory=dict)
    candidates: Mapping[str, Any] = field(default_factory=dict)
    ballots: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    vetoes: list[dict[str, Any]] = field(default_factory=list)
    talk: list[Event] = field(default_factory=list)
    decision: Mapping[str, Any] = field(default_factory=dict)
    applied: Mapping[str, Any] = field(default_factory=dict)
    grade: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False

    def add(self, entry: Event) -> None:
        """Take in one event of this step; types that are not needed here are left out."""
        data = mapping(entry.data)
        match entry.type:
            case "observation":
                self.observation = data
            case "candidates":
                self.candidates = data
            case "ballot":
                self.ballots[entry.agent] = data
            case "veto":
                self.vetoes.append({"seat": entry.agent, **data})
            case "decision":
                self.decision = data
            case "applied":
                self.applied = data
            case "grade":
                self.grade = data
                self.complete = True
            case "fallback":
                self.fallbacks.append({"seat": entry.agent, **data})
            case kind if kind in _TALK:
                self.talk.append(entry)

    @property
    def chosen(self) -> str:
        """Id of the candidate that was decided on; "" before a decision."""
        return str(self.decision.get("chosen", ""))

    @property
    def action(self) -> str:
        """Id of what was done now: the first step of the chosen plan."""
        return str(self.decision.get("action") or self.chosen)

    @property
    def overridden(self) -> bool:
        """Whether another rule than the protocol's own decided."""
        return bool(self.decision.get("overridden_from"))

    @property
    def crisis(self) -> bool:
        """Whether something was visibly wrong: an incident, or a fact named crisis that holds.

        A single world-wide flag (``crisis``, ``crisis_just_happened``) or a list of incidents
        is all that worlds tell their rooms.
        """
        if self.observation.get("incidents"):
            return True
        facts = mapping(self.observation.get("facts"))
        return any(name.startswith("crisis") and value is True for name, value in facts.items())

    def top_proposal(self, seat: str) -> Mapping[str, Any]:
        """First proposal of a seat; empty where it made none."""
        proposals = sequence(self.ballots.get(seat, {}).get("proposals"))
        return mapping(proposals[0]) if proposals else {}

    def preferred(self, seat: str) -> str:
        """Candidate that a seat ranks first; "" where it has no ranking."""
        ballot = self.ballots.get(seat, {})
        ranking = sequence(ballot.get("ranking"))
        if ranking:
            return str(ranking[0])
        utilities = numbers(ballot.get("utilities"))
        return max(utilities, key=lambda name: (utilities[name], name)) if utilities else ""


@dataclass(frozen=True, slots=True)
class Ending:
    """The data of run_ended, or that there is none.

    Attributes:
        data: As written; empty where the trace stops without one.
        last_step: Last step in the trace.
        complete: Whether run_ended was there.
    """

    data: Mapping[str, Any]
    last_step: int
    complete: bool


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one: traces of others may lack anything."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return list(value) if isinstance(value, list | tuple) else []


def numbers(value: object) -> dict[str, float]:
    """The members of an object that are numbers."""
    return {
        str(name): float(item)
        for name, item in mapping(value).items()
        if isinstance(item, int | float) and not isinstance(item, bool)
    }


def episode(events: Iterable[Event]) -> Iterator[Header | StepRecord | Ending]:
    """Group events: first the header, then each step, last the ending.

    Args:
        events: As `orchestrator.trace.reader.read` gives them.
    """
    record: StepRecord | None = None
    last_step = 0
    ending: Mapping[str, Any] | None = None
    for entry in events:
        if entry.type == "run_started":
            yield Header(mapping(entry.data))
            continue
        if entry.type == "run_ended":
            ending, last_step = mapping(entry.data), entry.step
            continue
        if record is None or entry.step != record.step:
            if record is not None:
                yield record
            record = StepRecord(entry.step)
        record.add(entry)
        last_step = entry.step
    if record is not None:
        yield record
    yield Ending(ending or {}, last_step, ending is not None)
