"""Personas by name: find the file, resolve ``extends``, apply ``--set``, check, lint.

A persona is looked up in the shipped folder, then in the folders that the caller names, or given
by path. The result is one frozen `PersonaSpec`; two files that say the same thing in different
words have the same digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agents.overrides import apply_overrides, overrides_by_seat
from agents.persona_fields import did_you_mean, field_path, message
from agents.persona_file import Source, read_toml
from agents.persona_schema import SCHEMA, PersonaSpec
from world.errors import ConfigError, UnknownNameError, WarRoomError

if TYPE_CHECKING:
    from policies.table import SeatRules

__all__ = [
    "FOLDER",
    "PersonaSpec",
    "apply_overrides",
    "lint_persona",
    "load_persona",
    "overrides_by_seat",
    "persona_names",
    "seat_rules",
]

FOLDER = Path(__file__).parent / "personas"
MAX_EXTENDS = 16
MAX_NAME = 120
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_NAMELESS_PLACES = (("identity",), ("identity", "id"))
_LIST_HINT = "List them: python run_warroom.py personas"


def persona_names(search: Sequence[str | Path] = ()) -> list[str]:
    """Names of the shipped personas and of those in the folders of `search`, sorted."""
    names: set[str] = set()
    for folder in (FOLDER, *map(Path, search)):
        if folder.is_dir():
            names.update(path.stem for path in folder.glob("*.toml") if _NAME.match(path.stem))
    return sorted(names)


def load_persona(name_or_path: str, search: Sequence[str | Path] = ()) -> PersonaSpec:
    """A persona by name, or by the path of its file.

    Args:
        name_or_path: A name without a slash, or a path that ends in ``.toml``.
        search: Further folders, looked through in order after the shipped one.

    Raises:
        UnknownNameError: No such name or file.
        ConfigError: The file, or one that it extends, cannot work; the first fault with its line.
    """
    chain = _chain(_find(name_or_path, search, None), search)
    spec, faults = _check(tuple(chain))
    if spec is not None:
        return spec
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    raise ConfigError(
        f"{faults[0].replace(': error: ', ': ', 1)}{more}",
        "",
        f"See all: run_warroom.py personas lint {chain[0].path}",
    )


def lint_persona(path: str | Path, search: Sequence[str | Path] = ()) -> list[str]:
    """Every fault of a persona file as ``FILE:LINE: error: …`` or ``FILE:LINE: warning: …``.

    Errors come first and mean that the file cannot be used. Warnings are shapes that are known
    to fail and tables that no part of this version reads. An empty list is a clean file.
    """
    try:
        chain = _chain(_find(str(path), search, None), search)
    except WarRoomError as error:
        return [_located(error.line(), Path(path))]
    spec, faults = _check(tuple(chain))
    if spec is None:
        return list(faults)
    return _warnings(spec, chain)


def seat_rules(spec: PersonaSpec, seat: str) -> SeatRules:
    """What the room needs to know about a seat: utility, red lines, powers."""
    # Imported here so that listing personas needs no NumPy.
    from policies.guardrails import RedLine
    from policies.table import SeatRules
    from policies.utility import ObjectiveSpec, UtilitySpec

    objectives = tuple(
        ObjectiveSpec(
            objective=name,
            weight=table.weight,
            target=table.target,
            margin=table.margin,
            scale=table.scale,
            shape=table.shape,
            held=table.held,
        )
        for name, table in spec.objectives
        if table is not None
    )
    red_lines = tuple(
        RedLine(
            metric=line.metric,
            op=line.op,
            value=line.value,
            on=line.on,
            severity=line.severity,
            reason=line.reason,
            id=f"{spec.id}/red_line/{number}",
        )
        for number, line in enumerate(spec.red_line, start=1)
    )
    return SeatRules(
        seat=seat,
        persona=spec.id,
        utility=UtilitySpec(
            kind=spec.utility.kind,
            team=spec.utility.team,
            objectives=objectives,
            discount=spec.utility.discount,
            risk_aversion=spec.utility.risk_aversion,
            risk_tail_fraction=spec.utility.risk_tail_fraction,
        ),
        red_lines=red_lines,
        weight=spec.powers.weight,
        can_veto=spec.powers.veto,
        may_propose=spec.powers.propose,
        disagreement=spec.reservation.disagreement,
        continuation=spec.utility.continuation,
        reported=spec.ballot.reported,
        commander=spec.powers.commander,
        mediator=spec.powers.mediator,
    )


def _find(name: str, search: Sequence[str | Path], beside: Path | None) -> Path:
    """The file that a name or path means; `beside` is the folder of the file that says so."""
    if not _NAME.match(name):
        path = Path(name)
        return beside / path if beside is not None and not path.is_absolute() else path
    folders = [FOLDER, *map(Path, search)]
    if beside is not None:
        folders.append(beside)
    for folder in folders:
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    names = persona_names(search)
    raise UnknownNameError(
        f"there is no persona {name!r}",
        "it is neither a shipped name nor the path of a .toml file",
        f"{did_you_mean(name, names)}{_LIST_HINT}",
    )


def _chain(path: Path, search: Sequence[str | Path]) -> list[Source]:
    """The file, then what it extends, then what that extends in turn."""
    chain = [read_toml(path)]
    seen = [path.resolve()]
    while (parent := chain[-1].data.get("extends")) is not None:
        child = chain[-1]
        line, _ = child.line_of(("extends",))
        if not isinstance(parent, str) or not parent:
            raise ConfigError(
                f"{child.path}:{line}: extends is {parent!r}", "it names one persona", ""
            )
        try:
            found = _find(parent, search, child.path.parent)
            source = read_toml(found)
        except WarRoomError as error:
            raise type(error)(
                f"{child.path}:{line}: extends = {parent!r}: {error.what}", error.why, error.fix
            ) from None
        chain.append(source)
        if found.resolve() in seen:
            names = " extends ".join(part.path.stem for part in chain)
            raise ConfigError(f"{child.path}:{line}: {names}", "a circle", "Cut it somewhere")
        if len(chain) > MAX_EXTENDS:
            raise ConfigError(
                f"{path}: extends through more than {MAX_EXTENDS} files", "", "Flatten it"
            )
        seen.append(found.resolve())
    return chain


def _merged(chain: Sequence[Source]) -> dict[str, Any]:
    """Tables merge field by field; a list of the child replaces the parent's."""
    merged: dict[str, Any] = {}
    for source in reversed(chain):
        merged = _overlaid(merged, source.data)
    merged.pop("extends", None)
    return merged


def _overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        result[key] = _overlaid(below, value) if both else value  # type: ignore[arg-type]
    return result


@lru_cache(maxsize=128)
def _check(chain: tuple[Source, ...]) -> tuple[PersonaSpec | None, list[str]]:
    for source in chain:
        if source.data.get("schema") != SCHEMA:
            line, _ = source.line_of(("schema",))
            return None, [
                f"{source.path}:{line}: error: schema is {source.data.get('schema')!r}, "
                f'this version reads "{SCHEMA}": write schema = "{SCHEMA}" in the first line'
            ]
    nameless = _nameless(chain[0])
    try:
        spec = PersonaSpec.model_validate(_merged(chain))
    except ValidationError as error:
        items = error.errors(include_url=False)
        if nameless:
            items = [item for item in items if tuple(item["loc"]) not in _NAMELESS_PLACES]
        faults = sorted([*nameless, *(_fault(item, chain) for item in items)])
        return None, [text for _, text in faults]
    return (None, [text for _, text in nameless]) if nameless else (spec, [])


def _nameless(source: Source) -> list[tuple[int, str]]:
    """The fault of a file without an id of its own: one that it inherits would be another's."""
    identity = source.data.get("identity")
    if "identity" in source.data and not isinstance(identity, dict):
        return []  # Told by the schema.
    if isinstance(identity, dict) and "id" in identity:
        return []
    line, _ = source.line_of(("identity",))
    return [
        (
            line,
            f"{source.path}:{line}: error: identity.id: missing; every file has an id of its own",
        )
    ]


def _fault(item: Mapping[str, Any], chain: Sequence[Source]) -> tuple[int, str]:
    """A fault and its line, looked up in whichever file of the chain says it."""
    where = field_path(item["loc"])
    places = [(source.line_of(where), source) for source in chain]
    (line, _), source = max(places, key=lambda place: place[0][1])
    name = ".".join(str(part + 1 if isinstance(part, int) else part) for part in where)
    name = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return line, f"{source.path}:{line}: error: {name or 'the file'}: {message(item)}"


def _warnings(spec: PersonaSpec, chain: Sequence[Source]) -> list[str]:
    from agents.persona_lint import warnings_of  # it asks every world for its metrics

    found_out = warnings_of(spec, seat_rules(spec, spec.identity.role))
    if spec.id in persona_names() and load_persona(spec.id).digest != spec.digest:
        text = f"{spec.id!r} is a shipped persona and says something else; runs would name both so"
        found_out.append((("identity", "id"), text))
    notes = []
    for where, text in found_out:
        places = [(source.line_of(where), source) for source in chain]
        (line, found), source = max(places, key=lambda place: place[0][1])
        path = source.path if found else chain[0].path
        notes.append((source is not chain[0], line, f"{path}:{line}: warning: {text}"))
    return [text for _, _, text in sorted(notes)]


def _located(line: str, path: Path) -> str:
    """An error of the reader in the linter's form."""
    text = str(path)
    rest = line.removeprefix(text)
    place = re.match(r":(\d+): (error: )?", rest)
    if place:
        return f"{text}:{place.group(1)}: error: {rest[place.end() :]}"
    return f"{text}:1: error: {rest.lstrip(': ')}"
