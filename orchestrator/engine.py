"""Run many episodes: in this process, in a pool of processes of this machine, or on Ray.

The code that runs an episode is the same everywhere; an engine only moves it, and each worker
opens its own store. Results come as they are ready, each with the place of its spec, so that a
caller may show progress and still write its rows in order. An episode that fails, or that kills
its worker, is one result among others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.engines.cells import Outcome, Play
from orchestrator.study.engines.inline import run_inline
from orchestrator.study.engines.pool import run_pooled
from world.store.base import StoreSettings

Engine = Literal["process", "ray"]
ENGINES: tuple[Engine, ...] = ("process", "ray")

__all__ = ["ENGINES", "Engine", "Outcome", "Play", "map_episodes", "play"]


def play(spec: EpisodeSpec, settings: StoreSettings | None = None) -> EpisodeResult:
    """Run one episode.

    Args:
        spec: What to run.
        settings: Where an embedded store lives.
    """
    from orchestrator.episode import run_episode

    return run_episode(spec, settings=settings)


def map_episodes(
    specs: Sequence[EpisodeSpec],
    jobs: int = 1,
    play: Play = play,
    engine: Engine = "process",
    address: str = "",
) -> Iterator[tuple[int, Outcome]]:
    """Run every spec; yields (place in `specs`, result or error) as they are ready.

    Args:
        specs: What to run.
        jobs: Workers; with ``process``, 1 runs everything in this process.
        play: Runs one episode; a function at the top of a module, so that a worker can import it.
        engine: ``process``, or ``ray`` (the extra of that name).
        address: With ``ray``: its cluster; "" starts one here.
    """
    if engine == "ray" and specs:
        from orchestrator.study.engines.ray_engine import run_ray

        return run_ray(specs, jobs, play, address)
    if jobs <= 1 or len(specs) <= 1:
        return run_inline(specs, play)
    return run_pooled(specs, min(jobs, len(specs)), play)
