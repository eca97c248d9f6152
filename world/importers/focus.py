"""Import a FOCUS bill: from a CSV that a provider wrote to a scenario that a room can play.

Two public functions. `import_focus` reads the bill (and metrics, and rates), reconciles it, and
writes a scenario only if the money adds up. `write_metrics_template` writes the CSV that asks for
what a bill cannot know. Nothing in a bill is evaluated; the same files give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import localcontext
from pathlib import Path
from typing import Any, Final

from world.errors import ConfigError, ImportFileError
from world.importers.bill import Bill, RawTotals, read_bill, sum_raw
from world.importers.cloud_bill import cloud_from_bill, notes
from world.importers.cloud_series import BASE
from world.importers.inventory import GONE_AFTER_HOURS, Inventory, build_inventory
from world.importers.metrics import Metrics, read_metrics, write_template
from world.importers.money import EXACT, USD, ZERO, read_rates
from world.importers.report import ImportReport, gap_fraction, reconciliation
from world.importers.scenario_writer import check_output, write_scenario
from world.importers.tables import visible
from world.model import Scenario, significant
from world.worlds.finops.schema import validate_resources
from world.worlds.finops.sizes import canonical_size

DEAREST_ROWS: Final = 10
"""How many of the dearest resources the report lists."""

DEFAULT_HORIZON: Final = 10
DEFAULT_TARGET_FRACTION: Final = 0.8
FINOPS: Final = "finops"
CLOUD: Final = "cloud"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,119}")


def import_focus(
    bill: Path,
    *,
    metrics: Path | None = None,
    output: Path | None = None,
    rates: Path | None = None,
    name: str | None = None,
    world: str = "finops",
    into: str | None = None,
    horizon: int | None = None,
    target_fraction: float | None = None,
    tolerance_fraction: float = 0.005,
) -> ImportReport:
    """Import a bill, and write a scenario where its sums hold.

    The scenario's cost target is `target_fraction` × the starting cost of the whole inventory:
    every resource at its rate, and the protected rows of unattributed usage, which nobody can act
    on. The ledger (credits, taxes, purchases) is not in it. An earlier scenario is overwritten,
    any other file is not. For the cloud world see `world.importers.cloud_bill`.

    Args:
        bill: FOCUS CSV, plain or gzip.
        metrics: Utilisation CSV, or None.
        output: Scenario file to write; None only reports.
        rates: CSV with ``currency,usd_per_unit``; then all amounts are US dollars.
        name: Name of the scenario; None makes ``bill/<file name>``.
        world: ``finops`` for the bill's own inventory, ``cloud`` for a cloud world in the bill's
            proportions.
        into: Cloud scenario to start from, by name or file; None is cloud/medium.
        horizon: Steps in an episode, at least 1; None is 10, in the cloud world its base's.
        target_fraction: Cost target as a share of the starting cost, above 0 and at most 1; None
            is 0.8, in the cloud world its base's.
        tolerance_fraction: Largest gap with which a scenario is still written, 0 to 1.

    Raises:
        ImportFileError: A file cannot be read as what it should be, or currencies are mixed.
        ConfigError: An option cannot work, or the output cannot be written.
    """
    _check_options(
        DEFAULT_HORIZON if horizon is None else horizon,
        DEFAULT_TARGET_FRACTION if target_fraction is None else target_fraction,
        tolerance_fraction,
        name,
    )
    _check_world(world, into)
    if output is not None:
        base = Path(into) if into and Path(into).is_file() else None
        check_output(output, [path for path in (bill, metrics, rates, base) if path is not None])
    with localcontext(EXACT):
        raw = sum_raw(bill, read_rates(rates) if rates is not None else None)
        attributed = read_bill(bill, raw)
        use = read_metrics(metrics) if metrics is not None else None
        inventory = build_inventory(attributed, use)
        gap = gap_fraction(raw, attributed)
        written = output if output is not None and gap <= tolerance_fraction else None
        named = name or default_name(bill)
        taken: Mapping[str, Any] | None = None
        if written is not None:
            _check_usage(attributed, bill)
            if world == CLOUD:
                scenario, taken = _cloud(
                    named, raw, inventory, bill, into or BASE, horizon, target_fraction
                )
            else:
                share = DEFAULT_TARGET_FRACTION if target_fraction is None else target_fraction
                params = _params(raw, attributed, inventory, use, gap, share)
                scenario = _scenario(
                    named, raw, inventory, params, horizon or DEFAULT_HORIZON, share
                )
                validate_resources(scenario)
            write_scenario(scenario, written)
        return _report(raw, attributed, inventory, use, gap, tolerance_fraction, written, taken)


def write_metrics_template(bill: Path, path: Path, *, rates: Path | None = None) -> int:
    """Write the metrics CSV to fill in for a bill: resources that cost something, dearest first.

    Args:
        bill: FOCUS CSV, plain or gzip.
        path: File to write.
        rates: CSV with ``currency,usd_per_unit``, for bills that mix currencies.

    Returns:
        How many resources it asks about.

    Raises:
        ImportFileError: The bill cannot be read.
        ConfigError: The file cannot be written, or is the bill itself.
    """
    if path.exists() and bill.exists() and path.samefile(bill):
        raise ConfigError(f"{path} is the bill", "it would be destroyed", "Choose another file")
    with localcontext(EXACT):
        raw = sum_raw(bill, read_rates(rates) if rates is not None else None)
        inventory = build_inventory(read_bill(bill, raw), None)
    ids = [row.id for row in inventory.resources if row.rate > ZERO and not row.cells["protected"]]
    write_template(ids, path)
    return len(ids)


def default_name(bill: Path) -> str:
    """The scenario name of a bill that was given none.

    >>> default_name(Path("My bill, June.csv.gz"))
    'bill/My-bill-June'
    """
    stem = re.sub(r"(?i)\.(?:gz|csv|tsv|txt)$", "", re.sub(r"(?i)\.gz$", "", bill.name))
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", stem).strip("-.")[:100]
    return f"bill/{slug or 'unnamed'}"


def _check_options(
    horizon: int, target_fraction: float, tolerance_fraction: float, name: str | None
) -> None:
    if not 1 <= horizon <= 1_000_000:
        raise ConfigError(f"the horizon is {horizon}", "it is at least 1 step", "For example 10")
    if not 0.0 < target_fraction <= 1.0:
        raise ConfigError(
            f"the target fraction is {target_fraction}",
            "the cost target is a share of the starting cost, above 0 and at most 1",
            "For example 0.8",
        )
    if not 0.0 <= tolerance_fraction <= 1.0:
        raise ConfigError(
            f"the tolerance fraction is {tolerance_fraction}",
            "it is a share of the bill between 0 and 1",
            "For example 0.005",
        )
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigError(
            f"{visible(name, 80)!r} is no scenario name",
            "a name is letters, digits and ._/- and starts with a letter or digit",
            "For example bill/june",
        )


def _params(
    raw: RawTotals,
    bill: Bill,
    inventory: Inventory,
    use: Metrics | None,
    gap: float,
    target_fraction: float,
) -> dict[str, Any]:
    params: dict[str, Any] = {
        "task": "bill",
        "source": "FOCUS",
        "bill_sha256": raw.sha256,
        "currency": raw.currency,
        "target_fraction": target_fraction,
        "average_usd_per_hour": _average(bill),
        "bill_hours": significant(bill.covered.hours),
    }
    if use is not None:
        params["metrics_sha256"] = use.sha256
    if inventory.join is not None:
        params["metrics_resources"] = inventory.join.matched
    params["reconciliation"] = reconciliation(raw, bill, gap)
    return params


def _scenario(
    name: str,
    raw: RawTotals,
    inventory: Inventory,
    params: Mapping[str, Any],
    horizon: int,
    target_fraction: float,
) -> Scenario:
    start = significant(float(inventory.start))
    targets = {}
    if start > 0:
        targets["cost_usd_per_hour"] = significant(start * target_fraction)
    return Scenario(
        name=name,
        world="finops",
        title=f"A real bill: {len(inventory.resources)} resources, {start:.4g} {raw.currency}/h",
        description=(
            "Made from a FOCUS bill. Rates are cost of usage divided by the hours that its "
            "charges cover. What the bill does not know stays unknown; what is unknown or "
            "essential is not terminated. Unattributed usage is shown and protected."
        ),
        horizon=horizon,
        params=params,
        targets=targets,
        resources=inventory.columns(),
    )


def _check_world(world: str, into: str | None) -> None:
    if world not in {FINOPS, CLOUD}:
        raise ConfigError(
            f"a bill cannot become a scenario of the world {visible(world, 40)!r}",
            "",
            f"Type --world {FINOPS} or --world {CLOUD}",
        )
    if into is not None and world != CLOUD:
        raise ConfigError(
            f"--into {visible(into, 80)} is given without --world {CLOUD}",
            "only a cloud world starts from another scenario",
            f"Type --world {CLOUD} as well, or leave --into out",
        )


def _cloud(
    name: str,
    raw: RawTotals,
    inventory: Inventory,
    bill: Path,
    into: str,
    horizon: int | None,
    target_fraction: float | None,
) -> tuple[Scenario, Mapping[str, Any]]:
    if raw.currency != USD:
        raise ConfigError(
            f"{bill} is in {raw.currency}",
            "the cloud world's prices are US dollars",
            "Give exchange rates with --rates",
        )
    cells = [row.cells for row in inventory.resources]
    return cloud_from_bill(cells, name, into, horizon, target_fraction)


def _check_usage(bill: Bill, path: Path) -> None:
    if not bill.mapped + bill.unattributed:
        raise ImportFileError(
            f"{path} has no usage",
            "credits, taxes and purchases make no inventory",
            "Export a period with usage",
        )


def _average(bill: Bill) -> float:
    hours = bill.covered.hours
    usage = bill.total_mapped + bill.total_unattributed
    return significant(float(usage) / hours) if hours else 0.0


def _report(
    raw: RawTotals,
    bill: Bill,
    inventory: Inventory,
    use: Metrics | None,
    gap: float,
    tolerance_fraction: float,
    written: Path | None,
    cloud: Mapping[str, Any] | None,
) -> ImportReport:
    sizes = [row.cells["size"] for row in inventory.resources if row.cells["size"] is not None]
    free = [row for row in inventory.resources if not row.rate]
    acting = [row for row in inventory.resources if not row.cells["protected"]]
    return ImportReport(
        rows=raw.rows,
        mapped=bill.mapped,
        unattributed=bill.unattributed,
        ledger=bill.ledger,
        skipped=dict(sorted(bill.skipped.items())),
        total_in=raw.total_in,
        total_mapped=bill.total_mapped,
        total_unattributed=bill.total_unattributed,
        total_ledger=bill.total_ledger,
        ledger_totals=bill.ledger_totals,
        total_billed=raw.total_billed,
        gap_fraction=gap,
        tolerance_fraction=tolerance_fraction,
        resources=len(inventory.resources),
        resources_negative=sum(row.rate < ZERO for row in inventory.resources),
        resources_free=len(free),
        resources_unbilled=sum(
            bool(row.usage_rows) and not row.cells["billed_usd_per_hour"] for row in free
        ),
        sizes_read=len(sizes),
        sizes_known=sum(canonical_size(size) == size for size in sizes),
        negative=bill.negative,
        fallback_effective=bill.fallback_effective,
        zero_effective_nonzero_billed=bill.zero_effective_nonzero_billed,
        currency=raw.currency,
        currency_missing=raw.unnamed,
        columns_unknown=raw.columns_unknown,
        warnings=(
            *_warnings(raw, bill, inventory, use, gap, tolerance_fraction),
            *(notes(cloud, len(inventory.resources)) if cloud is not None else ()),
        ),
        dearest=tuple(row.shown for row in acting[:DEAREST_ROWS] if row.rate > ZERO),
        start_usd_per_hour=significant(float(inventory.start)),
        average_usd_per_hour=_average(bill),
        metrics=_metrics_report(use, inventory),
        cloud=cloud,
        scenario=None if written is None else str(written),
    )


def _metrics_report(use: Metrics | None, inventory: Inventory) -> dict[str, Any] | None:
    join = inventory.join
    if use is None or join is None:
        return None
    return {
        "rows": use.rows,
        "samples": use.samples,
        "blank": use.blank,
        "skipped": dict(use.skipped),
        "resources": join.matched,
        "ids_unmatched": join.unmatched,
        "ids_ambiguous": join.ambiguous,
        "essential_contradicted": use.contradicted,
    }


def _warnings(
    raw: RawTotals,
    bill: Bill,
    inventory: Inventory,
    use: Metrics | None,
    gap: float,
    tolerance_fraction: float,
) -> list[str]:
    gone = sum(
        (row.cells["uncharged_hours"] or 0.0) >= GONE_AFTER_HOURS and row.rate > ZERO
        for row in inventory.resources
    )
    start = float(inventory.start)
    counted = (
        (
            gap > tolerance_fraction,
            f"the gap of {gap:.3%} is above {tolerance_fraction:.3%}: no scenario was written",
        ),
        (
            raw.assumed_currency,
            "no row names a currency: USD is assumed",
        ),
        (
            raw.unnamed and not raw.assumed_currency,
            f"{raw.unnamed:,} of {raw.rows:,} rows name no currency: they count as the only one "
            "that the others name",
        ),
        (
            raw.currency != USD,
            f"amounts are in {raw.currency}, in the columns named usd too; machine sizes have USD "
            "list prices. Give a rates file to convert",
        ),
        (
            bill.zero_effective_nonzero_billed,
            f"{bill.zero_effective_nonzero_billed:,} rows have EffectiveCost 0 and another "
            "BilledCost: they cost 0 (discounts, free tiers, commitments)",
        ),
        (
            bill.fallback_effective,
            f"{bill.fallback_effective:,} rows have no EffectiveCost: BilledCost stands in",
        ),
        (bill.naive, f"{bill.naive:,} charge periods name no time zone: read as UTC"),
        (
            bill.corrections,
            f"{bill.corrections:,} usage rows correct an earlier bill and count where they stand",
        ),
        (
            bill.unknown_categories,
            f"{bill.unknown_categories:,} rows have a charge category that FOCUS does not know: "
            "they are ledger",
        ),
        (
            bill.unreadable_tags,
            f"{bill.unreadable_tags:,} rows have tags that are no JSON object: nothing is known "
            "from them",
        ),
        (
            inventory.refuted,
            f"{inventory.refuted:,} production resources are tagged as not essential: that "
            "contradicts itself, so they are unknown",
        ),
        (
            inventory.renamed,
            f"{inventory.renamed:,} resources share an id with another account: the account was "
            "added to their ids",
        ),
        (
            gone,
            f"{gone:,} resources have no charge in the last {GONE_AFTER_HOURS:.0f} hours of the "
            "bill and may be gone already (column uncharged_hours)",
        ),
        (
            start > 0 and abs(start - _average(bill)) > 0.05 * start,
            f"the inventory costs {start:.4g} {raw.currency}/h with everything running; the bill "
            f"averages {_average(bill):.4g} {raw.currency}/h over its "
            f"{bill.covered.hours:,.0f} hours",
        ),
        (
            raw.columns_unknown,
            f"columns that FOCUS does not know: {', '.join(raw.columns_unknown[:8])}",
        ),
        (True, "rows are never merged: a charge that the file states twice counts twice"),
    )
    return [text for holds, text in counted if holds] + _metrics_warnings(use, inventory)


def _metrics_warnings(use: Metrics | None, inventory: Inventory) -> list[str]:
    join = inventory.join
    if use is None or join is None:
        return []
    counted = (
        (
            not join.matched,
            "the metrics file names no resource of this bill",
        ),
        (
            join.unmatched,
            f"{join.unmatched:,} ids of the metrics file match no resource, "
            f"for example {', '.join(join.examples)}",
        ),
        (
            join.ambiguous,
            f"{join.ambiguous:,} ids of the metrics file stand in several accounts: write "
            "id@account",
        ),
        (
            use.looks_like_fractions,
            "every percentage in the metrics file is at most 1: if they are fractions, name the "
            "metric cpu_fraction or memory_fraction",
        ),
        (
            use.contradicted,
            f"{use.contradicted:,} resources are answered both yes and no for essential in the "
            "metrics file: they count as essential",
        ),
        (use.unclear, f"{use.unclear:,} metrics rows answer essential with neither yes nor no"),
        (
            use.skipped,
            f"metrics rows left out: {sum(use.skipped.values()):,} "
            f"({'; '.join(f'{reason}: {count}' for reason, count in use.skipped.items())})",
        ),
    )
    return [text for holds, text in counted if holds]
