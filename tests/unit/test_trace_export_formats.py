"""Traces as Parquet and as logs of Inspect: refused with the extra's name, or read back whole."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from orchestrator.trace.export import export_csv
from orchestrator.trace.inspect_log import export_inspect
from orchestrator.trace.parquet import export_parquet
from tests.support.traces import HOSTILE, SEATS, commits, write_trace
from world.errors import MissingExtraError, TraceError

writes_parquet = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs the extra parquet (pyarrow)"
)
writes_inspect = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="needs the extra inspect (inspect_ai)"
)
Export = Callable[[Path, BinaryIO], int]


@pytest.mark.parametrize(
    ("export", "library", "extra"),
    [(export_parquet, "pyarrow", "parquet"), (export_inspect, "inspect_ai", "inspect")],
)
def test_without_its_library_a_form_is_refused_with_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: Export, library: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    with pytest.raises(MissingExtraError, match=f"extra '{extra}'") as caught:
        export(path, io.BytesIO())
    assert caught.value.exit_code == 3


@writes_parquet
def test_a_parquet_file_has_the_rows_and_columns_of_the_csv_with_types(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(4, talk=True, rationale=HOSTILE))
    out, text = io.BytesIO(), io.StringIO(newline="")
    rows = export_parquet(path, out)
    assert export_csv(path, text) == rows == 4 * len(SEATS)
    out.seek(0)
    parquet: Any = importlib.import_module("pyarrow.parquet")
    table = parquet.read_table(out)
    text.seek(0)
    plain = [*csv.DictReader(text)]
    assert table.column_names == [*plain[0]]
    assert str(table.schema.field("reward").type) == "double"
    assert str(table.schema.field("step").type) == "int64"
    assert str(table.schema.field("success").type) == "bool"
    got = table.to_pylist()
    assert [row["reward"] for row in got] == [float(row["reward"]) for row in plain]
    assert [row["utility_of_chosen"] for row in got] == [
        float(row["utility_of_chosen"]) for row in plain
    ]
    assert [row["negotiator"] for row in got] == [row["negotiator"] for row in plain]
    assert got[-1]["confidence"] is None


@writes_parquet
def test_text_that_no_utf8_has_does_not_end_a_parquet_export(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(1, rationale="\ud800=1+1"))
    out = io.BytesIO()
    export_parquet(path, out)
    out.seek(0)
    parquet: Any = importlib.import_module("pyarrow.parquet")
    assert parquet.read_table(out).column("text").to_pylist()[0] == "\ufffd=1+1"


@writes_inspect
def test_an_inspect_log_is_read_back_with_every_event_and_the_score(tmp_path: Path) -> None:
    log: Any = importlib.import_module("inspect_ai.log")
    batches = list(commits(3, talk=True, rationale=HOSTILE))
    path = write_trace(tmp_path / "t.jsonl", batches)
    target = tmp_path / "t.eval"
    with target.open("wb") as out:
        count = export_inspect(path, out)
    entries = [entry for batch in batches for entry in batch]
    assert count == len(entries)
    back = log.read_eval_log(str(target))
    assert (back.status, back.eval.task) == ("success", "war_room/cloudedge/hard")
    assert back.eval.task_args["protocol"] == "weighted_score"
    sample = back.samples[0]
    told = [event for event in sample.events if event.event == "info"]
    assert [event.source for event in told] == [f"war_room/{entry.type}" for entry in entries]
    spans = [event.name for event in sample.events if event.event == "span_begin"]
    assert spans == [name for k in (1, 2, 3) for name in (f"step {k}", f"step {k}, round 1")]
    assert sum(event.event == "span_end" for event in sample.events) == len(spans)
    assert sample.scores["war_room"].value == 0.412
    assert back.results.scores[0].metrics["total"].value == 0.412
    assert sample.store["metrics"]["latency_ms"] == pytest.approx(176.666667)


@writes_inspect
def test_a_trace_without_an_end_is_a_cancelled_log_without_a_score(tmp_path: Path) -> None:
    log: Any = importlib.import_module("inspect_ai.log")
    path = write_trace(tmp_path / "t.jsonl", commits(2, ended=False))
    target = tmp_path / "t.eval"
    with target.open("wb") as out:
        export_inspect(path, out)
    back = log.read_eval_log(str(target))
    assert (back.status, back.samples[0].scores, back.results) == ("cancelled", None, None)


@writes_inspect
def test_an_edited_trace_becomes_no_inspect_log(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    path.write_bytes(path.read_bytes().replace(b"latency is", b"latency was", 1))
    with pytest.raises(TraceError):
        export_inspect(path, io.BytesIO())
