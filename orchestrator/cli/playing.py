"""Play one episode under the eyes of a watcher and the hand of a person.

Puts together what `run` needs and nothing else does: log mode, signals, the episode, the closing
words and the exit status.
"""

from __future__ import annotations

import sys
from typing import TextIO

from orchestrator.cli import printing
from orchestrator.console.commands import resume_command
from orchestrator.console.modes import choose_mode, make_watcher
from orchestrator.console.summary import summary
from orchestrator.console.text import plain
from orchestrator.console.watcher import INTERRUPTED, Watcher
from orchestrator.episode import run_episode
from orchestrator.session import StopFlag
from orchestrator.settings import Resolved
from orchestrator.spec import EpisodeResult
from orchestrator.stopping import EXIT_INTERRUPTED, stop_on_signals


def play(resolved: Resolved, resume: str | None, as_json: bool) -> int:
    """Run or resume one episode, show it, and return the exit status.

    Args:
        resolved: Settings.
        resume: Run to finish, or None to start one.
        as_json: Print the result as one JSON document on stdout; the log goes to stderr.
    """
    out = resolved.settings.out
    stream = sys.stderr if as_json else sys.stdout
    mode, word = choose_mode(resolved.settings.log, stream, as_json)
    if word:
        printing.talk(word)
    flag = StopFlag()
    watcher = make_watcher(mode, stream, flag.request)

    def first_signal() -> str:
        return "\nfinishing this step; again to stop at once"

    def second_signal() -> dict[int, str]:
        words = watcher.last_words()
        resume_line = f"resume: {resume_command(watcher.run, out)}" if watcher.run else ""
        return {_descriptor(stream): words, 2: resume_line}

    with stop_on_signals(flag, first_signal, second_signal):
        try:
            with watcher:
                result = _episode(resolved, resume, watcher, flag)
        except BaseException:
            if watcher.run and not watcher.result:
                printing.talk(f"resume: {resume_command(watcher.run, out)}")
            raise
        return _close(result, watcher, mode, out, as_json)


def _episode(
    resolved: Resolved, resume: str | None, watcher: Watcher, flag: StopFlag
) -> EpisodeResult:
    settings = resolved.store_settings()
    if resume is None:
        return run_episode(resolved.episode_spec(), watcher, flag, settings)
    from orchestrator.resume import resume_episode

    out, store = resolved.settings.out, resolved.named_store
    return resume_episode(resume, out, store, watcher, flag, settings)


def _close(result: EpisodeResult, watcher: Watcher, mode: str, out: str, as_json: bool) -> int:
    """Say what it came to. The line protocol and JSON own stdout; the talk goes to stderr."""
    interrupted = result.stop_reason == INTERRUPTED
    if as_json:
        printing.document(result.model_dump(mode="json"))
    if not as_json or interrupted:
        tell = printing.say if mode == "live" else printing.talk
        if mode != "quiet" and watcher.header.get("store"):
            tell(f"store:  {plain(watcher.header['store'])}")
        for line in summary(result, watcher.targets, out):
            tell(line)
    return EXIT_INTERRUPTED if interrupted else 0


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return 1
