"""Whole episodes with seats left empty: the same noise, the same results however they are run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from orchestrator.study.change import Change
from orchestrator.study.counterfactual import counterfactual
from orchestrator.study.influence.account import (
    Failure,
    Influence,
    Question,
    document,
    influence_of_runs,
    influence_over_seeds,
)
from orchestrator.study.influence.coalitions import Player, WatchedResult, empty_room
from orchestrator.study.influence.following import follow
from orchestrator.study.recorded import Recorded, recorded
from policies.protocols.welfare import WeightedScore
from policies.records import Context, Deliberation
from tests.support.llm_rooms import llm_spec
from tests.support.llm_stub import LLMStub
from tests.support.rooms import room
from world.actions import joint_id
from world.errors import ConfigError, TraceError, UnknownNameError

SEATS = ("resource", "cost", "sustainability", "janitor")
ONE_MODEL: dict[str, Any] = {
    "default_model": "stub",
    "overrides": ('cost.backend.kind="llm"',),
}


def spec(**fields: Any) -> EpisodeSpec:
    """A short episode, in process and without files."""
    base: dict[str, Any] = {
        "scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": "",
        "steps": 5, "lookahead_steps": 2, "samples": 2,
    }  # fmt: skip
    return EpisodeSpec(**{**base, **fields})


def ran(folder: Path, **fields: Any) -> Recorded:
    """A short episode with files, read back."""
    result = run_episode(spec(out=str(folder), **fields))
    return recorded(result.run, folder)


def over_seeds(seeds: range, question: Question | None = None, **fields: Any) -> Influence:
    """Influence over seeds of a short episode."""
    return influence_over_seeds(spec(**fields), seeds, question or Question())


def test_every_coalition_is_worth_what_an_ordinary_run_without_its_absent_seats_earns() -> None:
    found = over_seeds(range(3, 4))
    values = found.seen[0].values
    assert values is not None
    for mask in range(1, 16):
        absent = tuple(seat for row, seat in enumerate(SEATS) if not mask >> row & 1)
        ordinary = run_episode(spec(seed=3, absent=absent))
        assert values[mask] == ordinary.reward_total
        if absent:
            assert Player()(spec(seed=3, absent=absent)).trace_sha == ordinary.trace_sha
    assert values[0] == empty_room(room(seed=3, steps=5)).reward_total


def test_shapley_values_add_up_to_the_full_room_less_the_empty_one_on_every_seed() -> None:
    found = over_seeds(range(2))
    for one in found.seen:
        assert one.shapley is not None
        assert one.values is not None
        worth = one.values[15] - one.values[0]
        assert math.isclose(math.fsum(one.shapley), worth, rel_tol=1e-9, abs_tol=1e-9)
    data = document(found)
    total = math.fsum(cell["value"] for cell in data["shapley"].values())
    assert total == pytest.approx(data["v_all"] - data["v_none"], abs=1e-5)
    assert all(cell["se"] is not None for cell in data["shapley"].values())


def test_processes_change_nothing() -> None:
    alone = over_seeds(range(2), Question(jobs=1))
    together = over_seeds(range(2), Question(jobs=2))
    assert json.dumps(document(alone)) == json.dumps(document(together))


def test_a_run_says_the_same_of_its_seed_as_playing_that_seed_anew(tmp_path: Path) -> None:
    run = ran(tmp_path, seed=4)
    from_record = document(influence_of_runs([run], Question()))
    anew = document(over_seeds(range(4, 5)))
    assert from_record["runs"] == [run.run]
    assert {**from_record, "runs": []} == {**anew, "runs": []}
    assert from_record["pivotality"]["cost"]["se"] is None


@pytest.mark.parametrize("name", ["borda", "alternating_offers", "debate", "vcg", "mediator"])
def test_watching_changes_nothing_in_the_room_that_is_watched(name: str) -> None:
    seats = {"mediator": "mediator"} if name == "mediator" else {}
    played = spec(protocol=name, seed=2, personas=seats)
    plain = run_episode(played)
    watched = Player()(played)
    assert isinstance(watched, WatchedResult)
    assert watched.trace_sha == plain.trace_sha
    assert watched.decisions.decisions == plain.steps
    assert watched.decisions.stand_ins == 0


def test_a_room_may_lack_whom_its_rules_want() -> None:
    scenario: dict[str, Any] = {
        "scenario": "cloudedge/seed/hard",
        "protocol": "cloudedge_boardroom",
    }
    with pytest.raises(ConfigError, match="needs the seat 'cost'"):
        run_episode(spec(absent=("cost",), **scenario))
    result = Player()(spec(absent=("cost",), **scenario))
    assert set(result.personas) == set(SEATS) - {"cost"}
    values = over_seeds(range(1), **scenario).seen[0].values
    assert values is not None
    # The boardroom never counts the janitor.
    assert all(values[mask] == values[mask | 8] for mask in range(1, 8))


@pytest.mark.parametrize("seed", [1, 3])
def test_an_empty_commanders_seat_commands_nothing(seed: int) -> None:
    fields: dict[str, Any] = {"seed": seed, "steps": 20}
    commanded: dict[str, Any] = {
        "protocol": "commander",
        "personas": {"commander": "commander"},
        "no_deal": "commander",
    }
    plain = run_episode(spec(protocol="nash", **fields))
    empty = Player()(spec(absent=("commander",), **commanded, **fields))
    assert empty.rewards == plain.rewards
    assert Player(watched=False)(spec(**commanded, **fields)).rewards != plain.rewards


def test_absent_from_the_ballot_alone_still_puts_its_proposals_on_the_table() -> None:
    scenario = "finops/right_sizing"
    played: dict[str, Any] = {"scenario": scenario, "steps": 3}
    ballot = over_seeds(range(1), Question(absent="ballot", lies=False), **played)
    full = over_seeds(range(1), Question(absent="full", lies=False), **played)
    for found in (ballot, full):
        data = document(found)
        total = math.fsum(cell["value"] for cell in data["shapley"].values())
        assert total == pytest.approx(data["v_all"] - data["v_none"], abs=1e-6)
    assert document(ballot)["v_all"] == document(full)["v_all"]
    assert document(ballot)["manipulability"] is None


@pytest.mark.parametrize("scenario", ["cloudedge/hard", "cloudedge/seed/hard", "aiops/seed/reset"])
def test_an_empty_room_takes_legal_actions_at_random_by_its_seed(scenario: str) -> None:
    one = empty_room(room(scenario=scenario, seed=3))
    assert one == empty_room(room(scenario=scenario, seed=3))
    assert one.steps > 0


def test_an_empty_room_does_nothing_where_that_is_an_action() -> None:
    result = empty_room(room(scenario="finops/right_sizing", steps=3))
    assert result.steps == 3
    assert result.metrics_end
    assert not result.violations


def test_a_larger_room_is_sampled_and_still_shares_out_everything() -> None:
    seats = {f"extra{n}": "cost" for n in range(4)}
    played: dict[str, Any] = {"personas": seats, "steps": 2, "samples": 0, "lookahead_steps": 1}
    found = over_seeds(range(1), Question(orders=2, lies=False, jobs=1), **played)
    data = document(found)
    assert data["method"] == "sampled"
    assert data["coalitions"] is None
    total = math.fsum(cell["value"] for cell in data["shapley"].values())
    assert total == pytest.approx(data["v_all"] - data["v_none"], abs=1e-6)


def test_only_who_has_weight_is_ever_pivotal() -> None:
    weightless = tuple(f"{seat}.powers.weight=0.0" for seat in SEATS if seat != "resource")
    data = document(over_seeds(range(1), overrides=weightless, steps=12))
    assert data["pivotality"]["resource"]["value"] > 0
    for seat in SEATS[1:]:
        assert data["pivotality"][seat]["value"] == 0
        assert data["manipulability"][seat]["value"] == 0
    assert data["manipulability"]["resource"]["value"] == 0


class Puppet(WeightedScore):
    """Does what one seat proposes, whatever the ballots say."""

    name = "puppet"

    def decide(self, context: Context) -> Deliberation:
        """The first proposal of resource, where it is on the table."""
        plain = yield from super().decide(context)
        made = context.proposals.get("resource", ())
        wanted = joint_id(made[0].actions) if made else ""
        found = [c for c in context.candidates if c.id == wanted and c.feasible]
        return replace(plain, chosen=found[0]) if found else plain


def test_a_rule_that_hides_a_dictator_raises_the_alarm_and_an_open_one_does_not() -> None:
    long: dict[str, Any] = {"steps": 20, "lookahead_steps": 1, "samples": 0}
    puppet = f"{__name__}:Puppet"
    found = over_seeds(range(2), Question(lies=False), protocol=puppet, **long)
    assert found.dictators("exact") == {"resource": "hidden"}
    told = document(found)["conformance"]["exact"]["resource"]
    assert told["dictator"] == "hidden"
    assert told["alone"] == 1.0
    powers = ("resource.powers.commander=true",)
    known = over_seeds(range(2), Question(lies=False), protocol=puppet, overrides=powers, **long)
    assert known.dictators("exact") == {"resource": "open"}
    equal = over_seeds(range(2), Question(lies=False), **long)
    assert equal.dictators("exact") == {}


# --- what cannot be looked at ---------------------------------------------------------------------


def test_bad_runs_are_told_one_by_one_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    good = ran(tmp_path, seed=1)
    other = ran(tmp_path, seed=2, protocol="borda")
    again = ran(tmp_path, seed=1)
    edited = ran(tmp_path, seed=5)
    edited.path.write_bytes(edited.path.read_bytes().replace(b'"reward":', b'"rewarD":', 1))
    missing = Failure("nope", UnknownNameError("there is no run 'nope'", "", ""))
    found = influence_of_runs([missing, good, other, again, edited], Question(lies=False))
    assert [one.name for one in found.seen] == [good.run]
    told = {failure.what: failure.error.line() for failure in found.failures}
    assert list(told) == ["nope", other.run, again.run, edited.run]
    assert f"differs from run {good.run} in its protocol" in told[other.run]
    assert "has the seed of run" in told[again.run]
    assert "line" in told[edited.run]


def test_nothing_but_bad_runs_is_an_error(tmp_path: Path) -> None:
    run = ran(tmp_path)
    lines = run.path.read_bytes().splitlines(keepends=True)
    run.path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(TraceError, match="it is not finished"):
        influence_of_runs([recorded(run.run, tmp_path)], Question())


def test_a_fork_in_the_middle_of_a_run_has_no_coalitions_of_its_own(tmp_path: Path) -> None:
    run = ran(tmp_path)
    late = counterfactual(run, Change("drop", 3, "cost"), str(tmp_path)).child
    with pytest.raises(ConfigError, match="is a fork of another run"):
        influence_of_runs([late], Question())
    whole = counterfactual(run, Change("drop", 1, "cost"), str(tmp_path)).child
    found = influence_of_runs([whole], Question(lies=False))
    assert found.seats == ("resource", "sustainability", "janitor")
    assert len(found.seen[0].values or {}) == 8


def test_models_are_not_called_unless_asked_for(tmp_path: Path) -> None:
    with LLMStub() as stub:
        played = llm_spec(stub, steps=3, out=str(tmp_path), model="", **ONE_MODEL)
        run = recorded(run_episode(played).run, tmp_path)
        calls = len(stub.calls)
        data = document(influence_of_runs([run], Question()))
        assert len(stub.calls) == calls
        with pytest.raises(ConfigError, match="cost cannot simply be asked again"):
            influence_over_seeds(played, [1, 2], Question())
    assert data["shapley"] is None
    assert data["method"] == "not played"
    assert data["not_asked"] == ["cost"]
    assert data["pivotality"]["resource"]["value"] is not None


def test_models_are_asked_anew_in_every_coalition_that_they_sit_in_where_that_is_wanted() -> None:
    with LLMStub() as stub:
        played = llm_spec(stub, steps=2, model="", **ONE_MODEL)
        found = influence_over_seeds(played, [1], Question(live=True, lies=False))
        assert found.played
        # One proposal a step in each of the eight coalitions with the seat.
        assert len(stub.calls) == 2 * 8


def test_people_are_never_asked_again() -> None:
    with pytest.raises(ConfigError, match="the approval gate cannot simply be asked again"):
        influence_over_seeds(spec(approve="all"), [1], Question(live=True))
    with pytest.raises(ConfigError, match="cost cannot simply be asked again"):
        influence_over_seeds(spec(human=("cost",)), [1], Question(live=True))


def test_what_is_counted_over_a_debate_of_models_comes_from_rules_and_says_so(
    tmp_path: Path,
) -> None:
    with LLMStub() as stub:
        played = llm_spec(
            stub, steps=2, out=str(tmp_path), protocol="debate", model="", **ONE_MODEL
        )  # fmt: skip
        run = recorded(run_episode(played).run, tmp_path)
        found = follow(run)
    assert found.decisions == 2
    assert found.stand_ins > 0
