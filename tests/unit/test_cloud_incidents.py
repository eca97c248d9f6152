"""Every incident: its symptom, the right remedy, and the tempting one that does not help."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import clouds
from world.actions import Action
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld

API, WEB = "api", "web"
POOL = "api.us-east-1"


def _calm() -> tuple[CloudWorld, State]:
    """A world with one place for an incident, in which api has some head room."""
    scenario = clouds.calm("medium", incidents=1)
    world, state = clouds.opened(scenario, 1)
    state = clouds.with_incident(state, names.BLIND, onset=500)
    row = state.settings.regions
    state = clouds.changed(state, "count", row, state.columns["count"][0, row] * 1.4)
    state = clouds.changed(state, "quota_vcpu", row, 1e6)
    at = state.settings.pools + 1
    state = clouds.changed(state, "count", at, state.columns["count"][0, at] * 1.25)
    state = clouds.changed(state, "quota_vcpu", at, 1e6)
    return world, state


def _run(world: CloudWorld, state: State, *joints, idle: int = 4) -> State:
    state, _ = clouds.steps(world, state, *joints, *[clouds.DO_NOTHING] * idle)
    return state


def _status(state: State) -> int:
    return int(state.columns["h.i.status"][0, 0])


def _p95(state: State, service: str = API) -> float:
    return clouds.service_value(state, "p95_ms", service)


def _begun(cause: int, **cells: float) -> tuple[CloudWorld, State, State]:
    """The world, the state before the incident and the state three steps into it."""
    world, state = _calm()
    calm = _run(world, state, idle=3)
    struck = clouds.with_incident(state, cause, **{"service": 1, "victim": 1, **cells})
    return world, calm, _run(world, struck, idle=3)


def _act(kind: str, target: str = API, **params) -> tuple[Action, ...]:
    return (Action.of(kind, target, **params),)


def test_a_traffic_spike_is_cured_by_capacity_and_not_by_a_restart():
    world, calm, struck = _begun(names.SPIKE, severity=0.9)
    assert clouds.service_value(struck, "rps", API) > 1.4 * clouds.service_value(calm, "rps", API)
    assert _p95(struck) > 2 * _p95(calm)
    grown = _run(world, struck, _act("scale_up", POOL, fraction=0.5))
    database = _run(world, grown, _act("scale_up", "api-db", fraction=0.5))
    restarted = _run(world, struck, _act("restart"))
    assert _p95(database) < 150
    assert _status(database) == names.CURED
    assert _p95(restarted) > 150
    assert _status(restarted) == names.ACTIVE


def test_a_memory_leak_is_delayed_by_a_restart_cured_by_a_rollback_and_not_by_capacity():
    world, calm, struck = _begun(names.LEAK, severity=1.0)
    struck = _run(world, struck, idle=6)
    assert clouds.service_value(struck, "memory_fraction", API) > clouds.service_value(
        calm, "memory_fraction", API
    )
    rolled = _run(world, struck, _act("rollback"))
    restarted = _run(world, struck, _act("restart"), idle=1)
    grown = _run(world, struck, _act("scale_up", POOL, fraction=0.5))
    assert _status(rolled) == names.CURED
    assert clouds.service_value(restarted, "memory_fraction", API) < 0.75
    assert _status(restarted) == names.ACTIVE  # it grows again
    later = _run(world, restarted, idle=8)
    assert clouds.service_value(later, "memory_fraction", API) > clouds.service_value(
        restarted, "memory_fraction", API
    )
    assert _status(grown) == names.ACTIVE


def test_a_bad_deploy_is_cured_by_a_rollback_and_not_by_a_restart():
    world, calm, struck = _begun(names.BAD_DEPLOY)
    assert clouds.service_value(struck, "rps", API) == pytest.approx(
        clouds.service_value(calm, "rps", API), rel=0.1
    )
    assert _p95(struck) > 1.5 * _p95(calm)
    rolled = _run(world, struck, _act("rollback"))
    assert _status(rolled) == names.CURED
    assert _p95(rolled) < 1.1 * _p95(calm)
    assert _status(_run(world, struck, _act("restart"))) == names.ACTIVE


def test_a_saturated_database_is_cured_at_the_database_and_not_at_the_pool():
    world, calm, struck = _begun(names.DB_SATURATION, severity=1.0)
    assert clouds.service_value(struck, "db_cpu_fraction", API) >= 0.99
    assert clouds.service_value(struck, "cpu_fraction", API) < 0.9
    assert _p95(struck) > 2 * _p95(calm)
    right = _run(world, struck, _act("scale_up", "api-db", fraction=0.5))
    right = _run(world, right, _act("scale_up", "api-db", fraction=0.5))
    wrong = _run(world, struck, _act("scale_up", POOL, fraction=0.5))
    assert _status(right) == names.CURED
    assert _p95(wrong) > 2 * _p95(calm)
    assert _status(wrong) == names.ACTIVE


def test_a_bad_network_is_cured_by_moving_away_and_not_by_capacity():
    world, calm, struck = _begun(names.NETWORK, service=-1, victim=-1, slot=0, severity=1.0)
    assert _p95(struck, WEB) > _p95(calm, WEB) + 100
    wrong = _run(world, struck, _act("scale_up", "web.us-east-1", fraction=0.5))
    assert _p95(wrong, WEB) > _p95(calm, WEB) + 100
    moved = _run(world, struck, _act("migrate_region", WEB, region="us-west-1", with_data=True))
    assert _p95(_run(world, moved, idle=4), WEB) < _p95(wrong, WEB) - 50


def test_a_failing_service_is_cured_at_the_root_and_not_at_the_victim():
    world, calm, struck = _begun(names.FAILURE, victim=0)
    error = clouds.service_value(struck, "error_fraction", API)
    assert error > 0.3
    assert clouds.service_value(struck, "error_fraction", WEB) > 0.5 * 0.6 * error  # it cascades
    assert clouds.service_value(calm, "error_fraction", WEB) < 0.01
    assert any("web" in line for line in world.observe(struck).incidents)
    assert _status(_run(world, struck, _act("restart", API))) == names.CURED
    assert _status(_run(world, struck, _act("failover_db", "api-db"))) == names.CURED
    assert _status(_run(world, struck, _act("restart", WEB))) == names.ACTIVE


def test_a_leak_fills_memory_from_its_onset_over_many_steps_and_kills_late():
    world, state = _calm()
    state = clouds.changed(state, "h.s.memory_age_h", 1, 250.0)
    state = clouds.with_incident(state, names.LEAK, service=1, victim=1, severity=0.5)
    held, slow, failing = [], [], []
    for _ in range(26):
        state = _run(world, state, idle=1)
        held.append(clouds.service_value(state, "memory_fraction", API))
        slow.append(_p95(state))
        failing.append(clouds.service_value(state, "error_fraction", API))
    grown = np.diff(held[: held.index(1.0)])[1:]
    assert (grown > 0).all()
    assert grown.max() < 0.04  # a slope, no jump
    assert 8 <= held.index(1.0) <= 24
    assert slow[-1] > 2 * slow[0]
    assert failing[2] < 0.01
    restarted = _run(world, state, _act("restart"), idle=0)
    assert clouds.service_value(restarted, "memory_fraction", API) < 0.75
    again = _run(world, restarted, idle=8)
    assert clouds.service_value(again, "memory_fraction", API) > 0.75
    cured = _run(world, again, _act("rollback"), idle=10)
    assert _status(cured) == names.CURED
    assert clouds.service_value(cured, "memory_fraction", API) < 0.75


def test_a_full_disk_fails_writes_shows_on_the_disk_and_is_cured_by_room():
    world, calm, struck = _begun(names.DISK_FULL)
    assert clouds.service_value(calm, "disk_fraction", API) < 0.75
    assert clouds.service_value(struck, "disk_fraction", API) == 1.0
    assert clouds.service_value(struck, "error_fraction", API) > 0.1
    assert clouds.service_value(struck, "cpu_fraction", API) == pytest.approx(
        clouds.service_value(calm, "cpu_fraction", API), abs=0.1
    )
    assert world.observe(struck).facts["services"][API]["disk_percent"] == 100.0
    cleaned = _run(world, struck, _act("free_disk", "api-db"), idle=1)
    assert _status(cleaned) == names.CURED
    assert clouds.service_value(cleaned, "error_fraction", API) < 0.01
    larger = _run(world, struck, _act("resize", "api-db", new_size="db.r5.8xlarge"))
    assert _status(larger) == names.CURED
    assert clouds.service_value(larger, "disk_fraction", API) < 0.7
    for useless in ("restart", "rollback"):
        assert _status(_run(world, struck, _act(useless))) == names.ACTIVE
    suspect = clouds.changed(struck, "suspicion", struck.settings.pools + 1, 0.9)
    assert _status(_run(world, suspect, _act("restore_backup", "api-db"), idle=7)) == names.ACTIVE


def test_an_examination_finds_corrupt_data_and_finds_nothing_on_a_full_disk():
    found = {}
    for cause in (names.CORRUPTION, names.DISK_FULL):
        world, _, struck = _begun(cause)
        at = struck.settings.pools + 1
        told = []
        for _ in range(20):
            struck = _run(world, struck, _act("evaluate", "api-db"), idle=0)
            told.append(struck.columns["suspicion"][0, at] > 0.5)
        found[cause] = np.mean(told)
        assert (clouds.service_value(struck, "disk_fraction", API) == 1.0) is (
            cause == names.DISK_FULL
        )
    assert found[names.CORRUPTION] > 0.75
    assert found[names.DISK_FULL] < 0.2


def test_the_crisis_response_to_a_full_disk_makes_room():
    world, _, struck = _begun(names.DISK_FULL)
    width = len(names.CAUSES) + 1
    told = clouds.changed(struck, names.EVIDENCE_COLUMN, width + names.DISK_FULL, 8.0)
    assert _status(_run(world, told, _act("crisis_response"), idle=1)) == names.CURED


def test_restoring_a_backup_loses_the_writes_since_the_last_clean_full_hour_and_they_cost():
    world, _, struck = _begun(names.CORRUPTION)
    onset = int(struck.columns["h.i.onset"][0, 0])
    struck = clouds.changed(struck, "suspicion", struck.settings.pools + 1, 0.9)
    struck = _run(world, struck, _act("isolate", "api-db"), idle=0)
    restored, outcomes = clouds.steps(
        world, struck, _act("restore_backup", "api-db"), *[clouds.DO_NOTHING] * 5
    )
    hours = (restored.step - onset // 12 * 12) / 12
    writes = hours * 3600 * restored.columns["h.s.base_rps"][0, 1] * 0.15 * 1e-6
    assert restored.columns["s.lost_writes"][0, 1] == pytest.approx(writes)
    assert outcomes[0].terms["one_offs"] == pytest.approx(-0.2)
    assert outcomes[-1].terms["one_offs"] == pytest.approx(-writes / 100)
    later = _run(world, struck, idle=6)
    later = _run(world, later, _act("restore_backup", "api-db"), idle=5)
    assert later.columns["s.lost_writes"][0, 1] > restored.columns["s.lost_writes"][0, 1]


def test_corrupt_data_need_isolation_then_a_backup_and_no_restart():
    world, calm, struck = _begun(names.CORRUPTION)
    assert clouds.service_value(struck, "disk_fraction", API) < 0.75
    assert _status(_run(world, struck, _act("free_disk", "api-db"))) == names.ACTIVE
    assert clouds.service_value(struck, "error_fraction", API) > 0.1
    assert clouds.service_value(struck, "cpu_fraction", API) == pytest.approx(
        clouds.service_value(calm, "cpu_fraction", API), abs=0.1
    )
    struck = clouds.changed(struck, "suspicion", struck.settings.pools + 1, 0.9)
    hasty = _run(world, struck, _act("restore_backup", "api-db"), idle=7)
    assert _status(hasty) == names.ACTIVE
    isolated = _run(world, struck, _act("isolate", "api-db"), idle=0)
    restored = _run(world, isolated, _act("restore_backup", "api-db"), idle=7)
    assert _status(restored) == names.CURED
    assert clouds.service_value(restored, "error_fraction", API) < 0.01
    assert _status(_run(world, struck, _act("restart"))) == names.ACTIVE


def _breach() -> tuple[CloudWorld, State, int, str]:
    world, state = _calm()
    columns, settings = state.columns, state.settings
    rows = np.flatnonzero(
        (columns["kind"][0] == names.COMPUTE)
        & (columns["state"][0] == names.RUNNING)
        & (columns["managed_by"][0] == 0)
        & (columns["protected"][0] == 0)
        & (columns["needed_by"][0] < 0)
        & (np.arange(settings.rows) >= settings.tiers)
    )
    row = int(rows[0])
    state = clouds.with_incident(state, names.BREACH, row=row)
    state = _run(world, state, idle=2)
    return world, state, row, world.observe(state).inventory.ids[row]


def test_a_breach_is_contained_by_isolation_and_evidence_survives_a_snapshot():
    world, state, row, name = _breach()
    assert state.columns["h.w.breach_usd"][0, 0] > 0
    state = clouds.changed(state, "suspicion", row, 0.9)
    contained = _run(world, state, _act("isolate", name), _act("snapshot", name), idle=0)
    assert _status(contained) == names.CURED
    assert contained.columns["h.w.breach_usd"][0, 0] == 0
    _gone, outcomes = clouds.steps(world, contained, _act("terminate", name))
    assert outcomes[0].actions[0].status == "applied"
    assert outcomes[0].violations == ()


def test_suspicion_falls_only_on_what_an_examination_can_clear():
    world, state = clouds.opened(clouds.calm("hard"), 1)
    state = _run(world, state, *[_act("detect", "")] * 40, idle=0)
    fallen = np.flatnonzero(state.columns["suspicion"][0] >= 0.5)
    assert len(fallen) > 3  # false alarms, every one
    for row in fallen.tolist():
        name = world.observe(state).inventory.ids[row]
        assert world.check(world.observe(state), Action.of("evaluate", name)) is None


def test_what_is_gone_is_no_open_incident():
    world, state = _calm()
    row = next(
        at
        for at in range(state.settings.tiers, state.settings.rows)
        if state.columns["kind"][0, at] == names.COMPUTE
    )
    suspect = clouds.changed(state, "suspicion", row, 0.9)
    assert any("is suspicious" in line for line in world.observe(suspect).incidents)
    gone = clouds.changed(suspect, "state", row, names.TERMINATED)
    assert not world.observe(gone).incidents


def test_terminating_a_breached_machine_first_loses_the_evidence_and_is_harm():
    world, state, row, name = _breach()
    state = clouds.changed(state, "suspicion", row, 0.9)
    observation = world.observe(state)
    action = _act("terminate", name)[0]
    assert any("evidence" in line for line in world.hazards(observation, action))
    _, outcomes = clouds.steps(world, state, (action,))
    assert any("evidence" in line for line in outcomes[0].violations)


def test_a_fight_of_controllers_ends_when_the_autoscaler_is_set():
    world, _, struck = _begun(names.FIGHT)
    before = struck.columns["count"][0, struck.settings.regions]
    later = _run(world, struck, _act("scale_up", POOL, fraction=0.1))
    assert _status(later) == names.ACTIVE
    assert later.columns["count"][0, struck.settings.regions] < before * 1.1
    settled = _run(world, struck, _act("set_autoscaler", API, enabled=True))
    assert _status(settled) == names.CURED


def test_a_reclaim_takes_instances_and_an_order_brings_them_back():
    world, calm, struck = _begun(names.RECLAIM, severity=1.0)
    row = struck.settings.regions
    assert struck.columns["count"][0, row] < calm.columns["count"][0, row]
    grown = _run(world, struck, _act("scale_up", POOL, fraction=0.5))
    assert grown.columns["count"][0, row] > struck.columns["count"][0, row]


def test_an_outage_takes_the_region_and_traffic_goes_where_there_are_instances():
    world, state = _calm()
    state = _run(
        world, state, _act("migrate_region", WEB, region="us-west-1", fraction=0.5), idle=5
    )
    struck = clouds.with_incident(state, names.OUTAGE, slot=0, end=state.step + 20)
    struck = _run(world, struck, idle=2)
    assert clouds.service_value(struck, "error_fraction", API) == pytest.approx(1.0)
    assert 0 < clouds.service_value(struck, "cpu_fraction", WEB) <= 1.0
    assert clouds.service_value(struck, "error_fraction", WEB) < 1.0


def test_price_and_grid_spells_move_cost_and_carbon_and_pass():
    for cause, at in ((names.PRICE_HIKE, 1), (names.CI_SPIKE, 2)):
        world, calm, struck = _begun(cause, service=-1, victim=-1, slot=0, end=8)
        assert clouds.truth(struck)[at] > 1.05 * clouds.truth(calm)[at]
        after = _run(world, struck, idle=8)
        assert clouds.truth(after)[at] < 1.05 * clouds.truth(calm)[at]
        assert _status(after) == names.OVER


def test_a_metrics_outage_shows_none_and_never_zero():
    world, _, struck = _begun(names.BLIND, service=-1, victim=-1, end=6)
    seen = world.observe(struck)
    assert seen.metrics["latency_ms"] is None
    assert seen.facts["services"]["api"]["p95_ms"] is None
    assert "latency_ms" in seen.unknown
    later = world.observe(_run(world, struck, idle=6))
    assert later.metrics["latency_ms"] is not None


def test_an_incident_whose_target_is_gone_is_moot():
    world, state, row, _name = _breach()
    world, state = _calm()
    state = clouds.changed(state, "state", row, names.TERMINATED)
    state = clouds.with_incident(state, names.BREACH, row=row)
    assert _status(_run(world, state, idle=2)) == names.MOOT


def test_incidents_do_not_depend_on_what_was_done():
    world, state = clouds.opened(clouds.scenario("hard"), 4)
    other = world.reset(clouds.scenario("hard"), [4])
    for name in ("cause", "onset", "service", "victim", "row", "severity"):
        before = other.columns[f"h.i.{name}"]
        acted, _ = clouds.steps(world, state, _act("scale_up", "web.us-east-1", fraction=0.25))
        assert (acted.columns[f"h.i.{name}"] == before).all()


def test_about_half_of_the_alerts_with_a_caller_name_a_victim():
    _, state = clouds.opened(clouds.scenario("war"), *range(200))
    columns = state.columns
    user = columns["h.i.service"] >= 0
    callees = {callee for _, callee, _ in state.settings.calls}
    can = user & np.isin(columns["h.i.service"], list(callees))
    moved = columns["h.i.victim"] != columns["h.i.service"]
    assert 0.4 < moved[can].mean() < 0.6
    assert not moved[user & ~can].any()


def test_analysis_is_right_about_three_times_in_four_and_builds_a_diagnosis():
    world, _, struck = _begun(names.BAD_DEPLOY)
    told = []
    state = struck
    for _ in range(40):
        before = state.columns[names.EVIDENCE_COLUMN].copy()
        state, _ = clouds.steps(world, state, _act("analyse"))
        gain = state.columns[names.EVIDENCE_COLUMN] - before * 0.97
        told.append(int(np.argmax(gain[0])) % (len(names.CAUSES) + 1))
    right = sum(cause == names.BAD_DEPLOY for cause in told)
    assert 22 <= right <= 38
    diagnosis = world.observe(state).facts["diagnosis"]["api"]
    assert max(diagnosis, key=diagnosis.get) == "cpu_overload"


def test_the_crisis_response_acts_on_the_diagnosis_and_fails_when_that_is_wrong():
    world, _, struck = _begun(names.BAD_DEPLOY)
    width = len(names.CAUSES) + 1
    right = clouds.changed(struck, names.EVIDENCE_COLUMN, width + names.BAD_DEPLOY, 8.0)
    wrong = clouds.changed(struck, names.EVIDENCE_COLUMN, width + names.FAILURE, 8.0)
    response = _act("crisis_response")
    assert world.check(world.observe(struck), response[0]) is not None  # nothing is known
    assert _status(_run(world, right, response)) == names.CURED
    assert _status(_run(world, wrong, response)) == names.ACTIVE


def test_the_crisis_response_costs_and_does_exactly_what_its_part_does():
    world, _, struck = _begun(names.SPIKE)
    width = len(names.CAUSES) + 1
    told = clouds.changed(struck, names.EVIDENCE_COLUMN, width + names.SPIKE, 8.0)
    macro, one = clouds.steps(world, told, _act("crisis_response"))
    part, two = clouds.steps(world, told, _act("scale_up", POOL, fraction=0.25))
    assert one[0].reward == two[0].reward
    for name, column in macro.columns.items():
        if name != "w.last_kinds":
            assert column.tobytes() == part.columns[name].tobytes(), name
