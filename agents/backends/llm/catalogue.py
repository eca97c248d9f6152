"""What can be done now, in a size that a prompt can hold.

Each kind of action is described once, with its typed parameters; a few actions of each kind that
can be taken now stand below as quoted data. A small catalogue is listed whole. A large one is
sampled, and of the sample the dearest and the most talked about resources are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from agents.backends.llm.quoting import brief, quoted
from policies.records import Request
from world.actions import Action, ActionTemplate, ParamSpec
from world.catalogue import Catalogue
from world.model import Inventory, Observation

_WHOLE = 48
"""A catalogue of this size is listed whole."""
_READ_PER_KIND = 400
_CHECKS_PER_KIND = 40
_EXAMPLES = 6
_CHOICES = 12
_ROWS = 20
_MENTIONED_ROWS = 5000
_LONGEST_TARGET = 512
_DEAREST = ("cost_usd_per_hour", "billed_usd_per_hour", "count")
_COLUMNS = (
    "name",
    "kind",
    "service",
    "size",
    "region",
    "state",
    "count",
    "cost_usd_per_hour",
    "cpu_percent",
    "memory_percent",
    "idle_hours",
    "age_hours",
    "essential",
    "environment",
    "owner",
    "protected",
    "managed_by",
    "dependants",
    "suspicion",
)


def offered_templates(request: Request) -> tuple[ActionTemplate, ...]:
    """The kinds of which something can be taken now, in the world's order; all, if none can."""
    _, examples = _offered(request)
    templates = request.world.templates
    return tuple(one for one in templates if examples.get(one.kind)) or tuple(templates)


def longest_target(request: Request) -> int:
    """Length of the longest name among the actions that are shown, in characters."""
    _, examples = _offered(request)
    names = (action.target for actions in examples.values() for action in actions)
    seen = request.observation.inventory
    if seen is not None and len(seen) > _MENTIONED_ROWS:
        return _LONGEST_TARGET
    return max(map(len, (*names, *(seen.ids if seen is not None else ()))), default=0) or 64


def catalogue_text(request: Request, limit: int) -> str:
    """Kinds with their parameters, then examples that can be taken now.

    Args:
        request: What was asked.
        limit: Size of the whole in characters, about.
    """
    counts, examples = _offered(request)
    whole = sum(counts.values()) <= _WHOLE
    templates = {template.kind: template for template in request.world.templates}
    offered = [templates[kind] for kind in counts if examples[kind] and kind in templates]
    lines = [_kind_line(one, counts[one.kind]) for one in offered]
    if sum(map(len, lines)) > limit * 3 // 4:
        lines = [_signature(one) for one in offered]
    shown = [_as_data(action) for action in _interleaved(examples)]
    label = "all actions that can be taken now" if whole else "examples that can be taken now"
    head = "\n".join(lines)
    return f"{head}\n{quoted(label, shown, max(limit - len(head), limit // 4))}"


def _offered(request: Request) -> tuple[dict[str, int], dict[str, list[Action]]]:
    """Kind → how many there are, and kind → a few that pass the world's validator now."""
    seen, world = request.observation, request.world
    offered = world.catalogue(seen)
    interest = _interest(seen)
    counts: dict[str, int] = {}
    examples: dict[str, list[Action]] = {}
    whole = len(offered) <= _WHOLE
    for kind, count, sample in _by_kind(offered):
        ranked = sample if whole else sorted(sample, key=lambda one: -interest(one.target))
        taken = examples.setdefault(kind, [])
        for action in ranked[: _WHOLE if whole else _CHECKS_PER_KIND]:
            if len(taken) >= (_WHOLE if whole else _EXAMPLES):
                break
            if world.check(seen, action) is None:
                taken.append(action)
        counts[kind] = counts.get(kind, 0) + count
    return counts, examples


def inventory_text(seen: Observation, limit: int) -> str:
    """The resources that matter most, as quoted rows; "" where the world has none."""
    inventory = seen.inventory
    if inventory is None or not len(inventory):
        return ""
    interest = _interest(seen)
    rows = _dearest_rows(inventory, _ROWS * 2)
    if len(inventory) <= _MENTIONED_ROWS:
        text = " ".join(seen.incidents)
        rows = list(dict.fromkeys([*(r for r, n in enumerate(inventory.ids) if n in text), *rows]))
    ids = sorted((inventory.ids[row] for row in rows), key=lambda name: -interest(name))[:_ROWS]
    data = [_row(inventory, name) for name in ids]
    label = f"resources: {len(data)} of {len(inventory)}, the dearest and those in reports first"
    return quoted(label, data, limit)


def _row(inventory: Inventory, name: str) -> dict[str, Any]:
    row = inventory.row(name)
    kept = {key: row[key] for key in _COLUMNS if key in row}
    return {"id": name, **{key: value for key, value in kept.items() if value and value != "none"}}


def _by_kind(offered: Catalogue) -> Iterator[tuple[str, int, list[Action]]]:
    """Kind, how many there are, and those that were looked at; a long run is sampled evenly."""
    start = 0
    for _, length in offered.blocks:
        step = max(1, -(-length // _READ_PER_KIND))
        found: dict[str, list[Action]] = {}
        for place in range(start, start + length, step):
            action: Action = offered[place]
            found.setdefault(action.kind, []).append(action)
        for kind, actions in found.items():
            yield kind, len(actions) * step if len(found) > 1 else length, actions
        start += length


def _interest(seen: Observation) -> Any:
    """A function from a resource to how much it matters: reported, then dear."""
    inventory = seen.inventory
    reports = " ".join(seen.incidents)
    if inventory is None:
        return lambda target: 1.0 if target and target in reports else 0.0
    column = next((inventory.columns[name] for name in _DEAREST if name in inventory.columns), None)

    def interest(target: str) -> float:
        row = inventory.index.get(target)
        if row is None or column is None:
            dear = 0.0
        else:
            dear = float(np.nan_to_num(column[row]))
        return dear + (1e9 if target and target in reports else 0.0)

    return interest


def _dearest_rows(inventory: Inventory, most: int) -> list[int]:
    column = next((inventory.columns[name] for name in _DEAREST if name in inventory.columns), None)
    if column is None:
        return list(range(min(most, len(inventory))))
    return [int(row) for row in np.argsort(-np.nan_to_num(column), kind="stable")[:most]]


def _interleaved(examples: Mapping[str, list[Action]]) -> list[Action]:
    """One of each kind, then the second of each, so that a cut leaves no kind out."""
    longest = max((len(actions) for actions in examples.values()), default=0)
    return [
        actions[place]
        for place in range(longest)
        for actions in examples.values()
        if place < len(actions)
    ]


def _as_data(action: Action) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": action.kind}
    if action.target:
        data["target"] = action.target
    if action.params:
        data["params"] = dict(action.params)
    return data


def _signature(template: ActionTemplate, choices: int = 4) -> str:
    takes = ["target"] if template.targeted else []
    takes += [_param_text(param, choices) for param in template.params]
    return f"- {template.kind}({', '.join(takes)})" if takes else f"- {template.kind}"


def _kind_line(template: ActionTemplate, count: int) -> str:
    text = f"{_signature(template, _CHOICES)}: {template.title}."
    if template.effect:
        text += f" Effect: {template.effect}."
    if template.delay_steps:
        text += f" Seen after {template.delay_steps} steps."
    if template.destructive:
        text += " Can lose work or data."
    return f"{text} ({count} now)" if count > 1 else text


def _param_text(param: ParamSpec, choices: int) -> str:
    if param.minimum is not None and param.maximum is not None:
        said = f"{param.name}: number {brief(param.minimum)} to {brief(param.maximum)}"
    elif param.choices:
        shown = ", ".join(repr(choice) for choice in param.choices[:choices])
        more = len(param.choices) - choices
        said = f"{param.name}: one of {shown}" + (f" and {more} more" if more > 0 else "")
    else:
        said = f"{param.name}: text or number"
    return said if param.default is None else f"{said}, default {param.default!r}"
