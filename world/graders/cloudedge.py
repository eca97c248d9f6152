"""The CloudEdge grader: an episode's reward on the published range, and what it is made of.

The total is the episode's reward between that of uniform random play and the best known, clipped
to 0.01–0.99. Everything else on the card explains it and does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from world.graders.scorecard import Component, GradedStep, Scorecard, clipped
from world.model import Scenario

PUBLISHED_STEPS: Final = 30
"""Episode length that the published rewards belong to."""


class Published(NamedTuple):
    """Mean rewards over 30 steps, in points.

    Attributes:
        random: Uniform random over the four plain actions, seeds 0–199.
        boardroom: The seed's own majority vote, seeds 0–199.
        best_known: Clairvoyant beam search in the boardroom's regime, 20 seeds.
    """

    random: float
    boardroom: float
    best_known: float


PUBLISHED: Final = {
    "easy": Published(249.0, 762.0, 1292.0),
    "medium": Published(45.0, 341.0, 1004.0),
    "hard": Published(-80.0, 6.0, 728.0),
}
"""Source: measurements on KartikRaut09/ecocloud-war-room at commit d995635, 30 steps."""

_UNITS = {"latency_ms": "ms", "cost_usd_per_hour": "$/h", "carbon_index": "index"}


def grade(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Grade an episode.

    Args:
        scenario: What was played; its horizon scales the published rewards by N/30.
        steps: Every committed step, in order.

    Returns:
        The card. Baselines are on the scale of `total`, not clipped. Success means that every
        target holds after the last step of a whole episode.
    """
    published, origin = _published(scenario)
    share = scenario.horizon / PUBLISHED_STEPS
    low, high = published.random * share, published.best_known * share
    reward = sum(step.reward for step in steps)
    held = tuple(step.step for step in steps if step.success)
    complete = len(steps) >= scenario.horizon
    return Scorecard(
        total=clipped((reward - low) / (high - low)),
        success=complete and bool(steps) and steps[-1].success,
        success_any=bool(held),
        components={
            "reward": Component(
                reward,
                1.0,
                "points",
                f"{reward:g} points; random play {low:g}, the seed's boardroom "
                f"{published.boardroom * share:g}, best known {high:g}",
                tuple(step.step for step in steps),
            ),
            **_time_in_target(scenario, steps, held),
            **_area_over_target(scenario, steps),
            "longest_stable_run": _longest_run(steps),
            "repeats": _repeats(steps),
        },
        baselines={
            "random": 0.0,
            "boardroom": (published.boardroom - published.random)
            / (published.best_known - published.random),
            "best_known": 1.0,
        },
        note=_note(scenario, len(steps), origin),
    )


def _published(scenario: Scenario) -> tuple[Published, str]:
    difficulty = scenario.params.get("difficulty")
    if isinstance(difficulty, str) and difficulty in PUBLISHED:
        return PUBLISHED[difficulty], ""
    return PUBLISHED["hard"], "no published range belongs to this scenario; hard's is used"


def _note(scenario: Scenario, committed: int, origin: str) -> str:
    notes = [origin] if origin else []
    if scenario.horizon != PUBLISHED_STEPS:
        notes.append(
            f"the published range holds for {PUBLISHED_STEPS} steps and is scaled by "
            f"{scenario.horizon}/{PUBLISHED_STEPS}"
        )
    if committed < scenario.horizon:
        notes.append(f"{committed} of {scenario.horizon} steps were played")
    return "; ".join(notes)


def _time_in_target(
    scenario: Scenario, steps: Sequence[GradedStep], held: tuple[int, ...]
) -> dict[str, Component]:
    parts = {
        f"in_target_{name}": _fraction(
            f"{name} below {target:g}", steps, _below(steps, name, target)
        )
        for name, target in scenario.targets.items()
    }
    parts["in_target_all"] = _fraction("all targets held", steps, held)
    return parts


def _below(steps: Sequence[GradedStep], name: str, target: float) -> tuple[int, ...]:
    return tuple(
        step.step
        for step in steps
        if (value := step.metrics.get(name)) is not None and value < target
    )


def _fraction(what: str, steps: Sequence[GradedStep], where: tuple[int, ...]) -> Component:
    value = len(where) / len(steps) if steps else 0.0
    return Component(value, 0.0, "fraction", f"{what} in {len(where)} of {len(steps)} steps", where)


def _area_over_target(scenario: Scenario, steps: Sequence[GradedStep]) -> dict[str, Component]:
    """Σ over steps of how far a metric was above its target."""
    parts: dict[str, Component] = {}
    for name, target in scenario.targets.items():
        over = {
            step.step: value - target
            for step in steps
            if (value := step.metrics.get(name)) is not None and value > target
        }
        unit = f"{_UNITS.get(name, '')}·steps".removeprefix("·")
        parts[f"over_target_{name}"] = Component(
            sum(over.values()),
            0.0,
            unit,
            f"{name} above {target:g} in {len(over)} steps, {sum(over.values()):.1f} {unit} in all",
            tuple(over),
        )
    return parts


def _longest_run(steps: Sequence[GradedStep]) -> Component:
    best: list[int] = []
    run: list[int] = []
    for step in steps:
        run = [*run, step.step] if step.success else []
        best = run if len(run) > len(best) else best
    words = "all targets never held together"
    if best:
        words = f"all targets held longest in steps {best[0]}–{best[-1]}"
    return Component(len(best), 0.0, "steps", words, tuple(best))


def _repeats(steps: Sequence[GradedStep]) -> Component:
    kinds = [[action.partition(":")[0] for action in step.actions] for step in steps]
    where = tuple(
        step.step
        for step, (before, now) in zip(steps[1:], pairwise(kinds), strict=True)
        if before == now
    )
    return Component(
        len(where), 0.0, "steps", f"the last action was repeated in {len(where)} steps", where
    )
