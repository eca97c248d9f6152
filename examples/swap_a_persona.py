"""Where does another persona change what is decided, and what does it cost?

    python examples/swap_a_persona.py

Question: the cost seat of `cloudedge/hard` is taken by its hawk. In which step does the room first
decide otherwise, and how much total reward does that cost?
Method: eight seeds, each played twice on the same storm; the difference per seed, its mean with a
95 % Student interval and an exact sign-flip test; beside its standard error that of two unpaired
samples: the gap is what pairing bought. Seeds 0-7 are for examples: report on seeds from 5000 on.
Expected: the hawk costs reward. The rooms part in the first step or the second, no storm ends
better and one ends alike; the mean is about -28 with an interval below zero (p = 0.016). Unpaired,
the standard error would be two and a half times as large, and the same eight storms would show
nothing. A result on eight example seeds is a hypothesis, not a finding.
"""

from __future__ import annotations

import math
import sys
import tempfile
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.engine import map_episodes
from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.intervals import estimate
from orchestrator.study.recorded import recorded

SEEDS = range(8)
SWAP = {"cost": "cost_hawk"}


def play(folder: str) -> list[tuple[EpisodeResult, EpisodeResult]]:
    """The default room and the changed one, per seed."""
    common = {"scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": folder}
    rooms: list[dict[str, str]] = [{}, SWAP]
    cells = [(seed, personas) for seed in SEEDS for personas in rooms]
    specs = [EpisodeSpec.model_validate({**common, "seed": s, "personas": p}) for s, p in cells]
    done = dict(map_episodes(specs, jobs=2))
    played = [r for place in range(len(specs)) if isinstance(r := done[place], EpisodeResult)]
    if len(played) < len(specs):
        raise SystemExit("an episode failed")
    return list(zip(played[0::2], played[1::2], strict=True))


def parted(before: EpisodeResult, after: EpisodeResult) -> int | None:
    """The first step in which something else was done; None where there is none."""
    steps = zip(recorded(before.trace).steps, recorded(after.trace).steps, strict=True)
    return next((one.step for one, other in steps if one.action != other.action), None)


def sign_flip(differences: list[float]) -> float:
    """Two-sided exact p: how often random signs would give a sum at least as far from 0."""
    seen = abs(sum(differences)) - 1e-9
    flips = list(product((-1, 1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(flip, differences, strict=True)) for flip in flips]
    return sum(abs(total) >= seen for total in sums) / len(flips)


def main() -> None:
    """Play, compare, tell."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = play(folder)
        print("seed  first other step  default  with the hawk  difference in reward")
        for seed, (a, b) in zip(SEEDS, pairs, strict=True):
            cells = f"{parted(a, b) or '-':>16}  {a.reward_total:7.1f}  {b.reward_total:13.1f}"
            print(f"{seed:4}  {cells}  {b.reward_total - a.reward_total:+20.1f}")
    before, after = ([pair[side].reward_total for pair in pairs] for side in (0, 1))
    gaps = [two - one for one, two in zip(before, after, strict=True)]
    paired, unpaired = estimate(gaps), math.hypot(estimate(before)["se"], estimate(after)["se"])
    low, high = paired["interval"]
    print(f"mean difference {paired['mean']:+.1f}, 95 % [{low:+.1f}, {high:+.1f}], n = {len(gaps)}")
    print(f"sign flip p = {sign_flip(gaps):.3f}")
    print(f"standard error {paired['se']:.1f} paired, {unpaired:.1f} unpaired")


if __name__ == "__main__":
    main()
