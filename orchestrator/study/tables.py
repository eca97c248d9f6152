"""The rows of a tournament as a tidy table: one row an episode, one column a quantity.

As CSV, as Parquet (an extra), and as an HTML page that stands alone. Text of others stays text
in all three: no cell starts a formula, no character is markup.
"""

from __future__ import annotations

import csv
import html
import importlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.console.text import plain, without_secrets
from orchestrator.study.ledger import Row, write_whole
from orchestrator.study.seeds import split_of
from orchestrator.trace.untrusted import cell
from world.errors import ConfigError, MissingExtraError, UnknownNameError

_NUMBERS = (
    "score", "reward_total", "success", "success_any", "steps", "violations",
    "calls", "tokens_in", "tokens_out", "usd",
)  # fmt: skip
"""Measures that every episode has; yes and no count as 1 and 0, violations by their number."""
_END = "end_"
"""Before the name of a metric: its value after the last step."""
_WHOLE = frozenset({"seed", "steps", "violations", "calls", "tokens_in", "tokens_out"})
_YES_NO = frozenset({"success", "success_any"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read.

    Attributes:
        title: What it is.
        head: Names of its columns, with units.
        rows: Cells as text.
        note: How it was computed, in one line.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def measures(rows: Sequence[Row]) -> list[str]:
    """Names of what may be compared in these rows."""
    ends = dict.fromkeys(name for row in rows for name in row.metrics_end or {})
    return [*_NUMBERS, *(f"{_END}{name}" for name in ends)]


def check_measure(name: str, rows: Sequence[Row]) -> str:
    """The name of a measure that these rows have.

    Raises:
        UnknownNameError: They do not have it.
    """
    known = measures(rows)
    if name not in known:
        raise UnknownNameError(
            f"there is no measure {plain(name, 80)!r}", "", f"Measures: {', '.join(known)}"
        )
    return name


def measure_of(row: Row, name: str) -> float | None:
    """A measure of an episode; None where it was not played or the measure is not known."""
    if row.error is not None:
        return None
    value = _value(row, name)
    return None if value is None or isinstance(value, str) else float(value)


def _value(row: Row, name: str) -> float | str | bool | None:
    if name == "violations":
        return None if row.violations is None else len(row.violations)
    if name in {"calls", "tokens_in", "tokens_out", "usd"}:
        return None if row.usage is None else getattr(row.usage, name)
    if name == "split":
        return split_of(row.seed)
    if name == "error":
        return None if row.error is None else _fault(row)
    if name.startswith("persona_"):
        return row.personas.get(name.removeprefix("persona_"))
    if name.startswith(_END):
        return (row.metrics_end or {}).get(name.removeprefix(_END))
    return getattr(row, name)  # type: ignore[no-any-return]


def _fault(row: Row) -> str:
    error = row.error
    return f"{error.what} ({error.why}). {error.fix}" if error else ""


def columns(rows: Sequence[Row]) -> list[str]:
    """Names of the columns: what was played, by whom, what it came to."""
    roles = dict.fromkeys(role for row in rows for role in row.personas)
    ends = measures(rows)[len(_NUMBERS) :]
    who = [f"persona_{role}" for role in roles]
    return [
        "scenario", "protocol", "set", "seed", "split", *who, *_NUMBERS, "stop_reason", *ends,
        "trace_sha", "error",
    ]  # fmt: skip


def tidy(rows: Sequence[Row]) -> list[list[float | str | bool | None]]:
    """The cells of the tidy table, in the order of `columns`; what is not known is None."""
    names = columns(rows)
    return [[_value(row, name) for name in names] for row in rows]


def csv_text(rows: Sequence[Row]) -> str:
    """The tidy table as CSV; what is not known is an empty cell."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in columns(rows)])
    for values in tidy(rows):
        writer.writerow([_csv_cell(value) for value in values])
    return out.getvalue()


def _csv_cell(value: float | str | bool | None) -> float | str | int:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return cell(value) if isinstance(value, str) else value


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """The tidy table as Parquet, with types; what is not known is null.

    Raises:
        MissingExtraError: The library that writes Parquet is not installed.
        ConfigError: The file cannot be written.
    """
    pyarrow, parquet = _parquet_library()
    names = columns(rows)
    cells = list(zip(*tidy(rows), strict=True)) if rows else [() for _ in names]
    arrays, fields = [], []
    for name, values in zip(names, cells, strict=True):
        kind = _type_of(pyarrow, name)
        fields.append(pyarrow.field(name, kind))
        arrays.append(pyarrow.array(list(values), kind))
    table = pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))
    beside = path.with_name(f".{path.name}.new")
    try:
        parquet.write_table(table, beside, compression="zstd")
        beside.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _type_of(pyarrow: Any, name: str) -> Any:
    if name in _WHOLE:
        return pyarrow.int64()
    if name in _YES_NO:
        return pyarrow.bool_()
    if name in _NUMBERS or name.startswith(_END):
        return pyarrow.float64()
    return pyarrow.string()


def _parquet_library() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(
            "--parquet needs pyarrow, which is not installed",
            "it is in the extra 'study'",
            "Install it: pip install '.[study]'; or take --csv",
        ) from error


def html_page(title: str, tables: Sequence[Table], warnings: Sequence[str] = ()) -> str:
    """One page that stands alone: no script, no network, every text escaped."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">",
        f"<title>{_shown(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{_shown(title)}</h1>",
        *(f'<p class="warning">{_shown(warning)}</p>' for warning in warnings),
        *(_html_table(table) for table in tables),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;color:#1c2430;background:#fff}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "caption{text-align:left;font-weight:600;padding:.3rem 0}"
    "th,td{padding:.25rem .7rem;border-bottom:1px solid #d5dae1;text-align:left;"
    "font-variant-numeric:tabular-nums}"
    ".warning{border-left:4px solid #b45309;padding-left:.7rem}.note{color:#556070}"
    "@media (prefers-color-scheme:dark){body{color:#e5e9f0;background:#14181f}"
    "th,td{border-color:#333b47}.note{color:#9aa5b4}}"
)


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_shown(name)}</th>' for name in table.head)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{_shown(text)}</td>" for text in row) + "</tr>" for row in table.rows
    )
    note = f'\n<p class="note">{_shown(table.note)}</p>' if table.note else ""
    return (
        f"<table><caption>{_shown(table.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>{note}"
    )


def _shown(text: str) -> str:
    return html.escape(without_secrets(plain(text)))


def write_text(path: Path, text: str) -> None:
    """Write a table whole or not at all.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{plain(path)} cannot be written",
        error.strerror or str(error),
        "Name another file, or correct its permissions",
    )
