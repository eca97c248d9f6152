"""Only a signal ends a room: what a persona raises to end the process is a recorded fallback."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from policies.records import Reply, Request
from tests.support.rooms import stub_room, with_personas
from tests.support.runs import play
from tests.support.voices import Voice

DRIVERS = pytest.mark.parametrize("driver", ["loop", "graph"])
HOW = pytest.mark.parametrize("how", [{}, {"blocking": True}, {"asynchronous": True}])


@DRIVERS
@HOW
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt("enough"), SystemExit(3), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_persona_raises_to_end_the_process_is_recorded_and_the_room_goes_on(
    driver: str, how: dict[str, Any], error: BaseException
) -> None:
    def answer(request: Request) -> Reply:
        raise error

    played = play(
        with_personas(stub_room(driver=driver, horizon=3), {"cost": Voice("cost", answer, **how)})
    )
    said = [event["data"]["what"] for event in played.of("fallback")]
    assert played.result.stop_reason == "horizon"
    assert len(said) == 3
    assert all(text.startswith(type(error).__name__) for text in said), said


@pytest.mark.parametrize("how", [{}, {"asynchronous": True}])
def test_a_real_interrupt_while_a_persona_speaks_still_interrupts(how: dict[str, Any]) -> None:
    def answer(request: Request) -> Reply:
        signal.raise_signal(signal.SIGINT)
        return Reply()

    # A suite that was started in the background inherits an ignored SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            play(
                with_personas(
                    stub_room(driver="loop", horizon=3), {"cost": Voice("cost", answer, **how)}
                )
            )
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_persona_may_speak_in_a_thread_that_is_not_the_main_one() -> None:
    def answer(request: Request) -> Reply:
        raise KeyboardInterrupt

    found: list[Any] = []
    room = with_personas(stub_room(driver="loop", horizon=2), {"cost": Voice("cost", answer)})
    thread = threading.Thread(target=lambda: found.append(play(room)))
    thread.start()
    thread.join(30.0)
    assert [event["data"]["what"] for event in found[0].of("fallback")] == ["KeyboardInterrupt"] * 2
