"""The ``import`` commands.

``import focus`` turns a bill into a scenario, or into the template of the metrics it lacks; the
others take samples (`orchestrator.cli.series`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import options, printing, series
from orchestrator.console.commands import command
from orchestrator.console.text import plain
from world.errors import ConfigError

_WORLD = "finops"


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
    world: Annotated[
        str,
        typer.Option(
            metavar="finops|cloud",
            help="The bill's own inventory, or a cloud world in its proportions.",
        ),
    ] = _WORLD,
    into: series.Into = None,
    horizon: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps in an episode. [default: 10; cloud: as --into]"),
    ] = None,
    target_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            help="Cost target, as a share of the starting cost. [default: 0.8; cloud: as --into]",
        ),
    ] = None,
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
        world=world,
        into=into,
        horizon=horizon,
        target_fraction=target_fraction,
    )
    document = report.as_json()
    if as_json:
        printing.document(document)
    else:
        series.tell(document)
        if output and document.get("scenario"):
            printing.say(f"next: {command('run', '--scenario', output)}")
        elif not output and report.reconciled:
            given = {
                "--metrics": metrics,
                "--rates": rates,
                "--name": name,
                "--world": None if world == _WORLD else world,
                "--into": into,
                "--horizon": horizon,
                "--target-fraction": target_fraction,
            }
            _offer_to_write(bill, given)
    if not report.reconciled:
        printing.talk(
            f"not reconciled: {report.gap_fraction:.2%} of the money is missing, more than "
            f"{report.tolerance_fraction:.2%}; no scenario was written"
        )
    return 0 if report.reconciled else 1


def _offer_to_write(bill: str, given: Mapping[str, str | float | None]) -> None:
    """Say that nothing was written, and the command that writes the scenario of this report."""
    from world.importers.focus import default_name

    words = [str(word) for pair in given.items() if pair[1] is not None for word in pair]
    output = f"{default_name(Path(bill)).removeprefix('bill/')}.toml"
    printing.say("no scenario was written; to write it:")
    printing.say(command("import", "focus", bill, *words, "-o", output))


COMMANDS: printing.Commands = {"focus": focus, **series.COMMANDS}
