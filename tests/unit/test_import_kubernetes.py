"""Kubernetes metrics: quantities, shares of what was asked for, and pods that have ended."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.support.bills import usage, write_bill
from tests.support.samples import listed, pod, pod_use, pod_uses, write_json
from world.errors import ConfigError, ImportFileError
from world.importers.focus import import_focus
from world.importers.intake import SeriesReport
from world.importers.kubernetes import (
    COMPLETED,
    CONFLICTING,
    REPEATED,
    UNKNOWN_OBJECT,
    import_kubernetes,
)
from world.importers.quantities import parse_quantity

ASKED = {"cpu": "500m", "memory": "1Gi"}


def imported(folder: Path, *documents: Any, **options: Any) -> SeriesReport:
    paths = [
        write_json(folder / f"list{number}.json", document)
        for number, document in enumerate(documents)
    ]
    return import_kubernetes(paths, output=folder / "use.csv", **options)


def values(folder: Path) -> dict[tuple[str, str], float]:
    with (folder / "use.csv").open(encoding="utf-8", newline="") as lines:
        return {
            (row["resource_id"], row["metric"]): float(row["value"])
            for row in csv.DictReader(lines)
        }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("250m", 0.25), ("0", 0.0), ("2", 2.0), ("0.5", 0.5), (".5", 0.5), ("100n", 1e-7),
        ("10u", 1e-5), ("1k", 1e3), ("1M", 1e6), ("1G", 1e9), ("1T", 1e12), ("1P", 1e15),
        ("1E", 1e18), ("1Ki", 1024.0), ("1Gi", 2.0**30), ("1.5Mi", 1.5 * 2**20), ("1Ei", 2.0**60),
        ("1e3", 1000.0), ("1E3", 1000.0), ("5e-3", 0.005), ("-1", -1.0), (3, 3.0), (0.25, 0.25),
    ],
)  # fmt: skip
def test_a_quantity_is_its_number(text: object, number: float) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize(
    "text", ["", "m", "1 Gi", "1gi", "1K", "1Kib", "Gi", "NaN", "1e", "0x1", "١", None, True, []]
)
def test_what_is_no_quantity_is_none(text: object) -> None:
    assert parse_quantity(text) is None


def test_use_becomes_a_share_of_what_the_pod_requests(tmp_path: Path) -> None:
    use = pod_uses(pod_use("web-1", ("125m", "256Mi"), ("125m", "256Mi")))
    described = listed(pod("web-1", ASKED, ASKED))
    report = imported(tmp_path, use, described)
    assert report.accepted
    assert (report.rows, report.used) == (1, 1)
    assert values(tmp_path) == {
        ("shop/web-1", "cpu_percent"): 25.0,
        ("shop/web-1", "memory_percent"): 25.0,
    }


def test_limits_are_another_base(tmp_path: Path) -> None:
    use = pod_uses(pod_use("web-1", ("250m", "1Gi")))
    described = listed(pod("web-1", ASKED, limits={"cpu": "1", "memory": "4Gi"}))
    imported(tmp_path, described, use, base="limits")
    assert set(values(tmp_path).values()) == {25.0}
    with pytest.raises(ConfigError, match="--of is 'usage'"):
        imported(tmp_path, described, use, base="usage")


def test_more_than_was_requested_is_full_and_told(tmp_path: Path) -> None:
    report = imported(
        tmp_path, pod_uses(pod_use("web-1", ("2", "256Mi"))), listed(pod("web-1", ASKED))
    )
    assert values(tmp_path)[("shop/web-1", "cpu_percent")] == 100.0
    assert any("1 CPU and 0 memory samples are above 100 %" in text for text in report.warnings)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_completed_pods_are_set_aside_and_not_counted_as_unusable(
    tmp_path: Path, phase: str
) -> None:
    use = pod_uses(pod_use("web-1", ("1m", "1Mi")), pod_use("job-1", ("0", "0")))
    described = listed(pod("web-1", ASKED), pod("job-1", ASKED, phase=phase))
    report = imported(tmp_path, use, described)
    assert report.skipped == {COMPLETED: 1}
    assert report.unusable == 0
    assert {name for name, _ in values(tmp_path)} == {"shop/web-1"}


def test_a_container_without_a_request_leaves_its_pod_without_a_base(tmp_path: Path) -> None:
    use = pod_uses(pod_use("web-1", ("1m", "1Mi"), ("1m", "1Mi")))
    report = imported(tmp_path, use, listed(pod("web-1", ASKED, None)))
    assert report.skipped == {"states no requests to measure against": 1}
    assert not report.accepted
    half = imported(tmp_path, use, listed(pod("web-1", ASKED, {"cpu": "500m"})))
    assert half.accepted
    assert values(tmp_path) == {("shop/web-1", "cpu_percent"): 0.2}
    assert any("one of CPU and memory only" in text for text in half.warnings)


def test_pods_of_one_name_in_two_namespaces_stay_apart(tmp_path: Path) -> None:
    use = pod_uses(
        pod_use("web", ("50m", "1Mi")), pod_use("web", ("100m", "1Mi"), namespace="test")
    )
    imported(tmp_path, use, listed(pod("web", ASKED), pod("web", ASKED, namespace="test")))
    found = values(tmp_path)
    assert found[("shop/web", "cpu_percent")] == 10.0
    assert found[("test/web", "cpu_percent")] == 20.0


def test_use_alone_stays_in_cores_and_bytes_and_says_what_is_missing(tmp_path: Path) -> None:
    report = imported(tmp_path, pod_uses(pod_use("web-1", ("250m", "1Gi"))))
    assert report.accepted
    assert values(tmp_path) == {
        ("shop/web-1", "cpu_cores"): 0.25,
        ("shop/web-1", "memory_bytes"): float(f"{2.0**30:.9g}"),
    }
    assert any("give their description too" in text for text in report.warnings)


def test_a_node_is_named_by_its_machine_and_meets_the_bill(tmp_path: Path) -> None:
    use = {
        "kind": "NodeMetricsList",
        "items": [
            {
                "metadata": {"name": "ip-10-0-0-1"},
                "timestamp": "2026-06-01T00:00:00Z",
                "usage": {"cpu": "1", "memory": "4Gi"},
            }
        ],
    }
    node = {
        "kind": "Node",
        "metadata": {"name": "ip-10-0-0-1"},
        "spec": {"providerID": "aws:///us-east-1a/i-0001"},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi"}},
    }
    imported(tmp_path, use, listed(node))
    assert values(tmp_path) == {("i-0001", "cpu_percent"): 25.0, ("i-0001", "memory_percent"): 25.0}
    joined = import_focus(write_bill(tmp_path, usage()), metrics=tmp_path / "use.csv")
    assert joined.metrics is not None
    assert joined.metrics["resources"] == 1


def test_azure_nodes_keep_their_whole_path(tmp_path: Path) -> None:
    path = "/subscriptions/x/resourceGroups/y/providers/Microsoft.Compute/virtualMachines/z"
    use = {
        "kind": "NodeMetrics",
        "metadata": {"name": "z"},
        "timestamp": "2026-06-01T00:00:00Z",
        "usage": {"cpu": "1", "memory": "1Gi"},
    }
    node = {
        "kind": "Node",
        "metadata": {"name": "z"},
        "spec": {"providerID": f"azure://{path}"},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi"}},
    }
    imported(tmp_path, use, node)
    assert {name for name, _ in values(tmp_path)} == {path}


@pytest.mark.parametrize("amount", ["1 Gi", "", None, "-1", "250M", "abc"])
def test_a_quantity_that_cannot_be_is_counted_and_left_out(tmp_path: Path, amount: Any) -> None:
    items = [pod_use(f"web-{number}", ("1m", "1Mi")) for number in range(19)]
    report = imported(tmp_path, pod_uses(*items, pod_use("bad", (amount, "1Mi"))))
    assert report.skipped == {"cpu is no quantity": 1}
    assert report.used == 19


def test_objects_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    good = [pod_use(f"web-{number}", ("1m", "1Mi")) for number in range(50)]
    bad = [
        pod_use("", ("1m", "1Mi")),
        pod_use("empty"),
        pod_use("late", ("1m", "1Mi"), at="yesterday"),
        pod_use("web-1", ("1m", "1Mi")),
        pod_use("web-2", ("2m", "1Mi")),
    ]
    report = imported(tmp_path, pod_uses(*good, *bad))
    assert report.skipped == {
        "no name": 1, "no container is measured": 1, "timestamp is not ISO 8601": 1,
        REPEATED: 1, CONFLICTING: 1,
    }  # fmt: skip
    assert report.unusable == 4
    assert report.rows == report.used + sum(report.skipped.values()) == 55


def test_pods_that_no_file_describes_are_counted(tmp_path: Path) -> None:
    use = pod_uses(pod_use("web-1", ("1m", "1Mi")), pod_use("new", ("1m", "1Mi")))
    report = imported(tmp_path, use, listed(pod("web-1", ASKED)))
    assert report.skipped == {UNKNOWN_OBJECT: 1}
    assert not report.accepted
    assert not (tmp_path / "use.csv").exists()


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "has no kind"),
        ({"items": []}, "has no kind"),
        ({"kind": "PodList", "items": 7}, "items is no list"),
        ({"kind": "PodList", "items": [7]}, "an item is no object"),
        ({"kind": "PodList", "items": []}, "no metrics of pods or nodes"),
        ({"kind": "Deployment", "metadata": {}}, "found: Deployment"),
    ],
)
def test_what_holds_no_metrics_is_one_clear_line(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(ImportFileError, match=says) as refused:
        imported(tmp_path, document)
    assert "\n" not in refused.value.line()
