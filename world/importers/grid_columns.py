"""What the columns of a grid file mean: time, intensity with unit and basis, zone, estimated.

Unit and basis are read from the header and never guessed from the values. Direct counts the fuel
that is burnt; life-cycle adds building and mining. They differ by tens of grams and are never
mixed: where a file has several intensity columns, one has to be chosen.

Source: Electricity Maps' hourly CSV names its columns ``Carbon intensity gCO₂eq/kWh (direct)`` and
``(Life cycle)``, earlier ``(LCA)`` (electricitymaps.com/data-portal, 2024). The column ``avg_CI``
of HewlettPackard/dc-rl is the generation mix times IPCC life-cycle medians (coal 820, gas 490, oil
650, solar 41, hydro 24, nuclear 12, wind 11, other 230 g/kWh): recomputed from its own columns, it
agrees to the last digit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from world.errors import ImportFileError
from world.importers.tables import Aliases, column_key, visible

Basis = Literal["direct", "lifecycle", "unstated"]

KNOWN: Final[Aliases] = {
    "time": (
        "datetimeutc", "timestamputc", "timestamp", "datetime", "utctime", "ts", "time",
        "date", "pointtime", "timeutc", "hourutc", "hour",
    ),
    "local": ("datetimelocal", "localtime", "timestamplocal"),
    "zone": ("zoneid", "zone", "zonename", "balancingauthority", "ba"),
    "estimated": ("isestimated", "dataestimated", "estimated"),
    "factors": ("emissionfactortype",),
    "value": ("avgci", "carbonintensity", "ci", "intensity", "gperkwh", "gco2eqkwh"),
}  # fmt: skip
"""What a column is → the names it goes by, as `column_key` spells them."""

_EXACT: Final = frozenset({*KNOWN["value"], "avgcarbonintensity", "gco2kwh", "moer", "aoer"})
_INTENSITY: Final = re.compile(
    r"carbonintensity|co2(?:eq|e)?intensity|emissions?intensity|gco2(?:eq|e)?(?:per)?kwh"
)
_NOT_VALUES: Final = re.compile(r"estimat|source|type|method|forecast|percent")
_LBS_TO_KG: Final = 0.45359237
"""Exact by definition of the international pound."""
_UNITS: Final = (
    (re.compile(r"lbs?(?:co2(?:eq|e)?)?(?:per)?mwh"), _LBS_TO_KG, "lb/MWh"),
    (re.compile(r"kg(?:co2(?:eq|e)?)?(?:per)?kwh"), 1000.0, "kg/kWh"),
    (re.compile(r"kg(?:co2(?:eq|e)?)?(?:per)?mwh"), 1.0, "kg/MWh"),
    (re.compile(r"t(?:ons?|onnes?)?co2(?:eq|e)?(?:per)?mwh"), 1000.0, "t/MWh"),
    (re.compile(r"g(?:co2(?:eq|e)?)?(?:per)?kwh"), 1.0, "g/kWh"),
)
_DC_RL: Final = "avgci"


class Intensity(NamedTuple):
    """One intensity column.

    Attributes:
        name: As the header has it.
        position: In a row.
        basis: ``direct``, ``lifecycle`` or ``unstated``.
        factor: To g/kWh.
        unit: As the header says, or ``""`` where it does not.
    """

    name: str
    position: int
    basis: Basis
    factor: float
    unit: str


def intensities(header: Sequence[str], path: Path) -> list[Intensity]:
    """Every intensity column of a header.

    Raises:
        ImportFileError: A column has a unit that is not known.
    """
    found = []
    for position, name in enumerate(header):
        key = column_key(name).replace("₂", "2")
        if not (key in _EXACT or _INTENSITY.search(key)) or _NOT_VALUES.search(key):
            continue
        factor, unit = _unit(key)
        if not unit and ("mwh" in key or "lb" in key):
            raise ImportFileError(
                f"{path}: the unit of the column {visible(name, 60)!r} is not known",
                "known are g/kWh, kg/kWh, kg/MWh, t/MWh and lb/MWh",
                "Convert it, and name the column carbon_intensity_g_per_kwh",
            )
        found.append(Intensity(visible(name, 80), position, _basis(key), factor, unit))
    return found


def _unit(key: str) -> tuple[float, str]:
    if key == _DC_RL:
        return 1.0, "g/kWh"
    for pattern, factor, unit in _UNITS:
        if pattern.search(key):
            return factor, unit
    return 1.0, ""


def _basis(key: str) -> Basis:
    if "direct" in key:
        return "direct"
    if "lifecycle" in key or "lca" in key or key == _DC_RL:
        return "lifecycle"
    return "unstated"


def choose(
    found: Sequence[Intensity], path: Path, column: str | None, basis: str | None
) -> Intensity:
    """The one intensity column that is meant.

    Args:
        found: Those that the file has, at least one.
        path: The file, for messages.
        column: Its name, where one was given.
        basis: ``direct`` or ``lifecycle``, where one was given.

    Raises:
        ImportFileError: None fits, or several do.
    """
    fitting = list(found)
    if column is not None:
        fitting = [one for one in found if column_key(one.name) == column_key(column)]
    elif basis is not None:
        # A column that does not say may be chosen by rows (emissionFactorType).
        fitting = [one for one in found if one.basis == basis] or [
            one for one in found if one.basis == "unstated"
        ]
    names = "; ".join(f"{one.name} ({one.basis})" for one in found)
    if not fitting:
        raise ImportFileError(
            f"{path} has no intensity column {visible(column or basis or '', 60)!r}",
            f"it has {names}",
            "Choose one of them with --column",
        )
    if len(fitting) > 1:
        raise ImportFileError(
            f"{path} has several intensity columns",
            f"direct and life-cycle figures are never mixed: {names}",
            "Choose one: --basis direct, --basis lifecycle, or --column NAME",
        )
    return fitting[0]
