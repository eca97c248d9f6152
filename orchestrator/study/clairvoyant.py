"""A planner that knows the truth: what could have been done, as a yardstick for who cannot know.

It plans on copies of the true state, with the true noise, under the action rules that bind
everybody: three actions a step, one validator, the same delays and failures. At every step it
tries each course (an action, or a short sequence that prepares one), rolls the world on without
further action, keeps the course that is worth most, and tries again with that one taken, until
three places are filled or nothing helps. It is a heuristic, so what it reaches is a lower bound.

Its work is bounded by counts and never by a clock: the same seed gives the same plan everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.actions import Action
from world.model import Encoded, Joint
from world.worlds.cloud import menu, reading
from world.worlds.cloud import schema as names
from world.worlds.cloud.advance import advance
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.cost import row_costs
from world.worlds.cloud.reward import unused_terms_usd
from world.worlds.cloud.rules import ISOLATE_ABOVE, MIN_AGE_HOURS
from world.worlds.cloud.settings import CARBON, COST, MAX_ACTIONS
from world.worlds.cloud.state import NOW, Floats, Measured, State
from world.worlds.cloud.tables import machines
from world.worlds.cloud.view import CloudInventory, observe

SECOND_LOOK = 48
"""Courses that are tried again for the second and third place of a step."""
USD_PER_UNIT = 250.0
"""Dollars put off (terms that nobody would use) that weigh as much as one unit of `worth`."""
EXTRAS_TRIED = 32
"""Rows outside the tiers that are tried in a step: those that save most."""
RESERVE_FROM_STEP, RESERVE_ABOVE = 12, 0.93
LEAST_GAIN = 1e-3
"""Gain below which nothing is done, in units of `worth`."""
DULL_BELOW, DULL_STEPS = -0.2, 4
"""A course whose gain was below the first is not tried again for the second, in steps; where a
service misses its objective, only other sizes and regions have to wait."""
CALM_BELOW = 0.95
"""Share of the targets for cost and carbon below which a state that holds all is left alone."""
MOVE_ROOM, MOVE_AFTER = 0.5, 2
"""Growth before a move, as a fraction of the pool, and how long it takes to arrive, in steps."""
SURGES = (2, 3)
"""Steps in a row in which a pool or database grows, where a service misses its objective."""
LATEST_AGE = 3.0
"""Age of batch work, as a share of its deadline, from which later is no worse."""

Code = tuple[int, int, tuple[float, float, float]]
"""Kind, target and parameters, as `Reading` has them."""


@dataclass(frozen=True, slots=True)
class Taste:
    """What a run of the planner looks for; several are tried and the best plan is kept.

    Attributes:
        look_ahead_steps: How far every course is rolled out. Moves with their data take 6 steps
            and more before they pay back what they cost meanwhile.
        latency: Weight of a service above its objective, per factor e.
        missed: Weight of each service above its objective, however far: what cannot come back
            below it there is worth no saving.
        money: Weight of cost and carbon above their targets, per target.
        thrift: Weight of cost and carbon below their targets.
        backlog: Weight of batch work that waits, per square of its share of the deadline.
        per_action: Whether gains are divided by the actions that they take.
        stay_steps: Steps for which services with users stay where they are.
    """

    look_ahead_steps: int = 14
    latency: float = 1.0
    missed: float = 0.0
    money: float = 4.0
    thrift: float = 0.4
    backlog: float = 0.8
    per_action: bool = True
    stay_steps: int = 0


@dataclass(frozen=True, slots=True)
class Course:
    """Actions at fixed delays, of which the last is what it is for.

    Attributes:
        codes: ``(delay in steps, action)`` in order; one a step at most.
    """

    codes: tuple[tuple[int, Code], ...]


@dataclass(slots=True)
class Agenda:
    """What was settled for the coming steps, and what is not worth trying meanwhile.

    Attributes:
        slots: Step → actions.
        dull: Course → step from which it is tried again.
    """

    slots: dict[int, list[Code]]
    dull: dict[Course, int]

    def reconsider(self) -> None:
        """Try everything again but what seldom helps in a hurry: other sizes and regions."""
        slow = (menu.RESIZE, menu.MIGRATE)
        self.dull = {
            course: step for course, step in self.dull.items() if course.codes[-1][1][0] in slow
        }

    def lively(self, step: int, found: Sequence[Course]) -> list[Course]:
        """Courses that are worth trying at a step and have a place."""
        return [
            course
            for course in found
            if self.dull.get(course, step) <= step and self.fits(step, course)
        ]

    def at(self, step: int) -> list[Code]:
        """Actions settled for a step."""
        return self.slots.get(step, [])

    def fits(self, step: int, course: Course) -> bool:
        """Whether there is a place for each of its actions, on targets of their own."""
        for delay, code in course.codes:
            taken = self.at(step + delay)
            if len(taken) >= MAX_ACTIONS or any(_same_target(code, other) for other in taken):
                return False
        return True

    def settle(self, step: int, course: Course) -> None:
        """Take a course."""
        for delay, code in course.codes:
            self.slots.setdefault(step + delay, []).append(code)


def plan(state: State, taste: Taste) -> tuple[Joint, ...]:
    """A joint action for every step that is left.

    Args:
        state: The true state of one world (B = 1).
        taste: What to look for.
    """
    agenda = Agenda({}, {})
    decided: list[Joint] = []
    while not state.done:
        view = observe(state).inventory
        if not isinstance(view, CloudInventory):
            raise TypeError("the clairvoyant plans cloud worlds only")
        _fill(state, view, agenda, taste)
        codes = agenda.slots.pop(state.step, [])
        decided.append(tuple(_action(code, view) for code in codes))
        state = advance(state, _encoded([codes])).state
    return tuple(decided)


def _fill(state: State, view: CloudInventory, agenda: Agenda, taste: Taste) -> None:
    """Settle courses that begin now, best first."""
    if len(agenda.at(state.step)) >= MAX_ACTIONS or _calm(state, agenda, taste):
        return
    if _missing(state).any():
        agenda.reconsider()
    found = courses(state, view, taste)
    for place in range(MAX_ACTIONS):
        if len(agenda.at(state.step)) >= MAX_ACTIONS:
            return
        found = agenda.lively(state.step, found)
        if not found:
            return
        values = rolled_out(state, agenda, [Course(()), *found], taste)
        gains = values[1:] - values[0]
        if place == 0:
            for at in np.flatnonzero(gains < DULL_BELOW).tolist():
                agenda.dull[found[at]] = state.step + DULL_STEPS
        if taste.per_action:
            gains = gains / np.array([len(course.codes) for course in found])
        best = int(np.argmax(gains))
        if gains[best] < LEAST_GAIN:
            return
        agenda.settle(state.step, found[best])
        if place == 0 and len(found) > SECOND_LOOK:
            order = np.argsort(-gains, kind="stable")[:SECOND_LOOK]
            found = [found[at] for at in sorted(order.tolist())]


def _missing(state: State) -> NDArray[np.bool_]:
    """Which services with users miss their objective now, bool [S]."""
    settings, where = state.settings, Measured(state.settings)
    p95 = state.columns[NOW][0, where.service("p95_ms")]
    errors = state.columns[NOW][0, where.service("error_fraction")]
    missed = (p95 >= settings.params.slo_p95_ms) | (errors >= settings.params.slo_error_fraction)
    found: NDArray[np.bool_] = missed & ~settings.batch
    return found


def _calm(state: State, agenda: Agenda, taste: Taste) -> bool:
    """Whether everything holds, with room to spare, as far as the planner looks."""
    targets, ahead = state.settings.scenario.targets, state
    for delay in range(taste.look_ahead_steps):
        ahead = advance(ahead, _encoded([agenda.at(state.step + delay)])).state
        cost, carbon = ahead.columns[NOW][0, 1], ahead.columns[NOW][0, 2]
        spare = cost < CALM_BELOW * targets[COST] and carbon < CALM_BELOW * targets[CARBON]
        if not (spare and ahead.flags["all"][0]):
            return False
    return True


def rolled_out(state: State, agenda: Agenda, tried: Sequence[Course], taste: Taste) -> Floats:
    """Worth of each course on the true noise, with nothing but the agenda after it, [N]."""
    n = len(tried)
    ahead = state.rows(np.zeros(n, dtype=np.intp))
    total = np.zeros(n)
    for delay in range(taste.look_ahead_steps):
        settled = agenda.at(state.step + delay)
        joints = [
            [*settled, *(code for at, code in course.codes if at == delay)] for course in tried
        ]
        before = ahead
        ahead = advance(before, _encoded(joints)).state
        total += worth(before, ahead, taste)
    return total - unused_terms_usd(ahead) / USD_PER_UNIT


def worth(before: State, after: State, taste: Taste) -> Floats:
    """What a step is worth to the planner, float64 [B].

    In target counts most; what is out of target counts by how far, so that a long way is made
    in small steps; harm is never worth it.
    """
    settings, columns, flags = after.settings, after.columns, after.flags
    targets = settings.scenario.targets
    where = Measured(settings)
    measured = columns[NOW]
    users = ~settings.batch
    p95 = measured[:, where.service("p95_ms")][:, users] / settings.params.slo_p95_ms
    errors = measured[:, where.service("error_fraction")][:, users]
    late = np.clip(np.log(np.maximum(p95, 1e-3)) + 0.05, 0.0, 2.0)
    wrong = np.clip(errors / settings.params.slo_error_fraction - 0.8, 0.0, 3.0)
    cost, carbon = measured[:, 1] / targets[COST], measured[:, 2] / targets[CARBON]
    value: Floats = 2.0 * flags["all"].astype(np.float64)
    for name in ("latency", "cost", "carbon"):
        value = value + 0.2 * flags[name]
    value = value - taste.latency * np.add.reduce(np.ascontiguousarray(late), axis=-1)
    value = value - taste.missed * np.add.reduce(p95 >= 1.0, axis=-1)
    value = value - 0.5 * np.add.reduce(np.ascontiguousarray(wrong), axis=-1)
    for share in (cost, carbon):
        value = value - taste.money * np.maximum(share - 0.98, 0.0) - taste.thrift * share
    if settings.batch_index.size:
        deadline = settings.per_service("deadline_h")[settings.batch_index]
        age = np.minimum(columns["s.due_hours"][:, settings.batch_index] / deadline, LATEST_AGE)
        value = value - taste.backlog * np.add.reduce(np.ascontiguousarray(age * age), axis=-1)
        value = value - 1.0 * ~flags["batch"]
    harms = columns["w.harms"][:, 0] - before.columns["w.harms"][:, 0]
    value = value - 50.0 * harms - 5.0 * columns["h.w.unavailable"][:, 0]
    active = np.add.reduce(columns["h.i.status"] == names.ACTIVE, axis=-1)
    result: Floats = value - 0.02 * active - flags["one_off_usd"] / 1000.0
    return result


# -- courses --------------------------------------------------------------------------------

_SINGLES = frozenset(
    menu.KINDS[kind].name
    for kind in (
        menu.SCALE_UP, menu.SCALE_DOWN, menu.OPTIMIZE_ENERGY, menu.MIGRATE, menu.STOP, menu.RESTART,
        menu.ROLLBACK, menu.REBALANCE, menu.ISOLATE, menu.RESTORE, menu.FAILOVER, menu.RESERVE,
        menu.RESIZE, menu.TERMINATE, menu.FREE_DISK,
    )
)  # fmt: skip


def courses(state: State, view: CloudInventory, taste: Taste) -> list[Course]:
    """Everything worth trying: single actions of the catalogue, and prepared ones."""
    found = list(_singles(state, view, taste))
    found += _removals(state)
    found = _dearest(state, found)
    found += _repairs(state)
    found += _moves(state, taste)
    found += _surges(state)
    return found


def _dearest(state: State, found: list[Course]) -> list[Course]:
    """Without the courses on rows outside the tiers that save least; dynamics are apart there."""
    settings, columns = state.settings, state.columns
    cost = row_costs(settings, columns)[0]
    price = machines(settings.params.power_model).usd_per_hour
    saved: dict[int, tuple[float, Course]] = {}
    kept = []
    for course in found:
        kind, row, params = course.codes[-1][1]
        if menu.KINDS[kind].target != "row" or row < settings.tiers:
            kept.append(course)
            continue
        save = float(cost[row - settings.queues])
        if kind == menu.RESIZE:
            save *= 1.0 - price[int(params[0])] / price[int(columns["size"][0, row])]
        # Of two that save the same, the first: to stop a machine takes no grace period.
        if row not in saved or save > saved[row][0]:
            saved[row] = save, course
    best = sorted(saved.values(), key=lambda entry: -entry[0])[:EXTRAS_TRIED]
    return [*kept, *(course for _, course in best)]


def _singles(state: State, view: CloudInventory, taste: Taste) -> Iterable[Course]:
    columns, settings = state.columns, state.settings
    stay = ~settings.batch & (state.step < taste.stay_steps)
    fight = columns["h.s.fight"][0] > 0
    needed = columns["h.essential"][0] > 0
    # A reservation ties its pool to a place and a size: only late, where cost is near its target
    # and every service holds its objective as it stands.
    p95 = columns[NOW][0, Measured(settings).service("p95_ms")]
    calm = not (p95[~settings.batch] >= settings.params.slo_p95_ms).any()
    dear = columns[NOW][0, 1] > RESERVE_ABOVE * settings.scenario.targets[COST]
    reserve = dear and calm and state.step >= RESERVE_FROM_STEP
    for action in reading.catalogue(view):
        if action.kind not in _SINGLES and action.kind != "set_autoscaler":
            continue
        read = reading.read(action, view)
        if read.kind == menu.MIGRATE and stay[read.target]:
            continue
        if read.kind == menu.RESERVE and not reserve:
            continue
        if read.kind == menu.AUTOSCALE and not fight[read.target]:
            continue
        if read.kind in (menu.STOP, menu.TERMINATE) and needed[read.target]:
            continue
        extra = read.kind == menu.RESIZE and read.target >= settings.queues
        if extra and not _oversized(state, read.target, int(read.params[0])):
            continue
        yield Course(((0, (read.kind, read.target, read.params)),))


def _oversized(state: State, row: int, size: int) -> bool:
    """Whether a smaller size still carries a single machine's highest hour."""
    columns = state.columns
    table = machines(state.settings.params.power_model)
    old = int(columns["size"][0, row])
    cpu = float(columns["h.peak_cpu_percent"][0, row]) * table.vcpu[old] / table.vcpu[size]
    held = float(columns["h.memory_percent"][0, row])
    memory = held * table.memory_gib[old] / table.memory_gib[size]
    smaller = table.usd_per_hour[size] < table.usd_per_hour[old]
    return bool(smaller and max(cpu, memory) < 95.0)


def _removals(state: State) -> list[Course]:
    """Asking, marking and, after the grace period, removing what nothing needs."""
    columns, settings = state.columns, state.settings
    grace = settings.params.grace_steps
    with np.errstate(invalid="ignore"):
        idle = columns["h.idle_hours"][0] >= IDLE_WINDOW_HOURS
        old = columns["age_hours"][0] >= MIN_AGE_HOURS
    rows = np.arange(settings.rows) >= settings.tiers
    rows &= idle & old & (columns["h.essential"][0] == 0)
    rows &= (columns["protected"][0] == 0) & (columns["managed_by"][0] == 0)
    rows &= columns["state"][0] != names.TERMINATED
    found = []
    for row in np.flatnonzero(rows).tolist():
        asks: list[tuple[int, int]] = []
        delay = 0
        if columns["tag_status"][0, row] > 0 and columns["owner_wait_steps"][0, row] == 0:
            asks.append((delay, menu.FLAG))
            delay += 1
        if np.isnan(columns["idle_hours"][0, row]) and columns["metrics_wait_steps"][0, row] == 0:
            asks.append((delay, menu.REQUEST_METRICS))
            delay += 1
        ready = delay + (1 if asks and asks[0][1] == menu.FLAG and len(asks) == 1 else 0)
        marked = int(columns["marked_at_step"][0, row])
        if grace and marked < 0:
            asks.append((delay, menu.MARK))
            ready = max(ready, delay + grace)
        elif grace:
            ready = max(ready, marked + grace - state.step)
        codes = [(at, _code(kind, row)) for at, kind in asks]
        if codes or ready:
            found.append(Course((*codes, (max(ready, delay), _code(menu.TERMINATE, row)))))
    return found


def _moves(state: State, taste: Taste) -> list[Course]:
    """Moves of services with users that have more capacity first: half of it is away meanwhile."""
    settings, columns = state.settings, state.columns
    if state.step < taste.stay_steps:
        return []
    dirty = columns[NOW][0, 2] > CALM_BELOW * settings.scenario.targets[CARBON]
    found = []
    for service in np.flatnonzero(~settings.batch).tolist() if dirty else ():
        first = service * settings.regions
        home = int(np.argmax(columns["count"][0, first : first + settings.regions]))
        grow = _code(menu.SCALE_UP, first + home, MOVE_ROOM)
        for slot in range(settings.regions):
            if slot == home or not settings.allowed[service, columns["g.region"][0, slot]]:
                continue
            for data in (0.0, 1.0):
                move = (menu.MIGRATE, service, (float(slot), 1.0, data))
                found.append(Course(((0, grow), (MOVE_AFTER, move))))
    return found


def _surges(state: State) -> list[Course]:
    """Growth over several steps where a service misses its objective: less is seen to help not."""
    settings, columns = state.settings, state.columns
    found = []
    for service in np.flatnonzero(_missing(state)).tolist():
        first = service * settings.regions
        pool = first + int(np.argmax(columns["count"][0, first : first + settings.regions]))
        for row in (pool, settings.pools + service):
            grow = _code(menu.SCALE_UP, row, MOVE_ROOM)
            found += [Course(tuple((at, grow) for at in range(n))) for n in SURGES]
    return found


def _repairs(state: State) -> list[Course]:
    """Evidence first where a remedy asks for it: examine, isolate, restore."""
    columns, settings = state.columns, state.settings
    found = []
    for row in np.flatnonzero(columns["h.compromised"][0] > 0).tolist():
        if columns["state"][0, row] != names.RUNNING:
            continue
        if columns["suspicion"][0, row] <= ISOLATE_ABOVE:
            found.append(Course(((0, _code(menu.EVALUATE, row)), (1, _code(menu.ISOLATE, row)))))
    for service in np.flatnonzero(columns["h.s.corrupt"][0] > 0).tolist():
        row = settings.pools + service
        if columns["s.restore_wait_steps"][0, service] > 0:
            continue
        steps = []
        if columns["suspicion"][0, row] <= ISOLATE_ABOVE:
            steps.append(menu.EVALUATE)
        if columns["s.db_isolated"][0, service] == 0:
            if columns["count"][0, row] < 2:
                found.append(Course(((0, _code(menu.SCALE_UP, row, 0.5)),)))
            steps.append(menu.ISOLATE)
        steps.append(menu.RESTORE)
        found.append(Course(tuple((at, _code(kind, row)) for at, kind in enumerate(steps))))
    return found


def _code(kind: int, target: int, first: float = 0.0) -> Code:
    return (kind, target, (first, 0.0, 0.0))


def _same_target(one: Code, other: Code) -> bool:
    by_row = menu.KINDS[one[0]].target == menu.KINDS[other[0]].target
    return by_row and one[1] == other[1]


# -- spelling -------------------------------------------------------------------------------


def _encoded(joints: Sequence[Sequence[Code]]) -> Encoded:
    """Codes of N worlds, in canonical order of kind and target."""
    n = len(joints)
    kinds: NDArray[np.int32] = np.full((n, MAX_ACTIONS), -1, dtype=np.int32)
    targets: NDArray[np.int32] = np.full((n, MAX_ACTIONS), -1, dtype=np.int32)
    params = np.zeros((n, MAX_ACTIONS, menu.PARAMS))
    for world, codes in enumerate(joints):
        for slot, (kind, target, values) in enumerate(codes[:MAX_ACTIONS]):
            kinds[world, slot], targets[world, slot] = kind, target
            params[world, slot] = values
    return Encoded(kinds, targets, params)


def _action(code: Code, view: CloudInventory) -> Action:
    kind, target, values = code
    spec = menu.KINDS[kind]
    label = ""
    if spec.target == "row":
        label = view.ids[target]
    elif spec.target == "service":
        label = view.settings.params.services[target]
    pairs: dict[str, Any] = {}
    for at, param in enumerate(spec.template.params):
        pairs[param.name] = _spelt(param.name, values[at], view)
    return Action.of(spec.name, label, **pairs)


def _spelt(name: str, value: float, view: CloudInventory) -> str | bool | int | float:
    if name == "new_size":
        return str(menu.SIZES[int(value) - 1])
    if name == "region":
        return str(view.region_names[int(value)])
    if name in ("with_data", "enabled"):
        return bool(value)
    return int(value) if name == "level" else float(value)
