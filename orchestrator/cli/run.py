"""``run``: one episode, watched, stoppable, resumable."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from orchestrator.cli import options, printing
from orchestrator.cli.words import switched_on
from orchestrator.console.text import plain
from orchestrator.version import PROGRAM
from world.errors import ConfigError

Resume = Annotated[
    str | None, typer.Option(metavar="RUN|last", help="Finish a run that was stopped.")
]
Answer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=TEXT",
        help="With --resume: what the person at a seat answers to what the run waits for."
        " Repeatable.",
    ),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the settings and where each came from.")
]
_GOES_WITH_RESUME = frozenset({"store", "out", "log", "base_url"})


def run(
    scenario: options.Scenario = None,
    seed: options.Seed = None,
    steps: options.Steps = None,
    persona: options.Persona = None,
    set_: options.Set = None,
    protocol: options.Protocol = None,
    no_deal: options.NoDeal = None,
    disagreement: options.Disagreement = None,
    lookahead_steps: options.LookaheadSteps = None,
    samples: options.Samples = None,
    plan_steps: options.PlanSteps = None,
    store: options.Store = None,
    driver: options.Driver = None,
    checkpointer: options.Checkpointer = None,
    out: options.Out = None,
    human: options.Human = None,
    approve: options.Approve = None,
    freeze: options.Freeze = None,
    blast_radius: options.BlastRadius = None,
    blast_share: options.BlastShare = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    usd_per_mtok: options.UsdPerMtok = None,
    budget_usd: options.BudgetUsd = None,
    record: options.Record = None,
    playback: options.Playback = None,
    resume: Resume = None,
    answer: Answer = None,
    log: options.Log = None,
    print_config: PrintConfig = False,
    as_json: options.Json = False,
) -> int:
    """Run one episode and say what it came to.

    With no options: the default scenario, four rule personas, the default protocol and the
    built-in store; no key, no network.
    """
    from orchestrator.settings import (
        further_roles,
        load_settings,
        missing_folders,
        unknown_variables,
    )

    asked = options.given(
        scenario=scenario,
        seed=seed,
        steps=steps,
        persona=persona or None,
        set=set_ or None,
        protocol=protocol,
        no_deal=no_deal,
        disagreement=disagreement,
        lookahead_steps=lookahead_steps,
        samples=samples,
        plan_steps=plan_steps,
        store=store,
        driver=driver,
        checkpointer=checkpointer,
        out=out,
        log=log,
        human=human or None,
        approve=approve,
        freeze=freeze or None,
        blast_radius=blast_radius,
        blast_share=blast_share,
        model=model,
        base_url=base_url,
        usd_per_mtok=usd_per_mtok,
        budget_usd=budget_usd,
        record=record,
        playback=playback,
    )
    print_config = print_config or switched_on("WARROOM_PRINT_CONFIG")
    if resume is None:
        resume, said_by = os.environ.get("WARROOM_RESUME") or None, "WARROOM_RESUME"
    else:
        said_by = "--resume"
    if resume is not None:
        _check_resume(asked, said_by)
    answers = _answers(answer or [], resume)
    resolved = load_settings(asked)
    for warning in (*unknown_variables(), *missing_folders(resolved)):
        printing.warn(warning)
    if resume is None:
        for role in further_roles(resolved.settings.persona):
            printing.talk(f"note: {role} is a further seat, beside those of the default room")
    if print_config:
        if as_json:
            printing.document(resolved.as_json())
        else:
            printing.say(resolved.as_toml())
        return 0
    from orchestrator.cli.playing import play

    return play(resolved, resume, as_json, answers)


def _answers(texts: list[str], resume: str | None) -> dict[str, str]:
    """``ROLE=TEXT`` by role.

    Raises:
        ConfigError: There is no run to answer, an answer without a role, or a role twice.
    """
    if texts and resume is None:
        raise ConfigError(
            "--answer goes with --resume",
            "it answers what a run waits for",
            f"Type: {PROGRAM} run --resume RUN --answer ROLE=TEXT",
        )
    answers: dict[str, str] = {}
    for text in texts:
        role, equals, said = text.partition("=")
        if not equals or not role or role in answers:
            raise ConfigError(
                f"--answer {plain(text, 60)}",
                "it reads ROLE=TEXT, once for each seat",
                "For example --answer cost=1",
            )
        answers[role] = said
    return answers


def _check_resume(asked: dict[str, object], said_by: str) -> None:
    """A run is finished as it was begun: what would change it cannot be given."""
    for name in asked:
        if name not in _GOES_WITH_RESUME:
            option = name.replace("_", "-")
            raise ConfigError(
                f"--{option} cannot be given with {said_by}",
                "a run is finished as it was begun",
                f"Leave it out, or start a new run: {PROGRAM} run --{option} …",
            )
