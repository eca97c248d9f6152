"""The record of a tournament: what it plays, and one line for every episode that is over.

A folder holds ``manifest.json`` (settings, digests, seeds and their split) and ``rows.jsonl``. A
row is appended in one write and forced to the disk before the next is begun, so that whoever is
killed loses only what was still being played. The same tournament asked for again in the same
folder plays what is missing and nothing else; it may grow by further seeds, protocols, personas
and scenarios, but what decides its episodes may not have changed in between.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.console.text import plain
from orchestrator.spec import EpisodeSpec, Spent
from orchestrator.study.seeds import ranges_of, seeds_of, split_counts
from orchestrator.trace.events import canonical
from world.errors import ConfigError, DigestMismatchError, SchemaVersionError, UnknownNameError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

SCHEMA = "tournament/1"
MANIFEST_FILE = "manifest.json"
ROWS_FILE = "rows.jsonl"
_LOCK_FILE = ".tournament"
_WHERE = frozenset(
    {"out", "driver", "store", "checkpointer", "persona_path", "base_url", "record", "playback"}
)
"""Fields of a spec that say where an episode is played, not which one it is."""
_FACTORS = frozenset({"scenario", "protocol", "personas", "seed"})


class Fault(BaseModel):
    """Why a cell could not be played."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    why: str = ""
    fix: str = ""


class Row(BaseModel):
    """One finished episode of a tournament, as it lies in ``rows.jsonl``.

    Attributes:
        cell: Which episode it is: `cell_of` its spec.
        scenario: Scenario name or path, as asked for.
        protocol: Protocol name.
        set: Persona set, as asked for; ``default`` is the default room.
        personas: Role → persona name.
        seed: Episode seed.
        error: Why it could not be played, or None.

    The others are those of `EpisodeResult`; None where the cell was not played.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cell: str = Field(pattern=r"^[0-9a-f]{16}$")
    scenario: str
    seed: int = Field(ge=0, lt=2**63)
    protocol: str
    set: str
    personas: dict[str, str]
    score: float | None = Field(default=None, allow_inf_nan=False)
    reward_total: float | None = Field(default=None, allow_inf_nan=False)
    success: bool | None = None
    success_any: bool | None = None
    steps: int | None = None
    stop_reason: str | None = None
    violations: list[str] | None = None
    metrics_end: dict[str, float] | None = None
    usage: Spent | None = None
    trace: str | None = None
    trace_sha: str | None = None
    error: Fault | None = None


class ScenarioEntry(BaseModel):
    """A scenario of a tournament: its digest, and whether actions leave its noise alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str
    shared_noise: bool = True


class Manifest(BaseModel):
    """What a tournament plays.

    Attributes:
        schema_version: ``tournament/1``.
        settings: What all its episodes share: the fields of a spec that decide an episode.
        scenarios: Name as asked for → digest and noise.
        personas: Persona, as asked for → digest of its contents.
        protocols: Protocol → digest.
        sets: Persona sets.
        seeds: Seeds as ``A:B`` and single ones.
        split: Split → how many of the seeds belong to it (`orchestrator.study.seeds`).
        versions: Versions of each session that played a part, oldest first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: str = Field(default=SCHEMA, alias="schema")
    settings: dict[str, Any]
    scenarios: dict[str, ScenarioEntry]
    personas: dict[str, str]
    protocols: dict[str, str]
    sets: list[str]
    seeds: str
    split: dict[str, int]
    versions: list[dict[str, str]]


def settings_of(spec: EpisodeSpec) -> dict[str, Any]:
    """What decides an episode beside scenario, protocol, personas and seed."""
    return spec.model_dump(mode="json", exclude=set(_WHERE | _FACTORS))


def cell_of(spec: EpisodeSpec) -> str:
    """Which episode a spec is, wherever it is played: 16 hexadecimal digits."""
    content = spec.model_dump(mode="json", exclude=set(_WHERE))
    return hashlib.sha256(canonical(content)).hexdigest()[:16]


class Ledger:
    """The rows of a tournament that is being played. Made by `open_ledger`.

    Attributes:
        rows: Cell → its row.
    """

    def __init__(self, descriptor: int, rows: dict[str, dict[str, Any]]) -> None:
        self._descriptor = descriptor
        self.rows = rows

    def append(self, cell: str, row: Mapping[str, Any]) -> None:
        """Keep a row; it is on the disk when this returns.

        Raises:
            ConfigError: It cannot be written.
        """
        text = json.dumps({"cell": cell, **row}, ensure_ascii=False, allow_nan=False)
        # A name that was typed in bytes that are no UTF-8 loses them here, and here only.
        line = f"{text}\n".encode("utf-8", "replace")
        try:
            start = os.lseek(self._descriptor, 0, os.SEEK_END)
            if os.write(self._descriptor, line) != len(line):
                os.ftruncate(self._descriptor, start)
                raise OSError(28, "No space left on device")
            os.fsync(self._descriptor)
        except OSError as error:
            raise ConfigError(
                f"a row of the tournament cannot be written ({error.strerror})",
                "what was played before is kept",
                "Make room, and run the same command again",
            ) from error
        self.rows[cell] = dict(row)


@contextmanager
def open_ledger(folder: Path, manifest: Manifest, retry_failed: bool = False) -> Iterator[Ledger]:
    """The record of a tournament, begun or continued; no other process may write meanwhile.

    Args:
        folder: Its folder; made if it is not there.
        manifest: What is to be played.
        retry_failed: Forget the rows of cells that failed, so that they are played again.

    Raises:
        ConfigError: The folder cannot be written, is in use, or holds another tournament.
        DigestMismatchError: A line that was written before has been changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(
            f"the folder {plain(folder)} cannot be written",
            error.strerror or str(error),
            "Name another with --out, or correct its permissions",
        ) from error
    try:
        _lock(lock, folder)
        known = _known_manifest(folder)
        now = manifest if known is None else _grown(known, manifest, folder)
        write_whole(folder / MANIFEST_FILE, _json(now))
        descriptor = os.open(
            folder / ROWS_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        try:
            _drop_torn_line(descriptor, folder / ROWS_FILE)
            rows = {row.cell: stored(row) for row in read_rows(folder)[0]}
            if retry_failed:
                rows = {cell: row for cell, row in rows.items() if row["error"] is None}
            _sync_folder(folder)
            yield Ledger(descriptor, rows)
        finally:
            os.close(descriptor)
    finally:
        os.close(lock)


def stored(row: Row) -> dict[str, Any]:
    """A row as `orchestrator.study.tournament.row_of` gives it."""
    kept = row.model_dump(mode="json", exclude={"cell"})
    if row.error is None:
        return kept
    return {name: part for name, part in kept.items() if name in _OF_FAILED}


_OF_FAILED = frozenset(
    {"scenario", "seed", "protocol", "set", "personas", "score", "reward_total", "success", "error"}
)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a tournament; None where it has none.

    Raises:
        SchemaVersionError: It is of another version.
        ConfigError: It is no manifest.
    """
    return _known_manifest(folder)


def read_rows(folder: Path) -> tuple[list[Row], list[str]]:
    """The rows of a tournament, one per cell, in the order in which they were first written.

    A later row of a cell that had failed stands for it; a torn last line is left out.

    Returns:
        Rows, and what there is to warn of.

    Raises:
        UnknownNameError: There is no tournament.
        DigestMismatchError: A line is no row.
    """
    path = folder / ROWS_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnknownNameError(
            f"there is no tournament in {plain(folder)}",
            f"{plain(path)}: {error.strerror}",
            "Play one: run_warroom.py tournament --seeds 0:8 --out DIR",
        ) from error
    *lines, torn = content.split(b"\n")
    warnings = [f"the last line of {plain(path)} is torn and was left out"] if torn else []
    rows: dict[str, Row] = {}
    twice = 0
    for number, line in enumerate(lines, 1):
        row = _row(line, path, number)
        before = rows.get(row.cell)
        if before is None or before.error is not None:
            rows[row.cell] = row
        else:
            twice += 1
    if twice:
        warnings.append(f"{twice} rows of cells that were there already were left out")
    return list(rows.values()), warnings


def _row(line: bytes, path: Path, number: int) -> Row:
    try:
        return Row.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise DigestMismatchError(
            f"{plain(path)}, line {number} is no row of a tournament",
            f"{plain(where)}: {fault['msg']}" if where else fault["msg"],
            "Delete that line; the same tournament command then plays its cell again",
        ) from error


def _known_manifest(folder: Path) -> Manifest | None:
    path = folder / MANIFEST_FILE
    try:
        content = path.read_text(encoding="utf-8")
        data = json.loads(content)
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, str) and schema != SCHEMA:
            raise SchemaVersionError(
                f"{plain(path)} has the schema {plain(schema, 40)!r}",
                f"this version reads {SCHEMA}",
                "Use the version that wrote it",
            )
        return Manifest.model_validate(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{plain(path)} is no manifest of a tournament",
            plain(str(error), 200),
            "Name another folder, or delete this file and rows.jsonl to begin anew",
        ) from error


def _grown(known: Manifest, asked: Manifest, folder: Path) -> Manifest:
    """What was played and what is asked, together, if one tournament can hold both."""
    for name, value in asked.settings.items():
        if known.settings.get(name, value) != value:
            raise _other(folder, name, known.settings[name], value)
    digests = (
        ({name: part.digest for name, part in known.scenarios.items()},
         {name: part.digest for name, part in asked.scenarios.items()}),
        (known.personas, asked.personas),
        (known.protocols, asked.protocols),
    )  # fmt: skip
    for before, now in digests:
        for name, digest in now.items():
            if before.get(name, digest) != digest:
                raise _other(folder, name, before[name][:12], digest[:12])
    seeds = sorted({*seeds_of(known.seeds), *seeds_of(asked.seeds)})
    sessions = [*known.versions, *(each for each in asked.versions if each not in known.versions)]
    return Manifest(
        settings={**known.settings, **asked.settings},
        scenarios={**known.scenarios, **asked.scenarios},
        personas={**known.personas, **asked.personas},
        protocols={**known.protocols, **asked.protocols},
        sets=list(dict.fromkeys((*known.sets, *asked.sets))),
        seeds=ranges_of(seeds),
        split=split_counts(seeds),
        versions=sessions,
    )


def _other(folder: Path, name: str, before: object, now: object) -> ConfigError:
    return ConfigError(
        f"{plain(folder)} holds a tournament in which {plain(name, 80)} was {plain(before, 80)}",
        f"now it is {plain(now, 80)}, and rows of both cannot be compared",
        "Name another folder with --out",
    )


def _lock(descriptor: int, folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ConfigError(
            f"a tournament is being played into {plain(folder)}",
            "by another process",
            "Wait for it, stop it, or name another folder with --out",
        ) from error


def _drop_torn_line(descriptor: int, path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.ftruncate(descriptor, whole)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, whoever is killed when."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _json(manifest: Manifest) -> str:
    data = manifest.model_dump(mode="json", by_alias=True)
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"
