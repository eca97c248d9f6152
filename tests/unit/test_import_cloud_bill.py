"""A cloud world in the proportions of a bill: what is the bill's, what stays the base's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import clouds
from tests.support.bills import usage, write_bill
from world.errors import ConfigError
from world.importers.cloud_bill import LEAST_USD_PER_HOUR, MOST_USD_PER_HOUR
from world.importers.focus import import_focus
from world.importers.report import ImportReport
from world.model import Scenario
from world.scenarios.loader import load_scenario, read_scenario

SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "focus_1.0_sample_1000.csv"


def machines(count: int, usd_per_hour: float, **changes: str) -> list[dict[str, str]]:
    cost = str(usd_per_hour)
    return [
        usage(
            ResourceId=f"i-{changes.get('RegionId', '')}{number:04d}", EffectiveCost=cost, **changes
        )
        for number in range(count)
    ]


def imported(
    folder: Path, *rows: dict[str, str], metrics: str | None = None, **options: Any
) -> tuple[ImportReport, Scenario]:
    use = None
    if metrics is not None:
        use = folder / "use.csv"
        use.write_text(f"resource_id,metric,value\n{metrics}", encoding="utf-8")
    report = import_focus(
        write_bill(folder, *rows), metrics=use, output=folder / "out.toml", world="cloud", **options
    )
    return report, read_scenario(folder / "out.toml")


def test_cost_rows_and_regions_are_the_bills(tmp_path: Path) -> None:
    rows = machines(100, 3.0, RegionId="eu-west-1") + machines(50, 2.0, RegionId="us-east-1")
    report, scenario = imported(tmp_path, *rows)
    base = load_scenario("cloud/medium")
    assert scenario.params["start"]["cost_usd_per_hour"] == 400.0
    assert scenario.params["rows"] == 150
    assert scenario.params["home_region"] == "eu-west-1"
    assert scenario.params["regions"] == ["us-east-1"]
    assert "us-west-1" in scenario.params["region_pool"]
    assert scenario.params["services"] == base.params["services"]
    assert scenario.horizon == base.horizon
    assert report.cloud is not None
    assert report.cloud["cost_taken"] is True
    assert any("a bill does not know them" in text for text in report.warnings)


def test_targets_and_margins_keep_their_proportion_to_the_start(tmp_path: Path) -> None:
    _, scenario = imported(tmp_path, *machines(100, 5.3))
    base = load_scenario("cloud/medium")
    for metric in ("cost_usd_per_hour", "carbon_kg_per_day"):
        assert scenario.targets[metric] == pytest.approx(base.targets[metric])
        assert scenario.tolerances[metric] == pytest.approx(base.tolerances[metric])
    _, larger = imported(tmp_path, *machines(100, 10.6))
    assert larger.targets["cost_usd_per_hour"] == pytest.approx(800.0)
    assert larger.params["start"]["carbon_kg_per_day"] == pytest.approx(640.0)
    assert larger.tolerances["cost_usd_per_hour"] == pytest.approx((30.0, 40.0))
    assert larger.targets["latency_ms"] == base.targets["latency_ms"]
    _, told = imported(tmp_path, *machines(100, 5.3), target_fraction=0.9, horizon=12)
    assert told.targets["cost_usd_per_hour"] == pytest.approx(477.0)
    assert told.horizon == 12


def test_waste_is_the_share_of_the_cost_that_is_measured_idle(tmp_path: Path) -> None:
    rows = machines(100, 4.0)
    names = [row["ResourceId"] for row in rows]
    quiet = [f"{name},cpu_percent,{1.0 if at < 30 else 40.0}" for at, name in enumerate(names)]
    _, scenario = imported(tmp_path, *rows, metrics="\n".join(quiet[:60]))
    assert scenario.params["waste_fraction"] == pytest.approx(0.5)
    few, kept = imported(tmp_path, *rows, metrics="\n".join(quiet[:5]))
    assert "waste_fraction" not in kept.params
    assert any("how much of the bill is idle is not known" in text for text in few.warnings)


def test_what_is_unknown_in_the_bill_is_unknown_in_the_world(tmp_path: Path) -> None:
    known = machines(75, 4.0, Tags='{"essential": "no", "environment": "dev"}')
    rows = [*known, *machines(25, 4.0, RegionId="us-west-1")]
    _, scenario = imported(tmp_path, *rows)
    assert scenario.params["unknown_essential_fraction"] == pytest.approx(0.25)
    assert scenario.params["unknown_tag_fraction"] == pytest.approx(0.25)


def test_a_bill_that_says_nothing_is_taken_at_the_worlds_most_and_that_is_told(
    tmp_path: Path,
) -> None:
    report, scenario = imported(tmp_path, *machines(100, 4.0))
    assert scenario.params["unknown_essential_fraction"] == 0.9
    assert any("the world takes 0.9" in text for text in report.warnings)


def test_a_bill_outside_what_can_be_calibrated_gives_only_its_proportions(tmp_path: Path) -> None:
    report, scenario = imported(tmp_path, *machines(10, 1.0))
    assert scenario.params["start"] == load_scenario("cloud/medium").params["start"]
    assert report.cloud is not None
    assert report.cloud["cost_taken"] is False
    assert any("only the proportions are the bill's" in text for text in report.warnings)


@pytest.mark.parametrize("cost", [LEAST_USD_PER_HOUR, 250.0, 1000.0, MOST_USD_PER_HOUR])
@pytest.mark.parametrize("count", [5, 4000])
def test_the_world_starts_from_the_bills_cost(tmp_path: Path, cost: float, count: int) -> None:
    _, scenario = imported(tmp_path, *machines(count, cost / count))
    _, state = clouds.opened(scenario, 1, 2, 3)
    start = scenario.params["start"]
    wanted = [start["latency_ms"], start["cost_usd_per_hour"], start["carbon_kg_per_day"]]
    assert wanted[1] == pytest.approx(cost)
    np.testing.assert_allclose(state.columns["h.m.now"][:, :3], [wanted] * 3, rtol=0.05)


def test_other_worlds_and_currencies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="world 'mars'"):
        import_focus(write_bill(tmp_path, usage()), world="mars")
    with pytest.raises(ConfigError, match="without --world cloud"):
        import_focus(write_bill(tmp_path, usage()), into="cloud/easy")
    with pytest.raises(ConfigError, match="is in EUR"):
        imported(tmp_path, *machines(10, 40.0, BillingCurrency="EUR"))
    with pytest.raises(ConfigError, match="of the world 'cloudedge'"):
        imported(tmp_path, *machines(10, 40.0), into="cloudedge/hard")


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the sample is not beside the checkout")
def test_the_sample_bill_becomes_a_world_that_steps(tmp_path: Path) -> None:
    report = import_focus(SAMPLE, output=tmp_path / "out.toml", world="cloud")
    assert report.cloud is not None
    assert report.cloud["home_region"] == "us-east-1"
    world, state = clouds.opened(read_scenario(tmp_path / "out.toml"), 1)
    state, _ = clouds.steps(world, state, *[clouds.DO_NOTHING] * 3)
    assert np.isfinite(clouds.truth(state)).all()
