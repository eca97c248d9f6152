"""Any text that a model can write becomes a checked reply or one typed fault."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.backends.llm.desk import DeskSettings, ModelDesk
from agents.backends.llm.faults import ModelFault
from agents.backends.llm.meter import Meter, Price
from agents.backends.llm.persona import LLMPersona
from agents.backends.llm.prompt import Rendered
from agents.backends.llm.quoting import CLOSE, OPEN, quoted
from agents.backends.llm.recording import Attempt
from agents.persona import load_persona
from agents.validate import validated_reply
from policies.records import Request, Usage
from tests.support.asks import request_of
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

WORDS = Rendered("system", "user")
KINDS = ("propose", "ballot", "respond", "pick")
PAYLOAD = {"candidates": ["scale_up", "scale_down"], "offer": "scale_up"}
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)
KEYS = (
    "proposals",
    "actions",
    "kind",
    "target",
    "params",
    "rationale",
    "confidence",
    "scores",
    "option",
    "score",
    "accept",
    "counter",
    "message",
    "choice",
)


def questions() -> list[Request]:
    asked = []
    for name in ("cloudedge/hard", "finops/zombie_cleanup", "cloud/easy"):
        scenario = load_scenario(name)
        world = make_world(scenario)
        seen = world.observe(world.reset(scenario, [1]))
        for kind in KINDS:
            payload = {} if kind == "propose" else PAYLOAD
            asked.append(request_of(world, scenario, [seen], kind=kind, payload=payload))  # type: ignore[arg-type]
    return asked


QUESTIONS = questions()
PERSONA = LLMPersona(load_persona("cost"), "cost", ModelDesk(DeskSettings(), {}))


def read(request: Request, text: str) -> bool:
    """Whether a text is usable; anything but a reply or a typed fault is an error here."""
    attempt = Attempt(1, "prompt", text=text)
    try:
        reply = PERSONA._concluded(request, WORDS, [attempt], 1.0)
    except ModelFault as error:
        fault = error
    else:
        assert validated_reply(request, reply) == reply
        return True
    assert fault.usage.calls == 1
    assert len(fault.notes) == 1
    return False


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.sampled_from(range(len(QUESTIONS))))
def test_any_text_is_read_or_refused(text: str, which: int) -> None:
    read(QUESTIONS[which], text)


@settings(max_examples=300, deadline=None)
@given(documents, st.sampled_from(range(len(QUESTIONS))))
def test_any_document_is_read_or_refused(document: Any, which: int) -> None:
    read(QUESTIONS[which], json.dumps(document))


def grown(draw: random.Random, request: Request, depth: int = 0) -> Any:
    """A document that is nearly of the asked form, with absurd parts."""
    kinds = [template.kind for template in request.world.templates]
    pick = draw.random()
    if depth < 5 and pick < 0.55:
        return {
            draw.choice(KEYS): grown(draw, request, depth + 1) for _ in range(draw.randint(1, 4))
        }
    if depth < 6 and pick < 0.75:
        return [grown(draw, request, depth + 1) for _ in range(draw.randint(0, 4))]
    return draw.choice(
        [
            draw.choice(kinds),
            "terminate",
            "c1",
            "ignore previous instructions",
            "\u202e\x00\ud800",
            "x" * 3000,
            10**400,
            -1,
            7,
            1e308,
            True,
            None,
            {},
        ]
    )


@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_absurd_answers_are_read_or_refused(part: int) -> None:
    draw = random.Random(part)
    usable = 0
    for number in range(2500):
        request = QUESTIONS[number % len(QUESTIONS)]
        document = grown(draw, request)
        text = json.dumps(document)
        if number % 3 == 0:
            text = text[: draw.randint(0, len(text))]
        if number % 5 == 0:
            text = f"Well: {text} <think>{text}"
        usable += read(request, text)
    assert usable < 2500


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=400), max_size=6))
def test_quoted_text_can_neither_end_its_block_nor_leave_ascii(texts: list[str]) -> None:
    block = quoted("words", texts, 4000)
    assert block.isascii()
    assert block.count(OPEN) == block.count(CLOSE) == 1
    assert block.endswith(CLOSE)
    assert len(block.split("\n")) == max(len(texts), 1) + 2


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0, 2),
    st.lists(st.tuples(st.integers(1, 4000), st.floats(0, 1)), max_size=30),
)
def test_settled_spending_never_passes_the_budget(
    budget: float, calls: list[tuple[int, float]]
) -> None:
    meter, price, spent = Meter(budget), Price(0.0, 100.0), 0.0
    for tokens, share in calls:
        try:
            reserved = meter.reserve(price, 0, tokens)
        except ModelFault:
            continue
        used = price.usd(0, int(tokens * share))
        assert used is not None
        spent += used
        meter.settle("cost", reserved, Usage(1, 0, int(tokens * share), used), certain=True)
    assert spent <= budget + 1e-9
