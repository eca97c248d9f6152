"""Who moved the outcome of some episodes of one room: every measure, over one or many seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.engine import map_episodes
from orchestrator.room import Room, build_room
from orchestrator.spec import EpisodeResult, EpisodeSpec
from orchestrator.study.influence.coalitions import Absent, Player, WatchedResult
from orchestrator.study.influence.conformance import CONVENTIONS, Convention, Tally
from orchestrator.study.influence.following import follow
from orchestrator.study.influence.values import (
    MOST_EXACT,
    coalitions_of,
    leave_one_out,
    orders,
    shapley,
    shapley_sampled,
)
from orchestrator.study.influence.watching import RECOMPUTED, Decisions
from orchestrator.study.intervals import estimate
from orchestrator.study.recorded import Recorded, changed
from orchestrator.trace.steps import mapping
from world.errors import ConfigError, WarRoomError
from world.model import significant

Value = Literal["reward", "score"]
VALUES: tuple[Value, ...] = ("reward", "score")

MOST_EPISODES = 100_000
MOST_SEEDS = 10_000

GATE = "the approval gate"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about the influence of seats.

    Attributes:
        absent: What an absent seat loses: proposals and ballot, or its ballot alone.
        value: What a coalition is worth: the sum of rewards, or the score.
        orders: Orders of arrival per seed, where there are too many coalitions to play all.
        lies: Whether to look for lies that gain.
        live: Whether seats that are no functions may be asked anew in coalitions.
        jobs: Processes that play coalitions.
    """

    absent: Absent = "full"
    value: Value = "reward"
    orders: int = 32
    lies: bool = True
    live: bool = False
    jobs: int = 1


class Failure(NamedTuple):
    """A run or a seed that could not be looked at.

    Attributes:
        what: Run id, or ``seed N``.
        error: Why.
    """

    what: str
    error: WarRoomError


@dataclass(frozen=True)
class Seen:
    """One episode of the full room.

    Attributes:
        name: Run id, or ``seed N``.
        seed: Episode seed.
        decisions: What was counted over its decisions.
        shapley: float64 [n_seats], in the value's unit; None where coalitions were not played.
        shapley_error: float64 [n_seats], standard errors of sampled values; None where exact.
        leave_one_out: float64 [n_seats]; None as above.
        values: Coalition, as a mask of seats, → its value.
    """

    name: str
    seed: int
    decisions: Decisions
    shapley: NDArray[np.float64] | None = None
    shapley_error: NDArray[np.float64] | None = None
    leave_one_out: NDArray[np.float64] | None = None
    values: Mapping[int, float] | None = None


@dataclass(frozen=True)
class Influence:
    """Who moved the outcome. Figures per seat are means over the episodes in `seen`.

    Attributes:
        room: The full room.
        seats: Its seats, in room order.
        question: What was asked.
        seen: One entry per episode, by seed.
        failures: What could not be looked at.
        unasked: Who is no function (seats, and a person at the gate); where they may not be asked
            anew, coalitions are not played.
    """

    room: Room
    seats: tuple[str, ...]
    question: Question
    seen: tuple[Seen, ...]
    failures: tuple[Failure, ...]
    unasked: tuple[str, ...] = ()

    @property
    def played(self) -> bool:
        """Whether coalitions were played."""
        return bool(self.seen) and all(one.values is not None for one in self.seen)

    @property
    def has_people(self) -> bool:
        """Whether a person sits in the room or at its gate."""
        return bool(self.room.people) or GATE in self.unasked

    @property
    def exact(self) -> bool:
        """Whether every coalition was."""
        return len(self.seats) <= MOST_EXACT

    @property
    def total(self) -> Decisions:
        """All decisions of all episodes."""
        found = Decisions()
        for one in self.seen:
            found.merge(one.decisions)
        return found

    def mean(self, of: Callable[[Seen], float | None]) -> dict[str, Any]:
        """Mean, standard error, interval and n of something over the episodes."""
        return estimate([value for one in self.seen if (value := of(one)) is not None])

    def of_seat(self, measure: str, row: int) -> dict[str, Any] | None:
        """Value and standard error of a measure of a seat over the episodes; None where unknown.

        Args:
            measure: ``shapley``, ``leave_one_out``, ``pivotality``, ``banzhaf`` or
                ``manipulability``.
            row: Place of the seat.
        """
        seat = self.seats[row]
        if measure in {"shapley", "leave_one_out"}:
            if not self.played:
                return None
            found = self.mean(lambda one: float(getattr(one, measure)[row]))
            return _value(found, self._sampling_error(measure, row))
        if measure == "manipulability" and not self.question.lies:
            return None
        counted: dict[str, Callable[[Decisions], float]] = {
            "pivotality": lambda d: d.pivotal[seat],
            "banzhaf": lambda d: d.banzhaf.get(seat, 0.0),
            "manipulability": lambda d: d.liars[seat],
        }
        return _value(self.mean(lambda one: _share(counted[measure], one.decisions)))

    def _sampling_error(self, measure: str, row: int) -> float | None:
        """Of one episode whose orders were sampled, the error is that of the sampling."""
        if measure != "shapley" or len(self.seen) != 1:
            return None
        errors = self.seen[0].shapley_error
        return None if errors is None or not math.isfinite(errors[row]) else float(errors[row])

    def worth(self, mask: int) -> float | None:
        """Mean value of a coalition over the episodes; None where it was not played in all."""
        if not self.played:
            return None
        found = [one.values[mask] for one in self.seen if one.values and mask in one.values]
        return significant(math.fsum(found) / len(found)) if len(found) == len(self.seen) else None

    @property
    def full(self) -> int:
        """The mask of the full room."""
        return (1 << len(self.seats)) - 1

    def members(self, mask: int) -> str:
        """A coalition in words: its seats joined by ``+``; "" is the empty room."""
        return "+".join(seat for row, seat in enumerate(self.seats) if mask >> row & 1)

    def rate(self, of: Callable[[Decisions], float]) -> dict[str, Any]:
        """Share of decisions and its standard error over the episodes."""
        return _value(self.mean(lambda one: _share(of, one.decisions)))

    def dictators(self, convention: Convention) -> dict[str, str]:
        """Seats whose way contested decisions go → ``hidden``, or ``open`` for a commander."""
        powers = {seat: spec.powers.commander for seat, spec in self.room.specs.items()}
        tallies = self.total.conformance
        return {
            seat: "open" if powers.get(seat) else "hidden"
            for seat in self.seats
            if tallies.get((seat, convention), Tally()).dictates(len(self.seats))
        }


def _share(of: Callable[[Decisions], float], decisions: Decisions) -> float | None:
    return of(decisions) / decisions.decisions if decisions.decisions else None


def _value(found: dict[str, Any], instead: float | None = None) -> dict[str, Any]:
    error = found["se"] if found["se"] is not None else instead
    return {"value": found["mean"], "se": None if error is None else significant(error)}


def influence_of_runs(
    runs: Iterable[Recorded | Failure],
    question: Question,
    progress: Callable[[int, int], None] | None = None,
) -> Influence:
    """Who moved the outcome of recorded runs of one room, each on its own seed.

    A run that cannot be read, is of another room than the first, or repeats a seed is a failure
    of its own; the others are looked at all the same.

    Args:
        runs: The runs, or why one cannot be read.
        question: What is asked.
        progress: Told how many episodes are done, and of how many.

    Raises:
        WarRoomError: None of them can be looked at; the first one's reason.
    """
    failures: list[Failure] = []
    usable: dict[int, tuple[Recorded, Decisions]] = {}
    first: Recorded | None = None
    for run in runs:
        if isinstance(run, Failure):
            failures.append(run)
            continue
        try:
            run.require_complete()
            _check_whole(run)
            _check_same(run, first)
            seed = run.spec.seed
            if seed in usable:
                raise _repeated(run, usable[seed][0])
            usable[seed] = (run, follow(run, question.lies))
            first = first or run
        except WarRoomError as error:
            failures.append(Failure(run.run, error))
    if first is None:
        raise failures[0].error if failures else _nothing()
    specs = {
        seed: run.rerun_spec(record="", playback="") for seed, (run, _) in sorted(usable.items())
    }
    totals = {seed: _recorded_value(run, question.value) for seed, (run, _) in usable.items()}
    counted = {seed: (run.run, found) for seed, (run, found) in usable.items()}
    return _account(specs, question, progress, failures, counted, totals)


def influence_over_seeds(
    spec: EpisodeSpec,
    seeds: Sequence[int],
    question: Question,
    progress: Callable[[int, int], None] | None = None,
) -> Influence:
    """Who moves the outcome of a room over many seeds; every episode is played anew.

    Args:
        spec: The room; its seed, store and folder do not matter.
        seeds: The seeds.
        question: What is asked.
        progress: Told how many episodes are done, and of how many.

    Raises:
        ConfigError: A seat is no function and may not be asked anew; or there are too many seeds.
        WarRoomError: No seed can be looked at; the first one's reason.
    """
    if len(seeds) > MOST_SEEDS:
        raise ConfigError(
            f"that is {len(seeds):,} seeds", f"the most is {MOST_SEEDS:,}", "Ask fewer"
        )
    specs = {
        seed: changed(
            spec, seed=seed, driver="loop", store="inprocess", checkpointer="none", out="",
            record="", playback="",
        )
        for seed in seeds
    }  # fmt: skip
    if not specs:
        raise _nothing()
    return _account(specs, question, progress, [], {}, {})


def _account(
    specs: Mapping[int, EpisodeSpec],
    question: Question,
    progress: Callable[[int, int], None] | None,
    failures: list[Failure],
    counted: Mapping[int, tuple[str, Decisions]],
    totals: Mapping[int, float],
) -> Influence:
    """Play what is to be played, and put it together."""
    any_spec = next(iter(specs.values()))
    room = build_room(any_spec, speaks=False)
    seats = tuple(room.specs)
    unasked = tuple(s for s, p in room.specs.items() if p.backend.kind not in RECOMPUTED)
    plays = not unasked or (question.live and not room.people)
    if any_spec.approve != "none":
        unasked, plays = (*unasked, GATE), False
    if not plays and not counted:
        raise _not_asked(unasked)
    found = Influence(room, seats, question, (), (), unasked)
    wanted = {seed: _coalitions(len(seats), seed, question) for seed in specs} if plays else {}
    values = {seed: {found.full: worth} for seed, worth in totals.items()}
    decisions = dict(counted)
    errors: dict[int, WarRoomError] = {}
    cells = [
        (seed, mask)
        for seed, masks in wanted.items()
        for mask in sorted(masks, reverse=True)
        if mask not in values.get(seed, {})
    ]
    if len(cells) > MOST_EPISODES:
        raise ConfigError(
            f"that is {len(cells):,} episodes", f"the most is {MOST_EPISODES:,}", "Ask fewer seeds"
        )
    for place, (seed, mask, outcome) in enumerate(_play(cells, specs, seats, question), 1):
        if progress is not None:
            progress(place, len(cells))
        if isinstance(outcome, WarRoomError):
            errors.setdefault(seed, outcome)
            continue
        values.setdefault(seed, {})[mask] = _value_of(outcome, question.value)
        if isinstance(outcome, WatchedResult):
            decisions[seed] = (f"seed {seed}", outcome.decisions)
    failures += [Failure(f"seed {seed}", error) for seed, error in sorted(errors.items())]
    seen = tuple(
        _seen(*decisions[seed], seed, values.get(seed, {}) if plays else None, len(seats), question)
        for seed in specs
        if seed not in errors and seed in decisions
    )
    if not seen:
        raise failures[0].error if failures else _nothing()
    return Influence(room, seats, question, seen, tuple(failures), unasked)


def _coalitions(n: int, seed: int, question: Question) -> frozenset[int]:
    """Masks of the coalitions to be played."""
    if n <= MOST_EXACT:
        return frozenset(range(1 << n))
    full = (1 << n) - 1
    without_one = {full & ~(1 << row) for row in range(n)}
    return coalitions_of(orders(n, question.orders, seed)) | without_one


def _play(
    cells: Sequence[tuple[int, int]],
    specs: Mapping[int, EpisodeSpec],
    seats: tuple[str, ...],
    question: Question,
) -> Iterator[tuple[int, int, EpisodeResult | WarRoomError]]:
    if not cells:
        return
    outside = next(iter(specs.values())).absent
    player = Player(question.absent, outside, True, question.lies)
    played = [
        specs[seed].model_copy(
            update={"absent": (*outside, *(s for r, s in enumerate(seats) if not mask >> r & 1))}
        )
        for seed, mask in cells
    ]
    for place, outcome in map_episodes(played, question.jobs, partial(_call, player)):
        yield (*cells[place], outcome)


def _call(player: Player, spec: EpisodeSpec) -> EpisodeResult:
    return player(spec)


def _seen(
    name: str,
    decisions: Decisions,
    seed: int,
    values: Mapping[int, float] | None,
    n: int,
    question: Question,
) -> Seen:
    if values is None:
        return Seen(name, seed, decisions)
    full = (1 << n) - 1
    lost = np.array([values[full] - values[full & ~(1 << row)] for row in range(n)])
    if n <= MOST_EXACT:
        game = np.array([values[mask] for mask in range(1 << n)])
        return Seen(name, seed, decisions, shapley(game), None, leave_one_out(game), values)
    sampled = shapley_sampled(values.__getitem__, n, orders(n, question.orders, seed))
    return Seen(name, seed, decisions, sampled.values, sampled.errors, lost, values)


def _value_of(result: EpisodeResult, value: Value) -> float:
    return result.reward_total if value == "reward" else result.score


def _recorded_value(run: Recorded, value: Value) -> float:
    if value == "score":
        return significant(float(run.scorecard.get("total", 0.0)))
    return significant(sum(run.rewards))


def _check_same(run: Recorded, first: Recorded | None) -> None:
    """Refuse a run of another room than the first one's.

    Raises:
        ConfigError: Names what differs.
    """
    if first is None:
        return
    parts = ("scenario", "seats", "protocol", "room", "horizon", "counterfactual")
    for part in parts:
        if run.header.data.get(part) != first.header.data.get(part):
            raise ConfigError(
                f"run {run.run} differs from run {first.run} in its {part}",
                "means over episodes are taken of one room only",
                f"Look at it on its own: run_warroom.py influence {run.run}",
            )


def _check_whole(run: Recorded) -> None:
    """Refuse a run that was not one room's from its first step to its last.

    Raises:
        ConfigError: It is a fork that changed later, or only one ballot of it was changed.
    """
    origin = mapping(run.header.data.get("counterfactual"))
    kind = mapping(origin.get("change")).get("kind")
    if origin and (origin.get("from_step") != 1 or kind in {"ballot", "live"}):
        raise ConfigError(
            f"run {run.run} is a fork of another run",
            "its coalitions would have to be forks as well",
            "Look at the run that it was forked from, or start one: run_warroom.py run",
        )


def _repeated(run: Recorded, other: Recorded) -> ConfigError:
    return ConfigError(
        f"run {run.run} has the seed of run {other.run}",
        "an episode that counts twice makes the error look smaller than it is",
        "Leave one of them out",
    )


def _nothing() -> ConfigError:
    return ConfigError(
        "there is nothing to look at", "no run and no seed was named", "Name a run, or `last`"
    )


def _not_asked(seats: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        f"{', '.join(seats)} cannot simply be asked again",
        "a model, a person or another process answers there, and other seeds ask other things",
        "Models and processes: add --live. People: name recorded runs, without --seeds",
    )


def document(found: Influence) -> dict[str, Any]:
    """The document of ``influence --json``; numbers at nine significant digits."""
    total = found.total
    question = found.question
    measures = ("shapley", "leave_one_out", "pivotality", "banzhaf", "manipulability")
    tables: dict[str, Any] = {}
    for measure in measures:
        cells = {seat: found.of_seat(measure, row) for row, seat in enumerate(found.seats)}
        tables[measure] = None if None in cells.values() else cells
    exact = found.exact and found.played
    return {
        "scenario": found.room.scenario.name,
        "protocol": found.room.protocol.name,
        "personas": {seat: spec.id for seat, spec in found.room.specs.items()},
        "runs": [one.name for one in found.seen],
        "seeds": [one.seed for one in found.seen],
        "absent": question.absent,
        "value": question.value,
        "noise": found.room.world.limits.noise,
        "method": "not played" if not found.played else "exact" if exact else "sampled",
        **tables,
        "v_all": found.worth(found.full),
        "v_none": found.worth(0),
        "coalitions": (
            {found.members(mask): found.worth(mask) for mask in range(found.full + 1)}
            if exact
            else None
        ),
        "decisions": total.decisions,
        "mandatory": total.mandatory,
        "manipulable": found.rate(lambda d: d.manipulable) if question.lies else None,
        "overrides": {
            "rate": found.rate(lambda d: sum(d.overridden.values())),
            "by_rule": _by_rule(total.overridden, total.decisions),
        },
        "cascade": {
            "share": found.rate(lambda d: sum(d.decided_by.values())),
            "by_rule": _by_rule(total.decided_by, total.decisions),
        },
        "conformance": {c: _conformance(found, c) for c in CONVENTIONS},
        "stand_ins": total.stand_ins,
        "not_asked": list(found.unasked),
        "errors": [{"run": f.what, **f.error.as_dict()} for f in found.failures],
    }


def _by_rule(counts: Mapping[str, int], decisions: int) -> dict[str, float]:
    return {rule: significant(n / decisions) for rule, n in sorted(counts.items())}


def _conformance(found: Influence, convention: Convention) -> dict[str, Any]:
    alarms = found.dictators(convention)
    tallies = found.total.conformance
    rows: dict[str, Any] = {}
    for seat in found.seats:
        tally = tallies.get((seat, convention), Tally())

        def excess(one: Seen, key: tuple[str, Convention] = (seat, convention)) -> float | None:
            mine = one.decisions.conformance.get(key, Tally())
            return mine.excess if mine.proposed else None

        rows[seat] = {
            "share": significant(tally.share),
            "random_ballot": significant(tally.expected),
            "excess": significant(tally.excess),
            "se": found.mean(excess)["se"],
            "proposed": tally.proposed,
            "contested": tally.contested,
            "alone": significant(tally.alone_share),
            "chance": significant(tally.tail()) if tally.proposed else None,
            "dictator": alarms.get(seat, ""),
        }
    return rows
