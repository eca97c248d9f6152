"""A test kit for protocols, ours and yours: does a rule keep what every room relies on?

`check_protocol` plays a protocol on small random tables with ties, vetoes, refusals, seats that
abstain or weigh nothing and tables without a deal, and on corner cases by name; it answers
whatever the protocol asks, and lists what it broke. It needs no world.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from policies.candidates import MANDATORY
from policies.records import (
    Ask,
    Ballot,
    Candidate,
    Context,
    Decision,
    NegotiationProtocol,
    Proposal,
    Reply,
    Veto,
)
from policies.utility import round_significant
from world.actions import NOP, Action
from world.model import History, Observation, Scenario
from world.noise import channel, uniforms

_T = TypeVar("_T")
_KINDS = {"ballot", "respond", "pick"}
_SEATS = ("resource", "cost", "sustainability", "janitor")
_SCENARIO = Scenario("conformance/tables", "none", "Random tables", "", 10)
_METRICS = {"latency_ms": 180.0, "cost_usd_per_hour": 430.0, "carbon_index": 240.0}


def check_protocol(protocol: NegotiationProtocol, tables: int = 60, seed: int = 0) -> list[str]:
    """What a protocol breaks; empty when it conforms.

    It must end within its rounds; ask only seats of the room, and only for a ballot, a response
    or a pick; choose a feasible candidate of the table, and an admissible one where there is
    one; not call it an agreement where every candidate is vetoed; decide the same on the same
    table, in whatever order candidates and mappings come; leave the table as it is; and speak
    only of candidates and seats that exist, in finite numbers.

    Args:
        protocol: What to check.
        tables: How many random tables, besides the corner cases.
        seed: Which ones.
    """
    played = {f"table {number}": random_table(seed, number) for number in range(tables)}
    faults: dict[str, None] = {}
    for name, table in {**corner_tables(), **played}.items():
        for fault in _faults_on(protocol, table):
            faults[f"{name}: {fault}"] = None
    return list(faults)


def random_table(seed: int, number: int) -> Context:
    """A table of 1–4 seats and 1–7 candidates; a function of (seed, number).

    Utilities are multiples of a half on every second table, so that ties are frequent. What no
    deal is worth varies from table to table, so that some have no deal.
    """
    draws = uniforms(seed, np.arange(40), channel("conformance.table"), number)
    plain = draws[1].tolist()
    seats = 1 + int(plain[0] * 4)
    count = 1 + int(plain[1] * 7)
    values = 6.0 * draws[0][: seats * count].reshape(seats, count) - 3.0
    values = np.round(2.0 * values) / 2.0 if number % 2 else round_significant(values)
    refused = {place for place in range(count) if draws[2][place] < 0.15}
    vetoed = {place for place in range(count) if draws[3][place] < 0.2} - refused
    if len(refused) == count:
        refused.pop()
    return _table(
        values,
        nop=plain[2] < 0.5,
        refused=refused,
        vetoed=vetoed,
        weights=[(0.0, 0.5, 1.0, 2.0)[int(4 * x)] for x in plain[3 : 3 + seats]],
        abstaining={row for row in range(seats) if plain[10 + row] < 0.1},
        disagreement=[(-3.0, 0.0, 0.0, 2.0)[int(4 * plain[15])]] * seats,
        no_deal=NOP if plain[7] < 0.5 else "weighted_score",
        crisis=plain[8] < 0.2,
        commands=plain[9] < 0.5,
        seed=seed,
    )


def corner_tables() -> dict[str, Context]:
    """The corner cases that rules are most often written without, by name."""
    two = np.array([[2.0, -1.0, 0.5], [-1.0, 2.0, 0.5]])
    level = np.zeros((3, 4))
    one = np.array([[1.0], [-1.0]])
    mandatory = Candidate((Action("act_0"),), (), (MANDATORY,))
    table = _table(one)
    return {
        "one candidate": table,
        "one candidate, vetoed": _table(one, vetoed={0}),
        "one candidate, mandatory": dataclasses.replace(table, candidates=(mandatory,)),
        "one seat": _table(two[:1]),
        "all vetoed, the world can stand still": _table(two, nop=True, vetoed={0, 1, 2}),
        "all vetoed, the world cannot stand still": _table(two, vetoed={0, 1, 2}),
        "all vetoed or refused": _table(two, vetoed={0, 2}, refused={1}),
        "everybody abstains": _table(two, nop=True, abstaining={0, 1}),
        "nobody weighs anything": _table(two, weights=[0.0, 0.0]),
        "one seat abstains": _table(two, abstaining={1}),
        "nothing is better than no deal": _table(two, disagreement=[5.0, 5.0]),
        "no deal, the room does nothing": _table(
            two, nop=True, disagreement=[5.0, 5.0], no_deal=NOP
        ),
        "no deal, doing nothing is vetoed": _table(
            two, nop=True, vetoed={0}, disagreement=[5.0, 5.0], no_deal=NOP
        ),
        "all is level": _table(level),
        "a crisis": _table(two, crisis=True, commands=True),
    }


def _table(
    values: NDArray[np.float64],
    *,
    nop: bool = False,
    refused: Collection[int] = (),
    vetoed: Collection[int] = (),
    weights: Sequence[float] = (),
    abstaining: Collection[int] = (),
    disagreement: Sequence[float] = (),
    no_deal: str = "weighted_score",
    crisis: bool = False,
    commands: bool = False,
    seed: int = 0,
) -> Context:
    """A table from utilities [n_seats, n_candidates]; who is refused has NaN, as in a room."""
    seats = _SEATS[: len(values)]
    values = values.copy()
    values[:, sorted(refused)] = np.nan
    names = [f"act_{place}" for place in range(values.shape[1])]
    candidates = tuple(
        Candidate(
            (Action(NOP if nop and place == 0 else name),),
            (),
            ("resource#1",),
            place not in refused,
            ("guard/validator: not now",) if place in refused else (),
        )
        for place, name in enumerate(names)
    )
    power = list(weights) or [1.0] * len(seats)
    out = {candidates[place].id: Veto("resource/red_line/1", "too much") for place in vetoed}
    history = History(_SCENARIO)
    history.observations.append(Observation(0, 10, _METRICS, {}, {"crisis": crisis}))
    return Context(
        seats=seats,
        weights=np.array(power),
        candidates=candidates,
        utilities=values,
        admissible=np.array([c.feasible and c.id not in out for c in candidates], dtype=np.bool_),
        disagreement=np.array(list(disagreement) or [0.0] * len(seats)),
        ballots=tuple(
            Ballot(seat, values[row], power[row], {} if row else out, abstains=row in abstaining)
            for row, seat in enumerate(seats)
        ),
        proposals={
            seat: (Proposal(candidates[row % len(candidates)].now),)
            for row, seat in enumerate(seats)
        },
        observation=history.now,
        history=history,
        no_deal=no_deal,
        seed=seed,
        step=0,
        commander=seats[-1] if commands else "",
    )


def _faults_on(protocol: NegotiationProtocol, table: Context) -> list[str]:
    before = _content(table)
    try:
        decision = _play(protocol, table)
        again = _play(protocol, table)
        turned = _play(protocol, _reordered(table))
    except _BrokenError as broken:
        return [str(broken)]
    except Exception as error:  # a report names what somebody's rule did, whatever it was
        return [f"{type(error).__name__}: {error}"]
    faults = _faults_of_choice(decision, table)
    if again != decision:
        faults.append("decided differently on the same table")
    chosen = decision.chosen.id
    if turned.chosen.id != chosen:
        faults.append(
            f"chose {turned.chosen.id} instead of {chosen} when candidates changed places"
        )
    if _content(table) != before:
        faults.append("changed what lies on the table")
    strangers = {*decision.scores, *decision.eliminated, *decision.tie}
    strangers -= {candidate.id for candidate in table.candidates}
    if strangers:
        faults.append(f"speaks of {min(strangers)!r}, which is not on the table")
    if not all(np.isfinite(score) for score in decision.scores.values()):
        faults.append("recorded a score that is not finite")
    for seat, price in decision.payments.items():
        if seat not in table.seats or not 0 <= price < np.inf:
            faults.append(f"lets {seat!r} pay {price:g}")
    return faults


def _faults_of_choice(decision: Decision, table: Context) -> list[str]:
    ids = {candidate.id: place for place, candidate in enumerate(table.candidates)}
    chosen = decision.chosen.id
    if chosen not in ids:
        return [f"chose {chosen!r}, which is not on the table"]
    if not table.candidates[ids[chosen]].feasible:
        return [f"chose {chosen}, which is infeasible"]
    if table.admissible[ids[chosen]]:
        return []
    if table.admissible.any():
        return [f"chose {chosen}, which is vetoed, although others are admissible"]
    return ["calls it an agreement although every candidate is vetoed"] * decision.agreement


def _content(table: Context) -> tuple[object, ...]:
    arrays = (table.utilities, table.weights, table.admissible, table.disagreement)
    return (
        *(array.tobytes() for array in arrays),
        tuple(dict(ballot.vetoes) for ballot in table.ballots),
        dict(table.proposals),
        dict(table.paid),
    )


class _BrokenError(Exception):
    """A protocol left the rules while it was being played."""


def _play(protocol: NegotiationProtocol, table: Context) -> Decision:
    deliberation = protocol.decide(table)
    replies: Mapping[str, Reply] | None = None
    for round_number in range(protocol.max_rounds + 1):
        try:
            asks = next(deliberation) if replies is None else deliberation.send(replies)
        except StopIteration as done:
            if not isinstance(done.value, Decision):
                what = f"returned {type(done.value).__name__}, not a Decision"
                raise _BrokenError(what) from None
            if not isinstance(done.value.chosen, Candidate):
                what = f"decided on a {type(done.value.chosen).__name__}, not on a Candidate"
                raise _BrokenError(what) from None
            return done.value
        kinds = sorted({ask.kind for ask in asks} - _KINDS)
        if kinds:
            raise _BrokenError(f"asked for {kinds[0]!r}, which is the engine's to ask")
        replies = {ask.seat: _answer(ask, table, round_number) for ask in asks}
        unknown = sorted({ask.seat for ask in asks} - set(table.seats))
        if unknown:
            raise _BrokenError(f"asked {unknown[0]!r}, who does not sit here")
    raise _BrokenError(f"asked for more than its {protocol.max_rounds} rounds")


def _answer(ask: Ask, table: Context, round_number: int) -> Reply:
    """Some reply of the kind that was asked for; now and then one that is of no use."""
    entity = table.seats.index(ask.seat) if ask.seat in table.seats else 0
    draw = uniforms(table.seed, entity, channel("conformance.reply"), round_number)[:, ...]
    # From sorted ids: a seat does not answer differently because a list was turned round.
    pick = sorted(c.id for c in table.candidates)[int(draw[0] * len(table.candidates))]
    return Reply(
        scores={candidate.id: int(draw[1] * 11) for candidate in table.candidates},
        accept=bool(draw[2] < 0.5),
        counter=pick if draw[3] < 0.5 else "",
        choice=pick if draw[1] < 0.8 else "no such candidate",
    )


def _reordered(table: Context) -> Context:
    """The same table with its candidates and mappings listed backwards."""
    order = list(range(len(table.candidates)))[::-1]
    utilities = _columns(table.utilities, order)
    return dataclasses.replace(
        table,
        candidates=tuple(table.candidates[place] for place in order),
        utilities=utilities,
        admissible=table.admissible[order],
        ballots=tuple(
            dataclasses.replace(ballot, utilities=utilities[row], vetoes=_backwards(ballot.vetoes))
            for row, ballot in enumerate(table.ballots)
        ),
        proposals=_backwards(table.proposals),
        paid=_backwards(table.paid),
    )


def _backwards(mapping: Mapping[str, _T]) -> dict[str, _T]:
    return dict(reversed(list(mapping.items())))


def _columns(values: NDArray[np.float64], order: Sequence[int]) -> NDArray[np.float64]:
    reordered: NDArray[np.float64] = values[:, order]
    return reordered
