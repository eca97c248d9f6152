"""``tournament``: a grid of episodes, its rows and its summary."""

from __future__ import annotations

import functools
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.commands import command
from orchestrator.console.terminal import draws
from orchestrator.console.text import plain
from world.errors import ConfigError, WarRoomError

_MOST_FAULTS = 20
_BAR_WIDTH = 24

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
    typer.Option(
        metavar="DIR",
        help="Keep rows and run folders here; asked again, only what is missing is played."
        " [default: none]",
    ),
]
RowsOnly = Annotated[
    bool, typer.Option("--rows-only", help="With --out: keep the rows, no folder per run.")
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="With --out: play cells that failed again.")
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="process|ray", help="Who plays: processes here, or Ray.")
]
RayAddress = Annotated[
    str,
    typer.Option(
        metavar="ray://HOST:PORT",
        help="With --engine ray: its cluster. [default: one is started here]",
        show_default=False,
    ),
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
    rows_only: RowsOnly = False,
    retry_failed: RetryFailed = False,
    engine: EngineName = "process",
    ray_address: RayAddress = "",
    as_json: options.Json = False,
) -> int:
    """Play scenarios × protocols × persona sets × seeds, and sum up.

    A cell that fails is a row with its error; the rest runs. Exit status 1 if any failed.
    """
    from orchestrator.settings import load_settings, missing_folders, unknown_variables
    from orchestrator.study.seeds import mixture
    from orchestrator.study.tournament import summarise

    _check(engine, ray_address, out, rows_only or retry_failed)
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
    base = resolved.episode_spec(out="" if rows_only else out or "")
    grid = _grid(resolved.settings, scenarios, protocols, personas, seeds)
    if mixed := mixture(grid.seeds):
        printing.warn(mixed)
    specs = grid.specs(base)
    engine_of = _engine(engine, ray_address, jobs, resolved.store_settings())
    with printing.answers_only():
        rows, complete = _play(grid, base, specs, engine_of, out, retry_failed)
    result: dict[str, Any] = {"rows": rows, "summary": summarise(rows), "complete": complete}
    if out:
        from orchestrator.study.ledger import write_whole

        write_whole(Path(out) / "tournament.json", json.dumps(result, indent=1) + "\n")
    if as_json:
        printing.document(result)
    else:
        _print_summary(result["summary"])
    _tell_faults(rows)
    _closing_words(out, len(rows), len(specs))
    return 1 if not complete or any(row["error"] for row in rows) else 0


def _check(engine: str, address: str, out: str | None, needs_out: bool) -> None:
    """Refuse what cannot work before anything is played."""
    if engine not in ("process", "ray"):
        raise ConfigError(
            f"--engine is {plain(engine, 40)!r}", "it must be process or ray", "Take --engine ray"
        )
    if address and engine != "ray":
        raise ConfigError(
            "--ray-address is given without --engine ray", "", "Add --engine ray, or leave it out"
        )
    if needs_out and not out:
        raise ConfigError(
            "--rows-only and --retry-failed need --out", "without it nothing is kept", "Add --out"
        )
    if engine == "ray":
        from orchestrator.study.engines.ray_engine import check_ray

        check_ray(address)


def _engine(engine: Any, address: str, jobs: int, settings: Any) -> Any:
    """What plays cells: specs → (place, outcome) as they are ready."""
    from orchestrator.engine import map_episodes, play

    play_one = functools.partial(play, settings=settings)
    return functools.partial(map_episodes, jobs=jobs, play=play_one, engine=engine, address=address)


def _play(
    grid: Any, base: Any, specs: list[Any], engine: Any, out: str | None, retry_failed: bool
) -> tuple[list[dict[str, Any]], bool]:
    from orchestrator.study.ledger import open_ledger
    from orchestrator.study.manifest import manifest_of
    from orchestrator.study.tournament import play_all

    if not out:
        return play_all(specs, engine, _Progress(len(specs)))
    with open_ledger(Path(out), manifest_of(grid, base), retry_failed) as ledger:
        return play_all(specs, engine, _Progress(len(specs)), ledger)


def _tell_faults(rows: list[dict[str, Any]]) -> None:
    """One line for each thing that went wrong, with how often and where first."""
    faults: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["error"]:
            faults.setdefault(tuple(row["error"].values()), []).append(row)
    for (what, why, fix), members in list(faults.items())[:_MOST_FAULTS]:
        first = members[0]
        place = f"{first['scenario']}, {first['protocol']}, {first['set']}, seed {first['seed']}"
        line = WarRoomError(what, why, fix).line()
        printing.talk(f"failed {len(members)}×, first at {plain(place)}: {plain(line)}")
    if len(faults) > _MOST_FAULTS:
        printing.talk(f"and {len(faults) - _MOST_FAULTS} more faults (all with --json)")


def _closing_words(out: str | None, done: int, asked: int) -> None:
    if done < asked:
        more = "; the same command plays the others" if out else ""
        printing.talk(f"interrupted after {done} of {asked} episodes{more}")
    elif out:
        printing.talk(f"next: {command('stats', out)}")


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
    from orchestrator.study.seeds import MAX_CELLS, seeds_of
    from orchestrator.study.tournament import Grid, names_of, persona_set
    from policies.protocols import protocol
    from world.scenarios.loader import load_scenario

    def role_of(name: str) -> str:
        return str(load_persona(name, settings.personas).identity.role)

    sets: list[dict[str, str]] = []
    for part in ";".join(personas or [""]).split(";"):
        chosen = persona_set(part, role_of)
        if chosen not in sets:  # The same episodes twice are no more evidence than once.
            sets.append(chosen)
    grid = Grid(
        names_of(scenarios or ()) or (settings.scenario,),
        names_of(protocols or ()) or (settings.protocol,),
        tuple(sets),
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
    """Progress on stderr: a bar on a terminal, every tenth of the way elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.in_place = draws(sys.stderr)
        self.told = 0
        self.began_s = time.monotonic()
        self.before: int | None = None

    def __call__(self, done: int, failed: int) -> None:
        first = self.before is None
        if self.before is None:
            self.before = done
            if done:
                printing.talk(f"{done} of {self.total} episodes were played before")
        text = f"{done}/{self.total} episodes" + (f", {failed} failed" if failed else "")
        if self.in_place:
            end = "\n" if done == self.total else ""
            printing.talk(f"\r{self._bar(done)} {text}{self._left(done)}\x1b[K", end=end)
        elif first:
            self.told = done * 10 // self.total
        elif done == self.total or done * 10 // self.total > self.told:
            self.told = done * 10 // self.total
            printing.talk(text)

    def _bar(self, done: int) -> str:
        full = _BAR_WIDTH * done // self.total
        return "█" * full + "░" * (_BAR_WIDTH - full)

    def _left(self, done: int) -> str:
        played = done - (self.before or 0)
        if not played or done == self.total:
            return ""
        left_s = (time.monotonic() - self.began_s) / played * (self.total - done)
        minutes, seconds = divmod(round(left_s), 60)
        return f", about {minutes}:{seconds:02d} left"


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
                entry["set"],
                entry["n"],
                entry["errors"],
                _estimate(entry["score"], 3),
                _estimate(entry["reward_total"], 1),
                _rate(entry["success_rate"]),
            )
            for entry in summary
        ]
    )


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
