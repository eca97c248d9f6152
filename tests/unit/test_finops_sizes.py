"""The size table and the resource columns: facts, ladders, and cells that are refused by name."""

from __future__ import annotations

import csv
import math
from typing import Any

import pytest

from tests.support.finops import ZOMBIE, bill
from world.errors import ScenarioError, UnknownNameError
from world.model import Scenario
from world.worlds.finops import make, sizes
from world.worlds.finops.schema import (
    RESOURCE_COLUMNS,
    flag_of,
    text_of,
    validate_resources,
    words,
)
from world.worlds.finops.tables import GRID_TABLE, other_rungs, size_codes, size_table


def test_every_row_of_the_table_names_its_source_and_is_sound() -> None:
    with sizes.TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len({row["type"] for row in rows}) == len(rows) > 100
    for row in rows:
        assert row["source"], row["type"]
        assert row["retrieved"], row["type"]
        assert row["licence"], row["type"]
        assert row["assumed"] in ("yes", "no")
        idle, half, full = (float(row[name]) for name in ("watts_idle", "watts_50", "watts_100"))
        assert 0 < idle < half < full, row["type"]
        assert float(row["usd_per_hour"]) > 0
    databases = [row for row in rows if row["type"].startswith("db.")]
    assert databases
    assert all(row["assumed"] == "yes" and "assumed" in row["source"] for row in databases)
    with GRID_TABLE.open(encoding="utf-8", newline="") as lines:
        assert all(row["source"] and float(row["g_per_kwh"]) > 0 for row in csv.DictReader(lines))


@pytest.mark.parametrize(
    ("size", "usd", "vcpu", "memory"),
    [
        ("m5.xlarge", 0.192, 4, 16),
        ("t3.medium", 0.0416, 2, 4),
        ("db.m5.large", 0.192, 2, 8),
        ("p4d.24xlarge", 32.7726, 96, 1152),
        ("Standard_D4s_v5", 0.192, 4, 16),
        ("e2-standard-8", 0.268, 8, 32),
    ],
)
def test_published_facts(size: str, usd: float, vcpu: int, memory: float) -> None:
    machine = sizes.machine_type(size)
    assert (machine.usd_per_hour, machine.vcpu, machine.memory_gib) == (usd, vcpu, memory)
    assert sizes.price(size) == usd


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("M5.XLARGE", "m5.xlarge"),
        ("D4s v5", "Standard_D4s_v5"),
        ("Standard_D4s_v5", "Standard_D4s_v5"),
        ("standard d4s v5", "Standard_D4s_v5"),
        ("E2-Standard-4", "e2-standard-4"),
        ("500GB", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_sizes_are_recognised_however_a_bill_spells_them(text: str, size: str | None) -> None:
    assert sizes.canonical_size(text) == size


def test_a_ladder_holds_a_family_and_its_declared_equivalents_and_nothing_else() -> None:
    assert set(sizes.sizes_of_family("m5.xlarge")) < set(sizes.ladder("m5.xlarge"))
    for name in size_codes():
        rungs = sizes.ladder(name)
        assert name in rungs
        machine = sizes.machine_type(name)
        for other in rungs:
            mate = sizes.machine_type(other)
            assert (mate.provider, mate.ladder) == (machine.provider, machine.ladder)
            assert other.startswith("db.") == name.startswith("db.")
        capacities = [
            (sizes.machine_type(rung).vcpu, sizes.machine_type(rung).memory_gib) for rung in rungs
        ]
        assert capacities == sorted(capacities)
    assert sizes.ladder("500GB") == sizes.smaller_sizes("500GB") == sizes.larger_sizes("x") == ()


def test_smaller_costs_less_and_holds_no_more_and_larger_holds_more() -> None:
    for name in size_codes():
        machine = sizes.machine_type(name)
        prices = [sizes.price(other) for other in sizes.smaller_sizes(name)]
        assert prices == sorted(prices, reverse=True)
        for other in map(sizes.machine_type, sizes.smaller_sizes(name)):
            assert other.usd_per_hour < machine.usd_per_hour
            assert other.vcpu <= machine.vcpu
            assert other.memory_gib <= machine.memory_gib
        for other in map(sizes.machine_type, sizes.larger_sizes(name)):
            assert (other.vcpu, other.memory_gib) != (machine.vcpu, machine.memory_gib)
            assert other.vcpu >= machine.vcpu


def test_what_is_unknown_fits_only_where_nothing_shrinks() -> None:
    assert sizes.fits("m5.4xlarge", "m5.xlarge", 10.0, 12.0)
    assert not sizes.fits("m5.4xlarge", "m5.xlarge", 10.0, 30.0)
    assert not sizes.fits("m5.4xlarge", "m5.xlarge", 10.0, None)
    assert not sizes.fits("m5.4xlarge", "m5.xlarge", math.nan, 10.0)
    assert sizes.fits("m7i.xlarge", "m5.xlarge", None, None)
    assert sizes.cheapest_fit("m5.4xlarge", 10.0, 10.0) == "m5.large"
    assert sizes.cheapest_fit("m5.4xlarge", 60.0, 10.0) is None
    assert sizes.projected_percent("m5.4xlarge", "m5.large", 10.0, None)[0] == 80.0


def test_power_is_piecewise_linear_between_the_table_points() -> None:
    assert sizes.watts("m5.4xlarge", 0.0) == 35.3
    assert sizes.watts("m5.4xlarge", 50.0) == 113.0
    assert sizes.watts("m5.4xlarge", 100.0) == sizes.watts("m5.4xlarge", 140.0) == 159.6
    assert sizes.watts("m5.4xlarge", 75.0) == pytest.approx(136.3)


def test_an_unknown_size_is_named_with_what_was_meant() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean m5\.xlarge"):
        sizes.price("M5.xlarge")
    with pytest.raises(UnknownNameError, match="machine_types"):
        sizes.machine_type("banana")


def test_the_arrays_are_the_table() -> None:
    table = size_table()
    for name, code in size_codes().items():
        assert table.names[code] == name
        assert table.usd_per_hour[code] == sizes.price(name)
        cheaper = [table.names[at] for at in table.smaller[code] if at]
        assert cheaper == list(sizes.cheapest_sizes(name))
        assert set(cheaper) == set(sizes.smaller_sizes(name))
        assert {table.names[at] for at in other_rungs(code)} == set(sizes.ladder(name)) - {name}
    assert other_rungs(0) == other_rungs(10_000) == ()


BAD_CELLS: dict[str, tuple[str, Any, str]] = {
    "text as cost": ("cost_usd_per_hour", "12,5", "must be a number"),
    "true as cost": ("cost_usd_per_hour", True, "must be a number"),
    "no cost": ("cost_usd_per_hour", None, "required"),
    "infinite cost": ("cost_usd_per_hour", math.inf, "finite"),
    "absurd cost": ("cost_usd_per_hour", 1e9, "within"),
    "cpu above 100": ("cpu_percent", 101.0, "between 0 and 100"),
    "negative memory": ("memory_percent", -1.0, "between 0 and 100"),
    "negative idle time": ("idle_hours", -3.0, "at least 0"),
    "another essential": ("essential", "maybe", "one of yes, no"),
    "another kind": ("kind", "vm", "one of compute, database"),
    "another manager": ("managed_by", "me", "one of none, autoscaler"),
    "protected as text": ("protected", "perhaps", "true or false"),
    "an unknown dependant": ("dependants", "b ghost", "no resource 'ghost'"),
    "itself as dependant": ("dependants", "a", "depend on each other"),
}


@pytest.mark.parametrize("what", BAD_CELLS)
def test_a_wrong_cell_is_refused_with_row_id_and_field(what: str) -> None:
    field, value, expected = BAD_CELLS[what]
    scenario = bill({"b": ZOMBIE, "a": {**ZOMBIE, field: value}})
    with pytest.raises(ScenarioError) as caught:
        make(scenario)
    line = caught.value.line()
    assert expected in line
    assert "'a'" in line
    if what != "itself as dependant":
        assert field in line
        assert "resource 2" in line
    assert "\n" not in line


def test_dependants_in_a_circle_are_refused() -> None:
    rows = {
        "a": {**ZOMBIE, "dependants": "b"},
        "b": {**ZOMBIE, "dependants": "c"},
        "c": {**ZOMBIE, "dependants": "a"},
    }
    with pytest.raises(ScenarioError, match="circle"):
        validate_resources(bill(rows))
    rows["c"] = {**ZOMBIE, "dependants": ""}
    validate_resources(bill(rows))


def test_a_long_chain_of_dependants_needs_no_recursion() -> None:
    rows = {f"r{at}": {**ZOMBIE, "dependants": f"r{at + 1}"} for at in range(3000)}
    rows["r3000"] = dict(ZOMBIE)
    validate_resources(bill(rows))


def test_a_bill_without_rows_or_with_ragged_columns_is_refused() -> None:
    empty = Scenario("x", "finops", "", "", 10, params={"task": "bill"})
    with pytest.raises(ScenarioError, match="no resources"):
        make(empty)
    ragged = Scenario(
        "x",
        "finops",
        "",
        "",
        10,
        params={"task": "bill"},
        resources={"id": ("a", "b"), "cost_usd_per_hour": (1.0,)},
    )
    with pytest.raises(ScenarioError, match="1 values"):
        make(ragged)
    without = Scenario("x", "finops", "", "", 10, params={"task": "bill"}, resources={"id": ("a",)})
    with pytest.raises(ScenarioError, match="cost_usd_per_hour"):
        make(without)


def test_cells_of_a_csv_file_read_like_those_of_a_toml_file() -> None:
    assert [text_of(cell) for cell in (None, 7.0, 7.5, "007")] == ["", "7", "7.5", "007"]
    assert [flag_of(cell) for cell in (None, "", 1.0, 0, "Yes", "false")] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    assert flag_of(2) is None
    assert flag_of("nope") is None


def test_the_view_shows_words_for_codes() -> None:
    scenario = bill({"a": {**ZOMBIE, "owner": "data"}, "b": {**ZOMBIE, "size": "weird-size"}})
    world = make(scenario)
    view = world.observe(world.reset(scenario, [0])).inventory
    assert view is not None
    assert words(view, "owner").tolist() == ["data", ""]
    assert words(view, "size").tolist() == ["m5.xlarge", "weird-size"]
    assert view.row("b")["essential"] == "no"


def test_a_file_cannot_smuggle_in_columns_of_state() -> None:
    rows = {"a": {**ZOMBIE, "state": "terminated", "h.essential": "no", "resized": 1.0}}
    scenario = bill(rows)
    world = make(scenario)
    state = world.reset(scenario, [0])
    snapshot = world.columns(state)
    assert snapshot.columns["state"].tolist() == [0]
    assert snapshot.columns["resized"].tolist() == [0]
    assert "h.essential" not in snapshot.columns


def test_the_columns_of_a_scenario_are_documented_once() -> None:
    names = [spec.name for spec in RESOURCE_COLUMNS]
    assert len(set(names)) == len(names)
    assert names[0] == "id"
    assert all(spec.description for spec in RESOURCE_COLUMNS)
