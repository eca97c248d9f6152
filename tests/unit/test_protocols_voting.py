"""Scoring and Condorcet rules on tables that can be checked by hand, pitfalls included."""

from __future__ import annotations

import pytest

from policies.protocols import protocol
from policies.protocols.condorcet import locked_above, path_strengths
from policies.protocols.voting import approval_bar
from policies.records import Decision
from tests.support.tables import context, settle

ONE_TO_ONE = ("copeland", "ranked_pairs", "schulze")


def decide(name: str, *arguments: object, **options: object) -> Decision:
    return settle(protocol(name).decide(context(*arguments, **options)))  # type: ignore[arg-type]


def profile(ids: str, *groups: tuple[int, str]) -> tuple[list[list[float]], list[float]]:
    """Rows and weights of groups of equal rankings, best first: ``(3, "abc")``."""
    rows = [[float(-ranking.index(name)) for name in ids] for _, ranking in groups]
    return rows, [float(count) for count, _ in groups]


# -- Borda ------------------------------------------------------------------------------------


def test_borda_counts_a_point_for_each_candidate_below_and_half_for_each_level() -> None:
    decision = decide("borda", [[3.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    assert decision.scores == {"a": 3.5, "b": 2.5, "c": 0.0}
    assert decision.reason == "3.5 of at most 4 points"


def test_borda_multiplies_a_seats_points_by_its_weight() -> None:
    decision = decide("borda", [[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]], weights=[1.0, 3.0])
    assert decision.scores == {"a": 2.0, "b": 4.0, "c": 6.0}


def test_borda_ranks_only_what_is_admissible() -> None:
    rows = [[2.0, 9.0, 1.0], [1.0, 9.0, 2.0]]
    decision = decide("borda", rows, vetoes={0: {"b": "no"}}, weights=[2.0, 1.0])
    assert decision.scores == {"a": 2.0, "c": 1.0}


def test_borda_may_pass_over_who_beats_everybody_one_to_one() -> None:
    rows, weights = profile("abc", (3, "abc"), (2, "bca"))
    assert decide("borda", rows, weights=weights).chosen.id == "b"
    for name in ONE_TO_ONE:
        assert decide(name, rows, weights=weights).chosen.id == "a"


def test_copies_of_a_favourite_lift_it_under_borda_and_nowhere_one_to_one() -> None:
    rows, weights = profile("ab", (3, "ab"), (2, "ba"))
    assert decide("borda", rows, weights=weights).chosen.id == "a"
    rows, weights = profile("abB", (3, "abB"), (2, "bBa"))  # B: b bundled with something harmless
    assert decide("borda", rows, weights=weights).chosen.id == "b"
    for name in ("ranked_pairs", "schulze"):
        assert decide(name, rows, weights=weights).chosen.id == "a"


def test_copies_can_turn_a_stalemate_under_copeland() -> None:
    rows, weights = profile("abc", (2, "abc"), (2, "bca"), (2, "cab"))
    before = decide("copeland", rows, weights=weights)
    assert before.tie == ("a", "b", "c")
    rows, weights = profile("abcd", (2, "abcd"), (2, "bcda"), (2, "cdab"))  # d copies c
    after = decide("copeland", rows, weights=weights)
    assert after.scores == {"a": 1.0, "b": 2.0, "c": 2.0, "d": 1.0}


def test_burying_a_rival_pays_under_borda() -> None:
    honest, weights = profile("abc", (3, "abc"), (2, "bac"))
    assert decide("borda", honest, weights=weights).chosen.id == "a"
    buried, weights = profile("abc", (3, "abc"), (2, "bca"))
    assert decide("borda", buried, weights=weights).chosen.id == "b"


def test_split_votes_can_elect_who_loses_to_everybody_one_to_one() -> None:
    rows, weights = profile("abc", (4, "cab"), (3, "abc"), (3, "bac"))
    assert decide("plurality", rows, weights=weights).chosen.id == "c"
    assert decide("borda", rows, weights=weights).chosen.id == "a"
    for name in ONE_TO_ONE:
        assert decide(name, rows, weights=weights).chosen.id == "a"


# -- one to one -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_who_beats_everybody_is_explained_so(name: str) -> None:
    decision = decide(name, [[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
    assert decision.chosen.id == "a"
    assert decision.reason == "beats every other candidate one to one (2)"
    assert decide(name, [[1.0]]).reason == "the only one"


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_a_heavier_seat_wins_its_duels(name: str) -> None:
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]]
    assert decide(name, rows, weights=[1.0, 1.0, 1.0]).chosen.id == "a"
    assert decide(name, rows, weights=[1.0, 1.0, 2.5]).chosen.id == "b"


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_seats_that_abstain_or_weigh_nothing_fight_no_duels(name: str) -> None:
    rows = [[1.0, 0.0], [0.0, 9.0], [0.0, 9.0]]
    assert decide(name, rows, weights=[1.0, 0.0, 1.0], abstaining=[2]).chosen.id == "a"


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_utilities_a_billionth_apart_are_level(name: str) -> None:
    decision = decide(name, [[0.5, 0.5000000009]])
    assert decision.tie == ("a", "b")


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_in_a_circle_of_equal_victories_the_weighted_sum_decides(name: str) -> None:
    rows = [[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [2.0, 1.0, 9.0]]
    decision = decide(name, rows)
    assert decision.chosen.id == "c"
    if name != "ranked_pairs":  # which breaks the circle where the sum says, without a tie left
        assert decision.tie == ("a", "b", "c")


def test_drawing_every_duel_is_as_good_as_winning_some_where_chains_decide() -> None:
    rows = [[3.0, 1.0, 2.0], [2.0, 9.0, 1.0]]  # a beats c; b draws with both and has the sum
    for name in ("ranked_pairs", "schulze"):
        decision = decide(name, rows)
        assert decision.tie == ("a", "b")
        assert decision.chosen.id == "b"
    assert decide("copeland", rows).chosen.id == "a"


def test_schulze_follows_its_authors_first_example() -> None:
    # Schulze (2011), example 1: 45 voters, five candidates, winner e.
    groups = ((5, "acbed"), (5, "adecb"), (8, "bedac"), (3, "cabed"), (7, "caebd"), (2, "cbade"),
              (7, "dceba"), (8, "ebadc"))  # fmt: skip
    rows, weights = profile("abcde", *groups)
    decision = decide("schulze", rows, weights=weights)
    assert decision.chosen.id == "e"
    assert decision.scores == {"a": 3.0, "b": 1.0, "c": 2.0, "d": 0.0, "e": 4.0}


def test_ranked_pairs_skip_the_victory_that_would_close_a_circle() -> None:
    # Margins: a over b 5, b over c 3, c over a 1; the last would close the circle.
    rows, weights = profile("abc", (4, "abc"), (3, "bca"), (2, "cab"))
    decision = decide("ranked_pairs", rows, weights=weights)
    assert decision.chosen.id == "a"
    assert decision.scores == {"a": 2.0, "b": 1.0, "c": 0.0}
    assert decision.reason == "nobody is locked above it; 1 won, 0 drawn, 1 lost one to one"


def test_ranked_pairs_take_equal_victories_in_the_order_of_the_common_rule() -> None:
    rows = [[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]]  # all sums are 6: ids decide
    decision = decide("ranked_pairs", rows)
    assert decision.chosen.id == "a"
    other = decide("ranked_pairs", rows, ids=["z", "y", "x"])
    assert other.chosen.id == "x"


def test_locking_and_paths_know_no_victories_of_their_own() -> None:
    import numpy as np

    level = np.zeros((3, 3))
    assert locked_above(level, np.arange(3)) == [0, 0, 0]
    assert not path_strengths(level).any()


# -- approval ---------------------------------------------------------------------------------


def test_a_seat_approves_what_reaches_its_mean_and_its_disagreement() -> None:
    rows = [[0.0, 3.0, 6.0], [6.0, 3.0, 0.0]]
    table = context(rows, disagreement=[0.0, 5.0])
    assert approval_bar(table, 0, table.admissible) == 3.0
    assert approval_bar(table, 1, table.admissible) == 5.0
    decision = settle(protocol("approval").decide(table))
    assert decision.scores == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert decide("approval", rows).scores == {"a": 1.0, "b": 2.0, "c": 1.0}
    assert decide("approval", rows).reason == "approved by s0 and s1"


def test_an_indifferent_seat_approves_everything_or_nothing() -> None:
    assert decide("approval", [[0.1, 0.1, 0.1]]).scores == {"a": 1.0, "b": 1.0, "c": 1.0}
    mixed = decide("approval", [[2.0, 2.0], [0.0, 1.0]], disagreement=[3.0, 0.0])
    assert mixed.scores == {"a": 0.0, "b": 1.0}


def test_when_nobody_approves_anything_there_is_no_deal() -> None:
    decision = decide("approval", [[1.0, 2.0]], disagreement=[9.0])
    assert not decision.agreement
    assert decision.no_deal == "weighted_score"
    assert "all is worse than no deal" in decision.reason


def test_bad_candidates_on_the_table_lower_the_bar_of_approval() -> None:
    rows = [[9.0, 6.0, 5.0], [0.0, 6.0, 1.0], [0.0, 6.0, 1.0]]
    narrow = decide("approval", rows, weights=[3.0, 1.0, 1.0])
    assert narrow.chosen.id == "a"
    padded = [[*row, -20.0, -20.0] for row in rows]
    wide = decide("approval", padded, weights=[3.0, 1.0, 1.0])
    assert wide.scores["b"] == 5.0
    assert wide.chosen.id == "b"


def test_approval_looks_at_the_mean_of_admissible_candidates_only() -> None:
    rows = [[1.0, 3.0, 99.0]]
    assert decide("approval", rows, vetoes={0: {"c": "no"}}).scores == {"a": 0.0, "b": 1.0}
