"""Call the functions of functions.lua, whichever way the server can run them.

They are loaded as a function library, which survives a restart and saves a hash lookup; a server
that has no functions, or forbids them, gets the same source through EVALSHA. Libraries belong to
the whole server, so their names carry a hash of the source: two versions never meet.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import redis

_SOURCE = Path(__file__).with_name("functions.lua").read_text(encoding="utf-8")
_TAG = hashlib.sha256(_SOURCE.encode()).hexdigest()[:8]
_NAMES = tuple(re.findall(r"^local function (wr_\w+)\(", _SOURCE, flags=re.MULTILINE))
_FLAGS = {"wr_world": "no-writes", "wr_release": "allow-oom"}
_CANNOT = re.compile(
    r"unknown (sub)?command|no permissions to run the '(fcall|function[^']*)' command"
)


def library_source() -> str:
    """The function library, as the server loads it."""
    lines = [f"#!lua name=warroom_{_TAG}", _SOURCE]
    for name in _NAMES:
        flags = f", flags={{'{_FLAGS[name]}'}}" if name in _FLAGS else ""
        lines.append(
            f"redis.register_function{{function_name='{name}_{_TAG}', callback={name}{flags}}}"
        )
    return "\n".join(lines)


def script_source(name: str) -> str:
    """One function as a script for EVAL."""
    return f"{_SOURCE}\nreturn {name}(KEYS, ARGV)"


class Client(Protocol):
    """The part of a Redis client that the store uses."""

    def execute_command(self, *command: Any) -> Any:
        """Run one command."""
        ...

    def pipeline(self, transaction: bool = True) -> Any:
        """Collect commands and send them in one write."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


class Functions:
    """The functions on one server. Loads them when the server does not have them yet."""

    def __init__(self) -> None:
        self._full = {name: f"{name}_{_TAG}" for name in _NAMES}
        self._scripts: dict[str, tuple[str, str]] = {}
        self._as_scripts = False

    def call(self, client: Client, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one function. Errors are the client library's."""
        if not self._as_scripts:
            try:
                return self._fcall(client, name, keys, args)
            except redis.ResponseError as error:
                if "function not found" in str(error).lower():
                    self.load(client)
                elif _CANNOT.search(str(error).lower()):
                    self._as_scripts = True
                else:
                    raise
        if not self._as_scripts:
            return self._fcall(client, name, keys, args)
        return self._call_script(client, name, keys, args)

    def load(self, client: Client) -> None:
        """Load the library, or settle for scripts where the server cannot have it."""
        try:
            client.execute_command("FUNCTION", "LOAD", library_source())
        except redis.ResponseError as error:
            text = str(error).lower()
            if "already exists" in text:
                return
            if not _CANNOT.search(text):
                raise
            self._as_scripts = True

    def _fcall(self, client: Client, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return client.execute_command("FCALL", self._full[name], len(keys), *keys, *args)

    def _call_script(
        self, client: Client, name: str, keys: Sequence[str], args: Sequence[Any]
    ) -> Any:
        if name not in self._scripts:
            source = script_source(name)
            # EVALSHA names a script by SHA-1; this is an address, not a signature.
            digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
            self._scripts[name] = source, digest
        source, digest = self._scripts[name]
        try:
            return client.execute_command("EVALSHA", digest, len(keys), *keys, *args)
        except redis.exceptions.NoScriptError:
            return client.execute_command("EVAL", source, len(keys), *keys, *args)
