"""``metrics``: how good, how fair and how dear the decisions of a run were."""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, printing
from world.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.study.metrics.regret import Regrets
    from orchestrator.study.metrics.summary import Summary
    from orchestrator.study.metrics.table import StepMetrics
    from orchestrator.study.recorded import Recorded

Run = Annotated[str, typer.Argument(metavar="RUN")]
Csv = Annotated[bool, typer.Option("--csv", help="A table on stdout, one row per decision.")]
Regret = Annotated[
    str | None,
    typer.Option(
        metavar="clairvoyant|sampled|mean",
        help="Also regret against two planners, on this noise; plays the world again.",
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        metavar="K",
        help="With --regret sampled: belief samples, half to select and half to score."
        " [default: twice the room's]",
        show_default=False,
    ),
]


def metrics(
    run: Run,
    csv: Csv = False,
    regret: Regret = None,
    samples: Samples = 0,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Measure every decision of a run: efficiency, fairness, concessions, regret, cost."""
    from orchestrator.settings import load_settings
    from orchestrator.study.metrics.regret import Regrets
    from orchestrator.study.recorded import recorded

    if csv and as_json:
        raise ConfigError(
            "--csv and --json are both given", "stdout carries one of them", "Leave one out"
        )
    if samples and regret != "sampled":
        raise ConfigError(
            f"--samples {samples} is given without --regret sampled",
            "nothing else is sampled here",
            "Add --regret sampled, or leave --samples out",
        )
    wanted = Regrets(regret, samples) if regret is not None else None
    settings = load_settings(options.given(out=out)).settings
    record = recorded(run, Path(settings.out))
    if csv:
        return _table(record, wanted)
    return _account(record, wanted, as_json)


def _rows(record: Recorded, wanted: Regrets | None) -> Iterator[StepMetrics]:
    from orchestrator.study.metrics.regret import rows_with_regret
    from orchestrator.study.metrics.table import rows

    return rows(record.stream()) if wanted is None else rows_with_regret(record, wanted)


def _table(record: Recorded, wanted: Regrets | None) -> int:
    """CSV; the trace is read to its end first, because what was piped on cannot be taken back."""
    from orchestrator.study.metrics.forms import write_csv
    from orchestrator.study.metrics.spending import spending

    for _ in record.stream():
        pass
    costs = {cost.step: cost for cost in spending(_timings(record))}
    text = TextIOWrapper(
        printing.answers().buffer, encoding="utf-8", newline="", write_through=True
    )
    try:
        write_csv(_rows(record, wanted), text, record.seats, costs, wanted is not None)
    finally:
        text.detach()
    return 0


def _account(record: Recorded, wanted: Regrets | None, as_json: bool) -> int:
    """The summary for people, or rows and summary as one document."""
    from orchestrator.study.metrics.forms import row_document
    from orchestrator.study.metrics.spending import spending
    from orchestrator.study.metrics.summary import Summary

    costs = {cost.step: cost for cost in spending(_timings(record))}
    summary = Summary(record.seats)
    documents = []
    for row in _rows(record, wanted):
        summary.add(row)
        if as_json:
            documents.append(row_document(row, costs))
    summary.spend(costs.values())
    if not as_json:
        _say(record, wanted, summary)
        return 0
    # The scorecard stands at the end of a trace, which is only read again where it is needed.
    total = record.scorecard.get("total") if summary.tokens else None
    score = float(total) if isinstance(total, int | float) else None
    printing.document(
        {
            "run": record.run,
            "scenario": record.header.scenario.get("name"),
            "seed": record.header.data.get("seed"),
            "protocol": record.header.protocol,
            "personas": record.header.personas,
            "trace": str(record.path),
            "regret_noise": None if wanted is None else wanted.noise,
            "rows": documents,
            "summary": summary.document(score),
        }
    )
    return 0


def _say(record: Recorded, wanted: Regrets | None, summary: Summary) -> None:
    from orchestrator.console.text import plain
    from orchestrator.study.metrics.forms import measure_table, regret_table, seat_table

    header = record.header
    printing.say(
        f"{plain(record.run)}: {plain(header.scenario.get('name'))},"
        f" seed {plain(header.data.get('seed'))}, {plain(header.protocol)},"
        f" {summary.decisions} decisions"
    )
    named = ", ".join(f"{plain(name)} {n}" for name, n in sorted(summary.no_deal_rules.items()))
    rules = f" ({named})" if named else ""
    printing.say(
        f"agreement {100 * summary.agreement_rate:.1f} %,"
        f" by the no-deal rule {100 * summary.no_deal_share:.1f} %{rules},"
        f" rounds {summary.rounds.mean or 0:.3g} on average"
    )
    if summary.vetoed or summary.off_table:
        printing.say(
            f"chosen although vetoed or infeasible: {summary.vetoed};"
            f" chosen but not weighed: {summary.off_table}"
        )
    printing.say()
    printing.columns([*measure_table(summary), *regret_table(summary)])
    printing.say()
    printing.columns(list(seat_table(summary)))
    printing.say()
    printing.say(
        "V: a seat's utility of the projected consequence on its own range of candidates that"
        " could be chosen, 0 worst to 1 best; n: decisions in which the measure exists"
    )
    if wanted is not None:
        printing.say(f"regret: {wanted.said(record.room())}")


def _timings(record: Recorded) -> Path:
    from orchestrator.runs import TIMINGS_FILE

    return record.path.with_name(TIMINGS_FILE)
