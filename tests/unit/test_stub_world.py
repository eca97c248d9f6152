from __future__ import annotations

from tests.support.stub_world import NOP, SAVE, SPEED_UP, StubWorld, stub_scenario
from world.model import History, Key

JOINTS = ((NOP,), (SPEED_UP,), (SAVE,), (SAVE, SPEED_UP))


def test_a_batch_of_stub_worlds_equals_single_ones() -> None:
    world, scenario = StubWorld(), stub_scenario()
    many = world.reset(scenario, range(4))
    after, outcomes = world.step_batch(many, world.encode(many, JOINTS))
    for row, joint in enumerate(JOINTS):
        one, alone, delta = world.step(world.reset(scenario, [row]), joint)
        assert (after.latency_ms[row], after.cost_usd_per_hour[row]) == (
            one.latency_ms[0],
            one.cost_usd_per_hour[0],
        )
        assert outcomes.reward[row] == alone.reward
        assert world.from_columns(scenario, row, world.columns(one)) == one
        assert dict(delta.metrics) == dict(world.columns(one).metrics)


def test_a_stub_projection_of_one_step_is_the_step_itself() -> None:
    world, scenario = StubWorld(), stub_scenario()
    state = world.reset(scenario, [3])
    history = History(scenario)
    history.observations.append(world.observe(state))
    belief = world.believe(history, 0, Key(3, 0))
    projected = world.project(belief, [(joint,) for joint in JOINTS], 1, None, Key(3, 0))
    assert projected.shape == (1, 4, 1, 1, 2)
    for row, joint in enumerate(JOINTS):
        after = world.observe(world.step(state, joint)[0])
        assert projected[0, row, 0, 0].tolist() == list(after.metrics.values())
