"""``stats``: the arms of a tournament compared seed by seed, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.text import plain
from world.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.study.comparisons import Comparison, Summary
    from orchestrator.study.ledger import Row
    from orchestrator.study.tables import Table

_MOST_K = 20

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="A tournament's folder, as it was given to --out.")
]
By = Annotated[
    str,
    typer.Option(metavar="FACTOR,...", help="What tells arms apart: protocol, persona, scenario."),
]
Measure = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="What is compared: score, reward_total, success, end_METRIC … Repeatable."
        " [default: score]",
    ),
]
PassK = Annotated[
    str, typer.Option("--pass-k", metavar="K,...", help="Trials that must all succeed.")
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--trust-sequential",
        help="Also pair scenarios whose storm depends on what the room did.",
    ),
]
Csv = Annotated[
    str | None, typer.Option("--csv", metavar="F", help="Write the tidy table: a row an episode.")
]
Parquet = Annotated[
    str | None, typer.Option("--parquet", metavar="F", help="The same, as Parquet.")
]
Html = Annotated[
    str | None, typer.Option("--html", metavar="F", help="Write the tables as one HTML page.")
]


def stats(
    folder: Folder,
    by: By = "scenario,protocol,persona",
    measure: Measure = None,
    trials: PassK = "1,2,4,8",
    trust_sequential: Sequential = False,
    csv: Csv = None,
    parquet: Parquet = None,
    html: Html = None,
    as_json: options.Json = False,
) -> int:
    """Compare the arms of a tournament: means, intervals, tests, what pairing bought.

    Paired by seed. Exit status 1 if there is nothing to compare because every cell failed.
    """
    from orchestrator.study.comparisons import comparisons, factors_of, summaries
    from orchestrator.study.ledger import read_manifest, read_rows
    from orchestrator.study.tables import check_measure, csv_text, write_parquet, write_text

    factors, ks = factors_of(by), _ks(trials)
    place = Path(folder)
    rows, warnings = read_rows(place)
    names = [check_measure(name, rows) for name in dict.fromkeys(measure or ["score"])]
    manifest = read_manifest(place)
    pairable, more = _pairable(rows, manifest, trust_sequential)
    warnings += more
    for warning in warnings:
        printing.warn(warning)
    if csv:
        write_text(Path(csv), csv_text(rows))
    if parquet:
        write_parquet(rows, Path(parquet))
    found = {
        name: (summaries(rows, factors, name, ks), comparisons(pairable, factors, name))
        for name in names
    }
    tables = [table for name in names for table in _tables(name, factors, *found[name])]
    if html:
        from orchestrator.study.tables import html_page

        write_text(Path(html), html_page(f"Tournament {place.name}", tables, warnings))
    if as_json:
        printing.document(_document(rows, manifest, found, warnings))
    else:
        _print(tables)
        for file in filter(None, (csv, parquet, html)):
            printing.talk(f"written: {plain(file)}")
    return 0 if any(row.error is None for row in rows) else 1


def _ks(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ks = [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 7]
    if len(ks) != len(parts) or not ks or min(ks) < 1 or len(ks) > _MOST_K:
        raise ConfigError(
            f"--pass-k is {plain(text, 60)!r}",
            f"it must be whole numbers from 1 on, at most {_MOST_K}, joined by commas",
            "For example --pass-k 1,4",
        )
    return sorted(set(ks))


def _pairable(
    rows: Sequence[Row], manifest: Any, trust_sequential: bool
) -> tuple[list[Row], list[str]]:
    """The rows whose seeds may be paired, and what there is to warn of."""
    from orchestrator.study.seeds import mixture

    warnings = [mixed] if (mixed := mixture(row.seed for row in rows)) else []
    if manifest is None:
        return list(rows), [*warnings, "there is no manifest.json: settings are not known"]
    if len(manifest.versions) > 1:
        warnings.append(f"rows were played by {len(manifest.versions)} versions (manifest.json)")
    shifting = [name for name, entry in manifest.scenarios.items() if not entry.shared_noise]
    present = [name for name in shifting if any(row.scenario == name for row in rows)]
    if not present or trust_sequential:
        return list(rows), warnings
    warnings.append(
        f"not compared: {', '.join(present)} (its storm depends on what the room did, so seeds"
        " do not pair; take a scenario with counter noise, or --trust-sequential)"
    )
    return [row for row in rows if row.scenario not in present], warnings


def _document(
    rows: Sequence[Row],
    manifest: Any,
    found: dict[str, tuple[list[Summary], list[Comparison]]],
    warnings: list[str],
) -> dict[str, Any]:
    return {
        "rows": [row.model_dump(mode="json") for row in rows],
        "summary": [
            {"measure": name, **each.as_json()}
            for name, (summary, _) in found.items()
            for each in summary
        ],
        "comparisons": [
            {"measure": name, **each.as_json()}
            for name, (_, compared) in found.items()
            for each in compared
        ],
        "split": manifest.split if manifest else None,
        "warnings": warnings,
    }


def _tables(
    measure: str,
    factors: Sequence[str],
    summary: Sequence[Summary],
    compared: Sequence[Comparison],
) -> list[Table]:
    from orchestrator.study.tables import Table

    ks = list(summary[0].pass_k) if summary else []
    passes = tuple(f"pass^{k}" for k in ks)
    first = Table(
        f"{measure} by {', '.join(factors)}",
        (
            *factors,
            "seeds",
            "failed",
            "mean",
            "95 % interval",
            "success",
            *passes,
        ),
        tuple(
            (
                *each.arm.values(),
                str(each.seeds),
                str(each.failed),
                _number(each.mean),
                _ends(each.interval),
                _number(each.success_rate["mean"], 3),
                *(_number(each.pass_k[k], 3) for k in ks),
            )
            for each in summary
        ),
        "mean over seeds; BCa bootstrap over seeds, 9,999 resamples (p: percentile, where BCa is"
        " degenerate); pass^k = C(c,k)/C(n,k), mean over cells",
    )
    if not compared:
        return [first]
    second = Table(
        f"{measure}: differences b − a, paired by seed",
        ("factor", "a", "b", "held", "n", "b − a", "95 % interval", "p", "p (Holm)", "detectable",
         "seeds needed", "correlation", "unpaired/paired"),
        tuple(_compared(each) for each in compared),
        "two-sided sign-flip test, exact up to 13 seeds, else 9,999 flips; Holm over the"
        f" {len(compared)} rows; detectable: at 5 % with 80 % power; unpaired/paired: widths of"
        " Welch's and the paired Student interval",
    )  # fmt: skip
    return [first, second]


def _compared(each: Comparison) -> tuple[str, ...]:
    found = each.pairing
    return (
        each.factor,
        each.a,
        each.b,
        ", ".join(each.held.values()) or "-",
        f"{each.pairs}" + (f" (−{each.dropped})" if each.dropped else ""),
        _number(each.difference, sign=True),
        _ends(each.interval),
        _p(each.test.p if each.test else None),
        _p(each.p_holm),
        _number(each.detectable),
        "-" if each.seeds_needed is None else f"{each.seeds_needed:,}",
        _number(found.correlation if found else None, 2),
        _number(found.ratio if found else None, 2),
    )


def _number(value: float | None, digits: int = 0, sign: bool = False) -> str:
    """Four significant digits, or fixed ones; a dash where there is nothing to tell."""
    if value is None:
        return "-"
    mark = "+" if sign else ""
    return f"{value:{mark}.{digits}f}" if digits else f"{value:{mark}.4g}"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _ends(interval: Any) -> str:
    if interval is None:
        return "-"
    mark = " p" if interval.method == "percentile" else ""
    return f"[{interval.low:.4g}, {interval.high:.4g}]{mark}"


def _print(tables: Sequence[Table]) -> None:
    for number, table in enumerate(tables):
        if number:
            printing.say()
        printing.say(plain(table.title))
        printing.columns([table.head, *table.rows])
        if table.note:
            printing.say(f"({plain(table.note)})")
