"""Looks at every decision of an episode while it is played: who had power over it, and why.

It sits where ballots have been counted and the protocol has not spoken yet, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.persona_schema import PersonaSpec
from agents.validate import fallback_reply
from orchestrator.answering import ask_all_now
from orchestrator.session import Session
from orchestrator.spec import EpisodeResult
from orchestrator.study.influence.conformance import CONVENTIONS, Convention, Tally, count
from orchestrator.study.influence.manipulation import liar_gains
from orchestrator.study.influence.pivotality import is_mandatory, power
from orchestrator.study.retouch import Retouch
from policies.records import Ask, Context, Reply, Request
from policies.stakes import stakes_of

RECOMPUTED = frozenset({"rules", "scripted", "learned"})
"""Backends that are functions of what they are asked; everybody else is stood in for."""


@dataclass(slots=True)
class Decisions:
    """What was counted over the decisions of an episode, or of several.

    Attributes:
        decisions: How many.
        mandatory: How many of them the world made.
        pivotal: Seat → decisions that would have been others without it.
        banzhaf: Seat → sum of its Banzhaf indices.
        liars: Seat → decisions in which a crude lie gains.
        manipulable: Decisions in which a crude lie of some seat gains.
        conformance: (seat, convention) → what the room did of its proposals.
        overridden: Override rule → decisions that it turned away from the protocol's own winner.
        decided_by: Rule other than the protocol's own → decisions that it made.
        stand_ins: Answers that a rule gave for a seat that could not be asked again.
    """

    decisions: int = 0
    mandatory: int = 0
    pivotal: Counter[str] = field(default_factory=Counter)
    banzhaf: dict[str, float] = field(default_factory=dict)
    liars: Counter[str] = field(default_factory=Counter)
    manipulable: int = 0
    conformance: dict[tuple[str, Convention], Tally] = field(default_factory=dict)
    overridden: Counter[str] = field(default_factory=Counter)
    decided_by: Counter[str] = field(default_factory=Counter)
    stand_ins: int = 0

    def merge(self, other: Decisions) -> None:
        """Add what was counted elsewhere."""
        self.decisions += other.decisions
        self.mandatory += other.mandatory
        self.manipulable += other.manipulable
        self.stand_ins += other.stand_ins
        self.pivotal.update(other.pivotal)
        self.liars.update(other.liars)
        self.overridden.update(other.overridden)
        self.decided_by.update(other.decided_by)
        for seat, value in other.banzhaf.items():
            self.banzhaf[seat] = self.banzhaf.get(seat, 0.0) + value
        for key, tally in other.conformance.items():
            self.conformance.setdefault(key, Tally()).merge(tally)


class Watch:
    """Counts the decisions of one episode. Attach it to a session before the session is driven.

    Args:
        session: The episode; its `retouch` goes on working.
        lies: Whether to look for lies that gain, too.
    """

    def __init__(self, session: Session, lies: bool = True) -> None:
        self.found = Decisions(
            banzhaf=dict.fromkeys(session.room.personas, 0.0),
            conformance={(s, c): Tally() for s in session.room.personas for c in CONVENTIONS},
        )
        self._session, self._lies = session, lies
        self._inner: Retouch | None = session.retouch
        session.retouch = self._look
        session.observer = self

    def _look(self, step: int, context: Context) -> Context:
        counted = self._inner(step, context) if self._inner is not None else context
        protocol, found = self._session.room.protocol, self.found
        powers = power(protocol, counted, self._answers)
        found.decisions += 1
        found.mandatory += is_mandatory(counted)
        found.pivotal.update(powers.pivotal)
        for seat, index in powers.banzhaf.items():
            found.banzhaf[seat] = found.banzhaf.get(seat, 0.0) + index
        if self._lies:
            gains = [
                seat
                for seat in counted.seats
                if liar_gains(protocol, counted, powers.decision, seat, self._answers) > 0
            ]
            found.liars.update(gains)
            found.manipulable += bool(gains)
        return counted

    def _answers(self, asks: tuple[Ask, ...], context: Context) -> Mapping[str, Reply]:
        """What seats would say over a table that is not the real one.

        Functions are asked. A model, a person or another process is not: its rule speaks, or,
        where it has none, a stand-in declines.
        """
        session = self._session
        requests = tuple(self._request(ask, context) for ask in asks)
        specs = session.room.specs
        asked = tuple(r for r in requests if specs[r.ask.seat].backend.kind in RECOMPUTED)
        replies = dict(ask_all_now(session.room.personas, asked)) if asked else {}
        for request in requests:
            if request.ask.seat not in replies:
                self.found.stand_ins += 1
                spec = _by_rules(specs[request.ask.seat])
                replies[request.ask.seat] = fallback_reply(
                    session.room.world, request, "not asked again", spec
                )
        return replies

    def _request(self, ask: Ask, context: Context) -> Request:
        session = self._session
        return Request(
            ask,
            session.step,
            session.seen[ask.seat],
            session.seat_histories.get(ask.seat, session.history),
            session.room.world,
            stakes_of(context, ask.seat),
            tuple(position for step in session.positions for position in step),
        )

    # An observer of the session: only what was committed matters here.

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """Nothing to count yet."""

    def live(self, step: int, kind: str, data: Mapping[str, Any]) -> None:
        """Not decided yet."""

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """Count what was done against what was proposed, and by which rule it was decided."""
        decision = record["decision"]
        proposals = {s: str(made["id"]) for s, made in record["proposals"].items() if made["id"]}
        count(self.found.conformance, str(record["action"]), proposals)
        if decision["overridden_from"]:
            self.found.overridden[str(decision["override_rule"]) or "unnamed"] += 1
        rule = str(decision["override_rule"] or decision["no_deal"])
        if rule:
            self.found.decided_by[rule] += 1

    def ended(self, result: EpisodeResult) -> None:
        """Nothing more to count."""


def _by_rules(spec: PersonaSpec) -> PersonaSpec:
    backend = spec.backend.model_copy(update={"fallback": "rules"})
    return spec.model_copy(update={"backend": backend})
