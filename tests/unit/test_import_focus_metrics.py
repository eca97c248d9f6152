"""What tags and a metrics file say about a resource, and what stays unknown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bills import usage, write_bill
from world.errors import ConfigError, ImportFileError
from world.importers.focus import import_focus, write_metrics_template
from world.importers.report import ImportReport
from world.importers.tags import read_tags
from world.scenarios.loader import read_scenario


def imported(
    folder: Path, *rows: dict[str, str], metrics: str | None = None
) -> tuple[ImportReport, dict[str, dict[str, Any]]]:
    use = None
    if metrics is not None:
        use = folder / "metrics.csv"
        use.write_text(metrics, encoding="utf-8")
    report = import_focus(write_bill(folder, *rows), metrics=use, output=folder / "out.toml")
    table = read_scenario(Path(str(report.scenario))).resources
    rows_read = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return report, {row["id"]: row for row in rows_read}


def samples(*lines: str, header: str = "resource_id,ts,metric,value") -> str:
    return "\n".join([header, *lines]) + "\n"


@pytest.mark.parametrize(
    ("tags", "essential"),
    [
        ('{"essential": "yes"}', "yes"),
        ('{"Essential": true}', "yes"),
        ('{" CRITICAL ": "1"}', "yes"),
        ('{"business-criticality": "High"}', "yes"),
        ('{"tier": "0"}', "yes"),
        ('{"essential": "no"}', "no"),
        ('{"critical": false, "environment": "dev"}', "no"),
        ('{"criticality": "low", "env": "non-prod"}', "no"),
        ('{"essential": "no", "environment": "prod"}', None),
        ('{"essential": "no", "essential": "yes"}', "yes"),
        ('{"ESSENTIAL": "yes", "essential": "no"}', "yes"),
        ('{"environment": "prod"}', None),
        ('{"environment": "dev"}', None),
        ('{"essential": "perhaps"}', None),
        ('{"essential": {"nested": "yes"}}', None),
        ('{"tier": "web"}', None),
        ("{}", None),
        ("", None),
        ("NULL", None),
    ],
)
def test_essential_is_what_the_named_tags_say_and_else_unknown(
    tmp_path: Path, tags: str, essential: str | None
) -> None:
    _, rows = imported(tmp_path, usage(Tags=tags))
    assert rows["i-0001"].get("essential") == essential


@pytest.mark.parametrize(
    "tags",
    [
        "essential=yes",
        "['essential']",
        "{'essential': 'yes'}",
        '{"essential": "yes"',
        "__import__('os').system('false')",
        "[" * 50_000,
        '{"a": ' * 20_000,
        '"essential"',
        "17",
    ],
)
def test_tags_that_are_no_json_object_are_counted_and_say_nothing(
    tmp_path: Path, tags: str
) -> None:
    report, rows = imported(tmp_path, usage(Tags=tags), usage(Tags=tags))
    assert rows["i-0001"].get("essential") is None
    assert report.mapped == 2
    assert any(text.startswith("2 rows have tags") for text in report.warnings)


def test_tags_of_huge_numbers_and_lone_surrogates_do_no_harm(tmp_path: Path) -> None:
    tags = '{"owner": "\\ud800x", "n": ' + "9" * 10_000 + ', "inf": Infinity, "essential": "yes"}'
    _, rows = imported(tmp_path, usage(Tags=tags))
    assert rows["i-0001"]["owner"] == "\\ud800x"
    assert rows["i-0001"]["essential"] == "yes"


def test_repeated_keys_and_case_variants_are_all_heard() -> None:
    tags = read_tags('{" Env": "dev", "ENV": "eu-prod", "Team": "a", "owner": "b", "Name": "web"}')
    assert (tags.environment, tags.owner, tags.name) == ("eu-prod", "b", "web")


@pytest.mark.parametrize(
    ("tags", "manager"),
    [
        ({"aws:autoscaling:groupName": "workers"}, "autoscaler"),
        ({"aks-managed-poolName": "p"}, "autoscaler"),
        ({"karpenter.sh/nodepool": "p"}, "autoscaler"),
        ({"ManagedBy": "Terraform"}, "iac"),
        ({"aws:cloudformation:stack-name": "s"}, "iac"),
        ({"aws:cloudformation:stack-name": "s", "eks:cluster-name": "c"}, "autoscaler"),
        ({"application": "terraforming"}, None),
    ],
)
def test_who_else_manages_a_resource_is_read_from_its_tags(
    tags: dict[str, str], manager: str | None
) -> None:
    assert read_tags(json.dumps(tags)).managed_by == manager


def test_a_tag_can_protect_a_resource(tmp_path: Path) -> None:
    report, rows = imported(tmp_path, usage(Tags='{"do-not-delete": "true"}'))
    assert rows["i-0001"]["protected"] is True
    assert report.dearest == ()


def test_samples_become_mean_and_maximum_and_the_idle_span(tmp_path: Path) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        usage(ResourceId="i-0002"),
        metrics=samples(
            "i-0001,2026-06-01T00:00:00Z,cpu_percent,10",
            "i-0001,2026-06-01T04:00:00Z,cpu_percent,1",
            "i-0001,2026-06-01T06:00:00Z,CPUUtilization,1",
            "i-0001,,memory_fraction,0.25",
        ),
    )
    row = rows["i-0001"]
    assert (row["cpu_percent"], row["cpu_max_percent"]) == (4.0, 10.0)
    assert (row["memory_percent"], row["idle_hours"]) == (25.0, 6.0)
    other = rows["i-0002"]
    assert [other[name] for name in ("cpu_percent", "memory_percent", "idle_hours")] == [None] * 3
    assert report.metrics == {
        "rows": 4,
        "samples": 4,
        "blank": 0,
        "skipped": {},
        "resources": 1,
        "ids_unmatched": 0,
        "ids_ambiguous": 0,
        "essential_contradicted": 0,
    }


def test_one_quiet_moment_does_not_say_for_how_long(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path, usage(), metrics=samples("i-0001,2026-06-01T00:00:00Z,cpu_percent,0.5")
    )
    assert rows["i-0001"]["cpu_percent"] == 0.5
    assert rows["i-0001"].get("idle_hours") is None


def test_given_idle_hours_win_and_the_newest_counts(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path,
        usage(),
        metrics=samples(
            "i-0001,2026-06-01T00:00:00Z,cpu_percent,0",
            "i-0001,2026-06-09T00:00:00Z,cpu_percent,0",
            "i-0001,2026-06-01T00:00:00Z,idle_hours,400",
            "i-0001,2026-06-02T00:00:00Z,idle_hours,3",
        ),
    )
    assert rows["i-0001"]["idle_hours"] == 3.0


@pytest.mark.parametrize("value", ["100.5", "-1", "250"])
def test_a_percentage_out_of_range_makes_that_metric_unknown(tmp_path: Path, value: str) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        metrics=samples(
            "i-0001,,cpu_percent,5",
            f"i-0001,,cpu_percent,{value}",
            "i-0001,,cpu_percent,5",
            "i-0001,,memory_percent,30",
        ),
    )
    assert rows["i-0001"].get("cpu_percent") is None
    assert rows["i-0001"]["memory_percent"] == 30.0
    assert report.metrics is not None
    assert report.metrics["skipped"] == {"value is outside 0 to 100": 1}


def test_a_fraction_above_one_is_refused_and_small_percentages_are_doubted(
    tmp_path: Path,
) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        usage(ResourceId="b"),
        metrics=samples("i-0001,,cpu_fraction,4", "b,,cpu_percent,0.4", "b,,cpu_percent,0.9"),
    )
    assert rows["i-0001"]["cpu_percent"] is None
    assert rows["b"]["cpu_percent"] == pytest.approx(0.65)
    assert any("name the metric cpu_fraction" in text for text in report.warnings)


def test_rows_that_say_nothing_usable_are_counted_by_reason(tmp_path: Path) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        metrics=samples(
            "i-0001,,cpu_percent,NaN",
            "i-0001,,cpu,50",
            "i-0001,yesterday,cpu_percent,5",
            "i-0001,,cpu_percent,",
            ",,cpu_percent,5",
            "=HYPERLINK(1),,cpu_percent,5",
            "too,few",
        ),
    )
    assert rows["i-0001"].get("cpu_percent") is None
    assert report.metrics is not None
    assert report.metrics["rows"] == 7
    assert report.metrics["blank"] == 1
    assert report.metrics["skipped"] == {
        "metric is not known": 1,
        "no resource id": 1,
        "ts is not ISO 8601": 1,
        "value is not a number": 1,
        "wrong number of fields": 1,
    }
    assert report.metrics["ids_unmatched"] == 1
    assert any("=HYPERLINK(1)" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("tags", "said", "essential"),
    [
        ("{}", "yes", "yes"),
        ("{}", "no", "no"),
        ('{"essential": "yes"}', "no", "yes"),
        ('{"essential": "no"}', "yes", "yes"),
        ('{"env": "prod"}', "no", "no"),
        ("{}", "unknown", None),
        ("{}", "well", None),
    ],
)
def test_the_metrics_file_answers_what_tags_do_not(
    tmp_path: Path, tags: str, said: str, essential: str | None
) -> None:
    metrics = samples(f"i-0001,{said},ops", header="resource_id,essential,owner")
    report, rows = imported(tmp_path, usage(Tags=tags), metrics=metrics)
    assert rows["i-0001"].get("essential") == essential
    assert rows["i-0001"]["owner"] == "ops"
    assert any("neither yes nor no" in text for text in report.warnings) == (said == "well")


def test_an_id_of_several_accounts_needs_its_account_in_the_metrics(tmp_path: Path) -> None:
    bill = (usage(ResourceId="x", SubAccountId="1"), usage(ResourceId="x", SubAccountId="2"))
    report, rows = imported(
        tmp_path, *bill, metrics=samples("x,,cpu_percent,9", "x@2,,cpu_percent,7")
    )
    assert rows["x@1"]["cpu_percent"] is None
    assert rows["x@2"]["cpu_percent"] == 7.0
    assert report.metrics is not None
    assert (report.metrics["ids_ambiguous"], report.metrics["ids_unmatched"]) == (1, 0)


def test_a_metrics_file_without_its_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no column metric and no value"):
        imported(tmp_path, usage(), metrics="resource_id,cpu\ni-0001,5\n")


def test_the_template_asks_for_what_is_missing_and_reads_back_blank(tmp_path: Path) -> None:
    bill = write_bill(
        tmp_path,
        usage(ResourceId="cheap", EffectiveCost="0.5"),
        usage(ResourceId="=dear", EffectiveCost="5"),
        usage(ResourceId="free", EffectiveCost="0"),
        usage(ResourceId="", EffectiveCost="7"),
    )
    template = tmp_path / "template.csv"
    assert write_metrics_template(bill, template) == 2
    lines = list(csv.DictReader(template.read_text(encoding="utf-8").splitlines()))
    assert [line["resource_id"] for line in lines] == ["'=dear"] * 3 + ["cheap"] * 3
    assert {line["metric"] for line in lines} == {"cpu_percent", "memory_percent", "idle_hours"}
    blank = import_focus(bill, metrics=template)
    assert blank.metrics is not None
    assert (blank.metrics["blank"], blank.metrics["resources"]) == (6, 2)
    filled = template.read_text(encoding="utf-8").replace(
        "'=dear,,cpu_percent,,,", "'=dear,,cpu_percent,12,no,web team"
    )
    template.write_text(filled, encoding="utf-8")
    with pytest.raises(ConfigError, match="may be filled in"):
        write_metrics_template(bill, template)
    report = import_focus(bill, metrics=template, output=tmp_path / "out.toml")
    table = read_scenario(Path(str(report.scenario))).resources
    assert table["id"][0] == "=dear"
    assert (table["cpu_percent"][0], table["essential"][0]) == (12.0, "no")
    assert table["owner"][0] == "web team"


def test_a_resource_answered_both_yes_and_no_counts_as_essential_and_is_counted(
    tmp_path: Path,
) -> None:
    report, rows = imported(
        tmp_path,
        *(usage(ResourceId=name) for name in ("both", "again", "yes", "no")),
        metrics=samples(
            "both,no",
            "both,yes",
            "both,no",
            "again,yes",
            "again,no",
            "yes,yes",
            "yes,yes",
            "no,no",
            header="resource_id,essential",
        ),
    )
    assert {name: row["essential"] for name, row in rows.items()} == {
        "both": "yes",
        "again": "yes",
        "yes": "yes",
        "no": "no",
    }
    assert report.metrics is not None
    assert report.metrics["essential_contradicted"] == 2
    assert any("2 resources are answered both yes and no" in text for text in report.warnings)
