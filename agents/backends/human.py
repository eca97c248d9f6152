"""A person at a seat: asked at the terminal, with a deadline, a default and no way to hang.

The default is what the seat's file says under ``backend.fallback``: the rule of its role, or
nothing. It is taken when the deadline passes, when the input ends, and at once where there is no
terminal; each time it is recorded as a fallback. Ctrl-C takes no default: the run pauses before
the step, and the person is asked again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agents.backends.human_menu import (
    BadAnswer,
    Question,
    found_text,
    question_of,
    question_text,
    read_answer,
)
from agents.backends.human_terminal import Terminal, say_once
from agents.faults import SeatFault
from agents.persona_schema import PersonaSpec
from agents.seat import HUMAN_DEADLINE_S
from policies.records import Reply, Request

_HELP_WORDS = frozenset({"?", "h", "help"})
_MOST_MISTAKES = 50


@dataclass
class HumanPersona:
    """A person at one seat.

    Attributes:
        spec: The seat's file; its objectives still value the options, its fallback is the default.
        seat: The seat.
        interactive: Whether a terminal may be asked at all; a sweep may not.
        stopped: Whether the run was asked to stop.
    """

    spec: PersonaSpec
    seat: str
    interactive: bool = False
    stopped: Callable[[], bool] = field(default=lambda: False)

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> HumanPersona:
        """The person at a seat."""
        return HumanPersona(spec, seat)

    @property
    def blocking(self) -> bool:
        """A person takes time."""
        return True

    @property
    def journalled(self) -> bool:
        """Nobody is asked the same thing twice, not even after a crash."""
        return True

    @property
    def deadline_s(self) -> float:
        """Seconds that the person has for one answer."""
        return self.spec.backend.timeout_s or HUMAN_DEADLINE_S

    def begin_run(self, stopped: Callable[[], bool], interactive: bool) -> None:
        """Called by the engine before the first step."""
        self.stopped, self.interactive = stopped, interactive

    def question(self, request: Request) -> Question:
        """What the person is asked, as plain data, for any front end."""
        return question_of(self.spec, request, self.deadline_s)

    def read(self, request: Request, text: str) -> Reply:
        """The reply that a typed line means.

        Raises:
            BadAnswer: It means none.
        """
        return read_answer(self.question(request), request, text)

    def answer(self, request: Request) -> Reply:
        """Ask at the terminal.

        Raises:
            SeatFault: ``no_answer``; the engine records it and the default speaks.
            SeatEndsRun: The run was asked to stop meanwhile.
        """
        terminal = Terminal.find(self.stopped) if self.interactive else None
        if terminal is None:
            say_once(
                f"note: there is no terminal to ask at: the seat {self.seat} takes its default "
                f"({self.default}) each time; the trace says so"
            )
            raise SeatFault("no_answer", "there is no terminal")
        question = self.question(request)
        heard: list[Reply] = []
        mistakes = 0

        def hear(line: str) -> str:
            nonlocal mistakes
            if line.lower() in _HELP_WORDS:
                return question_text(question, full=True)
            if line.startswith("?"):
                return found_text(request, line[1:].strip())
            try:
                heard.append(read_answer(question, request, line))
            except BadAnswer as error:
                mistakes += 1
                if mistakes >= _MOST_MISTAKES:
                    raise SeatFault("no_answer", f"{mistakes} lines meant nothing") from error
                return f"   {error}"
            return ""

        terminal.converse(question_text(question), self.seat, hear, self.deadline_s)
        return heard[-1]

    @property
    def default(self) -> str:
        """What speaks when the person does not, in words."""
        if self.spec.backend.fallback == "rules":
            return "the rule of its role"
        return "no proposal"
