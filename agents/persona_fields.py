"""What the persona schema says about itself: its fields by path, and its faults in words.

Messages are made from the schema, so that a new field is known to the linter, to ``--set`` and to
every "did you mean" without another list.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agents.persona_file import KeyPath
from agents.persona_schema import PersonaSpec

_WORDING = (
    (r"^Value error, ", ""),
    (r"^Input should be (a valid dictionary or instance of \w+|an object)", "it must be a table"),
    (r"^Input should be (a )?valid ", "it must be a "),
    (r"^Input should be ", "it must be "),
    (r"^String should match pattern", "it must match"),
    (r"^(String|Tuple) should have at ", "it must have at "),
    (r"greater than or equal to", "at least"),
    (r"less than or equal to", "at most"),
    (r"greater than", "above"),
    (r"less than", "below"),
)
"""The validator's words → ours."""


def field_path(loc: Sequence[str | int]) -> KeyPath:
    """A pydantic location without the names of union branches."""
    return tuple(part for part in loc if isinstance(part, int) or "[" not in part)


def message(item: Mapping[str, Any]) -> str:
    """One fault in words, with what is allowed."""
    if item["type"] == "extra_forbidden":
        *parents, unknown = field_path(item["loc"])
        allowed = sorted(fields_at(parents))
        hint = did_you_mean(str(unknown), allowed)
        return f"no such field. {hint}Allowed: {', '.join(allowed)}"
    if item["type"] == "missing":
        return "missing"
    text = str(item["msg"])
    for theirs, ours in _WORDING:
        text = re.sub(theirs, ours, text)
    value = item.get("input")
    if item["type"] == "value_error" or not isinstance(value, str | int | float):
        return text
    return f"{shown(value)}: {text}"


def shown(value: str | int | float) -> str:
    """A value short enough for a message; never a megabyte of digits or a raw control code."""
    if isinstance(value, int) and abs(value) >= 2**64:
        return "a huge whole number"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def fields_at(parents: Sequence[str | int]) -> list[str]:
    """Names that a table of the schema may hold."""
    model: type[BaseModel] = PersonaSpec
    for part in parents:
        if isinstance(part, int):
            continue
        field = _by_alias(model).get(part)
        inner = None if field is None else _model_in(field)
        if inner is None:
            return []
        model = inner
    return [*_by_alias(model), *(["extends"] if model is PersonaSpec else [])]


def _by_alias(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The table type inside ``X | None`` or ``tuple[X, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        inner = _model_in(part)
        if inner is not None:
            return inner
    return None


def all_fields(model: type[BaseModel] = PersonaSpec, prefix: str = "") -> list[str]:
    """Every field of the schema as a dotted path; lists show their first entry, 1."""
    names: list[str] = []
    for name, annotation in _by_alias(model).items():
        inner = _model_in(annotation)
        if inner is None:
            names.append(f"{prefix}{name}")
        else:
            index = "1." if "tuple[" in str(annotation) else ""
            names.extend(all_fields(inner, f"{prefix}{name}.{index}"))
    return [name for name in names if name != "schema"]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """``Did you mean x or y?`` with a space behind, or nothing."""
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}? " if close else ""
