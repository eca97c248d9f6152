"""From a model's text to one JSON object, strictly.

A text may think aloud first (``<think>…</think>``), may wrap the object in a code fence, and may
put words around it. It must hold exactly one object: of two different ones nobody can say which
was meant. NaN, Infinity and repeated keys are no JSON here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from agents.backends.llm.faults import ModelFault

MAX_ANSWER_CHARACTERS = 200_000
MAX_DEPTH = 12
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THINKING = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\n(.*?)```", re.DOTALL)


def object_in(text: str) -> dict[str, Any]:
    """The one JSON object in a text.

    Raises:
        ModelFault: ``huge_reply``, ``cut_short`` (it never stops thinking) or ``not_json``.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise ModelFault("huge_reply", f"{len(text)} characters")
    spoken = _THINKING.sub(" ", text)
    if _OPEN_THINKING.search(spoken):
        raise ModelFault("cut_short", "it never stops thinking")
    spoken = spoken.strip()
    if not spoken:
        raise ModelFault("not_json", "it is empty")
    whole = _loaded(spoken)
    if isinstance(whole, dict):
        return _shallow(whole)
    found = [value for part in _FENCE.findall(spoken) if isinstance(value := _loaded(part), dict)]
    if not found:
        found = list(_embedded(spoken))
    distinct = [value for place, value in enumerate(found) if value not in found[:place]]
    if len(distinct) == 1:
        return _shallow(distinct[0])
    raise ModelFault("not_json", f"it holds {len(distinct)} objects" if distinct else "")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _embedded(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost braced part of a text that is an object.

    What stands inside a part that is none (cut off, or with a NaN in it) is no answer either.
    """
    at = text.find("{")
    while at >= 0:
        end = _closing(text, at)
        if end < 0:
            return
        value = _loaded(text[at:end])
        if isinstance(value, dict):
            yield value
        at = text.find("{", end)


def _closing(text: str, start: int) -> int:
    """The place after the brace that closes the one at `start`; -1 where none does."""
    depth, place, quoted = 0, start, False
    while place < len(text):
        character = text[place]
        if quoted:
            place += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if not depth:
                return place + 1
        place += 1
    return -1


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key is repeated")
    return result


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse nesting that no asked form has; what is deep is an attack or an accident."""
    layer: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        layer = [
            child
            for part in layer
            if isinstance(part, dict | list)
            for child in (part.values() if isinstance(part, dict) else part)
        ]
        if not layer:
            return value
    raise ModelFault("not_json", "it is nested too deeply")
