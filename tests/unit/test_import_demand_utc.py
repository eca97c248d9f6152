"""A demand trace can be laid on the clock: its hour 0 is the hour at which episodes start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clouds import opened
from tests.support.samples import stamp, write
from world.errors import ConfigError
from world.importers.demand import DemandOptions, import_demand, read_demand
from world.scenarios.loader import read_scenario


def by_time(folder: Path, first: int = 5, count: int = 72) -> Path:
    """Hourly rows from a UTC hour on; the rate of an hour is 100 plus its hour of the day."""
    lines = [f"{stamp(hour)},{100 + hour % 24}" for hour in range(first, first + count)]
    return write(folder / "demand.csv", ["timestamp,rps", *lines])


@pytest.mark.parametrize("start", [0, 4, 5, 6, 23])
@pytest.mark.parametrize("first", [0, 5, 23])
def test_hour_0_has_the_utc_hour_that_was_asked_for(start: int, first: int, tmp_path: Path) -> None:
    path = by_time(tmp_path, first)
    demand = read_demand(path, DemandOptions(start_utc=start))
    assert demand.by_service[""][0] == 100 + start
    assert demand.begins == (start - first) % 24
    later = read_demand(path, DemandOptions(start_utc=start, from_hour=demand.begins + 1))
    assert later.by_service[""][0] == 100 + start
    assert later.begins == demand.begins + 24
    assert len(read_demand(path, DemandOptions(start_utc=start, hours=6)).by_service[""]) == 6


@pytest.mark.parametrize("header", ["hour,rps", ",cpu_load"])
def test_the_first_row_of_a_counted_file_is_midnight(header: str, tmp_path: Path) -> None:
    rows = [f"{hour},{(100 + hour) / 1000}" for hour in range(48)]
    demand = read_demand(write(tmp_path / "d.csv", [header, *rows]), DemandOptions(start_utc=7))
    assert demand.begins == 7
    assert demand.by_service[""][0] == pytest.approx(0.107)


def test_every_seed_of_the_copy_starts_at_that_hour_and_without_it_at_its_own(
    tmp_path: Path,
) -> None:
    for start in (None, 17):
        out = tmp_path / f"{start}.toml"
        options = DemandOptions(services=("web",), start_utc=start)
        report = import_demand(by_time(tmp_path), output=out, options=options)
        assert report.accepted
        scenario = read_scenario(out)
        assert scenario.params.get("start_hour_utc") == start
        found = {
            float(opened(scenario, seed)[1].columns["w.start_hour_utc"][0, 0])
            for seed in range(200, 206)
        }
        assert (found == {17.0}) == (start == 17)
        if start is not None:
            assert report.details["begins_at_hour"] == 12
            assert scenario.params["demand_trace"][0]["rps"] == 117.0


@pytest.mark.parametrize("start", [-1, 24])
def test_an_hour_that_no_day_has_is_refused(start: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--start-utc"):
        read_demand(by_time(tmp_path), DemandOptions(start_utc=start))
