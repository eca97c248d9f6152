"""Which seats were pivotal: would the protocol have chosen otherwise without their ballot?

The trace holds every candidate, ballot and veto, so that a protocol of one round can be asked
again, with nothing simulated. A decision counts only where asking again with everybody gives what
was recorded; protocols that ask seats in rounds, or that keep credits, are left to the command
that has the seats at hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orchestrator.report.gather import Account
from orchestrator.study.influence.pivotality import outcome, without
from orchestrator.trace.steps import Header, StepRecord, mapping, numbers, sequence
from policies.protocols.registry import protocol
from policies.records import (
    Ask,
    Ballot,
    Candidate,
    Context,
    NegotiationProtocol,
    Proposal,
    Reply,
    Veto,
)
from world.actions import parse_joint
from world.errors import WarRoomError
from world.model import History, Observation, Scenario

_MORE_THAN_BALLOTS = frozenset({"cloudedge_boardroom", "vcg"})
"""They also read what a step's ballots do not hold: the world's rules, credits spent before."""


@dataclass(frozen=True, slots=True)
class Pivotality:
    """How often each seat's ballot decided.

    Attributes:
        decisions: Decisions that could be taken again; 0 where none could.
        changed: Seat → decisions that would have been others without it.
        why_not: Why none could; "" where some could.
    """

    decisions: int = 0
    changed: Mapping[str, int] = field(default_factory=dict)
    why_not: str = ""


def pivotality(account: Account) -> Pivotality:
    """Ask the protocol again without each seat, in the decisions that count for means."""
    name = account.header.protocol
    if name in _MORE_THAN_BALLOTS or ":" in name:
        return Pivotality(why_not=f"{name} reads more than the ballots of the step")
    try:
        rule = protocol(name)
    except WarRoomError:
        return Pivotality(why_not=f"this version has no protocol {name}")
    if rule.max_rounds:
        return Pivotality(why_not=f"{name} asks the seats again, round by round")
    decisions = 0
    changed = dict.fromkeys(account.seats, 0)
    for scene in account.scenes.values():
        if not scene.even or not scene.record.chosen:
            continue
        pivotal = _pivotal(account.header, scene.record, rule)
        if pivotal is None:
            continue
        decisions += 1
        for seat in pivotal:
            changed[seat] += 1
    why_not = "" if decisions else "no recorded decision could be taken again from its ballots"
    return Pivotality(decisions, changed, why_not)


def favourites(account: Account) -> dict[str, tuple[int, int, int]]:
    """Seat → decisions for its favourite, for one of its proposals, and decisions looked at.

    Only the steps that count for means are looked at. A choice counts as one of its proposals
    where the seat itself proposed exactly that.
    """
    found = dict.fromkeys(account.seats, (0, 0, 0))
    for scene in account.scenes.values():
        if not scene.even or not scene.record.chosen:
            continue
        record = scene.record
        for seat in found:
            ballot = record.ballots.get(seat)
            if ballot is None or ballot.get("abstains"):
                continue
            asked = [mapping(p).get("id") for p in sequence(ballot.get("proposals"))]
            first, own, of = found[seat]
            found[seat] = (
                first + (record.preferred(seat) == record.chosen),
                own + (record.chosen in asked or record.action in asked),
                of + 1,
            )
    return found


def influence_shares(
    account: Account, liked: Mapping[str, tuple[int, int, int]], moved: Pivotality
) -> list[tuple[str, list[float | None]]]:
    """Title → share of decisions 0–1 per seat, None where it is not known.

    Args:
        account: The run.
        liked: As `favourites` counts.
        moved: As `pivotality` counts.
    """
    of = moved.decisions
    pivotal = [moved.changed.get(seat, 0) / of if of else None for seat in account.seats]
    shares = [("pivotal: without it, another choice", pivotal)]
    for place, title in enumerate(("its favourite was chosen", "one of its proposals was chosen")):
        counts = [liked[seat] for seat in account.seats]
        shares.append((title, [c[place] / c[2] if c[2] else None for c in counts]))
    return shares


def _pivotal(
    header: Header, record: StepRecord, rule: NegotiationProtocol
) -> frozenset[str] | None:
    """Seats without whom something else would be done; None where that cannot be said."""
    try:
        table = table_of(header, record)
        if table is None:
            return None
        now = outcome(without(rule, table, (), _nobody))
        if now != record.action:
            return None
        return frozenset(
            seat for seat in table.seats if outcome(without(rule, table, (seat,), _nobody)) != now
        )
    except WarRoomError:
        return None


class _Asked(WarRoomError):
    """A protocol, or the no-deal rule behind it, asks a seat: nobody is here to answer."""


def _nobody(asks: tuple[Ask, ...], context: Context) -> Mapping[str, Reply]:
    raise _Asked("a seat is asked", "a trace cannot answer", "")


def table_of(header: Header, record: StepRecord) -> Context | None:
    """The table of a recorded step, as a protocol sees it; None where ballots are missing.

    Args:
        header: Of the run.
        record: The step.

    Raises:
        WarRoomError: An id cannot be read.
    """
    candidates = tuple(map(_candidate, map(mapping, sequence(record.candidates.get("items")))))
    ids = [candidate.id for candidate in candidates]
    seats = tuple(seat for seat in header.personas if seat in record.ballots)
    if not candidates or not seats:
        return None
    ballots = tuple(_ballot(seat, record, ids) for seat in seats)
    if any(not np.isfinite(b.utilities).all() for b in ballots):
        return None
    out = {name for ballot in ballots for name in ballot.vetoes}
    admissible = np.array([c.feasible and c.id not in out for c in candidates], dtype=np.bool_)
    if record.candidates.get("mandatory") is True:
        admissible = np.ones(len(ids), dtype=np.bool_)
    seen = Observation(
        record.step - 1,
        header.horizon,
        numbers(record.observation.get("metrics")),
        numbers(record.observation.get("targets")),
    )
    said = header.scenario
    history = History(Scenario(str(said.get("name")), str(said.get("world")), "", "",
                               header.horizon))  # fmt: skip
    history.observations.append(seen)
    seed = header.data.get("seed")
    return Context(
        seats=seats,
        weights=np.array([ballot.weight for ballot in ballots]),
        candidates=candidates,
        utilities=np.array([ballot.utilities for ballot in ballots]),
        admissible=admissible,
        disagreement=np.array([_float(record.ballots[s].get("disagreement")) for s in seats]),
        ballots=ballots,
        proposals={seat: _proposals(record.ballots[seat]) for seat in seats},
        observation=seen,
        history=history,
        no_deal=str(mapping(header.data.get("room")).get("no_deal") or "weighted_score"),
        seed=seed if isinstance(seed, int) else 0,
        step=record.step - 1,
    )


def _candidate(item: Mapping[str, Any]) -> Candidate:
    steps = [parse_joint(part) for part in str(item.get("id", "")).split(">")]
    return Candidate(
        now=steps[0],
        then=tuple(steps[1:]),
        origin=tuple(map(str, sequence(item.get("origin")))),
        feasible=item.get("feasible") is not False,
        reasons=tuple(map(str, sequence(item.get("reasons")))),
        id=str(item.get("id", "")),
    )


def _ballot(seat: str, record: StepRecord, ids: Collection[str]) -> Ballot:
    said = record.ballots[seat]
    known = numbers(said.get("utilities"))
    abstains = bool(said.get("abstains"))
    missing = 0.0 if abstains else np.nan
    return Ballot(
        seat,
        np.array([known.get(name, missing) for name in ids]),
        _float(said.get("weight"), 1.0),
        {
            str(veto.get("candidate")): Veto(str(veto.get("rule")), str(veto.get("reason")))
            for veto in record.vetoes
            if veto.get("seat") == seat
        },
        abstains=abstains,
    )


def _proposals(said: Mapping[str, Any]) -> tuple[Proposal, ...]:
    made = map(mapping, sequence(said.get("proposals")))
    return tuple(Proposal(parse_joint(str(p.get("id", "")))) for p in made)


def _float(value: object, other: float = 0.0) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else other  # type: ignore[arg-type]
