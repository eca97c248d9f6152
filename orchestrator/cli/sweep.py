"""``tournament``: a grid of episodes, its rows and its summary."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.terminal import draws
from world.errors import ConfigError

Scenarios = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Scenarios. Repeatable. [default: run's]"),
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Protocols. Repeatable. [default: run's]"),
]
Personas = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SET",
        help="One persona set: default, or ROLE=NAME,ROLE=NAME. Repeat for more sets.",
    ),
]
Seeds = Annotated[
    str | None, typer.Option(metavar="A:B", help="Seeds A to B-1; lists too. [default: run's]")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=1024, help="Processes.")]
SweepStore = Annotated[
    str | None,
    typer.Option(metavar="inprocess|embedded|:memory:|URL", help="[default: inprocess]"),
]
SweepDriver = Annotated[str | None, typer.Option(metavar="loop|graph", help="[default: loop]")]
SweepOut = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Keep run folders and tournament.json here. [default: none]"),
]


def tournament(
    scenarios: Scenarios = None,
    protocols: Protocols = None,
    personas: Personas = None,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    steps: options.Steps = None,
    set_: options.Set = None,
    no_deal: options.NoDeal = None,
    disagreement: options.Disagreement = None,
    lookahead_steps: options.LookaheadSteps = None,
    samples: options.Samples = None,
    plan_steps: options.PlanSteps = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    usd_per_mtok: options.UsdPerMtok = None,
    budget_usd: options.BudgetUsd = None,
    record: options.Record = None,
    playback: options.Playback = None,
    store: SweepStore = None,
    driver: SweepDriver = None,
    out: SweepOut = None,
    as_json: options.Json = False,
) -> int:
    """Play scenarios × protocols × persona sets × seeds, and sum up.

    A cell that fails is a row with its error; the rest runs. Exit status 1 if any failed.
    """
    from orchestrator.engine import play
    from orchestrator.settings import load_settings, missing_folders, unknown_variables
    from orchestrator.study.tournament import play_all, summarise

    asked = options.given(
        steps=steps,
        set=set_ or None,
        no_deal=no_deal,
        disagreement=disagreement,
        lookahead_steps=lookahead_steps,
        samples=samples,
        plan_steps=plan_steps,
        model=model,
        base_url=base_url,
        usd_per_mtok=usd_per_mtok,
        budget_usd=budget_usd,
        record=record,
        playback=playback,
        store=store,
        driver=driver,
    )
    resolved = load_settings(asked, defaults={"driver": "loop", "store": "inprocess"})
    for warning in (*unknown_variables(), *missing_folders(resolved)):
        printing.warn(warning)
    base = resolved.episode_spec(out=out or "")
    grid = _grid(resolved.settings, scenarios, protocols, personas, seeds)
    specs = grid.specs(base)
    play_one = functools.partial(play, settings=resolved.store_settings())
    with printing.answers_only():
        rows, complete = play_all(specs, jobs, play_one, _Progress(len(specs)))
    result: dict[str, Any] = {"rows": rows, "summary": summarise(rows), "complete": complete}
    if out:
        path = Path(out) / "tournament.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if as_json:
        printing.document(result)
    else:
        _print_summary(result["summary"])
    if not complete:
        printing.talk(f"interrupted after {len(rows)} of {len(specs)} episodes")
    return 1 if not complete or any(row["error"] for row in rows) else 0


def _grid(
    settings: Any,
    scenarios: list[str] | None,
    protocols: list[str] | None,
    personas: list[str] | None,
    seeds: str | None,
) -> Any:
    """The grid, every name in it looked up: a misspelt name ends the command before it begins."""
    from agents.persona import load_persona
    from orchestrator.settings import check_roles, further_roles
    from orchestrator.study.tournament import MAX_CELLS, Grid, names_of, persona_set, seeds_of
    from policies.protocols import protocol
    from world.scenarios.loader import load_scenario

    def role_of(name: str) -> str:
        return str(load_persona(name, settings.personas).identity.role)

    grid = Grid(
        names_of(scenarios or ()) or (settings.scenario,),
        names_of(protocols or ()) or (settings.protocol,),
        tuple(
            persona_set(part, role_of) for value in personas or [""] for part in value.split(";")
        ),
        seeds_of(seeds) if seeds is not None else (settings.seed,),
    )
    for name in grid.scenarios:
        load_scenario(name)
    for name in grid.protocols:
        protocol(name)
    for chosen in grid.persona_sets:
        check_roles(chosen, "--personas")
        for name in chosen.values():
            load_persona(name, settings.personas)
    further = [role for chosen in grid.persona_sets for role in further_roles(chosen)]
    for role in dict.fromkeys(further):
        printing.talk(f"note: {role} is a further seat, beside those of the default room")
    cells = len(grid.scenarios) * len(grid.protocols) * len(grid.persona_sets) * len(grid.seeds)
    if cells > MAX_CELLS:
        raise ConfigError(f"that is {cells:,} episodes", f"the most is {MAX_CELLS:,}", "Ask fewer")
    return grid


class _Progress:
    """Progress on stderr: in place on a terminal, every tenth of the way elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.in_place = draws(sys.stderr)
        self.told = 0

    def __call__(self, done: int, failed: int) -> None:
        text = f"{done}/{self.total} episodes" + (f", {failed} failed" if failed else "")
        if self.in_place:
            end = "\n" if done == self.total else ""
            printing.talk(f"\r{text}", end=end)
        elif done == self.total or done * 10 // self.total > self.told:
            self.told = done * 10 // self.total
            printing.talk(text)


def _print_summary(summary: list[dict[str, Any]]) -> None:
    spread = "± standard error"
    printing.columns(
        [
            (
                "scenario",
                "protocol",
                "personas",
                "n",
                "failed",
                f"score {spread}",
                f"reward {spread}",
                "success [95 % interval]",
            )
        ]
        + [
            (
                entry["scenario"],
                entry["protocol"],
                _personas(entry["personas"]),
                entry["n"],
                entry["errors"],
                _estimate(entry["score"], 3),
                _estimate(entry["reward_total"], 1),
                _rate(entry["success_rate"]),
            )
            for entry in summary
        ]
    )


def _personas(personas: dict[str, str]) -> str:
    return ",".join(role if role == name else f"{role}={name}" for role, name in personas.items())


def _estimate(value: dict[str, Any], digits: int) -> str:
    if value["mean"] is None:
        return "-"
    text = f"{value['mean']:.{digits}f}"
    return text if value["se"] is None else f"{text} ± {value['se']:.{digits}f}"


def _rate(value: dict[str, Any]) -> str:
    if value["mean"] is None:
        return "-"
    text = f"{value['mean']:.2f}"
    if value["interval"] is None:
        return text
    low, high = value["interval"]
    return f"{text} [{low:.2f}, {high:.2f}]"
