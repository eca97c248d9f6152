"""What each seat has at stake on a table, and in which order things are put to a seat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import weighted_sums
from policies.records import Context, Stakes
from policies.utility import round_significant
from world.noise import channel, uniforms


def standing(context: Context) -> list[int]:
    """Places of the admissible candidates, in id order."""
    places = np.flatnonzero(context.admissible).tolist()
    return sorted(places, key=lambda place: context.candidates[place].id)


def stakes_of(context: Context, seat: str) -> Stakes:
    """What lies on the table for one seat: its own utilities, the room's welfare, no deal."""
    row = context.seats.index(seat)
    places = standing(context)
    names = [context.candidates[place].id for place in places]
    own = {} if context.ballots[row].abstains else _by_name(names, context.utilities[row, places])
    return Stakes(
        own, _by_name(names, weighted_sums(context)[places]), float(context.disagreement[row])
    )


def shares(context: Context) -> NDArray[np.float64]:
    """Utilities on each seat's own range of admissible candidates, 0 worst to 1 best.

    Returns:
        float64 [n_seats, n_candidates], 9 significant digits; 1 throughout for a seat that is
        indifferent, and outside 0–1 (or NaN) for candidates that are not admissible.
    """
    among = context.utilities[:, context.admissible]
    low, high = among.min(axis=1)[:, None], among.max(axis=1)[:, None]
    extent = high - low
    flat = extent <= 0
    spread = (context.utilities - low) / np.where(flat, 1.0, extent)
    return round_significant(np.where(flat, 1.0, spread))


def shuffled(context: Context, names: Sequence[str], stream: str, seat: str = "") -> list[str]:
    """Ids in an order that depends on seed, step, stream and seat only.

    Who reads a list tends to prefer what stands first; a seeded order keeps that from favouring
    the same candidate every time.
    """
    ordered = sorted(names)
    if not ordered:
        return []
    entity = np.arange(len(ordered), dtype=np.uint64)
    address = channel(f"order/{stream}/{seat}")
    draws = uniforms(context.seed, entity, address, context.step)[0].tolist()
    return [name for _, name in sorted(zip(draws, ordered, strict=True))]


def hundredths(value: float) -> float:
    """A share as it is shown to a seat, two decimals; 0 where there is none."""
    return round(value, 2) + 0.0 if math.isfinite(value) else 0.0


def _by_name(names: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
