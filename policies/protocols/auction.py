"""Mechanisms in which a seat pays, in influence credits, for what its say costs the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, best, one_shot, voters
from policies.records import Context, Deliberation
from policies.utility import round_significant

CREDITS_PER_STEP = 0.1
"""Default allowance of a seat per step of the horizon, in its own units of utility."""


class VCG:
    """Vickrey-Clarke-Groves: the highest weighted sum, and each seat pays for what it changed.

    Inputs: utilities U (as reported, where the room asks seats to state them), weights w, and
    what each seat has paid in this episode. A seat starts with `credits_per_step` × horizon
    influence credits, counted in its own units of utility. Seats that abstain or weigh 0 have
    no say and pay nothing.
    Rule: a* has the highest Σ w·U. Seat i pays
    (1 ÷ w_i)·[max_a Σ_{j≠i} w_j·U_j(a) − Σ_{j≠i} w_j·U_j(a*)]: what the others lose because it
    is there; 0 unless it changes the outcome, never more than its own range of utilities.
    Out of credits: where a seat cannot pay, its stated range is scaled down to the credits it
    has left and the rule runs again; the decision then says `not truthful`, and which candidate
    would have won.
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the fewer actions; then the smaller id.
    No deal: never while one seat votes.
    Properties: Pareto efficient and, within one step, truthful (no seat gains, payment counted,
    by stating other utilities) while credits last; not across steps, where saving credits may
    pay; not budget balanced (nobody receives the payments); seats that collude can both gain.
    Source: Vickrey (1961), Journal of Finance 16; Clarke, "Multipart pricing of public goods",
    Public Choice 11 (1971); Groves, "Incentives in teams", Econometrica 41 (1973).

    Attributes:
        credits_per_step: Allowance per step of the horizon; a subclass may set another.
    """

    name = "vcg"
    title = "VCG: the highest weighted sum; each seat pays for what it changed"
    description = (
        "The highest weighted sum of utilities wins; a seat that changes the outcome pays what "
        f"the others lose by that, from {CREDITS_PER_STEP:g} credits (its own units of utility) "
        "per step of the horizon. Who cannot pay has its stated range scaled to what is left, "
        "and the decision says not truthful. Ties: within 1e-9, then the higher weighted sum, "
        "then fewer actions, then the smaller id. No deal: never while one seat votes. Source: "
        "Vickrey (1961); "
        "Clarke (1971), Public Choice 11; Groves (1973), Econometrica 41."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()
    credits_per_step: float = CREDITS_PER_STEP

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        rows = voters(context)
        settled: list[Settled] = []

        def rule(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
            settled.append(settle(context, rows, admissible, self.credits_left(context, rows)))
            return settled[0].verdict(context)

        decision = yield from one_shot(self.name, context, rule)
        if not settled:
            return decision
        deal = settled[0]
        instead = context.candidates[deal.unscaled].id
        changed = instead != decision.chosen.id
        return replace(
            decision,
            payments=deal.payments(context),
            overridden_from=instead if changed else "",
            override_rule="influence_credits" if changed else "",
        )

    def credits_left(self, context: Context, rows: Sequence[int]) -> list[float]:
        """Credits that seats still have, in the order of `rows`; never below 0."""
        budget = self.credits_per_step * context.observation.horizon
        left = [budget - context.paid.get(context.seats[row], 0.0) for row in rows]
        return [max(0.0, float(f"{credit:.9g}")) for credit in left]


class Settled(NamedTuple):
    """An outcome with its price.

    Attributes:
        rows: Seats that have a say.
        admissible: bool [n_candidates].
        sums: float64 [n_candidates], weighted sums of what was counted.
        winner: Place of the winner.
        unscaled: Place of the winner if nobody's range had been scaled.
        prices: Credits that each seat of `rows` pays.
        scaled: Seat row → (credits left, stated range), where the range was scaled.
    """

    rows: Sequence[int]
    admissible: NDArray[np.bool_]
    sums: NDArray[np.float64]
    winner: int
    unscaled: int
    prices: list[float]
    scaled: dict[int, tuple[float, float]]

    def payments(self, context: Context) -> dict[str, float]:
        """Seat → credits, for seats that pay something."""
        pairs = zip(self.rows, self.prices, strict=True)
        return {context.seats[row]: price for row, price in pairs if price > 0}

    def verdict(self, context: Context) -> Verdict:
        """The verdict with its reason."""

        def why(winner: int) -> str:
            paid = [f"{seat} pays {price:.3g}" for seat, price in self.payments(context).items()]
            text = f"highest weighted score {self.sums[winner]:.4g}; "
            text += ", ".join(paid) if paid else "nobody pays: no seat alone changes it"
            for row, (left, span) in self.scaled.items():
                text += (
                    f"; not truthful: {context.seats[row]} has {left:.3g} credits left, its "
                    f"stated range of {span:.3g} is scaled to that"
                )
            return text

        return Verdict(self.sums, self.admissible, why)


def settle(
    context: Context,
    rows: Sequence[int],
    admissible: NDArray[np.bool_],
    left: Sequence[float],
) -> Settled:
    """Find the winner and what each seat pays, scaling the ranges of seats that cannot pay.

    Args:
        context: What lies on the table.
        rows: Seats that have a say.
        admissible: bool [n_candidates], not all False.
        left: Credits of each of `rows`.
    """
    counted = [context.utilities[row] for row in rows]
    weights = [float(context.weights[row]) for row in rows]
    scaled: dict[int, tuple[float, float]] = {}
    unscaled = -1
    while True:  # ends: every turn scales a seat that was not scaled before
        sums = _sum(weights, counted)
        winner, _ = best(context, sums, admissible)
        unscaled = winner if unscaled < 0 else unscaled
        prices = clarke_prices(weights, counted, admissible, winner)
        short = [
            place
            for place, row in enumerate(rows)
            if row not in scaled and prices[place] > left[place] + TIE
        ]
        if not short:
            break
        for place in short:
            standing = counted[place][admissible]
            low, span = float(standing.min()), float(standing.max() - standing.min())
            counted[place] = low + (counted[place] - low) * (left[place] / span)
            scaled[rows[place]] = (left[place], span)
    prices = [min(price, credit) for price, credit in zip(prices, left, strict=True)]
    return Settled(rows, admissible, sums, winner, unscaled, prices, scaled)


def clarke_prices(
    weights: Sequence[float],
    values: Sequence[NDArray[np.float64]],
    admissible: NDArray[np.bool_],
    winner: int,
) -> list[float]:
    """What the others lose by each seat's say, in that seat's units, to 9 significant digits.

    Args:
        weights: One per seat, above 0.
        values: One float64 [n_candidates] per seat: its stated utilities.
        admissible: bool [n_candidates].
        winner: Place of the outcome with everybody.

    Source: Clarke (1971), Public Choice 11.
    """
    prices = []
    if len(weights) == 1:
        return [0.0]
    for place, weight in enumerate(weights):
        others = _sum(
            [*weights[:place], *weights[place + 1 :]], [*values[:place], *values[place + 1 :]]
        )
        loss = float(others[admissible].max() - others[winner])
        standing = values[place][admissible]
        # In exact numbers a price never exceeds the range; rounded sums of large ones may differ.
        price = min(loss / weight, float(standing.max() - standing.min()))
        prices.append(float(f"{price:.9g}") if loss > TIE else 0.0)
    return prices


def _sum(weights: Sequence[float], values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Σ weight·value in seat order, to 9 significant digits."""
    total = np.zeros_like(values[0])
    for weight, row in zip(weights, values, strict=True):
        total += weight * row
    return round_significant(total)
