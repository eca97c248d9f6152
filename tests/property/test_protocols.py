"""Protocols against brute force, on random tables with ties, vetoes and refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.protocols import protocol
from policies.protocols.boardroom import CRISIS
from policies.records import Candidate, Context, Decision, Proposal
from tests.support import seed_boardroom
from tests.support.tables import context, history_of, observation, settle
from world.actions import Action
from world.noise import channel, integers, uniforms

RULES = ("nash", "plurality", "weighted_score")
# Few distinct values make ties frequent; the rest are ordinary reals.
VALUES = st.one_of(
    st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]),
    st.floats(-10, 10, allow_nan=False).map(lambda x: float(f"{x:.9g}")),
)
WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def tables(draw: st.DrawFn, vetoes: bool = True) -> Context:
    seats = draw(st.integers(1, 5))
    count = draw(st.integers(1, 9))
    rows = draw(
        st.lists(st.lists(VALUES, min_size=count, max_size=count), min_size=seats, max_size=seats)
    )
    ids = draw(st.permutations([f"c{place}" for place in range(count)]))
    weights = draw(st.lists(WEIGHTS, min_size=seats, max_size=seats))
    disagreement = draw(st.lists(VALUES, min_size=seats, max_size=seats))
    against: dict[int, dict[str, str]] = {}
    refused: list[str] = []
    if vetoes:
        refused = draw(st.lists(st.sampled_from(ids), max_size=2, unique=True))
        if len(refused) == count:
            refused = refused[1:]
        vetoed = draw(st.lists(st.sampled_from(ids), max_size=3, unique=True))
        against = {0: {name: "no" for name in vetoed if name not in refused}}
    if draw(st.booleans()):
        ids[0] = "nop"
        refused = [name for name in refused if name in ids]
        against = {row: {n: w for n, w in v.items() if n in ids} for row, v in against.items()}
    return context(
        rows,
        ids=ids,
        weights=weights,
        disagreement=disagreement,
        vetoes=against,
        infeasible=refused,
        no_deal=draw(st.sampled_from(["nop", "weighted_score", "plurality"])),
    )


def decide(name: str, table: Context) -> Decision:
    return settle(protocol(name).decide(table))


def nine(value: float) -> float:
    return float(f"{value:.9g}")


# -- oracles: plain loops that share nothing with the code ------------------------------------


def sums(table: Context) -> list[float]:
    result = []
    for place in range(len(table.candidates)):
        total = 0.0
        for row in range(len(table.seats)):
            total += float(table.weights[row]) * float(table.utilities[row, place])
        result.append(nine(total))
    return result


def winner(table: Context, scores: Sequence[float], running: Sequence[int]) -> str:
    top = max(nine(scores[place]) for place in running)
    tied = [place for place in running if nine(scores[place]) >= top - 1e-9]
    highest = max(sums(table)[place] for place in tied)
    tied = [place for place in tied if sums(table)[place] == highest]
    fewest = min(taken(table, place) for place in tied)
    return min(table.candidates[place].id for place in tied if taken(table, place) == fewest)


def taken(table: Context, place: int) -> int:
    """Actions that a candidate takes now."""
    return sum(action.kind != "nop" for action in table.candidates[place].now)


def standing(table: Context) -> list[int]:
    return [place for place in range(len(table.candidates)) if table.admissible[place]]


def voting_seats(table: Context) -> list[int]:
    return [row for row in range(len(table.seats)) if table.weights[row] > 0]


def nash_oracle(table: Context) -> str | None:
    rows = voting_seats(table)
    rational: dict[int, tuple[int, float]] = {}
    for place in standing(table):
        gains = [
            nine(float(table.utilities[row, place]) - float(table.disagreement[row]))
            for row in rows
        ]
        gains = [0.0 if abs(gain) <= 1e-9 else gain for gain in gains]
        if min(gains) < 0 or max(gains) <= 0:
            continue
        welfare = 0.0
        for row, gain in zip(rows, gains, strict=True):
            welfare += float(table.weights[row]) * (math.log(gain) if gain > 0 else 0.0)
        rational[place] = (sum(gain > 0 for gain in gains), welfare)
    if not rational:
        return None
    most = max(count for count, _ in rational.values())
    running = [place for place, (count, _) in rational.items() if count == most]
    scores = [rational.get(place, (0, 0.0))[1] for place in range(len(table.candidates))]
    return winner(table, scores, running)


def plurality_oracle(table: Context) -> str:
    votes = [0.0] * len(table.candidates)
    names = [candidate.id for candidate in table.candidates]
    for row in voting_seats(table):
        favourite = winner(table, table.utilities[row].tolist(), standing(table))
        votes[names.index(favourite)] += float(table.weights[row])
    return winner(table, votes, standing(table))


@given(tables())
@settings(max_examples=300, deadline=None)
def test_each_rule_picks_what_brute_force_picks(table: Context) -> None:
    if not table.admissible.any() or not voting_seats(table):
        return
    assert decide("weighted_score", table).chosen.id == winner(table, sums(table), standing(table))
    assert decide("plurality", table).chosen.id == plurality_oracle(table)
    expected = nash_oracle(table)
    decision = decide("nash", table)
    assert decision.agreement == (expected is not None)
    if expected is not None:
        assert decision.chosen.id == expected


@given(tables(), st.sampled_from(RULES))
@settings(max_examples=300, deadline=None)
def test_no_rule_picks_an_inadmissible_candidate_where_an_admissible_one_exists(
    table: Context, name: str
) -> None:
    decision = decide(name, table)
    place = table.candidates.index(decision.chosen)
    assert decision.chosen.feasible
    if table.admissible.any():
        assert table.admissible[place]
    out = {c.id for c, fine in zip(table.candidates, table.admissible, strict=True) if not fine}
    assert out <= set(decision.eliminated)
    assert all(decision.eliminated.values())
    assert not set(decision.scores) & set(decision.eliminated)


@given(tables(), st.sampled_from(RULES), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_the_candidates_changes_nothing(
    table: Context, name: str, shuffler: object
) -> None:
    order = list(range(len(table.candidates)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    ids = [table.candidates[place].id for place in order]
    shuffled = context(
        table.utilities[:, order].tolist(),
        ids=ids,
        weights=table.weights.tolist(),
        disagreement=table.disagreement.tolist(),
        vetoes={0: {n: v.reason for n, v in table.ballots[0].vetoes.items()}},
        infeasible=[c.id for c in table.candidates if not c.feasible],
        no_deal=table.no_deal,
    )
    assert decide(name, shuffled).chosen.id == decide(name, table).chosen.id


@given(tables(vetoes=False), st.sampled_from(RULES), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_the_seats_does_not_change_the_welfare(
    table: Context, name: str, shuffler: object
) -> None:
    order = list(range(len(table.seats)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    reseated = context(
        table.utilities[order].tolist(),
        ids=[candidate.id for candidate in table.candidates],
        weights=table.weights[order].tolist(),
        disagreement=table.disagreement[order].tolist(),
        no_deal=table.no_deal,
    )
    before, after = decide(name, table), decide(name, reseated)
    welfare = dict(zip([c.id for c in table.candidates], sums(table), strict=True))
    assert math.isclose(
        welfare[before.chosen.id], welfare[after.chosen.id], rel_tol=1e-8, abs_tol=1e-8
    )


@given(tables(), st.sampled_from(RULES))
@settings(max_examples=100, deadline=None)
def test_a_decision_is_a_function_of_the_table(table: Context, name: str) -> None:
    assert decide(name, table) == decide(name, table)


# -- the boardroom against an independent reading of the seed's rules --------------------------

KINDS = ("scale_up", "scale_down", "optimize_energy", "migrate_region")
LADDER = [
    lambda lat, cost, carbon: "scale_up" if lat > 250 else None,
    lambda lat, cost, carbon: "scale_up" if lat > 170 else None,
    lambda lat, cost, carbon: "migrate_region" if carbon > 320 and lat <= 180 else None,
    lambda lat, cost, carbon: "migrate_region" if carbon > 260 and lat <= 160 else None,
    lambda lat, cost, carbon: "scale_down" if cost > 520 and lat <= 150 else None,
    lambda lat, cost, carbon: "optimize_energy" if carbon > 220 and lat <= 160 else None,
    lambda lat, cost, carbon: "scale_down" if cost > 450 and lat <= 150 else None,
    lambda lat, cost, carbon: "scale_up" if cost > 450 else None,
    lambda lat, cost, carbon: "scale_up" if lat > 150 else None,
    lambda lat, cost, carbon: "scale_down" if cost > 400 else None,
]


def boardroom_oracle(
    lat: float, cost: float, carbon: float, votes: Sequence[str], recent: Sequence[str]
) -> tuple[str, str]:
    tail = list(recent[-3:])
    if len(tail) == 3 and len({*tail}) == 3 and not tail.count("migrate_region"):
        return "migrate_region", "3-action cycle"
    if sorted(tail[-2:]) == ["scale_down", "scale_up"]:
        return "migrate_region", "oscillation"
    unsafe = set()
    if lat > 170:
        unsafe |= {"scale_down", "optimize_energy"}
    if lat > 160 or carbon < 220:
        unsafe |= {"migrate_region"}
    if cost > 520:
        unsafe |= {"scale_up"}
    popular = [kind for kind in KINDS if list(votes).count(kind) > 1]
    action = popular[0] if popular and popular[0] not in unsafe else None
    for rung in LADDER:
        action = action or rung(lat, cost, carbon)
    action = action or "optimize_energy"
    if list(votes).count(action) > 1:
        return action, f"{list(votes).count(action)} vote(s)"
    if action == "scale_up" and lat > 185:
        return action, "latency recovery"
    if action in ("optimize_energy", "migrate_region") and carbon > 220:
        return action, "carbon recovery"
    if action in ("scale_down", "optimize_energy") and cost > 400:
        return action, "cost recovery"
    return action, "goal guardrail"


def test_the_boardroom_decides_like_the_seeds_rules_on_two_thousand_situations() -> None:
    cases = 2000
    entity = np.arange(cases)
    draws = uniforms(11, entity, channel("boardroom.metrics"), 0)
    words = integers(11, entity, channel("boardroom.votes"), 0, 0, 3)
    past = integers(11, entity, channel("boardroom.recent"), 0, 0, 4)
    options = tuple(Candidate((Action(kind),)) for kind in sorted(KINDS))
    boardroom = protocol("cloudedge_boardroom")
    seen = set()
    for case in range(cases):
        # Every third case sits exactly on a threshold of some rule.
        lat = 100 + 200 * float(draws[0, case])
        cost = 350 + 200 * float(draws[1, case])
        carbon = 180 + 180 * float(draws[2, case])
        if case % 3 == 0:
            lat, cost, carbon = 10 * round(lat / 10), 10 * round(cost / 10), 20 * round(carbon / 20)
        votes = [KINDS[code] for code in words[:3, case].tolist()]
        recent = [(*KINDS, "crisis_response")[code] for code in past[: case % 5, case].tolist()]
        metrics = {"latency_ms": lat, "cost_usd_per_hour": cost, "carbon_index": carbon}
        table = context(
            [[0.0] * 4] * 3,
            candidates=options,
            seats=("resource", "cost", "sustainability"),
            proposals={
                seat: (Proposal((Action(kind),)),)
                for seat, kind in zip(("resource", "cost", "sustainability"), votes, strict=True)
            },
            history=history_of(
                observation(metrics, {"crisis": False}), [(Action(kind),) for kind in recent]
            ),
        )
        decision = settle(boardroom.decide(table))
        expected = boardroom_oracle(lat, cost, carbon, votes, recent)
        assert (decision.chosen.id, decision.reason) == expected, (metrics, votes, recent)
        seen.add(expected)
    assert len(seen) > 15  # the draws reach most combinations of action and label


def test_the_boardroom_and_its_three_agents_agree_with_the_reference_on_two_thousand_steps() -> (
    None
):
    cases = 2000
    entity = np.arange(cases)
    now_draws = uniforms(12, entity, channel("boardroom.now"), 0)
    before_draws = uniforms(12, entity, channel("boardroom.before"), 0)
    past = integers(12, entity, channel("boardroom.past"), 0, 0, 4)
    crisis = Candidate((CRISIS,), origin=("mandatory",))
    plain = tuple(Candidate((Action(kind),)) for kind in sorted(KINDS))
    boardroom = protocol("cloudedge_boardroom")
    for case in range(cases):
        in_crisis = now_draws[3, case] < 0.1
        now = seed_boardroom.Seen(*_metrics(now_draws[:, case]), bool(in_crisis))
        before = seed_boardroom.Seen(*_metrics(before_draws[:, case]), False)
        done = [(*KINDS, "crisis_response")[code] for code in past[: case % 5, case].tolist()]
        said = seed_boardroom.proposals(now, before if done else None)
        metrics = {
            "latency_ms": now.latency,
            "cost_usd_per_hour": now.cost,
            "carbon_index": now.carbon,
        }
        options = (crisis,) if in_crisis else plain
        table = context(
            [[0.0] * len(options)] * 3,
            candidates=options,
            seats=("resource", "cost", "sustainability"),
            proposals={
                seat: (Proposal((Action(kind),)),)
                for seat, kind in zip(("resource", "cost", "sustainability"), said, strict=True)
            },
            history=history_of(
                observation(metrics, {"crisis": in_crisis}), [(Action(kind),) for kind in done]
            ),
        )
        decision = settle(boardroom.decide(table))
        action, label = seed_boardroom.decide(now, before if done else None, done)
        assert decision.chosen.now[0].kind == action
        assert decision.reason.split(":")[0] == label


def _metrics(draws: np.ndarray) -> tuple[float, float, float]:
    return (
        100 + 220 * float(draws[0]),
        330 + 300 * float(draws[1]),
        180 + 220 * float(draws[2]),
    )
