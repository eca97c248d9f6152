"""Whatever stands in a file: numbers that add up or one clear line, and the same each time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.samples import START_S, answer, day, stamp, write_grid, write_json
from world.errors import WarRoomError
from world.importers.demand import DemandOptions, import_demand
from world.importers.grid import import_grid
from world.importers.intake import SeriesReport
from world.importers.kubernetes import import_kubernetes
from world.importers.prometheus import PrometheusOptions, import_prometheus
from world.importers.quantities import parse_quantity
from world.scenarios.loader import read_scenario

CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "NULL", "NaN", "0", "5", "1e3", "-1", "inf", "0.5", "2026-06-01T05:00Z"]),
    st.floats(width=32).map(str),
)
NAMES = st.sampled_from(
    ["timestamp", "avg_CI", "carbonIntensity", "zone", "isEstimated", "hour", "service", "rps",
     "cpu_load", "", "carbon intensity (direct)", "emissionFactorType", "x"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=10)
)
KEYS = st.sampled_from(
    ["status", "data", "resultType", "result", "metric", "values", "value", "kind", "items",
     "metadata", "name", "namespace", "containers", "usage", "cpu", "memory", "spec", "timestamp",
     "instance", "histograms", "phase", "resources", "requests"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["matrix", "vector", "success", "PodMetricsList", "PodMetrics", "Pod", "Node", "NodeMetrics",
     "250m", "1Gi", "i-1", "2026-06-01T00:00:00Z", "NaN", "5"]
)  # fmt: skip
JSON = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def folder() -> Any:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def check(report: SeriesReport) -> None:
    """What holds for every report."""
    assert report.rows == report.used + sum(report.skipped.values())
    assert 0 <= report.unusable <= report.rows
    assert all(count > 0 for count in report.skipped.values())
    json.dumps(report.as_json(), allow_nan=False)
    if report.unusable > report.limit_fraction * report.rows:
        assert not report.accepted


def attempt(call: Any) -> None:
    """Either a report that adds up or an error on one line."""
    refused: WarRoomError | None = None
    try:
        check(call())
    except WarRoomError as error:
        refused = error
    if refused is not None:
        assert refused.exit_code == 2
        assert "\n" not in refused.line()


@settings(max_examples=60, deadline=None)
@given(
    header=st.lists(NAMES, min_size=1, max_size=6),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=8),
)
def test_no_table_breaks_an_importer(
    folder: Path, header: list[str], rows: list[list[str]]
) -> None:
    lines = [",".join(row) for row in [header, *rows]]
    path = folder / "table.csv"
    path.write_bytes("\n".join(lines).encode("utf-8", "replace"))
    attempt(lambda: import_grid(path, region="us-east-1", series=True))
    attempt(lambda: import_demand(path))
    attempt(lambda: import_demand(path, options=DemandOptions(peak_rps=10.0)))


@settings(max_examples=100, deadline=None)
@given(document=JSON)
def test_no_json_breaks_an_importer(folder: Path, document: Any) -> None:
    path = folder / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    attempt(lambda: import_prometheus([path], options=PrometheusOptions("cpu_percent")))
    attempt(lambda: import_kubernetes([path]))
    wrapped = {"kind": "PodMetricsList", "items": [document]}
    path.write_text(json.dumps(wrapped), encoding="utf-8")
    attempt(lambda: import_kubernetes([path]))
    series = {"data": {"resultType": "matrix", "result": [{"metric": {"instance": "i"},
              "values": document if isinstance(document, list) else [document]}]}}  # fmt: skip
    path.write_text(json.dumps(series), encoding="utf-8")
    attempt(lambda: import_prometheus([path], options=PrometheusOptions("cpu_percent")))


@settings(max_examples=30, deadline=None)
@given(
    blank=st.sets(st.integers(0, 71), max_size=7),
    repeated=st.lists(st.integers(0, 71), max_size=10),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_rows_and_repeats_do_not_change_a_grid(
    folder: Path, blank: set[int], repeated: list[int], order: Any
) -> None:
    lines = [f"{stamp(hour)},{'' if hour in blank else day(hour)}" for hour in range(72)]
    straight = import_grid(write_grid(folder, lines))
    again = [*lines, *(lines[hour] for hour in repeated)]
    order.shuffle(again)
    shuffled = import_grid(write_grid(folder, again))
    for report in (straight, shuffled):
        check(report)
    assert shuffled.details["profile_g_per_kwh"] == straight.details["profile_g_per_kwh"]
    # An hour that is blank on all three days is unknown, never guessed.
    assert straight.details["profile_g_per_kwh"] == [
        None if {hour, hour + 24, hour + 48} <= blank else day(hour) for hour in range(24)
    ]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["web", "api"]), st.integers(1, 200), st.floats(0, 1e6)),
        max_size=30,
        unique_by=lambda point: point[:2],
    )
)
def test_what_a_demand_file_says_is_what_the_scenario_says(
    folder: Path, points: list[tuple[str, int, float]]
) -> None:
    given_points = [("web", 0, 1.0), ("api", 0, 2.0), *points]
    path = folder / "demand.csv"
    lines = [f"{hour},{service},{rps!r}" for service, hour, rps in given_points]
    path.write_text("\n".join(["hour,service,rps", *lines]), encoding="utf-8")
    report = import_demand(path, output=folder / "out.toml", limit_fraction=1.0)
    check(report)
    trace = read_scenario(folder / "out.toml").params["demand_trace"]
    read = {(point["service"], point["hour"]): point["rps"] for point in trace}
    tiny = [rps for _, _, rps in points if 0 < rps < 1e-40]  # beyond what an amount may be
    assert len(read) == len(given_points) - len(tiny)
    for service, hour, rps in given_points:
        if not 0 < rps < 1e-40:
            assert read[(service, hour)] == pytest.approx(rps, rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    growth=st.lists(st.integers(0, 50), min_size=1, max_size=40), resets=st.sets(st.integers(0, 39))
)
def test_a_counter_gives_back_its_growth_across_resets(
    folder: Path, growth: list[int], resets: set[int]
) -> None:
    total, values, seen = 10, [10], 0
    for number, more in enumerate(growth):
        if number in resets and more < total:
            total = more  # began again at 0 and grew since
        else:
            total += more
        seen += more
        values.append(total)
    samples = [[60 * number, str(value)] for number, value in enumerate(values)]
    path = write_json(folder / "counter.json", answer(({"instance": "i-1"}, samples)))
    options = PrometheusOptions("cpu_percent", counter=True, capacity=1e6)
    report = import_prometheus([path], options=options)
    check(report)
    percent = report.details["mean"] * report.details["samples_written"]
    assert percent / 100 * 1e6 * 60 == pytest.approx(seen, rel=1e-6)
    assert report.details["first"] == stamp(1 / 60)[:19] + "Z"
    assert START_S % 3600 == 0


@given(st.integers(0, 10**9), st.sampled_from(["m", "", "k", "M", "Ki", "Mi"]))
def test_quantities_are_numbers_times_their_suffix(number: int, suffix: str) -> None:
    scale = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "Ki": 2.0**10, "Mi": 2.0**20}[suffix]
    assert parse_quantity(f"{number}{suffix}") == pytest.approx(number * scale)
