r"""A protocol and a persona of your own, checked by the public kits, then played.

    python examples/bring_your_own.py

Question: does our rotating chair (`rotating_chair.py`) with our night owl at the cost seat
(`personas/night_owl.toml`) keep what every room relies on, and how does the room fare with either?
Method: `check_protocol` plays random tables with ties, vetoes and no deal; `check_persona` asks all
that a room may ask, in two worlds. Then one storm, four rooms: each piece changed alone, and both.
Expected: both conform, or the script stops with the first fault in one line. Every room succeeds.
The chair alone does something else in 11 of 30 steps and earns the same; the owl vetoes in 9 steps
and costs reward. One storm says nothing about the next: see swap_a_persona.py.
The same from a shell, standing in the checkout:

    PYTHONPATH=examples python run_warroom.py run --scenario cloudedge/hard \
        --protocol rotating_chair:RotatingChair --persona cost=examples/personas/night_owl.toml
"""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from agents.testkit import check_persona, check_protocol
from orchestrator.episode import run_episode
from orchestrator.spec import EpisodeSpec
from orchestrator.study.recorded import recorded

PROTOCOL = "rotating_chair:RotatingChair"
PERSONA = HERE / "personas" / "night_owl.toml"


def main() -> None:
    """Check both, play four rooms, tell."""
    check_protocol(PROTOCOL)
    check_persona(PERSONA)
    print("protocol and persona conform\n")
    print("protocol        cost seat  reward  success  steps: other  vetoed  no deal")
    usual: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for protocol, owl in product(("weighted_score", PROTOCOL), (False, True)):
            spec = EpisodeSpec(
                scenario="cloudedge/hard", seed=3, protocol=protocol, store="inprocess",
                personas={"cost": str(PERSONA)} if owl else {}, driver="loop", out=folder,
            )  # fmt: skip
            result = run_episode(spec)
            steps = recorded(result.trace).steps
            actions = [step.action for step in steps]
            usual = usual or actions
            other = sum(one != two for one, two in zip(usual, actions, strict=True))
            vetoed = sum(bool(step.vetoes) for step in steps)
            no_deal = sum(not step.decision.get("agreement") for step in steps)
            print(
                f"{result.protocol:14}  {result.personas['cost']:9}  {result.reward_total:6.1f}"
                f"  {'yes' if result.success else 'no':7}  {other:12}  {vetoed:6}  {no_deal:7}"
            )


if __name__ == "__main__":
    main()
