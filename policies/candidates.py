"""The candidate set: what lies on the table before anybody votes.

Every feasible proposal is a candidate, exact duplicates are one, and doing nothing is always one
where the world has it. In small worlds every legal action is. Compatible proposals are combined
into composites; where there are more of those than places, seats take turns, each taking the
composite that promises it most. What cannot be done stays, marked infeasible with its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from policies.guardrails import Gate, targets_of
from policies.records import MAX_PROPOSALS, Candidate, Proposal
from world.actions import NOP, Action, joint_id
from world.catalogue import Catalogue
from world.model import Joint
from world.noise import channel, uniforms

CATALOGUE = "catalogue"
COMPOSITE = "composite"
MANDATORY = "mandatory"
NO_ACTION = (Action(NOP),)

T = TypeVar("T")

_MOST_PARTS = 3
MOST_LISTED = 64
"""Most ids of dropped candidates that are recorded."""
_MOST_SCANNED = 4096


class Denied(NamedTuple):
    """A proposal that does not count: made without the power to, or empty.

    Attributes:
        seat: Whose.
        reason: Why it does not count.
        candidate: Id of the candidate that stands all the same; "" where there is none.
    """

    seat: str
    reason: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Singles:
    """The candidates that are not combined from others.

    Attributes:
        candidates: Feasible and infeasible ones, in id order.
        dropped: Ids of feasible proposals that found no place.
        denied: Proposals that do not count, where no infeasible candidate says so.
    """

    candidates: tuple[Candidate, ...]
    dropped: tuple[str, ...] = ()
    denied: tuple[Denied, ...] = ()


@dataclass(frozen=True, slots=True)
class Composites:
    """The combined candidates.

    Attributes:
        candidates: Those that found a place.
        dropped: Ids of those that did not, next in line first; 64 at most.
        dropped_count: How many found no place.
    """

    candidates: tuple[Candidate, ...] = ()
    dropped: tuple[str, ...] = ()
    dropped_count: int = 0


class _Draft:
    """A candidate in the making."""

    __slots__ = ("denied", "now", "origin", "reasons")

    def __init__(self, now: Joint, reasons: tuple[str, ...]) -> None:
        self.now = now
        self.reasons = reasons
        self.origin: list[str] = []
        self.denied: list[tuple[str, str, str]] = []  # seat, source, reason


def canonical(joint: Joint) -> Joint:
    """The same actions in the order of their ids, so that one id means one tuple.

    >>> [action.kind for action in canonical((Action("save"), Action("nop")))]
    ['nop', 'save']
    """
    return joint if len(joint) == 1 else tuple(sorted(joint, key=lambda action: action.id))


def rotation(seats: Sequence[T], seed: int, step: int) -> tuple[T, ...]:
    """Seats in the order of their turns at this step; every seat comes first equally often."""
    start = (seed + step) % len(seats) if seats else 0
    return (*seats[start:], *seats[:start])


def singles(
    gate: Gate,
    proposals: Mapping[str, tuple[Proposal, ...]],
    powers: Mapping[str, tuple[str, ...]],
    turns: Sequence[str],
    places: int,
    max_catalogue: int,
) -> Singles:
    """Candidates from proposals, from the catalogue of a small world, and doing nothing.

    Args:
        gate: Guardrails of this moment.
        proposals: Seat → its proposals in order of preference; at most 8 each are read.
        powers: Seat → action kinds that it may propose; empty or missing is all.
        turns: Seats in the order of their turns.
        places: Most feasible candidates.
        max_catalogue: In a world of one action a step, a catalogue of at most this length
            is taken as a whole.
    """
    drafts: dict[str, _Draft] = {}
    denied: list[Denied] = []
    for rank in range(MAX_PROPOSALS):
        for seat in turns:
            of_seat = proposals.get(seat, ())
            if rank >= len(of_seat):
                continue
            if of_seat[rank].actions:
                _enter(gate, drafts, seat, rank, of_seat[rank].actions, powers.get(seat, ()))
            else:
                denied.append(Denied(seat, f"proposal {rank + 1} holds no action", ""))
    drafts = _with_catalogue(gate, drafts, places, max_catalogue)
    feasible: list[Candidate] = []
    infeasible: list[Candidate] = []
    dropped: list[str] = []
    for name, draft in drafts.items():
        if draft.reasons or not draft.origin:
            reasons = (*draft.reasons, *(reason for _, _, reason in draft.denied))
            origin = (*draft.origin, *(source for _, source, _ in draft.denied))
            infeasible.append(Candidate(draft.now, (), origin, False, reasons, name))
        elif len(feasible) >= places:
            dropped.append(name)
        else:
            feasible.append(Candidate(draft.now, (), tuple(draft.origin), True, (), name))
            denied += [Denied(seat, why, name) for seat, _, why in draft.denied]
    ordered = sorted([*feasible, *infeasible], key=lambda candidate: candidate.id)
    return Singles(tuple(ordered), tuple(dropped), tuple(denied))


def _enter(
    gate: Gate,
    drafts: dict[str, _Draft],
    seat: str,
    rank: int,
    actions: Joint,
    may_propose: tuple[str, ...],
) -> None:
    name = joint_id(actions)
    draft = drafts.get(name)
    if draft is None:
        now = canonical(actions)
        draft = drafts[name] = _Draft(now, gate.refusals(now))
    source = f"{seat}#{rank + 1}"
    barred = [] if not may_propose else [a.kind for a in actions if a.kind not in may_propose]
    if barred:
        draft.denied.append((seat, source, f"powers: {seat} may not propose {barred[0]}"))
    else:
        draft.origin.append(source)


def _with_catalogue(
    gate: Gate, drafts: dict[str, _Draft], places: int, max_catalogue: int
) -> dict[str, _Draft]:
    """Add nop (first, so that it always has a place) and the catalogue of a small world."""
    result: dict[str, _Draft] = {}
    if gate.world.limits.has_nop and not gate.refusals(NO_ACTION):
        result[NOP] = drafts.pop(NOP) if NOP in drafts else _Draft(NO_ACTION, ())
        if not result[NOP].origin:
            result[NOP].origin.append(CATALOGUE)
    result.update(drafts)
    catalogue = gate.world.catalogue(gate.observation)
    small = gate.world.limits.max_actions_per_step == 1 and len(catalogue) <= max_catalogue
    if small:
        for action in catalogue:
            _offer(gate, result, action)
    elif not any(draft.origin and not draft.reasons for draft in result.values()):
        # Nothing that was proposed can be done, and the world cannot stand still.
        left = places
        for position in range(min(len(catalogue), _MOST_SCANNED)):
            left -= _offer(gate, result, catalogue[position])
            if left <= 0:
                break
    return result


def _offer(gate: Gate, drafts: dict[str, _Draft], action: Action) -> bool:
    """Add one catalogue action that guardrails let pass. Returns whether it is a candidate."""
    draft = drafts.get(action.id)
    if draft is not None:
        if not draft.origin and not draft.reasons:
            draft.origin.append(CATALOGUE)
        return not draft.reasons
    now = (action,)
    if gate.refusals(now):
        return False
    drafts[action.id] = draft = _Draft(now, ())
    draft.origin.append(CATALOGUE)
    return True


def composites(
    gate: Gate,
    parts: Sequence[Candidate],
    utilities: NDArray[np.float64],
    places: int,
    taken: frozenset[str],
) -> Composites:
    """Pairs and triples of compatible candidates, chosen by seats in turn.

    Args:
        gate: Guardrails of this moment.
        parts: Feasible singles, in id order.
        utilities: float64 [n_seats, n_parts]: each seat's value of each single, seats in the
            order of their turns and without those that abstain. A composite's promise to a
            seat is the sum over its parts.
        places: How many composites may stand.
        taken: Ids that are candidates already.
    """
    most = gate.bounds.max_actions
    usable = [
        position
        for position, part in enumerate(parts)
        if not part.then and len(part.now) < most and all(action.kind != NOP for action in part.now)
    ]
    if most < 2 or len(usable) < 2 or places < 0 or not len(utilities):
        return Composites()
    members = _compatible(gate, [parts[position].now for position in usable], most)
    if not len(members):
        return Composites()
    padded = np.zeros((len(utilities), len(usable) + 1))
    padded[:, :-1] = utilities[:, usable]
    promise = padded[:, members[:, 0]] + padded[:, members[:, 1]]
    promise += padded[:, members[:, 2]]
    promise = np.round(promise, 9)
    depth = min(places + MOST_LISTED + len(taken), len(members))
    queues = [best_first(row, depth) for row in promise]

    chosen: dict[str, Candidate] = {}
    dropped: list[str] = []
    duplicates = 0
    for index in take_turns(queues):
        joint: Joint = ()
        for member in members[index]:
            if member < len(usable):
                joint += parts[usable[member]].now
        name = joint_id(joint)
        if name in taken or name in chosen or gate.refusals(canonical(joint)):
            duplicates += 1
        elif len(chosen) < places:
            chosen[name] = Candidate(canonical(joint), (), (COMPOSITE,), True, (), name)
        elif len(dropped) < MOST_LISTED:
            dropped.append(name)
        else:
            break
    return Composites(
        tuple(chosen.values()), tuple(dropped), len(members) - len(chosen) - duplicates
    )


@lru_cache(maxsize=64)
def _subsets(count: int, triples: bool) -> NDArray[np.intp]:
    """Every pair (third member = count, a blank) and triple of `count` parts: int [n, 3]."""
    pairs = [(*pair, count) for pair in combinations(range(count), 2)]
    rows = pairs + (list(combinations(range(count), 3)) if triples else [])
    table = np.array(rows, dtype=np.intp).reshape(-1, _MOST_PARTS)
    table.setflags(write=False)
    return table


def _compatible(gate: Gate, joints: Sequence[Joint], most: int) -> NDArray[np.intp]:
    """The subsets whose members touch nothing in common and fit into one step."""
    count = len(joints)
    touched = [gate.touched(joint) | {action.id for action in joint} for joint in joints]
    free = np.ones((count + 1, count + 1), dtype=np.bool_)
    for row in range(count):
        for column in range(row):
            free[row, column] = free[column, row] = touched[row].isdisjoint(touched[column])
    sizes = np.array([*(len(joint) for joint in joints), 0])
    members = _subsets(count, most >= _MOST_PARTS)
    first, second, third = members.T
    fits = sizes[first] + sizes[second] + sizes[third] <= most
    fits &= free[first, second] & free[first, third] & free[second, third]
    if gate.bounds.blast_radius:
        targets = np.array([*(len(targets_of(joint)) for joint in joints), 0])
        reach = targets[first] + targets[second] + targets[third]
        fits &= reach <= gate.bounds.blast_radius
    compatible: NDArray[np.intp] = members[fits]
    return compatible


def best_first(promise: NDArray[np.float64], depth: int) -> list[int]:
    """Indices of the highest promises, ties in index order."""
    if depth < len(promise):
        threshold = np.partition(promise, len(promise) - depth)[len(promise) - depth]
        among = np.flatnonzero(promise >= threshold)
    else:
        among = np.arange(len(promise))
    order: list[int] = among[np.argsort(-promise[among], kind="stable")].tolist()
    return order


def take_turns(queues: Sequence[Sequence[int]]) -> list[int]:
    """Indices in the order in which seats take them, each its best that is still free."""
    taken: dict[int, None] = {}
    iterators = [iter(queue) for queue in queues]
    while iterators:
        still = []
        for iterator in iterators:
            for index in iterator:
                if index not in taken:
                    taken[index] = None
                    still.append(iterator)
                    break
        iterators = still
    return list(taken)


def sampled_actions(catalogue: Catalogue, seed: int, step: int, most: int) -> tuple[Action, ...]:
    """Actions that stand for the whole catalogue: all of them, or a sample stratified by kind.

    A function of (seed, step, catalogue) only, on the stream ``mean_legal``; what was proposed
    cannot move it.

    Args:
        catalogue: The world's catalogue.
        seed: Episode seed.
        step: Steps done so far.
        most: Largest sample; every kind is in it at least once.
    """
    length = len(catalogue)
    if length <= most:
        return tuple(catalogue)
    blocks = catalogue.blocks
    quotas = [min(size, max(1, most * size // length)) for _, size in blocks]
    slices = np.concatenate([np.arange(quota) for quota in quotas])
    streams = np.repeat([channel(f"mean_legal/{kind}") for kind, _ in blocks], quotas)
    draws = iter(uniforms(seed, slices, streams, step)[0].tolist())
    chosen: dict[int, None] = {}
    start = 0
    for (_, size), quota in zip(blocks, quotas, strict=True):
        # One draw from each of `quota` equal slices: no repeats, and the block is covered.
        for slice_ in range(quota):
            low, high = size * slice_ // quota, size * (slice_ + 1) // quota
            chosen[start + low + int(next(draws) * (high - low))] = None
        start += size
    return tuple(catalogue[position] for position in chosen)
