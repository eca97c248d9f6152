"""Copies a trace into the forms that other tools read.

Both exports check the chain as they read, so that no figure is ever drawn from an edited trace,
and hold one step in memory.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

from orchestrator.trace.events import canonical
from orchestrator.trace.links import Torn, scan
from orchestrator.trace.reader import read
from orchestrator.trace.steps import Header, StepRecord, episode, mapping, numbers, sequence
from orchestrator.trace.untrusted import cell
from world.errors import TraceError

Format = Literal["jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv")

COLUMNS = (
    "time",
    "relative_time",
    "step",
    "negotiator",
    "offer",
    "responses",
    "state",
    "text",
    "data",
    "scenario",
    "seed",
    "protocol",
    "persona",
    "weight",
    "abstains",
    "fallback",
    "proposals",
    "confidence",
    "chosen",
    "action",
    "agreement",
    "no_deal",
    "rounds",
    "overridden_from",
    "override_rule",
    "utility_of_chosen",
    "preferred",
    "utility_of_preferred",
    "rank_of_chosen",
    "vetoes",
    "reward",
    "success",
)
"""Columns before the metrics; docs/trace.md says what each holds.

The first nine are those of NegMAS's ``full_trace`` (Mohammad, Nakadai & Greenwald, "NegMAS: A
Platform for Situated Negotiations", 2021), so that its users find what they know.
"""


def export_jsonl(path: Path, out: BinaryIO) -> int:
    """Copy the lines of a trace, each one checked before it is written.

    Returns:
        Number of events.

    Raises:
        TraceError: As `orchestrator.trace.links.scan`, and when the file ends within a line.
    """
    count = 0
    for link in scan(path):
        if isinstance(link, Torn):
            raise TraceError(
                f"{path} ends within line {link.line}",
                "its writer was killed, or the file was cut off",
                "Resume the run to repair it: run_warroom.py run --resume RUN",
            )
        out.write(link.raw + b"\n")
        count += 1
    return count


def export_csv(path: Path, out: TextIO) -> int:
    """Write one row per step and seat.

    Text that could start a formula in a spreadsheet gets an apostrophe in front (`cell`);
    numbers are numbers. Open `out` with ``newline=""``, encoding UTF-8.

    Returns:
        Number of rows, without the header.

    Raises:
        TraceError: As `orchestrator.trace.reader.read`.
    """
    writer = csv.writer(out, lineterminator="\n")
    rows = 0
    for row in table(path):
        writer.writerow([_csv_cell(value) for value in row])
        rows += 1
    return rows - 1


def table(path: Path) -> Iterator[list[Any]]:
    """The names of the columns, then one row per step and seat, in plain values.

    A value that is not known is None, whatever the column.

    Raises:
        TraceError: As `orchestrator.trace.reader.read`.
    """
    parts = episode(read(path))
    header = next(parts)
    if not isinstance(header, Header):  # scan guarantees run_started first
        raise TraceError(f"{path} is not a trace", "it does not start with run_started")
    first = next(parts)
    before, after = _metric_names(first)
    yield [*COLUMNS, *(f"before_{n}" for n in before), *(f"after_{n}" for n in after)]
    for record in chain([first], parts):
        if isinstance(record, StepRecord):
            yield from _rows(header, record, before, after)


def _csv_cell(value: Any) -> Any:
    """A value as a cell: text that a spreadsheet would calculate is kept from it (`cell`)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return cell(value) if isinstance(value, str) else value


def _metric_names(first: object) -> tuple[list[str], list[str]]:
    """Metric columns: a world measures the same metrics at every step, so the first step tells."""
    if not isinstance(first, StepRecord):
        return [], []
    before = sorted(map(str, mapping(first.observation.get("metrics"))))
    after = sorted(map(str, mapping(first.applied.get("metrics"))))
    return before, after


def _rows(
    header: Header, record: StepRecord, before: list[str], after: list[str]
) -> Iterator[list[Any]]:
    observed = mapping(record.observation.get("metrics"))
    applied = mapping(record.applied.get("metrics"))
    metrics = [_number(observed.get(n)) for n in before] + [_number(applied.get(n)) for n in after]
    for seat in record.ballots:
        yield [*_row(header, record, seat), *metrics]


def _row(header: Header, record: StepRecord, seat: str) -> list[Any]:
    """The cells of `COLUMNS` for one seat at one step."""
    ballot, decision = record.ballots[seat], record.decision
    proposals = [mapping(item) for item in sequence(ballot.get("proposals"))]
    top = proposals[0] if proposals else {}
    utilities = numbers(ballot.get("utilities"))
    preferred = record.preferred(seat)
    ranking = sequence(ballot.get("ranking"))
    horizon = header.horizon
    return [
        record.step,
        record.step / horizon if horizon else None,
        record.step,
        seat,
        _text(top.get("id")),
        _json({e.agent: dict(e.data) for e in record.talk if e.type == "response"}),
        _state(decision),
        _text(top.get("rationale")),
        _json(utilities),
        _text(header.scenario.get("name")),
        _number(header.data.get("seed")),
        header.protocol,
        header.personas.get(seat, ""),
        _number(ballot.get("weight")),
        _flag(ballot.get("abstains")),
        _text(ballot.get("fallback")),
        len(proposals),
        _number(top.get("confidence")),
        record.chosen,
        record.action,
        _flag(decision.get("agreement")),
        _text(decision.get("no_deal")),
        _number(decision.get("rounds")),
        _text(decision.get("overridden_from")),
        _text(decision.get("override_rule")),
        utilities.get(record.chosen),
        preferred,
        utilities.get(preferred),
        ranking.index(record.chosen) + 1 if record.chosen in ranking else None,
        " | ".join(str(v.get("candidate")) for v in record.vetoes if v["seat"] == seat),
        _number(record.grade.get("reward")),
        _flag(record.grade.get("success")),
    ]


def _state(decision: Mapping[str, Any]) -> str:
    if not decision:
        return "undecided"
    return "agreement" if decision.get("agreement") else "no_agreement"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _json(value: Mapping[str, Any]) -> str:
    return canonical(value).decode() if value else ""


def _number(value: object) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
