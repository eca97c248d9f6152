"""Commands to copy: the next thing to type, quoted for a shell and without secrets."""

from __future__ import annotations

import re
import shlex

from orchestrator.console.text import plain, without_secrets
from orchestrator.version import PROGRAM

_DEFAULT_OUT = "runs"
_CLEAN = "runs clean"
_WRITTEN = re.compile(
    rf"{re.escape(PROGRAM)}(?=\s|$)|(?:\bpython )?(?<![\w/.-])run_warroom\.py(?=\s|$)"
)
_VARIABLES = ("WARROOM_STORE", "WARROOM_REDIS_URL")


def resume_command(run: str, out: str, store: str = "") -> str:
    """The command that finishes a run that was stopped.

    Args:
        run: Run id.
        out: Parent folder of the runs.
        store: As `store_words` gave it.
    """
    return f"{command('run', '--resume', run, *out_words(out))} {store}".rstrip()


def store_words(store: str, chosen_by: str) -> str:
    """``--store URL`` where a run is kept by a server; "" where its own files say where it is.

    A URL with a password is never printed, not even without it: such a command would be refused.
    The variable that holds it stands there instead, for the shell to fill in.

    Args:
        store: The store in use.
        chosen_by: What chose it: an option, a file, or the name of a variable.
    """
    if "://" not in store:
        return ""
    if without_secrets(store) == store:
        return f"--store {shlex.quote(plain(store))}"
    variable = chosen_by if chosen_by in _VARIABLES else "WARROOM_REDIS_URL"
    return f'--store "${variable}"'


def naming_store(hint: str, store: str) -> str:
    """A hint in which ``runs clean`` names the store that it is to clean.

    Args:
        hint: What to type next.
        store: As `store_words` gave it.
    """
    return hint.replace(_CLEAN, f"{_CLEAN} {store}".rstrip())


def typeable(text: str) -> str:
    """A hint of ours with its commands in the words that start this program here.

    Words that start it here already stay as they are.
    """
    return _WRITTEN.sub(lambda match: PROGRAM, text)


def command(*words: str) -> str:
    """A command line to copy, quoted for a shell, without secrets."""
    return f"{PROGRAM} {' '.join(shlex.quote(without_secrets(plain(word))) for word in words)}"


def out_words(out: str) -> tuple[str, ...]:
    """The words that name a runs folder; none for the default one."""
    return () if out == _DEFAULT_OUT else ("--out", out)
