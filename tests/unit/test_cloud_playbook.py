"""What an imagined room finishes: what it marked, asked about or isolated, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.clouds import DO_NOTHING, calm, changed, opened, steps, with_incident
from world.actions import Action
from world.model import History, Joint, Key
from world.worlds.cloud import schema as names
from world.worlds.cloud.settings import METRICS
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld

COST, WORST_ERRORS = METRICS.index("cost_usd_per_hour"), METRICS.index("worst_error_fraction")
HORIZON = 8


def imagined(
    world: CloudWorld, state: State, joints: list[Joint], follow: bool = True
) -> NDArray[np.float64]:
    """Mean metrics of each plan, float64 [plans, H, metrics]."""
    history = History(world.scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 4, Key(201, state.step))
    continuation = CloudWorld.playbook if follow else None
    plans = [(joint,) for joint in joints]
    projected = world.project(belief, plans, HORIZON, continuation, Key(201, state.step))
    mean: NDArray[np.float64] = projected[0].mean(axis=1)
    return mean


def waste(state: State, row: int, **cells: float) -> State:
    """The row as old storage that nobody needs, 20 TB of it."""
    plain = {
        "age_hours": 5000.0, "idle_hours": 2000.0, "essential": names.NO, "h.essential": 0,
        "protected": 0, "managed_by": 0, "needed_by": -1, "tag_status": 0, "size_gb": 200_000.0,
        "marked_at_step": -1, "h.idle_hours": 2000.0,
    }  # fmt: skip
    for name, value in {**plain, **cells}.items():
        state = changed(state, name, row, value)
    return state


def volume(state: State) -> tuple[int, str]:
    kind = state.columns["kind"][0]
    row = next(r for r in range(state.settings.tiers, state.settings.rows)
               if kind[r] == names.SNAPSHOT)  # fmt: skip
    from world.worlds.cloud.view import ids_of

    return row, ids_of(state, 0)[row]


@pytest.mark.parametrize("grace", [1, 2, 5])
def test_a_mark_is_worth_what_the_removal_after_its_grace_period_saves(grace: int) -> None:
    world, state = opened(calm(grace_steps=grace), 201)
    row, name = volume(state)
    state = waste(state, row)
    plans: list[Joint] = [DO_NOTHING, (Action("mark", name),)]
    nothing, marked = imagined(world, state, plans)
    assert (marked[:grace, COST] == nothing[:grace, COST]).all()
    assert (marked[grace:, COST] < nothing[grace:, COST] - 5.0).all()
    # Without the playbook nobody follows up, and the mark shows nothing.
    bare = imagined(world, state, plans, follow=False)
    assert (bare[0, :, COST] == bare[1, :, COST]).all()


def test_a_question_is_worth_what_its_answer_may_allow() -> None:
    world, state = opened(calm(grace_steps=2, unknown_essential_fraction=0.3), 201)
    row, name = volume(state)
    state = waste(state, row, essential=names.UNKNOWN)
    nothing, asked = imagined(world, state, [DO_NOTHING, (Action("flag_for_owner", name),)])
    assert asked[-1, COST] <= nothing[-1, COST]


def test_what_is_known_to_be_needed_is_never_imagined_to_be_removed() -> None:
    world, state = opened(calm(grace_steps=0), 201)
    row, name = volume(state)
    state = waste(state, row, essential=names.YES, marked_at_step=0)
    still, bare = (
        imagined(world, state, [DO_NOTHING])[0],
        imagined(world, state, [DO_NOTHING], follow=False)[0],
    )
    assert still[-1, COST] == bare[-1, COST]
    assert name


@pytest.mark.parametrize("seed", [201, 203])
def test_isolating_a_corrupt_database_is_followed_by_its_backup(seed: int) -> None:
    world, state = opened(calm(), seed)
    state = with_incident(state, names.CORRUPTION, service=1, victim=1, severity=0.9)
    history = History(world.scenario)
    asked = (Action("evaluate", "api-db"), Action("analyse", "web"))
    for joint in (DO_NOTHING, DO_NOTHING, asked, (Action("analyse", "api"),)):
        history.observations.append(world.observe(state))
        history.decisions.append(joint)
        state, _ = steps(world, state, joint)
    history.observations.append(world.observe(state))
    isolate, restore = Action("isolate", "api-db"), Action("restore_backup", "api-db")
    assert world.check(history.now, isolate) is None
    after, _ = steps(world, state, (isolate,), (restore,), *[DO_NOTHING] * 6)
    assert after.columns["h.s.corrupt"][0, 1] == 0.0  # what the look-ahead must be able to show
    belief = world.believe(history, 16, Key(seed, state.step))
    plans = [(DO_NOTHING,), ((isolate,),)]
    key = Key(seed, state.step)
    nothing, isolated = world.project(belief, plans, HORIZON, CloudWorld.playbook, key)[0]
    assert isolated[:, -1, WORST_ERRORS].mean() < nothing[:, -1, WORST_ERRORS].mean()
    bare = world.project(belief, plans, HORIZON, None, key)[0]
    assert bare[1, :, -1, WORST_ERRORS].mean() >= bare[0, :, -1, WORST_ERRORS].mean()


def test_batch_work_on_faster_machines_is_cut_to_what_it_needs() -> None:
    world, state = opened(calm(), 201)
    batch = state.settings.params.services.index("batch")
    home = state.settings.regions * batch
    faster: Joint = (Action.of("resize", "batch.us-east-1", new_size="m7i.4xlarge"),)
    nothing, newer = imagined(world, state, [DO_NOTHING, faster])
    assert newer[2, COST] > nothing[2, COST]  # dearer at first
    assert newer[-1, COST] < nothing[-1, COST] - 3.0  # then a sixth of the pool goes
    assert newer[-1, WORST_ERRORS] <= nothing[-1, WORST_ERRORS] + 1e-9  # and no deadline with it
    bare = imagined(world, state, [DO_NOTHING, faster], follow=False)
    assert bare[1, -1, COST] > bare[0, -1, COST]
    assert state.columns["count"][0, home] > 0


def test_the_playbook_begins_nothing() -> None:
    world, state = opened(calm(grace_steps=0), 202)
    follow, bare = (
        imagined(world, state, [DO_NOTHING]),
        imagined(world, state, [DO_NOTHING], follow=False),
    )
    assert (follow == bare).all()
