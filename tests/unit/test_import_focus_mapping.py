"""What becomes of each row of a bill, and of its money."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.bills import bill_text, hour, usage, write_bill
from world.actions import Action
from world.errors import ConfigError, ImportFileError
from world.importers.focus import import_focus
from world.importers.report import ImportReport
from world.model import Scenario
from world.scenarios.loader import read_scenario
from world.worlds.registry import make_world

USE = ("cpu_percent", "memory_percent", "idle_hours")


def load(report: ImportReport) -> Scenario:
    assert report.scenario is not None
    return read_scenario(Path(report.scenario))


def rows_of(scenario: Scenario) -> dict[str, dict[str, object]]:
    names = list(scenario.resources)
    return {
        str(row[0]): dict(zip(names, row, strict=True))
        for row in zip(*scenario.resources.values(), strict=True)
    }


def imported(folder: Path, *rows: dict[str, str], metrics: str = "") -> tuple[ImportReport, dict]:
    bill = write_bill(folder, *rows)
    use = None
    if metrics:
        use = folder / "metrics.csv"
        use.write_text(metrics, encoding="utf-8")
    report = import_focus(bill, metrics=use, output=folder / "out.toml")
    return report, rows_of(load(report))


def test_a_resource_costs_its_usage_divided_by_the_hours_its_charges_cover(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path,
        usage(EffectiveCost="1", **hour(0)),
        usage(EffectiveCost="0.5", ChargeDescription="traffic", **hour(0)),
        usage(EffectiveCost="1.5", **hour(3)),
    )
    assert rows["i-0001"]["cost_usd_per_hour"] == 1.5
    assert rows["i-0001"]["covered_hours"] == 2.0


def test_a_daily_row_and_an_hourly_row_inside_it_cover_one_day(tmp_path: Path) -> None:
    day = {"ChargePeriodStart": "2026-06-01", "ChargePeriodEnd": "2026-06-02"}
    _, rows = imported(
        tmp_path, usage(EffectiveCost="20", **day), usage(EffectiveCost="4", **hour(5))
    )
    assert rows["i-0001"]["cost_usd_per_hour"] == 1.0


def test_billed_cost_stands_in_only_where_effective_cost_is_missing(tmp_path: Path) -> None:
    report, rows = imported(
        tmp_path,
        usage(ResourceId="missing", EffectiveCost="NULL", BilledCost="3"),
        usage(ResourceId="zero", EffectiveCost="0", BilledCost="5"),
        usage(ResourceId="plain", EffectiveCost="2", BilledCost="7"),
    )
    assert {name: row["cost_usd_per_hour"] for name, row in rows.items()} == {
        "missing": 3.0,
        "plain": 2.0,
        "zero": 0.0,
    }
    assert report.fallback_effective == 1
    assert report.zero_effective_nonzero_billed == 1
    assert report.total_in == Decimal(5)
    assert report.total_billed == Decimal(15)
    assert report.gap_fraction == 0.0


@pytest.mark.parametrize("category", ["Purchase", "Tax", "Credit", "Adjustment", "Refund", "NULL"])
def test_whatever_is_not_usage_goes_to_the_ledger_and_to_no_resource(
    tmp_path: Path, category: str
) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        usage(ChargeCategory=category, EffectiveCost="-3", ChargePeriodStart="NULL"),
    )
    assert (report.mapped, report.ledger, report.total_ledger) == (1, 1, Decimal(-3))
    assert report.ledger_totals == {category: Decimal(-3)}
    assert rows["i-0001"]["cost_usd_per_hour"] == 1.0
    assert report.negative == 1
    assert report.gap_fraction == 0.0


def test_a_purchase_makes_no_resource_but_a_correction_shows_that_one_exists(
    tmp_path: Path,
) -> None:
    _, rows = imported(
        tmp_path,
        usage(),
        usage(ChargeCategory="Purchase", ResourceId="reservation-1", EffectiveCost="100"),
        usage(ChargeCategory="Adjustment", ResourceId="i-0002", EffectiveCost="-1"),
    )
    assert set(rows) == {"i-0001", "i-0002"}
    assert rows["i-0002"]["cost_usd_per_hour"] == 0.0


@pytest.mark.parametrize("nothing", ["", "NULL", "null", "  "])
def test_usage_without_a_resource_id_is_one_protected_row_per_service(
    tmp_path: Path, nothing: str
) -> None:
    report, rows = imported(
        tmp_path,
        usage(),
        usage(ResourceId=nothing, ServiceName="Amazon SQS", EffectiveCost="0.25", **hour(0)),
        usage(ResourceId=nothing, ServiceName="Amazon SQS", EffectiveCost="0.75", **hour(1)),
    )
    row = rows["unattributed:Amazon SQS"]
    assert row["protected"] is True
    assert row["cost_usd_per_hour"] == 0.5
    assert row.get("essential") is None
    assert row.get("region") is None
    assert (report.unattributed, report.total_unattributed) == (2, Decimal(1))
    assert report.resources == 1


def test_the_target_is_a_share_of_everything_that_is_shown(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(EffectiveCost="3"), usage(ResourceId="", EffectiveCost="1"))
    report = import_focus(
        bill, output=tmp_path / "out.toml", horizon=7, target_fraction=0.5, name="mine/june"
    )
    scenario = load(report)
    assert (scenario.name, scenario.horizon, scenario.world) == ("mine/june", 7, "finops")
    assert scenario.targets == {"cost_usd_per_hour": 2.0}
    assert scenario.params["task"] == "bill"
    assert scenario.params["reconciliation"]["total_in"] == "4"


def test_negative_usage_is_kept_as_it_is(tmp_path: Path) -> None:
    report, rows = imported(tmp_path, usage(), usage(ResourceId="i-9", EffectiveCost="-0.25"))
    assert rows["i-9"]["cost_usd_per_hour"] == -0.25
    assert (report.negative, report.resources_negative) == (1, 1)
    assert report.total_in == Decimal("0.75")


@pytest.mark.parametrize(
    "cost", ["NaN", "Infinity", "-inf", "1,234.50", "$5", "0x10", "1_000", "１２", "1e999", "abc"]
)
def test_a_cost_that_is_no_number_is_skipped_and_counts_as_a_lost_row(
    tmp_path: Path, cost: str
) -> None:
    bill = write_bill(tmp_path, *[usage() for _ in range(9)], usage(EffectiveCost=cost))
    report = import_focus(bill, output=tmp_path / "out.toml")
    assert report.skipped == {"cost is not a number": 1}
    assert report.gap_fraction == pytest.approx(0.1)
    assert not report.reconciled
    assert report.scenario is None
    assert not (tmp_path / "out.toml").exists()
    assert import_focus(bill, tolerance_fraction=0.2).reconciled


def test_exponents_signs_and_many_digits_are_summed_exactly(tmp_path: Path) -> None:
    costs = ["1e-3", "+0.1", ".2", "3.", "0.00000000000000000001", "-1E+1"]
    bill = write_bill(tmp_path, *[usage(EffectiveCost=cost) for cost in costs])
    report = import_focus(bill)
    assert report.total_in == Decimal("-6.69899999999999999999")
    assert report.total_mapped == report.total_in
    assert report.skipped == {}


def test_rows_without_any_cost_say_so(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(), usage(EffectiveCost="", BilledCost="NULL"))
    assert import_focus(bill).skipped == {"cost is missing": 1}


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        ("June 1, 2026", "June 2, 2026", "charge period is not ISO 8601"),
        ("", "2026-06-01", "charge period is missing"),
        ("2026-06-02", "2026-06-01", "charge period does not end after it starts"),
        ("2026-06-01", "2026-06-01", "charge period does not end after it starts"),
        ("1999-01-01", "2026-06-01", "charge period is longer than 400 days"),
        ("0001-01-01", "9999-12-31", "charge period is not ISO 8601"),
    ],
)
def test_usage_without_a_usable_period_is_skipped_and_its_money_is_the_gap(
    tmp_path: Path, start: str, end: str, reason: str
) -> None:
    bill = write_bill(
        tmp_path, usage(EffectiveCost="3"), usage(ChargePeriodStart=start, ChargePeriodEnd=end)
    )
    report = import_focus(bill, output=tmp_path / "out.toml")
    assert report.skipped == {reason: 1}
    assert report.gap_fraction == 0.25
    assert report.scenario is None


def test_naive_times_are_utc_with_one_warning_and_offsets_are_converted(tmp_path: Path) -> None:
    report, rows = imported(
        tmp_path,
        usage(ChargePeriodStart="2026-06-01 00:00:00", ChargePeriodEnd="2026-06-01 01:00:00"),
        usage(
            ChargePeriodStart="2026-06-01T02:00:00+02:00",
            ChargePeriodEnd="2026-06-01T03:00:00+02:00",
        ),
    )
    assert rows["i-0001"]["covered_hours"] == 1.0
    assert [text for text in report.warnings if "UTC" in text] == [
        "1 charge periods name no time zone: read as UTC"
    ]


def test_two_accounts_that_share_an_id_stay_two_resources(tmp_path: Path) -> None:
    report, rows = imported(
        tmp_path,
        usage(ResourceId="shared", SubAccountId="111"),
        usage(ResourceId="shared", SubAccountId="222", EffectiveCost="4"),
        usage(ResourceId="own", SubAccountId="222"),
    )
    assert set(rows) == {"shared@111", "shared@222", "own"}
    assert rows["shared@222"]["cost_usd_per_hour"] == 4.0
    assert any("share an id" in text for text in report.warnings)


def test_a_hostile_id_cannot_pose_as_unattributed_usage(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path,
        usage(ResourceId="unattributed:Amazon SQS"),
        usage(ResourceId="", ServiceName="Amazon SQS", EffectiveCost="9"),
    )
    assert rows["unattributed:Amazon SQS"]["protected"] is False
    assert rows["unattributed:Amazon SQS@AWS"]["cost_usd_per_hour"] == 9.0


def test_azure_ids_mean_the_same_in_any_case(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path,
        usage(ProviderName="Microsoft", ResourceId="/subscriptions/AB/x", **hour(0)),
        usage(ProviderName="Microsoft", ResourceId="/Subscriptions/ab/X", **hour(1)),
        usage(ResourceId="Case"),
        usage(ResourceId="case"),
    )
    assert set(rows) == {"/subscriptions/AB/x", "Case", "case"}
    assert rows["/subscriptions/AB/x"]["covered_hours"] == 2.0


def test_columns_are_found_by_presence_whatever_they_are_called(tmp_path: Path) -> None:
    row = usage()
    row["service_provider_name"] = row.pop("ProviderName")
    row["billed cost"] = row.pop("BilledCost")
    del row["Tags"]
    row |= {"Id": "7", "x_custom": "mine"}
    bill = tmp_path / "bill.csv"
    bill.write_text(bill_text([row], tuple(row)), encoding="utf-8")
    report = import_focus(bill, output=tmp_path / "out.toml")
    assert load(report).resources["provider"] == ("AWS",)
    assert report.total_billed == Decimal("1.5")
    assert report.columns_unknown == ("Id",)


def test_a_region_without_an_id_takes_its_name(tmp_path: Path) -> None:
    _, rows = imported(tmp_path, usage(RegionId="NULL", RegionName="us-sanjose-1"))
    assert rows["i-0001"]["region"] == "us-sanjose-1"


def test_mixed_currencies_are_refused_without_rates_and_converted_with_them(
    tmp_path: Path,
) -> None:
    bill = write_bill(
        tmp_path, usage(), usage(ResourceId="i-2", EffectiveCost="10", BillingCurrency="eur")
    )
    with pytest.raises(ImportFileError, match="mixes the currencies EUR, USD") as refused:
        import_focus(bill)
    assert refused.value.exit_code == 2
    rates = tmp_path / "rates.csv"
    rates.write_text("currency,usd_per_unit\nEUR,1.1\n", encoding="utf-8")
    report = import_focus(bill, rates=rates)
    assert (report.currency, report.total_in) == ("USD", Decimal("12.0"))
    assert report.gap_fraction == 0.0
    rates.write_text("currency,usd_per_unit\nGBP,1.3\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="Add a line: EUR"):
        import_focus(bill, rates=rates)


@pytest.mark.parametrize(
    "text", ["EUR,0\n", "EUR,-1\n", "EUR,many\n", "EUR,1\nEUR,2\n", "USD,2\n", ",1\n"]
)
def test_a_rate_that_cannot_be_one_is_refused(tmp_path: Path, text: str) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("currency,usd_per_unit\n" + text, encoding="utf-8")
    with pytest.raises(ImportFileError, match="no usable rate"):
        import_focus(write_bill(tmp_path, usage()), rates=rates)


def test_one_foreign_currency_is_kept_and_named(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, usage(BillingCurrency="EUR"))
    assert report.currency == "EUR"
    assert any("amounts are in EUR" in text for text in report.warnings)


def test_sizes_come_from_price_details_first_and_else_from_the_description(
    tmp_path: Path,
) -> None:
    details = json.dumps({"InstanceType": "Standard_D4s_v5"})
    report, rows = imported(
        tmp_path,
        usage(ResourceId="a", SkuPriceDetails=details),
        usage(ResourceId="b"),
        usage(ResourceId="c", ChargeDescription="USD 0.48 per db.r5.large instance hour"),
        usage(ResourceId="d", ChargeDescription="Virtual Machines Dsv5 Series - D4s v5 - US East"),
        usage(ResourceId="e", ChargeDescription="$1.62 per On Demand Linux g5.4xlarge Hour"),
        usage(ResourceId="f", ChargeDescription="D11 v2/DS11 v2 - US East 2"),
        usage(ResourceId="g", SkuPriceDetails="{broken", ChargeDescription="no size here"),
    )
    assert {name: row["size"] for name, row in rows.items()} == {
        "a": "Standard_D4s_v5",
        "b": "m5.xlarge",
        "c": "db.r5.large",
        "d": "Standard_D4s_v5",
        "e": "g5.4xlarge",
        "f": None,
        "g": None,
    }
    assert (report.sizes_read, report.sizes_known) == (5, 4)


def test_a_resource_that_was_resized_has_its_latest_size(tmp_path: Path) -> None:
    new = "$0.096 per On Demand Linux m5.large Instance Hour"
    _, rows = imported(
        tmp_path,
        usage(ChargeDescription=new, **hour(9)),
        usage(**hour(2)),
        usage(**hour(1)),
    )
    assert rows["i-0001"]["size"] == "m5.large"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ResourceType": "instance"}, "compute"),
        ({"ResourceType": "volume", "ServiceCategory": "Compute"}, "storage"),
        ({"ResourceType": "MySQL server", "ServiceCategory": "Databases"}, "database"),
        ({"ResourceType": "NULL", "ResourceId": "arn:aws:ec2:x:1:snapshot/snap-0a"}, "snapshot"),
        ({"ResourceType": "NULL", "ResourceId": "arn:aws:ec2:x:1:natgateway/nat-0a"}, "gateway"),
        (
            {
                "ResourceType": "NULL",
                "ResourceId": "x",
                "ChargeDescription": "$0.005 per Idle public IPv4 address per hour",
            },
            "address",
        ),
        (
            {
                "ResourceType": "NULL",
                "ResourceId": "x",
                "ChargeDescription": "$0.000 per GB - data transfer in per month",
                "ServiceName": "Elastic Load Balancing",
                "ServiceCategory": "Networking",
            },
            "loadbalancer",
        ),
        (
            {
                "ResourceType": "NULL",
                "ResourceId": "x",
                "ChargeDescription": "requests",
                "ServiceName": "AWS WAF",
                "ServiceCategory": "Security",
            },
            "other",
        ),
    ],
)
def test_the_kind_follows_the_strongest_evidence(
    tmp_path: Path, changes: dict[str, str], kind: str
) -> None:
    _, rows = imported(tmp_path, usage(**changes))
    assert next(iter(rows.values()))["kind"] == kind


def test_a_committed_resource_says_so_and_an_unused_commitment_is_protected(
    tmp_path: Path,
) -> None:
    _, rows = imported(
        tmp_path,
        usage(CommitmentDiscountStatus="Used", CommitmentDiscountType="Savings Plan"),
        usage(
            ResourceId="sp-1",
            CommitmentDiscountId="sp-1",
            CommitmentDiscountStatus="Unused",
            CommitmentDiscountType="Savings Plan",
        ),
    )
    assert rows["i-0001"]["commitment"] == "Savings Plan"
    assert rows["i-0001"]["protected"] is False
    assert rows["sp-1"]["protected"] is True


def test_every_row_is_accounted_for_exactly_once(tmp_path: Path) -> None:
    bill = write_bill(
        tmp_path,
        usage(),
        usage(ResourceId=""),
        usage(ChargeCategory="Tax"),
        usage(EffectiveCost="NaN"),
        usage(ChargePeriodEnd=""),
    )
    with bill.open("a", encoding="utf-8") as file:
        file.write('too,few\n\n   \n"never closed,\nswallowed,\n')
    report = import_focus(bill)
    assert report.skipped["wrong number of fields"] == 1
    assert report.skipped["a quote never closes in the record of lines 10 to 11"] == 2
    assert report.rows == 8
    counted = report.mapped + report.unattributed + report.ledger + sum(report.skipped.values())
    assert counted == report.rows


def test_the_dearest_resources_say_what_is_missing_to_act_on_them(tmp_path: Path) -> None:
    report, _ = imported(
        tmp_path,
        usage(ResourceId="cheap", EffectiveCost="0.1"),
        usage(ResourceId="dear", EffectiveCost="50", ChargeDescription="no size"),
        usage(ResourceId="disk", EffectiveCost="5", ResourceType="volume"),
        usage(ResourceId="free", EffectiveCost="0"),
        usage(ResourceId="", EffectiveCost="900"),
    )
    assert [row["id"] for row in report.dearest] == ["dear", "disk", "cheap"]
    assert report.dearest[0]["missing"] == [
        "cpu_percent",
        "memory_percent",
        "size (to resize)",
        "essential (yes or no)",
    ]
    assert report.dearest[1]["missing"] == ["idle_hours", "essential (yes or no)"]
    assert any("dear" in line and "cpu_percent" in line for line in report.lines())


def test_a_bill_without_usage_makes_a_report_but_no_scenario(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(ChargeCategory="Tax"))
    assert import_focus(bill).ledger == 1
    with pytest.raises(ImportFileError, match="has no usage"):
        import_focus(bill, output=tmp_path / "out.toml")
    assert not (tmp_path / "out.toml").exists()


def test_a_rate_beyond_reason_is_refused_with_the_resource(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(EffectiveCost="1e6", ChargePeriodEnd="2026-06-01T00:00:01Z"))
    with pytest.raises(ImportFileError, match="i-0001 costs 1000000 for 1 seconds"):
        import_focus(bill)


def test_a_credit_larger_than_the_usage_gives_no_target_and_still_loads(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(EffectiveCost="-5"), usage(ResourceId="b"))
    scenario = load(import_focus(bill, output=tmp_path / "out.toml"))
    assert scenario.targets == {}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"horizon": 0}, "horizon"),
        ({"target_fraction": 0.0}, "target fraction"),
        ({"target_fraction": 1.5}, "target fraction"),
        ({"tolerance_fraction": -0.1}, "tolerance"),
        ({"tolerance_fraction": float("nan")}, "tolerance"),
        ({"name": "../evil name"}, "scenario name"),
    ],
)
def test_options_that_cannot_work_are_refused(
    tmp_path: Path, options: dict[str, object], word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        import_focus(write_bill(tmp_path, usage()), **options)  # type: ignore[arg-type]


def test_the_report_as_json_has_plain_values_and_exact_sums(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, usage(EffectiveCost="0.1"), usage(EffectiveCost="0.2"))
    document = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert document["total_in"] == 0.3
    assert document["skipped"] == {}
    assert document["scenario"] == str(tmp_path / "out.toml")
    assert document["gap_fraction"] == 0.0


def test_an_imported_bill_can_be_played_and_its_unknowns_cannot_be_terminated(
    tmp_path: Path,
) -> None:
    bill = write_bill(
        tmp_path,
        usage(ResourceId="unknown"),
        usage(ResourceId="spare", Tags='{"essential": "no"}'),
        usage(ResourceId="", ServiceName="Amazon SQS"),
    )
    use = tmp_path / "use.csv"
    lines = [f"{name},{metric},1" for name in ("unknown", "spare") for metric in USE]
    use.write_text("\n".join(["resource_id,metric,value", *lines]), encoding="utf-8")
    scenario = load(import_focus(bill, metrics=use, output=tmp_path / "out.toml"))
    world = make_world(scenario)
    seen = world.observe(world.reset(scenario, [0]))
    assert seen.metrics["cost_usd_per_hour"] == 3.0
    assert seen.targets["cost_usd_per_hour"] == 2.4
    refused = {
        name: world.check(seen, Action.of("terminate", name)) is not None
        for name in ("unknown", "spare", "unattributed:Amazon SQS")
    }
    assert refused == {"unknown": True, "spare": False, "unattributed:Amazon SQS": True}


def test_rows_without_a_currency_count_in_the_only_one_and_are_counted(tmp_path: Path) -> None:
    rows = [usage(BillingCurrency="EUR"), usage(BillingCurrency=""), usage(BillingCurrency="NULL")]
    report, _ = imported(tmp_path, *rows)
    assert (report.currency, report.currency_missing) == ("EUR", 2)
    assert report.as_json()["currency_missing"] == 2
    assert any("2 of 3 rows name no currency" in text for text in report.warnings)
    whole, _ = imported(tmp_path, usage())
    assert whole.currency_missing == 0
    assert not any("name no currency" in text for text in whole.warnings)


@pytest.mark.parametrize("text", ["€", "US Dollar", "US$", "1", "usd;eur", "\x1b[31mUSD"])
def test_a_currency_that_cannot_be_read_is_refused_with_its_row(tmp_path: Path, text: str) -> None:
    odd = usage(BillingCurrency=text, EffectiveCost="0")
    bill = write_bill(tmp_path, usage(ChargeDescription="two\nlines"), odd)
    with pytest.raises(ImportFileError, match=r"row 2 \(line 4\): BillingCurrency is") as refused:
        import_focus(bill, output=tmp_path / "out.toml")
    assert refused.value.exit_code == 2
    assert text.replace("\x1b", "\\\\x1b") in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert not (tmp_path / "out.toml").exists()
