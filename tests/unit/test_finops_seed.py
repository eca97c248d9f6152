"""FinOps-Gym v1 and v2 as they were: golden rewards, totals and scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from world.actions import Action
from world.errors import InadmissibleActionError, ScenarioError
from world.graders.scorecard import GradedStep
from world.model import Inventory, Observation, Scenario
from world.scenarios.loader import load_scenario
from world.worlds.finops import make
from world.worlds.finops.seed import SeedState, SeedWorld
from world.worlds.finops.seed_rows import SeedResource

Policy = Callable[[Observation, int], Action]


def opened(name: str) -> tuple[SeedWorld, SeedState, Scenario]:
    scenario = load_scenario(f"finops/{name}")
    world = make(scenario)
    assert isinstance(world, SeedWorld)
    return world, world.reset(scenario, [0]), scenario


def play(name: str, policy: Policy) -> tuple[float, float, int]:
    """Total reward, score and steps."""
    world, state, scenario = opened(name)
    total, graded = 0.0, []
    for step in range(scenario.horizon):
        seen = world.observe(state)
        action = policy(seen, step)
        state, outcomes, _ = world.step(state, (action,))
        graded.append(GradedStep.of(world.observe(state), (action,), outcomes))
        total += outcomes.reward
        if outcomes.done:
            break
    return total, world.grade(scenario, state, graded).total, len(graded)


def live(seen: Observation) -> list[dict[str, object]]:
    inventory = seen.inventory
    assert isinstance(inventory, Inventory)
    rows = [{"id": name, **inventory.row(name)} for name in inventory.ids]
    return [row for row in rows if row["state"] == "live"]


def do_nothing(seen: Observation, step: int) -> Action:
    return Action.of("nop", "none")


def terminate_in_turn(seen: Observation, step: int) -> Action:
    rows = live(seen)
    return Action.of("terminate", str(rows[step % len(rows)]["id"]))


def safe_greedy(seen: Observation, step: int) -> Action:
    rows = live(seen)
    idle = [row for row in rows if row["essential"] == "no" and row["cpu_fraction"] <= 0.01]  # type: ignore[operator]
    if idle:
        return Action.of("terminate", str(idle[0]["id"]))
    fits = [row for row in rows if row["cpu_fraction"] * 2 <= 0.95]  # type: ignore[operator]
    if not fits:
        return Action.of("nop", "none")
    dearest = max(fits, key=lambda row: float(row["cost_usd_per_hour"]))  # type: ignore[arg-type]
    return Action.of("resize", str(dearest["id"]), new_size="banana")


def first_reward(name: str, *actions: Action) -> float:
    world, state, _ = opened(name)
    reward = math.nan
    for action in actions:
        state, outcomes, _ = world.step(state, (action,))
        reward = outcomes.reward
    return reward


TERMINATE_IDLE = Action.of("terminate", "srv-idle-static")
RESIZE_DB = Action.of("resize", "db-main", new_size="anything at all")
TERMINATE_PROD = Action.of("terminate", "srv-prod-01")


def test_version_1_pays_the_three_published_rewards() -> None:
    assert first_reward("v1/zombie_cleanup", TERMINATE_IDLE) == pytest.approx(0.416, abs=1e-12)
    assert first_reward("v1/zombie_cleanup", RESIZE_DB) == pytest.approx(0.425, abs=1e-12)
    assert first_reward("v1/zombie_cleanup", TERMINATE_PROD) == -5.0


def test_version_2_pays_the_three_published_cases_in_one_episode() -> None:
    world, state, _ = opened("v2/zombie_cleanup")
    rewards = []
    for action in (TERMINATE_IDLE, RESIZE_DB, TERMINATE_PROD):
        state, outcomes, _ = world.step(state, (action,))
        rewards.append(outcomes.reward)
    assert rewards == pytest.approx([0.2912, 0.0, -15.0], abs=1e-12)


def test_the_best_version_1_return_is_2_271_in_eight_steps() -> None:
    plan = [
        TERMINATE_IDLE,
        *[Action.of("resize", "srv-prod-01", new_size="x")] * 5,
        RESIZE_DB,
        Action.of("terminate", "storage-temp-logs"),
    ]
    total, _, steps = play("v1/right_sizing", lambda seen, step: plan[step])
    assert (round(total, 9), steps) == (2.271, 8)


def test_no_version_1_plan_beats_2_271() -> None:
    """Exhaustive: the state is (which zombies are there, resizes of each row)."""
    rows = {"srv-prod-01": (0.02, 0.192, True), "db-main": (0.45, 0.17, True)}
    rows |= {"srv-idle-static": (0.0, 0.0416, False), "storage-temp-logs": (0.01, 0.05, False)}
    names = list(rows)
    best: dict[tuple[int, tuple[int, ...]], float] = {}

    def value(step: int, counts: tuple[int, ...]) -> float:
        alive = [name for name, count in zip(names, counts, strict=True) if count >= 0]
        if step == 10 or len(alive) <= 2:
            return 0.0
        if (step, counts) in best:
            return best[step, counts]
        options = [value(step + 1, counts)]  # nop that names a live resource earns 0
        for place, (name, count) in enumerate(zip(names, counts, strict=True)):
            cpu, cost, essential = rows[name]
            if count < 0:
                continue
            now = cost * 0.5**count
            reward = 2.5 * now if cpu * 2 ** (count + 1) <= 0.95 else -1.0
            changed = (*counts[:place], count + 1, *counts[place + 1 :])
            options.append(reward + value(step + 1, changed))
            if not essential:
                gone = (*counts[:place], -1, *counts[place + 1 :])
                options.append(10 * now + value(step + 1, gone))
        best[step, counts] = max(options)
        return best[step, counts]

    assert value(0, (0, 0, 0, 0)) == pytest.approx(2.271, abs=1e-9)


def test_terminating_both_zombies_at_once_ends_version_1_early() -> None:
    plan = [TERMINATE_IDLE, Action.of("terminate", "storage-temp-logs")]
    total, score, steps = play("v1/zombie_cleanup", lambda seen, step: plan[step])
    assert (round(total, 9), score, steps) == (0.916, 1.0, 2)


@pytest.mark.parametrize(
    ("name", "reward", "score", "steps"),
    [
        ("v2/zombie_cleanup", 0.641, 0.99, 2),
        ("v2/right_sizing", 6.69, 0.99, 10),
        ("v2/disaster_recovery", -0.57, 0.99, 10),
    ],
)
def test_safe_greedy_scores_what_was_measured(
    name: str, reward: float, score: float, steps: int
) -> None:
    total, graded, used = play(name, safe_greedy)
    assert round(total, 3 if reward == 0.641 else 2) == reward
    assert (graded, used) == (score, steps)


@pytest.mark.parametrize(
    ("name", "reward", "score"),
    [
        ("v2/zombie_cleanup", -29.4, 0.99),
        ("v2/right_sizing", -150.0, 0.01),
        ("v2/disaster_recovery", -135.0, 0.99),
    ],
)
def test_terminating_everything_fools_two_of_three_graders(
    name: str, reward: float, score: float
) -> None:
    total, graded, _ = play(name, terminate_in_turn)
    assert (round(total, 1), graded) == (reward, score)


@pytest.mark.parametrize(
    ("name", "score"),
    [("zombie_cleanup", 0.01), ("right_sizing", 0.01), ("disaster_recovery", 0.99)],
)
def test_doing_nothing_costs_1_5_in_version_2(name: str, score: float) -> None:
    total, graded, steps = play(f"v2/{name}", do_nothing)
    assert (round(total, 9), graded, steps) == (-1.5, score, 10)


def test_nop_is_free_when_it_names_a_live_resource() -> None:
    assert first_reward("v1/right_sizing", Action.of("nop", "none")) == -0.1
    assert first_reward("v1/right_sizing", Action.of("nop", "db-main")) == 0.0
    assert first_reward("v2/right_sizing", Action.of("nop")) == -0.15
    assert first_reward("v2/right_sizing", TERMINATE_IDLE, Action.of("nop", "db-main")) == 0.0


def test_three_resizes_are_enough_for_the_version_2_right_sizing_grader() -> None:
    world, state, scenario = opened("v2/right_sizing")
    for step in range(3):
        state, _, _ = world.step(state, (safe_greedy(world.observe(state), step),))
    assert world.grade(scenario, state, []).total == 0.99


def test_the_version_2_overload_penalty_depends_on_the_sla() -> None:
    world, state, _ = opened("v2/zombie_cleanup")
    resize = Action.of("resize", "srv-prod-01", new_size="x")
    _, outcomes, _ = world.step(state, (resize,))
    assert outcomes.reward == pytest.approx(7 * 0.096 - 0.3 * 10, abs=1e-12)
    strict = SeedResource("a", "compute", "x", 0.85, 0.192, True, sla="99.99%")
    guarded = SeedState(state.scenario, ((strict,),), 0, (-1,), (False,))
    _, outcomes, _ = world.step(guarded, (Action.of("resize", "a", new_size="x"),))
    assert outcomes.reward == pytest.approx(7 * 0.096 - 0.3 * 20, abs=1e-12)


def test_the_version_1_overload_halves_the_cost_all_the_same() -> None:
    world, state, _ = opened("v1/right_sizing")
    for _ in range(2):
        state, outcomes, _ = world.step(state, (RESIZE_DB,))
    assert outcomes.reward == -1.0
    rows = {row["id"]: row for row in live(world.observe(state))}
    assert rows["db-main"]["cost_usd_per_hour"] == 0.0425
    assert rows["db-main"]["cpu_fraction"] == 1.8


def test_version_2_takes_steps_after_it_is_done_and_version_1_does_not() -> None:
    for version, accepted in (("v1", False), ("v2", True)):
        world, state, _ = opened(f"{version}/zombie_cleanup")
        for name in ("srv-idle-static", "storage-temp-logs"):
            state, outcomes, _ = world.step(state, (Action.of("terminate", name),))
        assert outcomes.done
        assert world.check(world.observe(state), Action.of("nop", "none")) == "the episode is over"
        if accepted:
            _, outcomes, _ = world.step(state, (TERMINATE_PROD,))
            assert outcomes.reward == -15.0
        else:
            with pytest.raises(InadmissibleActionError, match="over"):
                world.step(state, (TERMINATE_PROD,))


def test_the_version_1_grader_answers_0_for_a_task_it_does_not_know() -> None:
    _, score, _ = play("v1/production_stability", safe_greedy)
    assert score == 0.0


def test_an_unknown_version_2_task_gets_the_default_node() -> None:
    scenario = Scenario("x", "finops", "", "", 10, params={"version": "v2", "task": "whatever"})
    world = make(scenario)
    inventory = world.observe(world.reset(scenario, [0])).inventory
    assert inventory is not None
    assert list(inventory.ids) == ["default-node"]


def test_the_hazards_of_the_seed_are_named_though_its_rules_allow_them() -> None:
    world, state, _ = opened("v2/zombie_cleanup")
    seen = world.observe(state)
    assert world.check(seen, TERMINATE_PROD) is None
    assert "essential" in world.hazards(seen, TERMINATE_PROD)[0]
    assert world.hazards(seen, TERMINATE_IDLE) == ()
    assert "170" in world.hazards(seen, Action.of("resize", "srv-prod-01", new_size="x"))[0]
    for target in ("", "none", "srv-prod-01", "nobody"):
        assert world.hazards(seen, Action.of("nop", target)) == ()
    assert world.hazards(seen, Action.of("terminate", "nobody")) == ()


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.of("terminate", "nobody"), "no resource"),
        (Action.of("resize", "srv-prod-01"), "new_size"),
        (Action.of("resize", "srv-prod-01", new_size="none"), "new_size"),
        (Action.of("reboot", "srv-prod-01"), "not an action"),
    ],
)
def test_the_seed_validator_refuses_only_what_the_seed_could_not_take(
    action: Action, expected: str
) -> None:
    world, state, _ = opened("v2/zombie_cleanup")
    reason = world.check(world.observe(state), action)
    assert reason is not None
    assert expected in reason
    assert (
        world.check(world.observe(state), Action.of("resize", "srv-prod-01", new_size="7")) is None
    )


def test_a_batch_of_seed_worlds_equals_single_ones() -> None:
    world, _, scenario = opened("v2/zombie_cleanup")
    joints = [(TERMINATE_IDLE,), (TERMINATE_PROD,), (Action.of("nop", "none"),), (RESIZE_DB,)]
    batch = world.reset(scenario, range(4))
    stepped, outcomes = world.step_batch(batch, world.encode(batch, joints))
    for row, joint in enumerate(joints):
        alone, result, _ = world.step(world.reset(scenario, [row]), joint)
        assert outcomes.reward[row] == result.reward
        assert bool(outcomes.done[row]) is result.done
        assert stepped.rows[row] == alone.rows[0]


def test_a_snapshot_brings_the_same_seed_world_back() -> None:
    world, state, scenario = opened("v1/right_sizing")
    for action in (TERMINATE_IDLE, RESIZE_DB, RESIZE_DB):
        state, _, _ = world.step(state, (action,))
    again = world.from_columns(scenario, 0, world.columns(state))
    assert again.rows == state.rows
    assert world.observe(again).metrics == world.observe(state).metrics
    assert world.columns(again).digest == world.columns(state).digest


def test_the_projection_of_a_seed_plan_is_what_then_happens() -> None:
    from world.model import History, Key

    world, state, scenario = opened("v1/right_sizing")
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 3, Key(0, 0))
    plans = [((action,),) for action in world.catalogue(history.now)]
    projected = world.project(belief, plans, 1, None, Key(0, 0))
    assert projected.shape == (1, len(plans), 3, 1, 4)
    for number, plan in enumerate(plans):
        after, _, _ = world.step(state, plan[0])
        metrics = world.observe(after).metrics
        expected = [metrics[spec.name] for spec in world.metrics]
        assert projected[0, number, 2, 0].tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "params", [{"version": "v3", "task": "x"}, {"version": "v1"}, {"version": 1, "task": "x"}]
)
def test_an_unknown_version_or_a_missing_task_is_a_scenario_error(
    params: dict[str, object],
) -> None:
    with pytest.raises(ScenarioError, match=r"params\."):
        make(Scenario("x", "finops", "", "", 10, params=params))
