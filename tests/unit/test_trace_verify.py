"""A trace with anything changed in it never verifies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.trace.events import SCHEMA, START, Chain, Head, event, link_sha
from orchestrator.trace.verify import verify
from tests.support.traces import HOSTILE, commits, lines, small_trace, write_trace
from world.errors import TraceError


def test_a_complete_trace_verifies_and_names_its_last_hash(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(4, talk=True, rationale=HOSTILE))
    raw = path.read_bytes().splitlines()
    verdict = verify(path)
    assert verdict.ok
    assert (verdict.events, verdict.steps, verdict.complete) == (len(raw), 4, True)
    assert verdict.sha == json.loads(raw[-1])["sha"]
    assert (verdict.first_bad, verdict.why, verdict.exit_code) == (None, "", 0)
    assert verdict.as_json().keys() >= {"ok", "events", "steps", "sha", "first_bad"}


def test_every_single_changed_byte_is_found_at_its_line(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.jsonl")
    good = path.read_bytes()
    assert verify(path).ok
    for at in range(len(good)):
        line = good[:at].count(b"\n") + 1
        for change in (0x01, 0x20, 0x80):
            bad = bytearray(good)
            bad[at] ^= change
            path.write_bytes(bad)
            verdict = verify(path)
            assert not verdict.ok, (at, change)
            assert verdict.first_bad == line, (at, change, verdict)


def test_every_removed_or_doubled_byte_is_found(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.jsonl")
    good = path.read_bytes()
    for at in range(len(good)):
        for bad in (good[:at] + good[at + 1 :], good[:at] + good[at : at + 1] + good[at:]):
            path.write_bytes(bad)
            assert not verify(path).ok, at


_EDITS: dict[str, Callable[[list[bytes]], bytes]] = {
    "a line removed from the middle": lambda ls: b"".join(ls[:2] + ls[3:]),
    "a line doubled": lambda ls: b"".join([*ls[:2], ls[1], *ls[2:]]),
    "two lines swapped": lambda ls: b"".join([ls[0], ls[2], ls[1], *ls[3:]]),
    "the first line removed": lambda ls: b"".join(ls[1:]),
    "a blank line in between": lambda ls: ls[0] + b"\n" + b"".join(ls[1:]),
    "a blank line at the end": lambda ls: b"".join(ls) + b"\n",
    "Windows line ends": lambda ls: b"".join(ls).replace(b"\n", b"\r\n"),
    "junk appended": lambda ls: b"".join(ls) + b"junk\n",
    "junk without a line end appended": lambda ls: b"".join(ls) + b"junk",
    "a byte order mark": lambda ls: b"\xef\xbb\xbf" + b"".join(ls),
    "the last line end removed": lambda ls: b"".join(ls)[:-1],
    "a zero byte at the end": lambda ls: b"".join(ls) + b"\x00",
    "members in another order": lambda ls: ls[0] + b"".join(
        json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n" for line in ls[1:]
    ),
    "spaces after the commas": lambda ls: b"".join(
        json.dumps(json.loads(line), sort_keys=True).encode() + b"\n" for line in ls
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", _EDITS.values(), ids=_EDITS.keys())
def test_a_rearranged_file_does_not_verify(tmp_path: Path, edit: Callable[..., bytes]) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    path.write_bytes(edit(path.read_bytes().splitlines(keepends=True)))
    verdict = verify(path)
    assert not verdict.ok
    assert verdict.first_bad is not None
    assert "\n" not in verdict.line()


def test_a_trace_without_its_last_line_is_incomplete(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    verdict = verify(path)
    assert (verdict.ok, verdict.complete, verdict.first_bad) == (False, False, None)
    assert "run_ended" in verdict.why
    assert verdict.steps == 2


def _forged(head: Head, inner: bytes, tail: bytes) -> tuple[Head, bytes]:
    """A line whose hash is right although no writer of ours would make it."""
    sha = link_sha(head.sha, b'{"data":' + inner + b',"round":0,"seq":%d,' % head.seq + tail)
    line = b'{"data":%b,"prev":"%b","round":0,"seq":%d,"sha":"%b",%b\n' % (
        inner, head.sha.encode(), head.seq, sha.encode(), tail,
    )  # fmt: skip
    return Head(head.seq + 1, sha), line


@pytest.mark.parametrize(
    ("inner", "tail", "why"),
    [
        (b'{"reward":1,"reward":2}', b'"step":1,"type":"grade"}', "canonical"),
        (b'{"reward":1.0}', b'"step":1,"type":"grade"}', "canonical"),
        (b'{"reward": 1}', b'"step":1,"type":"grade"}', "canonical"),
        (b'{"a":"\\u0041"}', b'"step":1,"type":"grade"}', "canonical"),
        (b'{"reward":0.1234567891}', b'"step":1,"type":"grade"}', "canonical"),
        (b'{"reward":NaN}', b'"step":1,"type":"grade"}', "JSON"),
        (b'{"reward":1e999}', b'"step":1,"type":"grade"}', "recorded"),
        (b'{"a":"\xff"}', b'"step":1,"type":"grade"}', "JSON"),
        (b"{" + b'"a":{' * 100_000 + b"}" * 100_001, b'"step":1,"type":"grade"}', "JSON"),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", b'"step":1,"type":"grade"}', "deeply"),
        (b"{}", b'"step":7,"type":"grade"}', "follows step 0"),
        (b"{}", b'"step":0,"type":"grade"}', "follows step 0"),
        (b"{}", b'"step":1,"type":"opinion"}', "no such type"),
        (b'{"schema":"trace/1"}', b'"step":0,"type":"run_started"}', "first"),
    ],
)
def test_a_line_hashed_by_a_forger_is_still_held_to_the_form(
    tmp_path: Path, inner: bytes, tail: bytes, why: str
) -> None:
    chain = Chain(START)
    first = chain.add(event("run_started", 0, 0, {"schema": SCHEMA})) + b"\n"
    chain.head, forged = _forged(chain.head, inner, tail)
    last = chain.add(event("run_ended", 1, 0, {})) + b"\n"
    path = tmp_path / "t.jsonl"
    path.write_bytes(first + forged + last)
    verdict = verify(path)
    assert (verdict.ok, verdict.first_bad, verdict.events) == (False, 2, 1)
    assert why in verdict.why
    assert len(verdict.line()) < 600


def test_text_that_looks_like_the_end_of_a_line_fools_nobody(tmp_path: Path) -> None:
    sha = "f" * 64
    fake = f'","prev":"{sha}","round":0,"seq":0,"sha":"{sha}","step":1,"type":"grade"}}'
    path = write_trace(tmp_path / "t.jsonl", commits(1, rationale=fake))
    assert verify(path).ok


def test_an_event_after_the_end_is_found(tmp_path: Path) -> None:
    batches = lines(commits(1))
    last = json.loads(batches[-1][-1])
    chain = Chain(Head(last["seq"] + 1, last["sha"]))
    extra = chain.add(event("grade", 1, 0, {"reward": 5}))
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(line + b"\n" for batch in batches for line in batch) + extra + b"\n")
    verdict = verify(path)
    assert (verdict.ok, verdict.first_bad) == (False, last["seq"] + 2)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"hello\n", b"\x7fELF\x00\x01", b"[1]\n", b"{}\n", b'{"data":{']
)
def test_a_file_that_is_no_trace_is_bad_from_its_first_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    verdict = verify(path)
    assert (verdict.ok, verdict.events, verdict.first_bad) == (False, 0, 1)


def test_a_missing_file_or_a_folder_is_an_error_and_not_a_verdict(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(TraceError):
            verify(path)
