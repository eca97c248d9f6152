"""Where two traces part: the first event that differs, the value in it, and which input did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.trace.diff import ABSENT, TraceDiff, all_parts, diff, first_part, told
from orchestrator.trace.events import Event
from tests.support.traces import HOSTILE, commits, run_started, write_trace
from world.errors import DigestMismatchError, SchemaVersionError, TraceError

Batches = list[list[Event]]


def plain(steps: int = 4, **options: Any) -> Batches:
    """A plain episode."""
    return list(commits(steps, **options))


def with_data(batches: Batches, step: int, kind: str, agent: str = "", **data: Any) -> Batches:
    """The same episode with some members of one event replaced."""

    def changed(entry: Event) -> Event:
        hit = (entry.type, entry.agent) == (kind, agent)
        return replace(entry, data={**entry.data, **data}) if hit else entry

    return [[changed(e) for e in batch] if n == step else batch for n, batch in enumerate(batches)]


def with_seat(batches: Batches, seat: str, **data: Any) -> Batches:
    """The same episode with another persona in one seat."""
    start = batches[0][0]
    seats = [{**s, **data} if s["seat"] == seat else s for s in start.data["seats"]]
    return [[replace(start, data={**start.data, "seats": seats})], *batches[1:]]


def compared(folder: Path, a: Batches, b: Batches) -> TraceDiff:
    """Write both and compare them."""
    return diff(write_trace(folder / "a.jsonl", a), write_trace(folder / "b.jsonl", b))


def test_two_runs_of_the_same_thing_are_the_same(tmp_path: Path) -> None:
    found = compared(tmp_path, plain(), plain())
    assert (found.same, found.first, found.inputs, found.why) == (True, None, (), "")
    assert (found.steps, found.decisions) == (4, 0)
    assert found.events == sum(map(len, plain())) - 1
    assert told(found, ("A", "B"))[0].startswith("the same: ")


@pytest.mark.parametrize(
    ("kind", "agent", "data", "path", "values"),
    [
        ("observation", "", {"unknown": []}, "unknown.0", ("next_crisis_step", ABSENT)),
        ("ballot", "cost", {"utilities": {"scale_up": 9.5}}, "utilities.migrate_region", None),
        ("ballot", "cost", {"weight": 2.0}, "weight", (1, 2)),
        ("decision", "", {"action": "nop"}, "action", ("scale_up", "nop")),
        ("applied", "", {"success": True}, "success", (False, True)),
        ("grade", "", {"reward": 0.25}, "reward", (-15, 0.25)),
    ],
)  # fmt: skip
def test_the_first_value_that_differs_is_named_with_both_values(
    tmp_path: Path, kind: str, agent: str, data: dict[str, Any], path: str, values: Any
) -> None:
    point = compared(tmp_path, plain(), with_data(plain(), 3, kind, agent, **data)).first
    assert point is not None
    assert (point.step, point.kind, point.seat, point.part.path) == (3, kind, agent, path)
    if values is not None:
        assert (point.part.a, point.part.b) == values
    assert point.seq_a == point.seq_b > 0
    assert point.context


def test_only_the_first_difference_is_the_point_and_later_ones_are_counted(tmp_path: Path) -> None:
    other = plain()
    for step in (2, 3, 4):
        other = with_data(other, step, "decision", action="nop")
    found = compared(tmp_path, plain(), other)
    assert found.first is not None
    assert (found.first.step, found.steps, found.decisions) == (2, 4, 3)


def test_an_event_that_only_one_trace_has_is_the_difference(tmp_path: Path) -> None:
    vetoing = [*plain()[:2], *list(commits(4, vetoed=[("cost", "scale_down")]))[2:]]
    point = compared(tmp_path, plain(), vetoing).first
    assert point is not None
    assert (point.step, point.kind, point.other_kind) == (2, "decision", "veto")
    assert point.part.b == "step 2, veto of cost"


def test_another_seed_is_why(tmp_path: Path) -> None:
    other = [[run_started(4, seed=2)], *with_data(plain(), 1, "observation", unknown=[])[1:]]
    found = compared(tmp_path, plain(), other)
    assert [tuple(part) for part in found.inputs] == [("seed", 1, 2)]
    assert found.why == "seed differs, which shows first in what the room observed"


def test_the_persona_of_the_seat_that_first_spoke_otherwise_is_why(tmp_path: Path) -> None:
    other = with_seat(plain(), "cost", digest="e" * 64)
    other = with_seat(other, "janitor", weight=3.0)
    other = with_data(other, 2, "ballot", "cost", proposals=[])
    found = compared(tmp_path, plain(), other)
    assert found.why == "the persona of seat cost differs (digest)"
    assert {part.path for part in found.inputs} == {"seats.cost.digest", "seats.janitor.weight"}


def test_a_seat_that_only_one_room_has_is_named(tmp_path: Path) -> None:
    start = plain()[0][0]
    fewer = {**start.data, "seats": start.data["seats"][:3]}
    found = compared(tmp_path, plain(), [[replace(start, data=fewer)], *plain()[1:]])
    assert [part.path for part in found.inputs] == ["seats.janitor"]
    assert found.inputs[0].b == ABSENT
    assert found.why == "the persona of janitor differs, and nothing that happened does"


def test_different_scenarios_are_said_to_be_so_with_the_fields_that_differ(tmp_path: Path) -> None:
    start = plain()[0][0]
    scenario = {**start.data["scenario"], "name": "cloudedge/easy", "digest": "9" * 64}
    other = [[replace(start, data={**start.data, "scenario": scenario})], *plain()[1:]]
    found = compared(tmp_path, plain(), other)
    assert found.other_scenario
    assert [part.path for part in found.inputs] == ["scenario.digest", "scenario.name"]
    lines = told(found, ("A", "B"))
    assert lines[0].startswith("different scenarios")
    assert any("cloudedge/hard | cloudedge/easy" in line for line in lines)


def test_a_model_that_answered_otherwise_is_why_where_all_inputs_are_the_same(
    tmp_path: Path,
) -> None:
    a = with_seat(plain(), "cost", backend="llm")
    found = compared(tmp_path, a, with_data(a, 2, "ballot", "cost", proposals=[]))
    assert found.why == "seat cost is voiced by llm, which may answer otherwise"


def test_functions_that_differ_on_the_same_inputs_point_to_versions(tmp_path: Path) -> None:
    found = compared(tmp_path, plain(), with_data(plain(), 2, "grade", reward=1.0))
    assert "run.json" in found.why


def test_a_run_that_was_stopped_earlier_is_said_to_be_so(tmp_path: Path) -> None:
    found = compared(tmp_path, plain(), plain()[:3])
    assert found.first is not None
    assert (found.first.step, found.first.other_kind, found.first.part.b) == (3, "", ABSENT)
    assert "stopped earlier" in found.why


def test_text_of_others_is_printed_as_data(tmp_path: Path) -> None:
    other = with_data(plain(), 2, "ballot", "cost", proposals=[{"id": "x", "rationale": HOSTILE}])
    lines = told(compared(tmp_path, plain(), other), ("A\x1b[2J", "B"))
    assert not any(mark in line for line in lines for mark in "\x1b\x07\u202e\r\n")


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda data: data.replace(b"trace/1", b"trace/9", 1), SchemaVersionError, "'trace/9'"),
        (lambda data: data[:-30], TraceError, "ends within line"),
        (lambda data: data.replace(b'"step":2', b'"step":3', 1), DigestMismatchError, "changed"),
    ],
)
@pytest.mark.parametrize("which", ["a", "b"])
def test_a_trace_that_is_none_is_named_in_one_line(
    tmp_path: Path, spoil: Any, error: type[Exception], words: str, which: str
) -> None:
    paths = [write_trace(tmp_path / f"{name}.jsonl", plain()) for name in "ab"]
    spoilt = tmp_path / f"{which}.jsonl"
    spoilt.write_bytes(spoil(spoilt.read_bytes()))
    with pytest.raises(error, match=words) as caught:
        diff(*paths)
    assert "\n" not in str(caught.value)
    assert f"{which}.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("a", "b", "paths"),
    [
        (1, True, [""]),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": {"c": 2}}, {"a": 2, "b": {"c": 3}}, ["a", "b.c"]),
        ({"a": [1, 2, 3]}, {"a": [1, 5, 6]}, ["a.1"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a.1"]),
        (None, {}, [""]),
    ],
)
def test_values_that_differ_are_found_by_their_path(a: Any, b: Any, paths: list[str]) -> None:
    assert [part.path for part in all_parts(a, b)] == paths
    first = first_part(a, b)
    assert [first.path] == paths[:1] if first else not paths
