"""What looking at an incident reveals: noisy readings, and how far each can be trusted.

Every action of detection, classification and decision gives one reading: a label out of a short
list. It is the label of the true cause with the action's accuracy, else one of the others, all
equally likely. Broad questions are answered less reliably than narrow ones. Asking again draws
again. `verify_system_recovery` says instead whether the cause is still at work.

The accuracies are choices of this world, not measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.worlds.aiops.events import EVENT_CODE, N_EVENTS
from world.worlds.aiops.menu import CODE, KINDS, VERIFY

OTHER: Final = "nothing of the kind"


@dataclass(frozen=True, slots=True)
class Question:
    """One action that gives a reading.

    Attributes:
        kind: The action.
        accuracy: Probability of the true label, 0–1.
        groups: Label → events that it is the true label of; the rest answer `OTHER`.
    """

    kind: str
    accuracy: float
    groups: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, `OTHER` last where an event answers it."""
        named = sum(len(events) for _, events in self.groups)
        labels = tuple(label for label, _ in self.groups)
        return labels if named == N_EVENTS else (*labels, OTHER)

    def label_of(self, event: str) -> int:
        """Code of the true label of an event."""
        for code, (_, events) in enumerate(self.groups):
            if event in events:
                return code
        return len(self.groups)


QUESTIONS: Final = (
    Question(
        "analyze_system_state",
        0.85,
        (
            ("load", ("high_cpu_usage", "traffic_spike", "system_overload")),
            ("memory", ("memory_leak", "resource_exhaustion")),
            (
                "failure",
                (
                    "service_failure",
                    "network_outage",
                    "database_connection_failed",
                    "application_crash",
                ),
            ),
            ("storage", ("disk_space_full", "data_corruption")),
            ("intrusion", ("security_breach",)),
        ),
    ),
    Question(
        "detect_memory_leak", 0.95, (("memory is held", ("memory_leak", "resource_exhaustion")),)
    ),
    Question(
        "detect_high_cpu",
        0.95,
        (("CPU is saturated", ("high_cpu_usage", "system_overload", "security_breach")),),
    ),
    Question(
        "detect_service_failure",
        0.95,
        (("a process is down", ("service_failure", "application_crash")),),
    ),
    Question(
        "detect_data_corruption",
        0.95,
        (("writes go wrong", ("data_corruption", "disk_space_full")),),
    ),
    Question("detect_security_breach", 0.97, (("an intruder", ("security_breach",)),)),
    Question(
        "detect_traffic_spike",
        0.95,
        (("more requests than usual", ("traffic_spike", "system_overload")),),
    ),
    Question(
        "detect_system_anomaly",
        0.94,
        (
            (
                "a limit or a link",
                (
                    "disk_space_full",
                    "network_outage",
                    "resource_exhaustion",
                    "database_connection_failed",
                ),
            ),
        ),
    ),
    Question(
        "classify_leak_severity",
        0.94,
        (
            ("steady growth", ("memory_leak",)),
            ("a hard limit", ("resource_exhaustion",)),
        ),
    ),
    Question(
        "classify_failure_type",
        0.94,
        (
            ("process", ("service_failure",)),
            ("network", ("network_outage",)),
            ("database", ("database_connection_failed",)),
            ("release", ("application_crash",)),
        ),
    ),
    Question(
        "classify_corruption_scope",
        0.94,
        (
            ("broken pages", ("data_corruption",)),
            ("full volume", ("disk_space_full",)),
        ),
    ),
    Question(
        "classify_threat_level",
        0.97,
        (
            ("intrusion", ("security_breach",)),
            ("flood of requests", ("traffic_spike",)),
        ),
    ),
    Question(
        "evaluate_cleanup_options",
        0.94,
        (
            ("recycle memory", ("memory_leak", "resource_exhaustion")),
            ("purge or roll back", ("disk_space_full", "application_crash")),
        ),
    ),
    Question(
        "evaluate_scaling",
        0.94,
        (
            ("capacity is short", ("high_cpu_usage", "system_overload")),
            ("load is badly spread", ("traffic_spike", "network_outage")),
        ),
    ),
    Question(
        "evaluate_recovery_options",
        0.94,
        (
            ("restart", ("service_failure", "database_connection_failed")),
            ("restore", ("data_corruption",)),
            ("roll back", ("application_crash",)),
        ),
    ),
    Question(
        "evaluate_containment_options",
        0.97,
        (
            ("contain", ("security_breach",)),
            ("fence the data off", ("data_corruption",)),
        ),
    ),
    Question(
        "select_optimal_strategy",
        0.75,
        (
            ("free_memory_resources", ("memory_leak", "resource_exhaustion")),
            ("scale_resources", ("high_cpu_usage", "system_overload")),
            ("restart_service", ("service_failure", "database_connection_failed")),
            ("recover_corrupted_data", ("data_corruption",)),
            ("isolate_affected_systems", ("security_breach",)),
            ("redistribute_traffic", ("traffic_spike", "network_outage")),
            ("apply_mitigation", ("disk_space_full", "application_crash")),
        ),
    ),
    Question(
        "select_recovery_strategy",
        0.92,
        (
            ("restart_service", ("service_failure", "database_connection_failed")),
            ("recover_corrupted_data", ("data_corruption",)),
        ),
    ),
    Question(
        "select_security_strategy", 0.97, (("isolate_affected_systems", ("security_breach",)),)
    ),
    Question(
        "select_balancing_strategy",
        0.92,
        (
            ("redistribute_traffic", ("traffic_spike", "network_outage")),
            ("scale_resources", ("high_cpu_usage", "system_overload")),
        ),
    ),
    Question(
        "select_response_strategy",
        0.92,
        (
            ("apply_mitigation", ("disk_space_full", "application_crash")),
            ("free_memory_resources", ("memory_leak", "resource_exhaustion")),
        ),
    ),
)
"""Every question, in the order of the menu."""

VERIFY_LABELS: Final = ("the cause is gone", "the cause is still at work")
VERIFY_ACCURACY: Final = 0.95

_BY_CODE: Final = {CODE[question.kind]: question for question in QUESTIONS}
MOST_LABELS: Final = max(len(question.labels) for question in QUESTIONS)


def labels_of(code: int) -> tuple[str, ...]:
    """The labels that an action can answer; none where it is no question."""
    if code == VERIFY:
        return VERIFY_LABELS
    question = _BY_CODE.get(code)
    return () if question is None else question.labels


def _count_table() -> NDArray[np.int32]:
    return np.array([len(labels_of(code)) for code in range(len(KINDS) + 1)], dtype=np.int32)


def _accuracy_table() -> NDArray[np.float64]:
    table = np.zeros(len(KINDS) + 1)
    for code, question in _BY_CODE.items():
        table[code] = question.accuracy
    table[VERIFY] = VERIFY_ACCURACY
    return table


def _truth_table() -> NDArray[np.int32]:
    table = np.zeros((len(KINDS) + 1, N_EVENTS), dtype=np.int32)
    for code, question in _BY_CODE.items():
        for event, row in EVENT_CODE.items():
            table[code, row] = question.label_of(event)
    return table


N_LABELS: Final = _count_table()
"""Labels per action code, int32 [31]; 0 where an action gives no reading."""
ACCURACY: Final = _accuracy_table()
"""Probability of the true label per action code, float64 [31]."""
TRUE_LABEL: Final = _truth_table()
"""Code of the true label, int32 [31, 12]; not used for `verify_system_recovery`."""
IS_QUESTION: Final[NDArray[np.bool_]] = N_LABELS > 0


def _likelihoods() -> NDArray[np.float64]:
    table = np.zeros((len(KINDS) + 1, N_EVENTS, MOST_LABELS))
    for code, question in _BY_CODE.items():
        count = len(question.labels)
        wrong = (1.0 - question.accuracy) / (count - 1)
        table[code, :, :count] = wrong
        table[code, np.arange(N_EVENTS), TRUE_LABEL[code]] = question.accuracy
    return table


LIKELIHOOD: Final = _likelihoods()
"""P(label | event), float64 [31, 12, labels]; 0 beyond an action's labels."""

LOG_RIGHT: Final = np.array([math.log(accuracy) if accuracy else 0.0 for accuracy in ACCURACY])
LOG_WRONG: Final = np.array(
    [
        math.log((1.0 - accuracy) / (count - 1)) if count else 0.0
        for accuracy, count in zip(ACCURACY.tolist(), N_LABELS.tolist(), strict=True)
    ]
)
"""Log-likelihood of a label that is, and that is not, an event's true one; float64 [31]."""

for _table in (N_LABELS, ACCURACY, TRUE_LABEL, IS_QUESTION, LIKELIHOOD, LOG_RIGHT, LOG_WRONG):
    _table.flags.writeable = False
