"""What every protocol shares: vetoes first, one tie rule, one no-deal rule.

1. Infeasible and vetoed candidates are out before anything is counted, and recorded.
2. Ties: the tie set is every value within 1e-9 of the best, after rounding to 9 significant
   digits; then the higher weighted sum of utilities; then the fewer actions now (what helps
   nobody is not done); then the smaller id. Sums run in seat order. The order of a dict or of
   a list never decides.
3. No deal: the room's rule decides (doing nothing where the world has it, or another protocol).
4. Everything vetoed: doing nothing; where the world cannot, the candidate with the fewest
   weighted vetoes, then the higher weighted sum, then the smaller id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.candidates import MANDATORY
from policies.records import Candidate, Context, Decision, Deliberation
from policies.utility import round_significant
from world.actions import NOP
from world.errors import NoAgreementError

TIE = 1e-9
"""Values closer than this are equal."""


class Verdict(NamedTuple):
    """What a one-shot rule says.

    Attributes:
        scores: float64 [n_candidates], the rule's own score, rounded to 9 significant digits;
            read where `running`.
        running: bool [n_candidates], who is in the running. Nobody means no deal.
        why: How the winner won, one line; or why there is no deal.
        out: Candidate id → why the rule itself took it out.
        first: bool [n_candidates], who comes first, all of them in the running; None is whoever
            is within a tie of the highest score. For rules whose order is not one number.
    """

    scores: NDArray[np.float64]
    running: NDArray[np.bool_]
    why: Callable[[int], str]
    out: Mapping[str, str] = {}
    first: NDArray[np.bool_] | None = None


Rule = Callable[[Context, NDArray[np.bool_]], Verdict]


def one_shot(name: str, context: Context, rule: Rule) -> Deliberation:
    """Play a rule that needs no asks.

    Args:
        name: The protocol's name.
        context: What lies on the table.
        rule: From the context and the mask of admissible candidates to a verdict.
    """
    early = opening(name, context)
    if early is not None:
        return early
    verdict = rule(context, context.admissible)
    if not verdict.running.any():
        return (yield from no_deal(name, context, verdict.why(-1), verdict.out))
    if verdict.first is None:
        winner, tie = best(context, verdict.scores, verdict.running)
    else:
        winner, tie = break_tie(context, np.flatnonzero(verdict.first).tolist())
    scores = verdict.scores.tolist()
    return Decision(
        chosen=context.candidates[winner],
        protocol=name,
        agreement=True,
        reason=verdict.why(winner),
        scores={
            candidate.id: scores[place]
            for place, (candidate, runs) in enumerate(
                zip(context.candidates, verdict.running.tolist(), strict=True)
            )
            if runs
        },
        eliminated={**eliminated(context), **verdict.out},
        tie=tie,
    )


def opening(name: str, context: Context) -> Decision | None:
    """What is decided before any counting: nothing to choose, all vetoed, or nobody votes."""
    only = context.candidates[0] if len(context.candidates) == 1 else None
    if only is not None and MANDATORY in only.origin:
        return Decision(only, name, True, "mandatory: the world leaves no choice in this step")
    if not context.admissible.any():
        return all_vetoed(name, context)
    if not voters(context):
        place = _nop(context, context.admissible)
        chosen = context.candidates[place] if place >= 0 else smallest(context, context.admissible)
        return Decision(
            chosen,
            name,
            False,
            "no seat has an objective that this world measures",
            eliminated=eliminated(context),
            no_deal="nobody_votes",
        )
    return None


def voters(context: Context) -> tuple[int, ...]:
    """Seats that have a say: a weight above 0 and no abstention."""
    return tuple(
        row
        for row, ballot in enumerate(context.ballots)
        if not ballot.abstains and context.weights[row] > 0
    )


def weighted_sums(context: Context) -> NDArray[np.float64]:
    """Σ weight·utility per candidate, added up in seat order, to 9 significant digits.

    Returns:
        float64 [n_candidates]; NaN where a candidate was not projected.
    """
    total = np.zeros(len(context.candidates))
    for row, weight in enumerate(context.weights.tolist()):
        total += weight * context.utilities[row]
    return round_significant(total)


def best(
    context: Context, scores: NDArray[np.float64], running: NDArray[np.bool_]
) -> tuple[int, tuple[str, ...]]:
    """The winner under the one tie rule, and the ids that tied (empty when none did).

    Args:
        context: What lies on the table.
        scores: float64 [n_candidates], rounded to 9 significant digits.
        running: bool [n_candidates], not all False.
    """
    values = np.where(running, scores, -np.inf)
    return break_tie(context, np.flatnonzero(running & (values >= values.max() - TIE)).tolist())


def break_tie(context: Context, tied: Sequence[int]) -> tuple[int, tuple[str, ...]]:
    """The winner among places that tie, and their ids, sorted (empty where only one is left)."""
    if len(tied) == 1:
        return tied[0], ()
    sums = weighted_sums(context)
    candidates = context.candidates
    winner = min(
        tied, key=lambda place: (-sums[place], effort(candidates[place]), candidates[place].id)
    )
    return winner, tuple(sorted(candidates[place].id for place in tied))


def effort(candidate: Candidate) -> int:
    """Actions that a candidate takes now; doing nothing is none."""
    return sum(action.kind != NOP for action in candidate.now)


def leximin(values: NDArray[np.float64], running: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Who is leximin-best: the worst-off seat first, then the second worst-off, and so on.

    Values within 1e-9 are equal at every level, and a level decides only among those that are
    equal on the levels before.

    Args:
        values: float64 [n_seats, n_candidates], rounded to 9 significant digits.
        running: bool [n_candidates], not all False.

    Returns:
        bool [n_candidates], at least one True.

    Source: Sen, "Collective Choice and Social Welfare" (1970), chapter 9.
    """
    first = running.copy()
    for level in np.sort(values, axis=0):
        top = np.where(first, level, -np.inf).max()
        first &= level >= top - TIE
    return first


def smallest(context: Context, among: NDArray[np.bool_]) -> Candidate:
    """The candidate with the smallest id."""
    standing = [context.candidates[place] for place in np.flatnonzero(among).tolist()]
    return min(standing, key=lambda candidate: candidate.id)


def eliminated(context: Context) -> dict[str, str]:
    """Candidate id → why it never was in the running: guardrails, then vetoes in seat order."""
    out: dict[str, str] = {}
    for candidate in context.candidates:
        if not candidate.feasible:
            out[candidate.id] = "; ".join(candidate.reasons) or "infeasible"
    for ballot in context.ballots:
        for name, veto in ballot.vetoes.items():
            if name not in out:
                out[name] = f"vetoed by {ballot.seat} ({veto.rule}): {veto.reason}"
    return out


def no_deal(name: str, context: Context, why: str, out: Mapping[str, str]) -> Deliberation:
    """Let the room's no-deal rule decide.

    Args:
        name: The protocol that found no deal.
        context: What lies on the table.
        why: Why there is no deal, one line.
        out: Candidate id → why the protocol took it out. A protocol that decides in its stead
            puts these candidates back into the running.
    """
    from policies.protocols.registry import COMMANDER, protocol

    place = _nop(context, context.admissible) if context.no_deal == NOP else -1
    if place >= 0:
        chosen = context.candidates[place]
        out = {name: reason for name, reason in out.items() if name != chosen.id}
        return Decision(
            chosen,
            name,
            False,
            f"no deal: {why}; the room does nothing",
            eliminated={**out, **eliminated(context)},
            no_deal=NOP,
        )
    if context.no_deal == COMMANDER and context.commander and context.admissible.any():
        from policies.protocols.hierarchy import command

        return (yield from command(name, context, why, out))
    # "nop" falls through where the world cannot stand still or where nop itself is vetoed.
    plain = context.no_deal in {NOP, COMMANDER, name}
    fallback = "weighted_score" if plain else context.no_deal
    inner = replace(context, no_deal="weighted_score")
    decision = yield from protocol(fallback).decide(inner)
    return replace(
        decision,
        agreement=False,
        reason=f"no deal under {name}: {why}; {decision.protocol}: {decision.reason}",
        no_deal=fallback,
    )


def all_vetoed(name: str, context: Context) -> Decision:
    """Decide although every feasible candidate is vetoed.

    Raises:
        NoAgreementError: Not even one candidate is feasible.
    """
    feasible = np.array([candidate.feasible for candidate in context.candidates], dtype=np.bool_)
    if not feasible.any():
        raise NoAgreementError(
            f"step {context.step + 1}: there is nothing that this room may do",
            "every candidate is refused by the guardrails and the world cannot stand still",
            "Loosen the guardrails (blast radius, oscillation), or let seats propose other actions",
        )
    place = _nop(context, feasible)
    why = "every candidate is vetoed; the room does nothing"
    if place < 0:
        sums = weighted_sums(context)
        against = [
            sum(
                weight
                for ballot, weight in zip(context.ballots, context.weights.tolist(), strict=True)
                if candidate.id in ballot.vetoes
            )
            for candidate in context.candidates
        ]
        place = min(
            np.flatnonzero(feasible).tolist(),
            key=lambda row: (against[row], -sums[row], context.candidates[row].id),
        )
        why = (
            f"every candidate is vetoed and the world cannot stand still; this one has the "
            f"fewest weighted vetoes ({against[place]:g})"
        )
    return Decision(
        context.candidates[place],
        name,
        False,
        why,
        eliminated=eliminated(context),
        no_deal="all_vetoed",
    )


def _nop(context: Context, among: NDArray[np.bool_]) -> int:
    """Place of doing nothing, or -1."""
    for place, candidate in enumerate(context.candidates):
        if among[place] and len(candidate.now) == 1 and candidate.now[0].kind == NOP:
            return place
    return -1
