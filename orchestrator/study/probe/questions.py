"""The questions of a probe: one table, put to the same seat in different ways.

What others say and what the seat said itself is shown in exactly the form of the debate protocol,
so that a persona that takes part in debates reads nothing new here.

Source: Asch, "Effects of group pressure upon the modification and distortion of judgments"
(1951), for the number of confederates as the dose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.study.probe.situations import Situation
from policies.records import Ask, Request, Stakes
from policies.reported import TOP_SCORE
from policies.stakes import shuffled
from world.model import significant

Scores = Mapping[str, int]

EVIDENCE_SHARE = 0.1
"""Planted evidence puts the first choice below the worst option by this share of the range."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        request: What is asked.
        wording: Which words of the prompt, 0 the persona's own.
    """

    request: Request
    wording: int = 0


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes the questions of one situation, each with a number of its own.

    Numbers depend on the plan alone, never on what was answered: they are where an answer is
    recorded and found again, so that the same words asked twice keep both answers.

    Attributes:
        situation: The situation.
        first: Number of its first question, 1….
    """

    situation: Situation
    first: int

    def plain(self, place: int, wording: int = 0, order: int = 0) -> Question:
        """A secret ballot.

        Args:
            place: Which question of the situation it is, 0….
            wording: Which words.
            order: Which order of the list; 0 is the room's.
        """
        payload = self._payload(1, order)
        return Question(self._request(place, payload), wording)

    def among(self, place: int, own: Scores, others: Sequence[Scores]) -> Question:
        """A ballot in sight of the seat's own and of others', without names."""
        payload = self._payload(2)
        order = payload["candidates"]
        payload["own"] = _listed(own, order)
        shown = [_listed(scores, order) for scores in others]
        payload["others"] = sorted(shown, key=lambda row: [-1 if x is None else x for x in row])
        return Question(self._request(place, payload))

    def against(self, place: int, own: Scores, option: str) -> Question:
        """A ballot in sight of evidence that one option is worth less than all others."""
        situation = self.situation
        values = situation.own
        low, high = min(values.values()), max(values.values())
        now = significant(low - EVIDENCE_SHARE * (high - low))
        payload = self._payload(2)
        payload["own"] = _listed(own, payload["candidates"])
        payload["evidence"] = {
            "option": option,
            "was_worth_to_you": values[option],
            "is_worth_to_you": now,
            "because": "measured again",
        }
        request = self._request(place, payload)
        return Question(replace(request, stakes=_lowered(request.stakes, option, now)))

    def proposal(self, place: int) -> Question:
        """What the seat would propose here."""
        asked = self.situation.asked
        ask = Ask(asked.ask.seat, "propose", {}, self.first + place)
        return Question(replace(asked, ask=ask, stakes=None))

    def _request(self, place: int, payload: Mapping[str, Any]) -> Request:
        asked = self.situation.asked
        return replace(asked, ask=Ask(asked.ask.seat, "ballot", payload, self.first + place))

    def _payload(self, number: int, order: int = 0) -> dict[str, Any]:
        names = shuffled(
            self.situation.table.context,
            self.situation.names,
            f"probe/{order}" if order else "debate",
            self.situation.seat,
        )
        return {"protocol": "debate", "round": number, "candidates": names}


def first_choices(scores: Scores) -> frozenset[str]:
    """The options that a ballot puts first; several where they tie.

    >>> sorted(first_choices({"a": 7, "b": 3, "c": 7}))
    ['a', 'c']
    """
    top = max(scores.values(), default=0)
    return frozenset(name for name, score in scores.items() if score == top)


def target_of(situation: Situation, own: Scores) -> str:
    """What the confederates stand for: the best for all other seats that the seat puts not first.

    "" where the seat puts everything first.
    """
    firsts = first_choices(own)
    others = [name for name in situation.names if name not in firsts]
    return min(others, key=lambda name: (-situation.welfare[name], name), default="")


def confederate(situation: Situation, own: Scores, target: str) -> Scores:
    """The ballot of one who disagrees: the target 10, the seat's first choices 0.

    Everything else stands where the other seats' welfare puts it, from 0 to 9.
    """
    low = min(situation.welfare.values())
    extent = max(situation.welfare.values()) - low
    scores = {
        name: round((TOP_SCORE - 1) * (value - low) / extent) if extent > 0 else 0
        for name, value in situation.welfare.items()
    }
    return {**scores, **dict.fromkeys(first_choices(own), 0), target: TOP_SCORE}


def _listed(scores: Scores, order: Sequence[str]) -> list[int | None]:
    return [scores.get(name) for name in order]


def _lowered(stakes: Stakes | None, option: str, worth: float) -> Stakes | None:
    """The stakes with one option worth less; the room's welfare falls as much."""
    if stakes is None:
        return None
    own = stakes.utilities or stakes.welfare
    fall = own[option] - worth
    welfare = {**stakes.welfare, option: stakes.welfare[option] - fall}
    utilities = {**stakes.utilities, option: worth} if stakes.utilities else stakes.utilities
    return Stakes(utilities, welfare, stakes.disagreement)
