"""Hierarchy: an incident commander decides in a crisis, and where the room finds no deal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from policies.protocols.common import TIE, best, eliminated, opening, voters, weighted_sums
from policies.protocols.registry import COMMANDER, protocol
from policies.records import Ask, Context, Decision, Deliberation, Round
from policies.stakes import hundredths, shares, shuffled, standing
from world.model import Observation, significant

SHORTLIST = 8
"""Most candidates that a commander chooses from."""


class Commander:
    """Incident command: the room negotiates; in a crisis or without a deal, one seat decides.

    Inputs: ballots; the answer of the seat whose file says ``[powers] commander = true``.
    Rule: Nash bargaining decides as long as there is no crisis (an open incident, or the
    world's own crisis flag) and it finds a deal. Else the commander picks from a shortlist of at
    most eight: every voter's favourite, what would be decided without a commander, and the
    highest weighted sums. What the losers object (what each would have preferred, and what it
    loses) and what would have been decided without a commander are recorded with the decision.
    Ties: those of the negotiation; a commander picks one candidate.
    No deal: never; where the commander names no candidate of the list, the highest weighted sum
    is decided, and the fault is recorded.
    Properties: always decides, at the price of a single point of failure; as good as its
    commander.
    Source: the incident command system (NIMS; Beyer et al., "Site Reliability Engineering",
    2016, chapter 14); Nash, "The bargaining problem", Econometrica 18 (1950).
    """

    name = COMMANDER
    title = "Incident command: one seat decides in a crisis or where there is no deal"
    description = (
        "Nash bargaining decides; in a crisis, or without a deal, the seat with "
        "[powers] commander = true picks from a shortlist of at most eight candidates. The "
        "losers' objections and the decision without a commander are recorded. Ties: those of "
        "the negotiation. No deal: never. Source: NIMS incident command; Beyer et al. (2016), "
        "Site Reliability Engineering, chapter 14."
    )
    max_rounds = 1
    worlds: tuple[str, ...] = ()
    needs = "commander"

    def __init__(self, base: str = "nash") -> None:
        self.base = base

    def decide(self, context: Context) -> Deliberation:
        """Asks the commander once, or nobody."""
        early = opening(self.name, context)
        if early is not None:
            return early
        plain = yield from protocol(self.base).decide(replace(context, no_deal="weighted_score"))
        crisis = in_crisis(context.observation)
        if not context.commander or (plain.agreement and not crisis):
            return replace(plain, reason=f"no command needed: {plain.reason}")
        why = f"crisis ({crisis})" if crisis else f"no deal under {self.base}"
        return (yield from _commanded(self.name, context, why, plain))


def command(name: str, context: Context, why: str, out: Mapping[str, str]) -> Deliberation:
    """The no-deal rule ``commander``: the commander's seat decides what `name` could not.

    Args:
        name: The protocol that found no deal.
        context: What lies on the table.
        why: Why there is no deal, one line.
        out: Candidate id → why the protocol took it out; the commander may still pick it.
    """
    del out
    plain = yield from protocol("weighted_score").decide(replace(context, no_deal="weighted_score"))
    decision = yield from _commanded(name, context, f"no deal under {name}: {why}", plain)
    return replace(decision, protocol=COMMANDER, no_deal=COMMANDER)


def in_crisis(observation: Observation) -> str:
    """What makes this moment a crisis, in one word; "" where nothing does."""
    if observation.incidents:
        return f"{len(observation.incidents)} open"
    flags = sorted(name for name in observation.facts if name.startswith("crisis"))
    return next((name for name in flags if observation.facts[name] is True), "")


def _commanded(name: str, context: Context, why: str, plain: Decision) -> Deliberation:
    seat = context.commander
    places = {context.candidates[place].id: place for place in standing(context)}
    listed = shuffled(context, _shortlist(context, plain), COMMANDER)
    columns = [places[option] for option in listed]
    worth = shares(context)[:, columns]
    ballots = {
        context.seats[row]: [hundredths(value) for value in worth[row].tolist()]
        for row in voters(context)
    }
    payload = {"protocol": COMMANDER, "why": why, "candidates": listed, "ballots": ballots}
    replies = yield (Ask(seat, "pick", payload),)
    choice = replies[seat].choice
    fault = ""
    if choice not in listed:
        fault = f"the commander {seat} named no candidate of the list; weighted_score decided"
        sums = weighted_sums(context)
        place, _ = best(context, sums, context.admissible)
        choice = context.candidates[place].id
    chosen = context.candidates[places[choice]]
    objections = _objections(context, places[choice])
    events: list[Mapping[str, Any]] = [
        {"kind": "command", "seat": seat, "candidate": choice, "why": why},
        {"kind": "without_commander", "candidate": plain.chosen.id, "protocol": plain.protocol},
        *objections,
    ]
    against = ", ".join(f"{entry['seat']} wanted {entry['prefers']}" for entry in objections)
    return Decision(
        chosen,
        name,
        False,
        f"{why}; {fault or f'commanded by {seat}'}"
        + (f"; {against}" if against else "; nobody objects"),
        eliminated=eliminated(context),
        rounds=(Round(1, tuple(events)),),
        overridden_from=plain.chosen.id if plain.chosen.id != choice else "",
        override_rule=COMMANDER if plain.chosen.id != choice else "",
        faults=(fault,) if fault else (),
    )


def _shortlist(context: Context, plain: Decision) -> list[str]:
    """At most `SHORTLIST` ids: what stands without a command, favourites, then the best sums."""
    wanted = {plain.chosen.id: None}
    for row in voters(context):
        favourite, _ = best(context, context.utilities[row], context.admissible)
        wanted[context.candidates[favourite].id] = None
    sums = weighted_sums(context)
    ranked = sorted(standing(context), key=lambda p: (-sums[p], context.candidates[p].id))
    for place in ranked:
        wanted[context.candidates[place].id] = None
    return list(wanted)[:SHORTLIST]


def _objections(context: Context, chosen: int) -> list[dict[str, Any]]:
    """What each seat that had a say would have preferred, and what it loses; in room order."""
    entries = []
    for row in voters(context):
        values = context.utilities[row]
        favourite, _ = best(context, values, context.admissible)
        loss = float(values[favourite] - values[chosen])
        if loss <= TIE:
            continue
        entries.append(
            {
                "kind": "objection",
                "seat": context.seats[row],
                "prefers": context.candidates[favourite].id,
                "loses": significant(loss),
                "below_no_deal": bool(
                    values[chosen] < context.disagreement[row] - TIE and np.isfinite(values[chosen])
                ),
            }
        )
    return entries
