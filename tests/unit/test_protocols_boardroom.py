from __future__ import annotations

import pytest

from policies.protocols import protocol
from policies.protocols.boardroom import Readings, is_safe, phase_fallback, reason_label
from policies.records import Candidate, Context, Decision, Proposal
from tests.support.tables import context, history_of, observation, settle
from world.actions import Action
from world.errors import ProtocolError

KINDS = ("migrate_region", "optimize_energy", "scale_down", "scale_up")
CRISIS = Action.of("crisis_response", server_count=5, region="canada-hydro")


def table(
    latency: float | None,
    cost: float,
    carbon: float,
    votes: tuple[str, ...],
    recent: tuple[str, ...] = (),
    crisis: bool = False,
    extra: dict[str, str] | None = None,
    candidates: tuple[Candidate, ...] = (),
    vetoes: dict[int, dict[str, str]] | None = None,
) -> Context:
    metrics = {"latency_ms": latency, "cost_usd_per_hour": cost, "carbon_index": carbon}
    now = observation(metrics, {"crisis": crisis}, step=len(recent))
    options = candidates or tuple(Candidate((Action(kind),)) for kind in KINDS)
    seats = ("resource", "cost", "sustainability", "janitor")
    said = {**dict(zip(seats, votes, strict=False)), **(extra or {})}
    return context(
        [[0.0] * len(options)] * 4,
        candidates=options,
        seats=seats,
        proposals={seat: (Proposal((Action(kind),)),) for seat, kind in said.items()},
        history=history_of(now, [(Action(kind),) for kind in recent]),
        vetoes=vetoes,
    )


def decide(*arguments: object, **options: object) -> Decision:
    boardroom = protocol("cloudedge_boardroom")
    return settle(boardroom.decide(table(*arguments, **options)))  # type: ignore[arg-type]


def test_two_safe_votes_win_with_the_seeds_label() -> None:
    decision = decide(140.0, 380.0, 240.0, ("optimize_energy", "optimize_energy", "migrate_region"))
    assert decision.chosen.id == "optimize_energy"
    assert decision.reason == "2 vote(s)"
    assert decision.agreement
    assert decision.override_rule == ""
    assert decision.scores == {"optimize_energy": 2.0, "migrate_region": 1.0}


def test_two_unsafe_votes_fall_to_the_cascade_which_names_what_it_overrode() -> None:
    decision = decide(280.0, 500.0, 380.0, ("scale_up", "optimize_energy", "optimize_energy"))
    assert decision.chosen.id == "scale_up"
    assert decision.reason == "latency recovery"
    assert not decision.agreement
    assert decision.override_rule == "phase_fallback"
    assert decision.overridden_from == "optimize_energy"


def test_three_votes_for_three_actions_fall_to_the_cascade_with_nothing_overridden() -> None:
    decision = decide(155.0, 410.0, 230.0, ("scale_up", "scale_down", "optimize_energy"))
    assert decision.chosen.id == "optimize_energy"
    assert decision.reason == "carbon recovery"
    assert (decision.override_rule, decision.overridden_from) == ("phase_fallback", "")


def test_an_unsafe_majority_that_the_cascade_confirms_keeps_its_vote_label() -> None:
    decision = decide(300.0, 600.0, 380.0, ("scale_up", "scale_up", "migrate_region"))
    assert decision.chosen.id == "scale_up"  # unsafe because cost is above 520
    assert decision.reason == "2 vote(s)"
    assert decision.override_rule == "phase_fallback"
    assert decision.overridden_from == ""


def test_a_three_action_cycle_is_broken_without_a_vote() -> None:
    decision = decide(
        140.0,
        380.0,
        200.0,
        ("scale_down", "scale_down", "scale_down"),
        ("scale_up", "optimize_energy", "scale_down"),
    )
    assert decision.chosen.id == "migrate_region"
    assert decision.reason == "3-action cycle"
    assert decision.override_rule == "cycle"
    assert decision.overridden_from == "scale_down"


def test_an_oscillation_is_broken_in_either_order() -> None:
    for recent in (("scale_up", "scale_down"), ("scale_down", "scale_up")):
        decision = decide(140.0, 380.0, 200.0, ("scale_down",) * 3, recent)
        assert decision.chosen.id == "migrate_region"
        assert decision.reason == "oscillation"
        assert decision.override_rule == "oscillation"


def test_a_migration_or_a_repeat_among_the_last_three_is_no_cycle() -> None:
    votes = ("scale_down", "scale_down", "scale_down")
    for recent in (
        ("scale_up", "optimize_energy", "migrate_region"),
        ("scale_down", "optimize_energy", "scale_down"),
        ("optimize_energy",),
    ):
        assert decide(140.0, 380.0, 200.0, votes, recent).reason == "3 vote(s)"


def test_a_crisis_response_counts_as_one_of_the_last_three_actions() -> None:
    decision = decide(
        140.0, 380.0, 240.0, ("scale_up",) * 3, ("crisis_response", "scale_up", "optimize_energy")
    )
    assert decision.override_rule == "cycle"


def test_a_crisis_is_met_with_five_servers_in_canada() -> None:
    only = (Candidate((CRISIS,), origin=("mandatory",)),)
    recent = ("scale_up", "scale_down")
    votes = ("crisis_response",) * 3
    decision = decide(300.0, 500.0, 300.0, votes, recent, crisis=True, candidates=only)
    assert decision.chosen is only[0]
    assert decision.reason == "crisis: add 5 servers in canada-hydro"
    assert decision.agreement
    unlisted = decide(300.0, 500.0, 300.0, (), crisis=True)
    assert unlisted.chosen.now == (CRISIS,)


def test_a_fourth_seat_is_recorded_and_not_counted() -> None:
    votes = ("optimize_energy", "scale_down", "migrate_region")
    decision = decide(140.0, 380.0, 200.0, votes, extra={"janitor": "scale_down"})
    assert decision.override_rule == "phase_fallback"
    assert "scale_down" in decision.scores
    assert decision.scores["scale_down"] == 1.0


def test_vetoes_are_ignored_as_they_were() -> None:
    decision = decide(140.0, 380.0, 240.0, ("scale_down",) * 3, vetoes={0: {"scale_down": "never"}})
    assert decision.chosen.id == "scale_down"


def test_a_seat_that_did_not_answer_does_not_vote() -> None:
    decision = decide(140.0, 380.0, 240.0, ("scale_down", "scale_down"))
    assert decision.reason == "2 vote(s)"
    assert decide(140.0, 380.0, 240.0, ("scale_down",)).override_rule == "phase_fallback"
    assert decide(140.0, 380.0, 200.0, ()).chosen.id == "optimize_energy"


def test_votes_for_what_cannot_be_done_do_not_win() -> None:
    decision = decide(140.0, 380.0, 240.0, ("explode",) * 3)
    assert decision.chosen.id == "optimize_energy"
    assert decision.override_rule == "phase_fallback"


def test_a_cascade_that_a_guardrail_blocks_leaves_the_decision_to_the_room() -> None:
    options = tuple(
        Candidate((Action(kind),), feasible=kind != "scale_up", reasons=("guard/x: no",))
        for kind in KINDS
    )
    decision = decide(300.0, 380.0, 240.0, (), candidates=options)
    assert decision.chosen.feasible
    assert not decision.agreement
    assert decision.no_deal == "weighted_score"


def test_a_metric_that_is_not_known_is_one_clear_line() -> None:
    with pytest.raises(ProtocolError) as caught:
        decide(None, 380.0, 240.0, ("scale_up",) * 3)
    assert "latency_ms" in caught.value.line()


@pytest.mark.parametrize(
    ("latency", "cost", "carbon", "unsafe"),
    [
        (170.5, 400.0, 300.0, {"scale_down", "optimize_energy", "migrate_region"}),
        (170.0, 400.0, 300.0, {"migrate_region"}),
        (160.0, 520.0, 220.0, set()),
        (160.0, 520.5, 219.0, {"scale_up", "migrate_region"}),
    ],
)
def test_what_is_unsafe_is_what_the_seed_calls_unsafe(
    latency: float, cost: float, carbon: float, unsafe: set[str]
) -> None:
    seen = Readings(latency, cost, carbon)
    assert {kind for kind in KINDS if not is_safe(seen, kind)} == unsafe


@pytest.mark.parametrize(
    ("latency", "cost", "carbon", "expected"),
    [
        (170.5, 100.0, 100.0, "scale_up"),
        (170.0, 100.0, 320.5, "migrate_region"),
        (160.0, 100.0, 260.5, "migrate_region"),
        (160.5, 100.0, 260.5, "scale_up"),
        (150.0, 520.5, 260.0, "scale_down"),
        (150.5, 520.5, 220.5, "optimize_energy"),
        (150.0, 450.5, 220.0, "scale_down"),
        (150.5, 450.5, 220.0, "scale_up"),
        (150.5, 450.0, 220.0, "scale_up"),
        (150.0, 400.5, 220.0, "scale_down"),
        (150.0, 400.0, 220.0, "optimize_energy"),
    ],
)
def test_the_cascade_is_the_seeds(
    latency: float, cost: float, carbon: float, expected: str
) -> None:
    assert phase_fallback(Readings(latency, cost, carbon)) == expected


@pytest.mark.parametrize(
    ("latency", "cost", "carbon", "kind", "label"),
    [
        (185.5, 0.0, 0.0, "scale_up", "latency recovery"),
        (185.0, 0.0, 0.0, "scale_up", "goal guardrail"),
        (0.0, 0.0, 220.5, "migrate_region", "carbon recovery"),
        (0.0, 0.0, 220.5, "optimize_energy", "carbon recovery"),
        (0.0, 400.5, 220.0, "optimize_energy", "cost recovery"),
        (0.0, 400.5, 0.0, "scale_down", "cost recovery"),
        (0.0, 400.0, 220.0, "scale_down", "goal guardrail"),
    ],
)
def test_labels_are_the_seeds(
    latency: float, cost: float, carbon: float, kind: str, label: str
) -> None:
    assert reason_label(Readings(latency, cost, carbon), 1, kind) == label
