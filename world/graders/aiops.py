"""Scores of the AI-Ops worlds: the native one, and the original's exactly as it was.

Native: ``total = solved·(0.4·priority + 0.4·remedy + 0.2·(1 − k/horizon))``, clipped to 0.01–0.99,
with k the steps that were taken. An incident that is not resolved is a failed episode: 0.01. The
remedy is worth 1 where the cause was removed, 0.3 where a harmless workaround was enough, and 0
where any harm was done. What decides is what the world says of its own end, never the actor.

The original's score is the mean of its step rewards, clipped; it follows the step number more than
the system, and is kept for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from world.graders.scorecard import SCORE_MIN, Component, GradedStep, Scorecard, clipped
from world.model import Scenario
from world.worlds.aiops.adaptive import by_table
from world.worlds.aiops.menu import REMEDIES, phase_of
from world.worlds.aiops.settings import (
    PRIORITIES,
    PRIORITY_SHARE,
    REMEDY_SHARE,
    SPEED_SHARE,
)

BANDS: Final = (
    (0.90, "excellent"),
    (0.70, "very good"),
    (0.50, "good"),
    (0.30, "average"),
    (0.10, "poor"),
)
"""Lower bounds of the original's score bands; below the last is very poor."""


class Measured(NamedTuple):
    """What a fixed policy reaches, over the twelve events with equal weight.

    Attributes:
        solved: Share of incidents resolved, 0–1.
        rest: Mean of the remedy and speed parts, and of 0.01 where it is not resolved.
    """

    solved: float
    rest: float


MEASURED: Final[Mapping[str, Mapping[str, Measured]]] = {
    "easy": {"random": Measured(0.162, 0.072), "greedy_fix": Measured(0.399, 0.177)},
    "medium": {"random": Measured(0.146, 0.065), "greedy_fix": Measured(0.366, 0.167)},
    "hard": {"random": Measured(0.131, 0.059), "greedy_fix": Measured(0.340, 0.159)},
}
"""Measured on seeds 200–399 of every event. ``random`` is uniform over the 31 actions;
``greedy_fix`` treats symptoms: errors from 0.10 restart, else memory from 60 % is freed, else CPU
from 60 % is scaled, else it stabilises."""

SEED_BASELINES: Final = {"no_effect": 0.580, "random": 0.569, "greedy_fix": 0.481}
"""Mean step rewards of the original on 400 seeds; the action without effect earns the most."""


def band(score: float) -> str:
    """The original's word for a score.

    >>> band(0.9), band(0.55), band(0.01)
    ('excellent', 'good', 'very poor')
    """
    return next((word for bound, word in BANDS if score >= bound), "very poor")


def grade(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Score a finished episode of either world from its steps alone.

    Args:
        scenario: What was played, with the horizon that was played.
        steps: The committed steps, in order.
    """
    if scenario.params.get("rules") == "seed":
        return grade_seed(steps)
    return grade_native(scenario, steps)


def grade_seed(steps: Sequence[GradedStep]) -> Scorecard:
    """The original's score: the mean step reward."""
    mean = sum(step.reward for step in steps) / len(steps) if steps else 0.0
    total = clipped(mean)
    held = tuple(step.step for step in steps if step.success)
    return Scorecard(
        total=total,
        success=bool(steps) and steps[-1].success,
        success_any=bool(held),
        components={
            "mean_step_reward": Component(
                mean,
                1.0,
                "points",
                f"mean of {len(steps)} step rewards",
                tuple(step.step for step in steps),
            ),
            "stabilised": Component(
                len(held) / len(steps) if steps else 0.0,
                0.0,
                "fraction",
                f"the system counted as stabilised after {len(held)} of {len(steps)} steps",
                held,
            ),
        },
        baselines=dict(SEED_BASELINES),
        note=f"{band(total)}: the original's mean step reward, which follows the step number more "
        "than the system; success is asked of the environment",
    )


def grade_native(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Score an episode of the native world."""
    facts: Mapping[str, Any] = steps[-1].facts if steps else {}
    solved = bool(facts.get("resolved", False))
    priority = PRIORITIES[str(scenario.params.get("priority"))]
    worth = float(facts.get("remedy_worth", 0.0)) if solved else 0.0
    speed = 1.0 - len(steps) / scenario.horizon if solved else 0.0
    total = SCORE_MIN
    if solved:
        total = clipped(PRIORITY_SHARE * priority + REMEDY_SHARE * worth + SPEED_SHARE * speed)
        if scenario.params.get("adaptive") == "table":
            total = by_table(total, float(scenario.params.get("success_fraction", 0.5)))
    return Scorecard(
        total=total,
        success=solved,
        success_any=any(step.success for step in steps),
        components={
            "priority": Component(
                priority if solved else 0.0,
                PRIORITY_SHARE,
                "fraction",
                f"the task's priority is {scenario.params.get('priority')} ({priority:g})"
                + ("" if solved else "; it counts once the incident is resolved"),
            ),
            "remedy": Component(worth, REMEDY_SHARE, "fraction", *_remedy(steps, facts)),
            "speed": Component(
                speed,
                SPEED_SHARE,
                "fraction",
                f"{'resolved' if solved else 'not resolved'} after {len(steps)} of "
                f"{scenario.horizon} steps",
                (steps[-1].step,) if solved else (),
            ),
            **_observations(steps, facts),
        },
        violations=tuple(line for step in steps for line in step.violations),
        baselines=_baselines(scenario, priority),
        note=_note(scenario, total, solved, facts),
    )


def _note(scenario: Scenario, total: float, solved: bool, facts: Mapping[str, Any]) -> str:
    cause = str(facts.get("root_cause", "")) or "unknown"
    if not solved:
        return f"{band(total)}: the incident ({cause}) was not resolved, a failed episode"
    parts = [f"{band(total)}: {cause} was resolved"]
    if scenario.params.get("adaptive") == "table":
        parts.append("moved by the adaptive table")
    return ", ".join(parts)


def _taken(steps: Sequence[GradedStep], kinds: Sequence[str]) -> list[GradedStep]:
    """Steps in which one of these actions took effect."""
    return [
        step
        for step in steps
        if any(
            action in kinds and status == "applied"
            for action, status in zip(step.actions, step.statuses, strict=False)
        )
    ]


def _remedy(steps: Sequence[GradedStep], facts: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """How the remedies that were taken are judged, and when they were."""
    right = str(facts.get("right_remedy", ""))
    done = _taken(steps, REMEDIES)
    harmful = [step for step in steps if step.violations]
    cured = [step for step in done if right in step.actions]
    if harmful:
        text = f"harm was done in {len(harmful)} of {len(steps)} steps"
    elif cured:
        text = f"{right} removed the cause at step {cured[0].step}"
    elif done:
        text = f"no remedy removed the cause ({right or 'unknown'} would have)"
    else:
        text = "no remedy took effect"
    return text, tuple(step.step for step in done)


def _observations(steps: Sequence[GradedStep], facts: Mapping[str, Any]) -> dict[str, Component]:
    """What explains the score and does not count."""
    asked = [step for step in steps if _phase(step) in ("detection", "classification", "decision")]
    failed = [step for step in steps if "failed" in step.statuses]
    disturbed = [step for step in steps if step.facts.get("disturbance")]
    harmful = tuple(step.step for step in steps if step.violations)
    doubt = (steps[-1].metrics.get("doubt_percent") if steps else None) or 0.0
    right = str(facts.get("right_remedy", ""))
    cured = [step.step for step in _taken(steps, (right,))] if right else []
    named = _diagnosis(steps, str(facts.get("root_cause", "")))
    return {
        "diagnosis": named,
        "doubt_at_end": Component(doubt, 0.0, "%", f"doubt about the remedy: {doubt:.3g} %"),
        "steps_to_detect": _first("a question was asked", [step.step for step in asked]),
        "steps_to_mitigate": _first("the right remedy took effect", cured),
        "harm": _count("a remedy did harm", harmful),
        "failed_actions": _count("an action had no effect", tuple(s.step for s in failed)),
        "disturbances": _count("something else disturbed it", tuple(s.step for s in disturbed)),
    }


def _phase(step: GradedStep) -> str:
    kind = step.actions[0] if step.actions else "nop"
    return phase_of(kind) or ""


def _first(what: str, where: Sequence[int]) -> Component:
    if not where:
        return Component(0.0, 0.0, "steps", f"never: {what}")
    return Component(float(where[0]), 0.0, "steps", f"{what} first at step {where[0]}", (where[0],))


def _count(what: str, where: tuple[int, ...]) -> Component:
    return Component(float(len(where)), 0.0, "steps", f"{what} in {len(where)} steps", where)


def _diagnosis(steps: Sequence[GradedStep], cause: str) -> Component:
    """Whether the likeliest cause at the end is the true one."""
    posterior = steps[-1].facts.get("posterior") if steps else None
    if not isinstance(posterior, Mapping) or not posterior or not cause:
        return Component(0.0, 0.0, "fraction", "no diagnosis was made")
    leading = max(sorted(posterior), key=lambda name: float(posterior[name]))
    right = leading == cause
    return Component(
        float(right),
        0.0,
        "fraction",
        f"the evidence names {leading} with {float(posterior[leading]):.3g}; it was {cause}",
    )


def _baselines(scenario: Scenario, priority: float) -> dict[str, float]:
    found = {"nop": SCORE_MIN}
    measured = MEASURED.get(str(scenario.params.get("difficulty")), {})
    for name, policy in measured.items():
        found[name] = clipped(PRIORITY_SHARE * priority * policy.solved + policy.rest)
    fastest = 1.0 - 1.0 / scenario.horizon
    found["best"] = clipped(PRIORITY_SHARE * priority + REMEDY_SHARE + SPEED_SHARE * fastest)
    return found
