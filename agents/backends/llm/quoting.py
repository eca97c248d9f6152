"""Untrusted text in a prompt: quoted data between markers that no text can forge.

Names, tags, owners, incident lines and what other seats say are written by anybody. Each is shown
as a JSON string, ASCII only and with ``<`` and ``>`` escaped, so that it can neither close its
block, nor hide characters, nor start a line of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from world.model import significant

OPEN = "<<<DATA"
CLOSE = "DATA>>>"
MAX_TEXT = 240
_MAX_ITEMS = 64


def quoted(label: str, items: Iterable[Any], limit: int) -> str:
    """A block of quoted data, one item a line, at most about `limit` characters.

    Args:
        label: What the block holds; our own word.
        items: JSON-plain values; long texts in them are cut.
        limit: Most characters of all lines together; what is left out is counted.
    """
    lines: list[str] = []
    used = left_out = 0
    for item in items:
        line = json_text(item)
        if left_out or used + len(line) > limit:
            left_out += 1
            continue
        lines.append(line)
        used += len(line) + 1
    if left_out:
        lines.append(f"({left_out} more left out)")
    return "\n".join([f"{OPEN} {label}", *(lines or ["(none)"]), CLOSE])


def json_text(value: Any) -> str:
    """One value as ASCII JSON that holds no angle bracket."""
    text = json.dumps(_bounded(value), ensure_ascii=True, sort_keys=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _bounded(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}…"
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return None if value != value or value in (float("inf"), -float("inf")) else brief(value)
    if depth >= 6:
        return "…"
    if isinstance(value, dict):
        pairs = list(value.items())[:_MAX_ITEMS]
        return {str(_bounded(str(key))): _bounded(part, depth + 1) for key, part in pairs}
    if isinstance(value, list | tuple):
        return [_bounded(part, depth + 1) for part in value[:_MAX_ITEMS]]
    return _bounded(str(value))


def brief(value: float) -> float | int:
    """A number with five significant digits: enough to argue with, and cheap in tokens."""
    short = significant(value, 5)
    return int(short) if short == int(short) and abs(short) < 1e15 else short
