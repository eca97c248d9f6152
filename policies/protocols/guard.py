"""Holds a protocol to what every room relies on, whoever wrote it.

A protocol may ask only seats that sit here, only so often, and only questions that can be
recorded; it must end, and with a candidate of the table that nobody vetoed where there is one.
Where it does not, the room's no-deal rule decides in its stead, and the decision says why. No
protocol can therefore hang a room, and no recursion limit of a driver is ever reached.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from policies.protocols.common import no_deal
from policies.protocols.registry import COMMANDER, protocol
from policies.records import (
    Ask,
    Candidate,
    Context,
    Decision,
    Deliberation,
    NegotiationProtocol,
    Reply,
)
from world.actions import NOP
from world.errors import WarRoomError

_KINDS = ("ballot", "respond", "pick")
_MOST_TEXT = 160
_DEEPEST = 6
_ATOMS = frozenset({str, int, bool, type(None)})


class _Fault(NamedTuple):
    """Why a protocol was stopped, one line."""

    what: str


def most_rounds(played: NegotiationProtocol, no_deal_rule: str) -> int:
    """Most batches of asks that a negotiation can come to, its no-deal rule included.

    Args:
        played: The protocol.
        no_deal_rule: ``nop``, ``commander``, or the name of a protocol.
    """
    # A protocol hands over to the no-deal rule itself, or is stopped and replaced by it.
    return _limit(played, no_deal_rule) + _handover(no_deal_rule)


def guarded(played: NegotiationProtocol, context: Context) -> Deliberation:
    """Play a protocol; where it breaks a rule, let the room's no-deal rule decide.

    Errors of the room itself (there is nothing that may be done) pass through.
    """
    ended = yield from _watched(played, context, _limit(played, context.no_deal))
    if isinstance(ended, Decision):
        return ended
    why = f"{played.name} was stopped: {ended.what}"
    rescue = _Rescue(played.name, why)
    instead = yield from _watched(rescue, context, _handover(context.no_deal))
    if isinstance(instead, _Fault):
        # The last resort asks nobody and is ours.
        rescue = _Rescue(played.name, f"{why}; {context.no_deal}: {instead.what}")
        instead = yield from rescue.decide(replace(context, no_deal="weighted_score"))
    return replace(instead, faults=(rescue.why, *instead.faults))


def _limit(played: NegotiationProtocol, no_deal_rule: str) -> int:
    return played.max_rounds + _handover(no_deal_rule)


def _handover(no_deal_rule: str) -> int:
    """Batches of asks that a no-deal rule may need."""
    if no_deal_rule == NOP:
        return 0
    return 1 if no_deal_rule == COMMANDER else protocol(no_deal_rule).max_rounds


class _Rescue:
    """The room's no-deal rule as a protocol of its own."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why

    def decide(self, context: Context) -> Deliberation:
        """Whatever the room has agreed to do without a deal."""
        return (yield from no_deal(self.name, context, self.why, {}))


def _watched(
    played: NegotiationProtocol | _Rescue, context: Context, limit: int
) -> Generator[tuple[Ask, ...], Mapping[str, Reply], Decision | _Fault]:
    """One protocol under watch; returns its decision, or why it was stopped."""
    seen: set[bytes] = set()
    deliberation: Deliberation | None = None
    replies: Mapping[str, Reply] | None = None
    rounds = 0
    while True:
        try:
            if deliberation is None or replies is None:
                deliberation = played.decide(context)
                asks = next(deliberation)
            else:
                asks = deliberation.send(replies)
        except StopIteration as done:
            decision: Decision | _Fault = _sound(played, done.value, context)
            return decision
        except WarRoomError:
            raise
        except (Exception, SystemExit) as error:  # no rule of somebody's may end the episode
            text = " ".join(str(error).split())[:_MOST_TEXT]
            return _Fault(f"it raised {type(error).__name__}: {text}")
        rounds += 1
        fault = _odd(asks, context) if rounds <= limit else f"more than {limit} rounds of asks"
        if fault:
            return _Fault(_close(deliberation) or fault)
        replies = yield asks
        state = _digest(asks, replies)
        if state in seen:
            fault = "it asked the same again and got the same answers"
            return _Fault(_close(deliberation) or fault)
        seen.add(state)


def _close(deliberation: Deliberation) -> str:
    """End a generator that is not wanted any more; what it says to that changes nothing."""
    try:
        deliberation.close()
    except (Exception, SystemExit) as error:
        return f"it would not end: {type(error).__name__}"
    return ""


def _odd(asks: object, context: Context) -> str:
    """What is wrong with a batch of asks; "" when it can be put to the seats and recorded."""
    if not isinstance(asks, tuple) or not asks:
        return f"it yielded {type(asks).__name__} instead of asks"
    asked: set[str] = set()
    for ask in asks:
        if not isinstance(ask, Ask):
            return f"it yielded {type(ask).__name__} instead of an ask"
        if ask.seat not in context.seats:
            return f"it asked {str(ask.seat)[:40]!r}, who does not sit here"
        if ask.seat in asked:
            return f"it asked {ask.seat} twice at once"
        if ask.kind not in _KINDS:
            return f"it asked {ask.seat} to {str(ask.kind)[:40]!r}, which is no question"
        if not _is_plain(ask.payload):
            return f"what it asked {ask.seat} cannot be recorded"
        asked.add(ask.seat)
    return ""


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a payload is made of what JSON has, exact types only."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is float:
        return math.isfinite(value)
    if depth > _DEEPEST:
        return False
    if kind is dict:
        if any(type(key) is not str for key in value):
            return False
        value = value.values()
    elif kind is not list and kind is not tuple:
        return False
    # A list of ids is the usual case, and long.
    return all(type(item) is str or _is_plain(item, depth + 1) for item in value)


def _digest(asks: tuple[Ask, ...], replies: Mapping[str, Reply]) -> bytes:
    """What was asked and what was answered, without who paid for it."""
    state = []
    for ask in asks:
        said = replies[ask.seat]
        answer = (said.accept, said.counter, said.choice, sorted(said.scores.items()), said.message)
        state.append((ask.seat, ask.kind, ask.payload, answer))
    return hashlib.sha256(repr(state).encode("utf-8", "surrogatepass")).digest()


def _sound(
    played: NegotiationProtocol | _Rescue, decision: object, context: Context
) -> Decision | _Fault:
    """A decision that can be carried out, or what is wrong with it."""
    if not isinstance(decision, Decision):
        return _Fault(f"it returned {type(decision).__name__} instead of a decision")
    chosen = decision.chosen
    if not isinstance(chosen, Candidate):
        return _Fault(f"it chose {type(chosen).__name__} instead of a candidate")
    place = _place(chosen, context)
    if place < 0:
        return _Fault(f"it chose {chosen.id[:80]!r}, which is not on the table")
    if not chosen.feasible:
        return _Fault(f"it chose {chosen.id}, which the guardrails refuse")
    vetoed = not context.admissible[place]
    blind = getattr(played, "ignores_vetoes", False)
    if vetoed and context.admissible.any() and not blind:
        return _Fault(f"it chose {chosen.id}, which is vetoed")
    return decision


def _place(chosen: Candidate, context: Context) -> int:
    """Where a candidate stands on the table, or -1; nearly always it is the table's own object."""
    for place, candidate in enumerate(context.candidates):
        if candidate is chosen:
            return place
    for place, candidate in enumerate(context.candidates):
        if candidate == chosen:
            return place
    return -1
