"""A persona whose answers are paid for: asynchronous, journalled, and it counts what it is asked.

Named in a persona file as ``python:tests.support.paid:Paid``. Every question is noted in the file
that ``PAID_LOG`` names, once when it is asked and once when it has been answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os

from agents.backends.rules import RulePersona
from agents.persona_schema import PersonaSpec
from policies.records import Reply, Request, Usage


class Paid:
    """Answers as the rule of its role does, after a moment, for money."""

    asynchronous = True
    journalled = True
    blocking = False

    def __init__(self, spec: PersonaSpec, seat: str) -> None:
        self.rule = RulePersona.by_role(spec, seat)
        self.delay_s = float(os.environ.get("PAID_DELAY_S", "0.003"))

    async def answer(self, request: Request) -> Reply:
        """Note the question, think, answer, note that."""
        ask = request.ask
        content = json.dumps(dict(ask.payload), sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        key = f"{request.step} {ask.round} {ask.kind} {ask.seat} {digest}"
        _note(f"asked {key}")
        await asyncio.sleep(self.delay_s)
        reply = self.rule.answer(request)
        _note(f"answered {key}")
        return Reply(
            proposals=reply.proposals,
            scores=reply.scores,
            accept=reply.accept,
            counter=reply.counter,
            choice=reply.choice,
            usage=Usage(1, len(content), 1, 0.001),
        )


def _note(line: str) -> None:
    path = os.environ.get("PAID_LOG")
    if path:
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(log, f"{line}\n".encode())
        finally:
            os.close(log)
