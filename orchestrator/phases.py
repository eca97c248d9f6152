"""The four phases of a step, as plain functions: observe, propose, negotiate, commit.

Both drivers, the LangGraph graph and the plain loop, call exactly these, in this order, so
their traces are the same bytes. Phases do no waiting of their own: whoever drives asks the
seats (`orchestrator.answering`) and hands the replies back through the session's inbox.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.seat import is_journalled
from orchestrator.positions import add_fallbacks, positions_of
from orchestrator.replies import journal_field, read_reply, reply_data, write_reply
from orchestrator.session import Session, joint_of, roll_digest
from orchestrator.trace.events import Event
from policies.protocols.guard import guarded
from policies.records import Ask, Ballot, Candidate, Decision, Reply, Request, Usage
from policies.reported import ballot_asks, with_reported
from policies.stakes import stakes_of
from policies.table import Table, lay_table
from policies.undo import undo_line
from world.actions import joint_id
from world.errors import BehindWorldError, RoundLimitError
from world.graders.burn import burn_of
from world.graders.scorecard import GradedStep
from world.model import Delta, History, Observation, Outcomes, significant

_RECOMPUTED = frozenset({"rules", "scripted"})
"""Backends that answer the same again, so that nothing need be kept while a run waits."""


def observe(session: Session) -> None:
    """Read what the room may know of the world, and what each seat may know of that."""
    session.begin_step()
    if session.stopwatch:
        session.stopwatch.start()
    room = session.room
    seen = session.after or room.world.observe(session.state)
    session.history.observations.append(seen)
    for seat in room.personas:
        masked = room.scenario.masks.get(seat)
        session.seen[seat] = seen.masked(masked) if masked else seen
        if masked:
            _seat_history(session, seat).observations.append(session.seen[seat])
    session.record("observation", observation_data(seen, burn_of(session.history.observations)))
    if room.journalled:
        session.journalled = session.store.journalled(
            session.lease.episode, session.lease.branch, session.step
        )
    session.asks = tuple(Ask(seat, "propose") for seat in room.personas)
    if session.observer:
        session.observer.live(session.step + 1, "observation", session.events[-1].data)


def request(session: Session, ask: Ask) -> Request:
    """What a seat is sent: the ask, and what that seat may see. Identity comes from here only."""
    history = session.seat_histories.get(ask.seat, session.history)
    stakes = None
    if session.table is not None:
        stakes = session.stakes.get(ask.seat)
        if stakes is None:
            stakes = session.stakes[ask.seat] = stakes_of(session.table.context, ask.seat)
    return Request(
        ask,
        session.step,
        session.seen[ask.seat],
        history,
        session.room.world,
        stakes,
        tuple(position for step in session.positions for position in step),
    )


def pending(session: Session) -> tuple[Request, ...]:
    """The asks of this round that still need the seat itself.

    A reply that was journalled before a crash or an interrupt is taken from the journal, so that
    no model is paid and no person is asked twice.
    """
    if session.stopwatch:
        session.stopwatch.mark("propose")
    waiting = session.waiting = {}
    for ask in session.asks:
        if (session.round, ask.seat) in session.inbox:
            continue
        prepared = request(session, ask)
        if session.journalled and (field := journal_field(prepared)) in session.journalled:
            kept = session.inbox[session.round, ask.seat] = read_reply(session.journalled[field])
            if session.room.desk is not None:
                session.room.desk.meter.restore({ask.seat: kept.usage})
        else:
            waiting[ask.seat] = prepared
    return tuple(waiting.values())


def receive(session: Session, asked: Request, reply: Reply) -> None:
    """Put a reply into the inbox; journal it first where the seat is slow, paid or a person."""
    persona = session.room.personas[asked.ask.seat]
    paused = bool(session.room.people) and session.room.pauses
    recomputed = persona.spec.backend.kind in _RECOMPUTED
    # A model that answered rubbish was paid too.
    kept_anyway = is_journalled(persona) and (not reply.fallback or reply.usage.calls > 0)
    if kept_anyway or (paused and not recomputed):
        kept = session.store.journal(
            session.lease.episode,
            session.lease.branch,
            session.step,
            journal_field(asked),
            write_reply(reply),
        )
        reply = read_reply(kept)
    session.inbox[asked.ask.round, asked.ask.seat] = reply


def negotiate(session: Session) -> bool:
    """Play one round with the replies at hand.

    The table is laid first; seats whose own ballots count are asked for them (round 0) before
    the protocol speaks. A protocol that breaks its rules is stopped and replaced by the room's
    no-deal rule (`policies.protocols.guard`).

    Returns:
        True when the room has decided; False when `session.asks` holds further asks.

    Raises:
        RoundLimitError: More rounds than the room allows; the guard ends a negotiation before.
    """
    if session.stopwatch:
        session.stopwatch.mark("negotiate")
    if session.table is None:
        _lay_table(session)
        if session.asks:
            return False
    if session.deliberation is None:
        _open_deliberation(session)
    else:
        _record_responses(session)
    deliberation = session.deliberation
    if deliberation is None:
        raise RuntimeError("the table was not laid")
    try:
        if session.round == 0:
            asks = next(deliberation)
        else:
            asks = deliberation.send(
                {ask.seat: session.inbox[session.round, ask.seat] for ask in session.asks}
            )
    except StopIteration as done:
        decision: Decision = done.value
        for fault in decision.faults:
            session.record("fallback", {"kind": "protocol", "what": fault}, "", session.round)
        session.decision = decision
        session.asks = ()
        if session.observer:
            session.observer.live(session.step + 1, "decision", decision_data(decision))
        return True
    session.round += 1
    if session.round > session.room.max_rounds:
        raise RoundLimitError(
            f"protocol {session.room.protocol.name!r} asked for round {session.round}",
            f"the room allows at most {session.room.max_rounds}",
            "Correct max_rounds, or end the negotiation in the protocol",
        )
    session.asks = tuple(Ask(ask.seat, ask.kind, ask.payload, session.round) for ask in asks)
    return False


def commit(session: Session) -> None:
    """Apply the decision to the world, grade it, and write the step once, all or nothing."""
    decision = session.decision
    if decision is None:
        raise RuntimeError("nothing was decided")
    if session.stopwatch:
        session.stopwatch.mark("commit")
    joint = decision.chosen.now
    state, outcomes, delta = session.room.world.step(session.state, joint)
    session.state_digest = roll_digest(session.state_digest, delta)
    after = session.room.world.observe(state)
    session.record("decision", decision_data(decision))
    before = session.history.now
    session.record("applied", applied_data(outcomes, after, session.state_digest, before))
    session.record("grade", grade_data(outcomes))
    lines = [session.chain.add(event) for event in session.events]
    payload = b"\n".join(lines)
    step = session.step + 1
    request_id = f"{session.run}/{session.lease.branch}/{step}/{_short(payload)}"
    _apply(session, request_id, delta, payload)
    if session.writer:
        session.writer.append(lines)
    session.state = state
    session.step = step
    session.history.decisions.append(joint)
    session.charge(decision.payments)
    for history in session.seat_histories.values():
        history.decisions.append(joint)
    session.after = after
    session.graded.append(GradedStep.of(session.after, joint, outcomes, outcomes.violations))
    spoken = [(event.type, event.agent, event.data) for event in session.events]
    session.positions.append(positions_of(step, spoken))
    add_fallbacks(session.fallbacks, spoken)
    session.stop_reason = outcomes.stop_reason if outcomes.done else ""
    if session.stopwatch:
        session.stopwatch.finish(step, session.usage)
    if session.observer:
        session.observer.committed(step, _record_of_step(session, decision, outcomes, after))


def _short(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()[:16]


def _apply(session: Session, request_id: str, delta: Delta, payload: bytes) -> None:
    """One atomic write; resends what a server that lost its tail had already acknowledged."""
    store, lease, expected = session.store, session.lease, session.step
    try:
        store.apply(lease, expected, request_id, delta, payload)
    except BehindWorldError as error:
        lost = [entry for entry in session.sent if entry[0] >= error.step]
        if not lost or lost[0][0] != error.step:
            raise
        for entry in lost:
            store.apply(lease, *entry)
        store.apply(lease, expected, request_id, delta, payload)
    session.sent.append((expected, request_id, delta, payload))


def _seat_history(session: Session, seat: str) -> History:
    history = session.seat_histories.get(seat)
    if history is None:
        history = session.seat_histories[seat] = History(session.room.scenario)
    return history


def _lay_table(session: Session) -> None:
    """From proposals to a table; leaves asks where seats are to state ballots of their own."""
    room = session.room
    session.proposed = {seat: session.inbox.pop((0, seat)) for seat in room.personas}
    for seat, reply in session.proposed.items():
        _count(session, seat, reply)
        if reply.fallback:
            session.record("fallback", {"kind": "propose", "what": reply.fallback}, seat)
        elif seat in room.people:
            session.record("human_input", {"kind": "propose", **reply_data("propose", reply)}, seat)
    session.table = lay_table(
        room.world,
        session.history,
        room.spec.seed,
        room.seats,
        {seat: reply.proposals for seat, reply in session.proposed.items()},
        room.rules,
        paid=dict(session.paid),
    )
    session.record("candidates", candidates_data(session.table, session.history.now))
    session.asks = ballot_asks(session.table, room.seats)
    if session.observer:
        proposals = {seat: _top_proposal(reply) for seat, reply in session.proposed.items()}
        session.observer.live(session.step + 1, "proposals", proposals)


def _open_deliberation(session: Session) -> None:
    """Count ballots, record them, and hand the table to the protocol."""
    room, table = session.room, session.table
    if table is None:
        raise RuntimeError("the table was not laid")
    laid = table.context
    stated = {ask.seat: session.inbox[0, ask.seat] for ask in session.asks}
    for seat, reply in stated.items():
        _count(session, seat, reply)
        if reply.message:
            session.record("message", {"text": reply.message}, seat)
        if reply.fallback:
            session.record("fallback", {"kind": "ballot", "what": reply.fallback}, seat)
    scores = {seat: reply.scores for seat, reply in stated.items()}
    counted = with_reported(laid, room.seats, scores) if stated else laid
    if stated:
        session.table = replace(table, context=counted)
        session.stakes = {}  # from here on the ballots that count are what is at stake
    if session.retouch is not None:
        counted = session.retouch(session.step + 1, counted)
        session.table = replace(table, context=counted)
        session.stakes = {}
    no_deal = counted.disagreement.tolist()
    for ballot, projected, worth in zip(counted.ballots, laid.ballots, no_deal, strict=True):
        reply = session.proposed[ballot.seat]
        if ballot.abstains and not reply.proposals and not reply.fallback:
            continue  # who neither says nor weighs anything hands nothing in
        data = ballot_data(ballot, counted.candidates, reply)
        if not ballot.abstains:
            data["disagreement"] = worth
        if ballot.seat in stated:
            data["reported"] = dict(scores[ballot.seat])
            data["projected"] = _known(projected.utilities, counted.candidates)
        session.record("ballot", data, ballot.seat)
    for ballot in counted.ballots:
        for candidate, veto in ballot.vetoes.items():
            session.record(
                "veto",
                {"candidate": candidate, "rule": veto.rule, "reason": veto.reason},
                ballot.seat,
            )
    session.deliberation = guarded(room.protocol, counted)


def _known(values: Any, candidates: Sequence[Candidate]) -> dict[str, float]:
    return {
        candidate.id: value
        for candidate, value in zip(candidates, values.tolist(), strict=True)
        if value == value
    }


def _record_responses(session: Session) -> None:
    for ask in session.asks:
        reply = session.inbox[session.round, ask.seat]
        _count(session, ask.seat, reply, ask.round)
        asked = {"kind": ask.kind, "payload": _recorded_payload(session, ask)}
        session.record("offer", asked, ask.seat, ask.round)
        session.record("response", reply_data(ask.kind, reply), ask.seat, ask.round)
        if ask.seat in session.room.people and not reply.fallback:
            entered = {"kind": ask.kind, **reply_data(ask.kind, reply)}
            session.record("human_input", entered, ask.seat, ask.round)
        if reply.message:
            session.record("message", {"text": reply.message}, ask.seat, ask.round)
        if reply.fallback:
            session.record(
                "fallback", {"kind": ask.kind, "what": reply.fallback}, ask.seat, ask.round
            )


def _recorded_payload(session: Session, ask: Ask) -> dict[str, Any]:
    """What a question held; answers by id about the whole table do not list it again.

    Their order can be found again (`policies.stakes.shuffled`), and a table has up to 64 ids.
    """
    payload = dict(ask.payload)
    offered, table = payload.get("candidates"), session.table
    if ask.kind == "respond" and isinstance(offered, list | tuple) and table is not None:
        fine = int(table.context.admissible.sum())
        if len(offered) == fine and fine > 2:
            payload["candidates"] = "all"
    return payload


def _count(session: Session, seat: str, reply: Reply, round_: int = 0) -> None:
    """Count what a reply cost, and record what its backend did to reach it."""
    for note in reply.notes:
        session.record(note.kind, dict(note.data), seat, round_)
    if reply.usage != Usage():
        before = session.usage.get(seat, Usage(usd=0.0))
        dollars = (
            None if before.usd is None or reply.usage.usd is None else before.usd + reply.usage.usd
        )
        session.usage[seat] = Usage(
            before.calls + reply.usage.calls,
            before.tokens_in + reply.usage.tokens_in,
            before.tokens_out + reply.usage.tokens_out,
            dollars,
            before.latency_ms + reply.usage.latency_ms,
        )


# -- event data -----------------------------------------------------------------------------


def observation_data(seen: Observation, burn: Mapping[str, Any]) -> dict[str, Any]:
    """Data of an ``observation`` event; `burn` is how fast services burn their error budgets."""
    data: dict[str, Any] = {
        "metrics": dict(seen.metrics),
        "targets": dict(seen.targets),
        "facts": dict(seen.facts),
    }
    if seen.incidents:
        data["incidents"] = list(seen.incidents)
    if seen.unknown:
        data["unknown"] = list(seen.unknown)
    if seen.inventory is not None:
        data["inventory"] = {"rows": len(seen.inventory)}
    if burn:
        data["burn"] = dict(burn)
    return data


def candidates_data(table: Table, seen: Observation) -> dict[str, Any]:
    """Data of a ``candidates`` event; resources that an option names come with what is known."""
    items = []
    touched: dict[str, Any] = {}
    rows = table.projected.tolist()
    for position, candidate in enumerate(table.context.candidates):
        item: dict[str, Any] = {
            "id": candidate.id,
            "origin": list(candidate.origin),
            "feasible": candidate.feasible,
        }
        if candidate.reasons:
            item["reasons"] = list(candidate.reasons)
        projected = {
            name: value
            for name, value in zip(table.metrics, rows[position], strict=True)
            if value == value
        }
        if projected:
            item["projected"] = projected
        items.append(item)
        for action in candidate.now:
            if action.target and seen.inventory is not None:
                position_of = seen.inventory.index.get(action.target)
                if position_of is not None and action.target not in touched:
                    touched[action.target] = seen.inventory.row(action.target)
    data: dict[str, Any] = {"items": items}
    if table.mandatory:
        data["mandatory"] = True
    if table.dropped_count:
        data["dropped"] = list(table.dropped)
        data["dropped_count"] = table.dropped_count
    if touched:
        data["resources"] = touched
    if table.warnings:
        data["warnings"] = [
            {
                "seat": notice.seat,
                "rule": notice.rule,
                "severity": notice.severity,
                "reason": notice.reason,
                "candidate": notice.candidate,
            }
            for notice in table.warnings
        ]
    return data


def ballot_data(ballot: Ballot, candidates: Sequence[Candidate], reply: Reply) -> dict[str, Any]:
    """Data of a ``ballot`` event."""
    data: dict[str, Any] = {
        "proposals": [_proposal_data(proposal) for proposal in reply.proposals],
        "weight": ballot.weight,
        "abstains": ballot.abstains,
    }
    if not ballot.abstains:
        known = [
            (value, candidate.id)
            for candidate, value in zip(candidates, ballot.utilities.tolist(), strict=True)
            if value == value
        ]
        data["utilities"] = {name: value for value, name in known}
        data["ranking"] = [
            name for value, name in sorted(known, key=lambda pair: (-pair[0], pair[1]))
        ]
    if reply.fallback:
        data["fallback"] = reply.fallback
    return data


def _proposal_data(proposal: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"id": joint_id(proposal.actions), "rationale": proposal.rationale}
    if proposal.confidence is not None:
        data["confidence"] = proposal.confidence
    if proposal.claimed:
        data["claimed"] = dict(proposal.claimed)
    return data


def _top_proposal(reply: Reply) -> dict[str, Any]:
    if not reply.proposals:
        return {"id": "", "rationale": reply.fallback}
    return _proposal_data(reply.proposals[0])


def decision_data(decision: Decision) -> dict[str, Any]:
    """Data of a ``decision`` event."""
    data: dict[str, Any] = {
        "chosen": decision.chosen.id,
        "action": joint_of(decision),
        "protocol": decision.protocol,
        "agreement": decision.agreement,
        "reason": decision.reason,
        "scores": dict(decision.scores),
        "eliminated": dict(decision.eliminated),
        "rounds": len(decision.rounds),
        "overridden_from": decision.overridden_from,
        "override_rule": decision.override_rule,
        "tie": list(decision.tie),
        "no_deal": decision.no_deal,
    }
    account = [
        {"round": entry.number, **event} for entry in decision.rounds for event in entry.events
    ]
    if account:
        data["account"] = account
    if decision.payments:
        data["payments"] = {seat: significant(cost) for seat, cost in decision.payments.items()}
    return data


def applied_data(
    outcomes: Outcomes, after: Observation, state_digest: str, before: Observation
) -> dict[str, Any]:
    """Data of an ``applied`` event; how an action is taken back depends on what was `before`."""
    actions = []
    for outcome in outcomes.actions:
        entry: dict[str, Any] = {"id": outcome.action.id, "status": outcome.status}
        if outcome.effect:
            entry["effect"] = outcome.effect
        if outcome.reason:
            entry["reason"] = outcome.reason
        if outcome.status == "applied":
            entry["undo"] = undo_line(before, outcome.action)
        actions.append(entry)
    data: dict[str, Any] = {
        "actions": actions,
        "events": list(outcomes.events),
        "metrics": dict(after.metrics),
        "success": outcomes.success,
        "state": state_digest,
    }
    if outcomes.violations:
        data["violations"] = list(outcomes.violations)
    return data


def grade_data(outcomes: Outcomes) -> dict[str, Any]:
    """Data of a ``grade`` event."""
    return {
        "reward": outcomes.reward,
        "terms": dict(outcomes.terms),
        "success": outcomes.success,
    }


def _record_of_step(
    session: Session, decision: Decision, outcomes: Outcomes, after: Observation
) -> Mapping[str, Any]:
    failed = next((o.reason for o in outcomes.actions if o.status in {"failed", "refused"}), None)
    return {
        "step": session.step,
        "horizon": session.room.scenario.horizon,
        "action": joint_of(decision),
        "reward": significant(outcomes.reward),
        "done": outcomes.done,
        "error": failed,
        "success": outcomes.success,
        "metrics": dict(after.metrics),
        "targets": dict(session.history.now.targets),
        "events": list(outcomes.events),
        "proposals": {seat: _top_proposal(reply) for seat, reply in session.proposed.items()},
        "decision": decision_data(decision),
    }


def start_event(header: Mapping[str, Any]) -> Event:
    """The first event of a trace."""
    return Event("run_started", 0, 0, header)
