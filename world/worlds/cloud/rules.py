"""The one validator: why an action cannot be taken, from what every seat can see.

Dry run, projection and execution all ask `refusals`. It works on many actions of one kind at once
and reads visible columns only, so that a passed dry run is never refused for a knowable reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import menu
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats
from world.worlds.cloud.tables import machines

COOLDOWN_STEPS = 6
"""Steps between two scale-downs of one row. Source: half an hour, as cluster autoscalers do."""
MIN_AGE_HOURS = 24.0
"""Younger resources are not removed. Source: the usual default of clean-up tools."""
RESERVED_SHARE = 0.2
"""Largest share of a pool's instances reserved in one episode."""
ISOLATE_ABOVE = 0.6
"""Suspicion from which isolation is allowed."""
DIAGNOSED_ABOVE = 0.5
"""Belief in one cause from which a crisis response acts."""


class Refusal(IntEnum):
    """Why not."""

    NONE = 0
    GONE = 1
    NOT_A_QUEUE = 2
    NOT_RUNNING = 3
    QUOTA = 4
    PENDING = 5
    COOLDOWN = 6
    LAST = 7
    TWO_STEPS = 8
    NO_SUCH_SIZE = 9
    SAME = 10
    BUSY = 11
    PROTECTED = 12
    DEPENDANTS = 13
    AGE = 14
    TAGS = 15
    MANAGED = 16
    IN_USE = 17
    USE_UNKNOWN = 18
    NOT_MARKED = 19
    GRACE = 20
    TIER = 21
    WRONG_KIND = 22
    NOT_ATTACHED = 23
    EVIDENCE = 24
    CAP = 25
    ONE_POOL = 26
    KNOWN = 27
    NO_DIAGNOSIS = 28
    REGION = 29
    CLASH = 30
    MEMORY = 31
    ALL_ZERO = 32
    RESERVED = 33
    OTHER_SIZE = 34
    RESIDENCY = 35


TEXTS: Mapping[Refusal, str] = {
    Refusal.GONE: "it is gone",
    Refusal.NOT_A_QUEUE: "only pools and databases of services have a number of instances",
    Refusal.NOT_RUNNING: "it does not run",
    Refusal.QUOTA: "the provider's quota for this row would be passed",
    Refusal.PENDING: "instances are still pending or draining here",
    Refusal.COOLDOWN: f"the last scale-down here was less than {COOLDOWN_STEPS} steps ago",
    Refusal.LAST: "it is the last instance of its service",
    Refusal.TWO_STEPS: "the way to zero takes two actions: set the pool's weight to 0 first",
    Refusal.NO_SUCH_SIZE: "that size is not on the ladder of its present size",
    Refusal.SAME: "it is so already",
    Refusal.BUSY: "an earlier change is still under way here",
    Refusal.PROTECTED: "it is protected",
    Refusal.DEPENDANTS: "another live resource needs it",
    Refusal.AGE: f"its age is unknown or below {MIN_AGE_HOURS:g} h",
    Refusal.TAGS: "its tags could not be read; flag_for_owner asks",
    Refusal.MANAGED: "owner conflict: an autoscaler or infrastructure code manages it",
    Refusal.IN_USE: f"it was used within the last {IDLE_WINDOW_HOURS:g} h",
    Refusal.USE_UNKNOWN: "nobody knows when it was last used; request_metrics asks",
    Refusal.NOT_MARKED: "it must be marked first",
    Refusal.GRACE: "its grace period has not passed",
    Refusal.TIER: "it serves a service: scale, rebalance or migrate that instead",
    Refusal.WRONG_KIND: "this kind of resource cannot do that",
    Refusal.NOT_ATTACHED: "it hangs on nothing",
    Refusal.EVIDENCE: f"suspicion is not above {ISOLATE_ABOVE:g}; evaluate examines it",
    Refusal.CAP: f"at most {RESERVED_SHARE:.0%} of a pool can be reserved in one episode",
    Refusal.ONE_POOL: "its service runs in one pool only",
    Refusal.KNOWN: "it is known already, or was asked",
    Refusal.NO_DIAGNOSIS: f"no cause is believed above {DIAGNOSED_ABOVE:.0%}; analyse first",
    Refusal.REGION: "that is not a region of this world, or the service is there already",
    Refusal.CLASH: "another action of this step touches the same",
    Refusal.MEMORY: "the working set does not fit the new size",
    Refusal.RESERVED: "instances here are reserved for their size",
    Refusal.OTHER_SIZE: "the service's pool there has another machine size: resize one first",
    Refusal.RESIDENCY: "its personal data may not leave the jurisdiction of the home region",
    Refusal.ALL_ZERO: "no pool of the service would get traffic",
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Actions laid over columns: action i reads world `world[i]`.

    Attributes:
        settings: The layout.
        columns: Visible columns, [B, n].
        step: Steps done.
        world: int [N], row of the batch.
        target: int [N], resource row, or service where the kind is aimed at one.
        params: float64 [N, 3].
    """

    settings: Settings
    columns: Mapping[str, Array]
    step: int
    world: NDArray[np.intp]
    target: NDArray[np.intp]
    params: Floats

    def row(self, name: str) -> Array:
        """A resource column at the targets, [N]."""
        column = self.columns[name]
        if len(column) == 1:  # one world: a plain gather is twice as quick
            single: Array = column[0][self.target]
            return single
        value: Array = column[self.world, self.target]
        return value

    def service(self, name: str, service: NDArray[np.intp] | None = None) -> Array:
        """A service column, [N]; by default of the service that is the target."""
        value: Array = self.columns[name][
            self.world, self.target if service is None else np.maximum(service, 0)
        ]
        return value

    def pools(self, name: str, service: NDArray[np.intp]) -> Array:
        """A resource column over a service's pools, [N, G]."""
        rows = service[:, None] * self.settings.regions + np.arange(self.settings.regions)
        value: Array = self.columns[name][self.world[:, None], rows]
        return value

    def at(self, take: Array) -> Sheet:
        """Some of the actions."""
        return Sheet(
            self.settings, self.columns, self.step, self.world[take], self.target[take],
            self.params[take],
        )  # fmt: skip


class _Verdict:
    """Refusal codes of N actions; the first reason stands."""

    def __init__(self, n: int) -> None:
        self.codes = np.zeros(n, dtype=np.int8)

    def deny(self, mask: Array, code: Refusal) -> None:
        self.codes[mask & (self.codes == 0)] = code


def changed_count(count: Floats, fraction: Floats) -> Floats:
    """Instances that a fraction means: at least one, rounded down."""
    value: Floats = np.maximum(np.floor(count * fraction + 1e-9), 1.0)
    return value


def refusals(kind: int, sheet: Sheet) -> NDArray[np.int8]:
    """Why each of N actions of one kind cannot be taken, int8 [N]; 0 is fine."""
    verdict = _Verdict(len(sheet.target))
    if kind in _ROW_KINDS:
        verdict.deny(sheet.row("state") == names.TERMINATED, Refusal.GONE)
    check = _CHECKS.get(kind)
    if check is not None:
        check(sheet, verdict)
    return verdict.codes


def _queue(sheet: Sheet, verdict: _Verdict) -> Array:
    queue: Array = sheet.target < sheet.settings.queues
    verdict.deny(~queue, Refusal.NOT_A_QUEUE)
    return queue


def _ordered(sheet: Sheet) -> Array:
    total: Array = sheet.row("pending_1") + sheet.row("pending_2") + sheet.row("pending_3")
    return total


def _scale_up(sheet: Sheet, verdict: _Verdict) -> None:
    _queue(sheet, verdict)
    count = sheet.row("count")
    verdict.deny(count <= 0, Refusal.NOT_RUNNING)
    more = changed_count(count, sheet.params[:, 0])
    vcpu = _vcpu(sheet, sheet.row("size"))
    over = (count + _ordered(sheet) + more) * vcpu > sheet.row("quota_vcpu")
    verdict.deny(over, Refusal.QUOTA)
    verdict.deny(sheet.row("resize_wait_steps") > 0, Refusal.BUSY)


def _vcpu(sheet: Sheet, size: Array) -> Floats:
    vcpu: Floats = machines(sheet.settings.params.power_model).vcpu[size]
    return vcpu


def _scale_down(sheet: Sheet, verdict: _Verdict) -> None:
    _queue(sheet, verdict)
    count = sheet.row("count")
    verdict.deny(count <= 0, Refusal.NOT_RUNNING)
    verdict.deny((_ordered(sheet) > 0) | (sheet.row("draining") > 0), Refusal.PENDING)
    verdict.deny(sheet.step - sheet.row("down_at_step") < COOLDOWN_STEPS, Refusal.COOLDOWN)
    left = count - changed_count(count, sheet.params[:, 0])
    service = sheet.row("service").astype(np.intp)
    pool = sheet.target < sheet.settings.pools
    others = np.add.reduce(sheet.pools("count", np.maximum(service, 0)), axis=-1) - count
    verdict.deny((left <= 0) & (~pool | (others <= 0)), Refusal.LAST)
    verdict.deny((left <= 0) & (sheet.row("weight") > 0), Refusal.TWO_STEPS)
    verdict.deny(sheet.row("resize_wait_steps") > 0, Refusal.BUSY)


def _resize(sheet: Sheet, verdict: _Verdict) -> None:
    table = machines(sheet.settings.params.power_model)
    size, new = sheet.row("size"), sheet.params[:, 0].astype(np.intp)
    verdict.deny(size <= 0, Refusal.WRONG_KIND)
    known = (new > 0) & (new < len(table.names))
    new = np.where(known, new, 0)
    ladder = table.ladder[size]
    verdict.deny(~known | (ladder < 0) | (table.ladder[new] != ladder), Refusal.NO_SUCH_SIZE)
    verdict.deny(size == new, Refusal.SAME)
    verdict.deny(sheet.row("resize_wait_steps") > 0, Refusal.BUSY)
    queue = sheet.target < sheet.settings.queues
    moving = sheet.service("s.move_to", sheet.row("service").astype(np.intp)) >= 0
    verdict.deny(queue & moving, Refusal.BUSY)
    verdict.deny(sheet.row("reserved") + sheet.row("reserve_ordered") > 0, Refusal.RESERVED)
    verdict.deny(queue & (sheet.row("count") <= 0), Refusal.NOT_RUNNING)
    more = sheet.row("count") * table.vcpu[new] > sheet.row("quota_vcpu")
    verdict.deny(queue & more & (table.vcpu[new] > table.vcpu[size]), Refusal.QUOTA)
    verdict.deny((_ordered(sheet) > 0) | (sheet.row("draining") > 0), Refusal.PENDING)
    _other_hands(sheet, verdict)
    with np.errstate(invalid="ignore", divide="ignore"):
        used = sheet.row("memory_percent") * table.memory_gib[size]
        full = used > 100.0 * table.memory_gib[new]
    verdict.deny(full, Refusal.MEMORY)


def _other_hands(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.row("protected") > 0, Refusal.PROTECTED)
    verdict.deny(sheet.row("managed_by") > 0, Refusal.MANAGED)


def _removal(sheet: Sheet, verdict: _Verdict) -> None:
    """What every way of taking a resource away asks for."""
    verdict.deny(sheet.target < sheet.settings.tiers, Refusal.TIER)
    _other_hands(sheet, verdict)
    needed = sheet.row("needed_by").astype(np.intp)
    live = sheet.columns["state"][sheet.world, np.maximum(needed, 0)]
    verdict.deny((needed >= 0) & (live != names.TERMINATED), Refusal.DEPENDANTS)
    verdict.deny(sheet.row("tag_status") > 0, Refusal.TAGS)


def _unused(sheet: Sheet, verdict: _Verdict) -> None:
    """Old enough and unused over the window, as far as anybody knows; suspects are exempt."""
    with np.errstate(invalid="ignore"):
        age = sheet.row("age_hours") >= MIN_AGE_HOURS
        idle = sheet.row("idle_hours")
        used = idle < IDLE_WINDOW_HOURS
    suspect = sheet.row("suspicion") > ISOLATE_ABOVE
    verdict.deny(~age, Refusal.AGE)
    verdict.deny(np.isnan(idle) & ~suspect, Refusal.USE_UNKNOWN)
    verdict.deny(used & ~suspect, Refusal.IN_USE)


def _graced(sheet: Sheet, verdict: _Verdict) -> None:
    grace = sheet.settings.params.grace_steps
    if grace:
        marked = sheet.row("marked_at_step")
        suspect = sheet.row("suspicion") > ISOLATE_ABOVE
        verdict.deny((marked < 0) & ~suspect, Refusal.NOT_MARKED)
        verdict.deny((sheet.step - marked < grace) & ~suspect, Refusal.GRACE)


def _terminate(sheet: Sheet, verdict: _Verdict) -> None:
    _removal(sheet, verdict)
    _unused(sheet, verdict)
    _graced(sheet, verdict)


def _stop(sheet: Sheet, verdict: _Verdict) -> None:
    machine = np.isin(sheet.row("kind"), (names.COMPUTE, names.DB, names.GPU))
    verdict.deny(~machine, Refusal.WRONG_KIND)
    _removal(sheet, verdict)
    verdict.deny(sheet.row("state") != names.RUNNING, Refusal.NOT_RUNNING)
    _unused(sheet, verdict)


def _start(sheet: Sheet, verdict: _Verdict) -> None:
    stopped = np.isin(sheet.row("state"), (names.STOPPED, names.ISOLATED))
    verdict.deny(~stopped, Refusal.SAME)


def _snapshot(sheet: Sheet, verdict: _Verdict) -> None:
    stored = np.isin(sheet.row("kind"), (names.COMPUTE, names.DB, names.VOLUME, names.GPU))
    verdict.deny(~stored, Refusal.WRONG_KIND)
    verdict.deny(sheet.row("snapshot_taken") > 0, Refusal.SAME)


def _detach(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.row("kind") != names.VOLUME, Refusal.WRONG_KIND)
    verdict.deny(sheet.row("attached_to") < 0, Refusal.NOT_ATTACHED)
    verdict.deny(sheet.row("state") == names.DETACHED, Refusal.SAME)
    _removal(sheet, verdict)


def _attach(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.row("kind") != names.VOLUME, Refusal.WRONG_KIND)
    verdict.deny(sheet.row("state") != names.DETACHED, Refusal.SAME)


def _mark(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.target < sheet.settings.tiers, Refusal.TIER)
    verdict.deny(sheet.row("protected") > 0, Refusal.PROTECTED)
    verdict.deny(sheet.row("marked_at_step") >= 0, Refusal.SAME)


def _unmark(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.row("marked_at_step") < 0, Refusal.SAME)


def _isolate(sheet: Sheet, verdict: _Verdict) -> None:
    database = (sheet.target >= sheet.settings.pools) & (sheet.target < sheet.settings.queues)
    machine = (sheet.target >= sheet.settings.tiers) & np.isin(
        sheet.row("kind"), (names.COMPUTE, names.GPU, names.DB)
    )
    verdict.deny(~database & ~machine, Refusal.WRONG_KIND)
    verdict.deny(sheet.row("protected") > 0, Refusal.PROTECTED)
    verdict.deny(sheet.row("state") != names.RUNNING, Refusal.NOT_RUNNING)
    service = sheet.row("service").astype(np.intp)
    away = sheet.service("s.db_isolated", service) > 0
    verdict.deny(database & away, Refusal.SAME)
    verdict.deny(database & (sheet.row("count") <= 1), Refusal.LAST)
    verdict.deny(sheet.row("suspicion") <= ISOLATE_ABOVE, Refusal.EVIDENCE)


def _database(sheet: Sheet, verdict: _Verdict) -> NDArray[np.intp]:
    tier = (sheet.target >= sheet.settings.pools) & (sheet.target < sheet.settings.queues)
    verdict.deny(~tier, Refusal.WRONG_KIND)
    return sheet.row("service").astype(np.intp)


def _restore(sheet: Sheet, verdict: _Verdict) -> None:
    service = _database(sheet, verdict)
    verdict.deny(sheet.service("s.restore_wait_steps", service) > 0, Refusal.BUSY)
    verdict.deny(sheet.row("suspicion") <= ISOLATE_ABOVE, Refusal.EVIDENCE)


def _free_disk(sheet: Sheet, verdict: _Verdict) -> None:
    service = _database(sheet, verdict)
    verdict.deny(sheet.service("s.clean_wait_steps", service) > 0, Refusal.BUSY)


def _failover(sheet: Sheet, verdict: _Verdict) -> None:
    service = _database(sheet, verdict)
    verdict.deny(sheet.service("s.failover_steps", service) > 1, Refusal.BUSY)


def _restart(sheet: Sheet, verdict: _Verdict) -> None:
    pools: Floats = np.add.reduce(sheet.pools("count", sheet.target), axis=-1)
    verdict.deny(pools <= 0, Refusal.NOT_RUNNING)
    # What was restarted in the last step is back in this one.
    busy: Array = np.any(sheet.pools("restart_wait_steps", sheet.target) > 1, axis=-1)
    verdict.deny(busy, Refusal.BUSY)


def _rollback(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.service("s.rollback_wait_steps") > 0, Refusal.BUSY)


def _rebalance(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.target >= sheet.settings.pools, Refusal.NOT_A_QUEUE)
    service = np.maximum(sheet.row("service"), 0).astype(np.intp)
    count, weight = sheet.pools("count", service), sheet.pools("weight", service)
    used: Floats = np.add.reduce(count > 0, axis=-1)
    verdict.deny(used < 2, Refusal.ONE_POOL)
    verdict.deny(sheet.row("count") <= 0, Refusal.NOT_RUNNING)
    verdict.deny(sheet.row("weight") == sheet.params[:, 0], Refusal.SAME)
    others = np.add.reduce(weight * (count > 0), axis=-1) - sheet.row("weight")
    verdict.deny((sheet.params[:, 0] <= 0) & (others <= 1e-12), Refusal.ALL_ZERO)


def _energy(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.service("s.eco_level") == sheet.params[:, 0], Refusal.SAME)


def move_source(sheet: Sheet) -> NDArray[np.intp]:
    """Region slot that a migration leaves: that with the most instances, the target apart."""
    count = sheet.pools("count", sheet.target).copy()
    target = sheet.params[:, 0].astype(np.intp)
    inside = np.clip(target, 0, sheet.settings.regions - 1)
    count[np.arange(len(target)), inside] = -1.0
    source: NDArray[np.intp] = np.argmax(count, axis=-1)
    return source


def _migrate(sheet: Sheet, verdict: _Verdict) -> None:
    target = sheet.params[:, 0].astype(np.intp)
    inside = (target >= 0) & (target < sheet.settings.regions)
    verdict.deny(~inside, Refusal.REGION)
    slot = np.where(inside, target, 0)
    region = sheet.columns["g.region"][sheet.world, slot].astype(np.intp)
    verdict.deny(~sheet.settings.allowed[sheet.target, region], Refusal.RESIDENCY)
    verdict.deny(sheet.service("s.move_to") >= 0, Refusal.BUSY)
    pick = np.arange(len(slot))
    source = move_source(sheet)
    count = sheet.pools("count", sheet.target)
    leaving = count[pick, source]
    verdict.deny(leaving <= 0, Refusal.REGION)
    moving = np.maximum(np.floor(leaving * sheet.params[:, 1] + 1e-9), 1.0)
    sizes = sheet.pools("size", sheet.target)
    vcpu = _vcpu(sheet, sizes[pick, source])
    quota = sheet.pools("quota_vcpu", sheet.target)[pick, slot]
    verdict.deny((count[pick, slot] + moving) * vcpu > quota, Refusal.QUOTA)
    busy = sheet.pools("resize_wait_steps", sheet.target)
    verdict.deny((busy[pick, source] > 0) | (busy[pick, slot] > 0), Refusal.BUSY)
    held = count[pick, slot]
    for name in ("pending_1", "pending_2", "pending_3", "reserved", "reserve_ordered"):
        held = held + sheet.pools(name, sheet.target)[pick, slot]
    other = sizes[pick, slot] != sizes[pick, source]
    verdict.deny((held > 0) & other, Refusal.OTHER_SIZE)


def _reserve(sheet: Sheet, verdict: _Verdict) -> None:
    _queue(sheet, verdict)
    count = sheet.row("count")
    more = changed_count(count, sheet.params[:, 0])
    verdict.deny(sheet.row("state") != names.RUNNING, Refusal.NOT_RUNNING)
    verdict.deny(
        sheet.row("reserved") + sheet.row("reserve_ordered") + more
        > np.maximum(np.floor(RESERVED_SHARE * count + 1e-9), 1.0),
        Refusal.CAP,
    )


def _autoscale(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.service("s.autoscale") == sheet.params[:, 0], Refusal.SAME)


def _evaluate(sheet: Sheet, verdict: _Verdict) -> None:
    tier = (sheet.target >= sheet.settings.pools) & (sheet.target < sheet.settings.queues)
    machine = np.isin(sheet.row("kind"), names.EXAMINED_KINDS)
    extra = sheet.target >= sheet.settings.tiers
    verdict.deny(~(tier | (machine & extra)), Refusal.WRONG_KIND)


def _request(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.target < sheet.settings.tiers, Refusal.TIER)
    known = ~np.isnan(sheet.row("idle_hours"))
    verdict.deny(known | (sheet.row("metrics_wait_steps") > 0), Refusal.KNOWN)


def _flag(sheet: Sheet, verdict: _Verdict) -> None:
    verdict.deny(sheet.target < sheet.settings.tiers, Refusal.TIER)
    known = (sheet.row("essential") != names.UNKNOWN) & (sheet.row("tag_status") == 0)
    verdict.deny(known | (sheet.row("owner_wait_steps") > 0), Refusal.KNOWN)


def diagnosis(sheet: Sheet) -> tuple[NDArray[np.intp], Floats]:
    """The likeliest cause of each target service and how far it is believed, 0–1.

    The posterior of the analyses so far under equal odds of every cause and of none.
    """
    n = len(names.CAUSES) + 1
    evidence = sheet.columns[names.EVIDENCE_COLUMN][
        sheet.world[:, None], sheet.target[:, None] * n + np.arange(n)
    ]
    weight = np.exp(evidence - evidence.max(axis=-1, keepdims=True))
    belief = weight / np.add.reduce(weight, axis=-1)[:, None]
    cause = np.argmax(belief, axis=-1)
    return cause, belief[np.arange(len(cause)), cause]


def _crisis(sheet: Sheet, verdict: _Verdict) -> None:
    cause, belief = diagnosis(sheet)
    verdict.deny((belief <= DIAGNOSED_ABOVE) | (cause == names.HEALTHY), Refusal.NO_DIAGNOSIS)
    kinds, parts = crisis_parts(sheet, cause)
    for kind in np.unique(kinds):
        at = np.flatnonzero(kinds == kind)
        codes = refusals(int(kind), parts.at(at))
        verdict.codes[at] = np.where(verdict.codes[at] == 0, codes, verdict.codes[at])


_REMEDY = np.full(len(names.CAUSES) + 1, menu.SCALE_UP)
for _cause, _kind in (
    (names.LEAK, menu.ROLLBACK), (names.BAD_DEPLOY, menu.ROLLBACK),
    (names.FAILURE, menu.RESTART), (names.CORRUPTION, menu.RESTORE),
    (names.DISK_FULL, menu.FREE_DISK), (names.FIGHT, menu.AUTOSCALE),
    (names.BLIND, menu.DETECT), (names.BREACH, menu.DETECT),
):  # fmt: skip
    _REMEDY[_cause] = _kind
CRISIS_FRACTION = 0.25
"""Capacity that a crisis response orders where it orders any."""


def crisis_parts(sheet: Sheet, cause: NDArray[np.intp]) -> tuple[NDArray[np.int64], Sheet]:
    """The action that each crisis response stands for: kinds [N] and the sheet of its targets.

    Scaling goes to the database where that is the suspect, else to the largest pool.
    """
    settings = sheet.settings
    kinds = _REMEDY[cause]
    largest = np.argmax(sheet.pools("count", sheet.target), axis=-1)
    pool = sheet.target * settings.regions + largest
    database = settings.pools + sheet.target
    scaled = np.where(cause == names.DB_SATURATION, database, pool)
    target = np.where(kinds == menu.SCALE_UP, scaled, sheet.target)
    target = np.where((kinds == menu.RESTORE) | (kinds == menu.FREE_DISK), database, target)
    params = np.zeros_like(sheet.params)
    params[:, 0] = np.where(kinds == menu.SCALE_UP, CRISIS_FRACTION, 0.0)
    return kinds, Sheet(settings, sheet.columns, sheet.step, sheet.world, target, params)


_CHECKS = {
    menu.SCALE_UP: _scale_up, menu.SCALE_DOWN: _scale_down, menu.RESIZE: _resize,
    menu.OPTIMIZE_ENERGY: _energy, menu.MIGRATE: _migrate, menu.TERMINATE: _terminate,
    menu.MARK: _mark, menu.UNMARK: _unmark, menu.STOP: _stop, menu.START: _start,
    menu.SNAPSHOT: _snapshot, menu.DETACH: _detach, menu.ATTACH: _attach,
    menu.RESTART: _restart, menu.ROLLBACK: _rollback, menu.REBALANCE: _rebalance,
    menu.ISOLATE: _isolate, menu.RESTORE: _restore, menu.FAILOVER: _failover,
    menu.RESERVE: _reserve, menu.AUTOSCALE: _autoscale, menu.EVALUATE: _evaluate,
    menu.CRISIS: _crisis, menu.REQUEST_METRICS: _request, menu.FLAG: _flag,
    menu.FREE_DISK: _free_disk,
}  # fmt: skip
_ROW_KINDS = frozenset(code for code, kind in enumerate(menu.KINDS) if kind.target == "row")
