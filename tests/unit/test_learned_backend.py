"""Learned policies: what their files may hold, and what a seat makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.backends.learned import LearnedPersona
from agents.backends.policy_file import load_policy
from agents.persona import lint_persona, load_persona
from agents.persona_schema import PersonaSpec
from agents.seat import make_persona
from orchestrator.answering import ask_now
from orchestrator.room import build_room
from orchestrator.spec import EpisodeSpec
from tests.support.asked import request
from world.errors import ConfigError, UnknownNameError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "policies" / "cloudedge_q.json"
LINEAR = {
    "schema": "policy/1",
    "kind": "linear",
    "world": "cloudedge",
    "actions": ["scale_up", "scale_down", "crisis_response:server_count=5"],
    "weights": {
        "scale_up": {"latency_ms": 2.0},
        "scale_down": {"bias": 1.0, "cost_usd_per_hour": 1.0},
        "crisis_response:server_count=5": {"bias": 99.0},
    },
}


def written(folder: Path, document: dict[str, Any], name: str = "p.json") -> Path:
    """A policy file."""
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def seated(path: Path) -> LearnedPersona:
    """The policy at the cost seat."""
    document = load_persona("cost").document()
    document["backend"] = {"kind": "learned", "ref": str(path)}
    made = make_persona(PersonaSpec.model_validate(document), "cost")
    assert isinstance(made, LearnedPersona)
    return made


def test_the_highest_values_are_proposed_and_only_what_can_be_taken_now(tmp_path: Path) -> None:
    reply = ask_now(seated(written(tmp_path, LINEAR)), request())
    # 2 × 280/150 beats 1 + 620/400; the crisis response is worth more and not possible.
    assert [p.actions[0].id for p in reply.proposals] == ["scale_up", "scale_down"]


def test_a_table_is_read_by_the_words_of_the_state() -> None:
    policy, _ = load_policy(EXAMPLE)
    asked = request()
    key = policy.state(asked.observation)
    assert key == "critical|critical|critical|recovering|steady"
    best = policy.actions[int(np.argmax(policy.table[key]))]
    reply = ask_now(seated(EXAMPLE), asked)
    assert reply.proposals[0].actions[0].id == best
    assert key in reply.proposals[0].rationale
    assert len(reply.proposals) == policy.proposals


def test_the_example_is_made_by_its_script_to_the_byte(tmp_path: Path) -> None:
    script = ROOT / "examples" / "make_q_policy.py"
    subprocess.run([sys.executable, str(script), str(tmp_path / "q.json")], check=True, timeout=100)
    assert (tmp_path / "q.json").read_bytes() == EXAMPLE.read_bytes()


def test_json_toml_and_arrays_say_the_same(tmp_path: Path) -> None:
    document = json.loads(EXAMPLE.read_text())
    table = document.pop("table")
    path = tmp_path / "p.npz"
    np.savez(
        path,
        policy=np.array(json.dumps(document)),
        keys=np.array(sorted(table)),
        q=np.array([table[key] for key in sorted(table)]),
    )
    assert load_policy(path)[0] == load_policy(EXAMPLE)[0]
    toml = tmp_path / "p.toml"
    toml.write_text(
        'schema = "policy/1"\nkind = "linear"\nworld = "cloudedge"\n'
        'actions = ["scale_up"]\n[weights.scale_up]\nlatency_ms = 2.0\n'
    )
    assert load_policy(toml)[0].weights == {"scale_up": {"latency_ms": 2.0}}


def test_a_bare_kind_is_aimed_at_a_target_that_can_be_taken(tmp_path: Path) -> None:
    policy = {
        "schema": "policy/1",
        "kind": "linear",
        "world": "finops",
        "actions": ["request_metrics", "terminate"],
        "weights": {"request_metrics": {"bias": 1.0}},
    }
    asked = request(scenario="finops/zombie_cleanup")
    reply = ask_now(seated(written(tmp_path, policy)), asked)
    (action,) = reply.proposals[0].actions
    assert action.kind == "request_metrics"
    assert asked.world.check(asked.observation, action) is None
    for proposal in reply.proposals:
        assert not asked.world.hazards(asked.observation, proposal.actions[0])


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "personas").glob("*.toml")))
def test_the_example_personas_have_no_faults(path: Path) -> None:
    assert lint_persona(path) == []


def test_an_unknown_state_is_a_recorded_fault(tmp_path: Path) -> None:
    document = json.loads(EXAMPLE.read_text()) | {"table": {}, "default": []}
    reply = ask_now(seated(written(tmp_path, document)), request())
    assert reply.fallback.startswith("no_answer: the policy does not know the state critical|")


def test_another_world_is_refused_before_the_run(tmp_path: Path) -> None:
    persona = tmp_path / "p.toml"
    persona.write_text(
        'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "l"\nrole = "cost"\n'
        f'[backend]\nkind = "learned"\nref = "{EXAMPLE}"\n'
    )
    spec = {"store": "inprocess", "driver": "loop", "out": "", "personas": {"cost": str(persona)}}
    with pytest.raises(ConfigError, match="learned in the world 'cloudedge'"):
        build_room(EpisodeSpec(scenario="finops/zombie_cleanup", **spec))
    room = build_room(EpisodeSpec(scenario="cloudedge/easy", **spec))
    (seat,) = [s for s in room.header()["seats"] if s["seat"] == "cost"]
    assert seat["content"] == load_policy(EXAMPLE)[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "policy/2"}, "schema: Input should be 'policy/1'"),
        ({"kind": "network"}, "kind: Input should be"),
        ({"actions": []}, "actions:"),
        ({"actions": ["rm -rf"]}, "is not an action id"),
        ({"actions": ["scale_up", "scale_up"]}, "an action stands twice"),
        ({"weights": {"nop": {}}}, "which is no action of this policy"),
        ({"kind": "q_table"}, "a q_table needs features"),
        ({"table": {"x": [1.0]}}, "one value per action"),
        ({"code": "import os"}, "code: Extra inputs"),
        ({"default": [float("nan")] * 3}, "holds no policy|finite"),
        ({"features": [{"metric": "m", "fact": "f", "above": [], "words": ["a"]}]}, "a metric or"),
        ({"features": [{"metric": "m", "above": [2, 1], "words": ["a", "b", "c"]}]}, "must rise"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_with_its_field(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_policy(written(tmp_path, LINEAR | change))


def test_files_that_would_run_something_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    np.savez(path, policy=np.array([{"a": print}], dtype=object), allow_pickle=True)
    with pytest.raises(ConfigError, match="holds no policy"):
        load_policy(path)
    np.savez(path, policy=np.array("{}"), other=np.array([1]))
    with pytest.raises(ConfigError, match="members must be among"):
        load_policy(path)
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(ConfigError, match="holds no policy"):
        load_policy(path)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="holds no policy"):
        load_policy(tmp_path / "deep.json")
    with pytest.raises(UnknownNameError, match="there is no policy file"):
        load_policy(tmp_path / "none.json")
