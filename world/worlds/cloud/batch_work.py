"""Work without users: it may wait, but not longer than its deadline.

Arrivals a and capacity c are in busy vCPU. What is not done joins a backlog, measured in hours of
the mean arrivals. With an energy level of 1 or 2 the service waits while the grid is dirtier than
its daily mean. A backlog older than the deadline is a breach, and what is left at the end of an
episode is charged, so that deferring work for ever saves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from world.worlds.cloud.state import Floats

MOST_BUSY = 0.98
"""Utilisation at which batch work saturates its machines."""

DEFERRED_FRACTION = 0.35
"""Share of the arrivals that waits on a dirty grid, per energy level; assumed."""


class Worked(NamedTuple):
    """Batch work of one step; float64 [B, batch services] each.

    Attributes:
        rate: Work done, busy vCPU.
        busy: Utilisation.
        backlog_hours: What waits, in hours of mean arrivals.
    """

    rate: Floats
    busy: Floats
    backlog_hours: Floats


def work(
    arriving: Floats, mean: Floats, capacity: Floats, backlog_hours: Floats, deferred: Floats,
    dt_h: float,
) -> Worked:  # fmt: skip
    """One step of deferrable work.

    Args:
        arriving: Work that arrives, busy vCPU.
        mean: Mean of it over the day, busy vCPU; above 0.
        capacity: vCPU that can work.
        backlog_hours: What waits, h.
        deferred: Share of the arrivals that waits for a cleaner grid, 0–1.
        dt_h: Length of the step, h.
    """
    wanted = arriving * (1.0 - deferred) + np.where(
        deferred > 0.0, 0.0, backlog_hours * mean / dt_h
    )
    rate = np.minimum(wanted, capacity * MOST_BUSY)
    left = np.maximum(backlog_hours + (arriving - rate) * dt_h / mean, 0.0)
    return Worked(rate, rate / np.maximum(capacity, 1e-9), left)
