"""What a tournament keeps: every finished cell once, whatever else lies in its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.spec import EpisodeSpec
from orchestrator.study.ledger import (
    Manifest,
    ScenarioEntry,
    cell_of,
    open_ledger,
    read_manifest,
    read_rows,
)
from orchestrator.study.manifest import manifest_of
from orchestrator.study.seeds import mixture, ranges_of, seeds_of, split_counts, split_of
from orchestrator.study.tournament import Grid, play_all, row_of
from tests.support import watched
from tests.support.episodes import FAILS, play
from world.errors import ConfigError, DigestMismatchError, SchemaVersionError, UnknownNameError


def manifest(seeds: str = "0:8", **settings: object) -> Manifest:
    return Manifest(
        settings={"steps": None, **settings},
        scenarios={"cloudedge/hard": ScenarioEntry(digest="aa")},
        personas={"cost": "bb"},
        protocols={"weighted_score": "cc"},
        sets=["default"],
        seeds=seeds,
        split=split_counts(seeds_of(seeds)),
        versions=[{"numpy": "2"}],
    )


def specs(*seeds: int) -> list[EpisodeSpec]:
    return [EpisodeSpec(seed=seed, out="", store="inprocess", driver="loop") for seed in seeds]


def sweep(folder: Path, *seeds: int, retry: bool = False) -> tuple[list[int], list[int]]:
    """Play seeds with stand-ins; answers the seeds that were played and those that have a row."""
    played: list[int] = []

    def engine(cells: object) -> object:
        for place, spec in enumerate(cells):  # type: ignore[arg-type,var-annotated]
            played.append(spec.seed)
            try:
                yield place, play(spec)
            except Exception as error:
                yield place, error

    with open_ledger(folder, manifest(ranges_of(seeds)), retry) as ledger:
        rows, _ = play_all(specs(*seeds), engine, lambda done, failed: None, ledger)  # type: ignore[arg-type]
    return played, [row["seed"] for row in rows]


def test_a_finished_cell_is_never_played_again_and_a_tournament_may_grow(tmp_path: Path) -> None:
    assert sweep(tmp_path, 9, 0, 2) == ([9, 0, 2], [9, 0, 2])
    assert sweep(tmp_path, 9, 0, 2) == ([], [9, 0, 2])
    assert sweep(tmp_path, 0, 1, 2, 4) == ([1, 4], [0, 1, 2, 4])
    found = read_manifest(tmp_path)
    assert found is not None
    assert found.seeds == "0:3,4,9"
    assert [row.seed for row in read_rows(tmp_path)[0]] == [9, 0, 2, 1, 4]


def test_a_cell_that_failed_is_finished_unless_it_is_asked_for_again(tmp_path: Path) -> None:
    assert sweep(tmp_path, FAILS, 4) == ([FAILS, 4], [FAILS, 4])
    assert sweep(tmp_path, FAILS, 4) == ([], [FAILS, 4])
    assert sweep(tmp_path, FAILS, 4, retry=True) == ([FAILS], [FAILS, 4])
    rows, warnings = read_rows(tmp_path)
    assert len(rows) == 2
    assert warnings == []


def test_a_row_is_read_back_as_it_was_made(tmp_path: Path) -> None:
    (spec,) = specs(4)
    made = row_of(spec, watched.result(seed=4, violations=("harm \ud800 done",)))
    with open_ledger(tmp_path, manifest()) as ledger:
        ledger.append(cell_of(spec), made)
    with open_ledger(tmp_path, manifest()) as ledger:
        kept = ledger.rows[cell_of(spec)]
    assert kept == made | {"violations": ["harm ? done"]}
    assert list(kept) == list(made)
    assert list(kept["personas"]) == list(made["personas"])


def test_where_an_episode_is_played_does_not_make_it_another() -> None:
    (spec,) = specs(4)
    elsewhere = spec.model_copy(update={"driver": "graph", "store": "embedded", "out": "x"})
    assert cell_of(elsewhere) == cell_of(spec)
    for change in ({"seed": 5}, {"steps": 3}, {"protocol": "nash"}, {"personas": {"cost": "x"}}):
        assert cell_of(spec.model_copy(update=change)) != cell_of(spec)


def test_a_torn_last_line_is_dropped_and_a_changed_line_is_named(tmp_path: Path) -> None:
    sweep(tmp_path, 0, 1)
    path = tmp_path / "rows.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"cell": "0123')
    rows, warnings = read_rows(tmp_path)
    assert (len(rows), len(warnings)) == (2, 1)
    assert sweep(tmp_path, 0, 1) == ([], [0, 1])
    assert path.read_bytes() == whole
    first, second = whole.splitlines()
    for edited in (b"not json", first.replace(b'"seed": 0', b'"seed": -1'), b'{"cell": "x"}', b""):
        path.write_bytes(edited + b"\n" + second + b"\n")
        with pytest.raises(DigestMismatchError, match=r"line 1 is no row.*Delete that line"):
            read_rows(tmp_path)
    for number in (b"NaN", b"Infinity"):
        path.write_bytes(first.replace(b'"score": 0.0', b'"score": ' + number) + b"\n")
        with pytest.raises(DigestMismatchError, match="line 1"):
            read_rows(tmp_path)


def test_a_row_that_stands_there_twice_counts_once(tmp_path: Path) -> None:
    sweep(tmp_path, 0)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    rows, warnings = read_rows(tmp_path)
    assert len(rows) == 1
    assert warnings == ["1 rows of cells that were there already were left out"]


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (manifest(steps=5), "steps was None"),
        (manifest().model_copy(update={"personas": {"cost": "changed"}}), "cost was bb"),
        (manifest().model_copy(update={"protocols": {"weighted_score": "x"}}), "weighted_score"),
        (
            manifest().model_copy(
                update={"scenarios": {"cloudedge/hard": ScenarioEntry(digest="other")}}
            ),
            "cloudedge/hard was aa",
        ),
    ],
)
def test_a_folder_holds_one_tournament_and_says_what_has_changed(
    now: Manifest, named: str, tmp_path: Path
) -> None:
    with open_ledger(tmp_path, manifest()):
        pass
    with pytest.raises(ConfigError, match=named), open_ledger(tmp_path, now):
        pass


def test_two_tournaments_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with (
        open_ledger(tmp_path, manifest()),
        pytest.raises(ConfigError, match="by another process"),
        open_ledger(tmp_path, manifest()),
    ):
        pass


def test_a_folder_without_a_tournament_and_one_of_another_version_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no tournament in"):
        read_rows(tmp_path / "nosuch")
    (tmp_path / "manifest.json").write_text('{"schema": "tournament/9"}', encoding="utf-8")
    with pytest.raises(SchemaVersionError, match="tournament/9"):
        read_manifest(tmp_path)
    for text in ("[]", "{", '{"schema": "tournament/1"}', '{"schema": 1}'):
        (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"is no manifest"):
            read_manifest(tmp_path)


def test_a_manifest_names_contents_the_split_and_whether_seeds_pair(tmp_path: Path) -> None:
    grid = Grid(
        ("cloudedge/easy", "cloudedge/seed/easy", "cloudedge/seed-open/easy"),
        ("weighted_score",),
        ({}, {"cost": "cost_hawk"}),
        (0, 1, 5000),
    )
    found = manifest_of(grid, EpisodeSpec(steps=3, out=""))
    assert found.split == {"published": 2, "reporting": 1}
    assert found.seeds == "0:2,5000"
    assert [entry.shared_noise for entry in found.scenarios.values()] == [True, True, False]
    assert {"cost", "cost_hawk"} <= set(found.personas)
    assert found.settings["steps"] == 3
    assert "out" not in found.settings
    with open_ledger(tmp_path, found):
        pass
    assert read_manifest(tmp_path) == found
    assert json.loads((tmp_path / "manifest.json").read_text())["schema"] == "tournament/1"


def test_seeds_are_told_as_short_as_they_are_read() -> None:
    for seeds in ((0,), (0, 1, 2), (5, 0, 2, 1, 9, 10)):
        assert seeds_of(ranges_of(seeds)) == tuple(sorted(seeds))


def test_the_split_has_no_gap_and_a_mixture_is_warned_of() -> None:
    edges = [(0, "published"), (199, "published"), (200, "tuning"), (1999, "tuning"),
             (2000, "free"), (4999, "free"), (5000, "reporting"),
             (2**63 - 1, "reporting")]  # fmt: skip
    assert [split_of(seed) for seed, _ in edges] == [name for _, name in edges]
    assert mixture(range(5000, 5032)) == ""
    assert "1 tuning, 1 reporting" in mixture([250, 6000])
