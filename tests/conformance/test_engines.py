"""One suite over every engine: the same rows, whoever plays them and whoever is first."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator

import pytest

from orchestrator.engine import ENGINES, Engine, map_episodes
from orchestrator.spec import EpisodeSpec
from orchestrator.study.engines.ray_engine import check_ray
from orchestrator.study.tournament import row_of
from tests.support.episodes import CRASHES, FAILS, KILLS_ITS_PROCESS, play
from world.errors import ConfigError, MissingExtraError

INSTALLED = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(not INSTALLED, reason="needs the extra ray")
CASES = [
    pytest.param("process", 1, id="inline"),
    pytest.param("process", 2, id="pool"),
    pytest.param("ray", 2, id="ray", marks=[with_ray, pytest.mark.slow]),
]
SEEDS = (4, FAILS, 0, CRASHES, 9, 2, 11)


@pytest.fixture(autouse=True)
def _warnings_of_ray() -> Iterator[None]:
    """Ray leaves sockets and files for its interpreter's end; what it warns of is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def specs(*seeds: int) -> list[EpisodeSpec]:
    return [EpisodeSpec(seed=seed, out="", store="inprocess", driver="loop") for seed in seeds]


@pytest.mark.parametrize(("engine", "jobs"), CASES)
def test_every_engine_gives_the_same_rows(engine: Engine, jobs: int) -> None:
    cells = specs(*SEEDS)
    here = {place: row_of(cells[place], outcome) for place, outcome in map_episodes(cells, 1, play)}
    found = list(map_episodes(cells, jobs, play, engine))
    assert sorted(place for place, _ in found) == list(range(len(SEEDS)))
    assert {place: row_of(cells[place], outcome) for place, outcome in found} == here


@pytest.mark.parametrize(("engine", "jobs"), CASES[1:])
def test_a_cell_that_kills_its_worker_is_a_row_and_costs_no_other(
    engine: Engine, jobs: int
) -> None:
    cells = specs(1, KILLS_ITS_PROCESS, 4, 6, 8)
    rows = {p: row_of(cells[p], outcome) for p, outcome in map_episodes(cells, jobs, play, engine)}
    assert [rows[place]["error"] is None for place in range(5)] == [True, False, True, True, True]
    assert "worker process died" in rows[1]["error"]["what"]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_cells_need_no_engine(engine: Engine) -> None:
    assert list(map_episodes([], 2, play, engine)) == []


@pytest.mark.skipif(INSTALLED, reason="ray is installed")
def test_without_ray_the_engine_is_refused_with_its_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"extra 'ray'.*pip install"):
        check_ray()
    with pytest.raises(MissingExtraError, match=r"extra 'ray'"):
        list(map_episodes(specs(1), 2, play, "ray"))


@pytest.mark.parametrize("address", ["http://x:1", "ray://", "ray://h:1/../x", "h", "ray://a b:1"])
def test_an_address_that_ray_does_not_know_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"^--ray-address is"):
        check_ray(address)


@with_ray
@pytest.mark.parametrize("address", ["", "local", "auto", "ray://head.example:10001", "h:6379"])
def test_an_address_of_ray_is_taken(address: str) -> None:
    check_ray(address)
