"""One thing changed on the same noise: branches, traces that verify, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from orchestrator.study.change import Change, parse_ballot, parse_swap
from orchestrator.study.counterfactual import counterfactual
from orchestrator.study.recorded import Recorded, recorded
from orchestrator.study.replay import replay
from orchestrator.study.retouch import with_best
from orchestrator.trace.verify import verify
from tests.support.llm_stub import LLMStub
from tests.support.tables import context
from world import noise
from world.actions import parse_joint
from world.errors import ConfigError, TraceError, UnknownNameError
from world.store.base import StoreSettings
from world.store.open import open_store


def ran(folder: Path, **fields: Any) -> Recorded:
    """A short episode with files, read back."""
    base: dict[str, Any] = {
        "scenario": "cloudedge/hard", "store": "inprocess", "driver": "loop", "out": str(folder),
        "steps": 8,
    }  # fmt: skip
    result = run_episode(EpisodeSpec(**{**base, **fields}))
    return recorded(result.run, folder)


CHANGES = {
    "protocol": Change("protocol", 1, "", "borda"),
    "protocol from 5": Change("protocol", 5, "", "borda"),
    "swap": Change("swap", 1, "cost", "sustainability"),
    "drop from 3": Change("drop", 3, "resource"),
    "ballot": Change("ballot", 4, "cost", "migrate_region"),
    "live": Change("live", 2, "cost"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_fork_has_a_trace_of_its_own_that_verifies_and_replays(
    tmp_path: Path, change: Change
) -> None:
    run = ran(tmp_path)
    found = counterfactual(run, change, str(tmp_path))
    assert verify(found.child.path).ok
    assert replay(found.child).ok
    origin = found.child.header.data["counterfactual"]
    assert origin["parent_sha"] == run.sha
    assert origin["from_step"] == change.step
    assert origin["change"] == change.as_json()
    assert found.child.run != run.run
    assert verify(run.path).sha == run.sha


def test_where_a_persona_file_lies_is_no_part_of_a_fork(tmp_path: Path) -> None:
    run = ran(tmp_path)
    text = 'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "thrift"\n'
    shas = set()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.toml").write_text(text, encoding="utf-8")
        swap = Change("swap", 2, "cost", str(tmp_path / folder / f"{folder}.toml"))
        found = counterfactual(run, swap, str(tmp_path / folder))
        assert found.child.header.data["counterfactual"]["change"]["persona"] == "thrift"
        assert replay(found.child).ok
        shas.add(found.result.trace_sha)
    assert len(shas) == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_steps_before_a_change_are_those_of_the_parent(tmp_path: Path, change: Change) -> None:
    run = ran(tmp_path)
    child = counterfactual(run, change, str(tmp_path)).child
    before = change.step - 1
    for then, now in zip(run.steps[:before], child.steps[:before], strict=True):
        assert (now.observation, now.ballots, now.decision) == (
            then.observation, then.ballots, then.decision,
        )  # fmt: skip
        assert now.applied == then.applied


def test_a_changed_protocol_gives_what_a_run_with_that_protocol_gives(tmp_path: Path) -> None:
    run = ran(tmp_path)
    plain = ran(tmp_path, protocol="borda")
    child = counterfactual(run, CHANGES["protocol"], str(tmp_path)).child
    assert child.rewards == plain.rewards
    assert [step.action for step in child.steps] == [step.action for step in plain.steps]


def test_a_seat_that_is_dropped_says_and_weighs_nothing_from_then_on(tmp_path: Path) -> None:
    child = counterfactual(ran(tmp_path), CHANGES["drop from 3"], str(tmp_path)).child
    spoke = ["resource" in step.ballots for step in child.steps]
    assert spoke == [True, True, *[False] * 6]
    assert child.seats == ("cost", "sustainability", "janitor")


def test_a_changed_ballot_ranks_its_option_first_and_leaves_every_other_ballot_alone(
    tmp_path: Path,
) -> None:
    run = ran(tmp_path)
    child = counterfactual(run, CHANGES["ballot"], str(tmp_path)).child
    then, now = run.steps[3].ballots, child.steps[3].ballots
    assert now["cost"]["ranking"][0] == "migrate_region" != then["cost"]["ranking"][0]
    others = dict(now["cost"]["utilities"])
    others["migrate_region"] = then["cost"]["utilities"]["migrate_region"]
    assert others == then["cost"]["utilities"]
    for seat in ("resource", "sustainability", "janitor"):
        assert now[seat]["utilities"] == then[seat]["utilities"]


def test_wanting_an_option_most_takes_the_seats_best_value_and_a_hair_more() -> None:
    table = context([[1.0, 3.0, 2.0], [0.0, 0.0, 1.0]])
    seat, options = table.seats[0], [candidate.id for candidate in table.candidates]
    changed = with_best(table, seat, options[0])
    assert changed.utilities[0].tolist() == [3.000002, 3.0, 2.0]
    assert changed.utilities[1].tolist() == table.utilities[1].tolist()
    assert changed.ballots[0].utilities.tolist() == changed.utilities[0].tolist()


def _spied(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[Any, np.ndarray[Any, Any]]]:
    """Keep what the noise functions give, by where it was asked for."""
    kept: dict[Any, np.ndarray[Any, Any]] = {}

    def wrap(name: str) -> None:
        real = getattr(noise, name)

        def spy(*where: Any, **more: Any) -> Any:
            drawn = real(*where, **more)
            key = (name, *(np.asarray(part).tobytes() for part in (*where, *more.values())))
            kept[key] = np.array(drawn)
            return drawn

        monkeypatch.setattr(noise, name, spy)

    for name in ("uniforms", "uniform_rows"):
        wrap(name)

    def taken() -> dict[Any, np.ndarray[Any, Any]]:
        drawn = dict(kept)
        kept.clear()
        return drawn

    return taken


@pytest.mark.parametrize("seed", [1, 5])
def test_both_branches_meet_bit_equal_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    taken = _spied(monkeypatch)
    run = ran(tmp_path, seed=seed)
    parent = taken()
    found = counterfactual(run, CHANGES["protocol"], str(tmp_path))
    assert found.forks  # or there would be nothing to show
    taken()
    assert replay(found.child).ok  # plays the child and nothing of its parent
    child = taken()
    assert parent
    assert parent.keys() == child.keys()
    for where, drawn in parent.items():
        assert drawn.tobytes() == child[where].tobytes()


def _words(run: Recorded) -> list[int]:
    """Words drawn after each step, by stepping the run's world along its decisions."""
    room = run.room()
    state = room.world.reset(room.scenario, [room.spec.seed])
    words = []
    for step in run.steps:
        state = room.world.step(state, parse_joint(step.action))[0]
        words.append(int(state.word))
    return words


def test_a_sequential_world_says_from_which_step_its_storms_differ(tmp_path: Path) -> None:
    run = ran(tmp_path, scenario="cloudedge/seed-open/hard", steps=16)
    same = counterfactual(run, Change("live", 1, "cost"), str(tmp_path))
    assert (same.streams_diverge_at, same.sequential) == (0, True)
    found = counterfactual(run, CHANGES["protocol"], str(tmp_path))
    pairs = zip(_words(run), _words(found.child), strict=True)
    assert found.streams_diverge_at == next(n for n, (a, b) in enumerate(pairs, 1) if a != b)
    assert found.as_json()["same_noise"] is False


def test_a_world_with_counter_based_noise_never_has_streams_that_diverge(tmp_path: Path) -> None:
    found = counterfactual(ran(tmp_path), CHANGES["swap"], str(tmp_path))
    assert (found.streams_diverge_at, found.sequential) == (0, False)
    assert found.as_json()["same_noise"] is True


def test_a_fork_is_a_branch_of_the_parents_episode_in_the_store(tmp_path: Path) -> None:
    settings = StoreSettings(state_dir=str(tmp_path / "state"))
    run_episode(EpisodeSpec(scenario="cloudedge/hard", store="embedded", driver="loop",
                            out=str(tmp_path), steps=5),
                settings=settings)  # fmt: skip
    run = recorded("last", tmp_path)
    change = Change("protocol", 3, "", "borda")
    first = counterfactual(run, change, str(tmp_path), settings=settings)
    second = counterfactual(run, change, str(tmp_path), settings=settings)
    store = open_store("embedded", settings)
    try:
        kept = store.branches(run.run)
        assert kept["cf1"] == ("0", 2, "protocol borda from step 3")
        assert [first.branch, second.branch] == ["cf1", "cf2"]
        assert {stored.meta.episode for stored in store.episodes()} == {run.run}
        log = [entry.payload for entry in store.log(run.run, "cf1") if entry.step > 2]
        lines = first.child.path.read_bytes().splitlines()
        assert b"\n".join(log).splitlines() == lines[-len(b"\n".join(log).splitlines()) :]
        assert store.attach(run.run, "cf1").status == store.attach(run.run, "0").status
    finally:
        store.disconnect()
    assert first.result.rewards == second.result.rewards


def test_a_fork_does_not_need_the_store_of_its_parent(tmp_path: Path) -> None:
    run = ran(tmp_path, store=":memory:")
    found = counterfactual(run, CHANGES["swap"], str(tmp_path))
    assert verify(found.child.path).ok


def test_models_are_asked_anew_only_from_where_the_paths_part(tmp_path: Path) -> None:
    short: dict[str, Any] = {"steps": 3, "samples": 2, "lookahead_steps": 2}
    with LLMStub() as stub:
        run = ran(
            tmp_path,
            overrides=('sustainability.backend.kind="llm"', 'sustainability.model.name="stub"'),
            base_url=stub.url,
            **short,
        )
        assert len(stub.calls) == 3
        same = counterfactual(run, Change("live", 1, "cost"), str(tmp_path))
        assert len(stub.calls) == 3
        assert same.divergence is None
        again = counterfactual(run, Change("live", 2, "sustainability"), str(tmp_path))
        assert len(stub.calls) == 5
        assert again.result.rewards == run.rewards
        counterfactual(run, Change("drop", 1, "cost"), str(tmp_path))
        assert len(stub.calls) == 7  # step 1 was asked in the same situation


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (Change("drop", 1, "nobody"), UnknownNameError, r"seat 'nobody' was not in the room"),
        (Change("swap", 1, "cots", "finops"), UnknownNameError, r"Did you mean cost\?"),
        (Change("swap", 1, "cost", "no_such_one"), UnknownNameError, r"no_such_one"),
        (Change("protocol", 1, "", "no_such_one"), UnknownNameError, r"no_such_one"),
        (Change("protocol", 9, "", "borda"), ConfigError, r"step 9 was never decided"),
        (Change("ballot", 4, "cost", "nop"), ConfigError, r"nop is no candidate of step 4"),
        (Change("protocol", 1, "", "commander"), ConfigError, r"needs a commander's seat"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_in_one_line(
    tmp_path: Path, change: Change, error: type[Exception], words: str
) -> None:
    run = ran(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(error, match=words) as caught:
        counterfactual(run, change, str(tmp_path))
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_run_that_has_not_ended_is_not_varied(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.path.write_bytes(b"".join(run.path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(TraceError, match="not finished"):
        counterfactual(recorded(run.path), CHANGES["swap"], str(tmp_path))


@pytest.mark.parametrize("text", ["", "7", "7:cost", "x:cost=nop", "7:=nop", "7:cost="])
def test_a_ballot_that_does_not_read_as_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="it reads STEP:ROLE=ACTION"):
        parse_ballot(text)


def test_an_option_may_hold_the_signs_that_a_ballot_is_written_with() -> None:
    assert parse_ballot("7:cost=resize:db-1:new_size=m5.large") == Change(
        "ballot", 7, "cost", "resize:db-1:new_size=m5.large"
    )
    assert parse_swap("cost=a/b=c.toml", 2) == Change("swap", 2, "cost", "a/b=c.toml")
