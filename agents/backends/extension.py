"""Personas that somebody else wrote: ``python:package.module:name``.

The name is called with ``(spec, seat)`` and returns a persona: anything with an `answer`. What it
lacks of ``spec``, ``seat`` and ``blocking`` is supplied here; unless it says otherwise it is
taken to block, so that it runs in a thread with a deadline. What it prints while it is imported
and made goes to standard error, and an attempt to end the process is a fault of the file.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agents.persona_schema import PersonaSpec
from policies.records import Reply, Request
from world.errors import ConfigError, UnknownNameError, WarRoomError


@dataclass(frozen=True, slots=True)
class ExtensionPersona:
    """A foreign persona at one seat.

    Attributes:
        spec: Its file.
        seat: Its seat; the engine's word, whatever the object says.
        blocking: Whether it may wait.
        speak: The object's own `answer`.
        asynchronous: Whether it declares that it answers with awaitables.
        journalled: Whether it declares that its replies are paid for, so that the store keeps
            each before it is used.
    """

    spec: PersonaSpec
    seat: str
    blocking: bool
    speak: Callable[[Request], Reply | Awaitable[Reply]]
    asynchronous: bool = False
    journalled: bool = False

    def answer(self, request: Request) -> Reply | Awaitable[Reply]:
        """Pass the question on."""
        return self.speak(request)


def load_extension(spec: PersonaSpec, seat: str) -> ExtensionPersona:
    """Import the named object and make the persona.

    Raises:
        UnknownNameError: No such module or name in it.
        ConfigError: The module fails to import, or the object makes no persona.
    """
    place = spec.backend.kind.removeprefix("python:")
    module_name, _, path = place.partition(":")
    where = f"persona {spec.id!r}: backend {spec.backend.kind!r}"
    factory = _object(where, module_name, path)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            made = factory(spec, seat)
    except WarRoomError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{where} failed when called with (spec, seat)",
            f"{type(error).__name__}: {error}",
            "It must take the persona's file and its seat, and return an object with answer()",
        ) from error
    speak = getattr(made, "answer", None)
    if not callable(speak):
        raise ConfigError(
            f"{where} made a {type(made).__name__}",
            "it has no method answer(request)",
            "Return an object with answer()",
        )
    blocking = getattr(made, "blocking", True)
    return ExtensionPersona(
        spec,
        seat,
        blocking is not False,
        speak,
        asynchronous=getattr(made, "asynchronous", False) is True,
        journalled=getattr(made, "journalled", False) is True,
    )


def _object(where: str, module_name: str, path: str) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UnknownNameError(
            where, f"there is no module {error.name!r}", "Put its folder on PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(
            where, f"importing it failed: {type(error).__name__}: {error}", "Correct the module"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UnknownNameError(
                where, f"{module_name!r} has no {path!r}", "Name a class or function in it"
            )
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(where, f"{path!r} cannot be called", "Name a class or function")
    return found
