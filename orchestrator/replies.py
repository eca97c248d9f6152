"""Replies as JSON, for the store's journal and for the trace.

A reply of a slow, paid or human seat is journalled under round, seat and a digest of what was
asked, so that a step that is executed again after a crash or an interrupt asks nobody twice.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from policies.records import Note, Proposal, Reply, Request, Usage
from world.actions import joint_id, parse_joint


def journal_field(request: Request) -> str:
    """``round:seat:digest`` of a request."""
    ask = request.ask
    content = json.dumps([ask.kind, dict(ask.payload), request.step], sort_keys=True, default=str)
    return f"{ask.round}:{ask.seat}:{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def write_reply(reply: Reply) -> bytes:
    """A reply as JSON bytes."""
    data = {
        "proposals": [
            {
                "actions": joint_id(proposal.actions),
                "rationale": proposal.rationale,
                "confidence": proposal.confidence,
                "claimed": dict(proposal.claimed),
            }
            for proposal in reply.proposals
        ],
        "scores": dict(reply.scores),
        "accept": reply.accept,
        "counter": reply.counter,
        "choice": reply.choice,
        "message": reply.message,
        "fallback": reply.fallback,
        "usage": [
            reply.usage.calls,
            reply.usage.tokens_in,
            reply.usage.tokens_out,
            reply.usage.usd,
            reply.usage.latency_ms,
        ],
        "notes": [[note.kind, dict(note.data)] for note in reply.notes],
    }
    return json.dumps(data, sort_keys=True).encode()


def read_reply(content: bytes) -> Reply:
    """The reply that `write_reply` wrote."""
    data = json.loads(content)
    return Reply(
        proposals=tuple(
            Proposal(
                parse_joint(entry["actions"]),
                entry["rationale"],
                entry["confidence"],
                entry["claimed"],
            )
            for entry in data["proposals"]
        ),
        scores=data["scores"],
        accept=data["accept"],
        counter=data["counter"],
        choice=data["choice"],
        message=data["message"],
        fallback=data.get("fallback", ""),
        usage=Usage(*data["usage"]),
        notes=tuple(Note(kind, content) for kind, content in data.get("notes", ())),
    )


def reply_data(kind: str, reply: Reply) -> dict[str, Any]:
    """What the trace keeps of an answer to a protocol's ask."""
    if kind == "respond":
        return {"accept": reply.accept, "counter": reply.counter}
    if kind == "pick":
        return {"choice": reply.choice}
    if kind == "ballot":
        return {"scores": dict(reply.scores)}
    return {"proposals": [joint_id(proposal.actions) for proposal in reply.proposals]}
