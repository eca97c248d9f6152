"""Mediation: a seat without a stake reads all ballots and picks one candidate."""

from __future__ import annotations

from dataclasses import replace

from policies.protocols.common import eliminated, no_deal, opening, voters
from policies.records import Ask, Context, Decision, Deliberation, Round
from policies.stakes import hundredths, shares, shuffled, standing


class Mediator:
    """Mediation: one seat is shown every candidate and every ballot, and picks.

    Inputs: ballots; the answer of the seat whose file says ``[powers] mediator = true``.
    Rule: the mediator gets the admissible candidates in an order that depends on seed and step
    only, and for each seat that has a say its ballot over them (0 its worst to 1 its best). What
    it picks is decided.
    Ties: none; it picks one candidate.
    No deal: it picks nothing that is on the list, or nobody mediates; the room's no-deal rule
    decides and the fault is recorded.
    Properties: can decide nothing that is vetoed or not on the table, whatever it says; as fair
    as its mediator; who reads a list tends to prefer what stands first, hence the seeded order.
    Source: Moore, "The Mediation Process" (1986); Zheng et al., "Judging LLM-as-a-judge", NeurIPS
    36 (2023), on position bias.
    """

    name = "mediator"
    title = "Mediation: a seat without a stake reads all ballots and picks"
    description = (
        "The seat with [powers] mediator = true is shown all admissible candidates, in a seeded "
        "order, with every seat's ballot; what it picks is decided. Ties: none, it picks one "
        "candidate. No deal: it names nothing on the list; the room's no-deal rule decides, and "
        "the fault is recorded. Source: Moore (1986), The Mediation Process; Zheng et al. (2023), "
        "NeurIPS 36, on position bias."
    )
    max_rounds = 1
    worlds: tuple[str, ...] = ()
    needs = "mediator"

    def decide(self, context: Context) -> Deliberation:
        """Asks the mediator once."""
        early = opening(self.name, context)
        if early is not None:
            return early
        seat = context.mediator
        if not seat:
            return (yield from no_deal(self.name, context, "nobody mediates", {}))
        places = {context.candidates[place].id: place for place in standing(context)}
        listed = shuffled(context, list(places), self.name)
        worth = shares(context)[:, [places[name] for name in listed]]
        parties = voters(context)
        ballots = {
            context.seats[row]: [hundredths(value) for value in worth[row].tolist()]
            for row in parties
        }
        payload = {"protocol": self.name, "candidates": listed, "ballots": ballots}
        replies = yield (Ask(seat, "pick", payload),)
        choice = replies[seat].choice
        if choice not in places:
            fault = f"the mediator {seat} named no candidate of the list"
            decision = yield from no_deal(self.name, context, fault, {})
            return replace(decision, faults=(fault, *decision.faults))
        column = listed.index(choice)
        got = {context.seats[row]: hundredths(float(worth[row, column])) for row in parties}
        event = {"kind": "mediation", "seat": seat, "candidate": choice, "shares": got}
        told = ", ".join(f"{party} {share:g}" for party, share in got.items())
        return Decision(
            context.candidates[places[choice]],
            self.name,
            True,
            f"picked by {seat}; of 0 (worst) to 1 (best) it gives {told}",
            eliminated=eliminated(context),
            rounds=(Round(1, (event,)),),
        )
