"""The bytes of a world in a store: columns, metrics, deltas and the words around them.

Little-endian everywhere. Metrics travel as packed 8-byte floats that no server ever converts.
A delta is packed so that core Lua can unpack it by `string.byte` alone.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.model import Cells, Delta, Snapshot
from world.store.refusals import malformed

_FLOAT = struct.Struct("<d")
_CELL = struct.Struct("<HII")
_DTYPE = re.compile(r"[<|](?:[biuf][1248]|S[1-9][0-9]{0,3})\Z")


class Frame(NamedTuple):
    """What never changes about an episode's columns.

    Attributes:
        ids: Resource ids in row order.
        vocabulary: Coded column name → words.
        dtypes: Column name → NumPy dtype string, little-endian, in column order.
    """

    ids: tuple[str, ...]
    vocabulary: Mapping[str, tuple[str, ...]]
    dtypes: Mapping[str, str]


def frame_of(snapshot: Snapshot) -> Frame:
    """The unchanging part of a snapshot.

    Raises:
        WorldError: A column is not a one-dimensional array of numbers or of fixed-width bytes.
    """
    dtypes = {}
    for name, column in snapshot.columns.items():
        dtype = column.dtype.newbyteorder("<").str
        if column.ndim != 1 or not _DTYPE.match(dtype):
            raise malformed(f"column {name!r} has dtype {column.dtype} and {column.ndim} axes")
        dtypes[name] = dtype
    return Frame(snapshot.ids, snapshot.vocabulary, dtypes)


def frame_to_json(frame: Frame) -> bytes:
    """The frame as canonical JSON."""
    return json.dumps(
        {
            "ids": frame.ids,
            "vocabulary": {name: list(words) for name, words in frame.vocabulary.items()},
            "columns": list(frame.dtypes.items()),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def frame_from_json(data: bytes) -> Frame:
    """Read a frame back. Only plain dtypes are accepted, whatever the server says."""
    raw = json.loads(data)
    dtypes = {str(name): str(dtype) for name, dtype in raw["columns"]}
    for dtype in dtypes.values():
        if not _DTYPE.match(dtype):
            raise malformed(f"the store names the dtype {dtype!r}")
    vocabulary = {str(name): tuple(words) for name, words in raw["vocabulary"].items()}
    return Frame(tuple(raw["ids"]), vocabulary, dtypes)


def column_to_bytes(column: NDArray[Any]) -> bytes:
    """A column as little-endian bytes."""
    return np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes()


def column_from_bytes(data: bytes, dtype: str) -> NDArray[Any]:
    """A read-only column over `data`."""
    return np.frombuffer(data, dtype=np.dtype(dtype))


def pack_metrics(metrics: Mapping[str, float]) -> bytes:
    r"""Metrics as ``length, name, 8-byte float`` one after another.

    >>> pack_metrics({"a": 1.0})
    b'\x01a\x00\x00\x00\x00\x00\x00\xf0?'
    """
    parts: list[bytes] = []
    for name, value in metrics.items():
        label = name.encode("utf-8", "replace")
        if not 0 < len(label) < 256:
            raise malformed(f"{name[:80]!r} cannot be a metric name")
        parts += (bytes((len(label),)), label, _FLOAT.pack(value))
    return b"".join(parts)


def unpack_metrics(data: bytes) -> dict[str, float]:
    """Read `pack_metrics` back."""
    metrics: dict[str, float] = {}
    position = 0
    while position < len(data):
        start = position + 1
        end = start + data[position]
        metrics[data[start:end].decode()] = _FLOAT.unpack_from(data, end)[0]
        position = end + 8
    return metrics


def unpack_float(data: bytes) -> float:
    """One metric as the server keeps it."""
    return float(_FLOAT.unpack(data)[0])


def pack_cells(cells: Sequence[Cells]) -> tuple[tuple[str, ...], bytes]:
    """Changed cells as ``column number, offset, length, bytes`` one after another.

    Returns:
        The touched columns in order of their number, and the packed cells.
    """
    numbers: dict[str, int] = {}
    parts: list[bytes] = []
    for column, offset, data in cells:
        number = numbers.setdefault(column, len(numbers))
        if not 0 <= offset < 2**32 or len(data) >= 2**32 or number > 0xFFFF:
            raise malformed(f"offset {offset}, {len(data)} bytes in column {column!r}")
        parts += (_CELL.pack(number, offset, len(data)), data)
    return tuple(numbers), b"".join(parts)


def unpack_cells(columns: Sequence[str], data: bytes) -> tuple[Cells, ...]:
    """Read `pack_cells` back."""
    cells = []
    position = 0
    while position < len(data):
        number, offset, length = _CELL.unpack_from(data, position)
        position += _CELL.size
        cells.append(Cells(columns[number], offset, data[position : position + length]))
        position += length
    return tuple(cells)


def apply_delta(
    delta: Delta, metrics: dict[str, float], hidden: bytes, columns: Mapping[str, bytearray]
) -> bytes:
    """Apply a checked delta in place.

    Returns:
        The hidden scalars after it: those of the delta, or the old ones where it has none.
    """
    metrics.update(delta.metrics)
    for column, offset, data in delta.cells:
        columns[column][offset : offset + len(data)] = data
    return delta.hidden or hidden
