from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.spec import EpisodeSpec
from orchestrator.study.intervals import SCORE_RANGE, estimate, rate_of, student_quantile
from orchestrator.study.tournament import (
    Grid,
    names_of,
    persona_set,
    row_of,
    seeds_of,
    summarise,
)
from tests.support import watched
from world.errors import ConfigError, ProtocolError


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0:3", (0, 1, 2)),
        ("7", (7,)),
        ("5, 1:3,5", (5, 1, 2)),
        ("0:1", (0,)),
        (str(2**63 - 1), (2**63 - 1,)),
    ],
)
def test_seeds_are_half_open_ranges_and_single_numbers_each_once(
    text: str, seeds: tuple[int, ...]
) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize(
    "text", ["", "3:3", "4:1", "a", "-1", "1:", "1:2:3", "1.5", "0:99999999999", str(2**63), "²"]
)
def test_seeds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--seeds is"):
        seeds_of(text)


def test_names_are_repeated_or_joined_by_commas() -> None:
    assert names_of(["a,b", "c", "a", " d ,"]) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", {}),
        ("default", {}),
        ("cost=hawk", {"cost": "hawk"}),
        ("cost=hawk,resource=x", {"cost": "hawk", "resource": "x"}),
        ("cost=hawk + resource=x", {"cost": "hawk", "resource": "x"}),
        ("hawk", {"role-of-hawk": "hawk"}),
    ],
)
def test_a_persona_set_is_pairs_or_names_that_know_their_role(
    text: str, chosen: dict[str, str]
) -> None:
    assert persona_set(text, lambda name: f"role-of-{name}") == chosen


@pytest.mark.parametrize("text", ["cost=", "Cost=x", "cost=a,cost=b", "=x"])
def test_a_persona_set_with_a_fault_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--personas is"):
        persona_set(text, str)


def test_cells_come_in_the_order_scenario_protocol_personas_seed() -> None:
    grid = Grid(("s", "t"), ("p", "q"), ({}, {"cost": "hawk"}), (0, 1))
    base = EpisodeSpec(personas={"janitor": "j"}, steps=5)
    specs = grid.specs(base)
    assert len(specs) == 16
    assert [(s.scenario, s.protocol, s.personas.get("cost"), s.seed) for s in specs[:5]] == [
        ("s", "p", None, 0),
        ("s", "p", None, 1),
        ("s", "p", "hawk", 0),
        ("s", "p", "hawk", 1),
        ("s", "q", None, 0),
    ]
    assert {spec.personas["janitor"] for spec in specs} == {"j"}
    assert {spec.steps for spec in specs} == {5}


def test_a_failed_cell_is_a_row_with_its_error_and_counts_in_no_mean() -> None:
    spec = EpisodeSpec(seed=3)
    failed = row_of(spec, ProtocolError("redis://:pw@h refused \x1b[2J", "why", "fix"))
    assert failed["error"] == {
        "what": "redis://:***@h refused \\x1b[2J",
        "why": "why",
        "fix": "fix",
    }
    assert failed["score"] is None
    played = [row_of(spec, watched.result(score=score)) for score in (0.2, 0.4)]
    entries = summarise([*played, failed])
    assert sum(entry["n"] for entry in entries) == 2
    assert sum(entry["errors"] for entry in entries) == 1
    assert entries[0]["score"]["mean"] == 0.3
    assert entries[0]["score"]["se"] == 0.1


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_an_estimate_is_mean_and_standard_error(values: list[float]) -> None:
    found = estimate(values)
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    assert found["n"] == len(values)
    assert found["mean"] == pytest.approx(mean, abs=1e-3, rel=1e-6)
    assert found["se"] == pytest.approx((variance / len(values)) ** 0.5, abs=1e-3, rel=1e-6)
    assert found["interval"][0] <= found["mean"] <= found["interval"][1]


def test_one_row_has_a_mean_and_no_standard_error_and_none_has_neither() -> None:
    assert estimate([2.0]) == {"mean": 2.0, "se": None, "interval": None, "n": 1}
    assert estimate([]) == {"mean": None, "se": None, "interval": None, "n": 0}


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (120, 1.9799)],
)
def test_quantiles_of_student_are_those_of_the_published_table(
    freedom: int, quantile: float
) -> None:
    """Table of t, 97.5 %: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert student_quantile(freedom) == pytest.approx(quantile, abs=5e-5)


def test_the_series_and_the_expansion_of_the_quantile_meet() -> None:
    quantiles = [student_quantile(freedom) for freedom in range(1995, 2006)]
    steps = [one - two for one, two in pairwise(quantiles)]
    assert all(step > 0 for step in steps)
    assert max(steps) == pytest.approx(min(steps), rel=0.02)


def test_an_interval_of_few_values_is_students_and_wider_than_the_normal_one() -> None:
    found = estimate([1.0, 2.0, 3.0])
    half = 4.302653 * found["se"]
    assert found["interval"] == pytest.approx([2.0 - half, 2.0 + half], abs=1e-5)


def test_an_interval_of_scores_stays_in_their_range() -> None:
    assert estimate([0.02, 0.98], SCORE_RANGE)["interval"] == [0.01, 0.99]
    rows = [row_of(EpisodeSpec(), watched.result(score=score)) for score in (0.02, 0.98)]
    assert summarise(rows)[0]["score"]["interval"] == [0.01, 0.99]


@pytest.mark.parametrize(
    ("wins", "n", "interval"),
    [(0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (8, 10, (0.4902, 0.9433))],
)
def test_the_interval_of_a_rate_is_wilsons(
    wins: int, n: int, interval: tuple[float, float]
) -> None:
    """Figures worked by hand from the formula in Wilson (1927)."""
    found = rate_of([place < wins for place in range(n)])
    assert found["interval"] == pytest.approx(interval, abs=5e-5)
    assert found["mean"] == wins / n


def test_one_outcome_has_a_rate_and_no_interval() -> None:
    assert rate_of([True]) == {"mean": 1.0, "se": None, "interval": None, "n": 1}
    assert rate_of([]) == {"mean": None, "se": None, "interval": None, "n": 0}
