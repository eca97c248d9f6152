"""A recorded run, as the studies read it: what it was asked to be, and what happened step by step.

Reading checks the hash chain: nothing is ever computed from an edited trace. The spec comes from
the ``run.json`` beside the trace; a trace on its own names scenario, seed, personas, protocol and
rules well enough to build the same room, and `Recorded.room` refuses one that is not the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from orchestrator.runs import RUN_FILE
from orchestrator.spec import EpisodeSpec
from orchestrator.trace.events import Event
from orchestrator.trace.links import Link, Torn, scan
from orchestrator.trace.runs import find_run
from orchestrator.trace.steps import Ending, Header, StepRecord, episode, mapping, sequence
from world.errors import ConfigError, TraceError, UnknownNameError

if TYPE_CHECKING:
    from orchestrator.room import Room

_HASHED = ("scenario", "seats", "protocol", "room", "horizon", "seed")
"""Members of the header that the room of a run is compared by."""


class _Tail(NamedTuple):
    """How a trace ends."""

    ending: Ending
    sha: str


@dataclass(frozen=True)
class Recorded:
    """One run that was recorded. Made by `recorded`.

    Attributes:
        run: Run id (name of its folder), or the stem of a lone trace file.
        path: The trace file.
        header: The data of its first line.
        spec: What it was asked to be; its store is ``server`` where an address was not kept.
    """

    run: str
    path: Path
    header: Header
    spec: EpisodeSpec

    @property
    def seats(self) -> tuple[str, ...]:
        """Seats in room order."""
        return tuple(self.header.personas)

    @property
    def backends(self) -> dict[str, str]:
        """Seat → kind of its backend, in room order."""
        entries = map(mapping, sequence(self.header.data.get("seats")))
        return {str(entry.get("seat", "")): str(entry.get("backend", "")) for entry in entries}

    @property
    def weights(self) -> dict[str, float]:
        """Seat → its weight, in room order."""
        entries = map(mapping, sequence(self.header.data.get("seats")))
        return {str(e.get("seat", "")): float(e.get("weight", 1.0)) for e in entries}

    @cached_property
    def _tail(self) -> _Tail:
        last: Link | None = None
        for link in scan(self.path):
            if isinstance(link, Torn):
                raise _torn(self.path, link)
            last = link
        if last is None or last.type != "run_ended":
            return _Tail(Ending({}, last.step if last else 0, False), last.head.sha if last else "")
        return _Tail(Ending(mapping(last.event().data), last.step, True), last.head.sha)

    @cached_property
    def steps(self) -> tuple[StepRecord, ...]:
        """Every committed step, in order. Reads the whole trace, once; see `stream` for long ones.

        Raises:
            DigestMismatchError: A line was changed.
            TraceError: The file ends within a line.
        """
        return tuple(self.stream())

    @property
    def ending(self) -> Ending:
        """The data of run_ended. Reads the trace to its end, once; raises like `steps`."""
        return self._tail.ending

    @property
    def sha(self) -> str:
        """Hash of the last line; raises like `steps`."""
        return self._tail.sha

    @property
    def rewards(self) -> tuple[float, ...]:
        """Reward of each step; raises like `steps`."""
        return tuple(float(step.grade.get("reward", 0.0)) for step in self.steps)

    @property
    def scorecard(self) -> Mapping[str, Any]:
        """The scorecard; empty where the run has not ended. Raises like `steps`."""
        return mapping(self.ending.data.get("scorecard"))

    def stream(self) -> Iterator[StepRecord]:
        """The committed steps one after the other, one in memory at a time; raises like `steps`."""
        for part in episode(checked_events(self.path)):
            if isinstance(part, StepRecord) and part.complete:
                yield part

    def require_complete(self) -> None:
        """Refuse a run that has not ended.

        Raises:
            TraceError: There is no run_ended.
        """
        if not self.ending.complete:
            raise TraceError(
                f"run {self.run} stops after step {self.ending.last_step}: it is not finished",
                "there is no run_ended",
                f"Finish it: run_warroom.py run --resume {self.run}",
            )

    def rerun_spec(self, **changes: Any) -> EpisodeSpec:
        """The spec for playing this run again beside the record: quickly, and writing nothing.

        The plain driver and a store in this process write the same trace bytes as any other.

        Args:
            changes: Fields to replace.

        Raises:
            ConfigError: A change is not possible; says which.
        """
        return changed(
            self.spec,
            **{
                "driver": "loop",
                "store": "inprocess",
                "checkpointer": "none",
                "out": "",
                **changes,
            },
        )

    def room(self, speaks: bool = False) -> Room:
        """The room of this run, built anew and found to be the same.

        Args:
            speaks: Whether its models are made ready to be called.

        Raises:
            ConfigError: Scenario, a persona, the protocol or a rule has changed since.
        """
        from orchestrator.room import build_room

        room = build_room(self.rerun_spec(), speaks)
        check_same_room(self, room)
        return room


def recorded(run: str | Path, out: str | Path = "runs") -> Recorded:
    """Read what a run was; its steps are read when they are asked for.

    Args:
        run: Run id in `out`, ``last``, or the path of a trace file or of a run's folder.
        out: Parent folder of the runs.

    Raises:
        UnknownNameError: There is no such run.
        SchemaVersionError: It was written by another version.
        TraceError: The file is no trace, or its first line was changed.
    """
    path = run if isinstance(run, Path) and run.is_file() else find_run(str(run), Path(out))
    first = next(checked_events(path))
    header = Header(mapping(first.data))
    record = _record_beside(path)
    name = path.parent.name if record else path.stem
    return Recorded(name, path, header, _spec(record, header, path))


def checked_events(path: Path) -> Iterator[Event]:
    """The events of a trace, each checked against the chain before it is given out.

    Raises:
        DigestMismatchError: A line was changed.
        TraceError: The file ends within a line, or is no trace.
    """
    for link in scan(path):
        if isinstance(link, Torn):
            raise _torn(path, link)
        yield link.event()


def check_same_room(run: Recorded, room: Room) -> None:
    """Refuse a room that is not the one of a record.

    Raises:
        ConfigError: Names what has changed.
    """
    now = json.loads(json.dumps(room.header()))
    for part in _HASHED:
        before, after = run.header.data.get(part), now.get(part)
        if _plain(before) == _plain(after):
            continue
        raise ConfigError(
            f"{_which(part, before, after)} of run {run.run} has changed since it was recorded",
            "what was decided there was decided by another room",
            "Put the changed file back, or start a new run",
        )


def changed(spec: EpisodeSpec, **changes: Any) -> EpisodeSpec:
    """A spec with some fields replaced, checked again.

    Raises:
        ConfigError: A field cannot have that value.
    """
    try:
        return EpisodeSpec.model_validate({**spec.model_dump(mode="json"), **changes})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{where}: {first['msg']}", "the run cannot be played so", "") from error


def _which(part: str, before: object, after: object) -> str:
    """``the persona of seat cost`` rather than ``the seats``."""
    if part != "seats":
        return f"the {part}"
    then = {str(mapping(e).get("seat")): _plain(e) for e in sequence(before)}
    now = {str(mapping(e).get("seat")): _plain(e) for e in sequence(after)}
    for seat in dict.fromkeys((*then, *now)):
        if then.get(seat) != now.get(seat):
            return f"the persona of seat {seat}"
    return "the order of the seats"


def _plain(value: object) -> str:
    return json.dumps(_unified(value), sort_keys=True)


def _unified(value: Any) -> Any:
    """Numbers as the trace spells them: nine significant digits, 3.0 like 3."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{float(value):.9g}"
    if isinstance(value, Mapping):
        return {str(name): _unified(part) for name, part in value.items()}
    return [_unified(part) for part in value]


def _record_beside(path: Path) -> Mapping[str, Any]:
    """The run.json beside a trace; empty where there is none that can be read."""
    try:
        data = json.loads((path.parent / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _spec(record: Mapping[str, Any], header: Header, path: Path) -> EpisodeSpec:
    if "spec" in record:
        try:
            return EpisodeSpec.model_validate(record["spec"])
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise UnknownNameError(
                f"{path.parent} holds no run that this version can read",
                f"run.json: spec.{'.'.join(map(str, first['loc']))}: {first['msg']}",
                "Read it with the version that wrote it",
            ) from error
    return _spec_of_header(header, path)


def _spec_of_header(header: Header, path: Path) -> EpisodeSpec:
    """What a trace on its own says about how it was made."""
    rules = mapping(header.data.get("room"))
    names = ("no_deal", "disagreement", "lookahead_steps", "samples", "plan_steps")
    found = {name: rules[name] for name in names if name in rules}
    controls = ("approve", "blast_radius", "blast_share", "freeze")
    found |= {name: rules[name] for name in controls if name in rules}
    try:
        return EpisodeSpec.model_validate(
            {
                "scenario": header.scenario.get("name"),
                "seed": header.data.get("seed"),
                "steps": header.horizon or None,
                "personas": header.personas,
                "protocol": header.protocol,
                "driver": "loop",
                "store": "inprocess",
                **found,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise TraceError(
            f"{path} does not say what it is a trace of",
            f"run_started: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            "Read it with the version that wrote it",
        ) from error


def _torn(path: Path, torn: Torn) -> TraceError:
    return TraceError(
        f"{path} ends within line {torn.line}",
        "its writer was killed, or the file was cut off",
        "Resume the run to repair it: run_warroom.py run --resume RUN",
    )
