"""How fast grid hours, demand and Prometheus samples are imported.

Synthetic files of a fixed number of rows are imported in this process; rows per second are the
median of the repeats. Prints one JSON document.

Run: ``python -m benchmarks.import_series [--repeats N]``
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from world.importers.demand import import_demand
from world.importers.grid import import_grid
from world.importers.intake import SeriesReport
from world.importers.prometheus import PrometheusOptions, import_prometheus

GRID_HOURS = 8_760 * 5
DEMAND_HOURS = 20_000
SERVICES = ("web", "api", "batch", "search", "checkout")
SERIES, POINTS = 10, 10_000
START = datetime(2021, 1, 1, tzinfo=UTC)


def write_grid(path: Path) -> None:
    """Five years of hours, as dc-rl writes them."""
    lines = ["timestamp,WND,SUN,NG,avg_CI"]
    for hour in range(GRID_HOURS):
        moment = (START + timedelta(hours=hour)).isoformat(" ")
        lines.append(f"{moment},3130.0,{hour % 24},6764.0,{200 + (hour * 7919) % 1000 / 7:.12f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_demand(path: Path) -> None:
    """Hours of five services."""
    lines = ["hour,service,rps"]
    lines += [
        f"{hour},{service},{100 + (hour * 31 + at) % 97 / 3:.6f}"
        for hour in range(DEMAND_HOURS)
        for at, service in enumerate(SERVICES)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_answer(path: Path) -> None:
    """An answer of query_range with ten long series."""
    first = int(START.timestamp())
    result = [
        {
            "metric": {"instance": f"i-{number:04d}"},
            "values": [[first + 60 * at, f"{(at * 13 + number) % 100}.5"] for at in range(POINTS)],
        }
        for number in range(SERIES)
    ]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    path.write_text(json.dumps(document), encoding="utf-8")


def _grid(path: Path) -> SeriesReport:
    return import_grid(path, region="us-west-1")


def _answer(path: Path) -> SeriesReport:
    return import_prometheus([path], options=PrometheusOptions(metric="cpu_percent"))


CASES: dict[str, tuple[Callable[[Path], None], Callable[[Path], SeriesReport]]] = {
    "import_grid": (write_grid, _grid),
    "import_demand": (write_demand, import_demand),
    "import_prometheus": (write_answer, _answer),
}


def main() -> None:
    """Measure every case and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    result: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (write, measured) in CASES.items():
            path = Path(folder) / name
            write(path)
            speeds = []
            for _ in range(options.repeats):
                began = time.perf_counter()
                report = measured(path)
                speeds.append(report.rows / (time.perf_counter() - began))
            result[f"{name}_{report.rows}_rows"] = {
                "value": round(statistics.median(speeds)),
                "unit": "rows/s",
                "n": options.repeats,
            }
    result["machine"] = platform.machine()
    result["versions"] = {"python": platform.python_version()}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
