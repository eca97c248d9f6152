"""Candidates held against each other two at a time: what Borda and Condorcet rules count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, voters
from policies.records import Context


class Duels(NamedTuple):
    """Who is preferred to whom, and by how much weight.

    Attributes:
        places: Places in `Context.candidates` of those that take part, in its order.
        margins: float64 [n, n]; entry (a, b) is the weight of the seats that prefer a to b less
            the weight of those that prefer b to a. Antisymmetric, rounded to 9 decimals, so
            that equal margins are equal numbers.
        weight: Weight of all seats that have a say.
    """

    places: list[int]
    margins: NDArray[np.float64]
    weight: float


def duels(context: Context, admissible: NDArray[np.bool_]) -> Duels:
    """Hold every admissible candidate against every other.

    A seat prefers a to b when its utility of a is more than 1e-9 higher; otherwise it is
    indifferent and counts for neither side. Margins add up in seat order.
    """
    places = np.flatnonzero(admissible)
    values = context.utilities[:, places]
    margins = np.zeros((len(places), len(places)))
    weight = 0.0
    for row in voters(context):
        ahead = values[row][:, None] - values[row] > TIE
        margins += context.weights[row] * (ahead.astype(np.float64) - ahead.T)
        weight += float(context.weights[row])
    return Duels(places.tolist(), np.round(margins, 9), weight)


def spread(context: Context, held: Duels, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of those that took part, float64 [n_candidates]; the others have 0."""
    full = np.zeros(len(context.candidates))
    full[held.places] = values
    return full
