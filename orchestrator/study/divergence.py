"""Where an episode that is played again parts from its record, and what it came to instead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.trace.diff import ABSENT, Part, first_part, shown_value
from orchestrator.trace.events import Event, canonical
from orchestrator.trace.steps import StepRecord, numbers
from orchestrator.trace.untrusted import printable
from world.errors import DigestMismatchError
from world.model import significant


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first thing that is not as it was recorded.

    Attributes:
        step: The step, 1….
        round: Round of the negotiation.
        seat: The seat that it comes from; "" for the room.
        kind: Event type, ``prompt`` (what a model would be asked) or ``ask``.
        path: Where in it the value stands; "" is the whole.
        recorded: What was recorded.
        replayed: What it is now.
        seq: Number of the recorded event; -1 where there is none.
    """

    step: int
    round: int
    seat: str
    kind: str
    path: str
    recorded: Any
    replayed: Any
    seq: int = -1

    def where(self) -> str:
        """``step 3, ballot of seat cost, utilities.nop``."""
        seat = f" of seat {printable(self.seat, 60)}" if self.seat else ""
        round_ = f", round {self.round}" if self.round else ""
        path = f", {printable(self.path, 120)}" if self.path else ""
        return f"step {self.step}{round_}, {self.kind}{seat}{path}"

    def line(self) -> str:
        """The whole on one line."""
        return (
            f"{self.where()}: recorded {shown_value(self.recorded)}, "
            f"now {shown_value(self.replayed)}"
        )

    def as_json(self) -> dict[str, Any]:
        """The same as JSON-plain data."""
        names = ("step", "round", "seat", "kind", "path", "recorded", "replayed", "seq")
        return {name: getattr(self, name) for name in names}


class Drift(DigestMismatchError):
    """A replay is not what was recorded.

    Args:
        found: The first difference.
    """

    def __init__(self, found: Divergence) -> None:
        self.found = found
        super().__init__(
            f"the replay drifts at {found.where()}",
            f"recorded {shown_value(found.recorded)}, now {shown_value(found.replayed)}",
            "See which input changed: run_warroom.py trace diff A B, and versions in run.json",
        )

    def __reduce__(self) -> tuple[type[Drift], tuple[Divergence]]:  # type: ignore[override]
        return (type(self), (self.found,))


def first_divergence(recorded: Sequence[Event], now: Sequence[Event]) -> Divergence | None:
    """The first event of `now` that is not the recorded one; fewer events are no difference."""
    for place, event in enumerate(now):
        if place >= len(recorded):
            return _of(event, Part("", ABSENT, _named(event)), event.type, -1)
        then = recorded[place]
        if _place(then) != _place(event):
            return _of(event, Part("", _named(then), _named(event)), event.type, then.seq)
        text = canonical(event.data)
        if canonical(then.data) != text:
            part = first_part(json.loads(canonical(then.data)), json.loads(text))
            return _of(event, part or Part("", ABSENT, ABSENT), event.type, then.seq)
    return None


def _of(event: Event, part: Part, kind: str, seq: int) -> Divergence:
    return Divergence(event.step, event.round, event.agent, kind, part.path, part.a, part.b, seq)


def _place(event: Event) -> tuple[str, int, int, str]:
    return event.type, event.step, event.round, event.agent


def _named(event: Event) -> str:
    return f"{event.type}{f' of {event.agent}' if event.agent else ''}"


class Fork(NamedTuple):
    """One step in which two runs did something else.

    Attributes:
        step: The step.
        action_a: What the first did.
        action_b: What the second did.
        reward_a: Reward of the first.
        reward_b: Reward of the second.
        metrics_a: Metrics of the first after the step.
        metrics_b: Metrics of the second after the step.
    """

    step: int
    action_a: str
    action_b: str
    reward_a: float
    reward_b: float
    metrics_a: Mapping[str, float]
    metrics_b: Mapping[str, float]


class Shift(NamedTuple):
    """How one metric differs between two runs.

    Attributes:
        metric: Its name.
        end_a: Value after the last step of the first; None where it is not known.
        end_b: The same of the second.
        mean_a: Mean over the steps of the first.
        mean_b: The same of the second.
    """

    metric: str
    end_a: float | None
    end_b: float | None
    mean_a: float | None
    mean_b: float | None


def forks(a: Sequence[StepRecord], b: Sequence[StepRecord]) -> list[Fork]:
    """The steps that are not alike, in order; a step that only one run has is not alike."""
    found = []
    for place in range(max(len(a), len(b))):
        one, other = (run[place] if place < len(run) else None for run in (a, b))
        sides = [
            (
                step.action if step else ABSENT,
                float(step.grade.get("reward", 0.0)) if step else 0.0,
                numbers(step.applied.get("metrics")) if step else {},
            )
            for step in (one, other)
        ]
        if sides[0] != sides[1]:
            (act_a, reward_a, after_a), (act_b, reward_b, after_b) = sides
            found.append(Fork(place + 1, act_a, act_b, reward_a, reward_b, after_a, after_b))
    return found


def shifts(a: Sequence[StepRecord], b: Sequence[StepRecord]) -> list[Shift]:
    """Every metric of two runs: after the last step, and its mean over the steps."""
    paths = [[numbers(step.applied.get("metrics")) for step in run] for run in (a, b)]
    names = dict.fromkeys(name for path in paths for after in path for name in after)
    return [
        Shift(name, *(_end(path, name) for path in paths), *(_mean(path, name) for path in paths))
        for name in names
    ]


def _end(path: Sequence[Mapping[str, float]], name: str) -> float | None:
    return path[-1].get(name) if path else None


def _mean(path: Sequence[Mapping[str, float]], name: str) -> float | None:
    known = [after[name] for after in path if name in after]
    return significant(sum(known) / len(known)) if known else None
