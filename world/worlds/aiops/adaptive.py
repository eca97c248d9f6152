"""Two rules that change a reward by what happened before: explicit, in memory, off by default.

``table`` is the adjustment table that the original documents and does not have: a reward moves by
±0.02 with the success rate of earlier episodes, inside a range that moves with it. ``memory`` is
the rule that it really has: from the second use of an action on, its reward is mixed with the mean
of the rewards that this action got before, and the mixed value is what is remembered. The original
keeps that memory in a file which every run of every event shares; here it begins with what the
scenario says and lives as long as the episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Adaptive = Literal["off", "table", "memory"]
ADAPTIVE: Final[tuple[Adaptive, ...]] = ("off", "table", "memory")

HIGH_SUCCESS, LOW_SUCCESS = 0.70, 0.30
MOVE: Final = 0.02
_HIGH_RANGE, _MIDDLE_RANGE, _LOW_RANGE = (0.42, 0.99), (0.40, 0.99), (0.38, 0.97)

MEMORY_SHARE: Final = 0.3
MEMORY_LENGTH: Final = 20
_MEMORY_RANGE = (0.05, 0.95)

Memory = Mapping[str, tuple[float, ...]]
"""Kind of action → the rewards it got, oldest first."""


def by_table(reward: float, success_fraction: float) -> float:
    """Adjust by the success rate of earlier episodes.

    Between 30 and 40 % the documented table says nothing; it is read as its middle row.

    >>> by_table(0.5, 0.8), by_table(0.5, 0.5), by_table(0.5, 0.1), by_table(0.1, 0.1)
    (0.52, 0.5, 0.48, 0.38)
    """
    move, (low, high) = 0.0, _MIDDLE_RANGE
    if success_fraction > HIGH_SUCCESS:
        move, (low, high) = MOVE, _HIGH_RANGE
    elif success_fraction < LOW_SUCCESS:
        move, (low, high) = -MOVE, _LOW_RANGE
    return min(high, max(low, reward + move))


def by_memory(reward: float, kind: str, memory: Memory) -> tuple[float, Memory]:
    """Mix with what this action got before, and remember the mixed value.

    >>> round(by_memory(0.99, "stabilize_system", {"stabilize_system": (0.65,)})[0], 3)
    0.888
    >>> by_memory(0.4, "detect_high_cpu", {})
    (0.4, {'detect_high_cpu': (0.4,)})
    """
    past = memory.get(kind, ())[-MEMORY_LENGTH:]
    if past:
        low, high = _MEMORY_RANGE
        mixed = MEMORY_SHARE * (sum(past) / len(past)) + (1.0 - MEMORY_SHARE) * reward
        reward = min(high, max(low, mixed))
    return reward, {**memory, kind: (*past, reward)[-MEMORY_LENGTH:]}
