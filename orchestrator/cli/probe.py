"""``probe``: how one persona answers when the same table is put to it in other ways."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, printing
from orchestrator.console.terminal import draws
from orchestrator.console.text import plain

if TYPE_CHECKING:
    from orchestrator.spec import EpisodeSpec
    from orchestrator.study.probe.account import Announcement, Plan

Who = Annotated[str, typer.Argument(metavar="PERSONA", help="A persona's name or path.")]
Seeds = Annotated[str, typer.Option(metavar="A:B", help="Episode seeds A to B-1; lists too.")]
Situations = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="Situations per seed, at most.")
]
Every = Annotated[
    int, typer.Option(min=1, max=100_000, metavar="STEPS", help="Steps between situations.")
]
Variants = Annotated[
    int,
    typer.Option(
        min=0, max=32, metavar="K", help="Other wordings, and other orders, of each question."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A rule persona speaks through this model instead."),
]
BudgetUsd = Annotated[
    str | None,
    typer.Option(metavar="X", help="Most dollars for model calls; the probe ends when used up."),
]


def probe(
    persona: Who,
    scenario: options.Scenario = None,
    seeds: Seeds = "0:4",
    situations: Situations = 2,
    every: Every = 5,
    variants: Variants = 3,
    steps: options.Steps = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--persona", metavar="ROLE=NAME|PATH", help="Who sits in the other seats. Repeatable."
        ),
    ] = None,
    set_: options.Set = None,
    lookahead_steps: options.LookaheadSteps = None,
    samples: options.Samples = None,
    model: Model = None,
    base_url: options.BaseUrl = None,
    usd_per_mtok: options.UsdPerMtok = None,
    budget_usd: BudgetUsd = None,
    record: options.Record = None,
    playback: options.Playback = None,
    ballots: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write every ballot here, a JSON line a situation."),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Probe one persona: sycophancy, stubbornness, stability, honesty, red lines.

    Exit status 1 where the budget ended before the questions, or nothing was answered.
    """
    from orchestrator.settings import load_settings, missing_folders, unknown_variables
    from orchestrator.study.probe import forms
    from orchestrator.study.probe.account import Probe

    asked = options.given(
        scenario=scenario,
        steps=steps,
        persona=others or None,
        set=set_ or None,
        lookahead_steps=lookahead_steps,
        samples=samples,
        model=model,
        base_url=base_url,
        usd_per_mtok=usd_per_mtok,
        budget_usd=budget_usd,
        record=record,
        playback=playback,
    )
    resolved = load_settings(asked, defaults={"driver": "loop", "store": "inprocess"})
    for warning in (*unknown_variables(), *missing_folders(resolved)):
        printing.warn(warning)
    spec = resolved.episode_spec(out="", human=(), approve="none", checkpointer="none")
    plan = _plan(spec, persona, seeds, situations, every, variants)
    with printing.answers_only():
        probing = Probe(plan)
        announced = probing.announcement
        printing.talk(_before(announced, spec.budget_usd, bool(playback)))
        # Opened before anything is paid for: a file that cannot be written ends the probe here.
        with ballots.open("w", encoding="utf-8") if ballots else nullcontext() as kept:
            document = probing.run(_told)
            if kept is not None:
                kept.writelines(f"{json.dumps(one.as_json())}\n" for one in probing.trials)
        if as_json:
            printing.document(document)
        else:
            printing.say(plain(forms.head(document)))
            printing.say()
            printing.columns(forms.measure_rows(document))
            if doses := forms.dose_rows(document):
                printing.say()
                printing.columns(doses)
            printing.say()
            for line in forms.notes(document):
                printing.say(plain(line, 400))
            printing.say(forms.bill(document))
    questions = document["questions"]
    if questions["over_budget"]:
        printing.warn(
            f"the budget was used up: {questions['over_budget']} questions were not asked"
        )
    return 1 if questions["over_budget"] or questions["unanswered"] == questions["asked"] else 0


def _plan(
    spec: EpisodeSpec, persona: str, seeds: str, situations: int, every: int, variants: int
) -> Plan:
    from agents.persona import load_persona
    from orchestrator.study.probe.account import Plan
    from orchestrator.study.seeds import mixture, seeds_of

    seat = load_persona(persona, spec.persona_path).identity.role
    numbers = seeds_of(seeds)
    if mixed := mixture(numbers):
        printing.warn(mixed)
    seated = spec.model_copy(update={"personas": {**spec.personas, seat: persona}})
    return Plan(seated, seat, numbers, situations, every, variants)


def _before(announced: Announcement, budget_usd: float | None, playback: bool) -> str:
    """What the probe is about to ask and what that may cost."""
    text = f"{announced.questions} questions at most"
    if playback:
        return f"{text}, answered from the recording"
    if not announced.model:
        return f"{text}, no model among them"
    if announced.usd is None:
        return f"{text} to a model whose price is not known (--usd-per-mtok)"
    text = f"{text} to a model, ${announced.usd:.6g} at most if none is repeated"
    if budget_usd is not None and announced.usd > budget_usd:
        text = f"{text}; it ends where --budget-usd {budget_usd:g} is used up"
    return text


def _told(done: int, total: int) -> None:
    """Situations done, on stderr: in place on a terminal, at the end elsewhere."""
    if draws(sys.stderr):
        printing.talk(f"\r{done}/{total} situations", end="\n" if done == total else "")
