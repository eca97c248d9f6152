"""Carbon intensity as an API answers it, beside the CSV of the same hours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.samples import day, grid_lines, stamp, write_grid
from world.errors import ImportFileError
from world.importers.grid import NO_VALUE, ZERO, GridOptions, import_grid
from world.scenarios.loader import read_scenario


def hours(count: int = 48, **more: Any) -> list[dict[str, Any]]:
    """Entries of a history."""
    return [
        {"carbonIntensity": day(hour), "datetime": stamp(hour), "isEstimated": False, **more}
        for hour in range(count)
    ]


def file(folder: Path, content: Any) -> Path:
    path = folder / "history.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "content",
    [
        {"zone": "DE", "history": hours()},
        {"zone": "DE", "data": hours()},
        [{"zone": "DE", "history": hours()[:24]}, {"zone": "DE", "history": hours()[24:]}],
        hours(zone="DE"),
        {"zone": "DE", "history": hours(updatedAt="2026-06-02T00:00:00Z", estimationMethod=None)},
    ],
    ids=["history", "data", "answers", "hours", "more fields"],
)
def test_a_history_in_json_gives_what_the_same_hours_in_csv_give(
    content: Any, tmp_path: Path
) -> None:
    told = import_grid(file(tmp_path, content), region="us-west-1", output=tmp_path / "a.toml",
                       into="cloud/hard")  # fmt: skip
    table = write_grid(tmp_path, grid_lines(48))
    import_grid(table, region="us-west-1", output=tmp_path / "b.toml", into="cloud/hard")
    assert told.accepted
    assert told.rows == told.used == 48
    assert told.details["zones"] == ["DE"]
    name = "grid_g_per_kwh"
    of_json, of_csv = (read_scenario(tmp_path / f"{n}.toml").params[name] for n in "ab")
    assert of_json == of_csv


def test_null_is_unknown_zero_is_a_gap_and_estimates_are_counted(tmp_path: Path) -> None:
    entries = hours(240)
    entries[3]["carbonIntensity"] = None
    entries[4]["carbonIntensity"] = 0
    del entries[5]["carbonIntensity"]
    for entry in entries[:7]:
        entry["isEstimated"] = True
    report = import_grid(file(tmp_path, {"zone": "SE", "history": entries}))
    assert report.skipped == {NO_VALUE: 2, ZERO: 1}
    assert report.used == 237
    assert report.details["estimated"] == 4


def test_what_the_answer_says_holds_for_its_hours(tmp_path: Path) -> None:
    content = [
        {"zone": "DE", "emissionFactorType": "lifecycle", "history": hours(24)},
        {"zone": "DE", "emissionFactorType": "direct", "history": hours(24)},
    ]
    path = file(tmp_path, content)
    with pytest.raises(ImportFileError, match="mixes emission factor types"):
        import_grid(path)
    assert import_grid(path, options=GridOptions(basis="lifecycle")).used == 24
    zones = file(tmp_path, [{"zone": z, "history": hours(24)} for z in ("DE", "FR")])
    with pytest.raises(ImportFileError, match="holds 2 zones"):
        import_grid(zones)
    assert import_grid(zones, options=GridOptions(zone="fr")).used == 24


def test_json_may_be_gzip_and_have_a_byte_order_mark(tmp_path: Path) -> None:
    text = json.dumps({"zone": "DE", "history": hours(24)}).encode("utf-8-sig")
    path = tmp_path / "history.csv"  # the name does not count
    path.write_bytes(gzip.compress(text))
    assert import_grid(path).used == 24
    path.write_bytes(text)
    assert import_grid(path).used == 24


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"zone": "DE"}', "holds no history"),
        ('{"history": {"datetime": 1}}', "holds no history"),
        ('{"history": []}', "no field for timestamp"),
        ('{"history": [{"datetime": "2026-06-01T00:00:00Z"}]}', "carbon_intensity"),
        ('{"history": [', "is not JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        (json.dumps({"history": [{f"f{n}": 1 for n in range(900)}]}), "more than 200 fields"),
        ('{"error": "invalid auth token"}', "holds no history"),
    ],
)
def test_json_that_is_no_history_is_one_clear_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFileError, match=says):
        import_grid(path)


def test_entries_that_are_no_hours_are_counted(tmp_path: Path) -> None:
    report = import_grid(file(tmp_path, {"history": [*hours(48), 7, "x", [1]]}))
    assert report.skipped == {"an hour is no object": 3}
    assert report.rows == report.used + sum(report.skipped.values())
    nested = hours(24)
    nested[0]["carbonIntensity"] = {"value": 3}
    report = import_grid(file(tmp_path, {"history": nested}))
    assert report.skipped == {"value is not a number": 1}
