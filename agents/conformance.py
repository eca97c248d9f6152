"""A test kit for personas, ours and yours: does a voice keep what every room relies on?

`persona_faults` asks a persona everything that a room may ask, in a real world and over a few
steps, sends each answer through the gate that a room has (`agents.validate`), and lists what it
broke. It needs no room and no store.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from agents.seat import Persona, deadline_s
from agents.validate import validated_reply
from policies.records import Ask, AskKind, Reply, Request, Stakes
from world.actions import Action, joint_id
from world.errors import InvalidProposalError
from world.model import History, World
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

SCENARIOS = ("cloudedge/hard", "finops/right_sizing")
_MOST_OFFERED = 12
_MOST_TRIED = 400


def persona_faults(
    persona: Persona,
    scenarios: Sequence[str] = SCENARIOS,
    steps: int = 3,
    seed: int = 0,
    deterministic: bool = True,
) -> list[str]:
    """What a persona breaks; empty when it conforms.

    It must answer every kind of question (``propose``, ``ballot``, ``respond``, ``pick``) within
    its deadline with a `Reply` that the gate lets pass, not raise, propose only actions that the
    world knows, give the same answer to the same question, and leave the question as it is.

    Args:
        persona: What to check.
        scenarios: Names of scenarios, or paths, whose worlds it is asked in.
        steps: How many steps of each; the first legal action is taken in between.
        seed: Which episode.
        deterministic: False for a voice that may answer differently each time, such as a model's.
    """
    faults: dict[str, None] = {}
    for fault in _face(persona):
        faults[fault] = None
    for name in () if faults else scenarios:
        for request in _requests(name, persona.seat, steps, seed):
            where = f"{name}, step {request.step + 1}, {request.ask.kind}"
            for fault in _asked(persona, request, deterministic):
                faults[f"{where}: {fault}"] = None
    return list(faults)


def _face(persona: Persona) -> Iterator[str]:
    """What the engine reads of a persona before it asks anything."""
    if not callable(getattr(persona, "answer", None)):
        yield "has no method answer(request)"
    seat = getattr(persona, "seat", None)
    if not isinstance(seat, str) or not seat:
        yield f"its seat is {seat!r:.60}, not a name"
    if not hasattr(getattr(persona, "spec", None), "backend"):
        yield "its spec is not a persona's file (agents.persona.load_persona makes one)"
    if not isinstance(getattr(persona, "blocking", None), bool):
        yield "does not say with blocking = True or False whether it may wait"


def _requests(name: str, seat: str, steps: int, seed: int) -> Iterator[Request]:
    """Everything that a room may ask, along one short episode."""
    scenario = load_scenario(name)
    world: World[Any] = make_world(scenario)
    state = world.reset(scenario, [seed])
    history = History(scenario)
    for step in range(min(steps, scenario.horizon)):
        seen = world.observe(state, seat)
        history.observations.append(seen)
        tried = world.catalogue(seen)[:_MOST_TRIED]
        legal: list[Action] = [each for each in tried if world.check(seen, each) is None]
        if not legal:
            return
        offered = [joint_id((each,)) for each in legal[:_MOST_OFFERED]]
        worth = {each: float(len(offered) - place) for place, each in enumerate(offered)}
        questions: tuple[tuple[AskKind, dict[str, Any]], ...] = (
            ("propose", {}),
            ("ballot", {"candidates": offered}),
            ("respond", {"candidates": offered, "offer": offered[-1]}),
            ("pick", {"candidates": offered}),
        )
        for kind, payload in questions:
            stakes = None if kind == "propose" else Stakes(worth, worth, 0.0)
            yield Request(Ask(seat, kind, payload), step, seen, history, world, stakes)
        state, outcomes, _ = world.step(state, (legal[0],))
        history.decisions.append((legal[0],))
        if outcomes.done:
            return


def _asked(persona: Persona, request: Request, deterministic: bool) -> Iterator[str]:
    before = _content(request)
    first = _answered(persona, request)
    if isinstance(first, str):
        yield first
        return
    if _content(request) != before:
        yield "changed the question that it was asked"
    yield from _proposed(first, request)
    if deterministic and _answered(persona, request) != first:
        yield "gave another answer to the same question"


def _proposed(reply: Reply, request: Request) -> Iterator[str]:
    for number, proposal in enumerate(reply.proposals, start=1):
        for action in proposal.actions:
            try:
                request.world.check(request.observation, action)
            except Exception as error:
                yield (
                    f"proposal {number}: the world cannot read {action.id}: "
                    f"{type(error).__name__}: {error}"
                )


def _answered(persona: Persona, request: Request) -> Reply | str:
    """The validated reply, or what was wrong with it."""
    try:
        answer = _within_deadline(persona, request)
        return validated_reply(request, answer)
    except InvalidProposalError as error:
        return f"its reply is refused: {error.line()}"
    except TimeoutError:
        return f"no answer within {deadline_s(persona.spec):g} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not persona.blocking:
            raise
        return f"raised {type(error).__name__}: {error}"


def _within_deadline(persona: Persona, request: Request) -> object:
    """Like a room does it: at once where it says that it never waits, else in a daemon thread."""
    seconds = deadline_s(persona.spec)
    if not persona.blocking:
        answer: Any = persona.answer(request)
        if inspect.isawaitable(answer):
            return asyncio.run(_awaited(answer, seconds))
        return answer
    done: list[object] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            said: Any = persona.answer(request)
            done.append(asyncio.run(_awaited(said, seconds)) if inspect.isawaitable(said) else said)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True, name=f"kit-{persona.seat}")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


async def _awaited(answer: Any, seconds: float) -> object:
    return await asyncio.wait_for(answer, seconds)


def _content(request: Request) -> tuple[object, ...]:
    """What of a question a persona could reach and change."""
    seen = request.observation
    return (
        repr(dict(request.ask.payload)),
        repr(dict(seen.metrics)),
        repr(dict(seen.facts)),
        "" if seen.inventory is None else seen.inventory.digest,
        len(request.history.observations),
        repr(request.history.decisions),
    )
