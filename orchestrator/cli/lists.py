"""``scenarios``, ``personas``, ``protocols``, ``worlds``: what there is, and one of it in full."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.cli.certify import certify
from orchestrator.console.text import close_matches, plain
from orchestrator.version import PROGRAM
from world.errors import ConfigError, UnknownNameError

Name = Annotated[str, typer.Argument(metavar="NAME")]
NameOrPath = Annotated[str, typer.Argument(metavar="NAME|PATH")]


def list_scenarios(as_json: options.Json = False) -> int:
    """List the scenarios that come with the war room."""
    from world.scenarios.loader import load_scenario, scenario_names

    rows = []
    for name in scenario_names():
        scenario = load_scenario(name)
        rows.append(
            {
                "name": name,
                "title": scenario.title,
                "description": scenario.description.strip(),
                "world": scenario.world,
                "horizon": scenario.horizon,
            }
        )
    return _print_list(rows, as_json, "scenarios")


def show_scenario(name: NameOrPath, as_json: options.Json = False) -> int:
    """Show one scenario in full."""
    from world.scenarios.loader import load_scenario

    scenario = load_scenario(name)
    columns = scenario.resources
    rows = len(next(iter(columns.values()))) if columns else 0
    shown: dict[str, Any] = {
        "name": scenario.name,
        "title": scenario.title,
        "description": scenario.description.strip(),
        "world": scenario.world,
        "horizon": scenario.horizon,
        "targets": dict(scenario.targets),
        "tolerances": {metric: list(pair) for metric, pair in scenario.tolerances.items()},
        "params": dict(scenario.params),
        "masks": {seat: list(names) for seat, names in scenario.masks.items()},
        "resources": {"rows": rows, "columns": list(columns)},
        "digest": scenario.digest,
    }
    return _print_one(shown, as_json)


def list_personas(as_json: options.Json = False) -> int:
    """List the personas in the shipped folder and in WARROOM_PERSONAS."""
    from agents.persona import load_persona, persona_names
    from orchestrator.settings import load_settings

    search = load_settings().settings.personas
    rows = []
    for name in persona_names(search):
        try:
            identity = load_persona(name, search).identity
        except ConfigError as error:
            printing.warn(error.line())
            continue
        rows.append(
            {
                "name": name,
                "title": identity.title,
                "description": identity.description.strip(),
                "role": identity.role,
            }
        )
    return _print_list(rows, as_json, "personas")


def show_persona(
    name: NameOrPath,
    rendered: Annotated[
        bool,
        typer.Option("--rendered", help="Print the prompt that a model would get at step 1."),
    ] = False,
    scenario: options.Scenario = None,
    seed: options.Seed = None,
    as_json: options.Json = False,
) -> int:
    """Show one persona, as it is after everything it extends."""
    if rendered:
        return _print_prompt(name, scenario, seed, as_json)
    from agents.persona import load_persona
    from orchestrator.settings import load_settings

    spec = load_persona(name, load_settings().settings.personas)
    shown = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    identity = shown.get("identity", {})
    summary = {
        "name": name,
        "title": identity.get("title", ""),
        "description": identity.get("description", ""),
    }
    return _print_one({**summary, **shown, "digest": spec.digest}, as_json)


def _print_prompt(name: str, scenario: str | None, seed: str | None, as_json: bool) -> int:
    """The two messages that a model at this persona's seat would be sent first, and the form."""
    import json

    from orchestrator.models import first_prompt
    from orchestrator.settings import load_settings

    resolved = load_settings(options.given(scenario=scenario, seed=seed))
    settings = resolved.settings
    shown = first_prompt(name, settings.scenario, settings.seed, settings.personas)
    if as_json:
        printing.document(shown)
        return 0
    for part in ("system", "user"):
        printing.say(f"----- {part} ({len(shown[part])} characters)")
        for line in shown[part].split("\n"):
            printing.say(plain(line))
    printing.say("----- schema of the answer")
    printing.say(json.dumps(shown["schema"], indent=1))
    printing.talk(f"prompt_sha {shown['prompt_sha']}")
    return 0


def lint_persona(
    path: Annotated[str, typer.Argument(metavar="PATH")], as_json: options.Json = False
) -> int:
    """Check a persona file: the exact line and the reason of each fault."""
    from agents.persona import lint_persona as lint
    from agents.persona import load_persona
    from orchestrator.settings import load_settings

    search = load_settings().settings.personas
    if not Path(path).exists():
        load_persona(path, search)
    found = lint(path, search)
    faults = [line for line in found if ": warning: " not in line]
    if as_json:
        printing.document({"ok": not faults, "path": path, "faults": found})
    elif found:
        for line in found:
            printing.say(plain(line))
    else:
        printing.say(f"{plain(path)}: no faults")
    return 1 if faults else 0


def list_protocols(as_json: options.Json = False) -> int:
    """List the negotiation protocols."""
    from policies.protocols import protocol, protocol_names

    return _print_list(
        [_protocol(protocol(name)) for name in protocol_names()], as_json, "protocols"
    )


def show_protocol(name: Name, as_json: options.Json = False) -> int:
    """Show one protocol: its rule, tie rule, no-deal rule and source."""
    from policies.protocols import protocol

    return _print_one(_protocol(protocol(name)), as_json)


def worlds(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show this one in full.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """List the worlds and the scenarios that each of them plays, or show one in full."""
    from world.scenarios.loader import load_scenario, scenario_names
    from world.worlds.registry import world_titles

    plays: dict[str, list[str]] = {name: [] for name in world_titles()}
    for scenario in scenario_names():
        plays.setdefault(load_scenario(scenario).world, []).append(scenario)
    rows = [
        {"name": world, "title": title, "description": title, "scenarios": plays[world]}
        for world, title in world_titles().items()
    ]
    if name is not None:
        return _print_one(_world_named(name, rows), as_json)
    if as_json:
        printing.document(rows)
    else:
        printing.columns([(row["name"], row["title"]) for row in rows])
        printing.talk(f"one in full: {PROGRAM} worlds NAME")
    return 0


def _world_named(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    for row in rows:
        if row["name"] == name:
            return row
    names = [str(row["name"]) for row in rows]
    raise UnknownNameError(
        f"there is no world {plain(name, 80)!r}",
        "",
        f"{close_matches(name, names)}Worlds: {', '.join(names)}",
    )


def _protocol(found: Any) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.title,
        "description": found.description.strip(),
        "max_rounds": found.max_rounds,
        "worlds": list(found.worlds),
    }


def _print_list(rows: list[dict[str, Any]], as_json: bool, what: str) -> int:
    if as_json:
        printing.document(rows)
        return 0
    printing.columns([(row["name"], row["title"]) for row in rows])
    printing.talk(f"one in full: {PROGRAM} {what} NAME")
    return 0


def _print_one(shown: dict[str, Any], as_json: bool) -> int:
    if as_json:
        printing.document(shown)
    else:
        printing.outline(shown)
    return 0


SCENARIOS: printing.Commands = {
    "list": list_scenarios,
    "show": show_scenario,
    "certify": certify,
}
PERSONAS: printing.Commands = {"list": list_personas, "show": show_persona, "lint": lint_persona}
PROTOCOLS: printing.Commands = {"list": list_protocols, "show": show_protocol}
