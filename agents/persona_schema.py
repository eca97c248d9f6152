"""The persona file as typed data: schema ``persona/1``.

Every table and field that a file may hold, with its range. Nothing here reads a file
(`agents.persona`) and nothing here speaks (`agents.seat`). A word that belongs to a later version
is refused by name, never ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from functools import cached_property
from string import Template
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

SCHEMA = "persona/1"

PROMPT_VARIABLES = (
    "catalogue",
    "changes",
    "description",
    "facts",
    "history",
    "horizon",
    "incidents",
    "inventory",
    "max_actions",
    "memory",
    "metrics",
    "objectives",
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

BACKENDS = ("rules", "scripted", "llm", "human", "remote", "learned", "replay")
"""Backends that are named by one word; ``python:package.module:name`` is the other spelling."""
LATER_BACKENDS: tuple[str, ...] = ()
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
PositiveFraction = Annotated[float, Field(gt=0, le=1)]
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
        held: Worth of a step in which the metric lies below its target, whatever the gap.
    """

    weight: Weight
    target: Quantity | None = None
    margin: Extent | None = None
    scale: PositiveExtent | None = None
    shape: Shape | Literal[""] = ""
    held: Weight = 0.0


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
        discount: γ, what a projected step counts against the one before it; 1 counts all alike.
        risk_aversion: λ, the share of the worst imagined futures in a plan's value, 0–1.
        risk_tail_fraction: Share of the futures that counts as the worst.
        continuation: Policy that this persona imagines to follow a plan: a name of the world's,
            or ``nop``; empty takes the room's.
    """

    kind: Shape = "log"
    team: Weight = 1.0
    discount: PositiveFraction = 1.0
    risk_aversion: Fraction = 0.0
    risk_tail_fraction: PositiveFraction = 0.25
    continuation: str = Field(default="", pattern=r"^([a-z][a-z0-9_]{0,63})?$")


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
        bid: Which of the candidates that reach its target it offers: the best for the whole room
            (``joint``) or the worst for itself (``cheapest``).
        min_utility: Never offers or accepts below this share of its own range.
    """

    kind: Literal["boulware", "conceder", "linear", "tit_for_tat", "stubborn"] = "linear"
    beta: float = Field(default=1.0, gt=0, le=100)
    accept: Literal["ac_next", "ac_const", "ac_combi"] = "ac_next"
    bid: Literal["joint", "cheapest"] = "joint"
    min_utility: Fraction = 0.0


class Powers(_Table):
    """``[powers]``: what the seat may do.

    Attributes:
        propose: Kinds of action that it may propose; empty is every kind.
        veto: Whether its red lines of severity ``veto`` rule candidates out.
        commander: Whether it decides in a crisis and where there is no deal, where the room's
            rules give that to a commander; one seat of a room at most.
        mediator: Whether it picks under the protocol ``mediator``; one seat of a room at most.
        weight: Weight of its ballot.
    """

    propose: Annotated[tuple[Kind, ...], BeforeValidator(_as_tuple), Field(max_length=64)] = ()
    veto: bool = True
    commander: bool = False
    mediator: bool = False
    weight: Weight = 1.0


_BLEND = re.compile(r"blend\(([0-9]{1,3}(\.[0-9]{1,9})?|\.[0-9]{1,9})\)")


def _ballot_source(source: str) -> str:
    if source in {"projected", "reported"}:
        return source
    match = _BLEND.fullmatch(source)
    if match is None or not 0 <= float(match.group(1)) <= 1:
        raise ValueError("must be 'projected', 'reported' or 'blend(L)' with L from 0 to 1")
    return source


class BallotTable(_Table):
    """``[ballot]``: whose numbers count.

    Attributes:
        source: ``projected`` (the engine's utility of consequences), ``reported`` (scores 0–10
            that the seat is asked for, on its own range) or ``blend(L)`` (both: 1 − L and L).
    """

    source: Annotated[str, Field(max_length=20), AfterValidator(_ballot_source)] = "projected"

    @property
    def reported(self) -> float:
        """Share of the seat's own report in what counts, 0–1."""
        match = _BLEND.fullmatch(self.source)
        return float(match.group(1)) if match else float(self.source == "reported")


def _backend_kind(kind: str) -> str:
    if kind in LATER_BACKENDS:
        raise ValueError(f"the backend {kind!r} {_LATER}; this one has {', '.join(BACKENDS)}")
    if kind in BACKENDS:
        return kind
    prefix, _, place = kind.partition(":")
    module, _, name = place.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if prefix != "python" or not all(part.isidentifier() for part in parts):
        known = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"must be one of {known}, or 'python:package.module:name'")
    return kind


class Backend(_Table):
    """``[backend]``: who voices the persona.

    Attributes:
        kind: One of `BACKENDS`, or ``python:package.module:name``.
        ref: For rules: name of the rule; empty takes the role's. For learned: the policy
            file. For replay: a run's folder or trace file. Paths start where the program does.
        timeout_s: Deadline of one answer in seconds; rules never get less than 30.
        fallback: What speaks when the backend fails: ``none`` (no proposals, the projected
            ballot counts all the same) or ``rules``.
    """

    kind: Annotated[str, Field(max_length=200), AfterValidator(_backend_kind)] = "rules"
    ref: Line = Field(default="", max_length=200)
    timeout_s: float | None = Field(default=None, gt=0, le=3600)
    fallback: Literal["none", "rules"] = "none"


class RemoteTable(_Table):
    """``[remote]``: the other process of a remote seat. Exactly one of `url` and `command`.

    Attributes:
        url: ``http://`` or ``https://`` address that each question is posted to.
        command: Program and arguments, started once without a shell; asked by lines of JSON.
        token_env: Name of the environment variable that holds the bearer token; never its value.
        max_bytes: Longest answer that is read, in bytes.
        max_rows: Most resources that a question lists.
    """

    url: str = Field(default="", max_length=2048, pattern=r"^(https?://[^\s\x00-\x1f]+)?$")
    command: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=4096)], ...],
        BeforeValidator(_as_tuple),
        Field(max_length=64),
    ] = ()
    token_env: str = Field(default="", pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,99})?$")
    max_bytes: int = Field(default=2**20, ge=256, le=2**26)
    max_rows: int = Field(default=100, ge=0, le=100_000)


class ReplayTable(_Table):
    """``[replay]``: how a recorded seat speaks again.

    Attributes:
        seat: Seat in the record; empty takes the seat that it sits at.
        strict: Whether a situation that differs from the record ends the run; else the seat has
            no answer there and its fallback speaks.
    """

    seat: Line = Field(default="", max_length=40)
    strict: bool = True


class ModelTable(_Table):
    """``[model]``: the language model of an llm seat.

    Attributes:
        name: The endpoint's name of the model; empty takes ``--model``, else MODEL_NAME.
        base_url_env: Name of the environment variable that holds the endpoint's address.
        api_key_env: Name of the environment variable that holds the key; never the key.
        temperature: 0–2; left out, the endpoint's own default.
        top_p: 0–1; left out, the endpoint's own default.
        max_tokens: Most tokens of an answer.
        seed: Sampling seed; endpoints follow it as well as they can.
        structured: How an answer is held to its form; ``auto`` tries from the strictest down.
        requests_per_minute: Most calls a minute to this endpoint; 0 is no limit.
        usd_per_mtok_in: Dollars per million prompt tokens; left out, not known.
        usd_per_mtok_out: Dollars per million completion tokens; left out, not known.
    """

    name: Line = Field(default="", max_length=200)
    base_url_env: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]{0,99})?$")
    api_key_env: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]{0,99})?$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: Fraction | None = None
    max_tokens: int = Field(default=1024, ge=1, le=1_000_000)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    structured: Literal[
        "auto", "json_schema", "function_calling", "json_mode", "grammar", "prompt"
    ] = "auto"
    requests_per_minute: float = Field(default=0.0, ge=0, le=1e6)
    usd_per_mtok_in: Extent | None = None
    usd_per_mtok_out: Extent | None = None


class Prompt(_Table):
    """``[prompt]``: what an llm seat is shown.

    Attributes:
        system: Who it is; empty takes the shipped text.
        user: The situation; empty takes the shipped text.
        paraphrases: Other words for `user`.
        paraphrase: Which of them is used, 1…; 0 is `user` itself.
        others: Whether it sees what the others stood for: with their names, without, or not.
        memory_steps: How many of its own last steps it is reminded of.
        max_chars: Size of the situation in characters, about; long lists are cut to fit.
        options: Most proposals that it is asked for.
        reason_chars: Longest reason that it is asked for, in characters.
    """

    system: PromptText = ""
    user: PromptText = ""
    paraphrases: Annotated[
        tuple[PromptText, ...], BeforeValidator(_as_tuple), Field(max_length=32)
    ] = ()
    paraphrase: int = Field(default=0, ge=0, le=32)
    others: Literal["named", "anonymous", "hidden"] = "named"
    memory_steps: int = Field(default=3, ge=0, le=8)
    max_chars: int = Field(default=12_000, ge=1500, le=200_000)
    options: int = Field(default=3, ge=1, le=8)
    reason_chars: int = Field(default=300, ge=1, le=2000)

    @model_validator(mode="after")
    def _paraphrase_exists(self) -> Prompt:
        if self.paraphrase > len(self.paraphrases):
            raise ValueError(
                f"paraphrase = {self.paraphrase}: there are {len(self.paraphrases)} paraphrases"
            )
        return self


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
        scores: Answer to ``ballot``: candidate id → whole number 0–10.
        message: Text for the others, with whatever it answers.
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
    scores: dict[str, int] = Field(default={}, max_length=256)
    message: str = Field(default="", max_length=4000)


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
        remote: The other process of a remote seat.
        replay: How a recorded seat speaks again.
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
    remote: RemoteTable | None = None
    replay: ReplayTable | None = None

    @model_validator(mode="after")
    def _script_and_backend_agree(self) -> PersonaSpec:
        if self.backend.kind == "scripted" and self.script is None:
            raise ValueError("backend.kind = 'scripted' needs a [script] table")
        if self.backend.kind == "remote":
            remote = self.remote or RemoteTable()
            if bool(remote.url) == bool(remote.command):
                which = "one of url and command, not both" if remote.url else "url or command"
                raise ValueError(f"backend.kind = 'remote' needs [remote] with {which}")
        if self.backend.kind in {"learned", "replay"} and not self.backend.ref:
            what = "a policy file" if self.backend.kind == "learned" else "a run or trace file"
            raise ValueError(f"backend.kind = {self.backend.kind!r} needs ref, {what}")
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
