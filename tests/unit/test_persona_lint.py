"""Warnings about persona files that can be used and had better not: each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.persona import FOLDER, lint_persona, load_persona, persona_names
from agents.persona_lint import world_kinds, world_metrics
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

HEAD = 'schema = "persona/1"\n[identity]\nid = "x"\nrole = "x"\n[objectives.cost]\nweight = 1.0\n'


def red_line(metric: str, op: str, value: float, more: str = "") -> str:
    return f'[[red_line]]\nmetric = "{metric}"\nop = "{op}"\nvalue = {value}\n{more}\n'


WARNED: dict[str, tuple[str, int, str]] = {
    "linear": ("[utility]\nkind = 'linear'\n", 7, "a bare linear gap never stops pushing"),
    "threshold": ("[utility]\nkind = 'threshold'\n", 7, "a bare threshold is flat far from"),
    "unmeasured": (red_line("latency", ">", 300), 8, "no world measures 'latency'"),
    "unmeasured hint": (red_line("latency_mss", ">", 300), 8, "Did you mean latency_ms"),
    "everything vetoed": (
        red_line("latency_ms", ">=", 100) + red_line("latency_ms", "<", 100),
        12,
        "every value of latency_ms is crossed",
    ),
    "everything vetoed by equality": (
        red_line("latency_ms", "==", 1) + red_line("latency_ms", "!=", 1),
        12,
        "everything is vetoed",
    ),
    "loud ballot": ("[powers]\nweight = 6.0\n", 8, "its ballot weighs 12 in all"),
    "loud objectives": ("[objectives.latency]\nweight = 20.0\n", 5, "it silences the others"),
    "unknown kind": ("[powers]\npropose = ['scale_upp']\n", 8, "Did you mean scale_up"),
    "no veto": (
        "[powers]\nveto = false\n" + red_line("latency_ms", ">", 300),
        8,
        "rule nothing out",
    ),
    "address with a password": (
        "[backend]\nkind = 'remote'\n[remote]\nurl = 'http://me:pw@h/'\n",
        10,
        "no run takes it: name token_env",
    ),
    "short deadline": ("[backend]\ntimeout_s = 2.0\n", 8, "rules get 30 s or more"),
}


@pytest.mark.parametrize("case", WARNED)
def test_a_warning_names_the_line_and_what_would_happen(case: str, tmp_path: Path) -> None:
    text, line, words = WARNED[case]
    path = tmp_path / "x.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    load_persona(str(path))  # it can be used all the same
    (warning,) = lint_persona(path)
    assert words in warning
    assert warning.startswith(f"{path}:{line}: warning: ")


QUIET: dict[str, str] = {
    "a line with a gap": red_line("latency_ms", ">", 300) + red_line("latency_ms", "<", 100),
    "lines that touch": red_line("latency_ms", ">", 100) + red_line("latency_ms", "<", 100),
    "only a warning": red_line("latency_ms", ">", 1)
    + red_line("latency_ms", "<", 9, 'severity = "warn"'),
    "another moment": red_line("latency_ms", ">", 1)
    + red_line("latency_ms", "<", 9, 'on = "current"'),
    "another metric": red_line("latency_ms", ">", 1) + red_line("carbon_index", "<", 9),
    "a hawk": "[objectives.latency]\nweight = 8.0\n",
    "kinds of different worlds": "[powers]\npropose = ['scale_up', 'terminate', 'detect']\n",
}


@pytest.mark.parametrize("case", QUIET)
def test_what_makes_sense_is_not_warned_of(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(HEAD + QUIET[case], encoding="utf-8")
    assert lint_persona(path) == []


def test_a_warning_about_what_a_parent_says_is_told_with_the_parents_line(tmp_path: Path) -> None:
    parent = tmp_path / "p.toml"
    parent.write_text(HEAD + red_line("speed", ">", 1), encoding="utf-8")
    child = tmp_path / "c.toml"
    child.write_text('schema = "persona/1"\nextends = "p"\n[identity]\nid = "c"\n', "utf-8")
    (warning,) = lint_persona(child)
    assert warning.startswith(f"{parent}:8: warning: no world measures 'speed'")


def test_a_changed_file_under_a_shipped_id_is_warned_of(tmp_path: Path) -> None:
    shipped = (FOLDER / "cost.toml").read_text(encoding="utf-8")
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text(shipped, encoding="utf-8")
    other.write_text(
        'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "cost"\n[powers]\nweight = 2.0\n',
        encoding="utf-8",
    )
    assert lint_persona(same) == []
    (warning,) = lint_persona(other)
    assert warning.startswith(f"{other}:4: warning: 'cost' is a shipped persona")


@pytest.mark.parametrize(
    ("remote", "words"),
    [
        ("", "with url or command"),
        ('url = "http://h/"\ncommand = ["x"]\n', "one of url and command, not both"),
    ],
)
def test_a_remote_seat_with_no_way_or_two_ways_to_reach_it_is_told_which(
    remote: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'{HEAD}[backend]\nkind = "remote"\n[remote]\n{remote}', encoding="utf-8")
    (fault,) = lint_persona(path)
    assert words in fault


@pytest.mark.parametrize(
    "name", ["cloud/medium", "cloudedge/seed/hard", "finops/right_sizing", "aiops/seed/reset"]
)
def test_every_metric_and_kind_of_a_world_is_known(name: str) -> None:
    world = make_world(load_scenario(name))
    assert {metric.name for metric in world.metrics} <= set(world_metrics())
    assert {template.kind for template in world.templates} <= set(world_kinds())


@pytest.mark.parametrize("name", persona_names())
def test_every_shipped_persona_is_clean(name: str) -> None:
    assert lint_persona(FOLDER / f"{name}.toml") == []
