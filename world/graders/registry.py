"""Which grader scores which world."""

from __future__ import annotations

from collections.abc import Sequence

from world.graders.scorecard import Component, GradedStep, Scorecard, clipped
from world.model import Scenario


def grade(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Score an episode.

    Args:
        scenario: What was played, with the horizon that was played.
        steps: The committed steps, in order.
    """
    if scenario.world == "cloudedge":
        from world.graders import cloudedge

        return cloudedge.grade(scenario, steps)
    if scenario.world == "cloud":
        from world.graders import cloud

        return cloud.grade(scenario, steps)
    if scenario.world == "finops":
        from world.graders import finops

        return finops.grade(scenario, steps)
    if scenario.world == "aiops":
        from world.graders import aiops

        return aiops.grade(scenario, steps)
    return time_in_target(steps)


def time_in_target(steps: Sequence[GradedStep]) -> Scorecard:
    """The grader of a world that brings none: the share of steps in which every target held."""
    held = tuple(step.step for step in steps if step.success)
    violations = tuple(line for step in steps for line in step.violations)
    share = len(held) / len(steps) if steps else 0.0
    explanation = f"every target held after {len(held)} of {len(steps)} steps"
    return Scorecard(
        total=clipped(0.0 if violations else share),
        success=bool(steps and steps[-1].success and not violations),
        success_any=bool(held),
        components={"in_target": Component(share, 1.0, "fraction", explanation, held)},
        violations=violations,
    )
