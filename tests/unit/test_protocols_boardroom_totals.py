"""The boardroom, played through the room's own table, reproduces its published totals."""

from __future__ import annotations

import pytest

from policies.protocols import protocol
from policies.records import Proposal
from policies.table import RoomRules, SeatRules, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec
from tests.support.seed_boardroom import BOARDROOM_TOTALS, Seen, decide, proposals
from tests.support.tables import settle
from world.actions import Action
from world.model import History, Observation
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

SEATS = tuple(
    SeatRules(seat, seat, UtilitySpec("log", 1.0, (ObjectiveSpec(objective, 1.0),)))
    for seat, objective in (("resource", "latency"), ("cost", "cost"), ("sustainability", "carbon"))
)


def seen_in(observation: Observation) -> Seen:
    latency, cost, carbon = (
        observation.metrics[name] for name in ("latency_ms", "cost_usd_per_hour", "carbon_index")
    )
    assert latency is not None
    assert cost is not None
    assert carbon is not None
    return Seen(latency, cost, carbon, bool(observation.facts["crisis"]))


def action_of(kind: str) -> Action:
    if kind == "crisis_response":
        return Action.of(kind, server_count=5, region="canada-hydro")
    return Action(kind)


@pytest.mark.parametrize("level", ["easy", "medium", "hard"])
@pytest.mark.parametrize("seed", range(10))
def test_an_episode_earns_what_the_seed_published(level: str, seed: int) -> None:
    scenario = load_scenario(f"cloudedge/seed/{level}")
    world = make_world(scenario)
    state = world.reset(scenario, [seed])
    history = History(scenario)
    boardroom = protocol("cloudedge_boardroom")
    total = 0.0
    for _ in range(scenario.horizon):
        history.observations.append(world.observe(state))
        now = seen_in(history.now)
        before = seen_in(history.previous) if history.previous else None
        said = {
            seat.seat: (Proposal((action_of(kind),)),)
            for seat, kind in zip(SEATS, proposals(now, before), strict=True)
        }
        table = lay_table(world, history, seed, SEATS, said, RoomRules())
        decision = settle(boardroom.decide(table.context))
        done = [joint[0].kind for joint in history.decisions]
        assert (decision.chosen.now[0].kind, decision.reason.split(":")[0]) == decide(
            now, before, done
        )
        history.decisions.append(decision.chosen.now)
        state, outcomes, _ = world.step(state, decision.chosen.now)
        total += outcomes.reward
    assert total == BOARDROOM_TOTALS[level][seed]
