"""What model calls cost: counted per call and seat, and checked against the budget before each.

Dollars are known only where the persona's file names the price of a token; an unknown price is
None, never zero. A call is reserved at the most that it can cost and settled at what it did cost,
so that parallel calls cannot overspend together.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from agents.backends.llm.faults import ModelFault
from policies.records import Usage

_CHARACTERS_PER_TOKEN = 2.0
"""Fewer than any common tokenizer makes of prose, so that a reservation is an upper estimate."""
_MILLION = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model in dollars per million tokens.

    Attributes:
        usd_per_mtok_in: Of prompt tokens; None is not known.
        usd_per_mtok_out: Of completion tokens; None is not known.
    """

    usd_per_mtok_in: float | None = None
    usd_per_mtok_out: float | None = None

    @property
    def known(self) -> bool:
        """Whether a call can be priced."""
        return self.usd_per_mtok_in is not None and self.usd_per_mtok_out is not None

    def usd(self, tokens_in: float, tokens_out: float) -> float | None:
        """Dollars of a call, or None."""
        if self.usd_per_mtok_in is None or self.usd_per_mtok_out is None:
            return None
        return (tokens_in * self.usd_per_mtok_in + tokens_out * self.usd_per_mtok_out) / _MILLION


def added(one: Usage, other: Usage) -> Usage:
    """Two usages together; what is unknown in one is unknown in the sum."""
    if one == Usage():
        return other
    if other == Usage():
        return one
    return Usage(
        one.calls + other.calls,
        one.tokens_in + other.tokens_in,
        one.tokens_out + other.tokens_out,
        None if one.usd is None or other.usd is None else one.usd + other.usd,
        one.latency_ms + other.latency_ms,
    )


class Meter:
    """Counts what each seat spends; one meter a room.

    Args:
        budget_usd: Most that all seats may spend together; None is no limit.
    """

    def __init__(self, budget_usd: float | None = None) -> None:
        self.budget_usd = budget_usd
        self._lock = threading.Lock()
        self._committed_usd = 0.0
        self._seats: dict[str, Usage] = {}

    def reserve(self, price: Price, characters: int, max_tokens: int) -> float:
        """Set aside the most that one call can cost, in dollars.

        Raises:
            ModelFault: ``budget``: what is left does not cover it.
        """
        worst = price.usd(characters / _CHARACTERS_PER_TOKEN, max_tokens) or 0.0
        if self.budget_usd is None:
            return worst
        with self._lock:
            if self.budget_usd <= 0 or self._committed_usd + worst > self.budget_usd:
                raise ModelFault("budget")
            self._committed_usd += worst
        return worst

    def settle(self, seat: str, reserved_usd: float, usage: Usage, *, certain: bool) -> None:
        """Replace a reservation by what a call did cost.

        Args:
            seat: Whose call.
            reserved_usd: What `reserve` gave.
            usage: What it cost; its dollars may be unknown.
            certain: False where the endpoint may have charged without saying so (a time-out):
                the reservation then stands.
        """
        with self._lock:
            if self.budget_usd is not None and certain:
                self._committed_usd += (usage.usd or 0.0) - reserved_usd
            self._seats[seat] = added(self._seats.get(seat, Usage()), usage)

    def restore(self, spent: Mapping[str, Usage]) -> None:
        """Count what a run spent before it was stopped."""
        with self._lock:
            for seat, usage in spent.items():
                self._seats[seat] = added(self._seats.get(seat, Usage()), usage)
                self._committed_usd += usage.usd or 0.0

    @property
    def seats(self) -> Mapping[str, Usage]:
        """Seat → what it has spent."""
        with self._lock:
            return dict(self._seats)

    @property
    def committed_usd(self) -> float:
        """Dollars spent and set aside."""
        return self._committed_usd
