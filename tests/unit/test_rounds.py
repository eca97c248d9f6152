"""Protocols of several rounds, and replies that are paid once."""

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.replies import read_reply, write_reply
from orchestrator.room import Room
from policies.records import (
    Ask,
    Context,
    Decision,
    Deliberation,
    NegotiationProtocol,
    Proposal,
    Reply,
    Round,
    Usage,
)
from tests.support.rooms import stub_room, with_personas
from tests.support.runs import play
from tests.support.voices import Voice
from world.actions import Action
from world.store.inprocess import InProcessStore

DRIVERS = pytest.mark.parametrize("driver", ["loop", "graph"])


class TwoRounds:
    """Offers the weighted winner, then asks everybody again what to pick; majority of picks."""

    name = "two_rounds"
    title = "Two rounds, for tests"
    description = "Round 1: respond to an offer. Round 2: pick."
    max_rounds = 2
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        ids = [candidate.id for candidate in context.candidates]
        first = yield tuple(
            Ask(seat, "respond", {"offer": ids[0], "candidates": ids}, 1) for seat in context.seats
        )
        second = yield tuple(Ask(seat, "pick", {"candidates": ids}, 2) for seat in context.seats)
        return self._decision(context, first, second)

    def _decision(
        self, context: Context, first: Mapping[str, Reply], second: Mapping[str, Reply]
    ) -> Decision:
        picks = [second[seat].choice for seat in context.seats if second[seat].choice]
        winner = max(sorted(set(picks)), key=picks.count) if picks else context.candidates[0].id
        chosen = next(c for c in context.candidates if c.id == winner)
        rounds = tuple(Round(n, ({"n": len(r)},)) for n, r in ((1, first), (2, second)))
        return Decision(chosen, self.name, bool(picks), "majority of picks", rounds=rounds)


class Endless(TwoRounds):
    """Asks for ever."""

    name = "endless"

    def decide(self, context: Context) -> Deliberation:
        while True:
            yield tuple(Ask(seat, "respond", {}, 1) for seat in context.seats)


def answering(kind: str) -> Any:
    def answer(request: Any) -> Reply:
        if request.ask.kind == "propose":
            return Reply((Proposal((Action(kind),), "mine"),), usage=Usage(1, 10, 5, 0.01))
        if request.ask.kind == "pick":
            return Reply(choice=kind, usage=Usage(1, 20, 5, 0.02))
        return Reply(accept=False, counter=kind, message="no")

    return answer


def voices(**how: Any) -> dict[str, Voice]:
    wanted = {"resource": "speed_up", "cost": "save", "sustainability": "save", "janitor": "nop"}
    return {seat: Voice(seat, answering(kind), **how) for seat, kind in wanted.items()}


@DRIVERS
@pytest.mark.parametrize("how", [{}, {"asynchronous": True}, {"blocking": True}])
def test_a_protocol_of_two_rounds_asks_every_seat_in_each(driver: str, how: dict[str, Any]) -> None:
    seated = voices(**how)
    played = play(with_personas(stub_room(protocol=TwoRounds(), driver=driver), seated))
    assert {event["data"]["chosen"] for event in played.of("decision")} == {"save"}
    assert {event["data"]["rounds"] for event in played.of("decision")} == {2}
    assert seated["cost"].asked[:3] == [(0, "propose", 0), (0, "respond", 1), (0, "pick", 2)]
    assert [event["round"] for event in played.of("response")[:8]] == [1] * 4 + [2] * 4


def test_both_drivers_write_the_same_bytes_over_several_rounds() -> None:
    shas = {
        play(
            with_personas(stub_room(protocol=TwoRounds(), driver=driver), voices(**how))
        ).result.trace_sha
        for driver in ("loop", "graph")
        for how in ({}, {"asynchronous": True})
    }
    assert len(shas) == 1


class Counting(TwoRounds):
    """Asks for ever, and never the same."""

    name = "counting"

    def decide(self, context: Context) -> Deliberation:
        number = 0
        while True:
            number += 1
            yield tuple(Ask(seat, "respond", {"number": number}) for seat in context.seats)


class Strangers(TwoRounds):
    """Asks somebody who does not sit here, once it has been answered."""

    name = "strangers"

    def decide(self, context: Context) -> Deliberation:
        yield (Ask(context.seats[0], "respond", {}),)
        yield (Ask("mallory", "respond", {}),)
        raise AssertionError("it was answered for somebody who is not there")


@DRIVERS
@pytest.mark.parametrize(
    ("protocol", "why", "rounds"),
    [
        (Endless(), "asked the same again and got the same answers", 2),
        (Counting(), "more than 2 rounds", 2),
        (Strangers(), "asked 'mallory', who does not sit here", 1),
    ],
)
def test_a_protocol_that_would_not_end_is_stopped_and_the_no_deal_rule_decides(
    driver: str, protocol: NegotiationProtocol, why: str, rounds: int
) -> None:
    seated = voices()
    played = play(with_personas(stub_room(protocol=protocol, driver=driver, horizon=2), seated))
    assert played.result.stop_reason == "horizon"
    for fallback in played.of("fallback"):
        assert fallback["data"]["kind"] == "protocol"
        assert fallback.get("agent", "") == ""
        assert why in fallback["data"]["what"]
    assert len(played.of("fallback")) == 2
    for decision in played.of("decision"):
        assert not decision["data"]["agreement"]
        assert decision["data"]["no_deal"] == "weighted_score"
        assert f"{protocol.name} was stopped" in decision["data"]["reason"]
    assert [ask for ask in seated["resource"].asked if ask[0] == 0][-1][2] == rounds


def test_what_a_seat_cost_is_added_up_per_call_and_stays_out_of_the_trace() -> None:
    played = play(with_personas(stub_room(protocol=TwoRounds(), horizon=2), voices()))
    usage = played.result.usage.model_dump()
    assert usage == {"calls": 16, "tokens_in": 240, "tokens_out": 80, "usd": pytest.approx(0.24)}
    assert "tokens" not in str(played.events)


@DRIVERS
def test_a_journalled_reply_is_never_asked_for_again(driver: str) -> None:
    """A crash between the reply and the commit: the step is executed again."""
    store = InProcessStore()

    class Crash(BaseException):
        """Nothing in the room stops it, as nothing stops a kill."""

    class Fragile(TwoRounds):
        crashed = False

        def _decision(self, *arguments: Any) -> Decision:
            if not Fragile.crashed:
                Fragile.crashed = True
                raise Crash
            return super()._decision(*arguments)

    seated = voices(journalled=True)
    room: Room = with_personas(stub_room(protocol=Fragile(), driver=driver, horizon=1), seated)
    from orchestrator.episode import begin, claim_run, drive_to_end
    from orchestrator.lease import lease
    from world.store.base import StoreSettings

    opening = claim_run(room, store)
    with lease(store, opening.run) as held:
        with pytest.raises(Crash):
            drive_to_end(begin(room, store, held, opening), StoreSettings())
        result = drive_to_end(begin(room, store, held, opening), StoreSettings())
    assert result.steps == 1
    assert all(len(voice.asked) == 3 for voice in seated.values())
    undisturbed = play(with_personas(stub_room(protocol=TwoRounds(), horizon=1), voices()))
    assert undisturbed.of("decision")[0]["data"]["chosen"] == "save"


def test_a_reply_survives_the_journal() -> None:
    reply = Reply(
        proposals=(Proposal((Action.of("save"), Action("nop")), "text ✓", 0.5, {"x": 1.5}),),
        scores={"save": 3},
        accept=True,
        counter="nop",
        choice="save",
        message="hello",
        usage=Usage(1, 2, 3, None),
    )
    back = read_reply(write_reply(reply))
    assert sorted(action.id for action in back.proposals[0].actions) == ["nop", "save"]
    assert back.scores == reply.scores
    assert (back.accept, back.counter, back.choice, back.message, back.usage) == (
        True, "nop", "save", "hello", Usage(1, 2, 3, None),
    )  # fmt: skip
