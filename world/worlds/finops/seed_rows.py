"""The seed's inventories, their rows, and how they are shown and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import Action, ActionTemplate, ParamSpec
from world.errors import InadmissibleActionError
from world.model import Cells, Continuation, Inventory, Joint, Situation, significant
from world.worlds.finops.schema import ESSENTIAL, KINDS, STATES

NEW_SIZE = "half"
"""The one size that the catalogue enumerates; the validator takes any text."""

OVERLOAD_FRACTION = 0.95
ZOMBIE_FRACTION = 0.01


@dataclass(frozen=True, slots=True)
class SeedResource:
    """One resource of the seed.

    Attributes:
        id: Its id.
        kind: compute, database or storage.
        size: Text; never interpreted.
        cpu: CPU as a fraction of capacity; v1 has no cap.
        cost: $/h.
        essential: Whether it must stay.
        sla: Its service level agreement.
        live: Whether it is still there.
    """

    id: str
    kind: str
    size: str
    cpu: float
    cost: float
    essential: bool
    sla: str = "none"
    live: bool = True


_PROD = SeedResource("srv-prod-01", "compute", "m5.xlarge", 0.02, 0.192, True)
_IDLE = SeedResource("srv-idle-static", "compute", "t3.medium", 0.0, 0.0416, False)
_LOGS = SeedResource("storage-temp-logs", "storage", "500GB", 0.01, 0.05, False)

V1_INVENTORY = (
    _PROD,
    SeedResource("db-main", "database", "db.m5.large", 0.45, 0.170, True),
    _IDLE,
    _LOGS,
)
"""Version 1 has one inventory for every task."""

V2_INVENTORIES: dict[str, tuple[SeedResource, ...]] = {
    "zombie_cleanup": (replace(_PROD, cpu=0.85), _IDLE, _LOGS),
    "right_sizing": (
        SeedResource("db-main", "database", "db.r5.4xlarge", 0.05, 0.4536, True),
        SeedResource("web-server-oversized", "compute", "c5.4xlarge", 0.10, 0.68, True),
    ),
    "disaster_recovery": (
        SeedResource("critical-app-01", "compute", "m5.large", 0.50, 0.096, True),
        SeedResource("critical-db-01", "database", "db.m5.large", 0.40, 0.17, True),
        SeedResource("non-essential-dev", "compute", "t3.nano", 0.01, 0.0052, False),
    ),
}
V2_OTHER = (SeedResource("default-node", "compute", "t3.micro", 0.0, 0.01, False),)
"""Version 2's inventory for any other task id."""

NOP, TERMINATE, RESIZE = range(3)
SEED_TEMPLATES = (
    ActionTemplate("nop", "Do nothing", targeted=True, effect="a small penalty"),
    ActionTemplate(
        "terminate",
        "Terminate a resource",
        targeted=True,
        destructive=True,
        effect="its cost goes; an essential one stays and costs points",
    ),
    ActionTemplate(
        "resize",
        "Resize a resource",
        params=(ParamSpec("new_size", choices=(NEW_SIZE,)),),
        targeted=True,
        effect="halves the cost and doubles the CPU, whatever the size",
    ),
)

Rows = tuple[SeedResource, ...]


NO_OPERATION = "no operation"
CRITICAL_FAILURE = "critical failure: an essential resource was terminated"
BOTTLENECK = "bottleneck warning: the CPU is above 95 %"

_KIND_CODES = {template.kind: code for code, template in enumerate(SEED_TEMPLATES)}


def kind_of(action: Action) -> int:
    """Position of the kind in the templates.

    Raises:
        InadmissibleActionError: The seed has no such command.
    """
    code = _KIND_CODES.get(action.kind)
    if code is None:
        raise InadmissibleActionError(
            f"{action.kind[:40]!r} is not an action of this world",
            "the seed has nop, terminate and resize",
            "Choose one of them",
        )
    return code


def single(joint: Joint) -> Action:
    """The one action of a joint action.

    Raises:
        InadmissibleActionError: There is not exactly one.
    """
    if len(joint) != 1:
        raise InadmissibleActionError(
            f"{len(joint)} actions in one step", "the seed takes exactly one", "Choose one"
        )
    return joint[0]


def has_new_size(action: Action) -> bool:
    """Whether a resize names a size as the seed reads it: any text but empty and ``none``."""
    value = action.param("new_size")
    return value is not None and str(value) not in ("", "none")


def position_of(rows: Rows, target: str) -> int:
    """Row of a live resource; -1 when there is none."""
    return next((at for at, row in enumerate(rows) if row.live and row.id == target), -1)


def put(rows: Rows, position: int, row: SeedResource) -> Rows:
    """The inventory with one row exchanged."""
    return (*rows[:position], row, *rows[position + 1 :])


def metric_values(rows: Rows, repeated: bool) -> tuple[float, float, float, float]:
    """Cost, waste, saturation and repetition, in the order of the world's metrics."""
    live = [row for row in rows if row.live]
    idle = sum(row.cost for row in live if row.cpu <= ZOMBIE_FRACTION and not row.essential)
    hottest = max((row.cpu for row in live), default=0.0) * 100.0
    return sum(row.cost for row in live), idle, hottest, float(repeated)


def view_of(rows: Rows) -> Inventory:
    """The inventory as seats see it. Terminated rows stay, marked in ``state``."""
    sizes = tuple(dict.fromkeys(row.size for row in rows))
    levels = tuple(dict.fromkeys(row.sla for row in rows))
    yes, no = ESSENTIAL.index("yes"), ESSENTIAL.index("no")
    live = [row.live for row in rows]
    cpu = np.array([row.cpu for row in rows])
    columns: dict[str, NDArray[Any]] = {
        "kind": np.array([KINDS.index(row.kind) for row in rows], dtype=np.int8),
        "size": np.array([sizes.index(row.size) for row in rows], dtype=np.int32),
        "state": np.array([int(not alive) for alive in live], dtype=np.int8),
        "cost_usd_per_hour": np.array([row.cost for row in rows]) * live,
        "cpu_percent": np.where(live, cpu * 100.0, np.nan),
        "cpu_fraction": cpu,
        "essential": np.array([yes if row.essential else no for row in rows], dtype=np.int8),
        "sla": np.array([levels.index(row.sla) for row in rows], dtype=np.int32),
    }
    vocabulary = {
        "kind": KINDS,
        "size": sizes,
        "state": STATES,
        "essential": ESSENTIAL,
        "sla": levels,
    }
    return Inventory(tuple(row.id for row in rows), columns, vocabulary)


def rows_of(inventory: Inventory) -> Rows:
    """The inventory behind a view."""
    return tuple(
        SeedResource(
            id=name,
            kind=str(row["kind"]),
            size=str(row["size"]),
            cpu=float(inventory.columns["cpu_fraction"][at]),
            cost=float(inventory.columns["cost_usd_per_hour"][at]),
            essential=row["essential"] == "yes",
            sla=str(row["sla"]),
            live=row["state"] == "live",
        )
        for at, name in enumerate(inventory.ids)
        for row in (inventory.row(name),)
    )


def live_ids(inventory: Inventory) -> list[str]:
    """Ids of the rows that still exist."""
    state = inventory.columns["state"]
    return [name for at, name in enumerate(inventory.ids) if not state[at]]


def stored_metrics(names: Sequence[str], rows: Rows, last: int, repeated: bool) -> dict[str, float]:
    """Metrics and public scalars as the store keeps them."""
    values = metric_values(rows, repeated)
    metrics = {name: significant(value) for name, value in zip(names, values, strict=True)}
    return {**metrics, "last_kind": float(last)}


def cells_between(before: Rows, after: Rows) -> tuple[Cells, ...]:
    """The cells that differ, one by one."""
    old, new = view_of(before).columns, view_of(after).columns
    return tuple(
        Cells(name, at * column.dtype.itemsize, column[at : at + 1].tobytes())
        for name, column in new.items()
        for at in range(len(column))
        if column[at : at + 1].tobytes() != old[name][at : at + 1].tobytes()
    )


def only_nop(continuation: Continuation, values: tuple[float, ...], last: int, step: int) -> None:
    """Ask a continuation policy, which may only answer nop: it can name no target.

    Raises:
        InadmissibleActionError: It answered something else.
    """
    answer = continuation(
        Situation(
            np.array([values]), np.array([last], dtype=np.int32), np.zeros(1, dtype=bool), step
        )
    )
    if np.any(np.asarray(answer) != NOP):
        raise InadmissibleActionError(
            "the continuation policy answered an action that needs a target",
            "in this world every action but nop names a resource",
            "Use no continuation, or one that answers nop (0)",
        )
