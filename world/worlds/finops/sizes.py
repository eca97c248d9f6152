"""Machine sizes: what they hold, cost and draw, and what may be exchanged for what.

The table is ``world/data/machine_types.csv``; every row names its source, and rows whose price was
derived or assumed say so. A *ladder* is the set of sizes that one resource may be resized along:
its own family and declared equivalents (same architecture and same GiB per vCPU, for example
m5, m6i and m7i). A resize preserves the work: percentages scale by the ratio of vCPUs and GiB.

All functions are pure. Unknown size texts give an empty ladder, never a guess.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from world.errors import UnknownNameError

TABLE = Path(__file__).parents[2] / "data" / "machine_types.csv"

FIT_CEILING_PERCENT = 85.0
"""A careful resize keeps CPU and memory below this.

Source: the saturation target of the scenarios; head room of about 15 % is the usual target
utilisation margin of autoscalers.
"""

OVERLOAD_PERCENT = 100.0
"""From here on a resource has more work than capacity."""


@dataclass(frozen=True, slots=True)
class MachineType:
    """One size.

    Attributes:
        name: Its spelling on bills, for example ``m5.xlarge`` or ``Standard_D4s_v5``.
        provider: ``aws``, ``azure`` or ``gcp``.
        family: Family within the provider.
        ladder: Name of the set of sizes it may be exchanged for.
        vcpu: Virtual CPUs.
        memory_gib: Memory in GiB.
        usd_per_hour: On-demand list price, $/h.
        watts: Whole-machine power at 0, 50 and 100 % CPU, W.
        assumed: Whether price or power is derived or assumed rather than read in the source.
        source: Where the figures come from.
    """

    name: str
    provider: str
    family: str
    ladder: str
    vcpu: int
    memory_gib: float
    usd_per_hour: float
    watts: tuple[float, float, float]
    assumed: bool
    source: str


@cache
def machine_types() -> tuple[MachineType, ...]:
    """Every size of the table, in file order (the order that size codes use)."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            MachineType(
                name=row["type"],
                provider=row["provider"],
                family=row["family"],
                ladder=row["ladder"],
                vcpu=int(row["vcpu"]),
                memory_gib=float(row["memory_gib"]),
                usd_per_hour=float(row["usd_per_hour"]),
                watts=(
                    float(row["watts_idle"]),
                    float(row["watts_50"]),
                    float(row["watts_100"]),
                ),
                assumed=row["assumed"] == "yes",
                source=row["source"],
            )
            for row in csv.DictReader(lines)
        )


@cache
def _by_name() -> dict[str, MachineType]:
    return {machine.name: machine for machine in machine_types()}


@cache
def _by_key() -> dict[str, str]:
    return {_key(machine.name): machine.name for machine in machine_types()}


@cache
def _ladders() -> dict[str, tuple[str, ...]]:
    rungs: dict[str, list[MachineType]] = {}
    for machine in machine_types():
        rungs.setdefault(machine.ladder, []).append(machine)
    return {name: tuple(m.name for m in sorted(group, key=_rank)) for name, group in rungs.items()}


def _rank(machine: MachineType) -> tuple[float, float, float, str]:
    return (machine.vcpu, machine.memory_gib, machine.usd_per_hour, machine.name)


_NOISE = re.compile(r"[\s_-]+")


def _key(text: str) -> str:
    key = _NOISE.sub("", text.strip().lower())
    return key.removeprefix("standard")


def canonical_size(text: str) -> str | None:
    """The table's spelling of a size, or None when the table does not hold it.

    Case, spaces, ``_`` and ``-`` do not matter, nor does Azure's ``Standard_``.

    >>> canonical_size("D4s v5")
    'Standard_D4s_v5'
    >>> canonical_size("500GB") is None
    True
    """
    if len(text) > 64:
        return None
    return _by_key().get(_key(text))


def is_size(size: str) -> bool:
    """Whether the table holds exactly this spelling."""
    return size in _by_name()


def machine_type(size: str) -> MachineType:
    """One row of the table.

    Raises:
        UnknownNameError: The table does not hold this size.
    """
    machine = _by_name().get(size)
    if machine is None:
        close = canonical_size(size)
        raise UnknownNameError(
            f"there is no machine size {size!r}",
            "it is not in world/data/machine_types.csv",
            f"Did you mean {close}?" if close else "Sizes are spelt like m5.xlarge",
        )
    return machine


def ladder(size: str) -> tuple[str, ...]:
    """Every size that `size` may be exchanged for, itself included, smallest first.

    >>> ladder("c5.xlarge")
    ('c5.large', 'c5.xlarge', 'c5.2xlarge', 'c5.4xlarge')
    >>> ladder("500GB")
    ()
    """
    machine = _by_name().get(size)
    return _ladders()[machine.ladder] if machine else ()


def sizes_of_family(size: str) -> tuple[str, ...]:
    """The sizes of the same family, itself included, smallest first; () when unknown."""
    machine = _by_name().get(size)
    if machine is None:
        return ()
    return tuple(name for name in ladder(size) if _by_name()[name].family == machine.family)


@cache
def smaller_sizes(size: str) -> tuple[str, ...]:
    """Sizes on the ladder that cost less and hold no more, largest first, own family first.

    >>> smaller_sizes("c5.xlarge")
    ('c5.large',)
    """
    return _cheaper(size, -1.0)


@cache
def cheapest_sizes(size: str) -> tuple[str, ...]:
    """The same as `smaller_sizes`, cheapest first; at one price the own family comes first."""
    return _cheaper(size, 1.0)


def _cheaper(size: str, direction: float) -> tuple[str, ...]:
    machine = _by_name().get(size)
    if machine is None:
        return ()
    found = [
        other
        for other in (_by_name()[name] for name in ladder(size))
        if other.usd_per_hour < machine.usd_per_hour
        and other.vcpu <= machine.vcpu
        and other.memory_gib <= machine.memory_gib
    ]
    found.sort(
        key=lambda other: (
            direction * other.usd_per_hour,
            other.family != machine.family,
            other.name,
        )
    )
    return tuple(other.name for other in found)


@cache
def larger_sizes(size: str) -> tuple[str, ...]:
    """Sizes on the ladder that hold more CPU or memory and no less of either, smallest first."""
    machine = _by_name().get(size)
    if machine is None:
        return ()
    return tuple(
        name
        for name in ladder(size)
        if (other := _by_name()[name]).vcpu >= machine.vcpu
        and other.memory_gib >= machine.memory_gib
        and (other.vcpu > machine.vcpu or other.memory_gib > machine.memory_gib)
    )


def price(size: str) -> float:
    """On-demand list price in $/h.

    Raises:
        UnknownNameError: The table does not hold this size.
    """
    return machine_type(size).usd_per_hour


def projected_percent(
    size: str, new_size: str, cpu_percent: float | None, memory_percent: float | None
) -> tuple[float, float]:
    """CPU and memory after a resize that preserves the work.

    Args:
        size: Present size.
        new_size: Size afterwards.
        cpu_percent: CPU now, 0–100; None or NaN is unknown.
        memory_percent: Memory now, 0–100; None or NaN is unknown.

    Returns:
        CPU and memory in percent of the new capacity; NaN where unknown. Above 100 means that
        the work no longer fits.

    Raises:
        UnknownNameError: The table does not hold one of the sizes.
    """
    old, new = machine_type(size), machine_type(new_size)
    cpu = math.nan if cpu_percent is None else cpu_percent
    memory = math.nan if memory_percent is None else memory_percent
    return cpu * old.vcpu / new.vcpu, memory * old.memory_gib / new.memory_gib


def fits(
    size: str,
    new_size: str,
    cpu_percent: float | None,
    memory_percent: float | None,
    ceiling_percent: float = FIT_CEILING_PERCENT,
) -> bool:
    """Whether the work is known to stay below the ceiling after a resize.

    A dimension that is unknown fits only where the new size holds at least as much of it.

    >>> fits("m5.4xlarge", "m5.xlarge", 10.0, 12.0)
    True
    >>> fits("m5.4xlarge", "m5.xlarge", 10.0, None)
    False
    """
    old, new = machine_type(size), machine_type(new_size)
    cpu, memory = projected_percent(size, new_size, cpu_percent, memory_percent)
    cpu_fits = new.vcpu >= old.vcpu if math.isnan(cpu) else cpu < ceiling_percent
    memory_fits = (
        new.memory_gib >= old.memory_gib if math.isnan(memory) else memory < ceiling_percent
    )
    return cpu_fits and memory_fits


def cheapest_fit(size: str, cpu_percent: float | None, memory_percent: float | None) -> str | None:
    """The cheapest smaller size that `fits`, or None where there is none."""
    for name in cheapest_sizes(size):
        if fits(size, name, cpu_percent, memory_percent):
            return name
    return None


def watts(size: str, cpu_percent: float) -> float:
    """Power in W at a CPU utilisation, piecewise linear over 0, 50 and 100 %.

    Source: Teads EC2 dataset and Cloud Carbon Footprint coefficients (see the table's columns).

    Raises:
        UnknownNameError: The table does not hold this size.
    """
    idle, half, full = machine_type(size).watts
    level = min(max(cpu_percent, 0.0), 100.0)
    if level <= 50.0:
        return idle + (half - idle) * level / 50.0
    return half + (full - half) * (level - 50.0) / 50.0
