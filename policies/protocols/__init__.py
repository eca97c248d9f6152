"""Rules that turn ballots into one decision. One family per file; find them by name."""

from policies.protocols.registry import no_deal_rule, protocol, protocol_names, require_world

__all__ = ["no_deal_rule", "protocol", "protocol_names", "require_world"]
