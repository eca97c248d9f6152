"""The measures of a run in the forms that people and programs read: CSV, JSON, lines."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from orchestrator.study.metrics.concession import concessions
from orchestrator.study.metrics.spending import Spending
from orchestrator.study.metrics.summary import Summary, usage_document
from orchestrator.study.metrics.table import MEASURES, StepMetrics
from orchestrator.trace.untrusted import cell
from policies.records import Usage
from world.model import significant

_PLAIN = ("step", "chosen", "candidates", "admissible", "agreement", "no_deal", "rounds",
          "chosen_vetoed")  # fmt: skip
_SEAT = ("value", "kendall_tau", "honesty_gap", "concession", "beta", "calls", "tokens_in",
         "tokens_out", "usd", "latency_ms")  # fmt: skip
PLANNERS = ("one_step", "multi_step")

Costs = Mapping[int, Spending]
"""Step → what it cost."""


def columns(seats: Sequence[str], with_regret: bool) -> list[str]:
    """Names of the CSV columns; those of a seat end in its name."""
    regret = [f"regret_{name}" for name in PLANNERS] if with_regret else []
    return [*_PLAIN, *MEASURES, *regret, *(f"{name}_{seat}" for seat in seats for name in _SEAT)]


def write_csv(
    rows: Iterable[StepMetrics],
    out: TextIO,
    seats: Sequence[str],
    costs: Costs,
    with_regret: bool,
) -> int:
    """Write one row per decision.

    Text that could start a formula in a spreadsheet gets an apostrophe in front.

    Returns:
        Number of rows, without the header.
    """
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in columns(seats, with_regret)])
    count = 0
    for row in rows:
        spent = costs.get(row.step)
        cells: list[Any] = [
            row.step, cell(row.chosen), row.candidates, row.admissible, _flag(row.agreement),
            cell(row.no_deal), row.rounds, _flag(row.chosen_vetoed),
            *(_cell(row.measures.get(name)) for name in MEASURES),
        ]  # fmt: skip
        if with_regret:
            cells += [_cell(row.regret.get(name)) for name in PLANNERS]
        for seat in seats:
            cells += _seat_cells(row, seat, spent.seats.get(seat) if spent else None)
        writer.writerow(cells)
        count += 1
    return count


def row_document(row: StepMetrics, costs: Costs) -> dict[str, Any]:
    """One row as JSON-plain values, with what it cost where something did."""
    found = row.document()
    spent = costs.get(row.step)
    if spent is not None and spent.seats:
        found["spending"] = {seat: usage_document(used) for seat, used in spent.seats.items()}
    return found


def measure_table(summary: Summary) -> Iterator[tuple[str, ...]]:
    """Measure, mean, least, most, decisions that it is known of, and what it is."""
    yield ("measure", "mean", "min", "max", "n", "")
    for name, tally in summary.measures.items():
        found = tally.document()
        numbers = (_shown(found[part]) for part in ("mean", "min", "max"))
        yield (name, *numbers, str(found["n"]), MEASURES[name])


def regret_table(summary: Summary) -> Iterator[tuple[str, ...]]:
    """Regret against each planner; nothing where it was not asked for."""
    for name, tally in summary.regret.items():
        found = tally.document()
        numbers = (_shown(found[part]) for part in ("mean", "min", "max"))
        yield (f"regret {name}", *numbers, str(found["n"]), "reward that the choice fell short of")


def seat_table(summary: Summary) -> Iterator[tuple[str, ...]]:
    """One line a seat; columns that no seat has are left out."""
    documents = {seat: tally.document(summary.decisions) for seat, tally in summary.seats.items()}
    found = [["seat", *documents]]
    for title, path in _SEAT_COLUMNS:
        column = [_at(document, path) for document in documents.values()]
        if any(value is not None for value in column):
            found.append([title, *map(_shown, column)])
    if any("moves" in document for document in documents.values()):
        moves = [_moves(document.get("moves", {})) for document in documents.values()]
        found.append(["moves", *moves])
    yield from zip(*found, strict=True)


_SEAT_COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("V of choice", ("value", "mean")),
    ("kendall tau", ("kendall_tau", "mean")),
    ("honesty gap", ("honesty_gap", "mean")),
    ("conceded", ("concession", "mean")),
    ("beta", ("beta", "geometric_mean")),
    ("calls", ("spending", "calls")),
    ("tokens in", ("spending", "tokens_in")),
    ("tokens out", ("spending", "tokens_out")),
    ("usd", ("spending", "usd")),
    ("ms/decision", ("spending", "per_decision", "latency_ms")),
)


def _seat_cells(row: StepMetrics, seat: str, used: Usage | None) -> list[Any]:
    """The cells of one seat, in the order of `_SEAT`."""
    stated, gave = row.honesty.get(seat), row.concessions.get(seat)
    cost: list[Any] = [""] * 5
    if used is not None:
        cost = ["" if value is None else value for value in usage_document(used).values()]
    return [
        _cell(row.values.get(seat)),
        _cell(stated.kendall_tau if stated else None),
        _cell(stated.gap if stated else None),
        _cell(concessions(gave.bids)[-1] if gave else None),
        _cell(gave.fit.beta if gave and gave.fit else None),
        *cost,
    ]


def _at(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _moves(found: Mapping[str, int]) -> str:
    return " ".join(f"{kind} {count}" for kind, count in found.items()) or "-"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(value: float | None) -> Any:
    return "" if value is None else significant(value)


def _flag(value: bool | None) -> str:
    return "" if value is None else str(value).lower()
