"""Every error that the war room raises on purpose, drawn once where it is read.

    WarRoomError(what, why, fix)
    ├── UserError                 somebody typed or wrote something that cannot work      exit 2
    │   ├── ConfigError
    │   ├── UnknownNameError      scenario, persona, protocol, run … that does not exist
    │   ├── ScenarioError         a scenario file that is malformed or contradicts itself
    │   └── ImportFileError       a bill or metrics file that cannot be read as one
    ├── PersonaError              a persona failed; recorded in the trace, never ends the episode
    │   ├── InvalidProposalError
    │   ├── PersonaTimeoutError
    │   └── ModelError
    ├── ProtocolError             a negotiation could not be run to its end
    │   ├── NoAgreementError
    │   └── RoundLimitError
    ├── WorldError                the shared world refused                               exit 1 or 3
    │   ├── InadmissibleActionError
    │   ├── StaleWorldError       WR_STALE: the world is ahead of the caller
    │   ├── BehindWorldError      WR_BEHIND: the server lost acknowledged steps
    │   ├── LeaseLostError        WR_FENCED: a newer orchestrator holds the episode
    │   ├── EpisodeClosedError    WR_CLOSED
    │   ├── EpisodeMissingError   WR_NOEPISODE
    │   └── StoreUnavailableError no answer, wrong password, OOM, read-only …            exit 3
    ├── TraceError                a trace that is not what it says                       exit 1
    │   ├── SchemaVersionError
    │   └── DigestMismatchError
    └── MissingExtraError         an optional dependency is not installed                exit 3

A message has three parts: what happened with the value, why it is wrong, what to type next.
"""

from __future__ import annotations


class WarRoomError(Exception):
    """Root of the tree.

    Args:
        what: What happened, with the offending value.
        why: Why that is wrong.
        fix: What to type or change next.
    """

    exit_code: int = 1

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what = what
        self.why = why
        self.fix = fix
        super().__init__(self.line())

    def line(self) -> str:
        """The whole message on one line."""
        parts = [self.what.rstrip(".")]
        if self.why:
            parts[0] += f" ({self.why.rstrip('.')})"
        if self.fix:
            parts.append(self.fix)
        return " ".join(". ".join(parts).split())

    def as_dict(self) -> dict[str, str]:
        """The three parts, for ``--json``."""
        return {"what": self.what, "why": self.why, "fix": self.fix}

    def __reduce__(self) -> tuple[type[WarRoomError], tuple[str, str, str]]:
        return (type(self), (self.what, self.why, self.fix))


class UserError(WarRoomError):
    """Wrong usage or bad input."""

    exit_code = 2


class ConfigError(UserError):
    """An option, setting or environment variable has a value that cannot work."""


class UnknownNameError(UserError):
    """A name that is not in the list it was looked up in."""


class ScenarioError(UserError):
    """A scenario file is malformed or contradicts itself."""


class ImportFileError(UserError):
    """A bill, metrics or trace file cannot be read as one."""


class PersonaError(WarRoomError):
    """A persona failed. The room records it and goes on."""


class InvalidProposalError(PersonaError):
    """A persona proposed something that is not in the catalogue."""


class PersonaTimeoutError(PersonaError):
    """A persona did not answer before its deadline."""


class ModelError(PersonaError):
    """A language model call failed."""


class ProtocolError(WarRoomError):
    """A negotiation could not be run to its end."""


class NoAgreementError(ProtocolError):
    """No candidate was acceptable and no fallback applied."""


class RoundLimitError(ProtocolError):
    """A protocol asked for more rounds than it may."""


class WorldError(WarRoomError):
    """The shared world refused."""


class InadmissibleActionError(WorldError):
    """An action that this world cannot take in this state."""

    exit_code = 2


class StaleWorldError(WorldError):
    """``WR_STALE``: the world is already past the expected step."""


class BehindWorldError(WorldError):
    """``WR_BEHIND``: the server lost steps that it had acknowledged.

    Args:
        what: What happened.
        why: Why.
        fix: What to do.
        step: The step that the server is at.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", step: int = -1) -> None:
        self.step = step
        super().__init__(what, why, fix)

    def __reduce__(self) -> tuple[type[WarRoomError], tuple[str, str, str]]:
        return (type(self), (self.what, self.why, self.fix, self.step))  # type: ignore[return-value]


class LeaseLostError(WorldError):
    """``WR_FENCED``: a newer orchestrator holds this episode."""


class EpisodeClosedError(WorldError):
    """``WR_CLOSED``: the episode has ended."""


class EpisodeMissingError(WorldError):
    """``WR_NOEPISODE``: the store does not hold this episode."""


class StoreUnavailableError(WorldError):
    """The store does not answer, or refuses to write."""

    exit_code = 3


class TraceError(WarRoomError):
    """A trace is not what it says it is."""


class SchemaVersionError(TraceError):
    """A trace of a schema that this version does not read."""


class DigestMismatchError(TraceError):
    """A hash does not match its content."""


class MissingExtraError(WarRoomError):
    """An optional dependency is not installed."""

    exit_code = 3
