"""How far and how wide a room looks, and who says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.room_numbers import room_numbers
from orchestrator.settings import load_settings
from tests.support.rooms import room
from world.errors import ConfigError, ScenarioError
from world.scenarios.loader import FOLDER, load_scenario
from world.worlds.registry import make_world

OF_CLOUDEDGE = {"lookahead_steps": 10, "samples": 32, "plan_steps": 2}


@pytest.fixture
def own(tmp_path: Path) -> str:
    text = (FOLDER / "cloudedge" / "hard.toml").read_text(encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(
        text.replace('name = "cloudedge/hard"', 'name = "own"')
        + "\n[room]\nlookahead_steps = 5\nsamples = 3\n",
        encoding="utf-8",
    )
    return str(path)


def test_the_world_s_numbers_hold_where_nobody_names_others() -> None:
    rules = room(scenario="cloudedge/hard").rules
    assert {name: getattr(rules, name) for name in OF_CLOUDEDGE} == OF_CLOUDEDGE
    scenario = load_scenario("cloudedge/hard")
    numbers = room_numbers({}, scenario, make_world(scenario))
    assert {number.origin for number in numbers.values()} == {"world cloudedge"}


def test_a_scenario_s_numbers_come_before_the_world_s_and_the_operator_s_before_both(
    own: str,
) -> None:
    rules = room(scenario=own).rules
    assert (rules.lookahead_steps, rules.samples, rules.plan_steps) == (5, 3, 2)
    rules = room(scenario=own, samples=0, plan_steps=1).rules
    assert (rules.lookahead_steps, rules.samples, rules.plan_steps) == (5, 0, 1)


def test_the_numbers_in_force_are_in_the_header_that_is_hashed(own: str) -> None:
    header = room(scenario=own, samples=7).header()["room"]
    assert (header["lookahead_steps"], header["samples"], header["plan_steps"]) == (5, 7, 2)


def test_the_digest_of_a_scenario_does_not_depend_on_what_suits_a_room(own: str) -> None:
    with_numbers = load_scenario(own)
    path = Path(own)
    path.write_text(path.read_text(encoding="utf-8").split("[room]")[0], encoding="utf-8")
    assert load_scenario(own).digest == with_numbers.digest


def test_print_config_shows_each_number_and_who_chose_it(own: str) -> None:
    shown = load_settings({"scenario": own, "plan_steps": "1"}).as_json()
    assert shown["settings"]["lookahead_steps"] == 5
    assert shown["origins"]["lookahead_steps"] == "scenario own"
    assert (shown["settings"]["plan_steps"], shown["origins"]["plan_steps"]) == (1, "--plan-steps")
    shown = load_settings({"scenario": "cloudedge/hard"}).as_json()
    assert shown["origins"]["samples"] == "world cloudedge"
    assert "samples = 32" in load_settings({"scenario": "cloudedge/hard"}).as_toml()


def test_an_unknown_scenario_leaves_the_numbers_open() -> None:
    shown = load_settings({"scenario": "no/such"}).as_json()
    assert shown["settings"]["samples"] is None


@pytest.mark.parametrize("line", ["samples = 999", 'samples = "many"', "depth = 2"])
def test_a_number_that_cannot_be_is_refused_with_its_field(own: str, line: str) -> None:
    path = Path(own)
    path.write_text(path.read_text(encoding="utf-8") + line.replace("samples", "plan_steps") + "\n")
    with pytest.raises(ScenarioError, match="room"):
        load_scenario(own)


def test_a_seat_may_imagine_another_continuation_and_an_unknown_one_is_refused() -> None:
    made = room(
        scenario="cloudedge/hard", overrides=("cost.utility.continuation=cost_carbon_first",)
    )
    by_seat = {seat.seat: seat.continuation for seat in made.seats}
    assert by_seat["cost"] == "cost_carbon_first"
    assert by_seat["resource"] == ""
    with pytest.raises(ConfigError, match="close_gaps, cost_carbon_first"):
        room(scenario="cloudedge/hard", overrides=("cost.utility.continuation=wait",))
    with pytest.raises(ConfigError, match="nop"):
        room(scenario="finops/right_sizing", overrides=("cost.utility.continuation=close_gaps",))
