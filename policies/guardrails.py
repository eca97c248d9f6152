"""What may not be done: red lines of seats and guardrails of the room.

Both are typed predicates over numbers and actions. There is no expression language, nothing is
evaluated, and no text of a persona reaches this module, so no text can widen what is allowed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from policies.controls import Freeze, frozen_out, reach
from world.actions import Action, joint_id
from world.errors import ConfigError
from world.model import Joint, Observation, World

Op = Literal["<", "<=", ">", ">=", "==", "!="]
On = Literal["projected", "current"]
Severity = Literal["veto", "warn", "escalate"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(
            f"red line: {name} is {value!r}",
            "a red line is a typed predicate, not an expression",
            f"Write one of: {', '.join(allowed)}",
        )


@dataclass(frozen=True, slots=True)
class RedLine:
    """A limit that a seat will not see crossed.

    Attributes:
        metric: Metric name, for example ``latency_ms``.
        op: Comparison that means "crossed".
        value: Number to compare with, in the metric's unit.
        on: ``projected`` (the candidate's consequence) or ``current`` (what is observed now).
        severity: ``veto`` takes the candidate out; ``warn`` and ``escalate`` are recorded.
        reason: Why, for the audit.
        id: ``persona/red_line/n``; what vetoes and traces refer to.

    Raises:
        ConfigError: An unknown word, or a value that is not finite.
    """

    metric: str
    op: str
    value: float
    on: str = "projected"
    severity: str = "veto"
    reason: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        _one_of("op", self.op, get_args(Op))
        _one_of("on", self.on, get_args(On))
        _one_of("severity", self.severity, get_args(Severity))
        if not math.isfinite(self.value):
            raise ConfigError(
                f"red line on {self.metric}: value is {self.value}", "it must be finite", ""
            )

    def crossed(self, value: float) -> bool:
        """Whether a value crosses the line. An unknown value (NaN) crosses nothing."""
        return value == value and _COMPARE[self.op](value, self.value)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the operator allows in one step.

    Attributes:
        max_actions: Most actions applied together.
        blast_radius: Most distinct targets touched in one step; 0 is no limit.
        refuse_oscillation: Whether a step that would make A, B, A, B, or that undoes what the
            last `UNDO_STEPS` steps did to the same target, is refused.
        recent: Joint ids decided so far, oldest first; the last three are read.
        decided: What was decided in the last `MEMORY_STEPS` steps, oldest first; read where
            oscillation is refused.
        blast_share: Largest share (0–1) of a service's tier or of the fleet touched in one step;
            0 is no limit. One instance may always be touched.
        freezes: Windows in which nothing is changed.
    """

    max_actions: int
    blast_radius: int = 0
    refuse_oscillation: bool = False
    recent: tuple[str, ...] = ()
    decided: tuple[Joint, ...] = ()
    blast_share: float = 0.0
    freezes: tuple[Freeze, ...] = ()


class _Known(NamedTuple):
    """What the world says of one action; kept, because proposals repeat each other."""

    refusal: str | None
    hazards: tuple[str, ...]
    touched: frozenset[str]


class Gate:
    """The guardrails of one moment, with what the world said of each action so far.

    A joint action passes when every rule of `GUARDRAILS` lets it pass. The gate sees actions
    only: no rationale, no name, no text reaches it.

    Args:
        world: Whose validator and hazards count.
        observation: What the room observes.
        bounds: What the operator allows.
    """

    __slots__ = ("_known", "bounds", "observation", "world")

    def __init__(self, world: World[Any], observation: Observation, bounds: Bounds) -> None:
        self.world = world
        self.observation = observation
        self.bounds = bounds
        self._known: dict[Action, _Known] = {}

    def refusals(self, joint: Joint) -> tuple[str, ...]:
        """Why a joint action may not be done, each ``rule: reason``; empty when it may."""
        reasons: list[str] = []
        for rule, reasons_of, last in _RULES:
            found = reasons_of(self, joint)
            if found:
                reasons.extend(f"{rule}: {reason}" for reason in found)
                if last:  # what the validator refuses has no defined effect to ask about
                    break
        return tuple(reasons)

    def illegal(self, action: Action) -> str | None:
        """Why the world's validator refuses an action, or None."""
        return self._of(action).refusal

    def touched(self, joint: Joint) -> frozenset[str]:
        """What a legal joint action touches."""
        return frozenset().union(*(self._of(action).touched for action in joint))

    def hazards(self, action: Action) -> tuple[str, ...]:
        """Harm that a legal action would do."""
        return self._of(action).hazards

    def _of(self, action: Action) -> _Known:
        known = self._known.get(action)
        if known is None:
            world, seen = self.world, self.observation
            refusal = world.check(seen, action)
            if refusal is None:
                known = _Known(None, world.hazards(seen, action), world.touched(seen, action))
            else:
                known = _Known(refusal, (), frozenset())
            self._known[action] = known
        return known


def _slots(gate: Gate, joint: Joint) -> tuple[str, ...]:
    most = gate.bounds.max_actions
    if len(joint) > most:
        return (f"{len(joint)} actions at once, at most {most} are applied in one step",)
    return () if joint else ("no action at all",)


def _validator(gate: Gate, joint: Joint) -> tuple[str, ...]:
    found = []
    for action in joint:
        refusal = gate.illegal(action)
        if refusal is not None:
            found.append(refusal if len(joint) == 1 else f"{action.id}: {refusal}")
    return tuple(found)


def _clash(gate: Gate, joint: Joint) -> tuple[str, ...]:
    if len(joint) < 2:
        return ()
    found = []
    touched = [gate.touched((action,)) for action in joint]
    for position, action in enumerate(joint):
        for before, other in enumerate(joint[:position]):
            shared = touched[position] & touched[before]
            if shared or action == other:
                what = ", ".join(sorted(shared)) or action.id
                found.append(f"{other.id} and {action.id} both touch {what}")
    return tuple(found)


def _hazard(gate: Gate, joint: Joint) -> tuple[str, ...]:
    found: list[str] = []
    for action in joint:
        found.extend(gate.hazards(action))
    return tuple(found)


def targets_of(joint: Joint) -> frozenset[str]:
    """The distinct targets that a joint action names."""
    return frozenset(action.target for action in joint if action.target)


def _blast_radius(gate: Gate, joint: Joint) -> tuple[str, ...]:
    most = gate.bounds.blast_radius
    count = len(targets_of(joint)) if most else 0
    if count > most:
        return (f"{count} targets in one step, at most {most} are allowed",)
    return ()


def _blast_share(gate: Gate, joint: Joint) -> tuple[str, ...]:
    most = gate.bounds.blast_share
    if not most:
        return ()
    return tuple(
        f"{part.units:g} of {part.total:g} in {part.of} in one step, at most {most:.0%} are allowed"
        for part in reach(gate.observation, joint)
        if part.units > 1 and part.share > most
    )


def _freeze(gate: Gate, joint: Joint) -> tuple[str, ...]:
    freezes = gate.bounds.freezes
    if not freezes:
        return ()
    return tuple(why for action in joint if (why := frozen_out(freezes, gate.observation, action)))


UNDO_STEPS = 12
"""Steps within which an action counts as undoing another.

Source: karpenter issues 1019 and 2388 and its AWS provider's issue 8536, where nodes were replaced
back and forth for 14 hours.
"""
MEMORY_STEPS = 2 * UNDO_STEPS
"""Steps that must be remembered to know what an action of the last `UNDO_STEPS` replaced."""
_OPPOSITES = {
    "scale_up": "scale_down", "stop": "start", "detach": "attach", "mark": "unmark",
}  # fmt: skip
_UNDOES = {**_OPPOSITES, **{second: first for first, second in _OPPOSITES.items()}}


def _oscillation(gate: Gate, joint: Joint) -> tuple[str, ...]:
    if not gate.bounds.refuse_oscillation:
        return ()
    found = []
    recent = gate.bounds.recent
    if len(recent) >= 3:
        first, other, last = recent[-3:]
        if first == last and first != other and joint_id(joint) == other:
            found.append(f"{first}, {other}, {last} would be followed by {other} again")
    return (*found, *(reason for action in joint for reason in _undoing(gate, action)))


def _undoing(gate: Gate, action: Action) -> tuple[str, ...]:
    """An opposite on the same target, or the same kind set to something else and back."""
    if not action.target:
        return ()
    before = [
        (steps_ago, earlier)
        for steps_ago, decided in enumerate(reversed(gate.bounds.decided), start=1)
        for earlier in decided
        if earlier.target == action.target
    ]
    opposite = _UNDOES.get(action.kind)
    for steps_ago, earlier in before:
        if earlier.kind == opposite and steps_ago <= UNDO_STEPS:
            return (f"{action.id} undoes {earlier.id} of {steps_ago} steps ago",)
    same = [(steps_ago, earlier) for steps_ago, earlier in before if earlier.kind == action.kind]
    recent = bool(same) and same[0][0] <= UNDO_STEPS and same[0][1] != action
    if action.params and recent and any(earlier == action for _, earlier in same):
        return (f"{action.id} goes back to what {same[0][1].id} replaced",)
    return ()


class _Rule(NamedTuple):
    id: str
    reasons: Callable[[Gate, Joint], tuple[str, ...]]
    last: bool


_RULES = (
    _Rule("guard/slots", _slots, True),
    _Rule("guard/validator", _validator, True),
    _Rule("guard/clash", _clash, False),
    _Rule("guard/hazard", _hazard, False),
    _Rule("guard/blast_radius", _blast_radius, False),
    _Rule("guard/blast_share", _blast_share, False),
    _Rule("guard/freeze", _freeze, False),
    _Rule("guard/oscillation", _oscillation, False),
)
GUARDRAILS: tuple[str, ...] = tuple(rule.id for rule in _RULES)
"""Ids of the room's guardrails, in the order in which they are asked."""
