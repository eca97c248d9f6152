"""Events and the chain that joins them."""

from __future__ import annotations

import hashlib
import json

import pytest

from orchestrator.trace.events import GENESIS, Chain, Head, canonical, event
from tests.support.traces import commits


def test_a_line_is_its_event_with_the_hash_before_and_its_own() -> None:
    chain = Chain()
    first = chain.add(event("run_started", 0, 0, {"schema": "trace/1"}))
    second = chain.add(event("ballot", 1, 2, {"x": 0.1}, "cost"))
    stored = json.loads(second)
    assert first.startswith(b'{"data":{"schema":"trace/1"},"prev":"' + GENESIS.encode())
    assert stored["prev"] == json.loads(first)["sha"]
    assert [stored[name] for name in ("agent", "round", "seq", "step", "type")] == [
        "cost", 2, 1, 1, "ballot",
    ]  # fmt: skip


def test_the_hash_covers_the_previous_hash_and_the_line_without_both_hashes() -> None:
    chain = Chain()
    for batch in commits(2, talk=True):
        for entry in batch:
            line = json.loads(chain.add(entry))
            prev, sha = line.pop("prev"), line.pop("sha")
            assert hashlib.sha256(prev.encode() + canonical(line)).hexdigest() == sha
            assert chain.head == Head(line["seq"] + 1, sha)


def test_every_stored_line_is_itself_canonical() -> None:
    chain = Chain()
    for batch in commits(2, rationale='a "quoted" \\ \u2028 é \ud800 line'):
        for entry in batch:
            line = chain.add(entry)
            assert canonical(json.loads(line)) == line


def test_putting_the_head_back_forgets_lines_of_a_refused_commit() -> None:
    chain = Chain()
    chain.add(event("run_started", 0, 0, {}))
    before = chain.head
    refused = chain.add(event("grade", 1, 0, {"reward": 1}))
    chain.head = before
    assert chain.add(event("grade", 1, 0, {"reward": 1})) == refused
    assert Chain(before).add(event("grade", 1, 0, {"reward": 2})) != refused


def test_a_failed_add_leaves_the_chain_where_it_was() -> None:
    chain = Chain()
    with pytest.raises(ValueError, match="NaN"):
        chain.add(event("grade", 1, 0, {"reward": float("nan")}))
    assert chain.head == Head()


@pytest.mark.parametrize(
    ("kind", "step", "round_"), [("opinion", 1, 0), ("grade", -1, 0), ("grade", 1, -2)]
)
def test_an_event_of_an_unknown_type_or_a_negative_place_is_refused(
    kind: str, step: int, round_: int
) -> None:
    with pytest.raises(ValueError, match="event"):
        event(kind, step, round_, {})
