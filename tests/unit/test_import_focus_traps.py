"""Bills as clouds really write them: a second mark at the first row, local dates, own formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bills import bill_text, usage, write_bill
from world.errors import ImportFileError
from world.importers.focus import import_focus

MARK = "\ufeff"


@pytest.mark.parametrize("quoted", [False, True])
def test_a_second_byte_order_mark_at_the_first_row_changes_nothing(
    quoted: bool, tmp_path: Path
) -> None:
    plain = import_focus(write_bill(tmp_path, usage(), usage()))
    header, rest = (tmp_path / "bill.csv").read_text(encoding="utf-8").split("\n", 1)
    first = f'{MARK}"{rest.split(",", 1)[0]}",{rest.split(",", 1)[1]}' if quoted else MARK + rest
    marked = tmp_path / "azure.csv"
    marked.write_bytes(f"{MARK}{header}\n{first}".encode())
    report = import_focus(marked)
    assert (report.rows, report.skipped) == (2, {})
    assert report.total_in == plain.total_in
    assert report.total_mapped == plain.total_mapped


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("09/01/2024", "09/02/2024"),
        ("9/1/2024 10:00", "9/1/2024 11:00"),
        ("13/01/2024", "14/01/2024"),
        ("01.09.2024", "02.09.2024"),
        ("1-9-24", "2-9-24"),
        ("2026-06-01", "06/02/2026"),
    ],
)
def test_a_bill_with_local_dates_is_refused_in_one_clear_line(
    start: str, end: str, tmp_path: Path
) -> None:
    bill = write_bill(
        tmp_path, usage(), usage(ChargePeriodStart=start, ChargePeriodEnd=end), usage()
    )
    with pytest.raises(ImportFileError, match="month and day cannot be told apart") as caught:
        import_focus(bill, output=tmp_path / "out.toml")
    assert "ChargePeriod" in caught.value.what
    assert "ISO 8601" in caught.value.fix
    assert not (tmp_path / "out.toml").exists()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("identity/LineItemId,lineItem/LineItemType,lineItem/UnblendedCost", "AWS Cost and Usage"),
        ("identity_line_item_id,line_item_line_item_type,product,tags", "AWS Cost and Usage"),
        ("SubscriptionId,ResourceId,CostInBillingCurrency,Date,Tags", "Azure cost export"),
        ("subscriptionId,preTaxCost,meterCategory,usageDate", "Azure cost export"),
        ("billing_account_id,service.description,cost,credits", "Google Cloud billing export"),
    ],
)
def test_a_cloud_s_own_format_is_named_with_the_way_to_focus(
    header: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "bill.csv").write_text(f"{header}\n{',' * header.count(',')}\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match=name) as caught:
        import_focus(tmp_path / "bill.csv")
    assert "FOCUS" in caught.value.fix


def test_a_focus_bill_with_columns_of_its_cloud_is_still_a_focus_bill(tmp_path: Path) -> None:
    header, *rows = bill_text([usage()]).splitlines()
    lines = [f"{header},lineItemLineItemType", *(f"{row},Usage" for row in rows)]
    (tmp_path / "bill.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert import_focus(tmp_path / "bill.csv").rows == 1


def test_mixed_currencies_are_never_summed(tmp_path: Path) -> None:
    bill = write_bill(tmp_path, usage(BillingCurrency="USD"), usage(BillingCurrency="eur"))
    with pytest.raises(ImportFileError, match="mixes the currencies EUR, USD") as caught:
        import_focus(bill)
    assert "--rates" in caught.value.fix
