"""Work without users: it may wait, but not longer than its deadline.

Arrivals a and capacity c are in busy vCPU. What is not done joins a backlog, measured in hours of
the mean arrivals. With an energy level of 1 or 2 the service waits while the grid is dirtier than
its daily mean. Arrivals keep coming: while less is done than arrives, the latest work is done
ever later, and it is late as soon as the capacity of now cannot do it within its deadline. Waiting
work grows, and what is left at the end of an episode is charged at the price of full machines, so
that deferring saves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from world.worlds.cloud.state import Floats

MOST_BUSY = 0.98
"""Utilisation at which batch work saturates its machines."""

DEFERRED_FRACTION = 0.35
"""Share of the arrivals that waits on a dirty grid, per energy level; assumed."""

REWORK_PER_HOUR = 0.1
"""Share by which waiting work grows in an hour: inputs are read again, stale parts are done over;
assumed. Work that is put off is therefore more work, and never a saving."""
LATEST_HOURS = 1000.0
"""Age that stands for never."""


class Worked(NamedTuple):
    """Batch work of one step; float64 [B, batch services] each.

    Attributes:
        rate: Work done, busy vCPU.
        busy: Utilisation.
        backlog_hours: What waits, in hours of mean arrivals.
        due_hours: Age at which the latest of it will be done, first come, first served, at the
            capacity of this step.
    """

    rate: Floats
    busy: Floats
    backlog_hours: Floats
    due_hours: Floats


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
    left = left + np.minimum(left, backlog_hours) * (REWORK_PER_HOUR * dt_h)
    # What arrives last waits until all of it is done, and no less than its age by now.
    speed = np.minimum(capacity * MOST_BUSY / mean, 1.0)
    due = np.minimum(left / np.maximum(speed, 1e-9), LATEST_HOURS)
    return Worked(rate, rate / np.maximum(capacity, 1e-9), left, due)
