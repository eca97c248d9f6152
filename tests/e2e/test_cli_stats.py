"""``tournament --out`` and ``stats``, as a researcher types them."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

from tests.support.program import Done, warroom
from tests.support.sweeps import failed, row

INSTALLED = importlib.util.find_spec("scipy") is not None
with_scipy = pytest.mark.skipif(not INSTALLED, reason="needs the extra study (scipy)")
HOSTILE = "<script>alert(1)</script>"


def write_rows(folder: Path, *lines: str) -> Path:
    folder.mkdir()
    (folder / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def refused(done: Done, status: int, *words: str) -> None:
    assert done.status == status, done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


@with_scipy
def test_a_tournament_is_kept_and_its_arms_are_compared(tmp_path: Path) -> None:
    grid = (
        "tournament", "--scenarios", "cloudedge/easy", "--protocols", "weighted_score,plurality",
        "--seeds", "199:202", "--steps", "4", "--samples", "2", "--rows-only", "--out", "kept",
    )  # fmt: skip
    played = warroom(*grid, cwd=tmp_path)
    assert played.status == 0, played.err
    assert "seeds of several splits are mixed: 1 published, 2 tuning" in played.err
    assert "stats kept" in played.err
    again = warroom(*grid, "--protocols", "borda", "--json", cwd=tmp_path)
    assert len(again.document["rows"]) == 9
    assert "6 of 9 episodes were played before" in again.err
    changed = warroom(*grid, "--set", "cost.powers.weight=2", cwd=tmp_path)
    assert changed.status == 2
    assert "kept holds a tournament in which overrides was []" in changed.err

    files = ("--csv", "t.csv", "--html", "t.html")
    told = warroom("stats", "kept", "--measure", "reward_total", *files, cwd=tmp_path)
    assert told.status == 0, told.err
    assert "seeds of several splits" in told.err
    assert "reward_total: differences b − a, paired by seed" in told.out
    assert "Holm over the 3 rows" in told.out
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert {line["split"] for line in csv.DictReader(file)} == {"published", "tuning"}
    assert "<table>" in (tmp_path / "t.html").read_text(encoding="utf-8")

    found = warroom("stats", "kept", "--by", "protocol", "--json", cwd=tmp_path)
    document = found.document
    assert found.out == warroom("stats", "kept", "--by", "protocol", "--json", cwd=tmp_path).out
    assert len(document["rows"]) == 9
    assert [entry["protocol"] for entry in document["summary"]] == [
        "weighted_score", "plurality", "borda",
    ]  # fmt: skip
    assert all(entry["n"] == 3 for entry in document["comparisons"])
    assert document["split"] == {"published": 1, "tuning": 2}
    assert document["warnings"]


@with_scipy
def test_text_of_others_stays_text_and_a_storm_that_shifts_is_not_paired(tmp_path: Path) -> None:
    rows = [row(seed, seed / 9, protocol=name) for name in ("a", HOSTILE) for seed in range(3)]
    broken = failed(3, "\x1b[2J" + HOSTILE, protocol="a")
    lines = [each.model_dump_json() for each in (*rows, broken)]
    kept = write_rows(tmp_path / "kept", *lines)
    told = warroom("stats", "kept", "--html", "t.html", cwd=tmp_path)
    assert told.status == 0, told.err
    assert "settings are not known" in told.err
    assert HOSTILE not in (tmp_path / "t.html").read_text(encoding="utf-8")
    (kept / "manifest.json").write_text(
        '{"schema": "tournament/1", "settings": {}, "scenarios": {"cloudedge/hard":'
        ' {"digest": "x", "shared_noise": false}}, "personas": {}, "protocols": {}, "sets": [],'
        ' "seeds": "0:4", "split": {"published": 4}, "versions": []}',
        encoding="utf-8",
    )
    shifting = warroom("stats", "kept", "--json", cwd=tmp_path)
    assert shifting.document["comparisons"] == []
    assert "not compared: cloudedge/hard" in shifting.err
    trusted = warroom("stats", "kept", "--trust-sequential", "--json", cwd=tmp_path)
    assert len(trusted.document["comparisons"]) == 1


@with_scipy
def test_a_table_of_nothing_but_failures_is_printed_and_exits_1(tmp_path: Path) -> None:
    write_rows(tmp_path / "kept", failed(0).model_dump_json(), failed(1).model_dump_json())
    told = warroom("stats", "kept", cwd=tmp_path)
    assert told.status == 1
    assert "Traceback" not in told.err


def test_wrong_words_are_refused_in_one_line(tmp_path: Path) -> None:
    write_rows(tmp_path / "kept", row(0).model_dump_json())
    refused(warroom("stats", "nosuch", cwd=tmp_path), 2, "there is no tournament in nosuch")
    refused(warroom("stats", "kept", "--by", "seed", cwd=tmp_path), 2, "'seed' is no factor")
    refused(warroom("stats", "kept", "--pass-k", "0", cwd=tmp_path), 2, "--pass-k is '0'")
    refused(warroom("stats", "kept", "--measure", "x", cwd=tmp_path), 2, "Measures: score")
    write_rows(tmp_path / "bad", row(0).model_dump_json(), '{"cell": 1}')
    refused(warroom("stats", "bad", cwd=tmp_path), 1, "rows.jsonl, line 2 is no row")
    refused(warroom("tournament", "--engine", "dask", cwd=tmp_path), 2, "--engine is 'dask'")
    refused(
        warroom("tournament", "--engine", "ray", "--ray-address", "http://x", cwd=tmp_path),
        2,
        "--ray-address is 'http://x'",
    )
    refused(warroom("tournament", "--retry-failed", cwd=tmp_path), 2, "need --out")


@pytest.mark.skipif(INSTALLED, reason="scipy is installed")
def test_without_scipy_stats_names_the_extra(tmp_path: Path) -> None:
    write_rows(tmp_path / "kept", row(0).model_dump_json(), row(1, 0.4).model_dump_json())
    refused(warroom("stats", "kept", cwd=tmp_path), 3, "extra 'study'", "pip install '.[study]'")
