"""The greedy rule: for a world without rules of its own, or a role that a world does not know.

It projects every action of a small catalogue once, on mean noise, and proposes what its own
utility likes best. In a large catalogue it proposes to do nothing and says why.
"""

from __future__ import annotations

from agents.persona import seat_rules
from agents.persona_schema import PersonaSpec
from policies.records import Proposal, Request
from world.actions import NOP, Action
from world.model import Key, significant

MAX_ACTIONS = 256
_BEST = 3
_KEY = Key(0, 0)
"""Mean noise draws nothing, so that its address does not matter."""


def greedy(request: Request, spec: PersonaSpec) -> tuple[Proposal, ...]:
    """The best single actions by the persona's own utility of their projected consequence."""
    from policies.utility import seat_utilities

    world, seen = request.world, request.observation
    catalogue = world.catalogue(seen)
    if len(catalogue) > MAX_ACTIONS:
        return _nothing(request, f"{len(catalogue)} actions are too many to weigh one by one")
    legal = [action for action in catalogue if world.check(seen, action) is None]
    if not legal:
        return _nothing(request, "no action is possible now")
    if request.history.scenario.masks.get(request.ask.seat):
        return _nothing(request, "it may not see every metric, so it cannot project")
    belief = world.believe(request.history, 0, Key(_KEY.seed, request.step))
    projected = world.project(belief, [((action,),) for action in legal], 1, None, _KEY)
    utilities = seat_utilities(
        seat_rules(spec, request.ask.seat).utility,
        projected[0],
        world.metrics,
        seen.targets,
        _tolerances(request),
    )
    if utilities is None:
        return _nothing(request, "this world measures none of its objectives")
    ranked = sorted(range(len(legal)), key=lambda row: (-utilities[row], legal[row].id))
    return tuple(
        Proposal((legal[row],), f"own utility {significant(float(utilities[row]), 4)} after it")
        for row in ranked[:_BEST]
    )


def _tolerances(request: Request) -> dict[str, tuple[float, float]]:
    given = request.observation.facts.get("tolerances") or request.history.scenario.tolerances
    return {name: (float(pair[0]), float(pair[1])) for name, pair in given.items()}


def _nothing(request: Request, why: str) -> tuple[Proposal, ...]:
    if not request.world.limits.has_nop:
        return ()
    return (Proposal((Action.of(NOP),), why),)
