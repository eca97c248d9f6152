"""What a CloudEdge world is made of: one world in plain floats, many worlds in arrays.

`Single` is one world (B = 1), a light slotted object; `Many` is a batch in arrays. Both are
treated as immutable: a step makes a new one and the old one stays valid. Where the noise comes
from is a tape: a pure function of (seed, place), so a tape may be shared by every state of an
episode and may forget and redraw at will.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from world.model import Scenario
    from world.worlds.cloudedge.rules import Effect, Settings

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Answers(NamedTuple):
    """The rows of a batch that answer a crisis.

    Attributes:
        rows: Ascending.
        servers: Server count of each.
        hydro: Whether each goes to the hydro region.
        full: Whether all are the full response, five servers in the hydro region.
    """

    rows: Rows
    servers: Floats
    hydro: NDArray[np.bool_]
    full: bool

    def of(self, rows: Rows) -> tuple[Floats, NDArray[np.bool_]]:
        """Server counts and regions of some of these rows."""
        at = np.searchsorted(self.rows, rows)
        return self.servers[at], self.hydro[at]


NO_ANSWERS: Final = Answers(np.empty(0, np.intp), np.empty(0), np.empty(0, np.bool_), True)


class Tape(Protocol):
    """Noise of one world."""

    def action(
        self, step: int, word: int, order: tuple[int, int, int], hydro: bool
    ) -> tuple[float, float, float, float, int]:
        """Draws of an action that makes step `step`.

        Args:
            step: The step being made, 1….
            word: Words consumed so far; counter-based tapes ignore it.
            order: Word offset of the latency, cost and carbon draws; counter-based tapes
                ignore it.
            hydro: Whether the action draws a fourth number.

        Returns:
            Uniforms for latency, cost, carbon and the extra cost, and the new word count.
        """
        ...

    def shock(self, step: int, word: int) -> tuple[float, float, float, int, int]:
        """Draws of a crisis at `step`: three uniforms, interval offset (steps), word count."""
        ...


class RowTape(Protocol):
    """Noise of a batch."""

    def action(
        self, state: Many, kinds: NDArray[np.int32], hydro: Rows
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Draws of the actions of one step.

        Args:
            state: The batch before the step.
            kinds: int32 [B], codes of the actions.
            hydro: Rows whose action draws a fourth number.

        Returns:
            Uniforms [3, B] for latency, cost and carbon, the fourth draw of the rows in
            `hydro`, and the new word counts [B].
        """
        ...

    def shock(
        self, state: Many, step: int, struck: NDArray[np.bool_], word: NDArray[np.int64]
    ) -> tuple[Rows, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Draws of the crises that strike at `step`.

        Args:
            state: The batch before the step.
            step: The step being made.
            struck: bool [B], where a crisis strikes.
            word: Words consumed, int64 [B]; the tape may write into it.

        Returns:
            The rows that are struck, by how much their latency, cost and carbon rise [3, n],
            their interval offsets [n] in steps, and the new word counts [B].
        """
        ...


class Episode:
    """What all states of one world share.

    Attributes:
        scenario: The scenario.
        settings: Its numbers.
        seed: Episode seed.
        tape: Its noise.
        horizon: Steps in the episode.
        targets: Strict upper bounds of latency (ms), cost ($/h) and carbon.
        base_steps: Middle of the interval between crises.
    """

    __slots__ = ("base_steps", "horizon", "scenario", "seed", "settings", "tape", "targets")

    def __init__(self, scenario: Scenario, settings: Settings, seed: int, tape: Tape) -> None:
        self.scenario = scenario
        self.settings = settings
        self.seed = seed
        self.tape = tape
        self.horizon = settings.horizon
        self.targets = settings.targets
        self.base_steps = settings.base_steps


class Single:
    """One world.

    Attributes:
        episode: What does not change.
        step: Steps done.
        latency_ms: Latency.
        cost_usd_per_hour: Cost.
        carbon_index: Carbon.
        stable_steps: Steps in a row, up to now, in which every target held.
        crisis: Whether a crisis struck in this step (announced to every seat).
        effect: Effect of the last action; None at step 0.
        verdict: What the step earned, as bits: index into `outcome.POINTS`.
        next_crisis_step: Hidden: the first step at which a crisis strikes.
        word: Hidden: words consumed of a sequential generator, else 0.
    """

    __slots__ = (
        "carbon_index",
        "cost_usd_per_hour",
        "crisis",
        "effect",
        "episode",
        "latency_ms",
        "next_crisis_step",
        "stable_steps",
        "step",
        "verdict",
        "word",
    )

    def __init__(
        self,
        episode: Episode,
        step: int,
        latency_ms: float,
        cost_usd_per_hour: float,
        carbon_index: float,
        stable_steps: int,
        crisis: bool,
        effect: Effect | None,
        verdict: int,
        next_crisis_step: int,
        word: int,
    ) -> None:
        self.episode = episode
        self.step = step
        self.latency_ms = latency_ms
        self.cost_usd_per_hour = cost_usd_per_hour
        self.carbon_index = carbon_index
        self.stable_steps = stable_steps
        self.crisis = crisis
        self.effect = effect
        self.verdict = verdict
        self.next_crisis_step = next_crisis_step
        self.word = word


@dataclass(frozen=True, slots=True)
class Many:
    """A batch of worlds that step together.

    Attributes:
        scenario: The scenario.
        settings: Its numbers.
        seeds: uint64 [B].
        tape: Noise of all rows.
        step: Steps done, the same for all.
        metrics: float64 [3, B]: latency (ms), cost ($/h), carbon.
        stable_steps: int32 [B].
        crisis: bool [B].
        last: int32 [B], code of the last action; -1 at step 0.
        answers: The rows whose last action was a crisis response, and how they answered.
        verdict: uint8 [B], as in `Single`.
        next_crisis_step: int64 [B], hidden.
        word: int64 [B], hidden.
    """

    scenario: Scenario
    settings: Settings
    seeds: NDArray[np.uint64]
    tape: RowTape
    step: int
    metrics: Floats
    stable_steps: NDArray[np.int32]
    crisis: NDArray[np.bool_]
    last: NDArray[np.int32]
    answers: Answers
    verdict: NDArray[np.uint8]
    next_crisis_step: NDArray[np.int64]
    word: NDArray[np.int64]

    @property
    def size(self) -> int:
        """B."""
        return int(self.seeds.shape[0])


State = Single | Many
