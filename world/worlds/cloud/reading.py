"""From actions as text to codes, and the finite list of what the world offers.

One reader serves dry run, projection and execution. Older names are read as today's kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from world.actions import Action, ParamSpec, ParamValue
from world.catalogue import Catalogue
from world.worlds.cloud import aims, menu, rules
from world.worlds.cloud.rules import TEXTS, Refusal
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats
from world.worlds.cloud.tables import machines
from world.worlds.cloud.view import CloudInventory
from world.worlds.finops.sizes import canonical_size

Values = tuple[float, float, float]


class Reading(NamedTuple):
    """An action in codes.

    Attributes:
        kind: Code of the kind; −1 is not of this world.
        target: Resource row or service; −1 is none.
        params: Three numbers.
        fault: Why it cannot be read; empty when it can.
    """

    kind: int
    target: int
    params: Values
    fault: str = ""


_NOTHING: Values = (0.0, 0.0, 0.0)


def read(action: Action, inventory: CloudInventory) -> Reading:
    """Read one action against a view. Never raises; a fault says what is wrong."""
    known: dict[Action, Reading] = inventory.kept.setdefault("readings", {})
    found = known.get(action)
    if found is None:
        found = _read(action, inventory)
        if not found.fault:
            known[action] = found
    return found


def _read(action: Action, inventory: CloudInventory) -> Reading:
    kind = menu.CODES.get(menu.ALIASES.get(action.kind, action.kind), -1)
    if kind < 0:
        kinds = ", ".join(menu.CODES)
        return Reading(-1, -1, _NOTHING, f"there is no action {action.kind!r}; there are {kinds}")
    spec = menu.KINDS[kind]
    known = {param.name for param in spec.template.params}
    for name, _ in action.params:
        if name not in known:
            said = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            return Reading(kind, -1, _NOTHING, f"it has no parameter {name!r}; {said}")
    target, fault = _target(spec, kind, action.target, inventory)
    if fault:
        return Reading(kind, target, _NOTHING, fault)
    values = [0.0] * menu.PARAMS
    for at, param in enumerate(spec.template.params):
        value = action.param(param.name, param.default)
        number, fault = _value(param, value, inventory)
        if fault:
            return Reading(kind, target, _NOTHING, fault)
        values[at] = number
    return Reading(kind, target, (values[0], values[1], values[2]))


def _target(spec: menu.Kind, kind: int, target: str, inventory: CloudInventory) -> tuple[int, str]:
    settings = inventory.settings
    services = settings.params.services
    if spec.target == "none":
        return -1, f"it takes no target, not {target[:80]!r}" if target else ""
    if not target:
        return -1, f"it needs a target: a {'resource' if spec.target == 'row' else 'service'}"
    if spec.target == "service":
        if target not in services:
            return -1, f"there is no service {target[:80]!r}; there are {', '.join(services)}"
        return services.index(target), ""
    row = inventory.index.get(target)
    if row is None and target in services and kind in (menu.SCALE_UP, menu.SCALE_DOWN):
        # A service stands for its largest pool.
        first = services.index(target) * settings.regions
        count = inventory.public["count"][0, first : first + settings.regions]
        row = first + int(np.argmax(count))
    if row is None:
        return -1, f"there is no resource {target[:80]!r}"
    return row, ""


def _value(
    param: ParamSpec, value: ParamValue | None, inventory: CloudInventory
) -> tuple[float, str]:
    if value is None:
        return 0.0, f"it needs {param.name}"
    if param.name == "new_size":
        code = machines(inventory.settings.params.power_model).names
        size = canonical_size(str(value))
        if size is None:
            return 0.0, f"there is no machine size {str(value)[:40]!r}"
        return float(code.index(size)), ""
    if param.name == "region":
        if value not in inventory.region_names:
            names_ = ", ".join(inventory.region_names)
            return 0.0, f"there is no region {str(value)[:40]!r} in this world; there are {names_}"
        return float(inventory.region_names.index(str(value))), ""
    if param.name in ("with_data", "enabled"):
        if not isinstance(value, bool):
            return 0.0, f"{param.name} is {str(value)[:40]!r}, it must be true or false"
        return float(value), ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        return 0.0, f"{param.name} is {str(value)[:40]!r}, it must be a number"
    low, high = param.minimum or 0.0, param.maximum or 0.0
    if not low <= value <= high or (param.name == "level" and value != int(value)):
        return 0.0, f"{param.name} is {value:g}, it must lie between {low:g} and {high:g}"
    return float(value), ""


def refusal(reading: Reading, inventory: CloudInventory) -> Refusal:
    """Why a readable action cannot be taken now."""
    if reading.kind == menu.NOP:
        return Refusal.NONE
    sheet = inventory.sheet(
        np.array([max(reading.target, 0)]), np.array([reading.params], dtype=np.float64)
    )
    return Refusal(int(rules.refusals(reading.kind, sheet)[0]))


def refusal_text(action: Action, code: Refusal, reading: Reading, inventory: CloudInventory) -> str:
    """The reason in words, with the dependants where it is they."""
    text = TEXTS[code]
    if code == Refusal.DEPENDANTS:
        needed = int(inventory.public["needed_by"][0, reading.target])
        text = f"{inventory.ids[needed]} needs it"
    return f"{action.target or action.kind}: {text}"


Block = tuple[str, int, Callable[[int], Action]]


def catalogue(inventory: CloudInventory) -> Catalogue:
    """nop, and every action that the validator lets pass now, parameters enumerated."""
    kept = inventory.kept.get("catalogue")
    if isinstance(kept, Catalogue):
        return kept
    blocks: list[Block] = [("nop", 1, lambda _: Action("nop"))]
    for kind in range(1, len(menu.KINDS)):
        targets, params = _options(kind, inventory)
        if not len(targets):
            continue
        codes = rules.refusals(kind, inventory.sheet(targets, params))
        keep = np.flatnonzero(codes == 0)
        if len(keep) == len(targets):
            blocks.append(_block(kind, targets, params, inventory))
        elif len(keep):
            blocks.append(_block(kind, targets[keep], params[keep], inventory))
    made = Catalogue(blocks)
    inventory.kept["catalogue"] = made
    return made


def passed(inventory: CloudInventory) -> set[Action]:
    """Actions of the catalogue that were asked for: the validator has let them pass already."""
    known: set[Action] = inventory.kept.setdefault("passed", set())
    return known


def _options(kind: int, inventory: CloudInventory) -> tuple[Array, Floats]:
    """Every target and parameter of a kind that could make sense: targets [N], params [N, 3]."""
    settings = inventory.settings
    spec = menu.KINDS[kind]
    if spec.target == "none":
        targets: Array = np.zeros(1, dtype=np.intp)
    elif spec.target == "service":
        targets = np.arange(settings.s)
    else:
        targets = aims.rows_for(kind, inventory)
    if kind == menu.RESIZE:
        return _sizes(targets, inventory)
    choices = [_choices(param, settings) for param in spec.template.params]
    combos = np.array(list(itertools.product(*choices)), dtype=np.float64)
    combos = combos.reshape(max(len(combos), 1), len(choices))
    params = np.zeros((len(targets) * len(combos), menu.PARAMS))
    params[:, : len(choices)] = np.tile(combos, (len(targets), 1))
    return np.repeat(targets, len(combos)), params


def _choices(param: ParamSpec, settings: Settings) -> Sequence[float]:
    if param.name == "region":
        return [float(slot) for slot in range(settings.regions)]
    return [float(choice) for choice in param.choices if not isinstance(choice, str)]


def _sizes(targets: Array, inventory: CloudInventory) -> tuple[Array, Floats]:
    """Every other size on the ladder of every sized row."""
    ladder = machines(inventory.settings.params.power_model).ladder
    steps = [np.flatnonzero(ladder == rung) for rung in range(int(ladder.max()) + 1)]
    width = max(map(len, steps))
    table = np.full((len(steps), width), -1)
    for rung, codes in enumerate(steps):
        table[rung, : len(codes)] = codes
    now = inventory.public["size"][0, targets]
    codes = table[ladder[now]]
    place, at = np.nonzero((codes >= 0) & (codes != now[:, None]))
    params = np.zeros((len(place), menu.PARAMS))
    params[:, 0] = codes[place, at]
    return targets[place], params


def _block(kind: int, targets: Array, params: Floats, inventory: CloudInventory) -> Block:
    spec = menu.KINDS[kind]
    known = passed(inventory)

    def make(item: int) -> Action:
        target = int(targets[item])
        label = ""
        if spec.target == "row":
            label = inventory.ids[target]
        elif spec.target == "service":
            label = inventory.settings.params.services[target]
        pairs = [
            (param.name, _spell(param, float(params[item, at]), inventory))
            for at, param in enumerate(spec.template.params)
        ]
        action = Action(spec.name, label, tuple(sorted(pairs)))
        known.add(action)
        return action

    return spec.name, len(targets), make


def _spell(param: ParamSpec, value: float, inventory: CloudInventory) -> ParamValue:
    if param.name == "new_size":
        return str(menu.SIZES[int(value) - 1])
    if param.name == "region":
        return str(inventory.region_names[int(value)])
    if param.name in ("with_data", "enabled"):
        return bool(value)
    if param.name == "level":
        return int(value)
    return value


def touched(reading: Reading, inventory: CloudInventory) -> frozenset[str]:
    """Ids that an action touches: its row with what it hangs on and what needs it, or every tier
    of its service.
    """  # noqa: D205
    settings, spec = inventory.settings, menu.KINDS[reading.kind]
    if spec.target == "none":
        return frozenset({spec.name}) if reading.kind == menu.DETECT else frozenset()
    if spec.target == "service":
        rows = np.flatnonzero(settings.queue_service == reading.target).tolist()
        return frozenset({settings.params.services[reading.target]}).union(
            inventory.ids[row] for row in rows
        )
    row = reading.target
    partners = (
        int(inventory.public["attached_to"][0, row]), int(inventory.public["needed_by"][0, row])
    )  # fmt: skip
    return frozenset(inventory.ids[at] for at in (row, *partners) if at >= 0)
