"""What an operator may forbid for a while, or in size: change freezes and blast radius by share.

Pure rules over observations and actions, asked by `policies.guardrails`. During a freeze questions
may be asked, and remedies taken while an incident is open; everything else waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from world.actions import NOP, Action
from world.errors import ConfigError
from world.model import Inventory, Joint, Observation

REMEDIES = frozenset(
    {
        # what restores a service, in the cloud world
        "scale_up", "restart", "rollback", "rebalance", "isolate", "restore_backup", "failover_db",
        "crisis_response", "start", "attach", "snapshot",
        # the treatments of the AI-Ops world
        "free_memory_resources", "restart_service", "scale_resources", "recover_corrupted_data",
        "isolate_affected_systems", "redistribute_traffic", "apply_mitigation", "stabilize_system",
    }
)  # fmt: skip
"""Kinds of action that remedy an incident. Allowed in a freeze while an incident is open."""

_QUESTION = re.compile(r"(detect|analy[sz]e|evaluate|classify|select|verify|request|flag)(_|\Z)")
_ADDS = frozenset({"scale_up", "snapshot", "start", "attach", "mark", "unmark", "buy_reserved"})
_GONE = frozenset({"terminated", "gone", "deleted", "removed"})
_STEPS = re.compile(r"(\d{1,7}):(\d{1,7})\Z", re.ASCII)
_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?-(\d{1,2})(?::(\d{2}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Freeze:
    """A window in which nothing is changed.

    Attributes:
        text: As it was written.
        unit: ``steps`` (the step being decided, 1…) or ``hours`` (of the day, UTC).
        first: Its first step, or the hour at which it begins.
        last: Its last step, which belongs to it, or the hour at which it ends, which does not.
    """

    text: str
    unit: Literal["steps", "hours"]
    first: float
    last: float

    def holds(self, step: int, hour: float | None) -> bool:
        """Whether a moment lies in the window; a window of hours may span midnight.

        Args:
            step: The step being decided, 1….
            hour: Hour of the day, 0 to 24; None where the world has no clock.
        """
        if self.unit == "steps":
            return self.first <= step <= self.last
        if hour is None:
            return False
        if self.first <= self.last:
            return self.first <= hour < self.last
        return hour >= self.first or hour < self.last


def parse_freeze(text: str) -> Freeze:
    """A freeze as it is written: ``10:20`` (steps, both included) or ``22-06`` / ``22:30-06:00``.

    Raises:
        ConfigError: The text is neither, or its end lies before its beginning.
    """
    steps, hours = _STEPS.match(text), _HOURS.match(text)
    if steps and 1 <= int(steps[1]) <= int(steps[2]):
        return Freeze(text, "steps", int(steps[1]), int(steps[2]))
    if hours and not steps:
        first = int(hours[1]) + int(hours[2] or 0) / 60
        last = int(hours[3]) + int(hours[4] or 0) / 60
        if first < 24 and last <= 24 and first != last:
            return Freeze(text, "hours", first, last)
    raise ConfigError(
        f"a change freeze is {text[:40]!r}",
        "it is a range of steps A:B with 1 ≤ A ≤ B, or of hours of the day (UTC)",
        "For example 10:20, or 22:00-06:00",
    )


def is_question(action: Action) -> bool:
    """Whether an action only asks or notes, so that it changes nothing."""
    return action.kind in {NOP, "mark", "unmark"} or bool(_QUESTION.match(action.kind))


def incident_is_open(seen: Observation) -> bool:
    """Whether something is visibly wrong: an incident, or a fact named crisis that holds."""
    return bool(seen.incidents) or any(
        name.startswith("crisis") and value is True for name, value in seen.facts.items()
    )


def frozen_out(freezes: tuple[Freeze, ...], seen: Observation, action: Action) -> str:
    """Why a freeze forbids an action now; "" where none does."""
    hour = seen.facts.get("hour_utc")
    at = float(hour) if isinstance(hour, int | float) else None
    freeze = next((each for each in freezes if each.holds(seen.step + 1, at)), None)
    if freeze is None or is_question(action):
        return ""
    if action.kind in REMEDIES and incident_is_open(seen):
        return ""
    why = "no incident is open" if action.kind in REMEDIES else "it is no incident remedy"
    return f"{action.id}: changes are frozen ({freeze.unit} {freeze.text}) and {why}"


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of something a joint action touches.

    Attributes:
        of: ``service web (compute)``, or ``the fleet``.
        units: Instances or resources touched.
        total: How many there are.
    """

    of: str
    units: float
    total: float

    @property
    def share(self) -> float:
        """Units per total, 0–1."""
        return self.units / self.total if self.total else 0.0


def reach(seen: Observation, joint: Joint) -> tuple[Reach, ...]:
    """What share of each service's tier, and of the fleet, a joint action changes.

    Actions that only add or ask touch nothing in this sense; neither do remedies while an incident
    is open, because a limit that forbids the rollback would be the larger outage.

    Args:
        seen: What the room observes; without an inventory nothing can be counted.
        joint: Actions that would be applied together.
    """
    inventory = seen.inventory
    if inventory is None or not len(inventory):
        return ()
    open_incident = incident_is_open(seen)
    acts = [
        action
        for action in joint
        if action.target
        and not is_question(action)
        and action.kind not in _ADDS
        and not (open_incident and action.kind in REMEDIES)
    ]
    touched: dict[str, list[float]] = {}
    rows: set[int] = set()
    services = seen.facts.get("services")
    for action in acts:
        row = inventory.index.get(action.target)
        if row is not None:
            rows.add(row)
            name, units, total = _tier(inventory, row, action)
        elif isinstance(services, Mapping) and action.target in services:
            name, units, total = f"service {action.target}", 2.0, 2.0
        else:
            continue
        if name:
            entry = touched.setdefault(name, [0.0, total])
            entry[0] += units
    found = [Reach(name, units, total) for name, (units, total) in touched.items()]
    if rows:
        found.append(Reach("the fleet", float(len(rows)), _live(inventory)))
    return tuple(found)


def _tier(inventory: Inventory, row: int, action: Action) -> tuple[str, float, float]:
    """The tier of a service that a row belongs to: its name, units touched, units there are."""
    columns = inventory.columns
    if "service" not in columns:
        return "", 0.0, 0.0
    service = _word(inventory, "service", row)
    if not service:
        return "", 0.0, 0.0
    same = columns["service"] == columns["service"][row]
    tier = ""
    if "kind" in columns:
        same = same & (columns["kind"] == columns["kind"][row])
        tier = f" ({_word(inventory, 'kind', row)})"
    if "count" not in columns:
        return f"service {service}{tier}", 1.0, float(np.count_nonzero(same))
    counts = np.maximum(np.nan_to_num(columns["count"]), 0.0)
    units = float(counts[row]) or 1.0
    fraction = action.param("fraction")
    if action.kind == "scale_down" and isinstance(fraction, int | float):
        units = max(float(np.floor(units * fraction + 1e-9)), 1.0)
    total = float(np.where(same, counts, 0.0).sum()) or 1.0
    return f"service {service}{tier}", units, max(total, units)


def _word(inventory: Inventory, column: str, row: int) -> str:
    value = inventory.columns[column][row].item()
    words = inventory.vocabulary.get(column)
    return str(words[value]) if words is not None else str(value)


def _live(inventory: Inventory) -> float:
    states = inventory.columns.get("state")
    words = inventory.vocabulary.get("state")
    if states is None or words is None:
        return float(len(inventory))
    gone = [code for code, word in enumerate(words) if word in _GONE]
    return float(np.count_nonzero(~np.isin(states, gone)))
