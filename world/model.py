"""The one interface that every world offers, and the plain data that crosses it.

A world is pure: no clock, no I/O, no global generator. Its state has a leading axis B, so that
one world is B = 1 and a sweep is B = 4096; `World.step` on a batch equals B single steps to the
last bit. Only `World` methods look inside a state. What personas and projections may know is
an `Observation`; hidden fields never reach one.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from world.actions import Action, ActionTemplate
from world.catalogue import Catalogue

Joint = tuple[Action, ...]
"""Actions applied together in one step."""
Plan = tuple[Joint, ...]
"""One joint action per step; the first is what would be executed now."""
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

Noise = Literal["counter", "sequential", "none"]
Status = Literal["applied", "failed", "refused", "already_gone", "accepted_not_effective"]
Objective = Literal["latency", "cost", "carbon", "waste", "errors", "churn"]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def significant(value: float, digits: int = 9) -> float:
    """Round to significant digits, so that the last bit of a CPU's exp() is never recorded.

    >>> significant(0.1 + 0.2)
    0.3
    """
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a room may do in one step of a world.

    Attributes:
        max_actions_per_step: Most actions applied together.
        has_nop: Whether doing nothing is an action.
        plan_depth: Longest plan that the candidate set may hold.
        noise: ``counter`` (independent of actions), ``sequential`` (one generator, the seed's),
            or ``none``.
        lookahead_steps: H that suits the world, where neither scenario nor operator names one.
        samples: K that suits the world, likewise; 0 is mean noise.
    """

    max_actions_per_step: int
    has_nop: bool
    plan_depth: int
    noise: Noise
    lookahead_steps: int = 8
    samples: int = 16


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric that a world measures and projects.

    Attributes:
        name: Name with its unit as suffix, for example ``latency_ms``.
        unit: Unit for people.
        objective: Which persona objective it serves.
        title: Short title.
    """

    name: str
    unit: str
    objective: Objective
    title: str


@dataclass(frozen=True)
class Scenario:
    """A situation: which world, with which numbers.

    Attributes:
        name: Unique name, for example ``cloudedge/hard``.
        world: Name of the world that plays it.
        title: One line.
        description: A few sentences.
        horizon: Steps in an episode.
        params: Numbers and names that the world reads; JSON-plain.
        targets: Metric name → strict upper bound that counts as in target.
        tolerances: Metric name → ``(margin, scale)`` in the metric's unit: how far below its
            target a careful seat wants it, and how large a gap counts as one unit.
        masks: Seat → metric names that this seat may not see.
        resources: Column name → one value per row, for worlds with an inventory that is given
            and not generated; ``id`` is the first column. Values are str, float, int, bool or
            None (unknown).
        room: Numbers that suit the scenario, where the operator names none:
            ``lookahead_steps``, ``samples``, ``plan_steps``. No part of the digest: a trace
            says which numbers were used.
        controls: What the operator of this situation forbids: ``freeze`` (windows),
            ``blast_radius``, ``blast_share``; empty is nothing.
    """

    name: str
    world: str
    title: str
    description: str
    horizon: int
    params: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, float] = field(default_factory=dict)
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    room: Mapping[str, int] = field(default_factory=dict)
    controls: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that can change an outcome (not title and description)."""
        content = {
            "name": self.name,
            "world": self.world,
            "horizon": self.horizon,
            "params": dict(self.params),
            "targets": dict(self.targets),
            "tolerances": {name: list(pair) for name, pair in self.tolerances.items()},
            "masks": {seat: list(names) for seat, names in self.masks.items()},
            "resources": {name: list(values) for name, values in self.resources.items()},
        }
        if self.controls:  # a scenario without any keeps the digest that it always had
            content["controls"] = dict(self.controls)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What became of one action.

    Attributes:
        action: The action.
        status: What happened.
        effect: One line for people, with numbers.
        reason: Why, where it was not applied.
        delay_steps: Steps until the effect is seen.
    """

    action: Action
    status: Status
    effect: str = ""
    reason: str = ""
    delay_steps: int = 0


class Inventory:
    """A read-only columnar view of resources, as far as it was observed.

    Attributes:
        ids: Resource ids, in row order.
        columns: Column name → array with one value per row. Unknown numbers are NaN; coded
            columns are integers into `vocabulary`.
        vocabulary: Coded column name → its words.
    """

    __slots__ = ("_index", "columns", "ids", "vocabulary")

    def __init__(
        self,
        ids: Sequence[str],
        columns: Mapping[str, NDArray[Any]],
        vocabulary: Mapping[str, tuple[str, ...]] = _EMPTY,
        index: Mapping[str, int] | None = None,
    ) -> None:
        self.ids = ids
        self.columns = columns
        self.vocabulary = vocabulary
        self._index = index

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def index(self) -> Mapping[str, int]:
        """Resource id → row."""
        if self._index is None:
            self._index = {name: row for row, name in enumerate(self.ids)}
        return self._index

    def row(self, resource: str) -> dict[str, Json]:
        """One resource as JSON-plain values; unknown is None. KeyError when it is not there."""
        position = self.index[resource]
        values: dict[str, Json] = {}
        for name, column in self.columns.items():
            value = column[position].item()
            if name in self.vocabulary:
                value = self.vocabulary[name][value]
            elif isinstance(value, float):
                value = None if np.isnan(value) else significant(value)
            values[name] = value
        return values

    @property
    def digest(self) -> str:
        """SHA-256 over ids and columns."""
        digest = hashlib.sha256("\n".join(self.ids).encode())
        for name in sorted(self.columns):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.columns[name]).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Observation:
    """What a seat may know at one step. Frozen and free of hidden fields.

    Attributes:
        step: Steps done so far; 0 before the first decision.
        horizon: Steps in the episode.
        metrics: Metric name → value as measured; None where it is not known.
        targets: Metric name → strict upper bound.
        facts: Other public scalars of this world (crisis flag, last action, load word …).
        inventory: Resources, where the world has any.
        incidents: What is visibly wrong, one line each.
        outcomes: What became of the last step's actions.
        unknown: What the seat should know that it does not know.
    """

    step: int
    horizon: int
    metrics: Mapping[str, float | None]
    targets: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    inventory: Inventory | None = None
    incidents: tuple[str, ...] = ()
    outcomes: tuple[ActionOutcome, ...] = ()
    unknown: tuple[str, ...] = ()

    def masked(self, names: Sequence[str]) -> Observation:
        """The same observation without some metrics."""
        hidden = set(names)
        return Observation(
            self.step,
            self.horizon,
            {key: value for key, value in self.metrics.items() if key not in hidden},
            self.targets,
            self.facts,
            self.inventory,
            self.incidents,
            self.outcomes,
            (*self.unknown, *sorted(hidden)),
        )


class History:
    """What the room has observed and decided so far; the only input of `World.believe`.

    Append-only. ``observations[t]`` was seen before ``decisions[t]``, so there is one more
    observation than there are decisions when the room is about to decide.
    """

    __slots__ = ("decisions", "observations", "scenario")

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.observations: list[Observation] = []
        self.decisions: list[Joint] = []

    @property
    def now(self) -> Observation:
        """The latest observation."""
        return self.observations[-1]

    @property
    def previous(self) -> Observation | None:
        """The observation one step earlier, if there is one."""
        return self.observations[-2] if len(self.observations) > 1 else None


class Key(NamedTuple):
    """Address of projection noise: episode seed and step. Replicas 1… are the samples."""

    seed: int
    step: int


class Cells(NamedTuple):
    """A run of bytes that changed in one column.

    Attributes:
        column: Column name; names starting with ``h.`` are hidden from every seat.
        offset: Byte offset.
        data: New bytes (little-endian).
    """

    column: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Delta:
    """What one step changed, in the store's encoding.

    Attributes:
        metrics: Every global metric and public scalar that the store shows, new values.
        hidden: The hidden scalars, packed by the world; b"" where it has none.
        cells: Changed runs of bytes per column.
    """

    metrics: Mapping[str, float]
    hidden: bytes = b""
    cells: tuple[Cells, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One world (one row of a batch) as the store keeps it; the only encoding there is.

    Attributes:
        step: Steps done.
        metrics: Name → float, stored as 8 bytes each and never converted.
        hidden: Hidden scalars, packed by the world.
        columns: Column name → 1-D little-endian array; names starting with ``h.`` are hidden.
        ids: Resource ids in row order.
        vocabulary: Coded column name → words.
    """

    step: int
    metrics: Mapping[str, float]
    hidden: bytes = b""
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over step, metrics (9 significant digits), hidden bytes and columns."""
        digest = hashlib.sha256(str(self.step).encode())
        for name in sorted(self.metrics):
            digest.update(f"{name}={significant(self.metrics[name])!r};".encode())
        digest.update(self.hidden)
        for name in sorted(self.columns):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.columns[name]).tobytes())
        return digest.hexdigest()


class Encoded(NamedTuple):
    """Joint actions of a batch as arrays.

    Attributes:
        kinds: int32 [B, slots], index into ``World.templates``; -1 is an empty slot.
        targets: int32 [B, slots], row of the target; -1 is none.
        params: float64 [B, slots, n_params]; a choice is stored as its index.
    """

    kinds: NDArray[np.int32]
    targets: NDArray[np.int32]
    params: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What one step did to one world (B = 1).

    Attributes:
        reward: The environment's reward. Graders and training see it; personas never do.
        terms: Reward term → value; they sum to `reward`.
        actions: One outcome per action.
        events: What happened by itself (a crisis, a failure), one line each.
        success: Whether every target holds after this step.
        done: Whether the episode is over.
        stop_reason: Why, when it is over: ``horizon`` or the world's own word.
        violations: Harm that this step did, one line each.
    """

    reward: float
    terms: Mapping[str, float]
    actions: tuple[ActionOutcome, ...]
    events: tuple[str, ...] = ()
    success: bool = False
    done: bool = False
    stop_reason: str = ""
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchOutcomes:
    """What one step did to a batch: float64 and bool arrays of shape (B,)."""

    reward: NDArray[np.float64]
    success: NDArray[np.bool_]
    done: NDArray[np.bool_]


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Belief(Generic[S]):
    """K full states per world, sampled from what was observed.

    Attributes:
        states: A state of this world with batch B·K (row b·K + k is sample k of world b).
        batch: B.
        samples: K.
        mean_noise: True when one sample stands for the mean (``samples = 0`` was asked).
    """

    states: S
    batch: int
    samples: int
    mean_noise: bool


class Situation(NamedTuple):
    """What a continuation policy sees of N imagined worlds, as arrays.

    Attributes:
        metrics: float64 [N, n_metrics], in the order of ``World.metrics``.
        last: int32 [N], index of the last action's kind in ``World.templates``; -1 is none.
        crisis: bool [N].
        step: Steps done, the same for all.
        targets: float64 [n_metrics], strict upper bounds in the order of `metrics`; NaN where a
            metric has none, None where the world does not say.
    """

    metrics: NDArray[np.float64]
    last: NDArray[np.int32]
    crisis: NDArray[np.bool_]
    step: int
    targets: NDArray[np.float64] | None = None


Continuation = Callable[[Situation], NDArray[np.int32]]
"""A policy that continues imagined worlds: situation → template index per world."""


class World(ABC, Generic[S]):
    """One kind of world. Instances hold configuration and tables, never episode state.

    Attributes:
        name: For example ``cloudedge``.
        title: One line.
        limits: What a room may do in one step.
        metrics: What `project` returns on its last axis, in this order.
        templates: The kinds of action, in the order that `encode` and `Situation.last` use.
        playbook: The continuation to pass to `project` where a room names none; None is nop.
        continuations: Name → continuation, for seats that imagine another future than the room.
        errands: Kinds that look, ask or prepare and change next to nothing that `project` shows,
            with what one is worth, in units of utility, to a seat that asks for it. A room does
            them with places that are free.
    """

    name: str
    title: str
    limits: Limits
    metrics: tuple[MetricSpec, ...]
    templates: tuple[ActionTemplate, ...]
    playbook: Continuation | None = None
    continuations: Mapping[str, Continuation] = _EMPTY
    errands: Mapping[str, float] = _EMPTY

    @abstractmethod
    def reset(self, scenario: Scenario, seeds: Sequence[int]) -> S:
        """State at step 0, one world per seed."""

    @abstractmethod
    def observe(self, state: S, seat: str = "room", row: int = 0) -> Observation:
        """What a seat may know of one world."""

    @abstractmethod
    def catalogue(self, observation: Observation) -> Catalogue:
        """Every single action that the world offers now, parameters enumerated."""

    def plannable(self, observation: Observation) -> Sequence[Action]:
        """Single actions that the second step of a plan may hold; all of the catalogue by default.

        They need not be possible now. What an imagined world cannot take when its time comes
        gives way to the continuation.
        """
        return self.catalogue(observation)

    @abstractmethod
    def check(self, observation: Observation, action: Action) -> str | None:
        """Why this action cannot be taken, or None.

        The one validator: dry run, projection and execution all call it, so that a passed dry run
        is never refused for a knowable reason.
        """

    @abstractmethod
    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """What an action touches. Two actions clash if these sets meet."""

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """Harm that an executable action would do, by effect and as far as can be known.

        The world lets it happen (and grades it); a room's guardrails do not.
        """
        del observation, action
        return ()

    def mandatory(self, observation: Observation) -> Action | None:
        """An action that the room must take now, if there is one. `step` does not enforce it."""
        del observation
        return None

    def legal(self, state: S, row: int = 0) -> NDArray[np.bool_]:
        """Mask over `catalogue` of one world: which single actions `check` lets pass."""
        seen = self.observe(state, row=row)
        return np.array([self.check(seen, action) is None for action in self.catalogue(seen)])

    @abstractmethod
    def encode(self, state: S, joints: Sequence[Joint]) -> Encoded:
        """Joint actions, one per world of the batch, as arrays.

        Raises:
            InadmissibleActionError: An action is not of this world.
        """

    @abstractmethod
    def step(self, state: S, actions: Joint) -> tuple[S, Outcomes, Delta]:
        """Advance one world (B = 1). Returns a new state; the old one stays valid.

        Raises:
            InadmissibleActionError: The episode is over, or an action is not of this world. An
                action that merely cannot be taken now is an outcome ``refused``, not an error.
        """

    @abstractmethod
    def step_batch(self, state: S, actions: Encoded) -> tuple[S, BatchOutcomes]:
        """Advance every world of the batch by one step; equal to B calls of `step`, bit by bit.

        Raises:
            InadmissibleActionError: The world cannot be batched (it says why).
        """

    @abstractmethod
    def believe(self, history: History, samples: int, key: Key) -> Belief[S]:
        """Sample full states from what was observed. Never reads a true state.

        Args:
            history: Observations and decisions of one room (B = 1).
            samples: K; 0 asks for one sample with mean noise.
            key: Where projection noise is drawn (replicas 1…).
        """

    @abstractmethod
    def project(
        self,
        belief: Belief[S],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Consequences of each plan, then of the continuation policy, on common noise.

        Args:
            belief: Where to start.
            plans: Candidate plans.
            horizon: H, steps to look ahead, at least the longest plan.
            continuation: What happens after a plan; None repeats nothing (nop) where the world
                has it, and is refused where a plan is shorter than H and there is no nop.
            key: Address of the noise; sample k uses replica k + 1.

        Returns:
            float64 [B, n_plans, K, H, n_metrics].
        """

    @abstractmethod
    def columns(self, state: S, row: int = 0) -> Snapshot:
        """One world in the store's encoding."""

    @abstractmethod
    def from_columns(self, scenario: Scenario, seed: int, snapshot: Snapshot) -> S:
        """The state (B = 1) that `snapshot` was taken from."""
