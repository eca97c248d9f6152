"""Demand files: rates and normalised traces, and what a scenario makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import clouds
from tests.support.samples import stamp, write
from world.errors import ConfigError, ImportFileError, ScenarioError
from world.importers.demand import (
    CONFLICTING,
    OTHER_HOUR,
    OTHER_SERVICE,
    REPEATED,
    UNKNOWN_SERVICE,
    DemandOptions,
    import_demand,
    read_demand,
)
from world.importers.intake import SeriesReport
from world.scenarios.loader import load_scenario, read_scenario
from world.worlds.cloud import demand as cloud_demand

SAMPLES = Path(__file__).parents[3] / "shared" / "data"
ALIBABA = SAMPLES / "cpu_trace_alibaba_hourly_744h.csv"
GRID = SAMPLES / "grid_ci_CAISO_2022-01_hourly.csv"


def file(folder: Path, *lines: str) -> Path:
    return write(folder / "demand.csv", lines)


def imported(folder: Path, *lines: str, **options: Any) -> SeriesReport:
    return import_demand(file(folder, *lines), options=DemandOptions(**options))


def to_scenario(folder: Path, *lines: str, **options: Any) -> SeriesReport:
    return import_demand(
        file(folder, *lines), output=folder / "out.toml", options=DemandOptions(**options)
    )


def points(folder: Path) -> list[tuple[str, int, float]]:
    trace = read_scenario(folder / "out.toml").params["demand_trace"]
    return sorted((point["service"], point["hour"], point["rps"]) for point in trace)


def test_rates_by_hour_and_service_are_taken_as_they_are(tmp_path: Path) -> None:
    report = to_scenario(
        tmp_path, "hour,service,rps", "0,web,100", "0,api,40", "1,web,120.5", "1,api,50"
    )
    assert report.accepted
    assert (report.rows, report.used, report.skipped) == (4, 4, {})
    assert points(tmp_path) == [
        ("api", 0, 40.0), ("api", 1, 50.0), ("web", 0, 100.0), ("web", 1, 120.5),
    ]  # fmt: skip
    assert report.details["services"]["web"]["peak_over_start"] == 1.205
    assert any("the demand of batch stays generated" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("column", "per_second"),
    [("rps", 3600.0), ("requests_per_minute", 60.0), ("requests_per_hour", 1.0), ("QPS", 3600.0)],
)
def test_the_unit_of_a_rate_is_that_of_its_header(
    tmp_path: Path, column: str, per_second: float
) -> None:
    demand = read_demand(file(tmp_path, f"hour,{column}", "0,3600"))
    assert demand.by_service == {"": {0: pytest.approx(per_second)}}


def test_a_normalised_trace_is_scaled_to_its_stated_peak(tmp_path: Path) -> None:
    lines = (",cpu_load", "1,0.25", "2,0.5", "3,0.1")
    with pytest.raises(ConfigError, match="--peak-rps"):
        imported(tmp_path, *lines)
    report = to_scenario(tmp_path, *lines, peak_rps=900.0, services=("web",))
    assert points(tmp_path) == [("web", 0, 450.0), ("web", 1, 900.0), ("web", 2, 180.0)]
    assert report.details["clock"] == "index"
    assert report.details["normalised"] is True


def test_a_rate_needs_no_peak(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds rates already"):
        imported(tmp_path, "hour,rps", "0,1", peak_rps=5.0)


def test_percent_and_fraction_have_ranges_of_their_own(tmp_path: Path) -> None:
    percent = read_demand(file(tmp_path, "hour,cpu_percent", "0,50", "1,100", "2,101"))
    assert percent.by_service[""] == {0: 0.5, 1: 1.0}
    assert percent.intake.skipped == {"value is outside 0 to 100": 1}
    fraction = read_demand(file(tmp_path, ",cpu_load", "0,0.5", "1,1.5"))
    assert fraction.intake.skipped == {"value is outside 0 to 1": 1}


def test_a_trace_without_service_drives_every_service_with_users_and_says_so(
    tmp_path: Path,
) -> None:
    report = to_scenario(tmp_path, ",cpu_load", "0,0.5", "1,0.6", peak_rps=10.0)
    assert {name for name, _, _ in points(tmp_path)} == {"web", "api"}
    assert any("every service with users (web, api)" in text for text in report.warnings)


def test_samples_within_an_hour_are_averaged(tmp_path: Path) -> None:
    five = [f"{row},{0.2 if row % 2 else 0.4}" for row in range(24)]
    demand = read_demand(file(tmp_path, ",cpu_load", *five), DemandOptions(interval_minutes=5))
    assert demand.by_service[""] == {0: pytest.approx(0.3), 1: pytest.approx(0.3)}
    seconds = [f"{300 * row},web,{row}" for row in range(24)]
    demand = read_demand(file(tmp_path, "timestamp,service,rps", *seconds))
    assert demand.by_service["web"] == {0: 5.5, 1: 17.5}


def test_moments_count_from_the_first_hour(tmp_path: Path) -> None:
    lines = [f"{stamp(hour)[:19]},web,{hour}" for hour in (5, 6, 8)]
    demand = read_demand(file(tmp_path, "timestamp,service,rps", *lines))
    assert demand.by_service["web"] == {0: 5.0, 1: 6.0, 3: 8.0}
    assert demand.naive == 3


def test_missing_hours_are_counted_held_and_refused_past_the_limit(tmp_path: Path) -> None:
    hours = [hour for hour in range(20) if hour != 7]
    report = to_scenario(tmp_path, "hour,rps", *(f"{hour},5" for hour in hours))
    assert report.accepted
    assert report.details["missing_hours"] == 2  # of web and of api
    assert any("the hour before them goes on" in text for text in report.warnings)
    report = imported(tmp_path, "hour,rps", *(f"{hour},5" for hour in range(20) if hour % 3))
    assert "hours are missing" in report.refusals[0]


@pytest.mark.parametrize("text", ["", "NaN", "-1", "1,000", "lots", "1e10", "inf"])
def test_a_value_that_is_no_rate_is_counted_and_left_out(tmp_path: Path, text: str) -> None:
    lines = [f"{hour};{5 if hour != 3 else text}" for hour in range(20)]
    report = imported(tmp_path, "hour;rps", *lines)
    assert report.unusable == 1
    assert report.accepted
    assert report.rows == report.used + sum(report.skipped.values())


def test_an_hour_that_stands_twice_counts_once(tmp_path: Path) -> None:
    hours = [f"{hour},web,5" for hour in range(20)]
    report = imported(tmp_path, "hour,service,rps", *hours, "3,web,5", "4,web,6")
    assert report.skipped == {REPEATED: 1, CONFLICTING: 1}
    assert report.unusable == 1


def test_services_are_renamed_and_added_up(tmp_path: Path) -> None:
    lines = [f"{hour},{name},{rate}" for hour in (0, 1) for name, rate in (("fe", 5), ("be", 7))]
    lines = ["hour,service,rps", *lines, "0,cron,1", "1,cron,1"]
    report = to_scenario(tmp_path, *lines, services=("fe=web", "be=web"))
    assert points(tmp_path) == [("web", 0, 12.0), ("web", 1, 12.0)]
    assert report.skipped == {OTHER_SERVICE: 2}
    assert report.accepted


def test_services_that_the_scenario_lacks_are_counted_and_refused_past_the_limit(
    tmp_path: Path,
) -> None:
    lines = ["hour,service,rps", *(f"{h},{s},5" for h in range(4) for s in ("web", "frontend"))]
    report = to_scenario(tmp_path, *lines)
    assert report.skipped == {UNKNOWN_SERVICE: 4}
    assert not report.accepted
    assert not (tmp_path / "out.toml").exists()
    assert any("NAME_IN_FILE=NAME" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("services", "says"),
    [
        (("mars",), "--service names 'mars'"),
        (("api",), "no service 'api'"),
        (("nosuch=web",), "no service 'nosuch'"),
    ],
)
def test_a_service_that_is_not_there_is_refused(
    tmp_path: Path, services: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        to_scenario(tmp_path, "hour,service,rps", "0,web,5", services=services)


def test_hours_can_be_chosen_and_a_start_without_demand_is_refused(tmp_path: Path) -> None:
    lines = ["hour,rps", "0,0", "1,0", "2,5", "3,6", "4,7"]
    report = to_scenario(tmp_path, *lines, services=("web",))
    assert "web has no demand in the first hour" in report.refusals[0]
    assert "--from-hour 2" in report.refusals[0]
    report = to_scenario(tmp_path, *lines, services=("web",), from_hour=2, hours=2)
    assert points(tmp_path) == [("web", 0, 5.0), ("web", 1, 6.0)]
    assert report.skipped == {OTHER_HOUR: 3}


def test_a_steep_peak_is_told(tmp_path: Path) -> None:
    report = to_scenario(tmp_path, "hour,rps", "0,1", "1,3", services=("api",))
    assert any("api peaks at 3 times its first hour" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("hour,rps",), "has no rows"),
        (("service,rps", "web,5"), "no column hour"),
        (("hour,service,requests", "0,web,5"), "no column rps"),
        (("hour,hour,rps", "0,0,1"), "twice"),
    ],
)
def test_what_is_no_demand_file_is_one_clear_line(
    tmp_path: Path, lines: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ImportFileError, match=says) as refused:
        imported(tmp_path, *lines)
    assert "\n" not in refused.value.line()


@pytest.mark.parametrize(
    "options",
    [
        {"interval_minutes": 0},
        {"interval_minutes": float("nan")},
        {"from_hour": -1},
        {"hours": 0},
        {"peak_rps": -1.0},
        {"peak_rps": float("nan")},
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        imported(tmp_path, ",cpu_load", "0,0.5", **options)


def test_a_second_import_replaces_its_services_and_keeps_the_others(tmp_path: Path) -> None:
    to_scenario(tmp_path, "hour,service,rps", "0,web,1", "0,api,2")
    import_demand(
        file(tmp_path, "hour,rps", "0,9"),
        into=str(tmp_path / "out.toml"),
        output=tmp_path / "b.toml",
        options=DemandOptions(services=("web",)),
    )
    trace = read_scenario(tmp_path / "b.toml").params["demand_trace"]
    assert sorted((point["service"], point["rps"]) for point in trace) == [
        ("api", 2.0),
        ("web", 9.0),
    ]


def test_only_the_services_of_the_trace_follow_it(tmp_path: Path) -> None:
    to_scenario(tmp_path, "hour,rps", "0,10", "1,8", services=("web",))
    scenario = read_scenario(tmp_path / "out.toml")
    _, plain = clouds.opened(load_scenario("cloud/medium"), 1)
    _, traced = clouds.opened(scenario, 1)
    before = cloud_demand.regular(traced.settings, traced.columns, traced.hour)
    after = cloud_demand.regular(traced.settings, traced.columns, traced.hour + 1.0)
    generated = cloud_demand.regular(plain.settings, plain.columns, plain.hour)
    later = cloud_demand.regular(plain.settings, plain.columns, plain.hour + 1.0)
    assert after[0, 0] == pytest.approx(0.8 * before[0, 0])
    # The start is calibrated to the same numbers, and the others keep their own swing.
    np.testing.assert_allclose(before, generated, rtol=1e-9)
    np.testing.assert_allclose(after[0, 1:], later[0, 1:], rtol=1e-9)


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        ([{"hour": 0, "service": "web", "rps": 0.0}], "no demand in hour 0"),
        ([{"hour": 1, "service": "web", "rps": 5.0}], "no demand in hour 0"),
        ([{"hour": 0, "service": "web", "rps": 5.0}] * 2, "hour 0 of web twice"),
    ],
)
def test_a_scenario_whose_trace_contradicts_itself_is_refused(
    trace: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        clouds.opened(clouds.variant("medium", demand_trace=trace), 1)


@pytest.mark.skipif(
    not (ALIBABA.is_file() and GRID.is_file()), reason="the samples are not beside the checkout"
)
def test_a_scenario_runs_on_real_demand_and_a_real_grid(tmp_path: Path) -> None:
    from world.importers.grid import import_grid

    import_grid(GRID, region="us-west-1", series=True, output=tmp_path / "grid.toml")
    report = import_demand(
        ALIBABA,
        into=str(tmp_path / "grid.toml"),
        output=tmp_path / "out.toml",
        options=DemandOptions(peak_rps=900.0),
    )
    assert (report.rows, report.used, report.details["hours"]) == (744, 744, 744)
    assert report.details["services"]["web"]["peak_rps"] == 900.0
    scenario = read_scenario(tmp_path / "out.toml")
    world, state = clouds.opened(scenario, 1, 2)
    state, outcomes = clouds.steps(world, state, *[clouds.DO_NOTHING] * 12)
    assert len(outcomes) == 12
    assert np.isfinite(clouds.truth(state)).all()
