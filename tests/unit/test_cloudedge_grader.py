"""CloudEdge scorecards: the published range, its scaling, and the evidence on the card."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.support.cloudedge import (
    LEVELS,
    Played,
    action,
    planned,
    play,
    playbook,
    scenario,
    world_of,
)
from world.graders.cloudedge import PUBLISHED, grade
from world.graders.scorecard import GradedStep, clipped


def graded(played: Played) -> list[GradedStep]:
    return [
        GradedStep.of(after, (action(kind),), outcomes)
        for after, kind, outcomes in zip(
            played.observations[1:], played.done, played.outcomes, strict=True
        )
    ]


def flat(rewards: list[float], success: bool = False) -> list[GradedStep]:
    metrics = {"latency_ms": 200.0, "cost_usd_per_hour": 390.0, "carbon_index": None}
    return [
        GradedStep(step + 1, metrics, ("scale_up",), reward, success)
        for step, reward in enumerate(rewards)
    ]


@pytest.mark.parametrize(
    ("level", "random", "best"), [("hard", -80, 728), ("medium", 45, 1004), ("easy", 249, 1292)]
)
def test_the_total_runs_from_random_play_to_the_best_known(
    level: str, random: float, best: float
) -> None:
    found = scenario(level)
    for share in (0.0, 0.25, 0.5, 1.0):
        reward = random + share * (best - random)
        card = grade(found, flat([reward] + [0.0] * 29))
        assert card.total == pytest.approx(clipped(share))
    assert grade(found, flat([-5000.0] + [0.0] * 29)).total == 0.01
    assert grade(found, flat([5000.0] + [0.0] * 29)).total == 0.99


@pytest.mark.parametrize("regime", ["", "seed/", "seed-open/"])
def test_a_played_episode_is_graded_alike_in_every_regime(regime: str) -> None:
    world = world_of(regime + "hard")
    played = play(world, 1, playbook)
    card = grade(world.scenario, graded(played))
    assert card.components["reward"].value == played.total
    assert card.total == clipped((played.total + 80) / 808)
    assert card.success == played.outcomes[-1].success
    assert card.success_any
    assert card.note == ""
    assert card.violations == ()
    assert sum(part.weight for part in card.components.values()) == 1.0


def test_baselines_stand_on_the_scale_of_the_total() -> None:
    for level in LEVELS:
        card = grade(scenario(level), flat([0.0] * 30))
        boardroom = PUBLISHED[level].boardroom
        assert card.baselines["random"] == 0.0
        assert card.baselines["best_known"] == 1.0
        played = grade(scenario(level), flat([boardroom] + [0.0] * 29))
        assert played.total == pytest.approx(card.baselines["boardroom"])


def test_another_length_scales_the_range_and_the_card_says_so() -> None:
    short = dataclasses.replace(scenario("hard"), horizon=15)
    card = grade(short, flat([364.0] + [0.0] * 14))
    assert card.total == 0.99
    assert "scaled by 15/30" in card.note
    assert "best known 364" in card.components["reward"].explanation


def test_success_is_the_last_step_of_a_whole_episode() -> None:
    found = scenario("hard")
    whole = flat([0.0] * 30, success=True)
    assert grade(found, whole).success
    assert not grade(found, [*whole[:-1], dataclasses.replace(whole[-1], success=False)]).success
    cut = grade(found, whole[:10])
    assert not cut.success
    assert cut.success_any
    assert "10 of 30 steps were played" in cut.note


def test_an_episode_without_a_step_is_graded_without_a_crash() -> None:
    card = grade(scenario("hard"), [])
    assert not card.success
    assert card.components["in_target_all"].value == 0.0
    assert "0 of 30 steps" in card.note


def test_the_evidence_names_the_steps_it_rests_on() -> None:
    world = world_of("easy")
    played = play(world, 1, planned("1121"))
    card = grade(world.scenario, graded(played))
    parts = card.components
    held = [at + 1 for at, outcomes in enumerate(played.outcomes) if outcomes.success]
    assert list(parts["in_target_all"].steps) == held
    for name, target in world.scenario.targets.items():
        values = [seen.metrics[name] or 0.0 for seen in played.observations[1:]]
        inside = [at + 1 for at, value in enumerate(values) if value < target]
        assert list(parts[f"in_target_{name}"].steps) == inside
        assert parts[f"in_target_{name}"].value == len(inside) / 30
        over = sum(max(0.0, value - target) for value in values)
        assert parts[f"over_target_{name}"].value == pytest.approx(over)
    repeats = [at + 1 for at in range(1, 30) if played.done[at] == played.done[at - 1]]
    assert list(parts["repeats"].steps) == repeats
    assert parts["repeats"].value == sum(
        outcomes.terms["repeat"] < 0 for outcomes in played.outcomes
    )
    run = list(parts["longest_stable_run"].steps)
    assert len(run) == parts["longest_stable_run"].value
    assert all(step in held for step in run)


def test_two_responses_of_different_size_are_one_kind_repeated() -> None:
    steps = flat([0.0, 0.0])
    ids = ("crisis_response:region=:server_count=1", "crisis_response:region=:server_count=2")
    steps = [
        dataclasses.replace(step, actions=(name,)) for step, name in zip(steps, ids, strict=True)
    ]
    assert grade(scenario("hard"), steps).components["repeats"].steps == (2,)


def test_a_scenario_of_one_s_own_says_whose_range_it_is_scored_on() -> None:
    own = scenario("hard")
    params = {key: value for key, value in own.params.items() if key != "difficulty"}
    card = grade(dataclasses.replace(own, params=params), flat([0.0] * 30))
    assert "no published range" in card.note


def test_a_card_is_plain_json_with_nine_digits() -> None:
    world = world_of("hard")
    card = grade(world.scenario, graded(play(world, 2, playbook)))
    text = json.dumps(card.as_json(), allow_nan=False)
    again = json.loads(text)
    assert again["components"]["reward"]["steps"] == list(range(1, 31))
    assert again["total"] == float(f"{card.total:.9g}")
    assert set(again) == {field.name for field in dataclasses.fields(card)}


def test_a_graded_step_keeps_what_was_observed_done_and_earned() -> None:
    world = world_of("hard")
    (step, *_) = graded(play(world, 1, planned("0")))
    assert step.step == 1
    assert step.actions == ("scale_up",)
    assert step.joint == "scale_up"
    assert step.statuses == ("applied",)
    assert sum(step.terms.values()) == step.reward
    assert step.facts["last_action"] == "scale_up"
