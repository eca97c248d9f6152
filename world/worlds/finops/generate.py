"""Inventories from a seed: every number is a function of seed, row and stream, drawn at reset.

A scenario's ``layout`` says how many resources of each archetype there are; its ``coins`` names
archetypes that are there with probability one half (an ordinary web machine stands in otherwise).
Where each row lies, its size, use, tags and what is known about it come from counter-based noise.
The dynamics afterwards are deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.errors import ScenarioError
from world.model import Scenario
from world.noise import channel, uniforms
from world.worlds.finops.archetypes import ARCHETYPES, ENVIRONMENTS, FILLER
from world.worlds.finops.estate import Edges
from world.worlds.finops.rules import NANO
from world.worlds.finops.schema import (
    ESSENTIAL,
    INVENTORY_COLUMNS,
    KINDS,
    MANAGERS,
    METERED_KINDS,
    STATES,
)
from world.worlds.finops.tables import grid_intensities, size_codes, size_table

SERVICES = ("checkout", "search", "accounts", "catalogue", "billing", "analytics", "media", "ml")
OWNERS = ("payments", "discovery", "identity", "storefront", "data", "platform")
REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1")
PREFIXES = ("vm", "db", "cache", "vol", "snap", "ip", "lb", "gw", "res")
"""Start of a generated id, per kind; an id says nothing about the archetype."""

MOST_ROWS = 500

_PLACE = channel("finops.place")
_USE = channel("finops.use")
_MONEY = channel("finops.money")
_TRUTH = channel("finops.truth")


class Generated(NamedTuple):
    """Inventories of a batch.

    Attributes:
        columns: Column → array [B, n_rows], hidden ones included.
        ids: Ids per world.
        vocabulary: Coded column → words.
        edges: Who needs whom.
        archetypes: int64 [B, n_rows], code of each row's archetype; None where rows are given.
            No state holds it.
    """

    columns: dict[str, NDArray[Any]]
    ids: list[tuple[str, ...]]
    vocabulary: Mapping[str, tuple[str, ...]]
    edges: Edges
    archetypes: NDArray[np.int64] | None = None


class Layout(NamedTuple):
    """A scenario's params as slots.

    Attributes:
        slots: Archetype code per slot.
        coin: Whether the slot is there with probability one half.
        needed_by: Slot of the dependant; -1 for none.
        use_known_fraction: Share of rows whose use is known at the start.
        essential_known_fraction: Share of rows of which is known whether something needs them.
    """

    slots: NDArray[np.int64]
    coin: NDArray[np.bool_]
    needed_by: NDArray[np.int64]
    use_known_fraction: float
    essential_known_fraction: float


def layout_of(scenario: Scenario) -> Layout:
    """Read and check the params of a generated scenario.

    Raises:
        ScenarioError: An unknown archetype, a count that is not a whole number, a fraction outside
            0–1, or more rows than `MOST_ROWS`.
    """
    codes = {archetype.name: code for code, archetype in enumerate(ARCHETYPES)}
    slots: list[int] = []
    coin: list[bool] = []
    for field, flips in (("layout", False), ("coins", True)):
        for name, count in _counts(scenario, field).items():
            if name not in codes:
                raise ScenarioError(
                    f"scenario {scenario.name!r}: params.{field} names {name!r}",
                    "there is no such archetype",
                    f"Archetypes: {', '.join(codes)}",
                )
            slots += [codes[name]] * count
            coin += [flips] * count
    if not 1 <= len(slots) <= MOST_ROWS:
        raise ScenarioError(
            f"scenario {scenario.name!r}: its layout has {len(slots)} rows",
            f"a generated inventory has 1 to {MOST_ROWS}",
            "Correct [params.layout], or give the rows as [[resource]]",
        )
    return Layout(
        slots=np.array(slots),
        coin=np.array(coin),
        needed_by=np.array(
            [_dependant_slot(scenario, slots, coin, at) for at in range(len(slots))]
        ),
        use_known_fraction=_fraction(scenario, "use_known_fraction"),
        essential_known_fraction=_fraction(scenario, "essential_known_fraction"),
    )


def _counts(scenario: Scenario, field: str) -> Mapping[str, int]:
    table = scenario.params.get(field, {})
    if not isinstance(table, Mapping):
        raise ScenarioError(
            f"scenario {scenario.name!r}: params.{field} is {table!r}",
            "it is a table of archetype and count",
            f"For example: [params.{field}] idle_vm = 3",
        )
    for name, count in table.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_ROWS:
            raise ScenarioError(
                f"scenario {scenario.name!r}: params.{field}.{name} is {count!r}",
                f"it must be a whole number from 0 to {MOST_ROWS}",
                "Correct that number",
            )
    return table


def _fraction(scenario: Scenario, field: str) -> float:
    value = scenario.params.get(field, 0.7)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ScenarioError(
            f"scenario {scenario.name!r}: params.{field} is {value!r}",
            "it must lie between 0 and 1",
            "Correct that number",
        )
    return float(value)


def _dependant_slot(scenario: Scenario, slots: list[int], coin: list[bool], at: int) -> int:
    """Slot of the resource that needs slot `at`; only slots that are certain qualify."""
    wanted = ARCHETYPES[slots[at]].needed_by
    if not wanted:
        return -1
    fixed = [
        slot
        for slot, code in enumerate(slots)
        if ARCHETYPES[code].name == wanted and not coin[slot]
    ]
    if not fixed:
        raise ScenarioError(
            f"scenario {scenario.name!r}: {ARCHETYPES[slots[at]].name} needs a {wanted}",
            "it depends on one and params.layout has none",
            f"Add {wanted} to [params.layout]",
        )
    earlier = sum(1 for code in slots[:at] if code == slots[at])
    return fixed[earlier % len(fixed)]


def generate(scenario: Scenario, seeds: Sequence[int]) -> Generated:
    """Inventories at step 0, one per seed.

    Raises:
        ScenarioError: The params contradict themselves.
    """
    layout, table = layout_of(scenario), _archetype_table()
    rows = len(layout.slots)
    seed = np.asarray(seeds, dtype=np.uint64)[:, None]
    row = np.arange(rows)[None, :]
    rank, flip, place, _ = uniforms(seed, row, _PLACE, 0)
    order = np.argsort(rank, axis=1, kind="stable")
    archetype = np.empty((len(seeds), rows), dtype=np.int64)
    there = np.where(layout.coin & (flip < 0.5), _code(FILLER), layout.slots)
    np.put_along_axis(archetype, order, there, axis=1)

    columns = _empty(len(seeds), rows)
    columns["kind"] = table["kind"][archetype]
    columns["protected"] = table["protected"][archetype]
    columns["managed_by"] = table["managed_by"][archetype]
    columns["region"] = _pick(place, len(REGIONS)) + 1
    _fill_money(columns, archetype, seed, row)
    _fill_use_and_truth(columns, archetype, seed, row, layout)
    grid = np.array([grid_intensities()[name] for name in REGIONS])
    columns["grid_g_per_kwh"] = grid[columns["region"] - 1]

    ids = [
        tuple(f"{PREFIXES[kind]}-{at:02d}" for at, kind in enumerate(kinds))
        for kinds in columns["kind"].tolist()
    ]
    edges = _edges(layout, there, order)
    vocabulary = {
        "name": ("",),
        "kind": KINDS,
        "service": ("", *SERVICES),
        "provider": ("", "aws"),
        "region": ("", *REGIONS),
        "size": size_table().names,
        "state": STATES,
        "essential": ESSENTIAL,
        "owner": ("", *OWNERS),
        "environment": ENVIRONMENTS,
        "managed_by": MANAGERS,
        "dependants": ("", *(f"{p}-{at:02d}" for p in PREFIXES for at in range(rows))),
    }
    _fill_dependants(columns, edges, rows)
    return Generated(columns, ids, vocabulary, edges, archetype)


@cache
def _archetype_table() -> Mapping[str, NDArray[Any]]:
    """The archetypes as arrays over their codes; ranges as low and span."""
    codes = size_codes()
    most = max(len(archetype.sizes) for archetype in ARCHETYPES)
    sizes = np.zeros((len(ARCHETYPES), most), dtype=np.int32)
    for position, archetype in enumerate(ARCHETYPES):
        sizes[position, : len(archetype.sizes)] = [codes[name] for name in archetype.sizes]
    table: dict[str, NDArray[Any]] = {
        "sizes": sizes,
        "size_count": np.array([max(1, len(archetype.sizes)) for archetype in ARCHETYPES]),
        "kind": np.array([KINDS.index(a.kind) for a in ARCHETYPES], dtype=np.int8),
        "metered": np.array([a.kind in METERED_KINDS for a in ARCHETYPES]),
        "protected": np.array([a.protected for a in ARCHETYPES], dtype=np.uint8),
        "managed_by": np.array([MANAGERS.index(a.managed_by) for a in ARCHETYPES], dtype=np.int8),
        "essential": np.array([a.essential for a in ARCHETYPES]),
        "environments": np.array([np.cumsum(a.environments) for a in ARCHETYPES]),
    }
    for name in ("cpu_percent", "memory_percent", "idle_hours", "usd_per_hour"):
        low, high = np.array([getattr(archetype, name) for archetype in ARCHETYPES]).T
        table[f"{name}.low"], table[f"{name}.span"] = low, high - low
    return table


@cache
def _code(name: str) -> int:
    return next(code for code, archetype in enumerate(ARCHETYPES) if archetype.name == name)


def _pick(uniform: NDArray[np.float64], count: int | NDArray[Any]) -> NDArray[np.int32]:
    """A position below `count`, equally likely."""
    position: NDArray[np.int32] = np.minimum(uniform * count, np.asarray(count) - 1).astype(
        np.int32
    )
    return position


def _empty(batch: int, rows: int) -> dict[str, NDArray[Any]]:
    shape = (batch, rows)
    zeros: dict[str, NDArray[Any]] = {
        "ordinal": np.broadcast_to(np.arange(rows, dtype=np.uint32), shape),
        "name": np.zeros(shape, dtype=np.int32),
        "provider": np.ones(shape, dtype=np.int32),
        "state": np.zeros(shape, dtype=np.int8),
        "dependants": np.zeros(shape, dtype=np.int32),
        "live_dependants": np.zeros(shape, dtype=np.int32),
        "billed_usd_per_hour": np.full(shape, np.nan),
    }
    for name, dtype, _ in INVENTORY_COLUMNS:
        if dtype == "|u1" and name != "protected":
            zeros[name] = np.zeros(shape, dtype=np.uint8)
    return zeros


def _fill_money(
    columns: dict[str, NDArray[Any]], archetype: NDArray[Any], seed: Any, row: Any
) -> None:
    table = _archetype_table()
    size, amount, service, owner = uniforms(seed, row, _MONEY, 0)
    code = table["sizes"][archetype, _pick(size, table["size_count"][archetype])]
    flat = table["usd_per_hour.low"][archetype] + amount * table["usd_per_hour.span"][archetype]
    cost = np.where(code > 0, size_table().usd_per_hour[code], flat)
    columns["size"] = code
    columns["cost_usd_per_hour"] = np.rint(cost * NANO) / NANO
    columns["start_usd_per_hour"] = columns["cost_usd_per_hour"]
    columns["service"] = _pick(service, len(SERVICES)) + 1
    columns["owner"] = _pick(owner, len(OWNERS)) + 1


def _fill_use_and_truth(
    columns: dict[str, NDArray[Any]], archetype: NDArray[Any], seed: Any, row: Any, layout: Layout
) -> None:
    table = _archetype_table()
    cpu, memory, idle, age = uniforms(seed, row, _USE, 0)
    essential, tag, use_seen, need_seen = uniforms(seed, row, _TRUTH, 0)

    def drawn(name: str, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        value = table[f"{name}.low"][archetype] + uniform * table[f"{name}.span"][archetype]
        hundredths: NDArray[np.float64] = np.rint(value * 100.0) / 100.0
        return hundredths

    metered = table["metered"][archetype]
    use = {
        "cpu_percent": np.where(metered, drawn("cpu_percent", cpu), np.nan),
        "memory_percent": np.where(metered, drawn("memory_percent", memory), np.nan),
        "idle_hours": drawn("idle_hours", idle),
    }
    columns["age_hours"] = np.rint(use["idle_hours"] + 48.0 + age * 6000.0)
    protected = columns["protected"] != 0
    seen = (use_seen < layout.use_known_fraction) | protected
    for name, truth in use.items():
        columns[name] = np.where(seen, truth, np.nan)
        columns[f"h.{name}"] = np.where(seen, np.nan, truth)
    yes, no = ESSENTIAL.index("yes"), ESSENTIAL.index("no")
    needed = np.where(essential < table["essential"][archetype], yes, no).astype(np.int8)
    told = (need_seen < layout.essential_known_fraction) | protected
    columns["essential"] = np.where(told, needed, 0).astype(np.int8)
    columns["h.essential"] = np.where(told, 0, needed).astype(np.int8)
    bounds = table["environments"][archetype]
    environment = (tag[..., None] >= bounds).sum(axis=-1)
    columns["environment"] = np.minimum(environment, len(ENVIRONMENTS) - 1).astype(np.int32)


def _edges(layout: Layout, there: NDArray[Any], order: NDArray[Any]) -> Edges:
    """The dependencies of the slots that are really there, as rows."""
    slots = np.flatnonzero(layout.needed_by >= 0)
    world, which = np.nonzero(there[:, slots] == layout.slots[slots])
    needed = slots[which]
    return Edges(
        world=world.astype(np.int32),
        needed=order[world, needed].astype(np.int32),
        dependant=order[world, layout.needed_by[needed]].astype(np.int32),
    )


def _fill_dependants(columns: dict[str, NDArray[Any]], edges: Edges, rows: int) -> None:
    np.add.at(columns["live_dependants"], (edges.world, edges.needed), 1)
    kind = columns["kind"][edges.world, edges.dependant].astype(np.int32)
    columns["dependants"][edges.world, edges.needed] = 1 + kind * rows + edges.dependant
