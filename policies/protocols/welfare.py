"""Welfare rules: choose what is best for the room as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, leximin, one_shot, voters, weighted_sums
from policies.records import Context, Deliberation
from policies.utility import round_significant


class WeightedScore:
    """Weighted utilitarian welfare: the highest weighted sum of utilities wins.

    Inputs: every seat's utility of every candidate, and the seats' weights.
    Ties: values within 1e-9 after rounding to 9 significant digits; then fewer actions, then the
    smaller id (the
    higher weighted sum is the score itself).
    No deal: never; some admissible candidate always has the highest sum.
    Properties: Pareto efficient; anonymous up to weights; monotone; not strategy-proof
    (exaggerating a reported scale pays, which is why utilities are projected by the engine and
    never rescaled per ballot); may leave a seat worse off than without a deal.
    Source: Harsanyi, "Cardinal welfare, individualistic ethics, and interpersonal comparisons
    of utility", Journal of Political Economy 63 (1955).
    """

    name = "weighted_score"
    title = "Weighted score: the highest weighted sum of utilities"
    description = (
        "Adds up weight × utility over the seats, in seat order; the highest sum wins. "
        "Ties: within 1e-9, then fewer actions, then the smaller id. No deal: never. "
        "Source: Harsanyi (1955), Journal of Political Economy 63."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _highest_sum))


class Leximin:
    """Leximin (egalitarian): the worst-off seat as well off as can be, then the next, and so on.

    Inputs: utilities U and disagreement values d. A seat's gain is (U − d) ÷ (max U − min U)
    over the admissible candidates, so that every seat counts alike whatever its scale; 0 for a
    seat that is indifferent between all of them. A weight above 0 is a say and no more; seats
    that abstain or weigh 0 have none.
    Rule: the highest smallest gain; among equals (within 1e-9) the highest second smallest …
    The score is the smallest gain.
    Ties: gain vectors equal at every level; then the higher weighted sum of utilities; then the
    fewer actions, then the smaller id.
    No deal: never; where all is below some seat's disagreement, the least bad for it wins.
    Properties: Pareto efficient (up to 1e-9 of a gain); anonymous; independent of each seat's
    scale and origin; monotone while the seat's best and worst stay the same (its range is its
    unit); a gain of the worst-off counts before any gain of others, so that one seat
    that nothing can please decides alone.
    Source: Rawls, "A Theory of Justice" (1971); Sen, "Collective Choice and Social Welfare"
    (1970); Kalai, "Proportional solutions to bargaining situations", Econometrica 45 (1977).
    """

    name = "leximin"
    title = "Leximin: the worst-off seat first"
    description = (
        "Gains over no deal on each seat's own 0-1 scale; the candidate whose smallest gain is "
        "highest wins, then the second smallest, and so on. Ties: within 1e-9 at every level, "
        "then the higher weighted sum of utilities, then fewer actions, then the smaller id. "
        "No deal: never. "
        "Source: Rawls (1971); Sen (1970); Kalai (1977), Econometrica 45."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _worst_off_first))


def _highest_sum(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    sums = weighted_sums(context)

    def why(winner: int) -> str:
        others = admissible.copy()
        others[winner] = False
        text = f"highest weighted score {sums[winner]:.4g}"
        if others.any():
            # Level options are taken in order of id, so that the words hang on no order either.
            below = np.flatnonzero(others)
            second = min(below.tolist(), key=lambda at: (-sums[at], context.candidates[at].id))
            lead = sums[winner] - sums[second]
            if lead <= TIE:
                level = int((sums[below] >= sums[winner] - TIE).sum())
                return (
                    f"{text}, level with {level} other{'' if level == 1 else 's'}; none does less"
                )
            text += f", {lead:.3g} ahead of {context.candidates[second].id}"
        return text

    return Verdict(sums, admissible, why)


def _worst_off_first(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    rows = list(voters(context))
    values = context.utilities[rows]
    standing = values[:, admissible]
    spans = standing.max(axis=1) - standing.min(axis=1)
    moved = spans > TIE
    gains = (values - context.disagreement[rows, None]) / np.where(moved, spans, 1.0)[:, None]
    gains = round_significant(np.where(moved[:, None], gains, 0.0))
    smallest = gains.min(axis=0)

    def why(winner: int) -> str:
        worst = context.seats[rows[int(np.argmin(gains[:, winner]))]]
        return f"the worst off, {worst}, gains {smallest[winner]:.3g} of its range"

    return Verdict(smallest, admissible, why, first=leximin(gains, admissible))
