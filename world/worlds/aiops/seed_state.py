"""States of the original's rules, and their one encoding."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from world.errors import WorldError
from world.model import Delta, Scenario, Snapshot
from world.worlds.aiops.adaptive import Memory
from world.worlds.aiops.menu import KINDS, METRICS
from world.worlds.aiops.seed_rules import DISTURBANCES, Vitals

STATUSES: Final = ("STABLE", "HEALTHY", "CRITICAL")
ENDS: Final = ("", "system_failure", "system_stabilized", "max_steps_exceeded")
_HIDDEN: Final = struct.Struct("<QQ")
"""Seed and words consumed, little-endian; the remembered rewards follow as JSON."""


@dataclass(frozen=True, slots=True)
class SeedRow:
    """One world.

    Attributes:
        seed: Episode seed.
        word: Hidden: words consumed of the generator.
        step: Steps done.
        vitals: The four metrics and the status word.
        last: Code of the last action; −1 at step 0.
        applied: Whether the last action took effect.
        shaken: Whether its failure made things slightly worse.
        repeated: Whether it repeated the one before.
        disturbance: What disturbed the last step, or "".
        ended: The environment's own word for its end, or "".
        memory: Rewards per action, where the scenario asks for that.
    """

    seed: int
    word: int
    step: int
    vitals: Vitals
    last: int = -1
    applied: bool = False
    shaken: bool = False
    repeated: bool = False
    disturbance: str = ""
    ended: str = ""
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class SeedState:
    """A batch of worlds.

    Attributes:
        scenario: The scenario.
        rows: One world each.
    """

    scenario: Scenario
    rows: tuple[SeedRow, ...]

    @property
    def size(self) -> int:
        """B."""
        return len(self.rows)


def stored_metrics(row: SeedRow) -> dict[str, float]:
    """Metrics and public scalars as floats."""
    codes = {
        "status": STATUSES.index(row.vitals.status),
        "last_action": row.last,
        "applied": row.applied,
        "shaken": row.shaken,
        "repeat_fraction": row.repeated,
        "disturbance": DISTURBANCES.index(row.disturbance) if row.disturbance else -1,
        "ended": ENDS.index(row.ended),
    }
    values = dict(zip(METRICS, row.vitals.values, strict=True))
    return values | {name: float(code) for name, code in codes.items()}


def stored_hidden(row: SeedRow) -> bytes:
    """Seed, words consumed and remembered rewards."""
    head = _HIDDEN.pack(row.seed, row.word)
    if row.memory is None:
        return head
    return head + json.dumps(row.memory, sort_keys=True, separators=(",", ":")).encode()


def delta_of(row: SeedRow) -> Delta:
    """What a step changed."""
    return Delta(stored_metrics(row), stored_hidden(row))


def snapshot(row: SeedRow) -> Snapshot:
    """One world in the store's encoding."""
    return Snapshot(row.step, stored_metrics(row), stored_hidden(row))


def restore(seed: int, stored: Snapshot) -> SeedRow:
    """The world that a snapshot was taken from.

    Raises:
        WorldError: The snapshot is of another kind of world, or of another seed's generator.
    """
    metrics = stored.metrics
    try:
        owner, word = _HIDDEN.unpack_from(stored.hidden)
        rest = stored.hidden[_HIDDEN.size :]
        memory = _memory(json.loads(rest)) if rest else None
        latency, error, cpu, memory_percent = (float(metrics[name]) for name in METRICS)
        last, disturbed = int(metrics["last_action"]), int(metrics["disturbance"])
        if not -1 <= last < len(KINDS) or not -1 <= disturbed < len(DISTURBANCES):
            raise ValueError(f"action code {last}, disturbance code {disturbed}")
        status = STATUSES[int(metrics["status"])]
        row = SeedRow(
            seed=owner,
            word=word,
            step=stored.step,
            vitals=Vitals(latency, error, cpu, memory_percent, status),
            last=last,
            applied=metrics["applied"] == 1.0,
            shaken=metrics["shaken"] == 1.0,
            repeated=metrics["repeat_fraction"] == 1.0,
            disturbance=DISTURBANCES[disturbed] if disturbed >= 0 else "",
            ended=ENDS[int(metrics["ended"])],
            memory=memory,
        )
    except (struct.error, KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise WorldError(
            f"the snapshot at step {stored.step} is not one of aiops/seed",
            f"{type(error).__name__}: {error}",
            "Attach the episode with the scenario that it was created with",
        ) from error
    if owner != seed:
        raise WorldError(
            f"the snapshot belongs to seed {owner}, not {seed}",
            "a place in one seed's generator means nothing in another's",
            f"Use seed {owner}, or an aiops/* scenario with counter-based noise",
        )
    return row


def _memory(raw: Mapping[str, list[float]]) -> Memory:
    return {kind: tuple(float(reward) for reward in past) for kind, past in raw.items()}
