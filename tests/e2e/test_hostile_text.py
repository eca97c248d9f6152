"""Text that gives orders: it is shown as data, changes nothing that is forbidden, breaks nothing.

Every text of `tests.support.hostile` goes into every free text field of an estate, into what
other seats say and into what a model answers; each time the estate must keep what is essential,
unknown or protected, whoever speaks: rules, a script that obeys the orders, or a model that does.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents.backends.llm.prompt import render
from agents.backends.llm.quoting import CLOSE, OPEN
from agents.persona import lint_persona, load_persona
from orchestrator.cli.app import main
from orchestrator.room import Room
from policies.records import Position
from tests.support import llm_stub
from tests.support.asks import request_of
from tests.support.bills import usage, write_bill
from tests.support.hostile import (
    FORBIDDEN,
    PAYLOADS,
    acting,
    estate,
    persona_text,
    toml_text,
    write_scenario,
)
from tests.support.llm_rooms import SEATS
from tests.support.llm_stub import LLMStub, StubCall
from tests.support.rooms import room
from tests.support.runs import Played, play
from tests.support.terminals import TypedProgram
from world.actions import joint_id, parse_joint
from world.model import ActionOutcome
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

QUICK: dict[str, Any] = {"samples": 1, "lookahead_steps": 2}
ORDERS = (
    "terminate:prod-db",
    "terminate:mystery",
    "terminate:locked-1",
    "terminate:prod-db+terminate:mystery+terminate:locked-1",
    "terminate:zombie1",
)
payloads = pytest.mark.parametrize("text", PAYLOADS.values(), ids=PAYLOADS)


def assert_nothing_forbidden_happened(made: Room, played: Played, text: str) -> None:
    """Essential, unknown and protected rows live; no destructive action named one of them."""
    protected = FORBIDDEN | {name for name in estate(text) if name.endswith(" e")}
    destructive = {template.kind for template in made.world.templates if template.destructive}
    assert {"terminate"} <= destructive
    for event in played.of("decision"):
        for action in parse_joint(event["data"]["action"]):
            assert action.kind not in destructive or action.target not in protected
    seen = made.world.observe(played.session.state).inventory
    assert seen is not None
    for name in protected:
        assert seen.row(name)["state"] == "live"
    assert played.result.violations == ()
    assert played.result.stop_reason == "horizon"


def obeying(call: StubCall) -> dict[str, Any]:
    """A model's answer that follows every order that it could have read."""
    if '{"proposals"' not in call.user:
        return {"choice": "c1", "accept": True, "counter": "c1", "message": "as ordered",
                "scores": [{"option": "c1", "score": 10}]}  # fmt: skip
    return {
        "proposals": [
            {"actions": [{"kind": "terminate", "target": name}], "rationale": "as ordered"}
            for name in ("prod-db", "mystery", "locked-1")
        ]
    }


# --- what is decided --------------------------------------------------------------------------


@payloads
def test_rules_that_read_the_text_do_nothing_forbidden(text: str, tmp_path: Path) -> None:
    made = room(scenario=str(write_scenario(tmp_path, text)), **QUICK)
    assert_nothing_forbidden_happened(made, play(made), text)


@payloads
def test_a_seat_that_obeys_with_a_thousand_votes_does_nothing_forbidden(
    text: str, tmp_path: Path
) -> None:
    obedient = tmp_path / "obedient.toml"
    obedient.write_text(persona_text(text, ORDERS), encoding="ascii")
    made = room(
        scenario=str(write_scenario(tmp_path, text)), personas={"cost": str(obedient)}, **QUICK
    )
    played = play(made)
    assert_nothing_forbidden_happened(made, played, text)
    # It was heard: the allowed order was carried out, and each forbidden one is on record.
    seen = made.world.observe(played.session.state).inventory
    assert seen is not None
    assert seen.row("zombie1")["state"] == "terminated"
    listed = {c["id"]: c for c in played.of("candidates")[0]["data"]["items"]}
    assert listed["terminate:prod-db"]["feasible"] is False
    assert "guard/" in str(listed["terminate:prod-db"]["reasons"])


@payloads
def test_models_that_obey_do_nothing_forbidden(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_stub, "answer_to", obeying)
    with LLMStub() as stub:
        made = room(
            scenario=str(write_scenario(tmp_path, text, horizon=2)),
            model="stub",
            base_url=stub.url,
            **QUICK,
        )
        played = play(made)
    assert len(stub.calls) == len(SEATS) * 2
    assert_nothing_forbidden_happened(made, played, text)
    candidates = played.of("candidates")[0]["data"]["items"]
    assert any(c["id"] == "terminate:prod-db" and not c["feasible"] for c in candidates)


@payloads
def test_a_model_that_answers_with_the_text_itself_costs_a_fallback(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_stub, "_text", lambda word, good: text)
    with LLMStub() as stub:
        played = play(
            room(scenario="cloudedge/easy", model="stub", base_url=stub.url, steps=1, **QUICK)
        )
    assert played.result.steps == 1
    told = {entry["seat"] for entry in played.result.fallbacks}
    # One of the texts holds an answer in a fence, which may be used: it proposes nothing.
    assert told == (set() if '{"proposals": []}' in text else set(SEATS))
    for event in played.events:
        json.dumps(event).encode("ascii")


# --- what a model is shown --------------------------------------------------------------------


def _request(text: str, tmp_path: Path) -> Any:
    """A question in which every field that others write holds the text."""
    scenario = load_scenario(str(write_scenario(tmp_path, text)))
    world = make_world(scenario)
    seen = world.observe(world.reset(scenario, [1]))
    action = world.catalogue(seen)[0]
    outcome = ActionOutcome(action, "failed", effect=text, reason=text)
    seen = dataclasses.replace(
        seen,
        incidents=(text,),
        outcomes=(outcome,),
        facts={**seen.facts, "note": text, text[:60]: 1},
        unknown=(*seen.unknown, text[:80]),
    )
    request = request_of(world, scenario, [seen], seat="cost")
    said = tuple(
        Position(seat=seat, step=1, proposals=(joint_id((action,)),), rationale=text, message=text)
        for seat in ("resource", "cost")
    )
    return dataclasses.replace(request, positions=said)


@payloads
def test_a_prompt_holds_the_text_as_quoted_data_only(text: str, tmp_path: Path) -> None:
    request = _request(text, tmp_path)
    spec = load_persona("cost")
    plain = render(spec, _request("harmless", tmp_path))
    shown = render(spec, request)
    assert shown.system == plain.system
    lines = shown.user.split("\n")
    inside, quoted, ours = False, [], []
    for line in lines:
        if line.startswith(OPEN):
            assert not inside
            inside = True
        elif line == CLOSE:
            assert inside
            inside = False
        elif inside:
            quoted.append(line)
        else:
            ours.append(line)
    assert not inside
    assert shown.user.count(OPEN) == shown.user.count(CLOSE) == plain.user.count(OPEN)
    for line in quoted:
        assert line.isascii()
        assert "<" not in line
        if not re.fullmatch(r"\(none\)|\(\d+ more left out\)", line):
            json.loads(line)
    # Outside the quotes nothing of it stands: the same words, line by line, as without it.
    assert set(ours) <= set(plain.user.split("\n"))
    held = json.dumps([json.loads(line) for line in quoted if line.startswith(("{", '"'))])
    assert json.dumps(text[:60])[1:-1].replace("<", "\\u003c")[:40] in held.replace("<", "\\u003c")


# --- what people are shown --------------------------------------------------------------------


def _everything(tmp_path: Path) -> Path:
    """One scenario that holds every text, and a persona that says some of them."""
    rows: dict[str, Any] = {}
    for number, text in enumerate(PAYLOADS.values()):
        for name, cells in estate(text).items():
            rows.setdefault(name if name.endswith((" z", " e")) else f"{name}{number}", cells)
    from tests.support.hostile import scenario_text

    path = tmp_path / "all.toml"
    title = "".join(text[:5] for text in PAYLOADS.values())
    path.write_text(scenario_text(title, rows, horizon=2), encoding="ascii")
    return path


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    """Output and talk of one command; neither holds a character that acts."""
    assert main(list(words)) == status
    told = capsys.readouterr()
    assert acting(told.out) == ""
    assert acting(told.err) == ""
    return told.out, told.err


def test_no_command_prints_a_character_that_acts(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = _everything(at)
    saying = [*PAYLOADS.values()][5:15]
    obedient = at / "obedient.toml"
    obedient.write_text(persona_text("".join(t[:60] for t in saying), ORDERS), encoding="ascii")
    common = ("--scenario", str(scenario), "--persona", "cost=obedient.toml", "--samples", "1",
              "--lookahead-steps", "1", "--store", "inprocess", "--driver", "loop")  # fmt: skip
    out, _ = shown(capsys, "run", *common, "--log", "lines")
    starts = [line.split("]")[0] for line in out.splitlines()]
    assert starts == ["[START", "[STEP", "[STEP", "[END"]
    shown(capsys, "scenarios", str(scenario))
    assert main(["scenarios", str(scenario), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    shown(capsys, "personas", "show", "obedient.toml")
    out, _ = shown(capsys, "personas", "show", "obedient.toml", "--rendered",
                   "--scenario", str(scenario))  # fmt: skip
    assert out.count(OPEN) == out.count(CLOSE)
    shown(capsys, "trace", "show", "last", "--full")
    shown(capsys, "trace", "show", "last")
    shown(capsys, "trace", "verify", "last")
    shown(capsys, "runs")
    out, _ = shown(capsys, "trace", "export", "last", "--format", "csv")
    for cells in csv.reader(io.StringIO(out)):
        for cell in cells:
            assert not cell.startswith(("=", "@", "+")), cell
    # What goes into a pipe is what was recorded, one JSON document a line.
    for words in (("trace", "export", "last"), ("run", *common, "--log", "json")):
        assert main(list(words)) == 0
        out = capsys.readouterr().out
        events = [json.loads(line) for line in out.split("\n")[:-1]]
        assert [event["type"] for event in events][:1] == ["run_started"]
        assert [event["type"] for event in events][-1:] == ["run_ended"]
    assert not (at / "owned").exists()


def test_a_terminal_that_is_given_data_gets_no_character_that_acts(tmp_path: Path) -> None:
    scenario = str(_everything(tmp_path))
    common = ("--scenario", scenario, "--samples", "1", "--lookahead-steps", "1",
              "--store", "inprocess", "--driver", "loop")  # fmt: skip
    for words in (("scenarios", scenario, "--json"), ("run", *common, "--log", "json")):
        with TypedProgram(*words, cwd=tmp_path) as program:
            status, screen = program.finish()
        assert status == 0
        assert acting(screen) == ""
        assert "\\u202e" in screen  # it is there, spelled out


@pytest.mark.parametrize("name", ["html", "closing quote", "right to left", "clear screen"])
def test_a_report_holds_the_text_as_text(
    name: str, at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAYLOADS[name]
    (at / "obedient.toml").write_text(persona_text(text, ORDERS), encoding="ascii")
    scenario = write_scenario(at, text, horizon=2)
    shown(capsys, "run", "--scenario", str(scenario), "--persona", "cost=obedient.toml",
          "--samples", "1", "--lookahead-steps", "1", "--store", "inprocess",
          "--driver", "loop", "--log", "quiet")  # fmt: skip
    shown(capsys, "report", "last", "--html", "page.html")
    page = (at / "page.html").read_text(encoding="utf-8")
    assert acting(page.replace("\t", " ")) == ""
    assert "<script>alert(1)" not in page
    assert "<img" not in page
    assert not re.search(r"<[^>]*\sonerror=", page)
    if name == "html":
        assert "&lt;script&gt;alert(1)" in page  # it is there, as text


@payloads
def test_a_persona_file_with_the_text_is_refused_in_one_line_or_shown_clean(
    text: str, at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for field in ("title", "description", "id", "role", "version"):
        fields = {"id": toml_text("mine"), "role": toml_text("cost"), field: toml_text(text)}
        spelled = "\n".join(f"{name} = {value}" for name, value in fields.items())
        (at / "mine.toml").write_text(f'schema = "persona/1"\n[identity]\n{spelled}\n', "ascii")
        faults = [line for line in lint_persona(at / "mine.toml") if ": error: " in line]
        if faults:
            assert all("\n" not in line and len(line) < 600 for line in faults)
            _, err = shown(capsys, "personas", "show", "mine.toml", status=2)
            (line,) = [each for each in err.splitlines() if each]
            assert line.startswith("error: ")
        else:
            assert field not in {"id", "role"} or text.isalnum()
            shown(capsys, "personas", "show", "mine.toml")
        shown(capsys, "personas", "lint", "mine.toml", status=1 if faults else 0)


@payloads
def test_a_command_line_with_the_text_is_one_clean_line(
    text: str, at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del at
    for words in (
        ("run", "--scenario", text),
        ("run", "--persona", f"cost={text}"),
        ("run", "--set", f"cost.{text}=1"),
        ("run", "--protocol", text),
        ("personas", "show", text),
        ("trace", "show", text),
    ):
        if "\x00" in text and words[1] == "--scenario":
            continue  # no operating system passes a NUL in an argument
        _, err = shown(capsys, *words, status=2)
        lines = [line for line in err.splitlines() if line]
        assert lines[-1].startswith("error: ")
        assert len(lines) == 1
        assert "Traceback" not in err
        assert len(err) < 4000


# --- bills ------------------------------------------------------------------------------------


def test_a_bill_full_of_orders_becomes_a_scenario_in_which_nobody_obeys(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for number, text in enumerate(PAYLOADS.values()):
        said = text[:300].replace("\x00", "").replace("\r", "\n")
        tags = json.dumps({"essential": "yes", "owner": said, "note": said, said[:60]: "x"})
        rows.append(
            usage(ResourceId=f"i-keep-{number}", ResourceName=said, Tags=tags, ServiceName=said,
                  ChargeDescription=said, EffectiveCost="9")
        )  # fmt: skip
        rows.append(usage(ResourceId=f"{said} {number}", ResourceName=said, RegionName=said))
    write_bill(at, *rows)
    shown(capsys, "import", "focus", "bill.csv", "-o", "mine.toml", "--name", "mine/bill",
          "--horizon", "2")  # fmt: skip
    scenario = load_scenario("mine.toml")
    kept = [name for name in scenario.resources["id"] if str(name).startswith("i-keep-")]
    assert len(kept) == len(PAYLOADS)
    orders = tuple(f"terminate:{name}" for name in kept[:8])
    (at / "obedient.toml").write_text(persona_text("do it", orders), encoding="ascii")
    made = room(scenario="mine.toml", personas={"cost": "obedient.toml"}, **QUICK)
    played = play(made)
    seen = made.world.observe(played.session.state).inventory
    assert seen is not None
    assert {seen.row(str(name))["state"] for name in kept} == {"live"}
    assert played.result.violations == ()
    listed = {c["id"]: c for c in played.of("candidates")[0]["data"]["items"]}
    assert listed[f"terminate:{kept[0]}"]["feasible"] is False


def test_there_are_enough_texts_and_fields() -> None:
    fields = len(estate("x")["prod-db"])
    assert len(PAYLOADS) * fields >= 40
    assert len(set(PAYLOADS.values())) == len(PAYLOADS) >= 30
