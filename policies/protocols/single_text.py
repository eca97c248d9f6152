"""Single-text mediation: one text on the table, changed a little at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from policies.protocols.common import eliminated, no_deal, opening, voters
from policies.protocols.offers import joined, turns
from policies.records import Ask, Candidate, Context, Decision, Deliberation, Reply, Round
from policies.stakes import shuffled, standing
from world.model import significant
from world.noise import channel, uniforms

ROUNDS = 8
"""Changes of the text that are tried."""
HEAT = 0.5
"""Temperature of the first round, in shares of the room's weight; it falls to nothing."""


class _Answers(NamedTuple):
    """What the room said to a text.

    Attributes:
        supporters: Seats in favour, in room order.
        opposed: Share of the weight that is against it, 0–1.
    """

    supporters: tuple[str, ...]
    opposed: float


class SingleText:
    """Single-text mediation: a mediator without interests changes one text that all judge.

    Inputs: answers of every seat that has a say. The mediator is the room's own code: it knows
    the candidates and nothing of what seats want.
    Rule: the text is first what a seat proposed (who is asked first depends on seed and step).
    In each of 8 rounds the mediator puts another candidate beside it, in half of the rounds one
    that shares an action with it, and all seats say together whether they take it instead. It
    becomes the text when nobody is against it; when the share o of the weight is against it,
    with probability exp(−o/τ), where τ falls from 0.5 to nothing (annealing); never when all are
    against it. The last text is put to the room once more: it is decided when more than half of
    the weight takes it.
    Ties: none; the text is one candidate.
    No deal: the last text finds no majority; the room's no-deal rule decides.
    Properties: needs no numbers, only yes and no; finds good texts among many related ones and
    may end in a local optimum; a text that all seats prefer is never thrown back for one that
    all seats dislike.
    Source: Raiffa, "The Art and Science of Negotiation" (1982), on the single negotiating text;
    Klein, Faratin, Sayama & Bar-Yam, "Negotiating complex contracts", Group Decision and
    Negotiation 12 (2003), on annealing mediators.
    """

    name = "single_text"
    title = "Single-text mediation: one text, changed while the room takes the change"
    description = (
        "A mediator without interests changes one text; seats say whether they take the change. "
        "Kept when nobody is against it, or less than half of the weight and by chance that falls "
        "with the share against it and with time (annealing). The last text needs more than half "
        "of the weight. Ties: none, the text is one candidate. No deal: no majority for the last "
        "text; the room's no-deal rule decides. Source: Raiffa (1982); Klein et al. (2003), Group "
        "Decision and Negotiation 12."
    )
    worlds: tuple[str, ...] = ()

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.rounds = max(1, rounds)
        self.max_rounds = self.rounds + 1  # and the last word

    def decide(self, context: Context) -> Deliberation:
        """Asks all seats about one change a round, then about the text that is left."""
        early = opening(self.name, context)
        if early is not None:
            return early
        seats = [context.seats[row] for row in voters(context)]
        options = {context.candidates[place].id: place for place in standing(context)}
        text = _first_text(context, options)
        untried = [name for name in shuffled(context, list(options), self.name) if name != text]
        rounds: list[Round] = []
        draws = uniforms(
            context.seed, np.arange(self.rounds), channel("single_text.heat"), context.step
        )
        for number in range(1, min(self.rounds, len(untried)) + 1):
            near = draws[0, number - 1] < 0.5
            change = _change(context, options, text, untried, near=bool(near))
            untried.remove(change)
            said = yield self._asks(seats, change, text, number)
            answers = _count(context, seats, said)
            heat = HEAT * (1.0 - (number - 1) / self.rounds)
            kept = _keeps(answers.opposed, heat, float(draws[1, number - 1]))
            rounds.append(_account(number, change, text, answers, kept=kept))
            text = change if kept else text
        last = yield self._asks(seats, text, "", len(rounds) + 1)
        answers = _count(context, seats, last)
        rounds.append(_account(len(rounds) + 1, text, "", answers, kept=answers.opposed < 0.5))
        if answers.opposed < 0.5:
            return Decision(
                context.candidates[options[text]],
                self.name,
                True,
                f"the text after {len(rounds) - 1} changes tried; {len(answers.supporters)} of "
                f"{len(seats)} seats take it",
                eliminated=eliminated(context),
                rounds=tuple(rounds),
            )
        why = f"only {len(answers.supporters)} of {len(seats)} seats take the last text, {text}"
        decision = yield from no_deal(self.name, context, why, {})
        return replace(decision, rounds=joined(rounds, decision.rounds))

    def _asks(self, seats: Sequence[str], offer: str, against: str, number: int) -> tuple[Ask, ...]:
        payload = {
            "protocol": self.name,
            "offer": offer,
            "against": against,
            "round": number,
            "deadline": self.rounds + 1,
            "candidates": [name for name in (offer, against) if name],
        }
        return tuple(Ask(seat, "respond", payload) for seat in seats)


def _first_text(context: Context, options: Mapping[str, int]) -> str:
    """The first proposal of whoever begins that can be decided; else any candidate."""
    by_origin = {
        origin: context.candidates[place].id
        for place in options.values()
        for origin in context.candidates[place].origin
    }
    for seat in turns(context):
        if f"{seat}#1" in by_origin:
            return by_origin[f"{seat}#1"]
    return shuffled(context, list(options), "single_text.first")[0]


def _change(
    context: Context, options: Mapping[str, int], text: str, untried: Sequence[str], *, near: bool
) -> str:
    """The next candidate to try: the first that shares an action with the text, or the first."""
    if near:
        held = _actions(context.candidates[options[text]])
        for name in untried:
            if held & _actions(context.candidates[options[name]]):
                return name
    return untried[0]


def _actions(candidate: Candidate) -> set[str]:
    return {action.id for joint in (candidate.now, *candidate.then) for action in joint}


def _count(context: Context, seats: Sequence[str], said: Mapping[str, Reply]) -> _Answers:
    weights = {context.seats[row]: float(context.weights[row]) for row in voters(context)}
    supporters = tuple(seat for seat in seats if said[seat].accept)
    against = sum(weights[seat] for seat in seats if not said[seat].accept)
    return _Answers(supporters, significant(against / sum(weights.values())))


def _keeps(opposed: float, heat: float, draw: float) -> bool:
    if opposed <= 0.0 or opposed >= 0.5:
        return opposed <= 0.0
    return draw < significant(math.exp(-opposed / heat))


def _account(number: int, offer: str, against: str, answers: _Answers, *, kept: bool) -> Round:
    return Round(
        number,
        (
            {
                "kind": "text",
                "candidate": offer,
                "against": against,
                "accepted": list(answers.supporters),
                "opposed": answers.opposed,
                "kept": kept,
            },
        ),
    )
