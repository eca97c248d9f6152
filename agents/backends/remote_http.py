"""One question over HTTP: a POST of JSON, one answer of bounded size before a deadline.

No redirects, no proxies, no retries, no cookies. The token goes into one header and nowhere else.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
from urllib.parse import urlsplit

from agents.faults import SeatFault
from world.errors import ConfigError

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_CHUNK = 65_536


class HttpLink:
    """An address that answers questions.

    Args:
        where: What to call the seat in messages.
        url: ``http://`` or ``https://`` address.
        token: Bearer token; "" sends none.
        max_bytes: Longest answer that is read.

    Raises:
        ConfigError: The address cannot be used, or would show the token to the network.
    """

    def __init__(self, where: str, url: str, token: str, max_bytes: int) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{where}: remote.url cannot be read", str(error), "") from error
        if not parts.hostname:
            raise ConfigError(f"{where}: remote.url names no host", "", "http://127.0.0.1:8080/")
        if parts.username or parts.password:
            raise ConfigError(
                f"{where}: remote.url holds a user or password",
                "it would stand in every trace",
                "Name a variable that holds a bearer token: remote.token_env",
            )
        self._secure = parts.scheme == "https"
        self.host = parts.hostname
        if token and not self._secure and self.host not in _LOCAL:
            raise ConfigError(
                f"{where}: the token would be sent to {self.host} in clear text",
                "plain http beyond this machine can be read by others",
                "Use https://",
            )
        self._port = port or (443 if self._secure else 80)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._token = token
        self._max_bytes = max_bytes

    def ask(self, question: bytes, deadline_s: float) -> bytes:
        """Post a question and read the answer.

        Raises:
            SeatFault: ``refused``, ``timeout``, ``redirect``, ``status``, ``huge`` or ``died``.
        """
        until = time.monotonic() + deadline_s
        connection = self._connection(deadline_s)
        closing = contextlib.ExitStack()
        closing.callback(connection.close)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            connection.request("POST", self._path, question, headers)
            # Kept, because the connection lets go of it where the server will close.
            line = connection.sock
            _wait_at_most(line, until)
            answer = connection.getresponse()
            closing.callback(answer.close)
            if 300 <= answer.status < 400:
                raise SeatFault("redirect", f"status {answer.status}; redirects are not followed")
            if answer.status != 200:
                raise SeatFault("status", f"status {answer.status}")
            return self._body(line, answer, until)
        except TimeoutError as error:
            raise SeatFault("timeout", f"no answer within {deadline_s:g} s") from error
        except ConnectionRefusedError as error:
            raise SeatFault("refused", "nobody listens there") from error
        except http.client.IncompleteRead as error:
            raise SeatFault("died", "the answer broke off") from error
        except (OSError, http.client.HTTPException) as error:
            detail = getattr(error, "strerror", None) or type(error).__name__
            raise SeatFault("died", f"the connection failed: {detail}") from error
        finally:
            with contextlib.suppress(OSError):
                closing.close()

    def close(self) -> None:
        """Nothing is kept open between questions."""

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self.host, self._port, timeout=timeout_s, context=context
            )
        return http.client.HTTPConnection(self.host, self._port, timeout=timeout_s)

    def _body(self, line: socket.socket, answer: http.client.HTTPResponse, until: float) -> bytes:
        declared = answer.length
        if declared is not None and declared > self._max_bytes:
            raise SeatFault("huge", f"{declared} bytes, at most {self._max_bytes} are read")
        parts: list[bytes] = []
        size = 0
        while True:
            _wait_at_most(line, until)
            part = answer.read1(_CHUNK)
            if not part:
                break
            size += len(part)
            if size > self._max_bytes:
                raise SeatFault("huge", f"more than {self._max_bytes} bytes")
            parts.append(part)
        if declared is not None and size < declared:
            raise SeatFault("died", f"the answer broke off after {size} of {declared} bytes")
        return b"".join(parts)


def _wait_at_most(line: socket.socket, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    line.settimeout(left)
