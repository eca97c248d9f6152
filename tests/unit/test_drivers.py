"""The graph and the loop run the same phases: same bytes, whoever answers when."""

import random
from collections.abc import Callable

import pytest

from agents.persona import load_persona
from orchestrator import graph
from orchestrator.room import Room
from orchestrator.session import StopFlag
from tests.support.rooms import room, stub_room, with_personas
from tests.support.runs import play
from tests.support.voices import Voice, jittering, proposing

SEATS = ("resource", "cost", "sustainability", "janitor")


def both(make: Callable[[str], Room]) -> list[str]:
    return [play(make(driver)).result.trace_sha for driver in ("loop", "graph")]


@pytest.mark.parametrize(
    ("scenario", "protocol"),
    [
        ("cloudedge/hard", "weighted_score"),
        ("cloudedge/seed/medium", "cloudedge_boardroom"),
        ("cloudedge/seed/hard", "nash"),
        ("finops/zombie_cleanup", "weighted_score"),
        ("finops/v2/right_sizing", "plurality"),
    ],
)
def test_both_drivers_write_the_same_bytes(scenario: str, protocol: str) -> None:
    shas = both(lambda driver: room(scenario=scenario, protocol=protocol, seed=3, driver=driver))
    assert shas[0] == shas[1]


def test_an_asynchronous_seat_gives_the_same_bytes_on_both_drivers_and_as_a_plain_seat() -> None:
    def make(driver: str, asynchronous: bool) -> Room:
        voice = Voice("cost", proposing("save"), asynchronous=asynchronous, delay_s=0.001)
        return with_personas(stub_room(driver=driver), {"cost": voice})

    shas = {play(make(driver, True)).result.trace_sha for driver in ("loop", "graph")}
    shas.add(play(make("loop", False)).result.trace_sha)
    assert len(shas) == 1


def test_asynchronous_seats_are_awaited_together() -> None:
    running: list[int] = []
    most = [0]

    class Counting(Voice):
        async def _later(self, request: object) -> object:  # type: ignore[override]
            import asyncio

            running.append(1)
            most[0] = max(most[0], len(running))
            await asyncio.sleep(0.02)
            running.pop()
            return self._answer(request)  # type: ignore[arg-type]

    for driver in ("loop", "graph"):
        most[0] = 0
        voices = {seat: Counting(seat, proposing("nop"), asynchronous=True) for seat in SEATS}
        play(with_personas(stub_room(driver=driver, horizon=2), voices))
        assert most[0] == len(SEATS)


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_the_order_in_which_seats_answer_changes_nothing(driver: str) -> None:
    kinds = {"resource": "speed_up", "cost": "save", "sustainability": "save", "janitor": "nop"}

    def sha(seed: int) -> str:
        delays = random.Random(seed)
        voices = {
            seat: Voice(seat, jittering(lambda _: delays.random() / 200, kind), blocking=True)
            for seat, kind in kinds.items()
        }
        return play(with_personas(stub_room(driver=driver, horizon=4), voices)).result.trace_sha

    assert len({sha(seed) for seed in range(8)}) == 1


@pytest.mark.parametrize("seats", [1, 2, 16])
def test_any_number_of_seats_gives_the_same_bytes_on_both_drivers(seats: int) -> None:
    specs = {f"seat{number:02d}": load_persona("cost") for number in range(seats)}
    shas = both(lambda driver: stub_room(specs, driver=driver))
    assert shas[0] == shas[1]


def test_the_recursion_limit_is_explicit_and_enough_for_a_long_episode() -> None:
    assert graph.supersteps(30, 2) >= 30 * 8
    assert play(stub_room(driver="graph", horizon=120)).result.steps == 120


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_the_same_room_can_be_run_many_times(driver: str) -> None:
    standing = stub_room(driver=driver, horizon=3)
    assert len({play(standing).result.trace_sha for _ in range(20)}) == 1


@pytest.mark.parametrize("driver", ["loop", "graph"])
def test_a_stop_request_ends_after_a_step_and_leaves_the_episode_open(driver: str) -> None:
    stop = StopFlag()

    def answer(request: object) -> object:
        if getattr(request, "step", 0) == 2:
            stop.request()
        return proposing("save")(request)  # type: ignore[arg-type]

    voices = {"cost": Voice("cost", answer)}  # type: ignore[arg-type]
    played = play(with_personas(stub_room(driver=driver), voices), stop=stop)
    assert played.result.steps == 3
    assert played.result.stop_reason == "interrupted"
    assert played.session.store.attach(played.result.run).status == "open"
    assert not played.of("run_ended")


def test_the_graph_state_stays_small_and_plain() -> None:
    compiled = graph.build().compile()
    played = stub_room(driver="graph", horizon=5)
    from orchestrator.episode import begin, claim_run
    from orchestrator.lease import lease
    from world.store.inprocess import InProcessStore

    store = InProcessStore()
    opening = claim_run(played, store)
    with lease(store, opening.run) as held:
        session = begin(played, store, held, opening)
        states = list(
            compiled.stream(
                {"step": 0, "answers": [], "decided": ""},
                {"recursion_limit": 100},
                context=graph.RunContext(session),
                stream_mode="values",
            )
        )
    assert all(len(repr(state)) < 400 for state in states)
    assert all(isinstance(value, int | str | list) for state in states for value in state.values())
