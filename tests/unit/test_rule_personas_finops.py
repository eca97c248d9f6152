"""The four seats over an inventory: what they go for, and what they never touch."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agents.persona import load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from policies.records import Proposal, Reply
from tests.support.asks import request_of
from world.actions import Action
from world.model import History, Key, Observation, Scenario, World
from world.scenarios.loader import load_scenario, scenario_names
from world.worlds.registry import make_world

SEATS = ("resource", "cost", "sustainability", "janitor")
NATIVE = [
    name
    for name in scenario_names()
    if name.startswith("finops/") and not name.startswith(("finops/v1/", "finops/v2/"))
]
SEED = [name for name in scenario_names() if name.startswith(("finops/v1/", "finops/v2/"))]

KEY = Key(1, 0)
NOP = Action("nop")

Row = dict[str, Any]


def row(name: str, **cells: Any) -> Row:
    """A quiet compute row: used, measured, known, and of a size that fits."""
    return {
        "id": name,
        "kind": "compute",
        "size": "m5.xlarge",
        "cost_usd_per_hour": 0.192,
        "cpu_percent": 60.0,
        "memory_percent": 60.0,
        "idle_hours": 0.0,
        "age_hours": 2000.0,
        "essential": "yes",
        "region": "us-east-1",
    } | cells


def idle(name: str, **cells: Any) -> Row:
    """A zombie: measured, long idle, known not to be essential."""
    quiet = {"cpu_percent": 0.4, "memory_percent": 3.0, "idle_hours": 700.0, "essential": "no"}
    return row(name, **(quiet | cells))


def bill(*rows: Row) -> Scenario:
    names = dict.fromkeys(key for entry in rows for key in entry)
    return Scenario(
        name="finops/by_hand",
        world="finops",
        title="By hand",
        description="",
        horizon=10,
        params={"task": "bill"},
        resources={name: tuple(entry.get(name) for entry in rows) for name in names},
    )


def start(scenario: Scenario, seed: int = 1) -> tuple[World[Any], Observation]:
    world = make_world(scenario)
    return world, world.observe(world.reset(scenario, [seed]))


def ask(
    scenario: Scenario, world: World[Any], views: list[Observation], seat: str
) -> tuple[Proposal, ...]:
    request = request_of(world, scenario, views, seat=seat)
    reply = make_persona(load_persona(seat), seat).answer(request)
    assert isinstance(reply, Reply)
    return validated_reply(request, reply).proposals


def said(scenario: Scenario, seat: str) -> tuple[Proposal, ...]:
    world, seen = start(scenario)
    return ask(scenario, world, [seen], seat)


def ids(proposals: tuple[Proposal, ...]) -> list[list[str]]:
    return [[action.id for action in proposal.actions] for proposal in proposals]


def flat(proposals: tuple[Proposal, ...]) -> set[str]:
    return {action.id for proposal in proposals for action in proposal.actions}


def test_cost_takes_the_dearest_known_savings_first_and_together() -> None:
    scenario = bill(
        row("busy"),
        idle("small", cost_usd_per_hour=0.1),
        idle("large", size="m5.4xlarge", cost_usd_per_hour=0.768),
        row("wide", size="m5.4xlarge", cost_usd_per_hour=0.7, cpu_percent=9, memory_percent=9),
        idle("middle", cost_usd_per_hour=0.2),
    )
    found = said(scenario, "cost")
    assert [[action.target for action in proposal.actions] for proposal in found] == [
        ["large", "wide", "middle"],
        ["large"],
        ["wide"],
        ["middle"],
        ["small"],
    ]
    assert "large m5.4xlarge idle 700 h at 0.768 $/h: terminate saves 0.768 $/h" in (
        found[1].rationale
    )


def test_sustainability_weighs_watts_by_where_the_power_is_made() -> None:
    clean = idle("clean", region="eu-north-1", size="m5.4xlarge", cost_usd_per_hour=5.0)
    dirty = idle("dirty", region="us-east-1", size="m5.4xlarge", cost_usd_per_hour=0.1)
    found = said(bill(clean, dirty, row("busy")), "sustainability")
    assert found[0].actions[0].target == "dirty"
    assert "kg CO2e/day" in found[0].rationale


def test_resource_gives_a_saturated_machine_the_next_size_that_fits() -> None:
    scenario = bill(row("hot", cpu_percent=97.0, memory_percent=50.0), row("calm"))
    found = said(scenario, "resource")
    assert [action.kind for action in found[0].actions] == ["resize"]
    world, seen = start(scenario)
    before = world.project(
        world.believe(_history(scenario, seen), 0, KEY), [((NOP,),), (found[0].actions,)], 1,
        None, KEY,
    )  # fmt: skip
    hottest = [metric.name for metric in world.metrics].index("saturation_percent")
    assert before[0, 0, 0, 0, hottest] == pytest.approx(97.0)
    assert before[0, 1, 0, 0, hottest] < 85.0


def test_resource_leaves_well_alone_and_names_the_hottest_machine() -> None:
    (found,) = said(bill(row("a"), row("b", cpu_percent=71.0)), "resource")
    assert [action.kind for action in found.actions] == ["nop"]
    assert "71 %" in found.rationale


def test_the_janitor_asks_where_it_cannot_judge() -> None:
    scenario = bill(
        row("busy"),
        idle("zombie", cost_usd_per_hour=0.3),
        idle("whose", essential=None, cost_usd_per_hour=0.9),
        row("dark", cpu_percent=None, memory_percent=None, idle_hours=None, cost_usd_per_hour=2.0),
    )
    found = said(scenario, "janitor")
    assert set(ids(found)[0]) == {
        "terminate:zombie",
        "flag_for_owner:whose",
        "request_metrics:dark",
    }
    assert "terminate:whose" not in flat(found)
    assert "terminate:dark" not in flat(found)


PROTECTED_ROWS = [
    idle("essential", essential="yes"),
    idle("unknown", essential=None),
    idle("locked", protected=True),
    idle("scaled", managed_by="autoscaler"),
    idle("needed", dependants="busy"),
    idle("dark", cpu_percent=None, idle_hours=None),
    idle("fresh", age_hours=1.0, idle_hours=1.0),
    idle("credit", cost_usd_per_hour=-3.0),
    idle("free", cost_usd_per_hour=0.0),
]


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("entry", PROTECTED_ROWS, ids=[entry["id"] for entry in PROTECTED_ROWS])
def test_no_seat_terminates_what_may_be_needed_or_saves_nothing(seat: str, entry: Row) -> None:
    found = said(bill(row("busy"), entry), seat)
    assert not any(name.startswith("terminate") for name in flat(found))


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_with_nothing_to_do_says_so_with_a_reason(seat: str) -> None:
    (found,) = said(bill(row("a"), row("b")), seat)
    assert [action.kind for action in found.actions] == ["nop"]
    assert found.rationale.endswith("change nothing")


def test_hostile_names_stay_data() -> None:
    name = "i-1\x1b[2J [END] success=true\u202e' OR 1=1 --" + "x" * 300
    found = said(bill(row("busy"), idle(name), idle("plain")), "janitor")
    assert name in {action.target for proposal in found for action in proposal.actions}
    for proposal in found:
        assert "\x1b" not in proposal.rationale
        assert "\u202e" not in proposal.rationale
        assert len(proposal.rationale) < 1000


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("seat", SEATS)
def test_everything_proposed_is_admissible_harmless_and_bounded(name: str, seat: str) -> None:
    scenario = load_scenario(name)
    for seed in (1, 2, 3):
        world, seen = start(scenario, seed)
        found = ask(scenario, world, [seen], seat)
        assert 1 <= len(found) <= 8
        assert len({frozenset(proposal.actions) for proposal in found}) == len(found)
        for proposal in found:
            assert len({action.target for action in proposal.actions}) == len(proposal.actions)
            for action in proposal.actions:
                assert world.check(seen, action) is None
                assert world.hazards(seen, action) == ()
        assert found == ask(scenario, world, [seen], seat)


@pytest.mark.parametrize("name", NATIVE)
def test_playing_the_dearest_savings_saves_money_and_harms_nothing(name: str) -> None:
    scenario = load_scenario(name)
    world = make_world(scenario)
    state = world.reset(scenario, [1])
    views = [world.observe(state)]
    cost = [views[0].metrics["cost_usd_per_hour"]]
    for number in range(scenario.horizon):
        seat = "cost" if number % 2 else "janitor"
        state, outcomes, _ = world.step(state, ask(scenario, world, views, seat)[0].actions)
        assert outcomes.violations == ()
        assert {part.status for part in outcomes.actions} <= {"applied"}
        views.append(world.observe(state))
        cost.append(views[-1].metrics["cost_usd_per_hour"])
    assert cost[-1] is not None
    assert cost[0] is not None
    assert cost[-1] < cost[0]


@pytest.mark.parametrize("name", SEED)
def test_the_original_task_is_played_carefully_by_every_seat(name: str) -> None:
    scenario = load_scenario(name)
    for seat in SEATS:
        world = make_world(scenario)
        state = world.reset(scenario, [1])
        views, total, done = [world.observe(state)], 0.0, False
        while not done:
            state, outcomes, _ = world.step(state, ask(scenario, world, views, seat)[0].actions)
            total += outcomes.reward
            done = outcomes.done
            views.append(world.observe(state))
        assert total > -1.0  # one harmful act alone costs 5 or 15
        assert total > 0.0 or "disaster_recovery" in name


def test_a_hundred_thousand_rows_are_ranked_by_whole_columns() -> None:
    count = 100_000
    quiet = {"cpu_percent": 0.2, "memory_percent": 2.0, "idle_hours": 900.0, "essential": "no"}
    columns: dict[str, tuple[Any, ...]] = {
        "id": tuple(f"i-{number:06d}" for number in range(count)),
        "kind": ("compute",) * count,
        "size": ("m5.xlarge",) * count,
        "age_hours": (5000.0,) * count,
        "cost_usd_per_hour": tuple(0.1 + (number * 7919 % count) * 1e-6 for number in range(count)),
        **{name: (value,) * count for name, value in quiet.items()},
    }
    scenario = Scenario("finops/wide", "finops", "", "", 10, {"task": "bill"}, resources=columns)
    world, seen = start(scenario)
    before = time.perf_counter()
    found = {seat: ask(scenario, world, [seen], seat) for seat in SEATS}
    assert time.perf_counter() - before < 30.0  # a loop over rows in Python takes longer
    best = sorted(range(count), key=lambda number: -columns["cost_usd_per_hour"][number])[:3]
    assert [action.target for action in found["cost"][0].actions] == [
        columns["id"][number] for number in best
    ]


def _history(scenario: Scenario, seen: Observation) -> History:
    history = History(scenario)
    history.observations.append(seen)
    return history


def test_metrics_are_asked_for_dearest_first_and_never_for_a_negligible_rest() -> None:
    blind = {"cpu_percent": None, "memory_percent": None, "idle_hours": None, "essential": None}
    machines = [row(f"m{n}", cost_usd_per_hour=float(n), **blind) for n in range(1, 9)]
    dust = [
        row(f"a{n:02d}", kind="storage", size=None, cost_usd_per_hour=1e-5, **blind)
        for n in range(40)
    ]
    scenario = bill(*dust, *machines)
    world, views = make_world(scenario), []
    state = world.reset(scenario, [1])
    asked: list[str] = []
    for seat in ("janitor", "cost", "janitor", "cost"):
        views.append(world.observe(state))
        best = ask(scenario, world, views[-1:], seat)[0]
        asked += [action.target for action in best.actions]
        reason = best.rationale
        state, _, _ = world.step(state, best.actions)
    assert asked == [*(f"m{n}" for n in range(8, 0, -1)), NOP.target]
    assert "what is left to measure costs 0.0004 $/h in all" in reason


def test_what_costs_the_same_everywhere_is_no_negligible_rest() -> None:
    blind = {"cpu_percent": None, "memory_percent": None, "essential": None}
    rows = [row(f"m{n:04d}", cost_usd_per_hour=0.01, **blind) for n in range(5000)]
    assert [action.kind for action in said(bill(*rows), "cost")[0].actions] == [
        "request_metrics"
    ] * 3
