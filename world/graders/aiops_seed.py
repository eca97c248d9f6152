"""What else the original AI-Ops environment prints as scores; none of it looks at the system.

Kept as functions so that published figures can be compared: the documented reward that no run ever
calls, the printed baseline that plays no environment, and three graders that count triage words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from world.graders.scorecard import SCORE_MAX, SCORE_MIN, clipped
from world.worlds.aiops.settings import PRIORITIES

Level = Literal["easy", "medium", "hard"]
Priority = Literal["high", "medium", "low"]

TASK_BASES: Final = {
    "load_balancing_optimization": 0.25,
    "anomaly_detection_monitoring": 0.20,
    "resource_allocation_planning": 0.20,
    "incident_response_automation": 0.30,
    "performance_tuning_engine": 0.10,
    "cost_efficiency_optimization": 0.10,
    "intelligent_scheduling_system": 0.35,
    "database_performance_tuning": 0.35,
    "basic_system_monitoring": 0.05,
    "simple_log_analysis": 0.05,
}
"""First term of the printed baseline, per task, in the original's order of tasks."""
BASELINE_STEPS: Final = 5
_BASELINE_RISE = 0.12

_TRIAGE_WORTH: Final = {
    "assign": {"high": 0.99, "medium": 0.7, "low": 0.2},
    "ignore": {"high": -0.99, "medium": -0.3, "low": 0.5},
}


def documented_reward(priority: Priority, action: str, seconds: float) -> float:
    """The documented reward: 0.4·priority + 0.4·action + 0.2·efficiency, clipped.

    Args:
        priority: Priority of a ticket.
        action: ``assign``, ``ignore``, or another word, which is worth nothing.
        seconds: Time taken; the efficiency is ``max(0, 1 − t/0.99)``.

    >>> [round(documented_reward(word, "assign", 0.1), 2) for word in ("high", "medium", "low")]
    [0.97, 0.7, 0.38]
    """
    efficiency = max(0.0, 1.0 - seconds / 0.99)
    worth = _TRIAGE_WORTH.get(action, {}).get(priority, 0.0)
    return clipped(0.4 * PRIORITIES[priority] + 0.4 * worth + 0.2 * efficiency)


def printed_baseline(task: str) -> tuple[tuple[float, ...], float]:
    """Step rewards and score of the printed baseline: ``base + 0.12·step`` for five steps.

    >>> round(printed_baseline("basic_system_monitoring")[1], 2)
    0.41
    """
    base = TASK_BASES[task]
    rewards = tuple(base + _BASELINE_RISE * step for step in range(1, BASELINE_STEPS + 1))
    return rewards, clipped(sum(rewards) / len(rewards))


def triage_score(level: Level, decisions: Sequence[tuple[str, Priority]]) -> float:
    """The three graders of triage words.

    Args:
        level: Which grader. ``easy`` and ``medium`` look at the first decision only.
        decisions: ``(word, priority of the ticket)``: assign, escalate or ignore.

    >>> triage_score("easy", [("assign", "high")]), triage_score("medium", [("escalate", "low")])
    (0.99, 0.2)
    """
    first = decisions[0] if decisions else ("", "low")
    if level == "easy":
        if first[0] != "assign":
            return SCORE_MIN
        return SCORE_MAX if first[1] == "high" else 0.5
    if level == "medium":
        return clipped(_medium(*first))
    return clipped(sum(_hard(word, priority) for word, priority in decisions))


def _medium(word: str, priority: str) -> float:
    if word == "escalate":
        return 0.2
    return {"high": 0.6, "medium": 0.3}.get(priority, 0.0) if word == "assign" else 0.0


def _hard(word: str, priority: str) -> float:
    if word == "ignore":
        return -0.3
    return {"high": 0.3, "medium": 0.15}.get(priority, 0.0) if word == "assign" else 0.0
