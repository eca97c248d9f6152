"""The report of two runs side by side: what differed, where they parted, what each step became."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from orchestrator.console.metric_names import label
from orchestrator.report.bargaining import influence_figure, utility_figure
from orchestrator.report.decisions import Budget, step_body
from orchestrator.report.figures import metric_figure, timeline_figure
from orchestrator.report.gather import Account, Beat
from orchestrator.report.influence import favourites, influence_shares, pivotality
from orchestrator.report.markup import Html, badge, figure, joined, name_of, table, tag
from orchestrator.report.page import NARROW, WIDE, controls, page, section, tiles
from orchestrator.report.single import even_words, foot
from orchestrator.report.wording import figure as number
from orchestrator.report.wording import plan_words
from orchestrator.study.metrics.table import MEASURES
from orchestrator.trace.diff import Part, all_parts

_INPUTS = ("scenario", "seed", "horizon", "seats", "protocol", "room", "counterfactual")
_MOST_INPUTS = 24
_MOST_ROWS = 400
_DIGEST = 12
_SHA = re.compile("[0-9a-f]{64}")


def comparison(one: Account, other: Account) -> str:
    """The HTML file of two runs, A and B."""
    accounts = (one, other)
    parts = [
        _inputs(accounts),
        _totals(accounts),
        _course(accounts),
        _timelines(accounts),
        _utilities(accounts),
        _influences(accounts),
        _measures(accounts),
        section("Decisions", *_decisions(accounts), anchor="decisions"),
    ]
    title = f"{one.run} and {other.run}: comparison"
    return page(title, _head(accounts), [part for part in parts if part], foot(accounts))


def first_difference(one: Account, other: Account) -> int | None:
    """The first step in which something else was done, or that only one of them has."""
    for a, b in zip_longest(one.beats, other.beats):
        if a is None or b is None:
            return (a or b).step if (a or b) is not None else None
        if a.action != b.action:
            return int(a.step)
    return None


def _head(accounts: Sequence[Account]) -> Html:
    lines = [
        tag(
            "p",
            tag("span", "AB"[place], css=f"key k{place}"),
            " ",
            tag("code", name_of(account.run, 200)),
            " ",
            name_of(str(account.header.scenario.get("name", "")), 120),
            f", seed {account.header.data.get('seed', '')}, ",
            tag("b", name_of(account.header.protocol, 80)),
            css="lead",
        )
        for place, account in enumerate(accounts)
    ]
    theme = Html('<button type="button" id="theme" hidden>light / dark</button>')
    return joined(
        [tag("h1", "Two runs side by side"), *lines, theme, tiles(list(_tiles(accounts)))]
    )


def _tiles(accounts: Sequence[Account]) -> Iterator[tuple[str, object, str]]:
    one, other = accounts
    parted = first_difference(one, other)
    same = "nowhere: the same was done in every step"
    yield (
        "They part",
        "never" if parted is None else f"step {parted}",
        same if parted is None else "",
    )
    yield (
        "Reward, B − A",
        _signed(other.reward_total - one.reward_total),
        _pair(one.reward_total, other.reward_total),
    )
    if one.score is not None and other.score is not None:
        yield "Score, B − A", _signed(other.score - one.score), _pair(one.score, other.score)
    held = [_held(account) for account in accounts]
    if held[0] is not None and held[1] is not None:
        words = f"{100 * held[0]:.0f} % and {100 * held[1]:.0f} % of the steps"
        yield "In target, B − A", f"{_signed(100 * (held[1] - held[0]))} points", words
    shared = list(zip(one.beats, other.beats, strict=False))
    differ = sum(a.action != b.action for a, b in shared)
    yield "Other decisions", f"{differ:,}", f"of {len(shared):,} steps that both have"


def _held(account: Account) -> float | None:
    known = [beat.success for beat in account.beats if beat.success is not None]
    return sum(known) / len(known) if known else None


def _pair(one: float | None, other: float | None) -> str:
    return f"A {number(one)}, B {number(other)}"


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def _inputs(accounts: Sequence[Account]) -> Html:
    """What the two were asked to be, where that differs."""
    one, other = (account.header.data for account in accounts)
    parts: list[Part] = []
    for name in _INPUTS:
        parts += all_parts(one.get(name), other.get(name), name)
    if not parts:
        return section("Inputs", tag("p", "Both were asked to be the same.", css="note"))
    names = (one.get("scenario") or {}, other.get("scenario") or {})
    alike = names[0].get("digest") == names[1].get("digest") and one.get("seed") == other.get(
        "seed"
    )
    words = (
        "The same scenario and seed: what happened by chance is the same in both."
        if alike
        else "Another scenario or seed: differences are not due to the room alone."
    )
    rows = [(name_of(p.path, 80), *(name_of(_told(v), 160) for v in p[1:])) for p in parts]
    more = len(rows) - _MOST_INPUTS
    notes = [tag("p", f"{more} more differ", css="note")] if more > 0 else []
    listing = table(("input", "A", "B"), rows[:_MOST_INPUTS], "What differs", text=(0, 1, 2))
    return section("Inputs", tag("p", words), listing, *notes)


def _told(value: Any) -> str:
    if isinstance(value, str):
        return value[:_DIGEST] + "…" if _SHA.fullmatch(value) else value
    return json.dumps(value, ensure_ascii=False)


def _totals(accounts: Sequence[Account]) -> Html:
    """Each metric at the end and on average."""
    one, other = accounts
    rows = []
    for name in dict.fromkeys([*one.shown_metrics, *other.shown_metrics]):
        words, unit = label(name)
        ends, means = ([f(account, name) for account in accounts] for f in (_last, _mean))
        rows.append(
            (
                name_of(f"{words}, {unit}" if unit else words, 60),
                _targets(accounts, name),
                *map(number, means),
                number(_minus(means)),
                *map(number, ends),
                number(_minus(ends)),
            )
        )
    heads = ("metric", "target <", "mean A", "mean B", "B − A", "end A", "end B", "B − A")
    return section("Outcome", table(heads, rows, "Metrics after the steps that each run has"))


def _targets(accounts: Sequence[Account], name: str) -> str:
    """The target of both, or that of A and that of B."""
    found = [number(account.targets.get(name)) for account in accounts]
    return found[0] if found[0] == found[1] else " / ".join(found)


def _last(account: Account, name: str) -> float | None:
    known = account.metrics.get(name)
    return known[-1] if known else None


def _mean(account: Account, name: str) -> float | None:
    known = [value for value in account.metrics.get(name, []) if value == value]
    return sum(known) / len(known) if known else None


def _minus(pair: Sequence[float | None]) -> float | None:
    one, other = pair
    return None if one is None or other is None else other - one


def _course(accounts: Sequence[Account]) -> Html:
    words = joined(
        [
            "Each metric after the step: ", tag("span", "A", css="key k0"), " and ",
            tag("span", "B", css="key k1"), ". Dashed: the target. Shaded: steps in crisis; where"
            " the two differ, those of A above those of B.",
        ]
    )  # fmt: skip
    drawn = figure(metric_figure(accounts, WIDE), metric_figure(accounts, NARROW), words)
    return section("Metrics against targets", drawn)


def _timelines(accounts: Sequence[Account]) -> Html:
    drawn = [
        figure(
            timeline_figure(account, WIDE, accounts),
            timeline_figure(account, NARROW, accounts),
            joined([tag("span", "AB"[place], css=f"key k{place}"), " ", name_of(account.run, 200)]),
        )
        for place, account in enumerate(accounts)
        if account.beats
    ]
    return section("What was decided", *drawn)


def _utilities(accounts: Sequence[Account]) -> Html:
    drawn = [
        figure(
            utility_figure(account, WIDE),
            utility_figure(account, NARROW),
            joined(
                [
                    tag("span", "AB"[place], css=f"key k{place}"),
                    " V of the chosen option to each seat, before the rejected ones (grey); ",
                    even_words(account),
                ]
            ),
        )
        for place, account in enumerate(accounts)
        if any(scene.laid is not None for scene in account.scenes.values())
    ]
    return section("Utilities of the chosen and the rejected", *drawn) if drawn else Html("")


def _influences(accounts: Sequence[Account]) -> Html:
    drawn = []
    for place, account in enumerate(accounts):
        if not account.summary.decisions:
            continue
        shares = influence_shares(account, favourites(account), pivotality(account))
        drawn.append(
            figure(
                influence_figure(account.seats, shares, WIDE),
                influence_figure(account.seats, shares, NARROW),
                joined([tag("span", "AB"[place], css=f"key k{place}"), " shares of decisions, ",
                        even_words(account)]),
            )
        )  # fmt: skip
    return section("Influence", *drawn) if drawn else Html("")


def _measures(accounts: Sequence[Account]) -> Html:
    rows = []
    for name, words in MEASURES.items():
        pair = [account.summary.measures[name].mean for account in accounts]
        if pair == [None, None]:
            continue
        rows.append((name.replace("_", " "), *map(number, pair), number(_minus(pair)), words))
    heads = ("measure", "A", "B", "B − A", "what it is")
    listing = table(heads, rows, "Means over the decisions", text=(0, 4))
    return section("How good, how fair", listing) if rows else Html("")


def _decisions(accounts: Sequence[Account]) -> Iterator[Html]:
    """Steps in which something else was done, folded up; runs of equal ones in one line."""
    budget = Budget()
    yield controls([("all", ""), ("crisis", "crisis"), ("anything unusual", "notable")])
    equal: list[int] = []
    shown = 0
    for a, b in zip_longest(accounts[0].beats, accounts[1].beats):
        if a is not None and b is not None and a.action == b.action:
            equal.append(a.step)
            continue
        if equal:
            yield _equal(equal)
            equal = []
        if shown >= _MOST_ROWS:
            rest = f"from step {(a or b).step} on, differences are not listed: trace diff A B"
            yield tag("p", rest, css="gap")
            return
        shown += 1
        yield _entry(accounts, (a, b), budget)
    if equal:
        yield _equal(equal)


def _equal(steps: Sequence[int]) -> Html:
    first, last = steps[0], steps[-1]
    span = f"step {first}" if first == last else f"steps {first}–{last}"
    return tag("p", f"{span}: the same was done", css="gap")


def _entry(accounts: Sequence[Account], beats: Sequence[Beat | None], budget: Budget) -> Html:
    step = next(beat.step for beat in beats if beat is not None)
    what = [
        joined([tag("span", "AB"[place], css=f"key k{place}"), " ",
                name_of(plan_words(beat.action, 120)) if beat is not None else "has ended"])
        for place, beat in enumerate(beats)
    ]  # fmt: skip
    marks = [badge("crisis", "warn")] if any(beat and beat.crisis for beat in beats) else []
    rewards = [beat.reward if beat is not None else None for beat in beats]
    change = _minus(rewards)
    line = joined(
        [
            tag("span", step, css="no"),
            tag("span", what[0], Html("<br>"), what[1], css="what"),
            tag("span", *marks, css="marks"),
            tag("span", "" if change is None else _signed(change), css="rw",
                title="reward, B − A"),
        ]
    )  # fmt: skip
    bodies = []
    for account, beat in zip(accounts, beats, strict=True):
        scene = account.scenes.get(step)
        if beat is None or scene is None:
            command = f"trace show {account.run} --step {step}"
            bodies.append(tag("p", "not read in full: ", tag("code", command), css="note"))
            continue
        bodies.append(step_body(account, beat, scene, options=budget.left > 0))
    budget.left -= sum(map(len, bodies))
    flags = [
        name
        for name, on in (
            ("crisis", bool(marks)),
            ("notable", any(beat and beat.notable for beat in beats)),
        )
        if on
    ]
    return tag(
        "details",
        tag("summary", line),
        tag("div", *bodies, css="two"),
        css="step",
        id=f"step-{step}",
        data_step=step,
        data_flags=" ".join(flags),
    )
