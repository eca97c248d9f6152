"""Connect to a server: the embedded one, one given by URL, or fakeredis in place of the first.

What a server is and whether it is fit to keep episodes is asked once, here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from world.errors import StoreUnavailableError
from world.store.address import Address, parse_address
from world.store.base import StoreSettings
from world.store.binaries import OLDEST
from world.store.failures import no_tls
from world.store.folder import default_folder
from world.store.handshake import speaks_plainly
from world.store.link import Link
from world.store.redis_store import RedisStore

_log = logging.getLogger(__name__)
_FIRST_CONTACT_S = 1.0
_fakes: dict[str, Any] = {}


def connect_url(url: str, settings: StoreSettings) -> RedisStore:
    """The server at a URL.

    Raises:
        ConfigError: The URL cannot be read.
        StoreUnavailableError: It does not answer, refuses us, or is not fit to keep episodes.
    """
    address = parse_address(url)
    if address.scheme == "rediss" and speaks_plainly(address, settings.timeout_s):
        raise no_tls(address.shown)
    client = _client(address, settings.timeout_s)
    facts = _facts(client, address.shown, settings.timeout_s)
    _check_fitness(facts, address.shown)
    durable = str(facts.get("aof_enabled", "0")) == "1"
    kept = "append-only file on" if durable else "append-only file off: not durable"
    return RedisStore(
        Link(client, address.shown, settings.timeout_s),
        name="server",
        description=f"server: {address.shown}, {_version(facts)}, {kept}",
        durable=durable,
    )


def connect_embedded(settings: StoreSettings, *, memory: bool = False) -> RedisStore:
    """The embedded server of the state folder, or one in a temporary folder.

    Where no server binary runs, fakeredis stands in, and the description says so.

    Raises:
        ConfigError: The state folder cannot be used.
        StoreUnavailableError: The server does not start, or does not answer.
    """
    folder = None if memory else _state_folder(settings)
    try:
        from world.store.embedded import attach
    except ImportError:  # no flock on this system
        return connect_fake("" if folder is None else str(folder))
    attachment = attach(folder)
    if attachment is None:
        return connect_fake("" if folder is None else str(folder))
    shown = ":memory:" if memory else f"the built-in store in {attachment.folder}"
    try:
        client = _client(Address("unix", path=str(attachment.socket)), settings.timeout_s)
        link = Link(client, shown, settings.timeout_s, attachment.revive)
        version = _version(_facts(client, shown, settings.timeout_s))
    except BaseException:
        attachment.detach()
        raise
    if memory:
        description = f":memory: {version} in a temporary folder, not durable"
    else:
        description = f"embedded: {version} in {attachment.folder}, append-only file on"
    return RedisStore(
        link,
        name=":memory:" if memory else "embedded",
        description=description,
        durable=not memory,
        on_disconnect=attachment.detach,
    )


def connect_fake(place: str = "") -> RedisStore:
    """fakeredis: a server imitated in this process.

    Args:
        place: Stores of the same place share their episodes; "" is a place of its own.
    """
    import fakeredis

    server = _fakes.setdefault(place, fakeredis.FakeServer()) if place else fakeredis.FakeServer()
    client = fakeredis.FakeRedis(server=server, retry=Retry(NoBackoff(), 0), protocol=2)
    return RedisStore(
        Link(client, "fakeredis", 1.0),
        name="fakeredis",
        description="fakeredis: one process, not durable",
        durable=False,
    )


def _state_folder(settings: StoreSettings) -> Path:
    return Path(settings.state_dir).expanduser() if settings.state_dir else default_folder()


def _client(address: Address, timeout_s: float) -> redis.Redis:
    """A client that never repeats by itself; `Link` does, and knows what may be repeated."""
    common: dict[str, Any] = {
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "client_name": "warroom",
        "protocol": 2,
    }
    if address.scheme == "unix":
        return redis.Redis(unix_socket_path=address.path, **common)
    if address.scheme == "rediss":
        common["ssl"] = True
        common["ssl_cert_reqs"] = "required" if address.verify else "none"
        common["ssl_check_hostname"] = address.verify
        common["ssl_ca_certs"] = address.ca_certs
    return redis.Redis(host=address.host, port=address.port, **common)


def _facts(client: redis.Redis, shown: str, timeout_s: float) -> Mapping[str, Any]:
    """What the server says about itself; little where its access list forbids INFO.

    A wrong address should be told at once, so the first contact is tried for a second only; but
    a server that loads its data is waited for.
    """
    link = Link(client, shown, min(timeout_s, _FIRST_CONTACT_S))
    link.run("PING")
    try:
        facts = link.run("INFO")
    except StoreUnavailableError as error:
        _log.warning("%s does not tell what it is: %s", shown, error.why)
        return {}
    return facts if isinstance(facts, dict) else {}


def _check_fitness(facts: Mapping[str, Any], shown: str) -> None:
    version = str(facts.get("redis_version", ""))
    parts = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if parts and parts < OLDEST[: len(parts)]:
        raise StoreUnavailableError(
            f"{shown} is version {version}",
            "episodes need Redis 7.0 or Valkey 7.2",
            "Use a newer server, or leave --store away to use the built-in one",
        )
    policy = str(facts.get("maxmemory_policy", "noeviction"))
    if int(facts.get("maxmemory", 0)) > 0 and policy != "noeviction":
        raise StoreUnavailableError(
            f"{shown} evicts keys when it is full (maxmemory-policy {policy})",
            "it would silently drop parts of an episode",
            "Run on it: CONFIG SET maxmemory-policy noeviction",
        )


def _version(facts: Mapping[str, Any]) -> str:
    if "valkey_version" in facts:
        return f"valkey {facts['valkey_version']}"
    if "redis_version" in facts:
        return f"redis {facts['redis_version']}"
    return "unknown version"
