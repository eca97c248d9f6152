"""The cloud world's interface: what is seen, what is hidden, what is refused and how."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from tests.support import clouds
from world.actions import Action, parse_action
from world.errors import ConfigError, InadmissibleActionError, ScenarioError, WorldError
from world.model import History, Key, Snapshot
from world.scenarios.loader import load_scenario, scenario_names
from world.worlds.cloud import energy, menu, tables
from world.worlds.cloud.advance import advance
from world.worlds.cloud.demand import daily
from world.worlds.cloud.reward import nothing
from world.worlds.cloud.tables import machines, region_code, regions
from world.worlds.registry import make_world

METRICS = (
    "latency_ms", "cost_usd_per_hour", "carbon_kg_per_day", "error_fraction",
    "waste_usd_per_hour", "repeat_fraction", "worst_p95_ms", "worst_error_fraction",
)  # fmt: skip


def test_the_registry_makes_the_world_of_every_shipped_cloud_scenario():
    shipped = [name for name in scenario_names() if name.startswith("cloud/")]
    assert {"cloud/easy", "cloud/medium", "cloud/hard", "cloud/war"} <= set(shipped)
    for name in shipped:
        world = make_world(load_scenario(name))
        assert world.name == "cloud"
        assert tuple(metric.name for metric in world.metrics) == METRICS


def test_an_observation_shows_services_and_no_hidden_column():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    seen = world.observe(state)
    assert set(seen.metrics) == set(METRICS)
    assert set(seen.facts["services"]) == {"web", "api", "batch"}
    assert {"p95_ms", "p99_ms", "error_fraction", "rps", "cpu_percent"} <= set(
        seen.facts["services"]["api"]
    )
    assert not [name for name in seen.inventory.columns if name.startswith("h.")]
    assert not [name for name in seen.inventory.public if name.startswith("h.")]
    json.dumps(dict(seen.facts))
    row = seen.inventory.row("api.us-east-1")
    assert row["kind"] == "compute"
    assert row["service"] == "api"
    assert row["region"] == "us-east-1"


def test_measurements_are_late_and_noisy_where_the_preset_says_so_and_exact_where_not():
    world, state = clouds.opened(clouds.scenario("easy"), 1)
    state = advance(state, nothing(state)).state
    assert world.observe(state).metrics["latency_ms"] == pytest.approx(clouds.truth(state)[0])
    world, state = clouds.opened(clouds.variant("medium", missing_fraction=0.0), 1)
    errors = []
    for _ in range(40):
        late = clouds.truth(state)[0]
        state = advance(state, nothing(state)).state
        errors.append(world.observe(state).metrics["latency_ms"] / late - 1.0)
    assert 0.015 < np.std(errors) < 0.05


def test_missing_measurements_are_none_about_as_often_as_the_preset_says():
    world, state = clouds.opened(clouds.variant("hard", missing_fraction=0.3), 1)
    gaps = total = 0
    for _ in range(20):
        state = advance(state, nothing(state)).state
        seen = world.observe(state)
        for service in seen.facts["services"].values():
            gaps += service["p95_ms"] is None
            total += 1
    assert 0.15 < gaps / total < 0.45


def test_a_seat_does_not_see_what_the_scenario_masks():
    scenario = dataclasses.replace(clouds.scenario("medium"), masks={"cost": ("latency_ms",)})
    world, state = clouds.opened(scenario, 1)
    assert "latency_ms" not in world.observe(state, "cost").metrics
    assert "latency_ms" in world.observe(state, "resource").metrics


def test_between_a_fifth_and_a_half_of_the_inventory_is_waste_or_looks_like_it():
    from world.worlds.cloud.archetypes import ARCHETYPES

    suspect = np.array([a.role != "ordinary" for a in ARCHETYPES])
    for name in ("easy", "medium", "hard", "war"):
        _, state = clouds.opened(clouds.scenario(name), *range(8))
        settings = state.settings
        sort = state.columns["h.archetype"][:, settings.tiers :]
        share = suspect[sort].sum(axis=1) / settings.params.rows
        assert ((share >= 0.2) & (share <= 0.45)).all(), name


def test_every_world_has_a_solar_region_and_another_home():
    for name in ("easy", "medium", "hard", "war"):
        _, state = clouds.opened(clouds.scenario(name), *range(8))
        for row in range(8):
            codes = state.columns["g.region"][row]
            assert len(set(codes.tolist())) == state.settings.regions
            assert any(np.ptp(regions().profile[code]) > 0.4 for code in codes)


def test_ids_are_unique_survive_the_spelling_of_actions_and_tell_nothing():
    world, state = clouds.opened(clouds.scenario("war"), 5)
    ids = world.observe(state).inventory.ids
    assert len(set(ids)) == len(ids)
    for name in ids:
        action = Action.of("mark", name)
        assert parse_action(action.id) == action
    words = ("idle", "zombie", "orphan", "cron", "standby", "forgotten")
    assert not [name for name in ids if any(word in name for word in words)]


def test_the_catalogue_is_finite_readable_and_legal():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    seen = world.observe(state)
    found = world.catalogue(seen)
    assert found[0] == Action("nop")
    assert world.legal(state).all()
    kinds = {kind for kind, _ in found.blocks}
    assert {"scale_up", "resize", "migrate_region", "mark", "analyse"} <= kinds
    assert len({action.id for action in found}) == len(found)
    for action in list(found)[::17]:
        again = parse_action(action.id)
        assert world.check(seen, again) is None, action.id


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action.of("explode"), "there is no action"),
        (Action.of("scale_up", "nobody"), "there is no resource"),
        (Action.of("scale_up", "api.us-east-1", fraction=0.9), "must lie between"),
        (Action.of("scale_up", "api.us-east-1", fraction="lots"), "must be a number"),
        (Action.of("scale_up", "api.us-east-1", speed=3), "no parameter"),
        (Action.of("resize", "api.us-east-1", new_size="banana"), "no machine size"),
        (Action.of("resize", "api.us-east-1"), "needs new_size"),
        (Action.of("resize", "api.us-east-1", new_size="r5.large"), "ladder"),
        (Action.of("migrate_region", "api", region="mars"), "there is no region"),
        (Action.of("restart", "api.us-east-1"), "there is no service"),
        (Action.of("terminate", "api.us-east-1"), "serves a service"),
        (Action.of("nop", "api"), "takes no target"),
        (Action.of("optimize_energy", "api", level=1.5), "must lie between"),
        (Action.of("set_autoscaler", "api", enabled="yes"), "true or false"),
        (Action.of("scale_up", "x" * 10_000), "there is no resource"),
        (Action.of("mark", "a\ud800b"), "there is no resource"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(action, why):
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    text = world.check(world.observe(state), action)
    assert text is not None
    assert why in text
    assert len(text) < 1000


def test_a_bad_target_is_an_outcome_and_an_unknown_kind_is_an_error():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    after, outcome, _ = world.step(state, (Action.of("mark", "nobody"),))
    assert outcome.actions[0].status == "refused"
    assert after.step == 1
    with pytest.raises(InadmissibleActionError, match="not an action"):
        world.step(state, (Action.of("explode"),))
    with pytest.raises(InadmissibleActionError, match="at most 3"):
        world.step(state, (Action("nop"),) * 4)
    broken = nothing(state)
    broken.kinds[0, 0] = 999
    with pytest.raises(InadmissibleActionError, match="no such kind"):
        world.step_batch(state, broken)


def test_the_episode_ends_at_its_horizon_and_no_step_follows():
    world, state = clouds.opened(clouds.variant("easy", horizon=3), 1)
    state, outcomes = clouds.steps(world, state, *[clouds.DO_NOTHING] * 3)
    assert outcomes[-1].done
    assert outcomes[-1].stop_reason == "horizon"
    with pytest.raises(InadmissibleActionError, match="over"):
        world.step(state, clouds.DO_NOTHING)


def test_reward_is_the_sum_of_its_terms():
    world, state = clouds.opened(clouds.variant("medium", horizon=8), 4)
    for step in range(8):
        found = world.catalogue(world.observe(state))
        state, outcome, _ = world.step(state, (found[(step * 31) % len(found)],))
        assert outcome.reward == pytest.approx(sum(outcome.terms.values()))


def test_the_old_state_stays_valid_and_a_step_from_it_repeats_itself():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    before = {name: column.copy() for name, column in state.columns.items()}
    action = (Action.of("scale_up", "api.us-east-1", fraction=0.25),)
    one, first, delta_1 = world.step(state, action)
    for name, column in before.items():
        assert column.tobytes() == state.columns[name].tobytes(), name
    two, second, delta_2 = world.step(state, action)
    assert first == second
    assert delta_1 == delta_2
    assert world.columns(one).digest == world.columns(two).digest


def test_a_delta_turns_the_columns_before_into_the_columns_after():
    world, state = clouds.opened(clouds.scenario("medium"), 2)
    for step in range(12):
        found = world.catalogue(world.observe(state))
        before = world.columns(state)
        data = {name: bytearray(column.tobytes()) for name, column in before.columns.items()}
        joint = (found[(step * 41) % len(found)],)
        state, _, delta = world.step(state, joint)
        for cells in delta.cells:
            data[cells.column][cells.offset : cells.offset + len(cells.data)] = cells.data
        after = world.columns(state)
        for name, column in after.columns.items():
            assert bytes(data[name]) == column.tobytes(), name
        assert delta.hidden == after.hidden


def test_a_snapshot_of_another_world_is_refused():
    world, state = clouds.opened(clouds.scenario("medium"), 2)
    good = world.columns(state)
    with pytest.raises(WorldError, match="no column"):
        world.from_columns(clouds.scenario("medium"), 2, Snapshot(0, {}))
    other = dataclasses.replace(clouds.scenario("easy"))
    with pytest.raises(WorldError, match="rows"):
        world.from_columns(other, 2, good)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"services": ["web", "nonsense"]}, "there is no service"),
        ({"services": ["batch"]}, "no service has users"),
        ({"services": ["web", "web"]}, "named twice"),
        ({"rows": 12}, "too few"),
        ({"drawn_regions": 4}, "cannot be drawn"),
        ({"noise_fraction": 2.0}, "noise_fraction is 2.0"),
        ({"nonsense": 1}, "no field params.nonsense"),
        ({"start": {"latency_ms": 9.0}}, "start.latency_ms is 9.0"),
        ({"regions": ["us-west-1", "us-west-1"]}, "'us-west-1' again"),
        ({"regions": ["us-east-1"]}, "'us-east-1' again"),
        ({"demand_trace": [{"hour": 0, "service": "mars", "rps": 1.0}]}, "demand trace"),
    ],
)
def test_a_scenario_that_contradicts_itself_is_refused_with_the_field(params, why):
    with pytest.raises(ScenarioError, match=why):
        clouds.opened(clouds.variant("medium", **params), 1)


@pytest.mark.parametrize(
    ("field", "values", "why"),
    [
        ("targets", {"latency_ms": -5.0}, "targets.latency_ms is -5"),
        ("targets", {"error_fraction": 0.0}, "targets.error_fraction is 0"),
        ("targets", {"errors": 0.01}, "targets name 'errors'.*error_fraction"),
        ("tolerances", {"latency": (5.0, 20.0)}, "tolerances name 'latency'.*latency_ms"),
    ],
)
def test_a_target_that_nothing_measures_or_that_cannot_hold_is_refused(field, values, why):
    good = clouds.scenario("easy")
    bad = dataclasses.replace(good, **{field: {**getattr(good, field), **values}})
    with pytest.raises(ScenarioError, match=why):
        clouds.opened(bad, 1)


def test_resources_of_its_own_are_refused_and_not_ignored():
    bad = dataclasses.replace(clouds.scenario("easy"), resources={"id": ("a",)})
    with pytest.raises(ScenarioError, match="it gives resources"):
        clouds.opened(bad, 1)


@pytest.mark.parametrize("name", ["cloud/easy", "cloudedge/hard", "finops/right_sizing"])
def test_a_mask_of_something_that_is_not_measured_is_refused(name):
    bad = dataclasses.replace(load_scenario(name), masks={"cost": ("latency",)})
    with pytest.raises(ScenarioError, match=r"masks\.cost names 'latency'"):
        make_world(bad)


@pytest.mark.parametrize("seeds", [[], [-1], [2**63]])
def test_seeds_that_cannot_be_used_are_refused(seeds):
    world, _ = clouds.opened(clouds.scenario("easy"), 1)
    with pytest.raises(ConfigError, match="seed"):
        world.reset(clouds.scenario("easy"), seeds)


def test_demand_follows_a_given_trace():
    trace = [
        {"hour": 0, "service": "web", "rps": 100.0}, {"hour": 0, "service": "api", "rps": 50.0},
        {"hour": 0, "service": "batch", "rps": 1.0}, {"hour": 1, "service": "web", "rps": 80.0},
    ]  # fmt: skip
    world, state = clouds.opened(clouds.calm("medium", demand_trace=trace), 1)
    first = clouds.service_value(state, "rps", "web")
    state, _ = clouds.steps(world, state, *[clouds.DO_NOTHING] * 13)
    assert clouds.service_value(state, "rps", "web") == pytest.approx(0.8 * first)


def test_demand_swings_by_its_amplitude_over_a_day():
    _, state = clouds.opened(clouds.scenario("medium"), 1)
    hours = np.arange(0.0, 24.0, 0.25)
    values = [daily(state.settings, state.columns, np.array([hour]))[0, 0] for hour in hours]
    assert max(values) == pytest.approx(1.25, abs=0.01)
    assert min(values) == pytest.approx(0.75, abs=0.01)
    assert np.mean(values) == pytest.approx(1.0, abs=1e-3)


def test_power_models_differ_and_follow_their_published_points():
    ccf, teads = machines("ccf"), machines("teads")
    at = ccf.names.index("m5.4xlarge")
    assert teads.watts[at].tolist() == [35.3, 113.0, 159.6]
    assert ccf.watts[at] == pytest.approx([34.9, 62.8, 90.8], abs=1.0)
    points = teads.watts[at][None, :]
    for busy, watts in ((0.0, 35.3), (0.25, 74.15), (0.5, 113.0), (1.0, 159.6)):
        assert energy.interpolated_watts(points, np.array([busy]))[0] == pytest.approx(watts)


def test_region_facts_are_symmetric_and_have_a_source():
    table = regions()
    assert (table.rtt_ms == table.rtt_ms.T).all()
    assert (np.diag(table.rtt_ms) == 0).all()
    assert table.profile.mean(axis=1) == pytest.approx(1.0, abs=0.01)
    assert table.rtt_ms[region_code("us-east-1"), region_code("eu-west-1")] == 81

    for name in (
        "cloud_regions",
        "grid_profiles",
        "region_rtt",
        "machine_families",
        "cloud_prices",
    ):
        for row in tables._rows(f"{name}.csv"):
            assert row["source"]
            assert row["retrieved"]
            assert row["licence"]


def _history(world: Any, state: Any, steps: int = 1) -> tuple[History, Any]:
    history = History(state.settings.scenario)
    history.observations.append(world.observe(state))
    for _ in range(steps):
        state, _, _ = world.step(state, clouds.DO_NOTHING)
        history.decisions.append(clouds.DO_NOTHING)
        history.observations.append(world.observe(state))
    return history, state


def test_equal_observations_with_other_hidden_states_project_to_the_same_bytes():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    history, state = _history(world, state)
    other = state
    for name, value in (("h.s.slow", 1.7), ("h.s.phase_h", 3.0), ("h.i.onset", 2.0)):
        other = clouds.changed(other, name, 0, value)
    other = clouds.changed(other, "h.essential", slice(None), 0)
    twin = History(history.scenario)
    twin.observations = [history.observations[0], world.observe(other)]
    twin.decisions = list(history.decisions)
    plans = [((action,),) for action in list(world.catalogue(history.now))[:20]]
    key = Key(1, 1)
    one = world.project(world.believe(history, 4, key), plans, 4, None, key)
    two = world.project(world.believe(twin, 4, key), plans, 4, None, key)
    assert one.shape == (1, 20, 4, 4, len(METRICS))
    assert one.tobytes() == two.tobytes()
    assert np.isfinite(one).all()


def test_a_projection_sees_that_capacity_lowers_latency_and_raises_cost():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    history, _ = _history(world, state, 2)
    plans = [
        ((Action("nop"),),),
        ((Action.of("scale_up", "api.us-east-1", fraction=0.5),),),
    ]
    key = Key(1, 2)
    found = world.project(world.believe(history, 0, key), plans, 6, None, key)[0, :, 0]
    assert found[1, -1, 0] < found[0, -1, 0] - 20
    assert (found[1, :, 1] > found[0, :, 1] + 10).all()


def test_a_projection_shorter_than_its_plan_or_with_a_negative_sample_count_is_refused():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    history, _ = _history(world, state)
    key = Key(1, 1)
    belief = world.believe(history, 1, key)
    plan = ((Action("nop"),), (Action("nop"),))
    with pytest.raises(InadmissibleActionError, match="horizon"):
        world.project(belief, [plan], 1, None, key)
    with pytest.raises(InadmissibleActionError, match="samples"):
        world.believe(history, -1, key)


def test_touched_names_the_dependants_and_all_tiers_of_a_service():
    world, state = clouds.opened(clouds.scenario("medium"), 1)
    seen = world.observe(state)
    restart = world.touched(seen, Action.of("restart", "api"))
    assert {"api", "api.us-east-1", "api-db"} <= restart
    view = seen.inventory
    row = int(np.flatnonzero(view.public["attached_to"][0] >= 0)[0])
    partner = view.ids[int(view.public["attached_to"][0, row])]
    assert partner in world.touched(seen, Action.of("mark", view.ids[row]))


def test_an_autoscaler_adds_under_load_and_takes_away_only_after_it_is_stable():
    world, state = clouds.opened(clouds.calm("medium"), 1)
    row = state.settings.regions
    on = (Action.of("set_autoscaler", "api", enabled=True),)
    grown, _ = clouds.steps(world, state, on, *[clouds.DO_NOTHING] * 8)
    assert grown.columns["count"][0, row] > state.columns["count"][0, row]
    idle = clouds.changed(state, "h.s.base_rps", 1, state.columns["h.s.base_rps"][0, 1] * 0.3)
    idle, _ = clouds.steps(world, idle, clouds.DO_NOTHING)
    early, _ = clouds.steps(world, idle, on, *[clouds.DO_NOTHING] * 3)
    late, _ = clouds.steps(world, early, *[clouds.DO_NOTHING] * 6)
    assert early.columns["count"][0, row] == state.columns["count"][0, row]
    assert late.columns["count"][0, row] < early.columns["count"][0, row]


def test_moving_a_service_without_its_database_costs_round_trips():
    scenario = clouds.calm("medium", regions=["eu-north-1"], drawn_regions=0)
    world, state = clouds.opened(scenario, 1)
    row = state.settings.regions
    state = clouds.changed(state, "count", row, state.columns["count"][0, row] * 1.3)
    state = clouds.changed(state, "quota_vcpu", row + 1, 1e6)
    alone, _ = clouds.steps(
        world, state, (Action.of("migrate_region", "api", region="eu-north-1"),),
        *[clouds.DO_NOTHING] * 8,
    )  # fmt: skip
    along, _ = clouds.steps(
        world, state,
        (Action.of("migrate_region", "api", region="eu-north-1", with_data=True),),
        *[clouds.DO_NOTHING] * 12,
    )  # fmt: skip
    stay, _ = clouds.steps(world, state, *[clouds.DO_NOTHING] * 12)
    p95 = [clouds.service_value(one, "p95_ms", "api") for one in (stay, along, alone)]
    assert p95[0] < p95[1] < p95[2]
    assert p95[2] - p95[1] > 100
    assert clouds.truth(along)[2] < clouds.truth(stay)[2]


def test_a_failed_action_is_drawn_by_step_target_and_kind_only():
    scenario = clouds.variant("medium", fail_scale=10.0, incidents=0)
    _, state = clouds.opened(scenario, *range(400))
    world, _ = clouds.opened(scenario, 1)
    joint = (Action.of("rollback", "api"),)
    encoded = world.encode(state, [joint] * 400)
    failed = advance(state, encoded).taken.failed[:, 0]
    assert 0.4 < failed.mean() < 0.6
    both = world.encode(state, [(Action.of("mark", "web.us-east-1"), *joint)] * 400)
    slot = int(np.argmax(both.kinds[0] == menu.ROLLBACK))
    assert (advance(state, both).taken.failed[:, slot] == failed).all()
