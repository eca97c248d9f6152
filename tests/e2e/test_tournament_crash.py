"""A tournament whose processes are really killed loses nothing and plays nothing twice."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.program import start, warroom

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not processes.AVAILABLE, reason="needs /proc to find the workers"),
]
SEEDS = 12
GRID = (
    "tournament",
    "--scenarios", "cloudedge/easy",
    "--protocols", "weighted_score,plurality",
    "--seeds", f"0:{SEEDS}",
    "--steps", "6",
    "--samples", "2",
    "--rows-only",
)  # fmt: skip
_LIMIT_S = 80.0


def _lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "rows.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def _await_rows(folder: Path, count: int) -> None:
    end = time.monotonic() + _LIMIT_S
    while len(_lines(folder)) < count:
        assert time.monotonic() < end, "no rows came"
        time.sleep(0.02)


def _ended(pids: list[int]) -> bool:
    end = time.monotonic() + _LIMIT_S
    while any(Path(f"/proc/{pid}/cmdline").is_file() and _alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    done = warroom(*GRID, "--json", "--out", "kept", cwd=folder)
    assert done.status == 0, done.err
    rows: list[dict[str, Any]] = done.document["rows"]
    assert len(rows) == 2 * SEEDS
    return rows


def test_a_worker_that_is_killed_costs_no_row_and_doubles_none(
    undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    sweep = start(*GRID, "--json", "-j", "2", "--out", "kept", cwd=tmp_path)
    _await_rows(tmp_path / "kept", 3)
    victims = processes.workers(sweep.pid)
    assert victims
    processes.kill(victims[0])
    out, err = sweep.communicate(timeout=_LIMIT_S)
    assert sweep.returncode == 0, err
    assert json.loads(out)["rows"] == undisturbed
    cells = [line["cell"] for line in _lines(tmp_path / "kept")]
    assert len(cells) == len(set(cells)) == 2 * SEEDS


def test_a_tournament_that_is_killed_goes_on_where_it_was_and_leaves_no_worker(
    undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    sweep = start(*GRID, "-j", "2", "--out", "kept", cwd=tmp_path)
    _await_rows(tmp_path / "kept", 3)
    below = processes.below(sweep.pid)
    sweep.kill()
    sweep.communicate(timeout=_LIMIT_S)
    assert _ended(below)
    before = _lines(tmp_path / "kept")
    with (tmp_path / "kept" / "rows.jsonl").open("ab") as file:
        file.write(b'{"cell": "torn')  # as a kill in the middle of a write would leave it
    done = warroom(*GRID, "--json", "-j", "2", "--out", "kept", cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.document["rows"] == undisturbed
    assert f"{len(before)} of {2 * SEEDS} episodes were played before" in done.err
    after = _lines(tmp_path / "kept")
    assert after[: len(before)] == before
    assert len({line["cell"] for line in after}) == len(after) == 2 * SEEDS
    again = warroom(*GRID, "--json", "--out", "kept", cwd=tmp_path)
    assert again.document["rows"] == undisturbed
    assert _lines(tmp_path / "kept") == after
