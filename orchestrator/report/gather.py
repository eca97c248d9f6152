"""One pass over a trace: what a report shows of it, and no more than that in memory.

Every step leaves a `Beat`; ballots and candidates, which make nine tenths of a trace, are only
decoded for the steps that are shown in full (`Scene`): all of a short run, and of a long one some
at even distances and those in which something happened. The chain is checked line by line, so
that no figure is ever drawn from an edited trace.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.runs import TIMINGS_FILE
from orchestrator.study.metrics.spending import Spending, spending
from orchestrator.study.metrics.summary import Summary
from orchestrator.study.metrics.table import Laid, StepMetrics, laid_of, row_of
from orchestrator.trace.links import Link, Torn, scan
from orchestrator.trace.steps import Ending, Header, StepRecord, mapping, numbers
from world.errors import TraceError

EVEN_SCENES = 120
"""Steps that are read in full: all of a run up to this long, else this many at even distances."""
NOTABLE_SCENES = 40
"""Further steps that are read in full because something happened in them."""
_HEAVY = frozenset({"candidates", "ballot", "offer", "response", "llm_call"})
_MANY_STEPS = 2000


@dataclass(frozen=True, slots=True)
class Beat:
    """One step in short.

    Attributes:
        step: The step, 1….
        chosen: Id of the candidate.
        action: Id of what was done now.
        crisis: Whether something was visibly wrong.
        overridden: Whether another rule than the protocol's decided.
        no_deal: The rule that decided where there was no deal.
        rounds: Rounds of the negotiation.
        reward: Its reward.
        success: Whether all targets held after it; None where nobody says.
        vetoes: How many vetoes there were.
        fallbacks: How many answers had to be replaced.
    """

    step: int
    chosen: str
    action: str
    crisis: bool
    overridden: bool
    no_deal: str
    rounds: int
    reward: float
    success: bool | None
    vetoes: int
    fallbacks: int

    @property
    def notable(self) -> bool:
        """Whether something happened that a reader looks for."""
        return bool(self.overridden or self.no_deal or self.vetoes or self.fallbacks)


@dataclass(frozen=True, slots=True)
class Scene:
    """One step in full.

    Attributes:
        record: What the trace says.
        laid: The table of utilities; None where nobody weighed anything.
        row: Its measures.
        even: Whether it counts for means: of a long run, those at even distances.
    """

    record: StepRecord
    laid: Laid | None
    row: StepMetrics
    even: bool


@dataclass(slots=True)
class Account:
    """What a report knows of one run.

    Attributes:
        run: Run id, or the name of the trace file.
        path: The trace file.
        header: Its first line.
        beats: Every step.
        metrics: Metric → its value after each step, NaN where unknown; as long as `beats`.
        opening: Metric → what was observed first.
        targets: Metric → its strict upper bound.
        scenes: Step → the step in full.
        stride: Distance of the steps that count for means; 1 is every step.
        summary: Means of the measures over these steps.
        ending: How it ended.
        sha: Hash of the last line.
        events: Lines of the trace.
        costs: What each step cost; empty where the trace stands alone.
    """

    run: str
    path: Path
    header: Header
    beats: list[Beat] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    opening: dict[str, float] = field(default_factory=dict)
    targets: dict[str, float] = field(default_factory=dict)
    scenes: dict[int, Scene] = field(default_factory=dict)
    stride: int = 1
    summary: Summary = field(default_factory=lambda: Summary(()))
    ending: Ending = field(default_factory=lambda: Ending({}, 0, False))
    sha: str = ""
    events: int = 0
    costs: list[Spending] = field(default_factory=list)

    @property
    def seats(self) -> tuple[str, ...]:
        """Seats in room order."""
        return tuple(self.header.personas)

    @property
    def scorecard(self) -> Mapping[str, Any]:
        """Empty where the run has not ended."""
        return mapping(self.ending.data.get("scorecard"))

    @property
    def score(self) -> float | None:
        """Total of the scorecard."""
        total = self.scorecard.get("total")
        return float(total) if isinstance(total, int | float) else None

    @property
    def reward_total(self) -> float:
        """Sum of the rewards."""
        return math.fsum(beat.reward for beat in self.beats)

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """Metrics worth a panel: those with a target; where there is none, the first four."""
        with_target = tuple(name for name in self.targets if name in self.metrics)
        return with_target or tuple(self.metrics)[:4]

    def featured(self) -> Scene | None:
        """The most contested decision: where the seats were furthest apart on the choice.

        That is the largest shortfall of one seat to its own best; of equal ones the earliest.
        """
        best: Scene | None = None
        most = -1.0
        for scene in self.scenes.values():
            lacked = scene.row.measures.get("max_individual_shortfall")
            if scene.laid is None or lacked is None or len(scene.laid.seats) < 2:
                continue
            if lacked > most + 1e-9:
                best, most = scene, lacked
        return best


def gather(path: Path, run: str = "") -> Account:
    """Read a trace once, checked, and keep what a report shows.

    Args:
        path: The trace file.
        run: What to call it; by default its folder's name, or its own.

    Raises:
        SchemaVersionError: The trace is of another schema.
        DigestMismatchError: A line was changed.
        TraceError: This is no trace, it cannot be read, or it ends within a line.
    """
    links = _links(path)
    first = next(links)
    header = Header(mapping(first.event().data))
    named = run or (path.parent.name if path.name == "trace.jsonl" else path.stem)
    account = Account(named, path, header, summary=Summary(tuple(header.personas)))
    account.targets = numbers(header.scenario.get("targets"))
    account.stride = max(1, math.ceil(header.horizon / EVEN_SCENES))
    last, pending = first, list[Link]()
    account.events = 1
    for link in links:
        account.events += 1
        last = link
        if link.type == "run_ended":
            account.ending = Ending(mapping(link.event().data), link.step, True)
            continue
        pending.append(link)
        if link.type == "grade":
            _take(account, pending)
            pending.clear()
    if not account.ending.complete:
        account.ending = Ending({}, account.beats[-1].step if account.beats else 0, False)
    account.sha = last.head.sha
    account.costs = list(spending(path.with_name(TIMINGS_FILE)))
    account.summary.spend(account.costs)
    return account


def _links(path: Path) -> Iterator[Link]:
    for link in scan(path):
        if isinstance(link, Torn):
            raise TraceError(
                f"{path} ends within line {link.line}",
                "its writer was killed, or the file was cut off",
                "Resume the run to repair it: run_warroom.py run --resume RUN",
            )
        yield link


def _take(account: Account, links: list[Link]) -> None:
    """Take in one complete step."""
    record = StepRecord(links[-1].step)
    for link in links:
        if link.type not in _HEAVY:
            record.add(link.event())
    beat = _beat(record)
    account.beats.append(beat)
    _measure(account, record)
    even = (record.step - 1) % account.stride == 0
    if even or (_worth_a_look(account, beat) and _room_left(account)):
        full = StepRecord(record.step)
        for link in links:
            full.add(link.event())
        scene = Scene(full, laid_of(full), row_of(full), even)
        account.scenes[full.step] = scene
        if even and full.decision:
            account.summary.add(scene.row)


def _worth_a_look(account: Account, beat: Beat) -> bool:
    """Whether something happened here that was not so in the step before."""
    before = account.beats[-2] if len(account.beats) > 1 else None
    if before is None:
        return True
    turned = before.success is not None and before.success != beat.success
    news = beat.notable and not before.notable
    return turned or news or (beat.crisis and not before.crisis)


def _room_left(account: Account) -> bool:
    """Whether the notable steps so far leave room for the rest of the run."""
    extra = sum(not scene.even for scene in account.scenes.values())
    horizon = max(account.header.horizon, 1)
    due = math.ceil(NOTABLE_SCENES * len(account.beats) / horizon)
    return extra < (NOTABLE_SCENES if horizon < _MANY_STEPS else max(due, 1))


def _beat(record: StepRecord) -> Beat:
    decision, reward = record.decision, record.grade.get("reward")
    rounds = decision.get("rounds")
    success = record.grade.get("success", record.applied.get("success"))
    return Beat(
        step=record.step,
        chosen=record.chosen,
        action=record.action,
        crisis=record.crisis,
        overridden=record.overridden,
        no_deal=str(decision.get("no_deal") or ""),
        rounds=rounds if isinstance(rounds, int) else 0,
        reward=float(reward) if isinstance(reward, int | float) else 0.0,
        success=success if isinstance(success, bool) else None,
        vetoes=len(record.vetoes),
        fallbacks=len(record.fallbacks),
    )


def _measure(account: Account, record: StepRecord) -> None:
    """Take in the metrics of a step; one that appears late was unknown before."""
    if len(account.beats) == 1:
        account.opening = numbers(record.observation.get("metrics"))
        account.targets |= numbers(record.observation.get("targets"))
    found = numbers(record.applied.get("metrics"))
    before = len(account.beats) - 1
    for name in found:
        account.metrics.setdefault(name, [math.nan] * before)
    for name, values in account.metrics.items():
        values.append(found.get(name, math.nan))
