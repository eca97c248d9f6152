"""The negotiation table: everything that lies on it before the protocol speaks."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.ballots import Notice
from policies.candidates import MANDATORY, Composites, Singles
from policies.records import Ballot, Candidate, Context, Proposal
from policies.rules import DISAGREEMENTS, RoomRules, SeatRules
from policies.scene import Scene
from policies.utility import round_significant
from world.actions import Action
from world.model import History, Plan, World

__all__ = ["DISAGREEMENTS", "Notice", "RoomRules", "SeatRules", "Table", "lay_table"]


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that lies on the table in one step.

    Attributes:
        context: What the protocol gets. Utilities of candidates that were not projected
            (infeasible ones) are NaN.
        metrics: Metric names, in the order of `projected`.
        projected: float64 [n_candidates, n_metrics], mean over samples and steps; NaN for
            candidates that were not projected.
        dropped: Ids of candidates that found no place, next in line first; 64 composites at
            most are named.
        dropped_count: How many found no place.
        warnings: Warnings and escalations.
        mandatory: Whether the world left no choice.
    """

    context: Context
    metrics: tuple[str, ...]
    projected: NDArray[np.float64]
    dropped: tuple[str, ...] = ()
    dropped_count: int = 0
    warnings: tuple[Notice, ...] = ()
    mandatory: bool = False


class _Shown(NamedTuple):
    """The candidates that were projected, with what came of it."""

    candidates: tuple[Candidate, ...]
    projected: NDArray[np.float64]  # [n, K, H, M]
    values: NDArray[np.float64]  # [n_seats, n]
    abstains: tuple[bool, ...]
    disagreement: NDArray[np.float64]  # [n_seats]


def lay_table(
    world: World[Any],
    history: History,
    seed: int,
    seats: tuple[SeatRules, ...],
    proposals: Mapping[str, tuple[Proposal, ...]],
    rules: RoomRules,
    fallbacks: Mapping[str, str] | None = None,
    paid: Mapping[str, float] | None = None,
) -> Table:
    """Everything between proposals and protocol: candidates, consequences, ballots.

    Believes once and projects once, plus once for composites where there are any; the hidden
    truth is never read. A pure function of its arguments.

    Args:
        world: The world.
        history: What the room has observed and decided; its latest observation is now.
        seed: Episode seed.
        seats: Who sits here, in room order.
        proposals: Seat → its proposals in order of preference.
        rules: Rules of the room.
        fallbacks: Seat → why the engine replaced its own answer.
        paid: Seat → influence credits paid for the decisions so far.

    Raises:
        ConfigError: A disagreement rule that this world cannot serve.
        InadmissibleActionError: The world refuses to look that far ahead without a
            continuation.
    """
    scene = Scene(world, history, seed, seats, rules)
    mandatory = world.mandatory(history.now)
    found = scene.singles(proposals) if mandatory is None else _only(mandatory)
    if mandatory is None:
        scene.ask(proposals)
    shown = _project_singles(scene, found)
    combined = Composites()
    if mandatory is None and not scene.indifferent:
        combined = _combined(scene, shown)
        shown = _with_more(scene, shown, combined.candidates)
        if scene.errands:
            worth = round_significant(shown.values + scene.wishes(shown.candidates))
            shown = shown._replace(values=worth)
    vetoes, notices = scene.red_lines(shown.candidates, shown.projected)
    denied = [Notice(d.seat, "powers", "warn", d.reason, d.candidate) for d in found.denied]

    refused = [candidate for candidate in found.candidates if not candidate.feasible]
    everything = [*shown.candidates, *refused]
    order = sorted(range(len(everything)), key=lambda place: everything[place].id)
    candidates = tuple([everything[place] for place in order])
    utilities = _in_order(shown.values.T, order).T
    vetoed = set().union(*vetoes) if mandatory is None else set()
    reasons = fallbacks or {}
    ballots = tuple(
        Ballot(
            seat=seat.seat,
            utilities=utilities[row],
            weight=seat.weight,
            vetoes=vetoes[row],
            abstains=shown.abstains[row],
            fallback=reasons.get(seat.seat, ""),
        )
        for row, seat in enumerate(seats)
    )
    context = Context(
        seats=tuple([seat.seat for seat in seats]),
        weights=np.array([seat.weight for seat in seats], dtype=np.float64),
        candidates=candidates,
        utilities=utilities,
        admissible=np.array([c.feasible and c.id not in vetoed for c in candidates], np.bool_),
        disagreement=shown.disagreement,
        ballots=ballots,
        proposals=proposals,
        observation=history.now,
        history=history,
        no_deal=rules.no_deal,
        seed=seed,
        step=history.now.step,
        paid=paid or {},
        commander=next((seat.seat for seat in seats if seat.commander), ""),
        mediator=next((seat.seat for seat in seats if seat.mediator), ""),
    )
    return Table(
        context=context,
        metrics=tuple([metric.name for metric in world.metrics]),
        projected=_in_order(_mean(shown.projected), order),
        dropped=(*found.dropped, *combined.dropped),
        dropped_count=len(found.dropped) + combined.dropped_count,
        warnings=(*denied, *notices),
        mandatory=mandatory is not None,
    )


def _project_singles(scene: Scene, found: Singles) -> _Shown:
    """Project the feasible singles, and with them what no deal is measured by."""
    feasible = tuple([candidate for candidate in found.candidates if candidate.feasible])
    if scene.indifferent:
        return _unweighed(feasible, len(scene.seats), len(scene.world.metrics))
    if not (len(feasible) == 1 and feasible[0].origin == (MANDATORY,)):
        feasible = (*feasible, *scene.plans(feasible))
    yardsticks = scene.yardsticks({candidate.id for candidate in feasible})
    plans: list[Plan] = [(candidate.now, *candidate.then) for candidate in feasible]
    projected, weighed = scene.weigh([*plans, *(((action,),) for action in yardsticks)])
    values, abstains = weighed
    names = [*(candidate.id for candidate in feasible), *(action.id for action in yardsticks)]
    disagreement = scene.disagreement(values, {name: row for row, name in enumerate(names)})
    count = len(feasible)
    return _Shown(feasible, projected[:count], values[:, :count], abstains, disagreement)


def _unweighed(feasible: tuple[Candidate, ...], seats: int, width: int) -> _Shown:
    """Options in a room where nobody weighs consequences: they are not worked out."""
    count = len(feasible)
    return _Shown(
        feasible,
        np.full((count, 1, 1, width), np.nan),
        np.zeros((seats, count)),
        (True,) * seats,
        np.zeros(seats),
    )


def _combined(scene: Scene, shown: _Shown) -> Composites:
    """What is made of the singles and did not stand with them: composites, or chosen plans."""
    if scene.world.limits.max_actions_per_step > 1:
        return scene.composites(shown.candidates, shown.values, shown.abstains)
    return scene.chosen_plans(shown.candidates, shown.values, shown.abstains)


def _with_more(scene: Scene, shown: _Shown, more: tuple[Candidate, ...]) -> _Shown:
    if not more:
        return shown
    projected, weighed = scene.weigh([(candidate.now, *candidate.then) for candidate in more])
    return _Shown(
        (*shown.candidates, *more),
        np.concatenate([shown.projected, projected]),
        np.concatenate([shown.values, weighed.values], axis=1),
        shown.abstains,
        shown.disagreement,
    )


def _only(action: Action) -> Singles:
    return Singles((Candidate((action,), (), (MANDATORY,)),))


def _in_order(rows: NDArray[np.float64], order: Sequence[int]) -> NDArray[np.float64]:
    """Rows in id order; what was not projected is NaN."""
    if len(rows) == len(order) and all(map(operator.eq, order, range(len(order)))):
        return rows
    padded = np.full((len(order), rows.shape[1]), np.nan)
    padded[: len(rows)] = rows
    return padded[order]


def _mean(projected: NDArray[np.float64]) -> NDArray[np.float64]:
    candidates, samples, steps, width = projected.shape
    if samples * steps == 1:
        return projected.reshape(candidates, width)
    mean: NDArray[np.float64] = projected.mean(axis=(1, 2))
    return mean
