"""The one careful rule for the two original versions of the FinOps task.

There, a resize halves the cost and doubles the CPU whatever size is named, and nobody can be
asked. All seats share the rule: what is idle and not essential goes, dearest first; then whatever
still fits at twice its CPU is halved, dearest first; then nothing. It never touches an essential
resource with a termination.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policies.records import MAX_PROPOSALS, Proposal, Request
from world.actions import NOP, Action
from world.model import Inventory
from world.worlds.finops.schema import ESSENTIAL

IDLE_CPU_PERCENT = 1.0
"""At most this CPU is idle: the two zombies of the original inventories have 0 and 1 %."""
BUSY_CPU_PERCENT = 95.0
"""Above this the original punishes a resize."""
HALVED = "half"
"""The original takes any text as a size."""


def propose(request: Request, inventory: Inventory) -> tuple[Proposal, ...]:
    """Terminate, else halve, else nothing; in that order of preference."""
    cells = inventory.columns
    cost, cpu = cells["cost_usd_per_hour"], cells["cpu_percent"]
    live = cells["state"] == 0
    zombies = live & (cells["essential"] == ESSENTIAL.index("no")) & (cpu <= IDLE_CPU_PERCENT)
    roomy = live & ~zombies & (2.0 * cpu <= BUSY_CPU_PERCENT)
    proposals = [
        Proposal(
            (Action.of("terminate", inventory.ids[row]),),
            f"{inventory.ids[row]} at {cpu[row]:.3g} % CPU, not essential: terminate saves "
            f"{cost[row]:.4g} $/h",
        )
        for row in _dearest(zombies, cost)
    ]
    proposals += [
        Proposal(
            (Action.of("resize", inventory.ids[row], new_size=HALVED),),
            f"{inventory.ids[row]} at {cpu[row]:.3g} % CPU: half the size runs it at "
            f"{2 * cpu[row]:.3g} % and saves {cost[row] / 2:.4g} $/h",
        )
        for row in _dearest(roomy, cost)
    ]
    proposals.append(Proposal((Action.of(NOP),), "nothing idle, nothing that fits at half size"))
    legal = [
        proposal
        for proposal in proposals
        if request.world.check(request.observation, proposal.actions[0]) is None
    ]
    return tuple(legal[:MAX_PROPOSALS])


def _dearest(mask: NDArray[np.bool_], cost: NDArray[np.float64]) -> list[int]:
    rows = np.flatnonzero(mask & (cost > 0))
    ordered: list[int] = rows[np.argsort(-cost[rows], kind="stable")].tolist()
    return ordered
