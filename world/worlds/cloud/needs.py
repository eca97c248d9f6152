"""What a row probably is, from what can be seen of it: whether it is needed, and how it is used.

The sorts of rows and their ranges are public (`archetypes`). A row of which nobody knows whether it
is needed may be any sort that fits its kind, use, tags and links; the odds of being needed are the
share of needed sorts among those that fit.

Source: Bayes' rule over `archetypes.ARCHETYPES`; ranges are uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import ARCHETYPES
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats

_NUMBERS = (
    ("cpu_percent", "cpu"), ("peak_cpu_percent", "peak"), ("memory_percent", "memory"),
    ("idle_hours", "idle_hours"),
)  # fmt: skip
_SEEN = (
    "kind", "cpu_percent", "peak_cpu_percent", "memory_percent", "idle_hours", "essential",
    "tag_status", "environment", "owner", "needed_by", "managed_by", "protected",
)  # fmt: skip
WASTE_SHARE = 0.27
"""Share of rows that nobody needs, as inventories are generated."""
_SLACK = 1e-6
_LEAST = 1e-6


class Needs(NamedTuple):
    """What is believed of the rows beyond the tiers; arrays of length R.

    Attributes:
        needed: Probability that something needs the row, float64.
        use: Measurement name → its value, or what it probably is where it is unknown.
        seen: The columns that this was worked out from.
    """

    needed: Floats
    use: Mapping[str, Floats]
    seen: Mapping[str, Array]


def needs(settings: Settings, public: Mapping[str, Array], before: Needs | None) -> Needs:
    """Beliefs about rows; only rows that look different from before are worked out anew.

    Args:
        settings: The layout.
        public: Visible columns, [1, n].
        before: The beliefs of the step before.
    """
    seen = {name: public[name][0] for name in _SEEN}
    stale = np.zeros(settings.rows, dtype=np.bool_)
    if before is None:
        stale[settings.tiers :] = True
        needed = (seen["essential"] == names.YES).astype(np.float64)
        use = {name: seen[name].copy() for name, _ in _NUMBERS}
    else:
        for name, column in seen.items():
            old = before.seen[name]
            if old is not column:
                differs = old != column
                if column.dtype.kind == "f":
                    differs &= ~(np.isnan(old) & np.isnan(column))
                stale |= differs
        stale[: settings.tiers] = False
        if not stale.any():
            return before._replace(seen=seen)
        needed = before.needed.copy()
        use = {name: before.use[name].copy() for name, _ in _NUMBERS}
    rows = np.flatnonzero(stale)
    essential = seen["essential"][rows]
    needed[rows] = np.where(essential == names.YES, 1.0, 0.0)
    for name, _ in _NUMBERS:
        use[name][rows] = seen[name][rows]
    blind = np.isnan(seen["idle_hours"][rows])
    vague = (essential == names.UNKNOWN) | blind
    for kind in np.unique(seen["kind"][rows[vague]]).tolist():
        part = rows[vague & (seen["kind"][rows] == kind)]
        table = _table(kind)
        weight = _weights(settings, table, seen, part)
        unknown = seen["essential"][part] == names.UNKNOWN
        odds = np.add.reduce(weight * table.essential, axis=-1)
        needed[part] = np.where(unknown, odds, needed[part])
        sort = np.argmax(weight, axis=-1)
        for at, (name, _) in enumerate(_NUMBERS):
            value = seen[name][part]
            use[name][part] = np.where(np.isnan(value), table.middle[at, sort], value)
    return Needs(needed, use, seen)


class _Table(NamedTuple):
    """The sorts of one kind as arrays, [sorts] or [measurements, sorts].

    Attributes:
        essential: 1 where it is needed.
        low: Lower end of each range; NaN where there is none.
        high: Upper end.
        middle: Middle of each range; 0 where there is none.
        environments: Odds of each environment tag, [tags, sorts].
        owners: Odds of each owner, [owners, sorts].
        needed: Whether another row needs it.
        managed: Code of what manages it.
        protected: Whether it may never be removed.
        shares: Role → share of each sort within the role.
    """

    essential: Floats
    low: Floats
    high: Floats
    middle: Floats
    environments: Floats
    owners: Floats
    needed: NDArray[np.bool_]
    managed: NDArray[np.int64]
    protected: NDArray[np.bool_]
    shares: Mapping[str, Floats]


@cache
def _table(kind: int) -> _Table:
    sorts = [archetype for archetype in ARCHETYPES if archetype.kind == kind]

    def bounds(field: str, side: int) -> list[float]:
        values = (getattr(a, field) for a in sorts)
        return [np.nan if value is None else float(value[side]) for value in values]

    def spread(field: str, size: int) -> Floats:
        found = np.zeros((size, len(sorts)))
        for at, archetype in enumerate(sorts):
            choices = getattr(archetype, field)
            for choice in choices:
                found[choice, at] += 1.0 / len(choices)
        return found

    low = np.array([bounds(field, 0) for _, field in _NUMBERS])
    high = np.array([bounds(field, 1) for _, field in _NUMBERS])
    totals = {
        role: sum(a.share for a in ARCHETYPES if a.role == role)
        for role in ("waste", "decoy", "ordinary")
    }
    linked = [bool(a.needed_by) or (a.essential and a.hangs_on in ("pool", "lb")) for a in sorts]
    return _Table(
        essential=np.array([float(a.essential) for a in sorts]),
        low=low,
        high=high,
        middle=np.nan_to_num(0.5 * (low + high)),
        environments=spread("environments", len(names.ENVIRONMENTS)),
        owners=spread("owners", len(names.OWNERS)),
        needed=np.array(linked),
        managed=np.array([a.managed_by for a in sorts]),
        protected=np.array([a.protected for a in sorts]),
        shares={
            role: np.array([a.share * (a.role == role) for a in sorts]) / total
            for role, total in totals.items()
        },
    )


def _weights(
    settings: Settings, table: _Table, seen: Mapping[str, Array], rows: NDArray[np.intp]
) -> Floats:
    """Posterior of every sort of one kind for rows of that kind, float64 [n, sorts]."""
    params = settings.params
    decoy = params.decoy_fraction * params.rows / settings.extras
    waste = min(WASTE_SHARE * params.rows / settings.extras, 1.0 - decoy)
    prior = waste * table.shares["waste"] + decoy * table.shares["decoy"]
    prior = prior + (1.0 - waste - decoy) * table.shares["ordinary"]
    # A few sorts stand in every inventory once.
    prior = np.maximum(prior, 1.0 / settings.extras)
    weight = prior * ((seen["needed_by"][rows][:, None] >= 0) == table.needed)
    weight *= seen["managed_by"][rows][:, None] == table.managed
    weight *= (seen["protected"][rows][:, None] > 0) == table.protected
    for at, (name, _) in enumerate(_NUMBERS):
        value = seen[name][rows][:, None]
        inside = (value >= table.low[at] - _SLACK) & (value <= table.high[at] + _SLACK)
        density = inside / np.maximum(table.high[at] - table.low[at], 0.1)
        known = ~np.isnan(value) & ~np.isnan(table.low[at])
        weight *= np.where(known, np.maximum(density, _LEAST), 1.0)
    tagged = (seen["tag_status"][rows] == 0)[:, None]
    weight *= np.where(tagged, table.environments[seen["environment"][rows]], 1.0)
    weight *= np.where(tagged, table.owners[seen["owner"][rows]], 1.0)
    total = np.add.reduce(weight, axis=-1)[:, None]
    flat = prior / np.add.reduce(prior)
    found: Floats = np.where(total > 0, weight / np.where(total > 0, total, 1.0), flat)
    return found
