"""An inventory that is given, row by row: bills that were imported and hand-written scenarios.

There is no hidden truth here. What a bill does not say stays unknown for the whole episode: a
request for metrics is recorded as asked, a flag as raised, and nothing is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.model import Scenario
from world.worlds.finops.estate import Edges
from world.worlds.finops.generate import Generated
from world.worlds.finops.rules import NANO
from world.worlds.finops.schema import (
    ESSENTIAL,
    INVENTORY_COLUMNS,
    KINDS,
    MANAGERS,
    RESOURCE_COLUMNS,
    STATES,
    flag_of,
    text_of,
    validate_resources,
)
from world.worlds.finops.tables import (
    DEFAULT_GRID_G_PER_KWH,
    grid_intensities,
    size_codes,
    size_table,
)

_WORDS: Mapping[str, tuple[str, ...]] = {
    "kind": KINDS,
    "essential": ESSENTIAL,
    "managed_by": MANAGERS,
    "state": STATES,
}
_DEFAULT_WORD = {"kind": "other", "essential": "unknown", "managed_by": "none", "state": "live"}


def from_resources(scenario: Scenario) -> Generated:
    """The inventory of a scenario that gives its rows. One world.

    Raises:
        ScenarioError: The rows are malformed; the message names row and field.
    """
    validate_resources(scenario)
    table = scenario.resources
    rows = len(table["id"])
    given = {spec.name for spec in RESOURCE_COLUMNS}
    blank: tuple[Any, ...] = (None,) * rows
    ids = tuple(text_of(cell) for cell in table["id"])
    vocabulary: dict[str, tuple[str, ...]] = {}
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype, _ in INVENTORY_COLUMNS:
        cells = table.get(name, blank) if name in given else blank
        if name in _WORDS:
            words = _WORDS[name]
            default = words.index(_DEFAULT_WORD[name])
            codes = [words.index(cell) if cell else default for cell in cells]
            columns[name], vocabulary[name] = np.array(codes, dtype=dtype), words
        elif dtype == "<i4" and name != "live_dependants":
            columns[name], vocabulary[name] = _coded(name, cells)
        elif dtype == "<f8":
            columns[name] = _numbers(cells)
        else:
            columns[name] = np.zeros(rows, dtype=dtype)
    columns["ordinal"] = np.arange(rows, dtype=np.uint32)
    columns["protected"] = np.array(
        [bool(flag_of(cell)) for cell in table.get("protected", blank)], dtype=np.uint8
    )
    columns["cost_usd_per_hour"] = np.rint(columns["cost_usd_per_hour"] * NANO) / NANO
    columns["start_usd_per_hour"] = columns["cost_usd_per_hour"]
    known = grid_intensities()
    grid = [known.get(word, DEFAULT_GRID_G_PER_KWH) for word in vocabulary["region"]]
    columns["grid_g_per_kwh"] = np.array(grid)[columns["region"]]
    _carry(scenario, columns, vocabulary)
    edges = _edges(ids, table.get("dependants", blank))
    np.add.at(columns["live_dependants"], edges.needed, 1)
    batched = {name: column[None, :] for name, column in columns.items()}
    return Generated(batched, [ids], vocabulary, edges)


def _coded(name: str, cells: tuple[Any, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """A text column as codes; sizes keep the codes of the size table."""
    codes: dict[str, int] = {"": 0}
    if name == "size":
        codes = {"": 0, **size_codes()}
    coded = [codes.setdefault(text_of(cell), len(codes)) for cell in cells]
    words = tuple(codes)
    if name == "size":
        words = (*size_table().names, *words[size_table().count :])
    return np.array(coded, dtype=np.int32), words


def _numbers(cells: tuple[Any, ...]) -> NDArray[np.float64]:
    return np.array([np.nan if cell in (None, "") else float(cell) for cell in cells])


def _carry(
    scenario: Scenario,
    columns: dict[str, NDArray[Any]],
    vocabulary: dict[str, tuple[str, ...]],
) -> None:
    """Columns that this world does not know, untouched: numbers as numbers, the rest as text."""
    known = {spec.name for spec in RESOURCE_COLUMNS} | {name for name, _, _ in INVENTORY_COLUMNS}
    for name, cells in scenario.resources.items():
        if name in known or name.startswith("h."):
            continue
        filled = [cell for cell in cells if cell is not None]
        numeric = all(
            isinstance(cell, int | float) and not isinstance(cell, bool) for cell in filled
        )
        if filled and numeric:
            columns[name] = _numbers(cells)
        else:
            columns[name], vocabulary[name] = _coded(name, cells)


def _edges(ids: tuple[str, ...], dependants: tuple[Any, ...]) -> Edges:
    index = {name: row for row, name in enumerate(ids)}
    needed: list[int] = []
    dependant: list[int] = []
    for row, cell in enumerate(dependants):
        for name in dict.fromkeys(text_of(cell).split()):
            needed.append(row)
            dependant.append(index[name])
    return Edges(
        world=np.zeros(len(needed), dtype=np.int32),
        needed=np.array(needed, dtype=np.int32),
        dependant=np.array(dependant, dtype=np.int32),
    )
