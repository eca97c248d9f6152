"""What the room imagines: beliefs from observations alone, and consequences on common noise."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.cloudedge import (
    action,
    history_of,
    key_of,
    planned,
    play,
    playbook,
    single,
    stepped,
    world_of,
)
from tests.support.seed_boardroom import Seen
from world.actions import Action
from world.errors import InadmissibleActionError
from world.model import Belief, Observation, Plan, Situation, Snapshot
from world.noise import channel, uniforms
from world.worlds.cloudedge import CloudEdge, close_gaps, cost_carbon_first
from world.worlds.cloudedge.forms import as_single
from world.worlds.cloudedge.outcome import snapshot
from world.worlds.cloudedge.project import crisis_window
from world.worlds.cloudedge.rules import EFFECTS, KINDS, advance, response
from world.worlds.cloudedge.state import Episode, Many, Single, State

Array = np.ndarray[Any, Any]
NAMES = ["hard", "seed/hard", "seed-open/hard"]
PLAIN: list[Plan] = [((Action(kind),),) for kind in KINDS[:4]]
PAIRS: list[Plan] = [
    ((Action(first),), (Action(second),))
    for first, second in itertools.product(KINDS[:4], repeat=2)
]


def believed(world: CloudEdge, samples: int, steps: int = 4, seed: int = 1) -> Belief[State]:
    observations = play(world, seed, planned("0123")).observations[: steps + 1]
    return world.believe(history_of(world, observations), samples, key_of(steps, seed))


@pytest.mark.parametrize("name", NAMES)
def test_states_that_differ_in_what_is_hidden_project_to_the_same_bytes(name: str) -> None:
    world = world_of(name)
    state = single(world, 1)
    for kind in ("scale_up", "scale_down", "optimize_energy"):
        state = stepped(world, state, kind)
    stored = snapshot(state)
    other = bytearray(stored.hidden)
    other[0] += 1  # the next crisis
    other[8] += 3  # the place in the generator
    twin = world.from_columns(
        world.scenario, 1, Snapshot(stored.step, stored.metrics, bytes(other))
    )
    assert isinstance(twin, Single)
    assert twin.next_crisis_step != state.next_crisis_step
    projections = []
    for true in (state, twin):
        history = history_of(world, [world.observe(true)])
        for samples in (0, 1, 7):
            belief = world.believe(history, samples, key_of(3))
            one = world.project(belief, PLAIN, 1, None, key_of(3))
            far = world.project(belief, PAIRS, 6, cost_carbon_first, key_of(3))
            projections.append((one.tobytes(), far.tobytes()))
    assert projections[:3] == projections[3:]


@pytest.mark.parametrize(
    ("observed_crises", "now", "window"),
    [
        ([], 0, (5, 9)),
        ([], 4, (5, 9)),
        ([], 7, (8, 9)),
        ([6], 6, (11, 15)),
        ([6], 12, (13, 15)),
        ([6], 14, (15, 15)),
        ([5, 12], 13, (17, 21)),
    ],
)
def test_the_next_crisis_lies_where_the_observed_ones_and_the_calm_since_allow(
    observed_crises: list[int], now: int, window: tuple[int, int]
) -> None:
    world = world_of("hard")
    base = world.observe(single(world))
    observations = [_observed(base, step, step in observed_crises) for step in range(now + 1)]
    assert crisis_window(history_of(world, observations), world.settings) == window


def _observed(base: Observation, step: int, crisis: bool) -> Observation:
    return dataclasses.replace(base, step=step, facts={**base.facts, "crisis": crisis})


def test_a_history_that_begins_late_keeps_every_possible_crisis() -> None:
    world = world_of("hard")
    base = world.observe(single(world))
    late = [_observed(base, step, False) for step in (20, 21)]
    assert crisis_window(history_of(world, late), world.settings) == (22, 28)


def test_samples_of_the_next_crisis_cover_the_window_evenly_and_so_does_either_half() -> None:
    world = world_of("hard")
    belief = believed(world, 40, steps=0)
    assert isinstance(belief.states, Many)
    for part in (slice(0, 20), slice(20, 40), slice(0, 40)):
        steps, counts = np.unique(belief.states.next_crisis_step[part], return_counts=True)
        assert steps.tolist() == [5, 6, 7, 8, 9]
        assert counts.max() - counts.min() <= 4
    assert not belief.mean_noise


def test_no_samples_means_one_state_at_mean_noise_and_the_mean_crisis() -> None:
    world = world_of("hard")
    belief = believed(world, 0, steps=0)
    assert (belief.batch, belief.samples, belief.mean_noise) == (1, 1, True)
    assert isinstance(belief.states, Single)
    assert belief.states.next_crisis_step == 7
    projected = world.project(belief, PLAIN, 1, None, key_of(0))
    # Mean moves: −32.5, +11.5, +5.5, +17.5 ms.
    assert projected[0, :, 0, 0, 0].tolist() == [247.5, 291.5, 285.5, 297.5]


@pytest.mark.parametrize("name", NAMES)
def test_one_step_on_mean_noise_is_bit_for_bit_the_general_path(name: str) -> None:
    world = world_of(name)
    for steps in (0, 4, 6, 9):
        belief = believed(world, 0, steps)
        observation = play(world, 1, planned("0123")).observations[steps]
        plans: list[Plan] = [((one,),) for one in world.catalogue(observation)]
        quick = world.project(belief, plans, 1, None, key_of(steps))
        general = world.project(belief, plans, 2, cost_carbon_first, key_of(steps))
        assert quick.shape == (1, len(plans), 1, 1, 4)
        assert quick[..., 0, :].tobytes() == np.ascontiguousarray(general[..., 0, :]).tobytes()


def test_all_candidates_meet_the_same_futures_and_every_decision_new_ones() -> None:
    world = world_of("hard")
    belief = believed(world, 8)
    doubled = world.project(belief, [PLAIN[0], PLAIN[1], PLAIN[0]], 5, cost_carbon_first, key_of(4))
    assert np.array_equal(doubled[:, 0], doubled[:, 2])
    alone = world.project(belief, [PLAIN[1]], 5, cost_carbon_first, key_of(4))
    assert np.array_equal(doubled[:, 1:2], alone)
    later = world.project(belief, [PLAIN[1]], 5, cost_carbon_first, key_of(5))
    assert not np.array_equal(alone, later)
    assert len(np.unique(alone[0, 0, :, 0, 0])) == 8


class Replayed:
    """One imagined future in plain floats: the draws of one sample, addressed a second time."""

    def __init__(self, sample: int, samples: int, decision_step: int, jitter: int) -> None:
        self.sample, self.samples = sample, samples
        self.decision_step, self.jitter = decision_step, jitter

    def _draws(self, stream: str, step: int) -> list[float]:
        ahead = step - self.decision_step - 1
        drawn = [
            uniforms(1, ahead, channel(stream), self.decision_step, replica + 1)
            for replica in range(self.samples)
        ]
        # The middle of the slice that the rank among the samples names.
        return [
            (sorted(column).index(column[self.sample]) + 0.5) / self.samples
            for column in zip(*(map(float, draws) for draws in drawn), strict=True)
        ]

    def action(
        self, step: int, word: int, order: tuple[int, int, int], hydro: bool
    ) -> tuple[float, float, float, float, int]:
        u, v, w, extra = self._draws("cloudedge.imagined.action", step)
        return u, v, w, extra, word

    def shock(self, step: int, word: int) -> tuple[float, float, float, int, int]:
        u, v, w, interval = self._draws("cloudedge.imagined.crisis", step)
        return u, v, w, int(interval * (2 * self.jitter + 1)) - self.jitter, word


@pytest.mark.parametrize("name", NAMES)
def test_a_projection_is_each_sample_played_in_plain_floats_with_the_playbook(name: str) -> None:
    world = world_of(name)
    belief = believed(world, 3, steps=4)
    states = belief.states
    assert isinstance(states, Many)
    projected = world.project(belief, PLAIN, 9, cost_carbon_first, key_of(4))
    for (number, plan), sample in itertools.product(enumerate(PLAIN), range(3)):
        tape = Replayed(sample, 3, 4, 2)
        before = as_single(states, sample)
        state = Single(
            Episode(world.scenario, world.settings, 1, tape),
            *(getattr(before, field) for field in _FIELDS),
        )
        assert before.effect is not None
        done = [KINDS[before.effect.code], plan[0][0].kind]
        for ahead in range(9):
            if ahead:
                now = Seen(
                    state.latency_ms, state.cost_usd_per_hour, state.carbon_index, state.crisis
                )
                done.append(playbook(now, None, done))
            full = response(5, True)
            state = advance(state, full if done[-1] == KINDS[4] else EFFECTS[KINDS.index(done[-1])])
            row = [state.latency_ms, state.cost_usd_per_hour, state.carbon_index]
            assert projected[0, number, sample, ahead, :3].tolist() == row
            repeated = ahead > 0 and done[-1] == done[-2]
            assert projected[0, number, sample, ahead, 3] == float(
                repeated or state.verdict >> 4 & 1
            )
    assert len(np.unique(projected[..., 8, 0])) > 6


_FIELDS = (
    "step", "latency_ms", "cost_usd_per_hour", "carbon_index", "stable_steps", "crisis",
    "effect", "verdict", "next_crisis_step", "word",
)  # fmt: skip


def test_more_samples_bring_the_mean_of_a_projection_to_its_expectation() -> None:
    world = world_of("hard")
    belief = believed(world, 256, steps=0)
    projected = world.project(belief, PLAIN[:1], 1, None, key_of(0))
    mean = projected[0, 0, :, 0, :3].mean(axis=0)
    assert mean == pytest.approx([247.5, 637.0, 391.5], abs=1.0)


def test_the_seed_s_own_regime_answers_every_imagined_crisis() -> None:
    world = world_of("seed/hard")
    belief = believed(world, 32, steps=4)
    plans: list[Plan] = [((Action("scale_up"),), (Action("migrate_region"),))]
    followed: list[Array] = []

    def continuation(situation: Situation) -> Array:
        followed.append(situation.crisis.copy())
        return np.where(situation.crisis, 4, 0).astype(np.int32)

    projected = world.project(belief, plans, 3, continuation, key_of(4))
    struck = np.asarray(belief.states.next_crisis_step) == 5  # type: ignore[union-attr]
    assert struck.any()
    jump = projected[0, 0, :, 1, 0] - projected[0, 0, :, 0, 0]
    # A response cuts 55–75 ms; migrate_region would have added 10–25.
    assert (jump[struck] < -40.0).all()
    calm = ~struck & (np.asarray(belief.states.next_crisis_step) > 6)  # type: ignore[union-attr]
    assert (jump[calm] > 9.0).all()
    assert followed


def test_a_response_planned_for_a_later_step_falls_back_where_no_crisis_is_imagined() -> None:
    world = world_of("hard")
    belief = believed(world, 16, steps=4)
    response = action("crisis_response")
    plans: list[Plan] = [((Action("scale_up"),), (response,))]
    projected = world.project(belief, plans, 2, None, key_of(4))
    chosen = world.project(belief, PAIRS[:4], 2, None, key_of(4))
    struck = np.asarray(belief.states.next_crisis_step) == 5  # type: ignore[union-attr]
    jump = projected[0, 0, :, 1, 0] - projected[0, 0, :, 0, 0]
    assert struck.any()
    assert (~struck).any()
    assert (jump[struck] < -40.0).all()
    playbook = {row.tobytes() for row in chosen[0, :, ~struck, 1].reshape(-1, 4)}
    assert all(row.tobytes() in playbook for row in projected[0, 0, ~struck, 1])


@pytest.mark.parametrize(
    ("plans", "horizon", "text"),
    [
        (
            [((Action("crisis_response", "", (("region", ""), ("server_count", 2))),),)],
            1,
            "announced",
        ),
        ([((Action("reboot"),),)], 1, "no action 'reboot'"),
        ([PAIRS[0]], 1, "horizon must cover it"),
        ([PLAIN[0]], 2, "something must follow a plan"),
        ([()], 1, "at least one step"),
        ([((Action("scale_up"), Action("scale_down")),)], 1, "one action is taken a step"),
    ],
)
def test_a_plan_that_cannot_be_projected_is_refused(
    plans: list[Plan], horizon: int, text: str
) -> None:
    world = world_of("hard")
    belief = believed(world, 0)
    following = cost_carbon_first if horizon < 2 else None
    with pytest.raises(InadmissibleActionError) as caught:
        world.project(belief, plans, horizon, following, key_of(4))
    assert text in str(caught.value)


@pytest.mark.parametrize("code", [-1, 4, 5])
def test_a_continuation_that_answers_a_crisis_that_is_not_there_is_refused(code: int) -> None:
    world = world_of("hard")
    belief = believed(world, 4, steps=0)

    def wrong(situation: Situation) -> Array:
        return np.full(len(situation.last), code, dtype=np.int32)

    with pytest.raises(InadmissibleActionError, match="continuation"):
        world.project(belief, PLAIN, 3, wrong, key_of(0))


def test_the_world_offers_its_playbook_as_the_continuation() -> None:
    world = world_of("hard")
    belief = believed(world, 4)
    assert world.playbook is close_gaps
    assert world.continuations["close_gaps"] is close_gaps
    assert world.project(belief, PLAIN, 3, world.playbook, key_of(4)).shape == (1, 4, 4, 3, 4)


def test_a_negative_number_of_samples_is_refused() -> None:
    with pytest.raises(InadmissibleActionError, match="-1 belief samples"):
        believed(world_of("hard"), -1)


def test_a_masked_metric_is_taken_from_the_last_observation_that_shows_it() -> None:
    world = world_of("hard")
    observations = play(world, 1, planned("0123")).observations[:4]
    hidden = [*observations[:-1], observations[-1].masked(["latency_ms"])]
    belief = world.believe(history_of(world, hidden), 0, key_of(3))
    assert isinstance(belief.states, Single)
    assert belief.states.latency_ms == observations[2].metrics["latency_ms"]
    assert belief.states.cost_usd_per_hour == observations[3].metrics["cost_usd_per_hour"]
    fresh = world.believe(history_of(world, [hidden[-1]]), 0, key_of(3))
    assert isinstance(fresh.states, Single)
    assert fresh.states.latency_ms == 280.0


def test_every_draw_is_spread_evenly_over_the_samples() -> None:
    world = world_of("hard")
    belief = believed(world, 16, steps=0)
    projected = world.project(belief, PLAIN[:1], 1, None, key_of(0))
    fallen = 280.0 - projected[0, 0, :, 0, 0]  # scale_up takes 25 to 40 ms
    slices = np.sort((fallen - 25.0) / 15.0 * 16.0)
    assert slices == pytest.approx(np.arange(16) + 0.5)


def _expected_gaps(metrics: Array, targets: Array, last: int) -> list[float]:
    """What each kind leaves, written a second time: gaps in strongest actions."""
    units = (32.5, 77.5, 55.0)
    moves = ((-32.5, 17.0, 11.5), (11.5, -77.5, -8.5), (5.5, -32.5, -32.5), (17.5, 12.5, -55.0))
    return [
        sum(
            max(0.0, (metrics[i] + move[i] - (targets[i] - 0.75 * units[i])) / units[i])
            for i in range(3)
        )
        + 0.15 * (last == kind)
        for kind, move in enumerate(moves)
    ]


def test_closing_gaps_takes_what_leaves_the_smallest_sum_of_gaps() -> None:
    grid = np.array(
        list(itertools.product((60.0, 118.0, 155.0, 290.0), (150.0, 333.0, 640.0), (90.0, 300.0)))
    )
    metrics = np.column_stack([grid, np.zeros(len(grid))])
    for targets, last in itertools.product(
        ([150.0, 400.0, 220.0], [90.0, 200.0, 300.0]), range(-1, 5)
    ):
        calm = np.zeros(len(grid), dtype=np.bool_)
        lasts = np.full(len(grid), last, dtype=np.int32)
        bounds = np.array([*targets, np.nan])
        chosen = close_gaps(Situation(metrics, lasts, calm, 0, bounds))
        for row, kind in zip(grid, chosen.tolist(), strict=True):
            left = _expected_gaps(row, bounds, last)
            assert left[kind] == pytest.approx(min(left))
        assert close_gaps(Situation(metrics, lasts, ~calm, 0, bounds)).tolist() == [4] * len(grid)


def test_the_playbook_is_its_rule_at_every_boundary() -> None:
    grid = itertools.product(
        (119.0, 120.0, 121.0, 150.0), (384.0, 385.0, 440.0), (204.0, 205.0), range(-1, 5)
    )
    for latency, cost, carbon, last in grid:
        situation = Situation(
            np.array([[latency, cost, carbon, 0.0]]),
            np.array([last], dtype=np.int32),
            np.array([False]),
            0,
        )
        assert int(cost_carbon_first(situation)[0]) == _rule(latency, cost, carbon, last)
        struck = situation._replace(crisis=np.array([True]))
        assert int(cost_carbon_first(struck)[0]) == 4


def _rule(latency: float, cost: float, carbon: float, last: int) -> int:
    """The published rule, written a second time."""
    up, down, energy, migrate = range(4)
    wanted = [down, energy] if cost >= 385 else [energy, migrate] if carbon >= 205 else []
    wanted += [up] if latency > 120 else [energy, down] if latency < 120 else []
    wanted += [up, energy]
    for kind in wanted:
        if kind != last:
            return kind
        if (kind == up and latency >= 150) or (kind == down and cost >= 440):
            return kind
    return wanted[0]
