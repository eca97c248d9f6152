"""The public kits pass what conforms, and name what does not, one fault at a time."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.persona import load_persona, persona_names
from agents.testkit import (
    ConformanceError,
    check_persona,
    check_protocol,
    check_store,
    check_world,
)
from policies.protocols import protocol, protocol_names
from policies.records import Ask, Context, Decision, Proposal, Reply, Request
from tests.support.stub_world import StubWorld, stub_scenario
from tests.support.voices import Voice
from world.actions import Action
from world.errors import UnknownNameError, WarRoomError
from world.model import Delta, Joint, Observation, Snapshot
from world.store.base import Applied, Lease
from world.store.connect import connect_fake
from world.store.inprocess import InProcessStore

ROOT = Path(__file__).parents[2]


def one_fault(check: Callable[[], None]) -> str:
    with pytest.raises(ConformanceError) as caught:
        check()
    line = caught.value.line()
    assert "\n" not in line
    assert caught.value.faults
    return line


@pytest.mark.parametrize("name", persona_names())
def test_every_shipped_persona_conforms(name: str) -> None:
    check_persona(name, steps=2)


@pytest.mark.parametrize("name", protocol_names())
def test_every_shipped_protocol_conforms(name: str) -> None:
    if not protocol(name).worlds:
        check_protocol(name, tables=10)


@pytest.mark.parametrize(
    "name",
    ["cloudedge/hard", "cloudedge/seed/easy", "finops/right_sizing", "finops/v1/zombie_cleanup",
     "aiops/basic_system_monitoring", "aiops/seed/reset", "cloud/easy"],
)  # fmt: skip
def test_every_shipped_world_conforms(name: str) -> None:
    check_world(name, steps=3)


@pytest.mark.parametrize("made", [InProcessStore, connect_fake], ids=["inprocess", "fakeredis"])
def test_stores_conform_and_are_left_as_they_were(made: Callable[[], Any]) -> None:
    store = made()
    check_store(store)
    assert list(store.episodes()) == []
    check_store(store)
    store.disconnect()


def test_a_fault_is_an_assertion_and_one_of_our_errors_and_survives_a_process() -> None:
    error = ConformanceError("persona x", ["step 1: one\nthing", "another"])
    assert isinstance(error, AssertionError)
    assert isinstance(error, WarRoomError)
    assert str(error) == (
        "persona x does not conform: step 1: one thing (and 1 more). All are in .faults"
    )
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert (again.line(), again.faults) == (error.line(), error.faults)


def test_kits_need_no_test_framework_and_import_none() -> None:
    code = (
        "import sys; from agents.testkit import check_persona, check_protocol, check_world\n"
        "check_persona('cost', ['cloudedge/hard'], 1); check_protocol('borda', 3)\n"
        "check_world('cloudedge/hard', steps=1)\n"
        "assert not {'pytest', 'hypothesis', 'langgraph'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


# --- personas ---------------------------------------------------------------------------------


def _plain(request: Request, message: str = "") -> Reply:
    """A good answer to any question."""
    offered = request.ask.payload.get("candidates", [""])
    return Reply(choice=offered[0], message=message)


class _Changing:
    """Another answer every time."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: Request) -> Reply:
        self.count += 1
        return _plain(request, str(self.count))


def _vandal(request: Request) -> Reply:
    request.history.decisions.append((Action("nop"),))
    return Reply()


def _quits(request: Request) -> Reply:
    raise SystemExit(1)


BROKEN_PERSONAS: dict[str, tuple[Callable[[Request], Any], str]] = {
    "raises": (lambda request: 1 // 0, "raised ZeroDivisionError"),
    "quits": (_quits, "raised SystemExit"),
    "no reply": (lambda request: "scale_up", "its reply is refused: the reply is a str"),
    "unknown": (lambda request: Reply((Proposal((Action("explode"),)),)), "no action 'explode'"),
    "changing": (_Changing(), "another answer to the same question"),
    "vandal": (_vandal, "changed the question"),
    "nan": (lambda request: Reply((Proposal((Action("scale_up"),), "", np.nan),)), "confidence"),
}


@pytest.mark.parametrize("case", BROKEN_PERSONAS)
def test_a_broken_persona_is_told_what_it_breaks(case: str) -> None:
    answer, words = BROKEN_PERSONAS[case]
    voice = Voice("cost", answer)
    assert words in one_fault(lambda: check_persona(voice, ["cloudedge/hard"], steps=1))


def test_a_persona_that_hangs_is_given_up_at_its_deadline() -> None:
    voice = Voice("cost", lambda request: time.sleep(0.5), deadline_s=0.05, blocking=True)
    line = one_fault(lambda: check_persona(voice, ["cloudedge/hard"], steps=1))
    assert "no answer within 0.05 s" in line


def test_a_voice_that_may_vary_is_not_asked_for_the_same_answer() -> None:
    check_persona(Voice("cost", _Changing()), ["cloudedge/hard"], steps=1, deterministic=False)


def test_an_awaitable_voice_and_one_in_a_thread_conform() -> None:
    for manner in ({"asynchronous": True}, {"blocking": True}):
        check_persona(Voice("cost", _plain, **manner), ["cloudedge/hard"], 1)


def test_what_is_no_persona_at_all_is_told_so() -> None:
    line = one_fault(lambda: check_persona(object()))  # type: ignore[arg-type]
    assert "persona object does not conform: has no method answer(request)" in line


def test_a_persona_that_does_not_exist_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        check_persona("nobody")


# --- protocols --------------------------------------------------------------------------------


class _First:
    name = "first"
    title = "First"
    description = "Takes whatever is listed first."
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Generator[tuple[Ask, ...], Any, Decision]:
        yield from ()
        return Decision(context.candidates[0], self.name, True, "it stood first")


def test_a_protocol_that_looks_at_the_order_is_told_so() -> None:
    error = one_fault(lambda: check_protocol(_First(), tables=3))
    assert error.startswith("protocol first does not conform: one candidate, vetoed: ")


def test_a_protocol_that_returns_no_candidate_is_told_so() -> None:
    class Wordy(_First):
        def decide(self, context: Context) -> Generator[tuple[Ask, ...], Any, Decision]:
            yield from ()
            return Decision(context.candidates[0].id, self.name, True)  # type: ignore[arg-type]

    line = one_fault(lambda: check_protocol(Wordy(), tables=1))
    assert "decided on a str, not on a Candidate" in line


# --- worlds -----------------------------------------------------------------------------------


class _Forgetful(StubWorld):
    """Does not say in its delta what a step did to the cost."""

    def step(self, state: Any, actions: Joint) -> Any:
        after, outcomes, delta = super().step(state, actions)
        kept = {name: value for name, value in delta.metrics.items() if "cost" not in name}
        return after, outcomes, dataclasses.replace(delta, metrics=kept)


class _Moody(StubWorld):
    """Projects another future each time."""

    asked = 0

    def project(self, *arguments: Any, **named: Any) -> Any:
        _Moody.asked += 1
        return super().project(*arguments, **named) + _Moody.asked


class _Crowded(StubWorld):
    """What a plan does depends on how many others are looked at."""

    def project(self, belief: Any, plans: Any, *rest: Any) -> Any:
        return super().project(belief, plans, *rest) + len(plans)


class _Fickle(StubWorld):
    """Lets everything pass and refuses it afterwards."""

    def step(self, state: Any, actions: Joint) -> Any:
        after, outcomes, delta = super().step(state, actions)
        refused = tuple(
            dataclasses.replace(each, status="refused", reason="no") for each in outcomes.actions
        )
        return after, dataclasses.replace(outcomes, actions=refused), delta


class _Rich(StubWorld):
    """Rewards more than its terms say."""

    def step(self, state: Any, actions: Joint) -> Any:
        after, outcomes, delta = super().step(state, actions)
        return after, dataclasses.replace(outcomes, reward=outcomes.reward + 1.0), delta


class _Lossy(StubWorld):
    """Puts something else into its columns each time."""

    asked = 0

    def columns(self, state: Any, row: int = 0) -> Snapshot:
        kept = super().columns(state, row)
        _Lossy.asked += 1
        return dataclasses.replace(kept, metrics={**kept.metrics, "latency_ms": _Lossy.asked})


class _Blind(StubWorld):
    """Says numbers where it knows none."""

    def observe(self, state: Any, seat: str = "room", row: int = 0) -> Observation:
        seen = super().observe(state, seat, row)
        return dataclasses.replace(seen, metrics={**seen.metrics, "latency_ms": float("nan")})


class _Closed(StubWorld):
    """Nothing can be done in it."""

    def check(self, observation: Observation, action: Action) -> str | None:
        return "not today"


BROKEN_WORLDS: dict[type[StubWorld], str] = {
    _Forgetful: "the delta of ",
    _Moody: "the same plans projected twice differ",
    _Crowded: "depends on which others are projected",
    _Fickle: "passed the validator and was refused: no",
    _Rich: "not the reward",
    _Lossy: "reset twice with one seed gives two worlds",
    _Blind: "what is not known is None",
    _Closed: "no action of the catalogue can be taken",
}


@pytest.mark.parametrize("broken", BROKEN_WORLDS, ids=lambda broken: broken.__name__)
def test_a_broken_world_is_told_what_it_breaks(broken: type[StubWorld]) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_world(stub_scenario(), broken(), steps=2)
    assert any(BROKEN_WORLDS[broken] in fault for fault in caught.value.faults)


def test_the_smallest_honest_world_conforms() -> None:
    check_world(stub_scenario(), StubWorld())


# --- stores -----------------------------------------------------------------------------------


class _Deaf(InProcessStore):
    """Applies a request as often as it comes."""

    def apply(
        self, lease: Lease, expected_step: int, request_id: str, delta: Delta, payload: bytes
    ) -> Applied:
        done = super().apply(lease, expected_step, request_id, delta, payload)
        return Applied("OK", done.step)


class _Generous(InProcessStore):
    """Gives everybody the lease."""

    def lease(self, episode: str, branch: str, holder: str, ttl_s: float = 3.0) -> Lease | None:
        return super().lease(episode, branch, holder, ttl_s) or Lease(episode, branch, holder, 1, 1)


class _Sloppy(InProcessStore):
    """Turns −0 into 0."""

    def world(self, episode: str, branch: str = "0") -> Snapshot:
        kept = super().world(episode, branch)
        return dataclasses.replace(kept, metrics={n: v + 0.0 for n, v in kept.metrics.items()})


BROKEN_STORES: dict[type[InProcessStore], str] = {
    _Deaf: "answers OK to a request that was applied before, not DUP",
    _Generous: "gives the same lease to two holders",
    _Sloppy: "reads another world than was written",
}


@pytest.mark.parametrize("broken", BROKEN_STORES, ids=lambda broken: broken.__name__)
def test_a_broken_store_is_told_what_it_breaks(broken: type[InProcessStore]) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_store(broken())
    assert BROKEN_STORES[broken] in caught.value.faults


def test_a_persona_object_may_be_checked_instead_of_a_name() -> None:
    from agents.seat import make_persona

    check_persona(make_persona(load_persona("cost"), "anybody"), steps=1)
