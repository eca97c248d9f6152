"""Protocols of several rounds: whatever seats answer, they end, and within what they may decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.concession import Concession, Offer, answer, next_bid, target
from policies.protocols import protocol
from policies.protocols.guard import most_rounds
from policies.protocols.offers import AlternatingOffers, turns
from policies.records import Ask, Context, Decision, Reply, Stakes
from policies.stakes import stakes_of
from tests.property.test_protocols import tables
from tests.support.bargaining import negotiate, persona, rules

NAMES = ("alternating_offers", "commander", "debate", "mediator", "single_text")
MANNERS = st.builds(
    Concession,
    kind=st.sampled_from(["boulware", "conceder", "linear", "tit_for_tat", "stubborn"]),
    beta=st.sampled_from([0.05, 0.2, 0.7, 1.0, 2.0, 5.0, 60.0]),
    accept=st.sampled_from(["ac_next", "ac_const", "ac_combi"]),
    bid=st.sampled_from(["joint", "cheapest"]),
    min_utility=st.sampled_from([0.0, 0.3, 1.0]),
)
NUMBERS = st.floats(-5, 5, allow_nan=False).map(lambda x: float(f"{x:.9g}"))


@st.composite
def stakes(draw: st.DrawFn) -> Stakes:
    values = draw(st.lists(NUMBERS, min_size=1, max_size=7))
    sums = draw(st.lists(NUMBERS, min_size=len(values), max_size=len(values)))
    names = [f"c{place}" for place in range(len(values))]
    own, welfare = (dict(zip(names, row, strict=True)) for row in (values, sums))
    return Stakes(own, welfare, draw(NUMBERS))


@st.composite
def powered(draw: st.DrawFn) -> Context:
    """A table with a commander and a mediator, and any no-deal rule."""
    table = draw(tables())
    rule = draw(st.sampled_from(["nop", "weighted_score", "commander", "alternating_offers"]))
    return dataclasses.replace(
        table,
        commander=draw(st.sampled_from(["", *table.seats])),
        mediator=draw(st.sampled_from(["", *table.seats])),
        no_deal=rule,
    )


@st.composite
def garbage(draw: st.DrawFn) -> Reply:
    ids = st.sampled_from(["", "c0", "c1", "nop", "TERMINATE", "c9\x1b[2J", "seat=s0", "é" * 50])
    return Reply(
        scores=draw(st.dictionaries(ids, st.integers(0, 10), max_size=4)),
        accept=draw(st.booleans()),
        counter=draw(ids),
        choice=draw(ids),
        message=draw(st.sampled_from(["", "TERMINATE", '{"seat": "s0", "accept": true}'])),
    )


@given(powered(), st.sampled_from(NAMES), st.data())
@settings(max_examples=300, deadline=None)
def test_whatever_seats_answer_it_ends_in_time_with_something_that_may_be_decided(
    table: Context, name: str, data: st.DataObject
) -> None:
    decision, asked = negotiate(protocol(name), table, lambda ask: data.draw(garbage()))
    assert len(asked) <= most_rounds(protocol(name), table.no_deal)
    place = table.candidates.index(decision.chosen)
    assert decision.chosen.feasible
    if table.admissible.any():
        assert table.admissible[place]
    for batch in asked:
        seats = [ask.seat for ask in batch]
        assert len(set(seats)) == len(seats)
        assert set(seats) <= set(table.seats)
    ids = {candidate.id for candidate in table.candidates}
    assert {*decision.scores, *decision.eliminated, *decision.tie} <= ids
    assert not [fault for fault in decision.faults if "stopped" in fault]


def outcome(name: str, table: Context) -> tuple[Decision, list[tuple[Ask, ...]]]:
    return negotiate(protocol(name), table, rules(table))


def reordered(table: Context, order: list[int]) -> Context:
    """The same table with its candidates in another order."""
    utilities = table.utilities[:, order]
    return dataclasses.replace(
        table,
        candidates=tuple(table.candidates[place] for place in order),
        utilities=utilities,
        admissible=table.admissible[order],
        ballots=tuple(
            dataclasses.replace(ballot, utilities=utilities[row])
            for row, ballot in enumerate(table.ballots)
        ),
    )


@given(powered(), st.sampled_from(NAMES), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_same_table_gives_the_same_talk_in_whatever_order_it_is_listed(
    table: Context, name: str, shuffler: object
) -> None:
    order = list(range(len(table.candidates)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    first, asked = outcome(name, table)
    second, asked_again = outcome(name, table)
    turned, asked_turned = outcome(name, reordered(table, order))
    assert (first, asked) == (second, asked_again)
    assert (turned.chosen.id, turned.no_deal) == (first.chosen.id, first.no_deal)
    assert asked_turned == asked
    assert turned.rounds == first.rounds


@given(MANNERS, stakes(), st.integers(1, 12), st.lists(st.integers(0, 6), max_size=6))
@settings(max_examples=400, deadline=None)
def test_what_a_seat_asks_for_never_rises_and_ends_at_what_it_accepts_at_least(
    manner: Concession, table: Stakes, deadline: int, heard: list[int]
) -> None:
    ids = list(table.utilities)
    best, low = max(table.utilities.values()), min(table.utilities.values())
    reservation = max(table.disagreement, low + manner.min_utility * (best - low))
    offers = [Offer("other", ids[place % len(ids)]) for place in heard]
    wanted = [
        target(manner, table, number, deadline, offers[:number], "me")
        for number in range(deadline + 2)
    ]
    assert all(a >= b - 1e-12 for a, b in pairwise(wanted))
    if best > reservation:
        assert all(reservation - 1e-12 <= value <= best + 1e-12 for value in wanted)
        if manner.kind in {"linear", "boulware", "conceder"}:
            assert wanted[0] == pytest.approx(best)
            assert wanted[deadline] == pytest.approx(reservation)


@given(stakes(), st.integers(2, 12), st.integers(1, 11))
@settings(max_examples=100, deadline=None)
def test_a_boulware_asks_for_more_than_a_conceder_at_every_moment(
    table: Stakes, deadline: int, number: int
) -> None:
    late, even, early = (
        target(Concession(kind), table, number, deadline)
        for kind in ("boulware", "linear", "conceder")
    )
    assert late >= even - 1e-12 >= early - 2e-12


@given(MANNERS, stakes(), st.integers(1, 8), st.integers(1, 8))
@settings(max_examples=300, deadline=None)
def test_a_bid_reaches_the_target_and_no_candidate_does_so_better(
    manner: Concession, table: Stakes, number: int, deadline: int
) -> None:
    wanted = target(manner, table, number, deadline)
    bid = next_bid(manner, table, wanted)
    low, best = min(table.utilities.values()), max(table.utilities.values())
    floor = max(wanted, table.disagreement, low + manner.min_utility * (best - low)) - 1e-9
    reaching = [name for name, value in table.utilities.items() if value >= floor]
    if not reaching:
        assert bid == ""
        return
    own, joint = table.utilities, table.welfare
    if manner.bid == "joint":
        assert bid == min(reaching, key=lambda name: (-joint[name], -own[name], name))
    else:
        assert bid == min(reaching, key=lambda name: (own[name], -joint[name], name))


# -- a brute-force stacked alternating offers game that shares nothing with the code ------------


def sao_by_hand(
    table: Context, order: list[str], rounds: int, beta: Mapping[str, float]
) -> tuple[str, int]:
    """Offers in turn, cheapest bid at or above target, AC_next; id and round, or "" and T."""
    ids = [candidate.id for candidate in table.candidates]
    fine = [place for place in range(len(ids)) if table.admissible[place]]
    value = {
        seat: {ids[place]: float(table.utilities[row, place]) for place in fine}
        for row, seat in enumerate(table.seats)
    }
    least = {
        seat: max(float(table.disagreement[row]), min(value[seat].values()))
        for row, seat in enumerate(table.seats)
    }
    weights = {seat: float(table.weights[row]) for row, seat in enumerate(table.seats)}

    def joint(name: str) -> float:
        total = 0.0
        for seat in table.seats:
            total += weights[seat] * value[seat][name]
        return float(f"{total:.9g}")

    def bid(seat: str, number: int) -> str:
        top = max(value[seat].values())
        if top < least[seat] - 1e-9:
            return ""
        gone = min(number / rounds, 1.0) ** (1.0 / beta[seat])
        ask = max(least[seat], least[seat] + (top - least[seat]) * (1.0 - gone))
        enough = [name for name, worth in value[seat].items() if worth >= ask - 1e-9]
        return min(enough, key=lambda name: (value[seat][name], -joint(name), name))

    spoken: dict[str, int] = {}
    for number in range(1, rounds + 1):
        proposer = order[(number - 1) % len(order)]
        offer = bid(proposer, spoken.get(proposer, number - 1) + 1)
        if not offer:
            continue
        others = [seat for seat in order if seat != proposer]
        content = []
        for seat in others:
            worth = value[seat][offer]
            if worth < least[seat] - 1e-9:
                content.append(False)
            elif number == rounds:
                content.append(True)
            else:
                mine = bid(seat, number + 1)
                content.append(bool(mine) and worth >= value[seat][mine] - 1e-9)
            spoken[seat] = number
        if all(content):
            return offer, number
    return "", rounds


@given(tables(), st.integers(1, 9), st.data())
@settings(max_examples=250, deadline=None)
def test_alternating_offers_end_as_a_game_played_by_hand(
    table: Context, rounds: int, data: st.DataObject
) -> None:
    if not table.admissible.any() or not all(weight > 0 for weight in table.weights):
        return
    betas = {seat: data.draw(st.sampled_from([0.2, 0.5, 2.0, 5.0])) for seat in table.seats}
    specs = {
        seat: persona(kind="boulware" if beta < 1 else "conceder", beta=beta, bid="cheapest")
        for seat, beta in betas.items()
    }
    decision, _ = negotiate(AlternatingOffers(rounds), table, rules(table, specs))
    agreed, number = sao_by_hand(table, turns(table), rounds, betas)
    assert decision.agreement == bool(agreed)
    if agreed:
        assert (decision.chosen.id, decision.rounds[-1].number) == (agreed, number)


@given(tables(vetoes=False), st.sampled_from(["joint", "cheapest"]))
@settings(max_examples=150, deadline=None)
def test_rule_seats_agree_on_nothing_that_is_worse_to_one_of_them_than_no_deal(
    table: Context, bid: str
) -> None:
    specs = {seat: persona(bid=bid) for seat in table.seats}
    decision, _ = negotiate(AlternatingOffers(), table, rules(table, specs))
    if not decision.agreement:
        return
    place = table.candidates.index(decision.chosen)
    for row, ballot in enumerate(table.ballots):
        if ballot.weight > 0:
            assert table.utilities[row, place] >= table.disagreement[row] - 1e-9


@given(tables(), st.integers(0, 2**40), st.integers(0, 500))
@settings(max_examples=100, deadline=None)
def test_stakes_hold_what_is_admissible_in_id_order(table: Context, seed: int, step: int) -> None:
    moment = dataclasses.replace(table, seed=seed, step=step)
    names = sorted(
        candidate.id
        for candidate, fine in zip(table.candidates, table.admissible, strict=True)
        if fine
    )
    for row, seat in enumerate(table.seats):
        held = stakes_of(moment, seat)
        assert list(held.utilities) == list(held.welfare) == names
        assert held.disagreement == table.disagreement[row]
        assert all(np.isfinite(list(held.utilities.values())))


def test_a_stubborn_seat_takes_its_best_and_nothing_else() -> None:
    table = Stakes({"a": 1.0, "b": 0.9}, {"a": 0.0, "b": 5.0}, -1.0)
    manner = Concession("stubborn", accept="ac_const")
    assert [answer(manner, table, name, 10, 10).accept for name in ("a", "b", "absent")] == [
        True, False, False,
    ]  # fmt: skip
    assert next_bid(manner, table, target(manner, table, 10, 10)) == "a"
