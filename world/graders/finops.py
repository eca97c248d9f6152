"""Scores of the FinOps worlds: the native one, and the two seed versions exactly as they were.

Native: ``total = clip(verified net saving ÷ best possible saving, 0.01, 0.99)``, both as rates at
the end of the episode. Any violation or harm makes it 0.01; where nothing can be saved it is 0.5.
A saving is verified when it shows in the cost of the inventory and the machine behind it still
runs below the saturation target. The best possible saving obeys the same horizon and the same
number of actions per step.

The seeds' own graders are kept as they were, flaws included: they look at the last inventory only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from world.graders.scorecard import SCORE_MIN, Component, GradedStep, Scorecard, clipped
from world.model import Scenario

NOTHING_TO_SAVE = 0.5
SEED_SUCCESS = 0.1
"""The seed's runner calls an episode a success from this score on."""


def grade(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Score a finished episode from its steps alone.

    Args:
        scenario: What was played.
        steps: The committed steps; the last one must be the end of the episode, whose facts say
            what the best possible saving was (or the seed's score).
    """
    facts: Mapping[str, Any] = steps[-1].facts if steps else {}
    if "seed_score" in facts:
        return grade_seed(scenario, steps, float(facts["seed_score"]))
    best = float(facts.get("best_possible_saving_usd_per_hour", 0.0))
    return grade_native(scenario, steps, best, bool(facts.get("best_possible_exact", False)))


def grade_native(
    scenario: Scenario, steps: Sequence[GradedStep], best_usd_per_hour: float, exact: bool
) -> Scorecard:
    """Score an episode of the native world.

    Args:
        scenario: What was played.
        steps: The committed steps, in order.
        best_usd_per_hour: Best possible saving, $/h.
        exact: Whether that is the optimum; otherwise it is an upper bound.
    """
    facts: Mapping[str, Any] = steps[-1].facts if steps else {}
    saved = float(facts.get("verified_saving_usd_per_hour", 0.0))
    violations = tuple(line for step in steps for line in step.violations)
    broken = int(facts.get("violations", 0)) + int(facts.get("harms", 0))
    kind = "optimum" if exact else "upper bound"
    if broken:
        total = SCORE_MIN
        note = f"{broken} times a rule was broken or harm was done: the score is {SCORE_MIN}"
    elif best_usd_per_hour <= 0.0:
        total = NOTHING_TO_SAVE
        note = f"nothing could be saved here: the score is {NOTHING_TO_SAVE}"
    else:
        total = clipped(saved / best_usd_per_hour)
        note = f"verified net saving {saved:.6g} of {best_usd_per_hour:.6g} $/h ({kind})"
    return Scorecard(
        total=total,
        success=bool(steps) and steps[-1].success,
        success_any=any(step.success for step in steps),
        components=_components(steps, facts, saved, best_usd_per_hour, kind),
        violations=violations,
        baselines={
            "nop": NOTHING_TO_SAVE if best_usd_per_hour <= 0.0 else SCORE_MIN,
            "best_possible": NOTHING_TO_SAVE if best_usd_per_hour <= 0.0 else 0.99,
        },
        note=note,
    )


def _components(
    steps: Sequence[GradedStep], facts: Mapping[str, Any], saved: float, best: float, kind: str
) -> dict[str, Component]:
    start = float(facts.get("start_cost_usd_per_hour", 0.0))
    inside = tuple(step.step for step in steps if step.success)
    broken = tuple(step.step for step in steps if step.violations)
    failed = [
        (step.step, status)
        for step in steps
        for status in step.statuses
        if status in ("refused", "failed", "already_gone")
    ]
    churn = [step for step in steps if (step.metrics.get("repeat_fraction") or 0.0) > 0.0]
    return {
        "saving": Component(
            saved / best if best > 0.0 else 0.0,
            1.0,
            "fraction",
            f"{saved:.6g} of {best:.6g} $/h ({kind}); the bill began at {start:.6g} $/h",
        ),
        "time_in_target": Component(
            len(inside) / len(steps) if steps else 0.0,
            0.0,
            "fraction",
            f"cost below its target, nothing broken: {len(inside)} of {len(steps)} steps",
            inside,
        ),
        "violations": Component(
            float(facts.get("violations", 0)),
            0.0,
            "count",
            "something in use was terminated, or a machine was overloaded",
            broken,
        ),
        "harms": Component(
            float(facts.get("harms", 0)),
            0.0,
            "count",
            "something essential was terminated or overloaded",
            broken,
        ),
        "failed_actions": Component(
            float(len(failed)),
            0.0,
            "count",
            "actions that were refused or had no effect",
            tuple(dict.fromkeys(step for step, _ in failed)),
        ),
        "churn": Component(
            float(len(churn)),
            0.0,
            "steps",
            "steps with actions that were refused or resized a resource again",
            tuple(step.step for step in churn),
        ),
    }


SeedRow = tuple[str, bool, float]
"""Id, essential, $/h: what the seeds' graders read of a resource."""

_ZOMBIES = ("srv-idle-static", "storage-temp-logs")


def seed_score(version: str, task: str, rows: Sequence[SeedRow]) -> float:
    """The seeds' graders, exactly.

    Args:
        version: ``v1`` or ``v2``.
        task: Task id.
        rows: The last inventory.
    """
    names = {name for name, _, _ in rows}
    zombies = (len(_ZOMBIES) - sum(name in names for name in _ZOMBIES)) / len(_ZOMBIES)
    total = sum(cost for _, _, cost in rows)
    if version == "v1":
        if task == "zombie_cleanup":
            return zombies
        if task == "right_sizing":
            return min(1.0, max(0.0, (0.4536 - total) / 0.1))
        return 0.0
    if not rows:
        return 0.5
    if task == "right_sizing":
        return clipped(max(0.0, 1.1336 - total) / 0.6)
    if task == "disaster_recovery":
        return clipped(sum(essential for _, essential, _ in rows) / 2)
    return clipped(zombies)


def grade_seed(scenario: Scenario, steps: Sequence[GradedStep], score: float) -> Scorecard:
    """Wrap the seed's own score.

    Args:
        scenario: What was played.
        steps: The committed steps.
        score: What the seed's grader said of the last inventory.
    """
    reward = sum(step.reward for step in steps)
    return Scorecard(
        total=score,
        success=score >= SEED_SUCCESS,
        success_any=any(step.success for step in steps),
        components={
            "seed_grader": Component(
                score, 1.0, "fraction", f"the {scenario.params.get('version')} grader, as it was"
            ),
            "reward": Component(reward, 0.0, "points", "sum of the seed's own rewards"),
        },
        violations=tuple(line for step in steps for line in step.violations),
        note="the seed's grader as it was: it sees the last inventory only, not what was broken",
    )
