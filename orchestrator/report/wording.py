"""Actions, numbers and rules in the words of a report. All of it is text, none of it markup."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from orchestrator.console.action_words import action_words
from orchestrator.trace.ids import shown_id

_KIND_LIMIT = 26


@lru_cache(maxsize=4096)
def plan_words(identifier: str, limit: int = 0) -> str:
    """A candidate for people: its actions now, and what it would do after them.

    >>> plan_words("scale_up>optimize_energy")
    'scale_up, then optimize_energy'
    """
    told = [action_words(joint) for joint in identifier.split(">")] if identifier else []
    return shown_id(", then ".join(told) or "nothing", limit)


def kinds(joint: str) -> tuple[str, ...]:
    """The kinds of action in a joint action, each once, in order.

    >>> kinds("resize:vm-1:new_size=x+terminate:db+terminate:vm-2")
    ('resize', 'terminate')
    """
    names = (part.partition(":")[0] for part in joint.partition(">")[0].split("+"))
    return tuple(dict.fromkeys(shown_id(name or "nothing", _KIND_LIMIT) for name in names))


def figure(value: object, digits: int = 4) -> str:
    """A number for a table, with a real minus sign; a dash where there is none.

    >>> figure(1234.5678), figure(-0.5), figure(None), figure(12)
    ('1,235', '−0.5', '–', '12')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if not isinstance(value, float) or not math.isfinite(value):
        return "–"
    if abs(value) >= 10 ** (digits - 1):
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:.{digits}g}"
    return shown.replace("-", "−")


def share(part: int, of: int) -> str:
    """A share in percent, with its counts.

    >>> share(3, 12), share(0, 0)
    ('25.0 % (3 of 12)', '–')
    """
    return f"{100.0 * part / of:.1f} % ({part:,} of {of:,})" if of else "–"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size_words(count: int) -> str:
    """A number of bytes for people.

    >>> size_words(420), size_words(123_456), size_words(2_500_000)
    ('420 B', '123 kB', '2.5 MB')
    """
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def text_or(value: Any, other: str = "–") -> str:
    """Text, or something else where it is empty."""
    return str(value) if value not in (None, "") else other
