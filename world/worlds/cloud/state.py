"""The state of a cloud world: named arrays with a leading axis B, treated as immutable.

A step copies the columns that it changes and shares all others with the state before it. What is
derived from columns is remembered under the identity of its sources, so that quiet steps recompute
nothing. What a column means stands in `schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from world.model import ActionOutcome
from world.worlds.cloud.settings import METRICS, Settings

Array = NDArray[Any]
Floats = NDArray[np.float64]
T = TypeVar("T")

NOW, BEFORE, EARLIER = "h.m.now", "h.m.before", "h.m.earlier"
"""True measurements of the last three steps, float64 [B, M] each; see `Measured`."""

SERVICE_METRICS = (
    "p95_ms", "p99_ms", "error_fraction", "rps", "cpu_fraction", "db_cpu_fraction",
    "memory_fraction", "disk_fraction",
)  # fmt: skip
"""What is measured per service, in order."""


class Measured:
    """Where each number stands in a vector of measurements.

    Args:
        settings: The layout.
    """

    __slots__ = ("queues", "s", "width")

    def __init__(self, settings: Settings) -> None:
        self.s = settings.s
        self.queues = len(METRICS) + len(SERVICE_METRICS) * settings.s
        self.width = self.queues + settings.queues

    def service(self, name: str) -> slice:
        """Columns of one service metric, [S]."""
        start = len(METRICS) + SERVICE_METRICS.index(name) * self.s
        return slice(start, start + self.s)

    @property
    def busy(self) -> slice:
        """Columns of the utilisation of queue rows, [Q]."""
        return slice(self.queues, self.width)


@dataclass(slots=True)
class State:
    """B worlds.

    Attributes:
        settings: Scenario and layout, the same for all.
        seeds: uint64 [B].
        replica: uint64 [B]; 0 is the truth, 1… are samples of a projection.
        step: Steps done, the same for all.
        columns: Column name → array [B, n].
        extras: A token that is replaced when a row that is no queue changes.
        mean_noise: Whether every draw stands at its mean (one projection sample for all).
        ids: Resource ids, where all worlds share them (imagined worlds).
        outcomes: What became of the last step's actions (B = 1 only).
        flags: Events of the last step for reward and wording, bool or float [B]; not stored.
        memory: Derived arrays with the identities of their sources.
    """

    settings: Settings
    seeds: NDArray[np.uint64]
    replica: NDArray[np.uint64]
    step: int
    columns: dict[str, Array]
    extras: object = field(default_factory=object)
    mean_noise: bool = False
    ids: tuple[str, ...] = ()
    outcomes: tuple[ActionOutcome, ...] = ()
    flags: dict[str, Array] = field(default_factory=dict)
    memory: dict[str, tuple[tuple[Any, ...], Any]] = field(default_factory=dict)

    @property
    def batch(self) -> int:
        """B."""
        return int(self.seeds.shape[0])

    @property
    def apart(self) -> int:
        """How many worlds, from the first on, have noise of their own; the others repeat it."""
        return self.batch

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.step >= self.settings.scenario.horizon

    @property
    def hour(self) -> Floats:
        """UTC hour of the day at the start of the coming step, float64 [B]."""
        hours: Floats = self.columns["w.start_hour_utc"][:, 0] + self.step * self.settings.dt_h
        return hours

    def follow(self) -> State:
        """The next state, sharing every column."""
        return State(
            self.settings,
            self.seeds,
            self.replica,
            self.step,
            dict(self.columns),
            self.extras,
            self.mean_noise,
            self.ids,
            memory=self.memory,
        )

    def own(self, name: str) -> Array:
        """A column of this state that may be written: copied from the state before."""
        column = self.columns[name].copy()
        self.columns[name] = column
        return column

    def recall(self, name: str, sources: tuple[Any, ...], make: Callable[[], T]) -> T:
        """A derived value, recomputed only when one of its sources is another object."""
        kept = self.memory.get(name)
        if (
            kept is not None
            and len(kept[0]) == len(sources)
            and all(one is other for one, other in zip(kept[0], sources, strict=True))
        ):
            value: T = kept[1]
            return value
        value = make()
        self.memory[name] = (sources, value)
        return value

    def rows(self, take: Array) -> State:
        """Some worlds of the batch, in the order given; what belongs to one step is dropped."""
        return State(
            self.settings,
            self.seeds[take],
            self.replica[take],
            self.step,
            {name: column[take] for name, column in self.columns.items()},
            mean_noise=self.mean_noise,
            ids=self.ids,
        )
