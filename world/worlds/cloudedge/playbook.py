"""Continuations for imagined CloudEdge worlds: what the room supposes it will do after a plan.

`close_gaps` is the default: it looks one step ahead at the published mean effects and does what
leaves the smallest sum of gaps. It orders no objective before another and knows no number but the
targets. `cost_carbon_first` is a hand-made rule: bring cost and carbon down and keep them there,
then spend what is left on latency, and do not repeat an action unless it is urgent; played alone
it earns 525 points on hard where uniform random earns −80.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.model import Continuation, Situation
from world.worlds.cloudedge.rules import (
    CRISIS_RESPONSE,
    EFFECTS,
    MIGRATE_REGION,
    OPTIMIZE_ENERGY,
    SCALE_DOWN,
    SCALE_UP,
)

_MEAN_MOVES: Final = np.array(
    [
        [low + span / 2 for low, span in (effect.latency, effect.cost, effect.carbon)]
        for effect in EFFECTS
    ]
)
"""Mean move of latency, cost and carbon by each kind without parameters: float64 [4, 3]."""
_UNITS: Final = -_MEAN_MOVES.min(axis=0)
"""The mean move of the action that takes most off a metric: 32.5 ms, 77.5 $/h, carbon 55."""
_MOVES: Final = np.ascontiguousarray(_MEAN_MOVES / _UNITS)[:, :, None]
_MARGINS: Final = 0.75 * _UNITS
"""How far below its target a metric is far enough: three quarters of an action."""
_REPEAT_UNITS: Final = 0.15
"""What doing the same thing twice counts, in actions."""
_PUBLISHED_TARGETS: Final = np.array([150.0, 400.0, 220.0])


def close_gaps(situation: Situation) -> NDArray[np.int32]:
    """What leaves the smallest sum of gaps after one step, int32 [N].

    A unit of a metric is what the strongest action takes off it on average, so gaps count
    actions; a gap starts three quarters of a unit below the target, so that noise and crises find
    some room. A crisis is answered with a crisis response; ties go to the first kind.

    Args:
        situation: Imagined CloudEdge worlds.
    """
    targets = _PUBLISHED_TARGETS if situation.targets is None else situation.targets[:3]
    above = np.array(situation.metrics.T[:3], order="C")  # a copy, also of a single world
    above -= (targets - _MARGINS)[:, None]
    above /= _UNITS[:, None]
    gaps = np.maximum(above + _MOVES, 0.0)
    cost = gaps[:, 0] + gaps[:, 1]
    cost += gaps[:, 2]
    cost += (situation.last == _KINDS) * _REPEAT_UNITS
    chosen: NDArray[np.int32] = cost.argmin(axis=0).astype(np.int32)
    chosen[situation.crisis] = CRISIS_RESPONSE
    return chosen


_KINDS: Final = np.arange(len(EFFECTS), dtype=np.int32)[:, None]

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


CONTINUATIONS: Final[Mapping[str, Continuation]] = {
    "close_gaps": close_gaps,
    "cost_carbon_first": cost_carbon_first,
}
"""Continuations that a seat may name."""
