"""Errors: what a service fails by itself, and what it fails because a callee does.

e = 1 − (1 − dropped)·(1 − fault)·(1 − corrupt)·(1 − failover), then for every callee j that a share
f of the requests calls: e_i = 1 − (1 − e_i)·(1 − f·e_j). Callees come first, so a failure reaches
every caller in the same step.
"""

from __future__ import annotations

from collections.abc import Sequence

from world.worlds.cloud.state import Floats


def propagate(own: Floats, calls: Sequence[tuple[int, int, float]]) -> Floats:
    """Errors of every service with those of its callees.

    Args:
        own: float64 [B, S], errors by itself, 0–1.
        calls: (caller, callee, share), callers descending, every callee after its caller.

    Returns:
        float64 [B, S], 0–1.
    """
    if not calls:
        return own
    served = 1.0 - own
    for caller, callee, share in calls:
        served[:, caller] *= 1.0 - share * (1.0 - served[:, callee])
    total: Floats = 1.0 - served
    return total
