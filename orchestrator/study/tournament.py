"""Many paired episodes: scenarios × protocols × persona sets × seeds, and what they came to.

Every cell plays the same seeds, and a seed's storm does not depend on what anybody does, so cells
may be compared seed by seed. Rows come in one fixed order whichever finished first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.console.commands import typeable
from orchestrator.console.text import plain, without_secrets
from orchestrator.engine import Outcome, Play, map_episodes
from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.intervals import SCORE_RANGE, estimate, rate_of
from world.errors import ConfigError, WarRoomError

DEFAULT_SET = "default"
_RANGE = re.compile(r"(\d{1,19}):(\d{1,19})")
_NUMBER = re.compile(r"\d{1,19}")
_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MAX_CELLS = 10_000_000


@dataclass(frozen=True, slots=True)
class Grid:
    """What a tournament plays.

    Attributes:
        scenarios: Scenario names or paths.
        protocols: Protocol names.
        persona_sets: Role → persona, one dict per set; {} is the default room.
        seeds: Episode seeds.
    """

    scenarios: tuple[str, ...]
    protocols: tuple[str, ...]
    persona_sets: tuple[dict[str, str], ...]
    seeds: tuple[int, ...]

    def specs(self, base: EpisodeSpec) -> list[EpisodeSpec]:
        """One spec per cell, in row order: scenario, protocol, persona set, seed."""
        return [
            base.model_copy(
                update={
                    "scenario": scenario,
                    "protocol": protocol,
                    "personas": {**base.personas, **personas},
                    "seed": seed,
                }
            )
            for scenario in self.scenarios
            for protocol in self.protocols
            for personas in self.persona_sets
            for seed in self.seeds
        ]


def seeds_of(text: str) -> tuple[int, ...]:
    """Read ``A:B`` (A to B−1), single seeds, and lists of both.

    >>> seeds_of("0:3,10")
    (0, 1, 2, 10)

    Raises:
        ConfigError: The text is no list of seeds.
    """
    seeds: dict[int, None] = {}
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match and int(match[1]) < int(match[2]):
            first, end = int(match[1]), int(match[2])
            if end - first + len(seeds) > MAX_CELLS:
                raise ConfigError(
                    f"--seeds is {plain(text, 60)!r}",
                    f"that is more than {MAX_CELLS:,} seeds",
                    "For example --seeds 0:32",
                )
            seeds.update(dict.fromkeys(range(first, end)))
        elif _NUMBER.fullmatch(part):
            seeds[int(part)] = None
        else:
            raise ConfigError(
                f"--seeds is {plain(text, 60)!r}",
                "it must be A:B with A below B (A to B−1), or single seeds, joined by commas",
                "For example --seeds 0:32",
            )
    if max(seeds) >= 2**63:
        raise ConfigError(f"--seeds is {plain(text, 60)!r}", "a seed is below 2^63", "")
    return tuple(seeds)


def names_of(values: Iterable[str]) -> tuple[str, ...]:
    """Names given by repeating an option or joined by commas; each once, in order."""
    names = [part.strip() for value in values for part in value.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def persona_set(text: str, role_of: Callable[[str], str]) -> dict[str, str]:
    """Read one persona set: ``default``, ``ROLE=NAME`` pairs, or names that know their role.

    Args:
        text: Pairs or names joined by commas or ``+``.
        role_of: The role that a persona is made for, by its name or path.

    Raises:
        ConfigError: A role is malformed or named twice.
    """
    chosen: dict[str, str] = {}
    for part in map(str.strip, re.split(r"[,+]", text)):
        if part in {"", DEFAULT_SET}:
            continue
        role, equals, name = part.partition("=")
        if not equals:
            role, name = role_of(part), part
        if not _ROLE.fullmatch(role) or not name or role in chosen:
            raise ConfigError(
                f"--personas is {plain(text, 80)!r}",
                "a set is ROLE=NAME pairs joined by commas, each role once",
                "For example --personas default --personas cost=cost_hawk",
            )
        chosen[role] = name
    return chosen


def play_all(
    specs: Sequence[EpisodeSpec],
    jobs: int,
    play: Play,
    progress: Callable[[int, int], None],
) -> tuple[list[dict[str, Any]], bool]:
    """Play every cell, until all are done or Ctrl-C.

    Args:
        specs: Cells.
        jobs: Processes.
        play: Runs one cell.
        progress: Told (done, failed) after each cell.

    Returns:
        Rows in the order of `specs`, and whether they are all there.
    """
    rows: dict[int, dict[str, Any]] = {}
    failed = 0
    try:
        for place, outcome in map_episodes(specs, jobs, play):
            rows[place] = row_of(specs[place], outcome)
            failed += isinstance(outcome, WarRoomError)
            progress(len(rows), failed)
    except KeyboardInterrupt:
        # What was played is worth keeping: the caller writes it and says that it is a part.
        pass
    return [rows[place] for place in sorted(rows)], len(rows) == len(specs)


def row_of(spec: EpisodeSpec, outcome: Outcome) -> dict[str, Any]:
    """One row: what was played and what it came to, or why it could not be played."""
    row: dict[str, Any] = {
        "scenario": spec.scenario,
        "seed": spec.seed,
        "protocol": spec.protocol,
        "personas": dict(spec.personas),
    }
    if isinstance(outcome, EpisodeResult):
        return row | {
            "personas": dict(outcome.personas),
            "score": outcome.score,
            "reward_total": outcome.reward_total,
            "success": outcome.success,
            "success_any": outcome.success_any,
            "steps": outcome.steps,
            "stop_reason": outcome.stop_reason,
            "violations": list(outcome.violations),
            "metrics_end": dict(outcome.metrics_end),
            "trace": outcome.trace,
            "trace_sha": outcome.trace_sha,
            "error": None,
        }
    said = outcome.as_dict() | {"fix": typeable(outcome.fix)}
    parts = {key: without_secrets(plain(text)) for key, text in said.items()}
    return row | {"score": None, "reward_total": None, "success": None, "error": parts}


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per scenario, protocol and persona set: mean, standard error, 95 % interval and n.

    Intervals of score and reward are Student's, that of a score within the range of scores; that
    of the success rate is Wilson's (`orchestrator.study.intervals`). One row has none.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        personas = ",".join(f"{role}={name}" for role, name in row["personas"].items())
        groups.setdefault((row["scenario"], row["protocol"], personas), []).append(row)
    summary = []
    for (scenario, protocol, _), members in groups.items():
        played = [row for row in members if row["error"] is None]
        summary.append(
            {
                "scenario": scenario,
                "protocol": protocol,
                "personas": members[0]["personas"],
                "n": len(played),
                "errors": len(members) - len(played),
                "score": estimate([row["score"] for row in played], SCORE_RANGE),
                "reward_total": estimate([row["reward_total"] for row in played]),
                "success_rate": rate_of([bool(row["success"]) for row in played]),
            }
        )
    return summary
