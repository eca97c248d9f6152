"""Play one episode under the eyes of a watcher and the hand of a person.

Puts together what `run` needs and nothing else does: log mode, signals, the episode, the closing
words and the exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from orchestrator.cli import printing
from orchestrator.console.commands import naming_store, resume_command, store_words
from orchestrator.console.modes import choose_mode, make_watcher
from orchestrator.console.summary import answer_command, summary
from orchestrator.console.text import plain
from orchestrator.console.watcher import INTERRUPTED, Watcher
from orchestrator.episode import run_episode
from orchestrator.session import StopFlag
from orchestrator.settings import Resolved
from orchestrator.spec import EpisodeResult
from orchestrator.stopping import EXIT_INTERRUPTED, stop_on_signals
from world.errors import WarRoomError


def play(
    resolved: Resolved,
    resume: str | None,
    as_json: bool,
    answers: Mapping[str, str] | None = None,
) -> int:
    """Run or resume one episode, show it, and return the exit status.

    Args:
        resolved: Settings.
        resume: Run to finish, or None to start one.
        as_json: Print the result as one JSON document on stdout; the log goes to stderr.
        answers: With `resume`: seat → what its person answers.
    """
    with printing.answers_only() as stream:
        return _play(resolved, resume, as_json, sys.stderr if as_json else stream, answers or {})


def _play(
    resolved: Resolved,
    resume: str | None,
    as_json: bool,
    stream: TextIO,
    answers: Mapping[str, str],
) -> int:
    out = resolved.settings.out
    store = store_words(resolved.store, resolved.store_origin)
    mode, word = choose_mode(resolved.settings.log, stream, as_json)
    if mode == "live" and _asks_people(resolved, resume):
        mode, word = "lines", "somebody is asked at this terminal; writing lines instead"
    if word:
        printing.talk(word)
    flag = StopFlag()

    def broken(why: str) -> None:
        flag.request()
        if why:
            printing.talk(f"error: the log cannot be written ({why}); the run stops here")

    watcher = make_watcher(mode, stream, broken)

    def resume_line() -> str:
        return f"resume: {resume_command(watcher.run, out, store)}" if watcher.run else ""

    def first_words() -> str:
        return "\nfinishing this step; again to stop at once"

    def last_words() -> dict[int, str]:
        if stream is sys.stderr:
            return {2: f"{watcher.last_words()}\n{resume_line()}".strip("\n")}
        return {_descriptor(stream): watcher.last_words(), 2: resume_line()}

    with stop_on_signals(flag, lambda: watcher.begun, first_words, last_words):
        try:
            with watcher:
                result = _episode(resolved, resume, watcher, flag, answers)
        except BaseException as error:
            if watcher.run and not watcher.result:
                printing.talk(resume_line())
            if isinstance(error, WarRoomError):
                error.fix = naming_store(error.fix, store)
            raise
        return _close(result, watcher, mode, (out, store), as_json)


def _episode(
    resolved: Resolved,
    resume: str | None,
    watcher: Watcher,
    flag: StopFlag,
    answers: Mapping[str, str],
) -> EpisodeResult:
    settings = resolved.store_settings()
    if resume is None:
        return run_episode(resolved.episode_spec(), watcher, flag, settings)
    from orchestrator.resume import resume_episode

    out, store = resolved.settings.out, resolved.named_store
    return resume_episode(
        resume,
        out,
        store,
        watcher,
        flag,
        settings,
        base_url=resolved.settings.base_url,
        answers=answers,
    )


def _asks_people(resolved: Resolved, resume: str | None) -> bool:
    """Whether this run will put questions to this terminal, which a moving picture would cover."""
    spec = resolved.episode_spec()
    if resume is not None:
        from orchestrator.resume import recorded_spec

        spec = recorded_spec(resume, resolved.settings.out, resolved.named_store)
    if spec.checkpointer != "none":
        return False
    if spec.approve != "none" or spec.human:
        return True
    from orchestrator.room import seated_personas

    return any(persona.backend.kind == "human" for persona in seated_personas(spec).values())


def _close(
    result: EpisodeResult, watcher: Watcher, mode: str, place: tuple[str, str], as_json: bool
) -> int:
    """Say what it came to. The line protocol and JSON own stdout; the talk goes to stderr."""
    interrupted = result.stop_reason == INTERRUPTED
    if as_json:
        printing.document(result.model_dump(mode="json"))
    if not as_json or interrupted:
        tell = printing.say if mode == "live" else printing.talk
        if mode != "quiet" and watcher.header.get("store"):
            tell(f"store:  {plain(watcher.header['store'])}")
        for line in summary(result, watcher.targets, *place):
            tell(line)
    if result.questions and not as_json:
        for question in result.questions:
            printing.talk(_question_text(question))
        printing.talk(f"answer: {answer_command(result, *place)}")
    return EXIT_INTERRUPTED if interrupted else 0


def _question_text(question: Mapping[str, Any]) -> str:
    from orchestrator.approval import APPROVE, gate_text

    if question["seat"] == APPROVE:
        return gate_text(dict(question))
    from agents.backends.human_menu import Question, question_text

    return question_text(Question.from_json(question))


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return 1
