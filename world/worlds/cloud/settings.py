"""The numbers of a cloud scenario, checked once, and the layout that follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from world.errors import ScenarioError
from world.model import Scenario
from world.worlds.cloud.services import CATALOGUE, ServiceSpec
from world.worlds.cloud.tables import PowerModel, jurisdiction, region_code, regions

LATENCY = "latency_ms"
COST = "cost_usd_per_hour"
CARBON = "carbon_kg_per_day"
ERRORS = "error_fraction"
WASTE = "waste_usd_per_hour"
REPEAT = "repeat_fraction"
WORST_P95 = "worst_p95_ms"
WORST_ERRORS = "worst_error_fraction"
UNIT_FRACTION = 0.25
"""One unit of gap as a share of a target; chosen by play, see docs/room.md."""
MARGIN_FRACTION = 0.05
"""Margin below a target where the scenario names none."""
METRICS = (LATENCY, COST, CARBON, ERRORS, WASTE, REPEAT, WORST_P95, WORST_ERRORS)
_MOST_SHOWN = 80
"""Most characters of a wrong value that an error repeats."""

MAX_ACTIONS = 3
"""Most actions applied together in one step."""


class Start(BaseModel):
    """Where every seed starts, within 5 %."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    latency_ms: float = Field(gt=20, lt=2000)
    cost_usd_per_hour: float = Field(gt=1, lt=1e5)
    carbon_kg_per_day: float = Field(gt=1, lt=1e5)


GridHours = tuple[Annotated[float, Field(ge=0, le=5000)], ...]
"""Grid intensity of whole days, hour by hour from a midnight UTC on, gCO2/kWh."""


class TracePoint(BaseModel):
    """One hour of a demand trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hour: int = Field(ge=0, le=100_000)
    service: str
    rps: float = Field(ge=0, le=1e9)


class Params(BaseModel):
    """``[params]`` of a cloud scenario.

    Attributes:
        services: Names from the service catalogue, callers before callees.
        home_region: Where everything runs at the start.
        regions: Further regions that every seed has.
        drawn_regions: How many more each seed draws from `region_pool`.
        region_pool: Regions to draw from.
        rows: Resources that exist at the start.
        start: What the start is calibrated to.
        slo_p95_ms: 95th percentile that each service with users must hold.
        slo_error_fraction: Errors that each service with users may make.
        timeout_s: Clients leave after this wait.
        dt_minutes: Length of a step.
        arrival_cv2: Squared coefficient of variation of the time between requests.
        retry_fraction: Failed requests that come again in the next step.
        demand_amplitude: Of the daily sine.
        demand_noise: Standard deviation of the AR(1) noise.
        bursts_per_day: Mean number of bursts per service.
        incidents: Incidents per episode.
        overlapping: Whether incidents may overlap.
        cascading: Whether a failing service slows those that call it.
        noise_fraction: Standard deviation of the measurement noise, relative.
        lag_steps: Steps by which measurements are late.
        missing_fraction: Measurements that do not arrive.
        fail_scale: Factor on the odds that an action fails.
        decoy_fraction: Extra resources that look unused and are needed, share of the rows.
        unknown_tag_fraction: Resources whose tags could not be read.
        unknown_essential_fraction: Resources of which nobody knows whether they are needed.
        grace_steps: Steps between marking a resource and removing it.
        waste_fraction: Share of the starting cost that nobody needs, as storage or idle machines.
        waste_machine_fraction: Share of that waste which is idle machines; 0 leaves them as many
            as their sorts say. They draw power as well, so the more of them, the smaller the
            fleet that carries the load.
        waste_skew: Standard deviation of the logarithm of the sizes of waste and of look-alikes:
            the larger, the fewer rows hold most of it.
        power_model: ``ccf`` or ``teads``.
        embodied: Whether carbon counts the making of the machines.
        start_hour_utc: Hour of the day at which every seed starts; by default each draws its own.
        demand_trace: Requests by hour since the start and service, instead of the generated
            demand of the services that it names. The start is calibrated, so only the shape
            counts: demand at the start times rps ÷ rps of hour 0.
        grid_g_per_kwh: Region → its grid's intensity, instead of the table's: whole days from a
            midnight UTC on, repeated when they end. An episode starts on the first of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    services: tuple[str, ...] = Field(min_length=1, max_length=16)
    home_region: str
    regions: tuple[str, ...] = ()
    drawn_regions: int = Field(default=0, ge=0, le=8)
    region_pool: tuple[str, ...] = ()
    rows: int = Field(ge=12, le=200_000)
    start: Start
    slo_p95_ms: float = Field(default=150.0, gt=0, le=10_000)
    slo_error_fraction: float = Field(default=0.01, gt=0, lt=1)
    timeout_s: float = Field(default=1.0, gt=0.05, le=60)
    dt_minutes: float = Field(default=5.0, gt=0.5, le=60)
    arrival_cv2: float = Field(default=1.5, ge=0, le=20)
    retry_fraction: float = Field(default=0.2, ge=0, le=0.5)
    demand_amplitude: float = Field(default=0.25, ge=0, le=0.9)
    demand_noise: float = Field(default=0.02, ge=0, le=0.3)
    bursts_per_day: float = Field(default=1.0, ge=0, le=50)
    incidents: int = Field(default=0, ge=0, le=12)
    overlapping: bool = False
    cascading: bool = False
    noise_fraction: float = Field(default=0.0, ge=0, le=0.5)
    lag_steps: int = Field(default=0, ge=0, le=2)
    missing_fraction: float = Field(default=0.0, ge=0, le=0.9)
    fail_scale: float = Field(default=0.0, ge=0, le=10)
    decoy_fraction: float = Field(default=0.0, ge=0, le=0.3)
    unknown_tag_fraction: float = Field(default=0.0, ge=0, le=0.9)
    unknown_essential_fraction: float = Field(default=0.0, ge=0, le=0.9)
    grace_steps: int = Field(default=0, ge=0, le=200)
    start_hour_utc: int | None = Field(default=None, ge=0, le=23)
    waste_fraction: float = Field(default=0.24, ge=0.02, le=0.6)
    waste_machine_fraction: float = Field(default=0.0, ge=0, le=1)
    waste_skew: float = Field(default=0.0, ge=0, le=2)
    power_model: PowerModel = "ccf"
    embodied: bool = False
    demand_trace: tuple[TracePoint, ...] = ()
    grid_g_per_kwh: dict[str, GridHours] = {}


@dataclass(frozen=True)
class Settings:
    """A scenario's numbers and the layout of its rows.

    Rows stand in this order: the pool of service s in region slot g at s·G + g; then one database
    per service; one load balancer per service; one cache per service; then everything else, in
    an order that each seed shuffles. Pools without instances are places that a service may move
    to; they are no resources yet.

    Attributes:
        scenario: The scenario.
        params: Its checked numbers.
        services: What each service is, in order.
        regions: Number of region slots G.
        extras: Rows beyond the tiers.
    """

    scenario: Scenario
    params: Params
    services: tuple[ServiceSpec, ...]
    regions: int
    extras: int

    @staticmethod
    def of(scenario: Scenario) -> Settings:
        """Check a scenario.

        Raises:
            ScenarioError: A number or name is missing, unknown or out of range.
        """
        try:
            # As JSON, strict still takes a list for a tuple, and no text for a number.
            params = Params.model_validate_json(json.dumps(dict(scenario.params)), strict=True)
        except ValidationError as error:
            raise _misfit(scenario, error) from error
        if scenario.resources:
            raise _fault(
                scenario,
                "it gives resources",
                "a cloud world generates its own from params.rows and the seed",
                "Leave them out, or play them in the finops world",
            )
        unknown = [name for name in params.services if name not in CATALOGUE]
        if unknown:
            raise _fault(
                scenario,
                f"there is no service {unknown[0]!r}",
                f"services are {', '.join(CATALOGUE)}",
                "Correct params.services",
            )
        if len(set(params.services)) != len(params.services):
            raise _fault(scenario, "a service is named twice", "", "Correct params.services")
        services = tuple(CATALOGUE[name] for name in params.services)
        if all(service.batch for service in services):
            raise _fault(scenario, "no service has users", "latency needs one", "Add web")
        fixed = (params.home_region, *params.regions)
        for name in (*fixed, *params.region_pool):
            region_code(name)
        twice = [name for at, name in enumerate(fixed) if name in fixed[:at]]
        if twice:
            raise _fault(
                scenario,
                f"params.regions names {twice[0]!r} again",
                "home_region and regions are regions apart",
                "Name each region once",
            )
        pool = [name for name in params.region_pool if name not in fixed]
        if len(set(pool)) < params.drawn_regions:
            raise _fault(
                scenario,
                f"{params.drawn_regions} regions cannot be drawn from {sorted(set(pool))}",
                "every region slot is another region",
                "Correct params.regions, drawn_regions and region_pool",
            )
        _check_targets(scenario)
        _check_trace(scenario, params)
        _check_grid(scenario, params)
        regions = len(fixed) + params.drawn_regions
        tiers = len(services) * 4
        if params.rows < tiers + 4:
            raise _fault(
                scenario,
                f"{params.rows} rows are too few for {len(services)} services",
                f"their tiers take {tiers}",
                f"Write rows = {tiers + 8} or more",
            )
        return Settings(scenario, params, services, regions, params.rows - tiers)

    @cached_property
    def targets(self) -> Mapping[str, float]:
        """The scenario's targets, and the objectives that every service has of its own."""
        own = {WORST_P95: self.params.slo_p95_ms, WORST_ERRORS: self.params.slo_error_fraction}
        return MappingProxyType({**own, **self.scenario.targets})

    @cached_property
    def tolerances(self) -> Mapping[str, tuple[float, float]]:
        """Margin and one unit of gap per target, in its unit.

        A unit is a quarter of the target, or the scenario's where that is larger. With a small
        unit a concave utility guards the last dollars of a target that nearly holds, and never
        pays for the move that brings a far-off one in.
        """
        found = {}
        for name, target in self.targets.items():
            margin, unit = self.scenario.tolerances.get(name, (MARGIN_FRACTION * target, 0.0))
            found[name] = (margin, max(unit, UNIT_FRACTION * target))
        if COST in found:
            found[WASTE] = (0.0, found[COST][1])  # a dollar of waste is a dollar
        return MappingProxyType(found)

    @cached_property
    def s(self) -> int:
        """Number of services S."""
        return len(self.services)

    @cached_property
    def pools(self) -> int:
        """Number of pool rows S·G."""
        return self.s * self.regions

    @cached_property
    def queues(self) -> int:
        """Number of queue rows: pools and databases."""
        return self.pools + self.s

    @cached_property
    def tiers(self) -> int:
        """Number of tier rows: queues, load balancers, caches."""
        return self.queues + 2 * self.s

    @cached_property
    def rows(self) -> int:
        """All rows R, places without instances included."""
        return self.tiers + self.extras

    @property
    def dt_s(self) -> float:
        """Length of a step, s."""
        return self.params.dt_minutes * 60.0

    @property
    def dt_h(self) -> float:
        """Length of a step, h."""
        return self.params.dt_minutes / 60.0

    @cached_property
    def hour_steps(self) -> int:
        """Steps in an hour, at least 1."""
        return max(1, round(1.0 / self.dt_h))

    @cached_property
    def batch(self) -> NDArray[np.bool_]:
        """Which services are batch work, bool [S]."""
        return np.array([service.batch for service in self.services])

    @cached_property
    def batch_index(self) -> NDArray[np.intp]:
        """Numbers of the batch services."""
        return np.flatnonzero(self.batch)

    @cached_property
    def queue_service(self) -> NDArray[np.intp]:
        """Service of each queue row, int [Q]."""
        pools = np.repeat(np.arange(self.s), self.regions)
        return np.concatenate([pools, np.arange(self.s)])

    @cached_property
    def calls(self) -> tuple[tuple[int, int, float], ...]:
        """(caller, callee, share of requests that call), callers in descending order."""
        place = {service.name: at for at, service in enumerate(self.services)}
        edges = [
            (caller, place[name], share)
            for caller, service in enumerate(self.services)
            for name, share in service.calls
            if place.get(name, -1) > caller
        ]
        return tuple(sorted(edges, key=lambda edge: -edge[0]))

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Regions of the table in which each service may run, bool [S, n]."""
        names = regions().names
        home = jurisdiction(self.params.home_region)
        same = np.array([jurisdiction(name) == home for name in names])
        resident = np.array([service.resident for service in self.services])
        fits: NDArray[np.bool_] = same[None, :] | ~resident[:, None]
        return fits

    def per_service(self, field: str) -> NDArray[np.float64]:
        """One number of the service catalogue, float64 [S]; read-only."""
        found = self._numbers.get(field)
        if found is None:
            found = np.array([float(getattr(service, field)) for service in self.services])
            found.setflags(write=False)
            self._numbers[field] = found
        return found

    @cached_property
    def _numbers(self) -> dict[str, NDArray[np.float64]]:
        """What `per_service` has read."""
        return {}

    @cached_property
    def grid(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean intensity, g/kWh, float64 [n], and its hours over it, float64 [n, hours].

        One row per region of the table; `hours` is a multiple of 24, hour 0 is midnight UTC.
        """
        table, given = regions(), self.params.grid_g_per_kwh
        if not given:
            return table.grid_g_per_kwh, table.profile
        hours = max(len(series) for series in given.values())
        mean, shape = table.grid_g_per_kwh.copy(), np.tile(table.profile, (1, hours // 24))
        for name, series in given.items():
            code = table.names.index(name)
            values = np.array(series)
            mean[code] = np.add.reduce(values) / len(values)
            shape[code] = np.resize(values, hours) / mean[code]
        return mean, shape

    @cached_property
    def traced(self) -> NDArray[np.bool_]:
        """Which services the demand trace names, bool [S]."""
        named = {point.service for point in self.params.demand_trace}
        return np.array([name in named for name in self.params.services])

    @cached_property
    def trace(self) -> NDArray[np.float64] | None:
        """float64 [hours, S]: requests per second of the demand trace, held between points.

        Services that the trace does not name have 0 in it (see `traced`).
        """
        points = self.params.demand_trace
        if not points:
            return None
        hours = max(point.hour for point in points) + 1
        table = np.full((hours, self.s), np.nan)
        for point in points:
            table[point.hour, self.params.services.index(point.service)] = point.rps
        for hour in range(1, hours):
            table[hour] = np.where(np.isnan(table[hour]), table[hour - 1], table[hour])
        known: NDArray[np.float64] = np.nan_to_num(table)
        return known


def _misfit(scenario: Scenario, error: ValidationError) -> ScenarioError:
    """The first field of ``[params]`` that does not fit, with what it holds."""
    first = error.errors(include_url=False)[0]
    where = f"params.{'.'.join(str(part) for part in first['loc'])}"
    if first["type"] == "missing":
        return _fault(scenario, f"{where} is missing", "every cloud scenario has one", "Add it")
    if first["type"] == "extra_forbidden":
        among = Start.model_fields if len(first["loc"]) > 1 else Params.model_fields
        return _fault(
            scenario,
            f"there is no field {where}",
            "what is not read would be ignored in silence",
            f"Fields: {', '.join(among)}",
        )
    held = repr(first["input"])
    shown = held if len(held) <= _MOST_SHOWN else f"{held[:_MOST_SHOWN]}…"
    return _fault(scenario, f"{where} is {shown}", first["msg"], "Correct it")


def _check_targets(scenario: Scenario) -> None:
    """Every objective has a target that can hold, and nothing else is named."""
    for metric in (LATENCY, COST, CARBON):
        if metric not in scenario.targets:
            raise _fault(scenario, f"there is no target for {metric}", "", "Add it")
    for field in ("targets", "tolerances"):
        for metric in getattr(scenario, field):
            if metric not in METRICS:
                raise _fault(
                    scenario,
                    f"{field} name {metric!r}",
                    "this world has no such metric",
                    f"Metrics: {', '.join(METRICS)}",
                )
    for metric, bound in scenario.targets.items():
        if bound <= 0:
            raise _fault(
                scenario,
                f"targets.{metric} is {bound:g}",
                "in target is below it, and nothing measured is below 0",
                "Write a number above 0",
            )


def _check_trace(scenario: Scenario, params: Params) -> None:
    seen: set[tuple[int, str]] = set()
    for point in params.demand_trace:
        if point.service not in params.services:
            raise _fault(
                scenario, f"the demand trace names {point.service!r}", "no such service", ""
            )
        if (point.hour, point.service) in seen:
            raise _fault(
                scenario,
                f"the demand trace has hour {point.hour} of {point.service} twice",
                "an hour has one demand",
                "Remove one of them",
            )
        seen.add((point.hour, point.service))
    starts = {point.service for point in params.demand_trace if not point.hour and point.rps > 0}
    for name in {point.service: None for point in params.demand_trace}:
        if name not in starts:
            raise _fault(
                scenario,
                f"the demand trace of {name} has no demand in hour 0",
                "the start is calibrated on the trace's first hour",
                "Begin the trace at an hour with demand",
            )


def _check_grid(scenario: Scenario, params: Params) -> None:
    known = {params.home_region, *params.regions, *params.region_pool}
    for name, series in params.grid_g_per_kwh.items():
        if name not in known:
            raise _fault(
                scenario,
                f"params.grid_g_per_kwh names the region {name!r}",
                "no seed of this scenario has it",
                f"Regions are {', '.join(sorted(known))}",
            )
        if not series or len(series) % 24 or not sum(series) > 0:
            raise _fault(
                scenario,
                f"params.grid_g_per_kwh.{name} has {len(series)} hours, mean "
                f"{sum(series) / max(len(series), 1):.3g} g/kWh",
                "it holds whole days of 24 hours and is not zero throughout",
                "Import the grid again",
            )


def _fault(scenario: Scenario, what: str, why: str, fix: str) -> ScenarioError:
    return ScenarioError(f"scenario {scenario.name!r}: {what}", why, fix)
