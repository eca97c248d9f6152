"""What a persona file may say and had better not: warnings, each with the field it is about.

A warning never keeps a file from being used. It names what would otherwise be found out in the
middle of a study: a line that no world measures, a ballot that drowns the others, a shape of
utility that is known to fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from agents.persona_fields import did_you_mean
from agents.persona_file import KeyPath
from agents.persona_schema import RULES_SECONDS, PersonaSpec, RedLineTable
from policies.table import SeatRules
from policies.utility import lint
from world.model import World
from world.scenarios.loader import load_scenario, scenario_names
from world.worlds.registry import make_world

Warned = tuple[KeyPath, str]

LOUD = 10.0
"""Objective weights times ballot weight above which a seat drowns a room of default seats (2.5)."""


def warnings_of(spec: PersonaSpec, rules: SeatRules) -> list[Warned]:
    """Every warning about a resolved persona: the field, and the text.

    Args:
        spec: The persona.
        rules: The same as the room reads it (`agents.persona.seat_rules`).
    """
    return [
        *_speech(spec),
        *_weights(spec),
        *_red_lines(spec),
        *_kinds(spec),
        *_shapes(rules),
    ]


def _speech(spec: PersonaSpec) -> Iterator[Warned]:
    speaks = spec.backend.kind != "scripted" and not spec.powers.mediator
    if speaks and all(table is None or table.weight == 0 for _, table in spec.objectives):
        yield ("objectives",), "no objective has a weight: this persona abstains everywhere"
    if spec.script is not None and spec.backend.kind != "scripted":
        yield ("script",), 'only backend.kind = "scripted" plays a [script]'
    for kind, table in (("remote", spec.remote), ("replay", spec.replay)):
        if table is not None and spec.backend.kind != kind:
            yield (kind,), f'only backend.kind = "{kind}" reads [{kind}]'
    if spec.remote is not None and "@" in urlsplit(spec.remote.url).netloc:
        yield ("remote", "url"), "it holds a user or password, and no run takes it: name token_env"
    if spec.backend.kind == "rules" and (spec.backend.timeout_s or RULES_SECONDS) < RULES_SECONDS:
        yield (
            ("backend", "timeout_s"),
            f"rules get {RULES_SECONDS:g} s or more whatever timeout_s says",
        )
    if spec.red_line and not spec.powers.veto:
        yield ("powers", "veto"), "veto = false: its red lines are recorded and rule nothing out"


def _weights(spec: PersonaSpec) -> Iterator[Warned]:
    """Ballots are never rescaled, so a weight of a hundred is a hundred votes."""
    total = sum(table.weight + table.held for _, table in spec.objectives if table is not None)
    loudness = (total + spec.utility.team) * spec.powers.weight
    if loudness > LOUD:
        place = ("powers", "weight") if spec.powers.weight > 1 else ("objectives",)
        yield (
            place,
            f"its ballot weighs {loudness:.4g} in all ((objectives {total:.4g} + team "
            f"{spec.utility.team:.4g}) x powers.weight {spec.powers.weight:.4g}; a default seat "
            f"weighs 2 or 3): above {LOUD:g} it silences the others",
        )


def _red_lines(spec: PersonaSpec) -> Iterator[Warned]:
    known = world_metrics()
    for number, line in enumerate(spec.red_line):
        if line.metric not in known:
            yield (
                ("red_line", number, "metric"),
                f"no world measures {line.metric!r}, so this line is never crossed. "
                f"{did_you_mean(line.metric, known)}Metrics: {', '.join(known)}",
            )
    for number, line in enumerate(spec.red_line):
        before = spec.red_line[:number]
        if any(_cover_everything(line, other) for other in before):
            yield (
                ("red_line", number),
                f"together with another line every value of {line.metric} is crossed: "
                "everything is vetoed",
            )


def _cover_everything(one: RedLineTable, other: RedLineTable) -> bool:
    """Whether two vetoes on the same metric leave no value uncrossed."""
    vetoes = one.severity == other.severity == "veto"
    if not vetoes or (one.metric, one.on) != (other.metric, other.on):
        return False
    if "!=" in (one.op, other.op):
        pair = {one.op, other.op}
        return pair == {"==", "!="} and one.value == other.value
    low, high = -math.inf, math.inf  # crossed below `low` and above `high`
    closed = False
    for line in (one, other):
        if line.op.startswith("<"):
            low = line.value
        elif line.op.startswith(">"):
            high = line.value
        closed = closed or line.op in {"<=", ">="}
    return low > high or (low == high and closed)


def _kinds(spec: PersonaSpec) -> Iterator[Warned]:
    known = world_kinds()
    for kind in spec.powers.propose:
        if kind not in known:
            yield (
                ("powers", "propose"),
                f"no world has an action {kind!r}. {did_you_mean(kind, known)}"
                f"Actions: {', '.join(known)}",
            )


def _shapes(rules: SeatRules) -> Iterator[Warned]:
    for text in lint(rules.utility):
        yield ("utility",), text


@cache
def world_metrics() -> tuple[str, ...]:
    """Names of every metric that some shipped world measures, sorted."""
    worlds = _worlds_of(tuple({name.partition("/")[0]: name for name in scenario_names()}.values()))
    return tuple(sorted({metric.name for world in worlds for metric in world.metrics}))


@cache
def world_kinds() -> tuple[str, ...]:
    """Kinds of every action that some shipped scenario has, sorted."""
    worlds = _worlds_of(tuple(scenario_names()))
    return tuple(sorted({each.kind for world in worlds for each in world.templates}))


def _worlds_of(names: tuple[str, ...]) -> tuple[World[Any], ...]:
    return tuple(make_world(load_scenario(name)) for name in names)
