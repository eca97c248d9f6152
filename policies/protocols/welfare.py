"""Welfare rules: choose what is best for the room as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import Verdict, one_shot, weighted_sums
from policies.records import Context, Deliberation


class WeightedScore:
    """Weighted utilitarian welfare: the highest weighted sum of utilities wins.

    Inputs: every seat's utility of every candidate, and the seats' weights.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the smaller id (the
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
        "Ties: within 1e-9, then the smaller id. No deal: never. "
        "Source: Harsanyi (1955), Journal of Political Economy 63."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _highest_sum))


def _highest_sum(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    sums = weighted_sums(context)

    def why(winner: int) -> str:
        others = admissible.copy()
        others[winner] = False
        text = f"highest weighted score {sums[winner]:.4g}"
        if others.any():
            second = int(np.argmax(np.where(others, sums, -np.inf)))
            lead = sums[winner] - sums[second]
            text += f", {lead:.3g} ahead of {context.candidates[second].id}"
        return text

    return Verdict(sums, admissible, why)
