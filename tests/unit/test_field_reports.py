"""Fifteen failures that users of real tools reported: the situation leads to the right outcome.

Each report is tested in its general form, over kinds, values and seeds. The reports are named in
`docs/guardrails.md`, with the rule and the place that enforces it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from agents.persona import load_persona
from agents.seat import make_persona
from policies.guardrails import MEMORY_STEPS, Bounds, Gate
from policies.records import Reply
from tests.support.asks import request_of
from tests.support.clouds import (
    DO_NOTHING,
    calm,
    changed,
    opened,
    random_legal,
    scenario,
    steps,
    truth,
    variant,
)
from tests.support.field_reports import extras, having, idle, removal_of, view_of
from world import noise
from world.actions import Action
from world.model import Joint, Observation
from world.worlds.cloud import menu, reading
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import ARCHETYPES
from world.worlds.cloud.cost import row_costs, unit_prices
from world.worlds.cloud.solve import ready
from world.worlds.cloud.state import NOW, Measured, State
from world.worlds.cloud.tables import RESERVED_FACTOR, SPOT_FACTOR
from world.worlds.cloud.world import CloudWorld

SEEDS = (201, 202, 203, 204, 205, 206)
SEATS = ("resource", "cost", "sustainability", "janitor")
REMOVALS = ("terminate", "stop", "detach")
MARKED = (*REMOVALS, "mark")


def refused(world: CloudWorld, state: State, action: Action) -> str:
    """Why an action is refused, by the dry run; execution must agree."""
    reason = world.check(world.observe(state), action)
    _, (outcome,) = steps(world, state, (action,))
    assert (reason is None) == (outcome.actions[0].status not in {"refused", "already_gone"})
    return reason or ""


def proposed(world: CloudWorld, state: State, seat: str) -> list[Joint]:
    """What a seat proposes in a state."""
    seen = world.observe(state)
    request = request_of(world, world.scenario, [seen], seat=seat)
    reply = make_persona(load_persona(seat), seat).answer(request)
    assert isinstance(reply, Reply)
    return [proposal.actions for proposal in reply.proposals]


# -- 1: a failed tag query made everything look untagged -----------------------------------------


@pytest.mark.parametrize("kind", range(len(names.KINDS)), ids=names.KINDS)
def test_when_no_tag_of_a_kind_can_be_read_nothing_of_it_is_destroyed(kind: int) -> None:
    world, state = opened(calm("hard"), 201)
    state = having(state, kind, 3)
    rows = extras(state, kind)
    for row in rows:
        state = changed(idle(state, row), "tag_status", row, 1)
    seen = world.observe(state)
    gate = Gate(world, seen, Bounds(3))
    assert any("metadata_outage" in line and names.KINDS[kind] in line for line in seen.incidents)
    for row in rows:
        for word in REMOVALS:
            action = Action(word, view_of(seen).ids[row])
            assert gate.refusals((action,)), action.id
    for seat in SEATS:
        touched = {a.target for joint in proposed(world, state, seat) for a in joint
                   if a.kind in REMOVALS}  # fmt: skip
        assert not touched & {view_of(seen).ids[row] for row in rows}


def test_an_outage_stops_destructive_changes_that_need_no_tags_too_and_one_read_tag_ends_it() -> (
    None
):
    world, state = opened(calm("hard"), 202)
    rows = extras(state, names.DB)
    for row in rows:
        state = changed(idle(state, row), "tag_status", row, 1)
    seen = world.observe(state)
    name = view_of(seen).ids[rows[0]]
    size = next(a for a in world.catalogue(seen) if a.kind == "resize" and a.target == name)
    assert world.check(seen, size) is None
    assert any("metadata_outage" in r for r in Gate(world, seen, Bounds(3)).refusals((size,)))
    one = world.observe(changed(state, "tag_status", rows[-1], 0))
    assert not any("metadata" in r for r in Gate(world, one, Bounds(3)).refusals((size,)))
    assert not any("metadata_outage" in line for line in one.incidents)


# -- 2: a tag policy killed the autoscaler's nodes -----------------------------------------------


@pytest.mark.parametrize("manager", [1, 2], ids=["autoscaler", "iac"])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_what_another_controller_owns_is_not_eligible_and_the_conflict_is_named(
    manager: int, seed: int
) -> None:
    world, state = opened(calm(), seed)
    for row in extras(state):
        state = changed(idle(state, row), "managed_by", row, manager)
        state = changed(state, "environment", row, 0)  # and it carries no tag
        state = changed(state, "owner", row, 0)
    now = world.observe(state)
    ids = view_of(now).ids
    for row in extras(state):
        reason = refused(world, state, Action(removal_of(state, row), ids[row]))
        assert "owner conflict" in reason or "needs it" in reason, (ids[row], reason)
        for word in REMOVALS:
            assert world.check(now, Action(word, ids[row])), (word, ids[row])
    ours = frozenset(ids[: state.settings.tiers])
    for seat in SEATS:
        removed = [a for joint in proposed(world, state, seat) for a in joint if a.kind in MARKED]
        assert not [a for a in removed if a.target not in ours]


# -- 3: did a second run of mark-for-op reset the window? ----------------------------------------


@pytest.mark.parametrize("grace", [1, 2, 6, 9])
@pytest.mark.parametrize("again", [(1,), (1, 2, 3), (2, 5)])
def test_marking_again_never_moves_the_deadline_and_nothing_goes_before_it(
    grace: int, again: tuple[int, ...]
) -> None:
    world, state = opened(calm(grace_steps=grace), 203)
    row = extras(state, names.VOLUME, names.SNAPSHOT)[0]
    state = idle(state, row)
    name = view_of(world.observe(state)).ids[row]
    mark, remove = Action("mark", name), Action("terminate", name)
    assert "marked first" in refused(world, state, remove)
    state, _ = steps(world, state, (mark,))
    for wait in range(1, grace):
        assert "grace" in refused(world, state, remove)
        joint = (mark,) if wait in again else DO_NOTHING
        state, outcomes = steps(world, state, joint)
        assert wait not in again or outcomes[0].actions[0].status == "refused"
    assert refused(world, state, remove) == ""


# -- 4: a stale cache acted on what had vanished -------------------------------------------------


@pytest.mark.parametrize("kind", range(len(names.KINDS)), ids=names.KINDS)
def test_a_target_that_has_vanished_is_already_gone_and_saves_nothing_twice(kind: int) -> None:
    world, state = opened(calm("war"), 204)
    state = having(state, kind, 1)
    rows = extras(state, kind)
    state = idle(state, rows[0])
    name = view_of(world.observe(state)).ids[rows[0]]
    gone, outcomes = steps(world, state, (Action("terminate", name),))
    assert outcomes[0].actions[0].status == "applied"
    for word in ("terminate", "stop", "snapshot", "mark", "detach"):
        twice, outcomes = steps(world, gone, (Action(word, name),))
        idler, _ = steps(world, gone, DO_NOTHING)
        assert outcomes[0].actions[0].status == "already_gone", word
        assert truth(twice)[1] == truth(idler)[1]
        assert outcomes[0].violations == ()
        assert twice.columns["w.one_off_usd"][0, 0] == gone.columns["w.one_off_usd"][0, 0]


# -- 5: no creation time, and the age filter was ignored -----------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unknown_age_is_ineligible_counted_and_stays_so_after_a_resume(seed: int) -> None:
    world, state = opened(calm(), seed)
    rows = extras(state)
    for row in rows:
        state = changed(idle(state, row), "age_hours", row, np.nan)
    seen = world.observe(state)
    assert any(f"age of {len(rows)} resources" in line for line in seen.unknown)
    resumed = world.from_columns(world.scenario, seed, world.columns(state))
    later, _ = steps(world, resumed, *[DO_NOTHING] * 3)
    later_seen = world.observe(later)
    for row in rows:
        name = view_of(seen).ids[row]
        assert "age is unknown" in refused(world, later, Action("terminate", name))
        for word in ("terminate", "stop"):  # a volume that is detached can be attached again
            assert world.check(later_seen, Action(word, name)), (word, name)


# -- 6: an address on a live machine, a snapshot behind an image ---------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_needed_is_refused_with_its_dependant_and_can_go_only_after_it(seed: int) -> None:
    world, state = opened(calm("hard"), seed)
    rows = extras(state)
    needer, needed = rows[0], rows[1]
    state = changed(idle(idle(state, needer), needed), "needed_by", needed, needer)
    ids = view_of(world.observe(state)).ids
    first, second = Action("terminate", ids[needer]), Action("terminate", ids[needed])
    assert f"{ids[needer]} needs it" in refused(world, state, second)
    for word in REMOVALS:  # whichever way it would go
        assert Gate(world, world.observe(state), Bounds(3)).refusals((Action(word, ids[needed]),))
    # Both at once do not help: the dependant must be gone, not merely be going.
    assert Gate(world, world.observe(state), Bounds(3)).refusals((first, second))
    after, _ = steps(world, state, (first,))
    assert refused(world, after, second) == ""


def test_every_row_that_something_needs_names_what_needs_it() -> None:
    for seed in SEEDS:
        world, state = opened(calm("hard"), seed)
        view = view_of(world.observe(state))
        for row in extras(state):
            needed = int(view.public["needed_by"][0, row])
            if needed < 0:
                continue
            free = changed(changed(state, "protected", row, 0), "managed_by", row, 0)
            reason = refused(world, free, Action("terminate", view.ids[row]))
            assert f"{view.ids[needed]} needs it" in reason


# -- 7: the interface answered 200 and the object stayed -----------------------------------------


@pytest.mark.parametrize(
    ("word", "kind"),
    [("terminate", names.VOLUME), ("terminate", names.SNAPSHOT), ("terminate", names.COMPUTE),
     ("terminate", names.IP), ("stop", names.COMPUTE), ("stop", names.GPU)],
)  # fmt: skip
def test_a_removal_that_has_no_effect_says_so_and_earns_nothing(word: str, kind: int) -> None:
    found = 0
    for seed in range(200, 216 if word == "terminate" else 248):
        world, state = opened(calm("war", fail_scale=10.0), seed)
        state = having(state, kind, 1)
        row = extras(state, kind)[0]
        state = changed(idle(state, row), "state", row, names.RUNNING)
        name = view_of(world.observe(state)).ids[row]
        after, outcomes = steps(world, state, (Action(word, name),))
        outcome = outcomes[0].actions[0]
        if after.columns["state"][0, row] != names.RUNNING:
            assert outcome.status == "applied"
            continue
        found += 1
        still, _ = steps(world, state, DO_NOTHING)
        assert outcome.status == "accepted_not_effective"
        assert truth(after)[1] == truth(still)[1]
        assert world.check(world.observe(after), Action(word, name)) is None  # try again
    assert found > 0


# -- 8: the janitor removed itself ---------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_takes_away_what_runs_the_room_whatever_it_looks_like(seed: int) -> None:
    world, state = opened(scenario("war"), seed)
    sort = state.columns["h.archetype"][0]
    plane = next(row for row in extras(state) if ARCHETYPES[sort[row]].name == "control_plane")
    assert state.columns["protected"][0, plane] == 1
    state = changed(changed(idle(state, plane), "protected", plane, 1), "suspicion", plane, 0.9)
    seen = world.observe(state)
    name = view_of(seen).ids[plane]
    gate = Gate(world, seen, Bounds(3))
    for template in world.templates:
        if template.destructive and template.targeted:
            size = {"new_size": "m5.large"} if template.kind == "resize" else {}
            assert gate.refusals((Action.of(template.kind, name, **size),)), template.kind
    for seat in SEATS:
        named = [a for joint in proposed(world, state, seat) for a in joint if a.target == name]
        assert not [a for a in named if a.kind in (*MARKED, "isolate", "resize")]


# -- 9: the dry run said DELETE and the real run said in use -------------------------------------


@pytest.mark.parametrize("seed", range(200, 212))
@pytest.mark.parametrize("preset", ["medium", "war"])
def test_dry_run_and_execution_agree_on_allowed_and_forbidden_actions(
    preset: str, seed: int
) -> None:
    world, state = opened(scenario(preset), seed)
    for turn in range(3):
        seen = world.observe(state)
        for action in any_actions(world, seen, seed, turn, 12):
            refused(world, state, action)
        state, _ = world.step_batch(state, random_legal(state, seed))
        if turn == 0:
            state = world.from_columns(world.scenario, seed, world.columns(state))


def any_actions(
    world: CloudWorld, seen: Observation, seed: int, turn: int, count: int
) -> list[Action]:
    """Actions of any kind on any target with any declared value, most of them forbidden."""
    view = view_of(seen)
    draws = noise.uniforms(seed, np.arange(count), noise.channel("test.any"), turn)
    found = []
    for kind_u, target_u, value_u in zip(*draws[:3].tolist(), strict=True):
        template = world.templates[1 + int(kind_u * (len(world.templates) - 1))]
        spec = menu.KINDS[menu.CODES[template.kind]]
        target = ""
        if spec.target == "row":
            target = view.ids[int(target_u * len(view))]
        elif spec.target == "service":
            target = view.settings.params.services[int(target_u * view.settings.s)]
        params: dict[str, Any] = {}
        for param in template.params:
            choices = view.region_names if param.name == "region" else param.choices
            params[param.name] = choices[int(value_u * len(choices))]
        found.append(Action.of(template.kind, target, **params))
    return found


# -- 10: the number of replicas before was overwritten or forgotten ------------------------------


@pytest.mark.parametrize("cuts", [(0.25,), (0.25, 0.25), (0.5, 0.1, 0.25)])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_repeated_cuts_and_a_crash_keep_the_number_before_the_first(
    cuts: tuple[float, ...], seed: int
) -> None:
    world, state = opened(calm(), seed)
    name = view_of(world.observe(state)).ids[0]
    count = state.columns["count"][0, 0]
    for cut in cuts:
        state, outcomes = steps(world, state, (Action.of("scale_down", name, fraction=cut),))
        assert outcomes[0].actions[0].status == "applied"
        state = world.from_columns(world.scenario, seed, world.columns(state))
        state, _ = steps(world, state, *[DO_NOTHING] * 6)
        assert view_of(world.observe(state)).row(name)["prior_count"] == count
    while state.columns["count"][0, 0] < count:
        more = Action.of("scale_up", name, fraction=0.5)
        state, _ = steps(world, state, (more,), DO_NOTHING, DO_NOTHING)
    assert state.columns["prior_count"][0, 0] == 0.0  # made good


# -- 11: work landed between mark and drain ------------------------------------------------------

GUARDS: tuple[tuple[str, float, str], ...] = (
    ("protected", 1, "protected"),
    ("managed_by", 1, "owner conflict"),
    ("tag_status", 1, "tags"),
    ("idle_hours", 0.0, "used within"),
    ("idle_hours", np.nan, "last used"),
    ("age_hours", 1.0, "age"),
    ("needed_by", 0, "needs it"),
)


@pytest.mark.parametrize(("column", "value", "why"), GUARDS)
@pytest.mark.parametrize(
    ("word", "kind"),
    [("terminate", names.COMPUTE), ("terminate", names.VOLUME), ("terminate", names.SNAPSHOT),
     ("terminate", names.IP), ("stop", names.COMPUTE), ("stop", names.GPU)],
)  # fmt: skip
def test_what_protects_a_resource_is_asked_again_when_the_action_is_executed(
    word: str, kind: int, column: str, value: float, why: str
) -> None:
    world, state = opened(calm(grace_steps=2), 205)
    state = having(state, kind, 1)
    row = extras(state, kind)[0]
    state = changed(idle(state, row), "state", row, names.RUNNING)
    name = view_of(world.observe(state)).ids[row]
    remove = Action(word, name)
    state, _ = steps(world, state, (Action("mark", name),), DO_NOTHING)
    assert world.check(world.observe(state), remove) is None  # decided on this
    moved = changed(state, column, row, value)  # and then this happened
    after, outcomes = steps(world, moved, (remove,))
    assert outcomes[0].actions[0].status == "refused"
    assert why in outcomes[0].actions[0].reason
    assert after.columns["state"][0, row] == names.RUNNING


# -- 12: traffic went to a node that was draining ------------------------------------------------


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_what_drains_takes_no_request_from_the_first_moment_on(fraction: float, seed: int) -> None:
    world, state = opened(calm("hard"), seed)
    for row in range(state.settings.queues):
        if state.columns["count"][0, row] < 4:
            continue
        name = view_of(world.observe(state)).ids[row]
        after, outcomes = steps(world, state, (Action.of("scale_down", name, fraction=fraction),))
        assert outcomes[0].actions[0].status == "applied"
        assert after.columns["draining"][0, row] > 0
        assert ready(after)[0, row] == after.columns["count"][0, row]
        bare = after.follow()
        bare.own("draining")[0, row] = 0
        assert ready(bare)[0, row] == ready(after)[0, row]


# -- 13: oscillation between sizes ---------------------------------------------------------------

ROUND_TRIPS: tuple[tuple[Action, Action, Action], ...] = tuple(
    (one, other, one)
    for one, other in (
        (Action.of("resize", "web.us-east-1", new_size="m6i.4xlarge"),
         Action.of("resize", "web.us-east-1", new_size="m5.4xlarge")),
        (Action.of("scale_down", "api.us-east-1", fraction=0.1),
         Action.of("scale_up", "api.us-east-1", fraction=0.25)),
        (Action.of("scale_up", "web-db", fraction=0.5),
         Action.of("scale_down", "web-db", fraction=0.25)),
    )
)  # fmt: skip


@pytest.mark.parametrize("trip", ROUND_TRIPS, ids=lambda trip: trip[0].id)
@pytest.mark.parametrize("wait", [0, 2, 5])
def test_going_back_within_an_hour_is_churn_pays_its_way_twice_and_can_be_refused(
    trip: tuple[Action, Action, Action], wait: int
) -> None:
    world, state = opened(calm(), 206)
    repeat: list[float] = []
    spent = [0.0]
    decided: list[Joint] = []
    for leg in trip[:2]:
        seen = world.observe(state)
        strict = Gate(world, seen, Bounds(3, refuse_oscillation=True, decided=tuple(decided)))
        refusals = strict.refusals((leg,))
        state, outcomes = steps(world, state, (leg,))
        assert outcomes[0].actions[0].status == "applied"
        repeat.append(float(truth(state)[5]))
        spent.append(float(state.columns["w.one_off_usd"][0, 0]))
        decided.append((leg,))
        for _ in range(2 + wait):
            state, _ = steps(world, state, DO_NOTHING)
            decided.append(DO_NOTHING)
        if leg is trip[1] and leg.kind != trip[0].kind:
            assert any("guard/oscillation" in reason for reason in refusals)
    assert repeat[0] == 0.0
    assert repeat[1] > 0.0
    assert spent[-1] > 0.0
    bounds = Bounds(3, refuse_oscillation=True, decided=tuple(decided[-MEMORY_STEPS:]))
    back = Gate(world, world.observe(state), bounds)
    assert any("guard/oscillation" in reason for reason in back.refusals((trip[2],)))
    calmer = Gate(world, world.observe(state), Bounds(3, decided=tuple(decided)))
    assert not any("oscillation" in reason for reason in calmer.refusals((trip[2],)))


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_move_is_proposed_only_where_it_saves_more_than_it_costs(seed: int) -> None:
    long = variant(horizon=48, grace_steps=0)
    world, state = opened(long, seed)
    asked = {a.id for joint in proposed(world, state, "cost") for a in joint if a.kind == "resize"}
    assert asked
    last = dataclasses.replace(state, step=47)
    short = {a.id for joint in proposed(world, last, "cost") for a in joint if a.kind == "resize"}
    assert not short  # five minutes are left: no change of size earns its transition


# -- 14: the cool-down governed only one direction, or the scaler jumped to zero -----------------


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_the_cool_down_holds_cuts_and_never_growth(seed: int) -> None:
    world, state = opened(calm(), seed)
    name = view_of(world.observe(state)).ids[0]
    down, up = (
        Action.of("scale_down", name, fraction=0.1),
        Action.of("scale_up", name, fraction=0.1),
    )
    state, _ = steps(world, state, (down,))
    for _ in range(4):
        assert refused(world, state, down) != ""
        assert refused(world, state, up) == ""
        state, _ = steps(world, state, DO_NOTHING)
    state, _ = steps(world, state, DO_NOTHING)
    assert refused(world, state, down) == ""


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("preset", ["easy", "medium", "war"])
def test_no_single_action_takes_a_tier_from_some_to_none(preset: str, count: int) -> None:
    world, state = opened(calm(preset), 201)
    for row in range(state.settings.queues):
        if state.columns["count"][0, row] <= 0:
            continue
        few = changed(state, "count", row, float(count))
        name = view_of(world.observe(few)).ids[row]
        for fraction in (0.01, 0.1, 0.25, 0.5):
            action = Action.of("scale_down", name, fraction=fraction)
            after, _ = steps(world, few, (action,))
            assert after.columns["count"][0, row] >= 1.0


@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("preset", ["medium", "war"])
def test_no_single_action_of_any_kind_takes_a_service_from_some_capacity_to_none(
    preset: str, seed: int
) -> None:
    world, state = opened(calm(preset), seed)
    settings = state.settings
    for row in range(settings.queues):
        if state.columns["count"][0, row] > 0:
            state = changed(state, "count", row, 2.0)
    view = view_of(world.observe(state))
    ours = {*view.ids[: settings.queues], *settings.params.services}
    kinds = {each.kind for each in world.templates if each.destructive}
    tried = [a for a in reading.catalogue(view) if a.kind in kinds and a.target in ours]
    assert {a.kind for a in tried} >= {"scale_down", "resize", "migrate_region"}
    picks = noise.uniforms(seed, np.arange(60), noise.channel("test.some"), 0)[0]
    gate = Gate(world, world.observe(state), Bounds(3))
    for action in {tried[int(u * len(tried))] for u in picks.tolist()}:
        if gate.refusals((action,)):
            continue
        after = state
        for joint in ((action,), DO_NOTHING, DO_NOTHING, DO_NOTHING):
            after, _ = steps(world, after, joint)
            there = after.columns["count"][0]
            for service in range(settings.s):
                pools = slice(service * settings.regions, (service + 1) * settings.regions)
                assert there[pools].sum() + there[settings.pools + service] >= 2.0, action.id
                assert there[pools].sum() >= 1.0, action.id


# -- 15: attached volumes counted twice, spot priced as on demand, negative idle cost ------------


@pytest.mark.parametrize("preset", ["easy", "medium", "hard", "war"])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_the_rows_add_up_to_the_bill_each_once_and_none_below_zero(preset: str, seed: int) -> None:
    from world.worlds.cloud.cost import egress_cost

    world, state = opened(calm(preset), seed)
    state, _ = steps(world, state, DO_NOTHING)
    settings, columns = state.settings, state.columns
    queues = slice(0, settings.queues)
    billed = sum(columns[name][:, queues] for name in names.CAPACITY_COLUMNS)
    held = columns["reserved"][:, queues]
    tiers = unit_prices(settings, columns, queues) * (
        np.maximum(billed - held, 0.0) + held * RESERVED_FACTOR
    )
    rest = row_costs(settings, columns)
    rate = columns[NOW][:, Measured(settings).service("rps")]
    total = tiers.sum() + rest.sum() + egress_cost(settings, rate)[0]
    assert truth(state)[1] == pytest.approx(total, rel=1e-12)
    assert (tiers >= 0).all()
    assert (rest >= 0).all()
    assert 0.0 <= truth(state)[4] <= truth(state)[1]  # waste, never below zero


@pytest.mark.parametrize("pricing", range(len(names.PRICINGS)), ids=names.PRICINGS)
def test_the_pricing_mode_stands_on_the_row_and_prices_it(pricing: int) -> None:
    world, state = opened(calm("hard"), 202)
    machines = [row for row in extras(state, names.COMPUTE, names.GPU, names.DB)
                if state.columns["state"][0, row] == names.RUNNING]  # fmt: skip
    factor = (1.0, RESERVED_FACTOR, SPOT_FACTOR)[pricing]
    for row in machines:
        dear = changed(state, "pricing", row, 0)
        other = changed(state, "pricing", row, pricing)
        place = row - state.settings.queues
        assert row_costs(state.settings, other.columns)[0, place] == pytest.approx(
            factor * row_costs(state.settings, dear.columns)[0, place]
        )
        assert (
            view_of(world.observe(other)).row(view_of(world.observe(other)).ids[row])["pricing"]
            == names.PRICINGS[pricing]
        )


def test_idle_time_is_never_negative_and_grows_only_by_the_clock() -> None:
    for seed in SEEDS[:3]:
        _, state = opened(scenario("hard"), seed)
        known = state.columns["idle_hours"][~np.isnan(state.columns["idle_hours"])]
        assert (known >= 0).all()


def test_the_catalogue_offers_nothing_that_the_reports_forbid() -> None:
    """Whatever is offered passes the validator; whatever is forbidden above is not offered."""
    for seed in SEEDS[:3]:
        world, state = opened(scenario("war"), seed)
        view = view_of(world.observe(state))
        for action in reading.catalogue(view):
            if action.kind in REMOVALS:
                row = view.index[action.target]
                for column in ("protected", "managed_by", "tag_status"):
                    assert view.public[column][0, row] == 0, (action.id, column)
