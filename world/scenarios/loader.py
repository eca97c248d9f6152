"""Scenario files: find, read, check.

A scenario is one TOML file, schema ``scenario/1``. Shipped ones lie in this folder under their
name (``cloudedge/hard`` is ``cloudedge/hard.toml``); any other is given by path. Large
inventories stand in a CSV file beside the TOML, named with its digest. A file that contradicts
itself is refused with the field that does.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from world.errors import ScenarioError, UnknownNameError
from world.model import Scenario
from world.toml_text import TomlError, parse_toml, read_regular

FOLDER = Path(__file__).parent
SCHEMA = "scenario/1"
_MAX_BYTES = 64 * 2**20
_MAX_COLUMNS_BYTES = 2**30


class _Columns(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(min_length=1, max_length=255)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


_Whole = Annotated[int, Field(strict=True)]
_Number = Annotated[float, Field(strict=True)]
_ALLOWED = {
    "int_type": "a whole number without quotes",
    "int_from_float": "a whole number",
    "float_type": "a number without quotes",
    "string_type": "text in quotes",
    "dict_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
}
"""What a field of the wrong kind may hold."""


class _Controls(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    freeze: tuple[Annotated[str, Field(max_length=40)], ...] = Field(default=(), max_length=64)
    blast_radius: _Whole = Field(default=0, ge=0, le=1_000_000)
    blast_share: _Number = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)


class _Room(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    lookahead_steps: _Whole | None = Field(default=None, ge=1, le=64)
    samples: _Whole | None = Field(default=None, ge=0, le=256)
    plan_steps: _Whole | None = Field(default=None, ge=1, le=2)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: str = Field(alias="schema")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,119}$")
    world: str = Field(min_length=1, max_length=40)
    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=4000)
    horizon: _Whole = Field(ge=1, le=1_000_000)
    params: dict[str, Any] = {}
    targets: dict[str, _Number] = {}
    tolerances: dict[str, tuple[_Number, _Number]] = {}
    masks: dict[str, tuple[str, ...]] = {}
    resource: list[dict[str, Any]] = []
    columns: _Columns | None = None
    controls: _Controls = _Controls()
    room: _Room = _Room()


_FIELDS = tuple(field.alias or name for name, field in _File.model_fields.items())
_MOST_SHOWN = 80


def scenario_names() -> list[str]:
    """Names of the shipped scenarios, sorted."""
    return sorted(
        path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml")
    )


def load_scenario(name: str) -> Scenario:
    """A scenario by name, or by the path of its file.

    Raises:
        UnknownNameError: Neither a shipped name nor a file.
        ScenarioError: The file is malformed or contradicts itself.
    """
    shipped = FOLDER / f"{name}.toml"
    if name in scenario_names():
        return read_scenario(shipped)
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return _own_name(read_scenario(path), path)
    close = difflib.get_close_matches(name, scenario_names(), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    raise UnknownNameError(
        f"there is no scenario {name!r}",
        "it is neither a shipped name nor a file",
        f"{hint}List them: python run_warroom.py scenarios",
    )


def _own_name(scenario: Scenario, path: Path) -> Scenario:
    """Refuse a changed scenario under a shipped name: its results would pass for published ones."""
    shipped = FOLDER / f"{scenario.name}.toml"
    if scenario.name in scenario_names() and read_scenario(shipped).digest != scenario.digest:
        raise ScenarioError(
            f"{path} is named {scenario.name!r} and is not the shipped scenario of that name",
            "its results would pass for those of the shipped one",
            "Give it a name of its own",
        )
    return scenario


def read_scenario(path: Path) -> Scenario:
    """Read one scenario file.

    Raises:
        UnknownNameError: There is no such file.
        ScenarioError: It is malformed or contradicts itself.
    """
    try:
        raw = parse_toml(read_regular(path, _MAX_BYTES).decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownNameError(
            f"there is no scenario file {path}", "", "List them: python run_warroom.py scenarios"
        ) from error
    except OSError as error:
        raise ScenarioError(
            f"{path} cannot be read", error.strerror or "", "Name another file"
        ) from error
    except (TomlError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(f"{path} is not TOML", str(error), "Correct that line") from error
    except ValueError as error:
        raise ScenarioError(
            f"{path} cannot be used",
            str(error),
            "Put a large inventory in a CSV file beside it ([columns] file, sha256)",
        ) from error
    return _build(raw, path)


def _build(raw: dict[str, Any], path: Path) -> Scenario:
    if raw.get("schema") != SCHEMA:
        raise ScenarioError(
            f"{path}: schema is {raw.get('schema')!r}",
            f"this version reads {SCHEMA!r}",
            f'Write schema = "{SCHEMA}" in the first line',
        )
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        raise _unfit(error, path) from error
    _check_numbers(file, path)
    if file.resource and file.columns:
        raise ScenarioError(
            f"{path}: both [[resource]] and [columns] are given",
            "an inventory has one source",
            "Keep one of them",
        )
    rows = _columns(file.resource, path) if file.resource else {}
    if file.columns:
        rows = _read_columns(file.columns, path)
    return Scenario(
        name=file.name,
        world=file.world,
        title=file.title,
        description=file.description,
        horizon=file.horizon,
        params=file.params,
        targets=file.targets,
        tolerances=file.tolerances,
        masks=file.masks,
        resources=rows,
        controls=file.controls.model_dump(mode="json", exclude_defaults=True),
        room=file.room.model_dump(exclude_none=True),
    )


def _unfit(error: ValidationError, path: Path) -> ScenarioError:
    """The first field that does not fit: where it stands, what it holds, what it may hold."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "missing":
        return ScenarioError(f"{path}: {where} is missing", "every scenario has one", "Add it")
    if first["type"] == "extra_forbidden":
        return ScenarioError(
            f"{path}: there is no field {where!r}",
            "what is not read would be ignored in silence",
            f"Fields: {', '.join(_FIELDS)}",
        )
    allowed = _ALLOWED.get(first["type"])
    why = f"it must be {allowed}" if allowed else first["msg"]
    value = repr(first["input"])
    shown = value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "…"
    return ScenarioError(f"{path}: {where} is {shown}", why, "Correct that field")


def _check_numbers(file: _File, path: Path) -> None:
    pairs: list[tuple[str, Any]] = [
        (f"targets.{key}", value) for key, value in file.targets.items()
    ]
    pairs += [(f"tolerances.{key}", part) for key, both in file.tolerances.items() for part in both]
    pairs += _numbers("params", file.params)
    for where, value in pairs:
        if not math.isfinite(value):
            raise ScenarioError(f"{path}: {where} is {value}", "it must be finite", "Correct it")
    for name, (margin, scale) in file.tolerances.items():
        if margin < 0 or scale <= 0:
            raise ScenarioError(
                f"{path}: tolerances.{name} is [{margin}, {scale}]",
                "the margin must be at least 0 and the scale above 0",
                "Correct it",
            )
    try:
        json.dumps(file.params)
    except (TypeError, ValueError) as error:
        raise ScenarioError(
            f"{path}: params hold a value that is not text, number, list or table",
            str(error),
            "Write dates as text",
        ) from error


def _numbers(where: str, value: Any) -> list[tuple[str, float]]:
    if isinstance(value, float):
        return [(where, value)]
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in _numbers(f"{where}.{key}", part)]
    if isinstance(value, list):
        return [pair for i, part in enumerate(value) for pair in _numbers(f"{where}[{i}]", part)]
    return []


def _columns(rows: list[dict[str, Any]], path: Path) -> Mapping[str, tuple[Any, ...]]:
    names: dict[str, None] = {"id": None}
    for row in rows:
        names.update(dict.fromkeys(row))
    _check_ids([row.get("id") for row in rows], path)
    for number, row in enumerate(rows):
        for key, value in row.items():
            if not isinstance(value, str | int | float | bool) or value in (
                math.inf,
                -math.inf,
            ):
                raise ScenarioError(
                    f"{path}: resource {number + 1}: {key} is {value!r}",
                    "a cell is text, a finite number or true/false",
                    "Leave the field out when it is unknown",
                )
    return {name: tuple(row.get(name) for row in rows) for name in names}


def _check_ids(ids: list[Any], path: Path) -> None:
    seen: set[str] = set()
    for number, name in enumerate(ids):
        if not isinstance(name, str) or not name:
            raise ScenarioError(
                f"{path}: resource {number + 1} has no id", "", "Give it a text id of its own"
            )
        if name in seen:
            raise ScenarioError(
                f"{path}: two resources have the id {name!r}", "ids are unique", "Rename one"
            )
        seen.add(name)


def _read_columns(columns: _Columns, path: Path) -> Mapping[str, tuple[Any, ...]]:
    beside = path.parent / columns.file
    if Path(columns.file).name != columns.file:
        raise ScenarioError(
            f"{path}: columns.file is {columns.file!r}",
            "the columns file lies beside the scenario",
            "Write its bare name",
        )
    try:
        content = read_regular(beside, _MAX_COLUMNS_BYTES)
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f"{path}: its columns file {beside} cannot be read",
            getattr(error, "strerror", None) or str(error),
            "Put it back beside the scenario, or import the bill again",
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != columns.sha256:
        raise ScenarioError(
            f"{beside} has the digest {digest[:12]}…, {path} expects {columns.sha256[:12]}…",
            "the inventory was changed after the scenario was written",
            f'If you meant to, write sha256 = "{digest}"',
        )
    try:
        table = list(csv.reader(content.decode("utf-8-sig").splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{beside} is not CSV", str(error), "Import the bill again") from error
    if not table or "id" not in table[0]:
        raise ScenarioError(f"{beside} has no column 'id'", "", "Import the bill again")
    header, *rows = table
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise ScenarioError(
                f"{beside}: line {number + 2} has {len(row)} fields",
                f"the header has {len(header)}",
                "Import the bill again",
            )
    result = {name: _cells([row[i] for row in rows]) for i, name in enumerate(header)}
    result["id"] = tuple(row[header.index("id")] for row in rows)
    _check_ids(list(result["id"]), beside)
    return result


def _cells(texts: list[str]) -> tuple[Any, ...]:
    """A column's values: numbers where every filled cell is a finite number, else text."""
    filled = [text for text in texts if text]
    try:
        numbers = {text: float(text) for text in filled}
    except ValueError:
        return tuple(text or None for text in texts)
    if all(math.isfinite(number) for number in numbers.values()):
        return tuple(numbers[text] if text else None for text in texts)
    return tuple(text or None for text in texts)
