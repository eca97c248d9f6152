"""Inventories by seed: service tiers, then waste, look-alikes and the rest in a shuffled order.

All seeds of a batch are made in one pass of array operations, so that the world of a seed does
not depend on the batch it was made in. Only counter-based noise is used, on step 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.worlds.cloud import schema as names
from world.worlds.cloud.archetypes import ARCHETYPES, BY_NAME, Archetype
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats
from world.worlds.cloud.tables import SPOT_FACTOR, machines, region_code, regions
from world.worlds.finops.tables import size_codes

_SHARES = {"waste": 0.27}
_UNKNOWN_USE_FRACTION = 0.15
"""Rows whose use nobody measures until somebody asks; assumed."""
_UNKNOWN_AGE_FRACTION = 0.04
"""Rows without a creation time. Source: cloud-nuke issues 480 and 1153 report that they exist."""
DATABASE_SET, BATCH_SET, CACHE_SET = (20.0, 40.0), (14.0, 22.0), (20.0, 45.0)
"""Memory that a database's or a cache's working set takes at the start, percent; assumed."""
OBJECTS_NEEDED, OBJECTS_OTHER = 0.9, 0.03
"""Odds that an owner objects to a mark on what is needed, and on what is not; assumed."""
DISK_SHARE = (0.4, 0.7)
"""Share of a database's disk that its data take at the start; assumed."""
QUOTA_HOME, QUOTA_AWAY, QUOTA_DATABASE = 2.0, 1.4, 4.0
"""Capacity that the provider allows, over the fleet at the start; assumed."""


def _draws(seeds: NDArray[np.uint64], entities: Array, stream: str) -> Floats:
    """Four uniforms per world and entity, float64 [4, B, n]."""
    return noise.uniforms(seeds[:, None], entities[None, :], noise.channel(f"cloud.{stream}"), 0)


@cache
def _table(role: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Archetypes of a role and their cumulated shares."""
    codes = [c for c, a in enumerate(ARCHETYPES) if a.role == role and a.share > 0]
    shares = np.array([ARCHETYPES[code].share for code in codes])
    return tuple(codes), tuple((np.cumsum(shares) / shares.sum()).tolist())


def _numbers(pick: Any) -> Floats:
    """One number of every archetype, float64 [archetypes]."""
    return np.array([pick(archetype) for archetype in ARCHETYPES], dtype=np.float64)


def _range(field: str) -> tuple[Floats, Floats]:
    def bounds(archetype: Archetype) -> tuple[float, float]:
        value = getattr(archetype, field)
        return (np.nan, np.nan) if value is None else value

    return _numbers(lambda a: bounds(a)[0]), _numbers(lambda a: bounds(a)[1])


def _choices(field: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Coded choices padded to one width, and how many there are."""
    codes = size_codes()
    lists = [
        [codes[c] if isinstance(c, str) else c for c in getattr(a, field)] or [0]
        for a in ARCHETYPES
    ]
    width = max(map(len, lists))
    padded = np.array([(entry * width)[:width] for entry in lists])
    return padded, np.array([len(entry) for entry in lists])


def sorts(settings: Settings, seeds: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Archetype of every extra row in unshuffled order, int64 [B, E].

    The control plane, a stopped machine with its disk and a volume of each sort always exist:
    the cost of every seed can be calibrated by storage.
    """
    extras = settings.extras
    params = settings.params
    waste = max(3, round(_SHARES["waste"] * params.rows)) - 2
    decoys = round(params.decoy_fraction * params.rows)
    waste = min(waste, extras - 3 - decoys)
    roles = ["ordinary"] * 1 + ["waste"] * 2 + ["waste"] * waste + ["decoy"] * decoys
    roles += ["ordinary"] * (extras - len(roles))
    roles = roles[:extras]
    u = _draws(seeds, np.arange(extras, dtype=np.uint32), "sort")[0]
    found = np.zeros(u.shape, dtype=np.int64)
    for role in ("waste", "decoy", "ordinary"):
        codes, edges = _table(role)
        at = [position for position, name in enumerate(roles) if name == role]
        pick = np.minimum(np.searchsorted(np.array(edges), u[:, at]), len(codes) - 1)
        found[:, at] = np.array(codes)[pick]
    found[:, 0] = BY_NAME["control_plane"]
    found[:, 1] = BY_NAME["stopped_vm"]
    found[:, 2] = BY_NAME["disk_of_stopped_vm"]
    found[:, 3] = BY_NAME["unattached_volume"]
    found[:, -1] = BY_NAME["attached_volume"]
    return found


def empty_columns(settings: Settings, batch: int) -> dict[str, Array]:
    """All columns, zero."""
    sizes = {
        names.ROW_COLUMNS: settings.rows,
        names.HIDDEN_ROW_COLUMNS: settings.rows,
        names.SERVICE_COLUMNS: settings.s,
        names.HIDDEN_SERVICE_COLUMNS: settings.s,
        names.REGION_COLUMNS: settings.regions,
        names.HIDDEN_REGION_COLUMNS: settings.regions,
        names.INCIDENT_COLUMNS: max(settings.params.incidents, 1),
        names.WORLD_COLUMNS: 1,
        names.HIDDEN_WORLD_COLUMNS: 1,
    }
    columns: dict[str, Array] = {
        name: np.zeros((batch, width), dtype=dtype)
        for group, width in sizes.items()
        for name, dtype, _ in group
    }
    columns[names.EVIDENCE_COLUMN] = np.zeros((batch, settings.s * (len(names.CAUSES) + 1)))
    columns["h.backlog"] = np.zeros((batch, settings.queues))
    return columns


def generate(settings: Settings, seeds: NDArray[np.uint64]) -> dict[str, Array]:
    """Columns of every seed before calibration (fleets of scale 1, storage of scale 1)."""
    columns = empty_columns(settings, len(seeds))
    for name, value in (
        ("attached_to", -1), ("needed_by", -1), ("service", -1), ("marked_at_step", -1),
        ("down_at_step", -1000), ("up_at_step", -1000), ("resized_at_step", -1000),
        ("s.move_to", -1), ("s.move_from", -1),
        ("s.alert_step", -1), ("s.autoscale_target", 0.65), ("s.anomaly", np.nan),
        ("s.own_fault", np.nan), ("h.s.spike", 1), ("h.s.slow", 1), ("h.s.db_slow", 1),
        ("h.g.price", 1), ("h.g.ci", 1), ("h.g.up", 1), ("w.last_kinds", -1), ("weight", 0),
        ("g.spot", SPOT_FACTOR), ("s.disk_room", 1), ("h.s.corrupt_step", -1),
        ("h.s.cut_at_step", -1000), ("h.i.service", -1), ("h.i.victim", -1), ("h.i.row", -1),
        ("h.i.slot", -1),        ("h.i.known_step", -1), ("h.i.cured_step", -1),
    ):  # fmt: skip
        columns[name][...] = value
    columns["ordinal"][...] = np.arange(settings.rows, dtype=np.uint32)
    _places(settings, seeds, columns)
    _tiers(settings, columns)
    _services(settings, seeds, columns)
    _extras(settings, seeds, columns)
    _knowledge(settings, seeds, columns)
    _working_sets(settings, seeds, columns)
    _objections(settings, seeds, columns)
    return columns


def _places(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """Region of every slot, and how likely capacity is to be had there."""
    params = settings.params
    fixed = [region_code(name) for name in (params.home_region, *params.regions)]
    columns["g.region"][:, : len(fixed)] = fixed
    if params.drawn_regions:
        pool = np.array([region_code(r) for r in params.region_pool if region_code(r) not in fixed])
        u = _draws(seeds, np.arange(len(pool), dtype=np.uint32), "region")[0]
        order = np.argsort(u, axis=1, kind="stable")[:, : params.drawn_regions]
        columns["g.region"][:, len(fixed) :] = pool[order]
    u = _draws(seeds, np.arange(settings.regions, dtype=np.uint32), "stockout")[0]
    columns["h.g.stockout"][...] = 0.06 * params.fail_scale * u * u
    hour = _draws(seeds, np.zeros(1, dtype=np.uint32), "start")
    start = params.start_hour_utc
    columns["w.start_hour_utc"][...] = np.floor(hour[0] * 24.0) if start is None else start
    columns["h.w.day"][...] = np.floor(hour[1] * 7.0)


def _tiers(settings: Settings, columns: dict[str, Array]) -> None:
    """Pools, databases, load balancers and caches."""
    codes = size_codes()
    s, g, pools = settings.s, settings.regions, settings.pools
    queues = settings.queues
    services = np.arange(s)
    columns["service"][:, :pools] = np.repeat(services, g)
    columns["slot"][:, :pools] = np.tile(np.arange(g), s)
    for start in (pools, queues, queues + s):
        columns["service"][:, start : start + s] = services
    columns["kind"][:, :pools] = names.COMPUTE
    columns["kind"][:, pools:queues] = names.DB
    columns["kind"][:, queues : queues + s] = names.LB
    columns["kind"][:, queues + s : settings.tiers] = names.CACHE
    columns["state"][:, :pools] = names.EMPTY
    home = services * g
    columns["state"][:, home] = names.RUNNING
    columns["weight"][:, home] = 1.0
    columns["size"][:, :pools] = np.repeat([codes[v.size] for v in settings.services], g)
    columns["size"][:, pools:queues] = [codes[v.db_size] for v in settings.services]
    columns["size"][:, queues + s : settings.tiers] = codes["r5.2xlarge"]
    tiers = slice(queues, settings.tiers)
    columns["count"][:, tiers] = 1.0
    columns["cpu_percent"][:, tiers] = columns["peak_cpu_percent"][:, tiers] = np.nan
    columns["memory_percent"][:, tiers] = np.nan
    columns["environment"][:, : settings.tiers] = 1
    columns["owner"][:, : settings.tiers] = columns["service"][:, : settings.tiers] % 3 + 1
    columns["h.essential"][:, pools : settings.tiers] = 1
    columns["h.essential"][:, home] = 1
    columns["age_hours"][:, : settings.tiers] = 4000.0
    columns["needed_by"][:, queues : settings.tiers] = np.tile(home, 2)


def _services(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """Hidden service scalars: memory, phase of the day, state of the noise."""
    u = _draws(seeds, np.arange(settings.s, dtype=np.uint32), "service")
    columns["h.s.memory_base"][...] = 0.45 + 0.15 * u[0]
    columns["h.s.memory_age_h"][...] = 24.0 + 240.0 * u[1]
    # The slope of demand at the start is the world's; services follow within an hour.
    world = _draws(seeds, np.zeros(1, dtype=np.uint32), "slope")[0]
    start = columns["w.start_hour_utc"]
    columns["h.s.phase_h"][...] = start - 24.0 * world + 2.0 * (u[2] - 0.5)
    columns["h.s.phase_h"][:, settings.batch] += 12.0  # batch work comes at night


def _extras(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """Everything outside the tiers, in an order that the seed shuffles."""
    first, extras = settings.tiers, settings.extras
    rows = np.arange(extras, dtype=np.uint32)
    sort = sorts(settings, seeds)
    shuffle = _draws(seeds, rows, "shuffle")[0]
    order = np.argsort(shuffle, axis=1, kind="stable")  # row position → unshuffled position
    place = np.argsort(order, axis=1, kind="stable")  # unshuffled position → row position
    sort = np.take_along_axis(sort, order, axis=1)
    u, v, w = (_draws(seeds, rows + first, f"extra.{name}") for name in "uvw")

    def between(field: str, draw: Floats) -> Floats:
        low, high = _range(field)
        value: Floats = low[sort] + (high[sort] - low[sort]) * draw
        return value

    def choice(field: str, draw: Floats) -> NDArray[np.int64]:
        table, count = _choices(field)
        pick: NDArray[np.int64] = table[
            sort, np.minimum(draw * count[sort], count[sort] - 1).astype(int)
        ]
        return pick

    block = slice(first, settings.rows)
    columns["h.archetype"][:, block] = sort
    columns["kind"][:, block] = _numbers(lambda a: a.kind)[sort]
    columns["size"][:, block] = choice("sizes", u[0])
    # Idle machines stand where the work is; the rest is spread more evenly.
    idle = _numbers(lambda a: a.role == "waste" and a.kind in (names.COMPUTE, names.GPU))[sort] > 0
    columns["slot"][:, block] = np.floor(settings.regions * u[1] ** np.where(idle, 6.0, 2.0))
    size = _skew(settings, seeds, sort)
    wasted = _numbers(lambda a: a.role == "waste")[sort] > 0
    count = np.floor(between("count", u[2]) * np.where(wasted, size, 1.0) + 0.5)
    columns["count"][:, block] = np.maximum(count, _range("count")[0][sort])
    columns["size_gb"][:, block] = between("gigabytes", u[3]) * size
    columns["h.cpu_percent"][:, block] = between("cpu", v[0])
    columns["h.peak_cpu_percent"][:, block] = between("peak", v[1])
    columns["h.memory_percent"][:, block] = between("memory", v[2])
    columns["h.idle_hours"][:, block] = between("idle_hours", v[3])
    columns["age_hours"][:, block] = np.maximum(
        between("age_hours", w[0]), columns["h.idle_hours"][:, block] + 24.0
    )
    columns["environment"][:, block] = choice("environments", w[1])
    columns["owner"][:, block] = choice("owners", w[2])
    columns["state"][:, block] = _numbers(lambda a: a.state)[sort]
    detached = _numbers(lambda a: a.detached)[sort] > 0
    columns["state"][:, block][detached] = names.DETACHED
    columns["h.essential"][:, block] = _numbers(lambda a: a.essential)[sort]
    columns["protected"][:, block] = _numbers(lambda a: a.protected)[sort]
    columns["managed_by"][:, block] = _numbers(lambda a: a.managed_by)[sort]
    spot = _numbers(lambda a: a.spot)[sort] > 0
    columns["pricing"][:, block] = np.where(spot, 2, 0)
    service = np.floor(w[3] * settings.s).astype(np.int64)
    plane = first + place[:, :1]
    stopped = first + place[:, 1:2]
    targets = {
        "pool": service * settings.regions,
        "db": settings.pools + service,
        "lb": settings.queues + service,
        "plane": np.broadcast_to(plane, service.shape),
        "stopped": np.broadcast_to(stopped, service.shape),
    }
    for field, column in (("hangs_on", "attached_to"), ("needed_by", "needed_by")):
        for word, row in targets.items():
            mask = _numbers(lambda a, f=field, x=word: getattr(a, f) == x)[sort] > 0
            columns[column][:, block] = np.where(mask, row, columns[column][:, block])
    # What hangs on a tier is needed by it.
    hangs = columns["attached_to"][:, block]
    needed = (hangs >= 0) & (columns["h.essential"][:, block] > 0)
    columns["needed_by"][:, block] = np.where(needed, hangs, columns["needed_by"][:, block])


def _skew(settings: Settings, seeds: NDArray[np.uint64], sort: NDArray[np.int64]) -> Floats:
    """Factors of mean 1 on the sizes of waste and look-alikes, float64 [B, extras].

    Stored look-alikes have them too, so that a large volume is not waste for being large.
    """
    sigma = settings.params.waste_skew
    factor = np.ones(sort.shape)
    if sigma > 0.0:
        u = _draws(seeds, np.arange(settings.extras, dtype=np.uint32), "skew")
        normal = np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])
        skewed = _numbers(lambda a: a.role != "ordinary" and not a.oversized)[sort] > 0
        factor = np.where(skewed, np.exp(sigma * normal - 0.5 * sigma * sigma), factor)
    return factor


def _knowledge(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """What is known of each row at the start."""
    params = settings.params
    rows = np.arange(settings.rows, dtype=np.uint32)
    u = _draws(seeds, rows, "knowledge")
    extra = rows >= settings.tiers
    truth = np.where(columns["h.essential"] > 0, names.YES, names.NO)
    hidden = (u[0] < params.unknown_essential_fraction) & extra
    columns["essential"][...] = np.where(hidden, names.UNKNOWN, truth)
    columns["tag_status"][...] = (u[1] < params.unknown_tag_fraction) & extra
    lost = columns["tag_status"] == 1
    columns["environment"][lost] = 0
    columns["owner"][lost] = 0
    blind = (u[2] < _UNKNOWN_USE_FRACTION) & extra & (params.noise_fraction > 0)
    for name in ("cpu_percent", "peak_cpu_percent", "memory_percent", "idle_hours"):
        columns[name][...] = np.where(blind, np.nan, columns[f"h.{name}"])
    tier = ~extra
    for name in ("cpu_percent", "peak_cpu_percent", "memory_percent"):
        columns[name][:, tier] = np.nan
    ageless = (u[3] < _UNKNOWN_AGE_FRACTION) & extra & (params.noise_fraction > 0)
    columns["age_hours"][ageless] = np.nan
    columns["region"][...] = np.take_along_axis(
        columns["g.region"], columns["slot"].astype(np.int64), axis=1
    )


def _objections(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """Whose owners object to a mark: nearly all of what is needed, and a few others."""
    rows = np.arange(settings.tiers, settings.rows, dtype=np.uint32)
    u = _draws(seeds, rows, "objection")[0]
    block = slice(settings.tiers, settings.rows)
    needed = columns["h.essential"][:, block] > 0
    columns["h.objects"][:, block] = u < np.where(needed, OBJECTS_NEEDED, OBJECTS_OTHER)


def _working_sets(settings: Settings, seeds: NDArray[np.uint64], columns: dict[str, Array]) -> None:
    """What the memory and the disks of databases and caches hold; every instance holds it all."""
    rows = np.arange(settings.pools, settings.tiers, dtype=np.uint32)
    u = _draws(seeds, rows, "working_set")[0]
    s = settings.s
    low = np.where(settings.batch, BATCH_SET[0], DATABASE_SET[0])
    high = np.where(settings.batch, BATCH_SET[1], DATABASE_SET[1])
    caches = slice(settings.queues + s, settings.tiers)
    for name in ("memory_percent", "h.memory_percent"):
        columns[name][:, settings.pools : settings.queues] = low + (high - low) * u[:, :s]
        columns[name][:, caches] = CACHE_SET[0] + (CACHE_SET[1] - CACHE_SET[0]) * u[:, 2 * s :]
    full = _draws(seeds, np.arange(s, dtype=np.uint32), "disk")[0]
    columns["h.s.disk_base"][...] = DISK_SHARE[0] + (DISK_SHARE[1] - DISK_SHARE[0]) * full


def fleets(settings: Settings, columns: dict[str, Array], scale: Floats) -> None:
    """Set the instances of every home pool and database for a fleet scale, in place.

    Args:
        settings: The layout.
        columns: Columns to write.
        scale: float64 [B], instances of a service whose relative fleet is 1.
    """
    home = np.arange(settings.s) * settings.regions
    count = np.maximum(np.floor(settings.per_service("fleet") * scale[:, None] + 0.5), 2.0)
    columns["count"][:, home] = count
    table = machines(settings.params.power_model)
    size = table.vcpu[columns["size"][:, : settings.queues]]
    pools = slice(0, settings.pools)
    columns["quota_vcpu"][:, pools] = size[:, pools] * np.repeat(
        np.floor(QUOTA_AWAY * count), settings.regions, axis=1
    )
    columns["quota_vcpu"][:, home] = size[:, home] * np.floor(QUOTA_HOME * count)
    calls = settings.per_service("db_calls") * (1 - settings.per_service("cache_hit_fraction"))
    work = calls * settings.per_service("tau_db_ms") / settings.per_service("tau_ms")
    users = np.ceil(count * work / 0.6)
    counts = np.where(settings.batch, np.ceil(count * 0.06), np.maximum(users, 2.0))
    columns["count"][:, settings.pools : settings.queues] = counts
    at = slice(settings.pools, settings.queues)
    columns["quota_vcpu"][:, at] = QUOTA_DATABASE * counts * size[:, at]
    at = slice(settings.queues + settings.s, settings.tiers)
    columns["count"][:, at] = np.where(
        settings.per_service("cache_hit_fraction") > 0, np.maximum(np.floor(count / 25), 1), 1
    )


def region_names(columns: dict[str, Array], row: int) -> Sequence[str]:
    """Names of one world's region slots."""
    table = regions().names
    return [table[code] for code in columns["g.region"][row]]
