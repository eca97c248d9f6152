"""Golden traces: short runs, kept as what was decided and what came of it.

``make golden`` writes them anew; the diff says what a change did to the decisions. Decisions are
compared exactly and numbers at nine significant digits, so that they hold on every processor;
bytes and hashes are not kept here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.room import build_room
from orchestrator.spec import EpisodeSpec
from tests.support.program import ROOT
from tests.support.runs import Played, play
from world.model import significant

FOLDER = ROOT / "tests" / "golden"
REGENERATE = "make golden"
MOST_BYTES = 200_000
"""All golden files together."""


@dataclass(frozen=True, slots=True)
class Golden:
    """One run that is kept.

    Attributes:
        scenario: Scenario name.
        protocol: Protocol name.
        seed: Episode seed.
        steps: Steps that are played.
    """

    scenario: str
    protocol: str
    seed: int = 1
    steps: int = 8

    @property
    def path(self) -> Path:
        """Where it is kept."""
        name = f"{self.scenario.replace('/', '.')}.s{self.seed}.{self.protocol}.jsonl"
        return FOLDER / name


SCENARIOS = (
    "cloudedge/hard", "finops/zombie_cleanup", "aiops/incident_response_automation", "cloud/medium",
)  # fmt: skip
"""One of each world."""
PROTOCOLS = ("weighted_score", "borda")
GOLDENS = tuple(Golden(scenario, rule) for scenario in SCENARIOS for rule in PROTOCOLS)


def record(golden: Golden) -> list[dict[str, Any]]:
    """Play one run and keep what counts: a header, one entry a step, and the end."""
    spec = EpisodeSpec(
        scenario=golden.scenario,
        protocol=golden.protocol,
        seed=golden.seed,
        steps=golden.steps,
        samples=4,
        lookahead_steps=4,
        driver="loop",
        store="inprocess",
    )
    played = play(build_room(spec))
    return [_header(golden), *_steps(played), _end(played)]


def _header(golden: Golden) -> dict[str, Any]:
    return {
        "scenario": golden.scenario,
        "protocol": golden.protocol,
        "seed": golden.seed,
        "steps": golden.steps,
    }


def _steps(played: Played) -> list[dict[str, Any]]:
    decided, applied, graded = (played.of(kind) for kind in ("decision", "applied", "grade"))
    found = []
    for choice, done, grade in zip(decided, applied, graded, strict=True):
        step = choice["step"]
        ballots = [event for event in played.of("ballot") if event["step"] == step]
        chosen = choice["data"]["chosen"]
        entry = {
            "step": step,
            "action": choice["data"]["action"],
            "chosen": chosen,
            "agreement": choice["data"]["agreement"],
            "utilities": {
                event["agent"]: event["data"].get("utilities", {}).get(chosen) for event in ballots
            },
            "statuses": [action["status"] for action in done["data"]["actions"]],
            "metrics": done["data"]["metrics"],
            "terms": grade["data"]["terms"],
        }
        found.append(_rounded(entry))
    return found


def _end(played: Played) -> dict[str, Any]:
    result = played.result
    end = {
        "stop_reason": result.stop_reason,
        "success": result.success,
        "reward_total": result.reward_total,
        "score": result.score,
    }
    rounded: dict[str, Any] = _rounded(end)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return significant(value) if isinstance(value, float) else value


def text_of(entries: list[dict[str, Any]]) -> str:
    """One JSON document a line."""
    return "".join(
        json.dumps(entry, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"
        for entry in entries
    )


def main() -> None:
    """Write every golden file anew, and remove those of runs that are no longer kept."""
    FOLDER.mkdir(exist_ok=True)
    kept = {golden.path for golden in GOLDENS}
    for path in FOLDER.glob("*.jsonl"):
        if path not in kept:
            path.unlink()
    for golden in GOLDENS:
        golden.path.write_text(text_of(record(golden)), encoding="utf-8")


if __name__ == "__main__":
    main()
