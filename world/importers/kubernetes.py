"""Import Kubernetes metrics: what pods and nodes use becomes the metrics file of a bill import.

Takes what ``kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods`` (or ``…/nodes``) answers, and,
in further files or the same one, what ``kubectl get pods -o json`` (or ``nodes``) answers. Use
alone is cores and bytes; it becomes a share only of what the pod requests, of its limits, or of
what the node has. A node is named by its machine's id, so that it can meet the bill.

Source: k8s.io/metrics/pkg/apis/metrics/v1beta1 (PodMetrics, NodeMetrics), Kubernetes API v1 (Pod,
Node; ``spec.providerID`` ends in the machine's id, as in ``aws:///us-east-1a/i-0123``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from world.errors import ConfigError, ImportFileError
from world.importers.intake import LIMIT_FRACTION, Intake, SeriesReport, check_limit, refusals
from world.importers.json_files import read_json
from world.importers.metric_rows import (
    MetricRow,
    check_metrics_output,
    instant_text,
    write_metrics,
)
from world.importers.periods import parse_instant
from world.importers.quantities import parse_quantity
from world.importers.tables import visible
from world.model import significant

Base = Literal["requests", "limits"]
BASES: Final[tuple[Base, ...]] = ("requests", "limits")

COMPLETED: Final = "pod has completed"
REPEATED: Final = "the same sample again"
CONFLICTING: Final = "the same object and time with other values"
NO_BASE: Final = "states no {base} to measure against"
UNKNOWN_OBJECT: Final = "use of an object that the other files do not list"

MOST_CORES: Final = 10_000.0
"""Above this a quantity was misread: no machine has as many. Our choice."""
MOST_BYTES: Final = 2.0**50

_RESOURCES: Final = (("cpu", "cpu_percent", "cpu_cores", MOST_CORES),
                     ("memory", "memory_percent", "memory_bytes", MOST_BYTES))  # fmt: skip
_DONE: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class _Object:
    """What is known of a pod or node.

    Attributes:
        resource: Its id in the metrics file.
        completed: Whether it has ended.
        base: Resource → what its use is a share of, cores or bytes; None where it is not stated.
    """

    resource: str
    completed: bool
    base: Mapping[str, float | None]


@dataclass(slots=True)
class _Cluster:
    """All files together."""

    use: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    objects: dict[str, _Object] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    described: set[str] = field(default_factory=set)


def import_kubernetes(
    paths: Sequence[Path],
    *,
    base: Base = "requests",
    output: Path | None = None,
    limit_fraction: float = LIMIT_FRACTION,
) -> SeriesReport:
    """Import metrics of pods or nodes, and write a metrics file where they are good enough.

    Args:
        paths: JSON files: use (PodMetrics, NodeMetrics) and, for shares, descriptions (Pod, Node).
        base: What a pod's use is a share of.
        output: Metrics file to write; None only reports.
        limit_fraction: Share of unusable rows that is accepted, 0 to 1. A row is one object's use
            at one time.

    Raises:
        ImportFileError: A file holds none of these.
        ConfigError: An option cannot work, or the output cannot be written.
    """
    check_limit(limit_fraction)
    if base not in BASES:
        raise ConfigError(
            f"--of is {visible(base, 40)!r}", f"it is one of {', '.join(BASES)}", "Correct it"
        )
    if output is not None:
        check_metrics_output(output, paths)
    cluster = _Cluster()
    for path in paths:
        for item in _items(read_json(path, "Kubernetes list"), path):
            _sort_in(cluster, item, base)
    if not cluster.use:
        seen = ", ".join(sorted(cluster.kinds)) or "nothing"
        raise ImportFileError(
            f"{', '.join(map(str, paths))}: there are no metrics of pods or nodes",
            f"found: {visible(seen, 200)}",
            "Export them: kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods > pods.json",
        )
    intake, full = Intake(), Counter[str]()
    rows = list(_rows(cluster, base, intake, full))
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
        warnings=tuple(_warnings(cluster, intake, full, base)),
        details=_details(rows, cluster, base),
        written=("metrics", str(output) if output is not None and not refused else None),
    )


def _items(document: Any, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Kind and content of every object of a document."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ImportFileError(
            f"{path} holds no Kubernetes object",
            "it has no kind",
            "Export it: kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods > pods.json",
        )
    kind = document["kind"]
    if "items" not in document:
        yield kind, document
        return
    items = document["items"]
    if not isinstance(items, list):
        raise ImportFileError(f"{path}: items is no list", "", "Export it again")
    for item in items:
        if not isinstance(item, dict):
            raise ImportFileError(f"{path}: an item is no object", "", "Export it again")
        own = item.get("kind")
        yield own if isinstance(own, str) else kind.removesuffix("List"), item


def _sort_in(cluster: _Cluster, item: tuple[str, Mapping[str, Any]], base: Base) -> None:
    kind, content = item
    cluster.kinds[visible(kind, 40)] += 1
    if kind in {"PodMetrics", "NodeMetrics"}:
        cluster.use.append((kind.removesuffix("Metrics"), content))
    elif kind == "Pod":
        _add(cluster, "Pod", content, _pod(content, base))
    elif kind == "Node":
        _add(cluster, "Node", content, _node(content))


def _add(cluster: _Cluster, kind: str, content: Mapping[str, Any], found: _Object) -> None:
    cluster.described.add(kind)
    cluster.objects[_key(kind, content)] = found


def _part(value: Any, *names: str) -> Mapping[str, Any]:
    """A nested object, empty where it is missing or is something else."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _name(kind: str, content: Mapping[str, Any]) -> str:
    meta = _part(content, "metadata")
    name = visible(str(meta.get("name") or ""), 300)
    space = visible(str(meta.get("namespace") or "default"), 300)
    return f"{space}/{name}" if kind == "Pod" and name else name


def _key(kind: str, content: Mapping[str, Any]) -> str:
    return f"{kind} {_name(kind, content)}"


def _containers(content: Mapping[str, Any], *names: str) -> list[Any]:
    found = _part(content, *names[:-1]).get(names[-1])
    return found if isinstance(found, list) else []


def _pod(content: Mapping[str, Any], base: Base) -> _Object:
    containers = _containers(content, "spec", "containers")
    totals: dict[str, float | None] = {}
    for resource, *_ in _RESOURCES:
        stated = [
            parse_quantity(_part(container, "resources", base).get(resource))
            for container in containers
        ]
        # One container without a number leaves the whole pod without a base.
        known = [amount for amount in stated if amount is not None]
        totals[resource] = sum(known) if known and len(known) == len(stated) else None
    completed = str(_part(content, "status").get("phase")) in _DONE
    return _Object(_name("Pod", content), completed, totals)


def _node(content: Mapping[str, Any]) -> _Object:
    provider = str(_part(content, "spec").get("providerID") or "")
    # Azure's resource ids are whole paths; other clouds' ids are the last part.
    machine = provider.removeprefix("azure://")
    if machine == provider:
        machine = provider.rstrip("/").rpartition("/")[2]
    base = _part(content, "status", "capacity")
    return _Object(
        visible(machine, 2_000) or _name("Node", content),
        False,
        {resource: parse_quantity(base.get(resource)) for resource, *_ in _RESOURCES},
    )


def _rows(cluster: _Cluster, base: Base, intake: Intake, full: Counter[str]) -> Iterator[MetricRow]:
    seen: dict[tuple[str, int], Mapping[str, float]] = {}
    for kind, content in cluster.use:
        intake.rows += 1
        name = _name(kind, content)
        instant = parse_instant(str(content.get("timestamp") or ""))
        if not name:
            intake.skip("no name")
            continue
        known = cluster.objects.get(_key(kind, content))
        if known is not None and known.completed:
            intake.set_aside(COMPLETED)
            continue
        if instant is None:
            intake.skip("timestamp is not ISO 8601")
            continue
        use = _use(kind, content, intake)
        if use is None:
            continue
        key = (_key(kind, content), instant.epoch_s)
        if key in seen:
            intake.set_aside(REPEATED) if seen[key] == use else intake.skip(CONFLICTING)
            continue
        seen[key] = use
        if kind not in cluster.described:
            for resource, _, plain, _ in _RESOURCES:
                yield MetricRow(name, instant.epoch_s, plain, use[resource])
            continue
        if known is None:
            intake.skip(UNKNOWN_OBJECT)
            continue
        yield from _shares(known, use, instant.epoch_s, base, intake, full)


def _use(kind: str, content: Mapping[str, Any], intake: Intake) -> dict[str, float] | None:
    """Cores and bytes that an object uses; None where it is left out."""
    parts = [content] if kind == "Node" else _containers(content, "containers")
    if not parts:
        intake.skip("no container is measured")
        return None
    found: dict[str, float] = {}
    for resource, _, _, most in _RESOURCES:
        amounts = [parse_quantity(_part(part, "usage").get(resource)) for part in parts]
        known = [amount for amount in amounts if amount is not None]
        if len(known) < len(amounts) or any(not 0 <= amount <= most for amount in known):
            intake.skip(f"{resource} is no quantity")
            return None
        found[resource] = sum(known)
    return found


def _shares(
    known: _Object,
    use: Mapping[str, float],
    epoch_s: int,
    base: Base,
    intake: Intake,
    full: Counter[str],
) -> Iterator[MetricRow]:
    rows = []
    for resource, metric, _, _ in _RESOURCES:
        whole = known.base[resource]
        if not whole:
            continue
        percent = use[resource] / whole * 100.0
        if percent > 100.0:
            full[metric] += 1
        rows.append(MetricRow(known.resource, epoch_s, metric, min(percent, 100.0)))
    if not rows:
        intake.skip(NO_BASE.format(base=base if "/" in known.resource else "capacity"))
    elif len(rows) < len(_RESOURCES):
        full["half"] += 1
    yield from rows


def _details(rows: Sequence[MetricRow], cluster: _Cluster, base: Base) -> dict[str, Any]:
    times = [row.epoch_s for row in rows]
    metrics: dict[str, list[float]] = {}
    for row in rows:
        metrics.setdefault(row.metric, []).append(row.value)
    return {
        "objects": dict(sorted(cluster.kinds.items())),
        "share_of": base if "Pod" in cluster.described else None,
        "resources": len({row.resource for row in rows}),
        "samples_written": len(rows),
        "first": instant_text(min(times)) if times else None,
        "last": instant_text(max(times)) if times else None,
        "metrics": {
            name: {"mean": significant(sum(values) / len(values)), "max": significant(max(values))}
            for name, values in sorted(metrics.items())
        },
    }


def _warnings(cluster: _Cluster, intake: Intake, full: Mapping[str, int], base: Base) -> list[str]:
    bare = {kind for kind, _ in cluster.use} - cluster.described
    other = sum(
        count
        for kind, count in cluster.kinds.items()
        if kind not in {"Pod", "Node", "PodMetrics", "NodeMetrics"}
    )
    over = {name: full.get(name, 0) for name in ("cpu_percent", "memory_percent")}
    counted: Iterable[tuple[object, str]] = (
        (
            bare,
            f"use of {' and '.join(sorted(f'{kind}s'.lower() for kind in bare))} stays in cores "
            "and bytes, which a bill import does not take: give their description too (kubectl "
            "get pods -A -o json, kubectl get nodes -o json)",
        ),
        (
            any(over.values()),
            f"{over['cpu_percent']:,} CPU and {over['memory_percent']:,} memory samples are above "
            f"100 % of their base (a pod may use more than its {base}): written as 100",
        ),
        (
            full.get("half", 0),
            f"{full.get('half', 0):,} objects state a base for one of CPU and memory only",
        ),
        (other, f"{other:,} objects of other kinds were passed over"),
        (
            intake.skipped[UNKNOWN_OBJECT],
            f"{intake.skipped[UNKNOWN_OBJECT]:,} objects are measured but not described: export "
            "both at the same time",
        ),
    )
    return [text for holds, text in counted if holds]
