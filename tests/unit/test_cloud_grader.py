"""What an episode of the cloud world is worth."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

import pytest

from tests.support import clouds
from world.actions import Action
from world.graders.cloud import grade, net_saving_usd, oscillations, time_in_target
from world.graders.registry import grade as graded_by_world
from world.graders.scorecard import GradedStep, Scorecard
from world.model import Joint, Scenario
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld

EASY_TARGETS = {
    "latency_ms": 1e4, "cost_usd_per_hour": 1e4, "carbon_kg_per_day": 1e4, "error_fraction": 0.01,
}  # fmt: skip


def played(world: CloudWorld, state: State, joints: Iterable[Joint]) -> list[GradedStep]:
    steps = []
    for joint in joints:
        state, outcomes, _ = world.step(state, joint)
        steps.append(GradedStep.of(world.observe(state), joint, outcomes))
    return steps


def idle(scenario: Scenario, seed: int = 1) -> list[GradedStep]:
    world, state = clouds.opened(scenario, seed)
    return played(world, state, [()] * scenario.horizon)


def within(scenario: Scenario, **targets: float) -> Scenario:
    """The scenario with targets and objectives that hold as they are, but for those given."""
    loose = dataclasses.replace(scenario, targets={**EASY_TARGETS, **targets})
    return dataclasses.replace(loose, params={**loose.params, "slo_p95_ms": 9000.0})


def edited(original: GradedStep, **fields: object) -> GradedStep:
    return dataclasses.replace(original, **fields)  # type: ignore[arg-type]


def shares(card: Scorecard) -> dict[str, float]:
    return {name: part.value for name, part in card.components.items() if part.weight}


def test_the_five_parts_weigh_one_and_add_up_to_the_total() -> None:
    scenario = within(clouds.calm("easy"), cost_usd_per_hour=1.0)
    card = grade(scenario, idle(scenario))
    weights = {name: part.weight for name, part in card.components.items() if part.weight}
    assert weights == {
        "joint": 0.5, "single": 0.15, "of_certificate": 0.15, "incidents": 0.1, "saving": 0.1,
    }  # fmt: skip
    total = sum(part.value * part.weight for part in card.components.values())
    assert card.total == pytest.approx(total)
    # Latency and carbon hold all the time, cost never; nothing was saved, no incident came.
    assert shares(card)["single"] == pytest.approx(2 / 3)
    assert shares(card)["joint"] == 0.0
    assert card.total == pytest.approx(0.15 * 2 / 3 + 0.1)


def test_an_episode_in_target_throughout_is_a_success_with_a_full_joint_share() -> None:
    scenario = within(clouds.calm("easy"))
    card = grade(scenario, idle(scenario))
    assert shares(card)["joint"] == shares(card)["single"] == shares(card)["of_certificate"] == 1.0
    assert (card.success, card.success_any) == (True, True)


@pytest.mark.parametrize("missed", [1, 5])
def test_one_miss_in_the_last_five_steps_is_no_success(missed: int) -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    steps[-missed] = edited(steps[-missed], success=False)
    assert not grade(scenario, steps).success


def test_a_miss_before_the_last_five_steps_costs_joint_time_but_not_success() -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    steps[-6] = edited(steps[-6], success=False)
    card = grade(scenario, steps)
    assert card.success
    assert shares(card)["joint"] == pytest.approx(1 - 1 / 42)


def test_any_harm_makes_the_score_001_and_the_episode_a_failure() -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    steps[3] = edited(steps[3], violations=("vm-1: needed and terminated",))
    card = grade(scenario, steps)
    assert (card.total, card.success) == (0.01, False)
    assert card.components["harm"].steps == (4,)
    assert "harm" in card.note
    assert card.violations == ("vm-1: needed and terminated",)


def test_harm_that_comes_due_while_the_world_runs_out_counts_too() -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    audit = {**steps[-1].facts["audit"], "harms": 1}
    steps[-1] = edited(steps[-1], facts={**steps[-1].facts, "audit": audit})
    assert grade(scenario, steps).total == 0.01


def test_the_twelve_steps_after_the_end_count_as_time_in_target() -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    audit = dict(steps[-1].facts["audit"])
    assert audit["run_out_in_target"] == {"latency": 12, "cost": 12, "carbon": 12, "all": 12}
    lost = {**audit, "run_out_in_target": {"latency": 12, "cost": 0, "carbon": 12, "all": 0}}
    assert time_in_target(scenario, steps, lost).joint == pytest.approx(30 / 42)
    assert time_in_target(scenario, steps, lost).single["cost"] == pytest.approx(30 / 42)


def test_doing_nothing_saves_nothing_against_its_own_twin() -> None:
    for seed in (1, 2):
        audit = idle(clouds.scenario("easy"), seed)[-1].facts["audit"]
        assert audit["spent_usd"] == audit["nop_spent_usd"]
        assert audit["emitted_kg"] == audit["nop_emitted_kg"]
        assert net_saving_usd(audit) == 0.0


def test_a_removed_volume_saves_its_price_for_the_rest_of_the_episode_and_the_run_out() -> None:
    scenario = clouds.calm("easy")
    world, state = clouds.opened(scenario, 1)
    offered = world.catalogue(world.observe(state))
    volumes = [action for action in offered if action.kind == "terminate" and "vol" in action.id]
    removal: Joint = (volumes[0],)
    before = float(clouds.truth(state)[1])
    after, _ = clouds.steps(world, state, removal)
    rate = before - float(clouds.truth(after)[1])
    steps = played(world, state, [removal, *[()] * 29])
    hours = (30 + 12) * 5 / 60
    assert rate > 0
    assert net_saving_usd(steps[-1].facts["audit"]) == pytest.approx(rate * hours, rel=1e-6)


def test_one_offs_are_taken_from_what_was_saved() -> None:
    scenario = clouds.calm("easy")
    world, state = clouds.opened(scenario, 1)
    copies = [a for a in world.catalogue(world.observe(state)) if a.kind == "snapshot"][:1]
    audit = played(world, state, [tuple(copies), *[()] * 29])[-1].facts["audit"]
    assert audit["one_off_usd"] == 2.0
    assert net_saving_usd(audit) == pytest.approx(-2.0)


def test_a_term_that_nobody_uses_is_charged_against_the_saving() -> None:
    scenario = clouds.calm("medium")
    world, state = clouds.opened(scenario, 1)
    plan = [clouds.DO_NOTHING] * scenario.horizon
    plan[0] = (Action.of("buy_reserved", "batch.us-east-1", fraction=0.2),)
    plan[20] = (
        Action.of("migrate_region", "batch", region="us-west-1", fraction=1.0, with_data=False),
    )
    audit = played(world, state, plan)[-1].facts["audit"]
    assert audit["put_off_usd"] > 1000.0
    assert net_saving_usd(audit) < -1000.0


def test_an_incident_left_open_scores_nothing_and_one_that_is_cured_all() -> None:
    scenario = within(clouds.calm("medium", incidents=1))
    world, state = clouds.opened(scenario, 1)
    state = clouds.with_incident(state, names.BAD_DEPLOY, service=1, victim=1)
    left = grade(scenario, played(world, state, [()] * scenario.horizon))
    assert shares(left)["incidents"] == 0.0
    plan: list[Joint] = [(), (Action("analyse", "api"),), (Action("rollback", "api"),)]
    steps = played(world, state, [*plan, *[()] * (scenario.horizon - 3)])
    cured = grade(scenario, steps)
    assert shares(cured)["incidents"] == 1.0
    assert cured.components["steps_to_detect"].value == 1.0
    assert cured.components["steps_to_mitigate"].value == cured.components["incidents"].steps[0] - 1
    known = steps[-1].facts["audit"]["incidents"][0]["known_step"] is not None
    assert cured.components["root_cause_accuracy"].value == float(known)


def test_what_nobody_can_solve_is_no_incident_to_be_solved() -> None:
    scenario = within(clouds.calm("medium", incidents=1))
    world, state = clouds.opened(scenario, 1)
    state = clouds.with_incident(state, names.PRICE_HIKE, slot=0)
    card = grade(scenario, played(world, state, [()] * scenario.horizon))
    assert shares(card)["incidents"] == 1.0


def test_a_remedy_under_way_at_the_end_still_counts() -> None:
    scenario = within(clouds.calm("easy", incidents=1))
    world, state = clouds.opened(scenario, 1)
    state = clouds.with_incident(state, names.BAD_DEPLOY, service=0, victim=0)
    plan: list[Joint] = [()] * (scenario.horizon - 1)
    card = grade(scenario, played(world, state, [*plan, (Action("rollback", "web"),)]))
    assert shares(card)["incidents"] == 1.0


def test_a_stopped_episode_counts_unplayed_steps_as_missed_and_is_no_success() -> None:
    scenario = within(clouds.calm("easy"))
    card = grade(scenario, idle(scenario)[:15])
    assert shares(card)["joint"] == pytest.approx(0.5)
    assert shares(card)["saving"] == shares(card)["incidents"] == 0.0
    assert not card.success
    assert "stopped" in card.note


def test_no_step_at_all_is_graded_without_an_error() -> None:
    card = grade(clouds.scenario("easy"), [])
    assert (card.total, card.success, card.success_any) == (0.01, False, False)


def test_the_audit_is_seen_after_the_last_step_only_and_tells_no_seat_before() -> None:
    steps = idle(clouds.scenario("easy"))
    assert ["audit" in step.facts for step in steps] == [False] * 29 + [True]


def test_undoing_an_action_on_the_same_target_soon_is_oscillation() -> None:
    blank = GradedStep(0, {}, (), 0.0, False)

    def steps(*actions: tuple[int, str]) -> list[GradedStep]:
        return [
            edited(blank, step=at, actions=(name,), statuses=("applied",)) for at, name in actions
        ]

    up, down = "scale_up:a:fraction=0.1", "scale_down:a:fraction=0.1"
    assert oscillations(steps((1, up), (2, down), (3, up))) == (2, 3)
    assert oscillations(steps((1, up), (13, down))) == ()
    assert oscillations(steps((1, up), (2, down.replace(":a:", ":b:")))) == ()
    assert oscillations(steps((1, "resize:a:new_size=x"), (9, "resize:a:new_size=y"))) == (9,)
    refused = [edited(step, statuses=("refused",)) for step in steps((1, up), (2, down))]
    assert oscillations(refused) == ()


def test_the_registry_sends_cloud_episodes_here() -> None:
    scenario = within(clouds.calm("easy"))
    steps = idle(scenario)
    assert graded_by_world(scenario, steps) == grade(scenario, steps)


def test_the_card_is_json_plain_and_every_part_explains_itself() -> None:
    card = grade(clouds.scenario("easy"), idle(clouds.scenario("easy")))
    for name, part in card.as_json()["components"].items():  # type: ignore[union-attr]
        assert part["explanation"], name  # type: ignore[index, call-overload]
    for one, other in itertools.pairwise(sorted(card.components)):
        assert one != other
