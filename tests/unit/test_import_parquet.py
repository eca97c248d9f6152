"""Parquet exports: refused with the name of the extra, or read as the CSV of the same rows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.samples import grid_lines, write_grid
from world.errors import ImportFileError, MissingExtraError
from world.importers.grid import import_grid
from world.importers.tables import TableReader

INSTALLED = importlib.util.find_spec("pyarrow") is not None
reads_parquet = pytest.mark.skipif(not INSTALLED, reason="needs the extra parquet (pyarrow)")


def test_without_its_library_a_parquet_file_is_told_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    path = tmp_path / "bill.csv"  # the name does not count
    path.write_bytes(b"PAR1rest")
    with pytest.raises(MissingExtraError) as caught:
        TableReader(path, {}, "bill")
    assert caught.value.exit_code == 3
    assert "extra 'parquet'" in caught.value.line()
    assert "export the data as CSV" in caught.value.line()


@reads_parquet
def test_a_parquet_file_gives_what_the_csv_of_its_rows_gives(tmp_path: Path) -> None:
    pyarrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    rows = [line.split(",") for line in grid_lines(48)]
    table = pyarrow.table(
        {"timestamp": [row[0] for row in rows], "avg_CI": [float(row[1]) for row in rows]}
    )
    parquet.write_table(table, tmp_path / "grid.parquet")
    of_csv = import_grid(write_grid(tmp_path, grid_lines(48)))
    assert import_grid(tmp_path / "grid.parquet").as_json() == of_csv.as_json()


@reads_parquet
def test_nested_columns_become_json_and_null_is_unknown(tmp_path: Path) -> None:
    pyarrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    tags = pyarrow.array(
        [[("env", "prod")], None], type=pyarrow.map_(pyarrow.string(), pyarrow.string())
    )
    table = pyarrow.table({"Tags": tags, "Cost": [1.5, None], "Id": ["a,b\n", '"']})
    parquet.write_table(table, tmp_path / "t.parquet")
    with TableReader(tmp_path / "t.parquet", {}, "bill") as read:
        assert list(read) == [['{"env": "prod"}', "1.5", "a,b\n"], ["", "", '"']]


@reads_parquet
def test_a_damaged_parquet_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "bill.parquet").write_bytes(b"PAR1" + b"x" * 400 + b"PAR1")
    with pytest.raises(ImportFileError, match="damaged Parquet file"):
        TableReader(tmp_path / "bill.parquet", {}, "bill")
