"""The page on the command line names every command, option and variable, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from orchestrator.cli.app import build
from orchestrator.later import LATER_OPTIONS
from orchestrator.settings import PREFIX, Settings
from tests.support.program import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
EVERYWHERE = frozenset({"--help", "--json"})
"""Options that are explained once for all commands."""
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")
_VARIABLE = re.compile(r"WARROOM_[A-Z_]+")
_ELSEWHERE = frozenset({"WARROOM_TEST_REDIS"})
"""Variables of the test suite; they stand in its own page."""


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path), command
        return
    for name, each in below.items():
        yield from _walk(each, (*path, name))


ROOT_COMMAND = typer.main.get_command(build())
COMMANDS = dict(_walk(ROOT_COMMAND, ()))


def _sections() -> dict[str, str]:
    """Heading without its marks → the text below it."""
    parts = re.split(r"^#+ (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip((part.replace("`", "") for part in parts[1::2]), parts[2::2], strict=True))


def _section(command: str) -> str:
    """The section that is about a command; several commands may share one."""
    return "\n".join(text for heading, text in _sections().items()
                     if command in re.split(r" · ", heading))  # fmt: skip


def _options(command: Any) -> list[list[str]]:
    return [
        [*each.opts, *each.secondary_opts]
        for each in command.params
        if not getattr(each, "hidden", False) and each.opts[0].startswith("-")
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_every_command_stands_in_its_section(command: str) -> None:
    section = _section(command)
    assert section, f"docs/cli.md has no section on `{command}`"
    told = set(_OPTION.findall(section))
    for spellings in _options(COMMANDS[command]):
        for option in spellings:
            assert option in told | EVERYWHERE, f"docs/cli.md, `{command}`: {option} is missing"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_section_names_no_option_that_its_commands_do_not_have(command: str) -> None:
    heading = next(head for head in _sections() if command in re.split(r" · ", head))
    known = set(EVERYWHERE)
    for name in re.split(r" · ", heading):
        known |= {option for each in _options(COMMANDS[name]) for option in each}
    first_cells = re.findall(r"^\| *(`[^|]*(?:\\\|[^|]*)*)\|", _sections()[heading], re.MULTILINE)
    named = {option for cell in first_cells for option in _OPTION.findall(cell)}
    assert named <= known


def test_options_of_the_program_itself_are_told() -> None:
    for spellings in _options(ROOT_COMMAND):
        for option in spellings:
            assert f"`{option}" in PAGE or f"`{option}`" in PAGE, option


def test_every_variable_that_is_read_is_told_and_no_other() -> None:
    read = {PREFIX + name.upper() for name in Settings.model_fields}
    for folder in ("orchestrator", "agents", "policies", "world"):
        for path in Path(ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            read |= {name for name in _VARIABLE.findall(text) if not name.endswith("_")}
    later = {PREFIX + name.replace("-", "_").upper() for name in LATER_OPTIONS}
    told = {name for name in _VARIABLE.findall(PAGE) if not name.endswith("_")}
    assert read - later - _ELSEWHERE <= told
    assert told <= read


def test_every_setting_of_the_configuration_file_is_told() -> None:
    section = _sections()["Configuration"]
    for name in Settings.model_fields:
        assert f"`{name}`" in section, name
