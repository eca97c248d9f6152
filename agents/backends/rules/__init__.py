"""Rule personas: what a role would propose, written down; no model, no state, no clock.

One file per world; a world without rules of its own, or a role that a world does not know, is
voiced by the generic greedy rule. A rule reads its request and nothing else, so that the same
request always gets the same reply.
"""

from agents.backends.rules.persona import RulePersona, rule_names

__all__ = ["RulePersona", "rule_names"]
