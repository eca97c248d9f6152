"""Any text that a bill may hold survives the scenario file, and every row is counted once."""

from __future__ import annotations

import tempfile
import tomllib
import unicodedata
from decimal import Decimal
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.bills import bill_text, hour, usage
from world.importers.focus import import_focus
from world.importers.periods import Coverage
from world.importers.scenario_writer import columns_text, scenario_text, toml_string, toml_value
from world.importers.tables import TableReader, visible
from world.importers.tags import read_tags
from world.model import Scenario
from world.scenarios.loader import read_scenario

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
HOSTILE = st.sampled_from(
    [
        '"""',
        "'''",
        "\\u0000",
        "\x00\x1b[31m",
        "\r\n[targets]\n",
        "]]",
        "=cmd|' /C calc'!A0",
        "\ufeff",
    ]
)
ANY_TEXT = st.one_of(TEXT, HOSTILE)
VALUE = st.recursive(
    st.one_of(
        ANY_TEXT,
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


@given(ANY_TEXT)
def test_any_text_reads_back_from_toml_as_it_was(text: str) -> None:
    assert tomllib.loads(f"a = {toml_string(text)}")["a"] == text


@given(st.text(max_size=20))
def test_text_with_lone_surrogates_is_still_utf8_and_toml(text: str) -> None:
    line = f"a = {toml_string(text)}".encode()
    assert len(tomllib.loads(line.decode())["a"]) == len(text)


@given(VALUE)
def test_any_value_reads_back_from_toml_as_it_was(value: object) -> None:
    assert tomllib.loads(f"a = {toml_value(value)}")["a"] == value


@given(st.lists(ANY_TEXT, min_size=1, max_size=6), st.dictionaries(ANY_TEXT, VALUE, max_size=3))
@settings(max_examples=50, deadline=None)
def test_any_inventory_loads_as_it_was_written(texts: list[str], params: dict[str, object]) -> None:
    resources = {
        "id": tuple(f"r{number}" for number in range(len(texts))),
        "name": tuple(texts),
        "cost_usd_per_hour": tuple(0.1 * number for number in range(len(texts))),
        "protected": tuple(number % 2 == 0 for number in range(len(texts))),
        "cpu_percent": (None,) * len(texts),
    }
    scenario = Scenario("a/b", "finops", "t", "d", 10, params, resources=resources)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.toml"
        path.write_bytes(scenario_text(scenario).encode())
        read = read_scenario(path)
    assert read.params == params
    known = {name: cells for name, cells in resources.items() if name != "cpu_percent"}
    assert dict(read.resources) == known


@given(st.lists(ANY_TEXT, min_size=1, max_size=6))
def test_visible_text_never_breaks_a_line_of_the_columns_file(texts: list[str]) -> None:
    shown = [visible(text) for text in texts]
    lines = columns_text({"id": shown, "name": shown}).splitlines()
    assert len(lines) == len(texts) + 1
    hidden = {"Cc", "Cs", "Zl", "Zp"}
    assert not any(
        unicodedata.category(character) in hidden for text in shown for character in text
    )


@given(st.text(max_size=200))
@example('{"essential":"yes"')
@example('{"a":1e999999999}')
def test_no_tags_can_break_the_reader(text: str) -> None:
    assert read_tags(text).essential in {"yes", "no", None}


COST = st.one_of(
    st.decimals(-1000, 1000, places=6).map(str),
    st.sampled_from(["NULL", "", "NaN", "1,5", "1e-3", "inf", "0"]),
)
ROW = st.fixed_dictionaries(
    {
        "EffectiveCost": COST,
        "BilledCost": COST,
        "ResourceId": st.sampled_from(["i-1", "i-2", "NULL", "", "x\ny"]),
        "ChargeCategory": st.sampled_from(["Usage", "usage", "Credit", "Tax", "", "Purchase"]),
        "ChargePeriodStart": st.sampled_from(
            ["2026-06-01", "NULL", "2026-13-01", "2026-06-01T05:00Z"]
        ),
        "ChargePeriodEnd": st.sampled_from(["2026-06-02", "2026-06-01", ""]),
        "Tags": ANY_TEXT,
        "ResourceName": ANY_TEXT,
        "SubAccountId": st.sampled_from(["1", "2"]),
    }
)


@given(st.lists(ROW, min_size=1, max_size=12), st.lists(st.sampled_from(["a,b", '"', "\n", ","])))
@settings(max_examples=120, deadline=None)
def test_every_row_of_any_bill_is_counted_exactly_once(
    rows: list[dict[str, str]], rubbish: list[str]
) -> None:
    text = bill_text([usage(**row) for row in rows]).replace("\x00", "") + "".join(rubbish)
    with tempfile.TemporaryDirectory() as folder:
        bill = Path(folder) / "bill.csv"
        bill.write_bytes(text.encode())
        report = import_focus(bill)
    counted = report.mapped + report.unattributed + report.ledger + sum(report.skipped.values())
    assert counted == report.rows >= len(rows)
    parts = report.total_mapped + report.total_unattributed + report.total_ledger
    if report.skipped:
        assert 0.0 <= report.gap_fraction <= 1.0
    else:
        assert parts == report.total_in
        assert report.gap_fraction == 0.0
    assert sum(report.ledger_totals.values(), Decimal(0)) == report.total_ledger


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 22),
            st.decimals(0, 100, places=4).map(str),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=60, deadline=None)
def test_rates_times_hours_give_back_the_money_of_the_bill(
    charges: list[tuple[str, int, str]],
) -> None:
    rows = [usage(ResourceId=name, EffectiveCost=cost, **hour(at)) for name, at, cost in charges]
    with tempfile.TemporaryDirectory() as folder:
        bill = Path(folder) / "bill.csv"
        bill.write_text(bill_text(rows), encoding="utf-8")
        output = Path(folder) / "out.toml"
        import_focus(bill, output=output)
        table = read_scenario(output).resources
    money = sum(
        rate * hours
        for rate, hours in zip(table["cost_usd_per_hour"], table["covered_hours"], strict=True)
    )
    total = float(sum(Decimal(cost) for _, _, cost in charges))
    assert abs(money - total) <= 1e-6 * max(1.0, total)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30))
def test_covered_time_is_the_union_of_its_intervals(spans: list[tuple[int, int]]) -> None:
    coverage, union = Coverage(), set()
    for start, length in spans:
        coverage.add(start, start + length)
        union |= set(range(start, start + length))
    assert coverage.seconds == len(union)
    assert coverage.end_s == (max(union) + 1 if union else None)


CELL = st.text(st.sampled_from('a1 ,;"\n{}'), max_size=12)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=8), st.sampled_from(",;|\t"))
def test_any_table_that_a_csv_writer_makes_reads_back_row_by_row(
    rows: list[tuple[str, str, str]], delimiter: str
) -> None:
    columns = ("ResourceId", "Tags", "ChargeDescription")
    text = bill_text(
        [dict(zip(columns, row, strict=True)) for row in rows], columns, delimiter=delimiter
    )
    aliases = {name: (name.casefold(),) for name in columns}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_text(text, encoding="utf-8")
        with TableReader(path, aliases, "table") as table:
            read = [(table.line, *row) for row in table]
            assert not table.skipped
    first, expected = 2, []
    for row in rows:
        expected.append((first, *row))
        first += 1 + sum(cell.count("\n") for cell in row)
    assert read == expected
