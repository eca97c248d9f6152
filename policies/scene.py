"""One moment of one room, with the questions that laying its table asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.ballots import Notice, current_metrics, judge, tolerances_of
from policies.candidates import (
    NO_ACTION,
    Composites,
    Singles,
    composites,
    rotation,
    sampled_actions,
    singles,
)
from policies.guardrails import MEMORY_STEPS, Bounds, Gate
from policies.plans import chosen_pairs, pairs
from policies.records import Candidate, Proposal, Veto
from policies.riders import asked_errands, ridden, wishes
from policies.rules import RoomRules, SeatRules, constant
from policies.utility import RoomUtilities, room_utilities, round_significant
from world.actions import NOP, Action, joint_id
from world.errors import ConfigError
from world.model import Belief, Continuation, History, Key, Plan, World

MOST_LEGAL = 256
"""Largest sample of catalogue singles behind ``mean_legal``."""


class Scene:
    """One moment of one room: the same world, belief, noise, seats and rules throughout.

    Args:
        world: The world.
        history: What the room has observed and decided.
        seed: Episode seed.
        seats: Who sits here, in room order.
        rules: Rules of the room.
    """

    __slots__ = (
        "_belief",
        "errands",
        "gate",
        "hidden",
        "history",
        "key",
        "legal",
        "now",
        "rules",
        "seats",
        "specs",
        "tolerances",
        "turns",
        "world",
    )  # fmt: skip

    def __init__(
        self,
        world: World[Any],
        history: History,
        seed: int,
        seats: tuple[SeatRules, ...],
        rules: RoomRules,
    ) -> None:
        now = history.now
        recent = tuple(map(joint_id, history.decisions[-3:])) if rules.refuse_oscillation else ()
        bounds = Bounds(
            world.limits.max_actions_per_step,
            rules.blast_radius,
            rules.refuse_oscillation,
            recent,
            tuple(history.decisions[-MEMORY_STEPS:]) if rules.refuse_oscillation else (),
            rules.blast_share,
            rules.freezes,
        )
        self.world, self.history, self.now = world, history, now
        self.seats, self.rules = seats, rules
        self.key = Key(seed, now.step)
        self.gate = Gate(world, now, bounds)
        self._belief: Belief[Any] | None = None
        self.errands: dict[Action, tuple[str, ...]] = {}
        self.turns = rotation(seats, seed, now.step)
        self.specs = tuple(seat.utility for seat in seats)
        self.tolerances = tolerances_of(now, history.scenario)
        masks = history.scenario.masks
        self.hidden = tuple(frozenset(masks.get(seat.seat, ())) for seat in seats) if masks else ()
        self.legal: tuple[Action, ...] = ()

    @property
    def horizon(self) -> int:
        """H, cut at the end of the episode: nothing that comes after it counts."""
        return max(1, min(self.rules.lookahead_steps, self.now.horizon - self.now.step))

    @property
    def belief(self) -> Belief[Any]:
        """What the room believes now, sampled once and only if something is projected."""
        if self._belief is None:
            self._belief = self.world.believe(self.history, self.rules.samples, self.key)
        return self._belief

    @property
    def indifferent(self) -> bool:
        """Whether no seat weighs consequences at all: no objectives, no red lines."""
        return not any(seat.utility.objectives or seat.red_lines for seat in self.seats)

    def singles(self, proposals: Mapping[str, tuple[Proposal, ...]]) -> Singles:
        """Candidates that are not combined from others."""
        return singles(
            self.gate,
            proposals,
            {seat.seat: seat.may_propose for seat in self.seats},
            [seat.seat for seat in self.turns],
            self.rules.max_candidates,
            self.rules.max_catalogue,
        )

    def yardsticks(self, standing: set[str]) -> list[Action]:
        """Actions that no deal is measured by and that are no candidates."""
        wanted = {seat.disagreement or self.rules.disagreement for seat in self.seats}
        actions: list[Action] = []
        if "mean_legal" in wanted:
            catalogue = self.world.catalogue(self.now)
            sample = sampled_actions(catalogue, self.key.seed, self.key.step, MOST_LEGAL)
            # The validator alone: what harm they would do is nobody's question here.
            check, now = self.world.check, self.now
            self.legal = tuple(a for a in sample if check(now, a) is None)
            actions += self.legal
        if "projected_nop" in wanted:
            if not self.world.limits.has_nop:
                raise ConfigError(
                    "the disagreement is 'projected_nop'",
                    f"in the world {self.world.name!r} doing nothing is not an action",
                    "Take mean_legal or current",
                )
            actions.append(NO_ACTION[0])
        unique = {action.id: action for action in actions}
        return [action for name, action in unique.items() if name not in standing]

    def seconds(self) -> tuple[Action, ...]:
        """What the second step of a plan may hold; nothing where plans have one step."""
        steps = min(self.world.limits.plan_depth, self.rules.plan_steps, self.horizon)
        return tuple(self.world.plannable(self.now)) if steps >= 2 else ()

    def plans(self, firsts: Sequence[Candidate]) -> list[Candidate]:
        """Every plan of two steps, if all of them find a place; else none of them."""
        seconds = self.seconds()
        if len(firsts) * (1 + len(seconds)) > self.rules.max_candidates:
            return []
        return pairs(firsts, seconds)

    def chosen_plans(
        self,
        firsts: Sequence[Candidate],
        values: NDArray[np.float64],
        abstains: tuple[bool, ...],
    ) -> Composites:
        """The plans that seats take in turn, where not every plan finds a place."""
        seconds = self.seconds()
        if not seconds or any(candidate.then for candidate in firsts):
            return Composites()
        places = self.rules.max_candidates - len(firsts)
        return chosen_pairs(firsts, seconds, values[self._rows_by_turn(abstains)], places)

    def weigh(self, plans: Sequence[Plan]) -> tuple[NDArray[np.float64], RoomUtilities]:
        """Project plans and value them; a seat with a continuation of its own imagines that one.

        Returns:
            What the room's continuation leads to, float64 [n_plans, K, H, M], and the utilities.
        """
        projected = self.project(plans)
        utilities = self.utilities(projected)
        for name in dict.fromkeys(seat.continuation for seat in self.seats):
            if name:
                follow = None if name == NOP else self.world.continuations[name]
                other = self.utilities(self._imagine(plans, follow)).values
                rows = [row for row, seat in enumerate(self.seats) if seat.continuation == name]
                utilities.values[rows] = other[rows]
        return projected, utilities

    def project(self, plans: Sequence[Plan]) -> NDArray[np.float64]:
        """Projected metrics, float64 [n_plans, K, H, M], from one belief on common noise."""
        return self._imagine(plans, self.rules.continuation)

    def _imagine(self, plans: Sequence[Plan], follow: Continuation | None) -> NDArray[np.float64]:
        """What comes of plans that `follow` continues; None is nop."""
        if not plans:
            shape = (0, self.belief.samples, self.horizon, len(self.world.metrics))
            return np.empty(shape)
        projected: NDArray[np.float64] = self.world.project(
            self.belief, plans, self.horizon, follow, self.key
        )[0]
        return projected

    def utilities(self, projected: NDArray[np.float64]) -> RoomUtilities:
        """Utilities of every seat, float64 [n_seats, n_plans], and who abstains."""
        return room_utilities(
            self.specs,
            projected,
            self.world.metrics,
            self.now.targets,
            self.tolerances,
            self.hidden,
        )

    def disagreement(
        self, values: NDArray[np.float64], rows: Mapping[str, int]
    ) -> NDArray[np.float64]:
        """What no deal is worth to each seat, float64 [n_seats]."""
        legal = [rows[action.id] for action in self.legal if action.id in rows]
        mean = values[:, legal].mean(axis=1) if legal else np.zeros(len(self.seats))
        current: NDArray[np.float64] | None = None
        result = np.zeros(len(self.seats))
        for row, seat in enumerate(self.seats):
            rule = seat.disagreement or self.rules.disagreement
            if rule == "mean_legal":
                result[row] = mean[row]
            elif rule == "projected_nop":
                result[row] = values[row, rows[NOP]]
            elif rule == "current":
                if current is None:
                    current = self.utilities(current_metrics(self.now, self.world.metrics))[0]
                result[row] = current[row, 0]
            else:
                result[row] = constant(rule, seat.seat)
        return round_significant(result)

    def composites(
        self,
        feasible: Sequence[Candidate],
        values: NDArray[np.float64],
        abstains: tuple[bool, ...],
    ) -> Composites:
        """Composites of feasible singles, seats taking turns."""
        if self.world.limits.max_actions_per_step < 2:
            return Composites()
        places = self.rules.max_candidates - len(feasible)
        combined = composites(
            self.gate,
            feasible,
            values[self._rows_by_turn(abstains)],
            places,
            frozenset(candidate.id for candidate in feasible),
        )
        weights = np.array([seat.weight for seat in self.seats])
        welfare = np.add.reduce(values * weights[:, None], axis=0)
        return ridden(self.gate, feasible, welfare, combined, tuple(self.errands), places)

    def ask(self, proposals: Mapping[str, tuple[Proposal, ...]]) -> None:
        """Note which errands seats ask for, each seat in its turn."""
        kinds = self.world.errands
        if kinds and self.world.limits.max_actions_per_step > 1:
            powers = {seat.seat: seat.may_propose for seat in self.seats}
            turns = [seat.seat for seat in self.turns]
            self.errands = asked_errands(kinds, proposals, powers, turns)

    def wishes(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """What errands are worth to those who asked for them, float64 [n_seats, n]."""
        seats = [seat.seat for seat in self.seats]
        return wishes(self.errands, self.world.errands, candidates, seats)

    def _rows_by_turn(self, abstains: tuple[bool, ...]) -> list[int]:
        """Rows of the seats that weigh anything, in the order of their turns."""
        place = {seat.seat: row for row, seat in enumerate(self.seats)}
        rows = [place[seat.seat] for seat in self.turns]
        return [row for row in rows if not abstains[row]]

    def red_lines(
        self, candidates: Sequence[Candidate], projected: NDArray[np.float64]
    ) -> tuple[list[Mapping[str, Veto]], tuple[Notice, ...]]:
        """Vetoes per seat, in room order, and everything else that red lines say."""
        vetoes: list[Mapping[str, Veto]] = []
        notices: list[Notice] = []
        by_step = None
        for seat in self.seats:
            if not seat.red_lines:
                vetoes.append({})
                continue
            if by_step is None:
                by_step = projected.mean(axis=1)
            judged = judge(
                seat.seat,
                seat.red_lines,
                seat.can_veto,
                candidates,
                by_step,
                self.world.metrics,
                self.now,
            )
            vetoes.append(judged.vetoes)
            notices += judged.notices
        return vetoes, tuple(notices)
