"""The default room on the cloud against a blind planner that sees no more than the room does.

Both play the same raw seeds. *Held* is the share of the steps after step 12 in which every target
held. Episodes are kept in ``--rows`` as they end, so that a run that was stopped goes on where it
was. War takes most of the time.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.study.baselines import OBJECTIVES, Kept, measure
from orchestrator.study.statistics import holm, sign_flip
from orchestrator.study.tournament import seeds_of
from world.scenarios.loader import load_scenario

TARGET = 0.9
SEEDS = {"cloud/easy": "0:8", "cloud/medium": "0:8", "cloud/hard": "0:2", "cloud/war": "0:1"}
_SELFISH = tuple(f"selfish {objective}" for objective in OBJECTIVES)


def figures(name: str, seeds: Sequence[int], rows: Path, selfish: bool) -> dict[str, Any]:
    """Room against planner on one preset, and against every selfish baseline where asked."""
    scenario = load_scenario(name)
    kept = Kept(rows, scenario)
    others = _SELFISH if selfish else ()
    measure(scenario, seeds, ("room", "lookahead", *others), kept, lambda line: None)
    held = {
        policy: [kept.rows[policy, seed].held_fraction for seed in seeds]
        for policy in ("room", "lookahead", *others)
    }
    room, planner = statistics.fmean(held["room"]), statistics.fmean(held["lookahead"])
    found: dict[str, Any] = {
        "value": round(room, 4),
        "unit": "share of steps with every target held",
        "sem": _sem(held["room"]),
        "reference": f"blind planner {planner:.3f} ± {_sem(held['lookahead'])}",
        "ratio": round(room / planner, 3) if planner else None,
        "target": f">= {TARGET:g}",
        "harm": sum(kept.rows["room", seed].harms for seed in seeds),
        "score": round(statistics.fmean(kept.rows["room", seed].total for seed in seeds), 4),
        "seeds": f"{seeds[0]}:{seeds[-1] + 1}",
        "n": len(seeds),
    }
    if selfish:
        gaps = {
            policy: [one - other for one, other in zip(held["room"], held[policy], strict=True)]
            for policy in others
        }
        found["above_selfish"] = _above(gaps)
    return found


def _sem(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return round(statistics.stdev(values) / math.sqrt(len(values)), 4)


def _above(gaps: dict[str, list[float]]) -> dict[str, Any]:
    """Mean paired difference and adjusted two-sided p of every comparison."""
    raw: dict[str, float] = {}
    for policy, values in gaps.items():
        test = sign_flip(values, f"room - {policy}")
        raw[policy] = 1.0 if test is None else test.p
    adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))
    return {
        policy: {"difference": round(statistics.fmean(values), 4), "p_holm": adjusted[policy]}
        for policy, values in gaps.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", nargs="*", default=list(SEEDS), choices=list(SEEDS))
    parser.add_argument("--seeds", default="", help="A:B instead of a few")
    parser.add_argument("--rows", type=Path, default=Path("build/cloud_room.jsonl"))
    parser.add_argument("--selfish", action="store_true", help="play the selfish baselines too")
    asked = parser.parse_args()
    measured = {
        f"cloud_room {name}": figures(
            name, seeds_of(asked.seeds or SEEDS[name]), asked.rows, asked.selfish
        )
        for name in asked.presets
    }
    print(json.dumps(measured, indent=2))
