"""Samples as the metrics file that a bill import joins: resource_id, ts, metric, value."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from world.errors import ConfigError
from world.importers.atomic import write_atomically
from world.importers.ids import quoted
from world.importers.tables import visible

HEADER: Final = ("resource_id", "ts", "metric", "value")
_FIRST_LINE: Final = ",".join(HEADER).encode()


class MetricRow(NamedTuple):
    """One sample.

    Attributes:
        resource: Id of the resource.
        epoch_s: Whole seconds since 1970-01-01T00:00:00Z.
        metric: Its name, with the unit.
        value: In that unit.
    """

    resource: str
    epoch_s: int
    metric: str
    value: float


def instant_text(epoch_s: int) -> str:
    """A moment as ISO 8601 in UTC.

    >>> instant_text(0)
    '1970-01-01T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def metrics_text(rows: Iterable[MetricRow]) -> str:
    """The metrics file, rows in the order of id, metric and time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for row in sorted(rows, key=lambda row: (row.resource, row.metric, row.epoch_s)):
        writer.writerow(
            (
                quoted(visible(row.resource)),
                instant_text(row.epoch_s),
                row.metric,
                f"{row.value:.9g}",
            )
        )
    return text.getvalue()


def check_metrics_output(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse to write over anything but an earlier import of samples.

    Raises:
        ConfigError: The output is an input, a folder, or somebody else's file.
    """
    if output.is_dir():
        raise ConfigError(
            f"{output} is a folder", "a metrics file is one file", f"Type -o {output / 'use.csv'}"
        )
    if not output.exists():
        return
    for source in inputs:
        if source.exists() and output.samefile(source):
            raise ConfigError(
                f"{output} is an input of this import",
                "writing the metrics would destroy it",
                "Choose another output, for example -o use.csv",
            )
    with output.open("rb") as file:
        start = file.readline(200).strip()
    if start != _FIRST_LINE:
        raise ConfigError(
            f"{output} exists and was not written by an import",
            "an import overwrites nothing but an earlier one",
            "Choose another output, for example -o use.csv",
        )


def write_metrics(rows: Iterable[MetricRow], output: Path) -> None:
    """Write the metrics file, whole or not at all.

    Raises:
        ConfigError: It cannot be written.
    """
    write_atomically(output, metrics_text(rows).encode())
