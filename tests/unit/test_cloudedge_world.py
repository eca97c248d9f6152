"""The CloudEdge world through its interface: what is legal, seen, stored and refused."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from tests.support.cloudedge import action, planned, play, scenario, single, stepped, world_of
from world.actions import Action, parse_action
from world.errors import ConfigError, InadmissibleActionError, WorldError
from world.model import ActionOutcome, Delta, Observation, Outcomes, Snapshot
from world.worlds.cloudedge import CloudEdge
from world.worlds.cloudedge.state import Single
from world.worlds.registry import make_world

NAMES = ["hard", "seed/hard", "seed-open/hard"]
PLAIN = ["scale_up", "scale_down", "optimize_energy", "migrate_region"]


def in_crisis(world: CloudEdge, seed: int = 1) -> Single:
    state = single(world, seed)
    while not state.crisis:
        state = stepped(world, state, PLAIN[state.step % 4])
    return state


def respond(servers: int, region: str = "") -> Action:
    return Action.of("crisis_response", region=region, server_count=servers)


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_makes_the_world_of_a_shipped_scenario(name: str) -> None:
    world = make_world(scenario(name))
    assert world.name == "cloudedge"
    assert not world.limits.has_nop
    assert (world.limits.max_actions_per_step, world.limits.plan_depth) == (1, 2)
    assert world.limits.noise == ("counter" if name == "hard" else "sequential")
    assert [template.kind for template in world.templates] == [*PLAIN, "crisis_response"]
    assert [metric.objective for metric in world.metrics] == ["latency", "cost", "carbon", "churn"]


def test_a_seat_sees_metrics_and_public_facts_and_nothing_hidden() -> None:
    world = world_of("hard")
    seen = world.observe(single(world))
    assert dict(seen.metrics) == {
        "latency_ms": 280.0,
        "cost_usd_per_hour": 620.0,
        "carbon_index": 380.0,
    }
    assert dict(seen.facts) == {
        "crisis": False,
        "load": "critical",
        "stable_steps": 0,
        "last_action": "",
        "crisis_base_steps": 7,
        "crisis_jitter_steps": 2,
    }
    assert seen.outcomes == ()
    assert seen.unknown == ("next_crisis_step",)


def test_a_masked_metric_is_gone_and_so_is_the_word_that_gives_it_away() -> None:
    masked = dataclasses.replace(scenario("hard"), masks={"cost": ("latency_ms",)})
    world = CloudEdge(masked)
    state = single(world)
    assert "latency_ms" not in world.observe(state, "cost").metrics
    assert world.observe(state, "cost").facts["load"] == ""
    assert "latency_ms" in world.observe(state, "cost").unknown
    assert world.observe(state, "resource").facts["load"] == "critical"


@pytest.mark.parametrize(
    ("name", "calm", "crisis"), [("hard", 4, 14), ("seed/hard", 4, 5), ("seed-open/hard", 5, 5)]
)
def test_the_catalogue_enumerates_what_is_legal_now(name: str, calm: int, crisis: int) -> None:
    world = world_of(name)
    for state, length in ((single(world), calm), (in_crisis(world), crisis)):
        actions = list(world.catalogue(world.observe(state)))
        assert len({action.id for action in actions}) == len(actions) == length
        assert world.legal(state).all()
        for one in actions:
            assert parse_action(one.id) == one
            world.step(state, (one,))


def test_only_the_seed_s_own_regime_makes_the_answer_to_a_crisis_a_duty() -> None:
    for name in NAMES:
        world = world_of(name)
        assert world.mandatory(world.observe(single(world))) is None
        duty = world.mandatory(world.observe(in_crisis(world)))
        assert duty == (respond(5, "canada-hydro") if name == "seed/hard" else None)


@pytest.mark.parametrize(
    ("name", "wrong", "reason"),
    [
        ("hard", Action("scale_upp"), "did you mean scale_up"),
        ("hard", Action("nop"), "no action 'nop'"),
        ("hard", Action("scale_up", "vm-1"), "takes no target"),
        ("hard", Action.of("scale_up", server_count=2), "takes no parameters"),
        ("hard", Action.of("scale_up", factor=2), "no parameter 'factor'"),
        ("hard", Action("crisis_response"), "needs server_count"),
        ("hard", respond(0), "1 to 5 servers"),
        ("hard", respond(6), "1 to 5 servers"),
        ("hard", respond(-1), "cannot be negative"),
        ("hard", Action.of("crisis_response", server_count=2.0), "whole number"),
        ("hard", Action.of("crisis_response", server_count=True), "whole number"),
        ("hard", Action.of("crisis_response", server_count="5"), "whole number"),
        ("hard", respond(10**5000), "2**53"),
        ("seed/hard", respond(4, "canada-hydro"), "5 servers"),
        ("seed/hard", respond(5, "us-east"), "canada-hydro alone"),
        ("seed-open/hard", respond(-1), "cannot be negative"),
        ("seed-open/hard", Action.of("scale_up", server_count=-1), "cannot be negative"),
        ("seed-open/hard", Action("restart"), "no action 'restart'"),
    ],
)
def test_an_action_that_is_none_of_this_world_is_refused_with_the_reason(
    name: str, wrong: Action, reason: str
) -> None:
    world = world_of(name)
    state = in_crisis(world)
    assert reason in (world.check(world.observe(state), wrong) or "")
    with pytest.raises(InadmissibleActionError, match="cannot be taken") as caught:
        world.step(state, (wrong,))
    assert reason in caught.value.why
    with pytest.raises(InadmissibleActionError):
        world.encode(state, [(wrong,)])


@pytest.mark.parametrize("name", ["hard", "seed/hard"])
def test_a_crisis_response_outside_a_crisis_is_refused_and_time_does_not_pass(name: str) -> None:
    world = world_of(name)
    state = single(world)
    reason = world.check(world.observe(state), respond(5, "canada-hydro"))
    assert reason is not None
    assert "announced crisis" in reason
    before = world.columns(state).digest
    with pytest.raises(InadmissibleActionError, match="announced crisis"):
        world.step(state, (respond(5, "canada-hydro"),))
    assert world.columns(state).digest == before
    assert world.step(state, (Action("scale_up"),))[0].step == 1


def test_the_open_seed_takes_any_count_and_region_at_any_step_with_the_seed_s_defaults() -> None:
    world = world_of("seed-open/hard")
    state = single(world)
    ends = {
        one.id: world.columns(world.step(state, (one,))[0]).metrics
        for one in (
            Action("crisis_response"),
            respond(0, ""),
            respond(1, "élsewhere; rm -rf"),
            Action.of("crisis_response", region=7, server_count=1),
            Action.of("scale_up", server_count=3, region="canada-hydro"),
            Action("scale_up"),
            respond(10**6, "canada-hydro"),
        )
    }
    bare, zero, one, numeric, padded, plain, huge = ends.values()
    metrics = ("latency_ms", "cost_usd_per_hour", "carbon_index")
    for other in (zero, one, numeric):
        assert [bare[name] for name in metrics] == [other[name] for name in metrics]
    assert padded == plain
    assert (huge["latency_ms"], huge["cost_usd_per_hour"]) == (50.0, 800.0)


def test_no_action_two_actions_and_a_step_past_the_end_are_errors() -> None:
    world = world_of("hard", horizon=1)
    state = single(world)
    for joint in ((), (Action("scale_up"), Action("scale_down"))):
        with pytest.raises(InadmissibleActionError, match="one action is taken a step"):
            world.step(state, joint)
    after, outcomes, _ = world.step(state, (Action("scale_up"),))
    assert (outcomes.done, outcomes.stop_reason) == (True, "horizon")
    assert "over" in (world.check(world.observe(after), Action("scale_up")) or "")
    with pytest.raises(InadmissibleActionError, match="the episode is over"):
        world.step(after, (Action("scale_up"),))
    with pytest.raises(InadmissibleActionError, match="the episode is over"):
        world.step_batch(after, world.encode(after, [(Action("scale_up"),)]))


def test_a_step_reports_terms_that_sum_to_the_reward_and_how_the_metrics_moved() -> None:
    played = play(world_of("hard"), 3, planned("1212021202"))
    for step, outcomes in enumerate(played.outcomes):
        assert sum(outcomes.terms.values()) == outcomes.reward
        (done,) = outcomes.actions
        assert done.status == "applied"
        old, new = (played.observations[at].metrics["latency_ms"] for at in (step, step + 1))
        assert f"latency {old:.1f} → {new:.1f} ms" in done.effect
    struck = [at for at, outcomes in enumerate(played.outcomes) if outcomes.events]
    assert struck == [at for at in range(30) if played.observations[at + 1].facts["crisis"]]
    assert struck


def test_the_views_of_a_step_are_complete_and_equal_to_plain_records() -> None:
    world = world_of("hard")
    _, outcomes, delta = world.step(single(world), (Action("scale_up"),))
    assert isinstance(outcomes, Outcomes)
    assert isinstance(delta, Delta)
    for view, record in ((outcomes, Outcomes), (delta, Delta)):
        values = {
            field.name: getattr(view, field.name)
            for field in dataclasses.fields(record)  # type: ignore[arg-type]
        }
        plain = record(**values)
        assert all(getattr(plain, name) == value for name, value in values.items())
        assert view == type(view)(*_arguments(world, view))
        assert copy.deepcopy(view) == plain


def _arguments(world: CloudEdge, view: object) -> tuple[object, ...]:
    before = single(world)
    after = stepped(world, before, "scale_up")
    return (before, after, (Action("scale_up"),)) if isinstance(view, Outcomes) else (after,)


def test_the_repeat_penalty_and_the_recovery_bonus_are_paid_when_due() -> None:
    world = world_of("hard")
    state = stepped(world, single(world), "scale_up")
    _, again, _ = world.step(state, (Action("scale_up"),))
    assert again.terms["repeat"] == -4.0
    calm = play(world_of("easy"), 2, planned("0"))
    paid = [
        calm.outcomes[at].terms["recovery"]
        for at in range(1, 30)
        if calm.observations[at].facts["crisis"]
        and (calm.observations[at + 1].metrics["latency_ms"] or 0.0) < 200.0
    ]
    assert paid
    assert set(paid) == {5.0}


@pytest.mark.parametrize("name", NAMES)
def test_a_state_comes_back_from_its_columns_and_goes_on_the_same_way(name: str) -> None:
    world = world_of(name)
    state = single(world, 5)
    while state.step < 20:
        stored = world.columns(state)
        twin = world.from_columns(world.scenario, 5, stored)
        assert world.columns(twin).digest == stored.digest
        assert world.observe(twin) == world.observe(state)
        kind = "crisis_response" if state.crisis else PLAIN[state.step % 4]
        after, outcomes, delta = world.step(state, (action(kind),))
        twin_after, twin_outcomes, twin_delta = world.step(twin, (action(kind),))
        assert dict(twin_delta.metrics) == dict(delta.metrics)
        assert twin_delta.hidden == delta.hidden
        assert twin_outcomes.terms == outcomes.terms
        assert world.columns(twin_after).digest == world.columns(after).digest
        assert dict(world.columns(after).metrics) == dict(delta.metrics)
        assert isinstance(after, Single)
        state = after


def test_a_crisis_response_of_any_size_comes_back_in_its_canonical_spelling() -> None:
    world = world_of("hard")
    state = in_crisis(world)
    after, _, _ = world.step(state, (respond(2, "somewhere else"),))
    twin = world.from_columns(world.scenario, 1, world.columns(after))
    (done,) = world.observe(twin).outcomes
    assert isinstance(done, ActionOutcome)
    assert done.action == respond(2, "")


def test_a_snapshot_of_another_world_or_seed_is_refused_in_one_line() -> None:
    world = world_of("seed/hard")
    stored = world.columns(single(world, 5))
    with pytest.raises(WorldError, match="belongs to seed 5, not 6"):
        world.from_columns(world.scenario, 6, stored)
    for broken in (
        Snapshot(0, stored.metrics, b"short"),
        Snapshot(0, {"latency_ms": 1.0}, stored.hidden),
        Snapshot(0, {**stored.metrics, "last_action": 9.0}, stored.hidden),
    ):
        with pytest.raises(WorldError, match="not one of CloudEdge"):
            world.from_columns(world.scenario, 5, broken)


@pytest.mark.parametrize("seeds", [[-1], [2**63], [], [1.5], ["1"], [True], [[1]], [10**30]])
def test_a_seed_that_cannot_be_used_is_refused(seeds: list[int]) -> None:
    world = world_of("hard")
    with pytest.raises(ConfigError, match="cannot be used"):
        world.reset(world.scenario, seeds)


def test_a_world_plays_a_longer_horizon_but_not_another_variant() -> None:
    world = world_of("hard")
    longer = scenario("hard", horizon=500)
    state = world.reset(longer, [1])
    assert world.observe(state).horizon == 500
    with pytest.raises(ConfigError, match="another variant"):
        world.reset(scenario("seed/hard"), [1])


@pytest.mark.parametrize("name", ["hard", "seed/hard"])
def test_a_long_episode_with_a_crisis_at_every_step_runs_to_its_end(name: str) -> None:
    world = world_of(name, horizon=400, crisis_base_steps=1, crisis_jitter_steps=0)
    rule = planned("4")
    played = play(
        world, 1, lambda now, before, done: rule(now, before, done) if now.crisis else "scale_up"
    )
    assert played.end.step == 400
    assert sum(bool(seen.facts["crisis"]) for seen in played.observations) == 400


def test_native_noise_depends_on_no_action() -> None:
    world = world_of("hard")
    plans = ("0", "1", "0123", "2131")
    crises = {
        tuple(
            seen.step for seen in play(world, 4, planned(plan)).observations if seen.facts["crisis"]
        )
        for plan in plans
    }
    assert len(crises) == 1
    first, second = (play(world, 4, planned(plan)).observations for plan in ("00", "10"))
    moves = [
        [run[2].metrics[name] - run[1].metrics[name] for name in ("carbon_index",)]  # type: ignore[operator]
        for run in (first, second)
    ]
    assert moves[0] == pytest.approx(moves[1])


def test_seeds_give_different_storms_and_the_same_seed_the_same_one() -> None:
    world = world_of("hard")
    ends = [play(world, seed, planned("0123")).end for seed in (1, 2, 1)]
    digests = [world.columns(end).digest for end in ends]
    assert digests[0] == digests[2] != digests[1]


def test_a_batch_is_looked_at_row_by_row_and_refused_by_step() -> None:
    world = world_of("hard")
    state = world.reset(world.scenario, [1, 2])
    assert world.observe(state, row=1) == world.observe(single(world, 2))
    assert world.columns(state, 1).digest == world.columns(single(world, 2)).digest
    assert np.array_equal(world.legal(state, 1), np.ones(4, dtype=bool))
    with pytest.raises(InadmissibleActionError, match="batch of 2 worlds"):
        world.step(state, (Action("scale_up"),))


def test_actions_on_the_one_fleet_clash() -> None:
    world = world_of("hard")
    seen: Observation = world.observe(single(world))
    touched = [world.touched(seen, Action(kind)) for kind in ("scale_up", "migrate_region")]
    assert touched[0] & touched[1]
    assert world.hazards(seen, Action("scale_down")) == ()
