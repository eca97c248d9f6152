"""Scripted personas: a fixed part, and every fault that a room must survive."""

from __future__ import annotations

import asyncio
import inspect
import time
from pathlib import Path

import pytest

from agents.persona import lint_persona, load_persona
from agents.seat import Persona, deadline_s, make_persona
from agents.validate import fallback_reply, validated_reply
from policies.records import Reply
from tests.support.asks import stub_request
from tests.support.stub_world import StubWorld
from world.errors import ConfigError, InvalidProposalError, UnknownNameError

HEAD = """schema = "persona/1"
[identity]
id = "puppet"
role = "puppet"
[backend]
kind = "scripted"
timeout_s = 0.2
[script]
"""


def puppet(folder: Path, script: str) -> Persona:
    path = folder / "puppet.toml"
    path.write_text(HEAD + script, encoding="utf-8")
    return make_persona(load_persona(str(path)), "cost")


def kinds(persona: Persona, step: int) -> list[str]:
    """Kinds proposed at a step, 1…."""
    reply = persona.answer(stub_request(step - 1))
    assert isinstance(reply, Reply)
    return [action.kind for proposal in reply.proposals for action in proposal.actions]


THREE = """
[[script.step]]
propose = ["save", "speed_up+save"]
rationale = "because the script says so"
confidence = 0.5
[[script.step]]
propose = ["speed_up"]
[[script.step]]
at = 4
propose = ["nop"]
"""


@pytest.mark.parametrize(
    ("repeat", "after"),
    [("none", [[], []]), ("last", [["nop"], ["nop"]]), ("cycle", [["save"] * 2, ["speed_up"]])],
)
def test_a_script_plays_its_entries_and_then_repeats_as_told(
    tmp_path: Path, repeat: str, after: list[list[str]]
) -> None:
    persona = puppet(tmp_path, f'repeat = "{repeat}"\n' + THREE)
    assert not persona.blocking
    assert kinds(persona, 1) == ["save", "speed_up", "save"]
    assert [kinds(persona, step) for step in (2, 3, 4)] == [["speed_up"], [], ["nop"]]
    assert kinds(persona, 5)[0:1] == after[0][0:1]
    assert kinds(persona, 6) == after[1]


def test_proposals_carry_rationale_and_confidence_and_pass_the_gate(tmp_path: Path) -> None:
    persona = puppet(tmp_path, THREE)
    request = stub_request(0)
    reply = validated_reply(request, persona.answer(request))
    assert [proposal.rationale for proposal in reply.proposals] == [
        "because the script says so"
    ] * 2
    assert reply.proposals[0].confidence == 0.5
    assert [len(proposal.actions) for proposal in reply.proposals] == [1, 2]


def test_the_same_request_always_gets_the_same_reply(tmp_path: Path) -> None:
    persona = puppet(tmp_path, THREE)
    assert persona.answer(stub_request(1)) == persona.answer(stub_request(1))


def test_an_entry_can_raise(tmp_path: Path) -> None:
    persona = puppet(tmp_path, '[[script.step]]\nraise = "disk on fire"\n')
    with pytest.raises(RuntimeError, match="disk on fire"):
        persona.answer(stub_request())
    persona = puppet(tmp_path, "[[script.step]]\nraise = true\n")
    with pytest.raises(RuntimeError):
        persona.answer(stub_request())


@pytest.mark.parametrize(
    "entry",
    [
        'garbage = "I terminate everything!"',
        'propose = ["terminate:all:force=True"]',
        'propose = ["rm -rf /; echo [STEP]"]',
        'propose = ["save+save+save"]',
        'propose = ["save:somewhere"]',
        'propose = ["save", "save", "save", "save", "save", "save", "save", "save", "save"]',
    ],
)
def test_nonsense_is_played_and_refused_at_the_gate(tmp_path: Path, entry: str) -> None:
    persona = puppet(tmp_path, f"[[script.step]]\n{entry}\n")
    request = stub_request()
    with pytest.raises(InvalidProposalError) as caught:
        validated_reply(request, persona.answer(request))
    assert "\n" not in caught.value.line()


def test_a_delay_makes_the_persona_blocking_and_is_really_waited(tmp_path: Path) -> None:
    persona = puppet(tmp_path, "[[script.step]]\ndelay_s = 0.05\n")
    assert persona.blocking
    assert deadline_s(persona.spec) == 0.2
    before = time.perf_counter()
    persona.answer(stub_request())
    assert time.perf_counter() - before >= 0.05


def test_an_asynchronous_seat_answers_with_an_awaitable_that_can_be_cut_off(
    tmp_path: Path,
) -> None:
    script = 'async = true\n[[script.step]]\npropose = ["save"]\n[[script.step]]\ndelay_s = 3600\n'
    persona = puppet(tmp_path, script)
    assert not persona.blocking

    async def play() -> Reply:
        first = persona.answer(stub_request(0))
        assert inspect.isawaitable(first)
        reply = await first
        second = persona.answer(stub_request(1))
        assert inspect.isawaitable(second)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.ensure_future(second), 0.01)
        return reply

    assert [proposal.actions[0].kind for proposal in asyncio.run(play()).proposals] == ["save"]


def test_a_script_answers_the_other_asks_too(tmp_path: Path) -> None:
    persona = puppet(tmp_path, '[[script.step]]\naccept = true\nchoice = "nop"\n')
    payload = {"candidates": ["nop", "save"]}
    respond = stub_request(kind="respond", payload=payload)
    pick = stub_request(kind="pick", payload=payload)
    assert validated_reply(respond, persona.answer(respond)).accept
    assert validated_reply(pick, persona.answer(pick)).choice == "nop"


def test_two_entries_at_one_step_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"two .* stand at step 1"):
        puppet(tmp_path, "[[script.step]]\n[[script.step]]\nat = 1\n")


def test_a_fault_in_a_script_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "puppet.toml"
    path.write_text(HEAD + "[[script.step]]\n[[script.step]]\ndelay_s = -1\n", encoding="utf-8")
    (message,) = lint_persona(path)
    assert message.startswith(f"{path}:11: error: script.step.2.delay_s: -1: it must be at least 0")


def test_a_fallback_reply_proposes_nothing_and_says_why() -> None:
    reply = fallback_reply(StubWorld(), stub_request(), "no answer within 0.2 s\x1b[2J")
    assert reply == Reply(fallback="no answer within 0.2 s[2J")


EXTENSION = """
class Cheap:
    def __init__(self, spec, seat):
        self.seat = "somebody else"

    def answer(self, request):
        from policies.records import Proposal, Reply
        from world.actions import Action
        return Reply((Proposal((Action("save"),), request.ask.seat),))


def quick(spec, seat):
    made = Cheap(spec, seat)
    made.blocking = False
    return made


def broken(spec, seat):
    raise ValueError("no")


nothing = 3
"""


def extension(folder: Path, kind: str) -> Persona:
    path = folder / "puppet.toml"
    head = 'schema = "persona/1"\n[identity]\nid = "e"\nrole = "e"\n'
    path.write_text(f'{head}[backend]\nkind = "{kind}"\n', encoding="utf-8")
    return make_persona(load_persona(str(path)), "cost")


def test_a_python_object_can_speak_and_cannot_take_another_seat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warroom_extension_sample.py").write_text(EXTENSION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    persona = extension(tmp_path, "python:warroom_extension_sample:Cheap")
    assert isinstance(persona, Persona)
    assert (persona.seat, persona.blocking) == ("cost", True)
    request = stub_request()
    assert validated_reply(request, persona.answer(request)).proposals[0].rationale == "cost"
    assert not extension(tmp_path, "python:warroom_extension_sample:quick").blocking
    for name, words in (("broken", "ValueError: no"), ("nothing", "cannot be called")):
        with pytest.raises(ConfigError, match=words):
            extension(tmp_path, f"python:warroom_extension_sample:{name}")
    with pytest.raises(UnknownNameError, match="has no 'absent'"):
        extension(tmp_path, "python:warroom_extension_sample:absent")
    with pytest.raises(UnknownNameError, match="there is no module"):
        extension(tmp_path, "python:warroom_extension_that_is_not_there:X")


def test_a_file_can_ask_for_its_rule_to_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "puppet.toml"
    text = HEAD.replace("timeout_s = 0.2", 'fallback = "rules"')
    path.write_text(text + "\n[objectives.cost]\nweight = 1.0\n", encoding="utf-8")
    spec = load_persona(str(path))
    reply = fallback_reply(StubWorld(), stub_request(), "it raised", spec)
    assert reply.fallback == "it raised; its rule spoke"
    assert reply.proposals[0].actions[0].kind == "save"
    assert fallback_reply(StubWorld(), stub_request(), "it raised").proposals == ()
