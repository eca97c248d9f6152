"""How a seat gives way in negotiations of several rounds: its target, its bid, its acceptance.

A seat starts by asking for its best and ends, at the deadline, at the least that it accepts (its
reservation). Time is counted in rounds, never in seconds. Pure functions of what lies on the
table and of the offers so far; a protocol never needs them, the voices of seats do.

Sources: Faratin, Sierra & Jennings, "Negotiation decision functions for autonomous agents",
Robotics and Autonomous Systems 24 (1998): time-dependent and imitating tactics; Baarslag,
Hindriks & Jonker, "Effective acceptance conditions in real-time automated negotiation", Decision
Support Systems 60 (2014): AC_next, AC_const, AC_combi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from policies.records import Stakes
from world.errors import ConfigError

Tactic = Literal["boulware", "conceder", "linear", "tit_for_tat", "stubborn"]
Acceptance = Literal["ac_next", "ac_const", "ac_combi"]
Bidding = Literal["joint", "cheapest"]

FAMILY_BETA: Mapping[str, float] = {"boulware": 0.2, "conceder": 5.0}
"""Exponent of a family whose file leaves β at 1, the boundary between the two."""

SAME = 1e-9
"""Utilities closer than this are equal."""


@dataclass(frozen=True, slots=True)
class Concession:
    """A seat's manner of giving way.

    Attributes:
        kind: ``boulware`` (late), ``conceder`` (early), ``linear``, ``tit_for_tat`` (as far as
            the others came towards it) or ``stubborn`` (never).
        beta: Exponent β of the time-dependent tactics, above 0: the target has covered
            ``(t/T)^(1/β)`` of its way after t of T rounds. Where a family's β is left at 1 it is
            0.2 for ``boulware`` and 5 for ``conceder``; ``linear`` is always 1.
        accept: ``ac_next`` (an offer at least as good as the own next bid), ``ac_const``
            (whatever reaches the reservation) or ``ac_combi`` (``ac_next``, or in the second
            half of the time whatever no earlier offer beats).
        bid: Which of the candidates that reach the target is offered: the one that is best for
            the whole room (``joint``), or the one that is worst for itself (``cheapest``).
        min_utility: Share of its own range, 0–1, below which it neither bids nor accepts.

    Raises:
        ConfigError: An unknown word, or a number out of range.
    """

    kind: Tactic = "linear"
    beta: float = 1.0
    accept: Acceptance = "ac_next"
    bid: Bidding = "joint"
    min_utility: float = 0.0

    def __post_init__(self) -> None:
        for name, value, words in (
            ("kind", self.kind, get_args(Tactic)),
            ("accept", self.accept, get_args(Acceptance)),
            ("bid", self.bid, get_args(Bidding)),
        ):
            if value not in words:
                raise ConfigError(
                    f"concession.{name} is {value!r}",
                    "it says how a seat gives way",
                    f"Write one of: {', '.join(words)}",
                )
        if not (0 < self.beta <= 100 and 0 <= self.min_utility <= 1):
            raise ConfigError(
                f"concession: beta is {self.beta}, min_utility is {self.min_utility}",
                "beta is above 0 and at most 100, min_utility is a share from 0 to 1",
                "Correct it",
            )

    @property
    def listens(self) -> bool:
        """Whether it matters to it what was offered before."""
        return self.kind == "tit_for_tat" or self.accept == "ac_combi"

    @property
    def exponent(self) -> float:
        """β as it is used."""
        if self.kind == "linear":
            return 1.0
        return FAMILY_BETA.get(self.kind, 1.0) if self.beta == 1.0 else self.beta


class Offer(NamedTuple):
    """One offer that was made.

    Attributes:
        seat: Who made it.
        candidate: Id of what was offered.
    """

    seat: str
    candidate: str


class Range(NamedTuple):
    """A seat's own range.

    Attributes:
        reservation: The least that it accepts: its disagreement value, or the share
            ``min_utility`` of its range where that is more.
        best: Its highest utility on the table.
    """

    reservation: float
    best: float


def own_range(manner: Concession, stakes: Stakes) -> Range:
    """The least that a seat accepts, and its best; equal where nothing reaches the least."""
    values = stakes.utilities.values()
    low, best = min(values), max(values)
    floor = low + manner.min_utility * (best - low)
    return Range(max(stakes.disagreement, floor), best)


def target(
    manner: Concession,
    stakes: Stakes,
    round_number: int,
    deadline_rounds: int,
    offers: Sequence[Offer] = (),
    seat: str = "",
) -> float:
    """What a seat asks for in a round, in its own utility.

    ``u(t) = r + (max − r)·(1 − (t/T)^(1/β))`` with reservation r: its best before the first
    round, its reservation in the last one. ``tit_for_tat`` comes down by what the others'
    offers have improved for it since their first; ``stubborn`` never. Never rises from round to
    round, and never falls below the reservation.

    Args:
        manner: How the seat gives way.
        stakes: What lies on the table for it.
        round_number: t, 1…; beyond the deadline counts as the deadline.
        deadline_rounds: T, 1….
        offers: Offers so far, in order.
        seat: Which offers are its own.
    """
    reservation, best = own_range(manner, stakes)
    if best <= reservation or manner.kind == "stubborn":
        return best
    if manner.kind == "tit_for_tat":
        heard = [
            stakes.utilities[offer.candidate]
            for offer in offers
            if offer.seat != seat and offer.candidate in stakes.utilities
        ]
        gained = max(heard) - heard[0] if heard else 0.0
        return max(reservation, best - gained)
    passed = min(max(round_number, 0) / max(deadline_rounds, 1), 1.0)
    covered: float = passed ** (1.0 / manner.exponent)
    return reservation + (best - reservation) * (1.0 - covered)


def next_bid(manner: Concession, stakes: Stakes, wanted: float) -> str:
    """What a seat offers when it asks for `wanted`; "" where nothing reaches its reservation.

    Ties: the more welfare (for ``cheapest``: the less own utility first), then the smaller id.
    """
    floor = max(wanted, own_range(manner, stakes).reservation) - SAME
    # In id order, and max() keeps the first of equals, so that the smaller id wins.
    enough = [(value, name) for name, value in stakes.utilities.items() if value >= floor]
    if not enough:
        return ""
    welfare = stakes.welfare
    if manner.bid == "joint":
        return max(enough, key=lambda one: (welfare.get(one[1], 0.0), one[0]))[1]
    return max(enough, key=lambda one: (-one[0], welfare.get(one[1], 0.0)))[1]


class Answer(NamedTuple):
    """What a seat says to an offer.

    Attributes:
        accept: Whether it takes it.
        bid: What it would offer in the round after; "" where it has nothing to offer.
    """

    accept: bool
    bid: str


def answer(
    manner: Concession,
    stakes: Stakes,
    offer: str,
    round_number: int,
    deadline_rounds: int,
    offers: Sequence[Offer] = (),
    seat: str = "",
) -> Answer:
    """A seat's answer to an offer made in a round, and its next bid.

    In the last round there is no next bid to compare with: whatever reaches the reservation is
    better than no deal, except to a stubborn seat, which takes nothing but its best.
    """
    wanted = target(manner, stakes, round_number + 1, deadline_rounds, offers, seat)
    bid = next_bid(manner, stakes, wanted)
    value = stakes.utilities.get(offer)
    reservation, best = own_range(manner, stakes)
    if value is None or value < reservation - SAME:
        return Answer(False, bid)
    if manner.kind == "stubborn":
        return Answer(value >= best - SAME, bid)
    if manner.accept == "ac_const" or round_number >= deadline_rounds:
        return Answer(True, bid)
    if bid and value >= stakes.utilities[bid] - SAME:
        return Answer(True, bid)
    if manner.accept == "ac_combi" and 2 * round_number > deadline_rounds:
        heard = [
            stakes.utilities[made.candidate]
            for made in offers
            if made.seat != seat and made.candidate in stakes.utilities
        ]
        return Answer(value >= max(heard, default=value) - SAME, bid)
    return Answer(False, bid)
