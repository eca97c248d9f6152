"""Writing a trace, and taking it up again after whatever a crash leaves."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from orchestrator.trace.events import START, Chain, Head
from orchestrator.trace.reader import read
from orchestrator.trace.verify import verify
from orchestrator.trace.writer import TraceWriter
from tests.support.traces import commits, lines, small_trace, step_events, write_trace
from world.errors import DigestMismatchError, SchemaVersionError, TraceError


def test_what_is_appended_is_in_the_file_before_the_writer_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    batches = lines(commits(2))
    with TraceWriter(path) as writer:
        assert (writer.last_step, writer.head, writer.ended) == (-1, START, False)
        for step, batch in enumerate(batches[:-1]):
            writer.append(batch, durable=step == 1)
            assert path.read_bytes().splitlines()[-len(batch) :] == batch
            assert (writer.last_step, writer.ended) == (step, False)
        writer.append(batches[-1])
        assert (writer.last_step, writer.ended) == (2, True)
    writer.close()
    assert verify(path).ok


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.jsonl")
    before = path.read_bytes()
    with pytest.raises(TraceError, match="exists already"):
        TraceWriter(path)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"No such file.*--out"):
        TraceWriter(tmp_path / "none" / "t.jsonl")


def test_lines_that_do_not_continue_the_chain_are_refused_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    batches = lines(commits(3))
    with TraceWriter(path) as writer:
        writer.append(batches[0])
        size = path.stat().st_size
        for wrong in (batches[2], batches[0], batches[1][::-1], [batches[1][0][:-1] + b" "]):
            with pytest.raises(DigestMismatchError):
                writer.append(wrong)
        assert path.stat().st_size == size
        writer.append([line for batch in batches[1:] for line in batch])
        assert writer.ended
        with pytest.raises(TraceError, match="has ended"):
            writer.append(batches[1])
    assert verify(path).ok


def test_wherever_the_file_was_cut_resume_and_the_store_log_give_the_same_bytes(
    tmp_path: Path,
) -> None:
    batches = lines([*commits(2, rationale="é")])
    whole = b"".join(line + b"\n" for batch in batches for line in batch)
    ends = [sum(len(line) + 1 for b in batches[: n + 1] for line in b) for n in range(len(batches))]
    path = tmp_path / "t.jsonl"
    for cut in sorted({*range(0, len(whole), 37), *ends, *(end - 1 for end in ends), len(whole)}):
        path.write_bytes(whole[:cut])
        with TraceWriter.resume(path) as writer:
            kept = sum(end <= cut for end in ends)
            assert writer.last_step == min(kept, 3) - 1
            assert writer.ended == (cut == len(whole))
            assert path.stat().st_size == (ends[kept - 1] if kept else 0)
            writer.append([line for batch in batches[kept:] for line in batch])
        assert path.read_bytes() == whole, cut


def test_a_resumed_chain_makes_the_same_lines_as_one_that_never_stopped(tmp_path: Path) -> None:
    batches = [*commits(3)]
    expected = lines(batches)
    path = write_trace(tmp_path / "t.jsonl", batches[:2])
    with TraceWriter.resume(path) as writer:
        chain = Chain(writer.head)
        for batch in batches[2:]:
            writer.append([chain.add(entry) for entry in batch])
    assert path.read_bytes().splitlines() == [line for batch in expected for line in batch]


def test_a_file_ahead_of_the_store_is_cut_after_the_step_that_the_store_has(tmp_path: Path) -> None:
    batches = [*commits(3)]
    for step in (3, 2, 0, -1):
        path = write_trace(tmp_path / f"{step}.jsonl", batches)
        with TraceWriter.resume(path) as writer:
            assert (writer.last_step, writer.ended) == (3, True)
            writer.truncate_after_step(step)
            assert (writer.last_step, writer.ended) == (step, False)
            kept = [line for batch in lines(batches[: step + 1]) for line in batch]
            assert path.read_bytes().splitlines() == kept
            assert writer.head.seq == len(kept)
            with pytest.raises(TraceError, match="ends after step"):
                writer.truncate_after_step(step + 1)


def test_an_edited_file_is_not_resumed_and_not_touched(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(3, ended=False))
    edited = path.read_bytes().replace(b'"reward":-16', b'"reward":-15')
    path.write_bytes(edited + b'{"torn')
    line = next(n for n, raw in enumerate(edited.splitlines(), 1) if b'"reward":-15' in raw)
    with pytest.raises(DigestMismatchError, match=f"line {line} of") as caught:
        TraceWriter.resume(path)
    assert caught.value.exit_code == 1
    assert path.read_bytes() == edited + b'{"torn'


@pytest.mark.parametrize(
    "content", [b"my notes, without a line end", b"notes\n", b"\x00\x00", b"["]
)
def test_a_file_that_is_no_trace_is_not_resumed_and_not_touched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(TraceError):
        TraceWriter.resume(path)
    assert path.read_bytes() == content


def test_a_trace_of_a_newer_schema_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"data":{"schema":"trace/2"},"more":1,"type":"run_started"}\n')
    with pytest.raises(SchemaVersionError, match=r"trace/2.*reads trace/1"):
        TraceWriter.resume(path)


def test_a_full_disk_leaves_whole_commits_only(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    batches = lines(commits(3))
    with TraceWriter(path) as writer:
        writer.append(batches[0])
        writer.append(batches[1])
        size = path.stat().st_size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:  # the nearest thing to a full disk that needs no privilege
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
            with pytest.raises(TraceError, match=r"could not be written \(File too large\)"):
                writer.append(batches[2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)
        assert (path.stat().st_size, writer.last_step) == (size, 1)
        writer.append(batches[2])
    assert [entry.step for entry in read(path)][-1] == 2


def test_a_head_kept_before_a_refused_commit_still_fits_the_file(tmp_path: Path) -> None:
    batches = [*commits(2, ended=False)]
    chain = Chain()
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.append([chain.add(entry) for entry in batches[0]])
        kept: Head = chain.head
        for entry in step_events(1, chosen="scale_down"):
            chain.add(entry)  # the store refuses this step
        chain.head = kept
        writer.append([chain.add(entry) for entry in batches[1]])
        assert writer.head == chain.head
