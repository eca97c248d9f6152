"""Worlds at step 0: generated, calibrated, with a history and incidents ahead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from world.errors import ConfigError
from world.worlds.cloud import incidents
from world.worlds.cloud.calibrate import calibrate, first_measurement
from world.worlds.cloud.generate import generate
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import State

_MOST_SEED = 2**63


def open_worlds(settings: Settings, seeds: Sequence[int]) -> State:
    """One world per seed.

    Raises:
        ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
    """
    numbers = [int(seed) for seed in seeds]
    if not numbers or min(numbers) < 0 or max(numbers) >= _MOST_SEED:
        raise ConfigError(
            f"seeds {str(numbers[:3])[1:-1] or '(none)'} cannot be used",
            "a batch holds at least one world, and a seed is a whole number from 0 to 2**63-1",
            "Pass such numbers",
        )
    array = np.array(numbers, dtype=np.uint64)
    state = State(
        settings, array, np.zeros(len(array), dtype=np.uint64), 0, generate(settings, array)
    )
    calibrate(state)
    incidents.draw(settings, array, state.columns)
    first_measurement(state)
    return state
