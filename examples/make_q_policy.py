"""Learn a tiny Q table for CloudEdge and write it as a policy file, the same bytes every time.

    python examples/make_q_policy.py examples/policies/cloudedge_q.json

Plain tabular Q-learning on `cloudedge/hard`: five words of state, four actions, the environment's
own reward, 300 episodes on seeds 1000 to 1299. Exploration draws from the same counter-based noise
as the worlds, so that nothing depends on the machine's generator. It is an example of the file
format and of the learned backend, not a strong player.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agents.backends.policy_file import Policy
from world.actions import Action
from world.noise import channel, uniforms
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

ACTIONS = ("scale_up", "scale_down", "optimize_energy", "migrate_region")
FEATURES = (
    {"metric": "latency_ms", "above": [150, 220], "words": ["target", "elevated", "critical"]},
    {"metric": "cost_usd_per_hour", "above": [400, 550], "words": ["target", "high", "critical"]},
    {"metric": "carbon_index", "above": [220, 320], "words": ["target", "high", "critical"]},
    {"fact": "stable_steps", "above": [1], "words": ["recovering", "stable"]},
    {"fact": "crisis", "above": [0], "words": ["steady", "crisis"]},
)
SEEDS = range(1000, 1300)
LEARNING_RATE, DISCOUNT = 0.22, 0.93
EPSILON_DECAY, EPSILON_FLOOR = 0.985, 0.08
REWARD_BOUND = 50.0


def learn() -> dict[str, list[float]]:
    """The table: state → one value per action, rounded to four decimals."""
    scenario = load_scenario("cloudedge/hard")
    world = make_world(scenario)
    reader = document({})
    table: dict[str, list[float]] = {}
    epsilon = 1.0
    stream = channel("example_exploration")
    for seed in SEEDS:
        state = world.reset(scenario, [seed])
        draws = uniforms(seed, np.arange(2 * scenario.horizon, dtype=np.uint32), stream, 0)[0]
        done = False
        step = 0
        while not done:
            key = reader.state(world.observe(state))
            row = table.setdefault(key, [0.0] * len(ACTIONS))
            chosen = row.index(max(row))
            if draws[2 * step] < epsilon:
                chosen = int(draws[2 * step + 1] * len(ACTIONS))
            state, outcomes, _ = world.step(state, (Action(ACTIONS[chosen]),))
            done, step = outcomes.done, step + 1
            after = table.setdefault(reader.state(world.observe(state)), [0.0] * len(ACTIONS))
            reward = min(max(outcomes.reward, -REWARD_BOUND), REWARD_BOUND)
            aim = reward if done else reward + DISCOUNT * max(after)
            row[chosen] += LEARNING_RATE * (aim - row[chosen])
        epsilon = max(EPSILON_FLOOR, epsilon * EPSILON_DECAY)
    return {key: [round(value, 4) + 0.0 for value in row] for key, row in sorted(table.items())}


def document(table: dict[str, list[float]]) -> Policy:
    """The policy file's content, checked."""
    return Policy.model_validate(
        {
            "schema": "policy/1",
            "kind": "q_table",
            "title": "CloudEdge: tabular Q, 300 episodes on cloudedge/hard",
            "world": "cloudedge",
            "actions": ACTIONS,
            "features": FEATURES,
            "table": table,
            "default": [0.0, 0.0, 0.0, 0.0],
        }
    )


def main(path: str) -> None:
    """Learn and write."""
    policy = document(learn())
    text = json.dumps(policy.model_dump(mode="json", by_alias=True), indent=1, sort_keys=True)
    Path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cloudedge_q.json")
