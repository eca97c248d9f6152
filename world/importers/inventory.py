"""From a bill's sums to inventory rows: rates per hour, unique ids, and what is still missing.

A resource's rate is Σ cost of its usage ÷ the hours that its charges cover together: what it costs
while it runs. Unattributed usage becomes one protected row per service: it is shown, it counts in
the starting cost, and no action may touch it. What a bill cannot know (utilisation, and often
whether something is essential) is None until a metrics file says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from world.errors import ImportFileError
from world.importers.bill import UNATTRIBUTED, Bill, Item
from world.importers.ids import free_name, join_key, unique_ids
from world.importers.metrics import Metrics, ResourceMetrics
from world.importers.money import ZERO, plain
from world.importers.periods import SECONDS_PER_HOUR
from world.importers.tables import visible
from world.importers.tags import settle
from world.model import significant
from world.worlds.finops.schema import MAX_USD_PER_HOUR, METERED_KINDS, RESOURCE_COLUMNS
from world.worlds.finops.sizes import canonical_size

GONE_AFTER_HOURS: Final = 48.0
"""A resource without a charge in the last two days of the bill may be gone already."""

EXTRA_COLUMNS: Final = (
    "account",
    "listed_usd_per_hour",
    "cpu_max_percent",
    "memory_max_percent",
    "commitment",
    "pricing",
    "covered_hours",
    "uncharged_hours",
)
"""Columns beyond the world's own; each is written only where some row knows it.

`account` is provider and sub account, `commitment` the commitment discount that covers the row,
`covered_hours` the hours that its charges cover, `uncharged_hours` the hours from its last charge
to the end of the bill.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the inventory.

    Attributes:
        id: Unique id.
        cells: Column → value; None is unknown.
        rate: Cost in the bill's currency per hour, exact.
        missing: What somebody must find out before anything can be done with it.
        usage_rows: Rows of usage that it stands for; 0 where only corrections name it.
    """

    id: str
    cells: Mapping[str, Any]
    rate: Decimal
    missing: tuple[str, ...]
    usage_rows: int

    @property
    def shown(self) -> dict[str, Any]:
        """The row as the report lists it."""
        keys = ("name", "kind", "service", "size", "environment", "owner")
        known = {key: self.cells[key] for key in keys if self.cells[key] is not None}
        return {
            "id": self.id,
            "cost_usd_per_hour": self.cells["cost_usd_per_hour"],
            **known,
            "missing": list(self.missing),
        }


@dataclass(slots=True)
class MetricsJoin:
    """How a metrics file met the bill.

    Attributes:
        matched: Resources that the file says something about.
        unmatched: Ids of the file that no resource has.
        ambiguous: Ids of the file that several resources have.
        examples: A few of the unmatched ids.
    """

    matched: int = 0
    unmatched: int = 0
    ambiguous: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Inventory:
    """All rows of a bill, resources first, the dearest of them at the top.

    Attributes:
        resources: Rows with a real resource id.
        services: Protected rows of unattributed usage.
        join: How the metrics file met the bill; None without one.
        renamed: Resources whose id had to be told apart from another account's.
        refuted: Resources whose tags say not essential, in a production-like environment.
    """

    resources: tuple[Row, ...]
    services: tuple[Row, ...]
    join: MetricsJoin | None
    renamed: int
    refuted: int

    @property
    def start(self) -> Decimal:
        """Σ rate of all rows, per hour."""
        return sum((row.rate for row in (*self.resources, *self.services)), ZERO)

    def columns(self) -> dict[str, tuple[Any, ...]]:
        """Column name → one value per row, as a scenario holds them."""
        rows = (*self.resources, *self.services)
        names = [spec.name for spec in RESOURCE_COLUMNS]
        names += [
            name for name in EXTRA_COLUMNS if any(row.cells[name] is not None for row in rows)
        ]
        return {name: tuple(row.cells.get(name) for row in rows) for name in names}


def build_inventory(bill: Bill, metrics: Metrics | None) -> Inventory:
    """The inventory of a bill.

    Args:
        bill: The attributed bill.
        metrics: Utilisation and statements to join, or None.

    Raises:
        ImportFileError: A rate is beyond what the world accepts.
    """
    end_s = bill.covered.end_s or 0
    names = unique_ids([(item.id, item.account, item.provider) for item in bill.resources])
    join = _Join(bill.resources, metrics) if metrics else None
    rows: list[Row] = []
    refuted = 0
    for item, name in zip(bill.resources, names, strict=True):
        said = join.of(item, name) if join else None
        row = _row(item, name, said, end_s, protected=item.protected or item.is_commitment)
        rows.append(row)
        refuted += item.essential == "no" and row.cells["essential"] is None
    taken = set(names)
    services = []
    for item in bill.services:
        service = f"{UNATTRIBUTED}:{item.service or 'unknown service'}"
        name = free_name(service, item.provider, taken)
        services.append(_row(item, name, None, end_s, protected=True))
    return Inventory(
        resources=tuple(sorted(rows, key=_dearest_first)),
        services=tuple(sorted(services, key=_dearest_first)),
        join=join.finish() if join else None,
        renamed=sum(name != item.id for item, name in zip(bill.resources, names, strict=True)),
        refuted=refuted,
    )


def _dearest_first(row: Row) -> tuple[Decimal, str]:
    return (-row.rate, row.id)


class _Join:
    """What a metrics file says, found by a resource's own id or by its unique name."""

    def __init__(self, items: list[Item], metrics: Metrics) -> None:
        self._said = metrics.by_id
        counts = Counter(join_key(item.id) for item in items)
        self._shared = {name for name, count in counts.items() if count > 1}
        self._used: set[str] = set()
        self.result = MetricsJoin()

    def of(self, item: Item, name: str) -> ResourceMetrics | None:
        """What the file says about one resource; an id that several resources share says none."""
        own = join_key(item.id)
        for key in (join_key(name), own):
            if key in self._said and (key != own or own not in self._shared):
                self._used.add(key)
                self.result.matched += 1
                return self._said[key]
        return None

    def finish(self) -> MetricsJoin:
        """Count what was not used."""
        for key in self._said:
            if key in self._used:
                continue
            if key in self._shared:
                self.result.ambiguous += 1
                continue
            self.result.unmatched += 1
            if len(self.result.examples) < 3:
                self.result.examples.append(visible(key, 80))
        return self.result


def _row(
    item: Item, name: str, said: ResourceMetrics | None, end_s: int, *, protected: bool
) -> Row:
    kind = item.evidence.kind
    rate = _per_hour(item.effective, item, name)
    essential = settle(item.essential, item.environment, said.essential if said else None)
    cpu = said.cpu if said else (None, None)
    memory = said.memory if said else (None, None)
    last = item.covered.end_s
    cells: dict[str, Any] = {
        "id": name,
        "name": item.name or None,
        "kind": kind,
        "service": item.service or None,
        "provider": item.provider or None,
        "region": item.region or None,
        "size": item.size,
        "cost_usd_per_hour": significant(float(rate)),
        "cpu_percent": _rounded(cpu[0]),
        "memory_percent": _rounded(memory[0]),
        "idle_hours": _rounded(said.idle_hours if said else None),
        "age_hours": None,
        "essential": essential,
        "owner": (said.owner if said else None) or item.owner,
        "environment": item.environment,
        "dependants": None,
        "protected": protected,
        "managed_by": item.managed_by,
        "billed_usd_per_hour": significant(float(_per_hour(item.billed, item, name))),
        "account": "/".join(filter(None, (item.provider, item.account))) or None,
        "listed_usd_per_hour": significant(float(_per_hour(item.listed, item, name))) or None,
        "cpu_max_percent": _rounded(cpu[1]),
        "memory_max_percent": _rounded(memory[1]),
        "commitment": item.commitment,
        "pricing": item.pricing or None,
        "covered_hours": significant(item.covered.hours),
        "uncharged_hours": None if last is None else significant((end_s - last) / 3600),
    }
    return Row(name, cells, rate, _missing(cells), item.usage_rows)


def _per_hour(total: Decimal, item: Item, name: str) -> Decimal:
    """A sum divided by the hours that the charges cover; 0 where they cover none."""
    seconds = item.covered.seconds
    if not seconds or not total:
        return ZERO
    rate = total * SECONDS_PER_HOUR / seconds
    if abs(rate) > Decimal(MAX_USD_PER_HOUR):
        raise ImportFileError(
            f"resource {visible(name, 80)} costs {plain(total)} for {seconds} seconds",
            f"a rate beyond ±{MAX_USD_PER_HOUR:,.0f} an hour is no rate of one resource",
            "Check its cost and charge period",
        )
    return rate


def _rounded(value: float | None) -> float | None:
    return None if value is None else significant(value)


def _missing(cells: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands between a row and any action on it, in words."""
    if cells["protected"]:
        return ("nothing: it is protected",)
    if cells["managed_by"] is not None:
        return (f"nothing here: change it where it is managed ({cells['managed_by']})",)
    missing = []
    if cells["kind"] in METERED_KINDS:
        missing += [name for name in ("cpu_percent", "memory_percent") if cells[name] is None]
        size = cells["size"]
        if size is None:
            missing.append("size (to resize)")
        elif canonical_size(size) != size:
            missing.append(f"a size on the ladder ({size} is not)")
    elif cells["idle_hours"] is None:
        missing.append("idle_hours")
    if cells["essential"] is None:
        missing.append("essential (yes or no)")
    return tuple(missing)
