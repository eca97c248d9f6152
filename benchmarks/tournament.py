"""Tournaments: what a pool of processes gains, and what pairing by seed is worth.

`tournament_pool`: the same cells of ``cloud/medium`` in one process and in a pool of as many as
there are CPUs (2 at most), interleaved; the ratio is of wall time. By default a sample is played
(4 protocols × 2 seeds × 6 steps); the whole is ``--seeds 0:32 --steps 0 --rounds 1``. Starting
the workers is part of what is measured, so that a short sample shows less than the whole.

`pairing_*`: on ``cloudedge/hard`` one thing is changed on the same noise, and the 95 % interval of
the difference is compared with that of the same number of unpaired episodes. One figure for each
kind of intervention; see ``--help`` for the number of seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.engine import Play, map_episodes, play
from orchestrator.episode import begin, claim_run, drive_to_end
from orchestrator.lease import lease
from orchestrator.room import build_room
from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.retouch import with_best
from orchestrator.study.seeds import seeds_of
from orchestrator.study.statistics import pairing
from orchestrator.study.tournament import row_of
from policies.records import Context
from world.store.base import StoreSettings
from world.store.open import open_store

PROTOCOLS = ("weighted_score", "plurality", "borda", "nash")
PROTOCOL_SWAPS = ("plurality", "borda", "nash", "leximin")
PERSONA_SWAP = {"cost": "cost_hawk"}
BALLOT_STEP = 5
BALLOT_SEAT = "cost"


def spec(seed: int, **fields: Any) -> EpisodeSpec:
    """One cell of a sweep: no files, no server."""
    return EpisodeSpec(seed=seed, driver="loop", store="inprocess", out="", **fields)


def pool_figure(seeds: Sequence[int], steps: int | None, rounds: int) -> dict[str, Any]:
    """Wall time in one process over wall time in the pool; rows are compared cell by cell."""
    cells = [
        spec(seed, scenario="cloud/medium", protocol=name, steps=steps)
        for name in PROTOCOLS
        for seed in seeds
    ]
    jobs = min(2, os.cpu_count() or 1)
    walls: dict[int, list[float]] = {1: [], jobs: []}
    rows: dict[int, list[Any]] = {}
    for _ in range(rounds):
        for count, found in walls.items():
            start = time.perf_counter()
            outcomes = dict(map_episodes(cells, count))
            found.append(time.perf_counter() - start)
            rows[count] = [row_of(cell, outcomes[place]) for place, cell in enumerate(cells)]
    assert rows[1] == rows[jobs], "rows depend on who played them"
    assert all(row["error"] is None for row in rows[1])
    ratio = statistics.median(a / b for a, b in zip(walls[1], walls[jobs], strict=True))
    return {
        "value": round(statistics.median(walls[jobs]), 2),
        "unit": f"s for {len(cells)} episodes of cloud/medium, pool of {jobs}",
        "reference": f"{statistics.median(walls[1]):.2f} s in one process",
        "ratio": round(ratio, 2),
        "target": ">= 1.7 on 2 CPUs that nobody else uses",
        "n": rounds,
    }


def turned(step: int, ctx: Context) -> Context:
    """One ballot changed: what a seat likes least at one step becomes what it likes best."""
    if step != BALLOT_STEP:
        return ctx
    values = ctx.utilities[ctx.seats.index(BALLOT_SEAT)]
    known = [place for place in range(len(values)) if math.isfinite(values[place])]
    worst = min(known, key=lambda place: float(values[place]))
    return with_best(ctx, BALLOT_SEAT, ctx.candidates[worst].id)


def one_ballot(cell: EpisodeSpec) -> EpisodeResult:
    """The episode with that one ballot changed, as ``counterfactual --ballot`` changes it."""
    room = build_room(cell)
    store = open_store(cell.store, StoreSettings())
    opening = claim_run(room, store)
    with lease(store, opening.run) as held:
        session = begin(room, store, held, opening)
        session.retouch = turned
        return drive_to_end(session, StoreSettings())


def pairing_figures(seeds: Sequence[int]) -> dict[str, Any]:
    """One figure for each kind of intervention."""
    base = rewards([spec(seed, scenario="cloudedge/hard") for seed in seeds])
    found: dict[str, Any] = {}
    for name in PROTOCOL_SWAPS:
        arm = [spec(seed, scenario="cloudedge/hard", protocol=name) for seed in seeds]
        found[f"pairing_protocol_{name}"] = figure(base, rewards(arm), "protocol", ">= 1.3")
    arm = [spec(seed, scenario="cloudedge/hard", personas=PERSONA_SWAP) for seed in seeds]
    found["pairing_persona"] = figure(base, rewards(arm), "persona swap", None)
    arm = [spec(seed, scenario="cloudedge/hard", absent=("cost",)) for seed in seeds]
    found["pairing_drop"] = figure(base, rewards(arm), "persona dropped", None)
    arm = [spec(seed, scenario="cloudedge/hard") for seed in seeds]
    found["pairing_ballot"] = figure(base, rewards(arm, one_ballot), "one ballot", None)
    return found


def rewards(cells: Sequence[EpisodeSpec], how: Play = play) -> list[float]:
    """Total reward of every cell."""
    outcomes = dict(map_episodes(cells, 1, how))
    totals = []
    for place in range(len(cells)):
        outcome = outcomes[place]
        if not isinstance(outcome, EpisodeResult):
            raise outcome
        totals.append(outcome.reward_total)
    return totals


def figure(a: Sequence[float], b: Sequence[float], kind: str, target: str | None) -> dict[str, Any]:
    """The ratio of intervals with its correlation."""
    found = pairing(a, b)
    assert found is not None
    return {
        "value": told(found.ratio),
        "unit": "width of the unpaired over the paired 95 % interval of the reward's difference",
        "reference": f"{kind}, {len(a)} seeds of cloudedge/hard on the same noise; correlation "
        f"{told(found.correlation)}; mean difference {mean_difference(a, b):+.1f} "
        f"± {found.paired_half_width:.1f} paired, ± {found.unpaired_half_width:.1f} unpaired",
        "ratio": told(found.ratio),
        "target": target,
        "n": len(a),
    }


def told(value: float | None) -> float | None:
    """Two digits, or nothing where all seeds came out alike."""
    return None if value is None else round(value, 2)


def mean_difference(a: Sequence[float], b: Sequence[float]) -> float:
    """Mean of b − a."""
    return math.fsum(y - x for x, y in zip(a, b, strict=True)) / len(a)


def main(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=("all", "pool", "pairing"), default="all")
    parser.add_argument("--seeds", default="0:2", help="of the pool's cells")
    parser.add_argument("--steps", type=int, default=6, help="of the pool's cells; 0: all")
    parser.add_argument("--rounds", type=int, default=3, help="of both ways to play them")
    parser.add_argument("--pairing-seeds", default="0:32", help="of each intervention")
    asked = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    if asked.part != "pairing":
        found["tournament_pool"] = pool_figure(
            seeds_of(asked.seeds), asked.steps or None, asked.rounds
        )
    if asked.part != "pool":
        found |= pairing_figures(seeds_of(asked.pairing_seeds))
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:]), indent=2))
