"""CPU microseconds per decision of every one-shot protocol, and of laying the table.

Protocols that ask nobody: 4 seats × 64 candidates, utilities drawn once, 20 tables in turn; each
is held against the most that it may take, which is more for the two rules that look at chains of
duels. Protocols that ask seats: the same tables, with the answers of rule personas and the checks
that a room makes. Table: CloudEdge hard with four seats and five singles, the time inside
`World.project` subtracted. Medians of 7 rounds that take turns; CPU time, so that a
busy machine does not count.

Run: python benchmarks/protocols.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from agents.persona import load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from policies.candidates import sampled_actions
from policies.protocols import protocol, protocol_names
from policies.protocols.guard import guarded
from policies.records import Context, Proposal, Request
from policies.stakes import stakes_of
from policies.table import RoomRules, SeatRules, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec, round_significant
from tests.support.tables import context, settle
from world.model import History, World
from world.noise import channel, uniforms
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

SEATS, CANDIDATES, TABLES, ROUNDS = 4, 64, 20, 7
MOST_US = {"schulze": 1000, "ranked_pairs": 6000}
"""Microseconds that a decision may take, where that is not `ORDINARY_US`."""
ORDINARY_US = 300
MOST_ROUNDS_MS = {"debate": 6.0}
"""Milliseconds that a negotiation with asks may take, where that is not `ORDINARY_ROUNDS_MS`."""
ORDINARY_ROUNDS_MS = 3.0


def tables() -> list[Context]:
    """Random tables of the size that the candidate cap allows."""
    made = []
    for number in range(TABLES):
        draws = uniforms(1, np.arange(SEATS * CANDIDATES), channel("bench.protocols"), number)
        values = round_significant(-3.0 * draws[0].reshape(SEATS, CANDIDATES))
        made.append(
            context(
                values.tolist(),
                ids=[f"c{place:02d}" for place in range(CANDIDATES)],
                weights=[1.0, 1.0, 1.0, 0.5],
                disagreement=values.mean(axis=1).tolist(),
            )
        )
    return made


class Room:
    """A CloudEdge room at its first step."""

    def __init__(self) -> None:
        scenario = load_scenario("cloudedge/hard")
        self.world: World[Any] = make_world(scenario)
        self.persona = make_persona(load_persona("cost"), "cost")
        self.history = History(scenario)
        self.history.observations.append(self.world.observe(self.world.reset(scenario, [1])))
        wants = {
            "resource": (ObjectiveSpec("latency", 1.0),),
            "cost": (ObjectiveSpec("cost", 1.0),),
            "sustainability": (ObjectiveSpec("carbon", 1.0),),
            "janitor": (ObjectiveSpec("cost", 0.3), ObjectiveSpec("churn", 0.3)),
        }
        self.seats = tuple(
            SeatRules(name, name, UtilitySpec("log", 1.0, spec)) for name, spec in wants.items()
        )
        catalogue = self.world.catalogue(self.history.now)
        actions = sampled_actions(catalogue, 1, 0, 8)
        self.proposals = {
            name: (Proposal((action,)),) for name, action in zip(wants, actions, strict=False)
        }
        self.projecting_s = 0.0
        project = self.world.project

        def timed(*arguments: Any) -> Any:
            begin = time.process_time()
            result = project(*arguments)
            self.projecting_s += time.process_time() - begin
            return result

        self.world.project = timed  # type: ignore[method-assign, assignment]

    @staticmethod
    @cache
    def shared() -> Room:
        """One room for whatever only needs its world."""
        return Room()

    def lay(self) -> None:
        """Lay one table."""
        lay_table(self.world, self.history, 1, self.seats, self.proposals, RoomRules())


def _microseconds(call: Callable[[], object], repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - begin) / repeats * 1e6


def negotiated(name: str, table: Context) -> int:
    """One negotiation of several rounds under guard, answered by rule personas and checked.

    Returns:
        Batches of asks.
    """
    persona, world = Room.shared().persona, Room.shared().world
    stakes = {seat: stakes_of(table, seat) for seat in table.seats}
    deliberation = guarded(protocol(name), table)
    batches = 0
    try:
        asks = next(deliberation)
        while True:
            batches += 1
            replies = {}
            for ask in asks:
                asked = Request(ask, 0, table.observation, table.history, world, stakes[ask.seat])
                replies[ask.seat] = validated_reply(asked, persona.answer(asked))
            asks = deliberation.send(replies)
    except StopIteration:
        return batches


def negotiations(made: list[Context]) -> dict[str, Any]:
    """Milliseconds per decision of every protocol that asks seats, their answers included."""
    powered = [replace(table, commander="s0", mediator="s3") for table in made]
    figures: dict[str, Any] = {}
    for name in protocol_names():
        if protocol(name).worlds or not protocol(name).max_rounds:
            continue
        most_ms = MOST_ROUNDS_MS.get(name, ORDINARY_ROUNDS_MS)
        batches = [negotiated(name, table) for table in powered]
        times = [
            _microseconds(lambda name=name: [negotiated(name, t) for t in powered], 1) / TABLES  # type: ignore[misc]
            for _ in range(ROUNDS)
        ]
        figures[f"protocol_{name}"] = {
            "value": round(statistics.median(times) / 1e3, 2),
            "unit": f"ms a decision with rule personas, {SEATS} seats x {CANDIDATES} candidates",
            "reference": f"{most_ms} ms",
            "ratio": round(statistics.median(times) / 1e3 / most_ms, 2),
            "batches_mean": round(statistics.mean(batches), 1),
            "n": ROUNDS,
        }
    return figures


def main() -> dict[str, Any]:
    """Measure every protocol that runs on any world and asks nobody."""
    made = tables()
    found = {name: protocol(name) for name in protocol_names()}
    rules = {name: rule for name, rule in found.items() if not rule.worlds and not rule.max_rounds}
    room = Room()
    figures: dict[str, list[float]] = {name: [] for name in rules}
    laying: list[float] = []
    for _ in range(ROUNDS):
        for name, rule in rules.items():
            spent = _microseconds(lambda rule=rule: [settle(rule.decide(t)) for t in made], 5)  # type: ignore[misc]
            figures[name].append(spent / TABLES)
        room.projecting_s = 0.0
        whole = _microseconds(room.lay, 200)
        laying.append(whole - room.projecting_s / 200 * 1e6)
    figures_out: dict[str, Any] = {
        f"protocol_{name}": {
            "value": round(statistics.median(times), 1),
            "unit": f"CPU us a decision, {SEATS} seats x {CANDIDATES} candidates",
            "reference": f"{MOST_US.get(name, ORDINARY_US)} us",
            "ratio": round(statistics.median(times) / MOST_US.get(name, ORDINARY_US), 2),
            "n": ROUNDS,
        }
        for name, times in figures.items()
    }
    figures_out["lay_table"] = {
        "value": round(statistics.median(laying), 1),
        "unit": "CPU us a cloudedge table, world.project left out",
        "n": ROUNDS,
    }
    return figures_out | negotiations(made)


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
