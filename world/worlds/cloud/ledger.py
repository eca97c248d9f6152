"""What an episode adds up to: true dollars, kilograms and misses, kept as hidden columns.

Graders need sums of the truth, and a seat sees noisy measurements only. So every true step books
its part here, and the sums are read once, when the episode is over (`audit`).
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud.settings import CARBON, COST
from world.worlds.cloud.state import NOW, Floats, Measured, State

HOURS_PER_DAY = 24.0


def book(after: State) -> None:
    """Add the step that led to `after` to its sums, in place; `after` must be new."""
    settings, columns = after.settings, after.columns
    targets, params = settings.scenario.targets, settings.params
    measured = columns[NOW]
    where = Measured(settings)
    users = ~settings.batch
    p95 = np.ascontiguousarray(measured[:, where.service("p95_ms")][:, users])
    error = np.ascontiguousarray(measured[:, where.service("error_fraction")][:, users])
    missed = (p95 >= params.slo_p95_ms) | (error >= params.slo_error_fraction)
    worst = np.max(p95, axis=-1)
    parts: dict[str, Floats] = {
        "h.w.spent_usd": measured[:, 1] * settings.dt_h,
        "h.w.emitted_kg": measured[:, 2] * settings.dt_h / HOURS_PER_DAY,
        "h.w.over_latency": np.maximum(worst - params.slo_p95_ms, 0.0),
        "h.w.over_cost": np.maximum(measured[:, 1] - targets[COST], 0.0),
        "h.w.over_carbon": np.maximum(measured[:, 2] - targets[CARBON], 0.0),
        "h.w.slo_minutes": np.add.reduce(missed, axis=-1) * params.dt_minutes,
    }
    for name, part in parts.items():
        columns[name] = columns[name] + part[:, None]
