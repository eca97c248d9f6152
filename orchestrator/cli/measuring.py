"""``bench``: every figure of speed, as ratios against named references."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli import options, printing


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these. [default: all]")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Run the benchmarks; prints their figures as JSON.

    Exit status 1 if one of them failed; its reason stands under "errors".
    """
    del as_json  # The figures are a JSON document with or without it.
    from orchestrator.bench import run_benchmarks

    result = run_benchmarks(names or [], printing.talk)
    printing.document(result)
    return 1 if result["errors"] else 0
