"""The default room: good enough, and good without ever having seen a reward."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from tests.support.rooms import room
from tests.support.runs import play
from world.model import Delta, Joint, Outcomes, Scenario
from world.worlds.cloudedge import CloudEdge
from world.worlds.cloudedge.state import State

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(("level", "floor"), [("hard", 600.0), ("medium", 920.0), ("easy", 1230.0)])
def test_the_default_room_earns_its_floor_and_holds_every_target_at_the_end(
    level: str, floor: float
) -> None:
    results = [
        run_episode(
            EpisodeSpec(
                scenario=f"cloudedge/seed/{level}",
                seed=seed,
                driver="loop",
                store="inprocess",
                out="",
            )
        )
        for seed in range(200, 208)
    ]
    assert all(result.success for result in results)
    assert sum(result.reward_total for result in results) / len(results) >= floor


class Poisoned(CloudEdge):
    """CloudEdge whose every reward is a lie of the opposite sign."""

    def step(self, state: State, actions: Joint) -> tuple[State, Outcomes, Delta]:
        """The same step, its reward and terms replaced."""
        after, true, delta = super().step(state, actions)
        fields = {
            field.name: getattr(true, field.name)
            for field in dataclasses.fields(Outcomes)
            if field.name not in {"reward", "terms"}
        }
        reward = -1000.0 * true.reward - 7.0
        return after, Outcomes(reward=reward, terms={"lie": reward}, **fields), delta


def _decisions(made: Any) -> list[Any]:
    played = play(made)
    events = [*played.of("decision"), *played.of("ballot"), *played.of("candidates")]
    return [(event["step"], event["type"], event["data"]) for event in events]


@pytest.mark.parametrize("protocol", ["weighted_score", "borda", "nash"])
def test_a_lying_reward_changes_no_proposal_no_ballot_and_no_decision(protocol: str) -> None:
    spec: dict[str, Any] = {"scenario": "cloudedge/hard", "protocol": protocol, "samples": 4}
    honest = room(steps=12, **spec)
    scenario: Scenario = honest.scenario
    lied_to = dataclasses.replace(honest, world=Poisoned(scenario))
    assert _decisions(honest) == _decisions(lied_to)


@pytest.mark.parametrize("layer", ["policies", "agents"])
def test_no_module_that_decides_or_speaks_reads_a_reward(layer: str) -> None:
    words = {"reward", "reward_total", "rewards", "terms_of", "POINTS"}
    for path in (ROOT / layer).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        read |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        read |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert not words & read, path


def test_what_seats_observe_holds_no_reward() -> None:
    played = play(room(scenario="cloudedge/hard", steps=3, samples=2))
    for event in played.of("observation"):
        assert "reward" not in str(event["data"])
