"""Between states and the store's bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import parse_action
from world.model import ActionOutcome, Cells


def changed_cells(
    before: Mapping[str, NDArray[Any]],
    after: Mapping[str, NDArray[Any]],
    names: Sequence[str],
    rows: NDArray[np.int64],
) -> tuple[Cells, ...]:
    """The cells of world 0 that differ, as runs of bytes.

    Args:
        before: Columns before.
        after: Columns afterwards.
        names: Columns that may differ.
        rows: Rows that may differ, ascending.
    """
    found: list[Cells] = []
    for name in names:
        new = after[name][0]
        old = before[name][0][rows]
        differs = np.array(
            [old[at].tobytes() != new[row].tobytes() for at, row in enumerate(rows.tolist())]
        )
        width = new.dtype.itemsize
        for run in _runs(rows[differs].tolist() if len(rows) else []):
            data = np.ascontiguousarray(new[run[0] : run[-1] + 1])
            little = data.astype(data.dtype.newbyteorder("<"), copy=False)
            found.append(Cells(name, run[0] * width, little.tobytes()))
    return tuple(found)


def _runs(rows: Sequence[int]) -> list[list[int]]:
    """Adjacent rows together."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and runs[-1][-1] == row - 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def outcomes_as_json(outcomes: Sequence[ActionOutcome]) -> bytes:
    """The last step's outcomes, so that a resumed room observes what it would have."""
    if not outcomes:
        return b""
    rows = [
        [one.action.id, one.status, one.effect, one.reason, one.delay_steps] for one in outcomes
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def outcomes_from_json(data: bytes) -> tuple[ActionOutcome, ...]:
    """Read `outcomes_as_json` back."""
    if not data:
        return ()
    rows = json.loads(data.decode("utf-8", "surrogatepass"))
    return tuple(
        ActionOutcome(parse_action(action), status, effect, reason, delay)
        for action, status, effect, reason, delay in rows
    )
