"""How good the default room is: mean reward or score per preset, with its standard error.

Rule personas, default protocol and defaults of each world; loop driver, in-process store. No seat
ever sees a reward. Beside the quality of its decisions stands what one costs in CPU time.

``--seeds A:B`` and ``--presets NAME …`` play something else than the published cells.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.episode import run_episode
from orchestrator.room import build_room
from orchestrator.spec import EpisodeSpec
from orchestrator.study.tournament import seeds_of
from policies.records import Ask, Request
from policies.table import lay_table
from world.model import History


class Preset(NamedTuple):
    """What one preset is measured by.

    Attributes:
        reward: Whether the value is the episode's reward; else its score.
        seeds: Seeds played where none are named.
        target: The mean that a good room reaches.
        reference: What others reach.
    """

    reward: bool
    seeds: str
    target: float
    reference: str


_FINOPS = Preset(False, "200:216", 0.9, "score, best possible 0.99")
_AIOPS = Preset(False, "200:232", 0.9, "score, best possible 0.99")
PRESETS = {
    "cloudedge/seed/hard": Preset(True, "0:200", 645.0, "boardroom 6, Q 157, planner 677"),
    "cloudedge/seed/medium": Preset(True, "0:200", 950.0, "boardroom 341, Q 450, planner 961"),
    "cloudedge/seed/easy": Preset(True, "0:200", 1255.0, "boardroom 762, Q 664, planner 1250"),
    "finops/zombie_cleanup": _FINOPS,
    "finops/right_sizing": _FINOPS,
    "finops/production_stability": _FINOPS,
    "aiops/incident_response_automation": _AIOPS,
}
_DECISION_EPISODES = 3


def quality(name: str, preset: Preset, seeds: str) -> dict[str, Any]:
    """Play one preset."""
    results = [
        run_episode(EpisodeSpec(scenario=name, seed=seed, driver="loop", store="inprocess", out=""))
        for seed in seeds_of(seeds)
    ]
    values = [result.reward_total if preset.reward else result.score for result in results]
    count = len(values)
    mean = math.fsum(values) / count
    sem = statistics.stdev(values) / math.sqrt(count) if count > 1 else None
    return {
        "value": round(mean, 4),
        "unit": "points an episode" if preset.reward else "score",
        "sem": None if sem is None else round(sem, 4),
        "success_at_end": round(sum(result.success for result in results) / count, 4),
        "violations": sum(len(result.violations) for result in results),
        "seeds": seeds,
        "reference": preset.reference,
        "ratio": round(mean / preset.target, 4),
        "target": f">= {preset.target:g}",
        "n": count,
    }


def decision_ms(name: str) -> list[float]:
    """CPU time of every decision of a few episodes: proposals, table and protocol."""
    room = build_room(EpisodeSpec(scenario=name, driver="loop", store="inprocess", out=""))
    world, spent = room.world, []
    for seed in range(_DECISION_EPISODES + 1):
        state, history = world.reset(room.scenario, [seed]), History(room.scenario)
        for step in range(room.scenario.horizon):
            history.observations.append(world.observe(state))
            start = time.process_time()
            proposals = {
                seat: persona.answer(  # type: ignore[union-attr]
                    Request(Ask(seat, "propose"), step, history.now, history, world)
                ).proposals
                for seat, persona in room.personas.items()
            }
            table = lay_table(world, history, seed, room.seats, proposals, room.rules)
            try:
                next(room.protocol.decide(table.context))
            except StopIteration as done:
                decision = done.value
            if seed:  # the first episode warms up
                spent.append(1000.0 * (time.process_time() - start))
            state, _, _ = world.step(state, decision.chosen.now)
            history.decisions.append(decision.chosen.now)
    return spent


def main(names: list[str], seeds: str) -> dict[str, Any]:
    """Measure every preset that was asked for, and what a decision costs."""
    figures: dict[str, Any] = {}
    for name in names:
        preset = PRESETS[name]
        figures[f"room_quality {name}"] = quality(name, preset, seeds or preset.seeds)
    for name in ("cloudedge/hard", "cloudedge/seed/hard"):
        spent = decision_ms(name)
        figures[f"room_decision {name}"] = {
            "value": round(statistics.median(spent), 3),
            "unit": "ms of CPU time a decision",
            "mean": round(statistics.fmean(spent), 3),
            "largest": round(max(spent), 3),
            "reference": "5 ms",
            "ratio": round(statistics.median(spent) / 5.0, 3),
            "target": "<= 5 ms",
            "n": len(spent),
        }
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", nargs="*", default=list(PRESETS), choices=list(PRESETS))
    parser.add_argument("--seeds", default="", help="A:B instead of the published seeds")
    asked = parser.parse_args()
    print(json.dumps(main(asked.presets, asked.seeds), indent=2))
