"""Actions of the native world: their templates, how one is read, and how a refusal is worded."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.actions import Action, ActionTemplate, ParamSpec
from world.model import Inventory
from world.worlds.finops import rules
from world.worlds.finops.estate import CELL_COLUMNS
from world.worlds.finops.rules import Cells, Refusal
from world.worlds.finops.schema import MANAGERS
from world.worlds.finops.sizes import canonical_size, ladder
from world.worlds.finops.tables import size_codes, size_table

TEMPLATES: tuple[ActionTemplate, ...] = (
    ActionTemplate("nop", "Do nothing", effect="nothing changes"),
    ActionTemplate(
        "terminate",
        "Terminate an unused resource",
        targeted=True,
        destructive=True,
        effect="its cost_usd_per_hour becomes 0; a credit stays",
    ),
    ActionTemplate(
        "resize",
        "Exchange the machine size within its ladder",
        params=(ParamSpec("new_size", choices=size_table().names[1:]),),
        targeted=True,
        effect="cost moves by the ratio of list prices; CPU and memory percent by vCPU and GiB",
    ),
    ActionTemplate(
        "request_metrics",
        "Ask for CPU, memory and idle time",
        targeted=True,
        delay_steps=rules.METRICS_DELAY_STEPS,
        effect="unknown use becomes known after 1 step; in a bill it is recorded and stays unknown",
    ),
    ActionTemplate(
        "flag_for_owner",
        "Ask the owner whether anything needs it",
        targeted=True,
        delay_steps=rules.OWNER_DELAY_STEPS,
        effect="essential becomes yes or no after 2 steps; in a bill it is recorded only",
    ),
)
"""In the order of the kinds in `rules`."""

KIND_CODES: Mapping[str, int] = {template.kind: code for code, template in enumerate(TEMPLATES)}

_CLOSE_AMONG = 2000
_SHOWN = 5


class Reading(NamedTuple):
    """One action as numbers.

    Attributes:
        kind: Position in the templates; -1 when it is not of this world.
        row: Row of the target; -1 is none.
        size: Size code; -1 is none.
        fault: Why it cannot be read as an action on this inventory; "" when it can.
    """

    kind: int
    row: int = -1
    size: int = -1
    fault: str = ""


def read_action(action: Action, inventory: Inventory) -> Reading:
    """Look up kind, target and size of an action. Nothing is judged here."""
    kind = KIND_CODES.get(action.kind, -1)
    if kind < 0:
        return Reading(-1, fault=_unknown_kind(action.kind))
    names = [name for name, _ in action.params]
    if kind == rules.NOP:
        if names or action.target not in ("", "none"):
            return Reading(kind, fault="nop takes no target and no parameter")
        return Reading(kind)
    row = inventory.index.get(action.target, -1)
    if row < 0:
        return Reading(kind, fault=_unknown_target(action.target, inventory))
    if names != (["new_size"] if kind == rules.RESIZE else []):
        wanted = "exactly one parameter, new_size" if kind == rules.RESIZE else "no parameter"
        return Reading(kind, row, fault=f"{action.kind} takes {wanted}")
    if kind != rules.RESIZE:
        return Reading(kind, row)
    return Reading(kind, row, size_codes().get(str(action.param("new_size")), -1))


def _unknown_kind(kind: str) -> str:
    close = difflib.get_close_matches(kind[:40], KIND_CODES, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no action {kind[:40]!r}; {hint}actions: {', '.join(KIND_CODES)}"


def _unknown_target(target: str, inventory: Inventory) -> str:
    if not target:
        return "it needs a target: the id of a resource"
    ids: Sequence[str] = inventory.ids
    if len(ids) > _CLOSE_AMONG:
        ids = [name for name in ids if name[:4] == target[:4] or name[-4:] == target[-4:]]
    close = difflib.get_close_matches(target[:80], ids[:_CLOSE_AMONG], n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"there is no resource {target[:80]!r}{hint}"


def row_cells(inventory: Inventory, row: int) -> Cells:
    """One row of an inventory view as cells of shape (1,). Hidden columns are not there."""
    columns = inventory.columns
    return {name: columns[name][row : row + 1] for name in CELL_COLUMNS if name in columns}


def refusal_text(action: Action, reading: Reading, code: int, inventory: Inventory) -> str:
    """A refusal in words, with the values that caused it and what would help."""
    row, target = reading.row, action.target
    reason = Refusal(code)
    if reason in _FIXED:
        return _FIXED[reason].format(target=target)
    if reason is Refusal.MANAGED:
        manager = MANAGERS[int(inventory.columns["managed_by"][row])]
        return f"{target} is managed by {manager}: change it there, or it will be undone"
    if reason is Refusal.DEPENDANTS:
        return f"{target} has live dependants: {_dependants(inventory, row)}; terminate them first"
    size = inventory.vocabulary["size"][int(inventory.columns["size"][row])]
    if reason is Refusal.NO_SIZE:
        return f"{target} has no machine size that can be exchanged (size {size[:40]!r})"
    if reason is Refusal.SAME_SIZE:
        return f"{target} is {size} already"
    wanted = str(action.param("new_size"))[:40]
    close = canonical_size(wanted)
    hint = f"; did you mean {close}?" if close and close != wanted else ""
    return f"{wanted!r} is not on the ladder of {size}{hint}; ladder: {', '.join(ladder(size))}"


_FIXED: Mapping[Refusal, str] = {
    Refusal.GONE: "{target} is terminated already",
    Refusal.PROTECTED: "{target} is protected: it may never be touched",
    Refusal.USE_UNKNOWN: "the use of {target} is unknown: request_metrics first",
    Refusal.CPU_UNKNOWN: "the CPU of {target} is unknown: request_metrics first",
    Refusal.MEMORY_UNKNOWN: "the memory of {target} is unknown: request_metrics first",
    Refusal.ESSENTIAL_UNKNOWN: (
        "nobody has said whether anything needs {target} (essential is unknown): "
        "flag_for_owner first"
    ),
    Refusal.USE_KNOWN: "the use of {target} is known already",
    Refusal.METRICS_ASKED: "the metrics of {target} were requested already",
    Refusal.ESSENTIAL_KNOWN: "it is known already whether anything needs {target}",
    Refusal.OWNER_ASKED: "the owner of {target} was asked already; asking again changes nothing",
    Refusal.CLASH: "another action of this step has the target {target}",
}


def _dependants(inventory: Inventory, row: int) -> str:
    words = inventory.vocabulary["dependants"][int(inventory.columns["dependants"][row])]
    index, state = inventory.index, inventory.columns["state"]
    alive = [name for name in words.split() if name in index and not state[index[name]]]
    more = len(alive) - _SHOWN
    return ", ".join(alive[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def hazard_texts(action: Action, reading: Reading, cells: Cells) -> tuple[str, ...]:
    """The harm that an allowed action would do, by effect, from what is known."""
    act = np.array([reading.kind])
    new_size = np.array([reading.size], dtype=np.int32)
    broken = rules.damage(cells, act, new_size)
    target = action.target
    texts: list[str] = []
    if broken.harm[0] and reading.kind == rules.TERMINATE:
        texts.append(f"{target} is essential: terminating it is an outage")
    if broken.violation[0] and reading.kind == rules.TERMINATE:
        texts.append(f"{target} is in use ({_use(cells)})")
    if broken.violation[0] and reading.kind == rules.RESIZE:
        after = rules.advance(cells, act, new_size, np.zeros(1, dtype=np.int32), answers=False)
        kept = "essential, and " if broken.harm[0] else ""
        texts.append(f"{target} is {kept}overloaded as {action.param('new_size')} ({_use(after)})")
    return tuple(texts)


def _use(cells: Cells) -> str:
    parts = []
    for name, text in (("cpu_percent", "CPU {:.3g} %"), ("memory_percent", "memory {:.3g} %")):
        if not np.isnan(cells[name][0]):
            parts.append(text.format(cells[name][0]))
    for name, text in (("idle_hours", "last used {:.3g} h ago"), ("age_hours", "{:.3g} h old")):
        if cells[name][0] < rules.GRACE_HOURS:
            parts.append(text.format(cells[name][0]))
    return ", ".join(parts)


def effect_text(action: Action, kind: int, before: Cells, after: Cells, answers: bool) -> str:
    """What an applied action did to its row, with numbers."""
    if kind == rules.NOP:
        return "nothing"
    saved = _money(before) - _money(after)
    if kind == rules.TERMINATE:
        return f"terminated; saves {saved:.6g} $/h"
    if kind == rules.RESIZE:
        verb = f"saves {saved:.6g}" if saved >= 0 else f"costs {-saved:.6g} more"
        use = _use({name: cells[:1] for name, cells in after.items()})
        return f"now {action.param('new_size')}; {verb} $/h; {use or 'use unknown'}"
    if kind == rules.REQUEST_METRICS:
        return "metrics arrive after 1 step" if answers else "recorded; join metrics to the bill"
    return "the owner answers after 2 steps" if answers else "recorded for the owner"


def _money(cells: Cells) -> float:
    return float(cells["cost_usd_per_hour"][0])


def encode_reading(reading: Reading) -> tuple[int, int, float]:
    """Kind, row and parameter of an `Encoded` slot; a size is its index in the choices."""
    return reading.kind, reading.row, float(reading.size - 1) if reading.size > 0 else -1.0


def size_codes_of(params: NDArray[np.float64]) -> NDArray[np.int32]:
    """Size codes of an `Encoded` parameter array [B, slots, 1]; -1 is none."""
    return np.where(params[..., 0] >= 0.0, params[..., 0] + 1.0, -1.0).astype(np.int32)


def as_cells(columns: Mapping[str, NDArray[Any]], row: int) -> Cells:
    """One row of world 0 of a state's columns."""
    return {name: column[0, row : row + 1] for name, column in columns.items()}
