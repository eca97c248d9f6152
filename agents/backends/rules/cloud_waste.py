"""What nobody needs, over the whole inventory: what may go now, what to mark, what to ask first.

Every list is the dearest rows of a mask that the world's own validator draws, so that a proposal of
this file is never refused, and 100,000 rows cost milliseconds.
"""

from __future__ import annotations

import numpy as np

from agents.backends.rules.agenda import Option, best_rows
from agents.backends.rules.cloud_estate import Estate, Floats
from world.actions import Action
from world.worlds.cloud import menu
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.rules import MIN_AGE_HOURS, Refusal

UNMEASURED_WASTE = 0.3
"""Odds that a row whose use nobody measures is waste: about the share of waste among all rows."""


def removals(estate: Estate, value: Floats, unit: str) -> list[Option]:
    """Waste that goes now: terminated where its grace has passed, stopped where it is a machine."""
    gone = estate.zombies & (estate.verdicts(menu.TERMINATE) == Refusal.NONE)
    halted = estate.zombies & ~gone & (estate.verdicts(menu.STOP) == Refusal.NONE)
    worth = np.where(gone | halted, value, 0.0)
    options = []
    for row in best_rows(worth):
        kind = "terminate" if gone[row] else "stop"
        options.append(
            Option(Action.of(kind, estate.name(row)), _why_waste(estate, row, kind, value, unit))
        )
    return options


def _why_waste(estate: Estate, row: int, kind: str, value: Floats, unit: str) -> str:
    idle = float(estate.cells["idle_hours"][row])
    return (
        f"{estate.name(row)} {estate.word('kind', row)} idle {idle:.0f} h, needed by nobody: "
        f"{kind} saves {value[row]:.3g} {unit}"
    )


def marks_for(estate: Estate) -> list[Option]:
    """Marks for the dearest waste, so that its grace period runs and its owner hears of it."""
    wait = estate.zombies & (estate.verdicts(menu.TERMINATE) == Refusal.NOT_MARKED)
    grace = estate.settings.params.grace_steps
    return [
        Option(
            Action.of("mark", estate.name(row)),
            f"{estate.name(row)} {estate.word('kind', row)} idle "
            f"{float(estate.cells['idle_hours'][row]):.0f} h at {estate.usd[row]:.3g} $/h: mark, "
            f"its owner has {grace} steps to object",
        )
        for row in best_rows(np.where(wait, estate.usd, 0.0))
    ]


def inquiries(estate: Estate) -> list[Option]:
    """Questions about the dearest rows that nobody can judge and that an answer could free."""
    cells = estate.cells
    with np.errstate(invalid="ignore"):
        old = cells["age_hours"] >= MIN_AGE_HOURS
        used = cells["idle_hours"] < IDLE_WINDOW_HOURS
    free = old & ~used & (cells["essential"] != names.YES) & (cells["managed_by"] == 0)
    free &= (cells["protected"] == 0) & (cells["needed_by"] < 0) & (estate.usd > 0)
    free[: estate.settings.tiers] = False
    blind = free & (estate.verdicts(menu.REQUEST_METRICS) == Refusal.NONE)
    flags = free & (estate.verdicts(menu.FLAG) == Refusal.NONE)
    options = []
    # What nobody measures is waste about as often as anything else is.
    odds = np.where(np.isnan(cells["idle_hours"]), UNMEASURED_WASTE, 1.0)
    for row in best_rows(np.where(blind | flags, estate.usd * odds, 0.0)):
        name, usd = estate.name(row), float(estate.usd[row])
        if blind[row]:
            text = f"{name} costs {usd:.3g} $/h and its use is not measured: ask before judging"
            options.append(Option(Action.of("request_metrics", name), text))
        if flags[row]:
            text = (
                f"{name} looks unused at {usd:.3g} $/h, whether it is needed is not known: its "
                "owner must say before anybody touches it"
            )
            options.append(Option(Action.of("flag_for_owner", name), text))
    return options


def copies(estate: Estate) -> list[Option]:
    """Copies of data that will go and that nobody owns, while its grace period runs."""
    cells = estate.cells
    waiting = estate.zombies & (estate.verdicts(menu.TERMINATE) == Refusal.GRACE)
    orphan = waiting & (cells["owner"] == 0) & (estate.verdicts(menu.SNAPSHOT) == Refusal.NONE)
    return [
        Option(
            Action.of("snapshot", estate.name(row)),
            f"{estate.name(row)} has no owner to object: copy its data for 2 $ before it goes",
        )
        for row in best_rows(np.where(orphan, estate.usd, 0.0))
    ]
