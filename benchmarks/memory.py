"""How much an episode of 3,000 steps grows this process, with the embedded store.

Growth is resident memory after the episode less resident memory after a short one that warmed
everything up. Each round is a process of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

STEPS = 3000
ROUNDS = 5


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def grow(driver: str, folder: Path) -> float:
    """MB grown from a 30-step to a 3,000-step episode."""
    from orchestrator.episode import run_episode
    from orchestrator.spec import EpisodeSpec
    from world.store.base import StoreSettings

    settings = StoreSettings(state_dir=str(folder / "state"))

    def run(steps: int) -> None:
        spec = EpisodeSpec(driver=driver, steps=steps, out=str(folder / "runs"))  # type: ignore[arg-type]
        run_episode(spec, settings=settings)

    run(30)
    before = resident_mb()
    run(STEPS)
    return resident_mb() - before


def main() -> dict[str, Any]:
    """Measure both drivers."""
    found: dict[str, list[float]] = {"loop": [], "graph": []}
    for _ in range(ROUNDS):
        for driver, values in found.items():
            done = subprocess.run(
                [sys.executable, __file__, driver], check=True, capture_output=True, text=True
            )
            values.append(float(done.stdout))
    return {
        f"memory_{driver}": {
            "value": round(statistics.median(values), 1),
            "unit": f"MB grown over {STEPS} steps",
            "reference": "20 MB",
            "ratio": round(statistics.median(values) / 20.0, 2),
            "target": "< 20 MB",
            "n": ROUNDS,
        }
        for driver, values in found.items()
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory(prefix="wr-", ignore_cleanup_errors=True) as scratch:
            print(grow(sys.argv[1], Path(scratch)))
    else:
        print(json.dumps(main(), indent=2))
