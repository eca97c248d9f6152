"""A continuation for imagined CloudEdge worlds: cost and carbon first, latency last.

A hand-made rule: bring cost and carbon down and keep them there, then spend what is left on
latency, and do not repeat an action unless it is urgent. Played alone it earns 525 points on hard
where uniform random earns −80.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.model import Situation
from world.worlds.cloudedge.rules import (
    CRISIS_RESPONSE,
    MIGRATE_REGION,
    OPTIMIZE_ENERGY,
    SCALE_DOWN,
    SCALE_UP,
)

_USD_HIGH = 385.0
_CARBON_HIGH = 205.0
_MS_COMFORT = 120.0
_MS_URGENT = 150.0
_USD_URGENT = 440.0


def _choose(
    dear: bool, dirty: bool, slow: bool, fast: bool, very_slow: bool, very_dear: bool, last: int
) -> int:
    """The rule for one world, over the comparisons that it makes."""
    wanted: list[int] = []
    if dear:
        wanted += [SCALE_DOWN, OPTIMIZE_ENERGY]
    elif dirty:
        wanted += [OPTIMIZE_ENERGY, MIGRATE_REGION]
    if slow:
        wanted += [SCALE_UP]
    if fast:
        wanted += [OPTIMIZE_ENERGY, SCALE_DOWN]
    wanted += [SCALE_UP, OPTIMIZE_ENERGY]
    for kind in wanted:
        urgent = (kind == SCALE_UP and very_slow) or (kind == SCALE_DOWN and very_dear)
        if kind != last or urgent:
            return kind
    return wanted[0]


_CODES = len((SCALE_UP, SCALE_DOWN, OPTIMIZE_ENERGY, MIGRATE_REGION, CRISIS_RESPONSE)) + 1
_FLAG = (False, True)
_TABLE: Final = np.array(
    [
        _choose(dear, dirty, slow, fast, very_slow, very_dear, last)
        for dear, dirty, slow, fast, very_slow, very_dear in product(*[_FLAG] * 6)
        for last in range(-1, _CODES - 1)
    ],
    dtype=np.int32,
)
"""The rule tabulated: six comparisons, then the last action."""


def cost_carbon_first(situation: Situation) -> NDArray[np.int32]:
    """Template index per world, int32 [N]; a crisis is answered with a crisis response.

    Args:
        situation: Imagined CloudEdge worlds.
    """
    latency, cost, carbon = situation.metrics.T[:3]
    index = (cost >= _USD_HIGH).astype(np.intp)
    for flag in (
        carbon >= _CARBON_HIGH,
        latency > _MS_COMFORT,
        latency < _MS_COMFORT,
        latency >= _MS_URGENT,
        cost >= _USD_URGENT,
    ):
        index <<= 1
        index |= flag
    index *= _CODES
    index += situation.last
    index += 1
    chosen: NDArray[np.int32] = _TABLE.take(index)
    chosen[situation.crisis] = CRISIS_RESPONSE
    return chosen
