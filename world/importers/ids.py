"""Resource ids: when two of them mean the same thing, and how to keep all of them apart.

An inventory row bears the real resource id, because that is what people search for. Only where two
accounts share an id is the account added to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from world.importers.tables import visible

FORMULA_STARTS: Final = ("=", "+", "-", "@")
"""Text that starts so is a formula to a spreadsheet.

Source: OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""


def identity(resource: str) -> str:
    """A resource id for comparison: Azure ids mean the same in any case.

    Source: Azure Resource Manager documentation, resource ids are case-insensitive (2024).

    >>> identity("/subscriptions/AB/x") == identity("/Subscriptions/ab/X")
    True
    >>> identity("i-A") == identity("i-a")
    False
    """
    lowered = resource.casefold()
    return lowered if lowered.startswith(("/subscriptions/", "/providers/")) else resource


def quoted(resource: str) -> str:
    """An id that no spreadsheet takes for a formula: an apostrophe stands before it if it must."""
    return f"'{resource}" if resource.startswith(FORMULA_STARTS) else resource


def join_key(text: str) -> str:
    """An id from a metrics file or an inventory, for joining one to the other.

    >>> join_key("'=cmd") == join_key("=cmd")
    True
    """
    name = visible(text)
    if name[:1] == "'" and name[1:2] in FORMULA_STARTS:
        name = name[1:]
    return identity(name)


def unique_ids(items: Sequence[tuple[str, str, str]]) -> list[str]:
    """One name for each ``(id, account, provider)``, unique, and the id itself where that does.

    >>> unique_ids([("a", "1", "AWS"), ("b", "1", "AWS"), ("b", "2", "AWS")])
    ['a', 'b@1', 'b@2']
    """
    counts = Counter(resource for resource, _, _ in items)
    taken = {resource for resource, count in counts.items() if count == 1}
    return [
        resource
        if counts[resource] == 1
        else free_name(f"{resource}@{account or 'unknown account'}", provider, taken)
        for resource, account, provider in items
    ]


def free_name(name: str, more: str, taken: set[str]) -> str:
    """`name`, or `name@more`, or that with a number: the first that is not taken; takes it."""
    choices = [name, f"{name}@{more}"] if more else [name]
    for choice in choices:
        if choice not in taken:
            taken.add(choice)
            return choice
    number = 2
    while f"{choices[-1]}#{number}" in taken:
        number += 1
    taken.add(f"{choices[-1]}#{number}")
    return f"{choices[-1]}#{number}"
