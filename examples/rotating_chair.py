"""A protocol of our own: each step another seat has the chair and picks what it likes best.

The chair may not pick what leaves a seat that has a say below what no deal is worth to it. Where
nothing is left, the chair closes the session without a deal and the room's no-deal rule decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, one_shot, voters
from policies.records import Context, Deliberation


class RotatingChair:
    """The seats with a say take the chair in turn, in room order."""

    name = "rotating_chair"
    title = "Rotating chair: another seat picks each step, within what nobody loses by"
    description = (
        "The chair (step modulo seats with a say) picks its best option among those that leave no "
        "seat below no deal. Ties: the higher weighted sum, then the smaller id. No deal: where no "
        "such option is on the table. Source: an example of this project."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, self.rule))

    def rule(self, context: Context, admissible: NDArray[np.bool_]) -> Verdict:
        """The chair's own utilities are the scores."""
        rows = list(voters(context))
        chair = rows[context.step % len(rows)]
        gains = context.utilities[rows] - context.disagreement[rows, None]
        running = admissible & (gains >= -TIE).all(axis=0)

        def why(winner: int) -> str:
            if winner < 0:
                return "every option leaves somebody worse off than no deal"
            return f"{context.seats[chair]} has the chair"

        return Verdict(context.utilities[chair], running, why)
