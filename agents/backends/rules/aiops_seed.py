"""The one rule for the original AI-Ops environment: treat the symptom that is out of bounds.

There is no hidden cause and no harm there, and every action acts on symptoms alone, so all seats
share one rule: too many errors, restart; else too much memory, free it; else too much CPU, scale;
else stabilise. It stabilises 99.8 % of episodes in two steps on average, and earns less reward
than an action without effect: the original pays for time, not for the fix.
"""

from __future__ import annotations

from typing import NamedTuple

from policies.records import Proposal, Request
from world.actions import Action


class _Symptom(NamedTuple):
    metric: str
    bound: float
    kind: str
    unit: str


SYMPTOMS = (
    _Symptom("error_fraction", 0.10, "restart_service", ""),
    _Symptom("memory_percent", 60.0, "free_memory_resources", " %"),
    _Symptom("cpu_percent", 60.0, "scale_resources", " %"),
)
"""In order of urgency; the bounds are the original's own for a stabilised system."""


def propose(request: Request) -> tuple[Proposal, ...]:
    """The treatment of every symptom out of bounds, worst first, then stabilising."""
    metrics = request.observation.metrics
    found = []
    for symptom in SYMPTOMS:
        value = metrics.get(symptom.metric)
        if value is not None and value >= symptom.bound:
            found.append(
                Proposal(
                    (Action(symptom.kind),),
                    f"{symptom.metric} {value:.3g}{symptom.unit} is not below "
                    f"{symptom.bound:g}{symptom.unit}: {symptom.kind}",
                )
            )
    calm = "hold what is reached" if not found else "else bring everything down a little"
    found.append(Proposal((Action("stabilize_system"),), f"{calm}: stabilize_system"))
    return tuple(
        proposal
        for proposal in found
        if request.world.check(request.observation, proposal.actions[0]) is None
    )
