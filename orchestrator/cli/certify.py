"""``scenarios certify``: can these seeds be won under the rules that bind everybody?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.text import plain

if TYPE_CHECKING:
    from orchestrator.study.certify import Verdict
    from world.model import Scenario

Name = Annotated[str, typer.Argument(metavar="NAME|PATH")]
Seeds = Annotated[str, typer.Option(metavar="A:B", help="Seeds A to B-1; lists too.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=1024, help="Processes.")]
Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Write the certificates, one JSON file. [default: none]"),
]
Most = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Write N at most, spread over start hours and demand. [all]"
    ),
]


def certify(
    name: Name,
    seeds: Seeds = "0:8",
    jobs: Jobs = 1,
    out: Out = None,
    most: Most = None,
    as_json: options.Json = False,
) -> int:
    """Search for a plan that wins each seed; exit status 1 if a seed is not certified.

    The search knows the true state and noise. A certificate holds every target in at least half
    of the steps after step 12, does no harm, and is proven by playing it.
    """
    from orchestrator.study.certify import cloud_world
    from orchestrator.study.tournament import seeds_of
    from world.scenarios.loader import load_scenario

    scenario = load_scenario(name)
    cloud_world(scenario)
    numbers = seeds_of(seeds)
    verdicts: list[Verdict] = []
    written = ""
    for verdict in _search(scenario, numbers, jobs):
        verdicts.append(verdict)
        # Written anew after each seed, so that a search that is stopped has not been for nothing.
        written = _write(scenario, verdicts, out, most) if out else ""
        if not as_json:
            printing.say(_line(verdict))
    certified = sum(verdict.certified for verdict in verdicts)
    if as_json:
        printing.document(
            {
                "scenario": scenario.name,
                "digest": scenario.digest,
                "certified": certified,
                "seeds": len(verdicts),
                "rows": [_row(verdict) for verdict in verdicts],
                "written": written,
            }
        )
    else:
        printing.talk(f"{certified} of {len(verdicts)} seeds certified")
        if written:
            printing.talk(f"certificates: {plain(written)}")
    return 0 if certified == len(verdicts) else 1


def _search(scenario: Scenario, seeds: tuple[int, ...], jobs: int) -> Iterator[Verdict]:
    """Verdicts in the order of the seeds, from this process or from several."""
    from orchestrator.study.certify import certify as search

    if jobs <= 1 or len(seeds) <= 1:
        for seed in seeds:
            yield search(scenario, seed)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(seeds)), mp_context=context) as pool:
        try:
            yield from pool.map(search, [scenario] * len(seeds), seeds)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _line(verdict: Verdict) -> str:
    found = verdict.certificate
    word = "certified" if verdict.certified else "not certified"
    return (
        f"seed {found.seed}: {word}, in target in {100 * found.held_fraction:.0f} % of the steps "
        f"after step 12, {verdict.harms} harms, ${found.saving_usd:.0f} saved"
    )


def _row(verdict: Verdict) -> dict[str, Any]:
    from orchestrator.study.certify import stratum

    row = verdict.certificate.model_dump(mode="json")
    row["plan"] = list(verdict.certificate.plan)
    return {
        "certified": verdict.certified,
        "stratum": stratum(verdict.certificate),
        "harms": verdict.harms,
        **row,
    }


def _write(scenario: Scenario, verdicts: list[Verdict], out: str, most: int | None) -> str:
    from orchestrator.study.certify import collect

    path = Path(out) / f"{Path(scenario.name).name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(collect(scenario, verdicts, most).as_text(), encoding="utf-8")
    return str(path)
