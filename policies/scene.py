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
from policies.records import Candidate, Proposal, Veto
from policies.rules import RoomRules, SeatRules, constant
from policies.utility import RoomUtilities, room_utilities, round_significant
from world.actions import NOP, Action, joint_id
from world.errors import ConfigError
from world.model import Belief, History, Key, Plan, World

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
        )
        self.world, self.history, self.now = world, history, now
        self.seats, self.rules = seats, rules
        self.key = Key(seed, now.step)
        self.gate = Gate(world, now, bounds)
        self._belief: Belief[Any] | None = None
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
            self.legal = tuple(a for a in sample if self.gate.illegal(a) is None)
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

    def project(self, plans: Sequence[Plan]) -> NDArray[np.float64]:
        """Projected metrics, float64 [n_plans, K, H, M], from one belief on common noise."""
        rules = self.rules
        if not plans:
            shape = (0, self.belief.samples, self.horizon, len(self.world.metrics))
            return np.empty(shape)
        projected: NDArray[np.float64] = self.world.project(
            self.belief, plans, self.horizon, rules.continuation, self.key
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
        place = {seat.seat: row for row, seat in enumerate(self.seats)}
        turns = [place[seat.seat] for seat in self.turns if not abstains[place[seat.seat]]]
        return composites(
            self.gate,
            feasible,
            values[turns],
            self.rules.max_candidates - len(feasible),
            frozenset(candidate.id for candidate in feasible),
        )

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
