"""Small things worth doing with a free place: looking, asking, and marking what may go.

They change nothing that a projection shows, so no look-ahead finds them. Each rule reads public
facts only; where a world does not publish them, it has no errands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from world.actions import Action
from world.model import Inventory, Joint, Observation, Plan

IDLE_WINDOW_HOURS = 336.0
"""Unused for so long is unused: 14 days, as in the idle checks of cloud advisers."""
SURE = 0.6
"""Suspicion from which a resource may be isolated."""
HOT_PERCENT = 90.0
"""CPU of a machine of no service from which a miner is suspected; batch boxes are below."""
FULL_PERCENT = 88.0
"""CPU that machines of a service may reach by a cut."""
OVERDUE = 0.33
"""Share of its deadline that batch work may wait before it gets more machines."""
ASKED_STEPS = 3
"""Steps in which a question is not asked again."""
FULL_DISK_PERCENT = 90.0
"""Measured use of a disk from which it is taken to be full."""
_CUTS = frozenset({"scale_down", "resize", "optimize_energy"})


def removals(seen: Observation) -> tuple[Plan, ...]:
    """Plans that mark a resource which nobody needs and remove it after its grace period."""
    inventory, grace = seen.inventory, int(seen.facts.get("grace_steps", 0))
    if inventory is None or not grace or "marked_at_step" not in inventory.columns:
        return ()
    columns = inventory.columns
    idle = _unused(inventory) & (columns["marked_at_step"] < 0)
    idle &= _is(inventory, "essential", "no") & _is(inventory, "tag_status", "known")
    return tuple(
        (
            (Action("mark", inventory.ids[row]),),
            *(((),) * (grace - 1)),
            (Action("terminate", inventory.ids[row]),),
        )
        for row in np.flatnonzero(idle).tolist()
    )


def remedies(seen: Observation) -> tuple[Plan, ...]:
    """Plans that repair a database: room on a full disk, or isolation and a clean backup."""
    inventory = seen.inventory
    if inventory is None or "suspicion" not in inventory.columns:
        return ()
    columns = inventory.columns
    suspects = _is(inventory, "kind", "db") & (columns["suspicion"] > SURE) & _serving(inventory)
    found: list[Plan] = []
    for row in np.flatnonzero(suspects).tolist():
        database = inventory.ids[row]
        repair = ((Action("isolate", database),), (Action("restore_backup", database),))
        if columns["count"][row] >= 2:
            found.append(repair)
        found.append((repair[1],))
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    for name, facts in services.items():
        if (facts.get("disk_percent") or 0.0) >= FULL_DISK_PERCENT:
            found.append(((Action("free_disk", f"{name}-db"),),))
    return tuple(found)


def careless(seen: Observation, action: Action) -> bool:
    """Whether an action cuts what is nearly full, or leaves batch work to pile up.

    A projection from a belief may be wrong about load, and shows no backlog; what was measured
    comes first.
    """
    inventory = seen.inventory
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    if inventory is None or action.kind not in _CUTS:
        return False
    row = inventory.index.get(action.target)
    name = action.target if row is None else _service(inventory, row)
    facts = services.get(name)
    if facts is None:
        return False
    if action.kind == "resize":
        return bool(facts.get("batch")) and _other_size(inventory, row, action)
    if action.kind == "optimize_energy":
        level = int(action.param("level", 0) or 0)
        return level > 0 and (bool(facts.get("batch")) or _full(facts.get("cpu_percent"), 0.1))
    busy = facts.get("cpu_percent") if row is None else inventory.columns["cpu_percent"][row]
    return _full(busy, float(action.param("fraction", 0.0) or 0.0))


def _full(busy_percent: float | None, cut_fraction: float) -> bool:
    """Whether a cut leaves too little, or nobody knows how much is used."""
    known = busy_percent is not None and busy_percent == busy_percent
    return not known or float(busy_percent or 0.0) / (1.0 - cut_fraction) > FULL_PERCENT


def _other_size(inventory: Inventory, row: int | None, action: Action) -> bool:
    """Whether a resize changes the size and not only the family of a machine."""
    if row is None:
        return False
    old = inventory.vocabulary["size"][int(inventory.columns["size"][row])]
    return str(action.param("new_size")).rpartition(".")[2] != old.rpartition(".")[2]


def errands(seen: Observation, decided: Sequence[Joint] = ()) -> Iterator[Action]:
    """What to do with places that are left, most useful first.

    Args:
        seen: What is observed now.
        decided: Joint actions so far; what was asked in the last steps is not asked again.
    """
    lately = {action.id for joint in decided[-ASKED_STEPS:] for action in joint}
    for action in _all_errands(seen):
        if action.id not in lately:
            yield action


def _all_errands(seen: Observation) -> Iterator[Action]:
    yield from _overdue(seen)
    yield from _looks(seen)
    inventory = seen.inventory
    if inventory is None or "marked_at_step" not in inventory.columns:
        return
    yield from _examinations(seen, inventory)
    yield from _questions(inventory)


def _overdue(seen: Observation) -> Iterator[Action]:
    """More machines for batch work that would be done after a third of its deadline."""
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    for name, facts in services.items():
        if not facts.get("batch"):
            continue
        waits = max(facts["backlog_hours"], facts.get("due_hours") or 0.0)
        if waits > OVERDUE * facts["deadline_hours"]:
            yield Action.of("scale_up", name, fraction=0.25)


def _ailing(seen: Observation) -> list[str]:
    """Services that miss an objective, or that an alert names."""
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    found = []
    for name, facts in services.items():
        named = any(f": {name} " in line for line in seen.incidents)
        slow = (facts.get("p95_ms") or 0.0) > facts.get("slo_p95_ms", np.inf)
        failing = (facts.get("error_fraction") or 0.0) > facts.get("slo_error_fraction", np.inf)
        if named or slow or failing:
            found.append(name)
    return found


def _looks(seen: Observation) -> Iterator[Action]:
    """Evidence on services that ail, then on those that they may be victims of."""
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    ailing = _ailing(seen)
    if not ailing:
        return
    if all(facts.get("anomaly") is None for facts in services.values()):
        yield Action("detect")
    odd = sorted(
        (name for name in services if name not in ailing),
        key=lambda name: -(services[name].get("anomaly") or 0.0),
    )
    for name in [*ailing, *(name for name in odd if (services[name].get("anomaly") or 0.0) > 0.5)]:
        yield Action("analyse", name)


def _examinations(seen: Observation, inventory: Inventory) -> Iterator[Action]:
    """Suspects of a breach, and the databases of services that make errors."""
    columns = inventory.columns
    services: Mapping[str, Mapping[str, Any]] = seen.facts.get("services", {})
    for name in _ailing(seen):
        facts = services[name]
        row = inventory.index.get(f"{name}-db")
        failing = (facts.get("error_fraction") or 0.0) > facts.get("slo_error_fraction", np.inf)
        if row is not None and failing and columns["suspicion"][row] <= SURE:
            yield Action("evaluate", f"{name}-db")
    with np.errstate(invalid="ignore"):
        hot = columns["cpu_percent"] >= HOT_PERCENT
    hot &= ~_serving(inventory) & (columns["suspicion"] <= SURE)
    hot &= _is(inventory, "state", "running")
    for row in np.flatnonzero(hot).tolist():
        yield Action("evaluate", inventory.ids[row])


def _questions(inventory: Inventory) -> Iterator[Action]:
    """Use that nobody measured, and needs that nobody knows, of what stores the most first."""
    columns = inventory.columns
    open_rows = ~_serving(inventory) & ~_is(inventory, "state", "terminated")
    open_rows &= (columns["protected"] == 0) & _is(inventory, "managed_by", "none")
    open_rows &= columns["needed_by"] < 0
    order = np.argsort(-np.nan_to_num(columns["size_gb"]), kind="stable")
    unknown_use = np.isnan(columns["idle_hours"])
    with np.errstate(invalid="ignore"):
        idle = columns["idle_hours"] >= IDLE_WINDOW_HOURS
    unknown_need = idle & (
        _is(inventory, "essential", "unknown") | _is(inventory, "tag_status", "unknown")
    )
    unknown_need &= columns["owner_wait_steps"] == 0
    unknown_use &= columns["metrics_wait_steps"] == 0
    for row in order[(open_rows & (unknown_use | unknown_need))[order]].tolist():
        kind = "request_metrics" if unknown_use[row] else "flag_for_owner"
        yield Action(kind, inventory.ids[row])


def _unused(inventory: Inventory) -> Any:
    """Rows that were not used for two weeks and that nothing else hangs on, bool [rows]."""
    columns = inventory.columns
    with np.errstate(invalid="ignore"):
        idle = columns["idle_hours"] >= IDLE_WINDOW_HOURS
    idle &= ~_serving(inventory) & (columns["needed_by"] < 0) & (columns["protected"] == 0)
    idle &= _is(inventory, "managed_by", "none")
    return idle & ~_is(inventory, "state", "terminated")


def _service(inventory: Inventory, row: int) -> str:
    """Name of the service that a row belongs to; empty for none."""
    words = inventory.vocabulary.get("service", ("",))
    return words[int(inventory.columns["service"][row])] if "service" in inventory.columns else ""


def _serving(inventory: Inventory) -> Any:
    """Rows that belong to the tiers of a service, bool [rows]."""
    return ~_is(inventory, "service", "")


def _is(inventory: Inventory, column: str, word: str) -> Any:
    """Rows with a word in a coded column, bool [rows]."""
    words = inventory.vocabulary[column]
    codes = [code for code, known in enumerate(words) if known == word]
    values = np.asarray(inventory.columns[column])
    # The code −1 is the last word.
    return np.isin(values, codes) | ((values < 0) & (words[-1] == word))
