"""What projected consequences are worth to a planner that has no persona: everybody's targets.

A step in which every target holds counts 2, each target that holds counts a fifth; what is above
its target counts by how far, so that a long way is made in small steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.model import MetricSpec, Observation

MARGIN_FRACTION = 0.05
"""How far below a target a careful planner wants to be, as a fraction of the target."""
ALL, EACH, ABOVE, LEVEL = 2.0, 0.2, 3.0, 0.3
ENOUGH = 0.85
"""Share of a target below which less is worth nothing: room to breathe is not waste."""
_WORST = {"worst_p95_ms": "slo_p95_ms", "worst_error_fraction": "slo_error_fraction"}
MOST_ABOVE = 1.5
"""Gaps beyond this many targets count no more: an overload is an overload."""


def worth(
    projected: NDArray[np.float64],
    metrics: Sequence[MetricSpec],
    targets: Mapping[str, float],
    objectives: Sequence[str] = (),
) -> NDArray[np.float64]:
    """Value of each plan, mean over samples and steps.

    Args:
        projected: float64 [n_plans, K, H, n_metrics]; an unknown metric (NaN) counts nothing.
        metrics: What the last axis holds.
        targets: Metric name → strict upper bound.
        objectives: Objectives that count; empty is all of them.

    Returns:
        float64 [n_plans], rounded to 9 decimals.
    """
    n, samples, steps, _ = projected.shape
    value = np.zeros((n, samples, steps))
    held = np.ones((n, samples, steps), dtype=np.bool_)
    for place, metric in enumerate(metrics):
        if objectives and metric.objective not in objectives:
            continue
        target = targets.get(metric.name)
        share = projected[..., place]
        if target is None:
            if metric.objective in ("waste", "churn"):
                value = value - LEVEL * np.nan_to_num(share) / _scale(metric, targets)
            continue
        share = np.nan_to_num(share / target, nan=0.0)
        inside = share < 1.0
        held &= share < 1.0 - 0.2 * MARGIN_FRACTION
        above = np.clip(share - (1.0 - MARGIN_FRACTION), 0.0, MOST_ABOVE)
        value = (
            value + EACH * inside - ABOVE * above - LEVEL * np.clip(share - ENOUGH, 0.0, MOST_ABOVE)
        )
    value = value + ALL * held
    mean: NDArray[np.float64] = np.round(
        np.add.reduce(value.reshape(n, -1), axis=-1) / max(samples * steps, 1), 9
    )
    return mean


def own_targets(seen: Observation) -> dict[str, float]:
    """Targets of the scenario, and the objectives of the worst service where they are shown.

    World metrics such as latency are means weighted by traffic; every service has to hold its own
    objective, so the worst of them counts as well.
    """
    targets = dict(seen.targets)
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    for metric, fact in _WORST.items():
        limits = [facts[fact] for facts in services.values() if fact in facts]
        if metric in seen.metrics and limits:
            targets[metric] = min(limits)
    return targets


def _scale(metric: MetricSpec, targets: Mapping[str, float]) -> float:
    """One unit of what has no target: a tenth of the cost target for dollars, else 1."""
    dollars = targets.get("cost_usd_per_hour")
    return 0.1 * dollars if metric.objective == "waste" and dollars else 1.0
