"""The state of a batch of inventories, and how one step changes it.

A `State` is a dict of columns of shape [B, n_rows] plus exact running totals. Columns are shared
between states and copied only when a step changes them (copy on write); a step looks at the rows
that its actions and open requests touch and at no others, so that an inventory of 100,000 rows
costs a few column copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.model import ActionOutcome, Inventory, Scenario
from world.worlds.finops import rules
from world.worlds.finops.rules import Cells, Refusal
from world.worlds.finops.schema import INVENTORY_COLUMNS

HIDDEN_COLUMNS: tuple[tuple[str, str], ...] = (
    ("h.cpu_percent", "<f8"),
    ("h.memory_percent", "<f8"),
    ("h.idle_hours", "<f8"),
    ("h.essential", "|i1"),
)
"""The truth where a seat sees unknown; NaN and 0 elsewhere. Absent in bills: they have none."""

_STATIC = frozenset(
    {"ordinal", "name", "service", "provider", "region", "owner", "environment", "dependants"}
    | {"billed_usd_per_hour"}
)
CELL_COLUMNS = tuple(name for name, _, _ in INVENTORY_COLUMNS if name not in _STATIC) + tuple(
    name for name, _ in HIDDEN_COLUMNS
)
"""The columns that the rules read or write."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Who needs whom, as parallel int32 arrays.

    Attributes:
        world: World of the batch.
        needed: Row that is needed.
        dependant: Row that needs it.
    """

    world: NDArray[np.int32]
    needed: NDArray[np.int32]
    dependant: NDArray[np.int32]

    def parents(self, row: int) -> NDArray[np.int32]:
        """Rows that `row` of world 0 needs."""
        rows: NDArray[np.int32] = self.needed[(self.dependant == row) & (self.world == 0)]
        return rows


class Frame:
    """What the worlds of a batch share and never change; all of it public.

    Attributes:
        scenario: The scenario.
        rows: Rows per world.
        vocabulary: Coded column → words.
        edges: Who needs whom.
        answers: Whether requests for metrics and flags are ever answered.
        ceiling_percent: Saturation target: a resized machine must stay below it.
        start_nano: int64 [B], cost at the start, nano-$/h.
        gross_nano: int64 [B], the same without credits.
        target_nano: int64 [B], the cost target.
        start_carbon_mg: int64 [B].
    """

    __slots__ = (
        "_ids",
        "_index",
        "answers",
        "ceiling_percent",
        "edges",
        "gross_nano",
        "rows",
        "scenario",
        "start_carbon_mg",
        "start_nano",
        "target_nano",
        "vocabulary",
    )

    def __init__(
        self,
        scenario: Scenario,
        ids: list[tuple[str, ...]],
        vocabulary: Mapping[str, tuple[str, ...]],
        edges: Edges,
        answers: bool,
        ceiling_percent: float,
    ) -> None:
        self.scenario = scenario
        self.rows = len(ids[0])
        self.vocabulary = vocabulary
        self.edges = edges
        self.answers = answers
        self.ceiling_percent = ceiling_percent
        self._ids = ids
        self._index: list[Mapping[str, int] | None] = [None] * len(ids)
        zero = np.zeros(len(ids), dtype=np.int64)
        self.start_nano, self.gross_nano = zero, zero
        self.target_nano, self.start_carbon_mg = zero, zero

    def single(self, world: int) -> Frame:
        """The frame of one world of the batch."""
        if len(self._ids) == 1:
            return self
        here = self.edges.world == world
        edges = Edges(
            np.zeros(int(here.sum()), dtype=np.int32),
            self.edges.needed[here],
            self.edges.dependant[here],
        )
        frame = Frame(
            self.scenario,
            [self._ids[world]],
            self.vocabulary,
            edges,
            self.answers,
            self.ceiling_percent,
        )
        part = slice(world, world + 1)
        frame.start_nano, frame.gross_nano = self.start_nano[part], self.gross_nano[part]
        frame.target_nano, frame.start_carbon_mg = (
            self.target_nano[part],
            self.start_carbon_mg[part],
        )
        return frame

    def ids(self, world: int = 0) -> tuple[str, ...]:
        """Resource ids of one world, in row order."""
        return self._ids[world]

    def index(self, world: int = 0) -> Mapping[str, int]:
        """Resource id → row of one world; made when first asked for."""
        index = self._index[world]
        if index is None:
            index = {name: row for row, name in enumerate(self._ids[world])}
            self._index[world] = index
        return index


class Totals(NamedTuple):
    """Sums over one inventory, exact whole numbers; all of them follow from what a seat sees.

    Attributes:
        cost_nano: nano-$/h.
        unaccounted_nano: Spend that nobody has accounted for, nano-$/h.
        carbon_mg: mg CO2e per day.
        unverified_nano: Savings that do not count, nano-$/h.
    """

    cost_nano: int
    unaccounted_nano: int
    carbon_mg: int
    unverified_nano: int


class EstateInventory(Inventory):
    """An inventory view that remembers the public frame behind it.

    Attributes:
        frame: The frame.
        world: World of the frame's batch.
        totals: Sums over the visible columns, so that nobody has to add up 100,000 rows again.
    """

    __slots__ = ("frame", "totals", "world")

    def __init__(
        self, frame: Frame, columns: Mapping[str, NDArray[Any]], world: int, totals: Totals
    ) -> None:
        super().__init__(frame.ids(world), columns, frame.vocabulary, frame.index(world))
        self.frame = frame
        self.world = world
        self.totals = totals


@dataclass(slots=True)
class State:
    """A batch of inventories. Treated as immutable: a step makes a new one.

    Attributes:
        frame: What never changes.
        columns: Column → array [B, n_rows]; names starting with ``h.`` are hidden.
        origin: The columns at the start, hidden truth included; what best possible refers to.
        step: Steps done.
        cost_nano: int64 [B], what everything costs, nano-$/h.
        unaccounted_nano: int64 [B], spend that nobody has accounted for, nano-$/h.
        carbon_mg: int64 [B], mg CO2e per day.
        unverified_nano: int64 [B], savings that do not count.
        violations: int64 [B], broken rules so far.
        harms: int64 [B], harm to essential resources so far.
        repeat_fraction: float64 [B], share of the last step's actions that were churn.
        last: int32 [B], kind of the last step's first action; -1 before the first step.
        outcomes: What became of the last step's actions (B = 1).
    """

    frame: Frame
    columns: dict[str, NDArray[Any]]
    origin: dict[str, NDArray[Any]]
    step: int
    cost_nano: NDArray[np.int64]
    unaccounted_nano: NDArray[np.int64]
    carbon_mg: NDArray[np.int64]
    unverified_nano: NDArray[np.int64]
    violations: NDArray[np.int64]
    harms: NDArray[np.int64]
    repeat_fraction: NDArray[np.float64]
    last: NDArray[np.int32]
    outcomes: tuple[ActionOutcome, ...] = field(default=())

    @property
    def batch(self) -> int:
        """Number of worlds."""
        return len(self.cost_nano)

    @property
    def done(self) -> bool:
        """Whether the horizon is reached."""
        return self.step >= self.frame.scenario.horizon

    def hottest_percent(self, world: int) -> float:
        """Highest known CPU or memory of one world; 0 where nothing is known."""
        cpu = np.fmax.reduce(self.columns["cpu_percent"][world], initial=0.0)
        memory = np.fmax.reduce(self.columns["memory_percent"][world], initial=0.0)
        return float(max(cpu, memory))

    def knows_carbon(self, world: int) -> bool:
        """Whether the carbon of any row can be estimated; what was terminated emits a known 0."""
        return bool(rules.carbon_known({"size": self.columns["size"][world]}).any())

    def totals(self, world: int) -> Totals:
        """The sums of one world."""
        return Totals(
            int(self.cost_nano[world]),
            int(self.unaccounted_nano[world]),
            int(self.carbon_mg[world]),
            int(self.unverified_nano[world]),
        )

    def verified_nano(self) -> NDArray[np.int64]:
        """Net saving that counts, nano-$/h, [B]; negative where spending rose."""
        return self.frame.start_nano - self.cost_nano - self.unverified_nano


class Stepped(NamedTuple):
    """What `advance` made.

    Attributes:
        state: The new state.
        refusals: int8 [B, slots], `Refusal` per action; 0 for empty slots and nop.
        harm: bool [B, slots].
        violation: bool [B, slots].
        rows: int64 [M], flat ``world * n_rows + row`` of the rows looked at.
        changed: Columns that changed.
    """

    state: State
    refusals: NDArray[np.int8]
    harm: NDArray[np.bool_]
    violation: NDArray[np.bool_]
    rows: NDArray[np.int64]
    changed: tuple[str, ...]


def open_state(
    frame: Frame, columns: dict[str, NDArray[Any]], totals: Totals | None = None
) -> State:
    """A state at step 0, with its totals added up unless they are given."""
    batch, ceiling = columns["state"].shape[0], frame.ceiling_percent
    zero = np.zeros(batch, dtype=np.int64)
    if totals is None:
        cost, unaccounted, carbon, unverified = (
            cells.sum(axis=1)
            for cells in (
                rules.nano(columns["cost_usd_per_hour"]),
                rules.unaccounted_nano(columns, ceiling),
                rules.carbon_mg(columns),
                rules.unverified_nano(columns, ceiling),
            )
        )
    else:
        cost, unaccounted, carbon, unverified = (np.full(batch, total) for total in totals)
    return State(
        frame=frame,
        columns=columns,
        origin=columns,
        step=0,
        cost_nano=cost,
        unaccounted_nano=unaccounted,
        carbon_mg=carbon,
        unverified_nano=unverified,
        violations=zero,
        harms=zero,
        repeat_fraction=np.zeros(batch),
        last=np.full(batch, -1, dtype=np.int32),
    )


def gather(columns: Mapping[str, NDArray[Any]], world: Any, row: Any) -> Cells:
    """The rules' columns at some rows; any index that NumPy broadcasts."""
    return {name: columns[name][world, row] for name in CELL_COLUMNS if name in columns}


def clashes(kinds: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.bool_]:
    """Slots whose target an earlier slot of the same joint action has, bool [B, slots]."""
    clash = np.zeros(targets.shape, dtype=bool)
    acts = kinds > rules.NOP
    for later in range(1, targets.shape[1]):
        for earlier in range(later):
            clash[:, later] |= (
                acts[:, later] & acts[:, earlier] & (targets[:, later] == targets[:, earlier])
            )
    return clash


def advance(
    state: State, kinds: NDArray[Any], targets: NDArray[Any], sizes: NDArray[Any]
) -> Stepped:
    """Every world one step on.

    Args:
        state: Before; stays valid.
        kinds: int32 [B, slots], position in the templates; -1 is an empty slot.
        targets: int32 [B, slots], row; -1 is none.
        sizes: int32 [B, slots], size code of resizes; -1 is none.
    """
    columns = state.columns
    acts = (kinds > rules.NOP) & (targets >= 0)
    world, slot = np.nonzero(acts)
    row, kind = targets[world, slot].astype(np.int64), kinds[world, slot]
    before = gather(columns, world, row)
    code = rules.refusals(before, kind, sizes[world, slot])
    code[clashes(kinds, targets)[world, slot]] = Refusal.CLASH
    allowed = code == Refusal.NONE
    broken = rules.damage(
        before, np.where(allowed, kind, rules.NO_ACTION), sizes[world, slot].astype(np.int32)
    )
    refused = np.zeros(kinds.shape, dtype=np.int8)
    refused[world, slot] = code
    harm = np.zeros(kinds.shape, dtype=bool)
    harm[world, slot] = broken.harm
    violation = np.zeros(kinds.shape, dtype=bool)
    violation[world, slot] = broken.violation
    churn = acts & (refused > 0)
    churn[world, slot] |= (kind == rules.RESIZE) & (before["resized"] != 0)

    after = _apply(state, world[allowed], row[allowed], kind[allowed], sizes[world, slot][allowed])
    count = acts.sum(axis=1)
    made = after.state
    made.step = state.step + 1
    made.violations = state.violations + violation.sum(axis=1)
    made.harms = state.harms + harm.sum(axis=1)
    made.repeat_fraction = churn.sum(axis=1) / np.maximum(count, 1)
    made.last = np.where((kinds >= 0).any(axis=1), kinds.max(axis=1), rules.NOP).astype(np.int32)
    made.outcomes = ()
    return Stepped(made, refused, harm, violation, after.rows, after.changed)


class _Applied(NamedTuple):
    state: State
    rows: NDArray[np.int64]
    changed: tuple[str, ...]


def _apply(
    state: State,
    world: NDArray[Any],
    row: NDArray[Any],
    kind: NDArray[Any],
    size: NDArray[Any],
) -> _Applied:
    """Apply allowed actions and whatever answers are due, on the touched rows only."""
    frame, columns, rows = state.frame, state.columns, state.frame.rows
    keys = world * rows + row
    fewer_keys = _orphaned(state, keys[kind == rules.TERMINATE])
    touched = np.unique(np.concatenate([keys, fewer_keys, _waiting(state)]))
    place = np.searchsorted(touched, keys)
    act = np.full(len(touched), rules.NO_ACTION, dtype=np.int32)
    act[place] = kind
    new_size = np.full(len(touched), -1, dtype=np.int32)
    new_size[place] = size
    fewer = np.zeros(len(touched), dtype=np.int32)
    np.add.at(fewer, np.searchsorted(touched, fewer_keys), 1)

    where = (touched // rows, touched % rows)
    before = gather(columns, *where)
    after = rules.advance(before, act, new_size, fewer, frame.answers)
    changed = tuple(
        name
        for name, cells in after.items()
        if cells is not before[name] and not np.array_equal(cells, before[name], equal_nan=True)
    )
    made_columns = dict(columns)
    for name in changed:
        column = np.array(columns[name])
        column[where] = after[name]
        made_columns[name] = column
    ceiling = frame.ceiling_percent
    made = State(
        frame=frame,
        columns=made_columns,
        origin=state.origin,
        step=state.step,
        cost_nano=_moved(
            state.cost_nano,
            where[0],
            rules.nano(after["cost_usd_per_hour"]) - rules.nano(before["cost_usd_per_hour"]),
        ),
        unaccounted_nano=_moved(
            state.unaccounted_nano,
            where[0],
            rules.unaccounted_nano(after, ceiling) - rules.unaccounted_nano(before, ceiling),
        ),
        carbon_mg=_moved(
            state.carbon_mg, where[0], rules.carbon_mg(after) - rules.carbon_mg(before)
        ),
        unverified_nano=_moved(
            state.unverified_nano,
            where[0],
            rules.unverified_nano(after, ceiling) - rules.unverified_nano(before, ceiling),
        ),
        violations=state.violations,
        harms=state.harms,
        repeat_fraction=state.repeat_fraction,
        last=state.last,
    )
    return _Applied(made, touched, changed)


def _moved(
    total: NDArray[np.int64], world: NDArray[Any], change: NDArray[np.int64]
) -> NDArray[np.int64]:
    result = total.copy()
    np.add.at(result, world, change)
    return result


def _orphaned(state: State, ended: NDArray[np.int64]) -> NDArray[np.int64]:
    """Flat rows that lose a dependant, once per dependant lost."""
    edges, rows = state.frame.edges, state.frame.rows
    if len(ended) == 0 or len(edges.needed) == 0:
        return np.zeros(0, dtype=np.int64)
    dependants = edges.world.astype(np.int64) * rows + edges.dependant
    hit = np.isin(dependants, ended)
    return edges.world[hit].astype(np.int64) * rows + edges.needed[hit]


def _waiting(state: State) -> NDArray[np.int64]:
    """Flat rows with an answer under way, or one that has just arrived."""
    if not state.frame.answers:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(unsettled(state.columns, slice(None)))


def unsettled(columns: Mapping[str, NDArray[Any]], world: Any) -> NDArray[np.uint8]:
    """Not 0 where a row changes without being acted on."""
    waits: NDArray[np.uint8] = (
        columns["metrics_wait_steps"][world]
        | columns["owner_wait_steps"][world]
        | columns["news"][world]
    )
    return waits
