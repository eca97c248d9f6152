"""Small grid, demand, Prometheus and Kubernetes files, each with the trap that a test is about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 6, 1, tzinfo=UTC)
START_S = int(START.timestamp())
"""1 June 2026, midnight UTC."""


def stamp(hour: float) -> str:
    """A moment as ISO 8601, hours after 1 June 2026."""
    return (START + timedelta(hours=hour)).isoformat()


def day(hour: int) -> float:
    """An intensity that is different in every hour of the day, g/kWh."""
    return 200.0 + 10.0 * (hour % 24)


def grid_lines(hours: int = 48, changes: Mapping[int, str] | None = None) -> list[str]:
    """``timestamp,value`` of so many hours; `changes` puts other text in the value."""
    said = changes or {}
    return [f"{stamp(hour)},{said.get(hour, day(hour))}" for hour in range(hours)]


def write(path: Path, lines: Iterable[str]) -> Path:
    """Write lines to a file."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_grid(folder: Path, lines: Iterable[str], header: str = "timestamp,avg_CI") -> Path:
    """A grid file."""
    return write(folder / "grid.csv", [header, *lines])


def answer(*series: tuple[Mapping[str, str], Sequence[Sequence[Any]]]) -> dict[str, Any]:
    """What query_range answers for (labels, [[seconds after the start, value], …])."""
    return {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": dict(labels), "values": [[START_S + at, value] for at, value in values]}
                for labels, values in series
            ],
        },
    }


def write_json(path: Path, value: Any) -> Path:
    """Write a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def pod_use(
    name: str, *usage: tuple[str, str], namespace: str = "shop", at: str = "2026-06-01T00:00:00Z"
) -> dict[str, Any]:
    """A PodMetrics item, one (cpu, memory) pair a container."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "timestamp": at,
        "window": "30s",
        "containers": [
            {"name": f"c{number}", "usage": {"cpu": cpu, "memory": memory}}
            for number, (cpu, memory) in enumerate(usage)
        ],
    }


def pod_uses(*items: Mapping[str, Any]) -> dict[str, Any]:
    """A PodMetricsList."""
    return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": list(items)}


def pod(
    name: str,
    *requests: Mapping[str, str] | None,
    namespace: str = "shop",
    phase: str = "Running",
    limits: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A Pod, one mapping of requests a container."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [
                {"name": f"c{number}", "resources": {"requests": asked, "limits": limits}}
                for number, asked in enumerate(requests)
            ]
        },
        "status": {"phase": phase},
    }


def listed(*items: Mapping[str, Any]) -> dict[str, Any]:
    """A List of objects that name their kinds."""
    return {"kind": "List", "apiVersion": "v1", "items": list(items)}
