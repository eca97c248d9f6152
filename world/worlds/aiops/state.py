"""States of the native world: a batch in arrays, and their one encoding."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from world.errors import WorldError
from world.model import Delta, Scenario, Snapshot
from world.worlds.aiops.diagnosis import doubt_percent, posterior_of
from world.worlds.aiops.events import N_EVENTS
from world.worlds.aiops.menu import METRICS, NATIVE_KINDS, REMEDIES
from world.worlds.aiops.seed_rules import DISTURBANCES
from world.worlds.aiops.settings import NativeSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

OPEN, STABILISED, FAILED = 0, 1, 2
"""How an incident stands."""
STOP_REASONS: Final = ("", "system_stabilized", "system_failure")


@dataclass(frozen=True, slots=True)
class State:
    """B worlds.

    Attributes:
        scenario: The scenario.
        settings: Its numbers.
        seeds: uint64 [B].
        replicas: int64 [B]; 0 is the truth, 1… are projection samples.
        steps: int64 [B], steps done.
        metrics: float64 [B, 4]: latency (ms), errors (0–1), CPU (%), memory (%).
        cost_usd_per_hour: float64 [B].
        cause: int64 [B], hidden: code of the true event.
        alert: int64 [B], code of the event that the alert names.
        applied_at: int64 [B, 7], the last step at which each remedy took effect; 0 is never.
        harms: int64 [B], how often harm was done.
        last: int64 [B], code of the last action; −1 at step 0.
        worked: bool [B], whether the last action took effect.
        harmed: bool [B], whether the last action did harm.
        repeated: bool [B], whether the last action repeated the one before.
        reading: int64 [B], label code of the last answer; −1 is none.
        disturbance: int64 [B], code of what disturbed the last step; −1 is nothing.
        verdict: int64 [B], `OPEN`, `STABILISED` or `FAILED`.
        log_weights: float64 [B, 12], log posterior of the events up to a constant; worked out
            from what is observed alone.
    """

    scenario: Scenario
    settings: NativeSettings
    seeds: NDArray[np.uint64]
    replicas: Ints
    steps: Ints
    metrics: Floats
    cost_usd_per_hour: Floats
    cause: Ints
    alert: Ints
    applied_at: Ints
    harms: Ints
    last: Ints
    worked: Flags
    harmed: Flags
    repeated: Flags
    reading: Ints
    disturbance: Ints
    verdict: Ints
    log_weights: Floats

    @property
    def size(self) -> int:
        """B."""
        return int(self.seeds.shape[0])

    @property
    def over(self) -> Flags:
        """Whether each episode has ended, bool [B]."""
        ended: Flags = (self.steps >= self.settings.horizon) | (self.verdict != OPEN)
        return ended

    def rows(self, index: NDArray[np.intp]) -> State:
        """The worlds at these places, in this order, repeats allowed."""
        return State(
            self.scenario,
            self.settings,
            *(getattr(self, name)[index] for name in _ARRAYS),
        )


_ARRAYS: Final = (
    "seeds",
    "replicas",
    "steps",
    "metrics",
    "cost_usd_per_hour",
    "cause",
    "alert",
    "applied_at",
    "harms",
    "last",
    "worked",
    "harmed",
    "repeated",
    "reading",
    "disturbance",
    "verdict",
    "log_weights",
)

_HIDDEN: Final = struct.Struct(f"<q{N_EVENTS}d")
"""The true event and the log weights, little-endian."""

_LIMITS: Final = {
    "alert": (0, N_EVENTS - 1),
    "harms": (0, 2**31),
    "last": (-1, len(NATIVE_KINDS) - 1),
    "reading": (-1, 63),
    "disturbance": (-1, len(DISTURBANCES) - 1),
    "verdict": (OPEN, FAILED),
}
_STORED: Final = {
    "alert": "alert",
    "harms": "harms",
    "last": "last_action",
    "reading": "reading",
    "disturbance": "disturbance",
    "verdict": "verdict",
    "worked": "last_applied",
    "harmed": "last_harmful",
    "repeated": "repeat_fraction",
}

_APPLIED_AT: Final = tuple(f"applied_at.{remedy}" for remedy in REMEDIES)


def doubt_of(state: State, row: int) -> float:
    """Doubt about the remedy in one world, percent, to 6 decimals: below that it is rounding."""
    return round(float(doubt_percent(posterior_of(state.log_weights[row]))), 6)


def stored_metrics(state: State, row: int) -> dict[str, float]:
    """Metrics and public scalars as floats."""
    values = {name: float(state.metrics[row, code]) for code, name in enumerate(METRICS)}
    values["cost_usd_per_hour"] = float(state.cost_usd_per_hour[row])
    values["doubt_percent"] = doubt_of(state, row)
    for field, name in _STORED.items():
        values[name] = float(getattr(state, field)[row])
    for name, step in zip(_APPLIED_AT, state.applied_at[row].tolist(), strict=True):
        values[name] = float(step)
    return values


def stored_hidden(state: State, row: int) -> bytes:
    """The hidden cause, and the exact log weights behind the public posterior."""
    return _HIDDEN.pack(int(state.cause[row]), *state.log_weights[row].tolist())


def delta_of(state: State) -> Delta:
    """What a step of one world changed."""
    return Delta(stored_metrics(state, 0), stored_hidden(state, 0))


def snapshot(state: State, row: int) -> Snapshot:
    """One world in the store's encoding."""
    return Snapshot(int(state.steps[row]), stored_metrics(state, row), stored_hidden(state, row))


def restore(scenario: Scenario, settings: NativeSettings, seed: int, stored: Snapshot) -> State:
    """The state (B = 1) that a snapshot was taken from.

    Raises:
        WorldError: The snapshot is of another kind of world.
    """
    try:
        cause, *weights = _HIDDEN.unpack(stored.hidden)
        if not 0 <= cause < N_EVENTS:
            raise ValueError(f"event code {cause}")
        arrays: dict[str, Any] = {}
        for field, name in _STORED.items():
            value = stored.metrics[name]
            low, high = _LIMITS.get(field, (0, 1))
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}")
            kind = np.int64 if field in _LIMITS else np.bool_
            arrays[field] = np.array([value]).astype(kind)
        metrics = np.array([[stored.metrics[name] for name in METRICS]])
        cost = np.array([stored.metrics["cost_usd_per_hour"]])
        applied_at = np.array([[stored.metrics[name] for name in _APPLIED_AT]]).astype(np.int64)
    except (struct.error, KeyError, ValueError, TypeError) as error:
        raise WorldError(
            f"the snapshot at step {stored.step} is not one of a native aiops world",
            f"{type(error).__name__}: {error}",
            "Attach the episode with the scenario that it was created with",
        ) from error
    return State(
        scenario=scenario,
        settings=settings,
        seeds=np.array([seed], dtype=np.uint64),
        replicas=np.zeros(1, dtype=np.int64),
        steps=np.array([stored.step], dtype=np.int64),
        metrics=metrics,
        cost_usd_per_hour=cost,
        cause=np.array([cause], dtype=np.int64),
        applied_at=applied_at,
        log_weights=np.array([weights]),
        **arrays,
    )
