"""What a persona returned, checked: the one gate between a backend and the room.

A backend may return anything. What passes this gate is made anew from plain values of the right
types and bounded sizes; what does not is refused with its first fault, and the room goes on with
a fallback. The gate checks form (kinds, parameters, sizes). Whether an action can be taken now is
the table's question: such a proposal stays on record as an infeasible candidate, with its reason.
"""

from __future__ import annotations

import math
import numbers
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, get_args

from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Note, NoteKind, Proposal, Reply, Request, Usage
from world.actions import NOP, Action, ActionTemplate, ParamValue
from world.errors import InvalidProposalError
from world.model import World, significant

MAX_TEXT = 2000
MAX_TARGET = 2048
MAX_PARAM_TEXT = 512
MAX_SCORES = 256
MAX_NOTES = 16
MAX_NOTE_FIELDS = 24
MAX_CLAIMS = 32
_LARGEST_WHOLE = 2**53
_NOTHING_USED = Reply().usage
_NOTE_KINDS = get_args(NoteKind)
_KEPT = {"\n", "\t"}
_FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def validated_reply(request: Request, reply: object) -> Reply:
    """The reply made of plain, bounded data; only the field that the ask names is kept.

    Args:
        request: What was asked.
        reply: Whatever the backend returned, already awaited.

    Raises:
        InvalidProposalError: The reply is malformed; the message names the first fault.
    """
    try:
        return _reply(request, reply)
    except InvalidProposalError:
        raise
    except Exception as error:
        # Attributes of a hostile object can raise anything; that is a fault of the reply.
        _refuse("the reply cannot be read", f"reading it raised {type(error).__name__}")


def fallback_reply(
    world: World[Any], request: Request, reason: str, spec: PersonaSpec | None = None
) -> Reply:
    """What stands in for a seat that failed, with the reason on record.

    It proposes nothing, unless the persona's file says ``backend.fallback = "rules"``: then the
    rule of its role speaks. The engine's own ballot of the seat (its utility of projected
    consequences) counts all the same. Asked to respond, a stand-in declines; to pick, it picks
    nothing.

    Args:
        world: The world; replaces the request's, so that a stand-in never speaks of another.
        request: What was asked.
        reason: Why the seat's own answer is not used.
        spec: The persona's file.
    """
    because = cleaned_text(reason) or "no reason given"
    if spec is None or spec.backend.fallback != "rules":
        return Reply(fallback=because)
    from agents.backends.rules import RulePersona

    try:
        spoken = RulePersona.by_role(spec, request.ask.seat).answer(replace(request, world=world))
        return replace(validated_reply(request, spoken), fallback=f"{because}; its rule spoke")
    except Exception as error:
        return Reply(fallback=f"{because}; its rule failed too: {type(error).__name__}")


def cleaned_text(text: str, limit: int = MAX_TEXT) -> str:
    """Text without control, format and surrogate characters, at most `limit` long.

    Newlines and tabs stay. Bidirectional overrides and zero-width characters go: they can make
    text read differently from what it is.
    """
    cut = text[:limit]
    if not cut.isprintable():
        cut = "".join(
            character
            for character in cut
            if character in _KEPT or unicodedata.category(character) not in _FORBIDDEN
        )
    return cut if len(text) <= limit else f"{cut[: limit - 1]}…"


def _refuse(what: str, why: str = "", fix: str = "") -> NoReturn:
    raise InvalidProposalError(what, why, fix)


def _reply(request: Request, reply: object) -> Reply:
    if not isinstance(reply, Reply):
        _refuse(f"the reply is {_name(reply)}", "it must be a Reply")
    kind = request.ask.kind
    if kind == "propose":
        return Reply(
            proposals=_proposals(request.world, reply.proposals),
            message=_text("message", reply.message),
            usage=_usage(reply.usage),
            fallback=_text("fallback", reply.fallback),
            notes=_notes(reply.notes),
        )
    common = Reply(
        message=_text("message", reply.message),
        usage=_usage(reply.usage),
        fallback=_text("fallback", reply.fallback),
        notes=_notes(reply.notes),
    )
    offered = request.ask.payload.get("candidates")
    known = frozenset(offered) if isinstance(offered, list | tuple) else None
    if kind == "ballot":
        return replace(common, scores=_scores(reply.scores, known))
    if kind == "pick":
        return replace(common, choice=_candidate("choice", reply.choice, known))
    if type(reply.accept) is not bool:
        _refuse(f"accept is {_name(reply.accept)}", "it must be true or false")
    counter = "" if reply.counter == "" else _candidate("counter", reply.counter, known)
    return replace(common, accept=reply.accept, counter=counter)


def _proposals(world: World[Any], proposals: object) -> tuple[Proposal, ...]:
    entries = _sequence("proposals", proposals, MAX_PROPOSALS)
    templates = {template.kind: template for template in world.templates}
    most = world.limits.max_actions_per_step
    return tuple(
        [
            entry
            if _is_plain(entry, templates)
            else _proposal(f"proposal {number}", entry, most, templates)
            for number, entry in enumerate(entries, start=1)
        ]
    )


def _is_plain(proposal: object, templates: Mapping[str, ActionTemplate]) -> bool:
    """Whether a proposal is already what `_proposal` would make of it: the rules' usual form.

    One action without target and parameters, printable text, nothing else. Exact types only, so
    that no method of a hostile subclass runs.
    """
    if type(proposal) is not Proposal:
        return False
    actions, text = proposal.actions, proposal.rationale
    if type(actions) is not tuple or len(actions) != 1 or type(actions[0]) is not Action:
        return False
    kind, target, params = actions[0].kind, actions[0].target, actions[0].params
    if type(kind) is not str or type(target) is not str or target or type(params) is not tuple:
        return False
    template = templates.get(kind)
    return (
        template is not None
        and not params
        and not template.targeted
        and not template.params
        and type(text) is str
        and len(text) <= MAX_TEXT
        and text.isprintable()
        and proposal.confidence is None
        and type(proposal.claimed) is dict
        and not proposal.claimed
    )


def _proposal(
    where: str, proposal: object, most: int, templates: Mapping[str, ActionTemplate]
) -> Proposal:
    if not isinstance(proposal, Proposal):
        _refuse(f"{where} is {_name(proposal)}", "it must be a Proposal")
    entries = _sequence(f"{where}: actions", proposal.actions, most)
    if not entries:
        _refuse(f"{where} has no action", f"a proposal has 1 to {most}")
    actions = tuple(_action(where, entry, templates) for entry in entries)
    if len(set(actions)) < len(actions):
        _refuse(f"{where} names the same action twice", "actions of a proposal are distinct")
    return Proposal(
        actions,
        _text(f"{where}: rationale", proposal.rationale),
        _confidence(where, proposal.confidence),
        _claimed(where, proposal.claimed),
    )


def _action(where: str, action: object, templates: Mapping[str, ActionTemplate]) -> Action:
    if not isinstance(action, Action):
        _refuse(f"{where} holds {_name(action)}", "it must be an Action")
    kind = action.kind
    template = templates.get(kind) if type(kind) is str else None
    if template is None:
        _refuse(f"{where}: there is no action {_shown(kind)}", f"kinds: {', '.join(templates)}")
    target = _plain_text(f"{where}: target of {template.kind}", action.target, MAX_TARGET)
    loose = template.kind == NOP  # the original FinOps task lets nop name a resource
    if template.targeted and not target and not loose:
        _refuse(f"{where}: {template.kind} has no target", "it needs one")
    if target and not template.targeted and not loose:
        _refuse(f"{where}: {template.kind} has the target {_shown(target)}", "it takes none")
    return Action(template.kind, target, _params(where, action.params, template))


def _params(
    where: str, params: object, template: ActionTemplate
) -> tuple[tuple[str, ParamValue], ...]:
    allowed = {param.name: param for param in template.params}
    given: dict[str, ParamValue] = {}
    for entry in _sequence(f"{where}: parameters of {template.kind}", params, len(allowed)):
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            _refuse(f"{where}: a parameter of {template.kind} is {_name(entry)}", "not a pair")
        name, value = entry
        if type(name) is not str or name not in allowed:
            takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            _refuse(f"{where}: {template.kind} has the parameter {_shown(name)}", takes)
        if name in given:
            _refuse(f"{where}: {template.kind} has the parameter {name!r} twice", "")
        given[name] = _param(f"{where}: {template.kind}.{name}", value)
    for name, spec in allowed.items():
        if name not in given and spec.default is None:
            _refuse(f"{where}: {template.kind} lacks the parameter {name!r}", "it is required")
    return tuple(sorted(given.items()))


def _param(where: str, value: object) -> ParamValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _plain_text(where, value, MAX_PARAM_TEXT)
    if isinstance(value, numbers.Integral):
        whole = int(value)
        if abs(whole) > _LARGEST_WHOLE:
            _refuse(f"{where} is too large", "whole numbers stay within 2**53")
        return whole
    if isinstance(value, numbers.Real):
        return _finite(where, value)
    _refuse(f"{where} is {_name(value)}", "a parameter is text, a number or true/false")


def _confidence(where: str, confidence: object) -> float | None:
    if confidence is None:
        return None
    value = significant(_finite(f"{where}: confidence", confidence))
    if not 0.0 <= value <= 1.0:
        _refuse(f"{where}: confidence is {value:.4g}", "it is 0 to 1, or left out")
    return value


def _claimed(where: str, claimed: object) -> dict[str, float]:
    if not isinstance(claimed, Mapping) or len(claimed) > MAX_CLAIMS:
        _refuse(f"{where}: claimed is {_name(claimed)}", f"at most {MAX_CLAIMS} metrics by name")
    return {
        _plain_text(f"{where}: claimed metric", name, 64): significant(
            _finite(f"{where}: claim", value)
        )
        for name, value in claimed.items()
    }


def _scores(scores: object, known: frozenset[str] | None) -> dict[str, int]:
    if not isinstance(scores, Mapping) or len(scores) > MAX_SCORES:
        _refuse(f"scores are {_name(scores)}", f"at most {MAX_SCORES} candidates by id")
    result: dict[str, int] = {}
    for name, value in scores.items():
        candidate = _candidate("a scored id", name, known)
        score = _finite(f"the score of {_shown(candidate)}", value)
        if score != int(score) or not 0 <= score <= 10:
            _refuse(f"the score of {_shown(candidate)} is {score:.4g}", "whole numbers 0 to 10")
        result[candidate] = int(score)
    return result


def _candidate(where: str, name: object, known: frozenset[str] | None) -> str:
    text = _plain_text(where, name, 16 * MAX_TARGET)
    if known is not None and text not in known:
        _refuse(f"{where} is {_shown(text)}", "it is not on the table")
    return text


def _usage(usage: object) -> Usage:
    if usage is _NOTHING_USED:
        return _NOTHING_USED
    if not isinstance(usage, Usage):
        _refuse(f"usage is {_name(usage)}", "it must be a Usage")
    counts = [usage.calls, usage.tokens_in, usage.tokens_out]
    for count in counts:
        if (
            isinstance(count, bool)
            or not isinstance(count, numbers.Integral)
            or not 0 <= int(count) <= _LARGEST_WHOLE
        ):
            _refuse(f"usage counts {_shown(count)}", "calls and tokens are whole and at least 0")
    usd = None if usage.usd is None else _finite("usage in dollars", usage.usd)
    if usd is not None and usd < 0:
        _refuse(f"usage is {usd:.4g} dollars", "it is at least 0")
    latency_ms = _finite("usage in milliseconds", usage.latency_ms)
    if latency_ms < 0:
        _refuse(f"usage is {latency_ms:.4g} ms", "it is at least 0")
    calls, tokens_in, tokens_out = (int(count) for count in counts)
    return Usage(calls, tokens_in, tokens_out, usd, latency_ms)


def _notes(notes: object) -> tuple[Note, ...]:
    return tuple(_note(entry) for entry in _sequence("notes", notes, MAX_NOTES))


def _note(note: object) -> Note:
    if not isinstance(note, Note) or note.kind not in _NOTE_KINDS:
        _refuse(f"a note is {_name(note)}", f"it must be a Note: {', '.join(_NOTE_KINDS)}")
    if not isinstance(note.data, Mapping) or len(note.data) > MAX_NOTE_FIELDS:
        _refuse(f"the data of a note are {_name(note.data)}", f"at most {MAX_NOTE_FIELDS} values")
    data: dict[str, ParamValue | None] = {}
    for name, value in note.data.items():
        key = _plain_text("name in a note", name, 64)
        if value is None or isinstance(value, bool):
            data[key] = value
        elif isinstance(value, str):
            data[key] = _text("note", value)
        elif isinstance(value, int) and abs(value) <= _LARGEST_WHOLE:
            data[key] = int(value)
        else:
            data[key] = significant(_finite("a value in a note", value))
    return Note(note.kind, data)


def _sequence(where: str, value: object, most: int) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        _refuse(f"{where} is {_name(value)}", "it must be a tuple")
    if len(value) > most:
        _refuse(f"{where}: {len(value)} given", f"at most {most}")
    return tuple(value)


def _text(where: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse(f"{where} is {_name(value)}", "it must be text")
    return cleaned_text(str.__str__(value))


def _plain_text(where: str, value: object, limit: int) -> str:
    """Text that is an identifier: never altered, so too long or surrogate is refused."""
    if not isinstance(value, str):
        _refuse(f"{where} is {_name(value)}", "it must be text")
    text = str.__str__(value)
    if len(text) > limit:
        _refuse(f"{where} is {len(text)} characters long", f"at most {limit}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(f"{where} holds half a surrogate pair", "it must be text that UTF-8 can hold")
    return text


def _finite(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        _refuse(f"{where} is {_name(value)}", "it must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _refuse(f"{where} is {number}", "it must be finite")
    return number


def _name(value: object) -> str:
    """What something is, in words; never its repr, which is its author's code."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def _shown(value: object) -> str:
    """A short spelling of a plain value."""
    if type(value) is str:
        text = cleaned_text(value, 80).replace("\n", " ")
        return repr(text)
    if type(value) in {int, float, bool}:
        return repr(value) if abs(float(value)) < _LARGEST_WHOLE else "a huge number"  # type: ignore[arg-type]
    return _name(value)
