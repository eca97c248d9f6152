"""How seats give way, and how honest their ballots are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest

from orchestrator.study.metrics.concession import (
    MOST_BETA,
    Bid,
    concessions,
    fit_beta,
    move,
    moves,
)
from orchestrator.study.metrics.honesty import honesty, kendall_tau
from policies.concession import Concession, next_bid, target
from policies.records import Stakes
from world.noise import channel, uniforms


@pytest.mark.parametrize(
    ("own", "others", "kind"),
    [
        (0.0, 0.0, "silent"),
        (0.0, 0.1, "nice"),
        (0.0, -0.1, "unfortunate"),
        (0.1, 0.1, "fortunate"),
        (0.1, 0.0, "selfish"),
        (0.1, -0.1, "selfish"),
        (-0.1, 0.1, "concession"),
        (-0.1, 0.0, "concession"),
        (-0.1, -0.1, "unfortunate"),
        (1e-10, -1e-10, "silent"),
    ],
)
def test_every_move_has_its_kind(own: float, others: float, kind: str) -> None:
    assert move(own, others) == kind


def test_a_curve_counts_from_the_first_bid_and_its_moves_from_bid_to_bid() -> None:
    bids = (Bid(1, 1.0, 0.0), Bid(2, 0.8, 0.3), Bid(3, 0.8, 0.3), Bid(4, 0.9, 0.2))
    assert concessions(bids) == pytest.approx((0.0, 0.2, 0.2, 0.1))
    assert moves(bids) == {"silent": 1, "concession": 1, "selfish": 1}


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("reservation", [0.0, 0.3])
def test_an_exact_curve_gives_its_exponent_back(beta: float, reservation: float) -> None:
    bids = [
        Bid(t, reservation + (1 - reservation) * (1 - (t / 12) ** (1 / beta)), 0.0)
        for t in range(1, 13)
    ]
    fit = fit_beta(bids, reservation, 12)
    assert fit is not None
    assert fit.beta == pytest.approx(beta, rel=1e-4)
    assert fit.rmse < 1e-6
    assert fit.bids == 11


def test_the_fit_is_the_best_that_a_dense_search_finds() -> None:
    bids = [Bid(1, 0.97, 0.0), Bid(2, 0.7, 0.0), Bid(3, 0.68, 0.0), Bid(4, 0.2, 0.0)]
    fit = fit_beta(bids, 0.1, 6)
    assert fit is not None

    def rmse(beta: float) -> float:
        errors = [bid.own - (0.1 + 0.9 * (1 - (bid.round / 6) ** (1 / beta))) for bid in bids]
        return float(np.sqrt(np.mean(np.square(errors))))

    assert fit.rmse == pytest.approx(
        min(rmse(b) for b in np.geomspace(0.01, 100, 20_001)), abs=1e-7
    )
    assert rmse(fit.beta) == pytest.approx(fit.rmse)


@pytest.mark.parametrize(("kind", "beta"), [("boulware", 0.2), ("conceder", 5.0), ("linear", 1.0)])
def test_a_rule_seat_on_a_fine_table_is_read_for_what_its_file_says(kind: str, beta: float) -> None:
    own = {f"c{at:04d}": at / 2000 for at in range(2001)}
    stakes = Stakes(own, {name: -value for name, value in own.items()}, 0.25)
    manner = Concession(kind, bid="cheapest")  # type: ignore[arg-type]
    bids = [
        Bid(t, own[next_bid(manner, stakes, target(manner, stakes, t, 10))], 0.0)
        for t in range(1, 11)
    ]
    fit = fit_beta(bids, 0.25, 10)
    assert fit is not None
    assert fit.beta == pytest.approx(beta, rel=0.02)


def test_who_has_nothing_to_give_or_said_too_little_has_no_exponent() -> None:
    bids = [Bid(1, 1.0, 0.0), Bid(2, 0.9, 0.0)]
    assert fit_beta(bids, 1.0, 10) is None
    assert fit_beta(bids[:1], 0.0, 10) is None
    assert fit_beta([Bid(9, 0.5, 0.0), Bid(10, 0.4, 0.0)], 0.0, 10) is None
    assert fit_beta(bids, -3.0, 10) is not None


def test_who_gives_all_at_once_meets_the_end_of_the_range() -> None:
    fit = fit_beta([Bid(1, 0.0, 0.0), Bid(2, 0.0, 0.0)], 0.0, 10)
    assert fit is not None
    assert fit.beta == pytest.approx(MOST_BETA, rel=1e-3)


def _slow_tau(one: list[float], other: list[float]) -> float | None:
    agree = apart = only_one = only_other = 0
    for (a, b), (c, d) in itertools.combinations(zip(one, other, strict=True), 2):
        first, second = (a > c) - (a < c), (b > d) - (b < d)
        agree += first * second > 0
        apart += first * second < 0
        only_one += first == 0 and second != 0
        only_other += second == 0 and first != 0
    scale = (agree + apart + only_one) * (agree + apart + only_other)
    return (agree - apart) / scale**0.5 if scale else None


def _pairs(case: int) -> tuple[list[float], list[float]]:
    draws = uniforms(case, np.arange(24), channel("test.tau"), 0)[0]
    size = 2 + case % 11
    grid = 3 + case % 4
    return (
        np.round(draws[:size] * grid).tolist(),
        np.round(draws[12 : 12 + size] * grid).tolist(),
    )


@pytest.mark.parametrize("case", range(60))
def test_tau_is_what_counting_the_pairs_gives(case: int) -> None:
    one, other = _pairs(case)
    found, slow = kendall_tau(np.array(one), np.array(other)), _slow_tau(one, other)
    assert (found is None) == (slow is None)
    if found is not None:
        assert found == pytest.approx(slow, abs=1e-12)


def test_tau_is_what_scipy_gives() -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    for case in range(60):
        one, other = _pairs(case)
        found = kendall_tau(np.array(one), np.array(other))
        theirs = float(stats.kendalltau(one, other, variant="b").statistic)
        assert (found is None) == bool(np.isnan(theirs))
        if found is not None:
            assert found == pytest.approx(theirs, abs=1e-12)


def test_an_honest_ballot_is_near_and_a_reversed_one_is_far() -> None:
    projected = {"a": 0.0, "b": 0.24, "c": 1.0}
    honest = honesty({"a": 0, "b": 2, "c": 10}, projected)
    assert honest is not None
    assert honest.kendall_tau == pytest.approx(1.0)
    assert honest.gap == pytest.approx(0.04 / 3)
    liar = honesty({"a": 10, "b": 7, "c": 0}, projected)
    assert liar is not None
    assert liar.kendall_tau == pytest.approx(-1.0)
    assert liar.gap == pytest.approx((1.0 + 0.46 + 1.0) / 3)


@pytest.mark.parametrize("said", [{}, {"z": 3}])
def test_who_scored_nothing_on_the_table_is_not_judged(said: Mapping[str, float]) -> None:
    assert honesty(said, {"a": 0.5}) is None


def test_only_what_was_scored_is_compared() -> None:
    found = honesty({"a": 5, "z": 0}, {"a": 0.5, "b": 1.0})
    assert found is not None
    assert (found.kendall_tau, found.gap, found.scored) == (None, 0.0, 1)
