"""The seed's published numbers, to the printed digits."""

from __future__ import annotations

import pytest

from tests.support.cloudedge import (
    LEVELS,
    Rule,
    action,
    planned,
    play,
    playbook,
    single,
    stepped,
    world_of,
)
from tests.support.seed_boardroom import (
    BOARDROOM_TOTALS,
    COST_CARBON_FIRST_TOTALS,
    EXPLOIT_TOTALS,
    decide,
    exploit,
)

BOARDROOM: Rule = lambda now, before, done: decide(now, before, done)[0]  # noqa: E731
CYCLE = planned("0123")


def totals(name: str, rule: Rule) -> tuple[float, ...]:
    world = world_of(name)
    return tuple(play(world, seed, rule).total for seed in range(10))


@pytest.mark.parametrize("regime", ["seed", "seed-open"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_boardroom_earns_its_published_totals(regime: str, level: str) -> None:
    assert totals(f"{regime}/{level}", BOARDROOM) == BOARDROOM_TOTALS[level]


@pytest.mark.parametrize("level", LEVELS)
def test_cost_and_carbon_first_earns_its_published_totals(level: str) -> None:
    assert totals(f"seed/{level}", playbook) == COST_CARBON_FIRST_TOTALS[level]


@pytest.mark.parametrize("level", LEVELS)
def test_the_exploit_rule_earns_its_published_totals_where_nothing_is_guarded(level: str) -> None:
    rule: Rule = lambda now, before, done: exploit(now, done)  # noqa: E731
    assert totals(f"seed-open/{level}", rule) == EXPLOIT_TOTALS[level]


@pytest.mark.parametrize(
    ("level", "first_crisis", "total"), [("easy", 10, 226), ("medium", 8, 84), ("hard", 6, -50)]
)
def test_the_fixed_cycle_meets_its_first_crisis_and_total(
    level: str, first_crisis: int, total: int
) -> None:
    world = world_of(f"seed/{level}")
    assert single(world, 1).next_crisis_step == first_crisis
    played = play(world, 1, CYCLE)
    assert played.total == total
    crises = [seen.step for seen in played.observations if seen.facts["crisis"]]
    assert crises[0] == first_crisis


def test_the_fixed_cycle_passes_through_the_published_values() -> None:
    played = play(world_of("seed/hard"), 1, CYCLE)
    published = {
        1: (246.4619, 640.0227, 388.4417, -18),
        2: (259.7887, 572.0747, 380.136, -18),
        3: (263.8385, 539.7568, 349.4418, -18),
        4: (279.6856, 553.8684, 282.6423, -18),
        10: (293.144, 424.3787, 221.1978, -18),
        30: (385.6912, 100, 53.5955, 8),
    }
    for step, (latency, cost, carbon, reward) in published.items():
        metrics = played.observations[step].metrics
        values = (metrics["latency_ms"], metrics["cost_usd_per_hour"], metrics["carbon_index"])
        assert values == pytest.approx((latency, cost, carbon), abs=6e-5)
        assert played.outcomes[step - 1].reward == reward


@pytest.mark.parametrize(
    ("seed", "plan", "total", "end"),
    [
        (0, "441411420421324024343124202141", 1203, (62.4394, 100, 50)),
        (1, "444214114102014242041230102024", 1151, (50, 105.6702, 50)),
        (0, "121222204000024202302341301403", 813, (66.392, 279.7253, 50)),
        (0, "111232301020002020000020202013", 385, (104.8251, 311.0421, 130.6388)),
        (0, "111323020201020020202000002032", 284, (114.8446, 372.5791, 118.5932)),
    ],
)
def test_fixed_plans_earn_their_totals_and_end_where_published(
    seed: int, plan: str, total: int, end: tuple[float, float, float]
) -> None:
    only_in_crises = total not in {1203, 1151}
    for regime in ("seed-open", "seed") if only_in_crises else ("seed-open",):
        played = play(world_of(f"{regime}/hard"), seed, planned(plan))
        assert played.total == total
        state = played.end
        values = (state.latency_ms, state.cost_usd_per_hour, state.carbon_index)
        assert values == pytest.approx(end, abs=6e-5)


def test_a_step_that_does_not_answer_a_crisis_is_possible_and_draws_other_words() -> None:
    world = world_of("seed/hard")
    state = single(world, 1)
    while not state.crisis:
        state = stepped(world, state, "scale_up")
    assert world.mandatory(world.observe(state)) == action("crisis_response")
    ignored = stepped(world, state, "scale_up")
    answered = stepped(world, state, "crisis_response")
    assert answered.word == ignored.word + 2
