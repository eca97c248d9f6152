"""The seed's boardroom, written straight from its description and from nothing of ours.

An oracle: it knows four numbers of now, three of the step before and the names of all actions so
far, and says what the boardroom decides and under which label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Seen(NamedTuple):
    """What the boardroom's agents look at."""

    latency: float
    cost: float
    carbon: float
    crisis: bool


def resource_proposal(now: Seen, before: Seen | None) -> str:
    """What ResourceAgent proposes."""
    del before  # both of its latency rules propose the same action, for different reasons
    if now.crisis:
        return "crisis_response"
    return "scale_up" if now.latency > 150 else "optimize_energy"


def cost_proposal(now: Seen, before: Seen | None) -> str:
    """What CostAgent proposes."""
    if now.crisis:
        return "crisis_response"
    not_improving = before is None or now.cost >= before.cost
    if now.cost > 450 and now.latency > 180:
        return "optimize_energy"
    if now.cost > 450 and not_improving:
        return "scale_down"
    if now.cost > 400 and now.latency > 160:
        return "optimize_energy"
    if now.cost > 400:
        return "scale_down"
    return "optimize_energy"


def sustainability_proposal(now: Seen, before: Seen | None) -> str:
    """What SustainabilityAgent proposes."""
    del before
    if now.crisis:
        return "crisis_response"
    if now.carbon > 280:
        return "migrate_region"
    if now.carbon > 220 or now.latency > 180:
        return "optimize_energy"
    return "scale_down"


def proposals(now: Seen, before: Seen | None) -> tuple[str, str, str]:
    """Resource, Cost, Sustainability."""
    return (
        resource_proposal(now, before),
        cost_proposal(now, before),
        sustainability_proposal(now, before),
    )


def unsafe(now: Seen, action: str) -> bool:
    """Whether a voted action is rejected."""
    return (
        (now.latency > 170 and action in {"scale_down", "optimize_energy"})
        or (now.latency > 160 and action == "migrate_region")
        or (now.cost > 520 and action == "scale_up")
        or (now.carbon < 220 and action == "migrate_region")
    )


def phase_fallback(now: Seen) -> str:
    """What is done when no vote carries."""
    latency, cost, carbon, _ = now
    table = (
        (latency > 170, "scale_up"),
        (carbon > 320 and latency <= 180, "migrate_region"),
        (carbon > 260 and latency <= 160, "migrate_region"),
        (cost > 520 and latency <= 150, "scale_down"),
        (carbon > 220 and latency <= 160, "optimize_energy"),
        (cost > 450, "scale_down" if latency <= 150 else "scale_up"),
        (latency > 150, "scale_up"),
        (cost > 400, "scale_down"),
    )
    return next((action for holds, action in table if holds), "optimize_energy")


def decide(now: Seen, before: Seen | None, done: Sequence[str]) -> tuple[str, str]:
    """The boardroom's action and the label of its reason.

    ``crisis_response`` means server_count 5 in canada-hydro.

    Args:
        now: Current observation.
        before: Observation one step earlier, if there is one.
        done: Names of all actions of the episode so far, in order.
    """
    if now.crisis:
        return "crisis_response", "crisis"
    recent = list(done[-3:])
    if len(recent) == 3 and len(set(recent)) == 3 and "migrate_region" not in recent:
        return "migrate_region", "3-action cycle"
    if set(done[-2:]) == {"scale_up", "scale_down"}:
        return "migrate_region", "oscillation"
    votes = proposals(now, before)
    for action in votes:
        count = votes.count(action)
        if count >= 2 and not unsafe(now, action):
            return action, f"{count} vote(s)"
    action = phase_fallback(now)
    count = votes.count(action)
    if count >= 2:
        return action, f"{count} vote(s)"
    return action, _label(now, action)


def _label(now: Seen, action: str) -> str:
    if now.latency > 185 and action == "scale_up":
        return "latency recovery"
    if now.carbon > 220 and action in {"optimize_energy", "migrate_region"}:
        return "carbon recovery"
    if now.cost > 400 and action in {"scale_down", "optimize_energy"}:
        return "cost recovery"
    return "goal guardrail"


BOARDROOM_TOTALS = {
    "easy": (830, 790, 821, 743, 737, 648, 827, 811, 775, 767),
    "medium": (470, 219, 434, 131, 316, 413, 320, 449, 233, 263),
    "hard": (298, -81, 4, 73, 8, 165, -21, 24, -102, -20),
}
"""Published episode totals of the boardroom, seeds 0–9."""

COST_CARBON_FIRST_TOTALS = {
    "easy": (1197, 1119, 1058, 1039, 1130, 1000, 1119, 1039, 1074, 1189),
    "medium": (817, 715, 922, 724, 906, 761, 693, 997, 782, 768),
    "hard": (677, 563, 514, 525, 464, 621, 569, 546, 461, 518),
}
"""Published totals of the rule "cost and carbon first", seeds 0–9."""

EXPLOIT_TOTALS = {
    "easy": (1425,) * 10,
    "medium": (1292, 1292, 1239, 1292, 1292, 1292, 1287, 1292, 1292, 1287),
    "hard": (1051, 988, 893, 1016, 950, 1100, 1114, 1016, 1000, 1056),
}
"""Published totals of the exploit rule on the unguarded seed, seeds 0–9."""


def exploit(now: Seen, done: Sequence[str]) -> str:
    """The exploit rule: an unguarded crisis response every other step."""
    last = done[-1] if done else ""
    if now.cost >= 380 and not (last == "scale_down" and now.cost < 480):
        return "scale_down"
    return "crisis_response" if last != "crisis_response" else "optimize_energy"
