"""Traces in the forms that other tools read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from orchestrator.trace.export import COLUMNS, export_csv, export_jsonl
from orchestrator.trace.verify import verify
from tests.support.traces import (
    HOSTILE,
    SEATS,
    commits,
    run_started,
    step_events,
    write_trace,
)
from world.errors import DigestMismatchError, TraceError


def rows(path: Path) -> list[dict[str, str]]:
    out = io.StringIO(newline="")
    count = export_csv(path, out)
    out.seek(0)
    table = [*csv.DictReader(out)]
    assert len(table) == count
    return table


def test_the_table_has_one_row_per_step_and_seat(tmp_path: Path) -> None:
    table = rows(write_trace(tmp_path / "t.jsonl", commits(3)))
    assert [(row["step"], row["negotiator"]) for row in table] == [
        (str(step), seat) for step in (1, 2, 3) for seat in SEATS
    ]
    assert [*table[0]][: len(COLUMNS)] == [*COLUMNS]
    assert [*table[0]][len(COLUMNS) :] == [
        f"{when}_{name}"
        for when in ("before", "after")
        for name in ("carbon_index", "cost_usd_per_hour", "latency_ms")
    ]


def test_a_row_says_what_the_seat_wanted_and_what_it_got(tmp_path: Path) -> None:
    batches = [[run_started(4)], [*step_events(1, vetoed=[("cost", "scale_down")], talk=True)]]
    row = rows(write_trace(tmp_path / "t.jsonl", batches))[1]
    assert (row["negotiator"], row["persona"]) == ("cost", "cost_hawk")
    assert (row["offer"], row["chosen"], row["preferred"]) == ("scale_up", "scale_up", "scale_up")
    assert float(row["utility_of_chosen"]) == float(row["utility_of_preferred"]) == 0.714285714
    assert (row["rank_of_chosen"], row["vetoes"]) == ("1", "scale_down")
    assert (row["state"], row["agreement"], row["success"]) == ("agreement", "true", "false")
    assert (row["reward"], row["relative_time"]) == ("-17", "0.25")
    assert json.loads(row["data"])["scale_up"] == 0.714285714
    assert json.loads(row["responses"]) == {"resource": {"accept": False, "counter": "scale_up"}}
    assert float(row["before_latency_ms"]) == 186.666667
    assert float(row["after_latency_ms"]) == 183.333333


def test_text_of_others_starts_no_formula_and_breaks_no_row(tmp_path: Path) -> None:
    formula = '=HYPERLINK("http://x";"y")\r\n' + HOSTILE
    table = rows(write_trace(tmp_path / "t.jsonl", commits(2, rationale=formula, chosen="-1+1")))
    assert len(table) == 8
    for row in table:
        assert row["chosen"] == "'-1+1"
        assert not row["text"].startswith("=")
        assert "\x1b" not in "".join(row.values())
    assert table[0]["reward"] == "-17"


def test_a_run_that_took_no_step_has_a_header_and_no_rows(tmp_path: Path) -> None:
    assert rows(write_trace(tmp_path / "t.jsonl", [[run_started(3)]])) == []


def test_the_jsonl_export_is_a_trace_that_verifies_to_the_same_hash(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(3))
    copy = tmp_path / "copy.jsonl"
    with copy.open("wb") as out:
        count = export_jsonl(path, out)
    assert verify(copy) == verify(path)
    assert count == verify(path).events


def test_an_edited_or_torn_trace_is_not_exported_whole(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    good = path.read_bytes()
    path.write_bytes(good.replace(b'"reward":-16', b'"reward":99'))
    for exporter in (
        lambda: export_csv(path, io.StringIO()),
        lambda: export_jsonl(path, io.BytesIO()),
    ):
        with pytest.raises(DigestMismatchError, match="line 19"):
            exporter()
    path.write_bytes(good[:-5])
    for exporter in (
        lambda: export_csv(path, io.StringIO()),
        lambda: export_jsonl(path, io.BytesIO()),
    ):
        with pytest.raises(TraceError, match="ends within line"):
            exporter()
