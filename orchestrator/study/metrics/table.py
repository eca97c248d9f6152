"""From the record of a step to one row of measures: what was on the table, and what was taken.

Everything here reads the trace alone. Utilities are those of projected consequences: where a seat
stated a ballot of its own, what it stated decides, but what it gets is what is measured. Seats
that abstain or have no weight are no parties; candidates that were infeasible or vetoed could not
have been chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.metrics.concession import Bid, Fit, concessions, fit_beta
from orchestrator.study.metrics.fairness import gini, jain, max_individual_shortfall
from orchestrator.study.metrics.honesty import Honesty, honesty
from orchestrator.study.metrics.pareto import dominators, graded_efficiency
from orchestrator.study.metrics.points import (
    kalai_smorodinsky_point,
    nash_point,
    rational,
    weighted_sum,
    welfare_point,
    welfare_ratio,
)
from orchestrator.study.metrics.scale import distance, normalised, normalised_values
from orchestrator.trace.steps import StepRecord, mapping, numbers, sequence
from world.model import significant


@dataclass(frozen=True, slots=True)
class Laid:
    """What lay on the table in one step, as arrays.

    Attributes:
        names: Candidate ids, sorted.
        seats: Seats that have a say, in the order of the trace.
        weights: float64 [n_seats], above 0.
        utilities: float64 [n_seats, n_candidates], raw.
        values: float64 [n_seats, n_candidates], V.
        admissible: bool [n_candidates]; all of them where everything was vetoed.
        disagreement: float64 [n_seats], raw; None where the trace does not hold it.
        chosen: Place of the decision; None where it was not on the table.
    """

    names: tuple[str, ...]
    seats: tuple[str, ...]
    weights: NDArray[np.float64]
    utilities: NDArray[np.float64]
    values: NDArray[np.float64]
    admissible: NDArray[np.bool_]
    disagreement: NDArray[np.float64] | None
    chosen: int | None

    def reservation(self) -> NDArray[np.float64] | None:
        """V of no deal to each seat, float64 [n_seats]."""
        if self.disagreement is None:
            return None
        return normalised_values(self.disagreement, self.utilities, self.admissible)


@dataclass(frozen=True, slots=True)
class Concessions:
    """How one seat gave way in one step.

    Attributes:
        names: What it asked for, one candidate a bid.
        bids: Its bids, by round.
        fit: Its exponent; None where too little is known.
    """

    names: tuple[str, ...]
    bids: tuple[Bid, ...]
    fit: Fit | None


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """One row: the measures of one decision. None where a measure has no meaning or no data.

    Attributes:
        step: The step, 1….
        chosen: Id of the candidate that was chosen.
        candidates: Candidates with consequences.
        admissible: How many of them could have been chosen.
        agreement: Whether the protocol itself decided.
        no_deal: The rule that decided where there was no deal; "" where there was one.
        rounds: Rounds of the negotiation.
        chosen_vetoed: Whether the choice was infeasible or vetoed.
        values: Seat → V of the choice.
        measures: Measure (see `MEASURES`) → number.
        honesty: Seat → its stated ballot against the projection.
        concessions: Seat → how it gave way.
        regret: Planner → regret in the reward's unit; `regret.rows_with_regret` fills it.
    """

    step: int
    chosen: str
    candidates: int
    admissible: int
    agreement: bool
    no_deal: str
    rounds: int
    chosen_vetoed: bool | None
    values: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    honesty: Mapping[str, Honesty] = field(default_factory=dict)
    concessions: Mapping[str, Concessions] = field(default_factory=dict)
    regret: Mapping[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The row as JSON-plain values, numbers at nine significant digits."""
        row: dict[str, Any] = {
            "step": self.step,
            "chosen": self.chosen,
            "candidates": self.candidates,
            "admissible": self.admissible,
            "agreement": self.agreement,
            "no_deal": self.no_deal,
            "rounds": self.rounds,
            "chosen_vetoed": self.chosen_vetoed,
            **{name: _plain(self.measures.get(name)) for name in MEASURES},
            "values": {seat: _plain(value) for seat, value in self.values.items()},
        }
        if self.honesty:
            row["honesty"] = {
                seat: {"kendall_tau": _plain(h.kendall_tau), "gap": _plain(h.gap), "n": h.scored}
                for seat, h in self.honesty.items()
            }
        if self.concessions:
            row["concessions"] = {seat: _curve(part) for seat, part in self.concessions.items()}
        if self.regret:
            row["regret"] = {name: _plain(value) for name, value in self.regret.items()}
        return row


MEASURES: Mapping[str, str] = {
    "pareto_efficient": "1 when no admissible candidate is better for one seat and worse for none",
    "pareto_graded": "1 minus the distance to the nearest efficient candidate that dominates it",
    "individually_rational_fraction": "share of candidates with a loss to none and a gain to some",
    "seats_below_no_deal": "seats that the choice leaves below what no deal is worth to them",
    "nash_distance": "distance to the Nash point over the disagreement",
    "kalai_smorodinsky_distance": "distance to the Kalai-Smorodinsky point",
    "welfare_distance": "distance to the highest weighted sum of V",
    "welfare_ratio": "weighted sum of V as a share of the highest",
    "utility_gap": "weighted sum of raw utilities below the highest",
    "jain": "Jain's index of V: 1 even, 1/n one seat has all",
    "gini": "Gini's coefficient of V: 0 even",
    "max_individual_shortfall": "most that a seat lacks to its own best, in V",
}
"""Measure of a decision → what it is, in the order of the columns. Distances are root mean squares
over the seats, in V."""


def rows(records: Iterable[StepRecord]) -> Iterator[StepMetrics]:
    """One row per decided step, one step in memory at a time.

    Args:
        records: As `orchestrator.study.recorded.Recorded.stream` gives them.
    """
    for record in records:
        if record.decision:
            yield row_of(record)


def row_of(record: StepRecord) -> StepMetrics:
    """The measures of one step."""
    laid = laid_of(record)
    decision = record.decision
    chosen = None if laid is None else laid.chosen
    return StepMetrics(
        step=record.step,
        chosen=record.chosen,
        candidates=0 if laid is None else len(laid.names),
        admissible=0 if laid is None else int(laid.admissible.sum()),
        agreement=decision.get("agreement") is True,
        no_deal=str(decision.get("no_deal") or ""),
        rounds=_count(decision.get("rounds")),
        chosen_vetoed=None if laid is None or chosen is None else not laid.admissible[chosen],
        values={} if laid is None or chosen is None else _by_seat(laid, laid.values[:, chosen]),
        measures={} if laid is None or chosen is None else _measures(laid, chosen),
        honesty={} if laid is None else _honesty(record, laid),
        concessions={} if laid is None else _concessions(record, laid),
    )


def laid_of(record: StepRecord) -> Laid | None:
    """The table of a step; None where nobody weighed anything."""
    ballots = {
        seat: numbers(ballot.get("projected") or ballot.get("utilities"))
        for seat, ballot in record.ballots.items()
        if not ballot.get("abstains") and _weight(ballot) > 0
    }
    ballots = {seat: known for seat, known in ballots.items() if known}
    if not ballots:
        return None
    common = set.intersection(*(set(known) for known in ballots.values()))
    if not common:
        return None
    names = tuple(sorted(common))
    utilities = np.array([[known[name] for name in names] for known in ballots.values()])
    out = {str(veto.get("candidate")) for veto in record.vetoes}
    items = [mapping(item) for item in sequence(record.candidates.get("items"))]
    out |= {str(item.get("id")) for item in items if item.get("feasible") is False}
    admissible = np.array([name not in out for name in names], dtype=np.bool_)
    if not admissible.any() or record.candidates.get("mandatory") is True:
        admissible = np.ones(len(names), dtype=np.bool_)
    return Laid(
        names,
        tuple(ballots),
        np.array([_weight(record.ballots[seat]) for seat in ballots]),
        utilities,
        normalised(utilities, admissible),
        admissible,
        _disagreement(record, tuple(ballots)),
        names.index(record.chosen) if record.chosen in common else None,
    )


def _measures(laid: Laid, chosen: int) -> dict[str, float | None]:
    utilities, values, fine = laid.utilities, laid.values, laid.admissible
    beaten = bool(dominators(utilities, chosen, fine).any())
    sums = weighted_sum(utilities, laid.weights)
    nash = smorodinsky = rational_fraction = below = None
    if laid.disagreement is not None:
        gains, running = rational(utilities, laid.disagreement, fine)
        rational_fraction = float(running.sum() / fine.sum())
        below = float((gains[:, chosen] < 0).sum())
        nash = nash_point(utilities, laid.disagreement, laid.weights, fine)
        smorodinsky = kalai_smorodinsky_point(utilities, laid.disagreement, laid.weights, fine)
    best = welfare_point(values, laid.weights, fine)
    return {
        "pareto_efficient": 0.0 if beaten else 1.0,
        "pareto_graded": graded_efficiency(utilities, values, chosen, fine),
        "individually_rational_fraction": rational_fraction,
        "seats_below_no_deal": below,
        "nash_distance": None if nash is None else distance(values, chosen, nash),
        "kalai_smorodinsky_distance": (
            None if smorodinsky is None else distance(values, chosen, smorodinsky)
        ),
        "welfare_distance": distance(values, chosen, best),
        "welfare_ratio": welfare_ratio(values, laid.weights, chosen, fine),
        "utility_gap": float(sums[fine].max() - sums[chosen]),
        "jain": jain(values[:, chosen]),
        "gini": gini(values[:, chosen]),
        "max_individual_shortfall": max_individual_shortfall(values, chosen, fine),
    }


def _honesty(record: StepRecord, laid: Laid) -> dict[str, Honesty]:
    """Stated ballots against projections; seats that stated nothing are left out."""
    found: dict[str, Honesty] = {}
    fine = np.flatnonzero(laid.admissible).tolist()
    for row, seat in enumerate(laid.seats):
        said = numbers(record.ballots[seat].get("reported"))
        projected = {laid.names[place]: float(laid.values[row, place]) for place in fine}
        compared = honesty(said, projected) if said else None
        if compared is not None:
            found[seat] = compared
    return found


def _concessions(record: StepRecord, laid: Laid) -> dict[str, Concessions]:
    asked, deadline = _asked(record)
    places = {name: place for place, name in enumerate(laid.names)}
    reservations = laid.reservation()
    found: dict[str, Concessions] = {}
    for row, seat in enumerate(laid.seats):
        named = sorted((r, name) for r, name in asked.get(seat, {}).items() if name in places)
        if not named:
            continue
        others = [other for other in range(len(laid.seats)) if other != row]
        bids = []
        for round_, name in named:
            at = laid.values[:, places[name]]
            mean = float(at[others].mean()) if others else 0.0
            bids.append(Bid(round_, float(at[row]), mean))
        fit = None
        if reservations is not None and deadline:
            fit = fit_beta(bids, float(reservations[row]), deadline)
        found[seat] = Concessions(tuple(name for _, name in named), tuple(bids), fit)
    return found


def _asked(record: StepRecord) -> tuple[dict[str, dict[int, str]], int]:
    """Seat → round → what it asked for, and the deadline in rounds (0 where there is none).

    An offer counts for the round in which it was made; what a seat would offer instead, said in
    its answer to an offer, counts for the round after.
    """
    found: dict[str, dict[int, str]] = {}
    deadline = 0
    payloads: dict[tuple[str, int], Mapping[str, Any]] = {}
    for entry in record.talk:
        data = mapping(entry.data)
        if entry.type == "offer":
            payloads[entry.agent, entry.round] = mapping(data.get("payload"))
        elif entry.type == "response" and data.get("counter"):
            payload = payloads.get((entry.agent, entry.round), {})
            if isinstance(payload.get("round"), int) and "deadline" in payload:
                found.setdefault(entry.agent, {})[payload["round"] + 1] = str(data["counter"])
                deadline = _count(payload["deadline"])
    for item in map(mapping, sequence(record.decision.get("account"))):
        if item.get("kind") == "offer" and item.get("seat") and item.get("candidate"):
            made = found.setdefault(str(item["seat"]), {})
            made[_count(item.get("round"))] = str(item["candidate"])
    return found, deadline


def _disagreement(record: StepRecord, seats: tuple[str, ...]) -> NDArray[np.float64] | None:
    said = [record.ballots[seat].get("disagreement") for seat in seats]
    known = [float(d) for d in said if isinstance(d, int | float) and not isinstance(d, bool)]
    return np.array(known) if len(known) == len(seats) else None


def _by_seat(laid: Laid, values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(laid.seats, values.tolist(), strict=True))


def _weight(ballot: Mapping[str, Any]) -> float:
    weight = ballot.get("weight", 1.0)
    return float(weight) if isinstance(weight, int | float) else 1.0


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _plain(value: float | None) -> float | None:
    return None if value is None else significant(value)


def _curve(part: Concessions) -> dict[str, Any]:
    given = concessions(part.bids)
    return {
        "bids": [
            {
                "round": bid.round,
                "candidate": name,
                "own": significant(bid.own),
                "others": significant(bid.others),
                "concession": significant(conceded),
            }
            for name, bid, conceded in zip(part.names, part.bids, given, strict=True)
        ],
        "beta": None if part.fit is None else significant(part.fit.beta),
        "rmse": None if part.fit is None else significant(part.fit.rmse),
    }
