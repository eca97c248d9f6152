"""Writes a trace as a log of Inspect (UK AI Security Institute, https://inspect.aisi.org.uk).

An episode is a sample: steps and rounds are spans, everything that happened is an event in the
words of the trace, the scorecard is its score, and the world as it was last seen is its store. The
file is written by Inspect's own library, because its container is not a documented format; the
library is an extra, imported here only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.trace.events import Event
from orchestrator.trace.links import Torn, scan
from orchestrator.trace.steps import Header, mapping, numbers
from orchestrator.trace.untrusted import printable
from world.errors import MissingExtraError, TraceError

EXTRA = "inspect"
_SCORER = "war_room"
_NO_MODEL = "none/none"


def export_inspect(path: Path, out: BinaryIO) -> int:
    """Write one ``.eval`` file with one sample.

    A trace holds no clock, and Inspect wants one: events are a millisecond apart, from the time
    at which the file was last written.

    Returns:
        Number of events of the trace in it.

    Raises:
        MissingExtraError: Inspect is not installed.
        TraceError: As `orchestrator.trace.links.scan`, or the trace ends within a line.
    """
    library = _library()
    with tempfile.TemporaryDirectory(prefix="warroom-inspect-") as folder:
        target = Path(folder) / "trace.eval"
        log, count = _log(library, path)
        library.log.write_eval_log(log, str(target), format="eval")
        with target.open("rb") as written:
            shutil.copyfileobj(written, out)
    return count


def _log(library: Any, path: Path) -> tuple[Any, int]:
    """The whole log as Inspect's own objects, and how many events went into it."""
    began = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    events, sha = _events(path)
    header = Header(mapping(events[0].data))
    ending = mapping(events[-1].data) if events[-1].type == "run_ended" else {}
    card = mapping(ending.get("scorecard"))
    score = _score(library, card)
    sample = library.log.EvalSample(
        id=f"seed-{header.data.get('seed', 0)}",
        epoch=1,
        input=_input(header),
        target="every target holds at the end",
        scores={_SCORER: score} if card else None,
        metadata={"room": _plain(header.data), "trace_sha": sha},
        store=_store(events),
        events=list(_spans(library, events, began, score if card else None)),
        started_at=began.isoformat(),
        uuid=sha[:22],
    )
    log = library.log.EvalLog(
        status="success" if ending else "cancelled",
        eval=_spec(library, header, began, sha),
        results=_results(library, card) if card else None,
        samples=[sample],
    )
    return log, len(events)


def _events(path: Path) -> tuple[list[Event], str]:
    events: list[Event] = []
    sha = ""
    for link in scan(path):
        if isinstance(link, Torn):
            raise TraceError(
                f"{path} ends within line {link.line}",
                "its writer was killed, or the file was cut off",
                "Resume the run to repair it: run_warroom.py run --resume RUN",
            )
        events.append(link.event())
        sha = link.head.sha
    return events, sha


def _spec(library: Any, header: Header, began: datetime, sha: str) -> Any:
    scenario = printable(str(header.scenario.get("name", "")), 200)
    return library.log.EvalSpec(
        eval_id=sha[:22],
        run_id=sha[22:44],
        created=began.isoformat(timespec="seconds"),
        task=f"war_room/{scenario}",
        task_id=sha[44:],
        task_version=1,
        task_args={
            "seed": header.data.get("seed"),
            "protocol": header.protocol,
            "personas": header.personas,
            "room": _plain(mapping(header.data.get("room"))),
        },
        dataset=library.log.EvalDataset(
            name=scenario, samples=1, sample_ids=[f"seed-{header.data.get('seed', 0)}"]
        ),
        model=_NO_MODEL,
        config=library.log.EvalConfig(epochs=1),
        metadata={"trace_sha": sha},
    )


def _input(header: Header) -> str:
    """What the room was asked to do, in one paragraph."""
    targets = mapping(header.scenario.get("targets"))
    wanted = ", ".join(f"{name} below {value}" for name, value in targets.items())
    who = ", ".join(f"{seat} ({name})" for seat, name in header.personas.items())
    title = header.scenario.get("title") or header.scenario.get("name", "")
    return printable(
        f"{title}. Targets: {wanted or 'none'}. {header.horizon} steps. Seats: {who}. "
        f"Protocol: {header.protocol}.",
        4_000,
    )


def _store(events: Iterable[Event]) -> dict[str, Any]:
    """The world as it was last seen: metrics after the last step, and the rolling digest."""
    last: Mapping[str, Any] = {}
    for event in events:
        if event.type == "applied":
            last = mapping(event.data)
    return {"metrics": _plain(mapping(last.get("metrics"))), "state": str(last.get("state", ""))}


def _score(library: Any, card: Mapping[str, Any]) -> Any:
    return library.scorer.Score(
        value=float(numbers(card).get("total", 0.0)),
        answer="in target" if card.get("success") else "not in target",
        explanation=printable(str(card.get("note", "")), 2_000) or None,
        metadata=_plain(card),
    )


def _results(library: Any, card: Mapping[str, Any]) -> Any:
    total = float(numbers(card).get("total", 0.0))
    figures = {"total": total, "success": float(bool(card.get("success")))}
    metrics = {name: library.log.EvalMetric(name=name, value=v) for name, v in figures.items()}
    score = library.log.EvalScore(name=_SCORER, scorer=_SCORER, metrics=metrics)
    return library.log.EvalResults(total_samples=1, completed_samples=1, scores=[score])


class _Clock:
    """Times a millisecond apart, for a record that has none."""

    def __init__(self, began: datetime) -> None:
        self._began, self._count = began, 0

    def next(self) -> dict[str, Any]:
        """Members that every event of Inspect has."""
        self._count += 1
        seconds = self._count / 1_000
        return {
            "timestamp": self._began + timedelta(seconds=seconds),
            "working_start": seconds,
            "uuid": f"event-{self._count}",
        }


def _spans(library: Any, events: Iterable[Event], began: datetime, score: Any) -> Iterator[Any]:
    """The events of the trace in spans of steps and rounds, the score as the last one."""
    clock, made = _Clock(began), library.event
    open_spans: list[str] = []

    def begin(name: str, kind: str) -> Any:
        parent = open_spans[-1] if open_spans else None
        open_spans.append(name)
        return made.SpanBeginEvent(
            id=name, name=name, type=kind, parent_id=parent, span_id=parent, **clock.next()
        )

    def end() -> Any:
        return made.SpanEndEvent(id=open_spans[-1], span_id=open_spans.pop(), **clock.next())

    step = round_ = 0
    for event in events:
        ended = event.type == "run_ended"
        at = (0, 0) if ended else (event.step, event.round)
        while open_spans and (at[0] != step or (len(open_spans) > 1 and at[1] != round_)):
            yield end()
        if at[0] and not open_spans:
            yield begin(f"step {at[0]}", "step")
        if at[1] and len(open_spans) == 1:
            yield begin(f"step {at[0]}, round {at[1]}", "round")
        step, round_ = at
        yield made.InfoEvent(
            source=f"war_room/{event.type}",
            data={"agent": _utf8(event.agent), **_plain(event.data)},
            span_id=open_spans[-1] if open_spans else None,
            **clock.next(),
        )
    while open_spans:
        yield end()
    if score is not None:
        yield made.ScoreEvent(score=score, scorer=_SCORER, **clock.next())


def _plain(value: Any) -> Any:
    """JSON-plain data whose text is valid UTF-8."""
    if isinstance(value, Mapping):
        return {_utf8(str(name)): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return _utf8(value) if isinstance(value, str) else value


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _library() -> Any:
    try:
        import inspect_ai
        import inspect_ai.event
        import inspect_ai.log
        import inspect_ai.scorer
    except ImportError as error:
        raise MissingExtraError(
            "--format inspect needs inspect_ai, which is not installed",
            f"it is in the extra '{EXTRA}'",
            f"Install it: pip install '.[{EXTRA}]'; or take --format csv",
        ) from error
    return inspect_ai
