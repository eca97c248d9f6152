"""Another process at a seat: any agent framework, over HTTP or over standard input and output.

Whatever goes wrong on the way (nobody listens, too late, too long, not JSON, for another seat,
dead in the middle) is one typed fault that the room records; the fallback of the seat's file
speaks instead. Answers are journalled: nothing is asked or paid for twice.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from agents.backends.remote_http import HttpLink
from agents.backends.remote_messages import (
    ReplyMessage,
    question_bytes,
    question_document,
    question_id,
    read_message,
    reply_of,
)
from agents.backends.remote_stdio import StdioLink
from agents.persona_schema import PersonaSpec, RemoteTable
from agents.seat import DEFAULT_DEADLINE_S
from policies.records import Reply, Request
from world.errors import ConfigError

_MARGIN = 0.98
"""Share of the seat's deadline that the link gets, so that its own words are the record."""


@dataclass
class RemotePersona:
    """Another process at one seat.

    Attributes:
        spec: The seat's file.
        seat: The seat.
        link: How it is reached.
    """

    spec: PersonaSpec
    seat: str
    link: HttpLink | StdioLink

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> RemotePersona:
        """The persona of a file. Nothing is started and nobody is called yet.

        Raises:
            ConfigError: The address cannot be used, or the token's variable is not set.
        """
        where = f"persona {spec.id!r}"
        remote = spec.remote or RemoteTable()
        if remote.command:
            return RemotePersona(spec, seat, StdioLink(remote.command, remote.max_bytes))
        token = ""
        if remote.token_env:
            token = os.environ.get(remote.token_env, "").strip()
            if not token or not token.isascii() or not token.isprintable():
                raise ConfigError(
                    f"{where}: the variable {remote.token_env} holds no token",
                    "remote.token_env names the variable with the bearer token",
                    f"Set it: export {remote.token_env}=…",
                )
        return RemotePersona(spec, seat, HttpLink(where, remote.url, token, remote.max_bytes))

    @property
    def blocking(self) -> bool:
        """A call takes time."""
        return True

    @property
    def journalled(self) -> bool:
        """Its answers may have been paid for."""
        return True

    def answer(self, request: Request) -> Reply:
        """Send one question, read one answer.

        Raises:
            SeatFault: Anything went wrong on the way.
        """
        remote = self.spec.remote or RemoteTable()
        deadline_s = (self.spec.backend.timeout_s or DEFAULT_DEADLINE_S) * _MARGIN
        until = time.monotonic() + deadline_s
        document = question_document(request, self.spec, deadline_s, remote.max_rows)
        content = self.link.ask(question_bytes(document), deadline_s)
        message = read_message(content)
        if isinstance(self.link, StdioLink):
            message = self._latest(self.link, message, request, until)
        return reply_of(message, request)

    def _latest(
        self, link: StdioLink, message: ReplyMessage, request: Request, until: float
    ) -> ReplyMessage:
        """The answer to this question: one that comes too late answers an earlier one."""
        while link.owed and message.id != question_id(request):
            message = read_message(link.next_line(until - time.monotonic()))
        return message

    def end_run(self) -> None:
        """Called by the engine after the last step: the process ends with the run."""
        self.link.close()
