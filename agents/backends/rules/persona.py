"""The rule persona: finds the rule of its role for the world at hand, and answers every ask."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.backends.stances import stance
from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Proposal, Reply, Request
from world.actions import joint_id
from world.errors import ConfigError

Rule = Callable[[Request, PersonaSpec], tuple[Proposal, ...]]

GREEDY = "greedy"
ROLES = ("resource", "cost", "sustainability", "janitor")


def _rule(world: str, name: str) -> Rule:
    """A rule for one world; its file is imported when it is asked for, like the world itself."""
    rules: Mapping[str, Rule] = {}
    if world == "cloudedge":
        from agents.backends.rules.cloudedge import RULES as rules
    elif world == "finops":
        from agents.backends.rules.finops import RULES as rules
    elif world == "aiops":
        from agents.backends.rules.aiops import RULES as rules
    elif world == "cloud":
        from agents.backends.rules.cloud import RULES as rules
    if name in rules:
        return rules[name]
    from agents.backends.rules.generic import greedy

    return greedy


def rule_names() -> tuple[str, ...]:
    """What ``backend.ref`` may name: the four roles, and ``greedy``."""
    return (*ROLES, GREEDY)


@dataclass(frozen=True, slots=True)
class RulePersona:
    """A persona voiced by rules.

    Attributes:
        spec: Its file.
        seat: Its seat.
        rule: Name of its rule, from `rule_names`.
    """

    spec: PersonaSpec
    seat: str
    rule: str

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> RulePersona:
        """The persona of a file: ``backend.ref``, else its role, else greedy.

        Raises:
            ConfigError: ``backend.ref`` names no rule.
        """
        asked = spec.backend.ref
        if asked and asked not in rule_names():
            close = difflib.get_close_matches(asked, rule_names(), n=1)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise ConfigError(
                f"persona {spec.id!r}: backend.ref = {asked!r}",
                "there is no such rule",
                f"{hint}Rules: {', '.join(rule_names())}",
            )
        return RulePersona(spec, seat, asked) if asked else RulePersona.by_role(spec, seat)

    @staticmethod
    def by_role(spec: PersonaSpec, seat: str) -> RulePersona:
        """The rule of the file's role, whatever its backend says; greedy where there is none."""
        role = spec.identity.role
        return RulePersona(spec, seat, role if role in ROLES else GREEDY)

    @property
    def blocking(self) -> bool:
        """A rule never waits."""
        return False

    def answer(self, request: Request) -> Reply:
        """Answer one ask.

        ``propose`` runs the rule. The others are answered from what the seat has at stake
        (`agents.backends.stances`); where the engine says nothing of that, from what the rule
        would propose, in its own order of preference.
        """
        kind = request.ask.kind
        if kind != "propose" and (said := stance(request, self.spec)) is not None:
            return said
        proposals = self._proposals(request)
        if kind == "propose":
            return Reply(proposals=proposals)
        wanted = [joint_id(proposal.actions) for proposal in proposals]
        offered = _ids(request.ask.payload.get("candidates"))
        known = [name for name in wanted if not offered or name in offered]
        if kind == "ballot":
            return Reply(scores={name: max(10 - rank, 1) for rank, name in enumerate(known)})
        best = known[0] if known else (offered[0] if offered else "")
        if kind == "pick":
            return Reply(choice=best)
        accept = request.ask.payload.get("offer") in wanted
        return Reply(accept=accept, counter="" if accept else best)

    def _proposals(self, request: Request) -> tuple[Proposal, ...]:
        if self.spec.powers.mediator:
            return ()  # who mediates takes no side
        return _rule(request.world.name, self.rule)(request, self.spec)[:MAX_PROPOSALS]


def _ids(value: object) -> Sequence[str]:
    return (
        [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []
    )
