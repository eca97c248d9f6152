"""CloudEdge's own boardroom, kept as it was: the baseline that every other rule is held against.

It reads the first proposals of three seats, what is observed now and the names of the actions
so far, and nothing else. Its flaws (it ignores vetoes, forgets the proposals in a cycle, and
looks at latency first) are part of the published scores.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from policies.protocols.common import all_vetoed, no_deal
from policies.records import Candidate, Context, Decision, Deliberation
from world.actions import Action
from world.errors import ProtocolError

CRISIS = Action.of("crisis_response", server_count=5, region="canada-hydro")
VOTERS = ("resource", "cost", "sustainability")


class Readings(NamedTuple):
    """The three numbers that the boardroom looks at."""

    latency_ms: float
    cost_usd_per_hour: float
    carbon_index: float


class CloudEdgeBoardroom:
    """CloudEdge's boardroom: two safe votes out of three, or a fixed cascade.

    Inputs: proposal #1 of ``resource``, ``cost`` and ``sustainability`` (further seats are
    recorded and not counted), the current metrics, the names of all actions so far.
    Rule, first match wins: (1) a crisis is met with 5 servers in canada-hydro; (2) three
    different actions in a row without a migration, and (3) scale_up next to scale_down, are
    broken by migrate_region, without a vote; (4) an action with two votes that is safe now;
    (5) a cascade: latency, then carbon, then cost.
    Ties: none can occur; of three votes at most one action has two.
    No deal: never. Vetoes are recorded and ignored, as they were.
    Properties: a majority rule whose cascade decides most steps on its own (it puts latency
    first); neither Pareto efficient nor monotone.
    Source: EcoCloud war room (CloudEdge), its `Boardroom` class; reproduces its published
    episode totals.
    """

    name = "cloudedge_boardroom"
    title = "CloudEdge's boardroom: two safe votes of three, or a fixed cascade"
    description = (
        "Proposal #1 of resource, cost and sustainability is a vote. A crisis is met with 5 "
        "servers in canada-hydro; a 3-action cycle or an up/down oscillation is broken by "
        "migrate_region; else two votes for a safe action win; else a cascade decides: latency, "
        "carbon, cost. Vetoes are recorded and ignored. Ties and no deal: none. "
        "Source: the EcoCloud war room's Boardroom."
    )
    max_rounds = 0
    worlds: tuple[str, ...] = ("cloudedge",)
    voters = VOTERS
    ignores_vetoes = True

    def decide(self, context: Context) -> Deliberation:
        """One shot; asks nobody."""
        votes = count_votes(context)
        scores = {
            candidate.id: float(votes[kind])
            for kind in sorted(votes)
            if (candidate := _find(context, kind)) is not None
        }
        if context.observation.facts.get("crisis"):
            return Decision(
                _crisis(context),
                self.name,
                True,
                "crisis: add 5 servers in canada-hydro",
                scores,
            )
        recent = [joint[0].kind for joint in context.history.decisions[-3:] if joint]
        seen = readings(context)
        loop = loop_label(recent)
        majority = next((kind for kind in sorted(votes) if votes[kind] >= 2), "")
        kind, rule = ("migrate_region", loop.rule) if loop else ("", "")
        if (
            not kind
            and majority
            and is_safe(seen, majority)
            and _find(context, majority) is not None
        ):
            kind = majority
        elif not kind:
            kind, rule = phase_fallback(seen), "phase_fallback"
        chosen = _find(context, kind)
        if chosen is None:  # a guardrail took it out; the seed has none
            return (yield from self._without(context, kind))
        wanted = _find(context, majority) if rule and majority else None
        return Decision(
            chosen,
            self.name,
            not rule,
            loop.label if loop else reason_label(seen, votes[kind], kind),
            scores,
            overridden_from=wanted.id if wanted and wanted.id != chosen.id else "",
            override_rule=rule,
        )

    def _without(self, context: Context, kind: str) -> Deliberation:
        if not context.admissible.any():
            return all_vetoed(self.name, context)
        return (yield from no_deal(self.name, context, f"{kind} is not a candidate", {}))


class Loop(NamedTuple):
    """A loop of past actions that the boardroom breaks."""

    label: str
    rule: str


def loop_label(recent: list[str]) -> Loop | None:
    """Which loop the last actions form, if any (`recent`: kinds, oldest first)."""
    last = recent[-3:]
    if len(last) == 3 and len(set(last)) == 3 and "migrate_region" not in last:
        return Loop("3-action cycle", "cycle")
    if set(recent[-2:]) == {"scale_up", "scale_down"}:
        return Loop("oscillation", "oscillation")
    return None


def count_votes(context: Context) -> Counter[str]:
    """Votes per action kind; a seat without a proposal does not vote."""
    votes: Counter[str] = Counter()
    for seat in VOTERS:
        proposals = context.proposals.get(seat, ())
        if proposals and proposals[0].actions:
            votes[proposals[0].actions[0].kind] += 1
    return votes


def readings(context: Context) -> Readings:
    """The current metrics.

    Raises:
        ProtocolError: One of the three is not known.
    """
    values = []
    for name in Readings._fields:
        value = context.observation.metrics.get(name)
        if value is None:
            raise ProtocolError(
                f"cloudedge_boardroom cannot read {name} at step {context.step + 1}",
                "its rules compare latency, cost and carbon with fixed numbers",
                "Unmask the metric for the room, or choose another protocol",
            )
        values.append(value)
    return Readings(*values)


def is_safe(seen: Readings, kind: str) -> bool:
    """Whether an action with two votes may pass."""
    latency, cost, carbon = seen
    if latency > 170 and kind in {"scale_down", "optimize_energy"}:
        return False
    if latency > 160 and kind == "migrate_region":
        return False
    if cost > 520 and kind == "scale_up":
        return False
    return not (carbon < 220 and kind == "migrate_region")


def phase_fallback(seen: Readings) -> str:
    """The cascade: latency, then carbon, then cost."""
    latency, cost, carbon = seen
    if latency > 170:
        return "scale_up"
    if (carbon > 320 and latency <= 180) or (carbon > 260 and latency <= 160):
        return "migrate_region"
    if cost > 520 and latency <= 150:
        return "scale_down"
    if carbon > 220 and latency <= 160:
        return "optimize_energy"
    if cost > 450:
        return "scale_down" if latency <= 150 else "scale_up"
    if latency > 150:
        return "scale_up"
    return "scale_down" if cost > 400 else "optimize_energy"


def reason_label(seen: Readings, votes: int, kind: str) -> str:
    """The boardroom's own words for a decision."""
    if votes >= 2:
        return f"{votes} vote(s)"
    if seen.latency_ms > 185 and kind == "scale_up":
        return "latency recovery"
    if seen.carbon_index > 220 and kind in {"optimize_energy", "migrate_region"}:
        return "carbon recovery"
    if seen.cost_usd_per_hour > 400 and kind in {"scale_down", "optimize_energy"}:
        return "cost recovery"
    return "goal guardrail"


def _crisis(context: Context) -> Candidate:
    for candidate in context.candidates:
        if candidate.now == (CRISIS,):
            return candidate
    return Candidate((CRISIS,), (), ("mandatory",))


def _find(context: Context, kind: str) -> Candidate | None:
    """The feasible single candidate of a kind; the plain one first, then the smallest id."""
    found = [
        candidate
        for candidate in context.candidates
        if candidate.feasible and len(candidate.now) == 1 and candidate.now[0].kind == kind
    ]
    return min(
        found, key=lambda candidate: (bool(candidate.now[0].params), candidate.id), default=None
    )
