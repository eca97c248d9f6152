"""Metric names for people: ``cost_usd_per_hour`` is cost in $/h."""

from __future__ import annotations

import math

_UNITS = (
    ("_usd_per_hour", "$/h"),
    ("_kg_per_day", "kg/day"),
    ("_g_per_kwh", "g/kWh"),
    ("_percent", "%"),
    ("_fraction", ""),
    ("_index", "index"),
    ("_ms", "ms"),
    ("_usd", "$"),
    ("_hours", "h"),
    ("_minutes", "min"),
    ("_seconds", "s"),
    ("_kg", "kg"),
    ("_kw", "kW"),
)
_MOST_DECIMALS = 9


def label(metric: str) -> tuple[str, str]:
    """A metric's name for people, and its unit.

    >>> label("cost_usd_per_hour")
    ('cost', '$/h')
    """
    for suffix, unit in _UNITS:
        if metric.endswith(suffix) and len(metric) > len(suffix):
            return metric.removesuffix(suffix).replace("_", " "), unit
    return metric.replace("_", " "), ""


def beside(value: float, target: float) -> tuple[str, str]:
    """A value and its target with as many decimals as it takes to tell them apart.

    >>> beside(148.2, 150.0), beside(4.896, 4.9), beside(0.0004, 0.01)
    (('148.2', '150.0'), ('4.896', '4.900'), ('0.000', '0.010'))
    """
    small = 0.0 < abs(target) < 1.0
    decimals = min(_MOST_DECIMALS, 1 - math.floor(math.log10(abs(target)))) if small else 1
    while True:
        texts = f"{value:,.{decimals}f}", f"{target:,.{decimals}f}"
        if texts[0] != texts[1] or value == target or decimals >= _MOST_DECIMALS:
            return texts
        decimals += 1


def in_target(value: float | None, target: float | None) -> bool | None:
    """Whether a metric is strictly below its target; None where that cannot be said."""
    return None if value is None or target is None else value < target
