"""What an AI-Ops scenario says, checked: numbers and names out of ``params`` and ``targets``."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from world.errors import ScenarioError
from world.model import Scenario
from world.worlds.aiops.adaptive import ADAPTIVE, Adaptive
from world.worlds.aiops.events import EVENTS
from world.worlds.aiops.menu import KINDS, METRICS
from world.worlds.aiops.seed_rules import SITUATIONS

PRIORITIES: Final = {"high": 0.99, "medium": 0.6, "low": 0.3}
"""Priority word → its worth, 0–1, as the original documents it."""
PRIORITY_SHARE, REMEDY_SHARE, SPEED_SHARE = 0.4, 0.4, 0.2
"""Shares of the native score: priority of the task, class of the remedy, speed."""
DIFFICULTIES: Final = {"easy": 0.0, "medium": 0.15, "hard": 0.30}
"""Difficulty word → probability of a disturbance in a step."""

_MOST_EXTRA_DRAWS = 64


@dataclass(frozen=True, slots=True)
class NativeSettings:
    """The numbers of a native scenario.

    Attributes:
        horizon: Steps in an episode.
        targets: Metric index → strict upper bound.
        weights: One weight per event, in table order; the truth is drawn by them.
        priority: Word of `PRIORITIES`.
        difficulty: Word of `DIFFICULTIES`.
        disturbance_fraction: Probability of a disturbance in a step, 0–1.
        adaptive: ``off`` or ``table``.
        success_fraction: Success rate of earlier episodes for the table, 0–1.
    """

    horizon: int
    targets: tuple[tuple[int, float], ...]
    weights: tuple[float, ...]
    priority: str
    difficulty: str
    disturbance_fraction: float
    adaptive: Adaptive
    success_fraction: float


@dataclass(frozen=True, slots=True)
class SeedSettings:
    """The numbers of a scenario of the original's rules.

    Attributes:
        horizon: Steps in an episode.
        targets: Metric name → strict upper bound.
        situation: The fixed situation, or "" for the one that is drawn.
        event: The event whose fixed state an episode starts from, or "" for a reset.
        extra_draws_per_step: Foreign draws before each step: what a language-model client that
            retries takes from the generator that it shares.
        ends_when_done: Whether the environment's own end ends the episode; the original's event
            runner ignores it.
        adaptive: ``off``, ``table`` or ``memory``.
        success_fraction: Success rate of earlier episodes for the table, 0–1.
        memory: Rewards remembered at the start, for ``memory``.
    """

    horizon: int
    targets: Mapping[str, float]
    situation: str
    event: str
    extra_draws_per_step: int
    ends_when_done: bool
    adaptive: Adaptive
    success_fraction: float
    memory: tuple[tuple[str, tuple[float, ...]], ...]


class _Reader:
    """Reads one scenario's params; every complaint names the field."""

    def __init__(self, scenario: Scenario, known: Collection[str]) -> None:
        self.scenario = scenario
        self.params = scenario.params
        for name in scenario.params:
            if name not in known:
                raise self.wrong(f"params.{name}", scenario.params[name], "not known here", known)
        for name, value in scenario.targets.items():
            if name not in METRICS:
                raise self.wrong(f"targets.{name}", value, "no such metric", METRICS)
        if scenario.resources:
            raise ScenarioError(
                f"scenario {scenario.name!r} gives resources",
                "an aiops world has no inventory",
                "Leave [[resource]] out",
            )

    def wrong(
        self, where: str, value: Any, why: str, choices: Collection[str] = ()
    ) -> ScenarioError:
        fix = f"Choose from {', '.join(sorted(choices))}" if choices else "Correct that field"
        return ScenarioError(f"scenario {self.scenario.name!r}: {where} is {value!r}", why, fix)

    def word(self, name: str, choices: Collection[str], default: str | None = None) -> str:
        value = self.params.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise self.wrong(f"params.{name}", value, "that word is not known", choices)
        return value

    def fraction(self, name: str, default: float) -> float:
        value = self.params.get(name, default)
        return self.number(f"params.{name}", value, 0.0, 1.0)

    def number(self, where: str, value: Any, low: float, high: float) -> float:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not low <= value <= high:
            raise self.wrong(where, value, f"it must be a number from {low:g} to {high:g}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.params.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(f"params.{name}", value, "it must be true or false")
        return value

    def table(self, name: str) -> Mapping[str, Any]:
        value = self.params.get(name, {})
        if not isinstance(value, dict):
            raise self.wrong(f"params.{name}", value, "it must be a table")
        return value

    def adaptive(self, allowed: tuple[Adaptive, ...]) -> tuple[Adaptive, float]:
        word = self.word("adaptive", allowed, "off")
        chosen = next(name for name in allowed if name == word)
        if word != "table" and "success_fraction" in self.params:
            raise self.wrong(
                "params.success_fraction",
                self.params["success_fraction"],
                'only adaptive = "table" reads it',
            )
        return chosen, self.fraction("success_fraction", 0.5)


_NATIVE = (
    "task",
    "events",
    "priority",
    "difficulty",
    "disturbance_fraction",
    "adaptive",
    "success_fraction",
)
_MOST_WEIGHT = 1e6


def native_settings(scenario: Scenario) -> NativeSettings:
    """Read and check a native scenario.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """
    reader = _Reader(scenario, _NATIVE)
    if not scenario.targets:
        raise ScenarioError(
            f"scenario {scenario.name!r} has no targets",
            "an incident is resolved when every target holds",
            f"Give at least one of {', '.join(METRICS)}",
        )
    names = [event.name for event in EVENTS]
    given = reader.table("events")
    for name, value in given.items():
        if name not in names:
            raise reader.wrong(f"params.events.{name}", value, "there is no such event", names)
    weights = tuple(
        reader.number(f"params.events.{name}", given.get(name, 0.0), 0.0, _MOST_WEIGHT)
        for name in names
    )
    if sum(weights) <= 0.0:
        raise reader.wrong("params.events", dict(given), "no event has a weight", names)
    task = scenario.params.get("task", "")
    if not isinstance(task, str):
        raise reader.wrong("params.task", task, "it must be a name")
    difficulty = reader.word("difficulty", DIFFICULTIES)
    adaptive, success = reader.adaptive(("off", "table"))
    return NativeSettings(
        horizon=scenario.horizon,
        targets=tuple(
            (METRICS.index(name), float(bound)) for name, bound in scenario.targets.items()
        ),
        weights=weights,
        priority=reader.word("priority", PRIORITIES),
        difficulty=difficulty,
        disturbance_fraction=reader.fraction("disturbance_fraction", DIFFICULTIES[difficulty]),
        adaptive=adaptive,
        success_fraction=success,
    )


_SEED = (
    "rules",
    "situation",
    "event",
    "extra_draws_per_step",
    "ends_when_done",
    "adaptive",
    "success_fraction",
    "memory",
)


def seed_settings(scenario: Scenario) -> SeedSettings:
    """Read and check a scenario of the original's rules.

    Raises:
        ScenarioError: A number or name is missing, unknown or out of range.
    """
    reader = _Reader(scenario, _SEED)
    situation = reader.word("situation", ("", *SITUATIONS), "")
    event = scenario.params.get("event", "")
    if not isinstance(event, str) or (event and not event.replace("_", "").isalnum()):
        raise reader.wrong("params.event", event, "it must be a name such as HIGH_CPU_USAGE")
    if event and situation:
        raise reader.wrong(
            "params.event", event, "params.situation is given too, and an episode has one start"
        )
    extra = scenario.params.get("extra_draws_per_step", 0)
    if isinstance(extra, bool) or not isinstance(extra, int) or not 0 <= extra <= _MOST_EXTRA_DRAWS:
        raise reader.wrong(
            "params.extra_draws_per_step", extra, f"a whole number from 0 to {_MOST_EXTRA_DRAWS}"
        )
    adaptive, success = reader.adaptive(ADAPTIVE)
    memory = reader.table("memory")
    if memory and adaptive != "memory":
        raise reader.wrong("params.memory", dict(memory), 'only adaptive = "memory" reads it')
    return SeedSettings(
        horizon=scenario.horizon,
        targets=dict(scenario.targets),
        situation=situation,
        event=event,
        extra_draws_per_step=extra,
        ends_when_done=reader.flag("ends_when_done", True),
        adaptive=adaptive,
        success_fraction=success,
        memory=tuple((kind, _rewards(reader, kind, past)) for kind, past in memory.items()),
    )


def _rewards(reader: _Reader, kind: str, past: Any) -> tuple[float, ...]:
    if kind not in KINDS:
        raise reader.wrong(f"params.memory.{kind}", past, "there is no such action", KINDS)
    if not isinstance(past, list | tuple) or not past:
        raise reader.wrong(f"params.memory.{kind}", past, "it must be a list of rewards")
    return tuple(reader.number(f"params.memory.{kind}", reward, 0.0, 1.0) for reward in past)
