"""A seat at the table: what the engine may ask it, and who voices it.

The engine owns identity, order and deadlines. A persona answers one `Request` with one `Reply`,
at once or as an awaitable; whatever it returns is data to be checked (`agents.validate`), and
whatever it raises is recorded and replaced, so that no persona can end an episode.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from agents.persona_schema import RULES_SECONDS, PersonaSpec
from policies.records import Reply, Request
from world.errors import ConfigError

if TYPE_CHECKING:
    from agents.backends.llm.desk import ModelDesk

RULES_DEADLINE_S = RULES_SECONDS
"""Shortest deadline of a rule persona: a busy machine must never turn a rule into a time-out."""
DEFAULT_DEADLINE_S = 30.0
LLM_GRACE_S = 2.0
"""What the engine waits past an llm seat's own deadline, so that the seat can say what it met."""
HUMAN_DEADLINE_S = 300.0
"""How long a person may think where the file does not say."""
_PEOPLE_AT_ONE_TERMINAL = 16


@runtime_checkable
class Persona(Protocol):
    """Whoever speaks for one seat.

    Attributes:
        spec: The persona's file, resolved.
        seat: The seat it speaks for; given by the engine, never taken from text.
        blocking: False says that `answer` is pure and quick and may run inline; True says that it
            may wait, so that the engine runs it in a daemon thread with a deadline. An awaitable
            answer gets its deadline either way.
    """

    @property
    def spec(self) -> PersonaSpec:
        """The persona's file, resolved."""
        ...

    @property
    def seat(self) -> str:
        """The seat it speaks for."""
        ...

    @property
    def blocking(self) -> bool:
        """Whether `answer` may wait."""
        ...

    def answer(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer one question. May raise anything; the engine records it as a fallback."""
        ...


def is_asynchronous(persona: Persona) -> bool:
    """Whether a persona declares that it answers with awaitables (``asynchronous = True``).

    Its seats are then awaited together, in an event loop. An awaitable of a persona that does not
    declare it is waited for on the spot.
    """
    return bool(getattr(persona, "asynchronous", False))


def is_journalled(persona: Persona) -> bool:
    """Whether a persona declares that its replies are paid for (``journalled = True``).

    The store then keeps each reply before it is used, so that a step that is executed again after
    a crash or an interrupt asks nobody twice.
    """
    return bool(getattr(persona, "journalled", False))


def make_persona(spec: PersonaSpec, seat: str, desk: ModelDesk | None = None) -> Persona:
    """The persona that voices `spec` at `seat`.

    Args:
        spec: Its file.
        seat: Its seat.
        desk: What the room's language models share; an llm seat needs it.

    Raises:
        ConfigError: The file names a rule, a script or an extension that cannot work.
        UnknownNameError: The file names a module or an object that does not exist.
    """
    kind = spec.backend.kind
    if kind == "rules":
        from agents.backends.rules import RulePersona

        return RulePersona.of(spec, seat)
    if kind == "scripted":
        from agents.backends.scripted import ScriptedPersona

        return ScriptedPersona.of(spec, seat)
    if kind == "llm":
        if desk is None:
            raise ConfigError(
                f"persona {spec.id!r} speaks through a model",
                "nobody said which endpoint, budget and recording its seats share",
                "Build the room with orchestrator.room.build_room, or pass a ModelDesk",
            )
        from agents.backends.llm.persona import LLMPersona

        return LLMPersona(spec, seat, desk)
    if kind == "human":
        from agents.backends.human import HumanPersona

        return HumanPersona.of(spec, seat)
    if kind == "remote":
        from agents.backends.remote import RemotePersona

        return RemotePersona.of(spec, seat)
    if kind == "learned":
        from agents.backends.learned import LearnedPersona

        return LearnedPersona.of(spec, seat)
    if kind == "replay":
        from agents.backends.replay import ReplayPersona

        return ReplayPersona.of(spec, seat)
    from agents.backends.extension import load_extension

    return load_extension(spec, seat)


def deadline_s(spec: PersonaSpec) -> float:
    """Seconds that this persona may take for one answer.

    A rule persona gets at least 30 s whatever its file says: it is deterministic, and a deadline
    that fires on a slow machine would make two runs of the same thing differ.
    """
    asked = spec.backend.timeout_s
    if spec.backend.kind == "rules":
        return max(RULES_DEADLINE_S, asked or 0.0)
    if spec.backend.kind == "human":
        # A person's own deadline runs from the moment of the prompt, and people at one terminal
        # are asked one after the other; this outer one only guards against a prompt that hangs.
        return _PEOPLE_AT_ONE_TERMINAL * ((asked or HUMAN_DEADLINE_S) + 1.0)
    seconds = DEFAULT_DEADLINE_S if asked is None else asked
    return seconds + LLM_GRACE_S if spec.backend.kind == "llm" else seconds
