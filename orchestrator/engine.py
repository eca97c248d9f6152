"""Run many episodes: in this process, or in a pool of processes of this machine.

The code that runs an episode is the same everywhere; a pool only moves it. Workers are started
afresh (never forked, for threads and connections do not survive that) and each opens its own
store. Results come as they are ready, each with the place of its spec, so that a caller may show
progress and still write its rows in order. An episode that fails, or that kills its worker, is
one result among others.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from orchestrator.spec import EpisodeResult, EpisodeSpec
from world.errors import WarRoomError
from world.store.base import StoreSettings

Play = Callable[[EpisodeSpec], EpisodeResult]
Outcome = EpisodeResult | WarRoomError
_IN_FLIGHT_PER_WORKER = 2


def play(spec: EpisodeSpec, settings: StoreSettings | None = None) -> EpisodeResult:
    """Run one episode.

    Args:
        spec: What to run.
        settings: Where an embedded store lives.
    """
    from orchestrator.episode import run_episode

    return run_episode(spec, settings=settings)


def map_episodes(
    specs: Sequence[EpisodeSpec], jobs: int = 1, play: Play = play
) -> Iterator[tuple[int, Outcome]]:
    """Run every spec; yields (place in `specs`, result or error) as they are ready.

    Args:
        specs: What to run.
        jobs: Processes; 1 runs everything in this one.
        play: Runs one episode; a function at the top of a module, so that a worker can import it.
    """
    if jobs <= 1 or len(specs) <= 1:
        for place, spec in enumerate(specs):
            yield place, _caught(play, spec)
        return
    yield from _pooled(specs, min(jobs, len(specs)), play)


def _caught(play: Play, spec: EpisodeSpec) -> Outcome:
    """A sweep must outlive any one of its cells, whatever that cell raises."""
    try:
        # A persona that prints must not write into what the caller prints.
        with contextlib.redirect_stdout(sys.stderr):
            return play(spec)
    except WarRoomError as error:
        return error
    except Exception as error:
        return _internal(error)


def _internal(error: BaseException) -> WarRoomError:
    return WarRoomError(
        f"internal error: {type(error).__name__}: {error}",
        "this is a fault of the program",
        "Please report it",
    )


def _pooled(specs: Sequence[EpisodeSpec], jobs: int, play: Play) -> Iterator[tuple[int, Outcome]]:
    """Keep the pool busy without queueing everything; start a new one where a worker died."""
    waiting = list(range(len(specs)))[::-1]
    while waiting:
        running: dict[Future[Outcome], int] = {}
        pool = _pool(jobs)
        try:
            while waiting or running:
                while waiting and len(running) < jobs * _IN_FLIGHT_PER_WORKER:
                    place = waiting[-1]
                    running[pool.submit(_caught, play, specs[place])] = place
                    waiting.pop()
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = future.result()
                    yield running.pop(future), outcome
            pool.shutdown()
        except BrokenProcessPool:
            pool.shutdown(cancel_futures=True)
            yield from _one_by_one(specs, sorted(running.values()), play)
        except BaseException:
            _end(pool)
            raise


def _one_by_one(
    specs: Sequence[EpisodeSpec], places: Sequence[int], play: Play
) -> Iterator[tuple[int, Outcome]]:
    """Find out which of the episodes that were running killed a worker: each gets its own."""
    for place in places:
        pool = _pool(1)
        try:
            yield place, pool.submit(_caught, play, specs[place]).result()
            pool.shutdown()
        except BrokenProcessPool:
            pool.shutdown(cancel_futures=True)
            yield (
                place,
                WarRoomError(
                    "the worker process died",
                    "it was killed, or ran out of memory",
                    "Run this cell alone, or with fewer jobs: -j 1",
                ),
            )
        except BaseException:
            _end(pool)
            raise


def _pool(jobs: int) -> ProcessPoolExecutor:
    methods = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in methods else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["orchestrator.engine"])
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_ready_worker)


def _ready_worker() -> None:
    """Ctrl-C goes to the whole terminal group; only the parent decides what it means.

    Standard output is the parent's: what code of others prints here goes to standard error.
    """
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(pool: ProcessPoolExecutor) -> None:
    """Drop what is queued and end the workers: an episode of a sweep is cheap to run again."""
    workers = list(getattr(pool, "_processes", None) or ())
    children = {child.pid: child for child in multiprocessing.active_children()}
    pool.shutdown(wait=False, cancel_futures=True)
    for pid in workers:
        if pid in children:
            children[pid].terminate()
