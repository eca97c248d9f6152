"""The report of one run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.console.metric_names import label
from orchestrator.report.bargaining import (
    concession_figure,
    influence_figure,
    pareto_figure,
    spending_figure,
    utility_figure,
)
from orchestrator.report.decisions import Budget, decision_list
from orchestrator.report.drawing import Drawing
from orchestrator.report.figures import DOTS_UP_TO, metric_figure, timeline_figure
from orchestrator.report.gather import Account
from orchestrator.report.influence import Pivotality, favourites, influence_shares, pivotality
from orchestrator.report.markup import Html, figure, folded, joined, name_of, table, tag
from orchestrator.report.page import NARROW, WIDE, controls, page, section, tiles
from orchestrator.report.wording import counted, kinds, plan_words, share, text_or
from orchestrator.report.wording import figure as number
from orchestrator.study.metrics.forms import measure_table, seat_table
from orchestrator.trace.steps import mapping, numbers

_TABLE_ROWS = 200


def report(account: Account) -> str:
    """The HTML file of one run."""
    budget = Budget()
    parts = [
        _score(account),
        course(account),
        timeline(account),
        utilities(account),
        table_of_one(account),
        concessions(account),
        influence(account),
        measures(account),
        spending_section(account),
        section("Decisions", filters(), decision_list(account, budget), anchor="decisions"),
    ]
    title = f"{account.header.scenario.get('name', '')}, seed {account.header.data.get('seed', '')}"
    return page(
        f"{account.run}: report", head(account, title), [p for p in parts if p], foot((account,))
    )


def head(account: Account, title: str) -> Html:
    """Title, who took part, and the numbers that come first."""
    header = account.header
    told = header.scenario.get("title")
    seats = joined(
        [joined([name_of(seat, 60), " ", tag("span", name_of(persona, 60), css="soft")])
         if persona != seat else name_of(seat, 60) for seat, persona in header.personas.items()],
        ", ",
    )  # fmt: skip
    return joined(
        [
            tag("h1", name_of(title, 120)),
            tag("p", name_of(told, 300), css="lead") if told else "",
            tag("p", "protocol ", tag("b", name_of(header.protocol, 80)), " · seats ", seats,
                css="lead"),
            tag("p", "run ", tag("code", name_of(account.run, 200)), " ",
                Html('<button type="button" id="theme" hidden>light / dark</button>'),
                css="lead"),
            tiles(list(_tiles(account))),
        ]
    )  # fmt: skip


def _tiles(account: Account) -> Iterator[tuple[str, object, str]]:
    card, beats = account.scorecard, account.beats
    if not account.ending.complete:
        yield "Not finished", f"step {account.ending.last_step}", "the run stopped here"
    elif card:
        good = card.get("success") is True
        verdict = tag("span", "success" if good else "no success", css="good" if good else "bad")
        yield "Verdict", verdict, "of the grader, at the end"
    if account.score is not None:
        base = numbers(card.get("baselines"))
        below = ", ".join(f"{name.replace('_', ' ')} {number(v)}" for name, v in base.items())
        yield "Score", f"{account.score:.3f}", below
    yield "Reward", number(account.reward_total), counted(len(beats), "step")
    held = [beat.success for beat in beats if beat.success is not None]
    if held:
        yield (
            "In target",
            f"{100 * sum(held) / len(held):.0f} %",
            f"{sum(held):,} of {counted(len(held), 'step')}",
        )
    crisis = sum(beat.crisis for beat in beats)
    yield "In crisis", f"{crisis:,}", "step" if crisis == 1 else "steps"
    over = sum(bool(beat.overridden or beat.no_deal) for beat in beats)
    yield "Overridden or no deal", f"{over:,}", f"of {counted(len(beats), 'decision')}"
    yield "Vetoes", f"{sum(beat.vetoes for beat in beats):,}", ""


def _score(account: Account) -> Html:
    """The scorecard, folded up."""
    card = account.scorecard
    components = mapping(card.get("components"))
    if not components:
        return Html("")
    rows = []
    for name, found in components.items():
        part = mapping(found)
        rows.append(
            (
                name_of(str(name).replace("_", " "), 80),
                number(_float(part.get("value"))),
                name_of(text_or(part.get("unit"), ""), 40),
                number(_float(part.get("weight"))),
                name_of(text_or(part.get("explanation"), ""), 300),
            )
        )
    note = card.get("note")
    violations = [name_of(v, 300) for v in card.get("violations") or ()]
    return joined(
        [
            tag("p", name_of(note, 300), css="note") if note else "",
            tag("p", "violations: ", joined(violations, "; "), css="bad") if violations else "",
            folded(
                "Scorecard",
                table(
                    ("component", "value", "unit", "weight", "what it is"),
                    rows,
                    "Components of the score",
                    text=(0, 2, 4),
                ),
            ),
        ]
    )


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def course(account: Account) -> Html:
    """Metrics against their targets."""
    if not account.beats:
        return section("Course", tag("p", "no step was done", css="note"))
    words = (
        "Each metric as it was after the step (step 0: as first observed). Dashed: its target, a"
        " strict upper bound. Shaded: steps in crisis."
    )
    if len(account.beats) <= DOTS_UP_TO:
        words += " Orange points miss the target."
    if len(account.beats) > 700:
        words += (
            f" {len(account.beats):,} steps are thinned to the least and greatest value of some"
            " 350 stretches, so that no peak is lost; the stronger the shade, the more of the steps"
            " there are in crisis."
        )
    drawn = figure(metric_figure((account,), WIDE), metric_figure((account,), NARROW), words)
    return section("Metrics against targets", drawn, folded("Numbers", metric_table(account)))


def metric_table(account: Account) -> Html:
    """The metrics of the steps, all of a short run, else at even distances."""
    names = account.shown_metrics
    stride = max(1, -(-len(account.beats) // _TABLE_ROWS))
    rows = []
    for place in range(0, len(account.beats), stride):
        beat = account.beats[place]
        values = [number(account.metrics[name][place]) for name in names]
        crisis = "yes" if beat.crisis else ""
        rows.append((beat.step, *values, number(beat.reward), crisis))
    head_cells = ["step", *(name_of(_titled(name), 60) for name in names), "reward", "crisis"]
    caption = "Metrics after each step"
    if stride > 1:
        caption += f", every {stride}th: all of them by trace export {account.run} --format csv"
    return table(head_cells, rows, caption)


def _titled(name: str) -> str:
    words, unit = label(name)
    return f"{words}, {unit}" if unit else words


def timeline(account: Account) -> Html:
    """What was done when."""
    if not account.beats:
        return Html("")
    words = (
        "One mark per action, by kind, with its number of steps; orange: another rule than the"
        " protocol's own decided, or there was no deal."
    )
    if len(account.beats) > 400:
        words += " Where steps are too narrow: the darker, the more of the steps there."
    drawn = figure(timeline_figure(account, WIDE), timeline_figure(account, NARROW), words)
    return section("What was decided", drawn, folded("Numbers", _kind_table(account)))


def _kind_table(account: Account) -> Html:
    found: dict[str, list[float]] = {}
    for beat in account.beats:
        for kind in kinds(beat.action):
            found.setdefault(kind, []).append(beat.reward)
    rows = [
        (name_of(kind, 80), len(rewards), number(sum(rewards) / len(rewards)))
        for kind, rewards in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return table(("kind of action", "steps", "mean reward of them"), rows, "Actions by kind")


def even_words(account: Account) -> str:
    """Which decisions the means are taken over."""
    if account.stride == 1:
        return f"over all {account.summary.decisions:,} decisions"
    return (
        f"over {account.summary.decisions:,} of {len(account.beats):,} decisions,"
        f" every {account.stride}th"
    )


def utilities(account: Account) -> Html:
    """What each seat got."""
    if not any(scene.laid is not None for scene in account.scenes.values()):
        return Html("")
    rest = (
        "each grey point is a rejected option"
        if account.summary.decisions <= 60
        else "grey: the middle 80 % (light) and the middle half (darker) of the rejected options,"
        " and their median"
    )
    words = (
        f"V of the chosen option to each seat (line and points); {rest}. 1 is the best that a seat"
        f" could have had, 0 its worst; {even_words(account)}. Where all options are worth the"
        " same to a seat, V is 1. Orange point: chosen although vetoed."
    )
    drawn = figure(utility_figure(account, WIDE), utility_figure(account, NARROW), words)
    return section(
        "Utilities of the chosen and the rejected", drawn, folded("Numbers", _value_table(account))
    )


def _value_table(account: Account) -> Html:
    scenes = sorted(account.scenes.values(), key=lambda scene: scene.record.step)
    rows = [
        (
            scene.record.step,
            name_of(plan_words(scene.record.chosen, 120)),
            *(number(scene.row.values.get(seat), 3) for seat in account.seats),
            scene.row.candidates,
        )
        for scene in scenes[:_TABLE_ROWS]
        if scene.record.chosen
    ]
    titles = ("step", "chosen", *(name_of(seat, 40) for seat in account.seats), "options")
    return table(titles, rows, "V of the choice to each seat", text=(0, 1))


def table_of_one(account: Account) -> Html:
    """The options of the most contested decision, seat against seat."""
    scene = account.featured()
    if scene is None or scene.laid is None:
        return Html("")
    step, laid = scene.record.step, scene.laid
    words = joined(
        [
            "Options of ",
            tag("a", f"step {step}", href=f"#step-{step}"),
            f", the most contested decision: each point is one of {len(laid.names)} options."
            " Black: no other option is better for one seat and worse for none (all seats"
            " counted); grey: some other is; crosses: vetoed or infeasible. Stairs: the front of"
            " the two seats alone. Orange: chosen. Rings: N Nash, KS Kalai–Smorodinsky, W highest"
            " weighted sum of V. Chosen: ",
            name_of(plan_words(scene.record.chosen, 160)),
            ".",
        ]
    )
    drawn = figure(
        pareto_figure(scene, account.seats, WIDE),
        pareto_figure(scene, account.seats, NARROW),
        words,
    )
    return section("What was on the table", drawn)


def concessions(account: Account) -> Html:
    """How seats gave way; nothing where the protocol has no rounds of offers."""
    drawings = concession_figure(account, WIDE), concession_figure(account, NARROW)
    if drawings[0] is None or drawings[1] is None:
        return Html("")
    words = (
        "V to each seat of what it asked for, round by round, in the decisions with the most"
        " rounds. A line that falls is a seat that gives way."
    )
    return section("Concessions", figure(drawings[0], drawings[1], words))


def influence(account: Account) -> Html:
    """Who moved the outcome."""
    seats = account.seats
    if not seats or not account.summary.decisions:
        return Html("")
    liked, moved = favourites(account), pivotality(account)
    shares = influence_shares(account, liked, moved)
    drawn = figure(
        influence_figure(seats, shares, WIDE),
        influence_figure(seats, shares, NARROW),
        _influence_words(account, moved),
    )
    rows = [
        (
            name_of(seat, 60),
            share(moved.changed.get(seat, 0), moved.decisions) if moved.decisions else "–",
            share(liked[seat][0], liked[seat][2]),
            share(liked[seat][1], liked[seat][2]),
        )
        for seat in seats
    ]
    titles = ("seat", "pivotal", "favourite chosen", "own proposal chosen")
    return section("Influence", drawn, folded("Numbers", table(titles, rows, "Influence")))


def _influence_words(account: Account, moved: Pivotality) -> str:
    words = f"Shares of decisions, {even_words(account)}. "
    if moved.decisions:
        words += (
            "Pivotal: the protocol, asked again on the same options and ballots without this"
            f" seat, chooses something else ({moved.decisions:,} decisions)."
        )
    else:
        words += f"Pivotal is not known: {moved.why_not}."
    return words + " The Shapley values need the world itself: run_warroom.py influence RUN."


def measures(account: Account) -> Html:
    """The measures of the negotiation."""
    if not account.summary.decisions:
        return Html("")
    summary = account.summary
    found = list(measure_table(summary))
    rows = [(row[0].replace("_", " "), *row[1:]) for row in found[1:]]
    general = tag(
        "p",
        f"agreement {100 * summary.agreement_rate:.1f} %, by the no-deal rule"
        f" {100 * summary.no_deal_share:.1f} %, rounds {number(summary.rounds.mean)} on average;"
        f" {even_words(account)}",
        css="note",
    )
    seats = list(seat_table(summary))
    return section(
        "How good, how fair",
        general,
        table(
            ("measure", "mean", "min", "max", "n", "what it is"),
            rows,
            "Measures of the decisions, in V",
            text=(0, 5),
        ),
        table(
            [name_of(title) for title in seats[0]],
            [[name_of(row[0], 60), *row[1:]] for row in seats[1:]],
            "Per seat",
            text=[k for k, title in enumerate(seats[0]) if title in {"seat", "moves"}],
        ),
    )


def spending_section(account: Account) -> Html:
    """Tokens and dollars, and where the time went."""
    used = {seat: tally.cost for seat, tally in account.summary.seats.items() if tally.cost.calls}
    parts: list[Html] = []
    if used:
        rows = [(seat, float(c.tokens_in), float(c.tokens_out)) for seat, c in used.items()]
        drawings: list[Drawing] = [spending_figure(rows, width) for width in (WIDE, NARROW)]
        parts.append(figure(drawings[0], drawings[1], "Tokens of the model calls of each seat."))
        parts.append(
            table(
                ("seat", "calls", "tokens in", "tokens out", "dollars", "ms in calls"),
                [
                    (
                        name_of(seat, 60),
                        *map(number, (c.calls, c.tokens_in, c.tokens_out, c.usd, c.latency_ms)),
                    )
                    for seat, c in used.items()
                ],
                "Model calls",
            )
        )
    else:
        words = (
            "No model was called." if account.costs
            else "The trace stands alone: what calls cost is kept beside it."
        )  # fmt: skip
        parts.append(tag("p", words, css="note"))
    if account.costs:
        parts.append(folded("Time", _phase_table(account)))
    return section("Cost", *parts)


def _phase_table(account: Account) -> Html:
    spent: dict[str, list[float]] = {}
    for cost in account.costs:
        for phase, value in cost.phases_ms.items():
            spent.setdefault(phase, []).append(value)
    rows = [
        (name_of(phase, 40), number(sum(v) / len(v)), number(max(v)), number(sum(v) / 1000))
        for phase, v in spent.items()
    ]
    return table(
        ("phase", "mean ms", "max ms", "total s"), rows, "Wall time of the phases of a step"
    )


def filters() -> Html:
    """The buttons above the list of decisions."""
    return controls(
        [("all", ""), ("crisis", "crisis"), ("overridden or no deal", "overridden"),
         ("vetoed", "vetoed"), ("anything unusual", "notable")]
    )  # fmt: skip


def foot(accounts: tuple[Account, ...]) -> Html:
    """Where the numbers come from, and how to check them."""
    lines = [
        tag(
            "p",
            f"Made from {account.events:,} events of ",
            tag("code", name_of(account.run, 200)),
            ", each checked against the hash chain; last hash ",
            tag("code", account.sha),
        )
        for account in accounts
    ]
    words = (
        "V is a seat's utility of an option's projected consequence on its own range of the options"
        " that could have been chosen. Nothing was simulated again for this page."
    )
    return joined([*lines, tag("p", words)])
