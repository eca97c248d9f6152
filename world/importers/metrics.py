"""Utilisation joined to a bill: one CSV, one sample a line, unknown stays unknown.

Columns: ``resource_id`` and, for samples, ``metric``, ``value`` and ``ts`` (ISO 8601, optional);
``essential`` and ``owner`` may stand on any line of a resource. Units are read from the metric's
name and never guessed from its values: a ``…_percent`` runs from 0 to 100, a ``…_fraction`` from 0
to 1. A value outside its range is refused, and because a metric that was out of range once cannot
be trusted, that metric of that resource stays unknown.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from world.errors import ConfigError
from world.importers.atomic import write_atomically
from world.importers.ids import join_key, quoted
from world.importers.money import parse_amount
from world.importers.periods import SECONDS_PER_HOUR, parse_instant
from world.importers.tables import Aliases, TableReader, is_missing, visible
from world.importers.tags import Essential, parse_essential, word

TEMPLATE_METRICS: Final = ("cpu_percent", "memory_percent", "idle_hours")
TEMPLATE_HEADER: Final = ("resource_id", "ts", "metric", "value", "essential", "owner")

BUSY_CPU_PERCENT: Final = 2.0
"""A machine below this is idle.

Source: Azure Advisor recommends to shut a machine down below 3 % CPU (95th percentile, 7 days);
2 % is on the careful side of that.
"""

_COLUMNS: Final[Aliases] = {
    "resource_id": ("resourceid", "resource", "id"),
    "ts": ("ts", "timestamp", "time", "datetime"),
    "metric": ("metric", "metricname"),
    "value": ("value",),
    "essential": ("essential",),
    "owner": ("owner",),
}
_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_IDLE: Final = "idle"
_METRICS: Final[dict[str, tuple[str, float]]] = {
    "cpupercent": (_CPU, 1.0),
    "cpuutilizationpercent": (_CPU, 1.0),
    "cpuutilization": (_CPU, 1.0),  # CloudWatch: percent
    "percentagecpu": (_CPU, 1.0),  # Azure Monitor: percent
    "cpufraction": (_CPU, 100.0),
    "cpuutilizationfraction": (_CPU, 100.0),
    "memorypercent": (_MEMORY, 1.0),
    "memoryutilizationpercent": (_MEMORY, 1.0),
    "mempercent": (_MEMORY, 1.0),
    "memusedpercent": (_MEMORY, 1.0),  # CloudWatch agent: percent
    "memoryfraction": (_MEMORY, 100.0),
    "memoryutilizationfraction": (_MEMORY, 100.0),
    "idlehours": (_IDLE, 1.0),
    "idledays": (_IDLE, 24.0),
}
"""Metric name, letters and digits only → what it measures and the factor to percent or hours."""

_MOST_IDLE_HOURS: Final = 24.0 * 366 * 50


def largest_value(metric: str) -> float | None:
    """Largest value that a metric may have, in its own unit; None where it is not known.

    >>> largest_value("cpu_percent"), largest_value("cpu_fraction"), largest_value("cpu")
    (100.0, 1.0, None)
    """
    known = _METRICS.get(word(metric[:80]))
    if known is None:
        return None
    return (_MOST_IDLE_HOURS if known[0] == _IDLE else 100.0) / known[1]


class Use(NamedTuple):
    """How much of a resource was used.

    Attributes:
        mean_percent: Mean over its samples, 0 to 100; None is unknown.
        max_percent: Largest sample, 0 to 100; None is unknown.
    """

    mean_percent: float | None
    max_percent: float | None


UNKNOWN_USE: Final = Use(None, None)


class _Series:
    """Running mean, extremes and idle span of one metric of one resource."""

    __slots__ = (
        "busy_s",
        "count",
        "distrusted",
        "first_s",
        "largest",
        "last_s",
        "latest",
        "smallest",
        "total",
    )

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.smallest = math.inf
        self.largest = -math.inf
        self.distrusted = False
        self.first_s: int | None = None
        self.last_s: int | None = None
        self.latest = math.inf
        self.busy_s: int | None = None

    def add(self, value: float, when_s: int | None) -> None:
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)
        if when_s is None:
            return
        self.first_s = when_s if self.first_s is None else min(self.first_s, when_s)
        if self.last_s is None or when_s >= self.last_s:
            self.last_s, self.latest = when_s, value
        if value >= BUSY_CPU_PERCENT:
            self.busy_s = when_s if self.busy_s is None else max(self.busy_s, when_s)

    @property
    def known(self) -> bool:
        return self.count > 0 and not self.distrusted

    @property
    def use(self) -> Use:
        if not self.known:
            return UNKNOWN_USE
        mean = min(max(self.total / self.count, self.smallest), self.largest)
        return Use(mean, self.largest)

    @property
    def newest(self) -> float | None:
        """The newest value; the smallest, where no sample says when it was taken."""
        if not self.known:
            return None
        return self.smallest if self.last_s is None else self.latest

    @property
    def quiet_hours(self) -> float | None:
        """Hours from the last busy sample (else from the first one) to the last sample."""
        if not self.known or self.first_s is None or self.last_s is None:
            return None
        if self.busy_s is not None:
            return (self.last_s - self.busy_s) / SECONDS_PER_HOUR
        if self.first_s == self.last_s:
            return None  # one quiet moment does not say for how long
        return (self.last_s - self.first_s) / SECONDS_PER_HOUR


@dataclass(slots=True)
class ResourceMetrics:
    """What the file says about one resource.

    Attributes:
        essential: ``yes``, ``no`` or None; ``yes`` wins where lines differ.
        contradicted: Whether lines say ``yes`` and others ``no``.
        owner: The first owner named, or None.
    """

    essential: Essential | None = None
    contradicted: bool = False
    owner: str | None = None
    _series: dict[str, _Series] = field(default_factory=dict)

    def add(self, metric: str, value: float, when_s: int | None) -> None:
        """Take one sample, in percent or hours."""
        self._series.setdefault(metric, _Series()).add(value, when_s)

    def distrust(self, metric: str) -> None:
        """Make one metric unknown for good."""
        self._series.setdefault(metric, _Series()).distrusted = True

    @property
    def cpu(self) -> Use:
        """CPU in percent."""
        return self._series[_CPU].use if _CPU in self._series else UNKNOWN_USE

    @property
    def memory(self) -> Use:
        """Memory in percent."""
        return self._series[_MEMORY].use if _MEMORY in self._series else UNKNOWN_USE

    @property
    def idle_hours(self) -> float | None:
        """Hours since last use: as given, else from the CPU samples, else None (unknown)."""
        given = self._series.get(_IDLE)
        if given is not None:
            return given.newest
        cpu = self._series.get(_CPU)
        return cpu.quiet_hours if cpu is not None else None


@dataclass(frozen=True, slots=True)
class Metrics:
    """One metrics file, read.

    Attributes:
        by_id: Resource id, as `join_key` spells it → what the file says about it.
        rows: Data rows, those that could not be used included.
        samples: Samples that were used.
        blank: Rows without a value, as an unfilled template has them.
        contradicted: Ids that are answered both ``yes`` and ``no`` for ``essential``.
        unclear: Rows whose ``essential`` is neither yes, no nor unknown.
        skipped: Reason → rows that were not used.
        sha256: Digest of the uncompressed file.
        looks_like_fractions: Whether every ``…_percent`` sample lies within 0 to 1.
    """

    by_id: dict[str, ResourceMetrics]
    rows: int
    samples: int
    blank: int
    contradicted: int
    unclear: int
    skipped: dict[str, int]
    sha256: str
    looks_like_fractions: bool


def read_metrics(path: Path) -> Metrics:
    """Read a metrics file.

    Raises:
        ImportFileError: It cannot be read as CSV, or has neither samples nor essential nor owner.
    """
    with TableReader(path, _COLUMNS, "metrics file") as table:
        at = table.positions(_COLUMNS)
        samples = "metric" in at and "value" in at
        if "resource_id" not in at or not (samples or "essential" in at or "owner" in at):
            wanted = ["resource_id", "metric", "value"]
            raise table.missing(
                [name for name in wanted if name not in at],
                "Write the header: resource_id,ts,metric,value (see --metrics-template)",
            )
        reading = _Reading(at)
        for row in table:
            reading.take(row)
        skipped = Counter(table.skipped) + reading.skipped
        return Metrics(
            by_id=reading.by_id,
            rows=reading.rows + sum(table.skipped.values()),
            samples=reading.samples,
            blank=reading.blank,
            contradicted=sum(entry.contradicted for entry in reading.by_id.values()),
            unclear=reading.unclear,
            skipped=dict(sorted(skipped.items())),
            sha256=table.sha256,
            looks_like_fractions=reading.fractional and not reading.above_one,
        )


class _Reading:
    """The rows of one metrics file as they come."""

    def __init__(self, at: dict[str, int]) -> None:
        self._at = at
        self.by_id: dict[str, ResourceMetrics] = {}
        self.rows = self.samples = self.blank = self.unclear = 0
        self.skipped: Counter[str] = Counter()
        self.fractional = self.above_one = False

    def _field(self, row: list[str], name: str) -> str:
        position = self._at.get(name)
        if position is None or is_missing(row[position]):
            return ""
        return row[position].strip()

    def take(self, row: list[str]) -> None:
        self.rows += 1
        resource = self._field(row, "resource_id")
        if not resource:
            self.skipped["no resource id"] += 1
            return
        entry = self.by_id.setdefault(join_key(resource), ResourceMetrics())
        self._take_statements(row, entry)
        if not self._field(row, "metric") or not self._field(row, "value"):
            self.blank += 1
            return
        reason = self._take_sample(row, entry)
        if reason:
            self.skipped[reason] += 1
        else:
            self.samples += 1

    def _take_statements(self, row: list[str], entry: ResourceMetrics) -> None:
        said = self._field(row, "essential")
        if said:
            answer = parse_essential(said)
            if answer is None:
                self.unclear += word(said) != "unknown"
            else:
                entry.contradicted |= entry.essential not in (None, answer)
                entry.essential = "yes" if entry.essential == "yes" else answer
        owner = self._field(row, "owner")
        if owner and entry.owner is None:
            entry.owner = visible(owner, 120)

    def _take_sample(self, row: list[str], entry: ResourceMetrics) -> str:
        known = _METRICS.get(word(self._field(row, "metric")[:80]))
        if known is None:
            return "metric is not known"
        metric, factor = known
        amount = parse_amount(self._field(row, "value"))
        if amount is None:
            return "value is not a number"
        number = float(amount)
        ceiling = _MOST_IDLE_HOURS if metric == _IDLE else 100.0
        if not 0.0 <= number * factor <= ceiling:
            entry.distrust(metric)
            return f"value is outside 0 to {ceiling / factor:g}"
        when = self._field(row, "ts")
        instant = parse_instant(when) if when else None
        if when and instant is None:
            return "ts is not ISO 8601"
        entry.add(metric, number * factor, instant.epoch_s if instant else None)
        if metric != _IDLE and factor == 1.0:
            self.fractional = self.fractional or 0.0 < number < 1.0
            self.above_one = self.above_one or number > 1.0
        return ""


def template_text(ids: Iterable[str]) -> str:
    """A metrics file to fill in: one line for each resource and metric, values left blank.

    An id that a spreadsheet would take for a formula is written with an apostrophe before it;
    reading the file takes that away again.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TEMPLATE_HEADER)
    for name in ids:
        shown = quoted(name)
        writer.writerows((shown, "", metric, "", "", "") for metric in TEMPLATE_METRICS)
    return text.getvalue()


def write_template(ids: Iterable[str], path: Path) -> None:
    """Write `template_text` to a file, atomically. What somebody filled in is not overwritten.

    Raises:
        ConfigError: The file cannot be written, or exists with other content.
    """
    content = template_text(ids).encode()
    if path.is_file() and path.read_bytes() != content:
        raise ConfigError(
            f"{path} exists and differs from a new template",
            "it may be filled in",
            "Choose another file, or import with --metrics to use it",
        )
    write_atomically(path, content)
