"""What the words of a command line mean, before any option is read.

No command means ``run``; ``personas cost`` means ``personas show cost``. A word that names no
command is refused here with its nearest neighbours, one that a later version brings by its name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from orchestrator.console.text import close_matches, plain
from orchestrator.later import LATER_COMMANDS, refusal
from orchestrator.version import PROGRAM
from world.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Group:
    """A command with words of its own.

    Attributes:
        words: Its words.
        alone: Word meant when none is given; "" where one must be.
        named: Word meant when a name follows; "" where names are refused.
    """

    words: tuple[str, ...]
    alone: str = ""
    named: str = ""


GROUPS = {
    "runs": Group(("list", "clean"), alone="list"),
    "scenarios": Group(("list", "show", "certify"), alone="list", named="show"),
    "personas": Group(("list", "show", "lint"), alone="list", named="show"),
    "protocols": Group(("list", "show"), alone="list", named="show"),
    "trace": Group(("show", "verify", "diff", "export")),
    "import": Group(("focus", "grid", "demand", "prometheus", "kubernetes")),
}
SINGLE = (
    "run",
    "worlds",
    "replay",
    "counterfactual",
    "metrics",
    "influence",
    "probe",
    "report",
    "tournament",
    "stats",
    "bench",
    "doctor",
)
COMMANDS = (
    "run",
    "runs",
    "scenarios",
    "personas",
    "protocols",
    "worlds",
    "trace",
    "replay",
    "counterfactual",
    "metrics",
    "influence",
    "probe",
    "report",
    "tournament",
    "stats",
    "import",
    "bench",
    "doctor",
)
_HELP = frozenset({"--help", "-h"})
_VERBOSE = frozenset({"--verbose", "-v"})
_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"", "0", "false", "no", "off"})


def spell_out(arguments: list[str]) -> list[str]:
    """The same command line with every command word in place.

    >>> spell_out(["--seed", "2"])
    ['run', '--seed', '2']
    >>> spell_out(["--json", "personas", "cost"])
    ['personas', 'show', '--json', 'cost']

    Raises:
        UnknownNameError: A word is no command.
        ConfigError: A command that a later version brings.
    """
    flags, rest = _take_flags(arguments)
    if rest and rest[0] in {*_HELP, "--version"}:
        return rest
    if not rest or rest[0].startswith("-"):
        return ["run", *flags, *rest]
    command, *rest = rest
    if command in LATER_COMMANDS:
        raise refusal(f"{command!r}", LATER_COMMANDS[command])
    if command not in COMMANDS:
        raise _unknown(command, "", COMMANDS)
    if command in SINGLE:
        return [command, *flags, *rest]
    return _spell_group(command, GROUPS[command], flags, rest)


def _spell_group(command: str, group: Group, flags: list[str], rest: list[str]) -> list[str]:
    more, rest = _take_flags(rest)
    if rest and rest[0] in _HELP:
        return [command, "--help"]
    word = rest[0] if rest and not rest[0].startswith("-") else ""
    if f"{command} {word}" in LATER_COMMANDS:
        raise refusal(f"'{command} {word}'", LATER_COMMANDS[f"{command} {word}"])
    if word in group.words:
        return [command, word, *flags, *more, *rest[1:]]
    meant = group.named if word else group.alone
    if not meant:
        raise _unknown(word, command, group.words)
    return [command, meant, *flags, *more, *rest]


def _take_flags(words: list[str]) -> tuple[list[str], list[str]]:
    """The ``--json`` that may stand before a command word, and the rest."""
    place = next((i for i, word in enumerate(words) if word != "--json"), len(words))
    return words[:place], words[place:]


def _unknown(word: str, command: str, words: tuple[str, ...]) -> UnknownNameError:
    commands = f"Commands: {', '.join(f'{command} {known}'.strip() for known in words)}"
    if command and not word:
        return UnknownNameError(f"{command!r} alone says too little", "", commands)
    shown = plain(f"{command} {word}", 80).strip()
    return UnknownNameError(
        f"there is no command {shown!r}",
        "",
        f"{close_matches(word, words)}{commands}. Help: {PROGRAM} --help",
    )


def switched_on(variable: str) -> bool:
    """Whether an environment variable switches its option on; unset and empty do not.

    Raises:
        ConfigError: Its value is neither yes nor no.
    """
    word = os.environ.get(variable, "").strip().lower()
    if word in _ON or word in _OFF:
        return word in _ON
    raise ConfigError(
        f"{variable} is {plain(word, 40)!r}", "it must be true or false", f"Type: {variable}=true"
    )


def add_json(arguments: list[str]) -> list[str]:
    """The same command line with ``--json`` in front where WARROOM_JSON asks for it.

    Raises:
        ConfigError: The value of WARROOM_JSON is neither yes nor no.
    """
    return ["--json", *arguments] if switched_on("WARROOM_JSON") else arguments


def take_verbose(arguments: list[str]) -> tuple[bool, list[str]]:
    """Whether ``--verbose`` or ``-v`` stands anywhere, and the command line without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word not in _VERBOSE]
    return len(kept) < end, [*kept, *arguments[end:]]
