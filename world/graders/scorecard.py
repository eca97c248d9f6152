"""What a grader reads and what it hands back: plain frozen data, the same for every world.

A grader is a pure function ``grade(scenario, steps) -> Scorecard``. It sees what was observed
after each step, what was done and what came of it; it never sees a state, a seat or a protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from world.model import Joint, Json, Observation, Outcomes, significant

SCORE_MIN = 0.01
SCORE_MAX = 0.99


@dataclass(frozen=True, slots=True)
class GradedStep:
    """One committed step, as a grader sees it.

    Attributes:
        step: Steps done after it, 1….
        metrics: Metric name → value observed after the step; None where it is not known.
        actions: Ids of the actions that were applied together.
        reward: The environment's reward.
        success: Whether every target held after the step.
        events: What happened by itself, one line each.
        terms: Reward term → value.
        facts: Other public scalars observed after the step.
        statuses: What became of each action, in the order of `actions`.
        violations: Harm that the step did, one line each.
    """

    step: int
    metrics: Mapping[str, float | None]
    actions: tuple[str, ...]
    reward: float
    success: bool
    events: tuple[str, ...] = ()
    terms: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    statuses: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()

    @staticmethod
    def of(
        after: Observation,
        joint: Joint,
        outcomes: Outcomes,
        violations: Sequence[str] | None = None,
    ) -> GradedStep:
        """The graded form of a step.

        Args:
            after: What the room observes after the step.
            joint: The actions that were applied together.
            outcomes: What the world said of them.
            violations: Harm that the step did, one line each; None takes what the world reported.
        """
        return GradedStep(
            step=after.step,
            metrics=dict(after.metrics),
            actions=tuple(action.id for action in joint),
            reward=outcomes.reward,
            success=outcomes.success,
            events=outcomes.events,
            terms=dict(outcomes.terms),
            facts=dict(after.facts),
            statuses=tuple(outcome.status for outcome in outcomes.actions),
            violations=outcomes.violations if violations is None else tuple(violations),
        )

    @property
    def joint(self) -> str:
        """Id of the joint action, as the trace spells it."""
        return "+".join(sorted(self.actions))


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a score, with its evidence.

    Attributes:
        value: The measured value, in `unit`.
        weight: Share of the total that this part decides, 0–1; 0 is shown but not counted.
        unit: Unit of `value`; "fraction" is 0–1.
        explanation: One line for people, with numbers.
        steps: The steps that the value rests on.
    """

    value: float
    weight: float
    unit: str
    explanation: str
    steps: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """The component as JSON-plain values, floats at 9 significant digits."""
        return {
            "value": significant(self.value),
            "weight": significant(self.weight),
            "unit": self.unit,
            "explanation": self.explanation,
            "steps": list(self.steps),
        }


@dataclass(frozen=True, slots=True)
class Scorecard:
    """What an episode was worth, and why.

    Attributes:
        total: 0.01–0.99.
        success: The verdict at the end of the episode.
        success_any: Whether every target held after at least one step.
        components: Part → value, weight and evidence, in the order in which they are shown.
        violations: Harm and broken rules, one line each.
        baselines: Name → value that `total` may be compared with; each grader says in what unit.
        note: One line on how the total was made, where that needs saying.
    """

    total: float
    success: bool
    success_any: bool
    components: Mapping[str, Component]
    violations: tuple[str, ...] = ()
    baselines: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def as_json(self) -> dict[str, Json]:
        """The scorecard as JSON-plain values, floats at 9 significant digits.

        >>> card = Scorecard(0.5, True, True, {"reward": Component(1 / 3, 1.0, "points", "…")})
        >>> card.as_json()["components"]["reward"]["value"]
        0.333333333
        """
        return {
            "total": significant(self.total),
            "success": self.success,
            "success_any": self.success_any,
            "components": {name: part.as_json() for name, part in self.components.items()},
            "violations": list(self.violations),
            "baselines": {name: significant(value) for name, value in self.baselines.items()},
            "note": self.note,
        }


def clipped(score: float) -> float:
    """A score inside its published range, 0.01 to 0.99.

    >>> clipped(1.7), clipped(-3.0)
    (0.99, 0.01)
    """
    return min(SCORE_MAX, max(SCORE_MIN, score))
