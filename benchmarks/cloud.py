"""The cloud world on one core: single steps, batched steps, beliefs and what-if.

Every figure is from one process and one run; ratios are of figures measured in turn. Seeds are
those of the published comparisons.
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

from world.actions import NOP, Action
from world.model import History, Key, Plan
from world.scenarios.loader import load_scenario
from world.worlds.cloud import make

ROUNDS = 9
SINGLE_STEPS = 40
BATCH = 1024
BATCH_STEPS = 4
PLANS, SAMPLES, HORIZON = 64, 8, 4
SEED = 3
DO_NOTHING = (Action(NOP),)


def timed(run: Callable[[], object]) -> float:
    """Seconds of CPU of this process."""
    start = time.process_time()
    run()
    return time.process_time() - start


class Bench:
    """One scenario, opened once."""

    def __init__(self, name: str) -> None:
        self.scenario = load_scenario(f"cloud/{name}")
        self.world = make(self.scenario)
        self.one = self.world.reset(self.scenario, [SEED])
        self.many = self.world.reset(self.scenario, list(range(BATCH)))
        self.nothing = self.world.encode(self.many, [DO_NOTHING] * BATCH)

    def single(self) -> float:
        """Single steps per second of CPU."""
        state = self.one

        def run() -> None:
            nonlocal state
            for _ in range(SINGLE_STEPS):
                state = self.world.step(state, DO_NOTHING)[0]
                if state.done:
                    state = self.one

        return SINGLE_STEPS / timed(run)

    def batched(self) -> float:
        """World-steps per second of CPU."""
        state = self.many

        def run() -> None:
            nonlocal state
            for _ in range(BATCH_STEPS):
                state = self.world.step_batch(state, self.nothing)[0]

        return BATCH * BATCH_STEPS / timed(run)

    def history(self, steps: int) -> History:
        """What a room that does nothing has seen."""
        history, state = History(self.scenario), self.one
        for _ in range(steps):
            history.observations.append(self.world.observe(state))
            history.decisions.append(DO_NOTHING)
            state = self.world.step(state, DO_NOTHING)[0]
        history.observations.append(self.world.observe(state))
        return history

    def look_ahead(self) -> tuple[float, float]:
        """Milliseconds of CPU of one belief and of one projection."""
        history = self.history(6)
        self.world.believe(self._before(history), SAMPLES, Key(SEED, 5))  # earlier steps are known
        catalogue = self.world.catalogue(history.now)
        places = np.linspace(0, len(catalogue) - 1, PLANS).astype(int)
        plans: list[Plan] = [((catalogue[int(place)],),) for place in places]
        key = Key(SEED, 6)
        found: list[Any] = []
        belief = timed(lambda: found.append(self.world.believe(history, SAMPLES, key)))
        ahead = timed(lambda: self.world.project(found[0], plans, HORIZON, None, key))
        return belief * 1e3, ahead * 1e3

    @staticmethod
    def _before(history: History) -> History:
        earlier = History(history.scenario)
        earlier.observations = history.observations[:-1]
        earlier.decisions = history.decisions[:-1]
        return earlier


def main() -> dict[str, Any]:
    """Measure, interleaved."""
    bench = Bench("medium")
    singles, batches, beliefs, projections = [], [], [], []
    for warm_up in (bench.single, bench.batched, bench.look_ahead):
        warm_up()
    for _ in range(ROUNDS):
        singles.append(bench.single())
        batches.append(bench.batched())
        belief, projection = bench.look_ahead()
        beliefs.append(belief)
        projections.append(projection)
    ratio = statistics.median(many / one for many, one in zip(batches, singles, strict=True))
    return {
        "cloud_single_steps": _row(singles, "steps/s, cloud/medium, B = 1", ">= 1000"),
        "cloud_batched_steps": {
            **_row(batches, f"world-steps/s, cloud/medium, B = {BATCH}", ">= 100000"),
            "reference": "single steps in the same run",
            "ratio": round(ratio, 1),
        },
        "cloud_belief": _row(
            beliefs, f"CPU ms for one more step of the filter and {SAMPLES} states", "<= 10"
        ),
        "cloud_what_if": _row(
            projections,
            f"CPU ms for {PLANS} plans x {SAMPLES} samples x {HORIZON} steps",
            "<= 25",
        ),
    }


def _row(values: list[float], unit: str, target: str) -> dict[str, Any]:
    return {
        "value": round(statistics.median(values), 2),
        "unit": unit,
        "target": target,
        "n": len(values),
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
