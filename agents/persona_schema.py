"""The persona file as typed data: schema ``persona/1``.

Every table and field that a file may hold, with its range. Nothing here reads a file
(`agents.persona`) and nothing here speaks (`agents.seat`). A word that belongs to a later version
is refused by name, never ignored.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from functools import cached_property
from string import Template
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

SCHEMA = "persona/1"

PROMPT_VARIABLES = (
    "catalogue",
    "description",
    "facts",
    "history",
    "horizon",
    "incidents",
    "inventory",
    "max_actions",
    "metrics",
    "others",
    "outcomes",
    "red_lines",
    "role",
    "seat",
    "step",
    "targets",
    "title",
    "unknown",
)
"""The only ``$names`` that a prompt text may use."""

RULES_SECONDS = 30.0
"""Shortest deadline of a rule persona, in seconds (see `agents.seat.deadline_s`)."""

LATER_BACKENDS = ("llm", "human", "learned", "policy", "remote", "replay")
_LATER = "comes with a later version"
_FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _plain_line(text: str) -> str:
    for character in text:
        if unicodedata.category(character) in _FORBIDDEN:
            raise ValueError(f"holds the control character U+{ord(character):04X}")
    return text


def _plain_text(text: str) -> str:
    _plain_line(text.replace("\n", " ").replace("\t", " "))
    return text


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _template(text: str) -> str:
    template = Template(_plain_text(text))
    if not template.is_valid():
        raise ValueError("is not a template: write $$ for a dollar sign")
    unknown = sorted(set(template.get_identifiers()) - set(PROMPT_VARIABLES))
    if unknown:
        raise ValueError(
            f"uses the undeclared variable ${unknown[0]}; declared: {', '.join(PROMPT_VARIABLES)}"
        )
    return text


Line = Annotated[str, AfterValidator(_plain_line)]
Text = Annotated[str, AfterValidator(_plain_text)]
PromptText = Annotated[str, Field(max_length=64_000), AfterValidator(_template)]
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Weight = Annotated[float, Field(ge=0, le=1000)]
Quantity = Annotated[float, Field(ge=-1e12, le=1e12)]
Extent = Annotated[float, Field(ge=0, le=1e12)]
PositiveExtent = Annotated[float, Field(gt=0, le=1e12)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Shape = Literal["log", "satisficing", "sqrt", "linear", "threshold", "sigmoid"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Identity(_Table):
    """``[identity]``: who this is.

    Attributes:
        id: Its one spelling; part of every rule id.
        title: One short line.
        role: The seat it is made for, which is also the rule that voices it unless
            ``backend.ref`` names another.
        version: Version of the file.
        description: What it wants and how it argues, a few sentences.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")
    title: Line = Field(default="", max_length=120)
    role: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")
    version: Line = Field(default="1", min_length=1, max_length=20)
    description: Text = Field(default="", max_length=4000)


class ObjectiveTable(_Table):
    """``[objectives.NAME]``: how much one objective counts, and when it is good enough.

    Attributes:
        weight: 0–1000.
        target: Upper bound in the metric's unit; left out, the scenario's.
        margin: How far below the target this persona wants to be, in the metric's unit.
        scale: A gap of this size counts as one unit.
        shape: Shape of this one objective; empty takes the utility's.
    """

    weight: Weight
    target: Quantity | None = None
    margin: Extent | None = None
    scale: PositiveExtent | None = None
    shape: Shape | Literal[""] = ""


class Objectives(_Table):
    """``[objectives]``: the things a persona can care about. What it leaves out it ignores."""

    latency: ObjectiveTable | None = None
    cost: ObjectiveTable | None = None
    carbon: ObjectiveTable | None = None
    waste: ObjectiveTable | None = None
    errors: ObjectiveTable | None = None
    churn: ObjectiveTable | None = None


class UtilityTable(_Table):
    """``[utility]``: from gaps to one number.

    Attributes:
        kind: Shape of the gap. ``log`` and ``sqrt`` are satisficing and concave; bare ``linear``
            and ``threshold`` are selectable and linted.
        team: α, the weight of "every target of the scenario holds", 0 = purely selfish.
    """

    kind: Shape = "log"
    team: Weight = 1.0


class Reservation(_Table):
    """``[reservation]``: what no deal is worth to this persona.

    Attributes:
        disagreement: ``mean_legal``, ``projected_nop``, ``current`` or ``const:NUMBER``; empty
            takes the room's rule.
    """

    disagreement: str = Field(
        default="",
        max_length=40,
        pattern=r"^(|mean_legal|projected_nop|current|const:-?[0-9]{1,12}(\.[0-9]{1,12})?)$",
    )


class RedLineTable(_Table):
    """``[[red_line]]``: a typed predicate; a candidate for which it holds is crossed.

    Attributes:
        metric: Name of a metric of the world; a world without it never crosses the line.
        op: Comparison.
        value: What the metric is compared with.
        on: ``projected`` (the candidate's consequence) or ``current``.
        severity: ``veto``, ``warn`` or ``escalate``.
        reason: For the audit.
    """

    metric: Kind
    op: Literal["<", "<=", ">", ">=", "==", "!="]
    value: Quantity
    on: Literal["projected", "current"] = "projected"
    severity: Literal["veto", "warn", "escalate"] = "veto"
    reason: Line = Field(default="", max_length=300)


class Concession(_Table):
    """``[concession]``: how a seat gives way in protocols of many rounds.

    Attributes:
        kind: Family of the concession curve.
        beta: Its exponent; below 1 concedes late, above 1 early.
        accept: Acceptance condition.
        min_utility: Never accepts below this share of its own range.
    """

    kind: Literal["boulware", "conceder", "linear", "tit_for_tat", "stubborn"] = "linear"
    beta: float = Field(default=1.0, gt=0, le=100)
    accept: Literal["ac_next", "ac_const", "ac_combi"] = "ac_next"
    min_utility: Fraction = 0.0


def _no_commander(commander: bool) -> bool:
    if commander:
        raise ValueError(f"commander = true {_LATER}; leave it out")
    return commander


class Powers(_Table):
    """``[powers]``: what the seat may do.

    Attributes:
        propose: Kinds of action that it may propose; empty is every kind.
        veto: Whether its red lines of severity ``veto`` rule candidates out.
        commander: Reserved.
        weight: Weight of its ballot.
    """

    propose: Annotated[tuple[Kind, ...], BeforeValidator(_as_tuple), Field(max_length=64)] = ()
    veto: bool = True
    commander: Annotated[bool, AfterValidator(_no_commander)] = False
    weight: Weight = 1.0


def _ballot_source(source: Any) -> Any:
    if isinstance(source, str) and (source == "reported" or source.startswith("blend")):
        raise ValueError(f"source = {source!r} {_LATER}; this one knows 'projected'")
    return source


class BallotTable(_Table):
    """``[ballot]``: whose numbers count; ``projected`` is the engine's utility of consequences."""

    source: Annotated[Literal["projected"], BeforeValidator(_ballot_source)] = "projected"


def _backend_kind(kind: str) -> str:
    if kind in LATER_BACKENDS:
        raise ValueError(f"the backend {kind!r} {_LATER}; this one has rules, scripted, python:…")
    if kind in {"rules", "scripted"}:
        return kind
    prefix, _, place = kind.partition(":")
    module, _, name = place.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if prefix != "python" or not all(part.isidentifier() for part in parts):
        raise ValueError("must be 'rules', 'scripted' or 'python:package.module:name'")
    return kind


class Backend(_Table):
    """``[backend]``: who voices the persona.

    Attributes:
        kind: ``rules``, ``scripted`` or ``python:package.module:name``.
        ref: For rules: name of the rule; empty takes the role's.
        timeout_s: Deadline of one answer in seconds; rules never get less than 30.
        fallback: What speaks when the backend fails: ``none`` (no proposals, the projected
            ballot counts all the same) or ``rules``.
    """

    kind: Annotated[str, Field(max_length=200), AfterValidator(_backend_kind)] = "rules"
    ref: Line = Field(default="", max_length=200)
    timeout_s: float | None = Field(default=None, gt=0, le=3600)
    fallback: Literal["none", "rules"] = "none"


class ModelTable(_Table):
    """``[model]``: the language model of an llm seat; validated, used by a later version."""

    name: Line = Field(default="", max_length=200)
    base_url_env: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]{0,99})?$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: Fraction | None = None
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    usd_per_mtok_in: Extent | None = None
    usd_per_mtok_out: Extent | None = None


class Prompt(_Table):
    """``[prompt]``: texts of an llm seat; validated, used by a later version."""

    system: PromptText = ""
    user: PromptText = ""
    paraphrases: Annotated[
        tuple[PromptText, ...], BeforeValidator(_as_tuple), Field(max_length=32)
    ] = ()


class ScriptStep(_Table):
    """``[[script.step]]``: what a scripted persona does at one step. Fault fields come first.

    Attributes:
        at: Step it is for, 1…; left out, the one after the entry before.
        delay_s: Waits this long before anything else, in seconds.
        raises: ``raise``, true or a text: raises a RuntimeError.
        garbage: Answers with this text instead of a reply.
        propose: Joint ids in order of preference, each ``kind[:target][:k=v]`` joined by ``+``.
        rationale: The reason given for each.
        confidence: 0–1.
        accept: Answer to ``respond``.
        choice: Answer to ``pick``, and counter-offer of ``respond``.
    """

    at: int | None = Field(default=None, ge=1, le=1_000_000)
    delay_s: float = Field(default=0.0, ge=0, le=3600)
    raises: bool | Annotated[str, Field(max_length=2000)] = Field(default=False, alias="raise")
    garbage: str | None = Field(default=None, max_length=100_000)
    propose: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=4000)], ...],
        BeforeValidator(_as_tuple),
        Field(max_length=64),
    ] = ()
    rationale: str = Field(default="", max_length=4000)
    confidence: Fraction | None = None
    accept: bool = False
    choice: str = Field(default="", max_length=4000)


class Script(_Table):
    """``[script]``: a fixed part, for examples, tests and red teams.

    Attributes:
        repeat: After the last entry: ``none`` proposes nothing, ``last`` repeats it, ``cycle``
            starts over.
        asynchronous: ``async``, whether it answers with an awaitable.
        step: The entries, in order.
    """

    repeat: Literal["none", "last", "cycle"] = "none"
    asynchronous: bool = Field(default=False, alias="async")
    step: Annotated[
        tuple[ScriptStep, ...], BeforeValidator(_as_tuple), Field(max_length=10_000)
    ] = ()


class PersonaSpec(_Table):
    """One persona file with its inheritance resolved. Frozen, plain, hashable by content.

    Attributes:
        schema_: ``persona/1``.
        identity: Who.
        objectives: What it cares about.
        utility: From gaps to one number.
        reservation: What no deal is worth.
        red_line: Lines that it will not have crossed, in order.
        concession: How it gives way, in protocols of many rounds.
        powers: What it may do.
        ballot: Whose numbers count.
        backend: Who voices it.
        model: The language model of an llm seat.
        prompt: Texts of an llm seat.
        script: The part of a scripted persona.
    """

    schema_: Literal["persona/1"] = Field(default="persona/1", alias="schema")
    identity: Identity
    objectives: Objectives = Objectives()
    utility: UtilityTable = UtilityTable()
    reservation: Reservation = Reservation()
    red_line: Annotated[
        tuple[RedLineTable, ...], BeforeValidator(_as_tuple), Field(max_length=64)
    ] = ()
    concession: Concession = Concession()
    powers: Powers = Powers()
    ballot: BallotTable = BallotTable()
    backend: Backend = Backend()
    model: ModelTable = ModelTable()
    prompt: Prompt = Prompt()
    script: Script | None = None

    @model_validator(mode="after")
    def _script_and_backend_agree(self) -> PersonaSpec:
        if self.backend.kind == "scripted" and self.script is None:
            raise ValueError("backend.kind = 'scripted' needs a [script] table")
        return self

    @property
    def id(self) -> str:
        """Short for ``identity.id``."""
        return self.identity.id

    def document(self) -> dict[str, Any]:
        """The resolved file as JSON-plain data, every default written out."""
        return self.model_dump(mode="json", by_alias=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the resolved file."""
        text = json.dumps(
            self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.sha256(text.encode()).hexdigest()
