"""``import grid|demand|prometheus|kubernetes``: samples become a scenario or a metrics file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from orchestrator.cli import options, printing
from orchestrator.console.commands import command
from orchestrator.console.text import plain

if TYPE_CHECKING:
    from world.importers.intake import SeriesReport

_MOST_SHOWN = 10
_LIMIT = 0.1

Into = Annotated[
    str | None,
    typer.Option(metavar="NAME|PATH", help="Cloud scenario to start from. [default: cloud/medium]"),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="SCENARIO.toml", help="Write the copy here."),
]
Rows = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="METRICS.csv", help="Write the metrics file here."),
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the copy.")]
Limit = Annotated[
    float,
    typer.Option(
        "--max-skipped-fraction",
        metavar="F",
        help="Share of unusable rows, and of missing hours, above which nothing is written.",
    ),
]


def grid(
    file: Annotated[str, typer.Argument(metavar="GRID.csv")],
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="Region whose grid it is.")
    ] = None,
    into: Into = None,
    output: Output = None,
    name: Name = None,
    hourly: Annotated[
        bool, typer.Option("--series", help="Play its very hours, not its mean day.")
    ] = False,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="Intensity column.")] = None,
    basis: Annotated[
        str | None, typer.Option(metavar="direct|lifecycle", help="Which figures to take.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Zone to take, where there are several.")
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="TZ", help="Zone of times that name none. [default: UTC]"),
    ] = None,
    hour_end: Annotated[
        bool, typer.Option("--hour-end", help="Times mark the end of their hour.")
    ] = False,
    first_day: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day to take, UTC.")
    ] = None,
    days: Annotated[
        int | None, typer.Option(metavar="N", help="Days to take from there on.")
    ] = None,
    limit: Limit = _LIMIT,
    as_json: options.Json = False,
) -> int:
    """Put a real grid's hours into a cloud scenario."""
    from world.importers.grid import GridOptions, import_grid

    report = import_grid(
        Path(file),
        region=region,
        into=into,
        output=Path(output) if output else None,
        name=name,
        series=hourly,
        options=GridOptions(
            column=column,
            basis=cast(Any, basis),  # checked where it is used
            zone=zone,
            time_zone=time_zone,
            hour_end=hour_end,
            first_day=first_day,
            days=days,
        ),
        limit_fraction=limit,
    )
    return _answer(report, as_json)


def demand(
    file: Annotated[str, typer.Argument(metavar="DEMAND.csv")],
    service: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|NAME_IN_FILE=NAME", help="Which services it drives. Repeatable."
        ),
    ] = None,
    peak_rps: Annotated[
        float | None,
        typer.Option(metavar="RPS", help="Requests/s of the largest hour of a normalised trace."),
    ] = None,
    into: Into = None,
    output: Output = None,
    name: Name = None,
    interval_minutes: Annotated[
        float, typer.Option(metavar="M", help="Minutes between rows that are only counted.")
    ] = 60.0,
    from_hour: Annotated[
        int, typer.Option(metavar="H", help="Hour of the file that becomes hour 0.")
    ] = 0,
    hours: Annotated[
        int | None, typer.Option(metavar="N", help="Hours to take from there on.")
    ] = None,
    start_utc: Annotated[
        int | None,
        typer.Option(metavar="H", help="Begin episodes, and the trace, at this UTC hour."),
    ] = None,
    limit: Limit = _LIMIT,
    as_json: options.Json = False,
) -> int:
    """Put real demand into a cloud scenario: requests by hour, or a normalised CPU trace."""
    from world.importers.demand import DemandOptions, import_demand

    report = import_demand(
        Path(file),
        into=into,
        output=Path(output) if output else None,
        name=name,
        options=DemandOptions(
            services=tuple(service or ()),
            peak_rps=peak_rps,
            interval_minutes=interval_minutes,
            from_hour=from_hour,
            hours=hours,
            start_utc=start_utc,
        ),
        limit_fraction=limit,
    )
    return _answer(report, as_json)


def prometheus(
    file: Annotated[list[str], typer.Argument(metavar="ANSWER.json...")],
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the values are: cpu_percent, memory_percent …"),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Label that holds the resource's id.")
    ] = None,
    counter: Annotated[
        bool, typer.Option("--counter", help="Values are a counter: take its rate per second.")
    ] = False,
    capacity: Annotated[
        str | None,
        typer.Option(metavar="N", help="What is full, in the unit of the values (4, 500m, 8Gi)."),
    ] = None,
    merge: Annotated[
        str | None,
        typer.Option(metavar="sum|max|mean", help="How series of one resource are joined."),
    ] = None,
    output: Rows = None,
    limit: Limit = _LIMIT,
    as_json: options.Json = False,
) -> int:
    """Turn answers of Prometheus' query_range into metrics for `import focus --metrics`."""
    from world.errors import ConfigError
    from world.importers.prometheus import PrometheusOptions, import_prometheus
    from world.importers.quantities import parse_quantity

    full = parse_quantity(capacity) if capacity is not None else None
    if capacity is not None and full is None:
        raise ConfigError(
            f"--capacity is {capacity!r}", "it is no quantity", "Write for example 4, 500m or 8Gi"
        )
    report = import_prometheus(
        [Path(name) for name in file],
        output=Path(output) if output else None,
        options=PrometheusOptions(
            metric=metric,
            label=label,
            counter=counter,
            capacity=full,
            merge=cast(Any, merge),  # checked where it is used
        ),
        limit_fraction=limit,
    )
    return _answer(report, as_json)


def kubernetes(
    file: Annotated[list[str], typer.Argument(metavar="LIST.json...")],
    base: Annotated[
        str,
        typer.Option("--of", metavar="requests|limits", help="What a pod's use is a share of."),
    ] = "requests",
    output: Rows = None,
    limit: Limit = _LIMIT,
    as_json: options.Json = False,
) -> int:
    """Turn metrics of pods or nodes into metrics for `import focus --metrics`."""
    from world.importers.kubernetes import import_kubernetes

    report = import_kubernetes(
        [Path(name) for name in file],
        base=cast(Any, base),  # checked where it is used
        output=Path(output) if output else None,
        limit_fraction=limit,
    )
    return _answer(report, as_json)


def _answer(report: SeriesReport, as_json: bool) -> int:
    document = report.as_json()
    kind, path = report.written
    if as_json:
        printing.document(document)
    else:
        tell({name: part for name, part in document.items() if name != "refusals"})
        if path is not None:
            printing.say(f"next: {_next(kind, path)}")
    for reason in report.refusals:
        printing.talk(f"refused: {plain(reason)}; nothing was written")
    return 0 if report.accepted else 1


def _next(kind: str, path: str) -> str:
    if kind == "scenario":
        return command("run", "--scenario", path)
    return command("import", "focus", "BILL.csv", "--metrics", path)


def tell(document: dict[str, Any]) -> None:
    """Print an import's report for people, lists last and shortened."""
    lists = {
        name: part
        for name, part in document.items()
        if isinstance(part, list) and not (part and isinstance(part[0], int | float))
    }
    printing.outline({name: part for name, part in document.items() if name not in lists})
    for name, part in lists.items():
        if not part:
            continue
        printing.say(f"{name}:")
        for entry in part[:_MOST_SHOWN]:
            printing.say(f"  {plain(_words(entry))}")
        if len(part) > _MOST_SHOWN:
            printing.say(f"  and {len(part) - _MOST_SHOWN} more (all with --json)")


def _words(entry: Any) -> str:
    """One entry of a list on one line; what it does not have is left out."""
    if isinstance(entry, dict):
        pairs = [(name, part) for name, part in entry.items() if part not in (None, "", [])]
        return " · ".join(f"{name} {_words(part)}" for name, part in pairs)
    return ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)


COMMANDS: printing.Commands = {
    "grid": grid,
    "demand": demand,
    "prometheus": prometheus,
    "kubernetes": kubernetes,
}
