"""The AI-Ops grader: what an episode is worth, in parts and in words."""

from __future__ import annotations

import pytest

from tests.support.aiops import native, original, play, scenario, script
from world.graders.aiops import BANDS, MEASURED, band, grade
from world.graders.registry import grade as grade_any
from world.graders.scorecard import GradedStep
from world.worlds.aiops.events import EVENT_CODE, EVENTS
from world.worlds.aiops.settings import PRIORITIES


def solved(name: str, seed: int, **changes: object) -> tuple[object, tuple[GradedStep, ...]]:
    world = native(f"event/{name}", **changes)
    remedy = EVENTS[EVENT_CODE[name]].remedy
    played = play(world, seed, script([remedy, remedy, "stabilize_system"]))
    assert played.outcomes[-1].success
    return world.scenario, played.steps


@pytest.mark.parametrize("name", [event.name for event in EVENTS])
def test_a_right_remedy_scores_priority_remedy_and_speed(name: str) -> None:
    played, steps = solved(name, 1)
    card = grade(played, steps)  # type: ignore[arg-type]
    priority = PRIORITIES[str(scenario(f"event/{name}").params["priority"])]
    assert card.total == pytest.approx(0.4 * priority + 0.4 + 0.2 * (1 - len(steps) / 7))
    parts = card.components
    weighted = sum(part.value * part.weight for part in parts.values())
    assert card.total == pytest.approx(weighted)
    assert "removed the cause at step" in parts["remedy"].explanation
    assert parts["steps_to_mitigate"].value >= 1
    assert card.success
    assert card.success_any
    assert card.note.startswith(band(card.total))


def test_an_unsolved_incident_is_a_failed_episode_whatever_was_tried() -> None:
    world = native("event/network_outage", disturbance_fraction=0.0)
    for kinds in (["nop"], ["detect_system_anomaly"], ["stabilize_system"], ["scale_resources"]):
        card = grade(world.scenario, play(world, 3, script(kinds)).steps)
        assert card.total == 0.01
        assert not card.success
        assert "failed episode" in card.note


def test_harm_costs_the_whole_remedy_part_and_is_a_violation() -> None:
    world = native("event/data_corruption", disturbance_fraction=0.0)
    for seed in range(20):
        kinds = ["restart_service", *["recover_corrupted_data"] * 3, "stabilize_system"]
        played = play(world, seed, script(kinds))
        if played.outcomes[0].violations and played.outcomes[-1].success:
            card = grade(world.scenario, played.steps)
            assert card.components["remedy"].value == 0.0
            assert card.violations
            assert card.total < 0.61
            assert "harm was done" in card.components["remedy"].explanation
            return
    raise AssertionError("no seed gave a harmful restart that was then repaired")


def test_baselines_stand_on_the_scale_of_the_total_and_in_order() -> None:
    for name in ("simple_log_analysis", "incident_response_automation"):
        world = native(name)
        card = grade(world.scenario, play(world, 1, lambda seen: "nop").steps)
        found = card.baselines
        assert list(found) == ["nop", "random", "greedy_fix", "best"]
        assert found["nop"] < found["random"] < found["greedy_fix"] < found["best"] <= 0.99
    assert set(MEASURED) == {"easy", "medium", "hard"}


def test_the_adaptive_table_moves_the_score_of_a_resolved_incident_only() -> None:
    played, steps = solved("traffic_spike", 1)
    plain = grade(played, steps)  # type: ignore[arg-type]
    moved_scenario, again = solved("traffic_spike", 1, adaptive="table", success_fraction=0.9)
    moved = grade(moved_scenario, again)  # type: ignore[arg-type]
    assert moved.total == pytest.approx(plain.total + 0.02)
    assert "adaptive table" in moved.note
    world = native("event/traffic_spike", adaptive="table", success_fraction=0.9)
    idle = grade(world.scenario, play(world, 1, lambda seen: "nop").steps)
    assert idle.total == 0.01


def test_a_longer_horizon_stretches_the_speed_part() -> None:
    _, steps = solved("memory_leak", 1)
    played, longer = solved("memory_leak", 1, horizon=14)
    assert len(longer) == len(steps)
    card = grade(played, longer)  # type: ignore[arg-type]
    assert card.components["speed"].value == pytest.approx(1 - len(longer) / 14)


def test_the_original_is_scored_by_its_mean_step_reward() -> None:
    world = original("reset")
    played = play(world, 42, lambda seen: "select_balancing_strategy")
    card = grade_any(world.scenario, played.steps)
    assert card.total == pytest.approx(played.reward / 7)
    assert not card.success
    assert card.note.startswith("good")
    assert card.baselines["greedy_fix"] < card.baselines["no_effect"]


def test_an_episode_without_a_step_is_worth_the_least() -> None:
    for name in ("seed/reset", "event/memory_leak"):
        card = grade(scenario(name), ())
        assert card.total == 0.01
        assert not card.success


def test_every_band_begins_at_its_bound() -> None:
    for bound, word in BANDS:
        assert band(bound) == word
        assert band(bound - 1e-9) != word
    assert band(0.0) == "very poor"
