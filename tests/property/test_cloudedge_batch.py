"""A batch is B single worlds to the last bit, whatever is done and whenever crises come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cloudedge import world_of
from world.actions import Action
from world.errors import InadmissibleActionError
from world.model import Encoded, Joint
from world.worlds.cloudedge import CloudEdge
from world.worlds.cloudedge.rules import CEILINGS, FLOORS, KINDS
from world.worlds.cloudedge.state import Many, Single, State

NAMES = ["hard", "easy", "seed/hard", "seed-open/medium"]
PLAIN = [Action(kind) for kind in KINDS[:4]]
picks = st.lists(st.integers(0, 2**16), min_size=1, max_size=12)
seeds_of = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5)


def choose(world: CloudEdge, state: State, row: int, pick: int) -> Joint:
    """A legal action; a crisis is often answered, in every size and region that is legal."""
    catalogue = world.catalogue(world.observe(state, row=row))
    if world.variant == "open" and pick % 3 == 0:
        region = ("canada-hydro", "")[pick % 2]
        return (Action.of("crisis_response", region=region, server_count=pick % 11),)
    if len(catalogue) > 4 and pick % 4:
        return (catalogue[4 + pick % (len(catalogue) - 4)],)
    return (PLAIN[pick % 4],)


def assert_same(world: CloudEdge, batch: State, singles: list[Single]) -> None:
    for row, one in enumerate(singles):
        ours, theirs = world.columns(batch, row), world.columns(one)
        assert dict(ours.metrics) == dict(theirs.metrics)
        assert ours.hidden == theirs.hidden
        assert world.observe(batch, row=row) == world.observe(one)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(seeds=seeds_of, choices=picks)
def test_a_batch_equals_its_worlds_stepped_alone(
    name: str, seeds: list[int], choices: list[int]
) -> None:
    world = world_of(name)
    batch = world.reset(world.scenario, seeds)
    singles: list[Single] = []
    for seed in seeds:
        one = world.reset(world.scenario, [seed])
        assert isinstance(one, Single)
        singles.append(one)
    assert_same(world, batch, singles)
    for step in range(30):
        joints = [
            choose(world, batch, row, choices[(step * 7 + row) % len(choices)] + step * 5 + row)
            for row in range(len(seeds))
        ]
        batch, outcomes = world.step_batch(batch, world.encode(batch, joints))
        for row, joint in enumerate(joints):
            after, outcome, delta = world.step(singles[row], joint)
            assert isinstance(after, Single)
            singles[row] = after
            assert outcome.reward == outcomes.reward[row]
            assert outcome.success == outcomes.success[row]
            assert outcome.done == outcomes.done[row]
            assert delta.hidden == world.columns(batch, row).hidden
    assert_same(world, batch, singles)


@pytest.mark.parametrize("name", ["hard", "seed/hard"])
def test_a_wide_batch_equals_its_rows_through_every_crisis(name: str) -> None:
    world = world_of(name)
    count = 303  # no multiple of what is looked up at once
    batch = world.reset(world.scenario, range(count))
    rows = (0, 1, 150, 299, 302)
    singles = {row: world.reset(world.scenario, [row]) for row in rows}
    for step in range(30):
        assert isinstance(batch, Many)
        kinds = np.where(batch.crisis, 4, (np.arange(count) + step) % 4).astype(np.int32)
        params = np.zeros((count, 1, 2))
        params[batch.crisis, 0, 0] = 5.0
        actions = Encoded(kinds[:, None], np.full((count, 1), -1, dtype=np.int32), params)
        batch, outcomes = world.step_batch(batch, actions)
        for row in rows:
            full = Action.of("crisis_response", region="canada-hydro", server_count=5)
            joint = (full if kinds[row] == 4 else PLAIN[kinds[row]],)
            singles[row], outcome, _ = world.step(singles[row], joint)
            assert outcome.reward == outcomes.reward[row]
    for row in rows:
        assert world.columns(batch, row).digest == world.columns(singles[row]).digest


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), choices=picks)
def test_no_legal_sequence_leaves_the_bounds(name: str, seed: int, choices: list[int]) -> None:
    world = world_of(name)
    state: State = world.reset(world.scenario, [seed])
    stable = 0
    for step in range(30):
        joint = choose(world, state, 0, choices[step % len(choices)] + step)
        state, outcomes, _ = world.step(state, joint)
        seen = world.observe(state)
        for value, low, high in zip(seen.metrics.values(), FLOORS, CEILINGS, strict=True):
            assert value is not None
            assert low <= value <= high
        stable = stable + 1 if outcomes.success else 0
        assert seen.facts["stable_steps"] == stable
        assert -22.0 <= outcomes.reward <= 56.0
        assert outcomes.reward == int(outcomes.reward)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), first=picks, second=picks)
def test_native_crises_come_at_the_same_steps_whatever_is_done(
    seed: int, first: list[int], second: list[int]
) -> None:
    world = world_of("hard")
    schedules = []
    for choices in (first, second):
        state: State = world.reset(world.scenario, [seed])
        struck = []
        for step in range(30):
            joint = choose(world, state, 0, choices[step % len(choices)])
            state, outcomes, _ = world.step(state, joint)
            struck.append(bool(outcomes.events))
        schedules.append(struck)
    assert schedules[0] == schedules[1]


@pytest.mark.parametrize("name", ["hard", "seed/hard"])
def test_stepping_an_old_state_again_gives_the_same_future(name: str) -> None:
    world = world_of(name, horizon=200)
    start = world.reset(world.scenario, [1, 2, 3])
    states = [start]
    for step in range(150):
        joints = [(PLAIN[(step + row) % 4],) for row in range(3)]
        states.append(world.step_batch(states[-1], world.encode(start, joints))[0])
    for back in (149, 3, 80, 0):
        joints = [(PLAIN[(back + row) % 4],) for row in range(3)]
        again = world.step_batch(states[back], world.encode(start, joints))[0]
        for row in range(3):
            ours, theirs = world.columns(again, row), world.columns(states[back + 1], row)
            assert (ours.digest, ours.hidden) == (theirs.digest, theirs.hidden)


def encoded(kinds: list[int], servers: float = 5.0, region: float = 0.0) -> Encoded:
    params = np.zeros((len(kinds), 1, 2))
    params[:, 0] = servers, region
    column = np.array(kinds, dtype=np.int32)[:, None]
    return Encoded(column, np.full_like(column, -1), params)


@pytest.mark.parametrize(
    ("name", "actions", "text"),
    [
        ("hard", encoded([0, 5]), "action code 5"),
        ("hard", encoded([-1, 0]), "none that does nothing"),
        ("hard", encoded([0]), "2 worlds take one action each"),
        ("hard", encoded([0, 4]), "world 1 of the batch cannot take crisis_response"),
        ("seed/hard", encoded([4, 0], servers=3.0), "answers with 3 servers"),
        ("seed/hard", encoded([4, 0], region=1.0), "region code 1"),
        ("seed-open/hard", encoded([4, 0], servers=-1.0), "answers with -1 servers"),
        ("seed-open/hard", encoded([4, 0], servers=0.5), "answers with 0.5 servers"),
        ("seed-open/hard", encoded([4, 0], servers=float("nan")), "answers with nan servers"),
        ("seed-open/hard", encoded([4, 0], region=2.0), "region code 2"),
        (
            "seed-open/hard",
            encoded([4, 0])._replace(params=np.zeros((2, 1, 1))),
            "parameters have shape",
        ),
    ],
)
def test_arrays_that_name_no_legal_action_are_refused(
    name: str, actions: Encoded, text: str
) -> None:
    world = world_of(name)
    state = world.reset(world.scenario, [1, 2])
    with pytest.raises(InadmissibleActionError) as caught:
        world.step_batch(state, actions)
    assert text in str(caught.value)


def test_the_caller_may_reuse_its_action_arrays() -> None:
    world = world_of("seed-open/hard")
    actions = encoded([4, 0], servers=3.0)
    state, _ = world.step_batch(world.reset(world.scenario, [1, 2]), actions)
    before = [world.columns(state, row).digest for row in (0, 1)]
    actions.kinds[:] = 1
    actions.params[:] = 9.0
    assert [world.columns(state, row).digest for row in (0, 1)] == before


def test_one_world_can_be_stepped_as_a_batch_and_back() -> None:
    for name in NAMES:
        world = world_of(name)
        one = world.reset(world.scenario, [3])
        joint = (Action("scale_up"),)
        as_batch, outcomes = world.step_batch(one, world.encode(one, [joint]))
        alone, outcome, _ = world.step(one, joint)
        assert outcome.reward == outcomes.reward[0]
        onward, _, _ = world.step(as_batch, joint)
        expected, _, _ = world.step(alone, joint)
        assert world.columns(onward).digest == world.columns(expected).digest


def test_a_batch_needs_one_joint_action_for_every_world() -> None:
    world = world_of("hard")
    state = world.reset(world.scenario, [1, 2])
    with pytest.raises(InadmissibleActionError, match="1 joint actions for 2 worlds"):
        world.encode(state, [(Action("scale_up"),)])
