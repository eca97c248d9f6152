"""The original AI-Ops environment: golden values, flaws included."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.aiops import original, play, row, scenario, script
from world.actions import Action
from world.errors import ConfigError, InadmissibleActionError, ScenarioError, WorldError
from world.graders.aiops import grade
from world.graders.aiops_seed import TASK_BASES, documented_reward, printed_baseline, triage_score
from world.model import History, Key, Observation
from world.scenarios.loader import scenario_names
from world.worlds.aiops import make
from world.worlds.aiops.menu import KINDS
from world.worlds.aiops.seed_draws import Slot, TwisterDraws
from world.worlds.aiops.seed_rules import script_of
from world.worlds.aiops.seed_world import SeedWorld

CPU_SCRIPT = script_of("HIGH_CPU")
GOLDEN: dict[int, tuple[tuple[float, ...], list[tuple[float, float, float, float, str, float]]]] = {
    1: (
        (68, 82, 0.0618, 60),
        [
            (68, 82, 0.12, 60, "HEALTHY", 0.4),
            (80, 82, 0.12, 60, "HEALTHY", 0.4),
            (75, 82, 0.12, 60, "HEALTHY", 0.481),
            (45, 82, 0.12, 40, "HEALTHY", 0.65),
            (27, 64, 0.06, 35, "STABLE", 0.65),
        ],
    ),
    42: (
        (75, 50, 0.1094, 135),
        [
            (75, 50, 0.2287, 173, "HEALTHY", 0.4),
            (77, 50, 0.2487, 173, "HEALTHY", 0.4),
            (72, 50, 0.2487, 173, "HEALTHY", 0.449),
            (42, 50, 0.2487, 123, "STABLE", 0.636),
            (24, 32, 0.1887, 93, "STABLE", 0.65),
        ],
    ),
    7: (
        (87, 67, 0.05, 121),
        [
            (87, 67, 0.1558, 162, "CRITICAL", 0.4),
            (92, 67, 0.1558, 196, "CRITICAL", 0.4),
            (92, 67, 0.1558, 196, "CRITICAL", 0.434),
            (62, 67, 0.1558, 146, "STABLE", 0.622),
            (44, 49, 0.0958, 116, "STABLE", 0.65),
        ],
    ),
}
"""cpu, memory, error, latency, status, reward after each step of the CPU script."""


def seen_row(seen: Observation) -> tuple[float, ...]:
    metrics = seen.metrics
    names = ("cpu_percent", "memory_percent", "error_fraction", "latency_ms")
    return tuple(round(float(metrics[name] or 0.0), 4) for name in names)


@pytest.mark.parametrize("seed", sorted(GOLDEN))
def test_the_cpu_script_after_a_reset_gives_the_golden_values(seed: int) -> None:
    start, expected = GOLDEN[seed]
    played = play(original("reset"), seed, script(CPU_SCRIPT))
    assert seen_row(played.observations[0]) == start
    found = [
        (*seen_row(seen), seen.facts["status"], outcome.reward)
        for seen, outcome in zip(played.observations[1:], played.outcomes, strict=True)
    ]
    assert found[: len(expected)] == expected


def test_the_third_golden_episode_ends_stabilised_at_its_fifth_step() -> None:
    played = play(original("reset"), 7, script(CPU_SCRIPT))
    assert len(played.outcomes) == 5
    assert played.outcomes[-1].stop_reason == "system_stabilized"
    assert played.outcomes[-1].success


@pytest.mark.parametrize(
    ("extra", "rewards", "end"),
    [
        (2, [0.4, 0.4, 0.45, 0.62, 0.65], (39, 52, 0.11, 72, "STABLE")),
        (0, [0.4, 0.4, 0.43, 0.62, 0.65], (39, 79, 0.2387, 78, "HEALTHY")),
    ],
)
def test_foreign_draws_of_a_retrying_client_move_the_run_as_they_did(
    extra: int, rewards: list[float], end: tuple[Any, ...]
) -> None:
    world = original("event/HIGH_CPU", extra_draws_per_step=extra, horizon=5)
    played = play(world, 42, script(CPU_SCRIPT))
    assert [round(outcome.reward, 2) for outcome in played.outcomes] == rewards
    last = played.observations[-1]
    assert (*seen_row(last), last.facts["status"]) == end
    card = grade(world.scenario, played.steps)
    assert round(card.total, 2) == 0.5
    assert card.note.startswith("good" if card.total >= 0.5 else "average")


@pytest.mark.parametrize("event", ["MEMORY_LEAK", "SERVICE_FAILURE", "DATA_CORRUPTION"])
def test_events_with_a_script_of_seven_steps_score_58_to_59(event: str) -> None:
    world = original(f"event/{event}")
    played = play(world, 42, script(script_of(event)))
    assert len(played.outcomes) == 7
    assert played.outcomes[-1].reward == 0.99
    assert 0.575 <= grade(world.scenario, played.steps).total <= 0.595


def _greedy(seen: Observation) -> str:
    metrics = {name: value or 0.0 for name, value in seen.metrics.items()}
    if metrics["error_fraction"] >= 0.10:
        return "restart_service"
    if metrics["memory_percent"] >= 60:
        return "free_memory_resources"
    return "scale_resources" if metrics["cpu_percent"] >= 60 else "stabilize_system"


@pytest.mark.parametrize(
    ("rule", "mean", "total", "steps", "stabilised"),
    [
        (lambda seen: "select_balancing_strategy", 0.5804721, 4.063305, 7.0, 0.0),
        (lambda seen: "restart_service", 0.5010098, 1.314180, 2.52, 0.9925),
        (_greedy, 0.4807514, 0.9845125, 2.0025, 0.9975),
    ],
    ids=["no_effect", "restart", "greedy"],
)
def test_the_clock_pays_more_than_the_fix_over_400_seeds(
    rule: Callable[[Observation], str], mean: float, total: float, steps: float, stabilised: float
) -> None:
    world = original("reset")
    runs = [play(world, seed, rule) for seed in range(400)]
    means = [run.reward / len(run.outcomes) for run in runs]
    assert np.mean(means) == pytest.approx(mean, abs=1e-7)
    assert np.mean([run.reward for run in runs]) == pytest.approx(total, abs=1e-6)
    assert np.mean([len(run.outcomes) for run in runs]) == steps
    assert np.mean([run.outcomes[-1].success for run in runs]) == stabilised


def test_an_action_without_effect_is_paid_by_the_step_number() -> None:
    for seed in range(50):
        played = play(original("reset"), seed, lambda seen: "select_balancing_strategy")
        rewards = [round(outcome.reward, 2) for outcome in played.outcomes]
        assert rewards[:2] == [0.4, 0.4]
        assert rewards[-1] == 0.99


def test_a_floor_raises_what_is_below_it() -> None:
    world = original("reset")
    before = world.reset(world.scenario, [1])
    after, _, _ = world.step(before, (Action("analyze_system_state"),))
    assert row(before).vitals.error_fraction < 0.12 == row(after).vitals.error_fraction


def test_latency_is_no_part_of_stabilised() -> None:
    calm = dataclasses.replace(
        row(original("reset").reset(scenario("seed/reset"), [1])).vitals,
        latency_ms=250.0,
        error_fraction=0.05,
        cpu_percent=50.0,
        memory_percent=50.0,
    )
    assert calm.stabilised


@pytest.mark.parametrize("name", ["traffic_spike", "memory_leak", "cpu_overload", "latency_issue"])
def test_a_fixed_situation_starts_inside_its_ranges(name: str) -> None:
    ranges = {
        "traffic_spike": ((100, 180), (0.08, 0.20), (75, 95), (50, 50)),
        "memory_leak": ((60, 60), (0.05, 0.15), (60, 80), (80, 95)),
        "cpu_overload": ((80, 140), (0.05, 0.05), (85, 98), (55, 75)),
        "latency_issue": ((150, 250), (0.10, 0.25), (65, 85), (50, 50)),
    }[name]
    world = original(name)
    starts = [one.vitals.values for one in world.reset(world.scenario, range(300)).rows]
    for values, (low, high) in zip(np.array(starts).T, ranges, strict=True):
        assert low <= values.min() <= values.max() <= high
        assert high == low or values.max() - values.min() > 0.8 * (high - low)


def test_whole_draws_cover_their_range_evenly() -> None:
    draws = TwisterDraws(5)
    found = np.bincount([draws.whole(Slot.FIRST, 0, 4) for _ in range(2000)], minlength=5)
    assert found.sum() == 2000
    assert found.min() > 340


def test_ten_percent_of_all_actions_fail_whatever_they_are() -> None:
    world = original("reset", ends_when_done=False)
    state = world.reset(world.scenario, range(600))
    for kind in ("scale_resources", "detect_high_cpu"):
        codes = world.encode(state, [(Action(kind),)] * state.size)
        after, _ = world.step_batch(state, codes)
        failed = np.mean([not one.applied for one in after.rows])
        assert 0.07 < failed < 0.13


def test_the_adaptive_memory_mixes_with_what_an_action_got_before() -> None:
    plain = play(original("event/MEMORY_LEAK"), 42, script(script_of("MEMORY_LEAK")))
    world = original("event/MEMORY_LEAK", adaptive="memory", memory={"stabilize_system": [0.65]})
    mixed = play(world, 42, script(script_of("MEMORY_LEAK")))
    assert plain.outcomes[-1].reward == 0.99
    assert mixed.outcomes[-1].reward == pytest.approx(0.888)
    assert mixed.outcomes[0].reward == plain.outcomes[0].reward


def test_the_adaptive_memory_survives_the_store() -> None:
    world = original("reset", adaptive="memory")
    state = world.reset(world.scenario, [3])
    for _ in range(2):
        state, _, _ = world.step(state, (Action("select_balancing_strategy"),))
    again = world.from_columns(world.scenario, 3, world.columns(state))
    assert row(again) == row(state)
    assert row(state).memory is not None
    assert len((row(state).memory or {})["select_balancing_strategy"]) == 2


def test_the_adaptive_table_moves_every_reward() -> None:
    rewards = {}
    for share in (0.1, 0.5, 0.9):
        world = original("reset", adaptive="table", success_fraction=share)
        played = play(world, 42, script(CPU_SCRIPT))
        rewards[share] = played.outcomes[3].reward
    assert rewards == pytest.approx({0.1: 0.616, 0.5: 0.636, 0.9: 0.656})


def test_the_documented_reward_and_the_printed_baseline_are_as_published() -> None:
    paid = [documented_reward(word, "assign", 0.1) for word in ("high", "medium", "low")]
    assert [round(value, 2) for value in paid] == [0.97, 0.70, 0.38]
    scores = [round(printed_baseline(task)[1], 2) for task in TASK_BASES]
    assert scores == [0.61, 0.56, 0.56, 0.66, 0.46, 0.46, 0.71, 0.71, 0.41, 0.41]
    assert round(sum(scores) / len(scores), 2) == 0.55


def test_the_triage_graders_count_words() -> None:
    assert triage_score("easy", [("assign", "low")]) == 0.5
    assert triage_score("easy", [("ignore", "high")]) == 0.01
    assert triage_score("easy", []) == 0.01
    assert triage_score("medium", [("assign", "high")]) == 0.6
    assert triage_score("hard", [("assign", "high"), ("assign", "medium")]) == pytest.approx(0.45)
    assert triage_score("hard", [("ignore", "low")]) == 0.01


def test_an_action_outside_the_thirty_is_refused_and_the_state_stays_valid() -> None:
    world = original("reset")
    state = world.reset(world.scenario, [1])
    for wrong in (Action("nop"), Action("scale_resource"), Action.of("scale_resources", "web")):
        with pytest.raises(InadmissibleActionError):
            world.step(state, (wrong,))
    with pytest.raises(InadmissibleActionError, match="did you mean scale_resources"):
        world.step(state, (Action("scale_resource"),))
    assert world.step(state, (Action("scale_resources"),))[1].actions


def test_the_original_has_thirty_actions_and_no_way_to_do_nothing() -> None:
    world = original("reset")
    seen = world.observe(world.reset(world.scenario, [1]))
    assert [action.kind for action in world.catalogue(seen)] == list(KINDS)
    assert not world.limits.has_nop
    assert world.limits.noise == "sequential"


def test_a_projection_without_a_continuation_names_the_playbook() -> None:
    world = original("reset")
    seen = world.observe(world.reset(world.scenario, [1]))
    history = History(world.scenario)
    history.observations.append(seen)
    plan = ((Action("scale_resources"),),)
    belief = world.believe(history, 0, Key(1, 0))
    with pytest.raises(InadmissibleActionError, match="playbook"):
        world.project(belief, [plan], 3, None, Key(1, 0))
    found = world.project(belief, [plan], 3, world.playbook, Key(1, 0))
    assert found.shape == (1, 1, 1, 3, 5)


def test_mean_noise_projects_the_plain_effect() -> None:
    world = original("reset")
    seen = world.observe(world.reset(world.scenario, [7]))
    history = History(world.scenario)
    history.observations.append(seen)
    belief = world.believe(history, 0, Key(7, 0))
    found = world.project(belief, [((Action("scale_resources"),),)], 1, None, Key(7, 0))
    assert found[0, 0, 0, 0].tolist() == [71.0, 0.05, 57.0, 67.0, 0.0]


def test_samples_share_their_noise_between_plans_and_differ_between_samples() -> None:
    world = original("event/HIGH_CPU")
    seen = world.observe(world.reset(world.scenario, [7]))
    history = History(world.scenario)
    history.observations.append(seen)
    belief = world.believe(history, 64, Key(7, 0))
    plans = [((Action(kind),),) for kind in ("verify_system_recovery", "classify_threat_level")]
    found = world.project(belief, plans, 1, None, Key(7, 0))
    assert np.array_equal(found[0, 0], found[0, 1])
    assert len(np.unique(found[0, 0, :, 0, 0])) > 3


def test_a_snapshot_of_another_seed_or_world_is_refused() -> None:
    world = original("reset")
    stored = world.columns(world.reset(world.scenario, [3]))
    with pytest.raises(WorldError, match="belongs to seed 3"):
        world.from_columns(world.scenario, 4, stored)
    with pytest.raises(WorldError, match="not one of aiops/seed"):
        world.from_columns(world.scenario, 3, dataclasses.replace(stored, hidden=b"?"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rules": "first"}, "params.rules"),
        ({"situation": "flood"}, "params.situation"),
        ({"extra_draws_per_step": -1}, "extra_draws_per_step"),
        ({"extra_draws_per_step": True}, "extra_draws_per_step"),
        ({"memory": {"stabilize_system": [0.5]}}, 'adaptive = "memory"'),
        ({"adaptive": "memory", "memory": {"fly": [0.5]}}, "no such action"),
        ({"adaptive": "memory", "memory": {"stabilize_system": [7]}}, "from 0 to 1"),
        ({"success_fraction": 0.5}, 'adaptive = "table"'),
        ({"event": "$(reboot)"}, "params.event"),
        ({"event": "HIGH_CPU", "situation": "memory_leak"}, "one start"),
        ({"sneaky": 1}, "not known here"),
        ({"ends_when_done": "no"}, "true or false"),
    ],
)
def test_a_scenario_that_contradicts_itself_is_refused_with_its_field(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        make(scenario("seed/reset", **changes))


@pytest.mark.parametrize("seeds", [[], [-1], [2**63], [1.5], [True]])
def test_a_seed_that_is_no_whole_number_in_range_is_refused(seeds: list[Any]) -> None:
    world = original("reset")
    with pytest.raises(ConfigError, match="whole number"):
        world.reset(world.scenario, seeds)


def test_every_shipped_scenario_of_the_original_can_be_played() -> None:
    names = [name for name in scenario_names() if name.startswith("aiops/seed/")]
    assert len(names) == 18
    for name in names:
        world = make(scenario(name.removeprefix("aiops/")))
        assert isinstance(world, SeedWorld)
        played = play(world, 1, lambda seen: "stabilize_system")
        assert played.outcomes[-1].done
