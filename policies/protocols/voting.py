"""Voting rules: only the order of each seat's utilities counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import Verdict, best, one_shot, voters
from policies.records import Context, Deliberation, sequence_of
from policies.utility import round_significant


class Plurality:
    """Plurality: each seat votes for its favourite; the most votes win.

    Inputs: each seat's highest utility among the admissible candidates. A vote counts the
    seat's weight. A seat that is indifferent between favourites votes by the tie rule below.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the smaller id.
    No deal: never while one seat votes.
    Properties: the winner is some voter's favourite, hence Pareto efficient when favourites are
    unique; monotone; vote splitting between similar candidates (clones) can elect what most
    seats like least; not strategy-proof (Gibbard 1973, Satterthwaite 1975).
    Source: first-past-the-post; Brams & Fishburn, "Voting procedures", in Handbook of Social
    Choice and Welfare 1 (2002).
    """

    name = "plurality"
    title = "Plurality: the most favourite-of-a-seat votes"
    description = (
        "Each seat votes, with its weight, for the candidate it values most; the most votes win. "
        "Ties (between favourites and between candidates): within 1e-9, then the higher weighted "
        "sum of utilities, then the smaller id. No deal: never while one seat votes. "
        "Source: Brams & Fishburn (2002), Handbook of Social Choice and Welfare 1."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_votes))


def _most_votes(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    votes = np.zeros(len(context.candidates))
    supporters: dict[int, list[str]] = {}
    for row in voters(context):
        favourite, _ = best(context, context.utilities[row], admissible)
        votes[favourite] += context.weights[row]
        supporters.setdefault(favourite, []).append(context.seats[row])

    def why(winner: int) -> str:
        return f"favourite of {sequence_of(supporters.get(winner, []))}"

    return Verdict(round_significant(votes), admissible, why)
