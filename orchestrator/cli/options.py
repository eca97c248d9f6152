"""Options that several commands share, typed once.

Values are text here: `orchestrator.settings` checks them, so that an option, a variable and a
key in ``warroom.toml`` are refused in the same words.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

Scenario = Annotated[
    str | None,
    typer.Option(metavar="NAME|PATH", help="What is played. [default: cloud/medium]"),
]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Episode seed. [default: 1]")]
Steps = Annotated[
    str | None, typer.Option(metavar="N", help="Replace the scenario's horizon, longer or shorter.")
]
Persona = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=NAME|PATH", help="Who sits in a seat. Repeatable."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="ROLE.field=value", help="Change one field of a persona. Repeatable."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How proposals become a decision. [default: weighted_score]"),
]
NoDeal = Annotated[
    str | None,
    typer.Option(
        metavar="nop|commander|PROTOCOL",
        help="What decides where there is no deal. [default: weighted_score]",
    ),
]
Disagreement = Annotated[
    str | None,
    typer.Option(
        metavar="mean_legal|projected_nop|current",
        help="Value of no deal to a seat. [default: mean_legal]",
    ),
]
LookaheadSteps = Annotated[
    str | None,
    typer.Option(metavar="H", help="Steps that an option is projected. [default: the scenario's]"),
]
Samples = Annotated[
    str | None,
    typer.Option(metavar="K", help="Belief samples; 0 is mean noise. [default: the scenario's]"),
]
PlanSteps = Annotated[
    str | None,
    typer.Option(metavar="1|2", help="Longest plan on the table. [default: the scenario's]"),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="embedded|:memory:|inprocess|URL",
        help="Where the episode is kept. Else WARROOM_STORE, else WARROOM_REDIS_URL."
        " [default: embedded]",
    ),
]
Driver = Annotated[
    str | None, typer.Option(metavar="graph|loop", help="Who drives the steps. [default: graph]")
]
Checkpointer = Annotated[
    str | None,
    typer.Option(
        metavar="none|sqlite|redis", help="Graph checkpointer, for interrupts. [default: none]"
    ),
]
Out = Annotated[
    str | None, typer.Option(metavar="DIR", help="Parent folder of the runs. [default: runs]")
]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="auto|live|lines|json|quiet", help="How progress is shown. [default: auto]"
    ),
]
Human = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE",
        help="A person sits there: asked at the terminal, or by interrupt with --checkpointer."
        " Repeatable.",
    ),
]
Approve = Annotated[
    str | None,
    typer.Option(
        metavar="destructive|all|none",
        help="What a person must approve before it is done. [default: none]",
    ),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A:B|HH:MM-HH:MM",
        help="Steps, or hours (UTC), without changes but incident remedies. Repeatable.",
    ),
]
BlastRadius = Annotated[
    str | None, typer.Option(metavar="N", help="Most targets touched in one step. [default: 0]")
]
BlastShare = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="Largest share (0 to 1) of a service's tier or the fleet touched at once."
        " [default: 0.0]",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Every rule persona speaks through this model. One seat only: --set"
        " ROLE.backend.kind=llm.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="OpenAI-compatible endpoint, with its /v1. Else OPENAI_BASE_URL."
    ),
]
UsdPerMtok = Annotated[
    str | None,
    typer.Option(metavar="IN/OUT", help="Price of the model, dollars per million tokens."),
]
BudgetUsd = Annotated[
    str | None,
    typer.Option(
        metavar="X", help="Most dollars for model calls; when it is used up, rules speak."
    ),
]
Record = Annotated[
    str | None, typer.Option(metavar="DIR", help="Keep every model answer in this folder.")
]
Playback = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Take model answers from this folder: no network, no key."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def given(**values: Any) -> dict[str, Any]:
    """The options that were typed, by setting; what was left out is left out here."""
    return {name: value for name, value in values.items() if value is not None}
