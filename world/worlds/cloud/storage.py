"""Between states and the store's bytes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from world.errors import WorldError
from world.model import Cells, Delta, Scenario, Snapshot, significant
from world.worlds.cloud.settings import METRICS, Settings
from world.worlds.cloud.state import NOW, Array, State
from world.worlds.cloud.view import ids_of, vocabulary
from world.worlds.finops.storage import outcomes_as_json, outcomes_from_json

MOST_BETWEEN = 16
"""Equal cells that are written along rather than beginning another run."""


def snapshot(state: State, row: int) -> Snapshot:
    """One world in the store's encoding; arrays are shared, not copied."""
    return Snapshot(
        step=state.step,
        metrics=stored_metrics(state, row),
        hidden=outcomes_as_json(state.outcomes),
        columns={name: column[row] for name, column in state.columns.items()},
        ids=ids_of(state, row),
        vocabulary=vocabulary(state.settings),
    )


def stored_metrics(state: State, row: int) -> dict[str, float]:
    """Metrics and public scalars that the store shows, as they were observed; 9 digits.

    A measurement that is missing is left out: the store keeps the last one that arrived.
    """
    from world.worlds.cloud.view import seen

    values = seen(state, row)
    metrics = {
        name: significant(float(values[at]))
        for at, name in enumerate(METRICS)
        if not np.isnan(values[at])
    }
    metrics["one_off_usd"] = significant(float(state.columns["w.one_off_usd"][row, 0]))
    metrics["harms"] = float(state.columns["w.harms"][row, 0])
    return metrics


def delta(before: State, after: State) -> Delta:
    """What one step changed in a single world."""
    return Delta(
        metrics=stored_metrics(after, 0),
        hidden=outcomes_as_json(after.outcomes),
        cells=changed(before.columns, after.columns),
    )


def changed(before: Mapping[str, Array], after: Mapping[str, Array]) -> tuple[Cells, ...]:
    """Runs of cells that differ; a run ends where more than `MOST_BETWEEN` equal ones follow."""
    found: list[Cells] = []
    for name, column in after.items():
        old = before[name]
        if old is column:
            continue
        new = np.ascontiguousarray(column[0])
        fresh, stale = new.tobytes(), old[0].tobytes()
        if fresh == stale:
            continue
        width = new.dtype.itemsize
        differs = np.flatnonzero(np.frombuffer(fresh, np.uint8) != np.frombuffer(stale, np.uint8))
        cells = differs // width
        if cells[-1] - cells[0] <= MOST_BETWEEN:  # most often: one run, and no gap to look for
            first, last = int(cells[0]), int(cells[-1])
            found.append(Cells(name, first * width, fresh[first * width : (last + 1) * width]))
            continue
        ends = np.flatnonzero(np.diff(cells) > MOST_BETWEEN)
        firsts, lasts = cells[np.append(0, ends + 1)], cells[np.append(ends, len(cells) - 1)]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            found.append(Cells(name, first * width, fresh[first * width : (last + 1) * width]))
    return tuple(found)


def restore(settings: Settings, scenario: Scenario, seed: int, stored: Snapshot) -> State:
    """The state that a snapshot was taken from.

    Raises:
        WorldError: The snapshot is of another world.
    """
    missing = [name for name in (NOW, "count", "s.eco_level") if name not in stored.columns]
    if missing:
        raise WorldError(
            f"the snapshot has no column {missing[0]!r}",
            f"it is not of a world that plays {scenario.name!r}",
            "Name the scenario that the episode was started with",
        )
    state = State(
        settings,
        np.array([seed], dtype=np.uint64),
        np.zeros(1, dtype=np.uint64),
        stored.step,
        {name: np.asarray(column)[None, :] for name, column in stored.columns.items()},
        outcomes=outcomes_from_json(stored.hidden),
    )
    if state.columns["count"].shape[1] != settings.rows:
        raise WorldError(
            f"the snapshot has {state.columns['count'].shape[1]} rows",
            f"the scenario {scenario.name!r} has {settings.rows}",
            "Name the scenario that the episode was started with",
        )
    return state
