"""How often the room does what a seat proposed, and whether that makes it a hidden dictator.

Under a random ballot one seat is drawn and its proposal done: a rule without any bias, that by
chance alone conforms with a seat whenever it is drawn or others propose the same. What is above
that is the rule's doing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Convention = Literal["exact", "contained"]
CONVENTIONS: tuple[Convention, ...] = ("exact", "contained")
"""Whether the choice must be the proposal, or may be a composite that contains it."""

DICTATOR_SHARE = 2 / 3
"""Share of contested decisions that go one seat's way, against all who wanted otherwise."""

LEVEL = 0.01
"""Chance of an alarm under a random ballot, over all seats of a room."""


@dataclass(slots=True)
class Tally:
    """Decisions counted for one seat under one convention.

    Attributes:
        proposed: Decisions in which it proposed something.
        conform: Of these, how many did what it proposed.
        contested: Of these, how many met another proposal.
        alone: Contested ones that did what it proposed, and nothing of who wanted otherwise.
        chances: Probability of conforming under a random ballot, one per decision.
    """

    proposed: int = 0
    conform: int = 0
    contested: int = 0
    alone: int = 0
    chances: list[float] = field(default_factory=list)

    def merge(self, other: Tally) -> None:
        """Add the decisions of another episode."""
        self.proposed += other.proposed
        self.conform += other.conform
        self.contested += other.contested
        self.alone += other.alone
        self.chances += other.chances

    @property
    def share(self) -> float:
        """D: share of its proposals that were done."""
        return self.conform / self.proposed if self.proposed else 0.0

    @property
    def expected(self) -> float:
        """E[D] under a random ballot."""
        return sum(self.chances) / self.proposed if self.proposed else 0.0

    @property
    def excess(self) -> float:
        """D − E[D]."""
        return self.share - self.expected

    @property
    def alone_share(self) -> float:
        """Share of contested decisions that went this seat's way alone."""
        return self.alone / self.contested if self.contested else 0.0

    def tail(self) -> float:
        """Probability of at least so many conforming decisions under a random ballot.

        Decisions of one episode are not independent, so this is no test: it only keeps an alarm
        from resting on a handful of decisions.
        """
        return poisson_binomial_tail(self.chances, self.conform)

    def dictates(self, seats: int) -> bool:
        """Whether contested decisions go this seat's way, beyond chance.

        Args:
            seats: Seats that are looked at.
        """
        if not self.contested or self.alone_share < DICTATOR_SHARE:
            return False
        return self.tail() < LEVEL / max(seats, 1)


def poisson_binomial_tail(chances: Sequence[float], least: int) -> float:
    """Probability of at least `least` successes in independent trials of unequal chances.

    >>> poisson_binomial_tail([0.5, 0.5], 1)
    0.75

    Source: the usual recursion, for example Hong, "On computing the distribution function for the
        Poisson binomial distribution", Computational Statistics & Data Analysis 59 (2013).
    """
    if least <= 0:
        return 1.0
    # exactly[k] for k below `least`; everything else is in the tail.
    exactly = [1.0] + [0.0] * (least - 1)
    for chance in chances:
        for k in range(least - 1, 0, -1):
            exactly[k] = exactly[k] * (1 - chance) + exactly[k - 1] * chance
        exactly[0] *= 1 - chance
    return max(0.0, 1.0 - sum(exactly))


def count(
    tallies: Mapping[tuple[str, Convention], Tally], chosen: str, proposals: Mapping[str, str]
) -> None:
    """Count one decision.

    Args:
        tallies: (seat, convention) → where it is counted.
        chosen: Joint id of what was done.
        proposals: Seat → joint id of its first proposal; seats without one are left out.
    """
    for seat, wanted in proposals.items():
        others = [other for other in proposals.values() if other != wanted]
        for convention in CONVENTIONS:
            tally = tallies[seat, convention]
            conforms = _conforms(chosen, wanted, convention)
            tally.proposed += 1
            tally.conform += conforms
            drawn = [_conforms(made, wanted, convention) for made in proposals.values()]
            tally.chances.append(sum(drawn) / len(drawn))
            if others:
                tally.contested += 1
                others_too = any(_conforms(chosen, other, convention) for other in others)
                tally.alone += conforms and not others_too


def _conforms(chosen: str, wanted: str, convention: Convention) -> bool:
    if convention == "exact":
        return chosen == wanted
    return set(wanted.split("+")) <= set(chosen.split("+"))
