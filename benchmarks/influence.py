"""Shapley values of four personas over 32 seeds of cloudedge/hard: every coalition, every seed.

The time is that of the whole question: 32 × 16 episodes with the room's own look-ahead, and the
power of each seat over each decision of the full rooms. On a machine that does other work as well
the time on the clock says little: `cpu_s` is 32 times what a seed takes of CPU time in one
process, and half of it is what two free cores need, but for the start of two processes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.spec import EpisodeSpec
from orchestrator.study.influence.account import Question, influence_over_seeds

SEEDS = 32
JOBS = 2
SAMPLE = 3
"""Seeds whose CPU time is taken."""
TARGET_S = 40.0


def measure(seeds: int, jobs: int) -> tuple[float, float]:
    """Ask the question once; seconds on the clock, and CPU seconds of this process.

    Args:
        seeds: Seeds 0 to so many less one.
        jobs: Processes; with 1 everything is done in this one.
    """
    spec = EpisodeSpec(scenario="cloudedge/hard")
    clock, cpu = time.perf_counter(), time.process_time()
    influence_over_seeds(spec, range(seeds), Question(jobs=jobs))
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> dict[str, Any]:
    """Measure."""
    measure(1, 1)
    cpu_s = measure(SAMPLE, 1)[1] / SAMPLE * SEEDS
    seconds = measure(SEEDS, JOBS)[0]
    return {
        "influence_shapley_4x32": {
            "value": round(seconds, 1),
            "unit": f"s, {SEEDS} seeds × 16 coalitions, cloudedge/hard, {JOBS} processes",
            "reference": f"{TARGET_S:g} s",
            "ratio": round(TARGET_S / seconds, 2),
            "target": f"<= {TARGET_S:g} s on 2 free cores",
            "cpu_s": round(cpu_s, 1),
            "n": 1,
        }
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
