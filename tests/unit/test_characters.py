"""Shipped characters: each changes what a room decides, and moves its own metric its own way."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from agents.persona import FOLDER, load_persona, persona_names
from orchestrator.room import build_room
from orchestrator.spec import ROLES, EpisodeSpec
from tests.support.rooms import room
from tests.support.runs import play

SEEDS = range(8)
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "cloudedge/hard": {"samples": 2, "lookahead_steps": 4},
    "cloud/medium": {"samples": 1, "lookahead_steps": 4, "steps": 6},
}
REPEATS = "repeats"
CHARACTERS: Mapping[str, tuple[str, str, str, int]] = {
    "resource_hawk": ("resource", "latency_ms", "latency_ms", -1),
    "resource_dove": ("resource", "latency_ms", "latency_ms", +1),
    "cost_hawk": ("cost", "cost_usd_per_hour", "cost_usd_per_hour", -1),
    "cost_dove": ("cost", "cost_usd_per_hour", "cost_usd_per_hour", +1),
    "green_hawk": ("sustainability", "carbon_index", "carbon_kg_per_day", -1),
    "green_dove": ("sustainability", "carbon_index", "carbon_kg_per_day", +1),
    "janitor_hawk": ("janitor", REPEATS, "waste_usd_per_hour", -1),
    "janitor_dove": ("janitor", REPEATS, "waste_usd_per_hour", +1),
}
"""Character → seat, its metric on CloudEdge, its metric on the cloud, and which way it moves it."""


@cache
def played(scenario: str, seed: int, seat: str = "", character: str = "") -> tuple[Any, Any]:
    """Decisions of one episode, and the mean of each metric over its steps."""
    personas = {seat: character} if seat else {}
    done = play(room(scenario=scenario, seed=seed, personas=personas, **WORLDS[scenario]))
    actions = [event["data"]["action"] for event in done.of("decision")]
    seen = [event["data"]["metrics"] for event in done.of("observation")][1:]
    seen.append(done.result.metrics_end)
    means = {name: sum(each.get(name) or 0.0 for each in seen) / len(seen) for name in seen[0]}
    means[REPEATS] = sum(one == two for one, two in itertools.pairwise(actions))
    return tuple(actions), means


def mean(name: str, episodes: Sequence[tuple[Any, Any]]) -> float:
    return sum(means[name] for _, means in episodes) / len(episodes)


@pytest.mark.parametrize(
    "scenario", ["cloudedge/hard", pytest.param("cloud/medium", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("character", CHARACTERS)
def test_a_character_changes_decisions_and_moves_its_own_metric(
    character: str, scenario: str
) -> None:
    seat, on_cloudedge, on_cloud, sign = CHARACTERS[character]
    metric = on_cloudedge if scenario.startswith("cloudedge") else on_cloud
    before = [played(scenario, seed) for seed in SEEDS]
    after = [played(scenario, seed, seat, character) for seed in SEEDS]
    assert any(one[0] != other[0] for one, other in zip(before, after, strict=True))
    assert sign * (mean(metric, after) - mean(metric, before)) > 0


def test_every_role_has_a_hawk_and_a_dove_and_there_are_at_least_twelve_personas() -> None:
    names = persona_names()
    assert len(names) >= 12
    by_role = {role: [n for n in names if load_persona(n).identity.role == role] for role in ROLES}
    for role, found in by_role.items():
        assert any(name.endswith("_hawk") for name in found), role
        assert any(name.endswith("_dove") for name in found), role


@pytest.mark.parametrize("name", persona_names())
def test_a_shipped_file_is_ten_to_thirty_lines_and_says_in_words_what_to_expect(name: str) -> None:
    lines = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    assert 10 <= len(lines) <= 30
    assert lines[0] == 'schema = "persona/1"'


def test_the_incident_commander_decides_a_crisis_and_has_no_vote() -> None:
    spec = load_persona("incident_commander")
    assert spec.powers.commander
    assert spec.powers.weight == 0.0
    done = play(
        room(
            scenario="cloudedge/hard",
            personas={"commander": "incident_commander"},
            protocol="commander",
            steps=10,
            samples=2,
            lookahead_steps=2,
        )
    )
    crises = [e["step"] for e in done.of("observation") if e["data"]["facts"]["crisis"]]
    assert crises
    rules = {e["step"]: e["data"]["override_rule"] for e in done.of("decision")}
    reasons = {e["step"]: str(e["data"]) for e in done.of("decision")}
    assert all("command" in rules[step] + reasons[step] for step in crises)


def test_the_digest_of_every_seat_is_in_the_trace_and_tells_personas_apart() -> None:
    digests = []
    for name in ("cost", "cost_hawk"):
        spec = EpisodeSpec(
            personas={"cost": name}, store="inprocess", driver="loop", out="", steps=1, samples=1
        )
        started = play(build_room(spec)).of("run_started")[0]["data"]
        told = {seat["seat"]: seat["digest"] for seat in started["seats"]}
        assert set(told) == set(ROLES)
        assert told["cost"] == load_persona(name).digest
        digests.append(told)
    assert digests[0]["cost"] != digests[1]["cost"]
    assert digests[0]["resource"] == digests[1]["resource"]


def test_setting_a_field_changes_the_digest_in_the_trace() -> None:
    fields: dict[str, Any] = {"steps": 1, "samples": 1}
    plain = play(room(**fields)).of("run_started")[0]["data"]["seats"]
    changed = play(room(overrides=("cost.powers.weight=2",), **fields))
    seats = changed.of("run_started")[0]["data"]["seats"]
    differs = [a["seat"] for a, b in zip(plain, seats, strict=True) if a["digest"] != b["digest"]]
    assert differs == ["cost"]
