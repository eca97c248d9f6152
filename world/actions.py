"""Actions as plain data: what can be done to a world, and the one spelling of it.

An action is a kind, a target and parameters. Its id is its only spelling: the trace, the
candidate set, the `[STEP]` line and ``--ballot`` all use it, and `parse_joint` reads it back.
This module knows no world and performs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote, unquote

from world.errors import InadmissibleActionError

ParamValue = str | int | float | bool

NOP = "nop"
_KIND = re.compile(r"[a-z][a-z0-9_]*\Z")
_SAFE = ""  # quote() itself keeps A-Z a-z 0-9 . _ - and ~; the tilde is replaced below


def _encode(text: str) -> str:
    # A lone surrogate (from a broken bill or a hostile reply) is spelt, not a crash.
    return quote(text, safe=_SAFE, errors="surrogatepass").replace("~", "%7E")


def _decode(text: str) -> str:
    return unquote(text, errors="surrogatepass")


def _spell(value: ParamValue) -> str:
    if isinstance(value, str):
        return _encode(value)
    return _encode(repr(value))


@dataclass(frozen=True)
class Action:
    """One thing that can be done.

    Attributes:
        kind: Name from the world's closed set, for example ``scale_up``.
        target: Id of the resource or service it touches; empty for world-wide actions.
        params: ``(name, value)`` pairs sorted by name.
    """

    kind: str
    target: str = ""
    params: tuple[tuple[str, ParamValue], ...] = ()

    @staticmethod
    def of(kind: str, target: str = "", **params: ParamValue) -> Action:
        """Build an action with its parameters sorted.

        >>> Action.of("resize", "vm-1", new_size="t3.micro").id
        'resize:vm-1:new_size=t3.micro'
        """
        return Action(kind, target, tuple(sorted(params.items())))

    @cached_property
    def id(self) -> str:
        """``kind[:target][:k=v]…``; all but ``A-Za-z0-9._-`` is percent-encoded."""
        parts = [self.kind]
        if self.target:
            parts.append(_encode(self.target))
        parts.extend(f"{_encode(key)}={_spell(value)}" for key, value in self.params)
        return ":".join(parts)

    def param(self, name: str, default: ParamValue | None = None) -> ParamValue | None:
        """The value of one parameter, or ``default``."""
        for key, value in self.params:
            if key == name:
                return value
        return default


def joint_id(actions: tuple[Action, ...]) -> str:
    """Id of actions applied together: their ids sorted and joined by ``+``.

    >>> joint_id((Action.of("scale_up"), Action.of("nop")))
    'nop+scale_up'
    """
    if len(actions) == 1:
        return actions[0].id
    return "+".join(sorted(action.id for action in actions))


def plan_id(now: tuple[Action, ...], then: tuple[tuple[Action, ...], ...] = ()) -> str:
    """Id of a plan: the joint ids of its steps joined by ``>``."""
    if not then:
        return joint_id(now)
    return ">".join([joint_id(now), *(joint_id(step) for step in then)])


def _value(text: str) -> ParamValue:
    text = _decode(text)
    if text in {"True", "False"}:
        return text == "True"
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if repr(value) == text:
            return value
    return text


def parse_action(text: str) -> Action:
    """Read back one action id.

    A parameter value whose text is a number becomes that number: worlds that declare a string
    parameter convert it in their validator.

    Raises:
        InadmissibleActionError: The text is not an action id.
    """
    head, *rest = text.split(":")
    if not _KIND.match(head):
        raise InadmissibleActionError(
            f"{text!r} is not an action id",
            "an id is kind[:target][:parameter=value]",
            "For example: scale_up, or resize:vm-1:new_size=t3.micro",
        )
    target = ""
    params: list[tuple[str, ParamValue]] = []
    for position, part in enumerate(rest):
        key, equals, value = part.partition("=")
        if equals:
            params.append((_decode(key), _value(value)))
        elif position == 0:
            target = _decode(part)
        else:
            raise InadmissibleActionError(
                f"{text!r} is not an action id", f"{part!r} has no '='", "Write parameter=value"
            )
    return Action(head, target, tuple(sorted(params)))


def parse_joint(text: str) -> tuple[Action, ...]:
    """Read back a joint id: actions joined by ``+``."""
    return tuple(parse_action(part) for part in text.split("+"))


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One parameter of a template.

    Attributes:
        name: Parameter name.
        choices: The values that the catalogue enumerates.
        default: Value taken when the parameter is left out; None means it is required.
        minimum: Lowest number that the validator accepts (numbers only).
        maximum: Highest number that the validator accepts (numbers only).
    """

    name: str
    choices: tuple[ParamValue, ...] = ()
    default: ParamValue | None = None
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class ActionTemplate:
    """One kind of action that a world offers.

    Attributes:
        kind: The kind.
        title: One line for people and for prompts.
        params: Its parameters.
        targeted: Whether it needs a target.
        destructive: Whether it can lose work or data.
        delay_steps: Steps until its effect is seen.
        effect: The documented effect, with units, in one line.
    """

    kind: str
    title: str
    params: tuple[ParamSpec, ...] = field(default=())
    targeted: bool = False
    destructive: bool = False
    delay_steps: int = 0
    effect: str = ""
