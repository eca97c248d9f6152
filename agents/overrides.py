"""``--set ROLE.field=value``: one field of a persona replaced, for ablations in one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from agents.persona_fields import all_fields, did_you_mean, fields_at, message, shown
from agents.persona_schema import PersonaSpec
from world.errors import ConfigError
from world.toml_text import parse_toml

_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*\Z")


def apply_overrides(spec: PersonaSpec, overrides: Iterable[str]) -> PersonaSpec:
    """A spec with some fields replaced.

    Args:
        spec: Where to start.
        overrides: ``field=value`` in order, for example ``objectives.cost.weight=0.5`` or
            ``red_line.1.value=90`` (entries of a list are counted from 1). A value is a TOML
            scalar or a list of them; a bare word is text.

    Raises:
        ConfigError: No such field, or a value that it cannot take.
    """
    document = spec.model_dump(by_alias=True, exclude_none=True)
    asked = list(overrides)
    if not asked:
        return spec
    for text in asked:
        _set(spec.id, document, text)
    try:
        return PersonaSpec.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
        raise ConfigError(
            f"--set makes {spec.id}.{where or 'the persona'} wrong", message(first), "Correct it"
        ) from None


def overrides_by_seat(overrides: Iterable[str], seats: Sequence[str]) -> dict[str, list[str]]:
    """Split ``ROLE.field=value`` by role, in order.

    Raises:
        ConfigError: A text without a role and a value, or a role that has no seat.
    """
    split: dict[str, list[str]] = {}
    for text in overrides:
        path, equals, _ = text.partition("=")
        seat, dot, _ = path.partition(".")
        if not equals or not dot:
            raise ConfigError(
                f"--set {shown(text)}",
                "it reads ROLE.field=value",
                "--set cost.objectives.cost.weight=2",
            )
        if seat not in seats:
            raise ConfigError(
                f"--set {shown(text)} names the seat {shown(seat)}",
                "there is no such seat",
                f"{did_you_mean(seat, seats)}Seats: {', '.join(seats)}",
            )
        split.setdefault(seat, []).append(text.partition(".")[2])
    return split


def _set(persona: str, document: dict[str, Any], text: str) -> None:
    path, equals, raw = (part.strip() for part in text.partition("="))
    keys = path.split(".")
    if not equals or not all(keys):
        raise ConfigError(
            f"--set {shown(text)}", "it reads ROLE.field=value", "cost.objectives.cost.weight=0.5"
        )
    value = _scalar(path, raw)
    place: Any = document
    for position, key in enumerate(keys):
        last = position == len(keys) - 1
        if isinstance(place, list | tuple):
            place = _entry(place, key, path)
            continue
        allowed = fields_at([name for name in keys[:position] if not name.isdigit()])
        if key not in allowed or key in {"schema", "extends"}:
            raise _no_such_field(persona, path)
        if last:
            place[key] = value
            return
        below = place.get(key)
        if below is None:
            below = {}
        elif isinstance(below, tuple):
            below = list(below)
        elif not isinstance(below, dict | list):
            raise _no_such_field(persona, path)
        place[key] = below
        place = below
    raise _no_such_field(persona, path)


def _entry(entries: Sequence[Any], key: str, path: str) -> Any:
    if not key.isascii() or not key.isdigit() or not 1 <= int(key[:9]) <= len(entries):
        raise ConfigError(
            f"--set {path}: there is no entry {key!r}",
            f"the list has {len(entries)}, counted from 1",
            "",
        )
    return entries[int(key) - 1]


def _no_such_field(persona: str, path: str) -> ConfigError:
    every = sorted(all_fields())
    close = difflib.get_close_matches(path, every, n=2, cutoff=0.6)
    return ConfigError(
        f"--set: persona {persona!r} has no field {shown(path)}",
        "",
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"Tables: {', '.join(fields_at([])[1:-1])}",
    )


def _scalar(path: str, raw: str) -> Any:
    """A TOML scalar or list of scalars; a bare word is text."""
    if len(raw) > 4000:
        raise ConfigError(f"--set {path}: the value is too long", "at most 4,000 characters", "")
    if any(ord(character) < 32 for character in raw):
        raise ConfigError(f"--set {path}: the value is not one line", "", "Write one TOML value")
    try:
        value = parse_toml(f"value = {raw}")["value"]
    except (ValueError, RecursionError):  # TOMLDecodeError is a ValueError
        if _BARE_WORD.match(raw):
            return raw
        raise ConfigError(
            f"--set {path}={shown(raw)} is not a TOML value",
            "",
            'Write 0.5, true, "text" or [1, 2]',
        ) from None
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str | int | float | bool) for part in parts):
        raise ConfigError(f"--set {path}={shown(raw)}", "only plain values can be set", "")
    return value
