"""The tidy table as CSV, Parquet and HTML: complete, typed, and harmless."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.study.tables import (
    Table,
    check_measure,
    columns,
    csv_text,
    html_page,
    measure_of,
    measures,
    tidy,
    write_parquet,
    write_text,
)
from tests.support.sweeps import failed, row
from world.errors import ConfigError, MissingExtraError, UnknownNameError

HOSTILE = "=cmd|' /C calc'!A0"
ROWS = [
    row(0, 0.4),
    row(5000, 0.6, personas={"resource": "resource", "observer": HOSTILE},
        metrics_end={"carbon_index": 3.0}, violations=["harm", "more harm"]),
    failed(2, "<script>alert(1)</script>"),
]  # fmt: skip


def test_a_row_is_an_episode_and_a_column_a_quantity() -> None:
    names = columns(ROWS)
    assert len(names) == len(set(names))
    found = [dict(zip(names, values, strict=True)) for values in tidy(ROWS)]
    assert [each["seed"] for each in found] == [0, 5000, 2]
    assert [each["split"] for each in found] == ["published", "reporting", "published"]
    assert [each["violations"] for each in found] == [0, 2, None]
    assert [each["end_carbon_index"] for each in found] == [None, 3.0, None]
    assert [each["persona_observer"] for each in found] == [None, HOSTILE, None]
    assert found[2]["score"] is None
    assert "it is impossible" in str(found[2]["error"])


def test_csv_starts_no_formula_and_leaves_unknown_cells_empty() -> None:
    read = list(csv.DictReader(io.StringIO(csv_text(ROWS))))
    assert len(read) == 3
    assert read[1]["persona_observer"] == "'" + HOSTILE
    assert (read[0]["success"], read[1]["success"], read[2]["score"]) == ("0", "1", "")
    assert float(read[0]["reward_total"]) == 40.0


def test_measures_are_numbers_of_episodes_that_were_played() -> None:
    assert {"score", "reward_total", "success", "end_latency_ms"} <= set(measures(ROWS))
    assert measure_of(ROWS[1], "success") == 1.0
    assert measure_of(ROWS[1], "violations") == 2.0
    assert measure_of(ROWS[0], "end_carbon_index") is None
    assert measure_of(ROWS[2], "score") is None
    assert check_measure("steps", ROWS) == "steps"
    with pytest.raises(UnknownNameError, match="Measures: score, "):
        check_measure("trace_sha", ROWS)


def test_a_page_escapes_every_text_and_runs_nothing() -> None:
    hostile = '"><img src=x onerror=alert(1)>\x1b[2J'
    page = html_page(hostile, [Table(hostile, (hostile,), ((hostile,),), hostile)], [hostile])
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("&lt;img") == 7
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_without_its_library_parquet_is_refused_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"extra 'study'.*--csv"):
        write_parquet(ROWS, tmp_path / "rows.parquet")


def test_parquet_holds_what_the_tidy_table_holds_with_types(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs the extra study")
    write_parquet(ROWS, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet")
    assert table.column_names == columns(ROWS)
    assert str(table.schema.field("seed").type) == "int64"
    assert str(table.schema.field("success").type) == "bool"
    assert str(table.schema.field("end_latency_ms").type) == "double"
    read = [list(each.values()) for each in table.to_pylist()]
    assert read == tidy(ROWS)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write_text(tmp_path / "nosuch" / "rows.csv", "x")
