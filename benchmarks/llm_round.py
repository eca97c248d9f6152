"""How long four model seats take together, against the slowest of them.

Four personas ask a stub that answers each call after 50 ms, in a process of its own. A round is
everything from the engine's questions to four checked replies: rendering four prompts, four calls
through the real client, reading and checking four answers. The reference is the slowest single
call of the same round, as the client saw it. The first round is told apart: in it the endpoint is
probed, and connections are made.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.answering import ask_all
from orchestrator.room import Room
from policies.records import Ask, Reply, Request
from tests.support.llm_rooms import llm_room
from world.model import History

ROUNDS = 40
DELAY_S = 0.05


@contextmanager
def stub() -> Iterator[str]:
    """The scripted endpoint in a process of its own; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.llm_stub", str(DELAY_S)],
        cwd=Path(__file__).resolve().parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=30)


def requests_of(room: Room) -> tuple[Request, ...]:
    """What every seat is asked at the first step."""
    history = History(room.scenario)
    history.observations.append(room.world.observe(room.world.reset(room.scenario, [1])))
    now = history.now
    return tuple(
        Request(Ask(seat, "propose"), 0, now, history, room.world) for seat in room.personas
    )


def timed_round(room: Room, asked: tuple[Request, ...]) -> tuple[float, float]:
    """Milliseconds of one round, and of its slowest call."""
    began = time.perf_counter()
    replies: dict[str, Reply] = asyncio.run(ask_all(room.personas, asked))
    round_ms = (time.perf_counter() - began) * 1000.0
    assert not any(reply.fallback for reply in replies.values()), "a seat fell back"
    return round_ms, max(reply.usage.latency_ms for reply in replies.values())


def main() -> None:
    """Print the figures."""
    with stub() as address:
        room = llm_room(base_url=address)
        asked = requests_of(room)
        first_ms, _ = timed_round(room, asked)
        rounds = [timed_round(room, asked) for _ in range(ROUNDS)]
    whole = statistics.median(round_ms for round_ms, _ in rounds)
    slowest = statistics.median(slowest_ms for _, slowest_ms in rounds)
    ratio = statistics.median(round_ms / slowest_ms for round_ms, slowest_ms in rounds)
    figures = {
        "llm_round": {
            "value": round(whole, 2),
            "unit": "ms for four model seats, median",
            "reference": f"slowest call of the round: {slowest:.2f} ms (stub: 50 ms)",
            "ratio": round(ratio, 3),
            "target": 1.15,
            "n": ROUNDS,
        },
        "llm_round_best": {
            "value": round(min(round_ms for round_ms, _ in rounds), 2),
            "unit": "ms for four model seats, fastest round",
            "reference": "what the stub takes for one call: 50 ms",
            "ratio": round(min(round_ms for round_ms, _ in rounds) / (DELAY_S * 1000.0), 3),
            "target": 1.15,
            "n": ROUNDS,
        },
        "llm_first_round": {
            "value": round(first_ms, 2),
            "unit": "ms, the endpoint is probed",
            "reference": "one round",
            "ratio": round(first_ms / whole, 2),
            "n": 1,
        },
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
