"""Rules of the four seats around an incident whose cause is hidden.

All seats read the same public diagnosis: probabilities of causes, of each remedy being right, of
each doing harm. They differ in how sure they want to be before they act and in what they do while
they are not. Resource acts first and stabilises; cost waits until a wrong remedy would be dearer
than a question, and then takes nothing that it need not; sustainability is slow to add machines;
the janitor wants the evidence first and names the remedy last. No rule proposes what the world
calls a hazard.

The original environment shows no diagnosis; for it there is one rule that all seats share
(`aiops_seed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.backends.rules import aiops_seed
from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Proposal, Request
from world.actions import NOP, Action
from world.worlds.aiops.diagnosis import (
    cured_probability,
    doubt_percent,
    expected_doubt_percent,
    harm_probabilities,
    remedy_probabilities,
)
from world.worlds.aiops.dynamics import added_usd_per_hour
from world.worlds.aiops.events import NAMES
from world.worlds.aiops.evidence import QUESTIONS
from world.worlds.aiops.menu import CODE, REMEDIES
from world.worlds.aiops.project import applied_at_seen, posterior_seen

CURED = 0.8
"""From this probability on that a remedy has removed the cause, seats turn to recovery."""
_QUESTION_CODES = tuple(CODE[question.kind] for question in QUESTIONS)
_MOST_SUSPECTS = 3


class Option(NamedTuple):
    """One action, why, and how sure the seat is of it (0–1)."""

    kind: str
    reason: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Case:
    """An incident as the evidence shows it.

    Attributes:
        request: What the seat was asked.
        posterior: float64 [12], probability of each cause.
        right: float64 [7], probability that each remedy is the right one.
        harm: float64 [7], probability that each remedy does harm.
        doubt_percent: Probability that the likeliest remedy is wrong, percent.
        cured: Probability that the cause is gone already, 0–1.
    """

    request: Request
    posterior: NDArray[np.float64]
    right: NDArray[np.float64]
    harm: NDArray[np.float64]
    doubt_percent: float
    cured: float

    @staticmethod
    def of(request: Request) -> Case:
        """Read the diagnosis once."""
        posterior = posterior_seen(request.observation)
        applied = applied_at_seen(request.observation) > 0
        names = [name for name, done in zip(REMEDIES, applied.tolist(), strict=True) if done]
        return Case(
            request,
            posterior,
            remedy_probabilities(posterior),
            harm_probabilities(posterior),
            float(doubt_percent(posterior)),
            cured_probability(posterior, names),
        )

    @property
    def suspects(self) -> str:
        """The likeliest causes with their probabilities."""
        order = np.argsort(-self.posterior, kind="stable")[:_MOST_SUSPECTS].tolist()
        shown = [f"{NAMES[row]} {self.posterior[row]:.2f}" for row in order]
        return f"posterior {', '.join(shown)}"

    def metric(self, name: str) -> float | None:
        """A metric, where this seat may see it."""
        return self.request.observation.metrics.get(name)

    def missed(self) -> str:
        """Every target that is missed, with numbers."""
        units = {"latency_ms": " ms", "cpu_percent": " %", "memory_percent": " %"}
        parts = []
        for name, bound in self.request.observation.targets.items():
            value = self.metric(name)
            if value is not None and value >= bound:
                unit = units.get(name, "")
                parts.append(f"{name.partition('_')[0]} {value:.3g}{unit} misses {bound:.3g}{unit}")
        return ", ".join(parts) or "every target holds"

    def hazard(self, kind: str) -> bool:
        """Whether the world calls an action a hazard now."""
        return bool(self.request.world.hazards(self.request.observation, Action(kind)))


def _remedy(case: Case) -> Option:
    """The likeliest remedy, with what speaks for and against it."""
    row = int(np.argmax(case.right))
    kind, right, harm = REMEDIES[row], float(case.right[row]), float(case.harm[row])
    cost = added_usd_per_hour(kind)
    reason = (
        f"{case.missed()}; {case.suspects}: {kind} is right with {right:.2f}, harmful with "
        f"{harm:.3f}, and adds {cost:.1f} $/h"
    )
    return Option(kind, reason, right)


def _question(case: Case) -> Option:
    """The question that leaves the least doubt."""
    expected = [
        (expected_doubt_percent(case.posterior, (code,)), question.kind)
        for code, question in zip(_QUESTION_CODES, QUESTIONS, strict=True)
    ]
    left, kind = min(expected)
    reason = (
        f"{case.suspects}: doubt about the remedy is {case.doubt_percent:.1f} %, "
        f"{kind} should leave {left:.1f} %"
    )
    return Option(kind, reason, 1.0 - left / 100.0)


def _stabilise(case: Case) -> Option:
    reason = f"the cause is gone with {case.cured:.2f}, but {case.missed()}: bring it down faster"
    return Option("stabilize_system", reason, case.cured)


def _wait(case: Case) -> Option:
    reason = f"the cause is gone with {case.cured:.2f}; {case.missed()}: it recovers by itself"
    return Option(NOP, reason, case.cured)


def _verify(case: Case) -> Option:
    reason = f"{case.suspects}: the cause is gone with {case.cured:.2f}, so ask before closing"
    return Option("verify_system_recovery", reason, case.cured)


def _quieting(case: Case) -> list[Option]:
    """What quiets the worst symptom without a hazard, for a seat that cannot wait."""
    by_symptom = {
        "memory_percent": "free_memory_resources",
        "cpu_percent": "redistribute_traffic",
        "latency_ms": "redistribute_traffic",
        "error_fraction": "apply_mitigation",
    }
    targets = case.request.observation.targets
    found = []
    for name, kind in by_symptom.items():
        value, bound = case.metric(name), targets.get(name)
        if value is not None and bound is not None and value >= bound:
            harm = float(case.harm[REMEDIES.index(kind)])
            reason = (
                f"{name} {value:.3g} misses {bound:.3g}: {kind} quiets it for now, harmful with "
                f"{harm:.3f}; it removes the cause with {case.right[REMEDIES.index(kind)]:.2f}"
            )
            found.append((value / bound, Option(kind, reason, 0.3)))
    return [option for _, option in sorted(found, key=lambda pair: -pair[0])]


def _resource(case: Case) -> list[Option]:
    """Acts as soon as one remedy is likelier than all others together, then stabilises."""
    if case.cured >= CURED:
        return [_stabilise(case), _wait(case)]
    return [*_when_sure(case, 0.75), *_quieting(case)]


def _cost(case: Case) -> list[Option]:
    """Asks while a wrong remedy would cost more; pays for nothing that happens by itself."""
    if case.cured >= CURED:
        return [_wait(case), _stabilise(case)]
    return _when_sure(case, 0.85)


def _sustainability(case: Case) -> list[Option]:
    """Like cost, but adds machines only when nothing else can be right."""
    if case.cured >= CURED:
        return [_wait(case), _stabilise(case)]
    scaling = REMEDIES[int(np.argmax(case.right))] == "scale_resources"
    return _when_sure(case, 0.95 if scaling else 0.85)


def _janitor(case: Case) -> list[Option]:
    """Evidence first, the remedy when little doubt is left, and a check before closing."""
    if case.cured >= CURED:
        return [_wait(case) if case.cured >= 0.99 else _verify(case), _stabilise(case)]
    return _when_sure(case, 0.95)


def _when_sure(case: Case, enough: float) -> list[Option]:
    """The remedy first where it is sure enough and no hazard, the best question first otherwise."""
    remedy, question = _remedy(case), _question(case)
    if case.hazard(remedy.kind):
        return [question]
    return [remedy, question] if remedy.confidence >= enough else [question, remedy]


RULES_BY_ROLE: Mapping[str, Callable[[Case], list[Option]]] = {
    "resource": _resource,
    "cost": _cost,
    "sustainability": _sustainability,
    "janitor": _janitor,
}


def _proposals(request: Request, options: Iterable[Option]) -> tuple[Proposal, ...]:
    """Options that the world's validator and its hazards let pass, each once."""
    found: dict[str, Proposal] = {}
    seen, world = request.observation, request.world
    for option in options:
        action = Action(option.kind)
        able = world.check(seen, action) is None and not world.hazards(seen, action)
        if able and option.kind not in found:
            confidence = float(f"{min(1.0, max(0.0, option.confidence)):.3g}")
            found[option.kind] = Proposal((action,), option.reason, confidence)
    return tuple(found.values())[:MAX_PROPOSALS]


def _rule(role: str) -> Callable[[Request, PersonaSpec], tuple[Proposal, ...]]:
    def propose(request: Request, spec: PersonaSpec) -> tuple[Proposal, ...]:
        del spec
        facts: Mapping[str, Any] = request.observation.facts
        if facts.get("rules") == "seed":
            return aiops_seed.propose(request)
        case = Case.of(request)
        options = RULES_BY_ROLE[role](case)
        return _proposals(request, [*options, Option(NOP, "no other action is safe now", 0.0)])

    return propose


RULES = {role: _rule(role) for role in RULES_BY_ROLE}
"""Role → rule."""
