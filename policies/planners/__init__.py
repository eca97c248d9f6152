"""Planners: from what was observed to a joint action, without a negotiation."""
