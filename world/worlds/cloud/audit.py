"""What an episode came to, told once it is over; the facts that a grader of this world reads.

The world runs on for 12 steps in which nobody acts, and the same seed is played once more without
any action: savings are measured against that twin on the same noise, never claimed. Nothing of
this is shown before the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from world.model import significant
from world.worlds.cloud import schema as names
from world.worlds.cloud.advance import advance
from world.worlds.cloud.ledger import book
from world.worlds.cloud.opening import open_worlds
from world.worlds.cloud.reward import (
    RUN_OUT_STEPS,
    nothing,
    unfinished_work_usd,
    unused_terms_usd,
)
from world.worlds.cloud.state import State

BEYOND_CONTROL = (names.PRICE_HIKE, names.CI_SPIKE, names.BLIND)
"""Causes that no action removes; they are not counted as incidents to be solved."""
_STATUS = ("ahead", "active", "cured", "over", "moot")


def audit(final: State, row: int = 0) -> dict[str, Any]:
    """The facts of a finished world: true sums, its twin without actions, its incidents.

    Args:
        final: The state after the last step.
        row: Which world of the batch.

    Returns:
        JSON-plain facts; dollars, kilograms, minutes and steps as their names say. Sums include
        the 12 steps that the world runs on.
    """
    one = final.rows(np.array([row]))
    end, kept = _run_out(one)
    settings = final.settings
    twin = open_worlds(settings, [int(final.seeds[row])])
    steps = final.step + RUN_OUT_STEPS
    twin_put_off = 0.0
    for _ in range(steps):
        twin = advance(twin, nothing(twin)).state
        book(twin)
        if twin.step == final.step:
            twin_put_off = _put_off_usd(twin)
    return {
        "seed": int(final.seeds[row]),
        "run_out_steps": RUN_OUT_STEPS,
        "run_out_in_target": kept,
        "spent_usd": _sum(end, "h.w.spent_usd"),
        "nop_spent_usd": _sum(twin, "h.w.spent_usd"),
        "one_off_usd": _sum(one, "w.one_off_usd"),
        "put_off_usd": significant(_put_off_usd(one)),
        "nop_put_off_usd": significant(twin_put_off),
        "emitted_kg": _sum(end, "h.w.emitted_kg"),
        "nop_emitted_kg": _sum(twin, "h.w.emitted_kg"),
        "over_latency_ms_steps": _sum(one, "h.w.over_latency"),
        "over_cost_usd_per_hour_steps": _sum(one, "h.w.over_cost"),
        "over_carbon_kg_per_day_steps": _sum(one, "h.w.over_carbon"),
        "slo_minutes": _sum(one, "h.w.slo_minutes"),
        "harms": int(end.columns["w.harms"][0, 0]),
        "incidents": _incidents(one, end),
    }


def _run_out(one: State) -> tuple[State, dict[str, int]]:
    """The state after 12 steps in which nobody acts, and in how many of them targets held."""
    end = one
    kept = dict.fromkeys(("latency", "cost", "carbon", "all"), 0)
    for _ in range(RUN_OUT_STEPS):
        end = advance(end, nothing(end)).state
        book(end)
        for name in kept:
            kept[name] += int(end.flags[name][0])
    return end, kept


def _put_off_usd(state: State) -> float:
    """Dollars that an end leaves to be paid: terms that nobody uses, batch work undone."""
    return float((unused_terms_usd(state) + unfinished_work_usd(state))[0])


def _sum(state: State, name: str) -> float:
    return significant(float(state.columns[name][0, 0]))


def _incidents(one: State, end: State) -> list[dict[str, Any]]:
    """Incidents that began, in order of their onset; what was under way at the end may cure."""
    settings = one.settings
    columns, later = one.columns, end.columns
    found = []
    for at in range(columns["h.i.status"].shape[1]):
        status = int(columns["h.i.status"][0, at])
        if status in (names.AHEAD, names.MOOT):
            continue
        cause = int(columns["h.i.cause"][0, at])
        service = int(columns["h.i.service"][0, at])
        known, cured = (int(later[f"h.i.{name}_step"][0, at]) for name in ("known", "cured"))
        found.append(
            {
                "cause": names.CAUSES[cause],
                "service": settings.params.services[service] if service >= 0 else "",
                "onset_step": int(columns["h.i.onset"][0, at]),
                "status": _STATUS[int(later["h.i.status"][0, at])],
                "known_step": known if known >= 0 else None,
                "cured_step": cured if cured >= 0 else None,
                "counts": cause not in BEYOND_CONTROL,
            }
        )
    return sorted(found, key=lambda incident: (incident["onset_step"], incident["cause"]))
