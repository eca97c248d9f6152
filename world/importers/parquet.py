"""Parquet files as the CSV text that the same export would have been.

Clouds export bills as CSV or as Parquet; one reader of CSV then serves both. Nested columns (tags
in a map, credits in a list) become JSON text, as they stand in a CSV. The library that reads
Parquet is an extra of its own, imported only for such a file.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from world.errors import ImportFileError, MissingExtraError

MAGIC: Final = b"PAR1"
EXTRA: Final = "parquet"
_ROWS: Final = 8_192


def csv_of_parquet(path: Path) -> io.BufferedReader:
    """The rows of a Parquet file as a stream of UTF-8 CSV, a header first.

    Raises:
        MissingExtraError: The library that reads Parquet is not installed.
        ImportFileError: The file is damaged.
    """
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a Parquet file",
            f"reading those needs the extra '{EXTRA}' (pyarrow)",
            f"Install it: pip install '.[{EXTRA}]'; or export the data as CSV",
        ) from error
    try:
        file = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    return io.BufferedReader(_Chunks(_texts(path, file)), buffer_size=1 << 18)


def _texts(path: Path, file: Any) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(file.schema_arrow.names)
    batches = file.iter_batches(batch_size=_ROWS)
    while True:
        yield buffer.getvalue().encode("utf-8", "surrogatepass")
        buffer.seek(0)
        buffer.truncate()
        try:
            batch = next(batches, None)
        except (OSError, ValueError) as error:
            raise _damaged(path, error) from error
        if batch is None:
            return
        columns = [_column(column) for column in batch.columns]
        writer.writerows(zip(*columns, strict=True))


def _column(column: Any) -> list[str]:
    """A column's values as text; unknown is empty."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_nested(kind):
        return ["" if value is None else _nested(value, kind) for value in column.to_pylist()]
    try:
        values = column.cast(pyarrow.string()).to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        values = [None if value is None else str(value) for value in column.to_pylist()]
    return ["" if value is None else value for value in values]


def _nested(value: Any, kind: Any) -> str:
    import pyarrow

    plain = dict(value) if pyarrow.types.is_map(kind) else value
    return json.dumps(plain, default=str, ensure_ascii=False)


def _damaged(path: Path, error: Exception) -> ImportFileError:
    said = " ".join(str(error).split())[:200]
    return ImportFileError(f"{path} is a damaged Parquet file", said, "Download or export it again")


class _Chunks(io.RawIOBase):
    """A raw stream over pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count
