"""How a run is summed up in a few lines: score beside its baselines, targets, trace, next command.

Plain text, the same on a terminal and in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.console.commands import command, out_words, resume_command
from orchestrator.console.lines import decimals
from orchestrator.console.metric_names import beside, label
from orchestrator.console.text import plain
from orchestrator.console.watcher import INTERRUPTED, WAITING
from orchestrator.spec import EpisodeResult

_MOST_VIOLATIONS = 5
_MOST_BASELINES = 5


def summary(
    result: EpisodeResult, targets: Mapping[str, float], out: str, store: str = ""
) -> list[str]:
    """The closing lines of a run.

    Args:
        result: What the episode came to.
        targets: Metric → strict upper bound.
        out: Parent folder of the runs.
        store: The words that name the store of the run, as `store_words` gives them.
    """
    if result.stop_reason == INTERRUPTED:
        return [
            f"stopped after step {result.steps}; the run is resumable",
            *_places(result),
            f"resume: {resume_command(result.run, out, store)}",
        ]
    if result.stop_reason == WAITING:
        asked = ", ".join(plain(question["seat"], 40) for question in result.questions)
        return [f"waiting after step {result.steps} for: {asked}", *_places(result)]
    verdict = "success" if result.success else "no success"
    lines = [f"{verdict}: {_metrics(result, targets)}"] if targets else [verdict]
    lines += _scores(result)
    note = result.scorecard.get("note", "")
    if note:
        lines.append(f"note:   {plain(note)}")
    for fallen in result.fallbacks:
        times = f"{fallen['count']} times" if fallen["count"] > 1 else "once"
        first = plain(fallen["first"], 120)
        lines.append(f"note:   something stood in for {plain(fallen['seat'], 40)} {times}: {first}")
    shown = result.violations[:_MOST_VIOLATIONS]
    lines += [f"harm:   {plain(line)}" for line in shown]
    if len(result.violations) > len(shown):
        lines.append(f"harm:   and {len(result.violations) - len(shown)} more")
    return [*lines, *_places(result), *_next(result, out)]


def answer_command(result: EpisodeResult, out: str, store: str = "") -> str:
    """The command that answers what a waiting run asks."""
    words = [
        part for question in result.questions for part in ("--answer", f"{question['seat']}=…")
    ]
    return f"{resume_command(result.run, out, store)} {' '.join(words)}".rstrip()


def _places(result: EpisodeResult) -> list[str]:
    return [f"trace:  {plain(result.trace)}"] if result.trace else []


def _next(result: EpisodeResult, out: str) -> list[str]:
    if not result.trace:
        return []
    return [f"next:   {command('trace', 'show', result.run, *out_words(out))}"]


def _metrics(result: EpisodeResult, targets: Mapping[str, float]) -> str:
    parts = []
    for name, target in targets.items():
        title, unit = label(plain(name, 40))
        value = result.metrics_end.get(name)
        if value is None:
            parts.append(f"{title} unknown")
            continue
        sign = "<" if value < target else "≥"
        shown, bound = beside(value, target)
        parts.append(f"{title} {shown} {sign} {bound} {unit}".rstrip())
    return " · ".join(parts)


def _scores(result: EpisodeResult) -> list[str]:
    """Score and reward, each beside the baselines of its own kind."""
    known: Mapping[str, Any] = result.scorecard.get("baselines", {})
    ratios = all(0.0 <= value <= 1.0 for value in known.values())
    beside = _beside(known, 3 if ratios else 1)
    score = f"score:  {decimals(result.score, 3)}"
    reward = f"reward: {decimals(result.reward_total, 1)} in {result.steps} steps"
    if ratios:
        return [score + beside, reward]
    return [score, reward + beside]


def _beside(baselines: Mapping[str, Any], digits: int) -> str:
    if not baselines:
        return ""
    ranked = sorted(baselines.items(), key=lambda each: (each[1], each[0]))
    if len(ranked) > _MOST_BASELINES:
        # The best of them are the yardstick; the scorecard has them all.
        ranked = [ranked[0], *ranked[1 - _MOST_BASELINES :]]
    texts = [
        f"{plain(name, 40).replace('_', ' ')} {decimals(value, digits)}" for name, value in ranked
    ]
    return f"   ({' · '.join(texts)})"
