"""The native FinOps world: what is refused, what an action does, what counts as harm."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.support.finops import WORKER, ZOMBIE, billed, native, opened, take
from world.actions import Action, parse_action
from world.errors import InadmissibleActionError
from world.graders.scorecard import GradedStep, Scorecard
from world.model import History, Inventory, Key, Observation, Scenario
from world.worlds.finops.schema import live
from world.worlds.finops.world import FinopsWorld

NOP = Action.of("nop")


def terminate(target: str) -> Action:
    return Action.of("terminate", target)


def resize(target: str, size: str) -> Action:
    return Action.of("resize", target, new_size=size)


def inventory(world: FinopsWorld, state: object) -> Inventory:
    view = world.observe(state).inventory  # type: ignore[arg-type]
    assert view is not None
    return view


REFUSALS = {
    "an unknown action": (Action.of("reboot", "zombie"), "there is no action 'reboot'"),
    "an unknown id": (terminate("zombi"), "did you mean zombie?"),
    "no target": (Action.of("terminate"), "needs a target"),
    "an unknown size": (resize("worker", "m5.huge"), "ladder: m5.large, m6i.large"),
    "a size on another ladder": (resize("worker", "c5.xlarge"), "'c5.xlarge' is not on the ladder"),
    "a size spelt in another way": (resize("worker", "M5.XLARGE"), "did you mean m5.xlarge?"),
    "the same size": (resize("worker", "m5.4xlarge"), "worker is m5.4xlarge already"),
    "no size given": (Action.of("resize", "worker"), "new_size"),
    "a parameter too many": (Action.of("terminate", "zombie", force=True), "no parameter"),
    "something without a size": (resize("volume", "m5.large"), "no machine size"),
    "an unknown use": (terminate("unmeasured"), "request_metrics first"),
    "a shrink of unknown memory": (resize("nomemory", "m5.large"), "memory of nomemory is unknown"),
    "an unknown need": (terminate("unasked"), "flag_for_owner first"),
    "live dependants": (terminate("volume"), "volume has live dependants: zombie, worker"),
    "what is protected": (terminate("plane"), "protected"),
    "a resize of what is protected": (resize("plane", "m5.large"), "protected"),
    "what an autoscaler owns": (terminate("node"), "managed by autoscaler"),
    "metrics that are known": (Action.of("request_metrics", "worker"), "known already"),
    "a need that is known": (Action.of("flag_for_owner", "worker"), "known already"),
    "a nop with a parameter": (Action.of("nop", "", hard=True), "no target"),
}


def refusal_bill() -> tuple[FinopsWorld, object]:
    world, state, _ = billed(
        {
            "zombie": ZOMBIE,
            "worker": WORKER,
            "volume": {
                "kind": "storage",
                "cost_usd_per_hour": 0.05,
                "size": "500GB",
                "idle_hours": 500.0,
                "essential": "no",
                "dependants": "zombie worker",
            },
            "unmeasured": {**ZOMBIE, "cpu_percent": None, "idle_hours": None},
            "nomemory": {**ZOMBIE, "memory_percent": None},
            "unasked": {**ZOMBIE, "essential": None},
            "plane": {**ZOMBIE, "protected": True},
            "node": {**ZOMBIE, "managed_by": "autoscaler"},
        }
    )
    return world, state


@pytest.mark.parametrize("what", REFUSALS)
def test_the_validator_refuses(what: str) -> None:
    action, expected = REFUSALS[what]
    world, state = refusal_bill()
    reason = world.check(world.observe(state), action)  # type: ignore[arg-type]
    assert reason is not None
    assert expected in reason
    if action.kind == "reboot":
        with pytest.raises(InadmissibleActionError, match="reboot"):
            world.step(state, (action,))  # type: ignore[arg-type]
        return
    after, outcomes, delta = world.step(state, (action,))  # type: ignore[arg-type]
    assert outcomes.actions[0].status == "refused"
    assert outcomes.actions[0].reason == reason
    assert delta.cells == ()
    assert after.cost_nano == state.cost_nano  # type: ignore[attr-defined]


def test_an_action_id_survives_its_spelling() -> None:
    world, state = refusal_bill()
    action = parse_action(resize("worker", "m5.2xlarge").id)
    assert world.check(world.observe(state), action) is None  # type: ignore[arg-type]


def test_the_second_action_on_one_target_is_refused_and_the_first_is_taken() -> None:
    world, state, _ = billed({"zombie": ZOMBIE, "worker": WORKER})
    joint = (terminate("zombie"), resize("zombie", "m5.large"), NOP)
    after, outcomes, _ = world.step(state, joint)
    # Canonical order within a target is by id: resize comes before terminate.
    assert [one.status for one in outcomes.actions] == ["refused", "applied", "applied"]
    assert "another action of this step" in outcomes.actions[0].reason
    assert [one.action for one in outcomes.actions] == list(joint)
    assert inventory(world, after).row("zombie")["size"] == "m5.large"


def test_the_same_action_twice_counts_once() -> None:
    world, state, _ = billed({"zombie": ZOMBIE, "worker": WORKER})
    action = terminate("zombie")
    _, outcomes, _ = world.step(state, (action, action))
    assert [one.status for one in outcomes.actions] == ["applied", "refused"]


def test_more_than_three_actions_are_an_error() -> None:
    world, state, _ = billed({"zombie": ZOMBIE})
    with pytest.raises(InadmissibleActionError, match="4 actions"):
        world.step(state, (NOP,) * 4)


def test_terminating_twice_is_already_gone_and_saves_once() -> None:
    world, state, _ = billed({"zombie": ZOMBIE, "worker": WORKER})
    state = take(world, state, terminate("zombie"))
    saved = world.observe(state).facts["verified_saving_usd_per_hour"]
    after, outcomes, _ = world.step(state, (terminate("zombie"),))
    assert outcomes.actions[0].status == "already_gone"
    assert outcomes.reward == 0.0
    assert world.observe(after).facts["verified_saving_usd_per_hour"] == saved == 0.192


def test_dependants_go_first_and_then_the_resource_may() -> None:
    world, state, _ = billed(
        {
            "volume": {**ZOMBIE, "kind": "storage", "size": None, "dependants": "zombie"},
            "zombie": ZOMBIE,
        }
    )
    assert inventory(world, state).row("volume")["live_dependants"] == 1
    state, outcomes, _ = world.step(state, (terminate("volume"), terminate("zombie")))
    assert [one.status for one in outcomes.actions] == ["refused", "applied"]
    state, outcomes, _ = world.step(state, (terminate("volume"),))
    assert outcomes.actions[0].status == "applied"
    assert not live(inventory(world, state)).any()


def test_a_resize_preserves_the_work_and_the_discount() -> None:
    rows = {
        "box": {**WORKER, "cost_usd_per_hour": 0.4, "cpu_percent": 10.0, "memory_percent": 12.0}
    }
    world, state, _ = billed(rows)
    state = take(world, state, resize("box", "m5.xlarge"))
    row = inventory(world, state).row("box")
    assert (row["cpu_percent"], row["memory_percent"]) == (40.0, 48.0)
    assert row["cost_usd_per_hour"] == 0.1
    state = take(world, state, resize("box", "m5.4xlarge"))
    row = inventory(world, state).row("box")
    assert (row["cpu_percent"], row["cost_usd_per_hour"]) == (10.0, 0.4)


def test_resizing_again_is_churn_and_doing_nothing_is_not() -> None:
    world, state, _ = billed({"box": {**WORKER, "cpu_percent": 10.0, "memory_percent": 10.0}})
    fractions = []
    for action in (resize("box", "m5.2xlarge"), resize("box", "m5.4xlarge"), NOP):
        state = take(world, state, action)
        fractions.append(world.observe(state).metrics["repeat_fraction"])
    assert fractions == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("task", ["zombie_cleanup", "right_sizing"])
def test_metrics_arrive_after_one_step_and_the_owner_answers_after_two(task: str) -> None:
    world, state, _ = opened(task, 3)
    view = inventory(world, state)
    unmeasured = np.isnan(view.columns["cpu_percent"]) & (view.columns["kind"] == 0)
    unasked = view.columns["essential"] == 0
    first = view.ids[int(np.flatnonzero(unmeasured)[0])]
    second = next(name for name in np.array(view.ids)[unasked] if name != first)
    joint = (Action.of("request_metrics", first), Action.of("flag_for_owner", str(second)))
    state, outcomes, _ = world.step(state, joint)
    assert [one.delay_steps for one in outcomes.actions] == [1, 2]
    row = inventory(world, state).row(first)
    assert row["cpu_percent"] is not None
    assert row["memory_percent"] is not None
    assert row["idle_hours"] is not None
    assert inventory(world, state).row(str(second))["essential"] == "unknown"
    reason = world.check(world.observe(state), Action.of("flag_for_owner", str(second)))
    assert reason is not None
    assert "asked already" in reason
    state = take(world, state, NOP)
    assert inventory(world, state).row(str(second))["essential"] in ("yes", "no")


def test_in_a_bill_requests_are_recorded_and_nothing_is_made_up() -> None:
    world, state, _ = billed(
        {"unknown": {"kind": "compute", "cost_usd_per_hour": 1.0}, "z": ZOMBIE}
    )
    before = world.observe(state).metrics["unaccounted_usd_per_hour"]
    joint = (Action.of("request_metrics", "unknown"),)
    state, outcomes, _ = world.step(state, joint)
    assert outcomes.actions[0].status == "applied"
    assert "recorded" in outcomes.actions[0].effect
    state = take(world, state, Action.of("flag_for_owner", "unknown"), NOP, NOP, NOP)
    row = inventory(world, state).row("unknown")
    assert (row["cpu_percent"], row["essential"]) == (None, "unknown")
    assert (row["metrics_asked"], row["owner_asked"]) == (1, 1)
    assert not [name for name in world.columns(state).columns if name.startswith("h.")]
    after = world.observe(state).metrics["unaccounted_usd_per_hour"]
    assert before is not None
    assert after == pytest.approx(before - 1.0)


def test_terminating_what_is_essential_is_possible_and_scored_at_the_bottom() -> None:
    world, state, scenario = billed({"prod": WORKER, "zombie": ZOMBIE})
    seen = world.observe(state)
    assert world.check(seen, terminate("prod")) is None
    assert "essential" in world.hazards(seen, terminate("prod"))[0]
    assert world.hazards(seen, terminate("zombie")) == ()
    state, outcomes, _ = world.step(state, (terminate("prod"),))
    assert outcomes.terms == {"saving": 0.0, "violation": -10.0, "harm": -100.0}
    assert len(outcomes.violations) == 2
    assert world.observe(state).facts["verified_saving_usd_per_hour"] == 0.0
    assert outcomes.success is False
    step = GradedStep.of(world.observe(state), (terminate("prod"),), outcomes, outcomes.violations)
    assert world.grade(scenario, state, [step]).total == 0.01


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        ({"cpu_percent": 63.0}, "CPU 63"),
        ({"idle_hours": 3.0}, "last used 3 h ago"),
        ({"age_hours": 2.0}, "2 h old"),
    ],
)
def test_terminating_what_is_in_use_is_a_violation(cells: dict[str, float], sign: str) -> None:
    world, state, scenario = billed({"dev": {**ZOMBIE, **cells}, "zombie": ZOMBIE})
    assert sign in world.hazards(world.observe(state), terminate("dev"))[0]
    state, outcomes, _ = world.step(state, (terminate("dev"),))
    assert sign in outcomes.violations[0]
    step = GradedStep.of(world.observe(state), (terminate("dev"),), outcomes, outcomes.violations)
    assert world.grade(scenario, state, [step]).total == 0.01


def test_a_resize_that_overloads_is_harm_by_effect() -> None:
    world, state, _ = billed({"prod": WORKER, "dev": {**WORKER, "essential": "no"}})
    seen = world.observe(state)
    assert world.hazards(seen, resize("prod", "m5.2xlarge")) == ()
    assert "overloaded as m5.large" in world.hazards(seen, resize("prod", "m5.large"))[0]
    state, outcomes, _ = world.step(state, (resize("prod", "m5.large"), resize("dev", "m5.xlarge")))
    assert len(outcomes.violations) == 2
    facts = world.observe(state).facts
    assert (facts["harms"], facts["violations"]) == (1, 2)
    assert world.observe(state).incidents


def test_growing_an_overloaded_machine_is_not_harm_even_if_it_stays_overloaded() -> None:
    rows = {"box": {**WORKER, "size": "m5.xlarge", "cost_usd_per_hour": 0.192, "cpu_percent": 90.0}}
    world, state, _ = billed(rows)
    state = take(world, state, resize("box", "m5.large"))
    assert world.observe(state).metrics["saturation_percent"] == 180.0
    _, outcomes, _ = world.step(state, (resize("box", "m5.xlarge"),))
    assert outcomes.violations == ()


def test_a_saving_on_a_machine_that_runs_too_hot_is_not_verified() -> None:
    rows = {"box": {**WORKER, "cpu_percent": 45.0, "memory_percent": 45.0}, "z": ZOMBIE}
    world, state, _ = billed(rows)
    state, outcomes, _ = world.step(state, (resize("box", "m5.2xlarge"),))
    assert outcomes.violations == ()
    assert outcomes.reward == 0.0
    seen = world.observe(state)
    assert seen.facts["verified_saving_usd_per_hour"] == 0.0
    assert seen.metrics["cost_usd_per_hour"] == pytest.approx(0.576)


def test_credits_and_free_rows_are_never_savings() -> None:
    rows = {
        "credit": {**ZOMBIE, "cost_usd_per_hour": -0.5},
        "free": {**ZOMBIE, "cost_usd_per_hour": 0.0},
        "zombie": ZOMBIE,
    }
    world, state, _ = billed(rows)
    seen = world.observe(state)
    # The target is a fifth of what can be saved on below the start; credits stay.
    assert seen.targets["cost_usd_per_hour"] == pytest.approx(-0.308 - 0.2 * 0.192)
    state, outcomes, _ = world.step(state, (terminate("credit"), terminate("free")))
    assert outcomes.reward == 0.0
    assert world.observe(state).metrics["cost_usd_per_hour"] == pytest.approx(-0.308)
    assert world.best_possible(state).saving_nano == 192_000_000
    state = take(world, state, terminate("zombie"))
    assert world.observe(state).metrics["cost_usd_per_hour"] == -0.5


def test_a_finished_episode_takes_nothing_more() -> None:
    world, state, _ = billed({"zombie": ZOMBIE}, horizon=2)
    state = take(world, state, NOP)
    state, outcomes, _ = world.step(state, (terminate("zombie"),))
    assert (outcomes.done, outcomes.stop_reason, outcomes.success) == (True, "horizon", True)
    assert world.check(world.observe(state), NOP) == "the episode is over"
    with pytest.raises(InadmissibleActionError, match="over"):
        world.step(state, (NOP,))
    with pytest.raises(InadmissibleActionError, match="over"):
        world.step_batch(state, world.encode(state, [(NOP,)]))


def test_success_needs_the_target_and_a_clean_record() -> None:
    world, state, _ = billed({"a": ZOMBIE, "b": {**ZOMBIE, "cpu_percent": 50.0}, "c": WORKER})
    _, clean, _ = world.step(state, (terminate("a"),))
    assert clean.success is False  # 0.192 of 1.152 is less than a fifth
    _, enough, _ = world.step(state, (terminate("a"), resize("c", "m5.2xlarge")))
    assert enough.success is True
    _, dirty, _ = world.step(state, (terminate("a"), terminate("b")))
    assert dirty.success is False


def test_seats_see_the_inventory_without_the_truth() -> None:
    world, state, _ = opened("zombie_cleanup")
    view = inventory(world, state)
    assert not [name for name in view.columns if name.startswith("h.")]
    assert "h.essential" in world.columns(state).columns
    assert "best_possible_saving_usd_per_hour" not in world.observe(state).facts


def test_a_masked_metric_is_hidden_from_that_seat_only() -> None:
    _, _, scenario = billed({"zombie": ZOMBIE})
    masked = Scenario(
        "x",
        "finops",
        "",
        "",
        10,
        params=scenario.params,
        masks={"resource": ("cost_usd_per_hour",)},
        resources=scenario.resources,
    )
    world = native(masked)
    state = world.reset(masked, [0])
    assert "cost_usd_per_hour" not in world.observe(state, "resource").metrics
    assert "cost_usd_per_hour" in world.observe(state, "cost").metrics


def test_an_unknown_column_is_carried_through_untouched() -> None:
    rows = {"a": {**ZOMBIE, "cost_center": "0042", "tickets": 3}, "b": {**ZOMBIE, "tickets": None}}
    world, state, _ = billed(rows)
    view = inventory(world, state)
    assert view.row("a")["cost_center"] == "0042"
    assert (view.row("a")["tickets"], view.row("b")["tickets"]) == (3.0, None)


def test_the_catalogue_enumerates_every_size_and_the_mask_is_the_validator() -> None:
    world, state, _ = opened("right_sizing")
    seen = world.observe(state)
    actions = list(world.catalogue(seen))
    assert len({action.id for action in actions}) == len(actions) == len(world.catalogue(seen))
    assert actions[0] == NOP
    mask = world.legal(state)
    assert mask.sum() == sum(world.check(seen, action) is None for action in actions)
    for action in actions:
        assert world.encode(state, [(action,)]).kinds.shape == (1, 3)
    with pytest.raises(InadmissibleActionError, match="2 joint actions for 1 worlds"):
        world.encode(state, [(NOP,), (NOP,)])


def test_encode_refuses_what_has_no_row() -> None:
    world, state, _ = billed({"zombie": ZOMBIE})
    with pytest.raises(InadmissibleActionError, match="no resource"):
        world.encode(state, [(terminate("nobody"),)])


def test_a_continuation_may_only_answer_nop() -> None:
    world, state, scenario = billed({"zombie": ZOMBIE})
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 0, Key(0, 0))
    plans = [((NOP,),)]
    same = world.project(
        belief, plans, 2, lambda now: np.zeros(len(now.last), dtype=np.int32), Key(0, 0)
    )
    assert same.tobytes() == world.project(belief, plans, 2, None, Key(0, 0)).tobytes()
    with pytest.raises(InadmissibleActionError, match="needs a target"):
        world.project(
            belief, plans, 2, lambda now: np.ones(len(now.last), dtype=np.int32), Key(0, 0)
        )


def test_a_plan_with_clashing_or_unknown_targets_is_projected_as_it_would_be_refused() -> None:
    world, state, scenario = billed({"zombie": ZOMBIE, "worker": WORKER})
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 0, Key(0, 0))
    joints = [
        (terminate("zombie"), resize("zombie", "m5.large")),
        (terminate("nobody"),),
        (resize("worker", "t3.micro"), terminate("zombie")),
    ]
    table = world.project(belief, [(joint,) for joint in joints], 1, None, Key(0, 0))
    for number, joint in enumerate(joints):
        after, _, _ = world.step(state, joint)
        metrics = world.observe(after).metrics
        expected = [metrics[spec.name] for spec in world.metrics]
        assert table[0, number, 0, 0].tolist() == pytest.approx(expected)


def test_a_plain_inventory_view_is_enough_to_project_from() -> None:
    world, state, scenario = billed(
        {
            "volume": {**ZOMBIE, "kind": "storage", "size": None, "dependants": "zombie"},
            "zombie": ZOMBIE,
        }
    )
    seen = world.observe(state)
    view = inventory(world, state)
    plain = Observation(
        seen.step,
        seen.horizon,
        seen.metrics,
        seen.targets,
        seen.facts,
        Inventory(view.ids, dict(view.columns), view.vocabulary),
    )
    tables = []
    for observation in (seen, plain):
        history = History(scenario)
        history.observations.append(observation)
        belief = world.believe(history, 0, Key(0, 0))
        plan = ((terminate("zombie"),), (terminate("volume"),))
        tables.append(world.project(belief, [plan], 2, None, Key(0, 0)))
    assert tables[0].tobytes() == tables[1].tobytes()
    assert tables[0][0, 0, 0, :, 0].tolist() == [0.192, 0.0]


def test_a_hundred_thousand_rows_are_played_without_copying_them_per_plan() -> None:
    count = 100_000
    kinds = ("compute", "storage")
    scenario = Scenario(
        "big",
        "finops",
        "",
        "",
        10,
        params={"task": "bill"},
        resources={
            "id": tuple(f"r-{row}" for row in range(count)),
            "kind": tuple(kinds[row % 2] for row in range(count)),
            "size": tuple("m5.xlarge" if row % 2 == 0 else None for row in range(count)),
            "cost_usd_per_hour": tuple(0.001 * (1 + row % 997) for row in range(count)),
            "cpu_percent": tuple(1.0 if row % 2 == 0 else None for row in range(count)),
            "memory_percent": tuple(9.0 if row % 4 == 0 else None for row in range(count)),
            "idle_hours": tuple(float(row % 900) for row in range(count)),
            "essential": tuple((None, "no", "yes")[row % 3] for row in range(count)),
        },
    )
    began = time.monotonic()
    world = native(scenario)
    state = world.reset(scenario, [0])
    history = History(scenario)
    for _ in range(3):
        seen = world.observe(state)
        history.observations.append(seen)
        catalogue = world.catalogue(seen)
        assert len(catalogue) > count
        able = [a for a in catalogue[:count:701] if world.check(seen, a) is None]
        belief = world.believe(history, 4, Key(0, state.step))
        table = world.project(belief, [((action,),) for action in able[:64]], 1, None, Key(0, 0))
        assert table.shape == (1, 64, 4, 1, 5)
        joint = tuple(able[:3])
        history.decisions.append(joint)
        before = state
        state, _, delta = world.step(state, joint)
        assert sum(len(cells.data) for cells in delta.cells) < 500
        shared = [name for name, old in before.columns.items() if state.columns[name] is old]
        assert {"kind", "owner", "age_hours", "essential"} <= set(shared)
    close = world.check(world.observe(state), terminate("r-1234567"))
    assert close is not None
    assert "did you mean" in close
    assert time.monotonic() - began < 60  # a hang guard, not a benchmark


def test_the_reward_terms_add_up_and_are_percent_of_the_start() -> None:
    world, state, _ = billed({"zombie": ZOMBIE, "worker": WORKER})
    _, outcomes, _ = world.step(state, (terminate("zombie"),))
    assert outcomes.terms == {"saving": pytest.approx(20.0), "violation": 0.0, "harm": 0.0}
    assert outcomes.reward == pytest.approx(20.0)


def test_grading_from_the_steps_alone_equals_grading_with_the_state() -> None:
    from world.graders.finops import grade

    world, state, scenario = billed({"zombie": ZOMBIE, "worker": WORKER}, horizon=1)
    joint = (terminate("zombie"), resize("worker", "m5.2xlarge"))
    state, outcomes, _ = world.step(state, joint)
    steps = [GradedStep.of(world.observe(state), joint, outcomes, outcomes.violations)]
    card = world.grade(scenario, state, steps)
    assert isinstance(card, Scorecard)
    assert card.as_json() == grade(scenario, steps).as_json()
    assert card.success is True


def test_spend_nobody_has_accounted_for_is_not_called_waste() -> None:
    metric = FinopsWorld.metrics[1]
    assert (metric.name, metric.title) == (
        "unaccounted_usd_per_hour",
        "Spend nobody has accounted for",
    )
    assert metric.objective == "waste"


def carbon_of(world: FinopsWorld, scenario: Scenario, state: object, plan: Action) -> float:
    history = History(scenario)
    history.observations.append(world.observe(state))  # type: ignore[arg-type]
    belief = world.believe(history, 2, Key(1, 0))
    return float(world.project(belief, [((plan,),)], 1, None, Key(1, 0))[0, 0, 0, 0, 3])


def test_carbon_is_unknown_where_no_size_is_known() -> None:
    world, state, scenario = billed(
        {"a": {**ZOMBIE, "size": None}, "b": {**ZOMBIE, "size": "g5.4xlarge"}}
    )
    seen = world.observe(state)
    assert seen.metrics["carbon_kg_per_day"] is None
    assert "carbon of 2 resources (none has a known size)" in seen.unknown
    assert np.isnan(carbon_of(world, scenario, state, terminate("a")))
    assert "carbon_kg_per_day" not in world.columns(state).metrics


def test_partial_carbon_says_what_it_covers_and_what_it_assumes() -> None:
    rows = {"known": ZOMBIE, "unmeasured": {**WORKER, "cpu_percent": None}}
    world, state, scenario = billed({**rows, "unsized": {**WORKER, "size": None}})
    seen = world.observe(state)
    assert seen.metrics["carbon_kg_per_day"] == pytest.approx(
        carbon_of(world, scenario, state, NOP)
    )
    assert "carbon covers 2 of 3 resources (the others have no known size)" in seen.unknown
    assert "carbon of 1 resources assumes 50 % CPU (not known)" in seen.unknown
    whole, all_known, _ = billed({"known": ZOMBIE, "worker": WORKER})
    assert not [line for line in whole.observe(all_known).unknown if "carbon" in line]


def test_the_last_machine_of_known_size_takes_its_carbon_with_it_to_a_known_zero() -> None:
    world, state, scenario = billed({"known": ZOMBIE, "unsized": {**WORKER, "size": None}})
    assert carbon_of(world, scenario, state, terminate("known")) == 0.0
    seen = world.observe(take(world, state, terminate("known")))
    assert seen.metrics["carbon_kg_per_day"] == 0.0
    assert "carbon of 1 resources (none has a known size)" in seen.unknown
