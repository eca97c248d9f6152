from __future__ import annotations

import pytest
import typer

from orchestrator.cli.app import build
from orchestrator.cli.words import COMMANDS, GROUPS, SINGLE, spell_out, take_verbose
from orchestrator.later import LATER_COMMANDS, LATER_OPTIONS, LATER_SETTINGS
from orchestrator.settings import Settings
from world.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ([], ["run"]),
        (["--seed", "2"], ["run", "--seed", "2"]),
        (["--json"], ["run", "--json"]),
        (["--json", "run", "--seed", "2"], ["run", "--json", "--seed", "2"]),
        (["--help"], ["--help"]),
        (["--json", "-h"], ["-h"]),
        (["--version"], ["--version"]),
        (["run", "--help"], ["run", "--help"]),
        (["personas"], ["personas", "list"]),
        (["personas", "--json"], ["personas", "list", "--json"]),
        (["--json", "personas"], ["personas", "list", "--json"]),
        (["personas", "cost"], ["personas", "show", "cost"]),
        (["personas", "--json", "cost"], ["personas", "show", "--json", "cost"]),
        (["personas", "show", "cost", "--json"], ["personas", "show", "cost", "--json"]),
        (["personas", "--json", "lint", "x"], ["personas", "lint", "--json", "x"]),
        (["personas", "--help"], ["personas", "--help"]),
        (["scenarios", "cloudedge/hard"], ["scenarios", "show", "cloudedge/hard"]),
        (["runs", "--out", "x"], ["runs", "list", "--out", "x"]),
        (["runs", "clean"], ["runs", "clean"]),
        (["trace", "show", "last"], ["trace", "show", "last"]),
        (["trace", "verify", "--help"], ["trace", "verify", "--help"]),
        (["import", "focus", "bill.csv"], ["import", "focus", "bill.csv"]),
        (["worlds", "--json"], ["worlds", "--json"]),
    ],
)
def test_a_command_line_is_spelled_out(typed: list[str], meant: list[str]) -> None:
    assert spell_out(typed) == meant


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        (["rnu"], "Did you mean run"),
        (["persona"], "Did you mean personas"),
        (["trace", "shwo"], "Did you mean show"),
        (["trace"], "trace show, trace verify, trace diff, trace export"),
        (["import"], "import focus"),
        (["x\x1b[2J"], "Commands: run"),
        ([""], "there is no command ''"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_its_neighbours(
    typed: list[str], near: str
) -> None:
    with pytest.raises(UnknownNameError) as refused:
        spell_out(typed)
    assert near in refused.value.line()
    assert "\x1b" not in refused.value.line()


@pytest.mark.parametrize("command", sorted(LATER_COMMANDS))
def test_a_command_of_a_later_version_is_refused_by_name(command: str) -> None:
    with pytest.raises(ConfigError, match="comes with a later version"):
        spell_out([*command.split(), "last"])


def test_verbose_is_taken_from_anywhere_before_the_double_dash() -> None:
    assert take_verbose(["run", "-v", "--json"]) == (True, ["run", "--json"])
    assert take_verbose(["--verbose"]) == (True, [])
    assert take_verbose(["run", "--", "-v"]) == (False, ["run", "--", "-v"])


def test_the_table_of_words_is_that_of_the_program() -> None:
    program = typer.main.get_command(build())
    commands = program.commands  # type: ignore[attr-defined]
    assert set(commands) == set(COMMANDS) == {*GROUPS, *SINGLE}
    for name, group in GROUPS.items():
        assert tuple(commands[name].commands) == group.words
        assert {group.alone, group.named} <= {*group.words, ""}


def test_nothing_of_a_later_version_is_there_already() -> None:
    program = typer.main.get_command(build())
    run = program.commands["run"]  # type: ignore[attr-defined]
    options = {spelling.lstrip("-") for parameter in run.params for spelling in parameter.opts}
    assert not options & set(LATER_OPTIONS)
    assert not set(Settings.model_fields) & set(LATER_SETTINGS)
    assert not set(COMMANDS) & set(LATER_COMMANDS)
    assert {name.replace("_", "-") for name in LATER_SETTINGS} <= set(LATER_OPTIONS)


def test_every_run_option_is_a_setting_and_its_help_tells_the_default() -> None:
    program = typer.main.get_command(build())
    run = program.commands["run"]  # type: ignore[attr-defined]
    of_one_call = {"resume", "answer", "print-config", "json"}
    for parameter in run.params:
        (option,) = (spelling.lstrip("-") for spelling in parameter.opts)
        if option in of_one_call:
            continue
        default = Settings.model_fields[option.replace("-", "_")].default
        if default not in (None, "", {}, ()):
            assert f"[default: {default}]" in parameter.help
