"""Planners: from what was observed to a joint action, bound by a room's rules."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.study.baselines import POLICIES, Kept, Row, measure, play, summary, table
from policies.guardrails import Bounds, Gate
from policies.planners.errands import careless, errands, remedies, removals
from policies.planners.greedy import greedy
from policies.planners.lookahead import LEAST_PLANS, Sight, look, lookahead
from policies.planners.value import own_targets, worth
from tests.support import clouds
from world.actions import NOP, Action
from world.model import History, Key, MetricSpec, Observation
from world.scenarios.loader import load_scenario
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld
from world.worlds.registry import make_world

COST = MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost")
LATENCY = MetricSpec("latency_ms", "ms", "latency", "Latency")
TARGETS = {"cost_usd_per_hour": 400.0, "latency_ms": 150.0}
QUICK = Sight(steps=6, singles=160, partners=8, composites=24)


def seen_by(world: CloudWorld, state: State) -> History:
    history = History(world.scenario)
    history.observations.append(world.observe(state))
    return history


def episode(name: str, planner: Any, seed: int, steps: int) -> list[Any]:
    """Joint actions and outcomes of the first steps of a shipped scenario."""
    scenario = load_scenario(name)
    world = make_world(scenario)
    state, history, played = world.reset(scenario, [seed]), History(scenario), []
    for _ in range(steps):
        history.observations.append(world.observe(state))
        joint = planner(world, history, Key(seed, history.now.step), QUICK)
        state, outcomes, _ = world.step(state, joint)
        history.decisions.append(joint)
        played.append((joint, outcomes))
        if outcomes.done:
            break
    return played


def projected(*rows: tuple[float, float]) -> np.ndarray[Any, Any]:
    """float64 [n, 1, 1, 2]: cost and latency of plans."""
    return np.array(rows, dtype=np.float64)[:, None, None, :]


def test_a_plan_that_brings_every_target_is_worth_more_than_one_that_overshoots_a_single_one() -> (
    None
):
    value = worth(projected((370, 140), (100, 200), (900, 20)), (COST, LATENCY), TARGETS)
    assert value[0] > value[1]
    assert value[0] > value[2]


def test_coming_closer_to_a_target_is_worth_more_even_where_none_is_reached() -> None:
    value = worth(projected((500, 300), (480, 300), (480, 250)), (COST, LATENCY), TARGETS)
    assert value[0] < value[1] < value[2]


def test_far_below_a_target_less_is_worth_nothing() -> None:
    value = worth(projected((300, 100), (150, 20)), (COST, LATENCY), TARGETS)
    assert value[0] == value[1]


def test_an_unknown_metric_changes_no_comparison() -> None:
    value = worth(projected((500, np.nan), (450, np.nan)), (COST, LATENCY), TARGETS)
    assert np.isfinite(value).all()
    assert value[1] > value[0]


def test_a_selfish_planner_weighs_its_own_objective_only() -> None:
    options = projected((500, 20), (300, 2000))
    assert np.argmax(worth(options, (COST, LATENCY), TARGETS, ("cost",))) == 1
    assert np.argmax(worth(options, (COST, LATENCY), TARGETS, ("latency",))) == 0


def test_the_worst_service_has_a_target_of_its_own_where_it_is_measured() -> None:
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    seen = world.observe(state)
    targets = own_targets(seen)
    assert {name: targets[name] for name in seen.targets} == dict(seen.targets)
    if "worst_p95_ms" in seen.metrics:
        assert targets["worst_p95_ms"] == 150.0


@pytest.mark.parametrize("name", ["cloud/medium", "cloud/hard"])
def test_at_least_64_plans_are_projected_and_all_pass_the_guardrails(name: str) -> None:
    world = CloudWorld(load_scenario(name))
    history = seen_by(world, world.reset(world.scenario, [1]))
    outlook = look(world, history, Key(1, 0), Sight(steps=4))
    assert len(outlook.plans) >= LEAST_PLANS
    gate = Gate(world, history.now, Bounds(3))
    assert not any(gate.refusals(plan[0]) for plan in outlook.plans)
    assert np.isfinite(outlook.gains).all()


@pytest.mark.parametrize("planner", [greedy, lookahead])
def test_what_a_planner_decides_is_never_refused(planner: Any) -> None:
    for joint, outcomes in episode("cloud/medium", planner, 7, 8):
        assert 1 <= len(joint) <= 3
        assert "refused" not in {outcome.status for outcome in outcomes.actions}
        assert outcomes.violations == ()


@pytest.mark.parametrize("planner", [greedy, lookahead])
def test_a_planner_decides_the_same_from_the_same_history(planner: Any) -> None:
    first = [joint for joint, _ in episode("cloud/medium", planner, 3, 4)]
    assert first == [joint for joint, _ in episode("cloud/medium", planner, 3, 4)]


def test_hidden_fields_move_no_decision() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 5)
    other = clouds.changed(state, "h.s.base_rps", 1, 9_999_999.0)
    other = clouds.changed(other, "h.s.phase_h", 0, 3.0)
    row = state.settings.tiers + 3
    other = clouds.changed(other, "h.essential", row, 1 - state.columns["h.essential"][0, row])
    one = lookahead(world, seen_by(world, state), Key(5, 0), QUICK)
    assert one == lookahead(world, seen_by(world, other), Key(5, 0), QUICK)


def test_looking_ahead_brings_the_cost_of_a_calm_world_down_and_keeps_its_services_alive() -> None:
    world = CloudWorld(clouds.calm("easy"))
    state, history = world.reset(world.scenario, [2]), History(world.scenario)
    for _ in range(10):
        history.observations.append(world.observe(state))
        joint = lookahead(world, history, Key(2, history.now.step), QUICK)
        state, outcomes, _ = world.step(state, joint)
        history.decisions.append(joint)
    assert outcomes.success
    assert state.columns["w.harms"][0, 0] == 0


@pytest.mark.parametrize(
    "name", ["cloudedge/hard", "finops/right_sizing", "aiops/event/memory_leak"]
)
def test_the_planners_play_every_other_world_too(name: str) -> None:
    most = make_world(load_scenario(name)).limits.max_actions_per_step
    for planner in (greedy, lookahead):
        for joint, outcomes in episode(name, planner, 1, 3):
            assert 1 <= len(joint) <= most
            assert "refused" not in {outcome.status for outcome in outcomes.actions}


def test_looking_ahead_beats_repeating_one_action_on_cloudedge() -> None:
    scenario = load_scenario("cloudedge/easy")
    planned = sum(outcome.reward for _, outcome in episode(scenario.name, lookahead, 4, 15))
    world = make_world(scenario)
    state, still = world.reset(scenario, [4]), 0.0
    for _ in range(15):
        legal = world.catalogue(world.observe(state))
        state, outcome, _ = world.step(state, (legal[0],))
        still += outcome.reward
    assert planned > still


# -- errands --------------------------------------------------------------------------------


def row_of(state: State, kind: int) -> int:
    tiers = state.settings.tiers
    return tiers + int(np.flatnonzero(state.columns["kind"][0, tiers:] == kind)[0])


def with_cells(start: State, row: int, **cells: float) -> State:
    result = start
    for name, value in cells.items():
        result = clouds.changed(result, name, row, value)
    return result


UNUSED = {
    "idle_hours": 900.0, "essential": names.NO, "tag_status": 0, "protected": 0, "managed_by": 0,
    "needed_by": -1, "marked_at_step": -1, "state": names.RUNNING,
}  # fmt: skip


def plans_for(state: State, world: CloudWorld) -> dict[str, Any]:
    return {plan[0][0].target: plan for plan in removals(world.observe(state))}


@pytest.mark.parametrize("grace", [1, 2, 6])
def test_a_removal_is_marked_first_and_done_when_its_grace_has_passed(grace: int) -> None:
    world, state = clouds.opened(clouds.calm("medium", grace_steps=grace), 1)
    row = row_of(state, names.VOLUME)
    state = with_cells(state, row, **UNUSED)
    target = world.observe(state).inventory.ids[row]  # type: ignore[union-attr]
    plan = plans_for(state, world)[target]
    assert plan[0] == (Action("mark", target),)
    assert plan[1:-1] == ((),) * (grace - 1)
    assert plan[-1] == (Action("terminate", target),)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("essential", names.YES), ("essential", names.UNKNOWN), ("tag_status", 1),
        ("protected", 1), ("managed_by", 1), ("managed_by", 2), ("needed_by", 0),
        ("idle_hours", 100.0), ("idle_hours", np.nan), ("marked_at_step", 0),
        ("state", names.TERMINATED),
    ],
)  # fmt: skip
def test_nothing_that_is_or_may_be_needed_is_planned_away(cell: str, value: float) -> None:
    world, state = clouds.opened(clouds.calm("medium", grace_steps=2), 1)
    row = row_of(state, names.VOLUME)
    target = world.observe(state).inventory.ids[row]  # type: ignore[union-attr]
    assert target in plans_for(with_cells(state, row, **UNUSED), world)
    assert target not in plans_for(with_cells(state, row, **{**UNUSED, cell: value}), world)


def test_where_no_grace_is_asked_removing_is_one_action_and_needs_no_plan() -> None:
    world, state = clouds.opened(clouds.calm("medium", grace_steps=0), 1)
    assert removals(world.observe(state)) == ()


def test_a_suspect_database_is_isolated_before_it_is_restored() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = state.settings.pools
    assert remedies(world.observe(state)) == ()
    seen = world.observe(clouds.changed(state, "suspicion", row, 0.9))
    first = remedies(seen)[0]
    assert [joint[0].kind for joint in first] == ["isolate", "restore_backup"]
    assert {joint[0].target for joint in first} == {"web-db"}


def test_evidence_is_sought_on_a_service_that_misses_its_objective_and_not_asked_twice() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    seen = world.observe(state)
    asked = list(errands(seen))
    slow = [name for name, facts in seen.facts["services"].items() if (facts["p95_ms"] or 0) > 150]
    assert slow
    assert asked[0] == Action("detect")
    assert Action("analyse", slow[0]) in asked
    again = list(errands(seen, [(Action("detect"), Action("analyse", slow[0]))]))
    assert Action("detect") not in again
    assert Action("analyse", slow[0]) not in again


def test_use_and_need_that_nobody_knows_are_asked_for() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = row_of(state, names.VOLUME)
    open_case = {**UNUSED, "owner_wait_steps": 0, "metrics_wait_steps": 0}
    target = world.observe(state).inventory.ids[row]  # type: ignore[union-attr]
    dark = with_cells(state, row, **{**open_case, "idle_hours": np.nan})
    assert Action("request_metrics", target) in list(errands(world.observe(dark)))
    doubtful = with_cells(state, row, **{**open_case, "essential": names.UNKNOWN})
    assert Action("flag_for_owner", target) in list(errands(world.observe(doubtful)))
    known = with_cells(state, row, **open_case)
    assert target not in {action.target for action in errands(world.observe(known))}


def test_batch_work_is_not_starved_for_a_gain_that_only_shows_later() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    seen = world.observe(state)
    half = Action.of("scale_down", "batch.us-east-1", fraction=0.5)
    smaller = Action.of("resize", "batch.us-east-1", new_size="m6i.large")
    same = Action.of("resize", "batch.us-east-1", new_size="m6i.4xlarge")
    assert [careless(seen, action) for action in (half, smaller, same)] == [True, True, False]


def test_nothing_is_cut_that_is_nearly_full_or_whose_load_nobody_knows() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    seen = world.observe(state)
    cut = [Action.of("scale_down", "web-db", fraction=share) for share in (0.1, 0.5)]
    assert seen.facts["services"]["web"]["db_cpu_percent"] < 80
    assert [careless(seen, action) for action in cut] == [False, True]
    assert careless(seen, Action.of("scale_down", "web.us-east-1", fraction=0.1))
    assert careless(seen, Action.of("optimize_energy", "web", level=1))
    assert not careless(seen, Action.of("optimize_energy", "web", level=0))
    assert not careless(seen, Action.of("scale_up", "web.us-east-1", fraction=0.5))
    dark = clouds.scenario("medium")
    blind = CloudWorld(dataclasses.replace(dark, params={**dark.params, "missing_fraction": 0.9}))
    unseen = blind.observe(blind.reset(blind.scenario, [1]))
    assert unseen.inventory is not None
    lost = [
        name
        for name in ("web-db", "api-db", "batch-db")
        if unseen.inventory.row(name)["cpu_percent"] is None
    ]
    assert lost
    for name in lost:
        assert careless(unseen, Action.of("scale_down", name, fraction=0.1))


def test_batch_work_that_waits_too_long_gets_machines_first() -> None:
    world, state = clouds.opened(clouds.calm("medium"), 1)
    late = world.observe(clouds.changed(state, "s.backlog_hours", 2, 1.2))
    assert next(iter(errands(late))) == Action.of("scale_up", "batch", fraction=0.25)


def test_a_world_without_public_facts_has_no_errands() -> None:
    bare = Observation(0, 10, {"latency_ms": 300.0}, {"latency_ms": 150.0})
    assert list(errands(bare)) == []
    assert removals(bare) == remedies(bare) == ()
    assert not careless(bare, Action("scale_down", "x"))


# -- baselines ------------------------------------------------------------------------------


def test_every_baseline_policy_plays_by_the_rules_of_the_room() -> None:
    scenario = clouds.variant("easy", horizon=3)
    world = CloudWorld(scenario)
    for name, policy in POLICIES.items():
        state, history = world.reset(scenario, [9]), History(scenario)
        for step in range(2):
            history.observations.append(world.observe(state))
            joint = policy(world, history, Key(9, step))
            assert len(joint) <= 3, name
            state, outcomes, _ = world.step(state, joint)
            history.decisions.append(joint)
            assert "refused" not in {outcome.status for outcome in outcomes.actions}, name


def test_doing_nothing_never_wins_a_shipped_preset() -> None:
    for preset in ("easy", "medium"):
        row = play(CloudWorld(clouds.scenario(preset)), "nop", 11)
        assert not row.won
        assert row.total <= 0.3


def test_the_table_names_every_policy_with_its_rates_over_raw_seeds(tmp_path: Path) -> None:
    scenario = clouds.variant("easy", horizon=14)
    told: list[str] = []
    kept = Kept(tmp_path / "rows.jsonl", scenario)
    rows = measure(scenario, [1, 2], ["nop", "always terminate"], kept, told.append)
    figures = summary(scenario, rows)
    assert figures["digest"] == scenario.digest
    assert figures["seeds"] == [1, 2]
    assert figures["policies"]["nop"]["n"] == 2
    text = table({"cloud/easy": figures})
    assert "| nop | 2 | 0 %" in text
    assert "| always terminate | 2 |" in text
    assert len(told) == 4


def test_a_measurement_that_was_stopped_goes_on_where_it_stopped(tmp_path: Path) -> None:
    scenario, path = clouds.variant("easy", horizon=14), tmp_path / "made" / "rows.jsonl"
    told: list[str] = []
    first = measure(scenario, [1], ["nop"], Kept(path, scenario), told.append)
    with path.open("a", encoding="utf-8") as lines:
        lines.write('{"digest": "of another scenario", "policy": "nop", "seed": 7}\n{"dig')
    path.write_text(path.read_text("utf-8") + "\n", encoding="utf-8")
    again = measure(scenario, [1, 2], ["nop"], Kept(path, scenario), told.append)
    assert told == [f"{scenario.name}: nop, seed 1", f"{scenario.name}: nop, seed 2"]
    assert again[0] == first[0]
    assert [row.seed for row in again] == [1, 2]
    other = dataclasses.replace(scenario, horizon=15)
    assert Kept(path, other).rows == {}


def test_a_policy_has_won_where_a_certificate_would_have_been_given() -> None:
    row = Row("x", 1, "00-08h rising", 0.5, 0.7, True, 0)
    assert row.won
    assert not dataclasses.replace(row, harms=1).won
    assert not dataclasses.replace(row, held_fraction=0.49).won


def test_nop_is_an_action_that_planners_leave_out_where_there_is_another() -> None:
    joint = episode("cloud/medium", lookahead, 3, 1)[0][0]
    assert NOP not in {action.kind for action in joint}
