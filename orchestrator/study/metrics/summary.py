"""A whole run in a few numbers: means of its rows, shares, what each seat got, gave and cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.study.metrics.concession import MOVES, Move, concessions, moves
from orchestrator.study.metrics.spending import Spending, added
from orchestrator.study.metrics.table import MEASURES, StepMetrics
from policies.records import Usage
from world.model import significant


class Tally:
    """Mean, least and most of a stream of numbers.

    Attributes:
        count: How many there were.
        total: Their sum.
    """

    __slots__ = ("_high", "_low", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._low, self._high = math.inf, -math.inf

    def add(self, value: float | None) -> None:
        """Take in a number; None is none."""
        if value is None:
            return
        self.count += 1
        self.total += value
        self._low, self._high = min(self._low, value), max(self._high, value)

    @property
    def mean(self) -> float | None:
        """Their mean; None where there were none."""
        return significant(self.total / self.count) if self.count else None

    def document(self) -> dict[str, Any]:
        """Mean, min, max and n."""
        if not self.count:
            return {"mean": None, "min": None, "max": None, "n": 0}
        return {
            "mean": self.mean,
            "min": significant(self._low),
            "max": significant(self._high),
            "n": self.count,
        }


class SeatTally:
    """What one seat got, said, gave and cost over a run."""

    __slots__ = ("conceded", "cost", "gap", "kendall", "log_beta", "moves", "value")

    def __init__(self) -> None:
        self.value, self.kendall, self.gap = Tally(), Tally(), Tally()
        self.conceded, self.log_beta = Tally(), Tally()
        self.moves: dict[Move, int] = {}
        self.cost = Usage(usd=0.0)

    def add(self, seat: str, row: StepMetrics) -> None:
        """Take in a row."""
        self.value.add(row.values.get(seat))
        stated = row.honesty.get(seat)
        if stated is not None:
            self.kendall.add(stated.kendall_tau)
            self.gap.add(stated.gap)
        gave = row.concessions.get(seat)
        if gave is None:
            return
        self.conceded.add(concessions(gave.bids)[-1])
        if gave.fit is not None:
            self.log_beta.add(math.log(gave.fit.beta))
        for kind, count in moves(gave.bids).items():
            self.moves[kind] = self.moves.get(kind, 0) + count

    def document(self, decisions: int) -> dict[str, Any]:
        """As JSON-plain values; parts that never occurred are left out."""
        found: dict[str, Any] = {"value": self.value.document()}
        if self.gap.count:
            found["kendall_tau"] = self.kendall.document()
            found["honesty_gap"] = self.gap.document()
        if self.conceded.count:
            beta = self.log_beta.mean
            found["concession"] = self.conceded.document()
            found["beta"] = {
                "geometric_mean": None if beta is None else significant(math.exp(beta)),
                "n": self.log_beta.count,
            }
            found["moves"] = {kind: self.moves[kind] for kind in MOVES if kind in self.moves}
        if self.cost.calls:
            found["spending"] = {
                **usage_document(self.cost),
                "per_decision": _per_decision(self.cost, decisions),
            }
        return found


class Summary:
    """Sums up rows as they come.

    Args:
        seats: Seats in room order.
    """

    def __init__(self, seats: Sequence[str]) -> None:
        self.decisions = 0
        self.agreements = 0
        self.off_table = 0
        self.vetoed = 0
        self.rounds = Tally()
        self.no_deal_rules: dict[str, int] = {}
        self.measures = {name: Tally() for name in MEASURES}
        self.regret: dict[str, Tally] = {}
        self.seats = {seat: SeatTally() for seat in seats}

    def add(self, row: StepMetrics) -> None:
        """Take in a row."""
        self.decisions += 1
        self.agreements += row.agreement
        self.rounds.add(float(row.rounds))
        if row.no_deal:
            self.no_deal_rules[row.no_deal] = self.no_deal_rules.get(row.no_deal, 0) + 1
        self.off_table += row.chosen_vetoed is None
        self.vetoed += row.chosen_vetoed is True
        for name, tally in self.measures.items():
            tally.add(row.measures.get(name))
        for name, value in row.regret.items():
            self.regret.setdefault(name, Tally()).add(value)
        for seat, mine in self.seats.items():
            mine.add(seat, row)

    def spend(self, costs: Iterable[Spending]) -> None:
        """Take in what the steps cost."""
        for cost in costs:
            for seat, used in cost.seats.items():
                if seat in self.seats:
                    self.seats[seat].cost = added(self.seats[seat].cost, used)

    @property
    def no_deal_share(self) -> float:
        """Share of decisions that the room's no-deal rule took."""
        return sum(self.no_deal_rules.values()) / self.decisions if self.decisions else 0.0

    @property
    def agreement_rate(self) -> float:
        """Share of decisions that the protocol itself took."""
        return self.agreements / self.decisions if self.decisions else 0.0

    @property
    def tokens(self) -> int:
        """Tokens of all seats, in and out."""
        costs = [tally.cost for tally in self.seats.values()]
        return sum(cost.tokens_in + cost.tokens_out for cost in costs)

    def document(self, score: float | None = None) -> dict[str, Any]:
        """The summary as JSON-plain values.

        Args:
            score: Total of the scorecard, for the score per 1000 tokens.
        """
        found: dict[str, Any] = {
            "decisions": self.decisions,
            "agreement_rate": significant(self.agreement_rate),
            "no_deal_share": significant(self.no_deal_share),
            "no_deal_rules": dict(sorted(self.no_deal_rules.items())),
            "rounds": self.rounds.document(),
            "chosen_vetoed": self.vetoed,
            "not_on_the_table": self.off_table,
            "measures": {name: tally.document() for name, tally in self.measures.items()},
            "seats": {seat: t.document(self.decisions) for seat, t in self.seats.items()},
        }
        if self.regret:
            found["regret"] = {name: tally.document() for name, tally in self.regret.items()}
        if score is not None and self.tokens:
            found["score_per_1000_tokens"] = significant(1000.0 * score / self.tokens)
        return found


def usage_document(used: Usage) -> dict[str, Any]:
    """Calls, tokens, dollars and milliseconds as JSON-plain values."""
    return {
        "calls": used.calls,
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "usd": None if used.usd is None else significant(used.usd),
        "latency_ms": significant(used.latency_ms),
    }


def _per_decision(used: Usage, decisions: int) -> Mapping[str, float | None]:
    """The same, divided by the number of decisions."""
    n = max(decisions, 1)
    return {
        name: None if value is None else significant(value / n)
        for name, value in usage_document(used).items()
    }
