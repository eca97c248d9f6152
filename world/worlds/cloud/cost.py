"""Dollars per hour: instances, storage, network. One-off charges are kept apart.

$/h = Σ billed·price(size)·region·{1, .63 reserved, spot by the hour} + GB-months/730 + hourly rates
of load balancers, gateways and addresses + egress. Billed are ready, pending and draining
instances: a machine costs from the order to the last minute. A reservation is paid until it ends,
whether its machines run or not.
"""

from __future__ import annotations

import numpy as np

from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import IDLE_WINDOW_HOURS
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.tables import (
    HOURS_PER_MONTH,
    RESERVED_FACTOR,
    machines,
    prices,
    regions,
)

_FACTORS = np.array([1.0, RESERVED_FACTOR, 1.0])
SPOT = names.PRICINGS.index("spot")


def unit_prices(settings: Settings, columns: dict[str, Array], rows: slice) -> Floats:
    """On-demand price of one instance of some rows, $/h, without price hikes, float64 [B, n]."""
    table = machines(settings.params.power_model)
    price = table.usd_per_hour[columns["size"][:, rows]]
    price = price * regions().price[columns["region"][:, rows]]
    cache = columns["kind"][:, rows] == names.CACHE
    value: Floats = np.where(cache, price * prices()["cache"], price)
    return value


def row_costs(settings: Settings, columns: dict[str, Array]) -> Floats:
    """Cost of the rows that are no queue, $/h, without price hikes, float64 [B, R − Q]."""
    rows = slice(settings.queues, settings.rows)
    kind, count = columns["kind"][:, rows], columns["count"][:, rows]
    state, gigabytes = columns["state"][:, rows], columns["size_gb"][:, rows]
    item = prices()
    hourly = np.zeros(len(names.KINDS))
    hourly[names.NAT], hourly[names.LB], hourly[names.IP] = item["nat"], item["lb"], item["ip"]
    monthly = np.zeros(len(names.KINDS))
    monthly[names.VOLUME], monthly[names.SNAPSHOT] = item["gp3_volume"], item["snapshot"]
    monthly[names.BUCKET] = item["bucket"]
    pricing = columns["pricing"][:, rows]
    machine = unit_prices(settings, columns, rows) * _FACTORS[pricing]
    if (pricing == SPOT).any():
        here = np.take_along_axis(columns["g.spot"], columns["slot"][:, rows].astype(np.int64), 1)
        machine = np.where(pricing == SPOT, machine * here, machine)
    running = (state == names.RUNNING) | (state == names.ISOLATED)
    place = regions().price[columns["region"][:, rows]]
    fixed = hourly[kind] * place * count + monthly[kind] * place * gigabytes / HOURS_PER_MONTH
    cost = machine * count * running + fixed
    value: Floats = np.where(state == names.TERMINATED, 0.0, cost)
    return value


def waste_mask(settings: Settings, columns: dict[str, Array]) -> Array:
    """Rows that are known to be unused for two weeks and not known to be needed, bool [B, R−Q].

    It is worked out from what every seat sees; a look-alike whose need is unknown counts.
    """
    rows = slice(settings.queues, settings.rows)
    with np.errstate(invalid="ignore"):
        idle = columns["idle_hours"][:, rows] >= IDLE_WINDOW_HOURS
    mask: Array = (
        idle & (columns["essential"][:, rows] != names.YES) & (columns["needed_by"][:, rows] < 0)
    )
    return mask


def queue_cost(after: State, hike: Floats) -> Floats:
    """Cost of pools and databases, $/h, float64 [B].

    Args:
        after: The state.
        hike: Price factor of each queue row's region, float64 [B, Q].
    """
    settings, columns = after.settings, after.columns
    rows = slice(0, settings.queues)
    price = after.recall(
        "queue_price",
        (columns["size"], columns["region"]),
        lambda: unit_prices(settings, columns, rows),
    )
    billed = columns["count"][:, rows] + columns["pending_1"][:, rows]
    for name in ("pending_2", "pending_3", "draining"):
        billed = billed + columns[name][:, rows]
    reserved = columns["reserved"][:, rows]
    paid = np.maximum(billed - reserved, 0.0) + reserved * RESERVED_FACTOR
    total: Floats = np.add.reduce(paid * price * hike, axis=-1)
    return total


def egress_cost(settings: Settings, rate: Floats) -> Floats:
    """Cost of responses leaving the cloud, $/h, float64 [B], for requests/s [B, S]."""
    per_request = settings.per_service("kilobytes") * 1e-6 * prices()["egress_internet"] * 3600.0
    total: Floats = np.add.reduce(rate * per_request, axis=-1)
    return total


def static_cost(after: State) -> tuple[Floats, Floats]:
    """Cost of the rows that are no queue and the waste among them, $/h, float64 [B] each."""

    def make() -> tuple[Floats, Floats]:
        cost = row_costs(after.settings, after.columns)
        waste = cost * waste_mask(after.settings, after.columns)
        return np.add.reduce(cost, axis=-1), np.add.reduce(waste, axis=-1)

    return after.recall("static_cost", (after.extras, after.columns["idle_hours"]), make)
