"""Writes the table of a trace as Parquet: the rows and columns of the CSV, with types.

The library that writes Parquet is an extra; it is imported here only, and only when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.trace.export import table
from world.errors import MissingExtraError

EXTRA = "parquet"
_ROWS_PER_GROUP = 8_192
_WHOLE = frozenset({"step", "seed", "proposals", "rounds", "rank_of_chosen"})
_YES_NO = frozenset({"abstains", "agreement", "success"})
_NUMBERS = frozenset(
    {
        "time",
        "relative_time",
        "weight",
        "confidence",
        "utility_of_chosen",
        "utility_of_preferred",
        "reward",
    }
)


def export_parquet(path: Path, out: BinaryIO) -> int:
    """Write one row per step and seat; unknown values are null.

    ``state``, ids and texts are strings, ``data`` and ``responses`` JSON in strings; metrics and
    utilities doubles. Text is as it was recorded: nothing evaluates a Parquet cell.

    Returns:
        Number of rows.

    Raises:
        MissingExtraError: The library that writes Parquet is not installed.
        TraceError: As `orchestrator.trace.reader.read`.
    """
    pyarrow, parquet = _library()
    rows = table(path)
    names = next(rows)
    schema = pyarrow.schema([(name, _type_of(pyarrow, name)) for name in names])
    count = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = [
                pyarrow.array(_converted(name, values), schema.field(name).type)
                for name, values in zip(names, zip(*group, strict=True), strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
            count += len(group)
    return count


def _groups(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    while group := list(islice(rows, _ROWS_PER_GROUP)):
        yield group


def _type_of(pyarrow: Any, name: str) -> Any:
    if name in _WHOLE:
        return pyarrow.int64()
    if name in _YES_NO:
        return pyarrow.bool_()
    if name in _NUMBERS or name.startswith(("before_", "after_")):
        return pyarrow.float64()
    return pyarrow.string()


def _converted(name: str, values: tuple[Any, ...]) -> list[Any]:
    """Values as their column holds them; a lone surrogate, which no UTF-8 has, is U+FFFD."""
    if name in _NUMBERS or name.startswith(("before_", "after_")):
        return [None if value is None else float(value) for value in values]
    if name in _WHOLE or name in _YES_NO:
        return list(values)
    return [None if value is None else _utf8(str(value)) for value in values]


def _utf8(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _library() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "--format parquet needs pyarrow, which is not installed",
            f"it is in the extra '{EXTRA}'",
            f"Install it: pip install '.[{EXTRA}]'; or take --format csv",
        ) from error
    return pyarrow, parquet
