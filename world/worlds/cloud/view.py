"""What a seat sees of a cloud world: noisy, late and patchy measurements, and an inventory.

Hidden columns never reach an observation. The same noise is seen by every seat, and a projection
starts from exactly what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from world import noise
from world.model import Inventory, Observation, significant
from world.worlds.cloud import rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.settings import METRICS, Settings
from world.worlds.cloud.state import (
    BEFORE,
    EARLIER,
    NOW,
    SERVICE_METRICS,
    Array,
    Floats,
    Measured,
    State,
)
from world.worlds.cloud.tables import machines, regions

_MEASURE = noise.channel("cloud.measure")
_NAMES = noise.channel("cloud.names")

ALERT_LASTS_STEPS = 6
"""Steps for which an alert is shown; assumed."""

_PREFIX = ("vm", "db", "cache", "lb", "nat", "ip", "vol", "snap", "bucket", "gpu")
VISIBLE = (
    *(name for name, _, _ in names.ROW_COLUMNS),
    *(name for name, _, _ in names.SERVICE_COLUMNS),
    *(name for name, _, _ in names.REGION_COLUMNS),
    *(name for name, _, _ in names.WORLD_COLUMNS),
    names.EVIDENCE_COLUMN,
)
"""Columns without hidden ones, in the order of `schema`."""
_ROWS = tuple(name for name, _, _ in names.ROW_COLUMNS)


class CloudInventory(Inventory):
    """The inventory of one world, with the public columns of its services and regions.

    Attributes:
        settings: The layout.
        step: Steps done when it was seen.
        public: Visible column name → array [1, n].
        measured: float64 [M], measurements as they were seen; NaN is missing.
        region_names: Region of each slot.
        kept: What was worked out from this view (catalogue …).
    """

    __slots__ = ("kept", "measured", "public", "region_names", "settings", "step")

    def __init__(
        self,
        settings: Settings,
        step: int,
        ids: Sequence[str],
        public: Mapping[str, Array],
        measured: Floats,
    ) -> None:
        rows = {name: public[name][0] for name in _ROWS}
        busy = measured[Measured(settings).busy] * 100.0
        cpu = rows["cpu_percent"].copy()
        running = rows["count"][: settings.queues] > 0
        cpu[: settings.queues] = np.where(running, busy, 0.0)
        rows["cpu_percent"] = cpu
        super().__init__(ids, rows, vocabulary(settings))
        self.settings = settings
        self.step = step
        self.public = public
        self.measured = measured
        table = regions().names
        self.region_names = tuple(table[code] for code in public["g.region"][0])
        self.kept: dict[str, Any] = {}

    @property
    def index(self) -> Mapping[str, int]:
        """Resource id → row; the same for all views of one inventory."""
        if self._index is None:
            self._index = _index_of(tuple(self.ids))
        return self._index

    def sheet(self, targets: Array, params: Floats) -> rules.Sheet:
        """Actions laid over this view; all of world 0."""
        world = np.zeros(len(targets), dtype=np.intp)
        return rules.Sheet(
            self.settings, self.public, self.step, world, np.asarray(targets, dtype=np.intp), params
        )


@lru_cache(maxsize=8)
def _index_of(ids: tuple[str, ...]) -> Mapping[str, int]:
    return {name: row for row, name in enumerate(ids)}


def vocabulary(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Words of the coded inventory columns. The code −1 is the last word, which is empty."""
    return {
        "kind": names.KINDS,
        "size": machines(settings.params.power_model).names,
        "resize_to": machines(settings.params.power_model).names,
        "region": regions().names,
        "service": (*settings.params.services, ""),
        "state": names.STATES,
        "pricing": names.PRICINGS,
        "essential": names.ESSENTIAL,
        "environment": names.ENVIRONMENTS,
        "tag_status": names.TAG_STATUS,
        "owner": names.OWNERS,
        "managed_by": names.MANAGERS,
    }


def ids_of(state: State, row: int) -> tuple[str, ...]:
    """Resource ids of one world: tiers by service and region, the rest by a number of the seed."""
    if state.ids:
        return state.ids
    columns = state.columns
    kind, region = columns["kind"], columns["g.region"]

    def make() -> tuple[str, ...]:
        settings = state.settings
        services = settings.params.services
        table = regions().names
        places = [table[code] for code in region[row]]
        found = [f"{service}.{place}" for service in services for place in places]
        found += [f"{service}-{tier}" for tier in ("db", "lb", "cache") for service in services]
        rest = np.arange(settings.tiers, settings.rows, dtype=np.uint32)
        numbers = noise.words(state.seeds[row], rest, _NAMES, 0)[0]
        for at, number in zip(rest.tolist(), numbers.tolist(), strict=True):
            found.append(f"{_PREFIX[kind[row, at]]}-{number & 0xFFFFF:05x}{at:03x}")
        return tuple(found)

    return state.recall(f"ids.{row}", (kind, region), make)


def seen(state: State, row: int) -> Floats:
    """Measurements of one world as they arrive: late, noisy, with gaps. float64 [M]; NaN: missing.

    Noise is multiplicative and normal; each number is missing on its own.
    """
    params = state.settings.params
    source = (NOW, BEFORE, EARLIER)[min(params.lag_steps, 2)]
    true: Floats = state.columns[source][row]
    if state.step < state.columns["h.w.blind_until"][row, 0]:
        dark = np.full_like(true, np.nan)
        dark[4:6] = state.columns[NOW][row, 4:6]
        return dark
    value: Floats = true.copy()
    if params.noise_fraction or params.missing_fraction:
        where = np.arange(len(true), dtype=np.uint32)
        u = noise.uniforms(state.seeds[row], where, _MEASURE, state.step)
        normal = np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])
        value = value * np.maximum(1.0 + params.noise_fraction * normal, 0.05)
        value[u[2] < params.missing_fraction] = np.nan
    # Waste and churn are worked out from what is visible.
    value[4:6] = state.columns[NOW][row, 4:6]
    return value


def observe(state: State, row: int = 0) -> Observation:
    """What the room may know of one world."""
    settings, columns = state.settings, state.columns
    public = {name: columns[name][row : row + 1] for name in VISIBLE}
    measured = seen(state, row)
    inventory = CloudInventory(settings, state.step, ids_of(state, row), public, measured)
    metrics = {name: _known(measured[at]) for at, name in enumerate(METRICS)}
    return Observation(
        step=state.step,
        horizon=settings.scenario.horizon,
        metrics=metrics,
        targets=settings.targets,
        facts=_facts(inventory, state, row),
        inventory=inventory,
        incidents=_incidents(inventory),
        outcomes=state.outcomes,
        unknown=_unknown(inventory, metrics),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else significant(float(value))


def _facts(inventory: CloudInventory, state: State, row: int) -> dict[str, Any]:
    settings, public = inventory.settings, inventory.public
    params = settings.params
    where = Measured(settings)
    services: dict[str, Any] = {}
    for at, spec in enumerate(settings.services):
        entry: dict[str, Any] = {
            name: _known(inventory.measured[where.service(name)][at]) for name in SERVICE_METRICS
        }
        for name in ("cpu", "db_cpu", "memory", "disk"):
            share = entry.pop(f"{name}_fraction")
            entry[f"{name}_percent"] = None if share is None else significant(100.0 * share)
        entry["batch"] = spec.batch
        entry["eco_level"] = int(public["s.eco_level"][0, at])
        entry["autoscaler"] = bool(public["s.autoscale"][0, at])
        entry["may_run_in"] = [
            name
            for name, code in zip(inventory.region_names, public["g.region"][0], strict=True)
            if settings.allowed[at, code]
        ]
        entry["moving_to"] = _region(inventory, int(public["s.move_to"][0, at]))
        if spec.batch:
            entry["backlog_hours"] = significant(float(public["s.backlog_hours"][0, at]))
            entry["due_hours"] = significant(float(public["s.due_hours"][0, at]))
            entry["deadline_hours"] = spec.deadline_h
        else:
            entry["slo_p95_ms"] = params.slo_p95_ms
            entry["slo_error_fraction"] = params.slo_error_fraction
        entry["anomaly"] = _known(float(public["s.anomaly"][0, at]))
        entry["own_fault"] = _known(float(public["s.own_fault"][0, at]))
        services[spec.name] = entry
    hour = float(state.hour[row]) % 24.0
    return {
        "services": services,
        "diagnosis": diagnoses(inventory),
        "regions": _regions(inventory, hour),
        "hour_utc": significant(hour),
        "dt_minutes": params.dt_minutes,
        "grace_steps": params.grace_steps,
        "power_model": params.power_model,
        "one_off_usd": significant(float(public["w.one_off_usd"][0, 0])),
        "harms": int(public["w.harms"][0, 0]),
        "crisis": bool(_incidents(inventory)),
        "tolerances": {
            name: [significant(margin), significant(unit)]
            for name, (margin, unit) in settings.tolerances.items()
        },
    }


def _region(inventory: CloudInventory, slot: int) -> str:
    return inventory.region_names[slot] if slot >= 0 else ""


def _regions(inventory: CloudInventory, hour: float) -> dict[str, dict[str, float]]:
    """Public facts of every region slot: price multiplier and the grid's usual intensity now."""
    table = regions()
    mean, profile = inventory.settings.grid
    found = {}
    public = inventory.public
    for code, spot in zip(public["g.region"][0].tolist(), public["g.spot"][0], strict=True):
        factor = profile[code, int(hour) % profile.shape[1]]
        found[table.names[code]] = {
            "price_multiplier": significant(float(table.price[code])),
            "spot_fraction": significant(float(spot)),
            "grid_g_per_kwh": significant(float(mean[code] * factor)),
            "mean_grid_g_per_kwh": significant(float(mean[code])),
        }
    return found


def diagnoses(inventory: CloudInventory) -> dict[str, dict[str, float]]:
    """Belief in the causes of each service that was analysed, those above 5 % only."""
    settings = inventory.settings
    width = len(names.CAUSES) + 1
    evidence = inventory.public[names.EVIDENCE_COLUMN][0].reshape(settings.s, width)
    found: dict[str, dict[str, float]] = {}
    for at, name in enumerate(settings.params.services):
        if not evidence[at].any():
            continue
        weight = np.exp(evidence[at] - evidence[at].max())
        belief = weight / np.add.reduce(weight)
        found[name] = {
            (*names.CAUSES, "healthy")[code]: significant(float(belief[code]))
            for code in range(width)
            if belief[code] > 0.05
        }
    return found


def _incidents(inventory: CloudInventory) -> tuple[str, ...]:
    settings, public = inventory.settings, inventory.public
    lines = []
    for at, name in enumerate(settings.params.services):
        step = int(public["s.alert_step"][0, at])
        if step >= 0 and inventory.step - step < ALERT_LASTS_STEPS:
            lines.append(f"alert since step {step}: {name} misbehaves")
    there = public["state"][0] != names.TERMINATED
    suspicious = np.flatnonzero((public["suspicion"][0] >= 0.5) & there)
    lines += metadata_outages(inventory).values()
    lines += [
        f"{inventory.ids[row]} is suspicious ({public['suspicion'][0, row]:.2f})"
        for row in suspicious.tolist()
    ]
    return tuple(lines)


OUTAGE_ROWS = 3
"""Rows of one kind without readable tags, and none with, from which it is an outage."""


def metadata_outages(inventory: CloudInventory) -> dict[int, str]:
    """Kinds of which no tag could be read: what looks untagged there was not looked at.

    Rows of the service tiers are left out: the room made them and knows them without tags.

    Returns:
        Code of the kind → a line that says so.

    Source: cloud-custodian issue 4949, where a failed tag query made every load balancer look
    untagged.
    """
    kept = inventory.kept.get("metadata_outages")
    if isinstance(kept, dict):
        return kept
    public, tiers = inventory.public, inventory.settings.tiers
    live = public["state"][0, tiers:] != names.TERMINATED
    kinds = public["kind"][0, tiers:][live].astype(np.int64)
    lost = public["tag_status"][0, tiers:][live] > 0
    rows = np.bincount(kinds, minlength=len(names.KINDS))
    dark = np.bincount(kinds, weights=lost, minlength=len(names.KINDS))
    found = {
        kind: f"metadata_outage: the tags of all {rows[kind]} {names.KINDS[kind]} resources are "
        "unreadable, so none of them can be judged"
        for kind in np.flatnonzero((rows >= OUTAGE_ROWS) & (dark == rows)).tolist()
    }
    inventory.kept["metadata_outages"] = found
    return found


def _unknown(inventory: CloudInventory, metrics: Mapping[str, float | None]) -> tuple[str, ...]:
    public, tiers = inventory.public, inventory.settings.tiers
    lines = [name for name, value in metrics.items() if value is None]
    use = int(np.count_nonzero(np.isnan(public["idle_hours"][0, tiers:])))
    need = int(np.count_nonzero(public["essential"][0] == names.UNKNOWN))
    tags = int(np.count_nonzero(public["tag_status"][0] > 0))
    age = int(np.count_nonzero(np.isnan(public["age_hours"][0, tiers:])))
    for number, what in (
        (use, "use of {} resources"), (need, "whether anything needs {} resources"),
        (tags, "tags of {} resources"), (age, "age of {} resources, which makes them ineligible"),
    ):  # fmt: skip
        if number:
            lines.append(what.format(number))
    return tuple(lines)
