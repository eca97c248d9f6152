"""How fast services burn their error budgets, over several windows at once.

The budget of a service is the fraction of requests that its SLO lets fail. A burn rate of 1 uses
it up exactly over the SLO's period; 14.4 uses 2 % of a month's budget in an hour. A rate that is
high over a long and a short window at once is worth waking somebody for: the long window says that
it matters, the short one that it still goes on.

Source: Google, "The Site Reliability Workbook" (2018), chapter 5 "Alerting on SLOs", table 5-8:
14.4× over 1 h and 5 min, 6× over 6 h and 30 min, 1× over 3 d and 6 h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from world.model import Observation, significant


class Window(NamedTuple):
    """One line of the alerting table.

    Attributes:
        name: Short name of the long window.
        long_minutes: Its length.
        short_minutes: Length of the window that says whether it still goes on.
        threshold: Burn rate from which both must be for an alert.
    """

    name: str
    long_minutes: float
    short_minutes: float
    threshold: float


WINDOWS = (
    Window("1h", 60.0, 5.0, 14.4),
    Window("6h", 360.0, 30.0, 6.0),
    Window("3d", 4320.0, 360.0, 1.0),
)
_MOST_MINUTES = 4320.0


def burn_rate(
    error_fractions: Sequence[float], budget: float, minutes: float, dt_minutes: float
) -> float:
    """Mean error fraction over the latest window, in budgets.

    Args:
        error_fractions: 0–1 per step, oldest first; a shorter history counts as far as it goes.
        budget: Fraction of requests that may fail, above 0.
        minutes: Length of the window.
        dt_minutes: Length of a step.
    """
    steps = max(1, round(minutes / dt_minutes))
    recent = error_fractions[-steps:]
    return sum(recent) / len(recent) / budget if recent else 0.0


def burn_of(observations: Sequence[Observation]) -> dict[str, Any]:
    """Burn rates of every service that has an error SLO, from what was observed.

    Returns:
        Service → ``{"1h": rate, "6h": rate, "3d": rate, "alerts": ["1h", …]}``; empty in worlds
        without services. Rates have 9 significant digits. Gaps in the measurements are left out.
    """
    now = observations[-1].facts if observations else {}
    services, dt = now.get("services"), now.get("dt_minutes")
    if not isinstance(services, Mapping) or not isinstance(dt, int | float) or dt <= 0:
        return {}
    most = max(1, round(_MOST_MINUTES / dt))
    recent = observations[-most:]
    found: dict[str, Any] = {}
    for name, service in services.items():
        budget = service.get("slo_error_fraction")
        if not isinstance(budget, int | float) or budget <= 0:
            continue
        errors = [
            value
            for value in (_errors(seen, name) for seen in recent)
            if isinstance(value, int | float)
        ]
        if errors:
            found[name] = _rates(errors, float(budget), float(dt))
    return found


def _rates(errors: Sequence[float], budget: float, dt_minutes: float) -> dict[str, Any]:
    rates: dict[str, Any] = {}
    alerts = []
    for window in WINDOWS:
        rate = burn_rate(errors, budget, window.long_minutes, dt_minutes)
        rates[window.name] = significant(rate)
        short = burn_rate(errors, budget, window.short_minutes, dt_minutes)
        if min(rate, short) >= window.threshold:
            alerts.append(window.name)
    return {**rates, "alerts": alerts}


def _errors(seen: Observation, service: str) -> Any:
    services = seen.facts.get("services")
    entry = services.get(service) if isinstance(services, Mapping) else None
    return entry.get("error_fraction") if isinstance(entry, Mapping) else None
