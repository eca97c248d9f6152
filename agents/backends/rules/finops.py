"""Rules of the four seats over an inventory that is to be cleaned up, right-sized and kept alive.

Every rule ranks rows by whole columns and looks closely only at the few best, so that 100,000 rows
cost milliseconds. What counts as idle, in use or fully measured is the world's own definition. No
rule ever proposes to terminate what is, or may be, essential: where it cannot know, it asks.

The two original versions of the task have no ladder and no owners to ask; for them there is one
careful rule, which all seats share (`finops_seed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.backends.rules import finops_seed
from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Proposal, Request
from world.actions import NOP, Action
from world.model import Inventory
from world.worlds.finops import rules, sizes
from world.worlds.finops.schema import ESSENTIAL
from world.worlds.finops.tables import UNKNOWN_CPU_PERCENT, size_table

SHORTLIST = 16
"""Rows per kind of action that are looked at closely."""
_SATURATION = "saturation_percent"
_NO, _UNKNOWN = ESSENTIAL.index("no"), ESSENTIAL.index("unknown")
_ID_CHARACTERS = 60
_NEGLIGIBLE_FRACTION = 0.001
"""What is not measured and costs less than this share of all spend is not worth asking about."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Option(NamedTuple):
    """One action with the reason for it."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """An inventory as arrays over its rows.

    Attributes:
        inventory: The inventory as observed.
        cells: Its columns.
        size: Code in the size table; 0 is no size that the table knows.
        ours: Rows that may be changed at all.
        idle: Rows known not to be in use.
        zombies: Rows that are idle, known not to be essential, and needed by nothing that lives.
        smaller: Size code of the cheapest smaller size that is known to fit; 0 is none.
    """

    inventory: Inventory
    cells: rules.Cells
    size: NDArray[Any]
    ours: Mask
    idle: Mask
    zombies: Mask
    smaller: NDArray[np.int32]

    @staticmethod
    def of(inventory: Inventory) -> Sheet:
        """Judge every row once."""
        cells = dict(inventory.columns)
        live = cells["state"] == 0
        ours = live & (cells["protected"] == 0) & (cells["managed_by"] == 0)
        idle = live & rules.use_known(cells) & ~rules.in_use(cells)
        needed = (cells["essential"] != _NO) | (cells["live_dependants"] > 0)
        zombies = ours & idle & ~needed & (cells["cost_usd_per_hour"] > 0)
        size = rules.size_row(cells)
        smaller = _cheapest_fit(cells, size, ours & ~zombies)
        return Sheet(inventory, cells, size, ours, idle, zombies, smaller)

    def number(self, column: str, row: int) -> float:
        """One cell."""
        return float(self.cells[column][row])

    def label(self, row: int) -> str:
        """Id and size, or kind, of a row."""
        name = self.inventory.ids[row]
        if len(name) > _ID_CHARACTERS:
            name = f"{name[: _ID_CHARACTERS - 1]}…"
        column = "size" if self.word("size", row) else "kind"
        return f"{name} {self.word(column, row)}"

    def word(self, column: str, row: int) -> str:
        """One cell of a coded column."""
        return self.inventory.vocabulary[column][int(self.cells[column][row])]


def _cheapest_fit(cells: rules.Cells, size: NDArray[Any], rows: Mask) -> NDArray[np.int32]:
    """Size code per row of the cheapest smaller size that is known to fit, 0 where none is."""
    table = size_table()
    found = np.zeros(size.shape, dtype=np.int32)
    hot = np.maximum(cells["cpu_percent"], cells["memory_percent"])  # NaN where one is unknown
    look = np.flatnonzero(
        rows & (size > 0) & (hot < sizes.FIT_CEILING_PERCENT) & (cells["cost_usd_per_hour"] > 0)
    )
    old = size[look]
    options = table.smaller[old]  # [rows, most], cheapest first, padded with 0
    cpu = (cells["cpu_percent"][look] * table.vcpu[old])[:, None] / table.vcpu[options]
    memory = (cells["memory_percent"][look] * table.memory_gib[old])[:, None]
    fits = (cpu < sizes.FIT_CEILING_PERCENT) & (
        memory / table.memory_gib[options] < sizes.FIT_CEILING_PERCENT
    )
    first = np.argmax(fits, axis=1)
    found[look] = np.where(fits.any(axis=1), options[np.arange(look.size), first], 0)
    return found


def best_rows(gain: Floats, count: int = SHORTLIST) -> list[int]:
    """Rows of the largest gains above 0, best first, equals in row order."""
    clean = np.nan_to_num(gain, nan=0.0, posinf=0.0, neginf=0.0)
    floor = 0.0
    if clean.size > 4 * count:
        floor = float(np.partition(clean, clean.size - count)[clean.size - count])
    rows = np.flatnonzero((clean > 0) & (clean >= floor))
    order = np.argsort(-clean[rows], kind="stable")[:count]
    chosen: list[int] = rows[order].tolist()
    return chosen


def _saved_usd(sheet: Sheet) -> Floats:
    """$/h that each row's best known change saves: all of a zombie, part of what is oversized."""
    table, size = size_table(), sheet.size
    cost: Floats = sheet.cells["cost_usd_per_hour"]
    ratio = table.usd_per_hour[sheet.smaller] / table.usd_per_hour[size]
    resized = np.where(sheet.smaller > 0, cost * (1.0 - ratio), 0.0)
    saved: Floats = np.where(sheet.zombies, cost, resized)
    return saved


def _watts(size: NDArray[Any], cpu_percent: Floats) -> Floats:
    """Power per row in W, piecewise linear over 0, 50 and 100 % CPU."""
    idle, half, full = np.moveaxis(size_table().watts[size], -1, 0)
    level = np.clip(np.where(np.isnan(cpu_percent), UNKNOWN_CPU_PERCENT, cpu_percent), 0.0, 100.0)
    low = idle + (half - idle) * level / 50.0
    power: Floats = np.where(level <= 50.0, low, half + (full - half) * (level - 50.0) / 50.0)
    return power


def _saved_watts(sheet: Sheet) -> Floats:
    """W that each row's best known change saves."""
    table, size = size_table(), sheet.size
    cpu: Floats = sheet.cells["cpu_percent"]
    new = np.where(sheet.smaller > 0, sheet.smaller, size)
    before = _watts(size, cpu)
    after = _watts(new, cpu * table.vcpu[size] / table.vcpu[new])
    change = np.where(sheet.smaller > 0, before - after, 0.0)
    saved: Floats = np.where(sheet.zombies, before, change)
    return saved


def _change(sheet: Sheet, row: int, gain: str) -> Option:
    """Terminate a zombie, or resize to what fits."""
    target, cost = sheet.inventory.ids[row], sheet.number("cost_usd_per_hour", row)
    if sheet.zombies[row]:
        reason = f"{sheet.label(row)} {_idle(sheet, row)} at {cost:.4g} $/h: terminate saves {gain}"
        return Option(Action.of("terminate", target), reason)
    new = size_table().names[sheet.smaller[row]]
    cpu, memory = sizes.projected_percent(
        sheet.word("size", row), new, sheet.number("cpu_percent", row), _memory(sheet, row)
    )
    reason = (
        f"{sheet.label(row)} at {sheet.number('cpu_percent', row):.3g} % CPU and "
        f"{_memory(sheet, row):.3g} % memory, {cost:.4g} $/h: {new} runs it at "
        f"{cpu:.3g} % and {memory:.3g} %, saves {gain}"
    )
    return Option(Action.of("resize", target, new_size=new), reason)


def _memory(sheet: Sheet, row: int) -> float:
    return sheet.number("memory_percent", row)


def _idle(sheet: Sheet, row: int) -> str:
    hours, cpu = sheet.number("idle_hours", row), sheet.number("cpu_percent", row)
    return f"idle {hours:.0f} h" if hours == hours else f"at {cpu:.3g} % CPU"


def _requests(sheet: Sheet, mask: Mask, why: str) -> list[Option]:
    """Ask for the metrics of the dearest rows whose use is not fully known.

    Asking ends where all that is left to ask about is a negligible part of the spend: a bill of
    hundreds of rows has a long tail, and no answer about it could change anything.
    """
    spend = _unmeasured_usd(sheet, mask)
    rows = best_rows(spend)
    left = spend.sum() - np.cumsum(spend[rows]) + spend[rows]  # from each row on, itself included
    floor = _NEGLIGIBLE_FRACTION * np.maximum(sheet.cells["cost_usd_per_hour"], 0.0).sum()
    return [
        Option(
            Action.of("request_metrics", sheet.inventory.ids[row]),
            f"{sheet.label(row)} costs {sheet.number('cost_usd_per_hour', row):.4g} $/h and its "
            f"use is not fully known: {why}",
        )
        for row, rest in zip(rows, left.tolist(), strict=True)
        if rest >= floor
    ]


def _unmeasured_usd(sheet: Sheet, mask: Mask) -> Floats:
    """$/h of each row whose use is not fully known and was not asked for; 0 elsewhere."""
    cells = sheet.cells
    unknown = mask & ~rules.use_complete(cells) & (cells["metrics_asked"] == 0)
    spend: Floats = np.where(unknown, np.maximum(cells["cost_usd_per_hour"], 0.0), 0.0)
    return spend


def _unasked(sheet: Sheet) -> str:
    """What was not worth asking about, in words; empty where there is no such thing."""
    left = float(_unmeasured_usd(sheet, sheet.ours).sum())
    return f", and what is left to measure costs {left:.3g} $/h in all" if left > 0.0 else ""


def _flags(sheet: Sheet) -> list[Option]:
    """Ask the owners of the dearest idle rows of which nobody knows whether they are essential."""
    cells = sheet.cells
    unjudged = sheet.ours & sheet.idle & (cells["essential"] == _UNKNOWN)
    unjudged &= (cells["owner_asked"] == 0) & (cells["live_dependants"] == 0)
    return [
        Option(
            Action.of("flag_for_owner", sheet.inventory.ids[row]),
            f"{sheet.label(row)} {_idle(sheet, row)} at "
            f"{sheet.number('cost_usd_per_hour', row):.4g} $/h, essential or not is unknown: "
            "its owner must say before anybody terminates it",
        )
        for row in best_rows(np.where(unjudged, cells["cost_usd_per_hour"], 0.0))
    ]


def _resource(request: Request, sheet: Sheet) -> tuple[Proposal, ...]:
    """Give the hottest machines room; else ask for what is not measured; else leave well alone."""
    ceiling = request.observation.targets.get(_SATURATION, sizes.FIT_CEILING_PERCENT)
    hot = np.fmax(sheet.cells["cpu_percent"], sheet.cells["memory_percent"])
    over = sheet.ours & (sheet.size > 0) & (hot >= ceiling)
    relief = [_relief(sheet, row, ceiling) for row in best_rows(np.where(over, hot, 0.0))]
    found = _agenda(request, [option for option in relief if option is not None])
    served = sheet.ours & (sheet.cells["essential"] != _NO)
    asks = _requests(sheet, served, "headroom that is not measured cannot be protected")
    known = sheet.cells["state"] == 0
    known &= ~np.isnan(hot)
    peak = f"{hot[known].max():.3g} %" if known.any() else "unknown"
    calm = _nothing(request, f"hottest known machine at {peak}, limit {ceiling:.3g} %")
    return (*found, *_agenda(request, asks, singles=3), *(() if found else calm))


def _relief(sheet: Sheet, row: int, ceiling: float) -> Option | None:
    """The next size up that brings a hot row below the ceiling, or the largest there is."""
    size = sheet.word("size", row)
    cpu, memory = sheet.number("cpu_percent", row), _memory(sheet, row)
    larger = sizes.larger_sizes(size)
    if not larger:
        return None
    fitting = [new for new in larger if sizes.fits(size, new, cpu, memory, ceiling)]
    new = min(fitting, key=sizes.price) if fitting else larger[-1]
    then_cpu, then_memory = sizes.projected_percent(size, new, cpu, memory)
    extra = sheet.number("cost_usd_per_hour", row) * (sizes.price(new) / sizes.price(size) - 1.0)
    return Option(
        Action.of("resize", sheet.inventory.ids[row], new_size=new),
        f"{sheet.label(row)} is saturated at {np.fmax(cpu, memory):.3g} %, limit {ceiling:.3g} %: "
        f"{new} runs it at {np.fmax(then_cpu, then_memory):.3g} % for {extra:+.4g} $/h",
    )


def _cost(request: Request, sheet: Sheet) -> tuple[Proposal, ...]:
    """The dearest savings first; where none is known, the metrics that could show one."""
    saved = _saved_usd(sheet)
    changes = [_change(sheet, row, f"{saved[row]:.4g} $/h") for row in best_rows(saved)]
    found = _agenda(request, changes)
    if found:
        return found
    asks = _agenda(request, _requests(sheet, sheet.ours, "no saving can be shown without it"))
    calm = f"no saving is known: nothing idle, nothing that fits smaller{_unasked(sheet)}"
    return asks or _nothing(request, calm)


def _sustainability(request: Request, sheet: Sheet) -> tuple[Proposal, ...]:
    """Most carbon first: watts saved, weighted by how the region's power is made."""
    watts = _saved_watts(sheet)
    kg = (
        watts * sheet.cells["grid_g_per_kwh"] * 24e-6
    )  # W · 24 h/day ÷ 1000 W/kW · g/kWh ÷ 1000 g/kg
    changes = [
        _change(sheet, row, f"{watts[row]:.3g} W, {kg[row]:.3g} kg CO2e/day")
        for row in best_rows(kg)
    ]
    return _agenda(request, changes) or _nothing(request, "no known change saves energy")


def _janitor(request: Request, sheet: Sheet) -> tuple[Proposal, ...]:
    """Zombies first; free hands ask about the dearest rows that nobody can judge."""
    cost = np.where(sheet.zombies, sheet.cells["cost_usd_per_hour"], 0.0)
    zombies = [
        _change(sheet, row, f"{sheet.number('cost_usd_per_hour', row):.4g} $/h")
        for row in best_rows(cost)
    ]
    asks = [
        *_flags(sheet),
        *_requests(sheet, sheet.ours, "nobody can say whether it is needed"),
    ]
    most = request.world.limits.max_actions_per_step
    first = _agenda(request, [*zombies[:SHORTLIST], *asks], singles=0)
    sweep = _agenda(request, zombies, singles=3)
    inquiry = _agenda(request, asks, singles=MAX_PROPOSALS if not zombies else most)
    merged = _distinct([*first, *sweep, *inquiry])
    return merged or _nothing(request, f"nothing is idle and known to be needless{_unasked(sheet)}")


RULES_BY_ROLE: Mapping[str, Callable[[Request, Sheet], tuple[Proposal, ...]]] = {
    "resource": _resource,
    "cost": _cost,
    "sustainability": _sustainability,
    "janitor": _janitor,
}


def _agenda(
    request: Request, options: Iterable[Option], singles: int = MAX_PROPOSALS
) -> tuple[Proposal, ...]:
    """The best options that can be taken together as one proposal, then each alone.

    What the world's validator refuses is left out. Two options go together when what they touch
    does not meet.
    """
    seen, world = request.observation, request.world
    able = [option for option in options if world.check(seen, option.action) is None]
    together: list[Option] = []
    touched: frozenset[str] = frozenset()
    for option in able:
        reach = world.touched(seen, option.action)
        if len(together) < world.limits.max_actions_per_step and not reach & touched:
            together.append(option)
            touched |= reach
    alone = [Proposal((option.action,), option.reason) for option in able[:singles]]
    if not together or (len(together) == 1 and singles):
        return tuple(alone[:MAX_PROPOSALS])
    actions = tuple(option.action for option in together)
    joint = Proposal(actions, "; ".join(option.reason for option in together))
    return (joint, *alone[: MAX_PROPOSALS - 1])


def _distinct(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    by_actions: dict[frozenset[Action], Proposal] = {}
    for proposal in proposals:
        by_actions.setdefault(frozenset(proposal.actions), proposal)
    return tuple(by_actions.values())


def _nothing(request: Request, why: str) -> tuple[Proposal, ...]:
    nop = Action.of(NOP)
    if request.world.check(request.observation, nop) is not None:
        return ()
    return (Proposal((nop,), f"{why}: change nothing"),)


def _rule(role: str) -> Callable[[Request, PersonaSpec], tuple[Proposal, ...]]:
    def propose(request: Request, spec: PersonaSpec) -> tuple[Proposal, ...]:
        del spec
        inventory = request.observation.inventory
        if inventory is None:
            return ()
        if not any(template.kind == "flag_for_owner" for template in request.world.templates):
            return finops_seed.propose(request, inventory)
        return RULES_BY_ROLE[role](request, Sheet.of(inventory))[:MAX_PROPOSALS]

    return propose


RULES = {role: _rule(role) for role in RULES_BY_ROLE}
"""Role → rule."""
