"""Import Prometheus query results: samples become the metrics file that a bill import joins.

Reads the JSON that ``/api/v1/query_range`` (or ``query``) answers. ``NaN`` and infinities are no
values; gaps stay gaps, whether the server leaves them out or fills them with NaN. Counters are
turned into rates with their resets, as ``rate()`` does. Two series of one resource are merged only
where they agree or where it was said how.

Source: Prometheus HTTP API, https://prometheus.io/docs/prometheus/latest/querying/api/ (values are
strings, ``NaN``, ``+Inf`` and ``-Inf`` among them; at most 11,000 points a series).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from world.errors import ConfigError, ImportFileError
from world.importers.ids import join_key
from world.importers.intake import LIMIT_FRACTION, Intake, SeriesReport, check_limit, refusals
from world.importers.json_files import read_json
from world.importers.metric_rows import (
    MetricRow,
    check_metrics_output,
    instant_text,
    write_metrics,
)
from world.importers.metrics import TEMPLATE_METRICS, largest_value
from world.importers.money import parse_amount
from world.importers.tables import visible
from world.model import significant

MOST_POINTS: Final = 11_000
"""Points a series that Prometheus answers at most. Source: web/api/v1/api.go, "exceeded maximum
resolution of 11,000 points per timeseries"."""
ID_LABELS: Final = ("resource_id", "instance_id", "node", "instance", "pod")
"""Labels that may hold the resource's id, best first, where none is named."""
ROUNDING_FRACTION: Final = 0.02
"""How far a share may exceed its ceiling and count as full: rates are extrapolated; our choice."""
Merge = Literal["sum", "max", "mean"]
MERGES: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "sum": math.fsum,
    "max": max,
    "mean": lambda values: math.fsum(values) / len(values),
}

NO_NUMBER: Final = "NaN: no value at that time"
INFINITE: Final = "infinite value"
REPEATED: Final = "the same sample again"
DISAGREE: Final = "two series of one resource disagree"
FIRST: Final = "first sample of a counter, compared with nothing"
HISTOGRAM: Final = "native histogram"

_FIRST_S: Final = 631_152_000  # 1990-01-01
_LAST_S: Final = 7_258_118_400  # 2200-01-01
_INFINITIES: Final = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """How query results are read.

    Attributes:
        metric: What the values are, a name of the metrics file; None takes the series' own name.
        label: Label that holds the resource's id; None takes the first of `ID_LABELS` that every
            series has.
        counter: Whether the values are a growing counter, to be turned into a rate per second.
        capacity: What counts as full, in the unit of the values; None where they are shares.
        merge: How two series of one resource become one.
    """

    metric: str | None = None
    label: str | None = None
    counter: bool = False
    capacity: float | None = None
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class _Series:
    labels: Mapping[str, str]
    samples: tuple[Any, ...]
    histograms: int


@dataclass(slots=True)
class _Found:
    """What the answer was found to hold beside its samples."""

    resets: int = 0
    gaps: int = 0
    step_s: int = 0
    longest: int = 0
    full: int = 0
    distrusted: int = 0
    notes: tuple[str, ...] = ()


def import_prometheus(
    paths: Sequence[Path],
    *,
    output: Path | None = None,
    options: PrometheusOptions | None = None,
    limit_fraction: float = LIMIT_FRACTION,
) -> SeriesReport:
    """Import query results, and write a metrics file where they are good enough.

    Args:
        paths: Answers of one query; several for several periods.
        output: Metrics file to write; None only reports.
        options: How they are read.
        limit_fraction: Share of unusable samples that is accepted, 0 to 1.

    Raises:
        ImportFileError: A file is no such answer.
        ConfigError: An option cannot work, or the output cannot be written.
    """
    check_limit(limit_fraction)
    options = options or PrometheusOptions()
    _check(options)
    if output is not None:
        check_metrics_output(output, paths)
    found = _Found()
    series: list[_Series] = []
    notes: list[str] = []
    for path in paths:
        answered, told = _series(path)
        series += answered
        notes += told
    found.notes = tuple(dict.fromkeys(notes))
    if not series:
        raise ImportFileError(
            f"{', '.join(map(str, paths))}: the query found nothing",
            "its result is empty",
            "Check the query and its period",
        )
    metric = _metric(series, options)
    label = _label(series, options)
    intake = Intake()
    by_id = _by_resource(series, label, options, intake, found)
    rows = list(_rows(by_id, metric, options, intake, found))
    refused = refusals(intake, limit_fraction)
    if output is not None and not refused:
        write_metrics(rows, output)
    return SeriesReport(
        rows=intake.rows,
        used=intake.used,
        skipped=dict(sorted(intake.skipped.items())),
        unusable=intake.unusable,
        limit_fraction=limit_fraction,
        refusals=tuple(refused),
        warnings=tuple(_warnings(intake, found, options, label)),
        details=_details(rows, series, metric, label, found),
        written=("metrics", str(output) if output is not None and not refused else None),
    )


def _check(options: PrometheusOptions) -> None:
    if options.metric is not None and largest_value(options.metric) is None:
        raise ConfigError(
            f"there is no metric {visible(options.metric, 60)!r}",
            "the unit must be known",
            f"Give one of {', '.join(TEMPLATE_METRICS)}, cpu_fraction, memory_fraction",
        )
    capacity = options.capacity
    if capacity is not None and not 0 < capacity < math.inf:
        raise ConfigError(
            f"--capacity is {capacity}", "it is what counts as full", "Give a number above 0"
        )
    if options.merge is not None and options.merge not in MERGES:
        raise ConfigError(
            f"--merge is {visible(options.merge, 40)!r}",
            f"it is one of {', '.join(MERGES)}",
            "Correct it",
        )


def _series(path: Path) -> tuple[list[_Series], list[str]]:
    """The series of one answer, and what the server remarked."""
    document = read_json(path, "Prometheus answer")
    if not isinstance(document, dict):
        raise _no_answer(path, "it is no object")
    if document.get("status") == "error":
        said = visible(str(document.get("error", "no reason given")), 300)
        many = "11,000 points" in said or "maximum resolution" in said
        raise ImportFileError(
            f"{path} holds an error of the server, not an answer",
            said,
            "Ask for a shorter period or a longer step, and give the answers as several files"
            if many
            else "Correct the query",
        )
    data = document.get("data", document)
    kind = data.get("resultType") if isinstance(data, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or kind not in ("matrix", "vector"):
        raise _no_answer(path, f"resultType is {visible(str(kind), 40)!r}")
    told = [
        visible(text, 200)
        for name in ("warnings", "infos")
        if isinstance(notes := document.get(name), list)
        for text in notes
        if isinstance(text, str)
    ]
    return [_one(entry, path) for entry in result], told


def _no_answer(path: Path, why: str) -> ImportFileError:
    return ImportFileError(
        f"{path} is no answer of query_range",
        why,
        'It looks like {"status": "success", "data": {"resultType": "matrix", "result": [...]}}',
    )


def _one(entry: Any, path: Path) -> _Series:
    labels = entry.get("metric") if isinstance(entry, dict) else None
    if not isinstance(labels, dict):
        raise _no_answer(path, "a series has no labels (metric)")
    values = entry.get("values", [entry["value"]] if "value" in entry else [])
    histograms = entry.get("histograms", [entry["histogram"]] if "histogram" in entry else [])
    if not isinstance(values, list) or not isinstance(histograms, list):
        raise _no_answer(path, "the values of a series are no list")
    named = {str(name): str(text) for name, text in labels.items()}
    return _Series(named, tuple(values), len(histograms))


def _metric(series: Sequence[_Series], options: PrometheusOptions) -> str:
    names = sorted({one.labels.get("__name__", "") for one in series})
    counters = [name for name in names if name.endswith(("_total", "_count", "_sum"))]
    if counters and not options.counter:
        raise ConfigError(
            f"the series {visible(counters[0], 80)!r} is a counter",
            "it only grows; its value says nothing about now",
            "Query rate(…[5m]) of it, or give --counter",
        )
    if options.metric is not None:
        return options.metric
    if len(names) == 1 and largest_value(names[0]) is not None:
        return visible(names[0], 80)
    shown = ", ".join(visible(name, 60) or "(no name)" for name in names[:5])
    raise ConfigError(
        "it is not said what the values are",
        f"the series are called {shown}",
        f"Give --metric, one of {', '.join(TEMPLATE_METRICS)}, cpu_fraction, memory_fraction",
    )


def _label(series: Sequence[_Series], options: PrometheusOptions) -> str:
    if options.label is not None:
        if any(options.label in one.labels for one in series):
            return options.label
    else:
        for label in ID_LABELS:
            if all(one.labels.get(label) for one in series):
                return label
    known = sorted({name for one in series for name in one.labels if name != "__name__"})
    raise ConfigError(
        f"no series has the label {visible(options.label, 60)!r}"
        if options.label is not None
        else f"no label of {', '.join(ID_LABELS)} stands on every series",
        f"labels are {', '.join(visible(name, 40) for name in known[:12]) or '(none)'}",
        "Name the label that holds the resource's id with --label",
    )


def _by_resource(
    series: Sequence[_Series],
    label: str,
    options: PrometheusOptions,
    intake: Intake,
    found: _Found,
) -> dict[str, tuple[str, dict[int, list[float]]]]:
    """Join key → the id as it is spelt, and its values by second."""
    result: dict[str, tuple[str, dict[int, list[float]]]] = {}
    deltas: Counter[int] = Counter()
    # In the order of their labels, so that the order in the file does not matter. Answers for
    # several periods repeat a series; its pieces are one.
    pieces: dict[str, list[_Series]] = {}
    for one in series:
        pieces.setdefault(json.dumps(one.labels, sort_keys=True), []).append(one)
    for key in sorted(pieces):
        parts = pieces[key]
        for one in parts:
            intake.rows += len(one.samples) + one.histograms
            intake.skip(HISTOGRAM, one.histograms)
            found.longest = max(found.longest, len(one.samples))
        resource = parts[0].labels.get(label, "").strip()
        if not resource:
            intake.skip(f"no label {visible(label, 40)}", sum(len(one.samples) for one in parts))
            continue
        samples = _samples([sample for one in parts for sample in one.samples], intake)
        times = list(samples)
        deltas.update(later - earlier for earlier, later in pairwise(times))
        if options.counter:
            samples = _rates(samples, intake, found)
        name = visible(resource)
        _, merged = result.setdefault(join_key(name), (name, {}))
        for when, value in samples.items():
            merged.setdefault(when, []).append(value)
    if deltas:
        found.step_s = min(deltas, key=lambda delta: (-deltas[delta], delta))
        found.gaps = sum(
            (round(delta / found.step_s) - 1) * count
            for delta, count in deltas.items()
            if delta > 1.5 * found.step_s
        )
    return result


def _samples(values: Iterable[Any], intake: Intake) -> dict[int, float]:
    """Second → value of one series, in order of time."""
    found: dict[int, float] = {}
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2:
            intake.skip("sample is no pair of time and value")
            continue
        when = _second(pair[0])
        if when is None:
            intake.skip("time is no second between 1990 and 2200")
            continue
        value = _number(pair[1], intake)
        if value is None:
            continue
        if when not in found:
            found[when] = value
        elif found[when] == value:
            intake.set_aside(REPEATED)
        else:
            intake.skip("one series has two values at one time")
    return dict(sorted(found.items()))


def _second(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if _FIRST_S <= value < _LAST_S else None


def _number(value: Any, intake: Intake) -> float | None:
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if isinstance(value, bool):
        text = ""
    if text.casefold() == "nan":
        intake.skip(NO_NUMBER)
        return None
    if text.casefold() in _INFINITIES:
        intake.skip(INFINITE)
        return None
    amount = parse_amount(text)
    if amount is None:
        intake.skip("value is not a number")
        return None
    return float(amount)


def _rates(samples: Mapping[int, float], intake: Intake, found: _Found) -> dict[int, float]:
    """Growth per second at each sample; a counter that falls began again at 0."""
    rates: dict[int, float] = {}
    before: tuple[int, float] | None = None
    for when, value in samples.items():
        if value < 0:
            intake.skip("a counter below 0")
            continue
        if before is None:
            intake.set_aside(FIRST)
        else:
            growth = value - before[1]
            if growth < 0:
                found.resets += 1
                growth = value
            rates[when] = growth / (when - before[0])
        before = (when, value)
    return rates


def _rows(
    by_id: Mapping[str, tuple[str, Mapping[int, list[float]]]],
    metric: str,
    options: PrometheusOptions,
    intake: Intake,
    found: _Found,
) -> Iterator[MetricRow]:
    ceiling = largest_value(metric)
    top = math.inf if ceiling is None else ceiling
    scale = 1.0 if options.capacity is None else top / options.capacity
    for key in sorted(by_id):
        name, samples = by_id[key]
        rows = []
        outside = False
        for when, values in samples.items():
            value = _merged(values, options.merge, intake)
            if value is None:
                continue
            value *= scale
            if top < value <= top * (1 + ROUNDING_FRACTION):
                found.full += 1
                value = top
            outside = outside or not 0 <= value <= top
            rows.append((when, value, len(values)))
        if outside:
            # One impossible value says that the unit is wrong, so none of them is right.
            found.distrusted += 1
            count = sum(n for _, _, n in rows) if options.merge else len(rows)
            intake.skip(f"resource with a value outside 0 to {top:g}", count)
            continue
        for when, value, _ in rows:
            yield MetricRow(name, when, metric, value)


def _merged(values: list[float], merge: Merge | None, intake: Intake) -> float | None:
    if len(values) == 1:
        return values[0]
    if merge is not None:
        return MERGES[merge](values)
    if all(value == values[0] for value in values):
        intake.set_aside(REPEATED, len(values) - 1)
        return values[0]
    intake.skip(DISAGREE, len(values))
    return None


def _details(
    rows: Sequence[MetricRow],
    series: Sequence[_Series],
    metric: str,
    label: str,
    found: _Found,
) -> dict[str, Any]:
    values = [row.value for row in rows]
    times = [row.epoch_s for row in rows]
    return {
        "metric": metric,
        "label": visible(label, 80),
        "series": len(series),
        "resources": len({row.resource for row in rows}),
        "samples_written": len(rows),
        "step_s": found.step_s,
        "gaps": found.gaps,
        "counter_resets": found.resets,
        "first": instant_text(min(times)) if times else None,
        "last": instant_text(max(times)) if times else None,
        "mean": significant(sum(values) / len(values)) if values else None,
        "max": significant(max(values)) if values else None,
    }


def _warnings(intake: Intake, found: _Found, options: PrometheusOptions, label: str) -> list[str]:
    skipped = intake.skipped
    counted = (
        (
            options.label is None,
            f"no --label: the label {label!r} is taken for the resource's id; it must be spelt as "
            "in the bill",
        ),
        (
            found.longest >= MOST_POINTS,
            f"a series has {found.longest:,} points, the most that Prometheus answers: the period "
            "may be longer than what is here",
        ),
        (
            found.gaps,
            f"{found.gaps:,} samples are missing at a step of {found.step_s} s: unknown, not 0",
        ),
        (
            skipped[NO_NUMBER],
            f"{skipped[NO_NUMBER]:,} samples are NaN (no traffic, or a gap that the server fills): "
            "unknown, not 0",
        ),
        (
            skipped[DISAGREE],
            f"{skipped[DISAGREE]:,} samples belong to several series of one resource that "
            "disagree (containers of a pod, relabelled duplicates): say how to join them, --merge "
            "sum, max or mean",
        ),
        (found.resets, f"counter resets: {found.resets:,}; growth counts from 0 after each"),
        (
            found.distrusted,
            f"{found.distrusted:,} resources have values outside the metric's range: what is full "
            "may be another number (--capacity)",
        ),
        (found.full, f"{found.full:,} samples are up to 2 % above full: written as full"),
    )
    told = [f"the server remarks: {text}" for text in found.notes[:5]]
    return [text for holds, text in counted if holds] + told
