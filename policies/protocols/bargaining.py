"""Bargaining rules: what each seat gains over having no deal decides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.protocols.common import TIE, Verdict, leximin, one_shot, voters
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
    sum of utilities; then the fewer actions; then the smaller id.
    No deal: no such candidate; then the room's no-deal rule decides and says so.
    Properties: individually rational; Pareto efficient among individually rational candidates;
    independent of each seat's scale and origin where every seat gains; not monotone (Kalai &
    Smorodinsky 1975); the bargaining set is often empty when seats oppose each other.
    Source: Nash, "The bargaining problem", Econometrica 18 (1950); Kaneko & Nakamura, "The Nash
    social welfare function", Econometrica 47 (1979); Caragiannis et al., "The unreasonable
    fairness of maximum Nash welfare", ACM TEAC 7 (2019).
    """

    name = "nash"
    title = "Nash bargaining: the highest product of gains over no deal"
    description = (
        "Among candidates that leave no seat below its disagreement value: the most seats with "
        "a gain, then the highest sum of weight × ln(gain). Ties: within 1e-9, then the higher "
        "weighted sum of utilities, then fewer actions, then the smaller id. No deal when no "
        "candidate is that good: "
        "the room's no-deal rule decides. "
        "Source: Nash (1950), Econometrica 18; Caragiannis et al. (2019), ACM TEAC 7."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _highest_product))


class KalaiSmorodinsky:
    """Kalai–Smorodinsky bargaining: every seat the same share of the most it could gain.

    Inputs: utilities U, disagreement values d, gains G = U − d as in Nash bargaining. A weight
    above 0 is a say and no more; seats that abstain or weigh 0 have none.
    Rule: among candidates that leave no seat below its disagreement and give some seat a gain, a
    seat's ideal is its highest gain there, and its share of a candidate is G ÷ ideal (1 where
    the ideal is 0). The highest smallest share wins; among equals the highest second smallest …
    (the discrete form: equal shares seldom exist among a few candidates). The score is the
    smallest share.
    Ties: share vectors equal within 1e-9 at every level; then the higher weighted sum of
    utilities; then fewer actions, then the smaller id.
    No deal: no such candidate; then the room's no-deal rule decides and says so.
    Properties: individually rational; Pareto efficient; anonymous; independent of each seat's
    scale and origin; monotone while the ideals stay the same; what is irrational to somebody
    cannot move the ideals; the bargaining set is often empty when seats oppose each other.
    Source: Kalai & Smorodinsky, "Other solutions to Nash's bargaining problem", Econometrica 43
    (1975); Imai, "Individual monotonicity and lexicographic maxmin solution", Econometrica 51
    (1983), for the lexicographic form with more than two seats.
    """

    name = "kalai_smorodinsky"
    title = "Kalai-Smorodinsky bargaining: equal shares of what each could gain"
    description = (
        "Among candidates that leave no seat below its disagreement value: each seat's gain as a "
        "share of the highest gain that it could have there; the highest smallest share wins, "
        "then the second smallest, and so on. Ties: within 1e-9, then the higher weighted sum of "
        "utilities, then fewer actions, then the smaller id. No deal when no candidate is that "
        "good: the room's "
        "no-deal rule decides. "
        "Source: Kalai & Smorodinsky (1975), Econometrica 43; Imai (1983), Econometrica 51."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        return (yield from one_shot(self.name, context, _most_equal_shares))


def gains_over_no_deal(context: Context, rows: tuple[int, ...]) -> NDArray[np.float64]:
    """Gains of some seats, float64 [len(rows), n_candidates]; within 1e-9 of 0 is 0."""
    places = list(rows)
    gains = round_significant(context.utilities[places] - context.disagreement[places, None])
    return np.where(np.abs(gains) <= TIE, 0.0, gains)


class Rational(NamedTuple):
    """Who is better than no deal.

    Attributes:
        gains: float64 [n_voters, n_candidates] over the disagreement.
        gaining: int [n_candidates], seats that gain.
        running: bool [n_candidates]: admissible, a loss to none and a gain to some.
        out: Candidate id → why an admissible candidate is not.
    """

    gains: NDArray[np.float64]
    gaining: NDArray[np.intp]
    running: NDArray[np.bool_]
    out: dict[str, str]


def individually_rational(
    context: Context, rows: tuple[int, ...], admissible: NDArray[np.bool_]
) -> Rational:
    """Sort out what leaves a seat below its disagreement or is a gain to nobody."""
    gains = gains_over_no_deal(context, rows)
    losing = gains < 0
    gaining = (gains > 0).sum(axis=0)
    running = admissible & ~losing.any(axis=0) & (gaining > 0)
    texts: dict[tuple[bool, ...], str] = {}
    out: dict[str, str] = {}
    places = np.flatnonzero(admissible & ~running)
    for place, loses in zip(places.tolist(), losing[:, places].T.tolist(), strict=True):
        who = tuple(loses)
        if who not in texts:
            losers = [context.seats[row] for row, lost in zip(rows, who, strict=True) if lost]
            texts[who] = (
                f"below the disagreement of {sequence_of(losers)}" if losers else "nobody gains"
            )
        out[context.candidates[place].id] = texts[who]
    return Rational(gains, gaining, running, out)


def _without_deal(
    context: Context, rows: tuple[int, ...], admissible: NDArray[np.bool_], found: Rational
) -> Verdict:
    return Verdict(
        np.zeros(len(context.candidates)),
        found.running,
        lambda _: _nobody_agrees(context, rows, found.gains[:, admissible]),
        found.out,
    )


def _highest_product(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    rows = voters(context)
    found = individually_rational(context, rows, admissible)
    gains, gaining, rational, out = found
    if not rational.any():
        return _without_deal(context, rows, admissible, found)
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


def _most_equal_shares(context: Context, admissible: NDArray[np.bool_]) -> Verdict:
    rows = voters(context)
    found = individually_rational(context, rows, admissible)
    if not found.running.any():
        return _without_deal(context, rows, admissible, found)
    ideals = found.gains[:, found.running].max(axis=1)[:, None]
    shares = np.where(ideals > 0, found.gains / np.where(ideals > 0, ideals, 1.0), 1.0)
    shares = round_significant(shares)
    smallest = shares.min(axis=0)

    def why(winner: int) -> str:
        least = context.seats[rows[int(np.argmin(shares[:, winner]))]]
        return f"every seat gets at least {smallest[winner]:.3g} of its ideal gain ({least} least)"

    return Verdict(smallest, found.running, why, found.out, leximin(shares, found.running))


def _nobody_agrees(context: Context, rows: tuple[int, ...], gains: NDArray[np.float64]) -> str:
    """Why there is no deal, naming who would be worse off in how many candidates."""
    worse = (gains < 0).sum(axis=1).tolist()
    seats = [
        f"{context.seats[row]} would be worse off in {count} of {gains.shape[1]}"
        for row, count in zip(rows, worse, strict=True)
        if count
    ]
    return f"no candidate is a gain to some and a loss to none ({'; '.join(seats) or 'no gains'})"
