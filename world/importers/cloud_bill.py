"""A cloud world in the proportions of a bill: its cost, its regions, its waste, its blind spots.

The resources of a bill are no services: a bill knows no demand, no queue and no caller. So a cloud
scenario does not copy them. It takes from the bill what a cloud world is drawn from: how many rows
there are, what they cost, where the money is spent, how much of it is idle, and of how much nobody
knows the owner or whether it is needed. Latency, services and incidents stay those of the base.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from world.errors import ConfigError
from world.model import Scenario, significant
from world.scenarios.loader import load_scenario
from world.worlds.cloud.settings import CARBON, COST, Settings
from world.worlds.cloud.tables import regions

LEAST_USD_PER_HOUR: Final = 100.0
MOST_USD_PER_HOUR: Final = 5_000.0
"""Between these a cloud world can be calibrated to any cost; measured."""
USD_PER_ROW: Final = 1.25
"""Least mean cost of a row: below it the smallest fleet costs more than the bill; measured."""
MOST_ROWS: Final = 2_000
IDLE_HOURS: Final = 24.0
IDLE_CPU_PERCENT: Final = 2.0
"""What counts as idle: no use for a day, or a machine below this. Source: Azure Advisor recommends
to shut a machine down below 3 % CPU; 2 % is on the careful side of that."""
LEAST_KNOWN_FRACTION: Final = 0.1
"""Share of the cost whose use must be known for the share of waste to be taken; our choice."""

_WASTE_RANGE: Final = (0.02, 0.6)
_MOST_UNKNOWN: Final = 0.9


def cloud_from_bill(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    into: str,
    horizon: int | None,
    target_fraction: float | None,
) -> tuple[Scenario, dict[str, Any]]:
    """A cloud scenario in the proportions of an imported bill, and what was taken from where.

    Args:
        rows: Cells of the bill's resources.
        name: Name of the scenario.
        into: Cloud scenario to start from, by name or file.
        horizon: Steps of an episode; None keeps the base's.
        target_fraction: Cost target as a share of the starting cost; None keeps the base's share.

    Raises:
        UnknownNameError: There is no such base.
        ConfigError: The base is of another world.
        ScenarioError: The world refuses the result.
    """
    base = load_scenario(into)
    if base.world != "cloud":
        raise ConfigError(
            f"scenario {base.name!r} is of the world {base.world!r}",
            "a cloud scenario starts from another one",
            "Give one, for example --into cloud/medium",
        )
    start = Settings.of(base).params.start
    cost = sum(max(float(row["cost_usd_per_hour"] or 0.0), 0.0) for row in rows)
    taken = LEAST_USD_PER_HOUR <= cost <= MOST_USD_PER_HOUR
    used = significant(cost) if taken else start.cost_usd_per_hour
    scale = used / start.cost_usd_per_hour
    places, elsewhere = _places(base, rows)
    params, found = _shares(rows, cost)
    params |= places
    params["rows"] = _rows(base, len(rows), used)
    params["start"] = {
        "latency_ms": start.latency_ms,
        "cost_usd_per_hour": used,
        "carbon_kg_per_day": significant(start.carbon_kg_per_day * scale),
    }
    share = base.targets[COST] / start.cost_usd_per_hour
    targets = {
        **base.targets,
        COST: significant(used * (share if target_fraction is None else target_fraction)),
        CARBON: significant(base.targets[CARBON] * scale),
    }
    # A margin of 15 $/h that suits a bill of 530 would swallow one of 100.
    tolerances = {
        metric: (significant(margin * scale), significant(size * scale))
        if metric in (COST, CARBON)
        else (margin, size)
        for metric, (margin, size) in base.tolerances.items()
    }
    scenario = dataclasses.replace(
        base,
        name=name,
        title=f"A cloud in the proportions of a bill: {params['rows']} rows, {used:.4g} $/h",
        description=(
            f"{base.description.strip()}\nIn the proportions of a FOCUS bill of {len(rows):,} "
            f"resources at {cost:.4g} $/h: "
            + "; ".join(f"{name} {value}" for name, value in found.items() if value is not None)
        )[:4_000],
        horizon=horizon or base.horizon,
        params={**base.params, **params},
        targets=targets,
        tolerances=tolerances,
    )
    Settings.of(scenario)
    report = {
        "base": base.name,
        "rows": params["rows"],
        "bill_usd_per_hour": significant(cost),
        "start_usd_per_hour": used,
        "cost_taken": taken,
        "home_region": params["home_region"],
        "regions": list(params["regions"]),
        "elsewhere_fraction": elsewhere,
        **found,
    }
    return scenario, report


def notes(report: Mapping[str, Any], resources: int) -> list[str]:
    """What a careful reader should know about the result."""
    counted = (
        (
            not report["cost_taken"],
            f"the resources cost {report['bill_usd_per_hour']:.4g} $/h, outside the "
            f"{LEAST_USD_PER_HOUR:g} to {MOST_USD_PER_HOUR:,.0f} that a cloud world can be "
            f"calibrated to: it starts from {report['start_usd_per_hour']:.4g} $/h, only the "
            "proportions are the bill's",
        ),
        (
            report["rows"] != resources,
            f"the cloud world has {report['rows']:,} rows for the bill's {resources:,} resources",
        ),
        (
            report["elsewhere_fraction"],
            f"{report['elsewhere_fraction']:.1%} of the cost is in regions that the world does not "
            "know, or names none",
        ),
        (
            report["waste_fraction"] is None,
            "how much of the bill is idle is not known (too few resources have metrics): the "
            "base's share is kept",
        ),
        (
            max(report["unknown_essential_fraction"], report["unknown_tag_fraction"])
            > _MOST_UNKNOWN,
            f"more than {_MOST_UNKNOWN:.0%} of the resources say nothing on whether they are "
            f"essential, or on whose they are: the world takes {_MOST_UNKNOWN:g}",
        ),
        (True, "demand, latency, services and incidents are the base's: a bill does not know them"),
    )
    return [text for holds, text in counted if holds]


def _rows(base: Scenario, resources: int, usd_per_hour: float) -> int:
    """Rows of the world: the bill's, as many as its cost can bear, as few as its tiers need."""
    least = 4 * len(base.params["services"]) + 18
    return max(least, min(resources, MOST_ROWS, int(usd_per_hour / USD_PER_ROW)))


def _places(base: Scenario, rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], float]:
    """Home region, further ones and the pool; and the share of the cost that is elsewhere."""
    params = Settings.of(base).params
    known = set(regions().names)
    spent: dict[str, float] = {}
    total = lost = 0.0
    for row in rows:
        cost = max(float(row["cost_usd_per_hour"] or 0.0), 0.0)
        total += cost
        if row.get("region") in known:
            spent[row["region"]] = spent.get(row["region"], 0.0) + cost
        else:
            lost += cost
    dearest = sorted((name for name in spent if spent[name] > 0), key=lambda n: (-spent[n], n))
    fixed = list(dict.fromkeys([*dearest, params.home_region, *params.regions]))
    fixed = fixed[: 1 + len(params.regions)]
    every = (*params.region_pool, params.home_region, *params.regions)
    pool = [name for name in dict.fromkeys(every) if name not in fixed]
    places: dict[str, Any] = {
        "home_region": fixed[0],
        "regions": fixed[1:],
        "region_pool": pool,
    }
    if params.grid_g_per_kwh:
        places["grid_g_per_kwh"] = {
            name: list(hours)
            for name, hours in params.grid_g_per_kwh.items()
            if name in (*fixed, *pool)
        }
    return places, significant(lost / total) if total else 0.0


def _shares(
    rows: Sequence[Mapping[str, Any]], cost: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params that are shares of the bill, and the shares as found (None: not known)."""
    known = idle = 0.0
    for row in rows:
        spent = max(float(row["cost_usd_per_hour"] or 0.0), 0.0)
        hours, cpu = row.get("idle_hours"), row.get("cpu_percent")
        if hours is None and cpu is None:
            continue
        known += spent
        quiet = cpu is not None and cpu < IDLE_CPU_PERCENT
        if quiet if hours is None else hours >= IDLE_HOURS:
            idle += spent
    waste = idle / known if known and known >= LEAST_KNOWN_FRACTION * cost else None
    count = max(len(rows), 1)
    unknown = sum(row.get("essential") is None for row in rows) / count
    untagged = sum(row.get("owner") is None and row.get("environment") is None for row in rows)
    found: dict[str, Any] = {
        "waste_fraction": None if waste is None else significant(waste),
        "unknown_essential_fraction": significant(unknown),
        "unknown_tag_fraction": significant(untagged / count),
    }
    params = {
        "unknown_essential_fraction": min(found["unknown_essential_fraction"], _MOST_UNKNOWN),
        "unknown_tag_fraction": min(found["unknown_tag_fraction"], _MOST_UNKNOWN),
    }
    if waste is not None:
        low, high = _WASTE_RANGE
        params["waste_fraction"] = min(max(found["waste_fraction"], low), high)
    return params, found
