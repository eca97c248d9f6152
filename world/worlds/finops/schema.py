"""The inventory's columns: what a scenario may give, and what a seat sees.

Two tables:

* `RESOURCE_COLUMNS`: the columns of ``Scenario.resources`` (``[[resource]]`` rows or the CSV file
  beside the scenario). A bill importer writes exactly these. Columns that are not in the table
  are carried through to the inventory view untouched: numbers as numbers, everything else as text.
* `INVENTORY_COLUMNS`: the columns of ``Observation.inventory``, as NumPy arrays. Rows keep their
  place for the whole episode: a terminated resource stays as a row whose ``state`` is
  ``terminated``, whose cost is 0 (or its credit, where that was negative) and whose use is NaN.
  Use `live` to mask them.

Unknown is None in a scenario, NaN or the word ``unknown`` (empty text for names) in the view. It
is never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from world.errors import ScenarioError
from world.model import Inventory, Scenario

ColumnKind = Literal["id", "text", "word", "number", "flag", "ids"]

KINDS = (
    "compute",
    "database",
    "cache",
    "storage",
    "snapshot",
    "address",
    "loadbalancer",
    "gateway",
    "other",
)
"""What a resource is."""

METERED_KINDS = ("compute", "database", "cache")
"""Kinds whose use is CPU and memory; of all others it is the idle time."""

ESSENTIAL = ("unknown", "no", "yes")
STATES = ("live", "terminated")
MANAGERS = ("none", "autoscaler", "iac")
"""Who else changes the resource: nobody, an autoscaler, or infrastructure as code."""


MAX_USD_PER_HOUR = 1e6
"""Largest rate of one row, $/h: a whole number of 1e-9 $/h below 2**53 is exact as a float."""

MAX_TOTAL_USD_PER_HOUR = 4e9
"""Largest sum of all rows' absolute rates, $/h: in 1e-9 $/h it stays within 64 bits."""


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column.

    Attributes:
        name: Its name, unit included.
        kind: ``id`` (unique text), ``text``, ``word`` (one of `choices`), ``number``, ``flag``
            (true/false) or ``ids`` (resource ids separated by spaces).
        description: What it means, in one line.
        choices: Allowed words.
        minimum: Lowest number allowed.
        maximum: Highest number allowed.
        required: Whether every row needs it; otherwise None means unknown.
    """

    name: str
    kind: ColumnKind
    description: str
    choices: tuple[str, ...] = ()
    minimum: float = -math.inf
    maximum: float = math.inf
    required: bool = False


RESOURCE_COLUMNS: tuple[ColumnSpec, ...] = (
    ColumnSpec("id", "id", "resource id, unique", required=True),
    ColumnSpec("name", "text", "name for people"),
    ColumnSpec("kind", "word", "what it is; None is other", KINDS),
    ColumnSpec("service", "text", "service or product on the bill"),
    ColumnSpec("provider", "text", "who bills it"),
    ColumnSpec("region", "text", "region id"),
    ColumnSpec("size", "text", "machine size as in machine_types.csv; other text is kept as it is"),
    ColumnSpec(
        "cost_usd_per_hour", "number", "what it costs now; 0 and credits occur", required=True
    ),
    ColumnSpec("cpu_percent", "number", "mean CPU", minimum=0.0, maximum=100.0),
    ColumnSpec("memory_percent", "number", "mean memory", minimum=0.0, maximum=100.0),
    ColumnSpec("idle_hours", "number", "hours since it was last used", minimum=0.0),
    ColumnSpec("age_hours", "number", "hours since it was created", minimum=0.0),
    ColumnSpec("essential", "word", "whether something needs it; None is unknown", ("yes", "no")),
    ColumnSpec("owner", "text", "who answers for it"),
    ColumnSpec("environment", "text", "environment tag: production, staging …"),
    ColumnSpec("dependants", "ids", "resources that need this one to live"),
    ColumnSpec("protected", "flag", "may never be touched (control plane, locks); None is no"),
    ColumnSpec("managed_by", "word", "who else changes it; None is none", MANAGERS),
    ColumnSpec("billed_usd_per_hour", "number", "billed rate, for comparison"),
)
"""The columns that a scenario may give, in order."""

INVENTORY_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("ordinal", "<u4", "permanent entity number, the address of its noise"),
    ("name", "<i4", "coded text"),
    ("kind", "|i1", "coded: KINDS"),
    ("service", "<i4", "coded text"),
    ("provider", "<i4", "coded text"),
    ("region", "<i4", "coded text"),
    ("size", "<i4", "coded text; empty for none"),
    ("state", "|i1", "coded: live, terminated"),
    ("cost_usd_per_hour", "<f8", "$/h, a whole number of 1e-9 $/h"),
    ("start_usd_per_hour", "<f8", "$/h, what it cost at the start of the episode"),
    ("cpu_percent", "<f8", "percent of capacity; above 100 is overloaded; NaN is unknown"),
    ("memory_percent", "<f8", "percent of capacity; above 100 is overloaded; NaN is unknown"),
    ("idle_hours", "<f8", "hours since last use, as measured; NaN is unknown"),
    ("age_hours", "<f8", "hours since creation, as measured; NaN is unknown"),
    ("essential", "|i1", "coded: unknown, no, yes"),
    ("owner", "<i4", "coded text"),
    ("environment", "<i4", "coded text"),
    ("dependants", "<i4", "coded text: ids that need this one, separated by spaces"),
    ("live_dependants", "<i4", "how many of them still exist"),
    ("protected", "|u1", "1: may never be touched"),
    ("managed_by", "|i1", "coded: MANAGERS"),
    ("metrics_asked", "|u1", "1: request_metrics was taken"),
    ("metrics_wait_steps", "|u1", "steps until its metrics arrive; 0 is none under way"),
    ("owner_asked", "|u1", "1: flag_for_owner was taken"),
    ("owner_wait_steps", "|u1", "steps until the owner answers; 0 is none under way"),
    ("news", "|u1", "1: an answer about it arrived in the last step"),
    ("resized", "|u1", "1: was resized in this episode"),
    ("damaged", "|u1", "1: was terminated although it was essential or in use"),
    ("billed_usd_per_hour", "<f8", "$/h billed at the start; NaN is unknown"),
    ("grid_g_per_kwh", "<f8", "carbon intensity of its region's grid, g CO2e/kWh"),
)
"""``(name, dtype, meaning)`` of the columns that a seat sees, in order; extra ones follow."""


def live(inventory: Inventory) -> NDArray[np.bool_]:
    """Mask of the rows that still exist. Shape (n_rows,)."""
    mask: NDArray[np.bool_] = inventory.columns["state"] == 0
    return mask


def words(inventory: Inventory, name: str) -> NDArray[np.object_]:
    """A coded column as its words, for display. Shape (n_rows,)."""
    vocabulary = np.array(inventory.vocabulary[name], dtype=object)
    coded: NDArray[np.object_] = vocabulary[inventory.columns[name]]
    return coded


def text_of(value: Any) -> str:
    """A cell as text: None is empty, whole numbers lose their ``.0``."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    return str(value)


def flag_of(value: Any) -> bool | None:
    """A cell as true or false; None where it is neither.

    Args:
        value: True/False, 1/0, or yes/no/true/false in any case; None and "" are False.
    """
    if value is None or value == "":
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(
        str(value).strip().lower()
    )


def validate_resources(scenario: Scenario) -> None:
    """Check a given inventory against `RESOURCE_COLUMNS`.

    Raises:
        ScenarioError: A column is missing or has the wrong length, or a cell is not allowed; the
            message names the row, its id and the field.
    """
    table = scenario.resources
    ids = table.get("id", ())
    if not ids:
        raise ScenarioError(
            f"scenario {scenario.name!r} has no resources",
            "a bill task needs an inventory",
            "Add [[resource]] rows, or import a bill: python run_warroom.py import focus",
        )
    for name, cells in table.items():
        if len(cells) != len(ids):
            raise ScenarioError(
                f"scenario {scenario.name!r}: column {name!r} has {len(cells)} values",
                f"there are {len(ids)} ids",
                "Give every row the same columns",
            )
    known = frozenset(text_of(cell) for cell in ids)
    for spec in RESOURCE_COLUMNS:
        if spec.name not in table:
            if spec.required:
                raise _fault(scenario, 0, ids, spec, None, "it is required")
            continue
        for row, cell in enumerate(table[spec.name]):
            why = _why_not(spec, cell, known)
            if why:
                raise _fault(scenario, row, ids, spec, cell, why)
    if len(known) != len(ids):
        raise ScenarioError(
            f"scenario {scenario.name!r} has two resources with one id", "ids are unique", ""
        )
    total = math.fsum(abs(cell) for cell in table["cost_usd_per_hour"])
    if total > MAX_TOTAL_USD_PER_HOUR:
        raise ScenarioError(
            f"scenario {scenario.name!r}: the resources cost {total:g} $/h together",
            f"at most {MAX_TOTAL_USD_PER_HOUR:g} can be added exactly",
            "Check the unit of cost_usd_per_hour",
        )
    _refuse_cycles(scenario)


def _fault(
    scenario: Scenario, row: int, ids: tuple[Any, ...], spec: ColumnSpec, cell: Any, why: str
) -> ScenarioError:
    shown = repr(cell)
    if len(shown) > 80:
        shown = f"{shown[:77]}…"
    return ScenarioError(
        f"scenario {scenario.name!r}: resource {row + 1} ({text_of(ids[row])[:80]!r}): "
        f"{spec.name} is {shown}",
        why,
        "Correct that cell" if spec.required else "Correct that cell, or leave it out if unknown",
    )


def _why_not(spec: ColumnSpec, cell: Any, known: frozenset[str]) -> str:
    if cell is None or (cell == "" and spec.kind != "id"):
        return "it is required" if spec.required else ""
    if spec.kind == "number":
        return _why_not_number(spec, cell)
    if spec.kind == "word":
        return "" if cell in spec.choices else f"it must be one of {', '.join(spec.choices)}"
    if spec.kind == "flag":
        return "it must be true or false" if flag_of(cell) is None else ""
    if spec.kind == "ids":
        for name in text_of(cell).split():
            if name not in known:
                return f"there is no resource {name[:80]!r}; it lists ids separated by spaces"
        return ""
    return "it must not be empty" if text_of(cell) == "" else ""


def _why_not_number(spec: ColumnSpec, cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return "it must be a number"
    if not math.isfinite(cell):
        return "it must be finite"
    if abs(cell) > MAX_USD_PER_HOUR and spec.name.endswith("usd_per_hour"):
        return f"it must lie within ±{MAX_USD_PER_HOUR:g}"
    if not spec.minimum <= cell <= spec.maximum:
        if math.isinf(spec.maximum):
            return f"it must be at least {spec.minimum:g}"
        return f"it must lie between {spec.minimum:g} and {spec.maximum:g}"
    return ""


def _refuse_cycles(scenario: Scenario) -> None:
    """Refuse dependants that need each other in a circle: none could ever be terminated."""
    column = scenario.resources.get("dependants")
    if column is None:
        return
    ids = [text_of(cell) for cell in scenario.resources["id"]]
    needs = {name: text_of(cell).split() for name, cell in zip(ids, column, strict=True) if cell}
    done: set[str] = set()
    for start in needs:
        path: dict[str, None] = {}
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            name, position = stack.pop()
            followers = needs.get(name, [])
            if position == 0:
                path[name] = None
            if position >= len(followers):
                path.pop(name, None)
                done.add(name)
                continue
            stack.append((name, position + 1))
            follower = followers[position]
            if follower in path:
                raise ScenarioError(
                    f"scenario {scenario.name!r}: {follower[:80]!r} and {name[:80]!r} depend on "
                    "each other",
                    "dependants may not form a circle",
                    "Remove one of the two",
                )
            if follower not in done:
                stack.append((follower, 0))
