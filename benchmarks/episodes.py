"""Whole episodes on one core: boardroom and weighted score, loop driver, in-process store.

Every step is recorded and hashed; no files are written.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec

EPISODES = 20
ROUNDS = 7
CASES: dict[str, dict[str, Any]] = {
    "episodes_boardroom": {"scenario": "cloudedge/seed/hard", "protocol": "cloudedge_boardroom"},
    "episodes_weighted_score_h1": {"scenario": "cloudedge/hard"},
}


def rate(fields: dict[str, Any], first_seed: int) -> float:
    """Episodes a second of CPU time."""
    start = time.process_time()
    for seed in range(first_seed, first_seed + EPISODES):
        run_episode(
            EpisodeSpec(
                seed=seed, driver="loop", store="inprocess", out="",
                lookahead_steps=1, samples=0, **fields,
            )
        )  # fmt: skip
    return EPISODES / (time.process_time() - start)


def main() -> dict[str, Any]:
    """Measure, interleaved."""
    for fields in CASES.values():
        rate(fields, 0)
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for number in range(ROUNDS):
        for name, fields in CASES.items():
            found[name].append(rate(fields, number * EPISODES))
    return {
        name: {
            "value": round(statistics.median(values), 1),
            "unit": "episodes/s on one core, 30 steps each, H = 1",
            "reference": "60 episodes/s",
            "ratio": round(statistics.median(values) / 60.0, 2),
            "target": ">= 60 episodes/s",
            "n": ROUNDS,
        }
        for name, values in found.items()
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
