"""The size table and the grid table as arrays, addressed by the codes that inventories hold.

A size code is a position in the vocabulary of the ``size`` column: 0 is no size, 1… are the rows
of the machine table in file order, anything above is free text that no resize can touch.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from world.worlds.finops.sizes import cheapest_sizes, ladder, machine_types

PUE = 1.135
"""Power usage effectiveness of the data centre. Source: Cloud Carbon Footprint, AWS."""

UNKNOWN_CPU_PERCENT = 50.0
"""CPU that carbon assumes where it is not known. Source: Cloud Carbon Footprint's default."""

DEFAULT_GRID_G_PER_KWH = 416.0
"""Grid intensity of regions that the table lacks: that of us-east-1, g CO2e/kWh."""

GRID_TABLE = Path(__file__).parents[2] / "data" / "grid_intensity.csv"


@dataclass(frozen=True, slots=True)
class SizeTable:
    """Arrays over size codes; row 0 stands for "no size".

    Attributes:
        names: Spelling per code, "" first.
        vcpu: float64 [n]; NaN for none, so that it never compares as fitting.
        memory_gib: float64 [n].
        usd_per_hour: float64 [n].
        watts: float64 [n, 3] at 0, 50 and 100 % CPU.
        ladder: int32 [n], number of the ladder; -1 for none.
        smaller: int32 [n, most]: codes of cheaper sizes that hold no more, cheapest first, padded
            with 0.
    """

    names: tuple[str, ...]
    vcpu: NDArray[np.float64]
    memory_gib: NDArray[np.float64]
    usd_per_hour: NDArray[np.float64]
    watts: NDArray[np.float64]
    ladder: NDArray[np.int32]
    smaller: NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of codes, "no size" included."""
        return len(self.names)


@cache
def size_table() -> SizeTable:
    """The one table."""
    machines = machine_types()
    names = ("", *(machine.name for machine in machines))
    code = {name: position for position, name in enumerate(names)}
    ladders = sorted({machine.ladder for machine in machines})
    cheaper = [[code[name] for name in cheapest_sizes(machine.name)] for machine in machines]
    smaller = np.zeros((len(names), max(map(len, cheaper))), dtype=np.int32)
    for position, codes in enumerate(cheaper, start=1):
        smaller[position, : len(codes)] = codes
    return SizeTable(
        names=names,
        vcpu=np.array([np.nan, *(float(machine.vcpu) for machine in machines)]),
        memory_gib=np.array([np.nan, *(machine.memory_gib for machine in machines)]),
        usd_per_hour=np.array([np.nan, *(machine.usd_per_hour for machine in machines)]),
        watts=np.array([(0.0, 0.0, 0.0), *(machine.watts for machine in machines)]),
        ladder=np.array(
            [-1, *(ladders.index(machine.ladder) for machine in machines)], dtype=np.int32
        ),
        smaller=smaller,
    )


@cache
def size_codes() -> dict[str, int]:
    """Spelling → code, sizes of the machine table only."""
    return {name: code for code, name in enumerate(size_table().names) if code}


@cache
def other_rungs(code: int) -> tuple[int, ...]:
    """Codes that a size code may be exchanged for, smallest first, itself left out."""
    table = size_table()
    if not 0 < code < table.count:
        return ()
    codes = size_codes()
    return tuple(codes[name] for name in ladder(table.names[code]) if codes[name] != code)


@cache
def grid_intensities() -> dict[str, float]:
    """Region → g CO2e/kWh. Source: the table's own column."""
    with GRID_TABLE.open(encoding="utf-8", newline="") as lines:
        return {row["region"]: float(row["g_per_kwh"]) for row in csv.DictReader(lines)}
