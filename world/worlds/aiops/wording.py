"""What actions are called and what they came to, in words for people and prompts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from world.actions import NOP, Action, ActionTemplate
from world.model import ActionOutcome
from world.worlds.aiops.evidence import ACCURACY, labels_of
from world.worlds.aiops.menu import (
    CODE,
    KINDS,
    METRICS,
    NATIVE_KINDS,
    REMEDIES,
    effect_text,
    phase_of,
)
from world.worlds.aiops.state import State


def templates() -> tuple[ActionTemplate, ...]:
    """The native world's templates, in code order."""
    return (
        *(_template(kind) for kind in KINDS),
        ActionTemplate(NOP, "Do nothing", effect="an unfixed cause keeps pushing"),
    )


def _template(kind: str) -> ActionTemplate:
    title = f"{kind.replace('_', ' ').capitalize()} ({phase_of(kind)})"
    labels = labels_of(CODE[kind])
    if labels:
        effect = f"answers {' | '.join(labels)}; right in {ACCURACY[CODE[kind]]:.0%} of cases"
    else:
        effect = f"{effect_text(kind)}; half of it against a cause that is still pushing"
    if kind in REMEDIES:
        effect += "; removes the cause that it is right for, does harm where it is wrong"
    return ActionTemplate(kind, title, destructive=kind in REMEDIES, effect=effect)


def describe(state: State, row: int, before: NDArray[np.float64] | None = None) -> ActionOutcome:
    """What became of the last action of one world.

    Args:
        state: After the step.
        row: Which world.
        before: float64 [4], the symptoms before the step; what moved is left out without them.
    """
    code = int(state.last[row])
    kind = NATIVE_KINDS[code]
    if kind != NOP and not bool(state.worked[row]):
        return ActionOutcome(
            Action(kind), "failed", "", "it had no effect this time and can be tried again"
        )
    parts = []
    label = int(state.reading[row])
    if label >= 0:
        parts.append(f"reading: {labels_of(code)[label]}")
    if bool(state.harmed[row]):
        parts.append("it did harm")
    if before is not None:
        parts += [
            f"{name} {old:.3g} -> {new:.3g}"
            for name, old, new in zip(
                METRICS, before.tolist(), state.metrics[row].tolist(), strict=True
            )
        ]
    return ActionOutcome(Action(kind), "applied", ", ".join(parts))
