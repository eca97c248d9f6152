"""Counter-based noise of CloudEdge: a number depends on where it is used and on nothing else.

Action draws stand at (entity 0, channel ``cloudedge.action``, step, replica): word 0 is the
latency's, 1 the cost's, 2 the carbon's, 3 the extra cost's, whatever the action. Crisis draws
stand on channel ``cloudedge.crisis`` at the step of the crisis: three shocks and the next
interval; step 0 holds the first interval. All are 24-bit uniforms. The schedule of crises
therefore depends on no action.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.worlds.cloudedge.rules import rises_of
from world.worlds.cloudedge.state import Floats, Many, Rows

ACTION: Final = noise.channel("cloudedge.action")
CRISIS: Final = noise.channel("cloudedge.crisis")

_BLOCK_STEPS = 64  # a usual episode of 30 steps is one call
# Four uniforms each: at most 4 MiB, a usual episode of 4096 worlds in one call. Smaller blocks are
# no faster, and the C library gives their memory back to the kernel: page faults cost a fifth.
_BLOCK_LANES = 131072
_CALENDAR_STEPS = 64


def first_offsets(seeds: NDArray[np.uint64], jitter_steps: int) -> NDArray[np.int64]:
    """Offset of the first crisis from the base interval, one per seed."""
    return offsets_of(noise.uniforms(seeds, 0, CRISIS, 0)[3], jitter_steps)


def offsets_of(uniforms: Floats, jitter_steps: int) -> NDArray[np.int64]:
    """Whole numbers of steps in ±jitter, one per uniform in (0, 1)."""
    return (uniforms * (2 * jitter_steps + 1)).astype(np.int64) - jitter_steps


_Draws = tuple[float, float, float, float, int]
_Shock = tuple[float, float, float, int, int]


class CounterTape:
    """Noise of one world, drawn for a whole run of steps at a time.

    Args:
        seed: Episode seed.
        jitter_steps: Crisis intervals are uniform over base ± jitter.
        replica: 0 for the truth, 1… for projection samples.
    """

    __slots__ = ("_block", "jitter_steps", "replica", "seed")

    def __init__(self, seed: int, jitter_steps: int, replica: int = 0) -> None:
        self.seed = seed
        self.jitter_steps = jitter_steps
        self.replica = replica
        self._block: tuple[int, list[_Draws], list[_Shock]] = (0, [], [])

    def action(
        self, step: int, word: int, order: tuple[int, int, int], hydro: bool
    ) -> tuple[float, float, float, float, int]:
        """See `state.Tape.action`."""
        start, actions, _ = self._block
        at = step - start
        if not 0 <= at < len(actions):
            start, actions, _ = self.draw(step)
            at = step - start
        return actions[at]

    def shock(self, step: int, word: int) -> tuple[float, float, float, int, int]:
        """See `state.Tape.shock`."""
        start, _, shocks = self._block
        at = step - start
        if not 0 <= at < len(shocks):
            start, _, shocks = self.draw(step)
            at = step - start
        return shocks[at]

    def draw(self, step: int) -> tuple[int, list[_Draws], list[_Shock]]:
        """Draw the run of steps that holds `step` and keep it instead of the last one."""
        start = step - (step - 1) % _BLOCK_STEPS if step else 0
        steps = np.arange(start, start + _BLOCK_STEPS)
        streams = np.array([[ACTION], [CRISIS]])
        seed, replica = self.seed, self.replica
        drawn = noise.uniforms(seed, 0, streams, steps, replica)
        actions = [(*row, 0) for row in zip(*drawn[:, 0].tolist(), strict=True)]
        offsets = offsets_of(drawn[3, 1], self.jitter_steps).tolist()
        shocks = [
            (*row, offset, 0) for *row, offset in zip(*drawn[:3, 1].tolist(), offsets, strict=True)
        ]
        self._block = (start, actions, shocks)
        return self._block


_MEAN_DRAWS: _Draws = (0.5, 0.5, 0.5, 0.5, 0)
_MEAN_SHOCK: _Shock = (0.5, 0.5, 0.5, 0, 0)


class MeanTape:
    """Mean noise: every uniform is ½ and every interval is the base interval."""

    __slots__ = ()

    def action(
        self, step: int, word: int, order: tuple[int, int, int], hydro: bool
    ) -> tuple[float, float, float, float, int]:
        """See `state.Tape.action`."""
        return _MEAN_DRAWS

    def shock(self, step: int, word: int) -> tuple[float, float, float, int, int]:
        """See `state.Tape.shock`."""
        return _MEAN_SHOCK


class MeanRows:
    """Mean noise for a batch."""

    __slots__ = ()

    def action(
        self, state: Many, kinds: NDArray[np.int32], hydro: Rows
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """See `state.RowTape.action`."""
        return np.full((3, len(kinds)), 0.5), np.full(len(hydro), 0.5), state.word

    def shock(
        self, state: Many, step: int, struck: NDArray[np.bool_], word: NDArray[np.int64]
    ) -> tuple[Rows, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """See `state.RowTape.shock`."""
        rows = struck.nonzero()[0]
        rises = rises_of(np.full((3, len(rows)), 0.5))
        return rows, rises, np.zeros(len(rows), dtype=np.int64), word


class CounterRows:
    """Noise of a batch, drawn for a run of steps of every row at a time.

    Args:
        seeds: uint64 [B].
        base_steps: Middle of the interval between crises.
        jitter_steps: Crisis intervals are uniform over base ± jitter.
        replicas: 0 for the truth; for projections int [B].
        ahead_steps: Most steps to draw at once; 0 draws at most 4 MiB (or one step).
    """

    __slots__ = (
        "_block",
        "_calendar",
        "ahead_steps",
        "base_steps",
        "jitter_steps",
        "replicas",
        "seeds",
    )

    def __init__(
        self,
        seeds: NDArray[np.uint64],
        base_steps: int,
        jitter_steps: int,
        replicas: NDArray[np.int64] | int = 0,
        ahead_steps: int = 0,
    ) -> None:
        self.seeds = seeds
        self.base_steps = base_steps
        self.jitter_steps = jitter_steps
        self.replicas = replicas
        self.ahead_steps = ahead_steps or max(1, _BLOCK_LANES // len(seeds))
        self._block: tuple[int, Floats] = (0, np.empty((0, 4, len(seeds))))
        self._calendar = _Calendar(0, -1, [])

    def action(
        self, state: Many, kinds: NDArray[np.int32], hydro: Rows
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """See `state.RowTape.action`."""
        step = state.step + 1
        start, drawn = self._block
        if not 0 <= step - start < len(drawn):
            start, drawn = self.draw(state, self.ahead_steps)
        now = drawn[step - start]
        return now[:3], now[3].take(hydro), state.word

    def draw(self, state: Many, steps: int) -> tuple[int, Floats]:
        """Draw the actions of the next `steps` steps and keep them instead of the last ones."""
        first, last = _run(state, steps)
        when = np.arange(first, last + 1)
        self._block = (first, noise.uniform_rows(self.seeds, 0, ACTION, when, self.replicas))
        return self._block

    def shock(
        self, state: Many, step: int, struck: NDArray[np.bool_], word: NDArray[np.int64]
    ) -> tuple[Rows, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """See `state.RowTape.shock`."""
        found = self._calendar.at(step)
        if not _agrees(found[0], struck):
            found = self.foresee(state).at(step)
        return *found, word

    def foresee(self, state: Many, steps: int = _CALENDAR_STEPS) -> _Calendar:
        """Draw every crisis of the next `steps` steps: no action can move one."""
        first, last = _run(state, steps)
        pending = np.maximum(state.next_crisis_step, first)
        found: list[tuple[Rows, NDArray[np.int64], Floats, NDArray[np.int64]]] = []
        rows = np.flatnonzero(pending <= last)
        while rows.size:
            when = pending[rows]
            replicas = self.replicas if isinstance(self.replicas, int) else self.replicas[rows]
            drawn = noise.uniforms(self.seeds[rows], 0, CRISIS, when, replicas)
            offsets = offsets_of(drawn[3], self.jitter_steps)
            found.append((rows, when, rises_of(drawn[:3]), offsets))
            pending[rows] = when + self.base_steps + offsets
            rows = rows[pending[rows] <= last]
        self._calendar = _Calendar(first, last, found)
        return self._calendar


def _agrees(rows: Rows, struck: NDArray[np.bool_]) -> bool:
    """Whether the calendar's rows are exactly those that the state says are struck."""
    known = np.count_nonzero(struck.take(rows))
    return len(rows) == known and known == np.count_nonzero(struck)


def _run(state: Many, steps: int) -> tuple[int, int]:
    """First and last of the next `steps` steps, as far as the episode goes."""
    return state.step + 1, max(state.step + 1, min(state.step + steps, state.settings.horizon))


class _Calendar:
    """The crises of a run of steps, sorted by step."""

    __slots__ = ("_bounds", "_first", "_last", "_offsets", "_rises", "_rows")

    def __init__(
        self,
        first: int,
        last: int,
        found: list[tuple[Rows, NDArray[np.int64], Floats, NDArray[np.int64]]],
    ) -> None:
        empty = np.empty(0, dtype=np.int64)
        found = found or [(np.empty(0, dtype=np.intp), empty, np.empty((3, 0)), empty)]
        when = np.concatenate([part[1] for part in found])
        # Sixteen bits sort by radix, ten times as fast as sixty-four.
        order = np.argsort((when - first).astype(np.uint16), kind="stable")
        self._first, self._last = first, last
        self._rows = np.concatenate([part[0] for part in found])[order]
        self._rises = np.concatenate([part[2] for part in found], 1).take(order, axis=1)
        self._offsets = np.concatenate([part[3] for part in found])[order]
        self._bounds = np.searchsorted(when[order], np.arange(first, last + 3)).tolist()

    def at(self, step: int) -> tuple[Rows, Floats, NDArray[np.int64]]:
        """Rows, rises and offsets of one step; none of them outside the run."""
        if not self._first <= step <= self._last:
            step = self._last + 1
        low, high = self._bounds[step - self._first : step - self._first + 2]
        return self._rows[low:high], self._rises[:, low:high], self._offsets[low:high]
