"""What a remote seat is sent and what it may answer: ``remote/1``, one JSON document each way.

The question holds what any persona sees, and no more: the seat's own observation, the actions that
exist, the ones that can be taken now, and what the protocol asks. The answer is checked strictly
here and then like any other backend's; identity comes from the engine, an answer for another seat
or another question is a fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.faults import SeatFault
from agents.persona_schema import PersonaSpec
from policies.records import MAX_PROPOSALS, Proposal, Reply, Request, Usage
from world.actions import joint_id, parse_joint
from world.errors import InadmissibleActionError

SCHEMA = "remote/1"
MOST_LEGAL = 256
"""Most action ids that a question lists as possible now."""
_MOST_DEPTH = 32


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ProposalMessage(_Strict):
    """One proposal. `action` is a joint id: ``kind[:target][:k=v]``, joined by ``+``."""

    action: str = Field(min_length=1, max_length=16_384)
    rationale: str = Field(default="", max_length=20_000)
    confidence: float | None = Field(default=None, ge=0, le=1)
    claimed: dict[str, float] = Field(default={}, max_length=32)


class UsageMessage(_Strict):
    """What the answer cost; `usd` null is unknown, which is not zero."""

    calls: int = Field(default=0, ge=0)
    tokens_in: int = Field(default=0, ge=0)
    tokens_out: int = Field(default=0, ge=0)
    usd: float | None = Field(default=None, ge=0)


class ReplyMessage(_Strict):
    """An answer. Only what the question's `kind` names is read; the rest may be left out."""

    schema_: Literal["remote/1"] = Field(default="remote/1", alias="schema")
    id: str = Field(default="", max_length=200)
    seat: str = Field(default="", max_length=40)
    proposals: list[ProposalMessage] = Field(default=[], max_length=MAX_PROPOSALS)
    scores: dict[str, Annotated[int, Field(ge=0, le=10)]] = Field(default={}, max_length=256)
    accept: bool = False
    counter: str = Field(default="", max_length=16_384)
    choice: str = Field(default="", max_length=16_384)
    message: str = Field(default="", max_length=20_000)
    usage: UsageMessage = UsageMessage()


def question_id(request: Request) -> str:
    """Id of a question: step being decided, round and seat; a reply may repeat it."""
    return f"{request.step + 1}.{request.ask.round}.{request.ask.kind}.{request.ask.seat}"


def question_document(
    request: Request, spec: PersonaSpec, deadline_s: float, max_rows: int
) -> dict[str, Any]:
    """A question as JSON-plain data.

    Args:
        request: What the engine asks.
        spec: The seat's file; what the persona is told about itself.
        deadline_s: Seconds until an answer is too late.
        max_rows: Most resources that are listed, those that possible actions name first.
    """
    seen, world = request.observation, request.world
    legal = _legal(request)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "id": question_id(request),
        "seat": request.ask.seat,
        "kind": request.ask.kind,
        "step": request.step + 1,
        "round": request.ask.round,
        "deadline_s": deadline_s,
        "persona": {
            "id": spec.id,
            "title": spec.identity.title,
            "role": spec.identity.role,
            "description": spec.identity.description,
            "objectives": {
                name: {"weight": table.weight, "target": table.target}
                for name, table in spec.objectives
                if table is not None
            },
        },
        "world": {
            "name": world.name,
            "max_actions": world.limits.max_actions_per_step,
            "can_do_nothing": world.limits.has_nop,
            "actions": [
                {
                    "kind": template.kind,
                    "title": template.title,
                    "effect": template.effect,
                    "targeted": template.targeted,
                    "destructive": template.destructive,
                    "params": {
                        param.name: {"choices": list(param.choices), "default": param.default}
                        for param in template.params
                    },
                }
                for template in world.templates
            ],
        },
        "observation": {
            "step": seen.step,
            "horizon": seen.horizon,
            "metrics": dict(seen.metrics),
            "targets": dict(seen.targets),
            "facts": dict(seen.facts),
            "incidents": list(seen.incidents),
            "outcomes": [
                {"action": o.action.id, "status": o.status, "effect": o.effect, "reason": o.reason}
                for o in seen.outcomes
            ],
            "unknown": list(seen.unknown),
        },
        "legal": legal,
        "payload": dict(request.ask.payload),
        "decided": [joint_id(joint) for joint in request.history.decisions[-10:]],
        "max_proposals": MAX_PROPOSALS,
    }
    if seen.inventory is not None:
        document["observation"]["inventory"] = {
            "rows": len(seen.inventory),
            "listed": _rows(request, legal, max_rows),
        }
    return document


def question_bytes(document: Mapping[str, Any]) -> bytes:
    """A question as one line of JSON, ASCII only, without a line end."""
    return json.dumps(document, allow_nan=False, default=_plain, separators=(",", ":")).encode()


def read_reply(content: bytes, request: Request) -> Reply:
    """The reply that an answer holds.

    Raises:
        SeatFault: ``garbage`` where it is no answer, ``wrong_seat`` where it is another's.
    """
    return reply_of(read_message(content), request)


def read_message(content: bytes) -> ReplyMessage:
    """An answer as typed data.

    Raises:
        SeatFault: ``garbage``: not JSON, or not of the schema; the first fault is named.
    """
    try:
        text = content.decode("utf-8")
        _refuse_depth(text)
        data = json.loads(text, parse_constant=_no_constant)
        return ReplyMessage.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80] or "the answer"
        raise SeatFault("garbage", f"{where}: {first['msg'][:120]}") from error
    except UnicodeDecodeError as error:
        raise SeatFault("garbage", "the answer is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise SeatFault("garbage", f"the answer is not JSON: {str(error)[:100]}") from error


def reply_of(message: ReplyMessage, request: Request) -> Reply:
    """The engine's form of an answer.

    Raises:
        SeatFault: ``wrong_seat`` where it names another seat or question; ``garbage`` where an
            action id cannot be read.
    """
    seat = request.ask.seat
    if message.seat not in {"", seat}:
        raise SeatFault("wrong_seat", f"the answer is for the seat {message.seat!r}")
    if message.id not in {"", question_id(request)}:
        raise SeatFault("wrong_seat", f"the answer is for the question {message.id[:80]!r}")
    try:
        proposals = tuple(
            Proposal(
                parse_joint(entry.action),
                entry.rationale,
                entry.confidence,
                dict(entry.claimed),
            )
            for entry in message.proposals
        )
    except InadmissibleActionError as error:
        raise SeatFault("garbage", error.line()[:160]) from error
    usage = message.usage
    return Reply(
        proposals=proposals,
        scores=dict(message.scores),
        accept=message.accept,
        counter=message.counter,
        choice=message.choice,
        message=message.message,
        usage=Usage(usage.calls, usage.tokens_in, usage.tokens_out, usage.usd),
    )


def _legal(request: Request) -> list[str]:
    found: list[str] = []
    for place, action in enumerate(request.world.catalogue(request.observation)):
        if place >= 8 * MOST_LEGAL or len(found) >= MOST_LEGAL:
            break
        if request.world.check(request.observation, action) is None:
            found.append(action.id)
    return found


def _rows(request: Request, legal: list[str], most: int) -> dict[str, Any]:
    inventory = request.observation.inventory
    if inventory is None:
        return {}
    named = [parse_joint(name)[0].target for name in legal]
    ids = dict.fromkeys(name for name in named if name in inventory.index)
    for name in inventory.ids:
        if len(ids) >= most:
            break
        ids.setdefault(name)
    return {name: inventory.row(name) for name in list(ids)[:most]}


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays, and tuples in mappings of others, as JSON."""
    as_plain = getattr(value, "tolist", None)
    if callable(as_plain):
        return as_plain()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _refuse_depth(text: str) -> None:
    """Refuse nesting that no answer needs before a parser recurses into it."""
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > _MOST_DEPTH:
                raise ValueError("it is nested too deeply")
        elif character in "]}":
            depth -= 1
