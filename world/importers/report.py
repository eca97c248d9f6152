"""What an import did, in numbers that add up and words that say what is missing.

``rows == mapped + unattributed + ledger + Σ skipped`` always holds. The gap is
``|in − mapped − unattributed − ledger| ÷ Σ|row cost|``; a row whose cost cannot be read has no
amount, so it counts as one row of average size that went missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from world.importers.bill import Bill, RawTotals
from world.importers.money import ZERO, plain


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of importing one bill. Money is exact and in `currency`.

    Attributes:
        rows: Data rows of the bill.
        mapped: Usage rows that went to a resource.
        unattributed: Usage rows without a resource id.
        ledger: Rows of every other charge category.
        skipped: Reason → rows left out.
        total_in: Σ cost over the raw column, summed by a pass of its own.
        total_mapped: Σ cost of the mapped rows.
        total_unattributed: Σ cost of the unattributed rows.
        total_ledger: Σ cost of the ledger rows.
        ledger_totals: Charge category → Σ cost.
        total_billed: Σ BilledCost, for comparison with the invoice.
        gap_fraction: Share of the money that was lost between input and output, 0 is none.
        tolerance_fraction: The gap above which no scenario is written.
        resources: Inventory rows with a real resource id.
        resources_negative: Those that cost less than nothing.
        resources_free: Those that cost nothing.
        resources_unbilled: Those whose usage costs nothing and was billed nothing either.
        sizes_read: Resources whose machine size the bill names.
        sizes_known: Those whose size stands on the ladder.
        negative: Rows with a negative cost.
        fallback_effective: Rows where BilledCost was used because EffectiveCost is missing.
        zero_effective_nonzero_billed: Rows with EffectiveCost 0 and another BilledCost.
        currency: Currency of all amounts.
        currency_missing: Rows that name no currency.
        columns_unknown: Columns that no FOCUS version has.
        warnings: What a careful reader should know, one sentence each.
        dearest: The dearest resources and what is missing to act on each.
        start_usd_per_hour: Σ rate of the inventory, the scenario's starting cost.
        average_usd_per_hour: Usage ÷ hours that the bill covers, for comparison.
        metrics: How the metrics file met the bill; None without one.
        cloud: What a cloud scenario took from the bill; None where none was made.
        scenario: Path of the scenario that was written; None where none was.
    """

    rows: int
    mapped: int
    unattributed: int
    ledger: int
    skipped: Mapping[str, int]
    total_in: Decimal
    total_mapped: Decimal
    total_unattributed: Decimal
    total_ledger: Decimal
    ledger_totals: Mapping[str, Decimal]
    total_billed: Decimal
    gap_fraction: float
    tolerance_fraction: float
    resources: int
    resources_negative: int
    resources_free: int
    resources_unbilled: int
    sizes_read: int
    sizes_known: int
    negative: int
    fallback_effective: int
    zero_effective_nonzero_billed: int
    currency: str
    currency_missing: int
    columns_unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dearest: tuple[Mapping[str, Any], ...] = ()
    start_usd_per_hour: float = 0.0
    average_usd_per_hour: float = 0.0
    metrics: Mapping[str, Any] | None = field(default=None)
    cloud: Mapping[str, Any] | None = None
    scenario: str | None = None

    @property
    def reconciled(self) -> bool:
        """Whether the gap is within the tolerance; a scenario is written only then."""
        return self.gap_fraction <= self.tolerance_fraction

    def as_json(self) -> dict[str, Any]:
        """The report as JSON-plain values; each sum is the nearest float of its exact value."""
        return {
            "rows": self.rows,
            "mapped": self.mapped,
            "unattributed": self.unattributed,
            "ledger": self.ledger,
            "skipped": dict(self.skipped),
            "total_in": float(self.total_in),
            "total_mapped": float(self.total_mapped),
            "total_unattributed": float(self.total_unattributed),
            "total_ledger": float(self.total_ledger),
            "ledger_totals": {name: float(total) for name, total in self.ledger_totals.items()},
            "total_billed": float(self.total_billed),
            "gap_fraction": self.gap_fraction,
            "tolerance_fraction": self.tolerance_fraction,
            "reconciled": self.reconciled,
            "resources": self.resources,
            "resources_negative": self.resources_negative,
            "resources_free": self.resources_free,
            "resources_unbilled": self.resources_unbilled,
            "sizes_read": self.sizes_read,
            "sizes_known": self.sizes_known,
            "negative": self.negative,
            "fallback_effective": self.fallback_effective,
            "zero_effective_nonzero_billed": self.zero_effective_nonzero_billed,
            "currency": self.currency,
            "currency_missing": self.currency_missing,
            "columns_unknown": list(self.columns_unknown),
            "warnings": list(self.warnings),
            "dearest": [dict(row) for row in self.dearest],
            "start_usd_per_hour": self.start_usd_per_hour,
            "average_usd_per_hour": self.average_usd_per_hour,
            "metrics": None if self.metrics is None else dict(self.metrics),
            "cloud": None if self.cloud is None else dict(self.cloud),
            "scenario": self.scenario,
        }

    def lines(self) -> tuple[str, ...]:
        """The report for people, one line each."""
        money = self.currency
        lines = [
            f"{self.rows:,} rows: {self.mapped:,} mapped to {self.resources:,} resources, "
            f"{self.unattributed:,} unattributed, {self.ledger:,} ledger, "
            f"{sum(self.skipped.values()):,} skipped",
            *(f"  skipped {count:,}: {reason}" for reason, count in self.skipped.items()),
            f"in {_money(self.total_in)} {money} = mapped {_money(self.total_mapped)} "
            f"+ unattributed {_money(self.total_unattributed)} "
            f"+ ledger {_money(self.total_ledger)}; gap {self.gap_fraction:.3%}",
            f"billed {_money(self.total_billed)} {money}",
            *(f"note: {text}" for text in self.warnings),
        ]
        if self.dearest:
            lines.append("dearest resources, and what is missing to act on them:")
        for row in self.dearest:
            missing = ", ".join(row["missing"]) or "nothing is missing"
            rate = f"{row['cost_usd_per_hour']:.6g} {money}/h"
            lines.append(f"  {rate}  {row['id']}  ({row['kind']}): {missing}")
        return tuple(lines)


def _money(value: Decimal) -> str:
    return plain(value.quantize(Decimal("0.01"))) if abs(value) >= 1 else plain(value)


def gap_fraction(raw: RawTotals, bill: Bill) -> float:
    """How much money was lost between the raw column and the attributed rows, as a fraction.

    Unreadable rows count as rows of average size, which errs on the side of refusing.
    """
    lost = abs(raw.total_in - bill.total_mapped - bill.total_unattributed - bill.total_ledger)
    readable = raw.rows - raw.unreadable
    if not readable or not raw.total_absolute:
        return raw.unreadable / raw.rows if raw.unreadable else float(lost > ZERO)
    unseen = raw.total_absolute * raw.unreadable / readable
    return float((lost + unseen) / (raw.total_absolute + unseen))


def reconciliation(raw: RawTotals, bill: Bill, gap: float) -> dict[str, Any]:
    """The sums of an import as a scenario keeps them; money is text, so that it stays exact."""
    return {
        "rows": raw.rows,
        "mapped": bill.mapped,
        "unattributed": bill.unattributed,
        "ledger": bill.ledger,
        "skipped": sum(bill.skipped.values()),
        "total_in": plain(raw.total_in),
        "total_mapped": plain(bill.total_mapped),
        "total_unattributed": plain(bill.total_unattributed),
        "total_ledger": plain(bill.total_ledger),
        "total_billed": plain(raw.total_billed),
        "gap_fraction": gap,
    }
