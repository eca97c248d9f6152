"""``import focus``: a bill becomes a scenario, or the template of the metrics it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.commands import command
from orchestrator.console.text import plain
from world.errors import ConfigError

_MOST_SHOWN = 10


def focus(
    bill: Annotated[str, typer.Argument(metavar="BILL.csv")],
    metrics: Annotated[
        str | None, typer.Option(metavar="M.csv", help="Utilisation per resource.")
    ] = None,
    metrics_template: Annotated[
        str | None,
        typer.Option(metavar="T.csv", help="Write the metrics file to fill in, and stop."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="SCENARIO.toml", help="Write here.")
    ] = None,
    rates: Annotated[
        str | None, typer.Option(metavar="R.csv", help="Exchange rates, for mixed currencies.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the scenario.")] = None,
    horizon: Annotated[int, typer.Option(help="Steps in an episode.")] = 10,
    target_fraction: Annotated[
        float, typer.Option(help="Cost target, as a share of the starting cost.")
    ] = 0.8,
    as_json: options.Json = False,
) -> int:
    """Turn a FOCUS bill into a scenario: what was mapped, what was not, and the reconciliation."""
    from world.importers.focus import import_focus, write_metrics_template

    if metrics_template is not None:
        for other, value in (("--output", output), ("--metrics", metrics)):
            if value is not None:
                raise ConfigError(
                    f"{other} cannot be given with --metrics-template",
                    "the template is filled in before the bill is imported",
                    f"Fill in {metrics_template}, then import with --metrics {metrics_template}",
                )
        write_metrics_template(Path(bill), Path(metrics_template))
        if as_json:
            printing.document({"metrics_template": metrics_template})
        else:
            printing.say(f"wrote {plain(metrics_template)}; fill it in, then:")
            printing.say(command("import", "focus", bill, "--metrics", metrics_template))
        return 0
    report = import_focus(
        Path(bill),
        metrics=Path(metrics) if metrics else None,
        output=Path(output) if output else None,
        rates=Path(rates) if rates else None,
        name=name,
        horizon=horizon,
        target_fraction=target_fraction,
    )
    document = report.as_json()
    if as_json:
        printing.document(document)
    else:
        _tell(document, output)
    if not report.reconciled:
        printing.talk(
            f"not reconciled: {report.gap_fraction:.2%} of the money is missing, more than "
            f"{report.tolerance_fraction:.2%}; no scenario was written"
        )
    return 0 if report.reconciled else 1


def _tell(document: dict[str, Any], output: str | None) -> None:
    lists = {name: part for name, part in document.items() if isinstance(part, list)}
    printing.outline({name: part for name, part in document.items() if name not in lists})
    for name, part in lists.items():
        if not part:
            continue
        printing.say(f"{name}:")
        for entry in part[:_MOST_SHOWN]:
            printing.say(f"  {plain(_words(entry))}")
        if len(part) > _MOST_SHOWN:
            printing.say(f"  and {len(part) - _MOST_SHOWN} more (all with --json)")
    if output and document.get("scenario"):
        printing.say(f"next: {command('run', '--scenario', output)}")


def _words(entry: Any) -> str:
    """One entry of a list on one line; what it does not have is left out."""
    if isinstance(entry, dict):
        pairs = [(name, part) for name, part in entry.items() if part not in (None, "", [])]
        return " · ".join(f"{name} {_words(part)}" for name, part in pairs)
    return ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)


COMMANDS: printing.Commands = {"focus": focus}
