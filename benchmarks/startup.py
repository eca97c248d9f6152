"""How long ``--help`` takes, in processes of their own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 7


def seconds(*arguments: str) -> float:
    """Wall time of one start."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, env=os.environ
    )
    return time.perf_counter() - start


def main() -> dict[str, Any]:
    """Measure, interleaved with a bare interpreter."""
    seconds("run_warroom.py", "--help")
    helps, bares = [], []
    for _ in range(ROUNDS):
        helps.append(seconds("run_warroom.py", "--help"))
        bares.append(seconds("-c", "pass"))
    return {
        "help": {
            "value": round(statistics.median(helps), 3),
            "unit": "s",
            "reference": f"bare interpreter, {statistics.median(bares):.3f} s",
            "ratio": round(statistics.median(helps) / statistics.median(bares), 1),
            "target": "< 0.5 s",
            "n": ROUNDS,
        }
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
