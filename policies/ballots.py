"""From projected consequences to ballots: values, vetoes, and what no deal is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.guardrails import RedLine
from policies.records import Candidate, Veto
from world.model import MetricSpec, Observation, Scenario


class Notice(NamedTuple):
    """Something that was noticed and did not take a candidate out.

    Attributes:
        seat: Whose rule; "" for the room's.
        rule: Rule id.
        severity: ``warn`` or ``escalate``.
        reason: One line.
        candidate: Candidate id; "" when it is about none in particular.
    """

    seat: str
    rule: str
    severity: str
    reason: str
    candidate: str = ""


class Judged(NamedTuple):
    """What a seat's red lines say.

    Attributes:
        vetoes: Candidate id → the first red line crossed that vetoes.
        notices: Red lines that warn or escalate, or that cannot be read here.
    """

    vetoes: Mapping[str, Veto]
    notices: tuple[Notice, ...]


def tolerances_of(
    observation: Observation, scenario: Scenario
) -> Mapping[str, tuple[float, float]]:
    """Metric → (margin, scale): what the world computed for this episode, else the scenario's."""
    computed = observation.facts.get("tolerances")
    if computed:
        return {name: (float(pair[0]), float(pair[1])) for name, pair in computed.items()}
    return scenario.tolerances


def current_metrics(observation: Observation, metrics: Sequence[MetricSpec]) -> NDArray[np.float64]:
    """What is measured now as if it were a projection, float64 [1, 1, 1, M]; unknown is NaN."""
    values = [observation.metrics.get(metric.name) for metric in metrics]
    plain = [np.nan if value is None else value for value in values]
    return np.array(plain, dtype=np.float64).reshape(1, 1, 1, -1)


def judge(
    seat: str,
    red_lines: Sequence[RedLine],
    can_veto: bool,
    candidates: Sequence[Candidate],
    by_step: NDArray[np.float64],
    metrics: Sequence[MetricSpec],
    observation: Observation,
) -> Judged:
    """Hold every candidate against a seat's red lines.

    A line on ``projected`` is crossed when the mean over the samples crosses it in any projected
    step; a line on ``current`` is crossed by all candidates or by none. A seat without the power
    to veto warns instead.

    Args:
        seat: Seat name.
        red_lines: Its red lines, in order.
        can_veto: Whether it has the power to veto.
        candidates: The candidates that were projected.
        by_step: float64 [n_candidates, H, M], mean over samples.
        metrics: What the last axis holds.
        observation: What the room observes.
    """
    names = [metric.name for metric in metrics]
    vetoes: dict[str, Veto] = {}
    notices: list[Notice] = []
    for number, line in enumerate(red_lines, 1):
        rule = line.id or f"{seat}/red_line/{number}"
        column = names.index(line.metric) if line.metric in names else None
        now = observation.metrics.get(line.metric)
        if (now if line.on == "current" else column) is None:
            where = "measured now" if line.on == "current" else "projected in this world"
            reason = f"{line.metric} is not {where}; this red line holds nothing back"
            if line.on == "current" or observation.step == 0:  # a world never gains a metric
                notices.append(Notice(seat, rule, "warn", reason))
            continue
        for position, candidate in enumerate(candidates):
            values = (
                [now]
                if column is None or line.on == "current"
                else by_step[position, :, column].tolist()
            )
            crossing = next((v for v in values if v is not None and line.crossed(v)), None)
            if crossing is None:
                continue
            reason = _crossed(line, crossing)
            if line.severity == "veto" and can_veto:
                vetoes.setdefault(candidate.id, Veto(rule, reason))
            else:
                severity = "warn" if line.severity == "veto" else line.severity
                notices.append(Notice(seat, rule, severity, reason, candidate.id))
    return Judged(vetoes, tuple(notices))


def _crossed(line: RedLine, value: float) -> str:
    verb = "is" if line.on == "current" else "would be"
    text = f"{line.metric} {verb} {value:.6g}, which is {line.op} {line.value:.6g}"
    return f"{text}: {line.reason}" if line.reason else text
