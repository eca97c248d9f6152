"""Tells an episode as a story that somebody on call can follow: what was seen, said, decided, won.

The story is a stream of lines made of styled spans, so that a terminal, a file and a test read
the same one. All text of others goes through `printable`, and no span is ever parsed as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from orchestrator.trace.filling import filled
from orchestrator.trace.filters import Filters
from orchestrator.trace.ids import decoded_in, shown_id
from orchestrator.trace.reader import read
from orchestrator.trace.steps import (
    Ending,
    Header,
    StepRecord,
    episode,
    mapping,
    numbers,
    sequence,
)
from orchestrator.trace.talk import told
from orchestrator.trace.untrusted import printable
from world.errors import TraceError

if TYPE_CHECKING:
    from rich.text import Text

Style = Literal["", "title", "dim", "good", "bad", "warn", "seat", "pick"]
_RICH_STYLES: dict[Style, str] = {
    "": "",
    "title": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "seat": "cyan",
    "pick": "bold magenta",
}
_NAME_LIMIT = 120
_ID_LIMIT = 80
_ID_COLUMN = 26
_WRAPPED_LINES = 3
_TALK_LINES = 16
_TOP_SCORES = 3
_NOTICE_LINES = 6
_MOST_TIED = 2
_SAME = 1e-9
_WINDOWS = ("1h", "6h", "3d")
_NOTHING_TO_UNDO, _CANNOT = "nothing to undo", "cannot"
_NO_DEAL = {
    "nobody_votes": "no seat has a vote on this; the least that can be done was chosen",
    "all_vetoed": "every option is vetoed; the one that is least opposed was chosen",
    "nop": "nothing is done",
}
"""What stands where there is no deal, in words; any other name is the protocol that decided."""


class Span(NamedTuple):
    """A run of text in one style."""

    text: str
    style: Style = ""


StoryLine = tuple[Span, ...]


def story(
    path: Path,
    filters: Filters | None = None,
    *,
    width: int = 100,
    full: bool = False,
    found: list[int] | None = None,
) -> Iterator[StoryLine]:
    """The readable story of a trace, line by line.

    Args:
        path: The trace file.
        filters: Which steps; None is all of them.
        width: Columns to wrap rationales to, 40 or more.
        full: Show rationales, talk and eliminations at full length.
        found: Is given the number of each step that is told.

    Raises:
        TraceError: As `orchestrator.trace.reader.read`; lines up to the fault come first.
        UnknownNameError: The filter names nobody in this run.
    """
    teller = _Teller(max(width, 40), full)
    for part, seats in _wanted(path, filters or Filters()):
        match part:
            case Header():
                yield from teller.header(part)
            case StepRecord():
                if found is not None:
                    found.append(part.step)
                yield from teller.step(part, seats)
            case Ending():
                yield from teller.ending(part)


def plain(line: StoryLine) -> str:
    """A line without styles."""
    return "".join(span.text for span in line).rstrip()


def rich_text(line: StoryLine) -> Text:
    """A line for a rich console. Nothing in it is read as markup."""
    from rich.text import Text

    text = Text(no_wrap=False, end="")
    for span in line:
        text.append(span.text, style=_RICH_STYLES[span.style])
    return text


def step_documents(path: Path, filters: Filters | None = None) -> Iterator[dict[str, Any]]:
    """The steps as JSON-plain objects, one per step: the list that ``trace show --json`` prints.

    With a persona in the filter, ballots, vetoes and talk hold only what that seat said.

    Raises:
        TraceError: As `story`.
        UnknownNameError: As `story`.
    """
    for part, seats in _wanted(path, filters or Filters()):
        if isinstance(part, StepRecord):
            yield _document(part, seats)


def _document(record: StepRecord, seats: tuple[str, ...]) -> dict[str, Any]:
    return {
        "step": record.step,
        "crisis": record.crisis,
        "overridden": record.overridden,
        "observation": record.observation,
        "candidates": record.candidates,
        "ballots": {seat: ballot for seat, ballot in record.ballots.items() if seat in seats},
        "vetoes": [veto for veto in record.vetoes if veto["seat"] in seats],
        "talk": [
            {"type": entry.type, "round": entry.round, "seat": entry.agent, **entry.data}
            for entry in record.talk
            if entry.agent in seats or not entry.agent
        ],
        "decision": record.decision,
        "applied": record.applied,
        "grade": record.grade,
        "fallbacks": record.fallbacks,
        "complete": record.complete,
    }


def _wanted(
    path: Path, filters: Filters
) -> Iterator[tuple[Header | StepRecord | Ending, tuple[str, ...]]]:
    """Header, steps that match, and the ending, each with the seats to show."""
    seats: tuple[str, ...] = ()
    for part in _with_targets(episode(read(path))):
        if isinstance(part, Header):
            seats = filters.seats(part)
        elif isinstance(part, StepRecord) and not filters.match(part, seats):
            continue
        yield part, seats


def _with_targets(
    parts: Iterator[Header | StepRecord | Ending],
) -> Iterator[Header | StepRecord | Ending]:
    """The parts, the header with the targets that the world only set when it started."""
    header = next(parts)
    if not isinstance(header, Header):
        yield header
        yield from parts
        return
    try:
        first = next(parts)
    except TraceError:
        yield header
        raise
    if isinstance(first, StepRecord) and (seen := mapping(first.observation.get("targets"))):
        targets = {**mapping(header.scenario.get("targets")), **seen}
        header = Header({**header.data, "scenario": {**header.scenario, "targets": targets}})
    yield header
    yield first
    yield from parts


def number(value: float) -> str:
    """A number for people: as many digits as matter.

    >>> number(1234.56), number(182.44), number(0.41234), number(-18.0)
    ('1,235', '182.4', '0.412', '-18')
    """
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        text = f"{value:.1f}"
    elif size >= 1:
        text = f"{value:.2f}"
    else:
        return f"{value:.3g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def metric_spans(metrics: Mapping[str, Any], targets: Mapping[str, Any]) -> list[StoryLine]:
    """One group of spans per metric, with a mark where it has a target (strict: below is in)."""
    groups: list[StoryLine] = []
    for name in _in_target_order(metrics, targets):
        value, bound = metrics[name], targets.get(name)
        if not isinstance(value, int | float):
            shown = Span("unknown", "warn")
        elif not isinstance(bound, int | float):
            shown = Span(number(value))
        else:
            text = "~0" if 0 < value < 0.001 * bound else number(value)  # nothing to read about
            shown = Span(f"{text} ✓", "good") if value < bound else Span(f"{text} ✗", "bad")
        groups.append((Span(f"{printable(name, 40)} ", "dim"), shown))
    return groups


def _in_target_order(metrics: Mapping[str, Any], targets: Mapping[str, Any]) -> list[str]:
    return [*(n for n in targets if n in metrics), *(n for n in metrics if n not in targets)]


def _name(value: object) -> str:
    return printable(str(value), _NAME_LIMIT)


def _listed(spans: Iterable[Span]) -> list[Span]:
    """Spans joined by a middle dot."""
    joined: list[Span] = []
    for span in spans:
        if joined:
            joined.append(Span(" · ", "dim"))
        joined.append(span)
    return joined


class _Teller:
    """Makes the lines of a story; knows only how wide they may be and who sits where."""

    def __init__(self, width: int, full: bool) -> None:
        self.width = width
        self.full = full
        self.seat_width = 8
        self.targets: Mapping[str, Any] = {}
        self.told: set[tuple[str, str, str]] = set()

    def header(self, header: Header) -> Iterator[StoryLine]:
        """Scenario, seed, length, protocol, targets and seats."""
        scenario, personas = header.scenario, header.personas
        self.seat_width = min(16, max((len(_name(seat)) for seat in personas), default=8))
        self.targets = mapping(scenario.get("targets"))
        yield (
            Span(_name(scenario.get("name", "?")), "title"),
            Span(
                f" · seed {_name(header.data.get('seed', '?'))} · {header.horizon} steps · "
                f"protocol {_name(header.protocol)}"
            ),
        )
        if bounds := numbers(self.targets):
            listed: list[StoryLine] = [
                (Span(f"{_name(n)} < {number(b)}"),) for n, b in bounds.items()
            ]
            yield from self._flow(Span("targets: ", "dim"), listed)
        weights = {
            str(mapping(seat).get("seat")): mapping(seat).get("weight")
            for seat in sequence(header.data.get("seats"))
        }
        seats = []
        for seat, persona in personas.items():
            text = _name(seat) if persona in {seat, ""} else f"{_name(seat)} = {_name(persona)}"
            weight = weights.get(seat)
            if isinstance(weight, int | float) and weight != 1:
                text += f" ×{number(weight)}"
            seats.append(Span(text, "seat"))
        yield (Span("seats: ", "dim"), *_listed(seats))

    def step(self, record: StepRecord, seats: tuple[str, ...]) -> Iterator[StoryLine]:
        """One step: seen, proposed, vetoed, said, decided, came of it."""
        yield ()
        title = [Span(f"step {record.step}", "title")]
        if record.crisis:
            title.append(Span("  CRISIS", "bad"))
        if record.overridden:
            title.append(Span("  OVERRIDDEN", "warn"))
        yield tuple(title)
        targets = mapping(record.observation.get("targets")) or self.targets
        seen = metric_spans(mapping(record.observation.get("metrics")), targets)
        yield from self._flow(Span("  "), seen)
        yield from self._burns(record)
        for incident in sequence(record.observation.get("incidents")):
            yield from self._wrapped(Span("  ! ", "bad"), str(incident))
        if unknown := sequence(record.observation.get("unknown")):
            yield from self._wrapped(Span("  unknown: ", "dim"), ", ".join(map(str, unknown)))
        speakers = [seat for seat in seats if seat in record.ballots]
        ids = [self._id(record.top_proposal(seat).get("id", "")) for seat in speakers]
        column = 2 + max((len(name) for name in ids if len(name) <= _ID_COLUMN), default=0)
        for seat in speakers:
            yield from self._proposal(record, seat, column)
        for veto in record.vetoes:
            if veto["seat"] in seats:
                yield from self._veto(veto)
        yield from self._warnings(record, seats)
        for fallback in record.fallbacks:
            seat = _name(fallback["seat"]) or "room"
            text = f"{_name(fallback.get('kind', ''))}: {fallback.get('what', '')}"
            yield from self._wrapped(Span(f"  fallback of {seat}: ", "warn"), text)
        yield from self._talk(record, seats)
        yield from self._decision(record, seats)
        yield from self._outcome(record, targets)

    def _burns(self, record: StepRecord) -> Iterator[StoryLine]:
        """Services that burn their error budget fast enough to wake somebody, with their tails."""
        services = mapping(mapping(record.observation.get("facts")).get("services"))
        for name, entry in mapping(record.observation.get("burn")).items():
            burn = mapping(entry)
            alerts = sequence(burn.get("alerts"))
            if not alerts:
                continue
            known = numbers(burn)
            windows = [window for window in _WINDOWS if window in known]
            rates = [f"{number(known[window])}× over {window}" for window in windows]
            tails = numbers(services.get(name))
            text = f"{_name(name)} burns its error budget: {', '.join(rates)}"
            text += f" (alert: {', '.join(map(str, alerts))})"
            if "p95_ms" in tails and "p99_ms" in tails:
                text += f"; p95 {number(tails['p95_ms'])}, p99 {number(tails['p99_ms'])} ms"
            yield from self._wrapped(Span("  ! ", "bad"), text)

    def _proposal(self, record: StepRecord, seat: str, column: int) -> Iterator[StoryLine]:
        ballot, proposal = record.ballots[seat], record.top_proposal(seat)
        name = f"  {_name(seat):<{self.seat_width}}  "
        if not proposal:
            why = "abstains" if ballot.get("abstains") else "proposes nothing"
            yield (Span(name, "seat"), Span(why, "dim"))
            return
        candidate = self._id(proposal.get("id", "?"))
        chosen = proposal.get("id") in {record.chosen, record.action}
        lead = (Span(name, "seat"), Span(candidate, "pick" if chosen else ""))
        rationale = str(proposal.get("rationale", ""))
        indent = len(name) + column
        if len(candidate) + 2 > column or self.width - indent < 24:
            yield lead
            yield from self._wrapped(Span(" " * 6), rationale, "dim")
            return
        lines = self._wrap(rationale, self.width - indent)
        yield (*lead, Span(" " * (column - len(candidate))), Span(lines[0] if lines else "", "dim"))
        for line in lines[1:]:
            yield (Span(" " * indent), Span(line, "dim"))

    def _veto(self, veto: Mapping[str, Any]) -> Iterator[StoryLine]:
        text = f"{self._id(veto.get('candidate', '?'))} ({_name(veto.get('rule', ''))}) "
        yield from self._wrapped(
            Span(f"  {_name(veto['seat'])} vetoes: ", "warn"), text + str(veto.get("reason", ""))
        )

    def _warnings(self, record: StepRecord, seats: tuple[str, ...]) -> Iterator[StoryLine]:
        """Red lines that only warn, and what did not fit on the table."""
        notices = [mapping(item) for item in sequence(record.candidates.get("warnings"))]
        notices = [item for item in notices if item.get("seat") in seats or not item.get("seat")]
        notices = [item for item in notices if item.get("candidate") or self._is_new(item)]
        limit = len(notices) if self.full else _NOTICE_LINES
        for item in notices[:limit]:
            text = f"{self._id(item.get('candidate') or '')} ({_name(item.get('rule', ''))}) "
            lead = Span(f"  {_name(item.get('seat') or 'room')} warns: ", "warn")
            yield from self._wrapped(lead, text + str(item.get("reason", "")))
        if len(notices) > limit:
            yield (Span(f"  … and {len(notices) - limit} more warnings", "dim"),)
        dropped = record.candidates.get("dropped_count")
        if isinstance(dropped, int) and dropped > 0:
            yield (Span(f"  {dropped} more options did not fit on the table", "dim"),)

    def _is_new(self, notice: Mapping[str, Any]) -> bool:
        """Whether a warning about no candidate in particular has not been told yet."""
        told = (str(notice.get("seat")), str(notice.get("rule")), str(notice.get("reason")))
        fresh = told not in self.told
        self.told.add(told)
        return fresh

    def _talk(self, record: StepRecord, seats: tuple[str, ...]) -> Iterator[StoryLine]:
        said = told(record, seats, full=self.full, limit=0 if self.full else _ID_LIMIT)
        shown = said if self.full else said[:_TALK_LINES]
        for line in shown:
            lead = Span(f"  round {line.round} {_name(line.who) or 'room'} ", "seat")
            yield from self._wrapped(lead, line.text, "dim")
        if len(said) > len(shown):
            yield (Span(f"  … and {len(said) - len(shown)} more exchanges", "dim"),)

    def _decision(self, record: StepRecord, seats: tuple[str, ...]) -> Iterator[StoryLine]:
        decision = record.decision
        if not decision:
            yield (Span("  no decision was reached before the trace stops", "warn"),)
            return
        how = "by" if decision.get("agreement") else "without agreement, by"
        rounds = decision.get("rounds")
        after = f" after {rounds} rounds" if isinstance(rounds, int) and rounds > 0 else ""
        yield (
            Span("  → ", "pick"),
            Span(self._id(record.chosen), "pick"),
            Span(f"  {how} {_name(decision.get('protocol', '?'))}{after}", "dim"),
        )
        acts = [str(item.get("id", "?")) for item in sequence(record.applied.get("actions"))]
        if len(acts) > 1 and self._id(record.chosen) != record.chosen:
            text = " · ".join(map(self._id, acts))
            yield from self._wrapped(Span("    does: ", "dim"), text, whole=True)
        if reason := decision.get("reason"):
            ids = [record.chosen, *mapping(decision.get("scores"))]
            yield from self._wrapped(Span("    why: ", "dim"), decoded_in(str(reason), ids))
        if no_deal := decision.get("no_deal"):
            words = _NO_DEAL.get(str(no_deal), f"{_name(no_deal)} decided")
            yield from self._wrapped(Span("    no deal: ", "warn"), words)
        if record.overridden:
            rule = _name(decision.get("override_rule", "")) or "another rule"
            before = self._id(decision["overridden_from"])
            text = f"the plain rule would have chosen {before}; {rule} decided"
            yield from self._wrapped(Span("    overridden: ", "warn"), text, whole=True)
        yield from self._scores(decision)
        yield from self._losers(record, seats)
        yield from self._eliminated(mapping(decision.get("eliminated")))

    def _id(self, text: object) -> str:
        """An action id for people; at full length where that was asked for."""
        return shown_id(text, 0 if self.full else _ID_LIMIT)

    def _scores(self, decision: Mapping[str, Any]) -> Iterator[StoryLine]:
        scores = numbers(decision.get("scores"))
        best = sorted(scores, key=lambda name: (-scores[name], name))[:_TOP_SCORES]
        if best:
            text = " · ".join(f"{self._id(name)} {number(scores[name])}" for name in best)
            if len(scores) > len(best):
                text += f" · {len(scores) - len(best)} more"
            yield from self._wrapped(Span("    scores: ", "dim"), text, whole=True)
        if tie := sequence(decision.get("tie")):
            shown = tie if self.full else tie[:_MOST_TIED]
            text = ", ".join(map(self._id, shown))
            if len(tie) > len(shown):
                text += f" and {len(tie) - len(shown)} more"
            yield from self._wrapped(Span("    tied: ", "dim"), text, whole=True)

    def _losers(self, record: StepRecord, seats: tuple[str, ...]) -> Iterator[StoryLine]:
        """Who would have preferred what, and what it was worth to them."""
        losses = []
        for seat in (seat for seat in seats if seat in record.ballots):
            wanted = record.preferred(seat)
            if wanted and wanted != record.chosen:
                worth = numbers(record.ballots[seat].get("utilities"))
                text = f"{_name(seat)} {self._id(wanted)}"
                if wanted in worth and record.chosen in worth:
                    if worth[wanted] - worth[record.chosen] <= _SAME:
                        continue  # It got something just as good.
                    text += f" ({number(worth[wanted])}, got {number(worth[record.chosen])})"
                losses.append(text)
        if losses:
            yield from self._wrapped(Span("    preferred: ", "dim"), " · ".join(losses), whole=True)

    def _eliminated(self, eliminated: Mapping[str, Any]) -> Iterator[StoryLine]:
        """Why options were out of the running: what the guards held back comes first."""
        limit = len(eliminated) if self.full else _NOTICE_LINES
        ordered = sorted(eliminated.items(), key=lambda item: _gravity(str(item[1])))
        for candidate, why in ordered[:limit]:
            yield from self._wrapped(Span(f"    out: {self._id(candidate)}: ", "dim"), str(why))
        if len(eliminated) > limit:
            yield (Span(f"    … and {len(eliminated) - limit} more eliminated", "dim"),)

    def _outcome(self, record: StepRecord, targets: Mapping[str, Any]) -> Iterator[StoryLine]:
        for item in map(mapping, sequence(record.applied.get("actions"))):
            if item.get("status") != "applied":
                why = item.get("reason") or item.get("effect", "")
                text = f"{self._id(item.get('id', '?'))} {why}"
                lead = Span(f"    {_name(item.get('status', '?'))}: ", "warn")
                yield from self._wrapped(lead, text)
            elif (undo := str(item.get("undo", ""))) and undo != _NOTHING_TO_UNDO:
                how = undo if undo.startswith(_CANNOT) else self._id(undo)
                text = f"{self._id(item.get('id', '?'))}: {how}"
                yield from self._wrapped(Span("    undo ", "dim"), text, "dim")
        for happened in sequence(record.applied.get("events")):
            yield from self._wrapped(Span("    happened: ", "warn"), str(happened))
        reward = record.grade.get("reward")
        if record.applied or record.grade:
            after = mapping(record.applied.get("metrics"))
            seen = mapping(record.observation.get("metrics"))
            # A world also records scalars of its own there; the room never saw those as metrics.
            shown = {name: after[name] for name in after if name in seen or name in targets}
            groups = metric_spans(shown or after, targets)
            if isinstance(reward, int | float):
                groups.append((Span(f"reward {reward:+.2f}", "good" if reward > 0 else "bad"),))
            yield from self._flow(Span("  = ", "dim"), groups)

    def ending(self, ending: Ending) -> Iterator[StoryLine]:
        """How it ended, and the scorecard."""
        yield ()
        if not ending.complete:
            yield (
                Span("incomplete: ", "bad"),
                Span(f"the trace stops after step {ending.last_step}, without run_ended"),
            )
            return
        data, card = ending.data, mapping(ending.data.get("scorecard"))
        total, reward = card.get("total"), data.get("reward_total")
        spans = [
            Span(f"ended: {_name(data.get('stop_reason', '?'))} after {ending.last_step} steps")
        ]
        if isinstance(reward, int | float):
            spans.append(Span(f"reward {reward:.2f}"))
        if isinstance(total, int | float):
            spans.append(Span(f"score {total:.3f}", "title"))
        success = bool(card.get("success"))
        spans.append(Span("success", "good") if success else Span("no success at the end", "bad"))
        if not success and card.get("success_any"):
            spans.append(Span("all targets met at some step", "dim"))
        yield from self._flow(Span(""), [(span,) for span in spans])
        for name, component in mapping(card.get("components")).items():
            yield from self._component(_name(name), mapping(component))
        if baselines := numbers(card.get("baselines")):
            text = " · ".join(f"{_name(n)} {number(v)}" for n, v in baselines.items())
            kind = "score" if all(0 <= value <= 1 for value in baselines.values()) else "reward"
            yield from self._wrapped(Span(f"  baselines, {kind}: ", "dim"), text, whole=True)
        for violation in sequence(card.get("violations")):
            yield from self._wrapped(Span("  violation: ", "bad"), str(violation))
        if note := card.get("note"):
            yield from self._wrapped(Span("  note: ", "dim"), str(note))

    def _component(self, name: str, component: Mapping[str, Any]) -> Iterator[StoryLine]:
        value, unit = component.get("value"), _name(component.get("unit", ""))
        shown = number(value) if isinstance(value, int | float) else "unknown"
        explanation = str(component.get("explanation", ""))
        text = f"{shown} {unit}".rstrip()
        if _says(explanation, value, unit):
            text = explanation
        elif explanation:
            text += f" — {explanation}"
        yield from self._wrapped(Span(f"  {name}: ", "dim"), text)

    def _flow(self, lead: Span, groups: list[StoryLine]) -> Iterator[StoryLine]:
        """A lead, then groups of spans with two spaces between, broken only between groups."""
        line, used = [lead], len(lead.text)
        for group in groups:
            size = sum(len(span.text) for span in group)
            if len(line) > 1 and used + 2 + size > self.width:
                yield tuple(line)
                line, used = [Span(" " * len(lead.text))], len(lead.text)
            gap = "  " if len(line) > 1 else ""
            line += [Span(gap), *group]
            used += len(gap) + size
        yield tuple(line)

    def _wrapped(
        self, lead: Span, text: str, style: Style = "", *, whole: bool = False
    ) -> Iterator[StoryLine]:
        """A lead, the text behind it, and further lines below the text.

        Args:
            lead: What stands before.
            text: Anybody's text.
            style: Style of the text.
            whole: Keep all of it, because it is our own summary and short by construction.
        """
        indent = len(lead.text)
        if indent > self.width // 2:  # no room beside it: the text goes below
            yield (lead,)
            lead = Span(" " * 6)
            indent = 6
        lines = self._wrap(text, self.width - indent, whole)
        yield (lead, Span(lines[0] if lines else "", style))
        for line in lines[1:]:
            yield (Span(" " * indent), Span(line, style))

    def _wrap(self, text: str, width: int, whole: bool = False) -> list[str]:
        """At most `_WRAPPED_LINES` lines, unless all is wanted."""
        if self.full or whole:
            return filled(printable(text), width)
        return filled(printable(text, _WRAPPED_LINES * width), width, _WRAPPED_LINES)


def _gravity(why: str) -> int:
    """Place of a reason in the list: guards, then seats' vetoes, then the protocol's own."""
    if why.startswith("guard/"):
        return 0
    return 1 if why.startswith("vetoed ") else 2


def _says(explanation: str, value: object, unit: str) -> bool:
    """Whether an explanation begins with the value and its unit, so that both are said already."""
    found = re.match(rf"(-?[\d.]+(?:e[+-]?\d+)?) {re.escape(unit)}\b", explanation)
    if not found or not unit or not isinstance(value, int | float):
        return False
    return abs(float(found[1]) - value) <= 1e-5 * max(1.0, abs(value))
