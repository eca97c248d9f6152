"""The asked form of an answer: as JSON schema for the endpoint, and as a checked reading of it.

A schema only helps the model; what comes back is read here as if there had been none, and then
passes the same gate as every other persona's reply (`agents.validate`). Options are named by
short labels, because ids of a hundred characters are copied wrongly and cost tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.backends.llm.catalogue import longest_target, offered_templates
from agents.backends.llm.faults import ModelFault
from policies.records import MAX_PROPOSALS, AskKind, Proposal, Reply, Request
from world.actions import Action, ActionTemplate, ParamSpec, ParamValue

_MOST_CHOICES = 200
_Json = dict[str, Any]


def schema_of(request: Request, options: int = 3, reason_chars: int = 300) -> _Json:
    """JSON schema of the answer: closed objects, every member required, nothing recursive.

    No text of others stands in it: endpoints show schemas to the model, unquoted.

    Args:
        request: What is asked.
        options: Most proposals that are asked for; up to `MAX_PROPOSALS` are taken.
        reason_chars: Longest reason or message, in characters.
    """
    kind = request.ask.kind
    if kind == "propose":
        return _propose(request, options, reason_chars)
    labels = list(labels_of(request))
    named: _Json = {"type": "string", **({"enum": labels} if labels else {})}
    if kind == "ballot":
        score = {"type": "integer", "minimum": 0, "maximum": 10}
        entry = _closed({"option": named, "score": score})
        return _closed({"scores": {"type": "array", "items": entry, "maxItems": len(labels) or 1}})
    if kind == "pick":
        return _closed({"choice": named})
    counter: _Json = {"type": "string", **({"enum": [*labels, ""]} if labels else {})}
    message = {"type": "string", "maxLength": reason_chars}
    return _closed({"accept": {"type": "boolean"}, "counter": counter, "message": message})


def form_of(request: Request) -> str:
    """The same form as one example line, for the prompt."""
    kind = request.ask.kind
    if kind == "ballot":
        return '{"scores": [{"option": "c1", "score": 7}, {"option": "c2", "score": 0}]}'
    if kind == "pick":
        return '{"choice": "c1"}'
    if kind == "respond":
        return '{"accept": false, "counter": "c2", "message": "…"}'
    templates = offered_templates(request)
    action: _Json = {"kind": "…"}
    if any(template.targeted for template in templates):
        action["target"] = "…"
    if any(template.params for template in templates):
        action["params"] = {}
    option = {"actions": [action], "rationale": "…", "confidence": 7}
    return json.dumps({"proposals": [option]}, ensure_ascii=False)


def labels_of(request: Request) -> Mapping[str, str]:
    """Label → candidate id of the options in a question, in the order of the question."""
    offered = request.ask.payload.get("candidates")
    ids: Sequence[Any] = offered if isinstance(offered, list | tuple) else ()
    offer = request.ask.payload.get("offer")
    if isinstance(offer, str) and offer and offer not in ids:
        ids = [offer, *ids]
    return {
        f"c{number}": name
        for number, name in enumerate((entry for entry in ids if isinstance(entry, str)), start=1)
    }


def _closed(properties: _Json) -> _Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _propose(request: Request, options: int, reason_chars: int) -> _Json:
    most = request.world.limits.max_actions_per_step
    actions = {"type": "array", "items": _actions(request), "minItems": 1, "maxItems": most}
    option = _closed(
        {
            "actions": actions,
            "rationale": {"type": "string", "maxLength": reason_chars},
            "confidence": {"type": "integer", "minimum": 0, "maximum": 10},
        }
    )
    return _closed(
        {"proposals": {"type": "array", "items": option, "minItems": 1, "maxItems": options}}
    )


def _actions(request: Request) -> _Json:
    """One form for each shape of action; kinds of the same shape share it."""
    longest = longest_target(request)
    shapes: dict[str, tuple[list[str], _Json]] = {}
    for template in offered_templates(request):
        rest: _Json = {}
        if template.targeted:
            rest["target"] = {"type": "string", "minLength": 1, "maxLength": longest}
        if template.params:
            rest["params"] = _closed({param.name: _param(param) for param in template.params})
        kinds, _ = shapes.setdefault(json.dumps(rest, sort_keys=True), ([], rest))
        kinds.append(template.kind)
    forms = [
        _closed({"kind": {"type": "string", "enum": kinds}, **rest})
        for kinds, rest in shapes.values()
    ]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _param(spec: ParamSpec) -> _Json:
    choices = list(spec.choices)
    bounded = spec.minimum is not None and spec.maximum is not None
    if bounded and not any(isinstance(choice, str | bool) for choice in choices):
        whole = bool(choices) and all(isinstance(choice, int) for choice in choices)
        kind = "integer" if whole else "number"
        return {"type": kind, "minimum": spec.minimum, "maximum": spec.maximum}
    if choices and len(choices) <= _MOST_CHOICES and len({type(c) for c in choices}) == 1:
        return {"type": _type(choices[0]), "enum": choices}
    kinds = sorted({_type(choice) for choice in choices}) or ["number", "string"]
    return {"type": kinds[0]} if len(kinds) == 1 else {"anyOf": [{"type": k} for k in kinds]}


def _type(value: ParamValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


# -- reading -------------------------------------------------------------------------------


class _Answer(BaseModel):
    # What was not asked for is dropped: a forged "seat" or "agent" says nothing.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _ActionForm(_Answer):
    kind: str
    target: str | None = ""
    params: dict[str, str | int | float | bool | None] | None = None


class _OptionForm(_Answer):
    actions: list[_ActionForm] = Field(min_length=1, max_length=16)
    rationale: str | None = ""
    confidence: int | float | None = None


class _ProposeForm(_Answer):
    proposals: list[_OptionForm] = Field(max_length=MAX_PROPOSALS)


class _ScoreForm(_Answer):
    option: str
    score: int


class _BallotForm(_Answer):
    scores: list[_ScoreForm] = Field(max_length=256)


class _RespondForm(_Answer):
    accept: bool
    counter: str | None = ""
    message: str | None = ""


class _PickForm(_Answer):
    choice: str


_FORMS: dict[AskKind, type[_Answer]] = {
    "propose": _ProposeForm,
    "ballot": _BallotForm,
    "respond": _RespondForm,
    "pick": _PickForm,
}


def read_answer(request: Request, data: Mapping[str, Any]) -> Reply:
    """The reply that a JSON object says.

    Raises:
        ModelFault: ``wrong_schema``, with the first place that is not as asked.
    """
    try:
        answer = _FORMS[request.ask.kind].model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        # Places are numbers and our own names, unless a parameter's name is the model's.
        place = ".".join(str(part)[:40] for part in first["loc"][:6] if str(part).isidentifier())
        raise ModelFault("wrong_schema", f"{place or 'answer'}: {first['type']}") from None
    if isinstance(answer, _ProposeForm):
        templates = {template.kind: template for template in request.world.templates}
        return Reply(
            proposals=tuple(
                Proposal(
                    tuple(_action(entry, templates) for entry in option.actions),
                    option.rationale or "",
                    _confidence(option.confidence),
                )
                for option in answer.proposals
            )
        )
    labels = labels_of(request)
    if isinstance(answer, _BallotForm):
        return Reply(scores={_named(labels, each.option): each.score for each in answer.scores})
    if isinstance(answer, _PickForm):
        return Reply(choice=_named(labels, answer.choice))
    assert isinstance(answer, _RespondForm)  # noqa: S101 - narrows the type; the table is closed
    counter = "" if answer.accept else _named(labels, answer.counter or "")
    return Reply(accept=answer.accept, counter=counter, message=answer.message or "")


def _named(labels: Mapping[str, str], word: str) -> str:
    return labels.get(word, word)


def _confidence(value: float | None) -> float | None:
    """0–10 as 0–1. Grammars do not hold models to bounds, so what lies outside is moved in."""
    return None if value is None else min(max(value / 10.0, 0.0), 1.0)


def _action(form: _ActionForm, templates: Mapping[str, ActionTemplate]) -> Action:
    template = templates.get(form.kind)
    given = {name: value for name, value in (form.params or {}).items() if value is not None}
    if template is None:
        return Action.of(form.kind, form.target or "", **_text_keys(given))
    allowed = {param.name: param for param in template.params}
    # A closed schema makes models fill parameters of other kinds; those mean nothing here.
    kept = {
        name: _as_declared(allowed[name], value) for name, value in given.items() if name in allowed
    }
    target = (form.target or "") if template.targeted else ""
    return Action(form.kind, target, tuple(sorted(kept.items())))


def _text_keys(given: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    return {str(name): value for name, value in given.items()}


def _as_declared(spec: ParamSpec, value: ParamValue) -> ParamValue:
    """3.0 as 3 where whole numbers are declared; anything else as it was said."""
    whole = spec.choices and all(type(choice) is int for choice in spec.choices)
    if whole and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
