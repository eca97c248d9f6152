"""The one thing that is different in a counterfactual: what it is, and the room that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from orchestrator.spec import EpisodeSpec
from orchestrator.study.recorded import Recorded
from orchestrator.trace.ids import shown_id
from orchestrator.trace.steps import StepRecord, mapping, sequence
from world.errors import ConfigError, UnknownNameError

Kind = Literal["swap", "protocol", "ballot", "drop", "live"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a recorded run.

    Attributes:
        kind: What is changed.
        step: First step that is decided under it, 1….
        seat: The seat that it is about; "" where it is about the protocol.
        value: Persona, protocol or candidate id; "" where the kind says it all.
    """

    kind: Kind
    step: int = 1
    seat: str = ""
    value: str = ""

    def words(self) -> str:
        """The change in one phrase."""
        since = "" if self.step == 1 else f" from step {self.step}"
        return {
            "swap": f"{self.seat} is played by {self.value}{since}",
            "protocol": f"protocol {self.value}{since}",
            "ballot": f"at step {self.step} {self.seat} wants {shown_id(self.value, 80)} most",
            "drop": f"without {self.seat}{since}",
            "live": f"{self.seat} answers anew{since}",
        }[self.kind]

    def as_json(self) -> dict[str, Any]:
        """The change as the header of the new run names it."""
        data: dict[str, Any] = {"kind": self.kind}
        if self.kind == "ballot":
            return {**data, "step": self.step, "seat": self.seat, "candidate": self.value}
        if self.seat:
            data["seat"] = self.seat
        if self.value:
            data["persona" if self.kind == "swap" else "protocol"] = self.value
        return data

    def spec(self, run: Recorded) -> EpisodeSpec:
        """What the changed run is asked to be, on the plain driver and without files.

        Raises:
            UnknownNameError: The seat was not in the room.
            ConfigError: The step was never reached, or the option was not on the table.
        """
        self._check(run)
        before = run.spec
        changes: dict[str, Any] = {"record": ""}
        if self.kind == "protocol":
            changes["protocol"] = self.value
        elif self.kind == "swap":
            changes["personas"] = {**before.personas, self.seat: self.value}
            changes["overrides"] = [
                text for text in before.overrides if not text.strip().startswith(f"{self.seat}.")
            ]
            changes["human"] = [seat for seat in before.human if seat != self.seat]
        elif self.kind == "drop":
            changes["absent"] = [*before.absent, self.seat]
            changes["human"] = [seat for seat in before.human if seat != self.seat]
        return run.rerun_spec(**changes)

    def _check(self, run: Recorded) -> None:
        if self.seat and self.seat not in run.seats:
            near = get_close_matches(self.seat, run.seats, n=1, cutoff=0.5)
            raise UnknownNameError(
                f"seat {self.seat[:80]!r} was not in the room of run {run.run}",
                f"there were {', '.join(run.seats)}",
                f"Did you mean {near[0]}?" if near else "Name one of them",
            )
        last = run.ending.last_step
        if not 1 <= self.step <= last:
            raise ConfigError(
                f"step {self.step} was never decided in run {run.run}",
                f"it has steps 1 to {last}",
                "Name one of them",
            )
        if self.kind == "ballot":
            _check_option(run, self)


def _check_option(run: Recorded, change: Change) -> None:
    """What is wanted most must be on the table, and a seat that weighs nothing wants nothing."""
    record = next(step for step in run.stream() if step.step == change.step)
    utilities = mapping(record.ballots.get(change.seat, {}).get("utilities"))
    if not utilities:
        raise ConfigError(
            f"seat {change.seat} valued nothing at step {change.step}",
            "it has no objective that this world measures",
            "Name a seat that hands in a ballot",
        )
    if change.value in utilities:
        return
    names = list(utilities)
    near = get_close_matches(change.value, names, n=3, cutoff=0.4)
    why = _refused(record, change.value) or f"{len(names)} options were on the table"
    raise ConfigError(
        f"{shown_id(change.value, 120)} is no candidate of step {change.step}",
        why,
        f"Did you mean {' or '.join(near)}?" if near else f"For example {names[0]}",
    )


def _refused(record: StepRecord, option: str) -> str:
    for item in map(mapping, sequence(record.candidates.get("items"))):
        if item.get("id") == option:
            return "; ".join(map(str, sequence(item.get("reasons")))) or "it was not valued"
    return ""


def parse_ballot(text: str) -> Change:
    """Read ``STEP:ROLE=ACTION``.

    Raises:
        ConfigError: It is not of that form.
    """
    step, colon, rest = text.partition(":")
    seat, equals, option = rest.partition("=")
    if not (colon and equals and seat and option and step.isdecimal() and len(step) < 10):
        raise ConfigError(
            f"--ballot {text[:80]!r}",
            "it reads STEP:ROLE=ACTION",
            "For example --ballot 7:cost=nop",
        )
    return Change("ballot", int(step), seat, option)


def parse_swap(text: str, step: int) -> Change:
    """Read ``ROLE=PERSONA``.

    Raises:
        ConfigError: It is not of that form.
    """
    seat, equals, persona = text.partition("=")
    if not (equals and seat and persona):
        raise ConfigError(
            f"--swap {text[:80]!r}",
            "it reads ROLE=PERSONA, a name or a path",
            "For example --swap cost=cost_hawk",
        )
    return Change("swap", step, seat, persona)


def origin_of(run: Recorded, change: Change, persona: str = "") -> Mapping[str, Any]:
    """What the header of a new run says about where it comes from: nothing of run ids or paths.

    Args:
        run: The parent.
        change: What is changed.
        persona: Id of the persona that a swap seats; its file may lie anywhere.
    """
    told = replace(change, value=persona) if persona else change
    return {"parent_sha": run.sha, "from_step": change.step, "change": told.as_json()}
