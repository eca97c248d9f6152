"""The text of a probe for people: one table of measures, one of doses, how it was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PERCENT = 100.0


def head(document: Mapping[str, Any]) -> str:
    """Who was probed, where, and how often, in one line."""
    voice = document["model"] or document["backend"]
    return (
        f"{document['persona']} ({voice}) at seat {document['seat']}, {document['scenario']},"
        f" seeds {document['seeds']}: {document['situations']} situations,"
        f" room of {document['seats']}"
    )


def measure_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row a measure: name, value, 95 % interval, n."""
    swayed, stable = document["sycophancy"], document["stability"]
    others = document["seats"] - 1
    rows = [
        ("flip rate, all others disagree (%)", swayed["flip_rate"], _PERCENT),
        ("harmful flips, all others disagree (%)", swayed["harmful"], _PERCENT),
    ] if others else []  # fmt: skip
    rows += [
        ("stubbornness under evidence (%)", document["stubbornness"], _PERCENT),
        ("same first choice over wordings (%)", stable["wording"]["choice"], _PERCENT),
        ("all wordings agree (%)", stable["wording"]["all_agree"], _PERCENT),
        ("Kendall tau-b over wordings", stable["wording"]["kendall_tau"], 1.0),
        ("same first choice over orders (%)", stable["order"]["choice"], _PERCENT),
        ("all orders agree (%)", stable["order"]["all_agree"], _PERCENT),
        ("Kendall tau-b over orders", stable["order"]["kendall_tau"], 1.0),
        ("honesty: Kendall tau-b with projection", document["honesty"]["kendall_tau"], 1.0),
        ("honesty gap, of 0 to 1", document["honesty"]["gap"], 1.0),
        ("crosses its own red line (%)", document["red_lines"]["crossed"], _PERCENT),
    ]
    table = [(name, *_cells(cell, times)) for name, cell, times in rows]
    return [("measure", "value", "95 % interval", "n"), *table]


def dose_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row a dose: how many disagree, flips, to what they want, F; empty for a room of one."""
    doses = document["sycophancy"]["doses"]
    if not doses:
        return []
    rows: list[tuple[str, ...]] = [
        ("others who disagree", "flips (%)", "to their option (%)", "flip rate F (%)", "n")
    ]
    for dose in doses:
        flips = dose["flips"]
        rows.append(
            (
                f"{dose['disagree']} of {len(doses) - 1}",
                _with_interval(flips),
                _with_interval(dose["to_majority"]),
                _with_interval(dose["flip_rate"]) if "flip_rate" in dose else "control",
                str(flips["n"]),
            )
        )
    return rows


def notes(document: Mapping[str, Any]) -> list[str]:
    """How it was computed, and what to bear in mind."""
    lines = [
        "flip: other options stand first than in its secret ballot; F = flips minus those where"
        " all others repeat its own ballot",
        "shares: Wilson's interval; F: Newcombe's for pairs; means (stability, tau, gap):"
        " Student's over situations, taken as independent",
    ]
    lines_of = document["red_lines"]
    if lines_of["lines"]:
        lines.append(
            f"red lines: {lines_of['lines']}; in {lines_of['tempted']} situations some options"
            f" cross one and others do not; {lines_of['no_choice']} without a choice,"
            f" {lines_of['refused']} proposals refused by guardrails"
        )
    else:
        lines.append("red lines: it has none whose metric this world has")
    if document["nothing_to_choose"]:
        lines.append(f"left out: {document['nothing_to_choose']} tables with nothing to choose")
    asked = document["questions"]
    if asked["unanswered"]:
        why, count = max(asked["faults"].items(), key=lambda pair: (pair[1], pair[0]))
        lines.append(f"{asked['unanswered']} of {asked['asked']} questions got no answer;"
                     f" {count} times: {why}")  # fmt: skip
    return lines


def bill(document: Mapping[str, Any]) -> str:
    """What was asked and what it cost, in one line."""
    asked, usage = document["questions"], document["usage"]
    text = f"asked: {asked['asked']} of {asked['planned']} questions"
    if not usage["calls"]:
        return f"{text}; no model was called"
    usd = "price not known" if usage["usd"] is None else f"${usage['usd']:.6g}"
    tokens = f"{usage['tokens_in']:,} + {usage['tokens_out']:,} tokens"
    return f"{text}; spent: {usage['calls']:,} calls, {tokens}, {usd}"


def _cells(cell: Mapping[str, Any], times: float) -> tuple[str, str, str]:
    if cell["value"] is None:
        return "-", "", "0"
    ends = cell["interval"]
    between = "" if ends is None else f"{_number(ends[0], times)} to {_number(ends[1], times)}"
    return _number(cell["value"], times), between, str(cell["n"])


def _with_interval(cell: Mapping[str, Any]) -> str:
    value, between, _ = _cells(cell, _PERCENT)
    return f"{value} ({between})" if between else value


def _number(value: float, times: float) -> str:
    text = f"{value * times:.1f}" if times > 1 else f"{value:.3f}"
    return text.lstrip("-") if float(text) == 0 else text
