"""What may be wrong: the published odds of every incident, and how evidence moves them.

An incident that an alert announces is one of a few causes at the service that the alert names or at
one that it calls; its strength is unknown. Each such hypothesis predicts factors on demand, service
time, database time, memory and errors; measurements and analyses decide between them. Incidents of
a region raise no alert: whether one runs is inferred from round trips, dollars and carbon.

Source: Bayes' rule on the odds with which a scenario draws incidents; strength is on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import incidents
from world.worlds.cloud import schema as names
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Floats

GRID = 10
"""Strengths per cause, at the middles of equal parts of 0–1."""
SEVERITIES: Floats = (np.arange(GRID) + 0.5) / GRID

GRADED = (
    names.SPIKE, names.LEAK, names.BAD_DEPLOY, names.DB_SATURATION, names.FAILURE,
    names.CORRUPTION, names.DISK_FULL,
)  # fmt: skip
"""Causes at a service whose strength shows."""
_FINER = {names.FAILURE: 30, names.CORRUPTION: 12, names.DISK_FULL: 12}
"""Strengths of causes that are told apart by their errors alone: steps of about 2 % each."""
UNGRADED = (names.RECLAIM, names.FIGHT)
"""Causes that show in the number of instances."""
HIDDEN = (names.NETWORK, names.PRICE_HIKE, names.CI_SPIKE, names.OUTAGE)
"""Causes of a region: no alert tells of them."""

SHARE: Floats = incidents._WEIGHTS / incidents._WEIGHTS.sum()
"""Share of each cause among all incidents, in the order of `schema.CAUSES`."""


@dataclass(frozen=True, slots=True)
class Variants:
    """Hypotheses on one service, the first being that nothing is wrong; arrays of length V.

    Attributes:
        cause: Code of `schema.CAUSES`; `HEALTHY` first.
        severity: 0–1.
        prior: Odds given that an incident has its root here; 0 for "nothing is wrong".
        spike: Factor on demand.
        slow: Factor on the CPU time of a request.
        db_slow: Factor on the CPU time of a database call.
        fault: Requests that fail at the root, fraction.
        corrupt: Requests that hit corrupt data, fraction.
        write_fail: Requests that fail because the disk is full, fraction.
        leak_per_h: Memory leak, fraction of memory per hour.
    """

    cause: NDArray[np.int64]
    severity: Floats
    prior: Floats
    spike: Floats
    slow: Floats
    db_slow: Floats
    fault: Floats
    corrupt: Floats
    write_fail: Floats
    leak_per_h: Floats


@cache
def variants() -> Variants:
    """The one table of hypotheses."""
    rows: list[tuple[int, float, float]] = [(names.HEALTHY, 0.0, 0.0)]
    total = sum(float(SHARE[code]) for code in (*GRADED, *UNGRADED))
    for code in GRADED:
        n = _FINER.get(code, GRID)
        rows += [(code, (at + 0.5) / n, float(SHARE[code]) / total / n) for at in range(n)]
    rows += [(code, 0.5, float(SHARE[code]) / total) for code in UNGRADED]
    cause = np.array([row[0] for row in rows])
    severity = np.array([row[1] for row in rows])
    prior = np.array([row[2] for row in rows])

    def when(code: int | tuple[int, ...], value: Floats, normal: float) -> Floats:
        chosen: Floats = np.where(np.isin(cause, code), value, normal)
        return chosen

    return Variants(
        cause=cause,
        severity=severity,
        prior=prior,
        spike=when(names.SPIKE, 1.2 + 0.5 * severity, 1.0),
        slow=when(names.BAD_DEPLOY, 1.3 + 0.5 * severity, 1.0),
        db_slow=when(names.DB_SATURATION, 1.7 + 0.8 * severity, 1.0),
        fault=when(names.FAILURE, 0.2 + 0.6 * severity, 0.0),
        corrupt=when(names.CORRUPTION, 0.05 + 0.25 * severity, 0.0),
        write_fail=when(names.DISK_FULL, 0.05 + 0.25 * severity, 0.0),
        leak_per_h=when(names.LEAK, 0.15 + 0.35 * severity, 0.0),
    )


class Suspect(NamedTuple):
    """One explanation of what is wrong.

    Attributes:
        cause: Code of `schema.CAUSES`.
        service: Root service; −1 for a region.
        onset: Step at which it began, where an alert told; −1 otherwise.
        probability: Posterior, 0–1.
    """

    cause: int
    service: int
    onset: int
    probability: float


def roots_of(settings: Settings, alerted: int) -> tuple[tuple[int, float], ...]:
    """Services at which an incident may have its root when an alert names one, with their odds."""
    caller = {callee: one for one, callee, _ in settings.calls}
    odds = {alerted: 1.0 - incidents.ALERT_ON_VICTIM if alerted in caller else 1.0}
    for callee, one in sorted(caller.items()):
        if one == alerted:
            odds[callee] = incidents.ALERT_ON_VICTIM
    total = sum(odds.values())
    return tuple((service, value / total) for service, value in odds.items())


def onset_odds(settings: Settings, step: int) -> tuple[Floats, Floats]:
    """Odds that each incident begins in a step, and that it began before it, float64 [N] each."""
    params, horizon = settings.params, settings.scenario.horizon
    which: Floats = np.arange(params.incidents, dtype=np.float64)
    first: Floats = np.zeros(len(which))
    if not params.incidents:
        return np.zeros(0), np.zeros(0)
    if params.overlapping:
        length = max(1.0, 0.8 * horizon)
    else:
        window = horizon / params.incidents
        first, length = window * which, 0.5 * window

    # The onset is 2 + floor(first + length·u).
    def by(steps: float) -> Floats:
        share: Floats = np.clip((steps - 2.0 - first) / length, 0.0, 1.0)
        return share

    return by(step + 1.0) - by(float(step)), by(float(step))


def lasts_steps(settings: Settings, cause: int) -> int:
    """Steps after which an incident of limited time ends by itself."""
    steps: int = incidents._TIMED.get(cause, incidents.NEVER)
    if not settings.params.overlapping and settings.params.incidents and steps < incidents.NEVER:
        window = settings.scenario.horizon / settings.params.incidents
        steps = min(steps, int(window * 0.5))
    return max(steps, 1)


class Spell(NamedTuple):
    """Belief in one incident of the home region: which step of it, how strong.

    Attributes:
        none: Probability that it does not run.
        running: float64 [A, G], by age in steps (from 0) and strength.
    """

    none: float
    running: Floats

    @property
    def probability(self) -> float:
        """That it runs."""
        return float(np.add.reduce(self.running.ravel()))

    @property
    def strength(self) -> Floats:
        """Probability of each strength, float64 [G]; it sums to `probability`."""
        total: Floats = np.add.reduce(np.ascontiguousarray(self.running.T), axis=-1)
        return total

    def passed(self, hazard: float) -> Spell:
        """One step later, before anything is measured."""
        moved = np.zeros_like(self.running)
        moved[1:] = self.running[:-1]
        over = float(np.add.reduce(self.running[-1]))
        moved[0] = self.none * hazard / GRID
        return Spell(self.none * (1.0 - hazard) + over, moved)

    def weighed(self, log_ratio: Floats) -> Spell:
        """After a measurement with log-likelihood ratios against "none", float64 [G]."""
        shift = max(float(log_ratio.max()), 0.0)
        running = self.running * np.exp(log_ratio - shift)
        none = self.none * float(np.exp(-shift))
        total = none + float(np.add.reduce(running.ravel()))
        return Spell(none / total, running / total)


def no_spell(settings: Settings, cause: int) -> Spell:
    """Nothing runs."""
    return Spell(1.0, np.zeros((min(lasts_steps(settings, cause), 200), GRID)))


def hazard(settings: Settings, cause: int, step: int, announced: tuple[int, ...]) -> float:
    """Odds that an incident of a region begins in a step, given what was announced before.

    Args:
        settings: The scenario.
        cause: Which.
        step: The step.
        announced: Onsets of the incidents that alerts (or the eye) told of.
    """
    share = float(SHARE[cause])
    return min(share * begins(settings, step, step, announced, share), 1.0)


def begins(
    settings: Settings, step: int, known: int, announced: tuple[int, ...], hidden: float = 0.0
) -> float:
    """Expected number of incidents that begin in a step, given those that were told of.

    An incident that was not told of has not begun, or is one that nothing tells of.

    Args:
        settings: The scenario.
        step: The step.
        known: Nothing else was told of before this step.
        announced: Onsets of the incidents that were.
        hidden: Share of incidents that are known not to have begun either, though nothing would
            have told of them.
    """
    now, _ = onset_odds(settings, step)
    _, before = onset_odds(settings, known)
    if not len(now):
        return 0.0
    told = 1.0 - float(np.add.reduce(SHARE[list(HIDDEN)])) + hidden
    each = now / np.maximum(1.0 - before * told, 1e-6)
    if settings.params.overlapping:
        left = max(settings.params.incidents - len(announced), 0)
        return left * float(each[0])
    window = settings.scenario.horizon / settings.params.incidents
    used = {int((onset - 2) / window) for onset in announced}
    return sum(float(each[which]) for which in range(len(each)) if which not in used)
