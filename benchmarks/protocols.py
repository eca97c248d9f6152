"""Microseconds per decision of every one-shot protocol, and of laying the table.

Protocols: 4 seats × 64 candidates, utilities drawn once, 20 tables in turn. Table: CloudEdge hard
with four seats and five singles, the time inside `World.project` subtracted. Medians of 7 rounds
that take turns, so that a busy machine slows all alike.

Run: python benchmarks/protocols.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from policies.candidates import sampled_actions
from policies.protocols import protocol, protocol_names
from policies.records import Context, Proposal
from policies.table import RoomRules, SeatRules, lay_table
from policies.utility import ObjectiveSpec, UtilitySpec, round_significant
from tests.support.tables import context, settle
from world.model import History, World
from world.noise import channel, uniforms
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

SEATS, CANDIDATES, TABLES, ROUNDS = 4, 64, 20, 7


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
            begin = time.perf_counter()
            result = project(*arguments)
            self.projecting_s += time.perf_counter() - begin
            return result

        self.world.project = timed  # type: ignore[method-assign, assignment]

    def lay(self) -> None:
        """Lay one table."""
        lay_table(self.world, self.history, 1, self.seats, self.proposals, RoomRules())


def _microseconds(call: Callable[[], object], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats * 1e6


def main() -> dict[str, Any]:
    """Measure every protocol that runs on any world."""
    made = tables()
    names = [name for name in protocol_names() if not protocol(name).worlds]
    rules = {name: protocol(name) for name in names}
    room = Room()
    figures: dict[str, list[float]] = {name: [] for name in names}
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
            "unit": f"us a decision, {SEATS} seats x {CANDIDATES} candidates",
            "reference": "300 us",
            "ratio": round(statistics.median(times) / 300.0, 2),
            "n": ROUNDS,
        }
        for name, times in figures.items()
    }
    figures_out["lay_table"] = {
        "value": round(statistics.median(laying), 1),
        "unit": "us a cloudedge table, world.project left out",
        "n": ROUNDS,
    }
    return figures_out


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
