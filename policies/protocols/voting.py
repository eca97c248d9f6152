"""Scoring rules: each seat gives points to candidates, and the most points win.

Plurality and Borda read the order of a seat's utilities, approval which of them reach a bar;
amounts beyond that count in ties only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, best, one_shot, voters
from policies.protocols.pairwise import duels, spread
from policies.records import Context, Deliberation, sequence_of
from policies.utility import round_significant


class Plurality:
    """Plurality: each seat votes for its favourite; the most votes win.

    Inputs: each seat's highest utility among the admissible candidates. A vote counts the
    seat's weight. A seat that is indifferent between favourites votes by the tie rule below.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the fewer actions; then the smaller id.
    No deal: never while one seat votes.
    Properties: the winner is some voter's favourite, hence Pareto efficient when favourites are
    unique; monotone; vote splitting between similar candidates (clones) can elect what most
    seats like least; not strategy-proof (Gibbard 1973, Satterthwaite 1975).
    Source: first-past-the-post; Brams & Fishburn, "Voting procedures", in Handbook of Social
    Choice and Welfare 1 (2002).
    """

    name = "plurality"
    title = "Plurality: the most favourite-of-a-seat votes"
    description = (
        "Each seat votes, with its weight, for the candidate it values most; the most votes win. "
        "Ties (between favourites and between candidates): within 1e-9, then the higher weighted "
        "sum of utilities, then fewer actions, then the smaller id. No deal: never while one "
        "seat votes. "
        "Source: Brams & Fishburn (2002), Handbook of Social Choice and Welfare 1."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_votes))


def _most_votes(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    votes = np.zeros(len(context.candidates))
    supporters: dict[int, list[str]] = {}
    for row in voters(context):
        favourite, _ = best(context, context.utilities[row], admissible)
        votes[favourite] += context.weights[row]
        supporters.setdefault(favourite, []).append(context.seats[row])

    def why(winner: int) -> str:
        return f"favourite of {sequence_of(supporters.get(winner, []))}"

    return Verdict(round_significant(votes), admissible, why)


class Borda:
    """Borda count: a point for every candidate that a seat ranks below, half a point if level.

    Inputs: the order of each seat's utilities among the admissible candidates (level when at
    most 1e-9 apart). A seat's points count its weight; seats that abstain or weigh 0 give none.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the fewer actions; then the smaller id.
    No deal: never while one seat votes.
    Properties: Pareto efficient; monotone; never elects the Condorcet loser, may miss the
    Condorcet winner; **not** independent of clones: many near-copies of a favourite (composites
    that contain it) lift it, so padding the table pays; open to burying.
    Source: Borda, "Mémoire sur les élections au scrutin" (1781); Young, "An axiomatization of
    Borda's rule", Journal of Economic Theory 9 (1974).
    """

    name = "borda"
    title = "Borda: points for every candidate that a seat ranks below"
    description = (
        "Each seat gives a candidate one point, times the seat's weight, for every other that it "
        "values less, and half a point for one that it values the same; the most points win. "
        "Ties: within 1e-9, then the higher weighted sum of utilities, then fewer actions, "
        "then the smaller id. "
        "No deal: never while one seat votes. Near-copies of a favourite lift it (clones). "
        "Source: Borda (1781); Young (1974), Journal of Economic Theory 9."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_points))


class Approval:
    """Approval voting: each seat approves what is good enough; the most approvals win.

    Inputs: each seat's utilities U of the admissible candidates, their mean, and its
    disagreement value d. A seat approves a candidate when U ≥ max(d, mean), up to 1e-9. An
    approval counts the seat's weight; seats that abstain or weigh 0 give none.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the fewer actions; then the smaller id. Ties are frequent.
    No deal: no seat approves anything, because all is worse to all than no deal.
    Properties: monotone; what wins is not dominated (whatever dominates it has as many approvals
    and a higher weighted sum, which the tie rule prefers); the tie rule decides often; the bar
    moves with the table: padding it with bad candidates lowers the bar.
    Source: Brams & Fishburn, "Approval voting", American Political Science Review 72 (1978); the
    mean as the bar that maximises expected utility when all are as likely: Weber (1977).
    """

    name = "approval"
    title = "Approval: the most seats for which it is good enough"
    description = (
        "A seat approves every candidate whose utility reaches both its mean over the admissible "
        "candidates and its disagreement value; the most approvals, times the seats' weights, "
        "win. Ties (frequent): within 1e-9, then the higher weighted sum of utilities, then the "
        "fewer actions, then the smaller id. No deal when nobody approves anything: the room's "
        "no-deal rule decides. "
        "Source: Brams & Fishburn (1978), American Political Science Review 72."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_approvals))


def _most_points(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    held = duels(context, admissible)
    most = held.weight * (len(held.places) - 1)
    # A seat that prefers a to b adds 1 and not 0; one that does not care adds ½ to both.
    points = 0.5 * (held.margins.sum(axis=1) + most)

    def why(winner: int) -> str:
        mine = points[held.places.index(winner)]
        return f"{mine:.4g} of at most {most:.4g} points"

    return Verdict(round_significant(spread(context, held, points)), admissible, why)


def _most_approvals(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    rows = voters(context)
    approved = np.zeros((len(rows), len(context.candidates)), dtype=np.bool_)
    votes = np.zeros(len(context.candidates))
    for place, row in enumerate(rows):
        bar = approval_bar(context, row, admissible)
        approved[place] = admissible & (context.utilities[row] >= bar - TIE)
        votes += context.weights[row] * approved[place]

    def why(winner: int) -> str:
        if winner < 0:
            return "nobody approves of anything: all is worse than no deal"
        return f"approved by {sequence_of([context.seats[r] for r in _by(winner)])}"

    def _by(winner: int) -> list[int]:
        return [row for row, fine in zip(rows, approved[:, winner].tolist(), strict=True) if fine]

    running = admissible if approved.any() else np.zeros_like(admissible)
    return Verdict(round_significant(votes), running, why)


def approval_bar(context: Context, row: int, admissible: NDArray[np.bool_]) -> float:
    """From which utility on a seat approves: the higher of its mean and its disagreement."""
    # Sorted first: the sum must not depend on the order in which candidates are listed.
    mean = float(np.sort(context.utilities[row, admissible]).mean())
    return max(mean, float(context.disagreement[row]))
