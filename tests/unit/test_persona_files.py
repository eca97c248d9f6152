"""Persona files: what loads, what is refused and with which line, inheritance, --set, digests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.persona import (
    FOLDER,
    apply_overrides,
    lint_persona,
    load_persona,
    overrides_by_seat,
    persona_names,
    seat_rules,
)
from agents.seat import Persona, deadline_s, make_persona
from world.errors import ConfigError, UnknownNameError, UserError

HEAD = 'schema = "persona/1"\n[identity]\nid = "x"\nrole = "x"\n'
SEATS = ("resource", "cost", "sustainability", "janitor")


def write(folder: Path, text: str | bytes, name: str = "x.toml") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def one_line(error: UserError) -> str:
    line = error.line()
    assert "\n" not in line
    assert len(line) < 1200
    assert all(character.isprintable() for character in line)
    return line


@pytest.mark.parametrize("name", persona_names())
def test_every_shipped_persona_is_clean_and_is_called_what_its_file_is_called(name: str) -> None:
    assert lint_persona(FOLDER / f"{name}.toml") == []
    spec = load_persona(name)
    assert spec.id == name
    assert spec.identity.title
    assert len(spec.identity.description) > 80
    persona = make_persona(spec, "anyone")
    assert isinstance(persona, Persona)
    assert persona.seat == "anyone"


def test_the_four_default_seats_have_the_documented_defaults() -> None:
    rules = {seat: seat_rules(load_persona(seat), seat) for seat in SEATS}
    owned = (["latency", "errors"], ["cost"], ["carbon"])
    for seat, objectives in zip(SEATS[:3], owned, strict=True):
        utility = rules[seat].utility
        assert (utility.kind, utility.team) == ("log", 1.0)
        assert [part.objective for part in utility.objectives] == objectives
        assert {part.weight for part in utility.objectives} == {1.0}
        assert rules[seat].weight == 1.0
    janitor = rules["janitor"]
    weights = {part.objective: (part.weight, part.shape) for part in janitor.utility.objectives}
    assert weights == {"cost": (0.3, ""), "waste": (1.0, ""), "churn": (0.3, "linear")}
    assert janitor.weight == 0.5
    (line,) = rules["resource"].red_lines
    assert (line.metric, line.op, line.value, line.on, line.severity, line.id) == (
        "saturation_percent",
        ">",
        95.0,
        "projected",
        "veto",
        "resource/red_line/1",
    )


def test_extends_merges_tables_field_by_field_and_replaces_lists(tmp_path: Path) -> None:
    spec = load_persona("cost_hawk")
    assert spec.objectives.cost is not None
    assert (spec.objectives.cost.weight, spec.objectives.cost.margin) == (3.0, 40.0)
    assert (spec.utility.kind, spec.utility.team) == ("log", 0.0)
    assert spec.identity.role == "cost"
    child = 'schema = "persona/1"\nextends = "resource"\nred_line = []\n[identity]\nid = "y"\n'
    assert load_persona(write(tmp_path, child)).red_line == ()


def test_a_parent_is_found_by_name_in_a_search_folder_and_beside_the_file(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    write(tmp_path, HEAD + "[powers]\nweight = 7.0\n", "base.toml")
    child = 'schema = "persona/1"\nextends = {0}\n[identity]\nid = "y"\n'
    by_name = write(deep, child.format('"base"'), "a.toml")
    beside = write(tmp_path, child.format('"base"'), "b.toml")
    by_path = write(deep, child.format('"../base.toml"'), "c.toml")
    assert load_persona(by_name, [tmp_path]).powers.weight == 7.0
    assert load_persona(beside).powers.weight == 7.0
    assert load_persona(by_path).powers.weight == 7.0
    with pytest.raises(UnknownNameError, match=r"a\.toml:2: .*extends = 'base'"):
        load_persona(by_name)


def test_search_folders_add_names_and_never_shadow_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, HEAD, "mine.toml")
    write(tmp_path, HEAD, "cost.toml")
    write(tmp_path, HEAD, "bad name.toml")
    names = persona_names([tmp_path, tmp_path / "absent"])
    assert "mine" in names
    assert "bad name" not in names
    assert load_persona("mine", [tmp_path]).id == "x"
    assert load_persona("cost", [tmp_path]).id == "cost"


def test_a_circle_of_extends_is_refused_with_the_circle(tmp_path: Path) -> None:
    for name, parent in (("a", "b"), ("b", "c"), ("c", "a")):
        text = f'schema = "persona/1"\nextends = "{parent}"\n[identity]\nid = "{name}"\n'
        path = write(tmp_path, text, f"{name}.toml")
    with pytest.raises(ConfigError, match="c extends a extends b extends c"):
        load_persona(path)


def test_a_chain_that_is_too_long_is_refused(tmp_path: Path) -> None:
    write(tmp_path, HEAD, "p0.toml")
    for number in range(1, 40):
        text = f'schema = "persona/1"\nextends = "p{number - 1}"\n[identity]\nid = "p{number}"\n'
        path = write(tmp_path, text, f"p{number}.toml")
    with pytest.raises(ConfigError, match="more than 16 files"):
        load_persona(path)


FAULTS: list[tuple[str, str, int, str]] = [
    ("no schema", "[identity]\nid = 'x'\n", 1, 'write schema = "persona/1"'),
    ("newer schema", 'schema = "persona/2"\n', 1, "'persona/2'"),
    ("no id", 'schema = "persona/1"\n[identity]\nrole = "x"\n', 2, "identity.id: missing"),
    ("no role", 'schema = "persona/1"\n[identity]\nid = "x"\n', 2, "identity.role: missing"),
    ("syntax", HEAD + "[objectives\n", 5, "not TOML"),
    ("unfinished", HEAD + "a = [", 5, "end of the file"),
    ("key twice", HEAD + 'id = "y"\n', 5, "not TOML"),
    ("unknown table", HEAD + "[objective.cost]\nweight = 1\n", 5, "Did you mean objectives"),
    ("unknown field", HEAD + "[objectives.cost]\nweight=1\nmargn=2\n", 7, "Did you mean margin"),
    ("unknown objective", HEAD + "[objectives.speed]\nweight = 1\n", 5, "latency"),
    ("nan", HEAD + "[objectives.cost]\nweight = nan\n", 6, "nan: it must be a finite number"),
    ("infinite", HEAD + "[powers]\nweight = -inf\n", 6, "powers.weight"),
    ("negative", HEAD + "[powers]\nweight = -1\n", 6, "-1: it must be at least 0"),
    ("huge", HEAD + f"[powers]\nweight = 1{'0' * 400}\n", 6, "powers.weight"),
    ("endless digits", HEAD + f"x = {'9' * 5000}\n", 5, "thousands of digits"),
    ("text for number", HEAD + '[powers]\nweight = "1"\n', 6, "'1': it must be a number"),
    ("flag for number", HEAD + "[powers]\nweight = true\n", 6, "powers.weight"),
    ("number for text", HEAD + "title = 3\n", 5, "identity.title: 3: it must be a string"),
    ("control", HEAD + 'title = "a\\u0007b"\n', 5, "control character U+0007"),
    ("bidi", HEAD + 'title = "a\u202eb"\n', 5, "control character U+202E"),
    ("raw control", HEAD + 'title = "a\x07b"\n', 5, "not TOML"),
    ("shape", HEAD + '[utility]\nkind = "cubic"\n', 6, "'log'"),
    ("second line", HEAD + "\n".join(["[[red_line]]", 'metric="m"', 'op=">"', "value=1"] * 2)
     + '\non = "later"\n', 13, "red_line.2.on"),
    ("inline table", HEAD + "[objectives]\ncost = {weight = -1}\n", 6, "objectives.cost.weight"),
    ("no such backend", HEAD + '[backend]\nkind = "gpt"\n', 6, "must be one of"),
    ("odd backend", HEAD + '[backend]\nkind = "python:os;x:y"\n', 6, "python:package.module:name"),
    ("ballot share", HEAD + '[ballot]\nsource = "blend(1.5)"\n', 6, "L from 0 to 1"),
    ("ballot source", HEAD + '[ballot]\nsource = "blend(a)"\n', 6, "'reported' or 'blend(L)'"),
    ("commander", HEAD + "[powers]\ncommander = 1\n", 6, "powers.commander"),
    ("bid", HEAD + '[concession]\nbid = "dearest"\n', 6, "concession.bid"),
    ("prompt", HEAD + '[prompt]\nuser = """\nhi\n$secret"""\n', 6, "undeclared variable $secret"),
    ("prompt dollar", HEAD + '[prompt]\nuser = "5 $ an hour"\n', 6, "write $$"),
    ("deep", HEAD + "x = " + "[" * 50 + "]" * 50, 1, "nested"),
    ("very deep", HEAD + "x = " + "[" * 2000 + "]" * 2000, 1, "nested"),
    ("large", HEAD + "#" + "a" * 300_000, 1, "256 KiB"),
    ("not text", b"schema = \xff\xfe", 1, "UTF-8"),  # type: ignore[list-item]
    ("no script", HEAD + '[backend]\nkind = "scripted"\n', 1, "[script]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), [f[1:] for f in FAULTS], ids=lambda v: None)
def test_a_fault_is_told_on_one_line_with_its_place(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = write(tmp_path, text)
    messages = lint_persona(path)
    assert messages
    assert words in " ".join(messages)
    assert messages[0].startswith(f"{path}:{line}: error: ")
    assert all("\n" not in message and len(message) < 600 for message in messages)
    with pytest.raises(ConfigError) as caught:
        load_persona(path)
    assert f"{path}:{line}: " in one_line(caught.value)


def test_all_faults_of_a_file_are_listed_in_the_order_of_its_lines(tmp_path: Path) -> None:
    text = HEAD + "[objectives.cost]\nweight = -1\n[utility]\nteam = nan\n[powers]\nvoto = true\n"
    path = write(tmp_path, text)
    lines = [int(message.split(":")[1]) for message in lint_persona(path)]
    assert lines == [6, 8, 10]
    with pytest.raises(ConfigError, match="and 2 more"):
        load_persona(path)


def test_a_fault_of_a_parent_is_told_with_the_parents_line(tmp_path: Path) -> None:
    parent = write(tmp_path, HEAD + "\n\n[powers]\nweight = -2.0\n", "p.toml")
    child = write(tmp_path, 'schema = "persona/1"\nextends = "p"\n[identity]\nid = "c"\n', "c.toml")
    (message,) = lint_persona(child)
    assert message.startswith(f"{parent}:8: error: powers.weight")


def test_files_that_are_no_files_are_refused_without_reading_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (str(tmp_path / "pipe.toml"), "/dev/zero", str(tmp_path), "a\0b.toml"):
        with pytest.raises(ConfigError) as caught:
            load_persona(path)
        one_line(caught.value)
    with pytest.raises(UnknownNameError, match=r"there is no persona file .*absent\.toml"):
        load_persona(str(tmp_path / "absent.toml"))
    with pytest.raises(UnknownNameError, match="Did you mean cost"):
        load_persona("cots")


def test_warnings_name_shapes_that_fail_and_tables_that_nothing_reads(tmp_path: Path) -> None:
    text = HEAD + "[objectives.cost]\nweight = 1\n[utility]\nkind = 'linear'\n[remote]\n"
    messages = lint_persona(write(tmp_path, text))
    assert [message.split(":")[1] for message in messages] == ["7", "9"]
    assert all(": warning: " in message for message in messages)
    assert "linear" in messages[0]
    assert "abstains" in lint_persona(write(tmp_path, HEAD))[0]
    text = HEAD + "[objectives.cost]\nweight = 1\n[script]\n[backend]\ntimeout_s = 1\n"
    messages = lint_persona(write(tmp_path, text))
    assert [message.split(":")[1] for message in messages] == ["7", "9"]


def test_two_files_that_say_the_same_have_the_same_digest(tmp_path: Path) -> None:
    first = HEAD + "[powers]\nweight = 2\n[utility]\nteam = 1\n"
    second = (
        "schema = 'persona/1'\nutility.team = 1.0  # the default\nutility.kind = 'log'\n"
        "[powers]\nweight = 2.0\n[identity]\nrole = 'x'\nid = 'x'\n"
    )
    one = load_persona(write(tmp_path, first, "one.toml"))
    two = load_persona(write(tmp_path, second, "two.toml"))
    assert one.digest == two.digest
    assert len(one.digest) == 64
    assert apply_overrides(one, ["powers.weight=3"]).digest != one.digest
    assert apply_overrides(one, []).digest == one.digest


def test_set_replaces_one_field_and_leaves_the_rest() -> None:
    spec = load_persona("resource")
    changed = apply_overrides(
        spec,
        [
            "objectives.latency.weight=0.5",
            "objectives.waste.weight=1",
            "red_line.1.value = 80",
            "utility.kind=sqrt",
            'powers.propose=["nop", "terminate"]',
            "backend.kind=python:some.module:Thing",
            "powers.veto=false",
        ],
    )
    rules = seat_rules(changed, "resource")
    assert [(o.objective, o.weight) for o in rules.utility.objectives] == [
        ("latency", 0.5),
        ("waste", 1.0),
        ("errors", 1.0),
    ]
    assert rules.red_lines[0].value == 80.0
    assert rules.utility.kind == "sqrt"
    assert rules.may_propose == ("nop", "terminate")
    assert not rules.can_veto
    assert changed.backend.kind == "python:some.module:Thing"
    assert spec == load_persona("resource")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("objectives.cost.weigth=1", "Did you mean objectives.cost.weight"),
        ("objectives.cost.weight.x=1", "has no field"),
        ("nonsense=1", "has no field"),
        ("schema=persona", "has no field"),
        ("extends=cost", "has no field"),
        ("objectives.cost=3", "it must be a table"),
        ("objectives.waste.target=1", "objectives.waste.weight"),
        ("objectives.cost.weight=-1", "at least 0"),
        ("objectives.cost.weight=nan", "finite"),
        ("objectives.cost.weight=1e999", "finite"),
        (f"objectives.cost.weight=1{'0' * 400}", "a huge whole number"),
        (f"objectives.cost.weight={'9' * 4500}", "too long"),
        ("objectives.cost.weight=", "is not a TOML value"),
        ("objectives.cost.weight=1\n[powers]", "not one line"),
        ("objectives.cost.weight=__import__('os')", "is not a TOML value"),
        ("objectives.cost.weight={a=1}", "only plain values"),
        ("red_line.2.value=1", "there is no entry '2'"),
        ("red_line.0.value=1", "there is no entry '0'"),
        ("red_line.x.value=1", "there is no entry 'x'"),
        ('ballot.source="blend(2)"', "L from 0 to 1"),
        ("backend.kind=gpt", "must be one of"),
        ("noequals", "field=value"),
        ("=1", "field=value"),
        ("a..b=1", "field=value"),
    ],
)
def test_a_set_that_cannot_work_is_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(load_persona("resource"), [text])
    assert words in one_line(caught.value)


def test_set_texts_are_split_by_seat_in_order() -> None:
    texts = ["cost.utility.team=0", "janitor.powers.weight=1", "cost.powers.weight=2"]
    assert overrides_by_seat(texts, SEATS) == {
        "cost": ["utility.team=0", "powers.weight=2"],
        "janitor": ["powers.weight=1"],
    }
    with pytest.raises(ConfigError, match="Did you mean cost"):
        overrides_by_seat(["cots.utility.team=0"], SEATS)
    with pytest.raises(ConfigError, match=r"ROLE\.field=value"):
        overrides_by_seat(["team=0"], SEATS)


def test_rules_never_get_less_than_thirty_seconds() -> None:
    spec = load_persona("cost")
    assert deadline_s(spec) == 30.0
    assert deadline_s(apply_overrides(spec, ["backend.timeout_s=0.1"])) == 30.0
    assert deadline_s(apply_overrides(spec, ["backend.timeout_s=60"])) == 60.0
    scripted = apply_overrides(load_persona("silent"), ["backend.timeout_s=0.2"])
    assert deadline_s(scripted) == 0.2


def test_a_rule_that_does_not_exist_is_refused_when_the_seat_is_taken() -> None:
    spec = apply_overrides(load_persona("cost"), ["backend.ref=costs"])
    with pytest.raises(ConfigError, match="Did you mean cost"):
        make_persona(spec, "cost")


def test_a_quoted_key_with_an_escape_is_told_at_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(
        'schema = "persona/1"\n[identity]\nid = "odd"\nrole = "cost"\n"na\\u006de=x" = 1\n',
        encoding="utf-8",
    )
    (fault,) = lint_persona(path)
    assert fault.startswith(f"{path}:5: error: identity.name=x: no such field")


def test_a_missing_id_does_not_hide_the_other_faults(tmp_path: Path) -> None:
    path = tmp_path / "nameless.toml"
    path.write_text(
        'schema = "persona/1"\n[identity]\nrole = "cost"\n[powers]\nwieght = 2\n',
        encoding="utf-8",
    )
    faults = lint_persona(path)
    assert [fault.partition(": error: ")[2].split(":")[0] for fault in faults] == [
        "identity.id",
        "powers.wieght",
    ]
    path.write_text('schema = "persona/1"\nextends = "cost"\n', encoding="utf-8")
    (fault,) = lint_persona(path)
    assert "every file has an id of its own" in fault
