"""The bytes of a world: whatever goes in comes out, to the last bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world.errors import WorldError
from world.model import Cells, Snapshot
from world.store import codec

names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=40
)


@given(st.dictionaries(names, st.floats(allow_nan=True, width=64), max_size=20))
def test_packed_metrics_come_back_bit_by_bit(metrics: dict[str, float]) -> None:
    read = codec.unpack_metrics(codec.pack_metrics(metrics))
    assert list(read) == list(metrics)
    for name, value in metrics.items():
        assert struct.pack("<d", read[name]) == struct.pack("<d", value)


@given(
    st.lists(
        st.builds(
            Cells,
            st.sampled_from(["cpu_percent", "h.load", "größe"]),
            st.integers(0, 2**32 - 1),
            st.binary(max_size=40),
        ),
        max_size=40,
    )
)
def test_packed_cells_come_back_in_order(cells: list[Cells]) -> None:
    columns, packed = codec.pack_cells(cells)
    assert list(codec.unpack_cells(columns, packed)) == cells


@given(st.sampled_from(["<f8", ">f8", "<i4", ">i2", "|u1", "|b1", ">u4", "S5"]), st.integers(0, 9))
def test_columns_of_any_byte_order_come_back_little_endian(dtype: str, rows: int) -> None:
    column = np.arange(rows).astype(dtype)
    snapshot = Snapshot(0, {}, b"", {"c": column}, tuple("abcdefghi"[:rows]), {"c": ("é",)})
    frame = codec.frame_from_json(codec.frame_to_json(codec.frame_of(snapshot)))
    assert frame == codec.frame_of(snapshot)
    read = codec.column_from_bytes(codec.column_to_bytes(column), frame.dtypes["c"])
    np.testing.assert_array_equal(read, column)
    assert not frame.dtypes["c"].startswith(">")


@pytest.mark.parametrize("dtype", ["|O", "<M8[ns]", "<U4", "V8", "f8", "<f8,<f8", "object"])
def test_a_dtype_that_is_not_plain_is_refused_even_from_the_store(dtype: str) -> None:
    data = codec.frame_to_json(codec.Frame((), {}, {"c": dtype}))
    with pytest.raises(WorldError, match="dtype"):
        codec.frame_from_json(data)


@pytest.mark.parametrize("cells", [Cells("c", -1, b""), Cells("c", 2**32, b"")])
def test_an_offset_that_does_not_fit_is_refused(cells: Cells) -> None:
    with pytest.raises(WorldError, match="offset"):
        codec.pack_cells([cells])


def test_a_metric_name_that_does_not_fit_is_refused() -> None:
    for name in ("", "x" * 256):
        with pytest.raises(WorldError, match="name"):
            codec.pack_metrics({name: 1.0})


def test_one_metric_reads_back_from_its_own_bytes() -> None:
    assert codec.unpack_float(struct.pack("<d", math.pi)) == math.pi
