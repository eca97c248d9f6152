"""What may be true where a seat sees unknown: a stated prior given what is observed.

Only the latest observation is read: everything that was ever learned stands in its inventory.
Whether something needs a resource depends on its environment tag and on signs of use; how it is
used depends on whether something needs it. The figures are rounded from the shares among the
unknown rows of 2,001 generated inventories (seeds 200 to 866 of the three shipped scenarios).

A bill has no hidden truth, so there is nothing to sample: every sample is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.errors import WorldError
from world.model import History, Inventory, Key
from world.noise import channel, uniforms
from world.worlds.finops import rules
from world.worlds.finops.estate import EstateInventory, State, Totals, open_state
from world.worlds.finops.opening import frame_of_view
from world.worlds.finops.schema import ESSENTIAL, METERED_KINDS

ESSENTIAL_PRIOR: dict[str, float] = {
    "production": 0.85,
    "staging": 0.60,
    "development": 0.43,
    "temporary": 0.90,
}
"""Probability that something needs a resource, by environment tag, before its use is seen."""
ESSENTIAL_PRIOR_OTHER = 0.54
"""The same for any other tag and for none."""

IDLE_ODDS = 0.22
"""Factor on the odds that something needs it, where it is known to be idle."""
IN_USE_ODDS = 8.0
"""Factor on the odds that something needs it, where it is known to be in use."""

IDLE_GIVEN = {"yes": 0.17, "no": 0.88}
"""Probability that a resource of unknown use is idle, given that something needs it or not."""

IDLE_USE = {"cpu_percent": (0.1, 1.9), "memory_percent": (2.0, 15.0), "idle_hours": (336.0, 2500.0)}
BUSY_USE = {"cpu_percent": (5.0, 70.0), "memory_percent": (5.0, 75.0), "idle_hours": (0.0, 20.0)}
"""Ranges that unknown use is sampled from, equally likely within each."""

_NEED = channel("finops.belief.need")
_USE = channel("finops.belief.use")


def imagine(history: History, samples: int, key: Key) -> State:
    """K full states sampled from what was observed.

    Args:
        history: The room's history; only its latest observation is read.
        samples: K; 0 is one sample in which every uncertain thing takes its likelier value.
        key: Address of the sampling noise; sample k is replica k + 1.

    Raises:
        WorldError: The observation carries no inventory.
    """
    seen = history.now
    inventory = seen.inventory
    if inventory is None:
        raise WorldError(
            "the observation has no inventory",
            "this world can only be imagined from what its inventory shows",
            "Observe this world again",
        )
    totals: Totals | None = None
    if isinstance(inventory, EstateInventory):
        frame, totals = inventory.frame.single(inventory.world), inventory.totals
    else:
        frame = frame_of_view(history.scenario, inventory)
    count = max(samples, 1)
    columns: dict[str, NDArray[Any]] = {
        name: np.broadcast_to(column, (count, len(inventory)))
        for name, column in inventory.columns.items()
    }
    if frame.answers:
        columns.update(_sampled(inventory, samples, key))
    state = open_state(frame, columns, totals)
    state.step = seen.step
    return state


def _sampled(inventory: Inventory, samples: int, key: Key) -> dict[str, NDArray[Any]]:
    """Hidden columns [K, n_rows]: sampled where unknown, NaN or 0 elsewhere."""
    seen = dict(inventory.columns)
    rows = len(inventory)
    count = max(samples, 1)
    if samples:
        replica = np.arange(1, samples + 1)[:, None]
        need, idle, _, _ = uniforms(key.seed, seen["ordinal"], _NEED, key.step, replica)
        use = uniforms(key.seed, seen["ordinal"], _USE, key.step, replica)[:3]
    else:
        need = idle = np.full((1, rows), 0.5)
        use = np.full((3, 1, rows), 0.5)
    unknown = seen["essential"] == ESSENTIAL.index("unknown")
    yes = np.where(
        unknown,
        need < essential_probability(inventory),
        seen["essential"] == ESSENTIAL.index("yes"),
    )
    hidden: dict[str, NDArray[Any]] = {
        "h.essential": np.where(
            unknown, np.where(yes, ESSENTIAL.index("yes"), ESSENTIAL.index("no")), 0
        ).astype(np.int8)
    }
    is_idle = idle < np.where(yes, IDLE_GIVEN["yes"], IDLE_GIVEN["no"])
    metered = np.isin(
        inventory.columns["kind"],
        [code for code, kind in enumerate(inventory.vocabulary["kind"]) if kind in METERED_KINDS],
    )
    for uniform, name in zip(use, IDLE_USE, strict=True):
        low = np.where(is_idle, IDLE_USE[name][0], BUSY_USE[name][0])
        high = np.where(is_idle, IDLE_USE[name][1], BUSY_USE[name][1])
        value = low + uniform * (high - low)
        there = np.isnan(seen[name]) & (metered | (name == "idle_hours")) & (seen["state"] == 0)
        hidden[f"h.{name}"] = np.broadcast_to(np.where(there, value, np.nan), (count, rows))
    return hidden


def essential_probability(inventory: Inventory) -> NDArray[np.float64]:
    """Probability that something needs each row, from tag and signs of use. Shape (n_rows,)."""
    words = inventory.vocabulary["environment"]
    prior = np.array([ESSENTIAL_PRIOR.get(word.lower(), ESSENTIAL_PRIOR_OTHER) for word in words])
    odds = (prior / (1.0 - prior))[inventory.columns["environment"]]
    cells = dict(inventory.columns)
    busy = rules.in_use(cells)
    odds = np.where(busy, odds * IN_USE_ODDS, odds)
    odds = np.where(rules.use_known(cells) & ~busy, odds * IDLE_ODDS, odds)
    probability: NDArray[np.float64] = odds / (1.0 + odds)
    return probability
