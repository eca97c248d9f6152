"""The list of actions of one moment, made lazily so that 100,000 rows cost a few array scans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import NOP, Action
from world.catalogue import Catalogue
from world.model import Inventory
from world.worlds.finops import rules
from world.worlds.finops.tables import other_rungs, size_table

Block = tuple[str, int, Callable[[int], Action]]


@cache
def _rung_counts() -> tuple[int, ...]:
    return tuple(len(other_rungs(code)) for code in range(size_table().count))


def catalogue_of(inventory: Inventory) -> Catalogue:
    """nop; terminate and resize of live rows; requests and flags where something is unknown.

    It lists what exists, not what is allowed: the validator may still refuse an entry.
    """
    cells = dict(inventory.columns)
    live = cells["state"] == 0
    ask = live & ~rules.use_complete(cells) & (cells["metrics_asked"] == 0)
    flag = live & (cells["essential"] == 0) & (cells["owner_asked"] == 0)
    ids = inventory.ids
    return Catalogue(
        [
            (NOP, 1, lambda _: Action(NOP)),
            _targeted("terminate", ids, live),
            _resizes(ids, cells["size"], live & (rules.size_row(cells) > 0)),
            _targeted("request_metrics", ids, ask),
            _targeted("flag_for_owner", ids, flag),
        ]
    )


def _targeted(kind: str, ids: Sequence[str], mask: NDArray[Any]) -> Block:
    rows = np.flatnonzero(mask)
    return kind, len(rows), lambda item: Action(kind, ids[int(rows[item])])


def _resizes(ids: Sequence[str], codes: NDArray[Any], mask: NDArray[Any]) -> Block:
    """Every live sized row × every other size on its ladder, rows in order."""
    rows = np.flatnonzero(mask)
    ends = np.cumsum(np.array(_rung_counts())[codes[rows]])

    def make(item: int) -> Action:
        at = bisect_right(ends, item)
        row = int(rows[at])
        rung = item - (int(ends[at - 1]) if at else 0)
        size = size_table().names[other_rungs(int(codes[row]))[rung]]
        return Action("resize", ids[row], (("new_size", size),))

    return "resize", int(ends[-1]) if len(ends) else 0, make
