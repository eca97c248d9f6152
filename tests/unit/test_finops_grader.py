"""What an episode of the native world is worth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.finops import TASKS, WORKER, ZOMBIE, billed, opened, random_joint
from world.actions import Action
from world.graders.finops import grade
from world.graders.scorecard import GradedStep, Scorecard
from world.model import Joint, Scenario
from world.worlds.finops.estate import State
from world.worlds.finops.optimum import Option, _knapsack
from world.worlds.finops.rules import FLAG_FOR_OWNER, REQUEST_METRICS, RESIZE, TERMINATE
from world.worlds.finops.world import FinopsWorld

NOP = (Action.of("nop"),)


def play(
    world: FinopsWorld, state: State, scenario: Scenario, *joints: Joint
) -> tuple[Scorecard, State]:
    steps = []
    for joint in joints:
        state, outcomes, _ = world.step(state, joint)
        seen = world.observe(state)
        steps.append(GradedStep.of(seen, joint, outcomes, outcomes.violations))
    return world.grade(scenario, state, steps), state


def test_the_score_is_the_share_of_the_best_possible_saving() -> None:
    world, state, scenario = billed({"a": ZOMBIE, "b": ZOMBIE, "c": WORKER}, horizon=2)
    card, _ = play(world, state, scenario, (Action.of("terminate", "a"),), NOP)
    # Best: both zombies (0.192 each) and the worker at half its size (0.384).
    assert card.total == pytest.approx(0.25)
    assert "of 0.768 $/h (optimum)" in card.note
    assert card.components["saving"].weight == 1.0
    assert card.components["saving"].value == pytest.approx(0.25)
    assert sum(part.weight for part in card.components.values()) == 1.0


def test_everything_done_is_099_and_nothing_done_is_001() -> None:
    world, state, scenario = billed({"a": ZOMBIE, "c": WORKER}, horizon=1)
    both = (Action.of("terminate", "a"), Action.of("resize", "c", new_size="m5.2xlarge"))
    card, _ = play(world, state, scenario, both)
    assert (card.total, card.success) == (0.99, True)
    card, _ = play(world, state, scenario, NOP)
    assert (card.total, card.success, card.success_any) == (0.01, False, False)
    assert card.baselines == {"nop": 0.01, "best_possible": 0.99}


def test_where_nothing_can_be_saved_the_score_is_one_half_and_says_so() -> None:
    rows = {"tight": {**WORKER, "cpu_percent": 80.0}, "unknown": {"cost_usd_per_hour": 3.0}}
    world, state, scenario = billed(rows, horizon=1)
    card, _ = play(world, state, scenario, NOP)
    assert card.total == 0.5
    assert "nothing could be saved" in card.note
    harmful, _ = play(world, state, scenario, (Action.of("terminate", "tight"),))
    assert harmful.total == 0.01


def test_spending_more_scores_at_the_bottom() -> None:
    world, state, scenario = billed({"a": ZOMBIE, "c": WORKER}, horizon=1)
    card, state = play(world, state, scenario, (Action.of("resize", "c", new_size="m5.8xlarge"),))
    assert card.total == 0.01
    assert world.observe(state).facts["verified_saving_usd_per_hour"] == pytest.approx(-0.768)


def test_savings_by_moving_to_and_fro_are_none() -> None:
    world, state, scenario = billed({"c": {**WORKER, "cpu_percent": 10.0}}, horizon=4)
    half = (Action.of("resize", "c", new_size="m5.2xlarge"),)
    back = (Action.of("resize", "c", new_size="m5.4xlarge"),)
    card, _ = play(world, state, scenario, half, back, half, back)
    assert card.total == 0.01
    assert card.components["churn"].value == 3.0
    assert card.components["churn"].steps == (2, 3, 4)


def test_refused_actions_are_counted_with_their_steps() -> None:
    world, state, scenario = billed({"a": ZOMBIE, "c": WORKER}, horizon=2)
    nobody = (Action.of("terminate", "nobody"),)
    card, _ = play(world, state, scenario, nobody, (Action.of("terminate", "a"),))
    assert card.components["failed_actions"].value == 1.0
    assert card.components["failed_actions"].steps == (1,)
    assert card.total > 0.01


def test_no_steps_is_graded_without_failing() -> None:
    world, state, scenario = billed({"a": ZOMBIE})
    card = world.grade(scenario, state, [])
    assert (card.total, card.success) == (0.01, False)
    assert grade(scenario, []).total == 0.5  # without a state there is no best possible


@settings(max_examples=15, deadline=None)
@given(task=st.sampled_from(TASKS), seed=st.integers(0, 2**31))
def test_no_play_without_violations_beats_the_best_possible_saving(task: str, seed: int) -> None:
    world, state, _ = opened(task, seed)
    best = world.best_possible(state).saving_nano
    while not state.done:
        seen = world.observe(state)
        joint = tuple(a for a in random_joint(world, seen, seed) if not world.hazards(seen, a))
        state, outcomes, _ = world.step(state, joint or NOP)
        assert not outcomes.violations
        assert state.verified_nano()[0] <= best


options = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(
            [
                (RESIZE,),
                (TERMINATE,),
                (REQUEST_METRICS, RESIZE),
                (FLAG_FOR_OWNER, REQUEST_METRICS, TERMINATE),
            ]
        ),
        st.integers(1, 50),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(raw=options, places=st.integers(0, 12))
def test_the_knapsack_finds_what_trying_everything_finds(
    raw: list[tuple[int, tuple[int, ...], int]], places: int
) -> None:
    given_options = [Option(row, kinds, 1, saving) for row, kinds, saving in raw]
    best = 0
    for count in range(len(given_options) + 1):
        for chosen in itertools.combinations(given_options, count):
            rows = [option.row for option in chosen]
            used = sum(len(option.kinds) for option in chosen)
            if len(set(rows)) == len(rows) and used <= places:
                best = max(best, sum(option.saving_nano for option in chosen))
    found = _knapsack(given_options, places)
    assert sum(option.saving_nano for option in found) == best
    assert sum(len(option.kinds) for option in found) <= places
    assert len({option.row for option in found}) == len(found)


def test_a_bill_larger_than_the_episode_takes_the_dearest_rows() -> None:
    rows = {
        f"z{at}": {**ZOMBIE, "cost_usd_per_hour": 0.1 + at / 1000.0, "size": None}
        for at in range(50)
    }
    world, state, _ = billed(rows, horizon=2)
    best = world.best_possible(state)
    dearest = sorted(np.round(state.columns["cost_usd_per_hour"][0] * 1e9).tolist())[-6:]
    assert best.saving_nano == sum(dearest)
    assert best.exact
    assert [len(step) for step in best.plan] == [3, 3]


def test_a_cheap_row_that_must_go_first_makes_the_bound_an_upper_bound_only() -> None:
    rows = {
        "volume": {**ZOMBIE, "kind": "storage", "size": None, "dependants": "free"}
        | {"cost_usd_per_hour": 5.0},
        "free": {**ZOMBIE, "cost_usd_per_hour": 0.0, "size": None},
    }
    world, state, _ = billed(rows, horizon=3)
    best = world.best_possible(state)
    assert best.saving_nano == 5_000_000_000
    assert best.exact is False
