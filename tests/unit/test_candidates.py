from __future__ import annotations

from itertools import combinations

import numpy as np

from policies.candidates import composites, rotation, sampled_actions, singles
from policies.guardrails import Bounds, Gate
from policies.records import Candidate, Proposal
from tests.support.stub_world import NOP, SAVE, SPEED_UP, StubWorld
from tests.support.tables import FleetWorld, observation
from world.actions import Action
from world.model import Limits

STOP = [Action("stop", f"m{i}") for i in range(12)]
SEATS = ("resource", "cost", "janitor")


class OneAction(StubWorld):
    limits = Limits(max_actions_per_step=1, has_nop=False, plan_depth=2, noise="none")


def gate(world: StubWorld | None = None, blast_radius: int = 0) -> Gate:
    chosen = world or FleetWorld()
    most = chosen.limits.max_actions_per_step
    return Gate(chosen, observation(), Bounds(most, blast_radius))


def found(
    world: StubWorld, proposals: dict[str, tuple[Proposal, ...]], **options: object
) -> object:
    settings = {"powers": {}, "turns": SEATS, "places": 64, "max_catalogue": 64, **options}
    return singles(gate(world), proposals, **settings)  # type: ignore[arg-type]


def ids(result: object) -> list[str]:
    return [candidate.id for candidate in result.candidates]  # type: ignore[attr-defined]


def test_equal_proposals_are_one_candidate_that_names_everybody_who_made_it() -> None:
    result = found(
        FleetWorld(),
        {
            "resource": (Proposal((STOP[2],)),),
            "cost": (Proposal((STOP[3],)), Proposal((STOP[2],), "same")),
        },
    )
    assert ids(result) == ["nop", "stop:m2", "stop:m3"]
    assert {c.id: c.origin for c in result.candidates} == {  # type: ignore[attr-defined]
        "nop": ("catalogue",),
        "stop:m2": ("resource#1", "cost#2"),
        "stop:m3": ("cost#1",),
    }


def test_the_order_in_which_actions_are_written_makes_no_second_candidate() -> None:
    result = found(
        FleetWorld(),
        {
            "resource": (Proposal((STOP[3], STOP[2])),),
            "cost": (Proposal((STOP[2], STOP[3])),),
        },
    )
    assert ids(result) == ["nop", "stop:m2+stop:m3"]
    assert result.candidates[1].now == (STOP[2], STOP[3])  # type: ignore[attr-defined]


def test_what_cannot_be_done_stays_as_infeasible_with_the_reason() -> None:
    result = found(FleetWorld(), {"cost": (Proposal((STOP[8],)), Proposal((STOP[9],)))})
    by_id = {c.id: c for c in result.candidates}  # type: ignore[attr-defined]
    assert not by_id["stop:m8"].feasible
    assert "no machine" in by_id["stop:m8"].reasons[0]
    assert not by_id["stop:m9"].feasible
    assert "only copy" in by_id["stop:m9"].reasons[0]
    assert by_id["stop:m9"].origin == ("cost#2",)


def test_a_proposal_beyond_a_seats_powers_is_infeasible_and_says_so() -> None:
    result = found(FleetWorld(), {"cost": (Proposal((STOP[2],)),)}, powers={"cost": ("shrink",)})
    stopped = next(c for c in result.candidates if c.id == "stop:m2")  # type: ignore[attr-defined]
    assert not stopped.feasible
    assert stopped.reasons == ("powers: cost may not propose stop",)
    assert stopped.origin == ("cost#1",)


def test_another_seats_power_keeps_the_same_action_on_the_table() -> None:
    result = found(
        FleetWorld(),
        {"cost": (Proposal((STOP[2],)),), "janitor": (Proposal((STOP[2],)),)},
        powers={"cost": ("shrink",)},
    )
    stopped = next(c for c in result.candidates if c.id == "stop:m2")  # type: ignore[attr-defined]
    assert stopped.feasible
    assert stopped.origin == ("janitor#1",)
    assert [d.seat for d in result.denied] == ["cost"]  # type: ignore[attr-defined]


def test_an_empty_proposal_is_noticed_and_makes_no_candidate() -> None:
    result = found(FleetWorld(), {"cost": (Proposal(()),)})
    assert ids(result) == ["nop"]
    assert result.denied[0].reason == "proposal 1 holds no action"  # type: ignore[attr-defined]


def test_a_small_world_puts_its_whole_legal_catalogue_on_the_table() -> None:
    result = found(OneAction(), {"cost": (Proposal((SAVE,)),)})
    assert ids(result) == ["nop", "save", "speed_up"]
    assert [c.origin for c in result.candidates] == [  # type: ignore[attr-defined]
        ("catalogue",),
        ("cost#1",),
        ("catalogue",),
    ]
    assert ids(found(OneAction(), {"cost": (Proposal((SAVE,)),)}, max_catalogue=2)) == ["save"]


def test_where_nothing_proposed_can_be_done_the_catalogue_steps_in() -> None:
    result = found(OneAction(), {"cost": (Proposal((STOP[2],)),)}, max_catalogue=0)
    assert ids(result) == ["nop", "save", "speed_up", "stop:m2"]
    assert [c.feasible for c in result.candidates] == [True, True, True, False]  # type: ignore[attr-defined]


def test_at_most_eight_proposals_of_a_seat_are_read() -> None:
    many = tuple(Proposal((Action("stop", f"m{i}"),)) for i in range(20, 40))
    assert len(ids(found(FleetWorld(), {"cost": many}))) == 9  # and nop


def test_when_places_run_out_seats_take_turns_and_the_rest_is_recorded() -> None:
    result = found(
        FleetWorld(),
        {
            "resource": tuple(Proposal((STOP[i],)) for i in (2, 3)),
            "cost": tuple(Proposal((STOP[i],)) for i in (4, 5)),
        },
        places=3,
    )
    assert ids(result) == ["nop", "stop:m2", "stop:m4"]
    assert result.dropped == ("stop:m3", "stop:m5")  # type: ignore[attr-defined]


def test_the_candidate_set_does_not_depend_on_dict_order() -> None:
    proposals = {
        "resource": (Proposal((STOP[2],)), Proposal((STOP[4],))),
        "cost": (Proposal((STOP[3],)), Proposal((STOP[2],))),
    }
    backwards = dict(reversed(proposals.items()))
    assert found(FleetWorld(), proposals) == found(FleetWorld(), backwards)


def parts(count: int = 5) -> list[Candidate]:
    return [Candidate((STOP[i],)) for i in range(count)]


def test_composites_are_every_compatible_pair_and_triple() -> None:
    result = composites(gate(), parts(), np.zeros((1, 5)), 64, frozenset())
    expected = {
        "+".join(f"stop:m{i}" for i in chosen)
        for size in (2, 3)
        for chosen in combinations(range(5), size)
        if not {0, 1} <= set(chosen)  # touching m0 touches m1
    }
    assert {candidate.id for candidate in result.candidates} == expected
    assert result.dropped_count == 0
    assert all(candidate.origin == ("composite",) for candidate in result.candidates)


def test_a_composite_never_holds_more_actions_than_a_step_allows() -> None:
    joint = [Candidate((STOP[2], STOP[3])), *(Candidate((STOP[i],)) for i in (4, 5))]
    result = composites(gate(), joint, np.zeros((1, 3)), 64, frozenset())
    assert {c.id for c in result.candidates} == {
        "stop:m2+stop:m3+stop:m4",
        "stop:m2+stop:m3+stop:m5",
        "stop:m4+stop:m5",
    }


def test_doing_nothing_is_never_part_of_a_composite() -> None:
    options = [Candidate((NOP,)), Candidate((SAVE,)), Candidate((SPEED_UP,))]
    result = composites(gate(StubWorld()), options, np.zeros((1, 3)), 64, frozenset())
    assert [c.id for c in result.candidates] == ["save+speed_up"]


def test_a_composite_that_was_proposed_already_is_not_made_twice() -> None:
    result = composites(gate(), parts(3), np.zeros((1, 3)), 64, frozenset({"stop:m1+stop:m2"}))
    assert [c.id for c in result.candidates] == ["stop:m0+stop:m2"]


def test_the_blast_radius_bounds_composites_too() -> None:
    result = composites(gate(blast_radius=2), parts(), np.zeros((1, 5)), 64, frozenset())
    assert result.candidates
    assert all(len(candidate.now) == 2 for candidate in result.candidates)


def test_seats_take_turns_each_taking_the_composite_that_promises_it_most() -> None:
    likes = np.array([[0, 0, 5.0, 4.0, 0.0], [0, 0, 0.0, 1.0, 9.0]])
    result = composites(gate(), parts(), likes, 2, frozenset())
    # The first seat's best is m2+m3 with a worthless third or none: the pair comes first by
    # index; the second seat's best is m3+m4.
    assert [c.id for c in result.candidates] == ["stop:m2+stop:m3", "stop:m3+stop:m4"]
    assert result.dropped_count == 16 - 2
    assert len(result.dropped) == 14


def test_turns_rotate_with_seed_and_step_so_that_each_seat_comes_first() -> None:
    firsts = [rotation(SEATS, seed=7, step=step)[0] for step in range(3)]
    assert sorted(firsts) == sorted(SEATS)
    assert rotation(SEATS, 7, 0) == rotation(SEATS, 8, 2)
    assert rotation((), 7, 0) == ()


def test_no_more_places_are_taken_than_there_are() -> None:
    many = [Candidate((Action("stop", f"m{i}"),)) for i in range(20, 52)]
    values = np.arange(32.0).reshape(1, -1) % 5
    result = composites(gate(), many, np.vstack([values, -values]), 31, frozenset())
    assert len(result.candidates) == 31
    assert len({c.id for c in result.candidates}) == 31
    assert len(result.dropped) == 64
    assert result.dropped_count == 32 * 31 // 2 + 32 * 31 * 30 // 6 - 31


def test_a_large_catalogue_is_sampled_by_kind_and_not_moved_by_anything_else() -> None:
    catalogue = FleetWorld(machines=50_000).catalogue(observation())
    sample = sampled_actions(catalogue, seed=3, step=4, most=256)
    assert len(sample) <= 257
    assert len(set(sample)) == len(sample)
    kinds = [action.kind for action in sample]
    assert kinds.count("nop") == 1
    assert kinds.count("stop") == kinds.count("shrink") > 100
    assert sample == sampled_actions(catalogue, seed=3, step=4, most=256)
    assert sample != sampled_actions(catalogue, seed=3, step=5, most=256)
    small = FleetWorld(machines=3).catalogue(observation())
    assert sampled_actions(small, 3, 4, 256) == tuple(small)
