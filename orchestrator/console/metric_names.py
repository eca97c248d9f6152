"""Metric names for people: ``cost_usd_per_hour`` is cost in $/h."""

from __future__ import annotations

_UNITS = (
    ("_usd_per_hour", "$/h"),
    ("_kg_per_day", "kg/day"),
    ("_g_per_kwh", "g/kWh"),
    ("_percent", "%"),
    ("_fraction", ""),
    ("_index", "index"),
    ("_ms", "ms"),
    ("_usd", "$"),
)


def label(metric: str) -> tuple[str, str]:
    """A metric's name for people, and its unit.

    >>> label("cost_usd_per_hour")
    ('cost', '$/h')
    """
    for suffix, unit in _UNITS:
        if metric.endswith(suffix) and len(metric) > len(suffix):
            return metric.removesuffix(suffix).replace("_", " "), unit
    return metric.replace("_", " "), ""


def in_target(value: float | None, target: float | None) -> bool | None:
    """Whether a metric is strictly below its target; None where that cannot be said."""
    return None if value is None or target is None else value < target
