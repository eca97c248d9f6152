"""Projections of cloud plans: like the world itself, alike in any order, and thin."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import clouds
from world import noise
from world.actions import Action
from world.errors import InadmissibleActionError
from world.model import Belief, History, Joint, Key, Plan
from world.worlds.cloud import aims, menu, reading, rules
from world.worlds.cloud.advance import imagine
from world.worlds.cloud.overlay import overlay, rows_in_question
from world.worlds.cloud.project import MOST_WORLDS
from world.worlds.cloud.state import NOW, State
from world.worlds.cloud.view import CloudInventory
from world.worlds.cloud.world import CloudWorld

SAMPLES = 3


class _Moment:
    """A room that did random legal things for a few steps and now looks ahead."""

    def __init__(self, name: str, seed: int, steps: int) -> None:
        self.world, self.state = clouds.opened(clouds.scenario(name), seed)
        self.history = History(self.state.settings.scenario)
        self.key = Key(seed, steps)
        for step in range(steps):
            self.history.observations.append(self.world.observe(self.state))
            joint = self.joints(1, 100 * seed + step)[0]
            self.history.decisions.append(joint)
            self.state, _, _ = self.world.step(self.state, joint)
        self.history.observations.append(self.world.observe(self.state))
        self.belief: Belief[State] = self.world.believe(self.history, SAMPLES, self.key)

    @property
    def view(self) -> CloudInventory:
        view = self.history.now.inventory
        assert isinstance(view, CloudInventory)
        return view

    def joints(self, n: int, key: int) -> list[Joint]:
        """Joint actions of one to three different catalogue entries."""
        catalogue = self.world.catalogue(self.history.observations[-1])
        u = noise.uniforms(key, np.arange(n, dtype=np.uint32), noise.channel("test.joints"), 0)
        found = []
        for row in range(n):
            size = 1 + int(u[3, row] * 3)
            places = {int(u[slot, row] * len(catalogue)) for slot in range(size)}
            found.append(tuple(catalogue[place] for place in sorted(places)))
        return found

    def project(self, plans: list[Plan], horizon: int) -> Any:
        return self.world.project(self.belief, plans, horizon, None, self.key)[0]


@cache
def moment(name: str, seed: int, steps: int) -> _Moment:
    return _Moment(name, seed, steps)


moments = st.builds(
    moment, st.sampled_from(["medium", "hard"]), st.integers(200, 203), st.integers(0, 4)
)


@settings(max_examples=12, deadline=None)
@given(at=moments, key=st.integers(0, 10_000))
def test_a_projection_equals_the_believed_worlds_advanced_whole(at, key):
    joints = at.joints(6, key)
    projected = at.project([(joint,) for joint in joints], 3)
    for row, joint in enumerate(joints):
        states = at.belief.states.rows(np.arange(SAMPLES))
        for ahead in range(3):
            doing = [joint if ahead == 0 else ()] * SAMPLES
            states = imagine(states, at.world.encode(states, doing))
            expected = states.columns[NOW][:, : projected.shape[-1]]
            assert projected[row, :, ahead] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=12, deadline=None)
@given(at=moments, key=st.integers(0, 10_000), shuffle=st.randoms(use_true_random=False))
def test_neither_order_nor_company_of_a_plan_changes_what_it_is_shown_to_do(at, key, shuffle):
    plans: list[Plan] = [(joint,) for joint in at.joints(10, key)]
    together = at.project(plans, 3)
    order = list(range(10))
    shuffle.shuffle(order)
    assert at.project([plans[place] for place in order], 3).tobytes() == together[order].tobytes()
    alone = at.project(plans[:1], 3)[0]
    assert alone == pytest.approx(together[0], rel=1e-12, abs=1e-12)


@settings(max_examples=12, deadline=None)
@given(at=moments, key=st.integers(0, 10_000), depth=st.integers(1, 3))
def test_projected_metrics_are_finite_and_never_negative(at, key, depth):
    joints = at.joints(8 * depth, key)
    plans = [tuple(joints[8 * step + row] for step in range(depth)) for row in range(8)]
    projected = at.project(plans, depth + 1)
    assert np.isfinite(projected).all()
    assert (projected >= 0).all()
    assert (projected[..., 3] <= 1.0).all()


@settings(max_examples=8, deadline=None)
@given(at=moments)
def test_the_quick_look_over_an_inventory_leaves_out_only_what_the_validator_refuses(at):
    view = at.view
    quick = [action.id for action in reading.catalogue(view)]
    assert len(quick) == len(set(quick))
    every = np.arange(at.state.settings.rows)
    for kind in range(1, len(menu.KINDS)):
        if menu.KINDS[kind].target != "row" or kind == menu.RESIZE:
            continue
        left_out = np.setdiff1d(every, aims.rows_for(kind, view))
        empty = view.public["state"][0, left_out] >= 5
        params = np.zeros((len(left_out), menu.PARAMS))
        params[:, 0] = 0.1
        codes = rules.refusals(kind, view.sheet(left_out, params))
        assert (codes[~empty] != 0).all(), menu.KINDS[kind].name


def test_all_samples_meet_the_same_failures_whatever_else_is_planned():
    at = moment("hard", 201, 2)
    plan: Plan = ((next(a for a in at.world.catalogue(at.history.now) if a.kind == "scale_up"),),)
    belief = at.world.believe(at.history, 64, at.key)
    first = at.world.project(belief, [plan], 3, None, at.key)[0, 0]
    more = [plan, *(((action,),) for action in itertools.islice(
        at.world.catalogue(at.history.now), 5, 60, 6
    ))]  # fmt: skip
    again = at.world.project(belief, more, 3, None, at.key)[0, 0]
    assert again == pytest.approx(first, rel=1e-12, abs=1e-12)
    nothing = at.world.project(belief, [()], 3, None, at.key)[0, 0]
    ordered = (first[:, 0, 1] > nothing[:, 0, 1] + 0.01).mean()
    assert 0.5 < ordered < 1.0  # some orders fail, most do not


def test_many_plans_samples_and_steps_come_in_one_array():
    at = moment("medium", 200, 2)
    belief = at.world.believe(at.history, 8, at.key)
    catalogue = at.world.catalogue(at.history.now)
    plans = [((catalogue[place],),) for place in range(MOST_WORLDS // 8 + 6)]
    found = at.world.project(belief, plans, 4, None, at.key)
    assert found.shape == (1, len(plans), 8, 4, len(at.world.metrics))
    tail = at.world.project(belief, plans[-3:], 4, None, at.key)
    assert tail[0] == pytest.approx(found[0, -3:], rel=1e-12, abs=1e-12)


def test_imagined_worlds_hold_only_the_rows_that_plans_touch():
    scenario = clouds.variant("medium", rows=20_000)
    world, state = clouds.opened(scenario, 3)
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 8, Key(3, 0))
    config = state.settings
    targets = np.arange(config.tiers, config.tiers + 64, dtype=np.intp)
    rows = rows_in_question(belief.states, targets)
    thin, place = overlay(belief.states, rows, 64)
    assert thin.batch == 512
    assert thin.columns["count"].shape[1] == config.tiers + len(rows) < config.tiers + 200
    assert (place[targets] >= config.tiers).all()
    assert sum(column.nbytes for column in thin.columns.values() if column.base is None) < 2e7
    ids = history.now.inventory.ids  # type: ignore[union-attr]
    plans: list[Plan] = [((Action("mark", ids[row]),),) for row in targets.tolist()]
    ahead = world.project(belief, plans, 2, None, Key(3, 0))[0]
    true, _, _ = world.step(state, plans[0][0])
    assert ahead[:, :, 0, 1].mean() == pytest.approx(true.columns[NOW][0, 1], rel=0.02)


def test_removing_a_resource_of_a_large_inventory_saves_exactly_its_cost():
    scenario = clouds.variant("medium", rows=5_000, grace_steps=0, fail_scale=0.0)
    world, state = clouds.opened(scenario, 3)
    history = History(scenario)
    history.observations.append(world.observe(state))
    remove = [a for a in world.catalogue(history.now) if a.kind == "terminate"][:20]
    assert len(remove) == 20
    belief = world.believe(history, 0, Key(3, 0))
    plans: list[Plan] = [(clouds.DO_NOTHING,), *(((action,),) for action in remove)]
    ahead = world.project(belief, plans, 2, None, Key(3, 0))[0, :, 0, 0, 1]
    nothing, _, _ = world.step(state, clouds.DO_NOTHING)
    for row, action in enumerate(remove, start=1):
        after, _, _ = world.step(state, (action,))
        saved = nothing.columns[NOW][0, 1] - after.columns[NOW][0, 1]
        assert ahead[0] - ahead[row] == pytest.approx(saved, abs=1e-6)


def test_an_action_that_is_not_of_this_world_cannot_be_projected():
    at = moment("medium", 200, 0)
    for action in (Action("fly"), Action("terminate", "vm-nowhere"), Action("scale_up")):
        with pytest.raises(InadmissibleActionError, match="cannot be projected"):
            at.project([((action,),)], 1)
    with pytest.raises(InadmissibleActionError, match="at most 3"):
        at.project([((Action("nop"),) * 4,)], 1)


def test_a_belief_made_by_hand_is_projected_like_one_from_a_history():
    at = moment("medium", 202, 2)
    plans: list[Plan] = [(joint,) for joint in at.joints(5, 7)]
    plain = at.belief.states.rows(np.arange(SAMPLES))
    assert type(plain) is State
    by_hand = Belief(plain, 1, SAMPLES, False)
    world: CloudWorld = at.world
    found = world.project(by_hand, plans, 3, None, at.key)[0]
    assert found == pytest.approx(at.project(plans, 3), rel=1e-12, abs=1e-12)


def test_a_step_that_changes_rows_far_apart_writes_those_rows_only():
    scenario = clouds.variant("medium", rows=20_000, incidents=0)
    world, state = clouds.opened(scenario, 3)
    tiers = state.settings.tiers
    ids = world.observe(state).inventory.ids  # type: ignore[union-attr]
    marks = tuple(Action("mark", ids[row]) for row in (tiers, tiers + 9_000, len(ids) - 1))
    after, _, delta = world.step(state, marks)
    assert sum(len(cells.data) for cells in delta.cells) < 4_000
    assert len({cells.column for cells in delta.cells}) < len(delta.cells)
    written = {name: bytearray(column[0].tobytes()) for name, column in state.columns.items()}
    for column, offset, data in delta.cells:
        written[column][offset : offset + len(data)] = data
    for name, column in after.columns.items():
        assert bytes(written[name]) == column[0].tobytes(), name
