"""The best possible saving of an inventory, under the same horizon and actions per step.

Who knows the whole truth still has to ask before acting where something is unknown: that costs
actions and steps. Per row there are a few options (ask and terminate, ask and resize, resize), each
with a number of actions and a saving; choosing among them is a multiple-choice knapsack with
``horizon × actions per step`` places, solved exactly by dynamic programming (Kellerer, Pferschy and
Pisinger, "Knapsack Problems", 2004, chapter 11). Leaving out when answers arrive and who must go
first can only make the sum larger, so it is an upper bound; where the chosen options can be
scheduled one by one, it is the exact optimum, and the schedule proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.worlds.finops import rules
from world.worlds.finops.estate import CELL_COLUMNS, Frame
from world.worlds.finops.rules import FLAG_FOR_OWNER, REQUEST_METRICS, RESIZE, TERMINATE, Cells
from world.worlds.finops.schema import ESSENTIAL
from world.worlds.finops.tables import size_table

Move = tuple[int, int, int]
"""Kind, row, size code (-1 is none)."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to save on one row.

    Attributes:
        row: The row.
        kinds: Kinds of action in order; the last one saves.
        size: Size code of a resize; -1 otherwise.
        saving_nano: What it saves, nano-$/h.
    """

    row: int
    kinds: tuple[int, ...]
    size: int
    saving_nano: int

    @property
    def span_steps(self) -> int:
        """Steps from its first action to its last one, both counted."""
        if FLAG_FOR_OWNER in self.kinds:
            return 1 + rules.OWNER_DELAY_STEPS
        return 1 + rules.METRICS_DELAY_STEPS if REQUEST_METRICS in self.kinds else 1


@dataclass(frozen=True, slots=True)
class BestPossible:
    """The best possible saving.

    Attributes:
        saving_nano: nano-$/h at the end of the episode.
        exact: True when `plan` reaches it; otherwise it is an upper bound.
        plan: One tuple of moves per step that reaches it, up to the last step with a move; ()
            when it is only a bound.
    """

    saving_nano: int
    exact: bool
    plan: tuple[tuple[Move, ...], ...]


def best_possible(
    origin: Mapping[str, NDArray[Any]], frame: Frame, world: int, max_actions: int
) -> BestPossible:
    """The best possible saving of one world.

    Args:
        origin: The columns at the start, hidden truth included.
        frame: The frame.
        world: World of the batch.
        max_actions: Actions per step.
    """
    horizon = frame.scenario.horizon
    seen = {name: origin[name][world] for name in CELL_COLUMNS if name in origin}
    options = [
        option
        for option in _options(seen, frame, world)
        if option.span_steps <= horizon and option.saving_nano > 0
    ]
    chosen = _knapsack(options, horizon * max_actions)
    saving = sum(option.saving_nano for option in chosen)
    plan = _schedule(chosen, frame, world, max_actions)
    return BestPossible(saving, plan is not None, plan or ())


def _truth(seen: Cells) -> Cells:
    cells = dict(seen)
    if "h.essential" in seen:
        for name in ("cpu_percent", "memory_percent", "idle_hours"):
            cells[name] = np.where(np.isnan(seen[name]), seen[f"h.{name}"], seen[name])
        unknown = seen["essential"] == ESSENTIAL.index("unknown")
        cells["essential"] = np.where(unknown, seen["h.essential"], seen["essential"])
    return cells


def _removable(truth: Cells, frame: Frame, world: int) -> NDArray[np.bool_]:
    """Rows that may go: unused, needed by nobody, and so are all that depend on them."""
    free: NDArray[np.bool_] = (
        (truth["state"] == 0)
        & (truth["protected"] == 0)
        & (truth["managed_by"] == 0)
        & (truth["essential"] == ESSENTIAL.index("no"))
        & rules.use_known(truth)
        & ~rules.in_use(truth)
    )
    edges = frame.edges
    here = edges.world == world
    needed, dependant = edges.needed[here], edges.dependant[here]
    while True:
        blocked = needed[free[needed] & ~free[dependant]]
        if len(blocked) == 0:
            return free
        free[blocked] = False


def _options(seen: Cells, frame: Frame, world: int) -> list[Option]:
    truth = _truth(seen)
    cost = rules.nano(seen["cost_usd_per_hour"])
    ask_use = ~rules.use_known(seen)
    ask_owner = seen["essential"] == ESSENTIAL.index("unknown")
    options: list[Option] = []
    for row in np.flatnonzero(_removable(truth, frame, world) & (cost > 0)).tolist():
        kinds = (
            *((FLAG_FOR_OWNER,) if ask_owner[row] else ()),
            *((REQUEST_METRICS,) if ask_use[row] else ()),
            TERMINATE,
        )
        options.append(Option(row, kinds, -1, int(cost[row])))
    blind = _cheapest(seen, frame.ceiling_percent)
    informed = _cheapest(truth, frame.ceiling_percent)
    for row in np.flatnonzero(blind | informed).tolist():
        for size, asked in ((int(blind[row]), False), (int(informed[row]), True)):
            if size and not (asked and blind[row] == size):
                kinds = (REQUEST_METRICS, RESIZE) if asked else (RESIZE,)
                options.append(Option(row, kinds, size, _saving(seen, row, size)))
    return options


def _saving(cells: Cells, row: int, size: int) -> int:
    table, cost = size_table(), cells["cost_usd_per_hour"][row : row + 1]
    old = cells["size"][row]
    priced = np.rint(cost * (table.usd_per_hour[size] / table.usd_per_hour[old]) * rules.NANO)
    return int(rules.nano(cost)[0] - np.int64(priced[0]))


def _cheapest(cells: Cells, ceiling_percent: float) -> NDArray[np.int32]:
    """Cheapest smaller size that stays below the ceiling, per row; 0 for none.

    What is unknown fits only where the size holds at least as much of it.
    """
    table, old = size_table(), rules.size_row(cells)
    result = np.zeros(old.shape, dtype=np.int32)
    look = np.flatnonzero(
        (old > 0)
        & (cells["state"] == 0)
        & (cells["protected"] == 0)
        & (cells["managed_by"] == 0)
        & (cells["cost_usd_per_hour"] > 0.0)
    )
    if len(look) == 0:
        return result
    rows = old[look]
    options = table.smaller[rows]
    fits = options > 0
    for name, held in (("cpu_percent", table.vcpu), ("memory_percent", table.memory_gib)):
        used = cells[name][look]
        after = (used * held[rows])[:, None] / held[options]
        same = held[options] >= held[rows][:, None]
        fits &= np.where(np.isnan(used)[:, None], same, after < ceiling_percent)
    best = options[np.arange(len(rows)), np.argmax(fits, axis=1)]
    result[look] = np.where(fits.any(axis=1), best, 0)
    return result


def _knapsack(options: list[Option], places: int) -> list[Option]:
    """The options of largest total saving, at most one per row, within the places."""
    by_row: dict[int, list[Option]] = {}
    for option in options:
        by_row.setdefault(option.row, []).append(option)
    groups = [_undominated(group) for group in by_row.values()]
    best = [max(group, key=lambda option: option.saving_nano) for group in groups]
    if sum(len(option.kinds) for option in best) <= places:
        return best
    if all(len(option.kinds) == 1 for option in options):
        best.sort(key=lambda option: (-option.saving_nano, option.row))
        return best[:places]
    value = np.zeros(places + 1, dtype=np.int64)
    picks = np.full((len(groups), places + 1), -1, dtype=np.int8)
    for number, group in enumerate(groups):
        before = value.copy()
        for position, option in enumerate(group):
            used = len(option.kinds)
            with_it = before[: places + 1 - used] + option.saving_nano
            better = with_it > value[used:]
            value[used:][better] = with_it[better]
            picks[number, used:][better] = position
    chosen: list[Option] = []
    left = places
    for number in range(len(groups) - 1, -1, -1):
        position = int(picks[number, left])
        if position >= 0:
            option = groups[number][position]
            chosen.append(option)
            left -= len(option.kinds)
    return chosen[::-1]


def _undominated(group: list[Option]) -> list[Option]:
    """Options that no other one beats in both actions and saving."""
    ordered = sorted(group, key=lambda option: (len(option.kinds), -option.saving_nano))
    kept: list[Option] = []
    for option in ordered:
        if not kept or option.saving_nano > kept[-1].saving_nano:
            kept.append(option)
    return kept


def _schedule(
    chosen: list[Option], frame: Frame, world: int, max_actions: int
) -> tuple[tuple[Move, ...], ...] | None:
    """A plan that carries out the chosen options in time, or None where none was found."""
    waits = _order(chosen, frame, world)
    if waits is None:
        return None
    ready = {option.row: 1 for option in chosen}
    done = {option.row: 0 for option in chosen}
    ended: dict[int, int] = {}
    plan: list[tuple[Move, ...]] = []
    for step in range(1, frame.scenario.horizon + 1):
        if all(done[option.row] == len(option.kinds) for option in chosen):
            break
        able = [
            option
            for option in chosen
            if done[option.row] < len(option.kinds)
            and _may_act(option, done[option.row], ready[option.row], step)
            and (
                done[option.row] < len(option.kinds) - 1
                or all(ended.get(row, step) < step for row in waits[option.row])
            )
        ]
        able.sort(key=lambda option: _urgency(option, done[option.row], waits))
        moves: list[Move] = []
        for option in able[:max_actions]:
            kind = option.kinds[done[option.row]]
            moves.append((kind, option.row, option.size if kind == RESIZE else -1))
            done[option.row] += 1
            if kind == TERMINATE:
                ended[option.row] = step
            delay = {
                FLAG_FOR_OWNER: rules.OWNER_DELAY_STEPS,
                REQUEST_METRICS: rules.METRICS_DELAY_STEPS,
            }.get(kind, 0)
            ready[option.row] = max(ready[option.row], step + delay)
        plan.append(tuple(moves))
    finished = all(done[option.row] == len(option.kinds) for option in chosen)
    return tuple(plan) if finished else None


def _may_act(option: Option, done: int, ready: int, step: int) -> bool:
    """Whether the next action is due: asking needs no answer, the last action needs them all."""
    return done < len(option.kinds) - 1 or ready <= step


def _urgency(option: Option, done: int, waits: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Longest way to go first; who is waited for before who is not."""
    left = option.kinds[done:]
    steps = len(left) + (1 if left[0] == FLAG_FOR_OWNER and len(left) == 2 else 0)
    needed = any(option.row in rows for rows in waits.values())
    return (-steps - needed, option.row)


def _order(chosen: list[Option], frame: Frame, world: int) -> dict[int, tuple[int, ...]] | None:
    """Row → dependants that must go first; None where one of them is not chosen to go."""
    edges = frame.edges
    here = edges.world == world
    needed, dependant = edges.needed[here], edges.dependant[here]
    going = {option.row for option in chosen if option.kinds[-1] == TERMINATE}
    waits: dict[int, tuple[int, ...]] = {option.row: () for option in chosen}
    for row in going:
        first = tuple(dependant[needed == row].tolist())
        if not going.issuperset(first):
            return None
        waits[row] = first
    return waits
