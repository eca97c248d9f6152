"""The four seats around a cloud: what they go for, what they ask, what they never touch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from agents.backends.rules.agenda import Option, bundles
from agents.backends.rules.cloud_estate import Estate
from agents.backends.rules.cloud_trouble import remedies, troubles
from agents.persona import load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from policies.records import MAX_PROPOSALS, Proposal, Reply
from tests.support.asks import request_of
from tests.support.clouds import (
    DO_NOTHING,
    calm,
    changed,
    opened,
    random_legal,
    scenario,
    steps,
    with_incident,
)
from world.actions import Action, joint_id
from world.model import Joint, Observation
from world.worlds.cloud import schema as names
from world.worlds.cloud.state import State
from world.worlds.cloud.view import CloudInventory
from world.worlds.cloud.world import CloudWorld

SEATS = ("resource", "cost", "sustainability", "janitor")
WEB, API, BATCH = range(3)


def ask(
    world: CloudWorld,
    views: Sequence[Observation],
    seat: str,
    decided: Sequence[Joint] = (),
) -> tuple[Proposal, ...]:
    request = request_of(world, world.scenario, views, decided, seat=seat)
    reply = make_persona(load_persona(seat), seat).answer(request)
    assert isinstance(reply, Reply)
    assert reply == make_persona(load_persona(seat), seat).answer(request)
    return validated_reply(request, reply).proposals


def played(
    world: CloudWorld, state: State, joints: Sequence[Joint]
) -> tuple[State, list[Observation]]:
    views = [world.observe(state)]
    for joint in joints:
        state, _ = steps(world, state, joint)
        views.append(world.observe(state))
    return state, views


def kinds(proposals: Sequence[Proposal]) -> list[tuple[str, str]]:
    return [(a.kind, a.target) for proposal in proposals for a in proposal.actions]


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("preset", ["easy", "medium", "hard", "war"])
def test_a_seat_proposes_only_what_can_be_done_and_harms_nothing_that_is_known(
    seat: str, preset: str
) -> None:
    for seed in (201, 202):
        world, state = opened(scenario(preset), seed)
        views = [world.observe(state)]
        decided: list[Joint] = []
        for _ in range(3):
            proposals = ask(world, views, seat, decided)
            assert 1 <= len(proposals) <= MAX_PROPOSALS
            for proposal in proposals:
                assert proposal.rationale
                touched: set[str] = set()
                for action in proposal.actions:
                    assert world.check(views[-1], action) is None, action.id
                    assert world.hazards(views[-1], action) == (), action.id
                    reach = world.touched(views[-1], action)
                    assert not touched & reach, "what is proposed together must not clash"
                    touched |= reach
            state, _ = world.step_batch(state, random_legal(state, seed))
            views.append(world.observe(state))
            decided.append(DO_NOTHING)


def test_resource_grows_the_service_that_misses_its_objective_with_numbers_in_the_reason() -> None:
    world, state = opened(calm(), 201)
    seen = world.observe(state)
    proposals = ask(world, [seen], "resource")
    grown = {target for kind, target in kinds(proposals) if kind in {"scale_up", "resize"}}
    assert "api.us-east-1" in grown  # its p95 is far over 150 ms
    text = " ".join(p.rationale for p in proposals if "scale_up" in {a.kind for a in p.actions})
    p95 = seen.facts["services"]["api"]["p95_ms"]
    for word in ("api", f"{p95:.0f} ms", "over 150", "m5.4xlarge", "$/h", "%"):
        assert word in text, word


def test_resource_orders_ahead_of_a_demand_that_rises() -> None:
    world, state = opened(calm(), 201)
    for row in range(state.settings.queues):
        more = float(np.ceil(1.15 * state.columns["count"][0, row]))
        state = changed(state, "count", row, more)
    quiet = ask(world, played(world, state, [DO_NOTHING] * 6)[1], "resource")
    orders = [target for kind, target in kinds(quiet) if kind == "scale_up"]
    rising, views = state, [world.observe(state)]
    for step in range(6):
        for service in (WEB, API):
            base = state.columns["h.s.base_rps"][0, service] * (1.0 + 0.012 * (step + 1))
            rising = changed(rising, "h.s.base_rps", service, float(base))
        rising, _ = steps(world, rising, DO_NOTHING)
        views.append(world.observe(rising))
    risen = [target for kind, target in kinds(ask(world, views, "resource")) if kind == "scale_up"]
    assert views[-1].facts["services"]["web"]["p95_ms"] < 150.0  # nothing is missed yet
    assert "web.us-east-1" in risen
    assert "web.us-east-1" not in orders


@pytest.mark.parametrize(
    ("cause", "kind", "target"),
    [
        (names.SPIKE, "scale_up", "web.us-east-1"),
        (names.BAD_DEPLOY, "rollback", "web"),
        (names.DB_SATURATION, "scale_up", "web-db"),
        (names.LEAK, "rollback", "web"),
        (names.FIGHT, "set_autoscaler", "web"),
    ],
    ids=lambda value: names.CAUSES[value] if isinstance(value, int) else "",
)
def test_a_cause_that_shows_itself_is_treated_with_its_own_remedy(
    cause: int, kind: str, target: str
) -> None:
    world, state = opened(calm(), 201)
    for row in range(state.settings.queues):
        state = changed(state, "count", row, float(np.ceil(1.2 * state.columns["count"][0, row])))
    state, views = played(world, state, [DO_NOTHING] * 4)
    state = with_incident(state, cause, service=WEB, victim=WEB, severity=0.9)
    after = [DO_NOTHING] * 7
    _, later = played(world, state, after)
    views += later[1:]
    decided = [DO_NOTHING] * (len(views) - 1)
    found = [
        kinds(ask(world, views[: end + 1], "resource", decided[:end]))
        for end in range(5, len(views))
    ]
    assert any((kind, target) in proposals for proposals in found), found


def test_what_shows_too_little_is_looked_into_before_it_is_treated() -> None:
    world, state = opened(calm(), 201)
    state, views = played(world, state, [DO_NOTHING] * 3)
    state = with_incident(state, names.FAILURE, service=WEB, victim=WEB, severity=0.7)
    state, later = played(world, state, [DO_NOTHING] * 2)
    views += later[1:]
    decided: list[Joint] = [DO_NOTHING] * (len(views) - 1)
    proposals = ask(world, views, "resource", decided)
    assert ("analyse", "web") in kinds(proposals)
    assert any("errors" in p.rationale and "below 0.6" in p.rationale for p in proposals)
    for seat in ("cost", "sustainability"):  # nobody else changes what works meanwhile
        (held,) = ask(world, views, seat, decided)
        assert held.actions == DO_NOTHING
        assert "web misbehaves" in held.rationale


@pytest.mark.parametrize("seed", range(201, 205))
def test_corrupt_data_are_examined_isolated_and_only_then_restored(seed: int) -> None:
    world, state = opened(calm(), seed)
    state, views = played(world, state, [DO_NOTHING] * 3)
    state = with_incident(state, names.CORRUPTION, service=API, victim=API, severity=0.8)
    state, later = played(world, state, [DO_NOTHING])
    views += later[1:]
    decided: list[Joint] = [DO_NOTHING] * (len(views) - 1)
    done: list[str] = []
    for _ in range(12):
        proposals = ask(world, views, "resource", decided)
        wanted = [
            a for p in proposals for a in p.actions if a.kind in ORDER and a.target == "api-db"
        ]
        joint: Joint = (max(wanted, key=lambda a: ORDER.index(a.kind)),) if wanted else DO_NOTHING
        done += [action.kind for action in joint if action.kind in ORDER]
        state, outcomes = steps(world, state, joint)
        assert outcomes[0].violations == ()
        views.append(world.observe(state))
        decided.append(joint)
        if "restore_backup" in done:
            break
    assert done[-2:] == ["isolate", "restore_backup"]
    assert done[0] == "evaluate"


ORDER = ("evaluate", "isolate", "restore_backup")


@pytest.mark.parametrize("seed", range(201, 205))
def test_a_full_disk_is_cleaned_and_nothing_is_isolated_or_restored(seed: int) -> None:
    world, state = opened(calm(), seed)
    state, views = played(world, state, [DO_NOTHING] * 3)
    state = with_incident(state, names.DISK_FULL, service=API, victim=API, severity=0.8)
    state, later = played(world, state, [DO_NOTHING] * 2)
    views += later[1:]
    decided: list[Joint] = [DO_NOTHING] * (len(views) - 1)
    found = kinds(ask(world, views, "resource", decided))
    assert ("free_disk", "api-db") in found
    assert not {kind for kind, _ in found} & {"isolate", "restore_backup"}


def test_a_victim_is_not_treated_for_what_its_callee_does() -> None:
    world, state = opened(calm(), 201)
    for row in range(state.settings.queues):
        state = changed(state, "count", row, float(np.ceil(1.2 * state.columns["count"][0, row])))
    state, views = played(world, state, [DO_NOTHING] * 3)
    state = with_incident(state, names.FAILURE, service=API, victim=WEB, severity=0.5)
    state, later = played(world, state, [DO_NOTHING] * 2)
    views += later[1:]
    request = request_of(world, world.scenario, views, [DO_NOTHING] * (len(views) - 1))
    estate = Estate.of(request)
    assert estate is not None
    assert [one.name for one in troubles(estate)] == ["api"]
    assert {option.action.target for option in remedies(estate, troubles(estate))} <= {
        "api", "api-db",
    }  # fmt: skip


def test_an_intruder_is_examined_then_isolated_with_its_evidence_and_removed_last() -> None:
    world, state = opened(calm(), 201)
    row = next(r for r in range(state.settings.tiers, state.settings.rows)
               if state.columns["kind"][0, r] == names.COMPUTE
               and state.columns["state"][0, r] == names.RUNNING
               and not state.columns["protected"][0, r] and not state.columns["managed_by"][0, r]
               and state.columns["needed_by"][0, r] < 0)  # fmt: skip
    for name, value in (("essential", names.NO), ("h.essential", 0), ("age_hours", 900.0)):
        state = changed(state, name, row, value)
    state = with_incident(state, names.BREACH, row=row)
    state, _ = steps(world, state, DO_NOTHING)
    views = [world.observe(state)]
    inventory = views[0].inventory
    assert isinstance(inventory, CloudInventory)
    name = inventory.ids[row]
    assert ("evaluate", name) in kinds(ask(world, views, "janitor"))
    guilty = changed(state, "suspicion", row, 0.9)
    wanted = kinds(ask(world, [world.observe(guilty)], "janitor"))
    assert ("isolate", name) in wanted
    assert ("snapshot", name) in wanted
    assert ("terminate", name) not in wanted
    kept = changed(changed(guilty, "snapshot_taken", row, 1), "state", row, names.ISOLATED)
    assert ("terminate", name) in kinds(ask(world, [world.observe(kept)], "janitor"))


def test_the_janitor_marks_asks_and_removes_the_dearest_first_and_names_the_dollars() -> None:
    world, state = opened(scenario("medium"), 201)
    seen = world.observe(state)
    inventory = seen.inventory
    assert isinstance(inventory, CloudInventory)
    first = ask(world, [seen], "janitor")
    marked = [t for kind, t in kinds(first) if kind == "mark"]
    estate = Estate.of(request_of(world, world.scenario, [seen], []))
    assert estate is not None
    idle = estate.zombies & ~np.isin(estate.cells["kind"], (names.COMPUTE, names.GPU, names.DB))
    dearest = int(np.argmax(np.where(idle, estate.usd, 0.0)))
    assert marked
    assert max(float(estate.usd[inventory.index[name]]) for name in marked) == estate.usd[dearest]
    target = estate.name(dearest)
    assert all("$/h" in proposal.rationale for proposal in first)
    for kind, name in kinds(first):
        row = inventory.row(name)
        if kind in {"mark", "terminate", "stop"}:
            assert row["essential"] == "no"
            assert isinstance(row["idle_hours"], float)
            assert row["idle_hours"] >= 336
        if kind == "flag_for_owner":
            assert row["essential"] == "unknown" or row["tag_status"] == "unknown"
    state, _ = steps(world, state, (Action("mark", target),), DO_NOTHING)
    assert ("terminate", target) in kinds(ask(world, [world.observe(state)], "janitor"))


def test_cost_right_sizes_and_says_nothing_more_once_the_bill_holds() -> None:
    world, state = opened(calm(), 201)
    seen = world.observe(state)
    proposals = ask(world, [seen], "cost")
    idle = {("scale_down", "batch-db"), ("resize", "batch-db")}
    assert idle & set(kinds(proposals))  # a database at a quarter of its capacity
    assert all("-" in p.rationale or "saves" in p.rationale for p in proposals)
    held = dataclasses.replace(seen, metrics={**seen.metrics, "cost_usd_per_hour": 300.0})
    assert not {k for k, _ in kinds(ask(world, [held], "cost"))} & {"scale_down", "resize"}


def test_sustainability_moves_what_nobody_waits_for_to_the_cleanest_region_first() -> None:
    world, state = opened(calm(), 202)
    seen = world.observe(state)
    moves = [a for p in ask(world, [seen], "sustainability") for a in p.actions
             if a.kind == "migrate_region"]  # fmt: skip
    facts = seen.facts["regions"]
    cleanest = min(facts, key=lambda name: facts[name]["mean_grid_g_per_kwh"])
    assert moves[0].target == "batch"
    assert moves[0].param("region") == cleanest


def test_missing_measurements_are_no_zeros_to_any_seat() -> None:
    world, state = opened(calm(missing_fraction=0.9, noise_fraction=0.05), 203)
    views = [world.observe(state)]
    for _ in range(3):
        state, _ = steps(world, state, DO_NOTHING)
        views.append(world.observe(state))
    for seat in SEATS:
        for proposal in ask(world, views, seat, [DO_NOTHING] * 3):
            assert "nan" not in proposal.rationale
            assert not {a.kind for a in proposal.actions} & {"scale_down"} or any(
                not np.isnan(load) for load in loads(world, views, proposal)
            )


def loads(world: CloudWorld, views: Sequence[Observation], proposal: Proposal) -> list[float]:
    estate = Estate.of(request_of(world, world.scenario, views, [DO_NOTHING] * (len(views) - 1)))
    assert estate is not None
    index = estate.inventory.index
    return [load for a in proposal.actions if a.kind == "scale_down"
            for load in estate.loads(index[a.target])]  # fmt: skip


def test_the_resource_seat_owns_errors_where_a_world_measures_them() -> None:
    objectives = load_persona("resource").objectives
    assert objectives.errors is not None
    assert objectives.errors.weight > 0


@pytest.mark.parametrize("seed", [205, 211])
def test_the_default_room_brings_an_easy_cloud_into_target_without_harm(seed: int) -> None:
    spec = EpisodeSpec(
        scenario="cloud/easy", seed=seed, driver="loop", store="inprocess", out="", samples=2
    )
    result = run_episode(spec)
    assert result.violations == ()
    held = [reward for reward in result.rewards if reward > 4.0]  # 3 for targets and 2 for all
    assert len(held) >= 0.4 * result.steps, result.rewards


def test_what_has_no_effect_to_show_is_offered_whole_first_where_ids_decide() -> None:
    options = [Option(Action("mark", f"vol-{letter}"), letter) for letter in "cab"]
    offered = bundles(options)
    assert [len(proposal.actions) for proposal in offered] == [3, 2, 1]
    names_ = [joint_id(proposal.actions) for proposal in offered]
    assert names_ == sorted(names_)
    assert all(name < "nop" for name in names_)


@pytest.mark.parametrize("seed", range(201, 207))
def test_a_room_that_measured_nothing_yet_or_only_zeros_is_answered_all_the_same(seed: int) -> None:
    world, state = opened(scenario("war"), seed)
    for service in range(state.settings.s):
        state = changed(state, "h.s.base_rps", service, 0.0)
    views = [world.observe(state)]
    for _ in range(5):
        state, _ = steps(world, state, DO_NOTHING)
        views.append(world.observe(state))
    for seat in SEATS:
        assert ask(world, views, seat, [DO_NOTHING] * 5)
