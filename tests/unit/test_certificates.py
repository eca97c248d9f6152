"""Certificates: a plan that wins a seed, proven by playing it."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from orchestrator.cli.certify import certify as command
from orchestrator.study.certify import (
    TASTES,
    Verdict,
    certify,
    cloud_world,
    collect,
    prove,
    stratified,
    stratum,
    stratum_of,
)
from orchestrator.study.clairvoyant import plan
from tests.support import clouds
from world.actions import Action
from world.errors import ConfigError, ScenarioError
from world.graders.cloud import grade
from world.graders.scorecard import GradedStep
from world.scenarios.certificates import (
    LEAST_HELD,
    Certificate,
    Certificates,
    certificate_of,
    certificates_path,
    held_fraction,
    read_certificates,
)
from world.scenarios.loader import load_scenario
from world.worlds.cloud import schema as names

PRESETS = ("easy", "medium", "hard", "war")
"""Presets that ship certificates."""


def shipped(preset: str) -> Certificates:
    path = certificates_path(f"cloud/{preset}")
    assert path is not None
    return read_certificates(path)


def certificate(seed: int = 1, hour: float = 0.0, slope: float = 0.0) -> Certificate:
    return Certificate(
        seed=seed, start_hour_utc=hour, demand_slope=slope, held_fraction=1.0, joint_fraction=0.8,
        saving_usd=100.0, reward_total=10.0, plan=("nop",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def easy() -> Verdict:
    return certify(clouds.scenario("easy"), 1)


def test_an_easy_seed_is_certified_without_harm(easy: Verdict) -> None:
    assert easy.certified
    assert easy.harms == 0
    assert easy.certificate.held_fraction >= LEAST_HELD


def test_replaying_a_certificate_from_a_fresh_start_gives_what_it_states(easy: Verdict) -> None:
    scenario = clouds.scenario("easy")
    world = cloud_world(scenario)
    found = easy.certificate
    assert len(found.plan) == scenario.horizon
    proof = prove(world, world.reset(scenario, [found.seed]), found.joints())
    assert proof.certified
    assert proof.held_fraction == pytest.approx(found.held_fraction, rel=1e-8)
    assert proof.joint_fraction == pytest.approx(found.joint_fraction, rel=1e-8)
    assert proof.saving_usd == pytest.approx(found.saving_usd, rel=1e-8)
    assert proof.reward_total == pytest.approx(found.reward_total, rel=1e-8)


def test_every_action_of_a_certificate_passes_the_validator_that_binds_everybody(
    easy: Verdict,
) -> None:
    scenario = clouds.scenario("easy")
    world = cloud_world(scenario)
    state = world.reset(scenario, [easy.certificate.seed])
    for joint in easy.certificate.joints():
        assert len(joint) <= world.limits.max_actions_per_step
        state, outcomes, _ = world.step(state, joint)
        assert {outcome.status for outcome in outcomes.actions} <= {"applied", "failed"}


def test_the_same_seed_is_given_the_same_plan_again(easy: Verdict) -> None:
    assert certify(clouds.scenario("easy"), 1) == easy


def test_the_search_leaves_the_state_that_it_was_given_as_it_was() -> None:
    scenario = clouds.variant("easy", horizon=6)
    world = cloud_world(scenario)
    start = world.reset(scenario, [3])
    before = {name: column.copy() for name, column in start.columns.items()}
    plan(start, TASTES[0])
    for name, column in start.columns.items():
        np.testing.assert_array_equal(column, before[name], err_msg=name)


def test_the_planner_sees_an_incident_coming_and_cures_it() -> None:
    scenario = clouds.calm("easy", incidents=1)
    world, state = clouds.opened(scenario, 1)
    state = clouds.with_incident(state, names.BAD_DEPLOY, service=0, victim=0)
    proof = prove(world, state, plan(state, TASTES[0]))
    idle = prove(world, state, [()] * scenario.horizon)
    assert proof.certified
    assert not idle.certified


def test_a_plan_that_does_harm_certifies_nothing() -> None:
    scenario = clouds.calm("easy")
    world, state = clouds.opened(scenario, 1)
    good = list(plan(state, TASTES[0]))
    assert prove(world, state, good).certified
    row = int(np.flatnonzero(state.columns["h.essential"][0, state.settings.tiers :])[0])
    row += state.settings.tiers
    for name, value in (
        ("essential", names.NO), ("protected", 0), ("managed_by", 0), ("needed_by", -1),
        ("tag_status", 0), ("idle_hours", 900.0), ("age_hours", 900.0), ("attached_to", -1),
    ):  # fmt: skip
        state = clouds.changed(state, name, row, value)
    target = world.observe(state).inventory.ids[row]  # type: ignore[union-attr]
    good[-1] = (Action("terminate", target),)
    proof = prove(world, state, good)
    assert proof.harms == 1
    assert not proof.certified


def test_only_steps_after_the_twelfth_count_for_a_certificate() -> None:
    assert held_fraction([True] * 12 + [False] * 10) == 0.0
    assert held_fraction([False] * 12 + [True] * 5 + [False] * 5) == 0.5
    assert held_fraction([True] * 12) == 0.0


def test_certificates_of_another_world_are_refused() -> None:
    with pytest.raises(ConfigError, match="cloud world only"):
        cloud_world(load_scenario("cloudedge/hard"))


def test_a_shipped_certificate_belongs_to_its_exact_scenario_only() -> None:
    for preset in PRESETS:
        found = shipped(preset)
        scenario, seed = clouds.scenario(preset), found.certificates[0].seed
        assert certificate_of(scenario, seed) is not None
        assert certificate_of(dataclasses.replace(scenario, horizon=7), seed) is None
        assert certificate_of(scenario, 4_999_999) is None


@pytest.mark.parametrize("preset", PRESETS)
def test_shipped_certificates_are_of_the_shipped_scenario_and_their_plans_hold(
    preset: str,
) -> None:
    found = shipped(preset)
    scenario = clouds.scenario(preset)
    assert found.digest == scenario.digest, "certify anew: scenarios certify --out"
    assert len({entry.seed for entry in found.certificates}) == len(found.certificates)
    world = cloud_world(scenario)
    for entry in found.certificates[:: max(1, len(found.certificates) // 3)]:
        proof = prove(world, world.reset(scenario, [entry.seed]), entry.joints())
        assert proof.certified, entry.seed
        assert proof.held_fraction == pytest.approx(entry.held_fraction, rel=1e-8), entry.seed


def test_an_episode_is_compared_with_the_certificate_of_its_seed() -> None:
    scenario, entry = clouds.scenario("medium"), shipped("medium").certificates[0]
    world = cloud_world(scenario)
    state, steps = world.reset(scenario, [entry.seed]), []
    for joint in entry.joints():
        state, outcomes, _ = world.step(state, joint)
        steps.append(GradedStep.of(world.observe(state), joint, outcomes))
    card = grade(scenario, steps)
    assert card.components["of_certificate"].value == pytest.approx(1.0)
    assert card.components["saving"].value == pytest.approx(1.0)
    assert "no certificate" not in card.note


def test_strata_are_thirds_of_the_day_and_the_direction_of_demand() -> None:
    assert stratum(certificate(hour=7.9, slope=0.1)) == "00-08h rising"
    assert stratum_of(8.0, -0.1) == "08-16h falling"
    assert stratum_of(23.0, 0.0) == "16-24h rising"


def test_a_stratified_choice_takes_every_stratum_in_turn_and_only_certified_seeds() -> None:
    verdicts = [
        Verdict(seed % 5 != 0, certificate(seed, hour=float(seed % 24), slope=(-1.0) ** seed),
                0, 0.5, True)
        for seed in range(60)
    ]  # fmt: skip
    chosen = stratified(verdicts, 12)
    assert len(chosen) == 12
    assert all(verdict.certified for verdict in chosen)
    assert set(Counter(stratum(verdict.certificate) for verdict in chosen).values()) == {2}
    seeds = [verdict.certificate.seed for verdict in chosen]
    assert seeds == sorted(seeds)
    assert len(stratified(verdicts, 1000)) == 48


def test_a_file_of_certificates_reads_back_as_it_was_written(easy: Verdict, tmp_path: Path) -> None:
    failed = dataclasses.replace(easy, certified=False)
    written = collect(clouds.scenario("easy"), [easy, failed])
    path = tmp_path / "easy.json"
    path.write_text(written.as_text(), encoding="utf-8")
    assert read_certificates(path) == written
    assert (written.tried, written.certified, len(written.certificates)) == (2, 1, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [("{}", "schema"), ("nonsense", "JSON"), ('{"schema": "certificates/9"}', "schema")],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=why):
        read_certificates(path)
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_certificates(tmp_path / "missing.json")


@pytest.mark.parametrize("name", ["../x", "cloud/../../x", "cloud", "/etc/passwd", "cloud/a/b"])
def test_a_name_that_is_no_scenario_name_reaches_no_file(name: str) -> None:
    assert certificates_path(name) is None


def test_the_command_says_what_it_found_and_writes_only_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("cloud/easy", "1:2", out=str(tmp_path / "made"), as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["certified"] == document["seeds"] == 1
    assert document["rows"][0]["seed"] == 1
    written = read_certificates(tmp_path / "made" / "easy.json")
    assert [entry.seed for entry in written.certificates] == [1]


def test_a_seed_that_cannot_be_won_is_exit_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("world/scenarios/cloud/easy.toml").read_text(encoding="utf-8")
    hopeless = tmp_path / "hopeless.toml"
    text = text.replace('"cloud/easy"', '"mine/hopeless"')
    hopeless.write_text(text.replace("cost_usd_per_hour = 400.0", "cost_usd_per_hour = 4.0"))
    assert command(str(hopeless), "1:2") == 1
    assert "not certified" in capsys.readouterr().out
