"""Reading traces, and finding the one that somebody means."""

from __future__ import annotations

import os
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from orchestrator.runs import claim
from orchestrator.trace.reader import find_run, list_runs, read
from tests.support.traces import commits, small_trace, write_trace
from world.errors import (
    DigestMismatchError,
    SchemaVersionError,
    TraceError,
    UnknownNameError,
)


def test_what_was_written_is_read_back_in_order(tmp_path: Path) -> None:
    batches = [*commits(2, talk=True)]
    events = [*read(write_trace(tmp_path / "t.jsonl", batches))]
    written = [entry for batch in batches for entry in batch]
    assert [entry.seq for entry in events] == [*range(len(written))]
    for entry, source in zip(events, written, strict=True):
        places = (entry.type, entry.step, entry.round, entry.agent)
        assert places == (source.type, source.step, source.round, source.agent)
    assert events[1].data["metrics"]["latency_ms"] == 186.666667


def test_events_before_a_fault_are_given_out_and_the_fault_is_named(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    path.write_bytes(path.read_bytes().replace(b'"reward":-16', b'"reward":99'))
    events = read(path)
    good = [*islice(events, 10)]
    assert [entry.step for entry in good] == [0] + [1] * 9
    with pytest.raises(DigestMismatchError, match="line 19 of"):
        list(events)


def test_an_interrupted_trace_is_read_to_where_it_ends(tmp_path: Path) -> None:
    events = [*read(write_trace(tmp_path / "t.jsonl", commits(2, ended=False)))]
    assert events[-1].type == "grade"


def test_a_file_that_ends_within_a_line_says_so_and_how_to_repair_it(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2, ended=False))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceError, match=r"ends within line 19 .*--resume"):
        [*read(path)]


@pytest.mark.parametrize(
    ("content", "error", "what"),
    [
        (b"", TraceError, "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", TraceError, "is binary"),
        (b"\x00\x01\x02", TraceError, "is binary"),
        (b"step,reward\n1,2\n", TraceError, "not JSON"),
        (b'{"a": 1}\n', TraceError, "not a run_started"),
        (b"[[[[[[[[\n", TraceError, "not JSON"),
        (b"[" * 200_000 + b"\n", TraceError, "not JSON"),
        (b'{"data":{"schema":"trace/1"},"prev":"0', TraceError, "cut off"),
        (b'{"data":{"schema":"trace/9"},"type":"run_started"}\n', SchemaVersionError, "trace/9"),
        (b"\xff\xfe{\x00\n", TraceError, "is binary"),
        ("é\u2028\n".encode("latin-1", "replace"), TraceError, "not UTF-8"),
    ],
)
def test_what_is_no_trace_is_one_clear_line(
    tmp_path: Path, content: bytes, error: type[TraceError], what: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(error, match=what) as caught:
        [*read(path)]
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1


def test_a_newer_schema_in_our_own_form_is_named(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.jsonl")
    path.write_bytes(path.read_bytes().replace(b"trace/1", b"trace/2"))
    with pytest.raises(SchemaVersionError, match=r"trace/2.*this version reads trace/1"):
        [*read(path)]


def test_folders_and_pipes_are_refused_without_waiting_for_them(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(TraceError, match="regular file"):
            [*read(path)]
    with pytest.raises(TraceError, match="cannot be read"):
        [*read(tmp_path / "none")]


def test_reading_a_long_trace_takes_the_memory_of_a_line(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(400))
    assert path.stat().st_size > 1_000_000
    tracemalloc.start()
    count = sum(1 for _ in read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400 * 9 + 2
    assert peak < 500_000


def _finished(out: Path, stem: str = "cloudedge-hard.s1") -> str:
    run, _ = claim(out, stem, {}, b"")
    (out / run / "trace.jsonl").unlink()
    small_trace(out / run / "trace.jsonl")
    return run


def test_last_is_the_run_claimed_last_whatever_the_clock_said(tmp_path: Path) -> None:
    names = [_finished(tmp_path, stem) for stem in ("b", "c", "a")]
    for age, name in enumerate(names):
        os.utime(tmp_path / name / "trace.jsonl", ns=(10**18 - age, 10**18 - age))
    assert list_runs(tmp_path) == names
    assert find_run("last", tmp_path) == tmp_path / names[-1] / "trace.jsonl"
    (tmp_path / names[-1] / "trace.jsonl").unlink()
    assert find_run("last", tmp_path).parent.name == names[-2]


def test_runs_that_were_copied_in_count_as_older_in_order_of_their_time(tmp_path: Path) -> None:
    own = _finished(tmp_path, "own")
    for name, time in (("new", 3), ("old", 1), ("same", 3)):
        (tmp_path / name).mkdir()
        small_trace(tmp_path / name / "trace.jsonl")
        os.utime(tmp_path / name / "trace.jsonl", ns=(time * 10**18, time * 10**18))
    assert list_runs(tmp_path) == ["old", "new", "same", own]
    (tmp_path / ".claim-x").mkdir()
    small_trace(tmp_path / ".claim-x" / "trace.jsonl")
    (tmp_path / ".order").unlink()
    assert set(list_runs(tmp_path)) == {"old", "new", "same", own}


def test_a_run_is_an_id_a_trace_file_or_a_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "runs"
    name = _finished(out)
    trace = out / name / "trace.jsonl"
    assert find_run(name, out) == trace
    assert find_run(str(trace), tmp_path / "elsewhere") == trace
    assert find_run(str(out / name), tmp_path / "elsewhere") == trace
    monkeypatch.chdir(tmp_path)
    assert find_run(f"runs/{name}/", Path("none")).samefile(trace)


def test_an_unknown_run_names_the_nearest_and_exits_with_usage(tmp_path: Path) -> None:
    name = _finished(tmp_path)
    with pytest.raises(UnknownNameError, match=f"Did you mean {name}") as caught:
        find_run(name.replace("hard", "hrad"), tmp_path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 5000, "../..", "\x1b[2J", "last"])
def test_names_that_cannot_be_a_run_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_run(name, tmp_path / "runs")
    line = str(caught.value)
    assert "run_warroom.py run" in line
    assert line.isprintable()
    assert len(line) < 700
