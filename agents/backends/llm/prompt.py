"""From a request to the two messages that a model is sent.

Our own words (metrics, objectives, kinds of action) stand as text. Everything that somebody else
wrote stands as quoted data between markers (`agents.backends.llm.quoting`). The result is a pure
function of persona and request, bounded in size, and the same on every machine: its hash is what
a recording is found by.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from agents.backends.llm.catalogue import catalogue_text, inventory_text
from agents.backends.llm.quoting import brief, json_text, quoted
from agents.backends.llm.schema import form_of, labels_of
from agents.persona_schema import PersonaSpec
from policies.records import Position, Request
from world.actions import joint_id
from world.model import MetricSpec, Observation

FOLDER = Path(__file__).parent.parent.parent / "prompts"
_HISTORY_STEPS = 4
_PROPOSALS_SHOWN = 2
_SHARES = {
    "facts": 0.16,
    "incidents": 0.06,
    "unknown": 0.03,
    "inventory": 0.20,
    "catalogue": 0.32,
    "history": 0.06,
    "others": 0.10,
    "memory": 0.07,
    "ask": 0.30,
}
"""Share of ``prompt.max_chars`` that each block may take."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a model is sent.

    Attributes:
        system: Who it is.
        user: The situation and the question.
    """

    system: str
    user: str

    @property
    def digest(self) -> str:
        """SHA-256 over both."""
        text = f"{len(self.system)}:{self.system}{self.user}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def render(spec: PersonaSpec, request: Request) -> Rendered:
    """The messages for one question to one seat."""
    values = _values(spec, request)
    texts = spec.prompt
    user = texts.paraphrases[texts.paraphrase - 1] if texts.paraphrase else texts.user
    system = Template(texts.system or _shipped("system")).substitute(values)
    situation = Template(user or _shipped("user")).substitute(values)
    task = Template(_shipped(request.ask.kind)).substitute(
        options=_options(spec.prompt.options),
        form=form_of(request),
        ask=_ask_text(request, _share(spec, "ask")),
    )
    return Rendered(system.strip(), f"{_without_gaps(situation)}\n\n{task.strip()}")


@cache
def _shipped(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def _options(most: int) -> str:
    return "one option" if most == 1 else f"one to {most} options"


def _share(spec: PersonaSpec, block: str) -> int:
    return int(spec.prompt.max_chars * _SHARES[block])


def _without_gaps(text: str) -> str:
    """At most one empty line in a row, where a block had nothing to say."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)


def _values(spec: PersonaSpec, request: Request) -> dict[str, str]:
    seen, world = request.observation, request.world
    metrics = {metric.name: metric for metric in world.metrics}
    own = [each for each in request.positions if each.seat == request.ask.seat]
    facts = [{name: value} for name, value in seen.facts.items()]
    return {
        "catalogue": catalogue_text(request, _share(spec, "catalogue")),
        "changes": _changes(request),
        "description": spec.identity.description.strip(),
        "facts": quoted("facts", facts, _share(spec, "facts")) if facts else "",
        "history": _history(request, _share(spec, "history")),
        "horizon": str(seen.horizon),
        "incidents": _block("reports of trouble", seen.incidents, _share(spec, "incidents")),
        "inventory": inventory_text(seen, _share(spec, "inventory")),
        "max_actions": str(world.limits.max_actions_per_step),
        "memory": _memory(own, request, spec),
        "metrics": _metrics(seen, metrics),
        "objectives": _objectives(spec, seen, metrics),
        "others": _others(spec, request),
        "outcomes": _outcomes(seen, _share(spec, "history")),
        "red_lines": _red_lines(spec),
        "role": spec.identity.role,
        "seat": request.ask.seat,
        "step": str(request.step + 1),
        "targets": _targets(seen),
        "title": spec.identity.title or spec.id,
        "unknown": _block("not known", seen.unknown, _share(spec, "unknown")),
    }


def _block(label: str, texts: tuple[str, ...], limit: int) -> str:
    return quoted(label, texts, limit) if texts else ""


def _number(value: float | None) -> str:
    return "not known" if value is None else str(brief(value))


def _metrics(seen: Observation, metrics: dict[str, MetricSpec]) -> str:
    lines = []
    for name, value in seen.metrics.items():
        unit = f" ({metrics[name].title})" if name in metrics else ""
        line = f"- {name}{unit}: {_number(value)}"
        target = seen.targets.get(name)
        if target is not None:
            line += f", target below {_number(target)}"
            if value is not None:
                gap = value - target
                line += f", {_number(gap)} too high" if gap >= 0 else f", met by {_number(-gap)}"
        lines.append(line)
    return "\n".join(lines)


def _targets(seen: Observation) -> str:
    return "\n".join(f"- {name} below {_number(value)}" for name, value in seen.targets.items())


def _changes(request: Request) -> str:
    """Metrics that moved since the step before, and what became of the last actions."""
    before, now = request.history.previous, request.observation
    if before is None:
        return "This is the first step."
    lines = []
    for name, value in now.metrics.items():
        was = before.metrics.get(name)
        if value is not None and was is not None and value != was:
            change = value - was
            sign = "+" if change > 0 else "−"
            lines.append(f"- {name}: {sign}{_number(abs(change))}")
    return "\n".join([*(lines or ["No metric moved."]), _outcomes(now, 1500)]).strip()


def _outcomes(seen: Observation, limit: int) -> str:
    if not seen.outcomes:
        return ""
    data = [
        {
            "action": outcome.action.id,
            "status": outcome.status,
            **({"effect": outcome.effect} if outcome.effect else {}),
            **({"reason": outcome.reason} if outcome.reason else {}),
        }
        for outcome in seen.outcomes
    ]
    return quoted("what became of the last actions", data, limit)


def _objectives(spec: PersonaSpec, seen: Observation, metrics: dict[str, MetricSpec]) -> str:
    lines = []
    for name, table in spec.objectives:
        if table is None or not table.weight:
            continue
        served = [metric for metric, known in metrics.items() if known.objective == name]
        target = table.target
        if target is None:
            target = next((seen.targets[one] for one in served if one in seen.targets), None)
        line = f"- {name}, weight {brief(table.weight)}"
        if served:
            line += f": {', '.join(served)}"
        if target is not None:
            line += f", wanted below {_number(target)}"
        if table.margin is not None:
            line += f" by a margin of {_number(table.margin)}"
        lines.append(line)
    if spec.utility.team:
        lines.append(f"- every target of the room met at once, weight {brief(spec.utility.team)}")
    return "\n".join(lines) or "Nothing of your own."


def _red_lines(spec: PersonaSpec) -> str:
    lines = [
        f"{line.metric} {line.op} {_number(line.value)} ({line.on})"
        for line in spec.red_line
        if line.severity == "veto"
    ]
    return "; ".join(lines) or "none"


def _history(request: Request, limit: int) -> str:
    decisions = request.history.decisions
    first = max(0, len(decisions) - _HISTORY_STEPS)
    data = [
        {"step": step + 1, "decided": joint_id(decisions[step])}
        for step in range(first, len(decisions))
    ]
    return quoted("decisions", data, limit) if data else "Nothing yet."


def _others(spec: PersonaSpec, request: Request) -> str:
    if spec.prompt.others == "hidden":
        return "You are not told."
    positions = [each for each in request.positions if each.seat != request.ask.seat]
    last = max((each.step for each in positions), default=0)
    shown = [each for each in positions if each.step == last]
    if not shown:
        return "Nothing yet."
    names = {each.seat: each.seat for each in shown}
    if spec.prompt.others == "anonymous":
        names = {seat: f"seat {number}" for number, seat in enumerate(sorted(names), start=1)}
    data = [{"seat": names[each.seat], **_position(each)} for each in shown]
    return quoted(f"positions at step {last}", data, _share(spec, "others"))


def _memory(own: list[Position], request: Request, spec: PersonaSpec) -> str:
    if not own or not spec.prompt.memory_steps:
        return "Nothing yet." if spec.prompt.memory_steps else "You are not told."
    decisions = request.history.decisions
    data = []
    for each in own[-spec.prompt.memory_steps :]:
        decided = joint_id(decisions[each.step - 1]) if each.step <= len(decisions) else ""
        data.append({"step": each.step, **_position(each), "room_decided": decided})
    return quoted("your own last positions", data, _share(spec, "memory"))


def _position(position: Position) -> dict[str, Any]:
    data: dict[str, Any] = {"proposals": list(position.proposals[:_PROPOSALS_SHOWN])}
    if position.rationale:
        data["reason"] = position.rationale
    if position.message:
        data["message"] = position.message
    return data


def _ask_text(request: Request, limit: int) -> str:
    """The options by label, and whatever else the protocol sends along."""
    labels = labels_of(request)
    if request.ask.kind == "propose":
        return ""
    parts = []
    offer = request.ask.payload.get("offer")
    for label, name in labels.items():
        if name == offer:
            parts.append(f"The offer is {label}.")
    options = [
        {"option": label, "id": name, **_stake(request, name)} for label, name in labels.items()
    ]
    parts.append(quoted("options", options, limit))
    rest = [
        {str(key): value}
        for key, value in request.ask.payload.items()
        if key not in {"candidates", "offer"}
    ]
    if rest:
        parts.append(quoted("more about the question", rest, limit // 2))
    return "\n".join(parts)


def _stake(request: Request, candidate: str) -> dict[str, float]:
    """What the engine projects an option to be worth to this seat, and to the room."""
    stakes = request.stakes
    if stakes is None:
        return {}
    found = {"worth_to_you": stakes.utilities, "worth_to_the_room": stakes.welfare}
    return {name: values[candidate] for name, values in found.items() if candidate in values}


def first_difference(one: str, other: str) -> tuple[int, str, str]:
    """Line number (1…) and the two lines at which two texts part, quoted and short."""
    left, right = one.split("\n"), other.split("\n")
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else ""
        b = right[number] if number < len(right) else ""
        if a != b or number >= min(len(left), len(right)):
            return number + 1, json_text(a[:100]), json_text(b[:100])
    return 0, "", ""
