"""Rules of CloudEdge's four seats.

Proposal #1 of resource, cost and sustainability is the rule of the original CloudEdge agents,
flaws included, so that the published boardroom can be reproduced vote by vote: fixed thresholds,
and "not improving" means that there is no earlier value or that the value has not fallen. What
follows #1 are our own alternatives in the same seat's interest; a boardroom never reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from agents.persona_schema import PersonaSpec
from policies.records import Proposal, Request
from world.actions import Action
from world.model import Observation

SCALE_UP = Action.of("scale_up")
SCALE_DOWN = Action.of("scale_down")
OPTIMIZE_ENERGY = Action.of("optimize_energy")
MIGRATE_REGION = Action.of("migrate_region")
CRISIS_RESPONSE = Action.of("crisis_response", server_count=5, region="canada-hydro")

LATENCY = "latency_ms"
COST = "cost_usd_per_hour"
CARBON = "carbon_index"

_EFFECT: Mapping[str, str] = {
    "scale_up": "latency -25 to -40 ms, cost +12 to +22 $/h, carbon +8 to +15",
    "scale_down": "cost -65 to -90 $/h, carbon -5 to -12, latency +8 to +15 ms",
    "optimize_energy": "carbon -25 to -40, cost -25 to -40 $/h, latency +3 to +8 ms",
    "migrate_region": "carbon -40 to -70, latency +10 to +25 ms, cost +5 to +20 $/h",
    "crisis_response": "latency -55 to -75 ms, carbon -40 to -60, cost +2 to +8 $/h",
}
"""The public effect of each action, in one step."""

_PREFERRED: Mapping[str, tuple[Action, ...]] = {
    "resource": (SCALE_UP, OPTIMIZE_ENERGY, SCALE_DOWN),
    "cost": (SCALE_DOWN, OPTIMIZE_ENERGY),
    "sustainability": (MIGRATE_REGION, OPTIMIZE_ENERGY, SCALE_DOWN),
    "janitor": (SCALE_DOWN, OPTIMIZE_ENERGY, MIGRATE_REGION, SCALE_UP),
}
"""Every action that a seat could want, best effect on its own objective first."""

Choice = tuple[Action, str]


def _value(observation: Observation | None, metric: str) -> float:
    """A metric, or NaN, for which every comparison is false."""
    value = None if observation is None else observation.metrics.get(metric)
    return math.nan if value is None else value


def _not_improving(request: Request, metric: str) -> bool:
    """No earlier value, or one that the present has not gone below."""
    before = _value(request.history.previous, metric)
    return not _value(request.observation, metric) < before


def _trend(request: Request, metric: str) -> str:
    before = _value(request.history.previous, metric)
    return "with no earlier value" if math.isnan(before) else f"not below {before:.1f} before"


def _resource(request: Request) -> Choice:
    latency = _value(request.observation, LATENCY)
    if latency > 200 and _not_improving(request, LATENCY):
        reason = f"latency {latency:.1f} ms is above 200 and not improving"
        return SCALE_UP, f"{reason} ({_trend(request, LATENCY)})"
    if latency > 150:
        return SCALE_UP, f"latency {latency:.1f} ms misses 150"
    return OPTIMIZE_ENERGY, f"latency {_shown(latency)} ms holds 150, so capacity can be trimmed"


def _cost(request: Request) -> Choice:
    cost = _value(request.observation, COST)
    latency = _value(request.observation, LATENCY)
    if cost > 450 and latency > 180:
        return (
            OPTIMIZE_ENERGY,
            f"cost {cost:.1f} $/h is above 450, but latency {latency:.1f} ms forbids fewer servers",
        )
    if cost > 450 and _not_improving(request, COST):
        reason = f"cost {cost:.1f} $/h is above 450 and not improving"
        return SCALE_DOWN, f"{reason} ({_trend(request, COST)})"
    if cost > 400 and latency > 160:
        return (
            OPTIMIZE_ENERGY,
            f"cost {cost:.1f} $/h misses 400, and latency {latency:.1f} ms is close to its limit",
        )
    if cost > 400:
        return SCALE_DOWN, f"cost {cost:.1f} $/h misses 400, and latency leaves room"
    return OPTIMIZE_ENERGY, f"cost {_shown(cost)} $/h holds 400, so keep it there gently"


def _sustainability(request: Request) -> Choice:
    carbon = _value(request.observation, CARBON)
    latency = _value(request.observation, LATENCY)
    if carbon > 280:
        word = "critical, above 350" if carbon > 350 else "above 280"
        return MIGRATE_REGION, f"carbon {carbon:.1f} is {word}"
    if carbon > 220:
        return OPTIMIZE_ENERGY, f"carbon {carbon:.1f} misses 220"
    if latency > 180:
        return (
            OPTIMIZE_ENERGY,
            f"carbon {_shown(carbon)} holds 220; latency {latency:.1f} ms wants capacity kept",
        )
    return SCALE_DOWN, f"carbon {_shown(carbon)} holds 220, and idle servers only emit"


def _janitor(request: Request) -> Choice:
    """The cheapest action that does not repeat the last one: a repeat is churn without effect."""
    last = _last(request)
    cost = _value(request.observation, COST)
    for action in _PREFERRED["janitor"]:
        if action.kind != last and request.world.check(request.observation, action) is None:
            break
    else:
        action = OPTIMIZE_ENERGY
    repeat = f"does not repeat {last}" if last else "repeats nothing"
    return action, f"cheapest action that {repeat}, at {_shown(cost)} $/h"


_CALM: Mapping[str, Callable[[Request], Choice]] = {
    "resource": _resource,
    "cost": _cost,
    "sustainability": _sustainability,
    "janitor": _janitor,
}

_IN_CRISIS: Mapping[str, tuple[str, str]] = {
    "resource": (LATENCY, "crisis: latency {} ms, absorb it at once"),
    "cost": (COST, "crisis: at {} $/h the bundled response is the cheapest way back"),
    "sustainability": (CARBON, "crisis: carbon {}, answer it on hydro power"),
    "janitor": (LATENCY, "crisis: latency {} ms, tidy up afterwards"),
}


def _shown(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.1f}"


def _last(request: Request) -> str:
    return str(request.observation.facts.get("last_action") or "")


def _propose(role: str, request: Request) -> tuple[Proposal, ...]:
    calm_action, calm_reason = _CALM[role](request)
    chosen = [Proposal((calm_action,), f"{calm_reason}: {_effect(calm_action)}")]
    if request.observation.facts.get("crisis"):
        metric, words = _IN_CRISIS[role]
        reason = words.format(_shown(_value(request.observation, metric)))
        chosen.insert(0, Proposal((CRISIS_RESPONSE,), f"{reason}: {_effect(CRISIS_RESPONSE)}"))
    last = _last(request)
    others = [action for action in _PREFERRED[role] if action != calm_action]
    for action in sorted(others, key=lambda other: other.kind == last):
        note = f"{action.kind} again" if action.kind == last else action.kind
        chosen.append(Proposal((action,), f"else {note}: {_EFFECT[action.kind]}"))
    first, *alternatives = chosen
    legal = [
        proposal
        for proposal in alternatives
        if request.world.check(request.observation, proposal.actions[0]) is None
    ]
    return (first, *legal)


def _effect(action: Action) -> str:
    return f"{action.kind} ({_EFFECT[action.kind]})"


def _rule(role: str) -> Callable[[Request, PersonaSpec], tuple[Proposal, ...]]:
    def propose(request: Request, spec: PersonaSpec) -> tuple[Proposal, ...]:
        del spec  # the thresholds are the original agents', whatever the file weighs
        return _propose(role, request)

    return propose


RULES = {role: _rule(role) for role in _CALM}
"""Role → rule."""
