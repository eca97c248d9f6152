"""Play one episode under the eyes of a watcher and the hand of a person.

Puts together what `run` needs and nothing else does: log mode, signals, the episode, the closing
words and the exit status.
"""

from __future__ import annotations

import sys
from typing import TextIO

from orchestrator.cli import printing
from orchestrator.console.commands import naming_store, resume_command, store_words
from orchestrator.console.modes import choose_mode, make_watcher
from orchestrator.console.summary import summary
from orchestrator.console.text import plain
from orchestrator.console.watcher import INTERRUPTED, Watcher
from orchestrator.episode import run_episode
from orchestrator.session import StopFlag
from orchestrator.settings import Resolved
from orchestrator.spec import EpisodeResult
from orchestrator.stopping import EXIT_INTERRUPTED, stop_on_signals
from world.errors import WarRoomError


def play(resolved: Resolved, resume: str | None, as_json: bool) -> int:
    """Run or resume one episode, show it, and return the exit status.

    Args:
        resolved: Settings.
        resume: Run to finish, or None to start one.
        as_json: Print the result as one JSON document on stdout; the log goes to stderr.
    """
    with printing.answers_only() as answers:
        return _play(resolved, resume, as_json, sys.stderr if as_json else answers)


def _play(resolved: Resolved, resume: str | None, as_json: bool, stream: TextIO) -> int:
    out = resolved.settings.out
    store = store_words(resolved.store, resolved.store_origin)
    mode, word = choose_mode(resolved.settings.log, stream, as_json)
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
                result = _episode(resolved, resume, watcher, flag)
        except BaseException as error:
            if watcher.run and not watcher.result:
                printing.talk(resume_line())
            if isinstance(error, WarRoomError):
                error.fix = naming_store(error.fix, store)
            raise
        return _close(result, watcher, mode, (out, store), as_json)


def _episode(
    resolved: Resolved, resume: str | None, watcher: Watcher, flag: StopFlag
) -> EpisodeResult:
    settings = resolved.store_settings()
    if resume is None:
        return run_episode(resolved.episode_spec(), watcher, flag, settings)
    from orchestrator.resume import resume_episode

    out, store = resolved.settings.out, resolved.named_store
    return resume_episode(resume, out, store, watcher, flag, settings)


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
    return EXIT_INTERRUPTED if interrupted else 0


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return 1
