"""Import grid intensity: hours of CSV or JSON become a region's day, or its very hours, in g/kWh.

Reads tables and answers as Electricity Maps and HewlettPackard/dc-rl give them. What is missing is
missing: an empty field, ``NaN`` or ``null`` is never 0, and a 0 on a life-cycle basis is taken for
what it is in practice, a gap that somebody filled. Time is UTC; text without a zone is read as UTC
and counted, or read in the zone that is given, where the clock may skip and repeat hours.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from world.errors import ConfigError, ImportFileError
from world.importers.cloud_series import Destination, destination, write_with
from world.importers.grid_columns import KNOWN, Intensity, choose, intensities
from world.importers.grid_json import GridJson, is_json
from world.importers.intake import (
    LIMIT_FRACTION,
    Intake,
    SeriesReport,
    check_limit,
    refusals,
    share,
)
from world.importers.metric_rows import instant_text
from world.importers.money import parse_amount
from world.importers.periods import SECONDS_PER_HOUR, Instant, parse_instant
from world.importers.tables import TableReader, column_key, is_missing, visible
from world.importers.tags import word
from world.model import significant
from world.worlds.cloud.tables import region_code, regions

HIGHEST_G_PER_KWH: Final = 2_000.0
"""No grid is dirtier. Source: IPCC AR5 WG3 annex III, coal at most 910 g/kWh life-cycle; oil and
old lignite plants reach about 1,300."""
MOST_FILLED_HOURS: Final = 3
"""Longest gap that a series may bridge by a straight line; our choice."""
MOST_SERIES_HOURS: Final = 24 * 366

REPEATED: Final = "the same hour again"
CONFLICTING: Final = "the same hour again with another value"
OTHER_ZONE: Final = "another zone"
OTHER_BASIS: Final = "another emission factor type"
OTHER_DAY: Final = "outside the chosen days"
NO_VALUE: Final = "no value"
ZERO: Final = "value is 0, which stands for a gap"

_BLANKS: Final = frozenset({"nan", "none", "null", "na", "n/a", "-"})
_YES: Final = frozenset({"true", "yes", "1", "t", "y"})
_LIFECYCLE: Final = "lifecycle"


@dataclass(frozen=True, slots=True)
class GridOptions:
    """How a grid file is read.

    Attributes:
        column: Intensity column, by name.
        basis: ``direct`` or ``lifecycle``.
        zone: Zone to keep, where the file has several.
        time_zone: Zone of times that name none, for example ``America/Los_Angeles``; None is UTC.
        hour_end: Whether a time marks the end of its hour, not its start.
        first_day: First day to keep, UTC; None is the first.
        days: How many days to keep; None is all.
    """

    column: str | None = None
    basis: Literal["direct", "lifecycle"] | None = None
    zone: str | None = None
    time_zone: str | None = None
    hour_end: bool = False
    first_day: str | None = None
    days: int | None = None


@dataclass(slots=True)
class GridHours:
    """A grid file, read.

    Attributes:
        column: The intensity column.
        intake: Rows used and left out.
        hours: Hour since 1970-01-01T00:00Z → mean intensity in it, g/kWh.
        naive: Rows whose time names no zone, nor does their column.
        estimated: Used rows that the source calls estimated.
        states_estimated: Whether the file says what is estimated.
        zones: Zones in the file.
    """

    column: Intensity
    intake: Intake
    hours: dict[int, float] = field(default_factory=dict)
    naive: int = 0
    estimated: int = 0
    states_estimated: bool = False
    zones: set[str] = field(default_factory=set)

    @property
    def span(self) -> int:
        """Hours from the first to the last."""
        return max(self.hours) - min(self.hours) + 1 if self.hours else 0

    @property
    def missing(self) -> int:
        """Hours in between that have no value."""
        return self.span - len(self.hours)

    def profile(self) -> list[float | None]:
        """Mean intensity per UTC hour of the day, g/kWh; None where no day has that hour."""
        sums, counts = [0.0] * 24, [0] * 24
        for hour in sorted(self.hours):
            sums[hour % 24] += self.hours[hour]
            counts[hour % 24] += 1
        return [significant(s / n) if n else None for s, n in zip(sums, counts, strict=True)]

    def whole_days(self) -> tuple[list[float], int, int]:
        """The hours of whole days from the first midnight on, how many were filled, longest gap.

        A gap is bridged by a straight line between its neighbours.
        """
        if not self.hours:
            return [], 0, 0
        first = -(-min(self.hours) // 24) * 24
        end = (max(self.hours) + 1) // 24 * 24
        known = sorted(self.hours)
        at, filled, longest = 0, 0, 0
        values = []
        for hour in range(first, end):
            while known[at] < hour:
                at += 1
            right = known[at]
            if right == hour:
                values.append(significant(self.hours[hour]))
                continue
            left = known[at - 1]
            part = (hour - left) / (right - left)
            between = self.hours[left] + (self.hours[right] - self.hours[left]) * part
            values.append(significant(between))
            filled += 1
            longest = max(longest, right - left - 1)
        return values, filled, longest


def read_grid(path: Path, options: GridOptions | None = None) -> GridHours:
    """Read a grid file.

    Raises:
        ImportFileError: It is no such table, or several columns or zones could be meant.
        ConfigError: An option cannot work.
    """
    options = options or GridOptions()
    if options.basis not in {None, "direct", _LIFECYCLE}:
        raise ConfigError(
            f"--basis is {visible(str(options.basis), 40)!r}",
            "it is direct or lifecycle",
            "Correct it",
        )
    with _opened(path) as table:
        at = table.positions(KNOWN)
        found = intensities(table.header, path)
        time = at.get("time", at.get("local"))
        if time is None or not found:
            lacking = ["timestamp"] * (time is None) + ["carbon_intensity_g_per_kwh"] * (not found)
            raise table.missing(lacking, "Write the header: timestamp,carbon_intensity_g_per_kwh")
        if "time" not in at and options.time_zone is None:
            raise ImportFileError(
                f"{path} has local times only",
                "their hours cannot be placed in UTC",
                "Name the zone, for example --time-zone America/Los_Angeles",
            )
        named_utc = "utc" in column_key(table.header[time])
        if named_utc and options.time_zone is not None:
            raise ConfigError(
                f"--time-zone is {visible(options.time_zone, 60)!r}",
                f"the column {visible(table.header[time], 60)!r} says that it is UTC",
                "Leave --time-zone out",
            )
        column = choose(found, path, options.column, options.basis)
        reading = _Reading(GridHours(column, Intake()), at, time, options)
        for row in table:
            reading.take(row)
        hours = reading.finish()
        if named_utc:
            hours.naive = 0
        for reason, count in table.skipped.items():
            hours.intake.rows += count
            hours.intake.skip(reason, count)
    if not hours.intake.rows:
        raise ImportFileError(f"{path} has no rows", "only a header", "Export it again")
    if options.zone is None and len(hours.zones) > 1:
        shown = ", ".join(sorted(hours.zones)[:8])
        raise ImportFileError(
            f"{path} holds {len(hours.zones)} zones",
            f"grids are never mixed: {shown}",
            "Choose one with --zone",
        )
    if len(reading.bases) > 1 and options.basis is None:
        raise ImportFileError(
            f"{path} mixes emission factor types",
            f"direct and life-cycle figures are never mixed: {', '.join(sorted(reading.bases))}",
            "Choose one: --basis direct or --basis lifecycle",
        )
    return hours


def _opened(path: Path) -> TableReader | GridJson:
    return GridJson(path) if is_json(path) else TableReader(path, KNOWN, "grid file")


class _Reading:
    """The rows of one grid file as they come."""

    def __init__(
        self, hours: GridHours, at: Mapping[str, int], time: int, options: GridOptions
    ) -> None:
        self._hours = hours
        self._at = at
        self._time = time
        self._options = options
        self._zone = _time_zone(options.time_zone)
        self._wanted = word(options.zone) if options.zone is not None else None
        self._first, self._end = _days(options)
        self._samples: dict[int, float] = {}
        self.bases: set[str] = set()
        hours.states_estimated = "estimated" in at

    def take(self, row: list[str]) -> None:
        intake = self._hours.intake
        intake.rows += 1
        if not self._is_wanted(row):
            return
        stamp = self._stamp(row[self._time])
        if stamp is None:
            return
        value = self._value(row[self._hours.column.position])
        if value is None:
            return
        if stamp in self._samples:
            if math.isclose(self._samples[stamp], value, rel_tol=1e-9):
                intake.set_aside(REPEATED)
            else:
                intake.skip(CONFLICTING)
            return
        self._samples[stamp] = value
        estimated = self._at.get("estimated")
        if estimated is not None and row[estimated].strip().casefold() in _YES:
            self._hours.estimated += 1

    def _is_wanted(self, row: list[str]) -> bool:
        zone = self._at.get("zone")
        if zone is not None and not is_missing(row[zone]):
            name = row[zone]
            if self._wanted is not None and word(name) != self._wanted:
                self._hours.intake.set_aside(OTHER_ZONE)
                return False
            if len(self._hours.zones) < 1_000:
                self._hours.zones.add(visible(name, 60))
        factors = self._at.get("factors")
        if factors is not None and not is_missing(row[factors]):
            basis = word(row[factors][:60])
            if self._options.basis is not None and basis != self._options.basis:
                self._hours.intake.set_aside(OTHER_BASIS)
                return False
            if len(self.bases) < 10:
                self.bases.add(visible(basis))
        return True

    def _stamp(self, text: str) -> int | None:
        """Start of the sample, seconds since 1970 in UTC; None where it is left out."""
        intake = self._hours.intake
        instant = parse_instant(text) or _epoch(text)
        if instant is None:
            intake.skip("no time" if is_missing(text) else "time is not ISO 8601")
            return None
        stamp = instant.epoch_s
        if instant.naive:
            self._hours.naive += 1
            if self._zone is not None:
                placed = _in_zone(stamp, self._zone, self._samples)
                if placed is None:
                    intake.skip("an hour that the local clock skips")
                    return None
                stamp = placed
        if self._options.hour_end:
            stamp -= SECONDS_PER_HOUR
        if not self._first <= stamp < self._end:
            intake.set_aside(OTHER_DAY)
            return None
        return stamp

    def _value(self, text: str) -> float | None:
        """Intensity, g/kWh; None where it is left out."""
        intake, column = self._hours.intake, self._hours.column
        if is_missing(text) or text.strip().casefold() in _BLANKS:
            intake.skip(NO_VALUE)
            return None
        amount = parse_amount(text)
        if amount is None:
            intake.skip("value is not a number")
            return None
        value = float(amount) * column.factor
        if value < 0 or value > HIGHEST_G_PER_KWH:
            intake.skip(f"value is outside 0 to {HIGHEST_G_PER_KWH:,.0f} g/kWh")
            return None
        # A grid that burns nothing emits nothing directly, but it was built.
        if value == 0 and column.basis != "direct":
            intake.skip(ZERO)
            return None
        return value

    def finish(self) -> GridHours:
        sums: dict[int, tuple[float, int]] = {}
        for stamp in sorted(self._samples):
            hour = stamp // SECONDS_PER_HOUR
            total, count = sums.get(hour, (0.0, 0))
            sums[hour] = (total + self._samples[stamp], count + 1)
        self._hours.hours = {hour: total / count for hour, (total, count) in sums.items()}
        if self.bases == {_LIFECYCLE} or self.bases == {"direct"}:
            (basis,) = self.bases
            if self._hours.column.basis == "unstated":
                self._hours.column = self._hours.column._replace(
                    basis="direct" if basis == "direct" else "lifecycle"
                )
        return self._hours


def _time_zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"there is no time zone {visible(name, 60)!r}",
            "zones have names like America/Los_Angeles or UTC",
            "Correct --time-zone",
        ) from error


def _epoch(text: str) -> Instant | None:
    """Seconds or milliseconds since 1970, by their number of digits."""
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) not in {9, 10, 13}:
        return None
    return Instant(int(digits[:10]) if len(digits) == 13 else int(digits), False)


def _in_zone(naive_s: int, zone: ZoneInfo, taken: Mapping[int, float]) -> int | None:
    """Local time as seconds in UTC; None in an hour that the clock skips.

    Of an hour that the clock repeats, the first row is the first one and the second the second.
    """
    local = datetime.fromtimestamp(naive_s, UTC).replace(tzinfo=None)
    first = int(local.replace(tzinfo=zone).timestamp())
    if datetime.fromtimestamp(first, zone).replace(tzinfo=None) != local:
        return None
    second = int(local.replace(tzinfo=zone, fold=1).timestamp())
    return second if first in taken else first


def _days(options: GridOptions) -> tuple[float, float]:
    """First and end second of the chosen days."""
    first = -math.inf
    if options.first_day is not None:
        try:
            day = date.fromisoformat(options.first_day)
        except ValueError as error:
            raise ConfigError(
                f"--from is {visible(options.first_day, 40)!r}",
                "it is a day in UTC",
                "Write it as 2022-01-31",
            ) from error
        first = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    if options.days is None:
        return first, math.inf
    if options.days < 1 or options.first_day is None:
        raise ConfigError(
            f"--days is {options.days}",
            "it counts days from a first one on",
            "Give --from DAY and a number from 1",
        )
    return first, first + options.days * 24 * SECONDS_PER_HOUR


def import_grid(
    path: Path,
    *,
    region: str | None = None,
    into: str | None = None,
    output: Path | None = None,
    name: str | None = None,
    series: bool = False,
    options: GridOptions | None = None,
    limit_fraction: float = LIMIT_FRACTION,
) -> SeriesReport:
    """Import a grid file, and write a copy of a cloud scenario with it where it is good enough.

    Args:
        path: Hourly CSV, or an API's JSON; plain or gzip.
        region: Region whose grid it is; None is the scenario's home region.
        into: Cloud scenario to copy, by name or file; None is cloud/medium.
        output: Scenario file to write; None only reports.
        name: Name of the copy.
        series: Whether the copy plays the very hours; else every day is the mean day.
        options: How the file is read.
        limit_fraction: Share of unusable rows, and of missing hours, that is accepted, 0 to 1.

    Raises:
        ImportFileError: The file cannot be read as what it should be.
        ConfigError: An option cannot work, or the output cannot be written.
        UnknownNameError: There is no such region or scenario.
    """
    check_limit(limit_fraction)
    options = options or GridOptions()
    if region is not None:
        region_code(region)
    where = destination(into, output, name, [path])
    if where is not None and region is not None and region not in where.regions:
        raise ConfigError(
            f"scenario {where.base.name!r} has no region {region!r}",
            f"its regions are {', '.join(where.regions)}",
            "Choose one of them with --region",
        )
    hours = read_grid(path, options)
    assumed = where is not None and region is None
    region = where.regions[0] if where is not None and region is None else region
    days, filled, longest = hours.whole_days()
    refused = refusals(hours.intake, limit_fraction, (hours.missing, hours.span, "hours"))
    refused += _not_playable(hours, days, longest, series)
    details = _details(hours, region)
    if series:
        details |= {"series_hours": len(days), "filled_hours": filled}
    if where is not None and region is not None and not refused:
        profile = [value for value in hours.profile() if value is not None]
        _write(where, region, days if series else profile, path, details)
    return SeriesReport(
        rows=hours.intake.rows,
        used=hours.intake.used,
        skipped=dict(sorted(hours.intake.skipped.items())),
        unusable=hours.intake.unusable,
        limit_fraction=limit_fraction,
        refusals=tuple(refused),
        warnings=tuple(_warnings(hours, options, region, assumed, filled if series else 0)),
        details=details,
        written=("scenario", str(output) if where is not None and not refused else None),
    )


def _write(
    where: Destination, region: str, values: list[float], path: Path, details: Mapping[str, Any]
) -> None:
    given = dict(where.base.params.get("grid_g_per_kwh", {}))
    kind = "its very hours" if len(values) > 24 else "its mean day"
    write_with(
        where,
        {"grid_g_per_kwh": {**given, region: values}},
        f"grid of {region}",
        f"{kind}, {details['first']} to {details['last']}, {details['basis']} basis, from "
        f"{visible(path.name, 120)}",
    )


def _not_playable(hours: GridHours, days: list[float], longest_gap: int, series: bool) -> list[str]:
    if not hours.hours:
        return []
    found = []
    lacking = [str(hour) for hour, value in enumerate(hours.profile()) if value is None]
    if lacking and not series:
        found.append(f"no day has a value for the UTC hours {', '.join(lacking)}")
    if not series:
        return found
    if not days:
        found.append("the hours hold no whole day from midnight to midnight UTC")
    if len(days) > MOST_SERIES_HOURS:
        found.append(
            f"{len(days):,} hours are more than the {MOST_SERIES_HOURS:,} that a scenario takes: "
            "choose with --from and --days"
        )
    if longest_gap > MOST_FILLED_HOURS:
        found.append(
            f"a gap of {longest_gap} hours is longer than the {MOST_FILLED_HOURS} that may be "
            "bridged: choose other days, or the mean day (without --series)"
        )
    return found


def _details(hours: GridHours, region: str | None) -> dict[str, Any]:
    values = [hours.hours[hour] for hour in sorted(hours.hours)]
    stamps = (
        [hour * SECONDS_PER_HOUR for hour in (min(hours.hours), max(hours.hours))] if values else []
    )
    return {
        "region": region,
        "column": hours.column.name,
        "basis": hours.column.basis,
        "unit": hours.column.unit or "g/kWh (assumed)",
        "zones": sorted(hours.zones)[:20],
        "hours": len(values),
        "missing_hours": hours.missing,
        "missing_fraction": share(hours.missing, hours.span),
        "estimated": hours.estimated if hours.states_estimated else None,
        "naive_times": hours.naive,
        "first": instant_text(stamps[0]) if stamps else None,
        "last": instant_text(stamps[1]) if stamps else None,
        "mean_g_per_kwh": significant(sum(values) / len(values)) if values else None,
        "min_g_per_kwh": significant(min(values)) if values else None,
        "max_g_per_kwh": significant(max(values)) if values else None,
        "profile_g_per_kwh": hours.profile(),
    }


def _warnings(
    hours: GridHours, options: GridOptions, region: str | None, assumed: bool, filled: int
) -> list[str]:
    intake = hours.intake
    values = sorted(hours.hours.values())
    mean = sum(values) / len(values) if values else 0.0
    low = bisect_left(values, values[len(values) // 2] / 10) if values else 0
    table = float(regions().grid_g_per_kwh[region_code(region)]) if region is not None else 0.0
    several = intake.used - len(hours.hours)
    counted = (
        (assumed, f"no --region: taken as the grid of {region}, the home region"),
        (
            not hours.column.unit,
            f"the column {hours.column.name!r} names no unit: read as gCO2/kWh",
        ),
        (
            hours.column.basis == "unstated",
            f"the column {hours.column.name!r} does not say whether it is direct or life-cycle: "
            "do not compare it with a grid that is one of them",
        ),
        (
            hours.naive and options.time_zone is None,
            f"{hours.naive:,} times name no zone: read as UTC",
        ),
        (
            hours.naive and options.time_zone is None and intake.skipped[CONFLICTING],
            "an hour stands twice with two values, as on the day when clocks go back: if the times "
            "are local, name their zone with --time-zone",
        ),
        (
            intake.skipped[ZERO],
            f"{intake.skipped[ZERO]:,} values are exactly 0: taken as missing, because no grid is "
            "without emissions on a life-cycle basis",
        ),
        (hours.missing, f"hours without a value: {hours.missing:,} of {hours.span:,}"),
        (filled, f"hours bridged by a straight line: {filled:,}"),
        (
            low,
            f"{low:,} hours are below a tenth of the median: a source that fills gaps with 0 "
            "looks like this",
        ),
        (
            table > 0 and values and not 0.5 <= mean / table <= 2.0,
            f"the mean of {mean:.4g} g/kWh is far from the {table:.4g} that the world's own table "
            f"has for {region}: sources differ in year and method, so compare like with like",
        ),
        (
            hours.estimated,
            f"{hours.estimated:,} of {intake.used:,} values are called estimated by their source",
        ),
        (several, f"{several:,} rows share an hour with others: their mean counts"),
        (
            values and values[-1] < 5.0,
            "no hour is above 5 g/kWh: if the unit is kg/kWh, name the column so",
        ),
    )
    return [text for holds, text in counted if holds]
