"""Steps per second of CloudEdge through the `World` interface, as ratios to plain Python.

The reference is `_cloudedge_reference.py`: the same rules, allocation-free, on CPython's own
generator, one world. It is first checked against the product, reward for reward. Every case plays
whole 30-step episodes on hard with random plain actions and the full response in a crisis; actions
are prepared beforehand. Processor time of one core, medians of nine rounds in which the cases take
turns, so that a busy machine slows all alike; in a turn a case is played ten times. The seed's own
environment makes 77,000 steps/s on a machine of this class; that ratio is printed beside.

Run: python benchmarks/cloudedge.py
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

from benchmarks import _cloudedge_reference as reference
from world.actions import Action
from world.model import Encoded, History, Joint, Key, Plan
from world.scenarios.loader import load_scenario
from world.worlds.cloudedge import CloudEdge, make
from world.worlds.cloudedge.menu import FULL_RESPONSE
from world.worlds.cloudedge.rules import KINDS
from world.worlds.cloudedge.state import Many, Single
from world.worlds.cloudedge.tapes import CounterRows
from world.worlds.cloudedge.twister import TwisterRows

STEPS, EPISODES, ROUNDS, TIMES = 30, 100, 9, 10
BATCH = 4096
SEED_ENVIRONMENT_STEPS_PER_S = 77_000.0
JOINTS: tuple[Joint, ...] = (*((Action(kind),) for kind in KINDS[:4]), (FULL_RESPONSE,))
PICKS = np.random.Generator(np.random.Philox(key=[1, 0])).integers(0, 4, (STEPS, BATCH))
PLANS = [PICKS[:, episode].tolist() for episode in range(EPISODES)]

Case = tuple[Callable[[], object], int]


def play_reference() -> None:
    """A hundred episodes of the reference."""
    advance = reference.advance
    for seed, plan in enumerate(PLANS):
        reference.reset(seed)
        for pick in plan:
            advance(4 if reference.struck else pick)


def single_case(name: str) -> Case:
    """A hundred episodes, one world at a time, their noise drawn beforehand."""
    world = make(load_scenario(name))
    starts = [world.reset(world.scenario, [seed]) for seed in range(EPISODES)]
    for start in starts:
        world.step(start, JOINTS[0])

    def run() -> None:
        step = world.step
        for start, plan in zip(starts, PLANS, strict=True):
            state: Any = start
            for pick in plan:
                state, _, _ = step(state, JOINTS[4 if state.crisis else pick])

    return run, EPISODES * STEPS


def prepared(world: CloudEdge, first_seed: int) -> list[Encoded]:
    """The actions of a batch: what is picked depends on the crises, and they on no action."""
    state = world.reset(world.scenario, range(first_seed, first_seed + BATCH))
    targets = np.full((BATCH, 1), -1, dtype=np.int32)
    actions = []
    for step in range(STEPS):
        assert isinstance(state, Many)
        kinds = np.where(state.crisis, 4, PICKS[step]).astype(np.int32)
        params = np.zeros((BATCH, 1, 2))
        params[state.crisis, 0, 0] = 5.0
        actions.append(Encoded(kinds[:, None], targets, params))
        state, _ = world.step_batch(state, actions[-1])
    return actions


def batch_case(name: str, ready: bool) -> Case:
    """A batch of 4096 for 30 steps, with its noise drawn beforehand or in the measured time.

    Where it is not ready, every run resets the worlds and draws the noise of every world and step.
    """
    world = make(load_scenario(name))
    seeds = range(BATCH)
    actions = prepared(world, 0)
    kept = world.reset(world.scenario, seeds)
    assert isinstance(kept, Many)
    if ready and isinstance(kept.tape, CounterRows):
        kept.tape.draw(kept, STEPS)
        kept.tape.foresee(kept)
    elif ready and isinstance(kept.tape, TwisterRows):
        kept.tape.prepare(400)

    def run() -> None:
        state: Any = kept if ready else world.reset(world.scenario, seeds)
        for step in range(STEPS):
            state, _ = world.step_batch(state, actions[step])

    return run, BATCH * STEPS


def check_reference() -> None:
    """The yardstick must play the same game.

    Raises:
        SystemExit: A reward differs.
    """
    world = make(load_scenario("cloudedge/seed/hard"))
    for seed, plan in enumerate(PLANS):
        reference.reset(seed)
        state: Any = world.reset(world.scenario, [seed])
        for step, pick in enumerate(plan):
            code = 4 if state.crisis else pick
            state, outcomes, _ = world.step(state, JOINTS[code])
            if reference.advance(code) != outcomes.reward:
                raise SystemExit(f"the reference differs at seed {seed}, step {step + 1}")


def _rates(cases: dict[str, Case]) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, (run, steps) in cases.items():
            begin = time.process_time()
            for _ in range(TIMES):
                run()
            rates[name].append(TIMES * steps / (time.process_time() - begin))
    return rates


def project_us(plans: int) -> float:
    """Microseconds of believing and projecting one step on mean noise, median of rounds."""
    world = make(load_scenario("cloudedge/hard"))
    state = world.reset(world.scenario, [1])
    assert isinstance(state, Single)
    history, key = History(world.scenario), Key(1, 0)
    history.observations.append(world.observe(state))
    candidates: list[Plan] = [(JOINTS[number % 4],) for number in range(plans)]
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(500):
            world.project(world.believe(history, 0, key), candidates, 1, None, key)
        times.append((time.process_time() - begin) / 500 * 1e6)
    return statistics.median(times)


def main() -> dict[str, Any]:
    """Measure."""
    check_reference()
    cases: dict[str, Case] = {
        "reference": (play_reference, EPISODES * STEPS),
        "cloudedge_seed_single": single_case("cloudedge/seed/hard"),
        "cloudedge_native_single": single_case("cloudedge/hard"),
        "cloudedge_native_batch": batch_case("cloudedge/hard", ready=False),
        "cloudedge_native_batch_noise_ready": batch_case("cloudedge/hard", ready=True),
        "cloudedge_seed_batch": batch_case("cloudedge/seed/hard", ready=False),
        "cloudedge_seed_batch_words_ready": batch_case("cloudedge/seed/hard", ready=True),
    }
    rates = _rates(cases)
    bare = rates.pop("reference")
    figures: dict[str, Any] = {}
    for name, values in rates.items():
        ratios = [value / base for value, base in zip(values, bare, strict=True)]
        figures[name] = {
            "value": round(statistics.median(values)),
            "unit": "steps/s",
            "reference": f"plain Python, {statistics.median(bare):.0f} steps/s",
            "ratio": round(statistics.median(ratios), 2),
            "ratio_to_seed_environment": round(
                statistics.median(values) / SEED_ENVIRONMENT_STEPS_PER_S, 1
            ),
            "n": ROUNDS,
        }
    spent = project_us(5)
    figures["cloudedge_project_one_step"] = {
        "value": round(spent, 1),
        "unit": "µs for a belief and 5 plans on mean noise",
        "reference": f"one plain-Python step, {1e6 / statistics.median(bare):.2f} µs",
        "ratio": round(spent * statistics.median(bare) / 1e6, 1),
        "n": ROUNDS,
    }
    return figures


if __name__ == "__main__":
    print(json.dumps(main(), indent=2, ensure_ascii=False))
