"""Play a sweep on Ray: on this machine, or on the cluster behind a ``ray://`` address.

Ray is an extra and imported here only, and only when asked for. The code that plays a cell is the
one that every engine runs, so rows are the same; a worker that dies has its cell played once
more, as in the process pool.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.console.text import plain, without_secrets
from orchestrator.spec import EpisodeSpec
from orchestrator.study.engines.cells import (
    IN_FLIGHT_PER_WORKER,
    Outcome,
    Play,
    caught,
    worker_died,
)
from orchestrator.version import ROOT
from world.errors import ConfigError, MissingExtraError, WorldError

_ADDRESS = re.compile(r"(?:ray://)?[A-Za-z0-9._\-\[\]:]{1,253}:\d{1,5}|auto|local")
_NOT_SENT = [".git/", ".venv/", ".venv-model/", "runs/", ".hypothesis/", ".mypy_cache/"]


class RayUnavailableError(WorldError):
    """The Ray cluster does not answer, or cannot be started here."""

    exit_code = 3


def check_ray(address: str = "") -> None:
    """Refuse early what `run_ray` would refuse after its first cells were made.

    Raises:
        ConfigError: The address has no form that Ray knows.
        MissingExtraError: Ray is not installed.
    """
    if address and not _ADDRESS.fullmatch(address):
        raise ConfigError(
            f"--ray-address is {plain(without_secrets(address), 80)!r}",
            "it must be ray://HOST:PORT, HOST:PORT, auto or local",
            "For example --ray-address ray://head.example:10001",
        )
    _library()


def run_ray(
    specs: Sequence[EpisodeSpec], jobs: int, play: Play, address: str = ""
) -> Iterator[tuple[int, Outcome]]:
    """Yields (place in `specs`, result or error) as they are ready.

    Args:
        specs: What to run.
        jobs: CPUs of a Ray that is started here; at most so many times two cells are in flight.
        play: Runs one episode.
        address: Cluster; "" and ``local`` start one on this machine and end it afterwards.

    Raises:
        MissingExtraError: Ray is not installed.
        RayUnavailableError: The cluster does not answer.
    """
    ray = _library()
    started_here = not ray.is_initialized()
    if started_here:
        _start(ray, jobs, address)
    try:
        yield from _played(ray, specs, max(1, jobs) * IN_FLIGHT_PER_WORKER, play)
    finally:
        if started_here:
            ray.shutdown()


def _played(
    ray: Any, specs: Sequence[EpisodeSpec], most: int, play: Play
) -> Iterator[tuple[int, Outcome]]:
    # One retry, and only where the worker itself died: what a cell raises is its result.
    remote = ray.remote(num_cpus=1, max_retries=1, retry_exceptions=False)(caught)
    shared = ray.put(play)
    waiting = list(range(len(specs)))[::-1]
    running: dict[Any, int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < most:
                place = waiting.pop()
                running[remote.remote(shared, specs[place])] = place
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                place = running.pop(reference)
                yield place, _outcome(ray, reference)
    except ConnectionError as error:
        raise RayUnavailableError(
            "the Ray cluster does not answer any more",
            without_secrets(plain(str(error), 200)),
            "What was played is kept: run the same command again",
        ) from error
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _outcome(ray: Any, reference: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        return worker_died()
    return outcome


def _start(ray: Any, jobs: int, address: str) -> None:
    local = address in {"", "local"}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment: dict[str, Any] = {"env_vars": {"PYTHONPATH": path}}
    if not local:
        # Machines of a cluster do not share this folder: the checkout travels.
        environment = {"working_dir": str(ROOT), "excludes": _NOT_SENT}
    where: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False} if local else {}
    try:
        ray.init(
            address="local" if local else address,
            runtime_env=environment,
            log_to_driver=False,
            logging_level="ERROR",
            **where,
        )
    except (ConnectionError, TimeoutError, RuntimeError, ValueError, OSError) as error:
        raise RayUnavailableError(
            f"no Ray at {plain(without_secrets(address or 'local'), 80)}",
            without_secrets(plain(str(error), 200)),
            "Start it (ray start --head), correct --ray-address, or take --engine process",
        ) from error


def _library() -> Any:
    # Before the import: Ray reads it there. Nobody asked to report how this is used.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError(
            "--engine ray needs ray, which is not installed",
            "it is in the extra 'ray'",
            "Install it: pip install '.[ray]'; or take --engine process",
        ) from error
