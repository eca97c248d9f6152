"""From a list of wishes to proposals: what can be done together first, then each wish alone.

Shared by rules that read an inventory. A wish that the world's validator refuses, or that the world
calls a hazard, is never proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.records import MAX_PROPOSALS, Proposal, Request
from world.actions import NOP, Action

SHORTLIST = 16
"""Rows per kind of wish that are looked at closely."""


class Option(NamedTuple):
    """One action, with the reason for it."""

    action: Action
    reason: str


def able(request: Request, options: Iterable[Option]) -> list[Option]:
    """Options that can be taken now and do no harm that can be known; each action once."""
    seen, world = request.observation, request.world
    found: dict[Action, Option] = {}
    for option in options:
        if option.action in found:
            continue
        if world.check(seen, option.action) is None and not world.hazards(seen, option.action):
            found[option.action] = option
    return list(found.values())


def together(request: Request, options: Sequence[Option]) -> tuple[Option, ...]:
    """The first options that touch nothing in common and fit into one step."""
    seen, world = request.observation, request.world
    chosen: list[Option] = []
    touched: frozenset[str] = frozenset()
    for option in options:
        reach = world.touched(seen, option.action)
        if not reach & touched:
            chosen.append(option)
            touched |= reach
        if len(chosen) == world.limits.max_actions_per_step:
            break
    return tuple(chosen)


def joint(options: Sequence[Option]) -> Proposal:
    """Options as one proposal; their reasons in the same order."""
    return Proposal(
        tuple(option.action for option in options), "; ".join(option.reason for option in options)
    )


def agenda(
    request: Request, options: Iterable[Option], most: int = MAX_PROPOSALS
) -> tuple[Proposal, ...]:
    """Proposals for options in order of preference: the best joint one, then each alone.

    Args:
        request: What is asked, with the world's validator.
        options: Wishes, the dearest first.
        most: Most proposals.
    """
    usable = able(request, options)
    best = together(request, usable)
    alone = [joint((option,)) for option in usable]
    proposals = alone if len(best) < 2 else [joint(best), *alone]
    return tuple(proposals[:most])


def bundles(options: Sequence[Option]) -> tuple[Proposal, ...]:
    """One proposal of all options, then of ever fewer, none of which has an effect to project.

    Questions and marks change nothing that is measured, so a room values them all alike, and
    between equal candidates it takes the smaller id. Each smaller bundle leaves out the smallest
    id, so that the whole bundle comes first and what fills the last free hands comes last.
    """
    ordered = sorted(options, key=lambda option: option.action.id)
    return tuple(joint(ordered[start:]) for start in range(len(ordered)))


def distinct(proposals: Iterable[Proposal], most: int = MAX_PROPOSALS) -> tuple[Proposal, ...]:
    """The first proposal of each set of actions."""
    by_actions: dict[frozenset[Action], Proposal] = {}
    for proposal in proposals:
        by_actions.setdefault(frozenset(proposal.actions), proposal)
    return tuple(by_actions.values())[:most]


def nothing(why: str) -> tuple[Proposal, ...]:
    """Doing nothing, and why."""
    return (Proposal((Action(NOP),), f"{why}: change nothing"),)


def best_rows(gain: NDArray[np.float64], count: int = SHORTLIST) -> list[int]:
    """Rows of the largest gains above 0, best first, equals in row order."""
    clean = np.nan_to_num(gain, nan=0.0, posinf=0.0, neginf=0.0)
    floor = 0.0
    if clean.size > 4 * count:
        floor = float(np.partition(clean, clean.size - count)[clean.size - count])
    rows = np.flatnonzero((clean > 0) & (clean >= floor))
    order = np.argsort(-clean[rows], kind="stable")[:count]
    chosen: list[int] = rows[order].tolist()
    return chosen
