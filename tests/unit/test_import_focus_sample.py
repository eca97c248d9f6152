"""The published FOCUS 1.0 sample, where it lies beside the checkout: 1,000 real bill lines."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from world.importers.focus import import_focus, write_metrics_template
from world.scenarios.loader import read_scenario
from world.worlds.finops.schema import validate_resources

SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "focus_1.0_sample_1000.csv"

pytestmark = pytest.mark.skipif(
    not SAMPLE.is_file(), reason="the sample is not beside the checkout"
)


def test_the_sample_is_accounted_for_to_the_last_digit() -> None:
    report = import_focus(SAMPLE)
    assert (report.rows, report.mapped, report.unattributed, report.ledger) == (1000, 923, 74, 3)
    assert report.skipped == {}
    assert report.total_in == Decimal("14.97651418586")
    assert report.total_billed == Decimal("20.52022672899")
    assert report.total_ledger == Decimal("-3")
    assert report.ledger_totals["Credit"] == Decimal("-3")
    assert report.gap_fraction == 0.0


def test_the_sample_has_the_resources_that_were_counted_by_hand() -> None:
    report = import_focus(SAMPLE)
    assert report.resources == 842
    assert report.resources_negative == 6
    assert report.resources_unbilled == 258
    assert report.resources_free == 797
    assert report.sizes_read == 30
    assert report.negative == 13
    assert report.zero_effective_nonzero_billed == 610
    assert report.fallback_effective == 0
    assert report.columns_unknown == ("Id",)


def test_the_sample_becomes_a_scenario_that_loads_the_same_every_time(tmp_path: Path) -> None:
    output = tmp_path / "sample.toml"
    import_focus(SAMPLE, output=output)
    scenario = read_scenario(output)
    validate_resources(scenario)
    contents = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    import_focus(SAMPLE, output=output)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == contents
    assert read_scenario(output).digest == scenario.digest
    start = sum(scenario.resources["cost_usd_per_hour"])
    assert scenario.targets["cost_usd_per_hour"] == pytest.approx(0.8 * start)
    protected = [
        name
        for name, flag in zip(
            scenario.resources["id"], scenario.resources["protected"], strict=True
        )
        if flag == "true" and name.startswith("unattributed:")
    ]
    assert len(protected) == 8


def test_nothing_in_the_sample_is_known_to_be_dispensable(tmp_path: Path) -> None:
    import_focus(SAMPLE, output=tmp_path / "sample.toml")
    scenario = read_scenario(tmp_path / "sample.toml")
    assert set(scenario.resources["essential"]) == {None}
    assert set(scenario.resources["cpu_percent"]) == {None}


def test_the_sample_gets_a_template_for_what_costs_money(tmp_path: Path) -> None:
    assert write_metrics_template(SAMPLE, tmp_path / "template.csv") == 39
