"""The gate between backends and the room: absurd replies are refused or made plain."""

from __future__ import annotations

import json
import math
import unicodedata
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.validate import MAX_TEXT, cleaned_text, validated_reply
from policies.records import AskKind, Proposal, Reply, Request, Usage
from tests.support.asks import stub_request
from tests.support.stub_world import StubWorld
from world.actions import Action, ActionTemplate, ParamSpec, parse_joint
from world.errors import InvalidProposalError

KINDS: tuple[AskKind, ...] = ("propose", "ballot", "respond", "pick")


class ParamWorld(StubWorld):
    """The stub world with a targeted kind, a required and an optional parameter."""

    templates = (
        *StubWorld.templates,
        ActionTemplate("resize", "Resize", (ParamSpec("new_size"),), targeted=True),
        ActionTemplate("wait", "Wait", (ParamSpec("steps", default=1),)),
    )


def asked(kind: AskKind = "propose", payload: dict[str, Any] | None = None) -> Request:
    return replace(stub_request(kind=kind, payload=payload), world=ParamWorld())


def through(actions: Any, **fields: Any) -> Reply:
    """A reply with one proposal of these actions, sent through the gate."""
    return validated_reply(asked(), Reply((Proposal(actions, **fields),)))


class Hostile:
    """Raises from everything that a careless reader would touch."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("gotcha")

    def __repr__(self) -> str:
        raise SystemError("gotcha")


class HostileReply(Reply):
    """Passes for a reply until it is read."""

    def __getattribute__(self, name: str) -> Any:
        if name == "usage":
            raise RuntimeError("gotcha")
        return super().__getattribute__(name)


LEAVES = st.one_of(
    st.builds(Hostile),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.binary(max_size=5),
    st.sampled_from(
        [
            10**400,
            -(2**63),
            "\ud800",
            "x" * 100_000,
            np.float64("nan"),
            np.int64(3),
            np.bool_(True),
            np.array([1.0, 2.0]),
            np.str_("save"),
            1j,
            object(),
            Action,
            Reply,
            iter([1]),
            range(10**12),
            {1, 2},
        ]
    ),
)
JUNK = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=10),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers()), inner, max_size=5),
    ),
    max_leaves=8,
)
ACTIONS = st.one_of(
    st.sampled_from(
        [Action("save"), Action("nop"), Action.of("resize", "vm-1", new_size="m5.large")]
    ),
    st.builds(Action, JUNK, JUNK, JUNK),  # type: ignore[arg-type]
    JUNK,
)
PROPOSALS = st.one_of(
    st.builds(
        Proposal,
        st.one_of(st.lists(ACTIONS, max_size=4).map(tuple), JUNK),
        JUNK,
        JUNK,
        st.one_of(st.just({}), JUNK),
    ),
    JUNK,
)
PLAIN = Reply()
REPLIES = st.one_of(
    JUNK,
    st.builds(HostileReply),
    st.builds(
        Reply,
        proposals=st.one_of(st.lists(PROPOSALS, max_size=10), JUNK),
        scores=st.one_of(st.dictionaries(st.text(max_size=3), st.integers(-1, 11)), JUNK),
        accept=JUNK,
        counter=JUNK,
        choice=JUNK,
        message=JUNK,
        usage=st.one_of(st.just(Usage()), st.builds(Usage, JUNK, JUNK, JUNK, JUNK), JUNK),  # type: ignore[arg-type]
        fallback=st.one_of(st.just(""), JUNK),
    ),
)


def assert_plain(request: Request, reply: Reply) -> None:
    """What passed is of exactly the declared types and within every bound."""
    assert type(reply) is Reply
    assert type(reply.proposals) is tuple
    assert len(reply.proposals) <= 8
    kinds = {template.kind for template in request.world.templates}
    for proposal in reply.proposals:
        assert type(proposal) is Proposal
        assert 1 <= len(proposal.actions) <= request.world.limits.max_actions_per_step
        assert proposal.confidence is None or 0.0 <= proposal.confidence <= 1.0
        for action in proposal.actions:
            assert type(action) is Action
            assert action.kind in kinds
            assert {type(value) for _, value in action.params} <= {str, int, float, bool}
            parse_joint(action.id)
    document = {
        "texts": [reply.message, reply.fallback, reply.choice, reply.counter],
        "rationales": [proposal.rationale for proposal in reply.proposals],
        "claims": [dict(proposal.claimed) for proposal in reply.proposals],
        "confidence": [proposal.confidence for proposal in reply.proposals],
        "scores": dict(reply.scores),
        "accept": reply.accept,
        "usage": [reply.usage.calls, reply.usage.usd],
    }
    json.dumps(document, allow_nan=False).encode()
    assert all(len(text) <= MAX_TEXT for text in document["rationales"])  # type: ignore[union-attr]


@given(REPLIES, st.sampled_from(KINDS), st.booleans())
def test_an_absurd_reply_is_refused_on_one_line_or_made_plain(
    reply: Any, kind: AskKind, with_candidates: bool
) -> None:
    request = asked(kind, {"candidates": ["nop", "save"]} if with_candidates else None)
    try:
        passed = validated_reply(request, reply)
    except InvalidProposalError as error:
        line = error.line()
        assert line
        assert "\n" not in line
        assert len(line) < 500
        line.encode()
    else:
        assert_plain(request, passed)
        assert validated_reply(request, passed) == passed


@given(
    st.lists(
        st.lists(
            st.sampled_from([Action("save"), Action("speed_up"), Action("nop")]),
            min_size=1,
            max_size=2,
            unique=True,
        ).map(tuple),
        max_size=8,
    ),
    st.text(max_size=50),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_a_well_formed_reply_passes_with_its_actions_in_order(
    joints: list[tuple[Action, ...]], text: str, confidence: float | None
) -> None:
    reply = Reply(tuple(Proposal(joint, text, confidence) for joint in joints))
    passed = validated_reply(asked(), reply)
    assert [proposal.actions for proposal in passed.proposals] == joints
    if confidence is not None:
        assert all(
            math.isclose(cast(float, proposal.confidence), confidence, rel_tol=1e-8, abs_tol=0)
            for proposal in passed.proposals
        )


SPACING = str.maketrans({"\n": None, "\t": None})


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_cleaned_text_is_bounded_and_free_of_control_characters(text: str) -> None:
    cleaned = cleaned_text(text)
    assert len(cleaned) <= MAX_TEXT
    categories = {unicodedata.category(character) for character in cleaned.translate(SPACING)}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    cleaned.encode()
    assert cleaned_text(cleaned) == cleaned
    assert "\x1b" not in cleaned
    assert "\u202e" not in cleaned


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "the reply is nothing"),
        ("terminate all", "the reply is a str"),
        ({"proposals": []}, "the reply is a dict"),
        (HostileReply(), "reading it raised RuntimeError"),
        (Reply(proposals=cast(Any, None)), "proposals is nothing"),
        (Reply(proposals=cast(Any, [None])), "proposal 1 is nothing"),
        (Reply((Proposal((Action("save"),)),) * 9), "proposals: 9 given (at most 8)"),
        (Reply((Proposal(()),)), "proposal 1 has no action (a proposal has 1 to 2)"),
        (Reply((Proposal((Action("save"), Action("nop"), Action("speed_up"))),)), "at most 2"),
        (Reply((Proposal((Action("save"), Action("save"))),)), "the same action twice"),
        (Reply((Proposal((Action("save"),)), Proposal((Action("sav"),)))), "proposal 2: there is"),
        (Reply((Proposal((Action("resize"),)),)), "resize has no target"),
        (Reply((Proposal((Action("resize", "vm"),)),)), "lacks the parameter 'new_size'"),
        (Reply((Proposal((Action("save", "vm"),)),)), "save has the target 'vm'"),
        (Reply((Proposal((Action.of("wait", days=2),)),)), "has the parameter 'days'"),
        (Reply((Proposal((Action.of("wait", steps=math.nan),)),)), "it must be finite"),
        (Reply((Proposal((Action("save"),), confidence=1.5),)), "confidence is 1.5"),
        (Reply((Proposal((Action("save"),), confidence=math.nan),)), "confidence is nan"),
        (Reply((Proposal((Action("save"),), confidence=cast(Any, True)),)), "must be a number"),
        (Reply((Proposal((Action("save"),), rationale=cast(Any, 3)),)), "must be text"),
        (Reply((Proposal((Action("save"),), claimed={"m": math.inf}),)), "must be finite"),
        (Reply(usage=Usage(calls=-1)), "usage counts -1"),
        (Reply(usage=Usage(usd=math.nan)), "must be finite"),
    ],
)
def test_the_first_fault_is_named(reply: Any, words: str) -> None:
    with pytest.raises(InvalidProposalError) as caught:
        validated_reply(asked(), reply)
    assert words in caught.value.line()


def test_plain_relatives_of_the_right_types_are_normalised() -> None:
    action = Action("resize", cast(Any, np.str_("vm-1")), (("new_size", np.str_("m5.large")),))
    reply = through([action], confidence=np.float32(0.5), claimed={"cost": np.int64(-3)})
    (proposal,) = reply.proposals
    assert proposal.actions == (Action.of("resize", "vm-1", new_size="m5.large"),)
    assert type(proposal.actions[0].target) is str
    assert proposal.confidence == 0.5
    assert proposal.claimed == {"cost": -3.0}
    assert through((Action.of("wait", steps=np.int64(3)),)).proposals[0].actions[0].id == (
        "wait:steps=3"
    )


def test_texts_are_cut_and_stripped_and_identifiers_never_altered() -> None:
    rationale = "\x1b[31mred\x1b[0m \u202egpj.exe\u200b\nline two" + "x" * 5000
    (proposal,) = through((Action("save"),), rationale=rationale).proposals
    assert proposal.rationale.startswith("[31mred[0m gpj.exe\nline two")
    assert len(proposal.rationale) <= MAX_TEXT
    odd = "i-0\u202eab \x1b'\";DROP"
    action = Action.of("resize", odd, new_size="m5.large")
    assert through((action,)).proposals[0].actions == (action,)
    with pytest.raises(InvalidProposalError, match="characters long"):
        through((Action.of("resize", "x" * 5000, new_size="m5.large"),))
    with pytest.raises(InvalidProposalError, match="surrogate"):
        through((Action.of("resize", "\udc80", new_size="m5.large"),))


def test_only_the_field_that_the_ask_names_is_kept() -> None:
    reply = Reply(
        proposals=(Proposal((Action("save"),)),),
        scores={"save": 10},
        accept=True,
        counter="save",
        choice="nop",
        message="hello",
    )
    payload = {"candidates": ["nop", "save"]}
    kept = {kind: validated_reply(asked(kind, payload), reply) for kind in KINDS}
    assert kept["propose"] == Reply(proposals=reply.proposals, message="hello")
    assert kept["ballot"] == Reply(scores={"save": 10}, message="hello")
    assert kept["respond"] == Reply(accept=True, counter="save", message="hello")
    assert kept["pick"] == Reply(choice="nop", message="hello")


@pytest.mark.parametrize(
    ("kind", "reply", "words"),
    [
        ("ballot", Reply(scores={"absent": 3}), "not on the table"),
        ("ballot", Reply(scores={"nop": 11}), "whole numbers 0 to 10"),
        ("ballot", Reply(scores={"nop": cast(Any, 2.5)}), "whole numbers 0 to 10"),
        ("ballot", Reply(scores={"nop": True}), "must be a number"),
        ("pick", Reply(choice="absent"), "not on the table"),
        ("pick", Reply(), "not on the table"),
        ("respond", Reply(accept=cast(Any, "yes")), "true or false"),
        ("respond", Reply(counter="absent"), "not on the table"),
    ],
)
def test_answers_outside_the_table_are_refused(kind: AskKind, reply: Reply, words: str) -> None:
    with pytest.raises(InvalidProposalError, match=words):
        validated_reply(asked(kind, {"candidates": ["nop", "save"]}), reply)
