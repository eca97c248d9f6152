"""Errands: small things that ride along in places that a joint action leaves free.

To look, to ask or to mark changes little or nothing that a projection shows, so nobody would ever
vote for it against something that does; yet what is known tomorrow hangs on what was asked today.
A world names the kinds (`World.errands`). What seats proposed of them fills the free places of
composites and of the best singles, and is worth a little to whoever asked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policies.candidates import COMPOSITE, MOST_LISTED, Composites, canonical, take_turns
from policies.guardrails import Gate
from policies.records import MAX_PROPOSALS, Candidate, Proposal
from world.actions import NOP, Action, joint_id
from world.model import Joint

RIDDEN_SINGLES = 8
"""Singles, the best of the room, that also stand with errands in their free places."""


def asked_errands(
    kinds: Collection[str],
    proposals: Mapping[str, tuple[Proposal, ...]],
    powers: Mapping[str, tuple[str, ...]],
    turns: Sequence[str],
) -> dict[Action, tuple[str, ...]]:
    """Errands by the turns of the seats that want them, each with everybody who asked for it.

    Args:
        kinds: Kinds that are errands.
        proposals: Seat → its proposals; those of errands alone count.
        powers: Seat → action kinds that it may propose; empty or missing is all.
        turns: Seats in the order of their turns.
    """
    wanted = {}
    for seat in turns:
        may = powers.get(seat, ())
        wanted[seat] = list(
            dict.fromkeys(
                action
                for proposal in proposals.get(seat, ())[:MAX_PROPOSALS]
                if all(a.kind in kinds and (not may or a.kind in may) for a in proposal.actions)
                for action in proposal.actions
            )
        )
    actions = list(dict.fromkeys(action for of in wanted.values() for action in of))
    places = {action: at for at, action in enumerate(actions)}
    order = take_turns([[places[action] for action in of] for of in wanted.values()])
    return {
        actions[at]: tuple(seat for seat, of in wanted.items() if actions[at] in of) for at in order
    }


def filled(gate: Gate, joint: Joint, errands: Sequence[Action]) -> Joint:
    """A joint action with errands in its free places; the same where nothing fits."""
    now = tuple(action for action in joint if action.kind != NOP)
    for action in errands:
        if len(now) >= gate.bounds.max_actions:
            break
        if action not in now and not gate.refusals((*now, action)):
            now = (*now, action)
    return now or joint


def ridden(
    gate: Gate,
    singles: Sequence[Candidate],
    welfare: NDArray[np.float64],
    combined: Composites,
    errands: Sequence[Action],
    places: int,
) -> Composites:
    """Composites with errands in their free places, after the best singles with errands.

    Args:
        gate: Guardrails of this moment.
        singles: Feasible singles; none is taken away.
        welfare: float64 [n_singles]: what each is worth to the room.
        combined: The composites that were chosen.
        errands: Errands, most wanted first.
        places: How many composites may stand in all.
    """
    if not errands or places <= 0:
        return combined
    best = np.argsort(-welfare, kind="stable")[:RIDDEN_SINGLES].tolist()
    taken = {candidate.id for candidate in singles}
    chosen: dict[str, Candidate] = {}
    dropped = list(combined.dropped)
    pushed_out = 0
    for candidate in (*(singles[place] for place in best), *combined.candidates):
        now = canonical(filled(gate, candidate.now, errands))
        name = joint_id(now)
        if candidate.then or name in taken or name in chosen:
            continue
        if len(chosen) >= places:
            pushed_out += 1
            dropped.insert(0, name)
            continue
        chosen[name] = Candidate(now, (), (COMPOSITE,), True, (), name)
    count = combined.dropped_count + pushed_out
    return Composites(tuple(chosen.values()), tuple(dropped[:MOST_LISTED]), count)


def wishes(
    errands: Mapping[Action, tuple[str, ...]],
    worths: Mapping[str, float],
    candidates: Sequence[Candidate],
    seats: Sequence[str],
) -> NDArray[np.float64]:
    """What the errands in each candidate are worth to those who asked, float64 [seats, n]."""
    worth = np.zeros((len(seats), len(candidates)))
    row = {seat: place for place, seat in enumerate(seats)}
    for column, candidate in enumerate(candidates):
        for action in candidate.now:
            for seat in errands.get(action, ()):
                worth[row[seat], column] += worths[action.kind]
    return worth
