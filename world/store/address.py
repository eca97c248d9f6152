"""Addresses of servers: read a URL, and show it without its secrets.

A URL may carry a password, in the place of one, in its query, or cut in two by a character that
should have been percent-encoded. So nothing of a URL that cannot be read is ever shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from world.errors import ConfigError

_SCHEMES = ("redis", "rediss", "unix")
_QUERY = frozenset({"db", "username", "password", "ssl_cert_reqs", "ssl_ca_certs"})
_URL = re.compile(r"\b([a-z][a-z0-9+.-]*)://[^\s'\"]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        scheme: ``redis`` (plain), ``rediss`` (TLS) or ``unix``.
        host: Host name or address; "" for a socket.
        port: TCP port; 0 for a socket.
        path: Path of the socket; "" otherwise.
        db: Number of the database.
        username: User of the server's access list; None is the default user.
        password: Its password. Never shown.
        verify: Whether a TLS certificate is checked.
        ca_certs: File of the certificates that are trusted; None is the system's.
    """

    scheme: Literal["redis", "rediss", "unix"]
    host: str = ""
    port: int = 0
    path: str = ""
    db: int = 0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    verify: bool = True
    ca_certs: str | None = None

    @property
    def shown(self) -> str:
        """The address without user and password."""
        if self.scheme == "unix":
            return f"unix://{self.path}" + (f"?db={self.db}" if self.db else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{self.db}"


def parse_address(url: str) -> Address:
    """Read ``redis://``, ``rediss://`` or ``unix://``.

    Raises:
        ConfigError: It cannot be read. The message never repeats more than the scheme.
    """
    scheme = url.partition("://")[0].lower()
    if scheme not in _SCHEMES:
        raise ConfigError(
            f"{scheme[:20]!r} is no scheme of a store",
            f"a server is given by {', '.join(f'{known}://' for known in _SCHEMES)}",
            "For example redis://localhost:6379/0",
        )
    try:
        parts = urlsplit(url)
        port = parts.port
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    except ValueError:
        raise _unreadable(scheme, "its port is not a number from 1 to 65535") from None
    unknown = sorted(set(query) - _QUERY)
    if unknown or parts.fragment:
        raise _unreadable(scheme, f"after the ? it takes only {', '.join(sorted(_QUERY))}")
    if scheme == "unix":
        return _socket(parts, query)
    if not parts.hostname or port == 0:
        raise _unreadable(scheme, "it names no host, or port 0")
    return Address(
        scheme="rediss" if scheme == "rediss" else "redis",
        host=parts.hostname,
        port=port or 6379,
        db=_db(scheme, query.get("db") or parts.path.strip("/") or "0"),
        username=query.get("username") or _decoded(parts.username),
        password=query.get("password") or _decoded(parts.password),
        verify=query.get("ssl_cert_reqs", "required") != "none",
        ca_certs=query.get("ssl_ca_certs"),
    )


def redact(text: str) -> str:
    """`text` with whatever could be a secret in a URL taken out.

    >>> redact("store = redis://user:secret@host:6379/0")
    'store = redis://***@host:6379/0'
    """
    return _URL.sub(_redact_one, text)


def _redact_one(found: re.Match[str]) -> str:
    scheme = found.group(1)
    if scheme.lower() in _SCHEMES:
        try:
            address = parse_address(found.group(0))
        except ConfigError:
            return f"{scheme}://***"
        if address.password is None and address.username is None:
            return address.shown
        return address.shown.replace("://", "://***@", 1)
    body = found.group(0)[len(scheme) + 3 :]
    secret, at, rest = body.rpartition("@")
    del secret
    return f"{scheme}://***@{rest}" if at else found.group(0)


def _socket(parts: SplitResult, query: dict[str, str]) -> Address:
    path = unquote(parts.path)
    if not path or parts.hostname:
        raise _unreadable("unix", "a socket is given by its absolute path, after three slashes")
    return Address(
        scheme="unix",
        path=path,
        db=_db("unix", query.get("db", "0")),
        username=query.get("username") or _decoded(parts.username),
        password=query.get("password") or _decoded(parts.password),
    )


def _decoded(text: str | None) -> str | None:
    return unquote(text) if text else None


def _db(scheme: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise _unreadable(scheme, "its database is not a number")
    return int(text)


def _unreadable(scheme: str, why: str) -> ConfigError:
    example = "unix:///run/valkey.sock" if scheme == "unix" else f"{scheme}://:password@host:6379/0"
    return ConfigError(
        f"the {scheme}:// URL of the store cannot be read",
        why,
        f"Write it like {example}, with special characters of a password percent-encoded",
    )
