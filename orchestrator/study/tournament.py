"""Many paired episodes: scenarios × protocols × persona sets × seeds, and what they came to.

Every cell plays the same seeds, and a seed's storm does not depend on what anybody does, so cells
may be compared seed by seed. Rows come in one fixed order whichever finished first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from orchestrator.console.commands import typeable
from orchestrator.console.text import plain, without_secrets
from orchestrator.engine import Outcome
from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.intervals import SCORE_RANGE, estimate, rate_of
from orchestrator.study.ledger import Ledger, cell_of
from orchestrator.study.seeds import MAX_CELLS, seeds_of
from world.errors import ConfigError

__all__ = [
    "DEFAULT_SET", "MAX_CELLS", "Grid", "names_of", "persona_set", "play_all", "row_of",
    "seeds_of", "set_name", "summarise",
]  # fmt: skip

DEFAULT_SET = "default"
_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,39}")


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


def set_name(personas: Mapping[str, str]) -> str:
    """A persona set on one line: ``default``, or what differs from the default room.

    >>> set_name({}), set_name({"cost": "cost_hawk"})
    ('default', 'cost=cost_hawk')
    """
    return ",".join(f"{role}={name}" for role, name in personas.items()) or DEFAULT_SET


def play_all(
    specs: Sequence[EpisodeSpec],
    play: Callable[[Sequence[EpisodeSpec]], Iterable[tuple[int, Outcome]]],
    progress: Callable[[int, int], None],
    ledger: Ledger | None = None,
) -> tuple[list[dict[str, Any]], bool]:
    """Play every cell that has no row yet, until all are done or Ctrl-C.

    Args:
        specs: Cells.
        play: Plays cells, on whatever engine; yields (place, outcome) as they are ready.
        progress: Told (done, failed) before the first cell and after each.
        ledger: Where rows are kept as they come; None keeps none.

    Returns:
        Rows in the order of `specs`, and whether they are all there.
    """
    cells = [cell_of(spec) for spec in specs]
    kept = ledger.rows if ledger else {}
    rows = {place: kept[cell] for place, cell in enumerate(cells) if cell in kept}
    failed = sum(row["error"] is not None for row in rows.values())
    todo = [place for place in range(len(specs)) if place not in rows]
    progress(len(rows), failed)
    try:
        with closing(iter(play([specs[place] for place in todo]))) as outcomes:  # type: ignore[type-var]
            for number, outcome in outcomes:
                place = todo[number]
                row = row_of(specs[place], outcome)
                if ledger:
                    ledger.append(cells[place], row)
                rows[place] = row
                failed += row["error"] is not None
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
        "set": set_name(spec.personas),
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
            "usage": outcome.usage.model_dump(),
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
        key = (row["scenario"], row["protocol"], row["set"])
        groups.setdefault(key, []).append(row)
    summary = []
    for (scenario, protocol, name), members in groups.items():
        played = [row for row in members if row["error"] is None]
        summary.append(
            {
                "scenario": scenario,
                "protocol": protocol,
                "set": name,
                "personas": (played or members)[0]["personas"],
                "n": len(played),
                "errors": len(members) - len(played),
                "score": estimate([row["score"] for row in played], SCORE_RANGE),
                "reward_total": estimate([row["reward_total"] for row in played]),
                "success_rate": rate_of([bool(row["success"]) for row in played]),
            }
        )
    return summary
