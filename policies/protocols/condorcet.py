"""Condorcet rules: whoever beats every other candidate one to one wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import Verdict, one_shot, weighted_sums
from policies.protocols.pairwise import Duels, duels, spread
from policies.records import Context, Deliberation


class Copeland:
    """Copeland: one point for each candidate beaten one to one, half a point for a draw.

    Inputs: for every two admissible candidates the weight of the seats that prefer the one to
    the other (utilities more than 1e-9 apart). Weights enter the margins; seats that abstain or
    weigh 0 have no say. Only the order of each seat's utilities counts.
    Rule: points over all others, 1 for a positive margin and ½ for none; the most points win.
    Ties: the common rule (higher weighted sum of utilities, then fewer actions, then smaller id);
    ties are frequent
    with few seats.
    No deal: never while one seat votes.
    Properties: elects the Condorcet winner and never the Condorcet loser; the winner is in the
    Smith set and Pareto efficient; monotone; not independent of clones; not strategy-proof.
    Source: Copeland, "A 'reasonable' social welfare function", University of Michigan seminar
    (1951); Saari & Merlin, "The Copeland method", Economic Theory 8 (1996).
    """

    name = "copeland"
    title = "Copeland: the most one-to-one victories"
    description = (
        "Each candidate meets every other one to one; the seats' weights decide. A victory is 1 "
        "point, a draw ½; the most points win. Ties: within 1e-9, then the higher weighted sum "
        "of utilities, then fewer actions, then the smaller id. No deal: never while one seat "
        "votes. "
        "Source: Copeland (1951); Saari & Merlin (1996), Economic Theory 8."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_victories))


class Schulze:
    """Schulze (beatpath): the strongest chains of victories.

    Inputs: as Copeland's: weighted margins between every two admissible candidates.
    Rule: a path from a to b is a chain of victories; it is as strong as its smallest margin.
    a wins when its strongest path to every other is at least as strong as the path back. The
    score is how many others a candidate holds its own against.
    Ties: several winners are common with few seats (margins are often equal); then the common
    rule: higher weighted sum of utilities, then fewer actions, then smaller id.
    No deal: never while one seat votes.
    Properties: elects the Condorcet winner and never the Condorcet loser; in the Smith set;
    Pareto efficient; monotone; independent of clones (up to the tie rule); not strategy-proof.
    Source: Schulze, "A new monotonic, clone-independent, reversal symmetric, and
    Condorcet-consistent single-winner election method", Social Choice and Welfare 36 (2011),
    section 2.3.1 (Floyd-Warshall), margins as strength.
    """

    name = "schulze"
    title = "Schulze: the strongest chains of one-to-one victories"
    description = (
        "Candidates meet one to one by weighted margins. A chain of victories is as strong as its "
        "smallest margin; a candidate wins when no other has a stronger chain to it than it has "
        "back. Ties: the higher weighted sum of utilities, then fewer actions, then the "
        "smaller id. No deal: never "
        "while one seat votes. Source: Schulze (2011), Social Choice and Welfare 36."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _strongest_paths))


class RankedPairs:
    """Ranked pairs (Tideman): lock the clearest victories first, skip what makes a circle.

    Inputs: as Copeland's: weighted margins between every two admissible candidates.
    Rule: victories are taken from the largest margin to the smallest and locked in unless that
    closes a circle of locked victories. Whoever nobody is locked above wins. The score is how
    many others are not above a candidate.
    Ties: of equal margins the victory over the candidate that the common rule likes least comes
    first (lower weighted sum of utilities, then larger id), then the victory of the one that it
    likes most; several candidates with nobody above them tie by the common rule.
    No deal: never while one seat votes.
    Properties: elects the Condorcet winner and never the Condorcet loser; in the Smith set;
    Pareto efficient; monotone and independent of clones (up to the tie rule); not strategy-proof.
    Source: Tideman, "Independence of clones as a criterion for voting rules", Social Choice and
    Welfare 4 (1987); Zavist & Tideman, "Complete independence of clones in the ranked pairs
    rule", Social Choice and Welfare 6 (1989), for ties broken by a fixed order.
    """

    name = "ranked_pairs"
    title = "Ranked pairs: the clearest one-to-one victories first"
    description = (
        "Candidates meet one to one by weighted margins; victories are locked in from the largest "
        "margin down, except where one would close a circle; whoever nobody is above wins. Ties "
        "between margins and between winners: the higher weighted sum of utilities, then the "
        "fewer actions, then the smaller id. No deal: never while one seat votes. "
        "Source: Tideman (1987), Social Choice and Welfare 4; Zavist & Tideman (1989)."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _clearest_first))


def _most_victories(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    held = duels(context, admissible)
    won = (held.margins > 0).sum(axis=1)
    drawn = (held.margins == 0).sum(axis=1) - 1  # nobody meets itself
    points = won + 0.5 * drawn

    def why(winner: int) -> str:
        row = held.places.index(winner)
        return _record(len(held.places), int(won[row]), int(drawn[row]))

    return Verdict(spread(context, held, points), admissible, why)


def _strongest_paths(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    held = duels(context, admissible)
    paths = path_strengths(held.margins)
    own = (paths >= paths.T).sum(axis=1) - 1
    return _holding_its_own(context, admissible, held, own, "no stronger chain of victories back")


def path_strengths(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strength of the strongest chain of victories from each candidate to each other.

    Args:
        margins: float64 [n, n], antisymmetric.

    Returns:
        float64 [n, n]; 0 where there is no chain.
    """
    paths = np.where(margins > 0, margins, 0.0)
    via = np.empty_like(paths)
    for middle in range(len(paths)):
        np.minimum(paths[:, middle, None], paths[middle], out=via)
        np.maximum(paths, via, out=paths)
    np.fill_diagonal(paths, 0.0)
    return paths


def _clearest_first(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    held = duels(context, admissible)
    order = common_order(context, held.places)
    above = locked_above(held.margins, order)
    own = len(held.places) - 1 - np.array([row.bit_count() for row in above])
    return _holding_its_own(context, admissible, held, own, "nobody is locked above it")


def common_order(context: Context, places: list[int]) -> NDArray[np.intp]:
    """Rank of each place under the common tie rule, int [n]: 0 is preferred most."""
    sums = weighted_sums(context)
    rows = sorted(
        range(len(places)),
        key=lambda row: (-sums[places[row]], context.candidates[places[row]].id),
    )
    ranks = np.empty(len(places), dtype=np.intp)
    ranks[rows] = np.arange(len(places))
    return ranks


def locked_above(margins: NDArray[np.float64], order: NDArray[np.intp]) -> list[int]:
    """Lock victories in, the clearest first, without closing a circle.

    Args:
        margins: float64 [n, n], antisymmetric.
        order: int [n], rank of each candidate in the order that breaks ties between margins.

    Returns:
        For each candidate the set of those above it, as bits of one integer.
    """
    winners, losers = np.nonzero(margins > 0)
    sequence = np.lexsort((order[winners], -order[losers], -margins[winners, losers]))
    above = [0] * len(margins)
    below = [0] * len(margins)
    for winner, loser in zip(winners[sequence].tolist(), losers[sequence].tolist(), strict=True):
        if above[winner] >> loser & 1 or above[loser] >> winner & 1:
            continue  # would close a circle, or says nothing new
        over = above[winner] | 1 << winner
        under = below[loser] | 1 << loser
        for place in _bits(under):
            above[place] |= over
        for place in _bits(over):
            below[place] |= under
    return above


def _bits(members: int) -> list[int]:
    found = []
    while members:
        lowest = members & -members
        found.append(lowest.bit_length() - 1)
        members ^= lowest
    return found


def _holding_its_own(
    context: Context,
    admissible: NDArray[np.bool_],
    held: Duels,
    own: NDArray[np.intp],
    rule: str,
) -> Verdict:
    """A verdict for rules whose winners hold their own against every other candidate."""

    def why(winner: int) -> str:
        margins = held.margins[held.places.index(winner)]
        won, lost = int((margins > 0).sum()), int((margins < 0).sum())
        record = _record(len(margins), won, len(margins) - 1 - won - lost)
        return record if won == len(margins) - 1 else f"{rule}; {record}"

    return Verdict(spread(context, held, own.astype(np.float64)), admissible, why)


def _record(candidates: int, won: int, drawn: int) -> str:
    others = candidates - 1
    if won == others:
        return f"beats every other candidate one to one ({others})" if others else "the only one"
    return f"{won} won, {drawn} drawn, {others - won - drawn} lost one to one"
