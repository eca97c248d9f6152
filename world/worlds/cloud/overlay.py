"""Imagined worlds: what was believed, and thin copies of it that hold only the rows in question.

A belief shares every public column with the observation that it was made from. A projection of n
plans lays n·K worlds over it that hold the service tiers and those other rows which a plan touches
or whose state is under way; all other rows are one number each for cost, waste and watts. An
inventory of 100,000 rows is therefore read once and never copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import schema as names
from world.worlds.cloud.cost import static_cost
from world.worlds.cloud.energy import static_kilowatts
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.view import CloudInventory

T = TypeVar("T")

_ROW_COLUMNS = frozenset(
    name for group in (names.ROW_COLUMNS, names.HIDDEN_ROW_COLUMNS) for name, _, _ in group
)
_UNDER_WAY = ("metrics_wait_steps", "owner_wait_steps", "resize_wait_steps")


class Rest(NamedTuple):
    """What rows that are no queue contribute at the start.

    Attributes:
        cost: $/h, float64 [B].
        waste: $/h, float64 [B].
        kilowatts: kW per region slot, float64 [B, G].
    """

    cost: Floats
    waste: Floats
    kilowatts: Floats


class Begin(NamedTuple):
    """Where the plans of a projection start.

    Attributes:
        worlds: Believed worlds; every plan has a copy of each.
        columns: The columns of all copies from which `rest` was worked out.
        whole: What all rows contribute in the first world.
        held: What the rows that are held contribute there.
        rest: What all rows contribute in every copy.
    """

    worlds: int
    columns: dict[str, Array]
    whole: Rest
    held: Rest
    rest: Rest


@dataclass(slots=True)
class Believed(State):
    """K imagined worlds with the observation that they were made from.

    Attributes:
        view: That observation's inventory; actions are read against it.
    """

    view: CloudInventory | None = None


@dataclass(slots=True)
class Overlay(State):
    """Imagined worlds without most of their rows.

    Attributes:
        begin: Where all plans start.
    """

    begin: Begin | None = None

    @property
    def apart(self) -> int:
        """How many worlds, from the first on, have noise of their own; the others repeat it."""
        return self.batch if self.begin is None else self.begin.worlds

    def follow(self) -> Overlay:
        """The next state, sharing every column."""
        return Overlay(
            self.settings, self.seeds, self.replica, self.step, dict(self.columns), self.extras,
            self.mean_noise, self.ids, memory=self.memory, begin=self.begin,
        )  # fmt: skip

    def recall(self, name: str, sources: tuple[Any, ...], make: Callable[[], T]) -> T:
        """A derived value; cost, waste and watts include the rows that are not held."""
        begin = self.begin
        if begin is None or name not in ("static_cost", "static_kilowatts"):
            return super(Overlay, self).recall(name, sources, make)

        def total() -> Any:
            rest = self._rest(begin)
            return rest.kilowatts if name == "static_kilowatts" else (rest.cost, rest.waste)

        found: T = super(Overlay, self).recall(name, sources, total)
        return found

    def _rest(self, begin: Begin) -> Rest:
        """What all rows contribute now: only worlds whose rows have changed are added up anew."""
        columns, queues = self.columns, self.settings.queues
        moved = [name for name, column in begin.columns.items() if columns[name] is not column]

        def make() -> Rest:
            changed = np.zeros(self.batch, dtype=np.bool_)
            for name in moved:
                first = queues if name in _ROW_COLUMNS else 0
                changed |= _differ(columns[name][:, first:], begin.columns[name][:, first:])
            if not changed.any():
                return begin.rest
            at = np.flatnonzero(changed)
            made = _since(begin.whole, begin.held, _rest(_some(self, at)))
            cost, waste, kilowatts = (part.copy() for part in begin.rest)
            cost[at], waste[at], kilowatts[at] = made
            return Rest(cost, waste, kilowatts)

        return super(Overlay, self).recall("rest", tuple(columns[name] for name in moved), make)


def rows_in_question(state: State, targets: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows beyond the tiers that plans touch or that change by themselves, ascending.

    Args:
        state: The believed worlds; which rows are under way is the same in all of them.
        targets: Rows that the actions of the plans are aimed at.
    """
    tiers, columns = state.settings.tiers, state.columns

    def make() -> NDArray[np.intp]:
        waits = np.zeros(state.settings.rows, dtype=np.bool_)
        for name in _UNDER_WAY:
            waits |= columns[name][0] > 0
        return np.flatnonzero(waits)

    under_way = state.recall("under_way", tuple(columns[name] for name in _UNDER_WAY), make)
    found = np.concatenate([targets, under_way, columns["h.i.row"].ravel().astype(np.intp)])
    found = np.unique(found[found >= 0])
    partners = [columns[name][0, found].astype(np.intp) for name in ("attached_to", "needed_by")]
    found = np.unique(np.concatenate([found, *partners]))
    rows: NDArray[np.intp] = found[found >= tiers]
    return rows


def overlay(state: State, extras: NDArray[np.intp], plans: int) -> tuple[Overlay, NDArray[np.intp]]:
    """`plans` copies of every believed world that hold the tiers and some other rows.

    Args:
        state: B·K believed worlds.
        extras: Rows beyond the tiers to hold, ascending.
        plans: Number of copies; world j of plan i is row i·B·K + j.

    Returns:
        The worlds, and the place of every old row in them: int [R], −1 where it is not held.
    """
    settings = dataclasses.replace(state.settings, extras=len(extras))
    keep = np.concatenate([np.arange(settings.tiers), extras])
    place = np.full(state.settings.rows, -1, dtype=np.intp)
    place[keep] = np.arange(len(keep))
    columns: dict[str, Array] = {}
    for name, column in state.columns.items():
        part = column
        if name in _ROW_COLUMNS:
            # A column that is one row for all worlds stays one row.
            part = column[:1, keep] if column.strides[0] == 0 else column[:, keep]
        if name in ("attached_to", "needed_by", "h.i.row"):
            part = _moved(part, place)
        columns[name] = _tiled(part, state.batch, plans)
    thin = Overlay(
        settings, np.tile(state.seeds, plans), np.tile(state.replica, plans), state.step, columns,
        mean_noise=state.mean_noise,
    )  # fmt: skip
    thin.begin = _begin(state, thin, plans)
    return thin, place


def _begin(state: State, thin: State, plans: int) -> Begin:
    whole = state.recall("whole", (state.extras,), lambda: _rest(state.rows(np.array([0]))))
    held = _rest(_some(thin, slice(0, 1)))
    first = _some(thin, slice(0, state.batch))
    each = _since(whole, held, _rest(first))
    columns = {name: thin.columns[name] for name in first.columns}
    tiled = Rest(
        np.tile(each.cost, plans), np.tile(each.waste, plans), np.tile(each.kilowatts, (plans, 1))
    )
    return Begin(state.batch, columns, whole, held, tiled)


class _Read(dict[str, Array]):
    """Columns of some worlds, each taken when it is first read; what it holds was read."""

    def __init__(self, columns: dict[str, Array], at: Array | slice) -> None:
        super().__init__()
        self._columns = columns
        self._at = at

    def __missing__(self, name: str) -> Array:
        part: Array = self._columns[name][self._at]
        self[name] = part
        return part


def _some(state: State, at: Array | slice) -> State:
    """Some worlds of a batch, to be read only."""
    return State(
        state.settings, state.seeds[at], state.replica[at], state.step, _Read(state.columns, at),
        mean_noise=state.mean_noise,
    )  # fmt: skip


def _since(whole: Rest, held: Rest, made: Rest) -> Rest:
    """What all rows contribute where the held ones make so much of it."""
    # What the rows held have changed by; exactly nothing where none was touched.
    return Rest(
        whole.cost + (made.cost - held.cost),
        whole.waste + (made.waste - held.waste),
        whole.kilowatts + (made.kilowatts - held.kilowatts),
    )


def _rest(state: State) -> Rest:
    return Rest(*static_cost(state), static_kilowatts(state))


def _differ(now: Array, before: Array) -> Array:
    """Which worlds differ in a column, bool [B]; unknown is the same as unknown."""
    other: Array = now != before
    if now.dtype.kind == "f":
        other &= (now == now) | (before == before)
    worlds: Array = np.logical_or.reduce(other, axis=1)
    return worlds


def _moved(rows: Array, place: NDArray[np.intp]) -> Array:
    """References to rows by their new places; one that is not held still refers to something."""
    old = rows.astype(np.intp)
    moved: Array = np.where(old >= 0, np.maximum(place[np.maximum(old, 0)], 0), -1)
    return moved.astype(rows.dtype)


def _tiled(part: Array, worlds: int, plans: int) -> Array:
    width = part.shape[1]
    if part.shape[0] == 1 or part.strides[0] == 0:
        return np.broadcast_to(part[:1], (worlds * plans, width))
    copies = np.empty((plans, worlds, width), dtype=part.dtype)
    copies[...] = part
    return copies.reshape(worlds * plans, width)
