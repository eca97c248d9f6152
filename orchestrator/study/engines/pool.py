"""Play a sweep in a pool of processes of this machine.

Workers are started afresh (never forked, for threads and connections do not survive that). A
worker that dies takes its pool with it: the cells that were running are played once more, each in
a pool of its own, so that the one that kills its worker is found and the others lose nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for

from orchestrator.spec import EpisodeSpec
from orchestrator.study.engines.cells import (
    IN_FLIGHT_PER_WORKER,
    Outcome,
    Play,
    caught,
    worker_died,
)


def run_pooled(
    specs: Sequence[EpisodeSpec], jobs: int, play: Play
) -> Iterator[tuple[int, Outcome]]:
    """Yields (place in `specs`, result or error) as they are ready.

    Keeps the pool busy without queueing everything; starts a new one where a worker died.

    Args:
        specs: What to run.
        jobs: Processes.
        play: Runs one episode; a function at the top of a module, so that a worker can import it.
    """
    waiting = list(range(len(specs)))[::-1]
    while waiting:
        running: dict[Future[Outcome], int] = {}
        pool = _pool(jobs)
        try:
            while waiting or running:
                while waiting and len(running) < jobs * IN_FLIGHT_PER_WORKER:
                    place = waiting[-1]
                    running[pool.submit(caught, play, specs[place])] = place
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
            outcome = pool.submit(caught, play, specs[place]).result()
            pool.shutdown()
        except BrokenProcessPool:
            pool.shutdown(cancel_futures=True)
            outcome = worker_died()
        except BaseException:
            _end(pool)
            raise
        yield place, outcome


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
    threading.Thread(target=_end_with_parent, daemon=True, name="parent").start()


def _end_with_parent() -> None:
    """A worker holds both ends of its queue: it would never see that its parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _end(pool: ProcessPoolExecutor) -> None:
    """Drop what is queued and end the workers: an episode of a sweep is cheap to run again."""
    workers = list(getattr(pool, "_processes", None) or ())
    children = {child.pid: child for child in multiprocessing.active_children()}
    pool.shutdown(wait=False, cancel_futures=True)
    for pid in workers:
        if pid in children:
            children[pid].terminate()
