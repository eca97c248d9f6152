"""A FOCUS bill as sums: each row counts once, for a resource, unattributed, ledger or skipped.

The bill is read twice. `sum_raw` adds up the cost columns and knows nothing else; `read_bill`
attributes each row. What the two disagree about is the gap that the report shows.

Basis: EffectiveCost (amortised), BilledCost only where EffectiveCost is missing, never where it is
0. Usage with a resource id is the resource's; usage without one is unattributed; every other
charge category is ledger. A resource that only corrections (Credit, Tax, Adjustment) name exists at
cost 0; what a Purchase names is a contract and no resource.

Source: FOCUS specification 1.0 (2024-06) to 1.3 (2025-12), https://focus.finops.org.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from world.errors import ImportFileError
from world.importers import kinds
from world.importers.bill_formats import format_of
from world.importers.focus_columns import COLUMNS, NEEDED, SPECIFIED
from world.importers.ids import identity
from world.importers.money import (
    EXACT,
    NOT_A_NUMBER,
    USD,
    ZERO,
    Rates,
    parse_amount,
    parse_currency,
)
from world.importers.periods import (
    SECONDS_PER_HOUR,
    Coverage,
    parse_instant,
    refuse_local_date,
)
from world.importers.tables import TableReader, column_key, is_missing, visible
from world.importers.tags import Essential, Manager, Tags, is_production, read_tags

COST_MISSING: Final = "cost is missing"
PERIOD_MISSING: Final = "charge period is missing"
PERIOD_UNREADABLE: Final = "charge period is not ISO 8601"
PERIOD_EMPTY: Final = "charge period does not end after it starts"
PERIOD_TOO_LONG: Final = "charge period is longer than 400 days"

UNATTRIBUTED: Final = "unattributed"
_LONGEST_PERIOD_S: Final = 400 * 24 * SECONDS_PER_HOUR
_MOST_LINES: Final = 16
"""Distinct bill lines remembered for each resource, so that memory does not follow the rows."""


class Line(NamedTuple):
    """What a row says beside its key, its period and its cost, as written."""

    category: str
    service: str
    kind: str
    meter: str
    details: str
    description: str
    name: str
    region: str
    region_name: str
    pricing: str
    commitment: str
    commitment_status: str
    commitment_type: str
    tags: str


_LINE_COLUMNS: Final = Line(
    category="ServiceCategory",
    service="ServiceName",
    kind="ResourceType",
    meter="SkuMeter",
    details="SkuPriceDetails",
    description="ChargeDescription",
    name="ResourceName",
    region="Region",
    region_name="RegionName",
    pricing="PricingCategory",
    commitment="CommitmentId",
    commitment_status="CommitmentStatus",
    commitment_type="CommitmentType",
    tags="Tags",
)

_CORRECTIONS: Final = frozenset({"credit", "tax", "adjustment"})
_CATEGORIES: Final = _CORRECTIONS | {"usage", "purchase"}


@dataclass(frozen=True, slots=True)
class RawTotals:
    """What the cost columns add up to, whatever the rows mean.

    Attributes:
        currency: Currency of all totals: the bill's only one, or USD after conversion.
        assumed_currency: Whether no row named a currency and USD was assumed.
        unnamed: Rows that name no currency; they count in the only one that others name.
        factors: Currency as on a row → units of `currency` for one unit of it.
        rows: Data rows, those that could not be read included.
        unreadable: Rows without a readable cost.
        total_in: Σ cost by the basis rule.
        total_absolute: Σ |cost|.
        total_billed: Σ BilledCost, where it is readable.
        columns_unknown: Columns that no FOCUS version has, custom ``x_`` columns left out.
        sha256: Digest of the uncompressed bill.
    """

    currency: str
    assumed_currency: bool
    unnamed: int
    factors: dict[str, Decimal]
    rows: int
    unreadable: int
    total_in: Decimal
    total_absolute: Decimal
    total_billed: Decimal
    columns_unknown: tuple[str, ...]
    sha256: str


@dataclass(slots=True)
class _Sums:
    rows: int = 0
    total: Decimal = ZERO
    absolute: Decimal = ZERO
    billed: Decimal = ZERO


def sum_raw(bill: Path, rates: Rates | None = None) -> RawTotals:
    """Add up the cost columns of a bill, currency by currency.

    Raises:
        ImportFileError: The file is no bill, has no rows, mixes currencies without rates, or has a
            currency that is no code.
    """
    with TableReader(bill, COLUMNS, "bill") as table, localcontext(EXACT):
        at = _positions(table)
        effective, billed = at.get("EffectiveCost"), at.get("BilledCost")
        money = at.get("BillingCurrency")
        sums: dict[str, _Sums] = {}
        rows = unreadable = 0
        for row in table:
            rows += 1
            text = row[effective] if effective is not None else ""
            paid = row[billed] if billed is not None else ""
            cost = parse_amount(paid if is_missing(text) else text)
            code = row[money] if money is not None else ""
            entry = sums.get(code)
            if entry is None:
                _check_currency(bill, code, rows, table.line)
                entry = sums[code] = _Sums()
            entry.rows += 1
            if cost is None:
                unreadable += 1
            else:
                entry.total += cost
                entry.absolute += abs(cost)
            amount = parse_amount(paid)
            if amount:
                entry.billed += amount
        broken = sum(table.skipped.values())
        if not rows + broken:
            raise ImportFileError(
                f"{bill} has a header and no rows",
                "an empty bill says nothing about an inventory",
                "Export a period with usage",
            )
        unnamed = sum(entry.rows for code, entry in sums.items() if is_missing(code))
        currency, assumed, factors = _currencies(bill, set(sums), rates)
        return RawTotals(
            currency=currency,
            assumed_currency=assumed,
            unnamed=unnamed,
            factors=factors,
            rows=rows + broken,
            unreadable=unreadable + broken,
            total_in=sum((entry.total * factors[code] for code, entry in sums.items()), ZERO),
            total_absolute=sum(
                (entry.absolute * factors[code] for code, entry in sums.items()), ZERO
            ),
            total_billed=sum((entry.billed * factors[code] for code, entry in sums.items()), ZERO),
            columns_unknown=tuple(
                visible(name, 60)
                for name in table.header
                if column_key(name) not in SPECIFIED and not name.casefold().startswith("x_")
            ),
            sha256=table.sha256,
        )


def _positions(table: TableReader) -> dict[str, int]:
    at = table.positions(COLUMNS)
    missing = [name for name in NEEDED if name not in at]
    if "EffectiveCost" not in at and "BilledCost" not in at:
        missing.insert(0, "EffectiveCost (or BilledCost)")
    if missing:
        known = format_of(table.header)
        if known is not None:
            raise ImportFileError(
                f"{table.path} is {known.name}",
                "its own line types cancel each other and are not summed here; FOCUS is read",
                known.fix,
            )
        raise table.missing(missing, "Export the bill in the FOCUS format, version 1.0 or later")
    return at


def _check_currency(bill: Path, text: str, row: int, line: int) -> None:
    """Refuse a currency that is written and cannot be read: its amounts may be anything."""
    if not is_missing(text) and not parse_currency(text):
        raise ImportFileError(
            f"{bill}, row {row} (line {line}): BillingCurrency is {visible(text, 40)!r}",
            "that is no currency code, so nobody can say what its amounts are worth",
            "Write the ISO 4217 code, for example USD",
        )


def _currencies(
    bill: Path, written: set[str], rates: Rates | None
) -> tuple[str, bool, dict[str, Decimal]]:
    """The currency of the totals, whether it was assumed, and the factor of each spelling."""
    codes = {text: parse_currency(text) for text in written}
    named = sorted({code for code in codes.values() if code})
    if len(named) > 1 and rates is None:
        raise ImportFileError(
            f"{bill} mixes the currencies {', '.join(named)}",
            "amounts in different currencies cannot be summed",
            "Give a rates file (currency,usd_per_unit): --rates RATES.csv",
        )
    if len(named) > 1 and "" in codes.values():
        raise ImportFileError(
            f"{bill} has rows that name no currency",
            f"the others are in {', '.join(named)}",
            "Fill in BillingCurrency",
        )
    only = named[0] if named else USD
    if rates is None:
        return only, not named, dict.fromkeys(codes, Decimal(1))
    factors = {text: rates.factor(code or only, bill) for text, code in codes.items()}
    return USD, not named, factors


class Item:
    """One resource (or one service's unattributed usage) with all that its rows say.

    Attributes:
        provider: Who bills it, as written; "" is unknown.
        account: The sub account, as written; "" is unknown.
        id: Its id as first written; "" for unattributed usage.
        effective: Σ cost of its usage, by the basis rule.
        billed: Σ BilledCost of its usage.
        listed: Σ ListCost of its usage.
        covered: The time that its usage covers.
        usage_rows: Rows of usage.
        evidence: The strongest evidence of what it is.
        size: The latest size that its lines name, or None.
        essential: ``yes``, ``no`` or None; ``yes`` wins where rows differ.
        commitment: What commitment discount covers it, or None.
        is_commitment: Whether it is a commitment itself, with nothing to stop.
    """

    __slots__ = (
        "account",
        "billed",
        "commitment",
        "covered",
        "effective",
        "environment",
        "essential",
        "evidence",
        "id",
        "is_commitment",
        "lines",
        "listed",
        "managed_by",
        "name",
        "owner",
        "pricing",
        "protected",
        "provider",
        "region",
        "service",
        "size",
        "size_from_s",
        "usage_rows",
    )

    def __init__(self, provider: str, account: str, resource: str) -> None:
        self.provider = provider
        self.account = account
        self.id = resource
        self.effective = self.billed = self.listed = ZERO
        self.covered = Coverage()
        self.usage_rows = 0
        self.lines: dict[Line, str | None] = {}
        self.evidence = kinds.kind_of_id(resource)
        self.name = self.service = self.region = ""
        self.pricing = ""
        self.size: str | None = None
        self.size_from_s = -(1 << 62)
        self.essential: Essential | None = None
        self.owner: str | None = None
        self.environment: str | None = None
        self.managed_by: Manager | None = None
        self.protected = False
        self.commitment: str | None = None
        self.is_commitment = False

    def describe(self, line: Line) -> str | None:
        """Take in what one line says; returns the machine size that it names, or None.

        Unattributed usage comes from many places at once: of it only the service is taken.
        """
        self.service = self.service or _said(line.service, 120)
        by_service = kinds.kind_of_service(line.category, line.service)
        if not self.id:
            self.evidence = max(self.evidence, by_service, key=_strength)
            return None
        self.evidence = max(
            self.evidence,
            kinds.kind_of_type(line.kind, line.category, line.service),
            kinds.kind_of_charge(line.meter),
            kinds.kind_of_charge(line.description),
            by_service,
            key=_strength,
        )
        self.name = self.name or _said(line.name, 256)
        self.region = self.region or _said(line.region, 80) or _said(line.region_name, 80)
        self.pricing = self.pricing or _said(line.pricing, 40)
        self._commit(line)
        self.merge_tags(read_tags(line.tags))
        return (
            kinds.size_in_details(line.details)
            or kinds.size_in_text(line.meter)
            or kinds.size_in_text(line.description)
        )

    def _commit(self, line: Line) -> None:
        """Take in which commitment discount covers the line, if one does."""
        if is_missing(line.commitment) and is_missing(line.commitment_status):
            return
        kind = _said(line.commitment_type, 60) or "commitment discount"
        self.commitment = self.commitment or kind
        unused = line.commitment_status.strip().casefold() == "unused"
        itself = identity(visible(line.commitment)) == identity(self.id)
        self.is_commitment = self.is_commitment or unused or itself

    def merge_tags(self, tags: Tags) -> None:
        """Take in what the tags of one row say; the careful statement wins over the others."""
        if tags.essential == "yes" or self.essential is None:
            self.essential = tags.essential or self.essential
        if tags.environment and (
            self.environment is None
            or (is_production(tags.environment) and not is_production(self.environment))
        ):
            self.environment = tags.environment
        self.name = self.name or tags.name or ""
        self.owner = self.owner or tags.owner
        self.managed_by = self.managed_by or tags.managed_by
        self.protected = self.protected or tags.protected


@dataclass(slots=True)
class Bill:
    """A bill, attributed.

    Attributes:
        resources: Items with an id, in the order of their first row.
        services: Unattributed usage by provider and service.
        mapped: Rows that went to a resource.
        unattributed: Usage rows without a resource id.
        ledger: Rows of every other category.
        skipped: Reason → rows left out.
        total_mapped: Σ cost of the mapped rows, in the currency of the totals; and so on.
        ledger_totals: Charge category as written → Σ cost.
        negative: Rows whose cost is below 0.
        fallback_effective: Rows where BilledCost stood in for a missing EffectiveCost.
        zero_effective_nonzero_billed: Rows with EffectiveCost 0 and another BilledCost.
        naive: Charge periods without a time zone, read as UTC.
        corrections: Usage rows that correct an earlier bill.
        unknown_categories: Ledger rows whose category no FOCUS version has.
        unreadable_tags: Rows whose tags are no JSON object.
        covered: The time that all usage covers.
    """

    resources: list[Item] = field(default_factory=list)
    services: list[Item] = field(default_factory=list)
    mapped: int = 0
    unattributed: int = 0
    ledger: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    total_mapped: Decimal = ZERO
    total_unattributed: Decimal = ZERO
    total_ledger: Decimal = ZERO
    ledger_totals: dict[str, Decimal] = field(default_factory=dict)
    negative: int = 0
    fallback_effective: int = 0
    zero_effective_nonzero_billed: int = 0
    naive: int = 0
    corrections: int = 0
    unknown_categories: int = 0
    unreadable_tags: int = 0
    covered: Coverage = field(default_factory=Coverage)


def read_bill(path: Path, raw: RawTotals) -> Bill:
    """Attribute every row of a bill.

    Args:
        path: The bill.
        raw: What `sum_raw` found; it holds the currency factors.

    Raises:
        ImportFileError: The file cannot be read, or has changed since `sum_raw`.
    """
    with TableReader(path, COLUMNS, "bill") as table, localcontext(EXACT):
        reading = _Reading(_positions(table), raw, path)
        take = reading.take
        for row in table:
            take(row)
        if table.sha256 != raw.sha256:
            raise ImportFileError(
                f"{path} changed while it was read", "its sums would not hold", "Import it again"
            )
        bill = reading.bill
        bill.skipped.update(table.skipped)
        return bill


class _Reading:
    """The rows of a bill as they come."""

    def __init__(self, at: dict[str, int], raw: RawTotals, path: Path) -> None:
        self.bill = Bill()
        self._path = path
        self._factors = raw.factors
        self._converted = any(factor != 1 for factor in raw.factors.values())
        self._by_written: dict[tuple[str, str, str], Item] = {}
        self._by_key: dict[tuple[str, str, str], Item] = {}
        self._services: dict[tuple[str, str], Item] = {}
        # An absent column reads the empty field that `take` appends to each row.
        self._at = {name: at.get(name, -1) for name in COLUMNS}
        self._line = tuple(self._at[name] for name in _LINE_COLUMNS)
        self._cost_at = (self._at["EffectiveCost"], self._at["BilledCost"], self._at["ListCost"])
        self._key_at = (self._at["Provider"], self._at["Account"], self._at["ResourceId"])

    def take(self, row: list[str]) -> None:
        """Attribute one row."""
        row.append("")
        at, bill = self._at, self.bill
        text, paid, listed = (row[i] for i in self._cost_at)
        absent = is_missing(text)
        cost = parse_amount(paid if absent else text)
        if cost is None:
            nothing = absent and is_missing(paid)
            bill.skipped[COST_MISSING if nothing else NOT_A_NUMBER] += 1
            return
        billed = parse_amount(paid) or ZERO
        usual = parse_amount(listed) or ZERO
        plain_cost = cost
        if self._converted:
            factor = self._factors.get(row[at["BillingCurrency"]], ZERO)
            cost, billed, usual = cost * factor, billed * factor, usual * factor
        category = _category(row[at["ChargeCategory"]])
        if category != "usage":
            self._take_ledger(row, category, cost)
        elif not self._take_usage(row, cost, billed, usual):
            return
        if plain_cost < 0:
            bill.negative += 1
        if absent:
            bill.fallback_effective += 1
        elif not plain_cost and billed:
            bill.zero_effective_nonzero_billed += 1

    def _take_ledger(self, row: list[str], category: str, cost: Decimal) -> None:
        bill = self.bill
        bill.ledger += 1
        bill.total_ledger += cost
        shown = visible(row[self._at["ChargeCategory"]], 40) or "(none)"
        if len(bill.ledger_totals) >= _MOST_LINES and shown not in bill.ledger_totals:
            shown = "(others)"
        bill.ledger_totals[shown] = bill.ledger_totals.get(shown, ZERO) + cost
        if category not in _CATEGORIES:
            bill.unknown_categories += 1
        if category in _CORRECTIONS and not is_missing(row[self._at["ResourceId"]]):
            item = self._item(row)
            self._absorb(item, row)

    def _take_usage(self, row: list[str], cost: Decimal, billed: Decimal, listed: Decimal) -> bool:
        """Attribute a row of usage; False where it was skipped."""
        at, bill = self._at, self.bill
        start, end = (
            parse_instant(row[at["ChargePeriodStart"]]),
            parse_instant(row[at["ChargePeriodEnd"]]),
        )
        if start is None or end is None:
            for column in ("ChargePeriodStart", "ChargePeriodEnd"):
                refuse_local_date(self._path, column, row[at[column]])
            blank = is_missing(row[at["ChargePeriodStart"]]) or is_missing(
                row[at["ChargePeriodEnd"]]
            )
            bill.skipped[PERIOD_MISSING if blank else PERIOD_UNREADABLE] += 1
            return False
        length_s = end.epoch_s - start.epoch_s
        if not 0 < length_s <= _LONGEST_PERIOD_S:
            bill.skipped[PERIOD_TOO_LONG if length_s > 0 else PERIOD_EMPTY] += 1
            return False
        if is_missing(row[at["ResourceId"]]):
            item = self._service(row)
            bill.unattributed += 1
            bill.total_unattributed += cost
        else:
            item = self._item(row)
            bill.mapped += 1
            bill.total_mapped += cost
        if start.naive or end.naive:
            bill.naive += 1
        if row[at["ChargeClass"]].strip().casefold() == "correction":
            bill.corrections += 1
        item.effective += cost
        item.billed += billed
        item.listed += listed
        item.usage_rows += 1
        item.covered.add(start.epoch_s, end.epoch_s)
        bill.covered.add(start.epoch_s, end.epoch_s)
        size = self._absorb(item, row)
        if size is not None and start.epoch_s >= item.size_from_s:
            item.size, item.size_from_s = size, start.epoch_s
        return True

    def _item(self, row: list[str]) -> Item:
        provider, account, resource = (row[i] for i in self._key_at)
        written = (provider, account, resource)
        item = self._by_written.get(written)
        if item is None:
            owner = _said(provider, 80), _said(account, 200)
            name = visible(resource)
            key = (owner[0].casefold(), owner[1].casefold(), identity(name))
            item = self._by_key.get(key)
            if item is None:
                item = self._by_key[key] = Item(*owner, name)
                self.bill.resources.append(item)
            self._by_written[written] = item
        return item

    def _service(self, row: list[str]) -> Item:
        provider = _said(row[self._at["Provider"]], 80)
        key = (provider, row[self._at["ServiceName"]])
        item = self._services.get(key)
        if item is None:
            item = self._services[key] = Item(provider, "", "")
            self.bill.services.append(item)
        return item

    def _absorb(self, item: Item, row: list[str]) -> str | None:
        """Take in what a line says beside its cost; returns the machine size that it names."""
        line = Line._make([row[i] for i in self._line])
        if not read_tags(line.tags).readable:
            self.bill.unreadable_tags += 1
        if line in item.lines:
            return item.lines[line]
        if len(item.lines) >= _MOST_LINES:
            item.lines.clear()
        size = item.describe(line)
        item.lines[line] = size
        return size


def _strength(evidence: kinds.Evidence) -> int:
    return evidence.strength


@lru_cache(maxsize=1 << 10)
def _category(text: str) -> str:
    return text.strip().casefold()


@lru_cache(maxsize=1 << 12)
def _said(text: str, limit: int) -> str:
    """A field as visible text, or "" where it says nothing."""
    return "" if is_missing(text) else visible(text, limit)
