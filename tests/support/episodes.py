"""Stand-ins for an episode, importable by worker processes."""

from __future__ import annotations

import os
import time

from orchestrator.spec import EpisodeResult, EpisodeSpec
from tests.support import watched
from world.errors import ProtocolError

FAILS = 3
CRASHES = 5
KILLS_ITS_PROCESS = 7


def play(spec: EpisodeSpec) -> EpisodeResult:
    """An episode whose seed says how it ends; later seeds end sooner."""
    if spec.seed == FAILS:
        raise ProtocolError("no candidate was left", "all were vetoed", "Use another protocol")
    if spec.seed == CRASHES:
        raise ZeroDivisionError("division by zero")
    if spec.seed == KILLS_ITS_PROCESS:
        os._exit(9)
    time.sleep(0.02 / (1 + spec.seed))
    return watched.result(scenario=spec.scenario, seed=spec.seed, score=spec.seed / 100)
