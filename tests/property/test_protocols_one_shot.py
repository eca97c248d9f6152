"""The one-shot protocols against brute force written independently, and their known properties."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.protocols import protocol
from policies.protocols.condorcet import path_strengths
from policies.protocols.pairwise import duels
from policies.records import Context, Decision
from tests.property.test_protocols import WEIGHTS, nine, standing, sums, tables, voting_seats
from tests.support.tables import context, settle

ORDINAL = ("borda", "copeland", "plurality", "ranked_pairs", "schulze")
CONDORCET = ("copeland", "ranked_pairs", "schulze")
ONE_SHOT = (
    *ORDINAL,
    "approval",
    "incident_commander",
    "kalai_smorodinsky",
    "leximin",
    "nash",
    "vcg",
    "weighted_score",
)
ANONYMOUS = tuple(name for name in ONE_SHOT if name != "incident_commander")
EFFICIENT = tuple(name for name in ONE_SHOT if name not in {"incident_commander", "vcg"})
BARGAINING = ("kalai_smorodinsky", "nash")
# Whole numbers: differences are 0 or at least 1, so that no value is nearly a tie.
WHOLE = st.integers(-4, 4).map(float)


def decide(name: str, table: Context) -> Decision:
    return settle(protocol(name).decide(table))


@st.composite
def whole_tables(
    draw: st.DrawFn, seats: int = 5, candidates: int = 6, strict: bool = False
) -> Context:
    """Tables of whole utilities; `strict` leaves no seat indifferent between two candidates."""
    height, width = draw(st.integers(1, seats)), draw(st.integers(1, candidates))
    line: st.SearchStrategy[list[float]] = (
        st.permutations([float(value) for value in range(width)])
        if strict
        else st.lists(WHOLE, min_size=width, max_size=width)
    )
    return context(
        [draw(line) for _ in range(height)],
        ids=draw(st.permutations([f"c{place}" for place in range(width)])),
        weights=[draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in range(height)],
        disagreement=[draw(WHOLE) for _ in range(height)],
    )


def rebuilt(
    table: Context,
    utilities: Sequence[Sequence[float]],
    ids: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
) -> Context:
    """The same room with other utilities, ids or order of seats; without vetoes."""
    rows = list(order) if order is not None else list(range(len(table.seats)))
    return context(
        utilities,
        ids=ids or [candidate.id for candidate in table.candidates],
        weights=table.weights[rows].tolist(),
        disagreement=table.disagreement[rows].tolist(),
        no_deal=table.no_deal,
    )


# -- oracles: exact fractions and plain loops, sharing nothing with the code --------------------


def ahead(table: Context, row: int, one: int, other: int) -> bool:
    return float(table.utilities[row, one]) - float(table.utilities[row, other]) > 1e-9


def margin(table: Context, one: int, other: int) -> Fraction:
    total = Fraction(0)
    for row in voting_seats(table):
        weight = Fraction(float(table.weights[row]))
        total += weight * (ahead(table, row, one, other) - ahead(table, row, other, one))
    return total


def common(table: Context, places: Sequence[int]) -> int:
    """The common tie rule."""
    welfare = sums(table)
    return min(
        places,
        key=lambda place: (
            -welfare[place],
            sum(action.kind != "nop" for action in table.candidates[place].now),
            table.candidates[place].id,
        ),
    )


def highest(table: Context, scores: dict[int, Fraction]) -> int:
    top = max(scores.values())
    return common(table, [place for place, score in scores.items() if score == top])


def borda_oracle(table: Context) -> int:
    scores = {}
    for one in standing(table):
        scores[one] = Fraction(0)
        for other, row in itertools.product(standing(table), voting_seats(table)):
            if other != one:
                level = not ahead(table, row, one, other) and not ahead(table, row, other, one)
                point = Fraction(1, 2) if level else Fraction(int(ahead(table, row, one, other)))
                scores[one] += Fraction(float(table.weights[row])) * point
    return highest(table, scores)


def copeland_oracle(table: Context) -> int:
    scores = {}
    for one in standing(table):
        met = [margin(table, one, other) for other in standing(table) if other != one]
        scores[one] = Fraction(sum(m > 0 for m in met)) + Fraction(sum(m == 0 for m in met), 2)
    return highest(table, scores)


def widest_path(table: Context, one: int, other: int) -> Fraction:
    """Strength of the strongest simple path, by trying every one of them."""
    between = [place for place in standing(table) if place not in {one, other}]
    strongest = Fraction(0)
    for length in range(len(between) + 1):
        for middle in itertools.permutations(between, length):
            path = [one, *middle, other]
            weakest = min(margin(table, a, b) for a, b in itertools.pairwise(path))
            strongest = max(strongest, weakest)
    return strongest


def schulze_oracle(table: Context) -> int:
    places = standing(table)
    winners = [
        one
        for one in places
        if all(
            widest_path(table, one, other) >= widest_path(table, other, one)
            for other in places
            if other != one
        )
    ]
    return common(table, winners)


def ranked_pairs_oracle(table: Context) -> int:
    places = standing(table)
    welfare = sums(table)
    liked = sorted(places, key=lambda place: (-welfare[place], table.candidates[place].id))
    victories = [(a, b) for a in places for b in places if a != b and margin(table, a, b) > 0]
    victories.sort(key=lambda p: (-margin(table, *p), -liked.index(p[1]), liked.index(p[0])))
    locked: list[tuple[int, int]] = []

    def reaches(start: int, goal: int) -> bool:
        return any(b == goal or reaches(b, goal) for a, b in locked if a == start)

    for winner, loser in victories:
        if not reaches(loser, winner):
            locked.append((winner, loser))
    return common(table, [place for place in places if all(b != place for _, b in locked)])


def approval_oracle(table: Context) -> int | None:
    places = standing(table)
    scores = dict.fromkeys(places, Fraction(0))
    anybody = False
    for row in voting_seats(table):
        values = [Fraction(float(table.utilities[row, place])) for place in places]
        bar = max(sum(values) / len(values), Fraction(float(table.disagreement[row])))
        for place, value in zip(places, values, strict=True):
            if value >= bar - Fraction(1, 10**9):
                anybody = True
                scores[place] += Fraction(float(table.weights[row]))
    return highest(table, scores) if anybody else None


def rational_gains(table: Context) -> dict[int, list[Fraction]]:
    found = {}
    for place in standing(table):
        gains = [
            Fraction(float(table.utilities[row, place])) - Fraction(float(table.disagreement[row]))
            for row in voting_seats(table)
        ]
        if min(gains) >= 0 and max(gains) > 0:
            found[place] = gains
    return found


def best_sorted(table: Context, vectors: dict[int, list[Fraction]]) -> int:
    top = max(sorted(vector) for vector in vectors.values())
    return common(table, [place for place, v in vectors.items() if sorted(v) == top])


def kalai_oracle(table: Context) -> int | None:
    gains = rational_gains(table)
    if not gains:
        return None
    ideals = [max(column) for column in zip(*gains.values(), strict=True)]
    shares = {
        place: [g / i if i > 0 else Fraction(1) for g, i in zip(gain, ideals, strict=True)]
        for place, gain in gains.items()
    }
    return best_sorted(table, shares)


def leximin_oracle(table: Context) -> int:
    vectors: dict[int, list[Fraction]] = {place: [] for place in standing(table)}
    for row in voting_seats(table):
        values = {place: Fraction(float(table.utilities[row, place])) for place in vectors}
        span = max(values.values()) - min(values.values())
        d = Fraction(float(table.disagreement[row]))
        for place, value in values.items():
            vectors[place].append((value - d) / span if span else Fraction(0))
    return best_sorted(table, vectors)


ORACLES: dict[str, Callable[[Context], int | None]] = {
    "borda": borda_oracle,
    "copeland": copeland_oracle,
    "schulze": schulze_oracle,
    "ranked_pairs": ranked_pairs_oracle,
    "approval": approval_oracle,
    "kalai_smorodinsky": kalai_oracle,
    "leximin": leximin_oracle,
}


@pytest.mark.parametrize("name", sorted(ORACLES))
@given(table=whole_tables(candidates=5))
@settings(max_examples=80, deadline=None)
def test_a_rule_picks_what_brute_force_picks(name: str, table: Context) -> None:
    expected = ORACLES[name](table)
    decision = decide(name, table)
    assert decision.agreement == (expected is not None)
    if expected is not None:
        assert decision.chosen.id == table.candidates[expected].id


@pytest.mark.parametrize("name", ["approval", "borda", "copeland", "ranked_pairs", "schulze"])
@given(table=tables())
@settings(max_examples=40, deadline=None)
def test_a_rule_picks_what_brute_force_picks_among_vetoes_and_reals(
    name: str, table: Context
) -> None:
    if len(standing(table)) not in range(1, 7) or not voting_seats(table):
        return
    expected = ORACLES[name](table)
    if expected is not None:
        assert decide(name, table).chosen.id == table.candidates[expected].id


@given(whole_tables(candidates=6))
@settings(max_examples=40, deadline=None)
def test_path_strengths_are_those_of_the_strongest_of_all_paths(table: Context) -> None:
    found = path_strengths(duels(table, table.admissible).margins)
    for one, other in itertools.permutations(range(len(table.candidates)), 2):
        assert Fraction(float(found[one, other])) == widest_path(table, one, other)


# -- what every rule promises -------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_SHOT)
@given(table=tables(), shuffler=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_the_candidates_changes_nothing(
    name: str, table: Context, shuffler: object
) -> None:
    order = list(range(len(table.candidates)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    shuffled = context(
        table.utilities[:, order].tolist(),
        ids=[table.candidates[place].id for place in order],
        weights=table.weights.tolist(),
        disagreement=table.disagreement.tolist(),
        vetoes={0: {n: v.reason for n, v in table.ballots[0].vetoes.items()}},
        infeasible=[c.id for c in table.candidates if not c.feasible],
        no_deal=table.no_deal,
    )
    assert decide(name, shuffled).chosen.id == decide(name, table).chosen.id


@pytest.mark.parametrize("name", ANONYMOUS)
@given(table=whole_tables(), shuffler=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_it_does_not_matter_who_holds_which_utilities(
    name: str, table: Context, shuffler: object
) -> None:
    order = list(range(len(table.seats)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    reseated = rebuilt(table, table.utilities[order].tolist(), order=order)
    assert decide(name, reseated).chosen.id == decide(name, table).chosen.id


@pytest.mark.parametrize("name", ONE_SHOT)
@given(table=whole_tables(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_other_names_change_nothing_where_names_break_no_tie(
    name: str, table: Context, data: st.DataObject
) -> None:
    if len(set(sums(table))) < len(table.candidates):
        return  # only the smaller id tells equal sums apart
    names = data.draw(st.permutations([f"z{place}" for place in range(len(table.candidates))]))
    before = decide(name, table)
    after = decide(name, rebuilt(table, table.utilities.tolist(), names))
    place = [candidate.id for candidate in table.candidates].index(before.chosen.id)
    assert after.chosen.id == names[place]


def dominators(table: Context, place: int) -> list[int]:
    rows = voting_seats(table)
    column = [float(table.utilities[row, place]) for row in rows]
    found = []
    for other in standing(table):
        values = [float(table.utilities[row, other]) for row in rows]
        better = [a - b for a, b in zip(values, column, strict=True)]
        if min(better) >= 0 and max(better) > 0:
            found.append(other)
    return found


@pytest.mark.parametrize("name", EFFICIENT)
@given(table=whole_tables())
@settings(max_examples=50, deadline=None)
def test_nothing_on_the_table_is_better_for_some_and_worse_for_none(
    name: str, table: Context
) -> None:
    chosen = table.candidates.index(decide(name, table).chosen)
    assert not dominators(table, chosen)


@pytest.mark.parametrize("name", BARGAINING)
@given(table=whole_tables())
@settings(max_examples=50, deadline=None)
def test_a_bargain_leaves_nobody_below_its_disagreement(name: str, table: Context) -> None:
    decision = decide(name, table)
    place = table.candidates.index(decision.chosen)
    gains = table.utilities[:, place] - table.disagreement
    if decision.agreement:
        assert gains.min() >= 0 < gains.max()
    else:
        assert not rational_gains(table)


def rescaled(table: Context, factor: float, origin: float) -> Context:
    """The first seat measures its utilities, and its no deal, in another unit."""
    rows = table.utilities.tolist()
    rows[0] = [factor * value + origin for value in rows[0]]
    first = factor * float(table.disagreement[0]) + origin
    return context(
        rows,
        ids=[candidate.id for candidate in table.candidates],
        weights=table.weights.tolist(),
        disagreement=[first, *table.disagreement[1:].tolist()],
    )


def everybody_gains(table: Context, chosen: str) -> bool:
    place = [candidate.id for candidate in table.candidates].index(chosen)
    return all(table.utilities[row, place] > table.disagreement[row] for row in voting_seats(table))


@pytest.mark.parametrize("name", [*ORDINAL, "kalai_smorodinsky", "leximin", "nash"])
@given(
    table=whole_tables(strict=True),
    factor=st.sampled_from([0.5, 2.0, 8.0]),
    origin=st.sampled_from([-16.0, 0.0, 32.0]),
)
@settings(max_examples=60, deadline=None)
def test_a_seats_own_unit_and_origin_decide_nothing_but_ties(
    name: str, table: Context, factor: float, origin: float
) -> None:
    before = decide(name, table)
    pairs = itertools.combinations(range(len(table.candidates)), 2)
    margins = [abs(margin(table, *pair)) for pair in pairs]
    level = len(set(margins)) < len(margins) or 0 in margins
    if before.tie or not before.agreement or (name == "ranked_pairs" and level):
        return  # ties, equal margins and no-deal rules look at amounts
    if name == "nash" and not everybody_gains(table, before.chosen.id):
        return  # products over different seats have different units
    assert decide(name, rescaled(table, factor, origin)).chosen.id == before.chosen.id


# -- one to one ---------------------------------------------------------------------------------


def beats_all(table: Context) -> int | None:
    for one in standing(table):
        if all(margin(table, one, other) > 0 for other in standing(table) if other != one):
            return one
    return None


def loses_to_all(table: Context) -> int | None:
    places = standing(table)
    for one in places:
        rest = [other for other in places if other != one]
        if rest and all(margin(table, one, other) < 0 for other in rest):
            return one
    return None


@pytest.mark.parametrize("name", CONDORCET)
@given(table=whole_tables())
@settings(max_examples=50, deadline=None)
def test_who_beats_every_other_one_to_one_wins(name: str, table: Context) -> None:
    winner = beats_all(table)
    if winner is not None:
        decision = decide(name, table)
        assert decision.chosen is table.candidates[winner]
        assert decision.tie == ()


@pytest.mark.parametrize("name", [*CONDORCET, "borda"])
@given(table=whole_tables())
@settings(max_examples=50, deadline=None)
def test_who_loses_to_every_other_one_to_one_does_not_win(name: str, table: Context) -> None:
    loser = loses_to_all(table)
    if loser is not None:
        assert decide(name, table).chosen is not table.candidates[loser]


@pytest.mark.parametrize("name", CONDORCET)
@given(table=whole_tables())
@settings(max_examples=40, deadline=None)
def test_the_winner_is_in_the_smith_set(name: str, table: Context) -> None:
    places = standing(table)
    smith = next(
        set(group)
        for size in range(1, len(places) + 1)
        for group in itertools.combinations(places, size)
        if all(margin(table, i, o) > 0 for i in group for o in places if o not in group)
    )
    assert table.candidates.index(decide(name, table).chosen) in smith


@pytest.mark.parametrize(
    "name", [*ORDINAL, "approval", "leximin", "weighted_score", "kalai_smorodinsky", "nash"]
)
@given(table=whole_tables(candidates=5, strict=True), data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_winner_that_a_seat_likes_better_still_wins(
    name: str, table: Context, data: st.DataObject
) -> None:
    before = decide(name, table)
    if not before.agreement:
        return
    place = table.candidates.index(before.chosen)
    row = data.draw(st.integers(0, len(table.seats) - 1))
    rows = table.utilities.tolist()
    rows[row][place] += data.draw(st.sampled_from([0.5, 1.5, 3.5, 20.0]))
    old = table.utilities[row].tolist()
    if name in {"kalai_smorodinsky", "leximin"} and max(rows[row]) != max(old):
        return  # the seat's own scale (ideal, range) moves with it
    if name == "leximin" and min(rows[row]) != min(old):
        return
    assert decide(name, rebuilt(table, rows)).chosen.id == before.chosen.id


# -- clones -------------------------------------------------------------------------------------


def with_clones(table: Context, place: int, count: int) -> Context:
    """Copies of a candidate that every seat likes a trifle less than the original."""
    rows = [
        [*row, *(row[place] - 0.001 * number for number in range(1, count + 1))]
        for row in table.utilities.tolist()
    ]
    ids = [c.id for c in table.candidates]
    return rebuilt(table, rows, [*ids, *(f"{ids[place]}.{n}" for n in range(1, count + 1))])


@pytest.mark.parametrize("name", ["ranked_pairs", "schulze"])
@given(table=whole_tables(candidates=5, strict=True), data=st.data())
@settings(max_examples=40, deadline=None)
def test_clones_change_nothing_one_to_one(name: str, table: Context, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(table.candidates) - 1))
    crowded = with_clones(table, place, data.draw(st.integers(1, 4)))
    assert decide(name, crowded).chosen.id == decide(name, table).chosen.id


# -- VCG ----------------------------------------------------------------------------------------


class Rich(type(protocol("vcg"))):  # type: ignore[misc]
    """VCG whose credits never run out."""

    credits_per_step = 1e6


def value_less_price(table: Context, row: int, truth: Sequence[float]) -> float:
    decision = settle(Rich().decide(table))
    place = table.candidates.index(decision.chosen)
    return truth[place] - decision.payments.get(table.seats[row], 0.0)


@given(whole_tables(seats=4, candidates=5), st.data())
@settings(max_examples=120, deadline=None)
def test_no_lie_pays_under_vcg_while_credits_last(table: Context, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(table.seats) - 1))
    truth = table.utilities[row].tolist()
    lie = data.draw(st.lists(WHOLE, min_size=len(truth), max_size=len(truth)))
    rows = table.utilities.tolist()
    rows[row] = lie
    honest = value_less_price(table, row, truth)
    assert honest >= value_less_price(rebuilt(table, rows), row, truth) - 1e-7


@given(whole_tables(), st.sampled_from([0.0, 0.01, 0.05, 0.2, 10.0]))
@settings(max_examples=40, deadline=None)
def test_vcg_charges_what_the_others_lose_and_never_more_than_is_left(
    table: Context, credits_per_step: float
) -> None:
    class Tight(type(protocol("vcg"))):  # type: ignore[misc]
        pass

    Tight.credits_per_step = credits_per_step
    decision = settle(Tight().decide(table))
    budget = credits_per_step * table.observation.horizon
    assert all(0 < price <= budget + 1e-9 for price in decision.payments.values())
    if "not truthful" in decision.reason:
        return
    place = table.candidates.index(decision.chosen)
    assert sums(table)[place] == max(sums(table))
    for row, seat in enumerate(table.seats):
        others = [
            sum(
                float(table.weights[j]) * float(table.utilities[j, a])
                for j in range(len(table.seats))
                if j != row
            )
            for a in range(len(table.candidates))
        ]
        loss = (max(others) - others[place]) / float(table.weights[row])
        assert decision.payments.get(seat, 0.0) == pytest.approx(loss, abs=1e-6)


@given(whole_tables(), st.lists(WEIGHTS, min_size=5, max_size=5))
@settings(max_examples=40, deadline=None)
def test_without_a_crisis_and_with_a_majority_the_incident_commander_stays_silent(
    table: Context, weights: list[float]
) -> None:
    del weights
    favourites: dict[str, float] = {}
    for row in range(len(table.seats)):
        values = table.utilities[row].tolist()
        tied = [place for place, value in enumerate(values) if value == max(values)]
        name = table.candidates[common(table, tied)].id
        favourites[name] = favourites.get(name, 0.0) + float(table.weights[row])
    decision = decide("incident_commander", table)
    strongest = max(favourites, key=lambda name: favourites[name])
    majority = favourites[strongest] > float(table.weights.sum()) / 2
    assert decision.agreement == majority
    if majority:
        assert decision.chosen.id == strongest
        assert decision.override_rule == ""
    assert nine(decision.scores[decision.chosen.id]) == decision.scores[decision.chosen.id]
