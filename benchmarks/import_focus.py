"""How fast a FOCUS bill is imported, and how memory grows with its rows.

Each measurement imports a synthetic bill (44 columns, hourly rows of a fixed set of resources) in a
process of its own: rows per second are the median of the repeats, peak memory is the process's
largest resident set. With the resources fixed, ten times the rows must not need ten times the
memory. Prints one JSON document.

Run: ``python -m benchmarks.import_focus [--repeats N]``
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

SMALL_ROWS = 10_000
LARGE_ROWS = 100_000
RESOURCES = 500

_COLUMNS = [
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
]
_SIZES = ("m5.large", "m5.xlarge", "c5.2xlarge", "r5.4xlarge", "t3.medium")


def rows(count: int) -> Iterator[list[str]]:
    """Synthetic bill lines; every cost is different, as in a real bill."""
    start = datetime(2026, 6, 1, tzinfo=UTC)
    for number in range(count):
        resource = number % RESOURCES
        hour = start + timedelta(hours=number // RESOURCES)
        cost = f"{0.01 * (resource % 97 + 1) + 1e-7 * number:.11f}"
        size = _SIZES[resource % len(_SIZES)]
        values = {
            "BilledCost": cost,
            "EffectiveCost": cost,
            "ListCost": cost,
            "BillingCurrency": "USD",
            "ChargeCategory": "Usage",
            "ChargeDescription": f"${cost[:6]} per On Demand Linux {size} Instance Hour",
            "ChargePeriodStart": f"{hour:%Y-%m-%d %H:%M:%S}",
            "ChargePeriodEnd": f"{hour + timedelta(hours=1):%Y-%m-%d %H:%M:%S}",
            "ProviderName": "AWS",
            "RegionId": "us-east-1",
            "ResourceId": f"i-{resource:017x}",
            "ResourceType": "instance",
            "ServiceCategory": "Compute",
            "ServiceName": "Amazon Elastic Compute Cloud",
            "SubAccountId": str(1000 + resource % 7),
            "Tags": json.dumps({"application": f"app-{resource % 40}", "environment": "dev"}),
        }
        yield [values.get(name, "NULL") for name in _COLUMNS]


def write_bill(path: Path, count: int) -> None:
    """Write a synthetic bill."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(_COLUMNS)
        writer.writerows(rows(count))


def measure(path: Path) -> dict[str, float]:
    """Import one bill in this process: seconds and the largest resident set in MiB."""
    import resource

    from world.importers.focus import import_focus

    began = time.perf_counter()
    report = import_focus(path)
    seconds = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    return {"rows": report.rows, "seconds": seconds, "peak_mib": peak_mib}


def _in_process(path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.import_focus", "--measure", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Measure both sizes and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    result: dict[str, object] = {}
    peaks: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (SMALL_ROWS, LARGE_ROWS):
            path = Path(folder) / f"bill-{count}.csv"
            write_bill(path, count)
            runs = [_in_process(path) for _ in range(options.repeats)]
            speed = statistics.median(run["rows"] / run["seconds"] for run in runs)
            peaks[count] = statistics.median(run["peak_mib"] for run in runs)
            result[f"import_focus_{count}_rows"] = {
                "value": round(speed),
                "unit": "rows/s",
                "peak_mib": round(peaks[count], 1),
                "bill_mib": round(path.stat().st_size / 2**20, 1),
                "n": options.repeats,
            }
    result["peak_memory_growth"] = {
        "value": round(peaks[LARGE_ROWS] / peaks[SMALL_ROWS], 3),
        "unit": "ratio",
        "reference": f"{LARGE_ROWS} rows against {SMALL_ROWS}, {RESOURCES} resources in both",
        "n": options.repeats,
    }
    result["machine"] = platform.machine()
    result["versions"] = {"python": platform.python_version()}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
