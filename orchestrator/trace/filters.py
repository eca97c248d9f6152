"""Which steps of an episode somebody wants to see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from orchestrator.trace.steps import Header, StepRecord
from orchestrator.trace.untrusted import printable
from world.errors import ConfigError, UnknownNameError

_RANGE = re.compile(r"(\d{0,9})(:?)(\d{0,9})")


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a step must meet, all of them.

    Attributes:
        overridden: Another rule than the protocol's own decided.
        vetoed: A seat vetoed a candidate.
        crisis: Something was visibly wrong (see `StepRecord.crisis`).
        persona: A seat or the persona in it: only steps in which it spoke, only its own lines,
            and `vetoed` then means a veto of its own. "" is everybody.
        first_step: First step, included; None is from the start.
        last_step: Last step, included; None is to the end.
    """

    overridden: bool = False
    vetoed: bool = False
    crisis: bool = False
    persona: str = ""
    first_step: int | None = None
    last_step: int | None = None

    def seats(self, header: Header) -> tuple[str, ...]:
        """Seats to show, in room order.

        Raises:
            UnknownNameError: No seat and no persona has that name.
        """
        personas = header.personas
        if not self.persona:
            return tuple(personas)
        named = tuple(s for s, p in personas.items() if self.persona in {s, p})
        if named:
            return named
        known = sorted({*personas, *personas.values()})
        near = get_close_matches(self.persona, known, n=1, cutoff=0.5)
        raise UnknownNameError(
            f"nobody in this run is called {self.persona[:80]!r}",
            f"there are {', '.join(known)}",
            f"Did you mean {near[0]}?" if near else "Name one of them",
        )

    def no_match(self) -> str:
        """What to say where no step met the conditions."""
        asked = [
            word
            for word, wanted in (
                ("--overridden", self.overridden),
                ("--vetoed", self.vetoed),
                ("--crisis", self.crisis),
                (f"--persona {printable(self.persona, 80)}", self.persona),
                ("--step", self.first_step is not None or self.last_step is not None),
            )
            if wanted
        ]
        return f"no step of this run matches {' '.join(asked)}" if asked else "it has no step"

    def match(self, record: StepRecord, seats: tuple[str, ...]) -> bool:
        """Whether a step is wanted.

        Args:
            record: The step.
            seats: As `seats` gave them.
        """
        if self.first_step is not None and record.step < self.first_step:
            return False
        if self.last_step is not None and record.step > self.last_step:
            return False
        if self.overridden and not record.overridden:
            return False
        if self.crisis and not record.crisis:
            return False
        vetoes = [v for v in record.vetoes if not self.persona or v["seat"] in seats]
        if self.vetoed and not vetoes:
            return False
        spoke = {*record.ballots, *(str(v["seat"]) for v in record.vetoes)}
        spoke.update(entry.agent for entry in record.talk)
        return not self.persona or any(seat in spoke for seat in seats)


def step_range(text: str) -> tuple[int | None, int | None]:
    """Read ``7``, ``3:9``, ``3:`` or ``:9``; both ends are included.

    Raises:
        ConfigError: The text is no range.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is not None and (match[1] or match[3]):
        first = int(match[1]) if match[1] else None
        last = int(match[3]) if match[3] else None
        if not match[2]:
            last = first
        if first is None or last is None or first <= last:
            return first, last
    raise ConfigError(
        f"{text[:40]!r} is no range of steps",
        "a range is FIRST:LAST, both included",
        "For example 7, 3:9, 3: or :9",
    )
