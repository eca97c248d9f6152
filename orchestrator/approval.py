"""The human gate before an effect: ``--approve destructive|all``.

The gate stands between decision and world: what it refuses was never done. A refused option falls
with everything else that holds the same actions; the next best admissible candidate takes its
place, in the end one that needs no approval, else doing nothing. Every word of the gate is in the
trace. Where nobody can be asked, what needs approval is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.backends.human_terminal import Terminal, say_once
from agents.faults import SeatFault
from agents.seat import HUMAN_DEADLINE_S
from agents.validate import cleaned_text
from orchestrator.session import Session
from policies.protocols.common import weighted_sums
from policies.records import Candidate, Context, Decision
from policies.undo import undo_lines
from world.actions import NOP, Action
from world.errors import NoAgreementError

RULE = "control/approve"
APPROVE = "approve"
"""Name under which the gate's question is answered, as a seat's is under its seat."""
MOST_QUESTIONS = 3
"""Refusals in one step after which only what needs no approval is considered."""
_YES = frozenset({"y", "yes", "approve"})
_NO = frozenset({"n", "no", "refuse", "pass"})
_WORDS = "y to approve, n to refuse"


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What somebody is asked to approve.

    Attributes:
        step: The step being decided, 1….
        candidate: Id of the candidate.
        actions: The actions in it that need approval.
        notes: One line for each: what it does and whether it can be undone.
        reason: Why the room wants it.
    """

    step: int
    candidate: str
    actions: tuple[Action, ...]
    notes: tuple[str, ...]
    reason: str

    def as_json(self) -> dict[str, Any]:
        """The question as JSON-plain data."""
        return {
            "seat": APPROVE,
            "kind": APPROVE,
            "step": self.step,
            "candidate": self.candidate,
            "actions": [action.id for action in self.actions],
            "notes": list(self.notes),
            "reason": self.reason,
            "deadline_s": HUMAN_DEADLINE_S,
            "answers": _WORDS,
        }

    def text(self) -> str:
        """The question for a terminal."""
        return gate_text(self.as_json())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says.

    Attributes:
        approved: Whether the candidate may be carried out.
        by: ``person``, or why nobody answered.
    """

    approved: bool
    by: str = "person"


def gate_text(question: dict[str, Any]) -> str:
    """The gate's question, as its data say it, for a terminal."""
    lines = ["", f"-- approval · step {question['step']} · the room wants to do this:"]
    lines += [f"   {_clean(note)}" for note in question["notes"]]
    lines += [f"   why: {_clean(question['reason'])}", f"   type {_WORDS}"]
    return "\n".join(lines)


def gate(session: Session) -> GateQuestion | None:
    """What must be approved before the decision of this step may be applied; None is nothing."""
    decision, mode = session.decision, session.room.spec.approve
    if decision is None or mode == "none" or session.approved == decision.chosen.id:
        return None
    guarded = _guarded(session, decision.chosen)
    if not guarded:
        return None
    undone = undo_lines(session.history.now, guarded)
    return GateQuestion(
        session.step + 1,
        decision.chosen.id,
        guarded,
        tuple(f"{action.id} — undo: {line}" for action, line in zip(guarded, undone, strict=True)),
        decision.reason,
    )


def settle(session: Session) -> None:
    """Put the decision of this step through the gate, asking at the terminal where it must."""
    while (question := gate(session)) is not None:
        rule(session, question, remembered(session, question) or ask_person(session, question))


def remembered(session: Session, question: GateQuestion) -> Verdict | None:
    """What was answered before a crash or an interrupt, if it was."""
    kept = session.journalled.get(_field(question))
    if kept is None:
        return None
    data = json.loads(kept)
    return Verdict(bool(data["approved"]), str(data["by"]))


def ask_person(session: Session, question: GateQuestion) -> Verdict:
    """Ask at the terminal. Without one, and after the deadline, the answer is no.

    Raises:
        SeatEndsRun: The run was asked to stop meanwhile.
    """
    interactive = bool(session.room.spec.out)
    terminal = Terminal.find(lambda: session.stop.requested) if interactive else None
    if terminal is None:
        say_once(
            f"note: there is no terminal to approve at: what --approve "
            f"{session.room.spec.approve} guards is refused each time; the trace says so"
        )
        return Verdict(False, "no terminal")
    heard: list[Verdict] = []

    def hear(line: str) -> str:
        try:
            heard.append(read_verdict(line))
        except ValueError:
            return f"   type {_WORDS}"
        return ""

    try:
        terminal.converse(question.text(), APPROVE, hear, HUMAN_DEADLINE_S)
    except SeatFault as fault:
        return Verdict(False, fault.line())
    return heard[-1]


def read_verdict(text: str) -> Verdict:
    """The verdict that a typed line means.

    Raises:
        ValueError: It means none.
    """
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise ValueError(f"type {_WORDS}")
    return Verdict(word in _YES)


def rule(session: Session, question: GateQuestion, verdict: Verdict) -> None:
    """Record a verdict; a refused decision makes way for the next best one.

    Raises:
        NoAgreementError: Nothing is left that may be done, and the world cannot stand still.
    """
    decision, table = session.decision, session.table
    if decision is None or table is None:
        raise RuntimeError("nothing was decided")
    if verdict.by == "person":
        session.store.journal(
            session.lease.episode,
            session.lease.branch,
            session.step,
            _field(question),
            json.dumps({"approved": verdict.approved, "by": verdict.by}).encode(),
        )
    session.record(
        "human_input",
        {
            "kind": APPROVE,
            "candidate": question.candidate,
            "actions": [action.id for action in question.actions],
            "approved": verdict.approved,
            "by": verdict.by,
        },
    )
    if verdict.approved:
        session.approved = question.candidate
        return
    session.refused = (*session.refused, question.actions)
    session.decision = _instead(session, table.context, decision, verdict)


def _field(question: GateQuestion) -> str:
    return f"gate:{hashlib.sha256(question.candidate.encode()).hexdigest()[:16]}"


def _guarded(session: Session, candidate: Candidate) -> tuple[Action, ...]:
    acts = tuple(action for action in candidate.now if action.kind != NOP)
    if session.room.spec.approve == "all":
        return acts
    return tuple(action for action in acts if action.kind in session.room.destructive)


def _instead(session: Session, context: Context, decision: Decision, verdict: Verdict) -> Decision:
    """The decision that takes the place of a refused one."""
    refused = frozenset(action for actions in session.refused for action in actions)
    asked_enough = len(session.refused) >= MOST_QUESTIONS
    standing = [
        place
        for place, candidate in enumerate(context.candidates)
        if context.admissible[place]
        and not refused.intersection(candidate.now)
        and not (asked_enough and _guarded(session, candidate))
    ]
    chosen = _best(context, decision, standing)
    if chosen is None and session.room.world.limits.has_nop:
        chosen = Candidate((Action(NOP),))
    if chosen is None:
        raise NoAgreementError(
            f"step {context.step + 1}: nothing was approved",
            "every option is refused, and this world cannot stand still",
            "Approve one of them when the run is resumed, or use --approve destructive",
        )
    first = decision.overridden_from or decision.chosen.id
    why = f"not approved ({verdict.by})"
    return replace(
        decision,
        chosen=chosen,
        reason=f"{decision.chosen.id} was {why}; next best: {chosen.id}",
        eliminated={**decision.eliminated, decision.chosen.id: f"{RULE}: {why}"},
        overridden_from=first,
        override_rule=RULE,
        payments={},  # nobody pays for what was not done
    )


def _best(context: Context, decision: Decision, standing: Sequence[int]) -> Candidate | None:
    """The best of the standing candidates by the protocol's score, else by the weighted sum."""
    if not standing:
        return None
    sums = weighted_sums(context)

    def rank(place: int) -> tuple[float, float, str]:
        candidate = context.candidates[place]
        score = decision.scores.get(candidate.id, -np.inf)
        total = float(sums[place])
        return (-float(score), -total if total == total else np.inf, candidate.id)

    return context.candidates[min(standing, key=rank)]


def _clean(text: str) -> str:
    return " ".join(cleaned_text(text, 300).split())
