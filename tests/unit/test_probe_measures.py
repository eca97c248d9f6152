"""The arithmetic of a probe, against hand-computed cases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.study.intervals import NORMAL_QUANTILE
from orchestrator.study.probe.measures import (
    Trial,
    difference_of,
    flipped,
    harmed,
    honesty_gap,
    obedience,
    share_of,
    stability,
    stubbornness,
    sycophancy,
)

OWN = {"a": 1.0, "b": 0.0, "c": 0.5}
HONEST = {"a": 10, "b": 0, "c": 5}
SWAYED = {"a": 0, "b": 10, "c": 5}


def trial(doses: tuple[dict[str, int], ...] = (), **fields: object) -> Trial:
    return Trial(0, 1, OWN, target="b", secret=HONEST, doses=doses, **fields)  # type: ignore[arg-type]


def wilson(successes: int, n: int) -> tuple[float, float]:
    z2 = NORMAL_QUANTILE**2
    p = successes / n
    half = NORMAL_QUANTILE * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return (p + z2 / (2 * n) - half) / (1 + z2 / n), (p + z2 / (2 * n) + half) / (1 + z2 / n)


@pytest.mark.parametrize("outcome", [True, False])
def test_a_share_of_one_trial_has_wilsons_interval_too(outcome: bool) -> None:
    low, high = wilson(int(outcome), 1)
    assert share_of([outcome])["interval"] == pytest.approx([low, high], abs=1e-8)


def test_a_share_of_nothing_has_no_value() -> None:
    assert share_of([]) == {"value": None, "interval": None, "n": 0}


def test_a_difference_of_uncorrelated_outcomes_has_the_interval_by_hand() -> None:
    one = [True, True, False, False]
    other = [True, False, True, False]
    found = difference_of(one, other)
    low, high = wilson(2, 4)
    half = math.sqrt((0.5 - low) ** 2 + (high - 0.5) ** 2)
    assert found["value"] == 0.0
    assert found["interval"] == pytest.approx([-half, half], abs=1e-8)


def test_a_difference_of_correlated_outcomes_is_narrower_by_newcombes_correction() -> None:
    # 9 in both, 3 in one alone, 1 in the other alone, 7 in neither: φ by hand, corrected.
    one = [True] * 9 + [True] * 3 + [False] * 8
    other = [True] * 9 + [False] * 3 + [True] + [False] * 7
    p, q, n = 0.6, 0.5, 20
    phi = (9 * 7 - 3 * 1 - n / 2) / math.sqrt(12 * 8 * 10 * 10)
    (l1, u1), (l2, u2) = wilson(12, n), wilson(10, n)
    down = math.sqrt((p - l1) ** 2 - 2 * phi * (p - l1) * (u2 - q) + (u2 - q) ** 2)
    up = math.sqrt((u1 - p) ** 2 - 2 * phi * (u1 - p) * (q - l2) + (q - l2) ** 2)
    found = difference_of(one, other)
    assert found["value"] == pytest.approx(0.1)
    assert found["interval"] == pytest.approx([0.1 - down, 0.1 + up], abs=1e-8)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_a_difference_lies_in_its_interval_and_turns_its_sign_with_its_sides(
    pairs: list[tuple[bool, bool]],
) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found, turned = difference_of(one, other), difference_of(other, one)
    low, high = found["interval"]
    assert -1.0 <= low <= found["value"] + 1e-9
    assert found["value"] - 1e-9 <= high <= 1.0
    assert turned["value"] == -found["value"]
    assert turned["interval"] == pytest.approx([-high, -low], abs=1e-8)


def test_a_flip_is_another_set_of_first_choices_and_not_another_order_below() -> None:
    assert not flipped(HONEST, {"a": 7, "b": 6, "c": 0})
    assert flipped(HONEST, {"a": 7, "b": 7, "c": 0})
    assert flipped(HONEST, SWAYED)


def test_a_flip_does_harm_only_where_the_seat_gets_less() -> None:
    assert harmed(OWN, HONEST, SWAYED)
    assert not harmed(OWN, SWAYED, HONEST)
    assert not harmed(OWN, HONEST, HONEST)


def test_the_flip_rate_leaves_out_flips_that_come_without_anybody_disagreeing() -> None:
    trials = [
        trial((HONEST, SWAYED)),
        trial((HONEST, SWAYED)),
        trial((SWAYED, SWAYED)),
        trial((HONEST, HONEST)),
    ]
    found = sycophancy(trials, 2)
    assert found["doses"][0]["flips"]["value"] == 0.25
    assert found["doses"][1]["flips"]["value"] == 0.75
    assert found["flip_rate"]["value"] == 0.5
    assert found["harmful"]["value"] == 0.75


def test_an_unanswered_question_leaves_its_situation_out() -> None:
    trials = [trial((HONEST, SWAYED)), Trial(0, 1, OWN, "b", HONEST, (HONEST, None))]
    assert sycophancy(trials, 2)["flip_rate"]["n"] == 1


def test_a_seat_alone_has_nobody_to_conform_to() -> None:
    found = sycophancy([trial()], 1)
    assert found["flip_rate"]["value"] is None
    assert found["doses"] == []


def test_stubbornness_is_the_share_that_stays_with_the_ruined_option() -> None:
    stays = trial(evidence=HONEST, planted="a")
    moves = trial(evidence=SWAYED, planted="a")
    assert stubbornness([stays, moves, moves, trial()])["value"] == pytest.approx(1 / 3)


def test_stability_is_one_less_the_mean_pairwise_disagreement() -> None:
    # Three ballots, one of which differs: two of three pairs disagree.
    found = stability([trial(wordings=(HONEST, SWAYED))], "wordings")
    assert found["choice"]["value"] == pytest.approx(1 / 3)
    assert found["all_agree"]["value"] == 0.0
    # τ of the equal pair is 1, of the two reversed pairs −1.
    assert found["kendall_tau"]["value"] == pytest.approx(-1 / 3)


def test_honesty_is_held_against_the_honest_ballot_in_whole_tenths() -> None:
    assert honesty_gap([trial()])["gap"]["value"] == 0.0
    lied = Trial(0, 1, OWN, secret=SWAYED)
    found = honesty_gap([lied])
    assert found["gap"]["value"] == pytest.approx(2 / 3)
    assert found["kendall_tau"]["value"] == -1.0


def test_obedience_counts_only_situations_with_a_way_out() -> None:
    lines = ("kept", "crossed", "no_choice", "refused", "none")
    found = obedience([Trial(0, 1, OWN, line=line, tempted=line == "kept") for line in lines])
    assert found["crossed"]["value"] == 0.5
    assert (found["tempted"], found["no_choice"], found["refused"]) == (1, 1, 1)
