"""Scenario files hold what their fields say: numbers are numbers, and nothing is ignored."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from world.errors import ScenarioError
from world.model import Scenario
from world.scenarios.loader import load_scenario, read_scenario, scenario_names
from world.worlds.registry import make_world

HEAD = 'schema = "scenario/1"\nname = "mine"\nworld = "cloudedge"\n'
GOOD = {
    "horizon": "30",
    "targets": "{ latency_ms = 100 }",
    "tolerances": "{ latency_ms = [5, 2.5] }",
}


def _read(folder: Path, **fields: str) -> Scenario:
    path = folder / "mine.toml"
    lines = [f"{name} = {value}" for name, value in (GOOD | fields).items()]
    path.write_text(HEAD + "\n".join(lines), encoding="utf-8")
    return read_scenario(path)


def test_whole_numbers_stand_for_real_ones(tmp_path: Path) -> None:
    scenario = _read(tmp_path)
    assert scenario.horizon == 30
    assert scenario.targets == {"latency_ms": 100.0}
    assert scenario.tolerances == {"latency_ms": (5.0, 2.5)}


@pytest.mark.parametrize(
    ("field", "value", "where", "allowed"),
    [
        ("horizon", '"30"', "horizon is '30'", "a whole number without quotes"),
        ("horizon", "30.0", "horizon is 30.0", "a whole number"),
        ("horizon", "true", "horizon is True", "a whole number"),
        ("horizon", "0", "horizon is 0", "greater than or equal to 1"),
        ("targets", '{ latency_ms = "100" }', "targets.latency_ms is '100'", "a number"),
        ("targets", "{ latency_ms = true }", "targets.latency_ms is True", "a number"),
        ("targets", "7", "targets is 7", "a table"),
        ("tolerances", '{ latency_ms = ["5", 2] }', "tolerances.latency_ms.0 is '5'", "a number"),
        ("tolerances", "{ latency_ms = [5, false] }", "latency_ms.1 is False", "a number"),
        ("title", "7", "title is 7", "text in quotes"),
        ("horizn", "30", "no field 'horizn'", "Fields: schema, name, world"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused_with_file_field_and_what_is_allowed(
    field: str, value: str, where: str, allowed: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        _read(tmp_path, **{field: value})
    line = caught.value.line()
    assert "mine.toml" in line
    assert where in line
    assert allowed in line


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD, encoding="utf-8")
    with pytest.raises(ScenarioError, match="horizon is missing"):
        read_scenario(path)


def _numbers() -> list[Any]:
    """Every number of every world's parameters, once for each world."""
    found: dict[tuple[str, str], Any] = {}
    for name in scenario_names():
        scenario = load_scenario(name)
        for key, value in scenario.params.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                case = (scenario.world, key)
                found.setdefault(case, pytest.param(name, key, id=f"{scenario.world}-{key}"))
    return list(found.values())


@pytest.mark.parametrize(("name", "key"), _numbers())
def test_no_world_takes_text_for_a_number(name: str, key: str) -> None:
    scenario = load_scenario(name)
    quoted = dataclasses.replace(
        scenario, params={**scenario.params, key: str(scenario.params[key])}
    )
    with pytest.raises(ScenarioError, match=key):
        make_world(quoted).reset(quoted, [1])
