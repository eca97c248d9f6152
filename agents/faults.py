"""How a seat fails: a fault that the room records, or a refusal that ends the run.

Most failures of a backend are faults: the room records what happened, puts a fallback in its
place and goes on. Two are not. Somebody at the keyboard may leave, and a recording that no longer
fits the situation must not be papered over. Both end the run between two steps, so that nothing
is decided in their name and the run can be resumed.
"""

from __future__ import annotations

from policies.records import Note, Usage
from world.errors import PersonaError, WarRoomError


class SeatFault(PersonaError):
    """A backend has no answer. Recorded as a fallback in the words of `line`; never ends a run.

    Args:
        kind: One word for statistics: ``no_answer``, ``refused``, ``timeout``, ``garbage`` …
        what: What happened, for people.
    """

    def __init__(self, kind: str, what: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {what}")

    def __reduce__(self) -> tuple[type[SeatFault], tuple[str, str]]:  # type: ignore[override]
        return (type(self), (self.kind, self.what.partition(": ")[2]))


class SpentFault(SeatFault):
    """A fault that may have cost something: that is counted and recorded all the same.

    Args:
        kind: One word for statistics.
        what: What happened, for people.
        usage: What was spent.
        notes: What the trace records of it.
        by_rules: Whether the seat's rule speaks whatever the persona's file says.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        usage: Usage = Usage(),  # noqa: B008 - frozen
        notes: tuple[Note, ...] = (),
        by_rules: bool = False,
    ) -> None:
        self.usage = usage
        self.notes = notes
        self.by_rules = by_rules
        super().__init__(kind, what)


class SeatEndsRun(BaseException):
    """A seat that must not be replaced by a fallback. Not an `Exception`, so that none is made.

    Attributes:
        error: What to report; None where a person left and the run merely pauses.
    """

    def __init__(self, error: WarRoomError | None = None) -> None:
        self.error = error
        super().__init__(error.line() if error else "the person left")
