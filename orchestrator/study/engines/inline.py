"""Play a sweep in this process, one cell after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.spec import EpisodeSpec
from orchestrator.study.engines.cells import Outcome, Play, caught


def run_inline(specs: Sequence[EpisodeSpec], play: Play) -> Iterator[tuple[int, Outcome]]:
    """Yields (place in `specs`, result or error), in order."""
    for place, spec in enumerate(specs):
        yield place, caught(play, spec)
