"""Small FOCUS bills, written row by row, each with the trap that a test is about."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

COLUMNS = (
    "BilledCost",
    "BillingCurrency",
    "ChargeCategory",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "EffectiveCost",
    "ListCost",
    "ProviderName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SubAccountId",
    "Tags",
)

USAGE: Mapping[str, str] = {
    "BilledCost": "1.5",
    "BillingCurrency": "USD",
    "ChargeCategory": "Usage",
    "ChargeDescription": "$0.192 per On Demand Linux m5.xlarge Instance Hour",
    "ChargePeriodEnd": "2026-06-01T01:00:00Z",
    "ChargePeriodStart": "2026-06-01T00:00:00Z",
    "EffectiveCost": "1",
    "ListCost": "2",
    "ProviderName": "AWS",
    "RegionId": "us-east-1",
    "RegionName": "US East (N. Virginia)",
    "ResourceId": "i-0001",
    "ResourceName": "web",
    "ResourceType": "instance",
    "ServiceCategory": "Compute",
    "ServiceName": "Amazon Elastic Compute Cloud",
    "SubAccountId": "111",
    "Tags": "{}",
}


def usage(**changes: str) -> dict[str, str]:
    """One row of usage, by default an hour of one machine for 1 USD."""
    return {**USAGE, **changes}


def hour(number: int) -> dict[str, str]:
    """The charge period of one hour of 1 June 2026."""
    return {
        "ChargePeriodStart": f"2026-06-01T{number:02d}:00:00Z",
        "ChargePeriodEnd": f"2026-06-01T{number + 1:02d}:00:00Z",
    }


def bill_text(
    rows: Iterable[Mapping[str, str]],
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
) -> str:
    """Rows as CSV. Columns that only some rows have are added at the end."""
    listed = list(rows)
    if columns is None:
        extra = {name: None for row in listed for name in row if name not in COLUMNS}
        columns = (*COLUMNS, *extra)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(name, "") for name in columns] for row in listed)
    return text.getvalue()


def write_bill(folder: Path, *rows: Mapping[str, str], name: str = "bill.csv") -> Path:
    """Write a bill and return its path; a name that ends in .gz is compressed."""
    path = folder / name
    content = bill_text(rows).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path
