"""Bargaining rules: what each seat gains over having no deal decides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, one_shot, voters
from policies.records import Context, Deliberation, sequence_of
from policies.utility import round_significant


class Nash:
    """Nash bargaining: the highest product of gains over the disagreement.

    Inputs: utilities U, weights w and each seat's disagreement value d; gains G = U − d, rounded
    to 9 significant digits, where less than 1e-9 is no gain and no loss. Seats that abstain or
    weigh 0 have no say.
    Rule: among candidates that leave no seat below its disagreement and give some seat a gain,
    first the most seats that gain, then the highest Σ w·ln G over those that gain (maximum Nash
    welfare; the product is defined although some gains are 0).
    Ties: values within 1e-9 after rounding to 9 significant digits; then the higher weighted
    sum of utilities; then the smaller id.
    No deal: no such candidate; then the room's no-deal rule decides and says so.
    Properties: individually rational; Pareto efficient among individually rational candidates;
    independent of each seat's scale and origin; not monotone (Kalai & Smorodinsky 1975); the
    bargaining set is often empty when seats oppose each other.
    Source: Nash, "The bargaining problem", Econometrica 18 (1950); Kaneko & Nakamura, "The Nash
    social welfare function", Econometrica 47 (1979); Caragiannis et al., "The unreasonable
    fairness of maximum Nash welfare", ACM TEAC 7 (2019).
    """

    name = "nash"
    title = "Nash bargaining: the highest product of gains over no deal"
    description = (
        "Among candidates that leave no seat below its disagreement value: the most seats with "
        "a gain, then the highest sum of weight × ln(gain). Ties: within 1e-9, then the higher "
        "weighted sum of utilities, then the smaller id. No deal when no candidate is that good: "
        "the room's no-deal rule decides. "
        "Source: Nash (1950), Econometrica 18; Caragiannis et al. (2019), ACM TEAC 7."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _highest_product))


def gains_over_no_deal(context: Context, rows: tuple[int, ...]) -> NDArray[np.float64]:
    """Gains of some seats, float64 [len(rows), n_candidates]; within 1e-9 of 0 is 0."""
    places = list(rows)
    gains = round_significant(context.utilities[places] - context.disagreement[places, None])
    return np.where(np.abs(gains) <= TIE, 0.0, gains)


def _highest_product(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    rows = voters(context)
    gains = gains_over_no_deal(context, rows)
    gaining = (gains > 0).sum(axis=0)
    rational = admissible & (gains >= 0).all(axis=0) & (gaining > 0)
    out: dict[str, str] = {}
    for place in np.flatnonzero(admissible & ~rational).tolist():
        losers = [
            context.seats[row] for row, gain in zip(rows, gains[:, place], strict=True) if gain < 0
        ]
        out[context.candidates[place].id] = (
            f"below the disagreement of {sequence_of(losers)}" if losers else "nobody gains"
        )
    if not rational.any():
        return Verdict(
            np.zeros(len(context.candidates)),
            rational,
            lambda _: _nobody_agrees(context, rows, gains[:, admissible]),
            out,
        )
    most = int(gaining[rational].max())
    running = rational & (gaining == most)
    for place in np.flatnonzero(rational & ~running).tolist():
        out[context.candidates[place].id] = (
            f"{gaining[place]} of {len(rows)} seats gain, not {most}"
        )
    logs = np.log(np.where(gains > 0, gains, 1.0))
    welfare = np.zeros(len(context.candidates))
    for row, seat in enumerate(rows):
        welfare += context.weights[seat] * logs[row]
    welfare = round_significant(welfare)

    def why(winner: int) -> str:
        return f"{most} of {len(rows)} seats gain, Σ weight·ln(gain) = {welfare[winner]:.4g}"

    return Verdict(welfare, running, why, out)


def _nobody_agrees(context: Context, rows: tuple[int, ...], gains: NDArray[np.float64]) -> str:
    """Why there is no deal, naming who would be worse off in how many candidates."""
    worse = (gains < 0).sum(axis=1).tolist()
    seats = [
        f"{context.seats[row]} would be worse off in {count} of {gains.shape[1]}"
        for row, count in zip(rows, worse, strict=True)
        if count
    ]
    return f"no candidate is a gain to some and a loss to none ({'; '.join(seats) or 'no gains'})"
