from __future__ import annotations

import multiprocessing

import pytest

from orchestrator.engine import map_episodes
from orchestrator.spec import EpisodeResult, EpisodeSpec
from tests.support.episodes import CRASHES, FAILS, KILLS_ITS_PROCESS, play
from world.errors import ProtocolError, WarRoomError


def specs(*seeds: int) -> list[EpisodeSpec]:
    return [EpisodeSpec(seed=seed, out="", store="inprocess", driver="loop") for seed in seeds]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_spec_has_one_result_with_its_place_and_a_failure_is_a_result(jobs: int) -> None:
    seeds = (4, FAILS, 0, CRASHES, 9, 2)
    found = dict(map_episodes(specs(*seeds), jobs, play))
    assert sorted(found) == list(range(len(seeds)))
    for place, seed in enumerate(seeds):
        outcome = found[place]
        if seed == FAILS:
            assert isinstance(outcome, ProtocolError)
            assert outcome.as_dict() == {
                "what": "no candidate was left",
                "why": "all were vetoed",
                "fix": "Use another protocol",
            }
        elif seed == CRASHES:
            assert isinstance(outcome, WarRoomError)
            assert "ZeroDivisionError: division by zero" in outcome.what
        else:
            assert isinstance(outcome, EpisodeResult)
            assert outcome.seed == seed


def test_a_worker_that_dies_costs_its_own_cell_only() -> None:
    seeds = (1, 2, KILLS_ITS_PROCESS, 4, 6, 8, 9, 10)
    found = dict(map_episodes(specs(*seeds), 2, play))
    assert sorted(found) == list(range(len(seeds)))
    for place, seed in enumerate(seeds):
        outcome = found[place]
        if seed == KILLS_ITS_PROCESS:
            assert isinstance(outcome, WarRoomError)
            assert "worker process died" in outcome.what
        else:
            assert isinstance(outcome, EpisodeResult)


def test_a_sweep_that_is_dropped_leaves_no_worker_behind() -> None:
    sweep = map_episodes(specs(*range(10, 60)), 2, play)
    next(sweep)
    sweep.close()  # type: ignore[attr-defined]
    for child in multiprocessing.active_children():
        child.join(timeout=30)
    assert not multiprocessing.active_children()
