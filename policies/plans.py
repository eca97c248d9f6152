"""Plans of two steps: what would be done now, and what would follow it.

Only the first step of a plan is ever executed; the second is what makes a first step worth its
price, so that a seat may accept a loss now for a gain that comes right after it. Where every plan
finds a place, all stand; else seats take turns, each taking the plan that promises it most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.candidates import MOST_LISTED, Composites, best_first, take_turns
from policies.records import Candidate
from world.actions import Action

PLAN = "plan"
PLANS_A_SEAT = 4
"""Plans that each seat may bring where not all find a place: projecting them is what costs."""


def pairs(firsts: Sequence[Candidate], seconds: Sequence[Action]) -> list[Candidate]:
    """Every single candidate followed by every action, in the order of the arguments.

    Args:
        firsts: Feasible candidates; plans among them are left out.
        seconds: Actions that may be planned for the step after.
    """
    return [
        Candidate(first.now, ((second,),), (PLAN,))
        for first in firsts
        if not first.then
        for second in seconds
    ]


def chosen_pairs(
    firsts: Sequence[Candidate],
    seconds: Sequence[Action],
    utilities: NDArray[np.float64],
    places: int,
) -> Composites:
    """The plans that seats take in turn, where there are more than places.

    Args:
        firsts: Feasible singles.
        seconds: Actions that may be planned for the step after.
        utilities: float64 [n_seats, n_firsts], seats in the order of their turns and without
            those that abstain. A plan's promise to a seat is the sum over its two steps; a
            second step that is no candidate now promises what the worst candidate does.
        places: How many plans may stand; `PLANS_A_SEAT` for each seat at most.
    """
    everything = pairs(firsts, seconds)
    places = min(places, PLANS_A_SEAT * len(utilities))
    if places <= 0 or not len(utilities) or not everything:
        names = tuple(plan.id for plan in everything[:MOST_LISTED])
        return Composites((), names, len(everything))
    place = {candidate.id: column for column, candidate in enumerate(firsts)}
    worst = utilities.min(axis=1)
    later = np.array(
        [utilities[:, place[second.id]] if second.id in place else worst for second in seconds]
    )
    promise = np.round(utilities[:, :, None] + later.T[:, None, :], 9)
    depth = min(places + MOST_LISTED, len(everything))
    order = take_turns([best_first(row.ravel(), depth) for row in promise])
    standing, left = order[:places], order[places : places + MOST_LISTED]
    return Composites(
        tuple(everything[index] for index in standing),
        tuple(everything[index].id for index in left),
        len(everything) - len(standing),
    )
