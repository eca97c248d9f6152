"""What a rule reads of a cloud: costs, carbon and verdicts per row, and the load of every tier.

Whole columns are judged at once, by the world's own validator, so that 100,000 rows cost
milliseconds. Measurements are noisy, late and patchy: loads are means of the latest known ones,
each paired with the capacity that it was measured on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.records import Request
from world.worlds.cloud import menu, rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.cost import row_costs, waste_mask
from world.worlds.cloud.energy import ECO_WATTS, WATTS_PER_TB, interpolated_watts
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.solve import ECO_SLOWDOWN
from world.worlds.cloud.state import Measured
from world.worlds.cloud.tables import PUE, RESERVED_FACTOR, MachineTable, machines, regions
from world.worlds.cloud.view import CloudInventory

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RECENT = 3
"""Measurements that a load is the mean of."""
TREND = 8
"""Measurements that a trend is read from."""
AHEAD_STEPS = 6
"""Steps for which capacity is planned: an order takes 2 to serve, and demand goes on rising."""
UNKNOWN_CPU_PERCENT = 10.0
"""CPU taken for a machine that nobody measured when its watts are estimated; assumed."""
FIT_PERCENT = 85.0
"""Highest CPU or memory that a smaller machine may have in its busiest hour."""


def dollars(value: float) -> str:
    """A change of the bill in words."""
    return f"{value:+.3g} $/h"


def percent(value: float) -> str:
    """A utilisation in words."""
    return f"{100 * value:.0f} %" if value == value else "unknown load"


@dataclass(frozen=True)
class Estate:
    """A cloud as one seat sees it.

    Attributes:
        request: What is asked.
        inventory: The inventory as observed.
        settings: The published numbers of the scenario.
        views: Inventories of the steps so far, oldest first, the latest at most `TREND` long.
    """

    request: Request
    inventory: CloudInventory
    settings: Settings
    views: tuple[CloudInventory, ...]

    @staticmethod
    def of(request: Request) -> Estate | None:
        """Read a request; None where it shows no cloud."""
        inventory = request.observation.inventory
        if not isinstance(inventory, CloudInventory):
            return None
        keep = TREND + inventory.settings.params.lag_steps
        past = [seen.inventory for seen in request.history.observations[-keep:]]
        views = tuple(view for view in past if isinstance(view, CloudInventory))
        return Estate(request, inventory, inventory.settings, views or (inventory,))

    @property
    def cells(self) -> Mapping[str, NDArray[Any]]:
        """Columns of the inventory, one value per row."""
        return self.inventory.columns

    @property
    def table(self) -> MachineTable:
        """Machine sizes."""
        return machines(self.settings.params.power_model)

    @property
    def services(self) -> Mapping[str, Mapping[str, Any]]:
        """What was measured of each service."""
        found: Mapping[str, Mapping[str, Any]] = self.request.observation.facts["services"]
        return found

    @property
    def steps_left(self) -> int:
        """Steps until the episode ends."""
        return self.request.observation.horizon - self.request.step

    def metric(self, name: str) -> float | None:
        """A metric of the room, None where this seat does not know it."""
        return self.request.observation.metrics.get(name)

    def over(self, name: str) -> bool:
        """Whether a metric is within its margin of the target, or above, or not known."""
        target = self.request.observation.targets.get(name)
        value = self.metric(name)
        if target is None:
            return False
        margin = self.request.history.scenario.tolerances.get(name, (0.05 * target, 0.0))[0]
        return value is None or value > target - margin

    # -- rows -------------------------------------------------------------------------------

    @cached_property
    def usd(self) -> Floats:
        """Cost per row, $/h, float64 [R]; a resource that hangs on a price hike is not told."""
        settings, public = self.settings, dict(self.inventory.public)
        queues = slice(0, settings.queues)
        price = self.unit_usd[queues]
        cells = self.cells
        billed = cells["count"][queues] + cells["pending_1"][queues] + cells["draining"][queues]
        billed = billed + cells["pending_2"][queues] + cells["pending_3"][queues]
        held = cells["reserved"][queues]
        tier = price * (np.maximum(billed - held, 0.0) + held * RESERVED_FACTOR)
        total: Floats = np.concatenate([tier, row_costs(settings, public)[0]])
        return total

    @cached_property
    def unit_usd(self) -> Floats:
        """On-demand price of one instance per row, $/h, float64 [R]."""
        price: Floats = (
            self.table.usd_per_hour[self.cells["size"]] * regions().price[self.cells["region"]]
        )
        return price

    @cached_property
    def kg(self) -> Floats:
        """Carbon per row at the hour's grid, kg CO2e/day, float64 [R]."""
        cells = self.cells
        cpu = np.nan_to_num(cells["cpu_percent"], nan=UNKNOWN_CPU_PERCENT)
        watts = interpolated_watts(self.table.watts[cells["size"]], np.minimum(cpu / 100.0, 1.0))
        running = (cells["state"] == names.RUNNING) | (cells["state"] == names.ISOLATED)
        per_tb = np.zeros(len(names.KINDS))
        for kind, value in WATTS_PER_TB.items():
            per_tb[kind] = value
        power = watts * cells["count"] * running
        power = power + per_tb[cells["kind"]] * cells["size_gb"] / 1000.0
        power = np.where(cells["state"] == names.TERMINATED, 0.0, power)
        value = power * self.grid[cells["region"]] * PUE * 24.0 / 1e6
        total: Floats = value
        return total

    @cached_property
    def grid(self) -> Floats:
        """Intensity of each region in this hour, g/kWh; 0 where this world has none."""
        found = np.zeros(len(regions().names))
        for name, fact in self.request.observation.facts["regions"].items():
            found[regions().names.index(name)] = fact["grid_g_per_kwh"]
        return found

    def verdicts(self, kind: int) -> NDArray[np.int8]:
        """The validator's verdict on an action without parameters, for every row, int8 [R]."""
        kept: dict[int, NDArray[np.int8]] = self.inventory.kept.setdefault("rule.verdicts", {})
        if kind not in kept:
            targets = np.arange(self.settings.rows)
            sheet = self.inventory.sheet(targets, np.zeros((len(targets), menu.PARAMS)))
            kept[kind] = rules.refusals(kind, sheet)
        return kept[kind]

    @cached_property
    def waste(self) -> Mask:
        """Rows known to be unused and not known to be needed, bool [R]."""
        found = np.zeros(self.settings.rows, dtype=np.bool_)
        found[self.settings.queues :] = waste_mask(self.settings, dict(self.inventory.public))[0]
        return found & (self.usd > 0)

    @cached_property
    def zombies(self) -> Mask:
        """Waste that is known to be needed by nobody, bool [R]."""
        mask: Mask = self.waste & (self.cells["essential"] == names.NO)
        return mask

    @cached_property
    def smaller(self) -> NDArray[np.int32]:
        """Cheapest size for the busiest hour of each single machine; 0 is none, int32 [R]."""
        cells, table = self.cells, self.table
        found = np.zeros(self.settings.rows, dtype=np.int32)
        size = cells["size"]
        look = np.flatnonzero(
            (size > 0)
            & (np.arange(self.settings.rows) >= self.settings.tiers)
            & (cells["state"] == names.RUNNING)
            & ~self.zombies
            & (np.fmax(cells["peak_cpu_percent"], cells["memory_percent"]) < FIT_PERCENT)
        )
        for code in np.unique(size[look]).tolist():
            rows = look[size[look] == code]
            for option in self.cheaper(code):
                cpu = cells["peak_cpu_percent"][rows] * table.vcpu[code] / table.vcpu[option]
                memory = cells["memory_percent"][rows] * (
                    table.memory_gib[code] / table.memory_gib[option]
                )
                fit = (np.maximum(cpu, memory) < FIT_PERCENT) & (found[rows] == 0)
                found[rows[fit]] = option
        return found

    def cheaper(self, size: int) -> list[int]:
        """Sizes that a size may be changed to and that cost less, cheapest first."""
        table = self.table
        if table.ladder[size] < 0:
            return []
        same = np.flatnonzero(
            (table.ladder == table.ladder[size]) & (table.usd_per_hour < table.usd_per_hour[size])
        )
        ordered: list[int] = same[np.argsort(table.usd_per_hour[same], kind="stable")].tolist()
        return ordered

    # -- tiers ------------------------------------------------------------------------------

    def name(self, row: int) -> str:
        """Id of a row."""
        return self.inventory.ids[row]

    def word(self, column: str, row: int) -> str:
        """One cell of a coded column."""
        return self.inventory.vocabulary[column][int(self.cells[column][row])]

    def pools(self, service: int) -> list[int]:
        """Rows of a service's pools that have instances, the largest first."""
        first = service * self.settings.regions
        rows = np.arange(first, first + self.settings.regions)
        count = self.cells["count"][rows] + self.cells["pending_1"][rows]
        count = count + self.cells["pending_2"][rows]
        order = rows[np.argsort(-count, kind="stable")]
        found: list[int] = order[np.sort(-count, kind="stable") < 0].tolist()
        return found

    def database(self, service: int) -> int:
        """Row of a service's database."""
        return self.settings.pools + service

    def power(self, view: CloudInventory, row: int, pending: bool = False) -> float:
        """Speed-weighted vCPU that a tier has, less what its energy level gives up."""
        cells = view.columns
        size = int(cells["size"][row])
        count = float(cells["count"][row])
        if pending:
            count += float(cells["pending_1"][row] + cells["pending_2"][row])
            count += float(cells["pending_3"][row])
            wait = int(cells["resize_wait_steps"][row])
            size = int(cells["resize_to"][row]) if wait else size
        level = 0.0
        if row < self.settings.pools:
            level = float(view.public["s.eco_level"][0, row // self.settings.regions])
        power = count * self.table.vcpu[size] * self.table.speed[size]
        return float(power * (1.0 - ECO_SLOWDOWN * level))

    def loads(self, row: int) -> list[float]:
        """Busy vCPU at speed 1 of a tier, one per view, oldest first; NaN where not known."""
        lag = self.settings.params.lag_steps
        at = Measured(self.settings).busy.start + row
        found = []
        for position, view in enumerate(self.views):
            busy = float(view.measured[at])
            held = self.power(self.views[max(position - lag, 0)], row)
            found.append(busy * held if held > 0 else float("nan"))
        return found

    def load(self, row: int) -> float:
        """Mean of the latest loads of a tier, vCPU; NaN where none is known."""
        recent = [load for load in self.loads(row) if load == load][-RECENT:]
        return float(np.mean(recent)) if recent else float("nan")

    def busy(self, row: int) -> float:
        """Utilisation of a tier with the capacity that it has now, 0 and up; NaN is unknown."""
        power = self.power(self.inventory, row)
        return self.load(row) / power if power > 0 else float("nan")

    def growth(self, service: int) -> float:
        """Factor by which a service's demand is expected to grow until capacity serves."""
        at = Measured(self.settings).service("rps").start + service
        seen = [float(view.measured[at]) for view in self.views]
        known = [value for value in seen if value == value and value > 0]
        if len(known) < 4:
            return 1.0 + 0.005 * AHEAD_STEPS  # nobody knows the hour's slope yet: half a per cent
        half = len(known) // 2
        ratio = float(np.mean(known[-half:])) / float(np.mean(known[:half]))
        per_step = (ratio - 1.0) / (len(known) - half)
        return float(np.clip(1.0 + per_step * AHEAD_STEPS, 0.9, 1.25))

    def changing(self, service: int) -> bool:
        """Whether capacity of a service is under way: what it will hold is not what is measured."""
        first = service * self.settings.regions
        rows = np.array([*range(first, first + self.settings.regions), self.database(service)])
        moving = int(self.inventory.public["s.move_to"][0, service]) >= 0
        under_way = self.cells["draining"][rows] + self.cells["resize_wait_steps"][rows]
        for name in ("pending_1", "pending_2", "pending_3"):
            under_way = under_way + self.cells[name][rows]
        return moving or bool(under_way.any())

    def farther_ms(self, region: str, here: str) -> float:
        """Round trip that a move adds for users near the home region, ms."""
        home = self.settings.params.home_region
        trip = regions().rtt_ms[regions().names.index(home)]
        return float(trip[regions().names.index(region)] - trip[regions().names.index(here)])

    def backlog_hours(self, service: int) -> float:
        """Batch work that waits, in hours of its mean arrivals."""
        return float(self.inventory.public["s.backlog_hours"][0, service])

    def due_hours(self, service: int) -> float:
        """Age at which the latest of the batch work that waits will be done, h."""
        return float(self.inventory.public["s.due_hours"][0, service])

    def watts_factor(self, service: int) -> float:
        """Watts of a service's pools over those at energy level 0."""
        return float(1.0 - ECO_WATTS * self.inventory.public["s.eco_level"][0, service])
