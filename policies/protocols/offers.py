"""Alternating offers: one seat offers, the others answer, until all agree or time is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from policies.protocols.common import eliminated, no_deal, opening, voters
from policies.records import Ask, Context, Decision, Deliberation, Reply, Round, sequence_of
from policies.stakes import shuffled, standing
from world.noise import channel, uniforms

ROUNDS = 10
"""Offers before time is up."""


class AlternatingOffers:
    """Alternating offers among many seats: unanimous, with a deadline in rounds.

    Inputs: answers of every seat that has a say. How a seat gives way is its own affair
    (``[concession]`` of its file): a rule persona asks for
    ``u(t) = r + (max − r)·(1 − (t/T)^(1/β))``, offers a candidate that reaches it, and accepts
    what is at least as good as its own next offer (AC_next).
    Rule: in each of T = 10 rounds one seat offers a candidate and the others answer together,
    each with yes or no and with what it would offer itself; the next seat's counter-offer is the
    next offer. Who begins depends on seed and step, then seats take turns in room order. An
    offer that everybody accepts is the decision, and nobody is asked any more.
    Ties: none; an offer is one candidate. A seat that offers nothing spends its turn.
    No deal: when T offers were declined; the room's no-deal rule decides.
    Properties: individually rational for seats that accept nothing below their reservation;
    the order of offers matters, hence the rotation; time is counted in rounds, so that a slow
    seat changes nothing.
    Source: Rubinstein, "Perfect equilibrium in a bargaining model", Econometrica 50 (1982);
    Aydoğan, Festen, Hindriks & Jonker, "Alternating offers protocols for multilateral
    negotiation", in Modern Approaches to Agent-based Complex Automated Negotiation (2017).
    """

    name = "alternating_offers"
    title = "Alternating offers: one seat offers, all others must accept, ten rounds"
    description = (
        "Seats take turns to offer a candidate; the others accept or decline, each with a "
        "counter-offer; an offer that all accept is decided at once. Who begins depends on the "
        "seed. Ties: none, an offer is one candidate. No deal after ten offers: the room's "
        "no-deal rule decides. Rule personas concede as their [concession] says (AC_next). "
        "Source: Rubinstein (1982), Econometrica 50; Aydoğan et al. (2017)."
    )
    worlds: tuple[str, ...] = ()

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.rounds = max(1, rounds)
        self.max_rounds = self.rounds + 1  # the first offer has to be asked for

    def decide(self, context: Context) -> Deliberation:
        """Asks for the first offer, then for answers to one offer a round."""
        early = opening(self.name, context)
        if early is not None:
            return early
        order = turns(context)
        by_name = {context.candidates[place].id: place for place in standing(context)}
        # Each seat reads the candidates in an order of its own, the same in every round.
        listed = {seat: shuffled(context, list(by_name), self.name, seat) for seat in order}
        offers: list[list[str]] = []
        bids: dict[str, str] = {}
        rounds: list[Round] = []
        closest: tuple[int, str] = (-1, "")
        for number in range(1, self.rounds + 1):
            proposer = order[(number - 1) % len(order)]
            if proposer not in bids:
                said = yield (self._ask(proposer, ["", ""], number - 1, offers, listed),)
                bids[proposer] = said[proposer].counter
            bid = bids[proposer]
            if bid not in by_name:
                rounds.append(Round(number, ({"kind": "pass", "seat": proposer},)))
                continue
            others = [seat for seat in order if seat != proposer]
            offers.append([proposer, bid])
            said = {}
            if others:
                said = yield tuple(
                    self._ask(seat, [proposer, bid], number, offers, listed) for seat in others
                )
            accepted = [seat for seat in others if said[seat].accept]
            rounds.append(_account(number, proposer, bid, others, accepted))
            if len(accepted) == len(others):
                return Decision(
                    context.candidates[by_name[bid]],
                    self.name,
                    True,
                    f"offered by {proposer} in round {number} of {self.rounds}; {_agreed(others)}",
                    eliminated=eliminated(context),
                    rounds=tuple(rounds),
                )
            closest = max(closest, (len(accepted), bid), key=lambda pair: pair[0])
            bids.update(_counters(said, others, bid))
        why = f"no offer was accepted by all in {self.rounds} rounds{_nearest(closest, order)}"
        decision = yield from no_deal(self.name, context, why, {})
        return replace(decision, rounds=joined(rounds, decision.rounds))

    def _ask(
        self,
        seat: str,
        offer: Sequence[str],
        number: int,
        offers: Sequence[Sequence[str]],
        listed: Mapping[str, Sequence[str]],
    ) -> Ask:
        """Round 0 asks for the first offer: there is nothing to answer yet."""
        return Ask(
            seat,
            "respond",
            {
                "protocol": self.name,
                "offer": offer[1],
                "by": offer[0],
                "round": number,
                "deadline": self.rounds,
                "offers": [list(made) for made in offers],
                "candidates": listed[seat],
            },
        )


def joined(rounds: Sequence[Round], further: Sequence[Round]) -> tuple[Round, ...]:
    """Rounds, and those of whatever decided after them, numbered on."""
    before = rounds[-1].number if rounds else 0
    return (*rounds, *(replace(entry, number=before + entry.number) for entry in further))


def turns(context: Context) -> list[str]:
    """Seats that have a say, in the order in which they offer: room order, begun anywhere."""
    seats = [context.seats[row] for row in voters(context)]
    draw = uniforms(context.seed, np.uint64(0), channel("offers.first"), context.step)
    first = int(float(draw[0]) * len(seats))
    return seats[first:] + seats[:first]


def _counters(said: Mapping[str, Reply], others: Sequence[str], bid: str) -> list[tuple[str, str]]:
    """What each seat would offer next; who accepts and says nothing would offer the same."""
    return [(seat, said[seat].counter or (bid if said[seat].accept else "")) for seat in others]


def _account(
    number: int, proposer: str, bid: str, others: Sequence[str], accepted: Sequence[str]
) -> Round:
    return Round(
        number,
        (
            {
                "kind": "offer",
                "seat": proposer,
                "candidate": bid,
                "accepted": list(accepted),
                "declined": [seat for seat in others if seat not in accepted],
            },
        ),
    )


def _agreed(others: Sequence[str]) -> str:
    if not others:
        return "nobody else has a say"
    return f"{sequence_of(others)} {'accepts' if len(others) == 1 else 'accept'}"


def _nearest(closest: tuple[int, str], order: Sequence[str]) -> str:
    if closest[0] <= 0:
        return ""
    return f"; {closest[1]} came nearest, with {closest[0] + 1} of {len(order)} seats"
