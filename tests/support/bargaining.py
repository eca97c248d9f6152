"""Negotiations by hand: a table, voices for its seats, and a protocol that is held to the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents.backends.stances import stance
from agents.persona import apply_overrides, load_persona
from agents.persona_schema import PersonaSpec
from policies.protocols.guard import guarded
from policies.records import Ask, Context, Decision, NegotiationProtocol, Reply, Request
from policies.stakes import stakes_of
from tests.support.stub_world import StubWorld

Voices = Callable[[Ask], Reply]


def persona(**concession: Any) -> PersonaSpec:
    """The persona ``cost`` with a manner of giving way."""
    changes = [
        f"concession.{name}={value}"
        if not isinstance(value, str)
        else f'concession.{name}="{value}"'
        for name, value in concession.items()
    ]
    return apply_overrides(load_persona("cost"), changes)


def rules(table: Context, specs: Mapping[str, PersonaSpec] | None = None) -> Voices:
    """Every seat answers from its stakes, as rule personas do."""
    plain = load_persona("cost")
    stakes = {seat: stakes_of(table, seat) for seat in table.seats}

    def answer(ask: Ask) -> Reply:
        request = Request(
            ask, table.step, table.observation, table.history, StubWorld(), stakes[ask.seat]
        )
        spec = (specs or {}).get(ask.seat, plain)
        return stance(request, spec) or Reply()

    return answer


def negotiate(
    protocol: NegotiationProtocol, table: Context, voices: Voices | None = None
) -> tuple[Decision, list[tuple[Ask, ...]]]:
    """Play a protocol under guard.

    Returns:
        The decision, and every batch of asks.
    """
    speak = voices or rules(table)
    asked: list[tuple[Ask, ...]] = []
    deliberation = guarded(protocol, table)
    try:
        asks = next(deliberation)
        while True:
            asked.append(asks)
            asks = deliberation.send({ask.seat: speak(ask) for ask in asks})
    except StopIteration as done:
        decision: Decision = done.value
        return decision, asked
