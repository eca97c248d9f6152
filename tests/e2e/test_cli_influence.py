"""``influence`` as a user types it: figures, documents and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import warroom

QUICK = (
    *("--scenario", "cloudedge/hard", "--steps", "4", "--driver", "loop"),
    *("--store", "inprocess", "--log", "quiet"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs on seeds 1 and 2."""
    path = tmp_path_factory.mktemp("influence")
    for seed in ("1", "2"):
        assert warroom("run", "--seed", seed, *QUICK, cwd=path).status == 0
    return path


def runs_of(folder: Path) -> list[str]:
    """Run ids, by seed."""
    return sorted(path.name for path in (folder / "runs").iterdir() if path.is_dir())


def test_the_document_holds_every_figure_of_every_seat(folder: Path) -> None:
    done = warroom("influence", *runs_of(folder), "--json", cwd=folder)
    assert done.status == 0
    data = done.document
    seats = set(data["personas"])
    for measure in ("shapley", "leave_one_out", "pivotality", "banzhaf", "manipulability"):
        assert set(data[measure]) == seats
        assert set(data[measure]["cost"]) == {"value", "se"}
    total = sum(cell["value"] for cell in data["shapley"].values())
    assert total == pytest.approx(data["v_all"] - data["v_none"], abs=1e-5)
    assert data["seeds"] == [1, 2]
    assert len(data["coalitions"]) == 16
    assert data["coalitions"][""] == data["v_none"]
    assert data["errors"] == []


def test_one_run_is_told_in_tables_that_say_that_one_seed_has_no_error(folder: Path) -> None:
    done = warroom("influence", "last", "--value", "score", "--absent", "ballot", cwd=folder)
    assert done.status == 0
    assert "Shapley (score)" in done.out
    assert "an absent seat proposes and has no vote" in done.out
    assert "n = 1 seed: no standard error" in done.out
    assert "±" not in done.out


def test_seeds_play_the_room_of_a_run_anew(folder: Path) -> None:
    anew = warroom("influence", "last", "--seeds", "1,2", "--json", cwd=folder).document
    told = warroom("influence", *runs_of(folder), "--json", cwd=folder).document
    assert {**anew, "runs": []} == {**told, "runs": []}


def test_a_run_that_is_not_there_is_one_line_and_the_others_are_looked_at(folder: Path) -> None:
    done = warroom("influence", "last", "nowhere", "--json", cwd=folder)
    assert done.status == 1
    assert [error["run"] for error in done.document["errors"]] == ["nowhere"]
    assert "error: nowhere: there is no run 'nowhere'" in done.err
    assert len(done.document["runs"]) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("nowhere",), "there is no run 'nowhere'"),
        (("last", "--absent", "partly"), "--absent is 'partly'"),
        (("last", "--value", "rewards"), "--value is 'rewards'"),
        (("last", "--seeds", "5:2"), "--seeds is '5:2'"),
        (("last", "last", "--seeds", "0:2"), "--seeds goes with one RUN"),
        (("last", "--seeds", "0:99999"), "the most is"),
        ((), "Missing argument"),
    ],
)
def test_what_cannot_be_looked_at_is_one_line_and_exit_2(
    folder: Path, options: tuple[str, ...], told: str
) -> None:
    done = warroom("influence", *options, cwd=folder)
    assert done.status == 2
    assert told in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
