"""The original AI-Ops environment, flaws included: constants, and one plain step.

Kept on purpose: a value below an action's floor is raised to it; nearly every action "treats" some
metric, detection included; the reward follows the step number far more than the system; the
special failure rate of three heavy actions never takes effect; latency is no part of "stabilised";
an error fraction can never reach the bound that would end an episode as failed.

Source: ganesh75690/AI-OPS-RL-Intelligence-Envrionment at commit 9b5a329 (2026-04-14), restated;
checked against its published scores and 2,000 seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from world.worlds.aiops.menu import CODE, DELTAS, HEAVY
from world.worlds.aiops.seed_draws import Draws, Slot

SITUATIONS: Final = ("traffic_spike", "memory_leak", "cpu_overload", "latency_issue")
"""Order of the reset's choice."""
STEPS: Final = 7
"""The original's own limit."""
BASE: Final = (60.0, 0.05, 50.0, 50.0)
"""Latency (ms), errors (0–1), CPU (%) and memory (%) before a situation is drawn."""

FAIL_FRACTION: Final = 0.10
SHAKE_FRACTION: Final = 0.30
DISTURBED_FRACTION: Final = 0.15
DISTURBANCES: Final = (
    "unexpected_latency_spike",
    "partial_node_failure",
    "memory_pressure_burst",
    "network_congestion",
    "service_degradation",
)

FIRST_REWARD, MOST_REWARD, LAST_REWARD = 0.40, 0.65, 0.99
_CLOCK: Final = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.50)
UNKNOWN_ACTION_REWARD: Final = 0.1
"""What the original pays for an action that it does not know, ending the episode at once; here
such an action is refused before it is taken."""

STABLE_BELOW: Final = {"cpu_percent": 60.0, "error_fraction": 0.10, "memory_percent": 60.0}


@dataclass(frozen=True, slots=True)
class Vitals:
    """The state that the original knows.

    Attributes:
        latency_ms: Latency.
        error_fraction: Failed requests, 0–1.
        cpu_percent: CPU.
        memory_percent: Memory.
        status: STABLE, HEALTHY or CRITICAL.
    """

    latency_ms: float
    error_fraction: float
    cpu_percent: float
    memory_percent: float
    status: str

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The four metrics in menu order."""
        return self.latency_ms, self.error_fraction, self.cpu_percent, self.memory_percent

    @property
    def stabilised(self) -> bool:
        """The original's only success; latency is not asked."""
        return (
            self.cpu_percent < STABLE_BELOW["cpu_percent"]
            and self.error_fraction < STABLE_BELOW["error_fraction"]
            and self.memory_percent < STABLE_BELOW["memory_percent"]
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """What one step did.

    Attributes:
        vitals: After the step, its disturbance included.
        reward: Before any adaptive rule.
        applied: Whether the action took effect.
        shaken: Whether a failed action made things slightly worse.
        disturbance: Its name, or "".
        stop_reason: The original's word where it says that the episode is over, or "".
    """

    vitals: Vitals
    reward: float
    applied: bool
    shaken: bool
    disturbance: str
    stop_reason: str


def reset(draws: Draws, situation: str) -> tuple[Vitals, str]:
    """The start of an episode.

    Args:
        draws: The generator.
        situation: One of `SITUATIONS`, or "" to take the one that is drawn. The choice is drawn
            either way, so that a fixed situation leaves the later draws where they are.
    """
    drawn = SITUATIONS[draws.choice(Slot.WHICH, len(SITUATIONS))]
    chosen = situation or drawn
    latency, error, cpu, memory = BASE
    first, second, third = Slot.FIRST, Slot.SECOND, Slot.THIRD
    if chosen == "traffic_spike":
        cpu = draws.whole(first, 75, 95)
        latency = draws.whole(second, 100, 180)
        error = draws.uniform(third, 0.08, 0.20)
    elif chosen == "memory_leak":
        memory = draws.whole(first, 80, 95)
        cpu = draws.whole(second, 60, 80)
        error = draws.uniform(third, 0.05, 0.15)
    elif chosen == "cpu_overload":
        cpu = draws.whole(first, 85, 98)
        memory = draws.whole(second, 55, 75)
        latency = draws.whole(third, 80, 140)
    else:
        latency = draws.whole(first, 150, 250)
        cpu = draws.whole(second, 65, 85)
        error = draws.uniform(third, 0.10, 0.25)
    return Vitals(float(latency), error, float(cpu), float(memory), "CRITICAL"), chosen


_EVENT_STARTS: Final = (
    ("CPU", {"cpu_percent": 95.0, "error_fraction": 0.20}),
    ("MEMORY", {"memory_percent": 90.0, "error_fraction": 0.18}),
    ("FAILURE", {"cpu_percent": 85.0, "memory_percent": 80.0, "error_fraction": 0.25}),
    ("CORRUPTION", {"memory_percent": 85.0, "error_fraction": 0.30}),
    ("SPIKE", {"cpu_percent": 90.0, "latency_ms": 150.0}),
)
EVENT_STATE: Final = Vitals(120.0, 0.15, 85.0, 70.0, "CRITICAL")


def event_start(event: str) -> Vitals:
    """The fixed state that the original's runner begins an event with; nothing is drawn.

    >>> event_start("MEMORY_LEAK").memory_percent, event_start("DISK_SPACE_FULL").latency_ms
    (90.0, 120.0)
    """
    for part, changes in _EVENT_STARTS:
        if part in event:
            return replace(EVENT_STATE, **changes)  # type: ignore[arg-type]
    return EVENT_STATE


_SCRIPTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "MEMORY",
        (
            "analyze_system_state",
            "detect_memory_leak",
            "classify_leak_severity",
            "evaluate_cleanup_options",
            "select_optimal_strategy",
            "free_memory_resources",
            "stabilize_system",
        ),
    ),
    (
        "CPU",
        (
            "analyze_system_state",
            "detect_high_cpu",
            "evaluate_scaling",
            "scale_resources",
            "stabilize_system",
        ),
    ),
    (
        "FAILURE",
        (
            "analyze_system_state",
            "detect_service_failure",
            "classify_failure_type",
            "evaluate_recovery_options",
            "select_recovery_strategy",
            "restart_service",
            "verify_system_recovery",
        ),
    ),
    (
        "SPIKE",
        (
            "analyze_system_state",
            "detect_traffic_spike",
            "select_balancing_strategy",
            "redistribute_traffic",
            "stabilize_system",
        ),
    ),
    (
        "CORRUPTION",
        (
            "analyze_system_state",
            "detect_data_corruption",
            "classify_corruption_scope",
            "evaluate_recovery_options",
            "select_recovery_strategy",
            "recover_corrupted_data",
            "stabilize_system",
        ),
    ),
    (
        "BREACH",
        (
            "analyze_system_state",
            "detect_security_breach",
            "classify_threat_level",
            "evaluate_containment_options",
            "select_security_strategy",
            "isolate_affected_systems",
            "stabilize_system",
        ),
    ),
    (
        "",
        (
            "analyze_system_state",
            "detect_system_anomaly",
            "select_response_strategy",
            "apply_mitigation",
            "stabilize_system",
        ),
    ),
)


def script_of(event: str) -> tuple[str, ...]:
    """The fixed sequence that the original plays for an event; it has no policy.

    >>> script_of("SECURITY_BREACH")[-2]
    'isolate_affected_systems'
    """
    return next(script for part, script in _SCRIPTS if part in event)


def advance(before: Vitals, kind: str, step: int, draws: Draws) -> Taken:
    """One step, in the original's order of draws.

    Args:
        before: The state.
        kind: One of the thirty kinds.
        step: The number of this step, 1….
        draws: Where random numbers come from.
    """
    values = list(before.values)
    failed = draws.real(Slot.FAIL) < FAIL_FRACTION
    shaken = False
    if failed:
        if kind in HEAVY:
            draws.real(Slot.UNUSED)
        shaken = draws.real(Slot.SHAKE) < SHAKE_FRACTION
        if shaken:
            values[1] = min(0.5, values[1] + 0.02)
            values[2] = min(100.0, values[2] + 2.0)
    else:
        for metric, pair in enumerate(DELTAS[CODE[kind]]):
            if pair is not None:
                values[metric] = max(float(pair[1]), values[metric] - pair[0])
    latency, error, cpu, memory = values
    error, cpu, memory = max(0.01, error), max(0.0, cpu), max(0.0, memory)
    after = Vitals(latency, error, cpu, memory, _status(cpu, memory, before.status))
    reason = _ended(after, step)
    reward = _reward(before, after, step)
    disturbance = ""
    if draws.real(Slot.DISTURBED) < DISTURBED_FRACTION and not reason:
        disturbance = DISTURBANCES[draws.choice(Slot.WHICH, len(DISTURBANCES))]
        after = _disturbed(after, disturbance, draws)
    return Taken(after, reward, not failed, shaken, disturbance, reason)


def _status(cpu: float, memory: float, before: str) -> str:
    if cpu < 70 and memory < 70:
        return "STABLE"
    return "HEALTHY" if cpu < 85 and memory < 85 else before


def _ended(vitals: Vitals, step: int) -> str:
    if vitals.error_fraction > 0.5:
        return "system_failure"
    if vitals.stabilised:
        return "system_stabilized"
    return "max_steps_exceeded" if step >= STEPS else ""


def _reward(before: Vitals, after: Vitals, step: int) -> float:
    if step >= STEPS:
        return LAST_REWARD
    health = (
        max(0.5, 1.0 - after.cpu_percent / 100)
        + max(0.5, 1.0 - after.memory_percent / 100)
        + max(0.5, 1.0 - 10 * after.error_fraction)
        + max(0.5, 1.0 - after.latency_ms / 200)
    ) / 4
    fell = (
        max(0.0, before.cpu_percent - after.cpu_percent)
        + max(0.0, before.memory_percent - after.memory_percent)
    ) / 100 + max(0.0, before.error_fraction - after.error_fraction)
    raw = health * (0.4 + 0.08 * step) + _CLOCK[step - 1] + 0.3 * fell - 0.002 * step
    return round(min(MOST_REWARD, max(FIRST_REWARD, raw)), 3)


def _disturbed(vitals: Vitals, name: str, draws: Draws) -> Vitals:
    latency, error, cpu, memory = vitals.values
    first, second, third = Slot.FIRST, Slot.SECOND, Slot.THIRD
    if name == "unexpected_latency_spike":
        latency = min(300.0, latency + draws.whole(first, 40, 80))
        error = min(0.4, error + draws.uniform(second, 0.05, 0.15))
    elif name == "partial_node_failure":
        cpu = min(98.0, cpu + draws.whole(first, 15, 30))
        memory = min(95.0, memory + draws.whole(second, 10, 25))
        error = min(0.35, error + draws.uniform(third, 0.08, 0.18))
    elif name == "memory_pressure_burst":
        memory = min(98.0, memory + draws.whole(first, 20, 35))
        cpu = min(95.0, cpu + draws.whole(second, 8, 18))
    elif name == "network_congestion":
        latency = min(280.0, latency + draws.whole(first, 30, 70))
        cpu = min(92.0, cpu + draws.whole(second, 10, 20))
    else:
        error = min(0.45, error + draws.uniform(first, 0.10, 0.20))
        latency = min(250.0, latency + draws.whole(second, 25, 55))
    status = vitals.status
    if cpu > 85 or memory > 85 or error > 0.25:
        status = "CRITICAL"
    elif cpu > 70 or memory > 70:
        status = "HEALTHY"
    return Vitals(latency, error, cpu, memory, status)
