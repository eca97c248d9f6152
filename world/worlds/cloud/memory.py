"""Memory of services: a base, a leak that grows with age, and what concurrency holds.

m = base + leak·age + 0.1·ρ. Above 85 % garbage collection and paging slow every request; at 100 %
a fifth of the processes is being killed and restarted at any time.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud.state import Array, Floats

PRESSURE_FROM = 0.85
"""Fraction of memory from which requests slow down."""
PRESSURE_SLOPE = 4.0
"""Slowdown per unit of memory above it; assumed."""
LOAD_SHARE = 0.1
"""Memory held by requests under way at full load, fraction; assumed."""
KILLED_FRACTION = 0.2
"""Processes away at any time once memory is full; assumed."""


def memory_fraction(columns: dict[str, Array], busy: Floats) -> Floats:
    """Memory in use, 0–1, float64 [B, S].

    Args:
        columns: Base, leak and age.
        busy: Utilisation of each service's pools, float64 [B, S].
    """
    held = columns["h.s.memory_base"] + columns["h.s.leak_per_h"] * columns["h.s.memory_age_h"]
    fraction: Floats = np.minimum(held + LOAD_SHARE * np.minimum(busy, 1.0), 1.0)
    return fraction


def slowdown(fraction: Floats) -> Floats:
    """Factor on the service time through memory pressure."""
    factor: Floats = 1.0 + PRESSURE_SLOPE * np.maximum(fraction - PRESSURE_FROM, 0.0)
    return factor


def alive(fraction: Floats) -> Floats:
    """Fraction of the processes that are there."""
    share: Floats = np.where(fraction >= 1.0, 1.0 - KILLED_FRACTION, 1.0)
    return share
