"""One cell of a sweep, wherever it is played: run it, and let no fault of its own get further."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from orchestrator.spec import EpisodeResult, EpisodeSpec
from world.errors import WarRoomError

Play = Callable[[EpisodeSpec], EpisodeResult]
Outcome = EpisodeResult | WarRoomError

IN_FLIGHT_PER_WORKER = 2
"""Cells handed out per worker, so that none waits for the next and little is lost to a stop."""


def caught(play: Play, spec: EpisodeSpec) -> Outcome:
    """Play one cell. A sweep must outlive any one of its cells, whatever that cell raises."""
    try:
        # A persona that prints must not write into what the caller prints.
        with contextlib.redirect_stdout(sys.stderr):
            return play(spec)
    except WarRoomError as error:
        return error
    except Exception as error:
        return WarRoomError(
            f"internal error: {type(error).__name__}: {error}",
            "this is a fault of the program",
            "Please report it",
        )


def worker_died() -> WarRoomError:
    """What becomes of a cell whose worker was killed twice, the second time with no other cell."""
    return WarRoomError(
        "the worker process died",
        "it was killed, or ran out of memory",
        "Run this cell alone, or with fewer jobs: -j 1",
    )
