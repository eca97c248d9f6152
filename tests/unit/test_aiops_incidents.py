"""The native AI-Ops world: causes, remedies, evidence, noise, and what a seat may know."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.support.aiops import history_of, native, play, scenario, script, stepped, with_hidden
from world.actions import Action
from world.errors import InadmissibleActionError, ScenarioError, WorldError
from world.model import Key
from world.scenarios.loader import load_scenario, scenario_names
from world.worlds.aiops import make
from world.worlds.aiops.diagnosis import HARM_LIMIT, expected_doubt_percent, posterior_of
from world.worlds.aiops.events import (
    ALERT_LIKELIHOOD,
    CLASS,
    EVENT_CODE,
    EVENTS,
    HARMFUL,
    HARMLESS,
    NAMES,
    RIGHT,
)
from world.worlds.aiops.evidence import LIKELIHOOD, N_LABELS, QUESTIONS
from world.worlds.aiops.menu import CODE, KINDS, REMEDIES, phase_of
from world.worlds.aiops.settings import PRIORITIES
from world.worlds.aiops.world import AiopsWorld

EVENT_NAMES = [event.name for event in EVENTS]


def encode_all(world: AiopsWorld, state: Any, kind: str) -> Any:
    return world.encode(state, [(Action(kind),)] * state.size)


def after_all(world: AiopsWorld, kinds: list[str], seeds: range) -> Any:
    """A batch after the same actions in every world."""
    state = world.reset(world.scenario, seeds)
    for kind in kinds:
        if not state.over.all():
            state, _ = world.step_batch(state, encode_all(world, state, kind))
    return state


def test_every_event_has_one_right_remedy_a_workaround_and_a_tempting_harmful_one() -> None:
    assert len(EVENTS) == 12
    for event, row in zip(EVENTS, CLASS, strict=True):
        assert (row == RIGHT).sum() == 1
        assert (row == HARMFUL).sum() >= 2
        assert event.class_of(event.workaround) == HARMLESS
        assert event.class_of(event.tempting) == HARMFUL
    assert {event.remedy for event in EVENTS} == set(REMEDIES)


def test_an_alert_names_the_root_half_of_the_time_and_else_a_victim_with_another_cure() -> None:
    assert ALERT_LIKELIHOOD.sum(axis=1) == pytest.approx(np.ones(12))
    assert (np.diag(ALERT_LIKELIHOOD) == 0.5).all()
    for event in EVENTS:
        cures = {EVENTS[EVENT_CODE[name]].remedy for name in event.victims}
        assert event.remedy not in cures
    world = native("anomaly_detection_monitoring")
    state = world.reset(world.scenario, range(4000))
    assert 0.47 < (state.alert == state.cause).mean() < 0.53
    assert set(state.cause.tolist()) == set(range(12))


def test_the_thirty_kinds_fall_into_five_phases_by_verb() -> None:
    count: dict[str | None, int] = {}
    for kind in KINDS:
        count[phase_of(kind)] = count.get(phase_of(kind), 0) + 1
    assert count == {
        "detection": 8,
        "classification": 4,
        "decision": 9,
        "execution": 7,
        "recovery": 2,
    }


def test_readings_are_right_as_often_as_their_question_says() -> None:
    world = native("event/data_corruption")
    truth = EVENT_CODE["data_corruption"]
    for question in QUESTIONS[::5]:
        state = after_all(world, [question.kind], range(3000))
        answered = state.reading[state.worked]
        share = (answered == question.label_of(NAMES[truth])).mean()
        assert share == pytest.approx(question.accuracy, abs=0.03)
        assert answered.max() < N_LABELS[CODE[question.kind]]


def test_likelihoods_of_every_question_sum_to_one() -> None:
    for question in QUESTIONS:
        assert LIKELIHOOD[CODE[question.kind]].sum(axis=1) == pytest.approx(np.ones(12))


def test_the_posterior_is_calibrated() -> None:
    """Of the remedies that the evidence calls 80 to 95 % likely, that many are right."""
    world = native("anomaly_detection_monitoring")
    state = after_all(world, ["analyze_system_state"], range(6000))
    posterior = posterior_of(state.log_weights)
    leading, sure = posterior.argmax(axis=1), posterior.max(axis=1)
    for low, high in ((0.5, 0.8), (0.8, 0.95)):
        inside = (sure >= low) & (sure < high)
        assert inside.sum() > 300
        hit = (leading == state.cause)[inside].mean()
        assert hit == pytest.approx(sure[inside].mean(), abs=0.05)


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_the_right_remedy_ends_the_push_and_nothing_else_does(name: str) -> None:
    event = EVENTS[EVENT_CODE[name]]
    world = native(f"event/{name}", disturbance_fraction=0.0)
    seeds = range(100)
    cured = after_all(world, [event.remedy] * 2 + ["stabilize_system"] * 3, seeds)
    took = cured.applied_at[:, REMEDIES.index(event.remedy)] > 0
    assert took.mean() > 0.9
    assert (cured.verdict[took] == 1).mean() > 0.97
    idle = after_all(world, ["nop"] * 7, seeds)
    assert (idle.verdict == 1).sum() == 0
    start = world.reset(world.scenario, seeds)
    assert (idle.metrics.mean(axis=0) >= start.metrics.mean(axis=0)).all()
    for other in REMEDIES:
        if event.class_of(other) == HARMFUL:
            tried = after_all(world, [other], seeds)
            assert (tried.harms == tried.worked).all()


def test_symptoms_that_a_wrong_remedy_quieted_come_back() -> None:
    world = native("event/memory_leak", disturbance_fraction=0.0)
    seeds = range(200)
    quiet = after_all(world, ["restart_service"], seeds)
    later = after_all(world, ["restart_service", "nop", "nop", "nop", "nop"], seeds)
    kept = quiet.worked & (quiet.verdict == 0)
    assert kept.sum() > 100
    memory = 3
    assert later.metrics[kept, memory].mean() > quiet.metrics[kept, memory].mean() + 5


def test_a_workaround_can_end_an_incident_and_is_worth_less() -> None:
    world = native("event/high_cpu_usage", disturbance_fraction=0.0)
    # Alternating the workaround with stabilising is the best that can be had without the remedy.
    kinds = ["redistribute_traffic", "stabilize_system"] * 3 + ["redistribute_traffic"]
    state = after_all(world, kinds, range(200))
    solved = state.verdict == 1
    assert solved.sum() > 10
    seed = int(np.flatnonzero(solved)[0])
    played = play(world, seed, script(kinds))
    assert played.observations[-1].facts["remedy_worth"] == 0.3
    assert played.outcomes[-1].terms["remedy"] == pytest.approx(0.4 * 0.3)


def test_failures_happen_as_often_as_promised_and_can_be_tried_again() -> None:
    world = native("event/service_failure")
    for kind, rate in (("restart_service", 0.15), ("apply_mitigation", 0.10)):
        state = after_all(world, [kind], range(4000))
        assert 1 - state.worked.mean() == pytest.approx(rate, abs=0.02)
    first = after_all(world, ["restart_service"], range(400))
    again, _ = world.step_batch(first, encode_all(world, first, "restart_service"))
    retried = ~first.worked & ~first.over
    assert retried.sum() > 30
    assert again.worked[retried].mean() > 0.7


@pytest.mark.parametrize(("difficulty", "rate"), [("easy", 0.0), ("medium", 0.15), ("hard", 0.3)])
def test_disturbances_come_as_often_as_the_difficulty_says(difficulty: str, rate: float) -> None:
    world = native("event/network_outage", difficulty=difficulty)
    state = after_all(world, ["nop"], range(4000))
    assert (state.disturbance >= 0).mean() == pytest.approx(rate, abs=0.02)


def test_noise_does_not_depend_on_what_anybody_did() -> None:
    world = native("event/network_outage", difficulty="hard")
    left = after_all(world, ["nop", "nop", "nop"], range(200))
    right = after_all(world, ["scale_resources", "detect_high_cpu", "nop"], range(200))
    both = ~right.over & ~left.over
    assert both.sum() > 150
    assert np.array_equal(left.disturbance[both], right.disturbance[both])


def test_an_action_never_raises_a_metric_to_its_floor() -> None:
    world = native("event/service_failure", disturbance_fraction=0.0)
    state = world.reset(world.scenario, [3])
    low = dataclasses.replace(state, metrics=np.array([[150.0, 0.2, 10.0, 10.0]]))
    nothing = stepped(world, low, "nop")
    restart = stepped(world, low, "restart_service")
    assert restart.worked[0]
    # CPU 10 % lies below the floor of 30 %: both recover towards healthy, and neither jumps.
    assert restart.metrics[0, 2] < 10 + 0.6 * 35 + 15
    assert nothing.metrics[0, 2] < 10 + 0.3 * 60 + 15


@pytest.mark.parametrize("step", [0, 1, 2])
def test_two_states_that_look_the_same_project_the_same_whatever_is_hidden(step: int) -> None:
    world = native("anomaly_detection_monitoring")
    state = world.reset(world.scenario, [11])
    seen = [world.observe(state)]
    for kind in ["analyze_system_state", "detect_memory_leak"][:step]:
        state = stepped(world, state, kind)
        seen.append(world.observe(state))
    plans = [((Action(kind),),) for kind in KINDS]
    found = set()
    for event in range(12):
        other = with_hidden(state, event)
        assert world.observe(other) == seen[-1]
        history = history_of(world, [*seen[:-1], world.observe(other)])
        for samples in (0, 16):
            belief = world.believe(history, samples, Key(11, step))
            drawn = world.project(belief, plans, 3, None, Key(11, step))
            found.add((samples, drawn.tobytes()))
    assert len(found) == 2


def test_mean_noise_projects_the_expectation_over_the_suspects() -> None:
    world = native("anomaly_detection_monitoring")
    state = world.reset(world.scenario, [11])
    history = history_of(world, [world.observe(state)])
    plans = [((Action("nop"),),), ((Action("scale_resources"),),)]
    mean = world.project(world.believe(history, 0, Key(11, 0)), plans, 1, None, Key(11, 0))
    many = world.project(world.believe(history, 256, Key(11, 0)), plans, 1, None, Key(11, 0))
    nop = many[0, 0, :, 0, :4].mean(axis=0)
    assert mean[0, 0, 0, 0, 2] == pytest.approx(nop[2], abs=4.0)
    assert mean[0, 0, 0, 0, 3] == pytest.approx(nop[3], abs=4.0)
    assert mean.shape == (1, 2, 1, 1, 7)


def test_a_question_is_projected_to_leave_less_doubt_and_a_second_one_less_again() -> None:
    world = native("anomaly_detection_monitoring")
    state = world.reset(world.scenario, [11])
    seen = world.observe(state)
    doubt_now = float(seen.metrics["doubt_percent"] or 0.0)
    belief = world.believe(history_of(world, [seen]), 0, Key(11, 0))
    asked = [((Action(question.kind),),) for question in QUESTIONS]
    left = world.project(belief, asked, 1, None, Key(11, 0))[0, :, 0, 0, -1]
    assert (left <= doubt_now + 1e-9).all()
    best = asked[int(left.argmin())][0]
    found = world.project(belief, [((Action("nop"),),), (best, best)], 2, None, Key(11, 0))
    doubt = found[0, :, 0, :, -1]
    assert doubt[0].tolist() == pytest.approx([doubt_now] * 2)
    assert doubt[1, 1] < doubt[1, 0] < doubt_now


def test_expected_doubt_is_what_readings_leave_on_average() -> None:
    world = native("event/disk_space_full")
    state = world.reset(world.scenario, [5])
    posterior = posterior_of(state.log_weights[0])
    code = CODE["select_optimal_strategy"]
    joint = posterior[:, None] * LIKELIHOOD[code]
    left = 0.0
    for label in range(int(N_LABELS[code])):
        weight = joint[:, label].sum()
        updated = joint[:, label] / weight
        best = max(
            sum(updated[row] for row, event in enumerate(EVENTS) if event.remedy == remedy)
            for remedy in REMEDIES
        )
        left += weight * 100 * (1 - best)
    assert expected_doubt_percent(posterior, (code,)) == pytest.approx(left)


def test_a_hazard_names_its_probability_and_the_suspect_it_would_hurt() -> None:
    world = native("event/data_corruption")
    for seed in range(20):
        seen = world.observe(world.reset(world.scenario, [seed]))
        for kind in REMEDIES:
            risk = seen.facts["harm_probabilities"][kind]
            found = world.hazards(seen, Action(kind))
            assert bool(found) == (risk >= HARM_LIMIT)
            if found:
                assert f"{risk:.2f}" in found[0]
                assert any(name in found[0] for name in EVENT_NAMES)
        for kind in ("nop", "stabilize_system", "detect_high_cpu", "delete_everything"):
            assert world.hazards(seen, Action(kind)) == ()


def test_harm_is_reported_as_a_violation_with_its_step_and_reason() -> None:
    world = native("event/data_corruption", disturbance_fraction=0.0)
    for seed in range(20):
        state, outcome, _ = world.step(
            world.reset(world.scenario, [seed]), (Action("restart_service"),)
        )
        if state.worked[0]:
            assert outcome.violations == (
                "step 1: restart_service did harm: shutting down flushes the broken pages over "
                "good ones: data is lost",
            )
            return
    raise AssertionError("a restart never took effect in 20 seeds")


def test_two_harms_can_end_an_episode_as_a_failure() -> None:
    world = native("event/service_failure", disturbance_fraction=0.0)
    reasons = set()
    for seed in range(30):
        played = play(world, seed, lambda seen: "isolate_affected_systems")
        reasons.add(played.outcomes[-1].stop_reason)
        assert not played.outcomes[-1].success
    assert "system_failure" in reasons


def test_the_truth_is_shown_only_when_nothing_is_left_to_decide() -> None:
    world = native("event/security_breach")
    played = play(world, 4, lambda seen: "nop")
    hidden = ("root_cause", "right_remedy", "remedy_worth", "resolved")
    for seen in played.observations[:-1]:
        assert not set(hidden) & set(seen.facts)
        assert "root_cause" in seen.unknown
    last = played.observations[-1].facts
    assert last["root_cause"] == "security_breach"
    assert last["resolved"] is False


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_rewards_of_a_resolved_episode_sum_to_its_score(name: str) -> None:
    event = EVENTS[EVENT_CODE[name]]
    world = native(f"event/{name}")
    priority = PRIORITIES[world.settings.priority]
    for seed in range(5):
        played = play(world, seed, script([event.remedy, event.remedy, "stabilize_system"]))
        last = played.outcomes[-1]
        assert last.success
        expected = 0.4 * priority + 0.4 + 0.2 * (1 - len(played.outcomes) / 7)
        assert played.reward == pytest.approx(expected)
        assert sum(last.terms.values()) == pytest.approx(last.reward)


def test_doing_nothing_earns_the_least_of_all_constant_policies() -> None:
    world = native("anomaly_detection_monitoring")
    earned = {}
    for kind in (*REMEDIES, "nop", "stabilize_system"):
        state = world.reset(world.scenario, range(100))
        total = np.zeros(state.size)
        while not state.over.all():
            state, outcome = world.step_batch(state, encode_all(world, state, kind))
            total += outcome.reward
        earned[kind] = total.mean()
    assert earned["nop"] == pytest.approx(-0.2)
    assert min(earned, key=lambda kind: earned[kind]) == "nop" or (
        earned["nop"] == pytest.approx(min(earned.values()))
    )


def test_a_masked_seat_sees_no_masked_metric_and_can_still_be_projected_for() -> None:
    masked = dataclasses.replace(scenario("event/memory_leak"), masks={"cost": ("memory_percent",)})
    world = AiopsWorld(masked)
    state = world.reset(masked, [2])
    seen = world.observe(state, "cost")
    assert "memory_percent" not in seen.metrics
    assert "memory_percent" in seen.unknown
    history = history_of(world, [seen])
    belief = world.believe(history, 0, Key(2, 0))
    found = world.project(belief, [((Action("nop"),),)], 1, None, Key(2, 0))
    assert np.isfinite(found).all()


def test_an_unknown_action_is_refused_with_the_nearest_name() -> None:
    world = native("event/memory_leak")
    state = world.reset(world.scenario, [1])
    seen = world.observe(state)
    assert "did you mean scale_resources" in (world.check(seen, Action("scale_resource")) or "")
    assert "takes no target" in (world.check(seen, Action.of("scale_resources", "web")) or "")
    assert "takes no parameters" in (world.check(seen, Action.of("nop", count=3)) or "")
    with pytest.raises(InadmissibleActionError, match="one action is taken a step"):
        world.step(state, (Action("nop"), Action("stabilize_system")))


def test_nothing_can_be_done_after_the_end() -> None:
    world = native("event/memory_leak")
    state = world.reset(world.scenario, [1])
    for _ in range(7):
        state = stepped(world, state, "nop")
    seen = world.observe(state)
    assert "over" in (world.check(seen, Action("nop")) or "")
    assert not world.legal(state).any()
    with pytest.raises(InadmissibleActionError, match="over"):
        world.step(state, (Action("nop"),))
    with pytest.raises(InadmissibleActionError, match="over"):
        world.step_batch(state, encode_all(world, state, "nop"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"events": {"alien_invasion": 1}}, "no such event"),
        ({"events": {}}, "no event has a weight"),
        ({"events": {"memory_leak": -1}}, "memory_leak"),
        ({"events": "memory_leak"}, "must be a table"),
        ({"priority": "urgent"}, "params.priority"),
        ({"difficulty": "extreme"}, "params.difficulty"),
        ({"disturbance_fraction": 1.5}, "from 0 to 1"),
        ({"adaptive": "memory"}, "params.adaptive"),
        ({"task": 3}, "params.task"),
        ({"surprise": 1}, "not known here"),
    ],
)
def test_a_native_scenario_that_contradicts_itself_is_refused_with_its_field(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        make(scenario("event/memory_leak", **changes))


def test_targets_are_needed_and_must_be_known_metrics() -> None:
    base = scenario("event/memory_leak")
    with pytest.raises(ScenarioError, match="no targets"):
        make(dataclasses.replace(base, targets={}))
    with pytest.raises(ScenarioError, match="no such metric"):
        make(dataclasses.replace(base, targets={"carbon_index": 3.0}))
    with pytest.raises(ScenarioError, match="no inventory"):
        make(dataclasses.replace(base, resources={"id": ("a",)}))


def test_a_snapshot_of_another_world_is_refused() -> None:
    world = native("event/memory_leak")
    stored = world.columns(world.reset(world.scenario, [3]))
    for broken in (
        dataclasses.replace(stored, hidden=b""),
        dataclasses.replace(stored, hidden=b"\xff" * len(stored.hidden)),
        dataclasses.replace(stored, metrics={}),
        dataclasses.replace(stored, metrics={**stored.metrics, "alert": 99.0}),
        dataclasses.replace(stored, metrics={**stored.metrics, "verdict": float("nan")}),
    ):
        with pytest.raises(WorldError, match="not one of a native aiops world"):
            world.from_columns(world.scenario, 3, broken)


def test_the_ten_tasks_and_twelve_events_are_shipped_and_playable() -> None:
    names = [name for name in scenario_names() if name.startswith("aiops/")]
    tasks = [name for name in names if name.count("/") == 1]
    assert len(tasks) == 10
    assert {f"aiops/event/{name}" for name in EVENT_NAMES} <= set(names)
    words = {}
    for name in [*tasks, *(f"aiops/event/{event}" for event in EVENT_NAMES)]:
        found = load_scenario(name)
        assert found.horizon == 7
        played = play(AiopsWorld(found), 1, lambda seen: "nop")
        assert played.outcomes[-1].stop_reason == "horizon"
        words[name.removeprefix("aiops/")] = (
            found.params["difficulty"],
            found.params["priority"],
        )
    assert words["incident_response_automation"] == ("hard", "high")
    assert words["simple_log_analysis"] == ("easy", "low")
    assert words["database_performance_tuning"] == ("hard", "medium")
    assert [level for level, _ in words.values()].count("easy") == 2
