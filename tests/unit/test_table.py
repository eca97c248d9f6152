from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from policies.guardrails import RedLine
from policies.records import Proposal
from policies.table import RoomRules, SeatRules, Table, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec, seat_utilities
from tests.support.stub_world import NOP, SAVE, SPEED_UP, StubState, StubWorld
from tests.support.tables import SCENARIO, FleetWorld, history_of, observation, scenario_with
from world.actions import Action
from world.errors import ConfigError
from world.model import History, Limits, Observation

STOP = [Action("stop", f"m{i}") for i in range(12)]


def seat(name: str, *objectives: str, **fields: Any) -> SeatRules:
    wants = tuple(ObjectiveSpec(objective, 1.0) for objective in objectives)
    return SeatRules(name, name, UtilitySpec("log", 1.0, wants), **fields)


RESOURCE = seat("resource", "latency")
COST = seat("cost", "cost")
CARBON = seat("sustainability", "carbon")


def lay(
    world: StubWorld | None = None,
    proposals: dict[str, tuple[Proposal, ...]] | None = None,
    seats: tuple[SeatRules, ...] = (RESOURCE, COST),
    history: History | None = None,
    **rules: Any,
) -> Table:
    return lay_table(
        world or StubWorld(),
        history or history_of(observation()),
        1,
        seats,
        proposals or {},
        RoomRules(**rules),
    )


def column(table: Table, candidate: str) -> int:
    return [c.id for c in table.context.candidates].index(candidate)


BOTH = {"resource": (Proposal((SPEED_UP,)),), "cost": (Proposal((SAVE,)),)}


def test_proposals_nop_and_their_composite_lie_on_the_table_in_id_order() -> None:
    table = lay(proposals=BOTH)
    assert [c.id for c in table.context.candidates] == ["nop", "save", "save+speed_up", "speed_up"]
    assert table.context.candidates[2].origin == ("composite",)
    assert table.context.admissible.all()


def test_utilities_are_those_of_the_projected_consequences() -> None:
    table = lay(proposals=BOTH)
    place = column(table, "save+speed_up")
    assert table.projected[place].tolist() == [250.0 + 8 - 30 + 4, 500.0 + 10 - 25]
    world = StubWorld()
    direct = seat_utilities(
        RESOURCE.utility,
        table.projected.reshape(4, 1, 1, 2),
        world.metrics,
        SCENARIO.targets,
        SCENARIO.tolerances,
    )
    assert direct is not None
    assert table.context.utilities[0].tolist() == direct.tolist()
    assert table.context.ballots[0].utilities.tolist() == direct.tolist()


def test_the_value_of_no_deal_is_the_mean_over_legal_singles_whatever_was_proposed() -> None:
    bare = lay()
    padded = lay(proposals={**BOTH, "cost": (Proposal((SAVE,)), Proposal((SAVE, SPEED_UP)))})
    assert bare.context.disagreement.tolist() == padded.context.disagreement.tolist()
    singles = [column(padded, name) for name in ("nop", "save", "speed_up")]
    expected = padded.context.utilities[:, singles].mean(axis=1)
    assert np.allclose(padded.context.disagreement, expected, rtol=1e-8)
    assert [c.id for c in bare.context.candidates] == ["nop"]


def test_no_deal_can_be_doing_nothing_staying_as_is_or_a_constant() -> None:
    nop = lay(proposals=BOTH, disagreement="projected_nop")
    assert (
        nop.context.disagreement.tolist() == nop.context.utilities[:, column(nop, "nop")].tolist()
    )
    current = lay(disagreement="current")
    as_is = np.array([250.0, 500.0]).reshape(1, 1, 1, 2)
    world = StubWorld()
    direct = seat_utilities(
        COST.utility, as_is, world.metrics, SCENARIO.targets, SCENARIO.tolerances
    )
    assert direct is not None
    assert current.context.disagreement[1] == direct[0]
    own = lay(seats=(RESOURCE, dataclasses.replace(COST, disagreement="const:-7.5")))
    assert own.context.disagreement[1] == -7.5
    assert own.context.disagreement[0] == lay().context.disagreement[0]


def test_doing_nothing_as_no_deal_is_refused_where_the_world_cannot() -> None:
    class Busy(StubWorld):
        limits = Limits(1, False, 1, "none")

    with pytest.raises(ConfigError) as caught:
        lay(Busy(), BOTH, disagreement="projected_nop")
    assert "mean_legal" in caught.value.fix


def test_a_red_line_vetoes_what_would_cross_it_and_names_rule_and_number() -> None:
    line = RedLine("latency_ms", ">", 255.0, reason="pages customers", id="resource/red_line/1")
    table = lay(proposals=BOTH, seats=(dataclasses.replace(RESOURCE, red_lines=(line,)), COST))
    vetoes = table.context.ballots[0].vetoes
    assert list(vetoes) == ["save"]
    assert vetoes["save"].rule == "resource/red_line/1"
    assert "would be 262" in vetoes["save"].reason
    assert "pages customers" in vetoes["save"].reason
    assert not table.context.admissible[column(table, "save")]
    assert table.context.candidates[column(table, "save")].feasible


def test_a_red_line_on_what_is_measured_now_is_crossed_by_all_or_by_none() -> None:
    line = RedLine("cost_usd_per_hour", ">", 499.0, on="current")
    table = lay(proposals=BOTH, seats=(dataclasses.replace(COST, red_lines=(line,)),))
    assert len(table.context.ballots[0].vetoes) == len(table.context.candidates)
    calm = RedLine("cost_usd_per_hour", ">", 500.0, on="current")
    table = lay(proposals=BOTH, seats=(dataclasses.replace(COST, red_lines=(calm,)),))
    assert table.context.ballots[0].vetoes == {}


def test_a_seat_without_veto_power_and_softer_red_lines_only_warn() -> None:
    hard = RedLine("latency_ms", ">", 255.0)
    soft = RedLine("latency_ms", ">", 255.0, severity="escalate")
    powerless = dataclasses.replace(RESOURCE, red_lines=(hard, soft), can_veto=False)
    table = lay(proposals=BOTH, seats=(powerless, COST))
    assert table.context.ballots[0].vetoes == {}
    assert [(n.candidate, n.severity, n.rule) for n in table.warnings] == [
        ("save", "warn", "resource/red_line/1"),
        ("save", "escalate", "resource/red_line/2"),
    ]
    assert table.context.admissible.all()


def test_a_red_line_on_a_metric_that_is_not_there_is_said_to_hold_nothing_back() -> None:
    line = RedLine("p99_ms", ">", 1.0, id="resource/red_line/1")
    table = lay(proposals=BOTH, seats=(dataclasses.replace(RESOURCE, red_lines=(line,)), COST))
    assert table.context.admissible.all()
    assert len(table.warnings) == 1
    assert "holds nothing back" in table.warnings[0].reason


def test_a_red_line_holds_in_every_projected_step() -> None:
    line = RedLine("latency_ms", ">", 259.0)
    seats = (dataclasses.replace(RESOURCE, red_lines=(line,)), COST)
    assert lay(seats=seats, lookahead_steps=2).context.ballots[0].vetoes == {}
    assert "nop" in lay(seats=seats, lookahead_steps=3).context.ballots[0].vetoes


def test_an_infeasible_proposal_has_no_utility_and_no_projection() -> None:
    table = lay(FleetWorld(), {"cost": (Proposal((STOP[9],)), Proposal((STOP[3],)))})
    place = column(table, "stop:m9")
    assert not table.context.admissible[place]
    assert np.isnan(table.context.utilities[:, place]).all()
    assert np.isnan(table.projected[place]).all()
    assert np.isfinite(np.delete(table.context.utilities, place, axis=1)).all()


def test_powers_are_noticed_where_the_action_stands_all_the_same() -> None:
    seats = (RESOURCE, dataclasses.replace(COST, may_propose=("nop",)))
    table = lay(
        proposals={"resource": (Proposal((SAVE,)),), "cost": (Proposal((SAVE,)),)}, seats=seats
    )
    assert [(n.seat, n.candidate) for n in table.warnings] == [("cost", "save")]
    assert table.context.candidates[column(table, "save")].origin == ("resource#1",)


class Ordered(StubWorld):
    def mandatory(self, observation: Observation) -> Action:
        return SPEED_UP


def test_a_mandatory_action_is_the_only_candidate_and_no_veto_removes_it() -> None:
    line = RedLine("cost_usd_per_hour", ">", 1.0)
    seats = (RESOURCE, dataclasses.replace(COST, red_lines=(line,)))
    table = lay(Ordered(), BOTH, seats)
    assert table.mandatory
    assert [c.id for c in table.context.candidates] == ["speed_up"]
    assert table.context.candidates[0].origin == ("mandatory",)
    assert table.context.admissible.tolist() == [True]
    assert list(table.context.ballots[1].vetoes) == ["speed_up"]
    assert table.context.disagreement.tolist() == lay().context.disagreement.tolist()


def test_an_abstaining_seat_is_recorded_and_worth_nothing() -> None:
    table = lay(proposals=BOTH, seats=(RESOURCE, COST, CARBON))
    assert [ballot.abstains for ballot in table.context.ballots] == [False, False, True]
    assert table.context.utilities[2].tolist() == [0.0] * 4
    assert table.context.disagreement[2] == 0.0


def test_tolerances_that_the_world_computed_win_over_the_scenarios() -> None:
    facts = {"tolerances": {"latency_ms": [0.0, 50.0]}}
    table = lay(history=history_of(observation(facts=facts)), seats=(RESOURCE,))
    assert table.context.utilities[0, 0] == float(f"{-math.log1p(104 / 50):.9g}")


def test_a_masked_metric_does_not_reach_the_ballot_of_the_seat_it_is_hidden_from() -> None:
    history = History(scenario_with(masks={"cost": ("cost_usd_per_hour",)}))
    history.observations.append(observation())
    table = lay(history=history)
    assert [ballot.abstains for ballot in table.context.ballots] == [False, True]


def test_who_failed_to_answer_is_on_the_ballot() -> None:
    table = lay_table(
        StubWorld(),
        history_of(observation()),
        1,
        (RESOURCE, COST),
        {},
        RoomRules(),
        {"cost": "no answer in 30 s"},
    )
    assert [ballot.fallback for ballot in table.context.ballots] == ["", "no answer in 30 s"]


def test_the_same_belief_serves_singles_and_composites() -> None:
    calls: list[str] = []

    class Counting(StubWorld):
        def believe(self, *arguments: Any) -> Any:
            calls.append("believe")
            return super().believe(*arguments)

        def project(self, *arguments: Any) -> Any:
            calls.append("project")
            return super().project(*arguments)

    lay(Counting(), BOTH)
    assert calls == ["believe", "project", "project"]
    calls.clear()
    lay(Counting())
    assert calls == ["believe", "project"]


def test_the_table_reads_no_state_of_the_world() -> None:
    class Blind(StubWorld):
        def observe(self, *arguments: Any, **named: Any) -> Observation:
            raise AssertionError("the table was laid from the true state")

        def step(self, *arguments: Any) -> Any:
            raise AssertionError("the world was stepped")

        def columns(self, state: StubState, row: int = 0) -> Any:
            raise AssertionError("the true state was read")

    assert len(lay(Blind(), BOTH).context.candidates) == 4


def test_the_table_is_the_same_whatever_the_order_of_the_proposals_dict() -> None:
    table = lay(
        FleetWorld(), {"resource": (Proposal((STOP[2],)),), "cost": (Proposal((STOP[3],)),)}
    )
    other = lay(
        FleetWorld(), {"cost": (Proposal((STOP[3],)),), "resource": (Proposal((STOP[2],)),)}
    )
    assert table.context.candidates == other.context.candidates
    assert table.context.utilities.tobytes() == other.context.utilities.tobytes()


def test_candidates_never_exceed_their_places_and_what_was_dropped_is_counted() -> None:
    many = tuple(Proposal((Action("stop", f"m{i}"),)) for i in range(20, 28))
    table = lay(FleetWorld(), {"cost": many}, max_candidates=12)
    assert len(table.context.candidates) == 12
    assert table.dropped_count == 28 + 56 - 3
    assert len(table.dropped) == 64


def test_samples_and_steps_are_averaged_in_what_the_trace_shows() -> None:
    table = lay(lookahead_steps=3, samples=4)
    assert table.projected.tolist() == [[250.0 + 4 * 2, 500.0]]


def test_the_oscillation_guard_reads_the_rooms_own_decisions() -> None:
    history = history_of(observation(step=3), [(SAVE,), (SPEED_UP,), (SAVE,)])
    strict = lay(proposals=BOTH, history=history, refuse_oscillation=True)
    assert not strict.context.candidates[column(strict, "speed_up")].feasible
    assert lay(proposals=BOTH, history=history).context.admissible.all()


@pytest.mark.parametrize(
    "fields",
    [
        {"lookahead_steps": 0},
        {"samples": -1},
        {"max_candidates": 0},
        {"blast_radius": -1},
        {"disagreement": "worst"},
    ],
)
def test_rules_that_cannot_work_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RoomRules(**fields)


@pytest.mark.parametrize("disagreement", ["worst", "const:", "const:nan", "const", "const:1e999"])
def test_a_seats_disagreement_that_cannot_work_is_refused(disagreement: str) -> None:
    with pytest.raises(ConfigError) as caught:
        seat("cost", "cost", disagreement=disagreement)
    assert "const:NUMBER" in caught.value.fix


def test_a_seats_weight_that_cannot_work_is_refused() -> None:
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(ConfigError):
            seat("cost", "cost", weight=weight)


def test_nop_stands_although_nobody_proposed_it_and_even_if_somebody_may_not() -> None:
    seats = (RESOURCE, dataclasses.replace(COST, may_propose=("save",)))
    table = lay(proposals={"cost": (Proposal((NOP,)),)}, seats=seats)
    assert table.context.candidates[0].id == "nop"
    assert table.context.candidates[0].feasible
