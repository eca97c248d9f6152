"""Grid files: what an hour's intensity is, what is missing, and what a scenario gets."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.support import clouds
from tests.support.samples import START_S, day, grid_lines, stamp, write_grid
from world.errors import ConfigError, ImportFileError, ScenarioError, UnknownNameError
from world.importers.grid import (
    CONFLICTING,
    NO_VALUE,
    OTHER_DAY,
    OTHER_ZONE,
    REPEATED,
    ZERO,
    GridOptions,
    import_grid,
    read_grid,
)
from world.importers.intake import SeriesReport
from world.scenarios.loader import load_scenario, read_scenario
from world.worlds.cloud import energy

SAMPLES = Path(__file__).parents[3] / "shared" / "data"
CAISO = SAMPLES / "grid_ci_CAISO_2022-01_hourly.csv"
PROFILE = [day(hour) for hour in range(24)]


def adds_up(report: SeriesReport) -> bool:
    return report.rows == report.used + sum(report.skipped.values())


def test_each_utc_hour_of_the_day_gets_the_mean_of_its_days(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(48, {24: "260", 25: "270"}))
    report = import_grid(path)
    assert report.accepted
    assert report.rows == report.used == 48
    assert report.details["profile_g_per_kwh"] == [230.0, 240.0, *PROFILE[2:]]
    assert report.details["first"] == "2026-06-01T00:00:00Z"
    assert report.details["last"] == "2026-06-02T23:00:00Z"
    assert report.details["basis"] == "lifecycle"
    assert report.as_json()["scenario"] is None


@pytest.mark.parametrize("text", ["", "NULL", "NaN", "null", "None", "n/a", "-", " "])
def test_a_missing_value_is_left_out_and_never_zero(tmp_path: Path, text: str) -> None:
    report = import_grid(write_grid(tmp_path, grid_lines(48, {30: text})))
    assert report.skipped == {NO_VALUE: 1}
    assert report.details["missing_hours"] == 1
    assert report.details["profile_g_per_kwh"] == PROFILE
    assert adds_up(report)


def test_a_zero_is_a_gap_unless_the_figures_are_direct(tmp_path: Path) -> None:
    zero = grid_lines(48, {30: "0", 31: "0.0"})
    assert import_grid(write_grid(tmp_path, zero)).skipped == {ZERO: 2}
    unstated = import_grid(write_grid(tmp_path, zero, "timestamp,carbon_intensity"))
    assert unstated.skipped == {ZERO: 2}
    direct = import_grid(
        write_grid(tmp_path, zero, "timestamp,Carbon intensity gCO₂eq/kWh (direct)")
    )
    assert direct.skipped == {}
    assert direct.details["min_g_per_kwh"] == 0.0


@pytest.mark.parametrize("text", ["-1", "2000.5", "1e9", "abc", "1,5", "inf"])
def test_a_value_that_no_grid_has_is_counted_and_left_out(tmp_path: Path, text: str) -> None:
    lines = [line.replace(",", ";") for line in grid_lines(48, {5: text})]
    report = import_grid(write_grid(tmp_path, lines, "timestamp;avg_CI"))
    assert report.unusable == 1
    assert report.details["profile_g_per_kwh"] == PROFILE


@pytest.mark.parametrize(
    ("column", "factor", "unit"),
    [
        ("Carbon intensity gCO2eq/kWh (LCA)", 1.0, "g/kWh"),
        ("carbon_intensity_g_per_kwh", 1.0, "g/kWh"),
        ("carbon_intensity_kg_per_kwh", 1000.0, "kg/kWh"),
        ("carbon_intensity_kg_per_mwh", 1.0, "kg/MWh"),
        ("Carbon Intensity (tCO2/MWh)", 1000.0, "t/MWh"),
        ("carbon_intensity_lbs_per_mwh", 0.45359237, "lb/MWh"),
    ],
)
def test_the_unit_is_that_of_the_header(
    tmp_path: Path, column: str, factor: float, unit: str
) -> None:
    lines = [f"{stamp(hour)},0.5" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, lines, f"timestamp,{column}"))
    assert report.details["mean_g_per_kwh"] == pytest.approx(0.5 * factor)
    assert report.details["unit"] == unit


def test_a_unit_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(24), "timestamp,carbon_intensity_oz_per_mwh")
    with pytest.raises(ImportFileError, match="unit of the column"):
        import_grid(path)


BOTH = (
    "Datetime (UTC),Zone id,Carbon intensity gCO₂eq/kWh (direct),"
    "Carbon intensity gCO₂eq/kWh (Life cycle),Data source,Data estimated"
)


def electricity_maps(hours: int, zone: str = "DE", estimated: int = 0) -> list[str]:
    return [
        f"{stamp(hour)[:19].replace('T', ' ')},{zone},{day(hour)},{day(hour) + 50},x.org,"
        f"{'true' if hour < estimated else 'false'}"
        for hour in range(hours)
    ]


def test_direct_and_life_cycle_columns_are_chosen_and_never_mixed(tmp_path: Path) -> None:
    path = write_grid(tmp_path, electricity_maps(24), BOTH)
    with pytest.raises(ImportFileError, match="--basis direct"):
        import_grid(path)
    for basis, more in (("direct", 0.0), ("lifecycle", 50.0)):
        options = GridOptions(basis=basis)  # type: ignore[arg-type]
        report = import_grid(path, options=options)
        assert report.details["basis"] == basis
        assert report.details["profile_g_per_kwh"] == [value + more for value in PROFILE]
    named = GridOptions(column="carbon intensity gco₂eq/kwh (life cycle)")
    assert import_grid(path, options=named).details["basis"] == "lifecycle"
    with pytest.raises(ImportFileError, match="no intensity column 'nonsense'"):
        import_grid(path, options=GridOptions(column="nonsense"))
    with pytest.raises(ConfigError, match="--basis is 'marginal'"):
        import_grid(path, options=GridOptions(basis="marginal"))  # type: ignore[arg-type]


def test_rows_of_two_emission_factor_types_are_not_mixed(tmp_path: Path) -> None:
    lines = [
        f"{stamp(hour)},{day(hour) + more},{kind}"
        for hour in range(24)
        for kind, more in (("direct", 0), ("lifecycle", 50))
    ]
    path = write_grid(tmp_path, lines, "datetime,carbonIntensity,emissionFactorType")
    with pytest.raises(ImportFileError, match="mixes emission factor types"):
        import_grid(path)
    report = import_grid(path, options=GridOptions(basis="lifecycle"))
    assert report.accepted
    assert report.details["profile_g_per_kwh"] == [value + 50 for value in PROFILE]
    assert report.details["basis"] == "lifecycle"


def test_estimated_values_are_counted(tmp_path: Path) -> None:
    path = write_grid(tmp_path, electricity_maps(24, estimated=7), BOTH)
    report = import_grid(path, options=GridOptions(basis="direct"))
    assert report.details["estimated"] == 7
    assert any("7 of 24 values are called estimated" in text for text in report.warnings)
    assert import_grid(write_grid(tmp_path, grid_lines(24))).details["estimated"] is None


def test_a_file_of_several_zones_needs_a_choice(tmp_path: Path) -> None:
    lines = electricity_maps(24) + electricity_maps(24, zone="FR")
    path = write_grid(tmp_path, lines, BOTH)
    with pytest.raises(ImportFileError, match="2 zones"):
        import_grid(path, options=GridOptions(basis="direct"))
    report = import_grid(path, options=GridOptions(basis="direct", zone="fr"))
    assert report.accepted
    assert report.skipped == {OTHER_ZONE: 24}


def test_times_without_a_zone_are_utc_and_counted(tmp_path: Path) -> None:
    lines = [f"{stamp(hour)[:19]},{day(hour)}" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, lines))
    assert report.details["naive_times"] == 24
    assert "24 times name no zone: read as UTC" in report.warnings
    assert report.details["profile_g_per_kwh"] == PROFILE


def test_a_column_that_says_utc_needs_no_zone(tmp_path: Path) -> None:
    path = write_grid(tmp_path, electricity_maps(24), BOTH)
    report = import_grid(path, options=GridOptions(basis="direct"))
    assert report.details["naive_times"] == 0
    zone = GridOptions(basis="direct", time_zone="Europe/Berlin")
    with pytest.raises(ConfigError, match="says that it is UTC"):
        import_grid(path, options=zone)


def test_an_offset_is_heeded(tmp_path: Path) -> None:
    lines = [f"2026-06-01T{hour:02d}:00:00-07:00,{100 + hour}" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, lines))
    assert report.details["first"] == "2026-06-01T07:00:00Z"
    assert report.details["profile_g_per_kwh"][7] == 100.0


@pytest.mark.parametrize("scale", [1, 1000])
def test_seconds_and_milliseconds_since_1970_are_moments(tmp_path: Path, scale: int) -> None:
    lines = [f"{(START_S + 3600 * hour) * scale},{day(hour)}" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, lines))
    assert report.details["first"] == "2026-06-01T00:00:00Z"
    assert report.details["profile_g_per_kwh"] == PROFILE


def local_hours(*texts: str) -> list[str]:
    return [f"{text},{100 + number}" for number, text in enumerate(texts)]


def test_local_time_repeats_an_hour_in_autumn_and_skips_one_in_spring(tmp_path: Path) -> None:
    zone = GridOptions(time_zone="America/Los_Angeles")
    autumn = [f"2026-11-01 {hour:02d}:00" for hour in (0, 1, 1, 2, 3)]
    hours = read_grid(write_grid(tmp_path, local_hours(*autumn)), zone)
    assert sorted(hours.hours.values()) == [100, 101, 102, 103, 104]
    first = min(hours.hours)
    assert [hours.hours[first + number] for number in range(5)] == [100, 101, 102, 103, 104]
    spring = [f"2026-03-08 {hour:02d}:00" for hour in (1, 2, 3)]
    hours = read_grid(write_grid(tmp_path, local_hours(*spring)), zone)
    assert hours.intake.skipped == {"an hour that the local clock skips": 1}
    assert hours.missing == 0


def test_an_hour_that_stands_twice_counts_once_and_a_conflict_is_told(tmp_path: Path) -> None:
    lines = [f"{stamp(hour)[:19]},{day(hour)}" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, [*lines, lines[3]]))
    assert report.skipped == {REPEATED: 1}
    assert report.unusable == 0
    report = import_grid(write_grid(tmp_path, [*lines, f"{stamp(3)[:19]},999"]))
    assert report.skipped == {CONFLICTING: 1}
    assert report.unusable == 1
    assert report.details["profile_g_per_kwh"] == PROFILE
    assert any("--time-zone" in text for text in report.warnings)


def test_only_local_times_need_their_zone(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(24), "datetime_local,carbon_intensity")
    with pytest.raises(ImportFileError, match="local times only"):
        import_grid(path)
    with pytest.raises(ConfigError, match="no time zone 'Mars/Olympus'"):
        import_grid(path, options=GridOptions(time_zone="Mars/Olympus"))


def test_times_may_mark_the_end_of_their_hour(tmp_path: Path) -> None:
    lines = [f"{stamp(hour + 1)},{day(hour)}" for hour in range(24)]
    report = import_grid(write_grid(tmp_path, lines), options=GridOptions(hour_end=True))
    assert report.details["profile_g_per_kwh"] == PROFILE
    assert report.details["first"] == "2026-06-01T00:00:00Z"


def test_rows_within_an_hour_are_averaged(tmp_path: Path) -> None:
    lines = [f"{stamp(hour / 4)},{100 + hour % 4}" for hour in range(96)]
    report = import_grid(write_grid(tmp_path, lines))
    assert report.details["profile_g_per_kwh"] == [101.5] * 24
    assert report.details["hours"] == 24


def test_days_can_be_chosen(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(96, {50: "999"}))
    report = import_grid(path, options=GridOptions(first_day="2026-06-02", days=1))
    assert report.details["hours"] == 24
    assert report.skipped == {OTHER_DAY: 72}
    assert report.details["profile_g_per_kwh"] == PROFILE
    for options in (GridOptions(first_day="2 June"), GridOptions(days=2)):
        with pytest.raises(ConfigError):
            import_grid(path, options=options)


def test_too_many_unusable_rows_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(48, dict.fromkeys(range(10), "NaN")))
    report = import_grid(path, region="us-west-1", output=tmp_path / "out.toml")
    assert not report.accepted
    assert "10 of 48 rows cannot be used (20.8%)" in report.refusals[0]
    assert report.as_json()["scenario"] is None
    assert not (tmp_path / "out.toml").exists()
    wide = import_grid(path, region="us-west-1", output=tmp_path / "o.toml", limit_fraction=0.25)
    assert wide.accepted
    with pytest.raises(ConfigError, match="share of the rows"):
        import_grid(path, limit_fraction=10)


def test_hours_without_rows_are_missing_too(tmp_path: Path) -> None:
    lines = grid_lines(72)
    report = import_grid(write_grid(tmp_path, lines[:20] + lines[40:]))
    assert report.unusable == 0
    assert report.refusals == ("20 of 72 hours are missing (27.8%), more than 10.0%",)
    daily = [f"{stamp(24 * number)},100" for number in range(30)]
    assert not import_grid(write_grid(tmp_path, daily)).accepted


def test_a_day_that_lacks_hours_is_no_profile(tmp_path: Path) -> None:
    report = import_grid(write_grid(tmp_path, grid_lines(22)))
    assert report.refusals == ("no day has a value for the UTC hours 22, 23",)


def test_suspiciously_low_hours_and_a_foreign_mean_are_told(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(48, {9: "2.0"}))
    warnings = import_grid(path, region="eu-north-1").warnings
    assert any("below a tenth of the median" in text for text in warnings)
    assert any("far from the" in text for text in warnings)
    tiny = [f"{stamp(hour)},0.3" for hour in range(24)]
    warnings = import_grid(write_grid(tmp_path, tiny, "timestamp,carbon_intensity")).warnings
    assert any("kg/kWh" in text for text in warnings)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("timestamp,avg_CI\n", "has no rows"),
        ("time_of_day,avg_CI\n1,2\n", "no column timestamp"),
        ("timestamp,wind\n1,2\n", "no column carbon_intensity_g_per_kwh"),
        ("timestamp,avg_CI,avg_CI\n1,2,3\n", "twice"),
        ('{"zone": "DE"}', "holds no history"),
    ],
)
def test_what_is_no_grid_file_is_one_clear_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "grid.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ImportFileError, match=says) as refused:
        import_grid(path)
    assert "\n" not in refused.value.line()


def test_gzip_boms_and_semicolons_are_read(tmp_path: Path) -> None:
    lines = ["\ufefftimestamp;avg_CI", *(line.replace(",", ";") for line in grid_lines(24))]
    path = tmp_path / "grid.csv.gz"
    path.write_bytes(gzip.compress("\r\n".join(lines).encode()))
    assert import_grid(path).details["profile_g_per_kwh"] == PROFILE


def written(folder: Path, **options: Any) -> SeriesReport:
    return import_grid(write_grid(folder, grid_lines(48)), output=folder / "out.toml", **options)


def test_a_scenario_gets_the_mean_day_of_one_region_and_keeps_the_rest(tmp_path: Path) -> None:
    report = written(tmp_path, region="us-west-1")
    scenario = read_scenario(tmp_path / "out.toml")
    base = load_scenario("cloud/medium")
    assert report.as_json()["scenario"] == str(tmp_path / "out.toml")
    assert scenario.params == {**base.params, "grid_g_per_kwh": {"us-west-1": PROFILE}}
    assert (scenario.horizon, scenario.targets) == (base.horizon, base.targets)
    assert scenario.name == "import/out"
    assert "Imported grid of us-west-1" in scenario.description


def test_a_second_region_is_added_and_the_first_import_is_kept(tmp_path: Path) -> None:
    written(tmp_path, region="us-west-1")
    path = write_grid(tmp_path, [f"{stamp(hour)},50" for hour in range(24)])
    import_grid(
        path, region="us-east-1", into=str(tmp_path / "out.toml"), output=tmp_path / "b.toml"
    )
    given = read_scenario(tmp_path / "b.toml").params["grid_g_per_kwh"]
    assert given == {"us-west-1": PROFILE, "us-east-1": [50.0] * 24}
    with pytest.raises(ConfigError, match="is an input"):
        import_grid(path, into=str(tmp_path / "b.toml"), output=tmp_path / "b.toml")


def test_without_a_region_the_home_region_is_taken_and_told(tmp_path: Path) -> None:
    report = written(tmp_path)
    assert report.details["region"] == "us-east-1"
    assert any("home region" in text for text in report.warnings)


def test_wrong_destinations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no region 'eu-west-1'"):
        written(tmp_path, region="eu-west-1")
    with pytest.raises(UnknownNameError, match="no region 'moon'"):
        written(tmp_path, region="moon")
    with pytest.raises(ConfigError, match="of the world 'cloudedge'"):
        written(tmp_path, into="cloudedge/hard")
    with pytest.raises(ConfigError, match="without --output"):
        import_grid(write_grid(tmp_path, grid_lines(24)), into="cloud/easy")
    (tmp_path / "out.toml").write_text("mine = true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no scenario file"):
        written(tmp_path)


def test_a_series_plays_its_very_hours_and_bridges_short_gaps(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(72, {30: "NaN", 31: "NaN"}))
    report = import_grid(path, region="us-west-1", series=True, output=tmp_path / "out.toml")
    hours = read_scenario(tmp_path / "out.toml").params["grid_g_per_kwh"]["us-west-1"]
    assert report.details["filled_hours"] == 2
    assert hours == [day(hour) for hour in range(72)]
    long = write_grid(tmp_path, grid_lines(72, dict.fromkeys(range(30, 34), "NaN")))
    report = import_grid(long, region="us-west-1", series=True)
    assert "a gap of 4 hours" in report.refusals[0]


def test_a_series_holds_whole_utc_days_only(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(80)[5:])
    report = import_grid(path, series=True)
    assert report.details["series_hours"] == 48
    short = write_grid(tmp_path, grid_lines(40)[5:])
    assert "no whole day" in import_grid(short, series=True).refusals[0]


def test_the_world_burns_the_imported_hours(tmp_path: Path) -> None:
    path = write_grid(tmp_path, grid_lines(48))
    import_grid(path, region="us-east-1", output=tmp_path / "out.toml")
    scenario = read_scenario(tmp_path / "out.toml")
    world, state = clouds.opened(scenario, 1)
    hour = int(state.hour[0])
    assert energy.grid_g_per_kwh(state)[0, 0] == pytest.approx(day(hour))
    facts = world.observe(state, "cost").facts["regions"]["us-east-1"]
    assert facts["grid_g_per_kwh"] == pytest.approx(day(hour))
    assert facts["mean_grid_g_per_kwh"] == pytest.approx(sum(PROFILE) / 24)


def test_a_series_goes_on_into_its_second_day(tmp_path: Path) -> None:
    lines = [f"{stamp(hour)},{100 if hour < 24 else 300}" for hour in range(48)]
    import_grid(
        write_grid(tmp_path, lines), region="us-east-1", series=True, output=tmp_path / "o.toml"
    )
    _, state = clouds.opened(read_scenario(tmp_path / "o.toml"), 1)
    for day_number, value in ((0, 100.0), (1, 300.0), (2, 100.0)):
        state.step = round((24 * day_number + 1 - state.columns["w.start_hour_utc"][0, 0]) * 12)
        assert energy.grid_g_per_kwh(state)[0, 0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ({"us-east-1": [100.0] * 23}, "23 hours"),
        ({"us-east-1": [0.0] * 24}, "mean 0 g/kWh"),
        ({"us-east-1": []}, "0 hours"),
        ({"eu-west-1": [100.0] * 24}, "names the region 'eu-west-1'"),
        ({"us-east-1": [-1.0] * 24}, "greater than or equal to 0"),
    ],
)
def test_a_scenario_whose_grid_contradicts_itself_is_refused(
    grid: dict[str, list[float]], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        clouds.opened(clouds.variant("medium", grid_g_per_kwh=grid), 1)


@pytest.mark.skipif(not CAISO.is_file(), reason="the sample is not beside the checkout")
def test_the_caiso_sample_is_solar_and_lacks_one_hour(tmp_path: Path) -> None:
    report = import_grid(CAISO, region="us-west-1", series=True, output=tmp_path / "caiso.toml")
    assert (report.rows, report.used) == (744, 743)
    assert report.skipped == {NO_VALUE: 1}
    profile = report.details["profile_g_per_kwh"]
    assert max(profile[17:23]) < 0.75 * report.details["mean_g_per_kwh"]
    assert report.details["mean_g_per_kwh"] == pytest.approx(262.7, abs=0.1)
    _, state = clouds.opened(read_scenario(tmp_path / "caiso.toml"), 1)
    hours = read_scenario(tmp_path / "caiso.toml").params["grid_g_per_kwh"]["us-west-1"]
    assert energy.grid_g_per_kwh(state)[0, 1] == pytest.approx(hours[int(state.hour[0])])
