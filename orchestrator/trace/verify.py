"""Says whether a trace is whole, unchanged and complete.

Every byte of the file is accounted for: the hash of a line covers the line, the next line covers
the hash, and what a hash cannot see (a second member of the same name, an escape that need not
be) is no canonical JSON. What no chain can prove is that somebody did not make the whole file
anew: keep the final ``sha`` elsewhere and compare it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.trace.events import GENESIS, Event, canonical
from orchestrator.trace.links import Link, Torn, open_trace, scan
from world.errors import DigestMismatchError, TraceError


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict on one trace.

    Attributes:
        ok: Whether the trace is whole, unchanged and complete.
        events: Events found right, from the first on.
        steps: Steps decided in them.
        sha: Hash of the last link found right.
        first_bad: Line number of the first fault; None where there is none.
        why: What is wrong, in one line; "" when nothing is.
        complete: Whether run_ended was reached.
    """

    ok: bool
    events: int
    steps: int
    sha: str
    first_bad: int | None
    why: str
    complete: bool

    @property
    def exit_code(self) -> int:
        """0 when the trace is ok, else 1."""
        return 0 if self.ok else 1

    def as_json(self) -> dict[str, Any]:
        """The document of ``trace verify --json``."""
        return asdict(self)

    def line(self) -> str:
        """The verdict for people, on one line."""
        found = f"{self.events} events, {self.steps} steps, sha {self.sha}"
        if self.ok:
            return f"ok: {found}"
        where = "incomplete" if self.first_bad is None else f"line {self.first_bad}"
        return f"not ok: {where}: {self.why} ({found} up to there)"


class _Walk:
    """What was seen so far, and the rules that the order of events follows."""

    def __init__(self) -> None:
        self.events = 0
        self.step = 0
        self.sha = GENESIS
        self.ended = False

    def fault(self, link: Link, entry: Event) -> str:
        """Why a line cannot stand where it stands; "" when it can."""
        if self.ended:
            return "an event follows run_ended"
        if (link.type == "run_started") != (self.events == 0):
            return "run_started stands first and nowhere else"
        due = (self.step,) if link.type == "run_ended" else (self.step, self.step + 1)
        if link.step not in due or (
            link.step == 0 and link.type not in {"run_started", "run_ended"}
        ):
            return f"an event of step {link.step} follows step {self.step}"
        if not isinstance(entry.data, dict):
            return "its data is not an object"
        try:
            same = canonical(entry.data) == link.data_json
            same = same and (canonical(entry.agent) if entry.agent else b"") == link.agent_json
        except ValueError as error:
            return str(error)
        return "" if same else "it is not in canonical form"

    def take(self, link: Link) -> None:
        """Count a line that can stand."""
        self.events += 1
        self.step = link.step
        self.sha = link.head.sha
        self.ended = link.type == "run_ended"

    def verdict(self, first_bad: int | None, why: str) -> Verification:
        """The verdict, with the fault found or without."""
        ok = self.ended and first_bad is None
        if self.events and not self.ended and first_bad is None:
            why = f"there is no run_ended: the run stopped after step {self.step}"
        return Verification(ok, self.events, self.step, self.sha, first_bad, why, self.ended)


def verify(path: Path) -> Verification:
    """Check a whole trace file, line by line, in bounded memory.

    Whatever a readable file holds is a verdict, not an error: `Verification.first_bad` names the
    line, also when it is the first of something that is no trace at all.

    Raises:
        TraceError: The file is missing, not a regular file, or not readable.
    """
    open_trace(path).close()
    walk = _Walk()
    try:
        for link in scan(path):
            line = walk.events + 1
            if isinstance(link, Torn):
                return walk.verdict(line, "the file ends within the line")
            why = walk.fault(link, link.event())
            if why:
                return walk.verdict(line, why)
            walk.take(link)
    except DigestMismatchError as error:
        return walk.verdict(walk.events + 1, error.why)
    except TraceError as error:
        return walk.verdict(walk.events + 1, f"{error.what} ({error.why})")
    return walk.verdict(None, "")
