"""Rules of the four seats over a cloud: capacity, dollars, carbon, waste, and incidents.

Resource treats trouble and keeps every service below its objective, ahead of the morning rise. Cost
goes for the dearest saving that work allows. Sustainability moves work that can wait to clean
regions and slows what has headroom. The janitor removes what nobody needs, and asks where it cannot
know. No rule proposes what the world's validator refuses or calls a hazard, and the room projects
every proposal: a rule's numbers are reasons, not promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from agents.backends.rules.agenda import (
    SHORTLIST,
    Option,
    able,
    agenda,
    best_rows,
    bundles,
    distinct,
    joint,
    nothing,
    together,
)
from agents.backends.rules.cloud_estate import Estate, dollars, percent
from agents.backends.rules.cloud_moves import IDLE_LOAD, homeward, moves
from agents.backends.rules.cloud_trouble import evidence, intruders, remedies, troubles
from agents.backends.rules.cloud_waste import (
    UNMEASURED_WASTE,
    copies,
    inquiries,
    marks_for,
    removals,
)
from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Proposal, Request
from world.actions import Action
from world.worlds.cloud.batch_work import DEFERRED_FRACTION
from world.worlds.cloud.effects import TRANSITION_USD
from world.worlds.cloud.energy import ECO_WATTS
from world.worlds.cloud.rules import RESERVED_SHARE
from world.worlds.cloud.settings import CARBON, COST, LATENCY
from world.worlds.cloud.solve import ECO_SLOWDOWN
from world.worlds.cloud.tables import RESERVED_FACTOR

BUSY_WANTED = 0.86
"""Utilisation that a service with users is planned for: queues grow steeply above it."""
BUSY_ENOUGH = 0.80
"""Utilisation below which capacity of such a service may go."""
BUSY_BATCH = 0.93
"""The same for work that nobody waits for."""
BUSY_DATABASE = 0.70
"""The same for databases: a saturated database cannot be helped by more callers."""
COMFORT = 0.85
"""Share of its latency objective below which a service has something to give away."""
LEAST_CHANGE = 0.03
"""Smallest share of a pool that is worth ordering or draining."""
LEAST_SAVING = 0.002
"""Smallest saving that is worth a change, as a share of the bill or of the carbon."""
NEWER_SAVES = 0.05
"""Share of a pool's cost that newer machines save at least, once it is cut to its load."""
BACKLOG_SHARE = 0.4
"""Share of its deadline from which batch work may wait no longer."""
WAITS_SHARE = 0.8
"""Share of its deadline that work waiting for a cleaner grid may fill by the end of an episode."""
RESERVE_STEPS_LEFT = 12
"""Steps that must be left for a reservation to begin and pay."""
SWEEP = 8
"""Marks and questions that the janitor looks at closely in one step."""


# -- capacity ------------------------------------------------------------------------------------


def _fraction(value: float) -> float:
    """A share of instances that the validator takes, in whole per cent."""
    return float(np.clip(np.round(100.0 * value) / 100.0, 0.01, 0.5))


def _shares(share: float) -> list[float]:
    """A share of instances and half of it, as far as they are worth a change."""
    both = dict.fromkeys((share, _fraction(share / 2.0)))
    return [part for part in both if part >= LEAST_CHANGE] or [share]


def _faster(estate: Estate, row: int) -> Option | None:
    """A newer machine of as many vCPU on the same ladder that does more work for its price."""
    table, size = estate.table, int(estate.cells["size"][row])
    if size <= 0 or table.ladder[size] < 0:
        return None
    same = np.flatnonzero(
        (table.ladder == table.ladder[size])
        & (table.vcpu == table.vcpu[size])
        & (table.speed > table.speed[size])
    )
    if not same.size:
        return None
    worth = table.speed[same] / table.usd_per_hour[same]
    best = int(same[np.argmax(worth)])
    if worth.max() <= table.speed[size] / table.usd_per_hour[size]:
        return None
    count = float(estate.cells["count"][row])
    gain = table.speed[best] / table.speed[size] - 1.0
    extra = count * (table.usd_per_hour[best] - table.usd_per_hour[size])
    watts = count * (table.watts[best, 2] / table.speed[best] - table.watts[size, 2]) / 1000.0
    return Option(
        Action.of("resize", estate.name(row), new_size=table.names[best]),
        f"{estate.name(row)} {count:.0f} x {table.names[size]} at {percent(estate.busy(row))}: "
        f"{table.names[best]} does {100 * gain:.0f} % more for {dollars(extra)}, "
        f"{watts:+.3g} kW at full load",
    )


def _grow(estate: Estate, row: int, wanted: float, why: str) -> list[Option]:
    """Instances that bring a tier down to a utilisation, and half as many."""
    cells = estate.cells
    have = estate.power(estate.inventory, row, pending=True)
    now = estate.power(estate.inventory, row)
    growth = estate.growth(int(cells["service"][row]))
    need = estate.load(row) * growth / wanted
    if not (have > 0 and need > have * (1.0 + LEAST_CHANGE)):
        return []
    share = _fraction((need - have) / max(now, 1e-9))
    options = []
    for fraction in _shares(share):
        count = max(np.floor(float(cells["count"][row]) * fraction + 1e-9), 1.0)
        extra = count * float(estate.unit_usd[row])
        options.append(
            Option(
                Action.of("scale_up", estate.name(row), fraction=fraction),
                f"{why}, {percent(estate.busy(row))} busy and demand x {growth:.2f} ahead: "
                f"+{100 * fraction:.0f} % ({count:.0f} x {estate.word('size', row)}, "
                f"{dollars(extra)})",
            )
        )
    return options


def _latency(estate: Estate, service: int) -> str:
    """A service's p95 against its objective."""
    name = estate.settings.params.services[service]
    p95 = estate.services[name]["p95_ms"]
    slo = estate.settings.params.slo_p95_ms
    if p95 is None:
        return f"{name} p95 unknown, objective {slo:.0f} ms"
    return f"{name} p95 {p95:.0f} ms {'over' if p95 >= slo else 'under'} {slo:.0f}"


def _roomy(estate: Estate, service: int, factor: float = 1.0) -> bool:
    """Whether a service would hold its objective comfortably if requests took longer."""
    name = estate.settings.params.services[service]
    p95 = estate.services[name]["p95_ms"]
    return p95 is not None and p95 * factor < COMFORT * estate.settings.params.slo_p95_ms


def _capacity(estate: Estate) -> list[Option]:
    """What every service that is short of capacity needs, the shortest first."""
    wishes: list[tuple[float, list[Option]]] = []
    for service, spec in enumerate(estate.settings.services):
        rows = estate.pools(service)
        for row in rows[:2]:
            wanted = BUSY_BATCH if spec.batch else BUSY_WANTED
            why = f"{estate.name(row)} backlog" if spec.batch else _latency(estate, service)
            if spec.batch and not _late(estate, service):
                continue
            options = _catch_up(estate, service, row) if spec.batch else []
            options = options or _grow(estate, row, wanted, why)
            if options and (faster := _faster(estate, row)):
                options.insert(0, faster)
            wishes.append((estate.busy(row) / wanted, options))
        if not spec.batch:
            row = estate.database(service)
            options = _grow(estate, row, 0.8, f"{estate.name(row)} of {spec.name}")
            wishes.append((estate.busy(row) / 0.8, options))
    wishes = [wish for wish in wishes if wish[1]]
    wishes.sort(key=lambda wish: -wish[0])
    deepest = max((len(options) for _, options in wishes), default=0)
    return [o[depth] for depth in range(deepest) for _, o in wishes if depth < len(o)]


def _catch_up(estate: Estate, service: int, row: int) -> list[Option]:
    """Instances for batch work that is late, where it queues: how much waits is not in its load.

    Machines that are not busy while work piles up wait for their database.
    """
    spec = estate.settings.services[service]
    if estate.changing(service):
        return []
    if not estate.busy(row) > BUSY_BATCH:
        row = estate.database(service)
    why = (
        f"{spec.name} {estate.backlog_hours(service):.2g} h behind, due in "
        f"{estate.due_hours(service):.2g} of {spec.deadline_h:g} h"
    )
    return _orders(estate, row, why)


def _orders(estate: Estate, row: int, why: str) -> list[Option]:
    """A tenth and a quarter more of a tier."""
    options = []
    for fraction in (0.1, 0.25):
        count = max(np.floor(float(estate.cells["count"][row]) * fraction + 1e-9), 1.0)
        options.append(
            Option(
                Action.of("scale_up", estate.name(row), fraction=fraction),
                f"{why}: +{100 * fraction:.0f} % ({count:.0f} x {estate.word('size', row)}, "
                f"{dollars(count * float(estate.unit_usd[row]))})",
            )
        )
    return options


def _relief(estate: Estate) -> list[Option]:
    """Capacity for services that miss their objective though no queue explains it.

    Where the way is slow, less waiting makes up for it as long as money is left.
    """
    options: list[Option] = []
    for service, spec in enumerate(estate.settings.services):
        p95 = estate.services[spec.name]["p95_ms"]
        rows = estate.pools(service)
        slow = p95 is not None and p95 >= estate.settings.params.slo_p95_ms
        if spec.batch or not rows or not slow or estate.changing(service):
            continue
        why = f"{_latency(estate, service)} at {percent(estate.busy(rows[0]))}"
        options += _orders(estate, rows[0], why)
        options += _orders(estate, estate.database(service), why)
    return options


def _late(estate: Estate, service: int) -> bool:
    """Whether batch work comes near its deadline."""
    spec = estate.settings.services[service]
    return estate.due_hours(service) > BACKLOG_SHARE * spec.deadline_h


def _overdue(estate: Estate, service: int, level: int) -> bool:
    """Whether batch work at an energy level would fill its deadline before the episode ends.

    The grid is taken to stay dirty: what waits for a clean hour that does not come is late.
    """
    spec = estate.settings.services[service]
    waiting = DEFERRED_FRACTION * level * estate.settings.dt_h * estate.steps_left
    return estate.backlog_hours(service) + waiting > WAITS_SHARE * spec.deadline_h


def _full_speed(estate: Estate) -> list[Option]:
    """Energy levels back where latency or a deadline needs the speed."""
    options = []
    for service, spec in enumerate(estate.settings.services):
        level = int(estate.inventory.public["s.eco_level"][0, service])
        if not level:
            continue
        rows = estate.pools(service)
        hot = bool(rows) and (
            estate.busy(rows[0]) > BUSY_WANTED or not _roomy(estate, service, 0.9)
        )
        if _late(estate, service) if spec.batch else hot:
            options += [
                Option(
                    Action.of("optimize_energy", spec.name, level=lower),
                    f"{spec.name} needs its speed back: level {level} to {lower}",
                )
                for lower in range(0 if spec.batch else level - 1, level)
            ]
    return options


def unrest(estate: Estate) -> list[Option]:
    """What is left to ask or to cure while something fails; empty when changes may go on.

    Nobody changes what works while something does not: until the cause is found and treated, the
    other seats hold back everything that can wait.
    """
    found = troubles(estate)
    if not any(one.failing or one.very_slow for one in found):
        return []
    return able(estate.request, [*remedies(estate, found), *evidence(estate, found)])


def _held(estate: Estate) -> tuple[Proposal, ...]:
    found = list(dict.fromkeys(one.name for one in troubles(estate)))
    verb = "misbehaves" if len(found) == 1 else "misbehave"
    return nothing(
        f"{', '.join(found)} {verb}: changes that can wait are held until its cause is treated"
    )


def _resource(estate: Estate) -> tuple[Proposal, ...]:
    """Root causes first, then the services that will miss their objective, then headroom."""
    request = estate.request
    found = troubles(estate)
    cures = able(request, [*remedies(estate, found), *intruders(estate)])
    asks = able(request, evidence(estate, found))
    wanted = [*_full_speed(estate), *homeward(estate), *_capacity(estate)]
    wishes = able(request, wanted or _relief(estate))
    acts = [*cures, *asks]
    proposals: list[Proposal] = []
    if acts:
        # Cure and ask at once; carry the load until the cure works; or only carry the load.
        proposals += [
            joint(together(request, acts)),
            joint(together(request, [*wishes[:2], *acts])),
        ]
        proposals += [joint((option,)) for option in cures[:2]]
        proposals += bundles(together(request, asks))[:2]
    pressing = any(
        estate.busy(row) > BUSY_WANTED
        for service, spec in enumerate(estate.settings.services)
        for row in estate.pools(service)[:1]
        if not spec.batch
    )
    if pressing or estate.over(LATENCY):
        rows = [row for s in range(estate.settings.s) for row in estate.pools(s)[:1]]
        rows.sort(key=lambda row: estate.settings.batch[int(estate.cells["service"][row])])
        wishes = able(request, [*wishes, *(one for row in rows if (one := _faster(estate, row)))])
    proposals += agenda(request, wishes)
    return distinct(proposals) or nothing("every service holds its objective with headroom")


# -- dollars -------------------------------------------------------------------------------------


def _shrink(estate: Estate) -> list[Option]:
    """Capacity that the load does not need, the dearest first."""
    found: list[tuple[float, Option]] = []
    for service, spec in enumerate(estate.settings.services):
        enough = BUSY_BATCH if spec.batch else BUSY_ENOUGH
        tiers = [(row, enough) for row in estate.pools(service)]
        tiers.append((estate.database(service), BUSY_DATABASE))
        if estate.changing(service) or not (spec.batch or _roomy(estate, service)):
            continue
        for row, level in tiers:
            power = estate.power(estate.inventory, row, pending=True)
            load = estate.load(row) * max(estate.growth(service), 1.0)
            if spec.batch and _late(estate, service):
                continue
            spare = 1.0 - load / (level * power) if power > 0 else 0.0
            if not spare >= LEAST_CHANGE:
                continue
            for share in _shares(_fraction(spare)):
                count = max(np.floor(float(estate.cells["count"][row]) * share + 1e-9), 1.0)
                saved = count * float(estate.unit_usd[row])
                if not _pays(estate, saved, count):
                    continue
                text = (
                    f"{estate.name(row)} {percent(estate.busy(row))} busy: {count:.0f} x "
                    f"{estate.word('size', row)} less keep it below {100 * level:.0f} %, "
                    f"{dollars(-saved)}"
                )
                action = Action.of("scale_down", estate.name(row), fraction=share)
                found.append((saved, Option(action, text)))
    return [option for _, option in sorted(found, key=lambda pair: -pair[0])]


def _right_size(estate: Estate) -> list[Option]:
    """Machines that are too large, alone or as an idle database, the dearest first."""
    table, cells = estate.table, estate.cells
    size = cells["size"]
    smaller = estate.smaller.copy()
    for service in range(estate.settings.s):
        row = estate.database(service)
        cheaper = estate.cheaper(int(size[row]))
        if cheaper and estate.load(row) < IDLE_LOAD * estate.power(estate.inventory, row):
            smaller[row] = cheaper[0]
    ratio = table.usd_per_hour[smaller] / np.maximum(table.usd_per_hour[size], 1e-9)
    saved = np.where(smaller > 0, estate.usd * (1.0 - ratio), 0.0)
    hours = max(estate.steps_left - 2, 0) * estate.settings.dt_h
    saved = np.where(saved * hours > cells["count"] * TRANSITION_USD, saved, 0.0)
    return [
        Option(
            Action.of("resize", estate.name(row), new_size=table.names[int(smaller[row])]),
            f"{estate.name(row)} {estate.word('size', row)} at "
            f"{float(np.nan_to_num(cells['cpu_percent'][row])):.3g} % CPU: "
            f"{table.names[int(smaller[row])]} holds its busiest hour, "
            f"{dollars(-float(saved[row]))}",
        )
        for row in best_rows(saved)
    ]


def _reservations(estate: Estate) -> list[Option]:
    """A year's price for instances that will stay, where enough of the episode is left."""
    if estate.steps_left <= RESERVE_STEPS_LEFT:
        return []
    found = []
    for row in range(estate.settings.queues):
        service = int(estate.cells["service"][row])
        moving = estate.services[estate.settings.params.services[service]]["moving_to"]
        count = float(estate.cells["count"][row])
        if moving or count < 5 or estate.busy(row) < 0.4 or _faster(estate, row) is not None:
            continue
        saved = (1.0 - RESERVED_FACTOR) * np.floor(RESERVED_SHARE * count)
        saved *= float(estate.unit_usd[row])
        text = (
            f"{estate.name(row)} keeps its {count:.0f} x {estate.word('size', row)}: reserve a "
            f"fifth from the next full hour, {dollars(-saved)}"
        )
        action = Action.of("buy_reserved", estate.name(row), fraction=RESERVED_SHARE)
        found.append((saved, Option(action, text)))
    return [option for _, option in sorted(found, key=lambda pair: -pair[0])]


def _newer(estate: Estate) -> list[Option]:
    """Newer machines for the dearest pools: more work for the same money, to be cut later."""
    rows = [row for s in range(estate.settings.s) for row in estate.pools(s)[:1]]
    rows.sort(key=lambda row: -float(estate.usd[row]))
    found = []
    for row in rows:
        option, count = _faster(estate, row), float(estate.cells["count"][row])
        if option and _pays(estate, NEWER_SAVES * float(estate.usd[row]), count):
            found.append(option)
    return found


def _pays(estate: Estate, usd_per_hour: float, instances: float) -> bool:
    """Whether a saving earns what the change costs before the episode ends.

    Source: karpenter's AWS provider, issue 7344: image pulls cost more than consolidation saved.
    """
    hours = max(estate.steps_left - 2, 0) * estate.settings.dt_h
    return usd_per_hour * hours > instances * TRANSITION_USD


def _manual(estate: Estate) -> list[Option]:
    """Autoscalers off where they hold more idle capacity than the room plans for."""
    return [
        Option(
            Action.of("set_autoscaler", spec.name, enabled=False),
            f"{spec.name}: its autoscaler holds {percent(estate.busy(estate.pools(at)[0]))} busy, "
            f"the room plans for {100 * BUSY_WANTED:.0f} %",
        )
        for at, spec in enumerate(estate.settings.services)
        if estate.services[spec.name]["autoscaler"] and estate.pools(at)
    ]


def _worth(estate: Estate, options: list[Option], usd: float) -> list[Option]:
    """Options on rows that cost at least so much."""
    index, cost = estate.inventory.index, estate.usd
    return [option for option in options if cost[index[option.action.target]] >= usd]


def _cost(estate: Estate) -> tuple[Proposal, ...]:
    """Waste, then what is too large, then what runs idle, then the year's price."""
    request = estate.request
    if unrest(estate):
        return _held(estate)
    bill = estate.metric(COST) or float(np.add.reduce(estate.usd))
    waste = able(request, _worth(estate, removals(estate, estate.usd, "$/h"), LEAST_SAVING * bill))
    marks = able(request, _worth(estate, marks_for(estate), LEAST_SAVING * bill))
    if not estate.over(COST):
        kept = distinct([*agenda(request, waste), *bundles(together(request, marks))])
        return kept or nothing(f"the bill holds its target at {bill:.0f} $/h")
    # A mark saves nothing today and everything when its grace has passed: small change waits.
    least = (10 if marks else 1) * LEAST_SAVING * bill
    sizes = able(request, _worth(estate, _right_size(estate), least))
    spare = able(request, _manual(estate))
    spare += [] if marks else able(request, _shrink(estate))
    later = [] if marks else able(request, [*_newer(estate), *_reservations(estate)])
    streams = (waste, sizes, spare, later)
    merged = [o[d] for d in range(SHORTLIST) for o in streams if d < len(o)]
    dearest = together(request, [*waste[:2], *sizes[:2], *marks[:1], *spare[:1], *later[:1]])
    first = [joint(dearest)] if len(dearest) > 1 else []
    sweep = bundles(together(request, marks))
    found = [*first, *sweep, *agenda(request, merged, MAX_PROPOSALS - len(first) - len(sweep))]
    return distinct(found) or nothing("no saving is known that is worth a change")


# -- carbon --------------------------------------------------------------------------------------


def _levels(estate: Estate) -> list[Option]:
    """Energy levels for what has headroom: batch work away from its deadline, cool services."""
    found: list[tuple[float, Option]] = []
    for service, spec in enumerate(estate.settings.services):
        level = int(estate.inventory.public["s.eco_level"][0, service])
        rows = estate.pools(service)
        if level >= 2 or not rows or (spec.batch and _overdue(estate, service, level + 1)):
            continue
        busy = estate.busy(rows[0]) * estate.growth(service)
        limit = 0.98 if spec.batch else BUSY_WANTED
        slower = (1.0 - ECO_SLOWDOWN * level) / (1.0 - ECO_SLOWDOWN * (level + 1))
        if not busy * slower <= limit or not (spec.batch or _roomy(estate, service, slower)):
            continue
        kg = ECO_WATTS * sum(float(estate.kg[row]) for row in rows) / estate.watts_factor(service)
        text = (
            f"{spec.name} {percent(estate.busy(rows[0]))} busy: energy level {level + 1} takes "
            f"{100 * (slower - 1):.0f} % longer, -{kg:.3g} kg CO2e/day"
        )
        action = Action.of("optimize_energy", spec.name, level=level + 1)
        found.append((kg, Option(action, text)))
    return [option for _, option in sorted(found, key=lambda pair: -pair[0])]


def _sustainability(estate: Estate) -> tuple[Proposal, ...]:
    """Most carbon first: clean regions, idle watts, slower clocks, newer machines."""
    request = estate.request
    if unrest(estate):
        return _held(estate)
    now = estate.metric(CARBON) or float(np.add.reduce(estate.kg))
    calm = f"carbon at {now:.0f} kg CO2e/day"
    if not estate.over(CARBON):
        return nothing(f"{calm} holds its target")
    cleaner, levels = able(request, moves(estate)), able(request, _levels(estate))
    least = np.where(estate.kg >= LEAST_SAVING * now, estate.kg, 0.0)
    waste = able(request, removals(estate, least, "kg CO2e/day"))
    newer = able(request, _newer(estate))
    best = together(request, [*cleaner[:1], *waste[:2], *levels[:1], *newer])
    streams = (cleaner, waste, levels, newer)
    merged = [o[d] for d in range(SHORTLIST) for o in streams if d < len(o)]
    first = [joint(best)] if len(best) > 1 else []
    return distinct([*first, *agenda(request, merged)]) or nothing(f"{calm}, no cleaner way known")


# -- waste ---------------------------------------------------------------------------------------


def _stake(estate: Estate, action: Action) -> float:
    """Dollars per hour that a mark or question may free."""
    usd = float(estate.usd[estate.inventory.index[action.target]])
    return usd * (UNMEASURED_WASTE if action.kind == "request_metrics" else 1.0)


def _janitor(estate: Estate) -> tuple[Proposal, ...]:
    """Remove, mark, ask, the dearest first; intruders before everything."""
    request = estate.request
    odd = able(request, intruders(estate))
    gone = [] if unrest(estate) else able(request, removals(estate, estate.usd, "$/h"))
    marks, asks = marks_for(estate)[:SWEEP], inquiries(estate)[:SWEEP]
    begin = able(request, [*marks, *asks])
    begin.sort(key=lambda option: -_stake(estate, option.action))
    first = together(request, [*odd, *gone, *begin])
    joints = [joint(first)] if len(first) > 1 else []
    quiet = bundles(together(request, begin or able(request, copies(estate)[:1])))
    singles = [joint((option,)) for option in [*odd[:2], *gone[:3], *begin[:1]]]
    found = distinct([*joints, *singles, *quiet])
    waste = float(np.add.reduce(np.where(estate.waste, estate.usd, 0.0)))
    left = f"{waste:.3g} $/h of waste is left and none of it can be judged now"
    return found or nothing(left if waste > 0 else "no waste is known")


RULES_BY_ROLE: Mapping[str, Callable[[Estate], tuple[Proposal, ...]]] = {
    "resource": _resource,
    "cost": _cost,
    "sustainability": _sustainability,
    "janitor": _janitor,
}


def _rule(role: str) -> Callable[[Request, PersonaSpec], tuple[Proposal, ...]]:
    def propose(request: Request, spec: PersonaSpec) -> tuple[Proposal, ...]:
        del spec
        estate = Estate.of(request)
        return () if estate is None else RULES_BY_ROLE[role](estate)[:MAX_PROPOSALS]

    return propose


RULES = {role: _rule(role) for role in RULES_BY_ROLE}
"""Role → rule."""
