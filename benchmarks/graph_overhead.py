"""A 30-step episode through our graph against a bare LangGraph graph of the same shape.

Same four supersteps, four trivial seats fanned out by Send, both synchronous. The bare graph's
nodes do nothing; ours observes, lays the table, decides, commits to an in-process store and
chains the trace. The stub world projects nothing (it returns zeros).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from numpy.typing import NDArray
from typing_extensions import TypedDict

from orchestrator.episode import begin, claim_run
from orchestrator.graph import drive, supersteps
from orchestrator.lease import lease
from orchestrator.loop import drive as drive_loop
from tests.support.rooms import stub_room
from tests.support.stub_world import StubState, StubWorld
from world.model import Belief, Continuation, Key, Plan
from world.store.inprocess import InProcessStore

STEPS = 30
SEATS = ("resource", "cost", "sustainability", "janitor")
ROUNDS = 15


class Unprojected(StubWorld):
    """The stub world without its arithmetic of consequences."""

    def project(
        self,
        belief: Belief[StubState],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Zeros of the right shape."""
        del continuation, key
        shape = (belief.batch, len(plans), belief.samples, horizon, len(self.metrics))
        return np.zeros(shape)


def _gather(before: list[str], new: list[str] | None) -> list[str]:
    return [] if new is None else [*before, *new]


class _State(TypedDict):
    step: int
    answers: Annotated[list[str], _gather]


def bare_graph() -> Any:
    """The same shape with nodes that do nothing."""
    graph = StateGraph(_State)
    graph.add_node("observe", lambda state: {"answers": None})
    graph.add_node("propose", lambda state: {"answers": [state["seat"]]})
    graph.add_node("negotiate", lambda state: {"answers": None})
    graph.add_node("commit", lambda state: {"step": state["step"] + 1})
    graph.add_edge(START, "observe")
    graph.add_conditional_edges(
        "observe", lambda state: [Send("propose", {"seat": seat}) for seat in SEATS], ["propose"]
    )
    graph.add_edge("propose", "negotiate")
    graph.add_conditional_edges("negotiate", lambda state: "commit", ["commit"])
    graph.add_conditional_edges(
        "commit", lambda state: END if state["step"] >= STEPS else "observe", ["observe", END]
    )
    return graph.compile()


def timed(run: Callable[[], object]) -> float:
    """Seconds of CPU of this process."""
    start = time.process_time()
    run()
    return time.process_time() - start


def ours(driver: Callable[[Any], None]) -> Callable[[], object]:
    """One episode in a room that stands already, with a store of its own."""
    room = stub_room(horizon=STEPS, world=Unprojected(), driver="graph")

    def run() -> None:
        store = InProcessStore()
        opening = claim_run(room, store)
        with lease(store, opening.run) as held:
            driver(begin(room, store, held, opening))

    return run


def main() -> dict[str, Any]:
    """Measure, interleaved."""
    bare = bare_graph()
    config = {"recursion_limit": supersteps(STEPS, 0)}

    def run_bare() -> object:
        return bare.invoke({"step": 0, "answers": []}, config)

    through_graph, through_loop = ours(drive), ours(drive_loop)
    for warm_up in (run_bare, through_graph, through_loop):
        warm_up()
    bares, graphs, loops = [], [], []
    for _ in range(ROUNDS):
        bares.append(timed(run_bare))
        graphs.append(timed(through_graph))
        loops.append(timed(through_loop))
    reference = statistics.median(bares)
    return {
        "graph_overhead": {
            "value": round(statistics.median(graphs) / STEPS * 1e3, 4),
            "unit": "CPU ms a step",
            "reference": f"bare LangGraph graph, {reference / STEPS * 1e3:.4f} ms a step",
            "ratio": round(statistics.median(g / b for g, b in zip(graphs, bares, strict=True)), 3),
            "target": "<= 1.25",
            "n": ROUNDS,
        },
        "loop_against_graph": {
            "value": round(statistics.median(loops) / STEPS * 1e3, 4),
            "unit": "CPU ms a step",
            "reference": "bare LangGraph graph",
            "ratio": round(statistics.median(x / b for x, b in zip(loops, bares, strict=True)), 3),
            "n": ROUNDS,
        },
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
