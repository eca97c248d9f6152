"""The small pieces that a bill is read with: amounts, moments, hours, ids, TOML values."""

from __future__ import annotations

import doctest
import importlib
from decimal import Decimal
from pathlib import Path

import pytest

from world.errors import ConfigError
from world.importers.atomic import write_atomically
from world.importers.ids import unique_ids
from world.importers.money import parse_amount, plain
from world.importers.periods import Coverage, parse_instant
from world.importers.scenario_writer import toml_value
from world.importers.tables import visible


@pytest.mark.parametrize(
    "name",
    ["focus", "ids", "kinds", "money", "periods", "scenario_writer", "tables", "tags"],
)
def test_the_examples_in_the_docstrings_hold(name: str) -> None:
    module = importlib.import_module(f"world.importers.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Decimal(0)),
        ("-0.0", Decimal(0)),
        (" 1.5 ", Decimal("1.5")),
        ("1e-7", Decimal("1E-7")),
        ("-12.", Decimal(-12)),
        ("1e16", None),
        ("1e-41", None),
        ("1.2.3", None),
        ("--1", None),
        ("", None),
        ("1" * 81, None),
        ("1,5", None),
        ("٣", None),
        ("sNaN", None),
    ],
)
def test_an_amount_is_a_plain_decimal_or_nothing(text: str, value: Decimal | None) -> None:
    assert parse_amount(text) == value


def test_sums_are_written_without_exponents() -> None:
    assert [plain(Decimal(text)) for text in ("1E+3", "1.500", "-0", "0.0000001", "-2.50")] == [
        "1000",
        "1.5",
        "0",
        "0.0000001",
        "-2.5",
    ]


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "9/1/2024", "2024-13-01", "1", "2024-09-01T00:00:00+99:00", "9999-1-1"],
)
def test_what_is_no_iso_8601_moment_is_none(text: str) -> None:
    assert parse_instant(text) is None


def test_hours_that_overlap_touch_and_arrive_in_any_order_count_once() -> None:
    hours = Coverage()
    for start, end in [(7200, 10800), (0, 3600), (3600, 7200), (1800, 5400), (36000, 39600)]:
        hours.add(start, end)
    assert (hours.hours, hours.start_s, hours.end_s) == (4.0, 0, 39600)


def test_ids_stay_unique_however_they_collide() -> None:
    items = [("a", "1", "P"), ("a", "1", "Q"), ("a", "2", "P"), ("a@1", "9", "P"), ("b", "", "")]
    names = unique_ids(items)
    assert len(set(names)) == len(items)
    assert names[3:] == ["a@1", "b"]


def test_very_long_names_are_cut_and_still_differ() -> None:
    one, two = visible("x" * 5000 + "1"), visible("x" * 5000 + "2")
    assert len(one) == 2048
    assert one != two


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), b"bytes", {"a": None}])
def test_what_toml_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        toml_value(value)


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    with pytest.raises(ConfigError):
        write_atomically(tmp_path / "file" / "below", b"new")
    with pytest.raises(ConfigError, match="is a folder"):
        write_atomically(tmp_path, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
