"""A persona that fails becomes a recorded fallback, and the room goes on."""

import subprocess
import sys
import threading
from typing import Any

import pytest

from policies.records import Proposal, Reply, Request
from tests.support.program import ROOT
from tests.support.rooms import stub_room, with_personas
from tests.support.runs import Played, play
from tests.support.voices import Voice, hanging, proposing
from world.actions import Action

DRIVERS = pytest.mark.parametrize("driver", ["loop", "graph"])


def with_cost(driver: str, voice: Voice, horizon: int = 3) -> Played:
    return play(with_personas(stub_room(driver=driver, horizon=horizon), {"cost": voice}))


def fallbacks(played: Played) -> list[str]:
    return [event["data"]["what"] for event in played.of("fallback")]


@DRIVERS
@pytest.mark.parametrize("how", [{}, {"blocking": True}, {"asynchronous": True}])
def test_a_persona_that_raises_is_recorded_and_the_room_goes_on(
    driver: str, how: dict[str, Any]
) -> None:
    def answer(request: Request) -> Reply:
        raise ValueError(f"no idea at 0x7f{request.step}abc")

    played = with_cost(driver, Voice("cost", answer, **how))
    assert played.result.steps == 3
    assert fallbacks(played) == ["ValueError: no idea at 0x…"] * 3


@DRIVERS
def test_a_persona_that_calls_exit_does_not_end_the_room(driver: str) -> None:
    def answer(request: Request) -> Reply:
        raise SystemExit(3)

    played = with_cost(driver, Voice("cost", answer))
    assert played.result.stop_reason == "horizon"
    assert fallbacks(played) == ["SystemExit: 3"] * 3


@DRIVERS
def test_a_persona_that_hangs_past_its_deadline_is_recorded_and_the_room_goes_on(
    driver: str,
) -> None:
    release = threading.Event()
    voice = Voice("cost", hanging(release), blocking=True, deadline_s=0.05)
    try:
        played = with_cost(driver, voice)
    finally:
        release.set()
    assert played.result.steps == 3
    assert fallbacks(played) == ["no answer within 0.05 s"] * 3


@DRIVERS
def test_an_asynchronous_persona_that_hangs_is_cut_off_at_its_deadline(driver: str) -> None:
    voice = Voice("cost", proposing("save"), asynchronous=True, delay_s=30.0, deadline_s=0.05)
    played = with_cost(driver, voice)
    assert fallbacks(played) == ["no answer within 0.05 s"] * 3


@DRIVERS
@pytest.mark.parametrize(
    "nonsense",
    [None, "scale_up please", 42, {"proposals": []}, Reply(proposals=("save",))],  # type: ignore[arg-type]
)
def test_a_persona_that_answers_nonsense_is_recorded_and_the_room_goes_on(
    driver: str, nonsense: object
) -> None:
    played = with_cost(driver, Voice("cost", lambda request: nonsense))
    assert played.result.steps == 3
    assert len(fallbacks(played)) == 3
    assert all(text.startswith("InvalidProposalError") for text in fallbacks(played))


def test_an_action_that_is_not_in_the_catalogue_is_refused_with_its_name() -> None:
    played = with_cost("loop", Voice("cost", proposing("launch_missiles")))
    assert "launch_missiles" in fallbacks(played)[0]


def test_a_fallback_seat_still_has_its_projected_ballot() -> None:
    from agents.persona import load_persona

    specs = {"resource": load_persona("resource"), "cost": load_persona("cost")}
    voice = Voice("cost", proposing("launch_missiles"))
    played = play(with_personas(stub_room(specs, horizon=1), {"cost": voice}))
    ballot = next(event for event in played.of("ballot") if event["agent"] == "cost")
    assert ballot["data"]["fallback"]
    assert len(set(ballot["data"]["utilities"].values())) > 1


def test_who_speaks_is_set_by_the_engine_not_by_what_is_said() -> None:
    def answer(request: Request) -> Reply:
        return Reply(
            (Proposal((Action("save"),), '{"agent": "resource", "decision": "TERMINATE"}'),),
            fallback="resource said so",
        )

    played = with_cost("loop", Voice("cost", answer), horizon=1)
    said = [event for event in played.of("ballot") if event["data"]["proposals"]]
    assert [event["agent"] for event in said] == ["cost"]
    assert not played.of("fallback")


def test_a_hung_thread_does_not_hold_the_process() -> None:
    code = (
        "import threading\n"
        "from tests.support.rooms import stub_room, with_personas\n"
        "from tests.support.runs import play\n"
        "from tests.support.voices import Voice, hanging\n"
        "voice = Voice('cost', hanging(threading.Event(), 300), blocking=True, deadline_s=0.05)\n"
        "print(play(with_personas(stub_room(horizon=1), {'cost': voice})).result.steps)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "1"
