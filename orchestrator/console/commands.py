"""Commands to copy: the next thing to type, quoted for a shell and without secrets."""

from __future__ import annotations

import shlex

from orchestrator.console.text import plain, without_secrets
from orchestrator.version import PROGRAM

_DEFAULT_OUT = "runs"


def resume_command(run: str, out: str) -> str:
    """The command that finishes a run that was stopped."""
    return command("run", "--resume", run, *out_words(out))


def command(*words: str) -> str:
    """A command line to copy, quoted for a shell, without secrets."""
    return f"{PROGRAM} {' '.join(shlex.quote(without_secrets(plain(word))) for word in words)}"


def out_words(out: str) -> tuple[str, ...]:
    """The words that name a runs folder; none for the default one."""
    return () if out == _DEFAULT_OUT else ("--out", out)
