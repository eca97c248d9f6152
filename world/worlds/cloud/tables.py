"""The cloud's public facts as arrays: regions, grids, round trips, machines, prices.

All figures stand in ``world/data/*.csv``, one row each with its source, its licence and whether it
was read or assumed. Regions and machine sizes are addressed by their place in the table; size
code 0 is "no size".
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from world.errors import UnknownNameError
from world.worlds.finops.sizes import machine_types
from world.worlds.finops.tables import grid_intensities, size_table

Floats = NDArray[np.float64]
PowerModel = Literal["ccf", "teads"]

PUE = 1.135
"""Power usage effectiveness of the data centres. Source: Cloud Carbon Footprint, AWS."""

MEMORY_WATTS_PER_GIB = 0.392
"""Power of memory. Source: Cloud Carbon Footprint coefficients."""

HOURS_PER_MONTH = 730.0
"""Hours in a billing month. Source: AWS price lists."""

RESERVED_FACTOR = 0.63
"""Price of a one-year reservation over on demand. Source: m5 in the Vantage EC2 export: .62–.63."""

SPOT_FACTOR = 0.45
"""Price of spot over on demand. Source: m5 in the Vantage EC2 export: .35–.5."""

GEOGRAPHIES = ("na", "eu", "ap")
"""Where users are; each stands at the anchor region below."""

ANCHORS = ("us-east-1", "eu-west-1", "ap-northeast-1")

LAST_MILE_MS = 18.0
"""Round trip between users and the nearest region, ms; assumed."""

_DATA = Path(__file__).parents[2] / "data"


def _rows(name: str) -> list[dict[str, str]]:
    with (_DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@dataclass(frozen=True, slots=True)
class RegionTable:
    """All regions, in table order.

    Attributes:
        names: Region ids.
        price: float64 [n], price over that of us-east-1.
        grid_g_per_kwh: float64 [n], yearly mean intensity.
        profile: float64 [n, 24], intensity over its mean per UTC hour.
        rtt_ms: float64 [n, n], round trips between regions; 0 on the diagonal.
        user_rtt_ms: float64 [n, 3], round trips from each geography's users.
    """

    names: tuple[str, ...]
    price: Floats
    grid_g_per_kwh: Floats
    profile: Floats
    rtt_ms: Floats
    user_rtt_ms: Floats


@cache
def regions() -> RegionTable:
    """The one table. Source: cloud_regions, grid_intensity, grid_profiles and region_rtt."""
    rows = _rows("cloud_regions.csv")
    names = tuple(row["region"] for row in rows)
    place = {name: at for at, name in enumerate(names)}
    shapes: dict[str, Floats] = {}
    for row in _rows("grid_profiles.csv"):
        shapes.setdefault(row["profile"], np.ones(24))[int(row["hour_utc"])] = float(row["factor"])
    rtt = np.zeros((len(names), len(names)))
    for row in _rows("region_rtt.csv"):
        one, other = place[row["region"]], place[row["other"]]
        rtt[one, other] = rtt[other, one] = float(row["rtt_ms"])
    grid = grid_intensities()
    return RegionTable(
        names=names,
        price=np.array([float(row["price_multiplier"]) for row in rows]),
        grid_g_per_kwh=np.array([grid[name] for name in names]),
        profile=np.array([shapes[row["grid_profile"]] for row in rows]),
        rtt_ms=rtt,
        user_rtt_ms=LAST_MILE_MS + np.stack([rtt[:, place[name]] for name in ANCHORS], axis=1),
    )


_OWN_LAW = {"eu-west-2": "uk", "eu-central-2": "ch"}


def jurisdiction(region: str) -> str:
    """Whose law on personal data holds in a region; for most it is the first part of the id.

    >>> jurisdiction("eu-west-3"), jurisdiction("eu-west-2"), jurisdiction("us-east-1")
    ('eu', 'uk', 'us')

    Source: Regulation (EU) 2016/679, chapter V, restricts transfers of personal data to third
    countries; the United Kingdom and Switzerland are such. A simplification: adequacy decisions
    and contractual clauses are left out.
    """
    return _OWN_LAW.get(region, region.partition("-")[0])


def region_code(name: str) -> int:
    """Place of a region in the table.

    Raises:
        UnknownNameError: The table does not hold it.
    """
    names = regions().names
    if name not in names:
        raise UnknownNameError(
            f"there is no region {name!r}",
            "it is not in world/data/cloud_regions.csv",
            f"Regions: {', '.join(names)}",
        )
    return names.index(name)


@cache
def prices() -> dict[str, float]:
    """Item → price, in the unit that the table names."""
    return {row["item"]: float(row["price"]) for row in _rows("cloud_prices.csv")}


@dataclass(frozen=True, slots=True)
class MachineTable:
    """Machine sizes by size code; code 0 is "no size" and holds, costs and draws nothing.

    Attributes:
        names: Spelling per code.
        vcpu: float64 [n].
        memory_gib: float64 [n].
        usd_per_hour: float64 [n], on-demand price in us-east-1.
        speed: float64 [n], relative speed of one vCPU.
        ladder: int32 [n], sizes with one number may be exchanged for each other; -1 is none.
        watts: float64 [n, 3], whole machine at 0, 50 and 100 % CPU.
    """

    names: tuple[str, ...]
    vcpu: Floats
    memory_gib: Floats
    usd_per_hour: Floats
    speed: Floats
    ladder: NDArray[np.int32]
    watts: Floats


@cache
def machines(model: PowerModel) -> MachineTable:
    """Machine sizes with the watts of a power model.

    ``teads`` takes the measured points of the machine table; ``ccf`` takes
    vCPU·(idle + u·(full − idle)) by processor generation plus memory, linear in u.

    Source: Teads EC2 dataset and Cloud Carbon Footprint coefficients (see the tables). The two
    differ by a factor of up to 1.8 at half load, which is why runs name the model they used.
    """
    sizes = size_table()
    rows = {row["family"]: row for row in _rows("machine_families.csv")}
    speed = np.ones(sizes.count)
    watts = sizes.watts.copy()
    for code, machine in enumerate(machine_types(), start=1):
        row = rows.get(machine.family.removeprefix("db."))
        if row is None:
            continue
        speed[code] = float(row["speed"])
        if model == "ccf":
            idle, full = float(row["idle_watts_per_vcpu"]), float(row["full_watts_per_vcpu"])
            memory = machine.memory_gib * MEMORY_WATTS_PER_GIB
            for point, level in enumerate((0.0, 0.5, 1.0)):
                watts[code, point] = machine.vcpu * (idle + level * (full - idle)) + memory
    return MachineTable(
        names=sizes.names,
        vcpu=np.nan_to_num(sizes.vcpu),
        memory_gib=np.nan_to_num(sizes.memory_gib),
        usd_per_hour=np.nan_to_num(sizes.usd_per_hour),
        speed=speed,
        ladder=sizes.ladder,
        watts=watts,
    )
