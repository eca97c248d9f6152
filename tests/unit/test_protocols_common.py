from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from policies.protocols import no_deal_rule, protocol, protocol_names, require_world
from policies.protocols.common import best, weighted_sums
from policies.records import (
    Ask,
    Candidate,
    Context,
    Decision,
    Deliberation,
    Reply,
    Round,
)
from tests.support.tables import context, drive, settle
from world.actions import Action
from world.errors import ConfigError, NoAgreementError, UnknownNameError, WarRoomError

ONE_SHOT = (
    "approval",
    "borda",
    "copeland",
    "incident_commander",
    "kalai_smorodinsky",
    "leximin",
    "nash",
    "plurality",
    "ranked_pairs",
    "schulze",
    "vcg",
    "weighted_score",
)
FAVOURITES = ("incident_commander", "plurality")


def decide(name: str, table: Context) -> Decision:
    return settle(protocol(name).decide(table))


# -- finding them -----------------------------------------------------------------------------


def test_every_protocol_says_what_it_does_and_where_that_comes_from() -> None:
    assert protocol_names() == tuple(sorted({*protocol_names(), *ONE_SHOT, "cloudedge_boardroom"}))
    for name in protocol_names():
        found = protocol(name)
        assert found.name == name
        assert found.title
        assert "Source:" in found.description
        assert "No deal" in found.description or "no deal" in found.description
        assert "ies" in found.description  # Ties
        text = type(found).__doc__ or ""
        for word in ("Inputs:", "Ties:", "No deal:", "Properties:", "Source:"):
            assert word in text, f"{name}: {word}"


def test_an_unknown_protocol_is_refused_with_close_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        protocol("wieghted_score")
    assert "Did you mean weighted_score" in caught.value.fix
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "reference",
    [
        "no.such.module:Thing",
        "policies.protocols.welfare:Missing",
        "policies.protocols.welfare:",
        ":WeightedScore",
        "os;rm:x",
        "policies.protocols.welfare:WeightedScore:x",
        "policies.protocols.registry:protocol_names",
        "policies.table:SeatRules",
    ],
)
def test_an_extension_that_is_no_protocol_is_one_clear_line(reference: str) -> None:
    with pytest.raises(WarRoomError) as caught:
        protocol(reference)
    assert "\n" not in caught.value.line()
    assert caught.value.exit_code == 2


def test_your_own_protocol_is_found_by_module_and_name() -> None:
    own = protocol("tests.unit.test_protocols_common:TwoRounds")
    assert own.name == "two_rounds"


def test_a_protocol_is_refused_on_a_world_that_it_was_not_made_for() -> None:
    require_world(protocol("nash"), "finops")
    require_world(protocol("cloudedge_boardroom"), "cloudedge")
    with pytest.raises(ConfigError):
        require_world(protocol("cloudedge_boardroom"), "finops")


def test_the_no_deal_rule_is_nop_or_a_commander_or_a_protocol() -> None:
    assert no_deal_rule("nop") == "nop"
    assert no_deal_rule("nash") == "nash"
    assert no_deal_rule("commander") == "commander"
    with pytest.raises(UnknownNameError):
        no_deal_rule("shrug")


# -- vetoes, ties, no deal --------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_SHOT)
def test_vetoed_and_infeasible_candidates_are_out_first_and_recorded(name: str) -> None:
    table = context(
        [[1.0, 9.0, 5.0], [1.0, 9.0, 5.0]],
        vetoes={1: {"b": "too slow"}},
        infeasible=["c"],
    )
    decision = decide(name, table)
    assert decision.chosen.id == "a"
    assert decision.agreement
    assert decision.eliminated["b"] == "vetoed by s1 (s1/red_line/1): too slow"
    assert decision.eliminated["c"] == "guard/validator: no"
    assert set(decision.scores) == {"a"}


@pytest.mark.parametrize("name", ONE_SHOT)
def test_a_tie_goes_to_the_smaller_id_in_whatever_order_candidates_come(name: str) -> None:
    decision = decide(name, context([[1.0, 1.0], [2.0, 2.0]], ids=["zeta", "alpha"]))
    assert decision.chosen.id == "alpha"
    # An indifferent seat has one vote and casts it by the same rule: then votes do not tie.
    assert decision.tie == (() if name in FAVOURITES else ("alpha", "zeta"))


def test_a_tie_of_votes_goes_to_the_higher_weighted_sum() -> None:
    decision = decide("plurality", context([[3.0, 1.0], [1.0, 9.0]]))
    assert decision.tie == ("a", "b")
    assert decision.chosen.id == "b"


@pytest.mark.parametrize(
    ("one", "other", "tie"),
    [
        (0.5, 0.5000000009, True),  # within a billionth
        (0.5, 0.5000000021, False),
        (5.0, 5.000000004, True),  # equal to nine digits
        (5.0, 5.00000001, False),
    ],
)
def test_values_a_billionth_apart_or_equal_to_nine_digits_tie(
    one: float, other: float, tie: bool
) -> None:
    decision = decide("weighted_score", context([[one, other]]))
    assert decision.tie == (("a", "b") if tie else ())
    assert decision.chosen.id == ("a" if other == 5.000000004 else "b")


def test_the_tie_rule_prefers_the_higher_sum_and_then_the_smaller_id() -> None:
    table = context([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    assert best(table, table.utilities[0], table.admissible) == (1, ("a", "b", "c"))


def test_weighted_sums_run_in_seat_order_and_keep_nine_digits() -> None:
    table = context([[0.1, 1.0], [0.2, 1.0]], weights=[1.0, 0.5])
    assert weighted_sums(table).tolist() == [0.2, 1.5]


@pytest.mark.parametrize("name", ONE_SHOT)
def test_a_mandatory_candidate_passes_every_protocol(name: str) -> None:
    only = Candidate((Action("crisis_response"),), origin=("mandatory",))
    decision = decide(name, context([[-9.0], [-9.0]], candidates=[only]))
    assert decision.chosen is only
    assert decision.agreement
    assert "mandatory" in decision.reason


@pytest.mark.parametrize("name", ONE_SHOT)
def test_when_all_is_vetoed_the_room_does_nothing(name: str) -> None:
    table = context([[5.0, 1.0]], ids=["act", "nop"], vetoes={0: {"act": "no", "nop": "no"}})
    decision = decide(name, table)
    assert decision.chosen.id == "nop"
    assert not decision.agreement
    assert decision.no_deal == "all_vetoed"
    assert set(decision.eliminated) == {"act", "nop"}


@pytest.mark.parametrize("name", ONE_SHOT)
def test_where_the_world_cannot_stand_still_the_fewest_weighted_vetoes_win(name: str) -> None:
    vetoes = {
        0: {"a": "no", "b": "no"},
        1: {"a": "no", "c": "no", "d": "no"},
        2: {"b": "no"},
    }
    table = context(
        [[0.0, 0.0, 1.0, 2.0], [0.0] * 4, [0.0] * 4],
        weights=[1.0, 0.5, 1.0],
        vetoes=vetoes,
    )
    decision = decide(name, table)
    assert decision.chosen.id == "d"  # c and d: 0.5 against; d has the higher sum
    assert not decision.agreement
    tied = dataclasses.replace(table, utilities=np.zeros((3, 4)))
    assert decide(name, tied).chosen.id == "c"


@pytest.mark.parametrize("name", ONE_SHOT)
def test_an_infeasible_candidate_is_never_the_way_out(name: str) -> None:
    table = context([[1.0, 2.0]], infeasible=["b"], vetoes={0: {"a": "no"}})
    assert decide(name, table).chosen.id == "a"
    with pytest.raises(NoAgreementError) as caught:
        decide(name, context([[1.0, 2.0]], infeasible=["a", "b"]))
    assert "\n" not in caught.value.line()


@pytest.mark.parametrize("name", ONE_SHOT)
def test_a_room_in_which_nobody_has_an_interest_does_nothing(name: str) -> None:
    table = context([[0.0, 0.0]], ids=["act", "nop"], abstaining=[0])
    decision = decide(name, table)
    assert decision.chosen.id == "nop"
    assert not decision.agreement
    assert decision.no_deal == "nobody_votes"
    silent = decide(name, context([[0.0, 5.0]], ids=["b", "c"], weights=[0.0]))
    assert silent.chosen.id == "b"


def test_no_deal_is_decided_by_another_protocol_which_is_named() -> None:
    decision = decide("nash", context([[5.0, -1.0], [-1.0, 2.0]]))
    assert decision.chosen.id == "a"
    assert not decision.agreement
    assert decision.protocol == "weighted_score"
    assert decision.no_deal == "weighted_score"
    assert decision.reason.startswith("no deal under nash")
    assert "s0 would be worse off in 1 of 2; s1 would be worse off in 1 of 2" in decision.reason
    assert decision.eliminated == {}  # both were in the running again


def test_no_deal_may_mean_doing_nothing() -> None:
    rows = [[5.0, -1.0, -0.5], [-1.0, 2.0, -0.5]]
    ids = ["act", "buy", "nop"]
    decision = decide("nash", context(rows, ids=ids, no_deal="nop"))
    assert decision.chosen.id == "nop"
    assert (decision.protocol, decision.no_deal, decision.agreement) == ("nash", "nop", False)
    assert decision.eliminated == {
        "act": "below the disagreement of s1",
        "buy": "below the disagreement of s0",
    }


def test_doing_nothing_is_no_way_out_where_it_is_vetoed_or_missing() -> None:
    rows = [[5.0, -1.0, -0.5], [-1.0, 2.0, -0.5]]
    vetoed = context(rows, ids=["act", "buy", "nop"], no_deal="nop", vetoes={0: {"nop": "no"}})
    assert decide("nash", vetoed).chosen.id == "act"
    missing = context(rows, no_deal="nop")
    assert decide("nash", missing).no_deal == "weighted_score"


def test_a_protocol_that_is_its_own_no_deal_rule_does_not_turn_in_circles() -> None:
    decision = decide("nash", context([[5.0, -1.0], [-1.0, 2.0]], no_deal="nash"))
    assert decision.protocol == "weighted_score"


def test_the_winner_is_explained_with_its_lead() -> None:
    decision = decide("weighted_score", context([[1.0, 3.0], [1.0, 1.5]]))
    assert decision.reason == "highest weighted score 4.5, 2.5 ahead of a"
    assert decide("plurality", context([[1.0, 3.0], [1.0, 1.5]])).reason == "favourite of s0 and s1"


# -- more than one round ----------------------------------------------------------------------


class TwoRounds:
    """Each seat may refuse the best-scoring candidate once; the next one then stands."""

    name = "two_rounds"
    title = "Ask twice"
    description = "For tests."
    max_rounds = 2
    worlds: tuple[str, ...] = ()

    def decide(self, context: Context) -> Deliberation:
        order = sorted(
            np.flatnonzero(context.admissible).tolist(),
            key=lambda place: (-weighted_sums(context)[place], context.candidates[place].id),
        )
        rounds = []
        for number, place in enumerate(order[: self.max_rounds], 1):
            offer = context.candidates[place]
            replies = yield tuple(
                Ask(seat, "respond", {"offer": offer.id}, number) for seat in context.seats
            )
            rounds.append(
                Round(
                    number,
                    tuple({"seat": s, "accept": replies[s].accept} for s in context.seats),
                )
            )
            if all(replies[seat].accept for seat in context.seats):
                return Decision(offer, self.name, True, "accepted by all", rounds=tuple(rounds))
        return Decision(
            context.candidates[order[0]],
            self.name,
            False,
            "nobody gave way",
            rounds=tuple(rounds),
            no_deal="first_offer",
        )


def test_a_protocol_of_several_rounds_asks_in_batches_and_is_sent_the_replies() -> None:
    table = context([[3.0, 2.0], [3.0, 2.0]])
    yes, no = Reply(accept=True), Reply(accept=False)
    decision, asked = drive(
        TwoRounds().decide(table), [{"s0": yes, "s1": no}, {"s0": yes, "s1": yes}]
    )
    assert decision.chosen.id == "b"
    assert decision.agreement
    assert len(decision.rounds) == 2
    assert [
        [(ask.seat, ask.kind, ask.payload["offer"], ask.round) for ask in batch] for batch in asked
    ] == [
        [("s0", "respond", "a", 1), ("s1", "respond", "a", 1)],
        [("s0", "respond", "b", 2), ("s1", "respond", "b", 2)],
    ]
    stubborn, _ = drive(TwoRounds().decide(table), [{"s0": yes, "s1": no}] * 2)
    assert not stubborn.agreement


def test_one_shot_protocols_ask_nobody() -> None:
    for name in ONE_SHOT:
        assert protocol(name).max_rounds == 0
        deliberation = protocol(name).decide(context([[1.0, 2.0]]))
        with pytest.raises(StopIteration):
            next(deliberation)
