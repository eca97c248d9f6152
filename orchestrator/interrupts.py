"""People who answer from elsewhere: run until somebody is asked, list the questions, answer them.

With ``--checkpointer sqlite|redis`` a seat with a person, and the human gate, do not ask at the
terminal: the graph is interrupted and the run waits, in no process at all. Any front end can list
what it waits for and answer, in another process and much later:

    result = run_episode(spec)              # stop_reason "waiting", result.questions
    questions = pending(run, out)           # the same, at any time, without driving anything
    result = answer(run, {"cost": "2"}, out)

An answer is what would be typed at the terminal: a number, an action id, ``pass``, or ``default``
for what stands in when nobody answers. The store is the record: the graph's checkpoint only says
which question is open; everything else is played again from committed decisions and from the
journal, so that bots that were asked are not asked twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.backends.human import HumanPersona
from agents.backends.human_menu import BadAnswer
from agents.validate import cleaned_text, fallback_reply
from orchestrator import approval, phases
from orchestrator.answering import ask_all_now
from orchestrator.session import Session
from orchestrator.spec import EpisodeResult, Observer
from policies.records import Reply, Request
from world.errors import ConfigError, UnknownNameError
from world.store.base import StoreSettings

DEFAULT = "default"
"""The answer that takes what stands in for a person who does not answer."""
NOBODY = "no_answer: the person left it to the default"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits.

    Attributes:
        run: Run id.
        step: Steps committed so far.
        questions: JSON-plain; each has ``seat``, ``kind``, ``step``, ``options`` and ``deadline_s``
            (see `agents.backends.human_menu.Question`), or is the human gate's (``seat`` is
            ``approve``).
    """

    run: str
    step: int
    questions: tuple[Mapping[str, Any], ...]


def pending(run: str, out: str = "runs") -> Waiting:
    """What a run waits for. Reads its checkpoints and drives nothing.

    Args:
        run: Run id, ``last``, or the path of a run folder.
        out: Parent folder of the runs.

    Raises:
        UnknownNameError: There is no such run, or it keeps no sqlite checkpoints.
    """
    from orchestrator.trace.reader import find_run

    folder = find_run(run, Path(out)).parent
    path = folder / "checkpoints.sqlite"
    if not path.is_file():
        raise UnknownNameError(
            f"run {folder.name} keeps no checkpoints here",
            "it was not started with --checkpointer sqlite",
            f"Resume it to see what it waits for: run_warroom.py run --resume {folder.name}",
        )
    from orchestrator.graph import stored_interrupts

    step, questions = stored_interrupts(path, folder.name)
    return Waiting(folder.name, step, questions)


def answer(
    run: str,
    answers: Mapping[str, str],
    out: str = "runs",
    store: str | None = None,
    observer: Observer | None = None,
    settings: StoreSettings | None = None,
) -> EpisodeResult:
    """Answer what a run waits for, and drive it until it is over or waits again.

    Args:
        run: Run id, ``last``, or the path of a run folder.
        answers: Seat, or ``approve`` → what would be typed. Who is left out is asked again.
        out: Parent folder of the runs.
        store: Overrides the store that the run was started on.
        observer: Somebody who watches.
        settings: Where an embedded store lives.

    Raises:
        ConfigError: Nobody asked that seat, or the answer means nothing; nothing was changed.
    """
    from orchestrator.resume import resume_episode

    return resume_episode(run, out, store, observer, settings=settings, answers=answers)


# -- what the graph calls --------------------------------------------------------------------


def question(session: Session, asked: Request) -> dict[str, Any] | None:
    """What the person at a seat is asked by interrupt; None where the seat is asked directly."""
    persona = session.room.personas[asked.ask.seat]
    if not session.room.pauses or not isinstance(persona, HumanPersona):
        return None
    return persona.question(asked).as_json()


def reply(session: Session, asked: Request, text: Any) -> Reply:
    """The reply that an answer means; one that means nothing is a recorded fallback."""
    persona = session.room.personas[asked.ask.seat]
    reason = NOBODY
    if isinstance(persona, HumanPersona) and isinstance(text, str) and text.strip() != DEFAULT:
        try:
            return persona.read(asked, text)
        except BadAnswer as error:
            reason = f"no_answer: {error}"
    return fallback_reply(session.room.world, asked, reason, persona.spec)


def verdict(text: Any) -> approval.Verdict:
    """The verdict that an answer to the human gate means; what means nothing is a refusal."""
    try:
        return approval.read_verdict(str(text))
    except ValueError:
        return approval.Verdict(False, NOBODY)


def catch_up(session: Session) -> None:
    """Bring a session that stands between two steps to the question at which the graph stands.

    Rules are asked again (they answer the same), everybody else's replies come from the journal.
    """
    people = session.room.people
    phases.observe(session)
    decided = False
    while not decided:
        waiting = phases.pending(session)
        bots = tuple(asked for asked in waiting if asked.ask.seat not in people)
        replies = ask_all_now(session.room.personas, bots)
        for asked in bots:
            phases.receive(session, asked, replies[asked.ask.seat])
        if len(bots) < len(waiting):
            return
        decided = phases.negotiate(session)
    while (gated := approval.gate(session)) is not None:
        known = approval.remembered(session, gated)
        if known is None:
            return
        approval.rule(session, gated, known)


def accepted(session: Session) -> dict[str, str]:
    """The answers that were given, by seat, checked against the open questions.

    Raises:
        ConfigError: A seat that is not asked, or an answer that means nothing.
    """
    open_seats = [str(each["seat"]) for each in session.questions]
    for seat, text in session.answers.items():
        if seat not in open_seats:
            raise ConfigError(
                f"--answer {seat}=…: nobody is asked there",
                f"this run waits for {', '.join(open_seats)}",
                f"Answer that: --answer {open_seats[0]}=…",
            )
        if text.strip() == DEFAULT:
            continue
        try:
            if seat == approval.APPROVE:
                approval.read_verdict(text)
            else:
                persona = session.room.personas[seat]
                if isinstance(persona, HumanPersona):
                    persona.read(session.waiting[seat], text)
        except ValueError as error:
            shown = cleaned_text(text, 60)
            raise ConfigError(f"--answer {seat}={shown}", str(error), "") from error
    return dict(session.answers)


def refuse_stray(session: Session) -> None:
    """Refuse answers where the run waits for none.

    Raises:
        ConfigError: There are some.
    """
    if session.answers:
        raise ConfigError(
            f"--answer {next(iter(session.answers))}=…: this run waits for no answer",
            f"it stands after step {session.step}",
            "Resume it without --answer",
        )
