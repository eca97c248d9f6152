"""A whole room step on cloud inventories of 1,000, 10,000 and 100,000 resources.

Four rule personas observe, scan and propose; the room lays its table (candidates, belief,
projection), decides and commits to an in-process store. What a commit costs and how much it writes
is measured beside it on the world alone: three resources that stand far apart are marked.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from world.actions import Action
from world.model import History, Key
from world.scenarios.loader import load_scenario
from world.worlds.cloud import make

ROWS = (1_000, 10_000, 100_000)
SHIPPED = Path(__file__).resolve().parent.parent / "world/scenarios/cloud/medium.toml"
SEED = 3
STEPS = 8
SAMPLES, HORIZON = 8, 4


def sized(rows: int, folder: Path) -> Path:
    """A scenario file like cloud/medium with so many resources."""
    text = SHIPPED.read_text(encoding="utf-8")
    path = folder / f"rows-{rows}.toml"
    path.write_text(
        text.replace("rows = 60\n", f"rows = {rows}\n").replace("cloud/medium", f"rows-{rows}"),
        encoding="utf-8",
    )
    return path


def room_step(path: Path, **rules: Any) -> tuple[float, float]:
    """Milliseconds of CPU of a further step, and of everything up to the first step's end."""

    def episode(steps: int) -> float:
        start = time.process_time()
        run_episode(
            EpisodeSpec(
                scenario=str(path), seed=SEED, steps=steps, driver="loop", store="inprocess",
                out="", **rules,
            )
        )  # fmt: skip
        return time.process_time() - start

    episode(1)
    first = episode(1)
    return (episode(STEPS + 1) - first) / STEPS * 1e3, first * 1e3


def commit(rows: int) -> tuple[float, int]:
    """Milliseconds of CPU and bytes written by a step that marks three resources far apart."""
    base = load_scenario("cloud/medium")
    scenario = dataclasses.replace(base, params={**base.params, "rows": rows})
    world = make(scenario)
    state = world.reset(scenario, [SEED])
    ids = world.observe(state).inventory.ids  # type: ignore[union-attr]
    spent, written = [], []
    for step in range(10):
        places = (len(ids) // 3 + step, len(ids) // 2 + step, len(ids) - 1 - step)
        marks = tuple(Action("mark", ids[place]) for place in places)
        start = time.process_time()
        state, _, delta = world.step(state, marks)
        spent.append(time.process_time() - start)
        written.append(sum(len(cells.data) for cells in delta.cells))
    return statistics.median(spent) * 1e3, int(statistics.median(written))


def look_ahead(rows: int) -> float:
    """Milliseconds of CPU of a belief and 64 plans on 64 resources."""
    base = load_scenario("cloud/medium")
    scenario = dataclasses.replace(base, params={**base.params, "rows": rows})
    world = make(scenario)
    state, history = world.reset(scenario, [SEED]), History(scenario)
    spent = []
    for step in range(8):
        history.observations.append(world.observe(state))
        ids = history.now.inventory.ids  # type: ignore[union-attr]
        plans = [((Action("mark", ids[len(ids) // 2 + at]),),) for at in range(64)]
        key = Key(SEED, step)
        start = time.process_time()
        world.project(world.believe(history, SAMPLES, key), plans, HORIZON, None, key)
        spent.append(time.process_time() - start)
        state = world.step(state, plans[0][0])[0]
        history.decisions.append(plans[0][0])
    return statistics.median(spent) * 1e3


def main() -> dict[str, Any]:
    """Measure every size."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            path = sized(rows, Path(folder))
            step, first = room_step(path, samples=0, lookahead_steps=HORIZON)
            milliseconds, written = commit(rows)
            found[f"cloud_room_step_{rows}"] = {
                "value": round(step, 1),
                "unit": f"CPU ms a step: four rule personas, mean noise, {HORIZON} steps ahead",
                "first_step_ms": round(first, 1),
                "default_rules_ms": round(room_step(path)[0], 1),
                "target": "<= 150" if rows == ROWS[-1] else "",
                "n": STEPS,
            }
            found[f"cloud_commit_{rows}"] = {
                "value": round(milliseconds, 2),
                "unit": "CPU ms of a step of the world that marks three resources far apart",
                "bytes_written": written,
                "n": 10,
            }
            found[f"cloud_look_ahead_{rows}"] = {
                "value": round(look_ahead(rows), 1),
                "unit": f"CPU ms of a belief and 64 plans x {SAMPLES} samples x {HORIZON} steps",
                "n": 8,
            }
    return found


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
