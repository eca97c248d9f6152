"""A test kit for protocols, ours and yours: does a rule keep what every room relies on?

`check_protocol` plays a protocol on small random tables with ties, vetoes, refusals and seats
without a say, answers whatever it asks, and lists what it broke. It needs no world.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policies.records import (
    Ask,
    Ballot,
    Candidate,
    Context,
    Decision,
    NegotiationProtocol,
    Reply,
    Veto,
)
from policies.utility import round_significant
from world.actions import NOP, Action
from world.model import History, Observation, Scenario
from world.noise import channel, uniforms

_SEATS = ("resource", "cost", "sustainability", "janitor")
_SCENARIO = Scenario("conformance/tables", "none", "Random tables", "", 10)
_METRICS = {"latency_ms": 180.0, "cost_usd_per_hour": 430.0, "carbon_index": 240.0}


def check_protocol(protocol: NegotiationProtocol, tables: int = 60, seed: int = 0) -> list[str]:
    """What a protocol breaks; empty when it conforms.

    It must end within its rounds; ask only seats of the room; choose a feasible candidate of
    the table, and an admissible one where there is one; decide the same on the same table, and
    whatever the order of the candidates; and speak only of candidates that exist.

    Args:
        protocol: What to check.
        tables: How many random tables.
        seed: Which ones.
    """
    faults: dict[str, None] = {}
    for number in range(tables):
        table = random_table(seed, number)
        for fault in _faults_on(protocol, table):
            faults[f"table {number}: {fault}"] = None
    return list(faults)


def random_table(seed: int, number: int) -> Context:
    """A table of 1–4 seats and 1–7 candidates; a function of (seed, number).

    Utilities are multiples of a half on every second table, so that ties are frequent.
    """
    draws = uniforms(seed, np.arange(40), channel("conformance.table"), number)
    plain = draws[1].tolist()
    seats = _SEATS[: 1 + int(plain[0] * 4)]
    count = 1 + int(plain[1] * 7)
    values = 6.0 * draws[0][: len(seats) * count].reshape(len(seats), count) - 3.0
    values = np.round(2.0 * values) / 2.0 if number % 2 else round_significant(values)
    refused = {place for place in range(count) if draws[2][place] < 0.15}
    vetoed = {place for place in range(count) if draws[3][place] < 0.2} - refused
    if len(refused) == count:
        refused.pop()
    names = [NOP if place == 0 and plain[2] < 0.5 else f"act_{place}" for place in range(count)]
    candidates = tuple(
        Candidate(
            (Action(name),),
            (),
            ("resource#1",),
            place not in refused,
            ("guard/validator: not now",) if place in refused else (),
        )
        for place, name in enumerate(names)
    )
    values[:, sorted(refused)] = np.nan
    weights = np.array([(0.0, 0.5, 1.0, 2.0)[int(4 * x)] for x in plain[3 : 3 + len(seats)]])
    vetoes = {candidates[place].id: Veto("resource/red_line/1", "too much") for place in vetoed}
    history = History(_SCENARIO)
    history.observations.append(Observation(0, 10, _METRICS, {}, {"crisis": False}))
    admissible = [c.feasible and c.id not in vetoes for c in candidates]
    return Context(
        seats=seats,
        weights=weights,
        candidates=candidates,
        utilities=values,
        admissible=np.array(admissible, dtype=np.bool_),
        disagreement=np.zeros(len(seats)),
        ballots=tuple(
            Ballot(seat, values[row], float(weights[row]), vetoes if row == 0 else {})
            for row, seat in enumerate(seats)
        ),
        proposals={},
        observation=history.now,
        history=history,
        no_deal=NOP if plain[7] < 0.5 else "weighted_score",
        seed=seed,
        step=0,
    )


def _faults_on(protocol: NegotiationProtocol, table: Context) -> list[str]:
    try:
        decision = _play(protocol, table)
        again = _play(protocol, table)
        turned = _play(protocol, _reordered(table))
    except _BrokenError as broken:
        return [str(broken)]
    except Exception as error:  # a report names what somebody's rule did, whatever it was
        return [f"{type(error).__name__}: {error}"]
    faults = []
    ids = {candidate.id: place for place, candidate in enumerate(table.candidates)}
    chosen = decision.chosen.id
    if chosen not in ids:
        faults.append(f"chose {chosen!r}, which is not on the table")
    elif not table.candidates[ids[chosen]].feasible:
        faults.append(f"chose {chosen}, which is infeasible")
    elif table.admissible.any() and not table.admissible[ids[chosen]]:
        faults.append(f"chose {chosen}, which is vetoed, although others are admissible")
    if again != decision:
        faults.append("decided differently on the same table")
    if turned.chosen.id != chosen:
        faults.append(
            f"chose {turned.chosen.id} instead of {chosen} when candidates changed places"
        )
    strangers = {*decision.scores, *decision.eliminated, *decision.tie} - set(ids)
    if strangers:
        faults.append(f"speaks of {min(strangers)!r}, which is not on the table")
    if not all(np.isfinite(score) for score in decision.scores.values()):
        faults.append("recorded a score that is not finite")
    return faults


class _BrokenError(Exception):
    """A protocol left the rules while it was being played."""


def _play(protocol: NegotiationProtocol, table: Context) -> Decision:
    deliberation = protocol.decide(table)
    replies: Mapping[str, Reply] | None = None
    for round_number in range(protocol.max_rounds + 1):
        try:
            asks = next(deliberation) if replies is None else deliberation.send(replies)
        except StopIteration as done:
            if isinstance(done.value, Decision):
                return done.value
            raise _BrokenError(f"returned {type(done.value).__name__}, not a Decision") from None
        replies = {ask.seat: _answer(ask, table, round_number) for ask in asks}
        unknown = sorted({ask.seat for ask in asks} - set(table.seats))
        if unknown:
            raise _BrokenError(f"asked {unknown[0]!r}, who does not sit here")
    raise _BrokenError(f"asked for more than its {protocol.max_rounds} rounds")


def _answer(ask: Ask, table: Context, round_number: int) -> Reply:
    """Some reply of the kind that was asked for; now and then one that is of no use."""
    entity = table.seats.index(ask.seat) if ask.seat in table.seats else 0
    draw = uniforms(table.seed, entity, channel("conformance.reply"), round_number)[:, ...]
    pick = table.candidates[int(draw[0] * len(table.candidates))].id
    return Reply(
        scores={candidate.id: int(draw[1] * 11) for candidate in table.candidates},
        accept=bool(draw[2] < 0.5),
        counter=pick if draw[3] < 0.5 else "",
        choice=pick if draw[1] < 0.8 else "no such candidate",
    )


def _reordered(table: Context) -> Context:
    """The same table with its candidates listed backwards."""
    order = list(range(len(table.candidates)))[::-1]
    utilities = _columns(table.utilities, order)
    return dataclasses.replace(
        table,
        candidates=tuple(table.candidates[place] for place in order),
        utilities=utilities,
        admissible=table.admissible[order],
        ballots=tuple(
            dataclasses.replace(ballot, utilities=utilities[row])
            for row, ballot in enumerate(table.ballots)
        ),
    )


def _columns(values: NDArray[np.float64], order: Sequence[int]) -> NDArray[np.float64]:
    reordered: NDArray[np.float64] = values[:, order]
    return reordered
