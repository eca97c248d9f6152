"""CloudEdge scenarios that contradict themselves are refused with the field that does."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.support.cloudedge import LEVELS, scenario
from world.errors import ScenarioError
from world.model import Scenario
from world.worlds.cloudedge import make

PUBLISHED_STARTS = {
    "easy": (180.0, 450.0, 260.0, 12, 3),
    "medium": (230.0, 530.0, 320.0, 9, 2),
    "hard": (280.0, 620.0, 380.0, 7, 2),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("regime", ["", "seed/", "seed-open/"])
def test_a_shipped_scenario_starts_where_the_seed_starts(regime: str, level: str) -> None:
    settings = make(scenario(regime + level)).settings
    start = (*settings.start, settings.base_steps, settings.jitter_steps)
    assert start == PUBLISHED_STARTS[level]
    assert settings.targets == (150.0, 400.0, 220.0)
    assert settings.sequential == bool(regime)
    assert settings.announced == (regime != "seed-open/")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"noise": "dice"}, "params.noise"),
        ({"crisis_response": 3}, "params.crisis_response"),
        ({"latency_ms": 20.0}, "params.latency_ms"),
        ({"carbon_index": "low"}, "params.carbon_index"),
        ({"cost_usd_per_hour": True}, "params.cost_usd_per_hour"),
        ({"crisis_base_steps": 0}, "params.crisis_base_steps"),
        ({"crisis_base_steps": 7.5}, "params.crisis_base_steps"),
        ({"crisis_jitter_steps": 7}, "params.crisis_jitter_steps"),
        ({"crisis_jitter_steps": -1}, "params.crisis_jitter_steps"),
        ({"crisis_bose_steps": 7}, "params.crisis_bose_steps"),
    ],
)
def test_a_wrong_parameter_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        make(scenario("hard", **change))
    assert field in caught.value.what


def test_a_missing_number_and_a_target_of_no_metric_are_named() -> None:
    hard = scenario("hard")

    def without(name: str) -> Scenario:
        params = {key: value for key, value in hard.params.items() if key != name}
        return dataclasses.replace(hard, params=params)

    for name in ("latency_ms", "noise", "crisis_base_steps"):
        with pytest.raises(ScenarioError, match=rf"params\.{name} is None"):
            make(without(name))
    with pytest.raises(ScenarioError, match=r"targets\.error_rate"):
        make(dataclasses.replace(hard, targets={**hard.targets, "error_rate": 1.0}))
    with pytest.raises(ScenarioError, match=r"targets\.carbon_index is None"):
        make(dataclasses.replace(hard, targets={"latency_ms": 150.0, "cost_usd_per_hour": 400.0}))
