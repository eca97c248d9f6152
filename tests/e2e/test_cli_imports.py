"""The import commands from outside: reports, exit statuses, files, and runs on what they write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.app import main
from tests.support.bills import bill_text, usage
from tests.support.program import warroom
from tests.support.samples import (
    answer,
    day,
    grid_lines,
    listed,
    pod,
    pod_use,
    pod_uses,
    write,
    write_grid,
    write_json,
)
from world.importers.intake import LIMIT_FRACTION

REPORT = {
    "rows",
    "used",
    "skipped",
    "unusable",
    "unusable_fraction",
    "limit_fraction",
    "accepted",
    "refusals",
    "warnings",
}


def test_a_real_grid_and_real_demand_become_a_scenario_that_runs(tmp_path: Path) -> None:
    write_grid(tmp_path, grid_lines(48))
    write(
        tmp_path / "demand.csv",
        [",cpu_load", *(f"{row},{0.5 + row % 3 / 100}" for row in range(24))],
    )
    grid = warroom(
        "import", "grid", "grid.csv", "--region", "us-west-1", "-o", "grid.toml", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert grid.status == 0, grid.err
    assert set(grid.document) >= REPORT | {"scenario", "profile_g_per_kwh"}
    assert grid.document["limit_fraction"] == LIMIT_FRACTION
    assert grid.document["profile_g_per_kwh"] == [day(hour) for hour in range(24)]
    demand = warroom(
        "import", "demand", "demand.csv", "--peak-rps", "900", "--service", "web",
        "--into", "grid.toml", "-o", "both.toml", cwd=tmp_path,
    )  # fmt: skip
    assert demand.status == 0, demand.err
    assert " run --scenario both.toml\n" in demand.out
    shown = warroom("scenarios", "both.toml", "--json", cwd=tmp_path).document
    assert shown["world"] == "cloud"
    run = warroom(
        "run", "--scenario", "both.toml", "--steps", "2", "--driver", "loop", "--store",
        "inprocess", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert run.status == 0, run.err
    assert run.document["steps"] == 2


def test_too_many_unusable_rows_exit_1_and_write_nothing(tmp_path: Path) -> None:
    write_grid(tmp_path, grid_lines(48, dict.fromkeys(range(20), "NaN")))
    done = warroom("import", "grid", "grid.csv", "-o", "out.toml", "--json", cwd=tmp_path)
    assert done.status == 1
    assert done.document["accepted"] is False
    assert done.document["skipped"] == {"no value": 20}
    assert done.document["scenario"] is None
    assert "refused: 20 of 48 rows cannot be used" in done.err
    assert "nothing was written" in done.err
    assert sorted(path.name for path in tmp_path.glob("*.toml")) == []
    wide = warroom(
        "import", "grid", "grid.csv", "-o", "out.toml", "--max-skipped-fraction", "0.9",
        cwd=tmp_path,
    )  # fmt: skip
    assert wide.status == 0, wide.err
    assert (tmp_path / "out.toml").is_file()


def test_prometheus_and_kubernetes_write_metrics_that_a_bill_import_joins(tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text(bill_text([usage()]), encoding="utf-8")
    samples = [[3600 * number, str(number)] for number in range(4)]
    write_json(tmp_path / "cpu.json", answer(({"instance": "i-0001"}, samples)))
    done = warroom(
        "import", "prometheus", "cpu.json", "--metric", "cpu_percent", "--label", "instance",
        "-o", "use.csv", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert set(done.document) >= REPORT | {"metrics", "gaps", "counter_resets"}
    joined = warroom("import", "focus", "bill.csv", "--metrics", "use.csv", "--json", cwd=tmp_path)
    assert joined.document["metrics"]["resources"] == 1

    write_json(tmp_path / "use.json", pod_uses(pod_use("web-1", ("250m", "512Mi"))))
    write_json(tmp_path / "pods.json", listed(pod("web-1", {"cpu": "500m", "memory": "1Gi"})))
    pods = warroom("import", "kubernetes", "use.json", "pods.json", "-o", "k.csv", cwd=tmp_path)
    assert pods.status == 0, pods.err
    assert " import focus BILL.csv --metrics k.csv\n" in pods.out
    assert "shop/web-1,2026-06-01T00:00:00Z,cpu_percent,50" in (tmp_path / "k.csv").read_text()


def test_a_bill_becomes_a_cloud_world_that_runs(tmp_path: Path) -> None:
    rows = [usage(ResourceId=f"i-{number}", EffectiveCost="4") for number in range(100)]
    (tmp_path / "bill.csv").write_text(bill_text(rows), encoding="utf-8")
    done = warroom(
        "import", "focus", "bill.csv", "--world", "cloud", "-o", "mine.toml", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.document["cloud"]["start_usd_per_hour"] == 400.0
    run = warroom(
        "run", "--scenario", "mine.toml", "--steps", "2", "--driver", "loop", "--store",
        "inprocess", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert run.status == 0, run.err
    assert run.document["steps"] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("grid", "nosuch.csv"), "there is no file nosuch.csv"),
        (("grid", "bad.csv"), "has no column timestamp"),
        (("grid", "bad.csv", "--region", "moon"), "no region 'moon'"),
        (("grid", "bad.csv", "--into", "cloud/easy"), "without --output"),
        (("grid", "bad.csv", "--into", "cloud/nosuch", "-o", "x.toml"), "no scenario"),
        (("grid", "bad.csv", "--max-skipped-fraction", "7"), "share of the rows"),
        (("grid",), "Missing argument"),
        (("demand", "bad.csv"), "has no column hour"),
        (("demand", "cpu.csv"), "--peak-rps"),
        (("demand", "cpu.csv", "--peak-rps", "many"), "--peak-rps"),
        (("prometheus", "bad.csv", "--metric", "cpu_percent"), "is not JSON"),
        (("prometheus", "bad.csv", "--metric", "speed"), "no metric 'speed'"),
        (("prometheus", "bad.csv", "--capacity", "much"), "no quantity"),
        (("focus", "bad.csv", "--world", "mars"), "world 'mars'"),
        (("focus", "bad.csv", "--into", "cloud/easy"), "without --world cloud"),
        (("kubernetes", "bad.csv"), "is not JSON"),
        (("kubernetes", "bad.csv", "--of", "hopes"), "--of is 'hopes'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    says: str,
) -> None:
    write(tmp_path / "bad.csv", ["a,b", "1,2"])
    write(tmp_path / "cpu.csv", [",cpu_load", "1,0.5"])
    monkeypatch.chdir(tmp_path)
    assert main(["import", *arguments, "--json"]) == 2
    told = capsys.readouterr()
    (line,) = [text for text in told.err.splitlines() if text]
    assert line.startswith("error: ")
    assert says in line
    assert set(json.loads(told.out)["error"]) == {"what", "why", "fix"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "cpu.csv"]
