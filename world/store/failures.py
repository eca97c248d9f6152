"""What the server or the line to it did wrong, in words that help, and never with a secret.

Only the kind of an error and the address without user and password reach a message.
"""

from __future__ import annotations

import redis
from redis import exceptions

from world.errors import StoreUnavailableError

_EMBEDDED_HINT = "leave --store and WARROOM_REDIS_URL away to use the built-in store"


def is_lost_connection(error: redis.RedisError) -> bool:
    """Whether the server may be gone, so that an embedded one should be started again."""
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return False
    return isinstance(error, exceptions.ConnectionError) and not isinstance(
        error, exceptions.BusyLoadingError
    )


def patience_s(error: redis.RedisError, timeout_s: float) -> float:
    """How long a request is repeated in the face of this error, in seconds.

    Every request may be repeated: a commit that had been applied is answered DUP.
    """
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return 0.0
    if isinstance(error, exceptions.BusyLoadingError):
        return max(timeout_s, 60.0)
    if isinstance(error, exceptions.ConnectionError) and _is_tls(str(error)):
        return 0.0  # a handshake that failed once fails again
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
        return timeout_s
    if isinstance(error, exceptions.MasterDownError | exceptions.TryAgainError):
        return timeout_s
    if isinstance(error, exceptions.OutOfMemoryError | exceptions.ReadOnlyError):
        return min(timeout_s, 0.5)
    if str(error).startswith("BUSY "):
        return timeout_s
    return 0.0


def unavailable(error: redis.RedisError, shown: str) -> StoreUnavailableError:
    """An error of the client library as one of ours."""
    what, why, fix = _explain(error, shown)
    return StoreUnavailableError(what, why, fix)


def _explain(error: redis.RedisError, shown: str) -> tuple[str, str, str]:
    text = str(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return _refused_user(text, shown)
    if isinstance(error, exceptions.NoPermissionError) or text.startswith("NOPERM"):
        return (
            f"{shown} does not let this user do that",
            "its access list forbids a command or a key that the store needs",
            "Allow ~wr:* with +@all -@dangerous +info +function, or use another user",
        )
    if "NOAUTH" in text:
        return _refused_user(text, shown)
    if isinstance(error, exceptions.OutOfMemoryError):
        return (
            f"{shown} is out of memory",
            "it reached maxmemory; nothing was written",
            "Raise maxmemory, or remove closed runs: python run_warroom.py runs clean",
        )
    if isinstance(error, exceptions.ReadOnlyError):
        return (
            f"{shown} is read-only",
            "it is a replica; nothing was written",
            "Name the primary in the store's URL",
        )
    if isinstance(error, exceptions.BusyLoadingError):
        return (f"{shown} is still loading its data", "", "Wait, and run the same command again")
    if isinstance(error, exceptions.MasterDownError):
        return (
            f"{shown} is a replica that has lost its primary",
            "nothing was written",
            "Name the primary in the store's URL",
        )
    if isinstance(error, exceptions.MaxConnectionsError) or "max number of clients" in text:
        return (f"{shown} has no free connection", "", "Raise maxclients, or run fewer at once")
    if isinstance(error, exceptions.TimeoutError):
        return (
            f"{shown} does not answer in time",
            "the server is overloaded or stopped, or the network drops packets",
            f"Try it: redis-cli PING; or {_EMBEDDED_HINT}",
        )
    if isinstance(error, exceptions.InvalidResponse) and r"\x15" in repr(text):
        return (
            f"{shown} does not speak plain text",
            "the server there answered with a TLS alert",
            "Write rediss://, or name the server's plain port",
        )
    if isinstance(error, exceptions.ConnectionError):
        return _no_connection(text, shown)
    if text.startswith("MISCONF"):
        return (
            f"{shown} refuses to write",
            "it could not save to its disk",
            "Free space on its disk, and look into its log",
        )
    return (f"{shown} refused", text.partition("\n")[0][:200], f"Or {_EMBEDDED_HINT}")


def _refused_user(text: str, shown: str) -> tuple[str, str, str]:
    if "NOAUTH" in text or "required" in text.lower():
        return (
            f"{shown} asks for a password",
            "the URL gives none",
            "Write it as redis://:password@host:6379/0",
        )
    return (
        f"{shown} refused the user or the password",
        "they are not the server's",
        "Correct them in the URL (redis://user:password@host:6379/0)",
    )


def no_tls(shown: str) -> StoreUnavailableError:
    """A ``rediss://`` address whose port answers in plain text."""
    return StoreUnavailableError(
        f"{shown} does not speak TLS",
        "the server there answers in plain text; rediss:// asks for an encrypted connection",
        "Write redis://, or name the server's TLS port",
    )


def _is_tls(text: str) -> bool:
    lower = text.lower()
    return "certificate" in lower or "ssl" in lower


def _no_connection(text: str, shown: str) -> tuple[str, str, str]:
    lower = text.lower()
    if "refused" in lower:
        why = "nothing listens there; is it running?"
    elif "name or service" in lower or "nodename" in lower or "resolution" in lower:
        why = "its host name is not known"
    elif "no such file" in lower:
        why = "there is no such socket"
    elif "permission denied" in lower:
        why = "its socket belongs to somebody else"
    elif _is_tls(text):
        why = "the TLS handshake failed; the certificate or the protocol is not the expected one"
    else:
        why = "the connection broke"
    return (
        f"{shown} cannot be reached",
        why,
        f"Start it: docker compose up -d store; or {_EMBEDDED_HINT}",
    )
