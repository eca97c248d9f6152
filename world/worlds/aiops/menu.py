"""What can be done in an AI-Ops world: thirty actions in five phases, and doing nothing.

Both worlds share the names and their order; `nop` exists in the native world only. The figures in
`DELTAS` are the original's: how far an action lowers a metric, and the floor below which it does
not. What else an action does differs: see `seed_rules` and `dynamics`.

Source: ganesh75690/AI-OPS-RL-Intelligence-Envrionment at commit 9b5a329 (2026-04-14), restated.
"""

from __future__ import annotations

import difflib
from typing import Final, Literal

import numpy as np

from world.actions import NOP, Action, ActionTemplate

Phase = Literal["detection", "classification", "decision", "execution", "recovery"]
PHASES: Final[tuple[Phase, ...]] = (
    "detection",
    "classification",
    "decision",
    "execution",
    "recovery",
)

METRICS: Final = ("latency_ms", "error_fraction", "cpu_percent", "memory_percent")
"""The four symptoms, in the order of every array here."""
LATENCY, ERROR, CPU, MEMORY = range(4)

_Pair = tuple[float, float] | None
_SEED_TABLE: Final[dict[str, tuple[_Pair, _Pair, _Pair, _Pair]]] = {
    # kind: cpu, memory, error, latency, each (delta, floor)
    "analyze_system_state": (None, None, (0.03, 0.12), None),
    "detect_memory_leak": (None, (10, 75), None, None),
    "detect_high_cpu": ((10, 80), None, None, None),
    "detect_service_failure": (None, None, (0.05, 0.10), None),
    "detect_data_corruption": (None, (15, 70), (0.07, 0.08), None),
    "detect_security_breach": (None, None, None, None),
    "detect_traffic_spike": ((8, 80), None, None, (20, 120)),
    "detect_system_anomaly": ((5, 75), None, (0.04, 0.10), None),
    "classify_leak_severity": (None, (8, 60), None, None),
    "classify_failure_type": ((8, 65), None, (0.03, 0.07), None),
    "classify_corruption_scope": (None, (10, 55), (0.04, 0.06), None),
    "classify_threat_level": (None, None, None, None),
    "evaluate_cleanup_options": (None, (5, 50), None, None),
    "evaluate_scaling": ((5, 55), None, None, None),
    "evaluate_recovery_options": ((5, 50), (5, 45), None, None),
    "evaluate_containment_options": (None, None, None, None),
    "select_optimal_strategy": ((3, 45), (3, 40), None, None),
    "select_recovery_strategy": ((4, 40), (4, 35), (0.02, 0.05), None),
    "select_security_strategy": (None, None, None, None),
    "select_balancing_strategy": (None, None, None, None),
    "select_response_strategy": ((3, 60), (3, 55), None, None),
    "free_memory_resources": ((10, 35), (30, 25), None, None),
    "scale_resources": ((30, 25), None, None, (50, 40)),
    "restart_service": ((20, 30), (10, 40), (0.15, 0.01), None),
    "recover_corrupted_data": ((12, 40), (25, 30), (0.10, 0.02), None),
    "isolate_affected_systems": ((18, 40), (8, 45), (0.08, 0.03), None),
    "redistribute_traffic": ((25, 35), None, None, (45, 45)),
    "apply_mitigation": ((8, 45), (6, 40), (0.06, 0.04), None),
    "stabilize_system": ((18, 20), (18, 25), (0.06, 0.01), (30, 35)),
    "verify_system_recovery": (None, None, None, None),
}

KINDS: Final[tuple[str, ...]] = tuple(_SEED_TABLE)
"""The thirty kinds, in the original's order."""
CODE: Final = {kind: code for code, kind in enumerate(KINDS)}
NATIVE_KINDS: Final[tuple[str, ...]] = (*KINDS, NOP)
"""Kinds of the native world: doing nothing is code 30."""
NOP_CODE: Final = len(KINDS)
STABILIZE: Final = CODE["stabilize_system"]
VERIFY: Final = CODE["verify_system_recovery"]

REMEDIES: Final[tuple[str, ...]] = (
    "free_memory_resources",
    "scale_resources",
    "restart_service",
    "recover_corrupted_data",
    "isolate_affected_systems",
    "redistribute_traffic",
    "apply_mitigation",
)
"""The seven actions that can remove a cause, in code order."""
FIRST_REMEDY: Final = CODE[REMEDIES[0]]
HEAVY: Final = ("scale_resources", "restart_service", "stabilize_system")
"""Actions that fail more often in the native world; in the original only by intention."""

_SEED_ORDER = (3, 2, 0, 1)  # latency, error, cpu, memory out of cpu, memory, error, latency
DELTAS: Final[tuple[tuple[_Pair, ...], ...]] = tuple(
    tuple(row[column] for column in _SEED_ORDER) for row in _SEED_TABLE.values()
)
"""Per kind and metric ``(delta, floor)`` in the metric's unit, or None."""

_VERBS: Final[dict[str, Phase]] = {
    "analyze": "detection",
    "detect": "detection",
    "classify": "classification",
    "evaluate": "decision",
    "select": "decision",
    "stabilize": "recovery",
    "verify": "recovery",
}


def phase_of(kind: str) -> Phase | None:
    """The phase of a kind, by its verb; None for doing nothing.

    >>> phase_of("detect_high_cpu"), phase_of("restart_service"), phase_of("nop")
    ('detection', 'execution', None)
    """
    if kind == NOP:
        return None
    return _VERBS.get(kind.partition("_")[0], "execution")


def delta_table() -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], ...]:
    """Deltas and floors as float64 [31, 4]; no effect is delta 0 and floor 0."""
    deltas = np.zeros((len(NATIVE_KINDS), len(METRICS)))
    floors = np.zeros_like(deltas)
    for code, row in enumerate(DELTAS):
        for metric, pair in enumerate(row):
            if pair is not None:
                deltas[code, metric], floors[code, metric] = pair
    return deltas, floors


def refusal(kinds: tuple[str, ...], action: Action) -> str | None:
    """Why an action is none of these kinds without target and parameters, or None."""
    if action.kind not in kinds:
        close = difflib.get_close_matches(action.kind, kinds, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"there is no action {action.kind[:80]!r} here{hint}"
    if action.target:
        return f"{action.kind} acts on the whole system and takes no target"
    if action.params:
        return f"{action.kind} takes no parameters"
    return None


_UNITS = (" ms", "", " %", " %")
_SHORT = ("latency", "errors", "CPU", "memory")


def effect_text(kind: str) -> str:
    """What an action lowers, in one line.

    >>> effect_text("scale_resources")
    'latency -50 ms (not below 40 ms), CPU -30 % (not below 25 %)'
    """
    parts = [
        f"{name} -{pair[0]:g}{unit} (not below {pair[1]:g}{unit})"
        for name, unit, pair in zip(_SHORT, _UNITS, DELTAS[CODE[kind]], strict=True)
        if pair is not None
    ]
    return ", ".join(parts) or "no effect on the metrics"


def seed_templates() -> tuple[ActionTemplate, ...]:
    """The original's thirty templates."""
    return tuple(
        ActionTemplate(
            kind,
            f"{kind.replace('_', ' ').capitalize()} ({phase_of(kind)})",
            effect=effect_text(kind),
        )
        for kind in KINDS
    )
