"""Action ids for people: the same actions without percent signs and long paths."""

from __future__ import annotations

from orchestrator.console.text import plain
from world.actions import Action, parse_joint
from world.errors import InadmissibleActionError

_LONGEST_TARGET = 24


def action_words(joint: str, limit: int = 0) -> str:
    """A joint action id as words; targets of one kind are told together.

    Args:
        joint: Id of actions applied together, as the trace spells it.
        limit: Most characters; 0 keeps all.

    >>> action_words("resize:vm-08:new_size=m6i.large+terminate:db%2F1+terminate:vol-3")
    'resize vm-08 m6i.large, terminate db/1 vol-3'
    """
    try:
        actions = parse_joint(joint)
    except InadmissibleActionError:
        return plain(joint, limit)
    told: dict[str, list[str]] = {}
    for action in actions:
        told.setdefault(action.kind, []).extend(_details(action))
    words = (" ".join([kind, *details]) for kind, details in told.items())
    return plain(", ".join(words), limit)


def _details(action: Action) -> list[str]:
    """Its target, shortened from the left, and the values of its parameters."""
    values = [str(value) for _, value in action.params if value != ""]
    if not action.target:
        return values
    target = action.target
    if len(target) > _LONGEST_TARGET:
        target = "…" + target.rpartition("/")[2][-_LONGEST_TARGET + 1 :]
    return [target, *values]
