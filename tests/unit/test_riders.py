from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import numpy as np

from policies.candidates import Composites
from policies.guardrails import Bounds, Gate
from policies.records import Candidate, Proposal
from policies.riders import RIDDEN_SINGLES, asked_errands, filled, ridden
from policies.table import RoomRules, SeatRules, Table, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec
from tests.support.stub_world import NOP
from tests.support.tables import FleetWorld, history_of, observation
from world.actions import Action

STOP = [Action("stop", f"m{i}") for i in range(12)]
SEATS = ("resource", "cost")


class Asking(FleetWorld):
    """A fleet in which stopping a machine is called an errand."""

    errands = MappingProxyType({"stop": 0.01})


def gate(blast_radius: int = 0) -> Gate:
    world = FleetWorld()
    return Gate(world, observation(), Bounds(world.limits.max_actions_per_step, blast_radius))


def single(action: Action) -> Candidate:
    return Candidate((action,), (), ("x#1",), True, (), action.id)


def test_seats_take_turns_in_naming_errands_and_everybody_who_asks_is_noted() -> None:
    wants = {
        "resource": (Proposal((STOP[5], STOP[1])), Proposal((STOP[2],))),
        "cost": (Proposal((STOP[1],)), Proposal((STOP[9],))),
    }
    found = asked_errands({"stop"}, wants, {}, SEATS)
    assert list(found) == [STOP[5], STOP[1], STOP[2], STOP[9]]
    assert found[STOP[1]] == SEATS
    assert found[STOP[9]] == ("cost",)


def test_what_a_seat_may_not_propose_and_what_does_more_than_errands_is_no_errand() -> None:
    wants = {"resource": (Proposal((STOP[1],)),), "cost": (Proposal((STOP[2], NOP)),)}
    assert asked_errands({"stop"}, wants, {"resource": ("nop",)}, SEATS) == {}


def test_free_places_are_filled_up_to_the_limit_and_never_past_a_guardrail() -> None:
    most = FleetWorld().limits.max_actions_per_step
    assert most == 3
    # Whoever touches m0 touches m1.
    assert filled(gate(), (STOP[0],), STOP[1:]) == (STOP[0], STOP[2], STOP[3])
    assert filled(gate(), (NOP,), STOP[3:4]) == (STOP[3],)
    assert filled(gate(blast_radius=1), (STOP[0],), STOP[1:]) == (STOP[0],)
    assert filled(gate(), (NOP,), ()) == (NOP,)


def test_the_best_singles_stand_twice_and_no_single_goes_away() -> None:
    singles = [single(Action("stop", f"m{i}")) for i in (0, 1, 2, 3, 4, 5, 6, 7, 10, 12)]
    welfare = np.arange(10.0)
    found = ridden(gate(), singles, welfare, Composites(), STOP[11:], 20)
    carried = {candidate.id for candidate in found.candidates}
    assert len(carried) == RIDDEN_SINGLES
    assert all("stop:m11" in name for name in carried)
    assert not any("stop:m0" in name or "stop:m1+" in name for name in carried)  # the worst two


def test_what_errands_push_out_is_counted_and_named() -> None:
    singles = [single(action) for action in STOP[:4]]
    found = ridden(gate(), singles, np.arange(4.0), Composites(), STOP[11:], 3)
    assert (len(found.candidates), found.dropped_count, len(found.dropped)) == (3, 1, 1)


def seat(name: str, *objectives: str, **fields: Any) -> SeatRules:
    wants = tuple(ObjectiveSpec(objective, 1.0) for objective in objectives)
    return SeatRules(name, name, UtilitySpec("log", 1.0, wants), **fields)


def laid(world: FleetWorld) -> Table:
    wants = {"resource": (Proposal((STOP[1],)),), "cost": (Proposal((STOP[2],)),)}
    seats = (seat("resource", "latency"), seat("cost", "cost"))
    return lay_table(world, history_of(observation()), 1, seats, wants, RoomRules())


def test_an_errand_is_worth_a_little_to_who_asked_and_nothing_to_others() -> None:
    plain, asking = laid(FleetWorld()), laid(Asking())
    ids = [candidate.id for candidate in asking.context.candidates]
    assert ids == [candidate.id for candidate in plain.context.candidates]
    gained = np.round(asking.context.utilities - plain.context.utilities, 6)
    one, both = ids.index("stop:m1"), ids.index("stop:m1+stop:m2")
    assert gained[:, one].tolist() == [0.01, 0.0]
    assert gained[:, both].tolist() == [0.01, 0.01]
    assert gained[:, ids.index("nop")].tolist() == [0.0, 0.0]


def test_every_candidate_is_a_legal_step_and_there_are_no_more_than_places() -> None:
    wants = {
        "resource": tuple(Proposal((action,)) for action in STOP[:8]),
        "cost": tuple(Proposal((action,)) for action in STOP[4:]),
    }
    seats = (seat("resource", "latency"), seat("cost", "cost"))
    rules = dataclasses.replace(RoomRules(), max_candidates=20)
    table = lay_table(Asking(), history_of(observation()), 1, seats, wants, rules)
    check = gate()
    standing = [candidate for candidate in table.context.candidates if candidate.feasible]
    assert len(standing) == 20
    assert all(not check.refusals(candidate.now) for candidate in standing)
