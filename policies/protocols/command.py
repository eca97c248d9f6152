"""Command: one seat decides where the room is in a crisis or cannot agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import (
    Verdict,
    best,
    one_shot,
    voters,
    weighted_sums,
)
from policies.protocols.registry import COMMANDER
from policies.records import Context, Deliberation, sequence_of
from policies.utility import round_significant

SHORTLIST = 5
"""Candidates that the commander chooses from."""


class IncidentCommander:
    """Incident commander: the majority decides in calm, one seat in a crisis or a stalemate.

    Inputs: utilities, weights, and whether there is a crisis (the observation's crisis flag, or
    a visible incident). The commander is the seat with the power to command, whatever its weight;
    without one, the seat with the highest weight (among equals the smaller name). Its choice is
    read from its projected utilities: it is asked nothing (the protocol `commander` asks).
    Rule: without a crisis, a candidate that is the favourite of more than half of the voting
    weight wins. Otherwise the 5 candidates with the highest weighted sums are the shortlist, and
    the commander takes the one that it values most. The reason names what every other seat would
    rather have had of the shortlist; `overridden_from` is what the weighted sum would have chosen
    without a commander.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the fewer actions; then the smaller id. Shortlist: higher weighted sum,
    then smaller id.
    No deal: never while one seat votes. A command is no agreement and is recorded as none.
    Properties: quick; a commander with a weight above 0 never takes what another candidate
    dominates; not anonymous: one seat is a single point of failure.
    Source: Bigley & Roberts, "The incident command system", Academy of Management Journal 44
    (2001); FEMA, National Incident Management System, third edition (2017), Command.
    """

    name = "incident_commander"
    title = "Incident commander: a majority in calm, one seat in a crisis or a stalemate"
    description = (
        "In calm, the favourite of more than half of the voting weight wins. In a crisis, or "
        f"without such a majority, the commander takes what it values most of the {SHORTLIST} "
        "candidates with the highest weighted sums, and the others' objections are named. The "
        "commander is the seat with that power, else the one with the highest weight. Ties: within "
        " 1e-9, then the higher weighted sum, then fewer actions, then the smaller id. No "
        "deal: never while "
        "one seat votes. Source: Bigley & Roberts (2001), Academy of Management Journal 44."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        if not in_crisis(context):
            majority = majority_favourite(context)
            if majority is not None:
                return (yield from one_shot(self.name, context, lambda *_: majority))
        commanded: list[int] = []

        def rule(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
            commanded.append(commander_of(context))
            return _command(context, admissible, commanded[0])

        decision = yield from one_shot(self.name, context, rule)
        if not commanded:
            return decision
        without, _ = best(context, weighted_sums(context), context.admissible)
        instead = context.candidates[without].id
        changed = instead != decision.chosen.id
        return replace(
            decision,
            agreement=False,
            overridden_from=instead if changed else "",
            override_rule=COMMANDER if changed else "",
        )


def in_crisis(context: Context) -> bool:
    """Whether the room sees a crisis or an incident now."""
    return bool(context.observation.facts.get("crisis")) or bool(context.observation.incidents)


def commander_of(context: Context) -> int:
    """Row of the seat that commands. Needs one seat that has a say."""
    if context.commander in context.seats:
        row = context.seats.index(context.commander)
        if not context.ballots[row].abstains:
            return row
    return min(voters(context), key=lambda row: (-context.weights[row], context.seats[row]))


def majority_favourite(context: Context) -> Verdict | None:
    """The verdict of a majority of favourites; None where there is none, or nothing to vote on."""
    rows = voters(context)
    if not rows or not context.admissible.any():
        return None
    votes = np.zeros(len(context.candidates))
    supporters: dict[int, list[str]] = {}
    for row in rows:
        favourite, _ = best(context, context.utilities[row], context.admissible)
        votes[favourite] += context.weights[row]
        supporters.setdefault(favourite, []).append(context.seats[row])
    votes = round_significant(votes)
    if not votes.max() > votes.sum() / 2 + 1e-9:
        return None
    return Verdict(
        votes,
        context.admissible,
        lambda winner: f"a majority's favourite: {sequence_of(supporters[winner])}",
    )


def _command(context: Context, admissible: NDArray[np.bool_], row: int) -> Verdict:
    sums = weighted_sums(context)
    order = sorted(
        np.flatnonzero(admissible).tolist(),
        key=lambda place: (-sums[place], context.candidates[place].id),
    )
    listed = np.zeros(len(context.candidates), dtype=np.bool_)
    listed[order[:SHORTLIST]] = True

    def why(winner: int) -> str:
        cause = "crisis" if in_crisis(context) else "no majority"
        text = f"{cause}: {context.seats[row]} commands, from a shortlist of {int(listed.sum())}"
        return "; ".join([text, *_objections(context, listed, winner, row)])

    out = {context.candidates[place].id: "not on the shortlist" for place in order[SHORTLIST:]}
    return Verdict(context.utilities[row], listed, why, out)


def _objections(
    context: Context, listed: NDArray[np.bool_], winner: int, commander: int
) -> list[str]:
    """What each other seat with a say would rather have had, and by how much."""
    found = []
    for row in voters(context):
        values = context.utilities[row]
        rather, _ = best(context, values, listed)
        loss = float(values[rather] - values[winner])
        if row != commander and loss > 1e-9:
            wish = context.candidates[rather].id
            found.append(f"{context.seats[row]} would rather have {wish} ({loss:.3g} more)")
    return found
