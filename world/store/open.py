"""Open a store by name.

| name | what it is | lost when |
|---|---|---|
| ``embedded`` | our own server, in the state folder | never: append-only file |
| ``:memory:`` | the same server in a temporary folder | its last client is gone |
| ``inprocess`` | plain Python objects, no server | the process ends |
| a URL | a server of yours: ``redis://``, ``rediss://``, ``unix://`` | as you run it |

Three things sound alike and are not: ``:memory:`` is a real server that several processes may
share by its socket, ``inprocess`` is no server at all, and *fakeredis* is a Python imitation of
a server that stands in for the first two where no server binary runs. It says so in its
description and is never chosen by name.
"""

from __future__ import annotations

from world.errors import ConfigError
from world.store.base import StoreSettings, WorldStore

STORE_NAMES = ("embedded", ":memory:", "inprocess")
"""Names that `open_store` knows, besides URLs."""


def open_store(name: str, settings: StoreSettings | None = None) -> WorldStore:
    """Open a store. Embedded servers are started, or attached to where one runs.

    Args:
        name: One of `STORE_NAMES`, or a URL.
        settings: Where to look, and for how long.

    Raises:
        ConfigError: There is no store of that name, the URL cannot be read, or the state folder
            cannot be used.
        StoreUnavailableError: The server does not answer, or is not fit to keep episodes.
    """
    settings = settings or StoreSettings()
    if name == "inprocess":
        from world.store.inprocess import InProcessStore

        return InProcessStore()
    if name in {"embedded", ":memory:"}:
        from world.store.connect import connect_embedded

        return connect_embedded(settings, memory=name == ":memory:")
    if "://" in name:
        from world.store.connect import connect_url

        return connect_url(name, settings)
    raise ConfigError(
        f"there is no store {name[:40]!r}",
        "a store is named, or given by its URL",
        f"Use {', '.join(STORE_NAMES)}, or redis://host:6379/0, rediss://…, unix:///path/to.sock",
    )
