"""The greedy planner: the best single action, then the best that goes with it, and so on.

It looks as far ahead as it is told and projects single actions only. Ties go to the smaller id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policies.planners.lookahead import Outlook, Sight, look
from world.model import History, Joint, Key, World


def greedy(world: World[Any], history: History, key: Key, sight: Sight | None = None) -> Joint:
    """A joint action for the step that comes.

    Args:
        world: The world; its truth is never read.
        history: What was observed and decided so far.
        key: Address of the projection noise.
        sight: How far and how wide to look.
    """
    sight = sight or Sight()
    outlook = look(world, history, key, sight)
    return outlook.mandatory or greedily(outlook)


def greedily(outlook: Outlook) -> Joint:
    """Single actions in order of their gains, as long as they go together."""
    order = np.argsort(-outlook.gains, kind="stable")
    chosen: Joint = ()
    for place in order.tolist():
        plan = outlook.plans[place]
        more = plan[0]
        if chosen and (outlook.gains[place] <= 0.0 or not outlook.together(chosen, more)):
            continue
        if outlook.gains[place] <= 0.0 and outlook.idle:
            break
        chosen = (*chosen, *more)
        if len(chosen) >= outlook.gate.bounds.max_actions:
            break
    return chosen or outlook.idle
