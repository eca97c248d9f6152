"""The list of decisions: each step folded up, with every option that was turned down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.console.metric_names import label
from orchestrator.report.bargaining import pareto_figure, strip_figure
from orchestrator.report.gather import Account, Beat, Scene
from orchestrator.report.markup import (
    Html,
    badge,
    folded,
    joined,
    name_of,
    table,
    tag,
)
from orchestrator.report.wording import figure, plan_words, text_or
from orchestrator.study.metrics.points import weighted_sum
from orchestrator.trace.ids import shown_id
from orchestrator.trace.steps import StepRecord, mapping, numbers, sequence
from orchestrator.trace.talk import told
from orchestrator.trace.untrusted import printable

BODY_BYTES = 3_000_000
"""All step bodies of a report together; past it, options are counted instead of listed."""
_RATIONALE = 600
_NAME = 160
_LINES = 60
_METRICS = 4
_PROPOSALS = 8


class Budget:
    """How many bytes of step bodies may still be written."""

    __slots__ = ("left", "withheld")

    def __init__(self, left: int = BODY_BYTES) -> None:
        self.left = left
        self.withheld = 0


def decision_list(account: Account, budget: Budget) -> Html:
    """Every step that was read in full; the others in runs, with the command that shows them."""
    parts: list[Html] = []
    skipped: list[int] = []
    for beat in account.beats:
        scene = account.scenes.get(beat.step)
        if scene is None:
            skipped.append(beat.step)
            continue
        parts += _gap(account, skipped)
        skipped = []
        parts.append(step_entry(account, beat, scene, budget))
    parts += _gap(account, skipped)
    return joined(parts)


def _gap(account: Account, steps: Sequence[int]) -> list[Html]:
    if not steps:
        return []
    first, last = steps[0], steps[-1]
    span = f"step {first} is" if first == last else f"steps {first}–{last} are"
    command = f"trace show {account.run} --step {first}:{last}"
    return [tag("p", f"{span} not listed here: ", tag("code", command), css="gap")]


def step_entry(
    account: Account, beat: Beat, scene: Scene, budget: Budget, prefix: str = "step"
) -> Html:
    """One step, folded up."""
    body = step_body(account, beat, scene, options=budget.left > 0)
    budget.left -= len(body)
    if budget.left <= 0:
        budget.withheld += 1
    flags = " ".join(name for name, on in _flags(beat).items() if on)
    return tag(
        "details",
        tag("summary", summary_line(beat)),
        body,
        css="step",
        id=f"{prefix}-{beat.step}",
        data_step=beat.step,
        data_flags=flags,
    )


def _flags(beat: Beat) -> dict[str, bool]:
    return {
        "notable": beat.notable,
        "crisis": beat.crisis,
        "vetoed": beat.vetoes > 0,
        "overridden": bool(beat.overridden or beat.no_deal),
    }


def summary_line(beat: Beat) -> Html:
    """Number, action, marks and reward of a step."""
    marks = [
        badge(words, css)
        for words, css, on in (
            ("crisis", "warn", beat.crisis),
            ("overridden", "bad", beat.overridden),
            (f"no deal: {beat.no_deal}", "bad", bool(beat.no_deal)),
            (f"{beat.vetoes} vetoed", "soft", beat.vetoes > 0),
            (f"{beat.fallbacks} fallback", "warn", beat.fallbacks > 0),
            ("in target", "good", beat.success is True),
        )
        if on
    ]
    return joined(
        [
            tag("span", beat.step, css="no"),
            tag("span", name_of(plan_words(beat.action, _NAME)), css="what"),
            tag("span", *marks, css="marks"),
            tag("span", _signed(beat.reward), css="rw", title="reward"),
        ]
    )


def _signed(value: float) -> str:
    return f"+{figure(value)}" if value > 0 else figure(value)


def step_body(account: Account, beat: Beat, scene: Scene, *, options: bool) -> Html:
    """What was seen, said, voted, turned down and done in a step."""
    record = scene.record
    decision = record.decision
    rule = text_or(decision.get("protocol"))
    why = text_or(decision.get("reason"), "no reason is recorded")
    parts = [
        tag("p", tag("b", name_of(rule, _NAME)), ": ", name_of(_decoded(why), 800), css="why"),
        *_overridden(record),
        _figures(account, scene),
        _metrics(account, record),
        _proposals(account, record),
        _talk(account, record),
        *_objections(record),
        _options(account, scene) if options else _counted(account, record),
        _outcome(record),
    ]
    return tag("div", *parts, css="body")


def _decoded(text: str) -> str:
    return shown_id(text) if "%" in text else text


def _overridden(record: StepRecord) -> Iterator[Html]:
    rule = record.decision.get("override_rule")
    if record.overridden:
        yield tag(
            "p",
            "the protocol alone would have chosen ",
            name_of(plan_words(str(record.decision["overridden_from"]), _NAME)),
            "; overridden by ",
            name_of(text_or(rule, "another rule"), _NAME),
            css="why",
        )


def _figures(account: Account, scene: Scene) -> Html:
    if scene.laid is None:
        return tag("p", "no seat weighed anything in this step", css="note")
    strip = strip_figure(scene, account.seats, 460)
    drawn = [tag("div", Html(strip.svg()))]
    if len(scene.laid.seats) > 1:
        pair = pareto_figure(scene, account.seats, 300, most=1)
        drawn.append(tag("div", Html(pair.svg())))
    note = "V of every option for each seat (coloured: the choice), and the two seats most at odds"
    return tag("div", *drawn, tag("p", note, css="note"), css="pair")


def _metrics(account: Account, record: StepRecord) -> Html:
    seen = mapping(record.observation.get("metrics"))
    after = mapping(record.applied.get("metrics"))
    names = list(dict.fromkeys([*account.targets, *seen, *after]))
    rows = []
    for name in names:
        words, unit = label(name)
        bound = account.targets.get(name)
        rows.append(
            (
                name_of(f"{words}, {unit}" if unit else words, _NAME),
                figure(_number(seen.get(name))),
                figure(_number(after.get(name))),
                f"< {figure(bound)}" if bound is not None else "–",
            )
        )
    if not rows:
        return Html("")
    return table(("metric", "observed", "after the step", "target"), rows, "Metrics")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _proposals(account: Account, record: StepRecord) -> Html:
    entries = []
    for seat in record.ballots:
        ballot = record.ballots[seat]
        made = [mapping(p) for p in sequence(ballot.get("proposals"))]
        who = tag("dt", _swatch(account, seat), name_of(seat, _NAME))
        if not made:
            said = "abstains" if ballot.get("abstains") else "proposes nothing"
            entries.append(joined([who, tag("dd", said, css="soft")]))
            continue
        lines = [
            tag(
                "dd",
                tag("b", name_of(plan_words(str(p.get("id", "")), _NAME))),
                " ",
                name_of(text_or(p.get("rationale"), ""), _RATIONALE),
            )
            for p in made[:_PROPOSALS]
        ]
        entries.append(joined([who, *lines]))
    if not entries:
        return Html("")
    return joined([tag("h4", "Proposals"), tag("dl", *entries)])


def _swatch(account: Account, seat: str) -> Html:
    place = account.seats.index(seat) if seat in account.seats else 0
    return tag("i", css=f"sw b{place % 8}")


def _talk(account: Account, record: StepRecord) -> Html:
    said = told(record, account.seats, full=False, limit=_NAME)
    if not said:
        return Html("")
    lines = [
        tag("li", tag("span", f"round {line.round} ", css="soft"), name_of(line.who, _NAME),
            " " if line.who else "", name_of(line.text, _RATIONALE))
        for line in said[:_LINES]
    ]  # fmt: skip
    if len(said) > _LINES:
        lines.append(tag("li", f"{len(said) - _LINES} more lines are in the trace", css="soft"))
    return joined([tag("h4", "Rounds"), tag("ul", *lines, css="talk")])


def _objections(record: StepRecord) -> Iterator[Html]:
    lines = [
        tag(
            "li",
            name_of(veto.get("seat") or "the room", _NAME),
            " vetoes ",
            name_of(plan_words(str(veto.get("candidate", "")), _NAME)),
            ": ",
            name_of(veto.get("reason") or veto.get("rule") or "", _RATIONALE),
        )
        for veto in record.vetoes[:_LINES]
    ]
    if len(record.vetoes) > _LINES:
        lines.append(tag("li", f"{len(record.vetoes) - _LINES} more vetoes are in the trace"))
    lines += [
        tag("li", name_of(fault.get("seat") or "the room", _NAME), " was replaced: ",
            name_of(fault.get("what", ""), _RATIONALE))
        for fault in record.fallbacks[:_LINES]
    ]  # fmt: skip
    if lines:
        yield joined([tag("h4", "Vetoes and fallbacks"), tag("ul", *lines)])


def _counted(account: Account, record: StepRecord) -> Html:
    count = len(sequence(record.candidates.get("items")))
    words = f"{count} options are left out here to keep this file small: "
    command = f"trace show {account.run} --step {record.step} --full"
    return tag("p", words, tag("code", command), css="gap")


def _options(account: Account, scene: Scene) -> Html:
    """All options of a step, the choice first, then by the room's weighted sum."""
    record, laid = scene.record, scene.laid
    items = [mapping(item) for item in sequence(record.candidates.get("items"))]
    if not items:
        return Html("")
    shown = [name for name in account.shown_metrics if name in account.targets][:_METRICS]
    places = {} if laid is None else {name: place for place, name in enumerate(laid.names)}
    sums = np.zeros(0) if laid is None else weighted_sum(laid.values, laid.weights)

    def worth(item: Mapping[str, Any]) -> tuple[bool, float, str]:
        name = str(item.get("id", ""))
        place = places.get(name)
        return name != record.chosen, -float(sums[place]) if place is not None else 0.0, name

    items.sort(key=worth)
    head = [
        "option",
        "from",
        *(name_of(seat, 24) for seat in (laid.seats if laid else ())),
        "Σ w·V",
        *(name_of(_short(name), 40) for name in shown),
        "why not",
    ]
    why_not = _reasons(record, items)
    rows = [
        [*_option_row(scene, item, places, sums, shown), why]
        for item, why in zip(items, why_not, strict=True)
    ]
    dropped = record.candidates.get("dropped_count")
    more = f"; {dropped} more were dropped before they were projected" if dropped else ""
    caption = (
        f"All {len(rows)} options{more}. Per seat V, 0 its worst and 1 its best; then the means"
        " that were projected"
    )
    marks = ["chosen" if item.get("id") == record.chosen else "" for item in items]
    listing = table(head, rows, caption, text=(0, 1, len(head) - 1), marks=marks)
    return folded(f"{len(rows) - 1 if rows else 0} rejected options", listing)


def _short(metric: str) -> str:
    words, unit = label(metric)
    return f"{words}, {unit}" if unit else words


def _option_row(
    scene: Scene,
    item: Mapping[str, Any],
    places: Mapping[str, int],
    sums: Any,
    shown: Sequence[str],
) -> list[object]:
    name, laid = str(item.get("id", "")), scene.laid
    place = places.get(name)
    values: list[object] = []
    if laid is not None:
        column = [None] * len(laid.seats) if place is None else laid.values[:, place].tolist()
        values = ["–" if value is None else f"{value:.2f}".replace("-", "−") for value in column]
    total = "–" if place is None else f"{float(sums[place]):.2f}".replace("-", "−")
    projected = numbers(item.get("projected"))
    return [
        name_of(plan_words(name, _NAME)),
        name_of(", ".join(map(str, sequence(item.get("origin")))), 60),
        *values,
        total,
        *(figure(projected.get(metric)) for metric in shown),
    ]


def _reasons(record: StepRecord, items: Sequence[Mapping[str, Any]]) -> list[Html]:
    """Why each option was not chosen, as far as the record says."""
    scores = numbers(record.decision.get("scores"))
    return [_why_not(record, item, scores) for item in items]


def _why_not(record: StepRecord, item: Mapping[str, Any], scores: Mapping[str, float]) -> Html:
    name = item.get("id")
    if name == record.chosen:
        return tag("b", "chosen")
    if item.get("feasible") is False:
        reasons = "; ".join(map(str, sequence(item.get("reasons"))))
        return name_of(f"not feasible: {reasons or 'no reason is recorded'}", 200)
    against = [v for v in record.vetoes if v.get("candidate") == name]
    if against:
        seats = ", ".join(dict.fromkeys(str(v.get("seat") or "the room") for v in against))
        return name_of(f"vetoed by {seats}: {against[0].get('rule', '')}", 200)
    eliminated = mapping(record.decision.get("eliminated")).get(str(name))
    if eliminated:
        return name_of(_decoded(str(eliminated)), 200)
    score, best = scores.get(str(name)), scores.get(record.chosen)
    if score is not None and best is not None:
        return Html(f"score {figure(score)}, {figure(best - score)} below")
    return Html("")


def _outcome(record: StepRecord) -> Html:
    lines = []
    for action in map(mapping, sequence(record.applied.get("actions"))):
        undo = action.get("undo")
        words = f"{action.get('status', '')}: {action.get('effect') or action.get('reason') or ''}"
        lines.append(
            tag(
                "li",
                name_of(plan_words(str(action.get("id", "")), _NAME)),
                " ",
                name_of(words, 300),
                *([" (undo: ", name_of(undo, _NAME), ")"] if undo else []),
            )
        )
    events = sequence(record.applied.get("events"))
    lines += [tag("li", name_of(_event(event), 300)) for event in events[:_LINES]]
    terms = numbers(record.grade.get("terms"))
    told_terms = ", ".join(f"{printable(n, 40)} {_signed(v)}" for n, v in terms.items() if v)
    parts = [tag("h4", "What came of it"), tag("ul", *lines)] if lines else []
    if told_terms:
        parts.append(tag("p", "reward: ", name_of(told_terms), css="note"))
    return joined(parts)


def _event(event: object) -> str:
    found = mapping(event)
    words = found.get("text") or found.get("what") or found.get("message")
    if words:
        return str(words)
    return ", ".join(f"{n} {v}" for n, v in found.items()) if found else str(event)
