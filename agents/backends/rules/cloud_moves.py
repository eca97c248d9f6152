"""Where services run: work to cleaner grids, and back to where their users are served in time."""

from __future__ import annotations

from agents.backends.rules.agenda import Option
from agents.backends.rules.cloud_estate import Estate, dollars, percent
from world.actions import Action
from world.worlds.cloud.solve import COLD_SLOWDOWN

IDLE_LOAD = 0.005
"""Busy vCPU, or share of a database's capacity, below which nobody calls it."""
BUSY_ENOUGH = 0.86
"""Utilisation above which a queue, and not the way, may explain a missed objective."""
NEAR = 0.95
"""Share of its latency objective that a service may fill after a move, distance included."""
CLEAN_FRACTION = 0.9
"""Grid intensity over the present one up to which a region is worth a look."""


def moves(estate: Estate) -> list[Option]:
    """Work to cleaner grids, each service's best move first, those that save most before others."""
    facts = estate.request.observation.facts["regions"]
    by_service: list[list[tuple[float, Option]]] = []
    for service, spec in enumerate(estate.settings.services):
        rows = estate.pools(service)
        if not rows or estate.changing(service):
            continue
        home = estate.word("region", rows[0])
        # Caches are cold after a move; what users wait for must have room for that.
        if not spec.batch and not estate.busy(rows[0]) * COLD_SLOWDOWN < 1.0:
            continue
        dirty = float(facts[home]["mean_grid_g_per_kwh"])
        found: list[tuple[float, Option]] = []
        for region, fact in facts.items():
            if not spec.batch and not _near(estate, service, region, home):
                continue
            if region != home and fact["mean_grid_g_per_kwh"] <= CLEAN_FRACTION * dirty:
                found += [
                    _move(estate, service, rows[0], region, part, data)
                    for part in (1.0, 0.5)
                    for data in _with_data(estate, service, part)
                ]
        if found:
            by_service.append(sorted(found, key=lambda pair: -pair[0]))
    by_service.sort(key=lambda moves: -moves[0][0])
    deepest = max(map(len, by_service), default=0)
    return [m[depth][1] for depth in range(deepest) for m in by_service if depth < len(m)]


def _near(estate: Estate, service: int, region: str, here: str) -> bool:
    """Whether users would still be served in time from another region."""
    p95 = estate.services[estate.settings.params.services[service]]["p95_ms"]
    farther = estate.farther_ms(region, here)
    return p95 is not None and p95 + farther < NEAR * estate.settings.params.slo_p95_ms


def homeward(estate: Estate) -> list[Option]:
    """Services that are too far from their users, back to where they were served in time."""
    home, options = estate.settings.params.home_region, []
    slo = estate.settings.params.slo_p95_ms
    for service, spec in enumerate(estate.settings.services):
        rows = estate.pools(service)
        p95 = estate.services[spec.name]["p95_ms"]
        if spec.batch or not rows or estate.changing(service) or p95 is None:
            continue
        here = estate.word("region", rows[0])
        back = estate.farther_ms(home, here)
        if p95 >= slo and back < 0.0 and estate.busy(rows[0]) < BUSY_ENOUGH:
            options.append(
                Option(
                    Action.of(
                        "migrate_region", spec.name, region=home, fraction=1.0, with_data=True
                    ),
                    f"{spec.name} p95 {p95:.0f} ms over {slo:.0f} from {here}, "
                    f"{percent(estate.busy(rows[0]))} busy: {home} is {-back:.0f} ms nearer",
                )
            )
    return options


def _with_data(estate: Estate, service: int, part: float) -> tuple[bool, ...]:
    """Whether the data should move along: both are tried where nobody waits for far-off calls."""
    called = not estate.load(estate.database(service)) < IDLE_LOAD
    if not called:
        return (False,)
    return (False, True) if estate.settings.services[service].batch else (True,)


def _move(
    estate: Estate, service: int, row: int, region: str, part: float, moved: bool
) -> tuple[float, Option]:
    """One move, with the carbon that argues for it; latency argues against moving users' work."""
    facts, spec = estate.request.observation.facts["regions"], estate.settings.services[service]
    home = estate.word("region", row)
    here, there = facts[home], facts[region]
    share = 1.0 - there["mean_grid_g_per_kwh"] / here["mean_grid_g_per_kwh"]
    kg = float(estate.kg[row]) * share * part
    dearer = there["price_multiplier"] / here["price_multiplier"] - 1.0
    data = "with its data" if moved else "its database stays"
    text = (
        f"{spec.name} {home} ({here['mean_grid_g_per_kwh']:.0f} g/kWh) to {region} "
        f"({there['mean_grid_g_per_kwh']:.0f} g/kWh): {100 * part:.0f} % of "
        f"{float(estate.cells['count'][row]):.0f} instances, {data}, -{kg:.3g} kg CO2e/day, "
        f"{dollars(float(estate.usd[row]) * dearer * part)}"
    )
    action = Action.of("migrate_region", spec.name, region=region, fraction=part, with_data=moved)
    return kg * (1.0 if spec.batch else 0.5), Option(action, text)
