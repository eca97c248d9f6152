"""The line to one server: repeat what may be repeated, and word what cannot be helped.

redis-py's own retries are off. It repeats any command, blindly and for a minute; here every
request is one that may be repeated, for as long as `patience_s` of the error says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis

from world.store.failures import is_lost_connection, patience_s, unavailable
from world.store.functions import Client, Functions

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5


class Link:
    """Commands to one server, safe to use from several threads.

    Args:
        client: The client, with its own retries off.
        shown: The server's address without secrets.
        timeout_s: How long a server may be gone before that is an error, in seconds.
        revive: Starts an embedded server again; None where the server is not ours.
    """

    def __init__(
        self,
        client: Client,
        shown: str,
        timeout_s: float,
        revive: Callable[[], None] | None = None,
    ) -> None:
        self.shown = shown
        self.timeout_s = timeout_s
        self.functions = Functions()
        self._client = client
        self._revive = revive

    def call(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one server-side function.

        Raises:
            redis.ResponseError: The function refused (``WR_…``).
            StoreUnavailableError: The server does not answer, or will not write.
        """
        return self.repeat(lambda: self.functions.call(self._client, name, keys, args))

    def call_once(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one function where failing does not matter: None when it did."""
        try:
            return self.functions.call(self._client, name, keys, args)
        except redis.RedisError as error:
            _log.debug("%s was not sent: %s", name, type(error).__name__)
            return None

    def run(self, *command: Any) -> Any:
        """Run one command."""
        return self.repeat(lambda: self._client.execute_command(*command))

    def run_all(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Run several commands in one round trip, each by itself."""

        def send() -> list[Any]:
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(pipeline.execute())

        return self.repeat(send)

    def repeat(self, attempt: Callable[[], T]) -> T:
        """Do something until it works, or its error has outlasted our patience."""
        pause_s = _FIRST_PAUSE_S
        started_s = None
        while True:
            try:
                return attempt()
            except redis.RedisError as error:
                if str(error).startswith("WR_"):
                    raise
                now_s = time.monotonic()
                if started_s is None:
                    started_s = now_s
                if now_s - started_s + pause_s > patience_s(error, self.timeout_s):
                    raise unavailable(error, self.shown) from None
                if self._revive is not None and is_lost_connection(error):
                    self._revive()
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()
