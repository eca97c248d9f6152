"""The twelve incidents: what causes each, what cures it, and what only makes it worse.

A table of facts of this world, `world/data/aiops_events.csv`, read and checked once. Each event
has one root cause and one right remedy; every other remedy is harmless (one of those is a
workaround, which holds the cause off for a while) or harmful (one of those is the tempting one). An
alert names the event itself or, as
often, one of two events that its victims look like.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.worlds.aiops.menu import REMEDIES

_FILE: Final = Path(__file__).resolve().parents[2] / "data" / "aiops_events.csv"

ALERT_NAMES_ROOT: Final = 0.5
"""Probability that an alert names the root's event; else one of its victims', equally likely."""
RIGHT, HARMLESS, HARMFUL = 2, 1, 0
REMEDY_WORTH: Final = {RIGHT: 1.0, HARMLESS: 0.3, HARMFUL: 0.0}
"""What a remedy is worth to the score, by class."""


@dataclass(frozen=True, slots=True)
class Event:
    """One incident.

    Attributes:
        name: For example ``memory_leak``.
        service: Where it happens.
        severity: MEDIUM, HIGH or CRITICAL, as an alert of this event says.
        root_cause: What is wrong, for people.
        remedy: The one action that removes the cause.
        workaround: The harmless remedy that holds the cause off for a while.
        tempting: The harmful action that its symptoms suggest.
        harmful: Every remedy that does harm here.
        victims: The two events that an alert may name instead.
        pressure: What an unfixed cause pushes latency (ms), errors (0–1), CPU (%) and memory (%)
            towards.
        harm: What the tempting action does, for people.
    """

    name: str
    service: str
    severity: str
    root_cause: str
    remedy: str
    workaround: str
    tempting: str
    harmful: tuple[str, ...]
    victims: tuple[str, ...]
    pressure: tuple[float, float, float, float]
    harm: str

    def class_of(self, remedy: str) -> int:
        """``RIGHT``, ``HARMLESS`` or ``HARMFUL``."""
        if remedy == self.remedy:
            return RIGHT
        return HARMFUL if remedy in self.harmful else HARMLESS


def _read() -> tuple[Event, ...]:
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    events = tuple(
        Event(
            name=row["event"],
            service=row["service"],
            severity=row["severity"],
            root_cause=row["root_cause"],
            remedy=row["remedy"],
            workaround=row["workaround"],
            tempting=row["tempting"],
            harmful=tuple(row["harmful"].split(";")),
            victims=tuple(row["victims"].split(";")),
            pressure=(
                float(row["latency_ms"]),
                float(row["error_fraction"]),
                float(row["cpu_percent"]),
                float(row["memory_percent"]),
            ),
            harm=row["harm"],
        )
        for row in rows
    )
    _check(events)
    return events


def _check(events: tuple[Event, ...]) -> None:
    names = {event.name for event in events}
    for event in events:
        remedies = {event.remedy, event.workaround, event.tempting, *event.harmful}
        faulty = (
            not remedies <= set(REMEDIES)
            or event.remedy in event.harmful
            or event.class_of(event.workaround) != HARMLESS
            or event.tempting not in event.harmful
            or len(event.victims) != 2
            or not set(event.victims) <= names - {event.name}
        )
        if faulty:
            raise ValueError(f"{_FILE.name}: the row of {event.name} contradicts itself")


EVENTS: Final = _read()
"""The events, in table order: a root cause's code is its place here."""
N_EVENTS: Final = len(EVENTS)
NAMES: Final = tuple(event.name for event in EVENTS)
EVENT_CODE: Final = {name: code for code, name in enumerate(NAMES)}

RIGHT_REMEDY: Final[NDArray[np.int32]] = np.array(
    [REMEDIES.index(event.remedy) for event in EVENTS], dtype=np.int32
)
"""Index into `REMEDIES` per event, int32 [12]."""
WORKAROUND: Final[NDArray[np.int32]] = np.array(
    [REMEDIES.index(event.workaround) for event in EVENTS], dtype=np.int32
)
"""Index into `REMEDIES` per event, int32 [12]."""
CLASS: Final[NDArray[np.int8]] = np.array(
    [[event.class_of(remedy) for remedy in REMEDIES] for event in EVENTS], dtype=np.int8
)
"""Class of every remedy, int8 [12, 7]."""
PRESSURE: Final[NDArray[np.float64]] = np.array([event.pressure for event in EVENTS])
"""float64 [12, 4], metrics in menu order."""
VICTIMS: Final[NDArray[np.int32]] = np.array(
    [[EVENT_CODE[name] for name in event.victims] for event in EVENTS], dtype=np.int32
)
"""int32 [12, 2]."""


def _alert_likelihood() -> NDArray[np.float64]:
    table = np.zeros((N_EVENTS, N_EVENTS))
    for code in range(N_EVENTS):
        table[code, code] = ALERT_NAMES_ROOT
        table[code, VICTIMS[code]] = (1.0 - ALERT_NAMES_ROOT) / VICTIMS.shape[1]
    return table


ALERT_LIKELIHOOD: Final = _alert_likelihood()
"""P(alert | event), float64 [12 events, 12 alerts]."""

for _table in (RIGHT_REMEDY, WORKAROUND, CLASS, PRESSURE, VICTIMS, ALERT_LIKELIHOOD):
    _table.flags.writeable = False
