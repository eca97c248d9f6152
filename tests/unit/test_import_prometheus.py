"""Prometheus answers: what is no value, what is a counter, and whose samples they are."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bills import usage, write_bill
from tests.support.samples import START_S, answer, write_json
from world.errors import ConfigError, ImportFileError
from world.importers.focus import import_focus
from world.importers.intake import SeriesReport
from world.importers.prometheus import (
    DISAGREE,
    FIRST,
    HISTOGRAM,
    INFINITE,
    NO_NUMBER,
    REPEATED,
    PrometheusOptions,
    import_prometheus,
)
from world.scenarios.loader import read_scenario

WEB = {"instance": "i-1"}


def imported(folder: Path, *documents: Any, limit: float = 0.1, **options: Any) -> SeriesReport:
    paths = [
        write_json(folder / f"answer{number}.json", document)
        for number, document in enumerate(documents)
    ]
    chosen = PrometheusOptions(**{"metric": "cpu_percent", **options})
    return import_prometheus(paths, output=folder / "use.csv", options=chosen, limit_fraction=limit)


def rows(folder: Path) -> list[tuple[str, str, float]]:
    with (folder / "use.csv").open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines))
    assert all(row["metric"] == "cpu_percent" for row in table)
    return [(row["resource_id"], row["ts"][11:19], float(row["value"])) for row in table]


def every(seconds: int, *values: Any) -> list[list[Any]]:
    return [[number * seconds, value] for number, value in enumerate(values)]


def test_samples_become_rows_that_a_bill_import_joins(tmp_path: Path) -> None:
    one = (WEB, every(3600, "50", "70"))
    other = ({"instance": "i-2"}, every(3600, "1", "1.5"))
    report = imported(tmp_path, answer(one, other))
    assert report.accepted
    assert (report.rows, report.used) == (4, 4)
    assert rows(tmp_path) == [
        ("i-1", "00:00:00", 50.0), ("i-1", "01:00:00", 70.0),
        ("i-2", "00:00:00", 1.0), ("i-2", "01:00:00", 1.5),
    ]  # fmt: skip
    bill = write_bill(tmp_path, usage(ResourceId="i-1"), usage(ResourceId="i-2"))
    joined = import_focus(bill, metrics=tmp_path / "use.csv", output=tmp_path / "bill.toml")
    assert joined.metrics is not None
    assert joined.metrics["resources"] == 2
    table = read_scenario(tmp_path / "bill.toml").resources
    use = dict(zip(table["id"], table["cpu_percent"], strict=True))
    assert use == {"i-1": 60.0, "i-2": 1.25}


def test_nan_and_infinities_are_no_values_and_never_zero(tmp_path: Path) -> None:
    values = ["NaN", "+Inf", "-Inf", "nan", "5", *["6"] * 40]
    report = imported(tmp_path, answer((WEB, every(60, *values))))
    assert report.skipped == {NO_NUMBER: 2, INFINITE: 2}
    assert report.rows == report.used + sum(report.skipped.values())
    assert min(value for _, _, value in rows(tmp_path)) == 5.0


def test_mostly_nan_is_refused(tmp_path: Path) -> None:
    report = imported(tmp_path, answer((WEB, every(60, "NaN", "NaN", "5"))))
    assert "2 of 3 rows cannot be used" in report.refusals[0]
    assert not (tmp_path / "use.csv").exists()
    only = imported(tmp_path, answer((WEB, every(60, "NaN"))), limit=1.0)
    assert only.refusals == ("no row can be used",)


def test_gaps_are_counted_whether_left_out_or_filled(tmp_path: Path) -> None:
    left_out = [[at, "5"] for at in range(0, 6000, 60) if not 600 < at < 900]
    report = imported(tmp_path, answer((WEB, left_out)))
    assert report.details["step_s"] == 60
    assert report.details["gaps"] == 4
    filled = [[at, "NaN" if 600 < at < 900 else "5"] for at in range(0, 6000, 60)]
    assert imported(tmp_path, answer((WEB, filled))).details["gaps"] == 4


@pytest.mark.parametrize("value", ["", "x", None, [], True, "1,5", "1e400", {"a": 1}])
def test_a_value_that_is_no_number_is_counted(tmp_path: Path, value: Any) -> None:
    report = imported(tmp_path, answer((WEB, every(60, value, *["5"] * 30))))
    assert report.unusable == 1
    assert report.used == 30


def test_broken_samples_and_times_are_counted(tmp_path: Path) -> None:
    document = answer((WEB, every(60, *["5"] * 50)))
    document["data"]["result"][0]["values"] += [
        [START_S], "x", [None, "5"], [START_S * 1000, "5"], [True, "5"],
    ]  # fmt: skip
    report = imported(tmp_path, document)
    assert report.rows == 55
    assert report.used == 50
    assert sum(report.skipped.values()) == 5


def test_numbers_without_quotes_and_instant_answers_are_read(tmp_path: Path) -> None:
    document = {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": WEB, "value": [START_S, 12.5]}]},
    }
    imported(tmp_path, document)
    assert rows(tmp_path) == [("i-1", "00:00:00", 12.5)]


def test_a_counter_becomes_a_rate_and_its_resets_count_from_zero(tmp_path: Path) -> None:
    cpu = ({"__name__": "cpu_seconds_total", **WEB}, every(60, "100", "130", "160", "15", "45"))
    with pytest.raises(ConfigError, match="is a counter"):
        imported(tmp_path, answer(cpu))
    report = imported(tmp_path, answer(cpu), counter=True, capacity=2.0)
    assert report.details["counter_resets"] == 1
    assert report.skipped == {FIRST: 1}
    assert report.unusable == 0
    # 30 s of CPU a minute are half a core, and that is a quarter of two cores.
    assert [value for _, _, value in rows(tmp_path)] == [25.0, 25.0, 12.5, 25.0]


def test_what_is_full_turns_amounts_into_percent(tmp_path: Path) -> None:
    imported(tmp_path, answer((WEB, every(60, "1", "4"))), capacity=4.0)
    assert [value for _, _, value in rows(tmp_path)] == [25.0, 100.0]


def test_a_resource_with_an_impossible_value_is_not_trusted_at_all(tmp_path: Path) -> None:
    good = ({"instance": "i-2"}, every(60, *["5"] * 40))
    report = imported(tmp_path, answer((WEB, every(60, "5", "250")), good))
    assert report.skipped == {"resource with a value outside 0 to 100": 2}
    assert {name for name, _, _ in rows(tmp_path)} == {"i-2"}
    assert any("--capacity" in text for text in report.warnings)


def test_a_little_above_full_is_full_and_told(tmp_path: Path) -> None:
    report = imported(tmp_path, answer((WEB, every(60, "101.5"))))
    assert [value for _, _, value in rows(tmp_path)] == [100.0]
    assert any("written as full" in text for text in report.warnings)


def test_relabelled_duplicates_that_agree_count_once(tmp_path: Path) -> None:
    twins = [({**WEB, "replica": name}, every(60, "5", "6")) for name in ("a", "b")]
    report = imported(tmp_path, answer(*twins))
    assert report.skipped == {REPEATED: 2}
    assert report.accepted
    assert [value for _, _, value in rows(tmp_path)] == [5.0, 6.0]


@pytest.mark.parametrize(("merge", "value"), [("sum", 30.0), ("max", 20.0), ("mean", 15.0)])
def test_series_of_one_resource_that_disagree_are_joined_only_as_told(
    tmp_path: Path, merge: str, value: float
) -> None:
    parts = [({**WEB, "container": n}, every(60, v)) for n, v in (("app", "10"), ("log", "20"))]
    refused = imported(tmp_path, answer(*parts))
    assert refused.skipped == {DISAGREE: 2}
    assert not refused.accepted
    assert any("--merge" in text for text in refused.warnings)
    for order in (parts, parts[::-1]):
        report = imported(tmp_path, answer(*order), merge=merge)
        assert report.used == report.rows == 2
        assert rows(tmp_path) == [("i-1", "00:00:00", value)]


def test_a_pod_that_was_relabelled_later_goes_on(tmp_path: Path) -> None:
    early = ({**WEB, "node": "a"}, every(60, "5", "6"))
    late = ({**WEB, "node": "b"}, [[120, "7"]])
    report = imported(tmp_path, answer(early, late), label="instance")
    assert report.used == 3
    assert [value for _, _, value in rows(tmp_path)] == [5.0, 6.0, 7.0]


def test_answers_for_several_periods_are_one_series(tmp_path: Path) -> None:
    labels = {"__name__": "cpu_seconds_total", **WEB}
    first = answer((labels, every(60, "0", "30")))
    second = answer((labels, [[60, "30"], [120, "60"]]))
    report = imported(tmp_path, first, second, counter=True, capacity=1.0)
    assert report.skipped == {FIRST: 1, REPEATED: 1}
    assert [value for _, _, value in rows(tmp_path)] == [50.0, 50.0]


def test_the_most_points_of_an_answer_are_a_warning(tmp_path: Path) -> None:
    report = imported(tmp_path, answer((WEB, every(60, *["5"] * 11_000))))
    assert any("11,000 points" in text for text in report.warnings)
    assert not any(
        "11,000" in text
        for text in imported(tmp_path, answer((WEB, every(60, *["5"] * 10_999)))).warnings
    )


def test_the_label_is_named_or_told(tmp_path: Path) -> None:
    pods = ({"pod": "web-1", "zone": "a"}, every(60, "5"))
    report = imported(tmp_path, answer(pods))
    assert report.details["label"] == "pod"
    assert any("the label 'pod' is taken" in text for text in report.warnings)
    imported(tmp_path, answer(pods), label="zone")
    assert rows(tmp_path)[0][0] == "a"
    with pytest.raises(ConfigError, match="labels are pod, zone"):
        imported(tmp_path, answer(pods), label="nosuch")
    with pytest.raises(ConfigError, match="Name the label"):
        imported(tmp_path, answer(({"job": "x"}, every(60, "5"))))


def test_series_without_the_label_are_counted(tmp_path: Path) -> None:
    bare = ({"job": "x"}, every(60, "5"))
    report = imported(tmp_path, answer((WEB, every(60, *["5"] * 20)), bare), label="instance")
    assert report.skipped == {"no label instance": 1}


def test_histograms_are_counted(tmp_path: Path) -> None:
    document = answer((WEB, every(60, *["5"] * 20)))
    document["data"]["result"][0]["histograms"] = [[START_S, {"count": "1"}]]
    assert imported(tmp_path, document).skipped == {HISTOGRAM: 1}


def test_the_metric_must_be_one_whose_unit_is_known(tmp_path: Path) -> None:
    series = answer((WEB, every(60, "5")))
    with pytest.raises(ConfigError, match="no metric 'cpu'"):
        imported(tmp_path, series, metric="cpu")
    with pytest.raises(ConfigError, match="not said what the values are"):
        imported(tmp_path, series, metric=None)
    named = answer(({"__name__": "cpu_percent", **WEB}, every(60, "5")))
    assert imported(tmp_path, named, metric=None).details["metric"] == "cpu_percent"


def test_remarks_of_the_server_are_passed_on(tmp_path: Path) -> None:
    document = answer((WEB, every(60, "5")))
    document["warnings"] = ["remote read \x1b[31mfailed"]
    (note,) = [text for text in imported(tmp_path, document).warnings if "remarks" in text]
    assert "\x1b" not in note


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "it is no object"),
        ({}, "resultType is 'None'"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}, "scalar"),
        ({"data": {"resultType": "matrix", "result": [{"values": []}]}}, "no labels"),
        ({"data": {"resultType": "matrix", "result": [7]}}, "no labels"),
        ({"data": {"resultType": "matrix", "result": [{"metric": {}, "values": 7}]}}, "no list"),
        ({"data": {"resultType": "matrix", "result": []}}, "found nothing"),
        ({"status": "error", "error": "parse error"}, "Correct the query"),
        (
            {"status": "error", "error": "exceeded maximum resolution of 11,000 points per"},
            "longer step",
        ),
    ],
)
def test_what_is_no_answer_is_one_clear_line(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(ImportFileError, match=says) as refused:
        imported(tmp_path, document)
    assert "\n" not in refused.value.line()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not JSON in line 1"),
        (b"resource_id,ts\n", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"status": "\xff"}', "not UTF-8"),
        (b"\x1f\x8bbroken", "damaged gzip"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too long"),
    ],
)
def test_what_is_no_json_is_one_clear_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ImportFileError, match=says):
        import_prometheus([path], options=PrometheusOptions("cpu_percent"))


def test_gzip_and_a_bom_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = "\ufeff" + json.dumps(answer((WEB, every(60, "5"))))
    path.write_bytes(gzip.compress(text.encode()))
    assert import_prometheus([path], options=PrometheusOptions("cpu_percent")).used == 1


def test_a_file_that_somebody_filled_in_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "use.csv").write_text("resource_id,ts,metric,value,essential,owner\n")
    with pytest.raises(ConfigError, match="not written by an import"):
        imported(tmp_path, answer((WEB, every(60, "5"))))


def test_hostile_ids_are_data(tmp_path: Path) -> None:
    name = "=cmd|' /C calc'!A0\n\x1b[31m"
    imported(tmp_path, answer(({"instance": name}, every(60, "5"))))
    text = (tmp_path / "use.csv").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2
    assert rows(tmp_path)[0][0].startswith("'=cmd")
