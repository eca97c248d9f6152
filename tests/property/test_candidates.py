"""What lies on a table, whatever was proposed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.records import MAX_CANDIDATES, Proposal
from policies.rules import RoomRules, SeatRules
from policies.table import Table, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec
from tests.support.tables import FleetWorld, history_of, observation
from world.actions import Action, joint_id

SEATS = tuple(
    SeatRules(name, name, UtilitySpec("log", team, (ObjectiveSpec(objective, 1.0),)))
    for name, objective, team in (
        ("resource", "latency", 1.0),
        ("cost", "cost", 1.0),
        ("janitor", "cost", 0.0),
    )
)
ACTIONS = st.builds(
    Action,
    st.sampled_from(["stop", "shrink", "stop", "explode"]),
    st.integers(0, 24).map("m{}".format),
)
PROPOSALS = st.builds(Proposal, st.lists(ACTIONS, min_size=0, max_size=4).map(tuple))
ROOMS = st.fixed_dictionaries(
    {seat.seat: st.lists(PROPOSALS, max_size=10).map(tuple) for seat in SEATS}
)


def laid(proposals: dict[str, tuple[Proposal, ...]], seed: int = 1, machines: int = 25) -> Table:
    now = history_of(observation())
    return lay_table(FleetWorld(machines), now, seed, SEATS, proposals, RoomRules())


@settings(max_examples=60, deadline=None)
@given(ROOMS, st.integers(0, 5))
def test_a_table_holds_at_most_64_options_each_once_and_nop(
    proposals: dict[str, tuple[Proposal, ...]], seed: int
) -> None:
    table = laid(proposals, seed)
    candidates = table.context.candidates
    feasible = [c for c in candidates if c.feasible]
    assert len(feasible) <= MAX_CANDIDATES
    names = [c.id for c in candidates]
    assert len(set(names)) == len(names)
    assert names == sorted(names)
    assert "nop" in names
    assert set(table.dropped).isdisjoint(c.id for c in feasible)
    assert len(table.dropped) <= table.dropped_count


@settings(max_examples=60, deadline=None)
@given(ROOMS)
def test_what_stands_can_be_done_in_one_step_and_its_parts_touch_nothing_in_common(
    proposals: dict[str, tuple[Proposal, ...]],
) -> None:
    world, now = FleetWorld(25), observation()
    for candidate in laid(proposals).context.candidates:
        if not candidate.feasible:
            assert candidate.reasons
            continue
        assert 1 <= len(candidate.now) <= world.limits.max_actions_per_step
        assert all(world.check(now, action) is None for action in candidate.now)
        assert not any(world.hazards(now, action) for action in candidate.now)
        for one, other in combinations(candidate.now, 2):
            assert world.touched(now, one).isdisjoint(world.touched(now, other))


@settings(max_examples=60, deadline=None)
@given(ROOMS)
def test_doing_several_at_once_costs_what_all_of_them_cost(
    proposals: dict[str, tuple[Proposal, ...]],
) -> None:
    table = laid(proposals)
    now = observation().metrics
    latency, cost = now["latency_ms"], now["cost_usd_per_hour"]
    assert latency is not None
    assert cost is not None
    for row, candidate in zip(table.projected, table.context.candidates, strict=True):
        if not candidate.feasible:
            assert np.isnan(row).all()
            continue
        size = {"stop": 1.0, "shrink": 0.5, "nop": 0.0}
        slower = sum(size[a.kind] * float(a.target[1:] or 0) for a in candidate.now)
        saved = sum(10.0 * size[a.kind] for a in candidate.now)
        assert row.tolist() == [latency + slower, cost - saved]


@settings(max_examples=60, deadline=None)
@given(ROOMS)
def test_every_first_choice_that_can_be_done_stands_dominated_or_not(
    proposals: dict[str, tuple[Proposal, ...]],
) -> None:
    table = laid(proposals)
    by_id = {c.id: c for c in table.context.candidates}
    for seat, of_seat in proposals.items():
        if not of_seat or not of_seat[0].actions:
            continue
        candidate = by_id[joint_id(of_seat[0].actions)]
        assert f"{seat}#1" in candidate.origin


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 11))
def test_where_composites_outnumber_places_every_seat_gets_the_one_that_promises_it_most(
    seed: int,
) -> None:
    # Resource wants low numbers (less latency), cost wants stops: their best pairs differ.
    proposals = {
        "resource": tuple(Proposal((Action("shrink", f"m{i}"),)) for i in range(10, 18)),
        "cost": tuple(Proposal((Action("stop", f"m{i}"),)) for i in range(18, 25)),
        "janitor": tuple(Proposal((Action("stop", f"m{i}"),)) for i in range(2, 8)),
    }
    table = laid(proposals, seed)
    assert table.dropped_count > 0
    names = [c.id for c in table.context.candidates]
    composites = [c for c in table.context.candidates if c.origin == ("composite",)]
    singles = {c.id: column for column, c in enumerate(table.context.candidates)}
    for row in range(len(SEATS)):
        values = table.context.utilities[row]

        def promise(joint: tuple[Action, ...], values: np.ndarray = values) -> float:
            return float(sum(values[singles[action.id]] for action in joint))

        parts = [c.now[0] for c in table.context.candidates if len(c.now) == 1 and c.id != "nop"]
        best = max(
            promise(joint)
            for size in (2, 3)
            for joint in combinations(parts, size)
            if len({action.target for action in joint}) == size
        )
        assert max(promise(c.now) for c in composites) >= best - 1e-9, names
