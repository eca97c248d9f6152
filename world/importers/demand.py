"""Import demand: requests by hour and service, or a normalised CPU trace scaled to a stated peak.

Rates keep their unit from the header (requests per second, minute or hour). A CPU trace has no
unit but a shape: its largest hour becomes the peak that is stated. In a cloud scenario the start is
calibrated, so that only the shape of the trace counts there.

Source: HewlettPackard/dc-rl ships the Alibaba and Google cluster traces as ``,cpu_load``: an index
without a name, one row an hour, load from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from world.errors import ConfigError, ImportFileError
from world.importers.cloud_series import Destination, destination, write_with
from world.importers.intake import (
    LIMIT_FRACTION,
    Intake,
    SeriesReport,
    check_limit,
    refusals,
    share,
)
from world.importers.money import parse_amount
from world.importers.periods import SECONDS_PER_HOUR, parse_instant
from world.importers.tables import Aliases, TableReader, is_missing, visible
from world.model import significant

MOST_HOURS: Final = 100_000
"""Longest trace that a scenario takes."""
STEEP_PEAK: Final = 1.5
"""Peak over first hour above which the report warns; a start near its targets has less slack."""

REPEATED: Final = "the same hour again"
CONFLICTING: Final = "the same hour again with another value"
OTHER_SERVICE: Final = "another service"
UNKNOWN_SERVICE: Final = "service is not in the scenario"
OTHER_HOUR: Final = "outside the chosen hours"

_COLUMNS: Final[Aliases] = {
    "hour": ("hour", "hours", "hourindex"),
    "time": ("timestamputc", "timestamp", "datetimeutc", "datetime", "ts", "time", "date"),
    "index": ("", "index", "unnamed0", "row"),
    "service": ("service", "servicename", "app", "application"),
    "rps": ("rps", "requestspersecond", "requestspers", "reqpers", "reqs", "qps"),
    "rpm": ("rpm", "requestsperminute", "requestspermin"),
    "rph": ("rph", "requestsperhour"),
    "fraction": ("cpuload", "load", "cpufraction", "cpuutilizationfraction", "cpu", "utilization"),
    "percent": ("cpupercent", "cpuutilizationpercent", "cpuloadpercent", "loadpercent"),
}
_RATES: Final = {"rps": 1.0, "rpm": 1 / 60.0, "rph": 1 / 3600.0}
_LOADS: Final = {"fraction": 1.0, "percent": 100.0}
_BLANKS: Final = frozenset({"nan", "none", "null", "na", "n/a", "-"})
_HIGHEST_RATE: Final = 1e9
_SINGLE: Final = ""

Clock = Literal["hour", "time", "index"]


@dataclass(frozen=True, slots=True)
class DemandOptions:
    """How a demand file is read.

    Attributes:
        services: ``NAME`` or ``NAME_IN_FILE=NAME``: which services it is for.
        peak_rps: Requests per second of the largest hour of a normalised trace.
        interval_minutes: Time between two rows of a trace that only counts its rows.
        from_hour: Hour of the file that becomes hour 0.
        hours: How many hours to keep; None is all.
        start_utc: UTC hour of the day, 0 to 23, at which the copy's episodes start. The first
            hour of the file with it, from `from_hour` on, becomes hour 0; where rows are only
            counted, the file's hour 0 is midnight UTC. None leaves the start to the seeds.
    """

    services: tuple[str, ...] = ()
    peak_rps: float | None = None
    interval_minutes: float = 60.0
    from_hour: int = 0
    hours: int | None = None
    start_utc: int | None = None


@dataclass(slots=True)
class Demand:
    """A demand file, read.

    Attributes:
        column: The column with the values.
        normalised: Whether it is a load without unit, 0 to 1.
        clock: What places a row in time.
        intake: Rows used and left out.
        by_service: Service, as the file spells it ("" where it names none) → hour → mean value.
        rows_by_service: Service → rows that its hours are made of.
        naive: Rows whose time names no zone.
    """

    column: str
    normalised: bool
    clock: Clock
    intake: Intake
    by_service: dict[str, dict[int, float]] = field(default_factory=dict)
    rows_by_service: dict[str, int] = field(default_factory=dict)
    naive: int = 0
    begins: int = 0
    """Hour of the file that became hour 0."""


def read_demand(path: Path, options: DemandOptions | None = None) -> Demand:
    """Read a demand file. Hours count from its first one.

    Raises:
        ImportFileError: It is no such table.
        ConfigError: An option cannot work.
    """
    options = options or DemandOptions()
    _check(options)
    with TableReader(path, _COLUMNS, "demand file") as table:
        at = table.positions(_COLUMNS)
        value = next((name for name in (*_RATES, *_LOADS) if name in at), None)
        clock = _clock(at)
        if value is None or clock is None:
            lacking = ["hour"] * (clock is None) + ["rps"] * (value is None)
            raise table.missing(lacking, "Write the header: hour,service,rps (or index,cpu_load)")
        demand = Demand(
            column=visible(table.header[at[value]], 80),
            normalised=value in _LOADS,
            clock=clock,
            intake=Intake(),
        )
        reading = _Reading(demand, at, value, options)
        for row in table:
            reading.take(row)
        reading.finish()
        for reason, count in table.skipped.items():
            demand.intake.rows += count
            demand.intake.skip(reason, count)
    if not demand.intake.rows:
        raise ImportFileError(f"{path} has no rows", "only a header", "Export it again")
    return demand


def _check(options: DemandOptions) -> None:
    if not 0.01 <= options.interval_minutes <= 1440:
        raise ConfigError(
            f"--interval-minutes is {options.interval_minutes}",
            "rows lie between a second and a day apart",
            "Give the minutes between two rows, for example 5",
        )
    if options.from_hour < 0 or (options.hours is not None and options.hours < 1):
        raise ConfigError(
            f"--from-hour is {options.from_hour} and --hours {options.hours}",
            "hours count from 0, and at least one is kept",
            "Correct them",
        )
    if options.start_utc is not None and not 0 <= options.start_utc <= 23:
        raise ConfigError(
            f"--start-utc is {options.start_utc}",
            "it is an hour of the day in UTC, from 0 to 23",
            "For example --start-utc 6",
        )
    peak = options.peak_rps
    if peak is not None and not 0 < peak <= _HIGHEST_RATE:
        raise ConfigError(
            f"--peak-rps is {peak}", "a peak has requests per second", "Give a number above 0"
        )


def _clock(at: Mapping[str, int]) -> Clock | None:
    if "hour" in at:
        return "hour"
    if "time" in at:
        return "time"
    return "index" if "index" in at else None


class _Reading:
    """The rows of one demand file as they come; positions in time are whole seconds."""

    def __init__(
        self, demand: Demand, at: Mapping[str, int], value: str, options: DemandOptions
    ) -> None:
        self._demand = demand
        self._at = at
        self._position = at[value]
        self._scale = _RATES.get(value, 1.0) / _LOADS.get(value, 1.0)
        self._highest = 1.0 if value in _LOADS else _HIGHEST_RATE
        self._options = options
        self._samples: dict[str, dict[int, float]] = {}

    def take(self, row: list[str]) -> None:
        intake = self._demand.intake
        intake.rows += 1
        service = self._service(row)
        when = self._when(row) if service is not None else None
        value = self._value(row[self._position]) if when is not None else None
        if service is None or when is None or value is None:
            return
        series = self._samples.setdefault(service, {})
        if when not in series:
            series[when] = value
        elif series[when] == value:
            intake.set_aside(REPEATED)
        else:
            intake.skip(CONFLICTING)

    def _service(self, row: list[str]) -> str | None:
        position = self._at.get("service")
        if position is None:
            return _SINGLE
        if is_missing(row[position]):
            self._demand.intake.skip("no service")
            return None
        return visible(row[position], 120)

    def _when(self, row: list[str]) -> int | None:
        clock = self._demand.clock
        text = row[self._at[clock]]
        if clock == "time":
            instant = parse_instant(text)
            if instant is not None:
                self._demand.naive += instant.naive
                return instant.epoch_s
            number = parse_amount(text)
            if number is not None and number >= 0:
                return int(number)  # traces of virtual machines count seconds from their start
            self._demand.intake.skip("time is not ISO 8601 nor seconds")
            return None
        number = parse_amount(text)
        if number is None or number < 0 or number != int(number) or number > 10**9:
            self._demand.intake.skip(f"{clock} is not a whole number from 0")
            return None
        step_s = SECONDS_PER_HOUR
        if clock == "index":
            step_s = round(self._options.interval_minutes * 60)
        return int(number) * step_s

    def _value(self, text: str) -> float | None:
        intake = self._demand.intake
        if is_missing(text) or text.strip().casefold() in _BLANKS:
            intake.skip("no value")
            return None
        amount = parse_amount(text)
        if amount is None:
            intake.skip("value is not a number")
            return None
        value = float(amount) * self._scale
        if not 0 <= value <= self._highest:
            limit = self._highest / self._scale
            intake.skip(f"value is outside 0 to {limit:,.0f}")
            return None
        return value

    def finish(self) -> None:
        """Means per hour, hours counted from the first one that any service has."""
        if not self._samples:
            return
        # Rows that count hours stand where they say; moments and indices start at their first.
        first = min(min(series) for series in self._samples.values())
        if self._demand.clock == "time":
            first = first // SECONDS_PER_HOUR * SECONDS_PER_HOUR
        options, intake = self._options, self._demand.intake
        begins = self._demand.begins = _begins(options, self._demand.clock, first)
        end = MOST_HOURS if options.hours is None else begins + options.hours
        for service in sorted(self._samples):
            sums: dict[int, tuple[float, int]] = {}
            for when, value in sorted(self._samples[service].items()):
                hour = (when - first) // SECONDS_PER_HOUR
                if not begins <= hour < end:
                    intake.set_aside(OTHER_HOUR)
                    continue
                total, count = sums.get(hour - begins, (0.0, 0))
                sums[hour - begins] = (total + value, count + 1)
            if sums:
                self._demand.rows_by_service[service] = sum(count for _, count in sums.values())
                self._demand.by_service[service] = {
                    hour: total / count for hour, (total, count) in sums.items()
                }


def _begins(options: DemandOptions, clock: Clock, first_s: int) -> int:
    """Hour of the file that becomes hour 0.

    Args:
        options: From which hour on, and at which UTC hour of the day.
        clock: What places rows in time.
        first_s: Start of the file's first hour, in seconds; since 1970 where rows have moments.
    """
    if options.start_utc is None:
        return options.from_hour
    # Seconds from a trace's own start are small; like counted rows they begin at midnight.
    of_file = first_s // SECONDS_PER_HOUR % 24 if clock == "time" else 0
    return options.from_hour + (options.start_utc - of_file - options.from_hour) % 24


def _assign(
    demand: Demand, options: DemandOptions, where: Destination | None
) -> tuple[dict[str, dict[int, float]], tuple[str, ...]]:
    """Hours by the scenario's service, and the services that were assumed.

    Rows of services that are not wanted are taken out of the count of used rows.
    """
    plain = [text for text in options.services if "=" not in text]
    renamed = dict(text.split("=", 1) for text in options.services if "=" in text)
    single = demand.by_service.get(_SINGLE)
    if single is not None:
        if renamed:
            raise ConfigError(
                f"--service {next(iter(renamed))}=… renames a service",
                "the file has no column with services",
                "Write --service NAME",
            )
        assumed = () if plain or where is None else where.services_with_users
        names = tuple(plain) or assumed
        return (dict.fromkeys(names, single) if names else {_SINGLE: single}), assumed
    known = set(where.services) if where is not None else None
    result: dict[str, dict[int, float]] = {}
    for service, hours in demand.by_service.items():
        name = renamed.get(service, service)
        if options.services and service not in renamed and service not in plain:
            demand.intake.set_aside(OTHER_SERVICE, demand.rows_by_service[service])
        elif known is not None and name not in known:
            demand.intake.skip(UNKNOWN_SERVICE, demand.rows_by_service[service])
        else:
            target = result.setdefault(name, {})
            for hour, value in hours.items():
                target[hour] = target.get(hour, 0.0) + value
    for text in (*plain, *renamed):
        if text not in demand.by_service:
            shown = ", ".join(sorted(demand.by_service)[:12])
            raise ConfigError(
                f"the file has no service {visible(text, 60)!r}",
                f"it has {shown or 'none with a usable row'}",
                "Correct --service",
            )
    return result, ()


def import_demand(
    path: Path,
    *,
    into: str | None = None,
    output: Path | None = None,
    name: str | None = None,
    options: DemandOptions | None = None,
    limit_fraction: float = LIMIT_FRACTION,
) -> SeriesReport:
    """Import a demand file, and write a copy of a cloud scenario with it where it is good enough.

    Args:
        path: CSV, plain or gzip.
        into: Cloud scenario to copy, by name or file; None is cloud/medium.
        output: Scenario file to write; None only reports.
        name: Name of the copy.
        options: How the file is read.
        limit_fraction: Share of unusable rows, and of missing hours, that is accepted, 0 to 1.

    Raises:
        ImportFileError: The file cannot be read as what it should be.
        ConfigError: An option cannot work, or the output cannot be written.
        ScenarioError: The world refuses the result.
    """
    check_limit(limit_fraction)
    options = options or DemandOptions()
    where = destination(into, output, name, [path])
    _check_services(options, where)
    demand = read_demand(path, options)
    _check_peak(demand, options, path)
    series, assumed = _assign(demand, options, where)
    if demand.normalised and options.peak_rps is not None:
        series = {service: _scaled(hours, options.peak_rps) for service, hours in series.items()}
    span, missing = _gaps(series)
    refused = refusals(demand.intake, limit_fraction, (missing, span, "hours"))
    refused += [
        f"{service or 'the trace'} has no demand in the first hour, on which the start is "
        f"calibrated: begin at another hour, --from-hour {demand.begins + first}"
        for service, hours in series.items()
        if (first := _first_hour(hours)) and where is not None
    ]
    if not series and not refused:
        refused.append("no row is for a service of the scenario")
    if where is not None and not refused:
        _write(where, series, path, demand, options.start_utc)
    return SeriesReport(
        rows=demand.intake.rows,
        used=demand.intake.used,
        skipped=dict(sorted(demand.intake.skipped.items())),
        unusable=demand.intake.unusable,
        limit_fraction=limit_fraction,
        refusals=tuple(refused),
        warnings=tuple(_warnings(demand, series, assumed, where)),
        details=_details(demand, series, span, missing),
        written=("scenario", str(output) if where is not None and not refused else None),
    )


def _check_services(options: DemandOptions, where: Destination | None) -> None:
    if where is None:
        return
    for text in options.services:
        name = text.split("=", 1)[-1]
        if name not in where.services:
            raise ConfigError(
                f"--service names {visible(name, 60)!r}",
                f"scenario {where.base.name!r} has the services {', '.join(where.services)}",
                "Choose one of them, or write NAME_IN_FILE=NAME",
            )


def _check_peak(demand: Demand, options: DemandOptions, path: Path) -> None:
    if demand.normalised and options.peak_rps is None:
        raise ConfigError(
            f"{path} is a normalised trace",
            f"the column {demand.column!r} is a load from 0 to 1 and no rate",
            "State what its largest hour is, for example --peak-rps 900",
        )
    if not demand.normalised and options.peak_rps is not None:
        raise ConfigError(
            "--peak-rps is given",
            f"the column {demand.column!r} holds rates already",
            "Leave --peak-rps out",
        )


def _scaled(hours: Mapping[int, float], peak_rps: float) -> dict[int, float]:
    highest = max(hours.values(), default=0.0)
    factor = peak_rps / highest if highest > 0 else 0.0
    return {hour: value * factor for hour, value in hours.items()}


def _gaps(series: Mapping[str, Mapping[int, float]]) -> tuple[int, int]:
    """Hours from 0 to the last, over all services, and how many of them have no value."""
    end = max((max(hours) + 1 for hours in series.values() if hours), default=0)
    span = end * len(series)
    return span, span - sum(len(hours) for hours in series.values())


def _first_hour(hours: Mapping[int, float]) -> int:
    """First hour with demand."""
    return min((hour for hour, value in hours.items() if value > 0), default=0)


def _write(
    where: Destination,
    series: Mapping[str, Mapping[int, float]],
    path: Path,
    demand: Demand,
    start_utc: int | None,
) -> None:
    points = [
        {"hour": hour, "service": service, "rps": significant(hours[hour])}
        for service, hours in sorted(series.items())
        for hour in sorted(hours)
    ]
    kept = [
        dict(point)
        for point in where.base.params.get("demand_trace", ())
        if point["service"] not in series
    ]
    last = max(max(hours) for hours in series.values())
    write_with(
        where,
        {"demand_trace": [*kept, *points]}
        | ({} if start_utc is None else {"start_hour_utc": start_utc}),
        f"demand of {', '.join(sorted(series))}",
        f"hours 0 to {last}, column {demand.column}, from {visible(path.name, 120)}",
    )


def _details(
    demand: Demand, series: Mapping[str, Mapping[int, float]], span: int, missing: int
) -> dict[str, Any]:
    return {
        "column": demand.column,
        "normalised": demand.normalised,
        "clock": demand.clock,
        "begins_at_hour": demand.begins,
        "services": {
            service or "(the whole file)": {
                "hours": len(hours),
                "mean_rps": significant(sum(hours.values()) / len(hours)),
                "peak_rps": significant(max(hours.values())),
                "start_rps": significant(hours[0]) if 0 in hours else None,
                "peak_over_start": (
                    significant(max(hours.values()) / hours[0]) if hours.get(0) else None
                ),
            }
            for service, hours in sorted(series.items())
        },
        "hours": max((max(hours) + 1 for hours in series.values()), default=0),
        "missing_hours": missing,
        "missing_fraction": share(missing, span),
        "naive_times": demand.naive,
    }


def _warnings(
    demand: Demand,
    series: Mapping[str, Mapping[int, float]],
    assumed: Sequence[str],
    where: Destination | None,
) -> list[str]:
    end = max((max(hours) + 1 for hours in series.values()), default=0)
    _, missing = _gaps(series)
    unknown = demand.intake.skipped[UNKNOWN_SERVICE]
    silent = [] if where is None else [name for name in where.services if name not in series]
    counted = (
        (
            assumed,
            f"no --service: the trace drives every service with users ({', '.join(assumed)})",
        ),
        (demand.naive, f"{demand.naive:,} times name no zone: read as UTC"),
        (missing, f"{missing:,} hours have no value: the hour before them goes on"),
        (
            unknown,
            f"{unknown:,} rows are of services that the scenario does not have: map them with "
            "--service NAME_IN_FILE=NAME",
        ),
        (
            silent and series,
            f"the demand of {', '.join(silent)} stays generated",
        ),
        (
            where is not None and end and end < where.hours,
            f"the trace has {end:,} hours and an episode {where.hours if where else 0:g}: its last "
            "hour goes on",
        ),
    )
    found = [text for holds, text in counted if holds]
    if where is not None:
        found += [
            f"{service} peaks at {max(hours.values()) / hours[0]:.3g} times its first hour, which "
            "is calibrated to the scenario's start: begin elsewhere with --from-hour if that is "
            "too much"
            for service, hours in sorted(series.items())
            if hours.get(0) and max(hours.values()) > STEEP_PEAK * hours[0]
        ]
    return found
